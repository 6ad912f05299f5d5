import type { Instant } from './exchange.ts'

/** A token bucket: `burst` at once, then `rate` per second. What a peer may cost us (CVE-2023-44487, CVE-2025-8671). */
export class Budget {
  readonly #burst: number
  readonly #rate: number
  #tokens: number
  #filledAt: Instant

  constructor(burst: number, rate: number) {
    this.#burst = burst
    this.#rate = rate
    this.#tokens = burst
    this.#filledAt = 0
  }

  /** Takes one; false: the budget is spent. */
  take(now: Instant): boolean {
    if (this.#tokens < this.#burst) {
      this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) * this.#rate) / 1000)
    }
    this.#filledAt = now
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
