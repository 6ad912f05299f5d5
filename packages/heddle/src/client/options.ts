import type { LookupFunction } from 'node:net'
import type { Http1Limits } from '../h1/index.ts'
import type { Http2Limits } from '../h2/index.ts'
import type { Http3Limits } from '../h3/index.ts'
import type { Clock, dial, dialQuic, TlsClientOptions } from '../io/index.ts'
import type { ClientProtocol } from './protocols.ts'

/** Opens one connection: `dial` of `heddle/io`, or the seeded world's network. */
export type Dialler = typeof dial

/** Opens one QUIC connection: `dialQuic` of `heddle/io`, or a test's. */
export type QuicDialler = typeof dialQuic

/**
 * Which proxy requests go through.
 *
 * - `'none'`: none.
 * - `'env'`: what the environment says: `http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`, or the same in capitals.
 * - a URL, `http://user:password@host:port` or `https://…`: that one, for every origin.
 * - an object: that one, except for the hosts of `noProxy` (the syntax of `NO_PROXY`).
 */
export type ProxyOption = 'env' | 'none' | (string & {}) | URL | { readonly url: string | URL; readonly noProxy?: string | undefined }

/** TLS of connections to `https` origins; the ALPN protocols follow from the client's `protocols`. */
export type ClientTlsOptions = Omit<TlsClientOptions, 'alpn'>

