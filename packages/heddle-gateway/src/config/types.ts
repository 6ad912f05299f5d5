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
  readonly limits: ListenerLimits
}

export interface ListenerLimits {
  readonly maxConnections: number
  readonly maxContentLength: number
  readonly headTimeout: number
  readonly bodyTimeout: number
  readonly idleTimeout: number
  readonly sendTimeout: number
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
  readonly retry: RetryConfig
  /** Replaces the authority sent upstream; default: the client's is kept. */
  readonly authority: string | undefined
}

export interface MatchConfig {
  /** Exact host, or `*.example.org`; without port; lower case. */
  readonly hosts: readonly string[]
  /** Matches whole segments: `/api` matches `/api` and `/api/x`, not `/apix`. */
  readonly pathPrefix: string
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
  readonly connectTimeout: number
  /** Request sent → response head. */
  readonly headTimeout: number
  /** No byte of response content. */
  readonly bodyTimeout: number
  /** Unused upstream connections are closed after this. */
  readonly idleTimeout: number
  readonly maxConnectionsPerEndpoint: number
  /** Requests that may wait for a connection; more get a 503. */
  readonly maxWaiting: number
  /** Host names are resolved again this often, ms. Default 30 s. */
  readonly resolveInterval: number
  readonly ejection: EjectionConfig
}

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
