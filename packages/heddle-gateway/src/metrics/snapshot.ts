import { addHttp2, pastHttp2, type Http2Counts } from '../http2-counts.ts'
import type { ClusterStats } from '../upstream/index.ts'
import { mergeFamilies, type FamilySnapshot, type Labels, type SeriesSnapshot } from './family.ts'
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
      }),
    ),
    clusters: mergeBy(
      parts.flatMap((part) => part.clusters),
      (a, b) => ({
        ...a,
        active: a.active + b.active,
        waiting: a.waiting + b.waiting,
        connections: a.connections + b.connections,
        http2: addHttp2(a.http2, b.http2),
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
    })),
    clusters: clusters.map((cluster) => ({
      ...cluster,
      active: 0,
      waiting: 0,
      connections: 0,
      http2: pastHttp2(cluster.http2),
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

function mergeDurations(entries: readonly DurationSnapshot[]): DurationSnapshot[] {
  const merged = new Map<string, { entry: DurationSnapshot; durations: LogHistogram; latencies: LogHistogram }>()
  for (const entry of entries) {
    const key = [entry.listener, entry.route, entry.cluster, entry.endpoint].join(' ')
    let into = merged.get(key)
    if (into === undefined) {
      into = { entry, durations: new LogHistogram(), latencies: new LogHistogram() }
      merged.set(key, into)
    }
    into.durations.merge(entry.durations)
    into.latencies.merge(entry.latencies)
  }
  return [...merged.values()].map(({ entry, durations, latencies }) => ({
    ...entry,
    durations: durations.snapshot(),
    latencies: latencies.snapshot(),
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

/** All families of a snapshot: what requests counted, and the state of things at this moment. */
export function familiesOf(snapshot: Snapshot): FamilySnapshot[] {
  const { listeners, clusters, processes, accessLog } = snapshot
  const perListener = (read: (listener: ListenerSnapshot) => number): SeriesSnapshot[] =>
    listeners.map((listener) => series([['heddle_listener', listener.name]], read(listener)))
  const perCluster = (read: (cluster: ClusterStats) => number): SeriesSnapshot[] =>
    clusters.map((cluster) => series([['heddle_cluster', cluster.name]], read(cluster)))
  const perEndpoint = (read: (endpoint: ClusterStats['endpoints'][number]) => number): SeriesSnapshot[] =>
    clusters.flatMap((cluster) =>
      cluster.endpoints.map((endpoint) => {
        const labels: Labels = [
          ['heddle_cluster', cluster.name],
          ['heddle_endpoint', endpoint.name],
        ]
        return series(labels, read(endpoint))
      }),
    )
  const resets = (label: string, parts: readonly { readonly name: string; readonly http2: Http2Counts }[]): SeriesSnapshot[] =>
    parts.flatMap(({ name, http2 }) =>
      (['sent', 'received'] as const).flatMap((direction) =>
        Object.entries(direction === 'sent' ? http2.resetsSent : http2.resetsReceived).map(([code, count]) => {
          const labels: Labels = [
            [label, name],
            ['heddle_direction', direction],
            ['heddle_http2_code', code],
          ]
          return series(labels, count)
        }),
      ),
    )
  const perProcess = (read: (entry: ProcessSnapshot) => number): SeriesSnapshot[] =>
    processes.map((entry) => series([['process_pid', String(entry.pid)]], read(entry)))
  const total = (value: number): SeriesSnapshot[] => [series([], value)]
  return [
    ...snapshot.traffic.families,
    family(
      'gauge',
      'heddle_server_open_connections',
      'Open connections from clients.',
      perListener((listener) => listener.connections),
    ),
    family(
      'counter',
      'heddle_server_connections_total',
      'Connections accepted from clients.',
      perListener((listener) => listener.accepted),
    ),
    family(
      'counter',
      'heddle_server_refused_connections_total',
      'Connections turned away because there were too many.',
      perListener((listener) => listener.refused),
    ),
    family(
      'counter',
      'heddle_server_failed_handshakes_total',
      'TLS handshakes that failed, were broken off or took too long.',
      perListener((listener) => listener.handshakesFailed),
    ),
    family(
      'gauge',
      'heddle_server_open_http2_connections',
      'Open connections from clients that speak HTTP/2.',
      perListener(({ http2 }) => http2.connections),
    ),
    family(
      'gauge',
      'heddle_server_open_streams',
      'Open HTTP/2 streams of clients.',
      perListener(({ http2 }) => http2.streams),
    ),
    family(
      'gauge',
      'heddle_server_waiting_requests',
      'Requests of clients that wait for an upstream connection or stream.',
      perListener((listener) => listener.waiting),
    ),
    family(
      'counter',
      'heddle_server_http2_frames_total',
      'HTTP/2 frames sent to clients.',
      perListener(({ http2 }) => http2.frames),
    ),
    family(
      'counter',
      'heddle_server_http2_writes_total',
      'Writes to sockets of clients that speak HTTP/2.',
      perListener(({ http2 }) => http2.writes),
    ),
    family(
      'counter',
      'heddle_server_http2_resets_total',
      'HTTP/2 streams of clients that were reset, by side and code.',
      resets('heddle_listener', listeners),
    ),
    family(
      'gauge',
      'http_client_active_requests',
      'Requests to a cluster under way or waiting.',
      perCluster((cluster) => cluster.active),
    ),
    family(
      'gauge',
      'http_client_open_connections',
      'Open connections to an endpoint.',
      perEndpoint((endpoint) => endpoint.connections),
    ),
    family(
      'gauge',
      'heddle_cluster_waiting_requests',
      'Requests that wait for a connection to a cluster.',
      perCluster((cluster) => cluster.waiting),
    ),
    family(
      'gauge',
      'heddle_cluster_open_http2_connections',
      'Open connections to a cluster that speak HTTP/2.',
      perCluster(({ http2 }) => http2.connections),
    ),
    family(
      'gauge',
      'heddle_endpoint_open_streams',
      'Open HTTP/2 streams to an endpoint.',
      perEndpoint((endpoint) => endpoint.streams),
    ),
    family(
      'counter',
      'heddle_cluster_http2_frames_total',
      'HTTP/2 frames sent to a cluster.',
      perCluster(({ http2 }) => http2.frames),
    ),
    family(
      'counter',
      'heddle_cluster_http2_writes_total',
      'Writes to sockets of a cluster that speaks HTTP/2.',
      perCluster(({ http2 }) => http2.writes),
    ),
    family(
      'counter',
      'heddle_cluster_http2_resets_total',
      'HTTP/2 streams to a cluster that were reset, by side and code.',
      resets('heddle_cluster', clusters),
    ),
    family(
      'gauge',
      'heddle_endpoint_active_requests',
      'Requests under way at an endpoint.',
      perEndpoint((endpoint) => endpoint.active),
    ),
    family(
      'counter',
      'heddle_endpoint_requests_total',
      'Attempts made at an endpoint.',
      perEndpoint((endpoint) => endpoint.requests),
    ),
    family(
      'counter',
      'heddle_endpoint_failures_total',
      'Attempts that failed at an endpoint.',
      perEndpoint((endpoint) => endpoint.failures),
    ),
    family(
      'counter',
      'heddle_endpoint_ejections_total',
      'Times an endpoint was taken out.',
      perEndpoint((endpoint) => endpoint.ejections),
    ),
    family(
      'gauge',
      'heddle_endpoint_ejected',
      '1 while an endpoint gets no requests, in every worker.',
      perEndpoint((endpoint) => (endpoint.ejected ? 1 : 0)),
    ),
    family(
      'gauge',
      'heddle_endpoint_failing',
      '1 while an endpoint failed so often in a row that it may be ejected, whether it is or not.',
      perEndpoint((endpoint) => (endpoint.failing ? 1 : 0)),
    ),
    family('counter', 'heddle_access_log_lines_total', 'Lines given to the access log.', total(accessLog.lines)),
    family('counter', 'heddle_access_log_dropped_lines_total', 'Lines the access log could not write.', total(accessLog.dropped)),
    family('counter', 'heddle_access_log_failures_total', 'Failed writes and openings of the access log.', total(accessLog.failures)),
    family(
      'counter',
      'process_cpu_time_seconds_total',
      'CPU time, user and system.',
      perProcess((entry) => entry.cpu),
    ),
    family(
      'gauge',
      'process_memory_usage_bytes',
      'Resident memory.',
      perProcess((entry) => entry.memory),
    ),
    family(
      'gauge',
      'process_start_time_seconds',
      'When the process started, seconds since 1970.',
      perProcess((entry) => entry.startedAt / 1_000),
    ),
  ]
}

function family(kind: 'counter' | 'gauge', name: string, help: string, values: readonly SeriesSnapshot[]): FamilySnapshot {
  return { name, help, kind, bounds: [], series: values }
}

function series(labels: Labels, value: number): SeriesSnapshot {
  return { labels, value, counts: [] }
}
