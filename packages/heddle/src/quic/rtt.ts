import type { Instant } from '../http/index.ts'

/** RFC 9002 §6.1.2: no timer is finer than this (ms). */
export const timerGranularity = 1
/** RFC 9002 §6.2.2: what the round trip is taken for before it was measured (ms). */
export const defaultInitialRtt = 333

/** The round trip of one path as acknowledgements tell it (RFC 9002 §5). All times are in ms. */
export class Rtt {
  /** The last sample; 0 before the first. */
  latest: number
  /** The least sample, acknowledgement delay included. */
  min: number
  smoothed: number
  /** The mean deviation. */
  variation: number
  /** When the first sample came; Infinity before. */
  firstSampleAt: Instant
  /** The next sample is the new minimum. */
  #restartsMin: boolean

  constructor(initialRtt: number = defaultInitialRtt) {
    // RFC 9002 §5.3.
    this.latest = 0
    this.min = 0
    this.smoothed = initialRtt
    this.variation = initialRtt / 2
    this.firstSampleAt = Infinity
    this.#restartsMin = true
  }

  /** Another path: nothing is known of it (RFC 9002 §5). */
  reset(initialRtt: number): void {
    this.latest = 0
    this.smoothed = initialRtt
    this.variation = initialRtt / 2
    this.firstSampleAt = Infinity
    this.#restartsMin = true
  }

  get hasSample(): boolean {
    return this.firstSampleAt !== Infinity
  }

  /** The probe timeout without acknowledgement delay and back-off (RFC 9002 §6.2.1). */
  get probeTimeout(): number {
    return this.smoothed + Math.max(4 * this.variation, timerGranularity)
  }

  /** How long after an acknowledged packet one sent before it counts as lost (RFC 9002 §6.1.2). */
  get lossDelay(): number {
    return Math.max((9 / 8) * Math.max(this.latest, this.smoothed), timerGranularity)
  }

  /**
   * Takes a sample. `ackDelay`: what the peer says it waited, already bounded by its max_ack_delay where
   * that binds it; 0 for an Initial packet.
   */
  update(sample: number, ackDelay: number, now: Instant): void {
    const latest = sample > 0 ? sample : 0
    this.latest = latest
    if (this.#restartsMin || latest < this.min) {
      this.min = latest
      this.#restartsMin = false
    }
    if (!this.hasSample) {
      this.firstSampleAt = now
      this.smoothed = latest
      this.variation = latest / 2
      return
    }
    // RFC 9002 §5.3: the delay is not taken off where less than the minimum would be left.
    const adjusted = latest >= this.min + ackDelay ? latest - ackDelay : latest
    this.variation = (3 / 4) * this.variation + (1 / 4) * Math.abs(this.smoothed - adjusted)
    this.smoothed = (7 / 8) * this.smoothed + (1 / 8) * adjusted
  }

  /** The minimum may be of a path that is no more: the next sample is the new one (RFC 9002 §5.2). */
  restartMin(): void {
    this.#restartsMin = true
  }
}
