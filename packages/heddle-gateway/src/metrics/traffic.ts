import type { ProxyObserver, RequestRecord } from '../record.ts'
import { CallTraffic } from './calls.ts'
import type { FamilySnapshot, HistogramSeries, Labels, Series } from './family.ts'
import { LogHistogram, type LogHistogramSnapshot } from './histogram.ts'
import { Families, Outcomes } from './traffic-families.ts'
import { TunnelTraffic } from './tunnels.ts'

/** Endpoints of one cluster whose requests are counted apart; names that change their addresses leave old ones behind. */
const endpointLimit = 128

/** How long one group of requests took, µs. */
export interface DurationSnapshot {
  readonly listener: string
  readonly route: string
  readonly cluster: string
  readonly endpoint: string
  /** Whole exchanges; of tunnels until they were open. */
  readonly durations: LogHistogramSnapshot
  /** Until the response's head, of those that had one. */
  readonly latencies: LogHistogramSnapshot
  /** How long tunnels were open, ms. Undefined: there was none. */
  readonly tunnels: LogHistogramSnapshot | undefined
}

/** All that {@link Traffic} counted, in a form that survives a trip between processes. */
export interface TrafficSnapshot {
  readonly families: readonly FamilySnapshot[]
  /** One per listener and route. */
  readonly served: readonly DurationSnapshot[]
  /** One per cluster and endpoint. */
  readonly upstream: readonly DurationSnapshot[]
}

/**
 * Counts requests. A request costs a few map look-ups by names and small integers, and additions:
 * the time series it belongs to is made the first time and found by its number from then on.
 */
export class Traffic implements ProxyObserver {
  readonly #families = new Families()
  readonly #listeners = new Map<string, ListenerTraffic>()
  readonly #clusters = new Map<string, Map<string, EndpointTraffic>>()
  #requests = 0

  /** `listeners` are served from now on: their series begin at 0 rather than at their first request. */
  constructor(listeners: readonly { readonly name: string; readonly scheme: string }[]) {
    for (const { name, scheme } of listeners) this.#listeners.set(name, new ListenerTraffic(this.#families, name, scheme))
  }

  onRequestStart(listener: string): void {
    this.#listener(listener).active.value++
  }

  onTunnelStart(record: RequestRecord): void {
    this.#listener(record.listener).route(record.route).startTunnel(record)
  }

  onRequestEnd(record: RequestRecord): void {
    const listener = this.#listener(record.listener)
    listener.active.value--
    listener.route(record.route).count(record)
    if (record.endpoint !== '') this.#endpoint(record.cluster, record.endpoint).count(record)
    if (record.reason !== '') {
      const { listener: name, route, cluster, reason } = record
      const labels: Labels = [
        ['heddle_listener', name],
        ['http_route', route],
        ['heddle_cluster', cluster],
        ['error_type', reason],
      ]
      this.#families.errors.series(labels).value++
    }
  }

  snapshot(): TrafficSnapshot {
    const served: DurationSnapshot[] = []
    for (const listener of this.#listeners.values()) {
      for (const route of listener.routes.values()) {
        const names = { listener: listener.name, route: route.name, cluster: '', endpoint: '' }
        route.tunnels?.refresh()
        const tunnels = route.tunnels?.durations.snapshot()
        served.push({ ...names, durations: route.durations.snapshot(), latencies: route.latencies.snapshot(), tunnels })
      }
    }
    const upstream: DurationSnapshot[] = []
    for (const [cluster, endpoints] of this.#clusters) {
      for (const [endpoint, { durations, latencies }] of endpoints) {
        const names = { listener: '', route: '', cluster, endpoint }
        upstream.push({ ...names, durations: durations.snapshot(), latencies: latencies.snapshot(), tunnels: undefined })
      }
    }
    return { families: this.#families.snapshot(), served, upstream }
  }

  #listener(name: string): ListenerTraffic {
    let listener = this.#listeners.get(name)
    if (listener === undefined) {
      listener = new ListenerTraffic(this.#families, name, 'http')
      this.#listeners.set(name, listener)
    }
    return listener
  }

  #endpoint(cluster: string, name: string): EndpointTraffic {
    let endpoints = this.#clusters.get(cluster)
    if (endpoints === undefined) {
      endpoints = new Map()
      this.#clusters.set(cluster, endpoints)
    }
    let endpoint = endpoints.get(name)
    if (endpoint === undefined) {
      if (endpoints.size >= endpointLimit) forgetOldest(endpoints)
      endpoint = new EndpointTraffic(this.#families, cluster, name)
      endpoints.set(name, endpoint)
    }
    endpoint.lastUsed = ++this.#requests
    return endpoint
  }
}

/** The endpoint that was used longest ago makes room. */
function forgetOldest(endpoints: Map<string, EndpointTraffic>): void {
  const [[name, oldest]] = [...endpoints].sort(([, a], [, b]) => a.lastUsed - b.lastUsed) as [[string, EndpointTraffic]]
  endpoints.delete(name)
  oldest.forget()
}

class ListenerTraffic {
  readonly name: string
  readonly scheme: string
  readonly active: Series
  readonly routes: Map<string, RouteTraffic>
  readonly families: Families

