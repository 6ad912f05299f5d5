import type { Http1Limits } from '../h1/index.ts'
import type { Clock, dial, DialOptions } from '../io/index.ts'

/** Opens one connection: `dial` of `heddle/io`, or the seeded world's network. */
export type Dialler = typeof dial

/**
 * Which proxy requests go through. `'env'`: as the environment says (`HTTP_PROXY`, `HTTPS_PROXY`,
 * `ALL_PROXY`, `NO_PROXY`; see `docs/client.md`). A URL (`http://user:password@host:port`): that one,
 * for every origin. `'none'`: never one.
 */
export type ProxyOption = 'env' | 'none' | string | URL | { readonly url: string | URL; readonly noProxy?: string | undefined }

/** TLS of connections to `https` origins. PEM as string or bytes. */
export interface ClientTlsOptions {
  /** Authorities to trust instead of Node's. */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[] | undefined
  /** Our certificate chain, for servers that ask for one. */
  readonly cert?: string | Uint8Array | undefined
  /** The key of `cert`. */
  readonly key?: string | Uint8Array | undefined
  /** False accepts any certificate: for tests only. Default true. */
  readonly rejectUnauthorized?: boolean | undefined
  /** Name to ask for and to check the certificate against, instead of the origin's host. */
  readonly servername?: string | undefined
  /**
   * Where TLS secrets are written in the NSS key log format, so that Wireshark can decrypt: a
   * file's path (appended to), a function that gets each line, or false for nowhere.
   * Default: the file that the environment variable `SSLKEYLOGFILE` names, if any.
   */
  readonly keyLog?: string | ((line: string) => void) | false | undefined
}

/** How a client behaves. Every field has a default; times are in ms, sizes in bytes. */
export interface ClientOptions {
  /** Connections to one origin at once, in whatever state. Default 128. */
  readonly maxConnectionsPerOrigin?: number | undefined
  /** Connections of the whole client at once; idle ones of other origins make room. Default Infinity. */
  readonly maxConnections?: number | undefined
  /** Requests that may wait for a connection to one origin; more fail with QUEUE_FULL. Default 1,000,000. */
  readonly maxWaitingPerOrigin?: number | undefined
  /** From the start of name resolution to a usable connection, TLS and proxy included. Default 10 s. On excess: CONNECT_TIMEOUT. */
  readonly connectTimeout?: number | undefined
  /** How long a request may wait for a connection. Default Infinity. On excess: QUEUE_TIMEOUT. */
  readonly queueTimeout?: number | undefined
  /** From `exchange()` to the end of the response. Default Infinity. On excess: TOTAL_TIMEOUT. */
  readonly totalTimeout?: number | undefined
  /** Limits and time limits of each HTTP/1.1 connection (`responseTimeout`, `bodyTimeout`, `idleTimeout`, `drainSize`, …) that differ from `clientLimits`. */
  readonly limits?: Partial<Http1Limits> | undefined
  /** An origin without connections and requests is forgotten, with its counters folded into the total, after this. Default 60 s. */
  readonly originLifetime?: number | undefined
  /** TLS of `https` origins. */
  readonly tls?: ClientTlsOptions | undefined
  /** Resolves host names instead of `dns.lookup`. */
  readonly lookup?: DialOptions['lookup'] | undefined
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
}

/** What may differ for one exchange. */
export interface ExchangeOptions {
  /** Overrides the client's `queueTimeout`, ms. */
  readonly queueTimeout?: number | undefined
  /** Overrides the client's `totalTimeout`, ms. */
  readonly totalTimeout?: number | undefined
}
