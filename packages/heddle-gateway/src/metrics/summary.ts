import type { Http2Counts } from '../http2-counts.ts'
import type { Http3Counts } from '../http3-counts.ts'
import type { EndpointStats } from '../upstream/index.ts'
import { grpcStatusNames } from 'heddle/http'
import { LogHistogram, type LogHistogramSnapshot } from './histogram.ts'
import type { AccessLogStats, ListenerSnapshot, ProcessSnapshot, Snapshot } from './snapshot.ts'
import type { DurationSnapshot } from './traffic.ts'

/** How long something took, ms. Percentiles are at most 0.8 % off, plus half a µs. All 0 when there were none. */
export interface DurationSummary {
  /** How many there were. */
  readonly count: number
  readonly min: number
  readonly max: number
  readonly avg: number
  /** So many per cent took no longer; `p999` is 99.9 %, `p9999` 99.99 %. */
  readonly p50: number
  readonly p75: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly p999: number
  readonly p9999: number
}

/** The document of `/metrics.json`; the admin page draws it. */
export interface Summary {
  /** ms since 1970. */
  readonly at: number
  /** Those that serve; one per worker. */
  readonly processes: readonly ProcessSnapshot[]
  /** All of them; `active`: under way. */
  readonly requests: RequestSummary & { readonly active: number }
  /** By listener; `active`: requests under way. */
  readonly listeners: readonly (ListenerSnapshot & RequestSummary & { readonly active: number; readonly http2: Http2Summary })[]
  /** By route, those that had a request; the name is empty where no route matched. */
  readonly routes: readonly (RequestSummary & { readonly name: string })[]
  readonly clusters: readonly ClusterSummary[]
  /** gRPC calls by listener, route and method; `_OTHER` for methods no upstream has acknowledged. */
  readonly grpc: readonly GrpcSummary[]
  /** All 0 without an access log. */
  readonly accessLog: AccessLogStats
}

/** One gRPC method, as one listener and route saw it. */
export interface GrpcSummary {
  readonly listener: string
  readonly route: string
  readonly service: string
  readonly method: string
  readonly calls: number
  /** Calls by the name of their status: `OK`, `UNAVAILABLE`, … */
  readonly statuses: Readonly<Record<string, number>>
  /** Mean duration, ms. */
  readonly avg: number
}

/** HTTP/2 connections of a listener or a cluster. */
export interface Http2Summary extends Http2Counts {
  /** How well frames are batched; 0 before the first write. */
  readonly framesPerWrite: number
}

/** Tunnels (WebSockets), which are counted apart: they last as long as their users like. */
export interface TunnelSummary {
  /** Open now. */
  readonly open: number
  /** Opened, ever … */
  readonly opened: number
  /** … and closed. */
  readonly closed: number
  /** Bytes from clients … */
  readonly received: number
  /** … and to clients, of those that are open too. */
  readonly sent: number
  /** How long those were open that are over. */
  readonly duration: DurationSummary
}

/** Requests that are over: of the whole gateway, of a listener, or of a route. */
export interface RequestSummary {
  /** Finished requests by what was answered: `2xx`, …; `none` when the client was gone first. */
  readonly statuses: Readonly<Record<string, number>>
  /** Reason → requests the gateway answered or cut itself. */
  readonly errors: Readonly<Record<string, number>>
  /** Bytes of content from clients. */
  readonly received: number
  /** Bytes of content to clients. */
  readonly sent: number
  /** From the request's head to the response's, of those that had one. */
  readonly latency: DurationSummary
  /** From the request's head to the end of the exchange, so as long as it streamed; of tunnels to their opening. */
  readonly duration: DurationSummary
  readonly tunnels: TunnelSummary
}

/** How a cluster is doing. */
export interface ClusterSummary {
  /** As in the configuration. */
  readonly name: string
  /** So many failures in a row make an endpoint a failing one; 0: none ever is. */
  readonly consecutiveFailures: number
  /** Attempts under way or waiting. */
  readonly active: number
  /** Requests waiting for a connection. */
  readonly waiting: number
  /** Upstream connections in any state. */
  readonly connections: number
  /** Open tunnels. */
  readonly tunnels: number
  readonly http2: Http2Summary
  readonly http3: Http3Counts
  readonly endpoints: readonly (EndpointStats & { readonly latency: DurationSummary; readonly duration: DurationSummary })[]
  /** From the beginning of the last attempt, the wait for a connection included, to the response's head. */
  readonly latency: DurationSummary
  /** … and to the end of the exchange. */
  readonly duration: DurationSummary
}

/** Sums a snapshot up for people and small programs. */
export function summarize(snapshot: Snapshot, at: number): Summary {
  const { served, upstream } = snapshot.traffic
  const routes = [...new Set(served.map(({ route }) => route))]
  return {
    at,
    processes: snapshot.processes,
    requests: { active: sumOf(snapshot, 'http_server_active_requests', {}), ...summarizeRequests(snapshot, {}, served) },
    listeners: snapshot.listeners.map((listener) => {
      const where = { heddle_listener: listener.name }
      return {
        ...listener,
        http2: summarizeHttp2(listener.http2),
        active: sumOf(snapshot, 'http_server_active_requests', where),
        ...summarizeRequests(
          snapshot,
          where,
          served.filter((entry) => entry.listener === listener.name),
        ),
      }
    }),
    routes: routes.map((name) => ({
      name,
      ...summarizeRequests(
        snapshot,
        { http_route: name },
        served.filter((entry) => entry.route === name),
      ),
    })),
    clusters: snapshot.clusters.map((cluster) => {
      const own = upstream.filter((entry) => entry.cluster === cluster.name)
      return {
        ...cluster,
        http2: summarizeHttp2(cluster.http2),
        endpoints: cluster.endpoints.map((endpoint) => ({
          ...endpoint,
          ...summarizeTimes(own.filter((entry) => entry.endpoint === endpoint.name)),
        })),
        ...summarizeTimes(own),
      }
    }),
    grpc: summarizeGrpc(snapshot),
    accessLog: snapshot.accessLog,
  }
}

