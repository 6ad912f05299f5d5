import type { Instant } from '../http/index.ts'
import { initialWindow, minimumWindow, type Congestion } from './congestion.ts'
import type { Rtt } from './rtt.ts'
import { SlowStart } from './slow-start.ts'

/** RFC 9002 §7.3.2: what a loss leaves of the window. */
const lossReduction = 0.5

/** The congestion control of RFC 9002 §7 and §B: the window doubles, then grows by one datagram per round trip. */
export class NewReno implements Congestion {
  window: number
  /** Slow start ends here. */
  threshold: number
  #maxDatagramSize: number
  /** Acknowledged octets that have not made the window grow yet (§B.5, in steps of whole datagrams). */
  #acked: number
  /** Only the first slow start, which knows no threshold, has to find one. */
  readonly #slowStart: SlowStart

  constructor(maxDatagramSize: number) {
    this.window = initialWindow(maxDatagramSize)
    this.threshold = Infinity
    this.#maxDatagramSize = maxDatagramSize
    this.#acked = 0
    this.#slowStart = new SlowStart()
  }

  get isSlowStart(): boolean {
    return this.window < this.threshold
  }

  onAcked(byteCount: number): void {
    if (this.window < this.threshold) {
      this.window += this.#slowStart.growth(byteCount)
      return
    }
    // RFC 9002 §7.3.3: at most one datagram for a window of acknowledged octets.
    this.#acked += byteCount
    if (this.#acked < this.window) return
    this.#acked -= this.window
    this.window += this.#maxDatagramSize
  }

  onUnused(): void {
    this.#acked = 0
  }

  onRttSample(timeSent: Instant, rtt: Rtt, now: Instant): void {
    if (this.threshold === Infinity && this.#slowStart.onRttSample(timeSent, rtt, now)) this.threshold = this.window
  }

  onCongestionEvent(): void {
    this.threshold = Math.max(this.window * lossReduction, minimumWindow(this.#maxDatagramSize))
    this.window = this.threshold
    this.#acked = 0
  }

  onPersistentCongestion(): void {
    this.window = minimumWindow(this.#maxDatagramSize)
    this.#acked = 0
  }

  resize(maxDatagramSize: number): void {
    this.#maxDatagramSize = maxDatagramSize
    this.window = Math.max(this.window, minimumWindow(maxDatagramSize))
  }
}
