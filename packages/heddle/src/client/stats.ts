/** How many, now and ever, for one origin or for the whole client. */
export interface PoolCounts {
  /** Connections now, in any of the three states below. */
  readonly connections: number
  /** Connections that wait for a request. */
  readonly idle: number
  /** Connections with at least one exchange. */
  readonly active: number
  /** Connections without an exchange that cannot take one yet: unwanted content is being read away, or they are closing. */
  readonly draining: number
  /** Connections being made. */
  readonly dialling: number
  /** Requests that wait for a connection. */
  readonly waiting: number
  /** Requests begun, ever. */
  readonly requests: number
  /** Connections made, ever. */
  readonly dialled: number
  /** Requests that went to a connection which had served one before, ever. */
  readonly reused: number
  /** Responses whose unwanted rest was read away so that the connection could be kept, ever, and its bytes. */
  readonly drained: number
  readonly drainedBytes: number
  /** Responses whose unwanted rest was too much, so that the connection was dropped, ever, and the bytes read until then. */
  readonly abandoned: number
  readonly abandonedBytes: number
  /** Requests sent again by the client, ever. */
  readonly retries: number
  /** Requests and dials that failed, by error code, ever. */
  readonly errors: Readonly<Record<string, number>>
}

export interface OriginStats extends PoolCounts {
  /** `https://example.org`, with the port where it is not the scheme's. */
  readonly origin: string
}

export interface ClientStats extends PoolCounts {
  /** Alarms armed by the pool now; connections keep theirs beside. */
  readonly timers: number
  /** Origins known now. The totals count forgotten ones too. */
  readonly origins: readonly OriginStats[]
}
