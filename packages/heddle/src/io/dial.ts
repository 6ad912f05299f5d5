import type { LookupFunction } from 'node:net'
import type { ConnectionInfo, HeddleError, StreamEngine } from '../http/index.ts'
import type { Clock } from './clock.ts'
import type { SocketLike } from './socket.ts'
import type { DriverOptions, StreamDriver } from './tcp-driver.ts'
import type { TlsClientOptions } from './tls-client.ts'

/** Where to connect: a host name or IP address with a port, or the path of a Unix socket. */
export type DialTarget = { readonly host: string; readonly port: number } | { readonly path: string }

/** A proxy that opens tunnels by CONNECT (RFC 9110 §9.3.6). */
export interface DialProxy {
  readonly host: string
  readonly port: number
  /** Value of `proxy-authorization`, such as `Basic …`. */
  readonly authorization?: string | undefined
  /** TLS to the proxy itself. */
  readonly tls?: TlsClientOptions | undefined
}

export interface DialOptions {
  readonly clock: Clock
  /** Name lookup, connection and TLS together, ms. Default 10000. */
  readonly connectTimeout?: number | undefined
  /** In place of `dns.lookup`; called with `{ all: true }`. */
  readonly lookup?: LookupFunction | undefined
  /** 4 or 6: use this family only. Default 0: both. */
  readonly family?: 0 | 4 | 6 | undefined
  /** TLS with the target. Undefined: plain. */
  readonly tls?: TlsClientOptions | undefined
  /** The local IP address to connect from. */
  readonly localAddress?: string | undefined
  /** Reach the target through this proxy's tunnel. */
  readonly proxy?: DialProxy | undefined
  /** RFC 8305 §5: ms between two attempts. Default 250. */
  readonly attemptDelay?: number | undefined
}

/** A connection that stands, TLS included. */
export interface Dialled {
  readonly socket: SocketLike
  readonly info: ConnectionInfo
  /** What TLS agreed on (`h2`, `http/1.1`), or undefined. */
  readonly alpn: string | undefined
  /** Puts `engine` on it and starts reading. Call it, or `socket.destroy()`. */
  attach(engine: StreamEngine, options?: DriverOptions): StreamDriver
}

/**
 * Connects. `done` is called once, never before `dial` returned, and not after `cancel`. Every error is a
 * HeddleError with `unprocessed: true`: DNS_FAILED, CONNECT_FAILED, TLS_FAILED, PROXY_FAILED or CONNECT_TIMEOUT.
 */
export function dial(
  _target: DialTarget,
  _options: DialOptions,
  _done: (error: HeddleError | undefined, dialled: Dialled | undefined) => void,
): { cancel(): void } {
  throw new Error('under construction')
}
