import type { Instant } from '../http/index.ts'
import { initialWindow, minimumWindow, type Congestion } from './congestion.ts'
import type { Rtt } from './rtt.ts'
import { SlowStart } from './slow-start.ts'

/** RFC 9438 §4.6: what a loss leaves of the window. */
const beta = 0.7
/** RFC 9438 §5: how steep the curve is, in datagrams per s³. */
const steepness = 0.4
/** RFC 9438 §4.3: Reno with `beta` instead of a half grows by this much of a datagram per window. */
const renoGrowth = (3 * (1 - beta)) / (1 + beta)

/**
 * CUBIC (RFC 9438): after a loss the window follows a cubic curve of the time since, back to where the
 * loss was, slow around it, and on; never slower than Reno would. Windows are kept in octets, times in ms.
 *
 *     window ▲            ╭ probing
 *        max ┼ ─ ─ ╭──────╯
 *            │  ╭──╯ recovering
 *            └──┼──────┼───────► time
 *             epoch   epoch + K
 */
export class Cubic implements Congestion {
  window: number
  /** Slow start ends here. */
  threshold: number
  #maxDatagramSize: number
  /** W_max: where the plateau is. */
  #plateau: number
  /** When the curve of now began; Infinity: it begins with the next octet that is acknowledged in congestion avoidance. */
  #epoch: Instant
  /** K (ms): how long after the epoch the plateau is reached. */
  #timeToPlateau: number
  /** W_est: what Reno's window would be. */
  #reno: number
  /** cwnd_prior: the window in front of the last loss. From there on Reno grows by its own measure. */
  #prior: number
  /** Since when the window has not been used; Infinity: it is used. */
  #unusedSince: Instant
  #lastAckedAt: Instant
  readonly #slowStart: SlowStart

  constructor(maxDatagramSize: number) {
    this.window = initialWindow(maxDatagramSize)
    this.threshold = Infinity
    this.#maxDatagramSize = maxDatagramSize
    this.#plateau = 0
    this.#epoch = Infinity
    this.#timeToPlateau = 0
    this.#reno = 0
    this.#prior = 0
    this.#unusedSince = Infinity
    this.#lastAckedAt = 0
    this.#slowStart = new SlowStart()
  }

  get isSlowStart(): boolean {
    return this.window < this.threshold
  }

  onAcked(byteCount: number, rtt: Rtt, now: Instant): void {
    if (this.window < this.threshold) {
      this.window += this.#slowStart.growth(byteCount)
      return
    }
    if (this.#epoch === Infinity) this.#startEpoch(now)
    else if (this.#unusedSince !== Infinity) this.#epoch += now - this.#unusedSince
    this.#unusedSince = Infinity
    this.#lastAckedAt = now

    const elapsed = now - this.#epoch
    const alpha = this.#reno >= this.#prior ? 1 : renoGrowth
    this.#reno += (alpha * this.#maxDatagramSize * byteCount) / this.window
    if (this.#curve(elapsed) < this.#reno) {
      // RFC 9438 §4.3.
      this.window = Math.max(this.window, this.#reno)
      return
    }
    // RFC 9438 §4.4, §4.5: towards where the curve is one round trip from now, but not too fast.
    const target = Math.min(Math.max(this.#curve(elapsed + rtt.smoothed), this.window), 1.5 * this.window)
    this.window += ((target - this.window) * byteCount) / this.window
  }

  /** RFC 9438 §5.8: the curve stands still meanwhile. */
  onUnused(now: Instant): void {
    if (this.#epoch !== Infinity && this.#unusedSince === Infinity) this.#unusedSince = Math.min(this.#lastAckedAt, now)
  }

  onRttSample(timeSent: Instant, rtt: Rtt, now: Instant): void {
    if (this.threshold === Infinity && this.#slowStart.onRttSample(timeSent, rtt, now)) this.threshold = this.window
  }

  onCongestionEvent(): void {
    const { window } = this
    // RFC 9438 §4.7: a plateau lower than the last one says that others need room.
    this.#plateau = window < this.#plateau ? (window * (1 + beta)) / 2 : window
    this.#prior = window
    this.threshold = Math.max(window * beta, minimumWindow(this.#maxDatagramSize))
    this.window = this.threshold
    this.#epoch = Infinity
    this.#unusedSince = Infinity
  }

  onPersistentCongestion(): void {
    this.window = minimumWindow(this.#maxDatagramSize)
    this.#epoch = Infinity
    this.#unusedSince = Infinity
  }

  resize(maxDatagramSize: number): void {
    this.#maxDatagramSize = maxDatagramSize
    this.window = Math.max(this.window, minimumWindow(maxDatagramSize))
  }

  #startEpoch(now: Instant): void {
    const { window } = this
    this.#epoch = now
    this.#reno = window
    if (window >= this.#plateau) {
      // Slow start ended without a loss, or beyond the last plateau: the plateau is here.
      this.#plateau = window
      this.#timeToPlateau = 0
      this.#prior = Math.max(this.#prior, window)
    } else {
      // RFC 9438 §4.2.
      this.#timeToPlateau = 1000 * Math.cbrt((this.#plateau - window) / this.#maxDatagramSize / steepness)
    }
  }

  /** W_cubic, `elapsed` ms after the epoch (RFC 9438 §4.2). */
  #curve(elapsed: number): number {
    const seconds = (elapsed - this.#timeToPlateau) / 1000
    return steepness * seconds * seconds * seconds * this.#maxDatagramSize + this.#plateau
  }
}
