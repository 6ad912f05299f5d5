import type { Instant } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { Flag, FrameType, writeUint32 } from './frame.ts'

/** What one of our PINGs asks; its payload says it, so the answer does. */
export const PingKind = { Alive: 1, Bandwidth: 2, Shutdown: 3 } as const
export type PingKind = (typeof PingKind)[keyof typeof PingKind]

const mark = 0x4864_6c65

/**
 * Watches the path by PING: whether the peer is still there (after a silence while exchanges are open,
 * and when a connection that was idle is used again), and how much arrives in a round trip, which is
 * what the receive windows have to hold.
 */
export class Liveness {
  readonly #owner: Connection
  #heardAt: Instant
  /** When an answer to `Alive` must be here; Infinity: none is awaited. */
  #answerBy: Instant
  /** Bytes of content since the bandwidth PING; -1: none is under way. */
  #sample: number

  constructor(owner: Connection) {
    this.#owner = owner
    this.#heardAt = owner.now
    this.#answerBy = Infinity
    this.#sample = -1
  }

  /** Anything arrived: the peer lives. */
  heard(now: Instant): void {
    this.#heardAt = now
    this.#answerBy = Infinity
  }

  get deadline(): Instant {
    if (this.#answerBy !== Infinity) return this.#answerBy
    return this.#owner.openExchanges > 0 ? this.#heardAt + this.#owner.limits.pingInterval : Infinity
  }

  /** Asks, or gives up: true when the peer is dead. */
  expire(now: Instant): boolean {
    if (now >= this.#answerBy) return true
    if (this.#answerBy === Infinity && this.#owner.openExchanges > 0 && now >= this.#heardAt + this.#owner.limits.pingInterval)
      this.#ask(now)
    return false
  }

  /** An exchange begins: after a silence the path is not trusted. */
  used(): void {
    const { now, limits } = this.#owner
    if (this.#answerBy === Infinity && now - this.#heardAt >= limits.pingInterval) this.#ask(now)
  }

  #ask(now: Instant): void {
    this.#answerBy = now + this.#owner.limits.pingTimeout
    this.ping(PingKind.Alive)
  }

  ping(kind: PingKind): void {
    const out = this.#owner.sender.stageFrame(8, FrameType.Ping, 0, 0)
    writeUint32(out, mark)
    writeUint32(out, kind)
    this.#owner.markDirty()
  }

  /** Half a window went by: measures a round trip, unless one is being measured. */
  probeBandwidth(): void {
    const { receiveWindow, limits } = this.#owner
    if (this.#sample >= 0 || receiveWindow.target >= limits.maxWindow) return
    this.#sample = 0
    this.ping(PingKind.Bandwidth)
  }

  contentArrived(byteCount: number): void {
    if (this.#sample >= 0) this.#sample += byteCount
  }

  /** Our PING came back. */
  answered(first: number, second: number): void {
    if (first !== mark) return
    if (second === PingKind.Shutdown) this.#owner.shutdownRoundTrip()
    else if (second === PingKind.Bandwidth && this.#sample >= 0) {
      const { receiveWindow, limits } = this.#owner
      const sample = this.#sample
      this.#sample = -1
      // Most of a window in one round trip: the window, not the path, was the limit.
      if (sample * 3 < receiveWindow.target * 2) return
      receiveWindow.widen(Math.min(limits.maxWindow, receiveWindow.target * 2))
      this.#owner.creditDue = true
      for (const stream of this.#owner.streams.values()) {
        stream.receiveWindow.widen(Math.min(limits.maxWindow, stream.receiveWindow.target * 2))
        this.#owner.sender.creditStream(stream)
      }
    }
  }

  /** Answers the peer's PING. */
  answer(first: number, second: number): void {
    const { sender } = this.#owner
    const out = sender.stageFrame(8, FrameType.Ping, Flag.Ack, 0)
    writeUint32(out, first)
    writeUint32(out, second)
    sender.provoked++
  }
}
