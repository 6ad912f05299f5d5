import type { Instant } from '../http/index.ts'

/** Resets at once … */
const burst = 100
/** … and per second after that. Servers that count them allow some hundreds, the strictest 200 in 30 s. */
const rate = 3

/**
 * How many streams of one connection may still be reset before its server could take us for an attacker
 * (CVE-2023-44487) and end the connection with all that is on it. One request that is cancelled says nothing;
 * a program, or a gateway with everybody's clients, that cancels a few in a second all day would be told so.
 */
export class ResetAllowance {
  #left: number
  #filledAt: Instant
  #counted: number

  constructor(now: Instant) {
    this.#left = burst
    this.#filledAt = now
    this.#counted = 0
  }

  /** True: `resets`, of all that was sent there, are more than is good. */
  isSpent(resets: number, now: Instant): boolean {
    if (resets === this.#counted) return this.#left < 0
    const filled = Math.min(burst, this.#left + ((now - this.#filledAt) * rate) / 1000)
    this.#left = Math.max(-burst, filled - (resets - this.#counted))
    this.#filledAt = now
    this.#counted = resets
    return this.#left < 0
  }
}
