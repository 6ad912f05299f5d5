import type { RequestRecord } from '../record.ts'
import { MethodNames } from './calls.ts'
import { HistogramFamily, ValueFamily, type FamilySnapshot, type HistogramSeries, type Labels } from './family.ts'
import { TunnelFamilies } from './tunnels.ts'

/** OpenTelemetry's advice for `http.server.request.duration` and `http.client.request.duration`, seconds. */
const durationBounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
/** The methods of RFC 9110, RFC 5789 and QUERY; a client's own inventions are `_OTHER`, so it cannot make time series. */
const methods = ['_OTHER', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY']
const methodIndexes = new Map(methods.map((method, index) => [method, index]))
const protocolVersions = { '': '', h1: '1.1', h2: '2', h3: '3' } as const
const protocolIndexes = { '': 0, h1: 1, h2: 2, h3: 3 } as const

/** The families that requests are counted in. */
export class Families {
  readonly server: HistogramFamily = new HistogramFamily(
    'http_server_request_duration_seconds',
    'Duration of HTTP server requests, from the head to the end of the exchange; of tunnels to their opening.',
    durationBounds,
  )
  readonly active: ValueFamily = new ValueFamily(
    'gauge',
    'http_server_active_requests',
    'HTTP server requests under way, tunnels included.',
  )
  readonly client: HistogramFamily = new HistogramFamily(
    'http_client_request_duration_seconds',
    'Duration of the last attempt of a request, from its beginning to the end of the exchange; of tunnels to their opening.',
    durationBounds,
  )
  readonly serverLatency: HistogramFamily = new HistogramFamily(
    'heddle_server_response_latency_seconds',
    'From the head of a request to that of its response.',
    durationBounds,
  )
  readonly clientLatency: HistogramFamily = new HistogramFamily(
    'heddle_upstream_response_latency_seconds',
    'From the beginning of an attempt, the wait for a connection included, to the head of its response.',
    durationBounds,
  )
  readonly rpc: HistogramFamily = new HistogramFamily(
    'rpc_server_duration_seconds',
    'Duration of gRPC calls, from the head to the end.',
    durationBounds,
  )
  readonly methods: MethodNames = new MethodNames()
  readonly received: ValueFamily = new ValueFamily(
    'counter',
    'heddle_server_request_content_bytes_total',
    'Bytes of content received in requests.',
  )
  readonly sent: ValueFamily = new ValueFamily(
    'counter',
    'heddle_server_response_content_bytes_total',
    'Bytes of content sent in responses.',
  )
  readonly tunnels: TunnelFamilies = new TunnelFamilies()
  readonly errors: ValueFamily = new ValueFamily(
    'counter',
    'heddle_errors_total',
    'Requests that the gateway answered or cut itself, or whose client went away, by reason.',
  )
  readonly retries: ValueFamily = new ValueFamily(
    'counter',
    'heddle_upstream_retries_total',
    'Further attempts after a first one that was certainly not processed.',
  )

  snapshot(): FamilySnapshot[] {
    const { server, serverLatency, active, client, clientLatency, rpc, received, sent, tunnels, errors, retries } = this
    const all = [server, serverLatency, active, received, sent, rpc, client, clientLatency, retries, errors]
    return [...all.map((family) => family.snapshot()), ...tunnels.snapshot()]
  }
}

/** Histogram series by method, version and status (one integer), and by the reason if there is one. */
export class Outcomes {
  readonly #byNumber = new Map<number, HistogramSeries>()
  readonly #byReason = new Map<string, HistogramSeries>()
  readonly #family: HistogramFamily
  readonly #labels: Labels

  constructor(family: HistogramFamily, labels: Labels) {
    this.#family = family
    this.#labels = labels
  }

  find(methodName: string, protocol: RequestRecord['upstreamProtocol'], status: number, reason: string): HistogramSeries {
    const method = methodIndexes.get(methodName) ?? 0
    const number = (method * 4 + protocolIndexes[protocol]) * 1_000 + status
    const known = reason === '' ? this.#byNumber.get(number) : this.#byReason.get(`${number} ${reason}`)
    return known ?? this.#make(number, method, protocol, status, reason)
  }

  /** Its series are shown no longer. */
  forget(): void {
    for (const series of [...this.#byNumber.values(), ...this.#byReason.values()]) this.#family.forget(series)
  }

  #make(number: number, method: number, protocol: RequestRecord['upstreamProtocol'], status: number, reason: string): HistogramSeries {
    const series = this.#family.series([
      ...this.#labels,
      ['http_request_method', methods[method] as string],
      ['http_response_status_code', status === 0 ? '' : String(status)],
      ['network_protocol_version', protocolVersions[protocol]],
      ['error_type', reason === '' && status >= 500 ? String(status) : reason],
    ])
    if (reason === '') this.#byNumber.set(number, series)
    else this.#byReason.set(`${number} ${reason}`, series)
    return series
  }
}
