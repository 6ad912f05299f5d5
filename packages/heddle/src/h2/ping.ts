import type { Instant } from '../http/index.ts'
import type { Connection } from './connection.ts'

/** What one of our PINGs asks; its payload says it, so the answer does. */
const PingKind = { Alive: 1, Bandwidth: 2, Shutdown: 3 } as const
type PingKind = (typeof PingKind)[keyof typeof PingKind]

/** In front of the kind: what tells an answer to us from somebody's own. */
const mark = 0x4864_6c65
/**
 * While nothing but answers to our PINGs arrives, the next question waits this many times longer: gRPC
 * servers close connections that ask often and say nothing (their default allows one in 5 minutes).
 */
const patience = 20

/**
 * Watches the path by PING: whether the peer is still there (after a silence while exchanges are open,
 * and when a connection that was idle is used again), and how much content arrives in a round trip,
 * which is what the receive windows have to hold.
 */
export class Liveness {
  readonly #owner: Connection
  #heardAt: Instant
  /** Silence after which the peer is asked, ms. */
  #interval: number
  /** When an answer to `Alive` must be here; Infinity: none is awaited. */
  #answerBy: Instant
  /** Octets of content since the bandwidth PING; -1: none is under way. */
  #sample: number

  constructor(owner: Connection) {
    this.#owner = owner
    this.#heardAt = owner.now
    this.#interval = owner.limits.pingInterval
    this.#answerBy = Infinity
    this.#sample = -1
  }

  /** Something arrived, whatever it is: the peer lives. */
  heard(now: Instant): void {
    this.#heardAt = now
    this.#answerBy = Infinity
  }

  /** A part of an exchange arrived. */
  heardMessage(): void {
    this.#interval = this.#owner.limits.pingInterval
  }

  get deadline(): Instant {
    if (this.#answerBy !== Infinity) return this.#answerBy
    return this.#owner.openExchanges > 0 ? this.#heardAt + this.#interval : Infinity
  }

  /** Asks, or gives up: true when the peer is dead. */
  expire(now: Instant): boolean {
    if (now >= this.#answerBy) return true
    if (now >= this.deadline) this.#ask(now)
    return false
  }

  /** An exchange begins: after a silence the path is not trusted. */
  used(): void {
    const { now, limits } = this.#owner
    if (this.#answerBy === Infinity && now - this.#heardAt >= limits.pingInterval) this.#ask(now)
  }

  #ask(now: Instant): void {
    this.#answerBy = now + this.#owner.limits.pingTimeout
    this.#ping(PingKind.Alive)
  }

  pingShutdown(): void {
    this.#ping(PingKind.Shutdown)
  }

  #ping(kind: PingKind): void {
    this.#owner.sender.staging.ping(0, mark, kind)
    this.#owner.markDirty()
  }

  /** Half a window went by: measures a round trip, unless one is being measured. */
  probeBandwidth(): void {
    if (this.#sample >= 0 || this.#owner.credit.isWidest) return
    this.#sample = 0
    this.#ping(PingKind.Bandwidth)
  }

  contentArrived(byteCount: number): void {
    if (this.#sample >= 0) this.#sample += byteCount
  }

  /** Our PING came back. */
  answered(first: number, second: number): void {
    if (first !== mark) return
    if (second === PingKind.Alive) this.#interval = this.#owner.limits.pingInterval * patience
    else if (second === PingKind.Shutdown) this.#owner.lifetime.roundTripOver()
    else if (second === PingKind.Bandwidth && this.#sample >= 0) {
      const sample = this.#sample
      this.#sample = -1
      this.#owner.credit.measured(sample)
    }
  }
}
