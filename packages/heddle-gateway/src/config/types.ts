/**
 * The gateway's configuration as code sees it: every default filled in, every duration in ms.
 * `schema.ts` makes it from YAML; the YAML's words are the same names in the same places, with
 * durations as `10s`, `250ms`, `1m` and sizes as `64KiB`.
 */
export interface Config {
  /** Processes on the same ports, 1 to 256. Default 1; `auto` in YAML is one per core. */
  readonly workers: number
  /** Where the admin server listens. Default undefined: there is none. */
  readonly admin: AdminConfig | undefined
  /** Where finished requests are told. Default undefined: nowhere. */
  readonly accessLog: AccessLogConfig | undefined
  /** At least one; each with a name and an address of its own. */
  readonly listeners: readonly ListenerConfig[]
  /** At least one; the first that matches takes the request. */
  readonly routes: readonly RouteConfig[]
  /** At least one; each with a name of its own. */
  readonly clusters: readonly ClusterConfig[]
  /** How long a graceful stop may take before what is left is cut, ms. Default 30 s. */
  readonly drainTimeout: number
  /**
   * How long of that tunnels live on, ms. Then WebSockets are closed with 1001 and other tunnels cut; at most
   * `drainTimeout`. Default two thirds of it.
   */
  readonly tunnelGrace: number
}

/** The address of the admin server, which has no authentication. */
export interface AdminConfig {
  /** An IP address or host name. Default 127.0.0.1. */
  readonly host: string
  /** 0: any free one. No default. */
  readonly port: number
  /** Names, in lower case, it answers to besides `host`, `localhost` and IP addresses. Default `[]`. */
  readonly hosts: readonly string[]
}

/** Where the access log is written. */
export interface AccessLogConfig {
  /** A file's path, or `stdout`. */
  readonly path: string
}

/** An address that takes requests, and how it treats them before and after their way upstream. */
export interface ListenerConfig {
  /** In metrics and access log. */
  readonly name: string
  /** An IP address or host name. Default 0.0.0.0: every IPv4 address of the machine. */
  readonly host: string
  /** 0: any free one. No default. */
  readonly port: number
  /** Default undefined: plain text. */
  readonly tls: TlsConfig | undefined
  /** Peers whose `Forwarded` / `X-Forwarded-*` are believed and extended: IP addresses and CIDR blocks. Default none: they are replaced. */
  readonly trust: readonly string[]
  /** Pseudonym in `Via`. Default `heddle`. */
  readonly via: string
  /** Write `Forwarded` (RFC 7239), `X-Forwarded-For/-Host/-Proto`, or both. Default `x-forwarded`. */
  readonly forwarded: 'x-forwarded' | 'forwarded' | 'both' | 'none'
  /** Upgrade protocols tunnelled. Default `[websocket]`. */
  readonly upgrades: readonly string[]
  /**
   * What clients may speak: chosen by ALPN on TLS, by the connection's first octets on plain text. `h3`, which needs
   * TLS, has the UDP port of the same number. Default `[h1, h2]`.
   */
  readonly protocols: readonly HttpVersion[]
  /**
   * With `h3`: whether responses over the other versions tell of it by `Alt-Svc` (RFC 7838). A number: of that port,
   * where clients see another one than `port`. Default true.
   */
  readonly altSvc: boolean | number
  readonly limits: ListenerLimits
  readonly http2: ListenerHttp2Config
  readonly http3: ListenerHttp3Config
}

/** An HTTP version as Heddle names it; `h2` on plain text is h2c with prior knowledge. */
export type HttpVersion = 'h1' | 'h2' | 'h3'

/** What clients may cost. Infinity, `none` in YAML: no limit, where that is allowed. */
export interface ListenerLimits {
  /** Open connections, of all workers together; more are closed unread. Default 10,000. */
  readonly maxConnections: number
  /** Bytes of content of one request; more are answered with 413. Default Infinity. */
  readonly maxContentLength: number
  /** From a request's first byte to its complete head, ms. Never Infinity. Default 10 s. */
  readonly headTimeout: number
  /** Without a byte of request content while some is missing, ms. Default 30 s. */
  readonly bodyTimeout: number
  /** Without a request on an open connection, ms. Never Infinity. Default 60 s. */
  readonly idleTimeout: number
  /** While the client takes no byte of a response that waits for it, ms. Default 60 s. */
  readonly sendTimeout: number
}

