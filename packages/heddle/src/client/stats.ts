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
  /** Responses whose unwanted rest was read away so that the connection could be kept, ever … */
  readonly drained: number
  /** … and the bytes of those rests. */
  readonly drainedBytes: number
  /** Responses whose unwanted rest was too much or came too late, so that the connection was dropped, ever … */
  readonly abandoned: number
  /** … and the bytes read away until then. */
  readonly abandonedBytes: number
  /** Requests sent again by the client, ever. */
  readonly retries: number
  /** Requests and dials that failed, by error code, ever. */
  readonly errors: Readonly<Record<string, number>>
}

/** One origin's counts. */
export interface OriginStats extends PoolCounts {
  /** `https://example.org`, with the port where it is not the scheme's. */
  readonly origin: string
}

/** The counts of a client: the sums over its origins, those it has forgotten included. */
export interface ClientStats extends PoolCounts {
  /** Alarms the pool has armed now; each connection has one of its own beside. */
  readonly timers: number
  /** Origins known now. */
  readonly origins: readonly OriginStats[]
}

/** What an origin counts for ever. */
export class Counters {
  requests = 0
  dialled = 0
  reused = 0
  drained = 0
  drainedBytes = 0
  abandoned = 0
  abandonedBytes = 0
  retries = 0
  readonly errors: Map<string, number> = new Map()

  countError(code: string, times = 1): void {
    this.errors.set(code, (this.errors.get(code) ?? 0) + times)
  }

  countDrain(byteCount: number, completed: boolean): void {
    if (completed) {
      this.drained++
      this.drainedBytes += byteCount
    } else {
      this.abandoned++
      this.abandonedBytes += byteCount
    }
  }

  reset(): void {
    this.requests = this.dialled = this.reused = this.retries = 0
    this.drained = this.drainedBytes = this.abandoned = this.abandonedBytes = 0
    this.errors.clear()
  }

  /** Adds what `other` counted. */
  add(other: Counters): void {
    this.requests += other.requests
    this.dialled += other.dialled
    this.reused += other.reused
    this.drained += other.drained
    this.drainedBytes += other.drainedBytes
    this.abandoned += other.abandoned
    this.abandonedBytes += other.abandonedBytes
    this.retries += other.retries
    for (const [code, times] of other.errors) this.countError(code, times)
  }
}

/** The counts of the present. */
export interface Census {
  readonly connections: number
  readonly idle: number
  readonly active: number
  readonly dialling: number
  readonly waiting: number
}

/** One view of `census` and `counters`. */
export function poolCounts(census: Census, counters: Counters): PoolCounts {
  return {
    connections: census.connections,
    idle: census.idle,
    active: census.active,
    draining: census.connections - census.idle - census.active,
    dialling: census.dialling,
    waiting: census.waiting,
    requests: counters.requests,
    dialled: counters.dialled,
    reused: counters.reused,
    drained: counters.drained,
    drainedBytes: counters.drainedBytes,
    abandoned: counters.abandoned,
    abandonedBytes: counters.abandonedBytes,
    retries: counters.retries,
    errors: Object.fromEntries(counters.errors),
  }
}
