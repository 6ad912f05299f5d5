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
  /** The last stream ended between two runs. */
  #idlesUntimed: boolean
  /** No stream is late before. */
  #sweepDeadline: Instant

  constructor(owner: Connection) {
    const { bodyTimeout, sendTimeout, responseTimeout, idleTimeout } = owner.limits
    this.#owner = owner
    this.#shortest = Math.min(bodyTimeout, sendTimeout, responseTimeout)
    this.#idleDeadline = owner.now + idleTimeout
    this.#idlesUntimed = false
    this.#sweepDeadline = Infinity
  }

  get deadline(): Instant {
    const { exchanges } = this.#owner
    const own = exchanges.table.size > 0 ? this.#sweepDeadline : exchanges.reserved.length > 0 ? Infinity : this.#idleDeadline
    const { blockedDeadline } = this
    return own < blockedDeadline ? own : blockedDeadline
  }

  /** When a transport that takes nothing has done so for too long. */
  get blockedDeadline(): Instant {
    return this.#owner.sender.blockedSince + this.#owner.limits.sendTimeout
  }

  /** A stream begins. */
  watch(): void {
    if (this.#sweepDeadline === Infinity) this.#sweepDeadline = this.#owner.now + this.#shortest
  }

  /** Something is due at `instant`. */
  watchUntil(instant: Instant): void {
    if (instant < this.#sweepDeadline) this.#sweepDeadline = instant
  }

  /** The last stream ended. */
  idles(): void {
    const { now, limits, knowsTime } = this.#owner
    this.#idleDeadline = now + limits.idleTimeout
    this.#idlesUntimed = !knowsTime
    this.#sweepDeadline = Infinity
  }

  /** `stream` is held back, or unwanted, for a time that is limited from now on. */
  limitStream(stream: Stream): void {
    this.#owner.sentNow(stream)
    if (this.#owner.knowsTime) this.stampStream(stream)
  }

  /** A run begins. */
  stamp(): void {
    if (!this.#idlesUntimed) return
    this.#idlesUntimed = false
    this.#idleDeadline = this.#owner.now + this.#owner.limits.idleTimeout
  }

  /** Sets the limits of `stream` that wait for the time. */
  stampStream(stream: Stream): void {
    const { now, limits } = this.#owner
    if (stream.heldUntil === untimed) this.watchUntil((stream.heldUntil = now + limits.continueTimeout))
    if (stream.abandonAt === untimed) this.watchUntil((stream.abandonAt = now + limits.drainTimeout))
  }

  expire(now: Instant): void {
    const { exchanges, lifetime } = this.#owner
    if (now >= this.blockedDeadline) {
      lifetime.reset(new TimeoutError('send', 'the peer took nothing for too long'), false)
    } else if (lifetime.stage !== Stage.Open) {
      return
    } else if (exchanges.table.size > 0) {
      if (now >= this.#sweepDeadline) this.#sweep(now)
    } else if (exchanges.reserved.length === 0 && now >= this.#idleDeadline) lifetime.closeIdle()
  }

  #sweep(now: Instant): void {
    const { exchanges, sender, lifetime } = this.#owner
    let next = now + this.#shortest
    let stalled = 0
    for (const stream of exchanges.table.all()) {
      if (stream.held && stream.heldUntil > 0 && now >= stream.heldUntil) sender.release(stream)
      const due = this.#dueOf(stream)
      if (due > now) {
        if (due < next) next = due
        continue
      }
      if (stream.pending > 0 && !stream.held) stalled++
      if (stream.abandonAt > 0) exchanges.unwanted.abandonUpload(stream)
      else exchanges.reset(stream, ErrorCode.Cancel, this.#errorOf(stream))
    }
    const soonest = now + shortestInterval
    this.#sweepDeadline = exchanges.table.size === 0 ? Infinity : next > soonest ? next : soonest
    // Every one of them was stalled: it is the connection that is stuck.
    if (stalled > 0 && exchanges.open === 0) lifetime.fail(ErrorCode.EnhanceYourCalm, 'every stream is stalled')
  }

  /** When `stream` is late; Infinity: nothing is expected of the peer. */
  #dueOf(stream: Stream): Instant {
    const { limits } = this.#owner
    if (stream.abandonAt > 0) return stream.abandonAt
    if (stream.held) return stream.heldUntil > 0 ? stream.heldUntil : Math.max(stream.receivedAt, stream.sentAt) + limits.responseTimeout
    // A stream that waits for its turn is not the peer's fault.
    if (stream.pending > 0)
      return (stream.isReady ? Math.max(stream.sentAt, this.#owner.sender.sentAt) : stream.sentAt) + limits.sendTimeout
    if (stream.receiving === Phase.Head) {
      return stream.sending === Phase.Ended ? Math.max(stream.receivedAt, stream.sentAt) + limits.responseTimeout : Infinity
    }
    if (!this.#awaitsContent(stream)) return Infinity
    return Math.max(stream.receivedAt, this.#owner.credit.openedAt) + limits.bodyTimeout
  }

  /** The time limit is for a peer that keeps us waiting, not for a handler that keeps the peer waiting. */
  #awaitsContent(stream: Stream): boolean {
    if (stream.receiving !== Phase.Content || stream.tunnel || stream.discarding) return false
    return stream.unconsumed * 2 < stream.receiveTarget && this.#owner.windows.receiveLeft > 0
  }

  #errorOf(stream: Stream): TimeoutError {
    if (stream.pending > 0 && !stream.held) return new TimeoutError('send', 'the peer gave no window for content, or did not read, in time')
    return stream.receiving === Phase.Head
      ? new TimeoutError('head', 'no response in time')
      : new TimeoutError('body', 'no content arrived for too long')
  }
}
