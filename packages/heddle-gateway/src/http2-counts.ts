/** What is counted of the HTTP/2 connections of a listener or a cluster. */
export interface Http2Counts {
  /** Open connections. */
  readonly connections: number
  /** Open streams. */
  readonly streams: number
  /** Frames sent, ever … */
  readonly frames: number
  /** … and the writes to sockets that took them. */
  readonly writes: number
  /** Streams reset by the gateway, by the name of the code (`{ CANCEL: 2 }`), ever. */
  readonly resetsSent: Readonly<Record<string, number>>
  /** Streams reset by the other side, likewise. */
  readonly resetsReceived: Readonly<Record<string, number>>
}

export const noHttp2: Http2Counts = { connections: 0, streams: 0, frames: 0, writes: 0, resetsSent: {}, resetsReceived: {} }

/** What two processes counted. */
export function addHttp2(a: Http2Counts, b: Http2Counts): Http2Counts {
  return {
    connections: a.connections + b.connections,
    streams: a.streams + b.streams,
    frames: a.frames + b.frames,
    writes: a.writes + b.writes,
    resetsSent: addCounts(a.resetsSent, b.resetsSent),
    resetsReceived: addCounts(a.resetsReceived, b.resetsReceived),
  }
}

/** What stays of a process that ended: its counts, not its present. */
export function pastHttp2(counts: Http2Counts): Http2Counts {
  return { ...counts, connections: 0, streams: 0 }
}

/** Sums of counts by name. */
export function addCounts(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): Record<string, number> {
  const sum = { ...a }
  for (const [name, count] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + count
  return sum
}
