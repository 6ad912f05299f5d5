import type { RequestRecord } from '../record.ts'
import { HistogramFamily, ValueFamily, type FamilySnapshot, type HistogramSeries, type Labels, type Series } from './family.ts'
import { LogHistogram } from './histogram.ts'

/** From a page that was left at once to a connection that is kept for days, seconds. */
const durationBounds = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 604_800]

/** The families that tunnels are counted in, apart from requests: they last as long as their users like. */
export class TunnelFamilies {
  readonly open: ValueFamily = new ValueFamily('gauge', 'heddle_server_open_tunnels', 'Open tunnels (WebSockets).')
  readonly opened: ValueFamily = new ValueFamily('counter', 'heddle_server_tunnels_opened_total', 'Requests that became tunnels.')
  readonly closed: ValueFamily = new ValueFamily(
    'counter',
    'heddle_server_tunnels_closed_total',
    'Tunnels that are over, by the reason if they did not end by themselves.',
  )
  readonly bytes: ValueFamily = new ValueFamily(
    'counter',
    'heddle_server_tunnel_bytes_total',
    'Bytes that came from clients in tunnels, and that they took.',
  )
  readonly durations: HistogramFamily = new HistogramFamily(
    'heddle_server_tunnel_duration_seconds',
    'How long tunnels were open.',
    durationBounds,
  )

  snapshot(): FamilySnapshot[] {
    return [this.open, this.opened, this.closed, this.bytes, this.durations].map((family) => family.snapshot())
  }
}

/** The tunnels of one listener and route. */
export class TunnelTraffic {
  /** How long those were open that are over, ms. */
  readonly durations: LogHistogram
  /** Their records grow on. */
  readonly #open: Set<RequestRecord>
  readonly #families: TunnelFamilies
  readonly #labels: Labels
  readonly #now: Series
  readonly #opened: Series
  readonly #received: Series
  readonly #sent: Series
  readonly #duration: HistogramSeries
  /** Bytes of those that are over. */
  #receivedBefore: number
  #sentBefore: number

  constructor(families: TunnelFamilies, labels: Labels) {
    this.durations = new LogHistogram()
    this.#open = new Set()
    this.#families = families
    this.#labels = labels
    this.#now = families.open.series(labels)
    this.#opened = families.opened.series(labels)
    this.#received = families.bytes.series([...labels, ['heddle_direction', 'received']])
    this.#sent = families.bytes.series([...labels, ['heddle_direction', 'sent']])
    this.#duration = families.durations.series(labels)
    this.#receivedBefore = 0
    this.#sentBefore = 0
  }

  start(record: RequestRecord): void {
    this.#open.add(record)
    this.#now.value++
    this.#opened.value++
  }

  end(record: RequestRecord): void {
    if (!this.#open.delete(record)) return
    this.#now.value--
    this.#families.closed.series([...this.#labels, ['error_type', record.reason]]).value++
    this.#receivedBefore += record.requestSize
    this.#sentBefore += record.responseSize
    const open = record.duration - record.timeToHead
    this.durations.record(open)
    this.#duration.record(open / 1_000)
  }

  /** Brings the bytes of what is open up to date. O(open tunnels). */
  refresh(): void {
    let received = this.#receivedBefore
    let sent = this.#sentBefore
    for (const { requestSize, responseSize } of this.#open) {
      received += requestSize
      sent += responseSize
    }
    this.#received.value = received
    this.#sent.value = sent
  }
}