  constructor(families: Families, name: string, scheme: string) {
    this.name = name
    this.scheme = scheme
    this.active = families.active.series([
      ['heddle_listener', name],
      ['url_scheme', scheme],
    ])
    this.routes = new Map()
    this.families = families
  }

  route(name: string): RouteTraffic {
    let route = this.routes.get(name)
    if (route === undefined) {
      route = new RouteTraffic(this.families, this, name)
      this.routes.set(name, route)
    }
    return route
  }
}

class RouteTraffic {
  readonly name: string
  /** µs. */
  readonly durations: LogHistogram
  readonly latencies: LogHistogram
  readonly latency: HistogramSeries
  readonly outcomes: Outcomes
  /** Undefined until the first call of gRPC. */
  calls: CallTraffic | undefined
  /** Undefined until the first one. */
  tunnels: TunnelTraffic | undefined
  readonly received: Series
  readonly sent: Series
  readonly families: Families
  readonly labels: Labels

  constructor(families: Families, listener: ListenerTraffic, name: string) {
    this.name = name
    this.durations = new LogHistogram()
    this.latencies = new LogHistogram()
    this.families = families
    this.labels = [
      ['heddle_listener', listener.name],
      ['http_route', name],
    ]
    this.latency = families.serverLatency.series(this.labels)
    this.calls = undefined
    this.tunnels = undefined
    this.outcomes = new Outcomes(families.server, [...this.labels, ['url_scheme', listener.scheme]])
    this.received = families.received.series(this.labels)
    this.sent = families.sent.series(this.labels)
  }

  startTunnel(record: RequestRecord): void {
    this.tunnels ??= new TunnelTraffic(this.families.tunnels, this.labels)
    this.tunnels.start(record)
  }

  count(record: RequestRecord): void {
    const { timeToHead, status, grpc } = record
    // A tunnel lives as long as its user likes; what can be slow about it is its opening.
    const duration = record.tunnel && timeToHead >= 0 ? timeToHead : record.duration
    this.durations.record(duration * 1_000)
    this.outcomes.find(record.method, record.protocol, status, record.reason).record(duration / 1_000)
    // The gateway's own answers are complete as they begin.
    const latency = timeToHead >= 0 ? timeToHead : status > 0 ? duration : -1
    if (latency >= 0) {
      this.latencies.record(latency * 1_000)
      this.latency.record(latency / 1_000)
    }
    if (grpc !== undefined) {
      this.calls ??= new CallTraffic(this.families.rpc, this.families.methods, this.labels)
      this.calls.find(record, grpc).record(duration / 1_000)
    }
    if (record.tunnel) {
      this.tunnels?.end(record)
      return
    }
    this.received.value += record.requestSize
    this.sent.value += record.responseSize
  }
}

class EndpointTraffic {
  /** µs. */
  readonly durations: LogHistogram
  readonly latencies: LogHistogram
  readonly latency: HistogramSeries
  readonly outcomes: Outcomes
  readonly families: Families
  readonly cluster: string
  /** The number of the last request it served. */
  lastUsed: number

  constructor(families: Families, cluster: string, name: string) {
    this.lastUsed = 0
    this.durations = new LogHistogram()
    this.latencies = new LogHistogram()
    this.families = families
    this.cluster = cluster
    const colon = name.lastIndexOf(':')
    const labels: Labels = [
      ['heddle_cluster', cluster],
      ['server_address', name.slice(0, colon)],
      ['server_port', name.slice(colon + 1)],
    ]
    this.latency = families.clientLatency.series(labels)
    this.outcomes = new Outcomes(families.client, labels)
  }

  /** Its series are shown no longer. */
  forget(): void {
    this.outcomes.forget()
    this.families.clientLatency.forget(this.latency)
  }

  count(record: RequestRecord): void {
    const { upstreamLatency } = record
    const duration = record.tunnel && upstreamLatency >= 0 ? upstreamLatency : record.upstreamDuration
    this.durations.record(duration * 1_000)
    if (upstreamLatency >= 0) {
      this.latencies.record(upstreamLatency * 1_000)
      this.latency.record(upstreamLatency / 1_000)
    }
    this.outcomes.find(record.method, record.upstreamProtocol, record.status, record.reason).record(duration / 1_000)
    if (record.attempts > 1) this.families.retries.series([['heddle_cluster', this.cluster]]).value += record.attempts - 1
  }
}
