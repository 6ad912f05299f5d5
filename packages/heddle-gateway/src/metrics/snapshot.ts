import { addHttp2, pastHttp2, type Http2Counts } from '../http2-counts.ts'
import { addDatagrams, addHttp3, pastHttp3, type DatagramCounts } from '../http3-counts.ts'
import type { ClusterStats } from '../upstream/index.ts'
import { mergeFamilies } from './family.ts'
import { LogHistogram } from './histogram.ts'
import type { DurationSnapshot, TrafficSnapshot } from './traffic.ts'

/** What one listener's server says about itself. */
export interface ListenerSnapshot {
  /** As in the configuration. */
  readonly name: string
  /** `http://127.0.0.1:8080`. */
  readonly url: string
  /** Open connections. */
  readonly connections: number
  /** Connections accepted, ever. */
  readonly accepted: number
  /** Connections turned away, ever: over `maxConnections`, or too many TLS handshakes at once. */
  readonly refused: number
  /** TLS handshakes that failed, were broken off or took too long, ever. */
  readonly handshakesFailed: number
  /** Exchanges that are not over. */
  readonly exchanges: number
  /** Connections with a time limit armed. */
  readonly deadlines: number
  /** Requests that wait for an upstream connection, or a stream on one. */
  readonly waiting: number
  /** Of the connections, those that speak HTTP/2. */
  readonly http2: Http2Counts
  /** … and those that speak HTTP/3. */
  readonly http3: DatagramCounts
}

/** The access log's own counters. */
export interface AccessLogStats {
  /** Lines given to it, ever. */
  readonly lines: number
  /** Lines not written because the file took none or too few. */
  readonly dropped: number
  /** Failed writes and openings. */
  readonly failures: number
}

/** Everything one process knows about its work; the only thing workers tell the primary. */
export interface Snapshot {
  /** The processes that serve; one per worker. */
  readonly processes: readonly ProcessSnapshot[]
  readonly traffic: TrafficSnapshot
  readonly listeners: readonly ListenerSnapshot[]
  readonly clusters: readonly ClusterStats[]
  readonly accessLog: AccessLogStats
}

/** What one process that serves needs. */
export interface ProcessSnapshot {
  /** Process id. */
  readonly pid: number
  /** When it started, ms since 1970. */
  readonly startedAt: number
  /** Seconds of CPU since it started, user and system. */
  readonly cpu: number
  /** Resident memory, bytes. */
  readonly memory: number
}

/** This process, now. */
export function processSnapshot(): ProcessSnapshot {
  const { user, system } = process.cpuUsage()
  return {
    pid: process.pid,
    startedAt: Math.round(Date.now() - process.uptime() * 1_000),
    cpu: (user + system) / 1e6,
    memory: process.memoryUsage.rss(),
  }
}

/**
 * The work of several processes as one. An endpoint is out when every process took it out. It is
 * failing when the attempts of all of them failed in a row so often as one process's must, and in
 * none of them the last one was answered.
 */
export function mergeSnapshots(parts: readonly Snapshot[]): Snapshot {
  return {
    processes: parts.flatMap((part) => part.processes),
    traffic: {
      families: mergeFamilies(parts.map((part) => part.traffic.families)),
      served: parts.flatMap((part) => part.traffic.served),
      upstream: parts.flatMap((part) => part.traffic.upstream),
    },
    listeners: mergeBy(
      parts.flatMap((part) => part.listeners),
      (a, b) => ({
        ...a,
        connections: a.connections + b.connections,
        accepted: a.accepted + b.accepted,
        refused: a.refused + b.refused,
        handshakesFailed: a.handshakesFailed + b.handshakesFailed,
        exchanges: a.exchanges + b.exchanges,
        deadlines: a.deadlines + b.deadlines,
        waiting: a.waiting + b.waiting,
        http2: addHttp2(a.http2, b.http2),
        http3: addDatagrams(a.http3, b.http3),
      }),
    ),
    clusters: mergeBy(
      parts.flatMap((part) => part.clusters),
      (a, b) => ({
        ...a,
        active: a.active + b.active,
        waiting: a.waiting + b.waiting,
        connections: a.connections + b.connections,
        tunnels: a.tunnels + b.tunnels,
        http2: addHttp2(a.http2, b.http2),
        http3: addHttp3(a.http3, b.http3),
        endpoints: mergeBy([...a.endpoints, ...b.endpoints], (x, y) => ({
          ...x,
          ...mergeEvidence(x, y, a.consecutiveFailures),
          active: x.active + y.active,
          requests: x.requests + y.requests,
          failures: x.failures + y.failures,
          ejections: x.ejections + y.ejections,
          ejected: x.ejected && y.ejected,
          waiting: x.waiting + y.waiting,
          connections: x.connections + y.connections,
          streams: x.streams + y.streams,
        })),
      }),
    ),
    accessLog: parts.reduce<AccessLogStats>(
      (sum, { accessLog }) => ({
        lines: sum.lines + accessLog.lines,
        dropped: sum.dropped + accessLog.dropped,
        failures: sum.failures + accessLog.failures,
      }),
      { lines: 0, dropped: 0, failures: 0 },
    ),
  }
}

