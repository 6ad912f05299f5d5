/** Sockets, clocks and the one loop that runs engines on them. */
export { Alarm, type Clock } from './clock.ts'
export { dial, type Dialled, type DialOptions, type DialProxy, type DialTarget } from './dial.ts'
export {
  listen,
  type Accepted,
  type Listener,
  type ListenerCounters,
  type ListenOptions,
  type TlsIdentity,
  type TlsServerOptions,
} from './listen.ts'
export type { SocketLike } from './socket.ts'
export { systemClock } from './system-clock.ts'
export { StreamDriver, type DriverCounters, type DriverOptions } from './tcp-driver.ts'
export { TlsSessions, type TlsClientOptions } from './tls-client.ts'
