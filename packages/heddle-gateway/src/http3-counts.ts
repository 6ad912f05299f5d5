/** What is counted of the HTTP/3 connections of a listener or a cluster. */
export interface Http3Counts {
  /** Open connections. */
  readonly connections: number
  /** Open requests: streams that are not over. */
  readonly streams: number
}

/** The same of a listener, with what leaves its UDP port. */
export interface DatagramCounts extends Http3Counts {
  /** Datagrams sent, ever … */
  readonly datagrams: number
  /** … and the calls of the system that took them. */
  readonly writes: number
}

export const noHttp3: Http3Counts = { connections: 0, streams: 0 }

/** What two processes counted. */
export function addHttp3(a: Http3Counts, b: Http3Counts): Http3Counts {
  return { connections: a.connections + b.connections, streams: a.streams + b.streams }
}

/** As {@link addHttp3}, for listeners. */
export function addDatagrams(a: DatagramCounts, b: DatagramCounts): DatagramCounts {
  return { ...addHttp3(a, b), datagrams: a.datagrams + b.datagrams, writes: a.writes + b.writes }
}

/** What stays of a process that ended: its counts, not its present. */
export function pastDatagrams(counts: DatagramCounts): DatagramCounts {
  return { ...counts, ...noHttp3 }
}
