import type { Http1Limits } from './limits.ts'

/** What the owner of an HTTP/1.1 connection may choose; everything has a default. */
export interface Http1Options {
  /** Limits that differ from `serverLimits` or `clientLimits`. */
  readonly limits?: Partial<Http1Limits>
  /**
   * Server: protocols (lower case, `websocket`) whose Upgrade becomes a CONNECT head with that
   * `protocol`. Default none: Upgrade is ignored, as RFC 9110 §7.8 allows.
   */
  readonly upgrades?: readonly string[]
  /** Server: where the `date` field comes from when the handler gave none. Default: no such field is added. */
  readonly date?: { httpDate(): string } | undefined
  /**
   * `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key` (RFC 6455 §4.2.2). A server without it offers no
   * WebSocket upgrade; a client checks the server's answer with it.
   */
  readonly websocketAccept?: (key: string) => string
  /**
   * Server: a client that closed its sending direction is still answered. Default false: its FIN
   * counts as having gone away, because nothing else tells when a client that waits has gone.
   */
  readonly halfOpen?: boolean
  /** Client: a fresh `Sec-WebSocket-Key` (RFC 6455 §4.1). Without it and `websocketAccept` a WebSocket CONNECT is a UsageError. */
  readonly websocketKey?: () => string
  /** Client: request targets in absolute-form, as an HTTP proxy wants them (RFC 9112 §3.2.2). Default false. */
  readonly absoluteForm?: boolean
  /**
   * Client: value of `proxy-authorization` written with every request, unless the head has that
   * field itself: credentials for the next hop only (RFC 9110 §11.7.2). Default: none is written.
   */
  readonly proxyAuthorization?: string | undefined
}
