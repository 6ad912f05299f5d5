import { TimeoutError, type Instant } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode } from './frame.ts'
import { Stage } from './lifetime.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'

/** For a limit of a stream, in place of the instant: it counts from the run that is under way, or the next. */
export const untimed = -1

/** Streams are not looked over more often than this, ms: what a time limit may be late by. */
const shortestInterval = 50

/**
 * The time limits of exchanges, and of a connection without any. Nothing is armed or moved per request:
 * streams keep when they last made progress, and are looked over when the first of them could be late.
 */
export class TimeLimits {
  readonly #owner: Connection
  /** The shortest of the limits: what begins now cannot be late before. */
  readonly #shortest: number
  #idleDeadline: Instant
  /** The last exchange ended between two runs. */
  #idlesUntimed: boolean
  /** When a handler last consumed something, and so gave the peer window. */
  #consumedAt: Instant
  #consumedUntimed: boolean
  /** No stream is late before. */
  #sweepDeadline: Instant

  constructor(owner: Connection) {
    const { bodyTimeout, sendTimeout, responseTimeout, headTimeout, idleTimeout } = owner.limits
    this.#owner = owner
    this.#shortest = Math.min(bodyTimeout, sendTimeout, owner.isServer ? headTimeout : responseTimeout)
    this.#idleDeadline = owner.now + idleTimeout
    this.#idlesUntimed = false
    this.#consumedAt = owner.now
    this.#consumedUntimed = false
    this.#sweepDeadline = Infinity
  }

  get deadline(): Instant {
    const { exchanges } = this.#owner
    if (exchanges.list.length > 0) return this.#sweepDeadline
    return exchanges.reserved.length > 0 ? Infinity : this.#idleDeadline
  }

  /** An exchange is there. */
  busy(): void {
    if (this.#owner.exchanges.open === 1) this.#owner.transport.keepAlive(true)
  }

  /** A stream begins. */
  watch(): void {
    if (this.#sweepDeadline === Infinity) this.#sweepDeadline = this.#owner.now + this.#shortest
  }

  /** Something is due at `instant`. */
  watchUntil(instant: Instant): void {
    if (instant < this.#sweepDeadline) this.#sweepDeadline = instant
  }

  /** The last exchange ended. */
  idles(): void {
    const { now, limits, isRunning, transport, lifetime } = this.#owner
    this.#idleDeadline = now + limits.idleTimeout
    this.#idlesUntimed = !isRunning
    this.#sweepDeadline = Infinity
    if (lifetime.stage === Stage.Open) transport.keepAlive(false)
  }

  /** A handler took content. */
  consumed(): void {
    this.#consumedAt = this.#owner.now
    this.#consumedUntimed = !this.#owner.isRunning
  }

  /** `stream` is held back for a time that is limited from now on. */
  limitStream(stream: Stream): void {
    this.#owner.sentNow(stream)
    if (this.#owner.isRunning) this.stampStream(stream)
  }

  /** A run begins. */
  stamp(): void {
    const { now, limits } = this.#owner
    if (this.#idlesUntimed) {
      this.#idlesUntimed = false
      this.#idleDeadline = now + limits.idleTimeout
    }
    if (this.#consumedUntimed) {
      this.#consumedUntimed = false
      this.#consumedAt = now
    }
  }

  /** Sets the limit of `stream` that waits for the time. */
  stampStream(stream: Stream): void {
    const { now, limits } = this.#owner
    if (stream.heldUntil === untimed) this.watchUntil((stream.heldUntil = now + limits.continueTimeout))
  }

  expire(now: Instant): void {
    const { exchanges, lifetime } = this.#owner
    if (lifetime.stage !== Stage.Open) return
    if (exchanges.list.length > 0) {
      if (now >= this.#sweepDeadline) this.#sweep(now)
    } else if (exchanges.reserved.length === 0 && now >= this.#idleDeadline) {
      this.#idleDeadline = Infinity
      lifetime.closeIdle()
    }
  }

  #sweep(now: Instant): void {
    const { exchanges, sender, lifetime } = this.#owner
    let next = now + this.#shortest
    let stalled = 0
    for (const stream of exchanges.all()) {
      if (stream.held && stream.heldUntil > 0 && now >= stream.heldUntil) sender.release(stream)
      const due = this.#dueOf(stream)
      if (due > now) {
        if (due < next) next = due
        continue
      }
      const error = this.#errorOf(stream)
      if (stream.layout.unsent > 0) stalled++
      exchanges.reset(stream, ErrorCode.RequestCancelled, error)
      if (error.phase === 'head' && this.#owner.isServer) exchanges.provoked()
    }
    const soonest = now + shortestInterval
    this.#sweepDeadline = exchanges.list.length === 0 ? Infinity : next > soonest ? next : soonest
    // Every one of them was stalled: it is the connection that is stuck.
    if (stalled > 0 && exchanges.open === 0) lifetime.fail(ErrorCode.ExcessiveLoad, 'every stream is stalled')
  }

  /** When `stream` is late; Infinity: nothing is expected of the peer. */
  #dueOf(stream: Stream): Instant {
    const { limits, isServer, sender } = this.#owner
    if (stream.held) return stream.heldUntil > 0 ? stream.heldUntil : Math.max(stream.receivedAt, stream.sentAt) + limits.responseTimeout
    if (stream.layout.unsent > 0) {
      // A stream that waits for its turn is not the peer's fault.
      return Math.max(stream.sentAt, sender.sentAt) + limits.sendTimeout
    }
    if (stream.receiving === Phase.Head) {
      // Server: from the beginning of the stream, however slowly it goes on.
      if (isServer) return stream.receivedAt + limits.headTimeout
      return stream.sending === Phase.Ended ? Math.max(stream.receivedAt, stream.sentAt) + limits.responseTimeout : Infinity
    }
    if (!this.#awaitsContent(stream)) return Infinity
    return Math.max(stream.receivedAt, this.#consumedAt) + limits.bodyTimeout
  }

  /** The time limit is for a peer that keeps us waiting, not for a handler that keeps the peer waiting. */
  #awaitsContent(stream: Stream): boolean {
    if (stream.receiving !== Phase.Content || stream.tunnel || stream.discarding) return false
    const { limits, exchanges } = this.#owner
    return stream.unconsumed * 2 < stream.window && exchanges.unconsumed * 2 < limits.connectionWindow
  }

  #errorOf(stream: Stream): TimeoutError {
    if (stream.layout.unsent > 0) return new TimeoutError('send', 'the peer gave no window for content in time')
    if (stream.receiving !== Phase.Head) return new TimeoutError('body', 'no content arrived for too long')
    return new TimeoutError('head', this.#owner.isServer ? 'no whole request head in time' : 'no response in time')
  }
}
