import type { Instant } from '../http/index.ts'
import type { Rtt } from './rtt.ts'

/** RFC 9406 §4.2. Times in ms. */
const leastThreshold = 4
const mostThreshold = 16
const thresholdDivisor = 8
const samplesNeeded = 8
const cautiousDivisor = 4
const cautiousRounds = 5

/**
 * When slow start has to end before packets are lost (HyStart++, RFC 9406): a round trip that grows
 * says that a queue does. Then the window grows at a quarter of the speed for five rounds, and, if the
 * round trip did not shrink again, slow start is over.
 *
 *     fast ──round trip grew──► cautious ──five rounds──► over
 *       ◄──────it shrank again──────┘
 */
export class SlowStart {
  isCautious: boolean
  #lastRoundMin: number
  #roundMin: number
  #samples: number
  /** The round is over when a packet is acknowledged that was sent from then on. */
  #roundStart: Instant
  #cautiousRounds: number
  /** The least round trip of the round in which it became cautious. */
  #baseline: number

  constructor() {
    this.isCautious = false
    this.#lastRoundMin = Infinity
    this.#roundMin = Infinity
    this.#samples = 0
    this.#roundStart = -Infinity
    this.#cautiousRounds = 0
    this.#baseline = Infinity
  }

  /** What the window grows by when `byteCount` octets were acknowledged. */
  growth(byteCount: number): number {
    return this.isCautious ? byteCount / cautiousDivisor : byteCount
  }

  /** A round trip was measured; true: slow start is over. */
  onRttSample(timeSent: Instant, rtt: Rtt, now: Instant): boolean {
    if (timeSent >= this.#roundStart) {
      if (this.isCautious && ++this.#cautiousRounds >= cautiousRounds) return true
      this.#lastRoundMin = this.#roundMin
      this.#roundMin = Infinity
      this.#samples = 0
      this.#roundStart = now
    }
    this.#samples++
    this.#roundMin = Math.min(this.#roundMin, rtt.latest)
    if (this.#samples < samplesNeeded || this.#lastRoundMin === Infinity) return false
    if (this.isCautious) {
      if (this.#roundMin < this.#baseline) this.#resume()
      return false
    }
    const threshold = Math.max(leastThreshold, Math.min(this.#lastRoundMin / thresholdDivisor, mostThreshold))
    if (this.#roundMin >= this.#lastRoundMin + threshold) {
      this.isCautious = true
      this.#cautiousRounds = 0
      this.#baseline = this.#roundMin
    }
    return false
  }

  #resume(): void {
    this.isCautious = false
    this.#baseline = Infinity
  }
}
