import type { EndpointStats } from '../upstream/index.ts'
import { LogHistogram } from './histogram.ts'
import type { AccessLogStats, ListenerSnapshot, ProcessSnapshot, Snapshot } from './snapshot.ts'
import type { DurationSnapshot } from './traffic.ts'

/** How long requests took, ms. Percentiles are at most 0.8 % off, plus half a µs. All 0 when there were none. */
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
  readonly listeners: readonly (ListenerSnapshot & RequestSummary & { readonly active: number })[]
  /** By route, those that had a request; the name is empty where no route matched. */
  readonly routes: readonly (RequestSummary & { readonly name: string })[]
  readonly clusters: readonly ClusterSummary[]
  /** All 0 without an access log. */
  readonly accessLog: AccessLogStats
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
  /** From the request's head to the end of its exchange; of a tunnel to its opening. */
  readonly duration: DurationSummary
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
  /** Its endpoints at present; `duration`: of requests it was the last endpoint of. */
  readonly endpoints: readonly (EndpointStats & { readonly duration: DurationSummary })[]
  /** The same span as of {@link RequestSummary}, retries included. */
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
        endpoints: cluster.endpoints.map((endpoint) => ({
          ...endpoint,
          duration: summarizeDurations(own.filter((entry) => entry.endpoint === endpoint.name)),
        })),
        duration: summarizeDurations(own),
      }
    }),
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
    duration: summarizeDurations(durations),
  }
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

function summarizeDurations(parts: readonly DurationSnapshot[]): DurationSummary {
  const histogram = new LogHistogram()
  for (const { durations } of parts) histogram.merge(durations)
  const ms = (micros: number): number => Math.round(micros) / 1_000
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
