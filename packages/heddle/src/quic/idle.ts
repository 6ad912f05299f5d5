import type { Instant } from '../http/index.ts'

/**
 * When a connection on which nothing comes is given up (RFC 9000 §10.1).
 *
 * The time begins anew with every packet that arrives, and with the first packet sent after one that
 * asks for an acknowledgement: so a peer that answers what was sent last has the whole time to do so.
 */
export class IdleTimer {
  /** ms; Infinity: this end sets no limit. */
  readonly #own: number
  /** ms; the lesser of both ends' once the peer's is known. */
  #timeout: number
  #since: Instant
  /** An ack-eliciting packet was sent since something came. */
  #asked: boolean
  /** When something came, or was asked for, last. */
  #activeAt: Instant

  /** `timeout`: ms, what this end tells the peer; 0: none. */
  constructor(timeout: number, now: Instant) {
    this.#own = timeout === 0 ? Infinity : timeout
    this.#timeout = this.#own
    this.#since = now
    this.#asked = false
    this.#activeAt = now
  }

  /** ms without anything that end the connection; Infinity: it never ends so. */
  get timeout(): number {
    return this.#timeout
  }

  /** The peer's transport parameter max_idle_timeout, ms; 0: it sets none. */
  setPeer(timeout: number): void {
    this.#timeout = Math.min(this.#own, timeout === 0 ? Infinity : timeout)
  }

  /** A packet came and was opened. */
  onReceived(now: Instant): void {
    this.#since = now
    this.#asked = false
    this.#activeAt = now
  }

  onSent(ackEliciting: boolean, now: Instant): void {
    if (!ackEliciting) return
    this.#activeAt = now
    if (this.#asked) return
    this.#since = now
    this.#asked = true
  }

  /** `probeTimeout`: the current PTO, ms. RFC 9000 §10.1: three of them at least, so that losses alone end nothing. */
  deadline(probeTimeout: number): Instant {
    return this.#since + Math.max(this.#timeout, 3 * probeTimeout)
  }

  /** When a PING keeps the connection open: `interval` ms after anything came or was asked for. */
  keepAliveAt(interval: number): Instant {
    return this.#activeAt + interval
  }
}