/** HTTP/2 connections, of clients or to upstreams. Sizes in bytes, times in ms. */
export interface Http2Config {
  /**
   * What the peer may send on one stream before the other side has taken it. Default: a client 1 MiB; an upstream 128 KiB,
   * since what a hundred streams bring may all wait for one client.
   */
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

/** HTTP/3 connections of clients. Sizes in bytes. */
export interface ListenerHttp3Config {
  /** Requests a client may have open at once on one connection: QUIC lets it begin no more. Default 100. */
  readonly maxConcurrentStreams: number
  /** What a client may send on one stream before the other side has taken it. Default 1 MiB. */
  readonly streamWindow: number
  /** The same for a whole connection. Default 4 MiB. */
  readonly connectionWindow: number
  /** Both windows grow up to this where the path needs it. Default 16 MiB. */
  readonly maxWindow: number
}

export interface ClusterHttp2Config extends Http2Config {
  /** A connection on which requests got no answer so many times in a row is left for another one. Default 8; Infinity: it is kept. */
  readonly maxFailuresInRow: number
  /** Unused HTTP/2 connections are closed after this. Default 60 s. */
  readonly idleTimeout: number
}

/** HTTP/3 connections to upstreams. */
export interface ClusterHttp3Config {
  /** What an upstream may send on one stream before its client has taken it, bytes. Default 128 KiB. */
  readonly streamWindow: number
  /** Unused connections are closed after this, ms; sooner if the upstream wants that. Default 60 s. */
  readonly idleTimeout: number
  /** A connection on which requests got no answer so many times in a row is left for another one. Default 8; Infinity: it is kept. */
  readonly maxFailuresInRow: number
}

/** How a listener speaks TLS. */
export interface TlsConfig {
  /** PEM files. The first certificate is the default, the others are chosen by server name. */
  readonly certificates: readonly { readonly cert: string; readonly key: string; readonly names: readonly string[] }[]
  /** PEM file: clients must show a certificate that it signed. Default undefined: they are not asked for one. */
  readonly clientCa: string | undefined
}

/** First match in the file's order wins. An absent condition matches everything. */
export interface RouteConfig {
  /** In metrics and access log. */
  readonly name: string
  /** Default: everything. */
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
  /** In place of the listener's and the cluster's, for HTTP/2 and HTTP/3 streams of this route. */
  readonly streamWindow: number | undefined
  /** A tunnel in which no byte moves for so long is closed, ms. Default 1 h; Infinity: no limit. */
  readonly tunnelIdleTimeout: number
  /** Tunnels by extended CONNECT (WebSocket over HTTP/2, RFC 8441, and HTTP/3, RFC 9220) may take this route. Default false. */
  readonly extendedConnect: boolean
  readonly retry: RetryConfig
  /** Replaces the authority sent upstream: `host` or `host:port`. Default undefined: the client's is kept. */
  readonly authority: string | undefined
}

/** The conditions of a route; all must hold. */
export interface MatchConfig {
  /** Exact host, or `*.example.org`; without port; lower case. Default `[]`: any. */
  readonly hosts: readonly string[]
  /** Matches whole segments: `/api` matches `/api` and `/api/x`, not `/apix`. Default `/`. */
  readonly pathPrefix: string
  /** gRPC calls of this service, `package.Service`; in place of `pathPrefix`. */
  readonly grpcService: string | undefined
  /** Exact, in upper case. Default `[]`: any. */
  readonly methods: readonly string[]
  /** Field name (lower case) → exact value, or `undefined` for "is present". Default `[]`. */
  readonly headers: readonly { readonly name: string; readonly value: string | undefined }[]
}

/** When a request is tried again. */
export interface RetryConfig {
  /** Further attempts for requests that were certainly not processed, 0 to 10. Default 2. */
  readonly attempts: number
}

/** Endpoints that answer the same requests, and how they are spoken to. */
export interface ClusterConfig {
  /** In metrics and access log, and in routes. */
  readonly name: string
  /** At least one, none twice. */
  readonly endpoints: readonly EndpointConfig[]
  /** Default undefined: plain text. */
  readonly tls: ClusterTlsConfig | undefined
  /** Default `auto`. */
  readonly protocol: UpstreamProtocol
  readonly http2: ClusterHttp2Config
  readonly http3: ClusterHttp3Config
  /** From name resolution to a connection that can be used, TLS included, ms. Never Infinity. Default 5 s. */
  readonly connectTimeout: number
  /** Request sent → response head, ms; also how long one waits for a connection. Default 60 s; Infinity: no limit. */
  readonly headTimeout: number
  /** No byte of response content, ms. Default 60 s; Infinity: no limit. */
  readonly bodyTimeout: number
  /** While the upstream takes no byte of a request that waits for it, ms. Default 60 s; Infinity: no limit. */
  readonly sendTimeout: number
  /** Unused HTTP/1.1 connections are closed after this, ms. Never Infinity. Default 4 s. */
  readonly idleTimeout: number
  /** In each worker, open tunnels not counted. Of HTTP/2 and HTTP/3, another connection is only made when every stream of the others is taken. Default 256. */
  readonly maxConnectionsPerEndpoint: number
  /** HTTP/1.1 connections for tunnels, in each worker; those over HTTP/2 and HTTP/3 are streams. Default 10,000. */
  readonly maxTunnelsPerEndpoint: number
  /** Requests that may wait for a connection or a stream of one endpoint, in each worker; more get a 503. At least 1: who has a connection made for it waits too. Default 1,024. */
  readonly maxWaiting: number
  /** Host names are resolved again this often, ms. Default 30 s. */
  readonly resolveInterval: number
  /** When an endpoint gets no more requests. */
  readonly ejection: EjectionConfig
}

/**
 * What is spoken to a cluster.
 *
 * - `auto` (default): on TLS what ALPN comes to, HTTP/2 preferred; on plain text HTTP/1.1.
 * - `h1`: HTTP/1.1.
 * - `h2`: HTTP/2 on TLS, and nothing else.
 * - `h2c`: HTTP/2 on plain text, with prior knowledge.
 * - `h3`: HTTP/3 at the UDP port of that number, and nothing else.
 */
export type UpstreamProtocol = 'auto' | 'h1' | 'h2' | 'h2c' | 'h3'

/** Where an endpoint listens; a host name with several machines behind it stands for an endpoint each. */
export interface EndpointConfig {
  /** An IP address, or a host name. */
  readonly host: string
  /** 1 to 65,535. */
  readonly port: number
}

/** How a cluster's endpoints are spoken to over TLS. */
export interface ClusterTlsConfig {
  /** PEM file of the authorities to trust instead of Node's own. Default undefined. */
  readonly ca: string | undefined
  /** PEM file of the certificate shown to endpoints that ask for one, with `key`. Default undefined. */
  readonly cert: string | undefined
  /** PEM file of the private key of `cert`. */
  readonly key: string | undefined
  /** The name their certificates must have, asked for by SNI. Default undefined: the endpoint's host. */
  readonly serverName: string | undefined
}

/** An endpoint that failed `consecutiveFailures` times in a row gets no requests for `baseTime`, doubled each time up to `maxTime`. */
export interface EjectionConfig {
  /** After so many it is failing, and ejected if `maxShare` allows. Default 5; 0: neither, ever. */
  readonly consecutiveFailures: number
  /** The first time, ms; at most `maxTime`. Default 1 s. */
  readonly baseTime: number
  /** The longest, ms; failures older than this are forgotten when it is asked who is failing. Default 30 s. */
  readonly maxTime: number
  /** At most this share of a cluster is out at once, 0 to 1; the rest is used whatever its state. Default 0.5. */
  readonly maxShare: number
}
