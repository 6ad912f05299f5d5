import type { OptionNames } from '../http/index.ts'
import type { ClientOptions } from './options.ts'

/** Every option of `Client`. */
export const clientOptionNames: OptionNames<ClientOptions> = {
  protocols: true,
  h2c: true,
  whenFull: true,
  coalesce: true,
  maxFailuresInRow: true,
  maxConnectionsPerOrigin: true,
  maxTunnelsPerOrigin: true,
  maxConnections: true,
  maxWaitingPerOrigin: true,
  connectTimeout: true,
  queueTimeout: true,
  totalTimeout: true,
  limits: true,
  http2: true,
  http3: true,
  originLifetime: true,
  tls: true,
  lookup: true,
  family: true,
  localAddress: true,
  socketPath: true,
  proxy: true,
  clock: true,
  connect: true,
  connectQuic: true,
}
