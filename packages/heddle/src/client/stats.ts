import { everyProtocol, type ClientProtocol } from './protocols.ts'

/** How many of one version of HTTP. */
export interface ProtocolCounts {
  /** Connections now. */
  readonly connections: number
  /** Requests that run on them now. */
  readonly streams: number
  /** Connections made, ever. */
  readonly dialled: number
  /** Requests that were given to such connections, ever. */
  readonly requests: number
}

/** The same for HTTP/2. */
export interface Http2Counts extends ProtocolCounts {
  /** Frames sent, ever. */
  readonly frames: number
  /** Writes to sockets, ever. */
  readonly writes: number
  /** The one divided by the other; 0 while there was no write. The more, the fewer system calls. */
  readonly framesPerWrite: number
}

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
  /** Requests that run on a connection. */
  readonly streams: number
  /** Requests that wait for a connection. */
  readonly waiting: number
  /** Requests begun, ever. */
  readonly requests: number
  /** Connections made, ever. */
  readonly dialled: number
  /** Requests that went to a connection which had taken one before, ever. */
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
  /** Of these, what is spoken HTTP/1.1 … */
  readonly http1: ProtocolCounts
  /** … HTTP/2 … */
  readonly http2: Http2Counts
  /** … and HTTP/3. */
  readonly http3: ProtocolCounts
}

/** One origin's counts. */
export interface OriginStats extends PoolCounts {
  /**
   * `https://example.org`, with the port where it is not the scheme's. Tunnels that have HTTP/1.1
   * connections of their own stand under `https://example.org tunnels over HTTP/1.1`.
   */
  readonly origin: string
  /** What it spoke last; undefined while no connection has told. */
  readonly protocol: ClientProtocol | undefined
}

/** The counts of a client: the sums over its origins, those it has forgotten included. */
export interface ClientStats extends PoolCounts {
  /** Why no HTTP/3 is spoken although it is among the client's protocols; undefined: it is, or is not among them. */
  readonly http3Unavailable: string | undefined
  /** Alarms the pool has armed now; each connection has one of its own beside. */
  readonly timers: number
  /** HTTP/2 streams this client reset, by the name of RFC 9113 §7 (`{ CANCEL: 2 }`), ever. */
  readonly resetsSent: Readonly<Record<string, number>>
  /** Streams the servers reset, likewise. */
  readonly resetsReceived: Readonly<Record<string, number>>
  /** HTTP/3 streams this client reset or did not read to their end, by the name of RFC 9114 §8.1 (`{ H3_REQUEST_CANCELLED: 2 }`), ever. */
  readonly http3ResetsSent: Readonly<Record<string, number>>
  /** Streams the servers reset or did not read to their end, likewise. */
  readonly http3ResetsReceived: Readonly<Record<string, number>>
  /** Origins known now. */
  readonly origins: readonly OriginStats[]
}

/** What an origin counts for ever. */
export class Counters {
  requests = 0
  reused = 0
  drained = 0
  drainedBytes = 0
  abandoned = 0
  abandonedBytes = 0
  retries = 0
  /** Of HTTP/2 connections that are gone. */
  frames = 0
  writes = 0
  readonly dialled: Record<ClientProtocol, number> = { h1: 0, h2: 0, h3: 0 }
  readonly taken: Record<ClientProtocol, number> = { h1: 0, h2: 0, h3: 0 }
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
    this.requests = this.reused = this.retries = this.frames = this.writes = 0
    this.drained = this.drainedBytes = this.abandoned = this.abandonedBytes = 0
    for (const protocol of everyProtocol) this.dialled[protocol] = this.taken[protocol] = 0
    this.errors.clear()
  }

  /** Adds what `other` counted. */
  add(other: Counters): void {
    this.requests += other.requests
    this.reused += other.reused
    this.drained += other.drained
    this.drainedBytes += other.drainedBytes
    this.abandoned += other.abandoned
    this.abandonedBytes += other.abandonedBytes
    this.retries += other.retries
    this.frames += other.frames
    this.writes += other.writes
    for (const protocol of everyProtocol) {
      this.dialled[protocol] += other.dialled[protocol]
      this.taken[protocol] += other.taken[protocol]
    }
    for (const [code, times] of other.errors) this.countError(code, times)
  }
}

/** The counts of the present, and what the HTTP/2 connections of the present have sent. */
export class Census {
  idle = 0
  active = 0
  dialling = 0
  waiting = 0
  frames = 0
  writes = 0
  readonly connections: Record<ClientProtocol, number> = { h1: 0, h2: 0, h3: 0 }
  readonly streams: Record<ClientProtocol, number> = { h1: 0, h2: 0, h3: 0 }

  add(other: Census): void {
    this.idle += other.idle
    this.active += other.active
    this.dialling += other.dialling
    this.waiting += other.waiting
    this.frames += other.frames
    this.writes += other.writes
    for (const protocol of everyProtocol) {
      this.connections[protocol] += other.connections[protocol]
      this.streams[protocol] += other.streams[protocol]
    }
  }
}

/** One view of `census` and `counters`. */
export function poolCounts(census: Census, counters: Counters): PoolCounts {
  const { connections, streams } = census
  const total = sum(connections)
  const frames = census.frames + counters.frames
  const writes = census.writes + counters.writes
  return {
    connections: total,
    idle: census.idle,
    active: census.active,
    draining: total - census.idle - census.active,
    dialling: census.dialling,
    streams: sum(streams),
    waiting: census.waiting,
    requests: counters.requests,
    dialled: sum(counters.dialled),
    reused: counters.reused,
    drained: counters.drained,
    drainedBytes: counters.drainedBytes,
    abandoned: counters.abandoned,
    abandonedBytes: counters.abandonedBytes,
    retries: counters.retries,
    errors: Object.fromEntries(counters.errors),
    http1: protocolCounts('h1', census, counters),
    http2: { ...protocolCounts('h2', census, counters), frames, writes, framesPerWrite: writes === 0 ? 0 : frames / writes },
    http3: protocolCounts('h3', census, counters),
  }
}

function sum({ h1, h2, h3 }: Readonly<Record<ClientProtocol, number>>): number {
  return h1 + h2 + h3
}

function protocolCounts(protocol: ClientProtocol, census: Census, counters: Counters): ProtocolCounts {
  return {
    connections: census.connections[protocol],
    streams: census.streams[protocol],
    dialled: counters.dialled[protocol],
    requests: counters.taken[protocol],
  }
}