type Evidence = Pick<ClusterStats['endpoints'][number], 'failing' | 'failuresInRow' | 'answering'>

function mergeEvidence(x: Evidence, y: Evidence, consecutiveFailures: number): Evidence {
  const failuresInRow = x.failuresInRow + y.failuresInRow
  const answering = x.answering || y.answering
  return { failing: !answering && consecutiveFailures > 0 && failuresInRow >= consecutiveFailures, failuresInRow, answering }
}

/** Of a process that ended: it bears no witness to how an endpoint is. */
const noEvidence: Evidence = { failing: false, failuresInRow: 0, answering: false }

/**
 * What processes that ended leave behind: their counts go on counting, their present does not. As
 * small for a thousand of them as for one.
 */
export function pastOf(parts: readonly Snapshot[]): Snapshot {
  const { traffic, listeners, clusters, accessLog } = mergeSnapshots(parts)
  return {
    processes: [],
    traffic: {
      families: traffic.families.filter((entry) => entry.kind !== 'gauge'),
      served: mergeDurations(traffic.served),
      upstream: mergeDurations(traffic.upstream),
    },
    listeners: listeners.map((listener) => ({
      ...listener,
      connections: 0,
      exchanges: 0,
      deadlines: 0,
      waiting: 0,
      http2: pastHttp2(listener.http2),
      http3: pastHttp3(listener.http3),
    })),
    clusters: clusters.map((cluster) => ({
      ...cluster,
      active: 0,
      waiting: 0,
      connections: 0,
      tunnels: 0,
      http2: pastHttp2(cluster.http2),
      http3: pastHttp3(cluster.http3),
      // `ejected` stays out of the vote on whether every process took it out.
      endpoints: cluster.endpoints.map((endpoint) => ({
        ...endpoint,
        ...noEvidence,
        active: 0,
        waiting: 0,
        connections: 0,
        streams: 0,
        ejected: true,
      })),
    })),
    accessLog,
  }
}

/** Those that serve and those that ended, as one. Endpoints that no living process knows have left their cluster. */
export function withPast(living: readonly Snapshot[], past: Snapshot | undefined): Snapshot {
  const now = mergeSnapshots(living)
  if (past === undefined || living.length === 0) return past ?? now
  const known = (cluster: string, endpoint: string): boolean =>
    now.clusters.some(({ name, endpoints }) => name === cluster && endpoints.some((entry) => entry.name === endpoint))
  const clusters = past.clusters.map((cluster) => ({
    ...cluster,
    endpoints: cluster.endpoints.filter((endpoint) => known(cluster.name, endpoint.name)),
  }))
  return mergeSnapshots([now, { ...past, clusters }])
}

interface Merged {
  readonly entry: DurationSnapshot
  readonly durations: LogHistogram
  readonly latencies: LogHistogram
  tunnels: LogHistogram | undefined
}

function mergeDurations(entries: readonly DurationSnapshot[]): DurationSnapshot[] {
  const merged = new Map<string, Merged>()
  for (const entry of entries) {
    const key = [entry.listener, entry.route, entry.cluster, entry.endpoint].join(' ')
    let into = merged.get(key)
    if (into === undefined) {
      into = { entry, durations: new LogHistogram(), latencies: new LogHistogram(), tunnels: undefined }
      merged.set(key, into)
    }
    into.durations.merge(entry.durations)
    into.latencies.merge(entry.latencies)
    if (entry.tunnels !== undefined) {
      into.tunnels ??= new LogHistogram()
      into.tunnels.merge(entry.tunnels)
    }
  }
  return [...merged.values()].map(({ entry, durations, latencies, tunnels }) => ({
    ...entry,
    durations: durations.snapshot(),
    latencies: latencies.snapshot(),
    tunnels: tunnels?.snapshot(),
  }))
}

function mergeBy<Named extends { readonly name: string }>(items: readonly Named[], add: (a: Named, b: Named) => Named): Named[] {
  const merged = new Map<string, Named>()
  for (const item of items) {
    const other = merged.get(item.name)
    merged.set(item.name, other === undefined ? item : add(other, item))
  }
  return [...merged.values()]
}
