import type { Exchange, ExchangeHandler } from '../http/index.ts'
import type { Http1Limits } from '../h1/index.ts'
import type { Clock, listen, TlsServerOptions } from '../io/index.ts'
import type { Request } from '../web/index.ts'
import type { RequestContext } from './request-context.ts'

/**
 * What a fetch handler may return: Heddle's Response (the fast one), Node's, or anything of that
 * shape. Its status must be 200–599.
 */
export interface ResponseLike {
  readonly status: number
  readonly headers: Iterable<readonly [string, string]>
  readonly body: ReadableStream | null
}

/** A handler in the form of `export default { fetch }` apps. */
export interface FetchApp {
  fetch(request: Request, context: RequestContext): ResponseLike | Promise<ResponseLike>
}

export type FetchHandler = FetchApp['fetch']

export interface ServeOptions {
  /** Default 0: any free one; see `server.port`. */
  readonly port?: number
  /** Name or address to listen on. Default: all addresses, IPv6 and IPv4. */
  readonly hostname?: string
  /** Path of a Unix socket, instead of port and hostname. */
  readonly path?: string
  /** Serves TLS with this identity, others by server name (`names`), client certificates (`requestCert`, `ca`). */
  readonly tls?: TlsServerOptions
  /**
   * Answers requests: a function, or an object that has one, such as a Hono app. May return the
   * response or a promise of it. What it throws, and what is no Response, goes to `onError`.
   */
  readonly fetch?: FetchHandler | FetchApp
  /** Answers exchanges at the engine's speed, instead of `fetch`. */
  readonly onExchange?: (exchange: Exchange) => ExchangeHandler
  /** HTTP/1.1's limits and time limits, where they shall differ from `serverLimits`. */
  readonly limits?: Partial<Http1Limits>
  /**
   * A client that closes its sending side still waits for its answer. Default false: it has gone, its
   * exchange ends and `request.signal` aborts, which is how a client that leaves is noticed at once.
   */
  readonly halfOpen?: boolean
  /** Connections held at once; more are dropped and counted. Default: no limit. */
  readonly maxConnections?: number
  /** TLS handshakes in flight; more are dropped. Default 1000. */
  readonly maxHandshakes?: number
  /** ms until a TLS handshake must be done. Default 10000. */
  readonly handshakeTimeout?: number
  /**
   * With `onExchange`: protocols (lower case) whose Upgrade becomes a CONNECT head with that
   * `protocol`. Default none: Upgrade is ignored and the request is an ordinary one.
   */
  readonly upgrades?: readonly string[]
  /** Sec-WebSocket-Accept for a key; needed for `websocket` among `upgrades`. */
  readonly websocketAccept?: (key: string) => string
  /**
   * Told what a fetch handler threw, and other failures of answering; `request` is undefined for
   * what concerns none, such as a failed accept. May return the response to send instead of the plain
   * 500 (ignored once the head was sent). Default: `console.error`.
   */
  readonly onError?: (
    error: unknown,
    request: Request | undefined,
  ) => ResponseLike | undefined | void | Promise<ResponseLike | undefined | void>
  /** Time. Default: the system's. */
  readonly clock?: Clock
  /** Opens the listener. Default `listen` of `heddle/io`; the seeded world has its own network. */
  readonly listen?: typeof listen
  /** Connections the kernel holds before they are accepted. Default 511. */
  readonly backlog?: number
  /** Several processes share the port (SO_REUSEPORT, Node ≥ 23.1; ignored before). Default false. */
  readonly reusePort?: boolean
  /** In a cluster's worker: not shared with the others. Default false. */
  readonly exclusive?: boolean
}

export interface CloseOptions {
  /** ms that running exchanges may take before they are cut. Default 10000; 0 cuts at once. */
  readonly deadline?: number
}

/** Counts of one server. At rest `exchanges` is 0; after `close` so is `connections`. */
export interface ServerStats {
  /** Connections that stand, TLS handshakes included. */
  readonly connections: number
  /** Of these, without an open exchange. */
  readonly idleConnections: number
  /** TLS handshakes in flight. */
  readonly handshakes: number
  /** Exchanges that are not over. */
  readonly exchanges: number
  /** Connections with a deadline armed. */
  readonly deadlines: number
  /** Exchanges begun since the start. */
  readonly requests: number
  /** Connections since the start. */
  readonly accepted: number
  /** Dropped because of `maxConnections` or `maxHandshakes`. */
  readonly rejected: number
  readonly handshakesFailed: number
  readonly acceptErrors: number
  /** Unread request bodies that were read to their end after the response, and those given up. */
  readonly drained: number
  readonly drainAbandoned: number
  /** Content bytes thrown away so. */
  readonly drainedBytes: number
  /** Calls of `socket.write`: the system's write calls, nearly. */
  readonly writes: number
  readonly bytesRead: number
  readonly bytesWritten: number
}
