import type { Instant } from '../http/index.ts'

/** Full datagrams that may leave at once: the initial window (RFC 9002 §7.7). */
const burst = 10
/** A timer of 1 ms may come late by one: what flows in this time (ms) may leave at once, too. */
const lateness = 2

/**
 * Spreads a window over its round trip (RFC 9002 §7.7): a bucket that fills at the pace of the window,
 * and that every packet in flight takes its size from. On paths whose round trip is of the order of a
 * timer's grain the bucket holds a whole window, so there is no pacing.
 */
export class Pacer {
  /** Octets in the bucket. Below 0 after probes, which do not wait. */
  #credit: number
  #filledAt: Instant

  constructor(maxDatagramSize: number, now: Instant) {
    this.#credit = burst * maxDatagramSize
    this.#filledAt = now
  }

  /** A full datagram may leave now. `rate`: octets per ms. */
  canSend(rate: number, maxDatagramSize: number, now: Instant): boolean {
    if (this.#credit < maxDatagramSize) this.#fill(rate, maxDatagramSize, now)
    // An octet less is as good: at the very instant of `deadline` rounding must not decide.
    return this.#credit >= maxDatagramSize - 1
  }

  /** A packet left that counts as in flight. */
  onSent(size: number, rate: number, maxDatagramSize: number, now: Instant): void {
    if (now > this.#filledAt) this.#fill(rate, maxDatagramSize, now)
    this.#credit = Math.max(this.#credit - size, -burst * maxDatagramSize)
  }

  /** When to send next, if `canSend` is false: later than need be, so that more than one may leave then. */
  deadline(rate: number, maxDatagramSize: number): Instant {
    const wanted = Math.max(maxDatagramSize, Math.min(rate, capacity(rate, maxDatagramSize)))
    return this.#filledAt + Math.max(0, wanted - this.#credit) / rate
  }

  #fill(rate: number, maxDatagramSize: number, now: Instant): void {
    const elapsed = now - this.#filledAt
    if (elapsed > 0) this.#filledAt = now
    this.#credit = Math.min(this.#credit + Math.max(0, elapsed) * rate, capacity(rate, maxDatagramSize))
  }
}

function capacity(rate: number, maxDatagramSize: number): number {
  return Math.max(burst * maxDatagramSize, rate * lateness)
}
