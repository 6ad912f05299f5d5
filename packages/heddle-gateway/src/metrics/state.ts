import type { ClusterStats } from '../upstream/index.ts'
import type { FamilySnapshot, Labels, SeriesSnapshot } from './family.ts'
import type { ListenerSnapshot, ProcessSnapshot, Snapshot } from './snapshot.ts'

/** What counts resets by code. */
interface Resettable {
  readonly name: string
  readonly http2: ResetsByCode
  readonly http3: ResetsByCode
}

interface ResetsByCode {
  readonly resetsSent: Readonly<Record<string, number>>
  readonly resetsReceived: Readonly<Record<string, number>>
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
  const resets = (version: 'http2' | 'http3', label: string, parts: readonly Resettable[]): SeriesSnapshot[] =>
    parts.flatMap(({ name, [version]: counts }) =>
      (['sent', 'received'] as const).flatMap((direction) =>
        Object.entries(direction === 'sent' ? counts.resetsSent : counts.resetsReceived).map(([code, count]) => {
          const labels: Labels = [
            [label, name],
            ['heddle_direction', direction],
            [`heddle_${version}_code`, code],
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
      'heddle_server_open_http3_connections',
      'Open connections from clients that speak HTTP/3.',
      perListener(({ http3 }) => http3.connections),
    ),
    family(
      'gauge',
      'heddle_server_open_streams',
      'Open HTTP/2 and HTTP/3 streams of clients.',
      perListener(({ http2, http3 }) => http2.streams + http3.streams),
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
      'heddle_server_http3_datagrams_total',
      'Datagrams sent to clients that speak HTTP/3.',
      perListener(({ http3 }) => http3.datagrams),
    ),
    family(
      'counter',
      'heddle_server_http3_writes_total',
      'Calls of the system that sent them.',
      perListener(({ http3 }) => http3.writes),
    ),
    family(
      'counter',
      'heddle_server_http2_resets_total',
      'HTTP/2 streams of clients that were reset, by side and code.',
      resets('http2', 'heddle_listener', listeners),
    ),
    family(
      'counter',
      'heddle_server_http3_resets_total',
      'HTTP/3 streams of clients that were reset or not read to their end, by side and code.',
      resets('http3', 'heddle_listener', listeners),
    ),
    family(
      'gauge',
      'http_client_active_requests',
      'Requests to a cluster under way or waiting.',
      perCluster((cluster) => cluster.active),
    ),
    family(
      'gauge',
      'heddle_cluster_open_tunnels',
      'Open tunnels to a cluster.',
      perCluster((cluster) => cluster.tunnels),
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
      'heddle_cluster_open_http3_connections',
      'Open connections to a cluster that speak HTTP/3.',
      perCluster(({ http3 }) => http3.connections),
    ),
    family(
      'gauge',
      'heddle_endpoint_open_streams',
      'Open HTTP/2 and HTTP/3 streams to an endpoint.',
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
      resets('http2', 'heddle_cluster', clusters),
    ),
    family(
      'counter',
      'heddle_cluster_http3_resets_total',
      'HTTP/3 streams to a cluster that were reset or not read to their end, by side and code.',
      resets('http3', 'heddle_cluster', clusters),
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
