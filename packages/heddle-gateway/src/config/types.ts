/**
 * The gateway's configuration as code sees it: every default filled in, every duration in ms.
 * `schema.ts` makes it from YAML; the YAML's words are the same names in the same places, with
 * durations as `10s`, `250ms`, `1m` and sizes as `64KiB`.
 */
export interface Config {
  readonly workers: number
  readonly admin: AdminConfig | undefined
  readonly accessLog: AccessLogConfig | undefined
  readonly listeners: readonly ListenerConfig[]
  readonly routes: readonly RouteConfig[]
  readonly clusters: readonly ClusterConfig[]
  /** How long a graceful stop may take before what is left is cut, ms. Default 30 s. */
  readonly drainTimeout: number
}

export interface AdminConfig {
  /** Default 127.0.0.1. */
  readonly host: string
  readonly port: number
}

export interface AccessLogConfig {
  /** A file's path, or `stdout`. */
  readonly path: string
}

export interface ListenerConfig {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly tls: TlsConfig | undefined
  /** Peers whose `Forwarded` / `X-Forwarded-*` are believed and extended: IP addresses and CIDR blocks. Default none: they are replaced. */
  readonly trust: readonly string[]
  /** Pseudonym in `Via`. Default `heddle`. */
  readonly via: string
  /** Write `Forwarded` (RFC 7239), `X-Forwarded-For/-Host/-Proto`, or both. Default `x-forwarded`. */
  readonly forwarded: 'x-forwarded' | 'forwarded' | 'both' | 'none'
  /** Upgrade protocols tunnelled. Default `[websocket]`. */
  readonly upgrades: readonly string[]
  /** What clients may speak: chosen by ALPN on TLS, by the connection's first octets on plain text. Default both. */
  readonly protocols: readonly HttpVersion[]
  readonly limits: ListenerLimits
  readonly http2: ListenerHttp2Config
}

/** An HTTP version as Heddle names it; `h2` on plain text is h2c with prior knowledge. */
export type HttpVersion = 'h1' | 'h2'

export interface ListenerLimits {
  readonly maxConnections: number
  readonly maxContentLength: number
  readonly headTimeout: number
  readonly bodyTimeout: number
  readonly idleTimeout: number
  readonly sendTimeout: number
}

/** HTTP/2 connections, of clients or to upstreams. Sizes in bytes, times in ms. */
export interface Http2Config {
  /** What the peer may send on one stream before the other side has taken it. Default 1 MiB. */
  readonly streamWindow: number
  /** The same for a whole connection. Default 4 MiB. */
  readonly connectionWindow: number
  /** Both windows grow up to this where the path needs it. Default 16 MiB. */
  readonly maxWindow: number
  /** Silence with requests under way after which a PING asks whether the peer is there. Default 15 s. */
  readonly pingInterval: number
  /** Without an answer the connection is dead. Default 10 s. */
  readonly pingTimeout: number
}

export interface ListenerHttp2Config extends Http2Config {
  /** Streams a client may have open at once on one connection; more are refused. Default 100. */
  readonly maxConcurrentStreams: number
}

export interface ClusterHttp2Config extends Http2Config {
  /** Unused HTTP/2 connections are closed after this. Default 60 s. */
  readonly idleTimeout: number
}

export interface TlsConfig {
  /** PEM files. The first certificate is the default, the others are chosen by server name. */
  readonly certificates: readonly { readonly cert: string; readonly key: string; readonly names: readonly string[] }[]
  /** PEM file: clients must show a certificate that it signed. */
  readonly clientCa: string | undefined
}

/** First match in the file's order wins. An absent condition matches everything. */
export interface RouteConfig {
  readonly name: string
  readonly match: MatchConfig
  /** Name of the cluster. */
  readonly cluster: string
  /** Whole exchange, ms. Default Infinity. */
  readonly timeout: number
  /** In place of the cluster's, ms. */
  readonly headTimeout: number | undefined
  /** In place of the cluster's, ms. */
  readonly bodyTimeout: number | undefined
  /** A gRPC client's `grpc-timeout` ends the exchange here too, if it comes before `timeout`. Default false: it is only passed on. */
  readonly grpcDeadline: boolean
  /** Requests under way on this route at once, in each worker; more are refused. Default Infinity. */
  readonly maxConcurrentStreams: number
  /** In place of the listener's and the cluster's, for HTTP/2 streams of this route. */
  readonly streamWindow: number | undefined
  /** Tunnels by extended CONNECT (RFC 8441: WebSocket over HTTP/2) may take this route. Default false. */
  readonly extendedConnect: boolean
  readonly retry: RetryConfig
  /** Replaces the authority sent upstream; default: the client's is kept. */
  readonly authority: string | undefined
}

export interface MatchConfig {
  /** Exact host, or `*.example.org`; without port; lower case. */
  readonly hosts: readonly string[]
  /** Matches whole segments: `/api` matches `/api` and `/api/x`, not `/apix`. */
  readonly pathPrefix: string
  /** gRPC calls of this service, `package.Service`; in place of `pathPrefix`. */
  readonly grpcService: string | undefined
  readonly methods: readonly string[]
  /** Field name (lower case) → exact value, or `undefined` for "is present". */
  readonly headers: readonly { readonly name: string; readonly value: string | undefined }[]
}

export interface RetryConfig {
  /** Further attempts for requests that were certainly not processed. Default 2. */
  readonly attempts: number
}

export interface ClusterConfig {
  readonly name: string
  readonly endpoints: readonly EndpointConfig[]
  readonly tls: ClusterTlsConfig | undefined
  readonly protocol: UpstreamProtocol
  readonly http2: ClusterHttp2Config
  readonly connectTimeout: number
  /** Request sent → response head. */
  readonly headTimeout: number
  /** No byte of response content. */
  readonly bodyTimeout: number
  /** Unused HTTP/1.1 connections are closed after this. */
  readonly idleTimeout: number
  /** Of HTTP/2, another connection is only made when every stream of the others is taken. */
  readonly maxConnectionsPerEndpoint: number
  /** Requests that may wait for a connection or a stream; more get a 503. */
  readonly maxWaiting: number
  /** Host names are resolved again this often, ms. Default 30 s. */
  readonly resolveInterval: number
  readonly ejection: EjectionConfig
}

/**
 * What is spoken to a cluster.
 *
 * - `auto` (default): on TLS what ALPN comes to, HTTP/2 preferred; on plain text HTTP/1.1.
 * - `h1`: HTTP/1.1.
 * - `h2`: HTTP/2 on TLS, and nothing else.
 * - `h2c`: HTTP/2 on plain text, with prior knowledge.
 */
export type UpstreamProtocol = 'auto' | 'h1' | 'h2' | 'h2c'

export interface EndpointConfig {
  readonly host: string
  readonly port: number
}

export interface ClusterTlsConfig {
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  readonly serverName: string | undefined
}

/** An endpoint that failed `consecutiveFailures` times in a row gets no requests for `baseTime`, doubled each time up to `maxTime`. */
export interface EjectionConfig {
  /** Default 5; 0 turns ejection off. */
  readonly consecutiveFailures: number
  /** Default 1 s. */
  readonly baseTime: number
  /** Default 30 s. */
  readonly maxTime: number
  /** At most this share of a cluster is out at once; the rest is used whatever its state. Default 0.5. */
  readonly maxShare: number
}
