import type { Exchange, ExchangeHandler } from '../http/index.ts'
import type { Http1Limits } from '../h1/index.ts'
import type { Http2Limits } from '../h2/index.ts'
import type { Http3Limits } from '../h3/index.ts'
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
  fetch(request: Request, info: RequestContext): ResponseLike | Promise<ResponseLike>
}

/** Answers a request: called with it and with what is known of its connection; returns the response or a promise of it. */
export type FetchHandler = FetchApp['fetch']

/** A protocol by its ALPN name (RFC 7301); `h1` is another name for `http/1.1`. */
export type ServedProtocol = 'h3' | 'h2' | 'http/1.1' | 'h1'

/** Where {@link serve} listens, what it answers, and its limits. Everything but `fetch` or `onExchange` has a default; times are in ms, sizes in bytes. */
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
  /**
   * Protocols this server speaks, best first: what ALPN chooses from on a TLS port, and what a plain-text
   * port understands (HTTP/2 there by prior knowledge). With `h3`, which needs `tls`, Node ≥ 26.9 and the port of the
   * same number in UDP, HTTP/3 is served beside the others, or alone. Default `['h2', 'http/1.1']`.
   */
  readonly protocols?: readonly ServedProtocol[]
  /**
   * Limits and time limits that shall differ from `serverLimits`. They hold for HTTP/1.1, and those
   * HTTP/2 and HTTP/3 have by the same name hold there too.
   */
  readonly limits?: Partial<Http1Limits>
  /** HTTP/2's limits and time limits, where they shall differ from `http2Limits` and `limits`. */
  readonly http2?: Partial<Http2Limits>
  /** HTTP/3's limits and time limits, where they shall differ from `http3Limits` and `limits`. */
  readonly http3?: Partial<Http3Limits>
  /**
   * With HTTP/3 beside other versions: responses of a fetch handler over those tell clients of it by `alt-svc`
   * (RFC 7838), unless the handler says something else there. Default true.
   */
  readonly altSvc?: boolean
  /**
   * A client that closes its sending side still waits for its answer. Default false: it has gone, its
   * exchange ends and `request.signal` aborts, which is how a client that leaves is noticed at once.
   */
  readonly halfOpen?: boolean
  /**
   * Origins (`https://a.example`) that this server answers for, told to clients of HTTP/2 and HTTP/3 (RFC 8336, RFC 9412):
   * one that coalesces connections then asks for those and no others here. Needs `tls`. Default: nothing is told, and
   * clients go by the certificate.
   */
  readonly origins?: readonly string[]
  /** Connections held at once; more are dropped and counted. Default: no limit. */
  readonly maxConnections?: number
  /** TLS handshakes in flight. For more the oldest makes room if it has taken 1 s, else they are dropped. Default 1000. */
  readonly maxHandshakes?: number
  /** ms until a TLS handshake must be done. Default 10000. */
  readonly handshakeTimeout?: number
  /**
   * With `onExchange`: protocols (lower case) that may be tunnelled to. An HTTP/1.1 request with such
   * an `Upgrade` and an extended CONNECT of HTTP/2 (RFC 8441) or HTTP/3 (RFC 9220) become the same CONNECT head with that
   * `protocol`; Upgrade to another is ignored, an extended CONNECT to another answered with 501. With any,
   * clients of HTTP/2 and HTTP/3 are told SETTINGS_ENABLE_CONNECT_PROTOCOL, which cannot be withdrawn. Default none.
   */
  readonly upgrades?: readonly string[]
  /**
   * False: clients of HTTP/2 and HTTP/3 are offered no extended CONNECT, whatever the `upgrades`; those are for
   * HTTP/1.1 then. Default true.
   */
  readonly extendedConnect?: boolean
  /**
   * Clients may open WebSockets. With `fetch`: the handler gets such a request as a GET with `upgrade: websocket`,
   * over every version of HTTP alike, and `upgrade` of `heddle/websocket` accepts it; any other response
   * refuses it. With `onExchange`: `websocket` is among the `upgrades`. Default false.
   */
  readonly websocket?: boolean
  /** Sec-WebSocket-Accept for a key. Default: RFC 6455's. */
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
  /**
   * 32 secret octets that HTTP/3's tokens and stateless resets are made with. Processes that share a port have the same,
   * so that each takes the tokens of the others and can tell a client that its connection is gone. Default: random.
   */
  readonly quicKey?: Uint8Array
  /** In a cluster's worker: not shared with the others. Default false. */
  readonly exclusive?: boolean
}

/** How `Server.close` stops. */
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
  /** Dropped because of `maxConnections` or `maxHandshakes`, or because ALPN chose nothing that is spoken here. */
  readonly rejected: number
  /** TLS handshakes that failed, took too long or were broken off. */
  readonly handshakesFailed: number
  /** Failures to accept a connection, such as EMFILE. */
  readonly acceptErrors: number
  /** Unread request bodies of HTTP/1.1 that were read to their end after the response. */
  readonly drained: number
  /** Those that cost the connection. */
  readonly drainAbandoned: number
  /** Content bytes thrown away so. */
  readonly drainedBytes: number
  /** Calls of `socket.write`: the system's write calls, nearly. */
  readonly writes: number
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly http1: ProtocolStats
  readonly http2: Http2Stats
  readonly http3: Http3Stats
}

/** Counts of the connections that speak one protocol; those that have not said a byte yet are in neither. */
export interface ProtocolStats {
  /** Connections that stand. */
  readonly connections: number
  /** Connections that began to speak it, since the start. */
  readonly accepted: number
  /** Exchanges that are not over. */
  readonly exchanges: number
  /** Exchanges begun since the start. */
  readonly requests: number
  readonly writes: number
  readonly bytesRead: number
  readonly bytesWritten: number
}

/** Counts of the connections that speak HTTP/3. A write is a call of the system that sends one or many datagrams. */
export interface Http3Stats extends ProtocolStats {
  /** Datagrams sent since the start. */
  readonly datagrams: number
  /** Streams this server reset or did not read to their end, by the name of RFC 9114 §8.1: `{ H3_NO_ERROR: 2 }`. */
  readonly resetsSent: Readonly<Record<string, number>>
  /** Streams the clients reset, or whose answers they did not read to the end, likewise. */
  readonly resetsReceived: Readonly<Record<string, number>>
}

/** Counts of the connections that speak HTTP/2. */
export interface Http2Stats extends ProtocolStats {
  /** Frames sent since the start. */
  readonly frames: number
  /** `frames` by `writes`: how well frames are batched; 0 before the first write. */
  readonly framesPerWrite: number
  /** Streams this server reset, by the name of RFC 9113 §7: `{ NO_ERROR: 2 }` for two uploads nobody wanted to the end. */
  readonly resetsSent: Readonly<Record<string, number>>
  /** Streams the clients reset, likewise. */
  readonly resetsReceived: Readonly<Record<string, number>>
}