/** How a client behaves. Every field has a default; times are in ms, sizes in bytes. */
export interface ClientOptions {
  /**
   * The versions of HTTP that `https` origins are offered. `h2` and `h1` by ALPN, best first; the server chooses.
   * With `h3` among others, connections go over QUIC where a response said that HTTP/3 is spoken (Alt-Svc, RFC 7838), unless
   * that turns out not to be so; its place in the list says nothing. `['h3']`: QUIC only, to the origin's own port, without
   * anybody's saying so. HTTP/3 needs Node ≥ 26.9: elsewhere it is left out, and `stats().http3Unavailable` says why; if nothing
   * else is in the list, that is a UsageError. It is left out in the same way with `socketPath`, and with the `ciphers`,
   * `maxVersion` and `checkServerIdentity` of `tls`, which QUIC cannot honour.
   * Default `['h2', 'h1']`. `['h2']`: a server that does not speak it is TLS_FAILED.
   */
  readonly protocols?: readonly ClientProtocol[] | undefined
  /** True: `http` origins are spoken to in HTTP/2 without being asked (prior knowledge, RFC 9113 §3.3), unless a proxy is between. Default false. */
  readonly h2c?: boolean | undefined
  /**
   * What a request does that finds every stream of the HTTP/2 or HTTP/3 connections to its origin taken. `queue`
   * (the default): it waits for one of them. `connect`: another connection is made, up to `maxConnectionsPerOrigin`.
   */
  readonly whenFull?: 'queue' | 'connect' | undefined
  /**
   * True: an `https` origin without a connection uses the HTTP/2 connection of another one, if the
   * certificate there is good for its host too and the server says that it answers for it (ORIGIN frame,
   * RFC 8336), or says nothing of the kind and is at the address its name leads to (RFC 9113 §9.1.1). Not
   * with a proxy, and not with TLS options that change the check of certificates. Default false.
   */
  readonly coalesce?: boolean | undefined
  /**
   * An HTTP/2 or HTTP/3 connection on which requests got no answer so many times in a row (reset or refused by the
   * server, malformed, or out of time; those that ran at once count once) takes no more of them, so that
   * another is made; at most one connection of an origin a second. Default 8; Infinity: it is kept.
   */
  readonly maxFailuresInRow?: number | undefined
  /**
   * Connections to one origin at once, in whatever state. Default 128. HTTP/2 and HTTP/3 connections that take no
   * more requests and only finish those they have do not count, up to as many again; those of HTTP/1.1
   * that have become tunnels do not count at all.
   */
  readonly maxConnectionsPerOrigin?: number | undefined
  /**
   * HTTP/1.1 connections for tunnels (`tunnel: true`) to one origin at once: those that are tunnels, and
   * those that may become one. Tunnels over HTTP/2 and HTTP/3 do not count. Default Infinity.
   */
  readonly maxTunnelsPerOrigin?: number | undefined
  /** Connections of the whole client at once; idle ones of other origins make room. Default Infinity. */
  readonly maxConnections?: number | undefined
  /** Requests that may wait for a connection to one origin; more fail with QUEUE_FULL. Default 1,000,000. */
  readonly maxWaitingPerOrigin?: number | undefined
  /** From the start of name resolution to a usable connection, TLS and proxy included. Default 10 s. On excess: CONNECT_TIMEOUT. */
  readonly connectTimeout?: number | undefined
  /**
   * How long a request may wait for a connection. On excess: QUEUE_TIMEOUT. Default: for as long as the
   * queue of its origin moves; once no request got a connection out of it for 60 s, those that have
   * waited so long fail. Infinity: for ever.
   */
  readonly queueTimeout?: number | undefined
  /** From `exchange()` to the end of the response. Default Infinity. On excess: TOTAL_TIMEOUT. */
  readonly totalTimeout?: number | undefined
  /**
   * Limits and time limits of each connection (`responseTimeout`, `bodyTimeout`, `idleTimeout`, …) that differ from
   * `clientLimits`. Those that HTTP/2 and HTTP/3 have by the same name hold there too; `drainSize` and `drainTimeout` are of HTTP/1.1.
   */
  readonly limits?: Partial<Http1Limits> | undefined
  /** What shall be different over HTTP/2, and what only HTTP/2 has (`pingInterval`, `streamWindow`, …). */
  readonly http2?: Partial<Http2Limits> | undefined
  /** The same of HTTP/3. */
  readonly http3?: Partial<Http3Limits> | undefined
  /** An origin without connections and requests is forgotten, its counters folded into the totals, after this. Default 60 s. */
  readonly originLifetime?: number | undefined
  /** TLS of `https` origins. */
  readonly tls?: ClientTlsOptions | undefined
  /** Resolves host names in place of `dns.lookup`; called with `{ all: true }`. */
  readonly lookup?: LookupFunction | undefined
  /** 4 or 6: connect over this IP version only. Default 0: both. */
  readonly family?: 0 | 4 | 6 | undefined
  /** Local IP address to connect from. */
  readonly localAddress?: string | undefined
  /** Every connection goes to this Unix socket (or Windows pipe), whatever the origin's host. */
  readonly socketPath?: string | undefined
  /** Default `'none'`. */
  readonly proxy?: ProxyOption | undefined
  /** Where time comes from. Default the system's clock. */
  readonly clock?: Clock | undefined
  /** Opens connections. Default `dial` of `heddle/io`. */
  readonly connect?: Dialler | undefined
  /** Opens QUIC connections. Default `dialQuic` of `heddle/io`; with a `connect` of one's own there is none. */
  readonly connectQuic?: QuicDialler | undefined
}

/** What may differ for one exchange. */
export interface ExchangeOptions {
  /** In place of the client's `queueTimeout`, ms; Infinity: it may wait for ever. */
  readonly queueTimeout?: number | undefined
  /** In place of the client's `totalTimeout`, ms. */
  readonly totalTimeout?: number | undefined
  /**
   * True: the request is a CONNECT with a `protocol` (Upgrade in HTTP/1.1, RFC 8441 in HTTP/2, RFC 9220 in HTTP/3). It goes
   * to an HTTP/2 or HTTP/3 connection that is there, has a stream left and on which the server has allowed it; else
   * to an HTTP/1.1 connection made for it, which is not used for anything else. A client that does not speak
   * HTTP/1.1 has it wait for a stream like any request. Default false.
   */
  readonly tunnel?: boolean | undefined
  /** True: one more attempt of a request that failed. Counted in the `retries` of the statistics; changes nothing else. */
  readonly retry?: boolean | undefined
}
