import { addCounts } from './http2-counts.ts'

/** What is counted of the HTTP/3 connections of a listener or a cluster. */
export interface Http3Counts {
  /** Open connections. */
  readonly connections: number
  /** Open requests: streams that are not over. */
  readonly streams: number
  /** Streams the gateway reset or did not read to their end, by the name of the code (`{ H3_REQUEST_CANCELLED: 2 }`), ever. */
  readonly resetsSent: Readonly<Record<string, number>>
  /** The same of the other side. */
  readonly resetsReceived: Readonly<Record<string, number>>
}

/** The same of a listener, with what leaves its UDP port. */
export interface DatagramCounts extends Http3Counts {
  /** Datagrams sent, ever … */
  readonly datagrams: number
  /** … and the calls of the system that took them. */
  readonly writes: number
}

export const noHttp3: Http3Counts = { connections: 0, streams: 0, resetsSent: {}, resetsReceived: {} }

/** What two processes counted. */
export function addHttp3(a: Http3Counts, b: Http3Counts): Http3Counts {
  return {
    connections: a.connections + b.connections,
    streams: a.streams + b.streams,
    resetsSent: addCounts(a.resetsSent, b.resetsSent),
    resetsReceived: addCounts(a.resetsReceived, b.resetsReceived),
  }
}

/** As {@link addHttp3}, for listeners. */
export function addDatagrams(a: DatagramCounts, b: DatagramCounts): DatagramCounts {
  return { ...addHttp3(a, b), datagrams: a.datagrams + b.datagrams, writes: a.writes + b.writes }
}

/** What stays of a process that ended: its counts, not its present. */
export function pastHttp3<Counts extends Http3Counts>(counts: Counts): Counts {
  return { ...counts, connections: 0, streams: 0 }
}