type Where = Readonly<Record<string, string>>

function summarizeRequests(snapshot: Snapshot, where: Where, durations: readonly DurationSnapshot[]): RequestSummary {
  return {
    statuses: countBy(snapshot, 'http_server_request_duration_seconds', where, 'http_response_status_code', (status) =>
      status === '' ? 'none' : `${status.slice(0, 1)}xx`,
    ),
    errors: countBy(snapshot, 'heddle_errors_total', where, 'error_type', (reason) => reason),
    received: sumOf(snapshot, 'heddle_server_request_content_bytes_total', where),
    sent: sumOf(snapshot, 'heddle_server_response_content_bytes_total', where),
    ...summarizeTimes(durations),
    tunnels: {
      open: sumOf(snapshot, 'heddle_server_open_tunnels', where),
      opened: sumOf(snapshot, 'heddle_server_tunnels_opened_total', where),
      closed: sumOf(snapshot, 'heddle_server_tunnels_closed_total', where),
      received: sumOf(snapshot, 'heddle_server_tunnel_bytes_total', { ...where, heddle_direction: 'received' }),
      sent: sumOf(snapshot, 'heddle_server_tunnel_bytes_total', { ...where, heddle_direction: 'sent' }),
      duration: summarizeHistograms(
        durations.flatMap(({ tunnels }) => (tunnels === undefined ? [] : [tunnels])),
        1,
      ),
    },
  }
}

function summarizeHttp2(counts: Http2Counts): Http2Summary {
  return { ...counts, framesPerWrite: counts.writes === 0 ? 0 : Math.round((counts.frames / counts.writes) * 100) / 100 }
}

function summarizeGrpc(snapshot: Snapshot): GrpcSummary[] {
  const methods = new Map<string, CallCounts>()
  const family = snapshot.traffic.families.find(({ name }) => name === 'rpc_server_duration_seconds')
  for (const { labels, value, counts } of family?.series ?? []) {
    const label = (wanted: string): string => labels.find(([name]) => name === wanted)?.[1] ?? ''
    const [listener, route, service, method] = [label('heddle_listener'), label('http_route'), label('rpc_service'), label('rpc_method')]
    const key = [listener, route, service, method].join(' ')
    let entry = methods.get(key)
    if (entry === undefined) {
      entry = { listener, route, service, method, calls: 0, statuses: {}, seconds: 0 }
      methods.set(key, entry)
    }
    const calls = counts.reduce((sum, count) => sum + count, 0)
    const status = grpcStatusNames[Number(label('rpc_grpc_status_code'))] ?? 'UNKNOWN'
    entry.calls += calls
    entry.seconds += value
    entry.statuses[status] = (entry.statuses[status] ?? 0) + calls
  }
  return [...methods.values()].map(({ seconds, ...counts }) => ({ ...counts, avg: Math.round((seconds / counts.calls) * 1e6) / 1e3 }))
}

interface CallCounts {
  readonly listener: string
  readonly route: string
  readonly service: string
  readonly method: string
  calls: number
  readonly statuses: Record<string, number>
  seconds: number
}

function matching(snapshot: Snapshot, name: string, where: Where): { label: (name: string) => string; count: number }[] {
  const family = snapshot.traffic.families.find((candidate) => candidate.name === name)
  if (family === undefined) return []
  return family.series
    .map((series) => ({
      label: (wanted: string): string => series.labels.find(([label]) => label === wanted)?.[1] ?? '',
      count: family.kind === 'histogram' ? series.counts.reduce((sum, count) => sum + count, 0) : series.value,
    }))
    .filter(({ label }) => Object.entries(where).every(([wanted, value]) => label(wanted) === value))
}

function sumOf(snapshot: Snapshot, name: string, where: Where): number {
  return matching(snapshot, name, where).reduce((sum, { count }) => sum + count, 0)
}

function countBy(snapshot: Snapshot, name: string, where: Where, label: string, group: (value: string) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const entry of matching(snapshot, name, where)) {
    const key = group(entry.label(label))
    counts[key] = (counts[key] ?? 0) + entry.count
  }
  return counts
}

function summarizeTimes(parts: readonly DurationSnapshot[]): { latency: DurationSummary; duration: DurationSummary } {
  return {
    latency: summarizeHistograms(parts.map(({ latencies }) => latencies)),
    duration: summarizeHistograms(parts.map(({ durations }) => durations)),
  }
}

/** `perMs`: how many of the histograms' unit are a ms. */
function summarizeHistograms(parts: readonly LogHistogramSnapshot[], perMs: 1 | 1_000 = 1_000): DurationSummary {
  const histogram = new LogHistogram()
  for (const part of parts) histogram.merge(part)
  const ms = (value: number): number => Math.round(value * (1_000 / perMs)) / 1_000
  const { count } = histogram
  return {
    count,
    min: ms(count === 0 ? 0 : histogram.min),
    max: ms(histogram.max),
    avg: ms(count === 0 ? 0 : histogram.sum / count),
    p50: ms(histogram.percentile(0.5)),
    p75: ms(histogram.percentile(0.75)),
    p90: ms(histogram.percentile(0.9)),
    p95: ms(histogram.percentile(0.95)),
    p99: ms(histogram.percentile(0.99)),
    p999: ms(histogram.percentile(0.999)),
    p9999: ms(histogram.percentile(0.9999)),
  }
}
