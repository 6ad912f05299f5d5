import {
  CancelledError,
  CancelReason,
  tellFault,
  TimeoutError,
  UsageError,
  type ConnectionHandler,
  type ConnectionInfo,
  type HeddleError,
  type Instant,
  type OutboxLike,
  type StreamEngine,
} from '../http/index.ts'
import { ExchangeQueue, type Http1Exchange } from './exchange.ts'
import type { Http1Limits } from './limits.ts'
import { SendQueue } from './send-queue.ts'

/**
 * How far the connection itself has come.
 *
 *            our last message is queued             the peer closed, or time is up
 *    Open ──────────────────────────────▶ Lingering ──────────────────────────────▶ Closed
 *      └──────────────────────────────────────────────────────────────────────────────▲
 *                      idle, both ended, or a reset
 */
export const Stage = {
  Open: 0,
  /** What arrives is thrown away until the peer closes, so that it can read our last words (RFC 9112 §9.6). */
  Lingering: 1,
  /** Nothing more is received; what is queued still goes out, unless it is a reset. */
  Closed: 2,
} as const
export type Stage = (typeof Stage)[keyof typeof Stage]

/**
 * The outside of an HTTP/1.1 connection: what the driver calls, time limits, and how a connection
 * ends. What it says and hears is in the classes that extend it.
 */
export abstract class RunLoop implements StreamEngine {
  readonly info: ConnectionInfo
  readonly handler: ConnectionHandler
  readonly limits: Http1Limits
  onDirty: () => void

  protected readonly queue: SendQueue
  protected stage: Stage
  /** `shutdown` was called. */
  protected draining: boolean
  /** More was thrown away than is worth it: nothing more is read, and the connection will close. */
  protected drainOver: boolean
  /** Octets of content thrown away. */
  protected dropped: number
  protected peerEnded: boolean
  /** Input was received and `transmit` has not followed: more may lie ready behind it. */
  protected inputTurn: boolean
  /** Nothing is handed over by the next `transmit`; the driver is asked for another. */
  protected postponed: boolean

  /** Instants; Infinity while the limit does not apply. What `waitDeadline` waits for is the role's. */
  protected waitDeadline: Instant
  protected bodyDeadline: Instant
  protected sendDeadline: Instant
  protected drainDeadline: Instant

  private running: boolean
  private ready: boolean
  private finished: boolean
  private resets: boolean
  private closeError: HeddleError | undefined
  /** Exchanges whose `onClose` is due. */
  private readonly overs: ExchangeQueue

  constructor(info: ConnectionInfo, handler: ConnectionHandler, limits: Http1Limits) {
    this.info = info
    this.handler = handler
    this.limits = limits
    this.onDirty = nothingToDo
    this.queue = new SendQueue()
    this.stage = Stage.Open
    this.draining = false
    this.drainOver = false
    this.dropped = 0
    this.peerEnded = false
    this.inputTurn = false
    this.postponed = false
    this.waitDeadline = Infinity
    this.bodyDeadline = Infinity
    this.sendDeadline = Infinity
    this.drainDeadline = Infinity
    this.running = false
    this.ready = false
    this.finished = false
    this.resets = false
    this.closeError = undefined
    this.overs = new ExchangeQueue()
  }

  // ── What the classes behind it add ──────────────────────────────────────────────────────────────

  abstract get openExchanges(): number
  abstract get wantsInput(): boolean
  /** Takes bytes while the connection is open. */
  protected abstract take(buffer: Uint8Array, start: number, limit: number): void
  /** The peer's FIN while the connection is open. */
  protected abstract takeEnd(): void
  /** Looks at input that had to wait. False: there is none, or it still has to. */
  protected abstract resume(): boolean
  /** Bytes have left: tells whom it concerns. */
  protected abstract reportSent(): void
  /** Lets go of what was received and waits. */
  protected abstract dropInput(): void
  /** True while an open connection reads only to throw away. */
  protected abstract get drains(): boolean
  /** Our half of a tunnel has ended and the peer's has not. */
  protected abstract get halfClosed(): boolean
  /** All exchanges end with `error`. */
  protected abstract failAll(error: HeddleError, local: boolean): void
  protected abstract expireBody(): void
  protected abstract expireWait(): void
  protected abstract expireDrain(): void
  /** Sets `bodyDeadline` and `waitDeadline`, and tells the owner what has changed. */
  protected abstract settle(now: Instant): void
  protected abstract startShutdown(): void

  // ── The loop ────────────────────────────────────────────────────────────────────────────────────
  //
  // What throws in here, a bug or something that was injected, is the driver's to report; `receiveError`
  // comes after it and must find the way free.

  receive(buffer: Uint8Array, start: number, limit: number, now: Instant): void {
    this.enter()
    try {
      this.inputTurn = true
      if (this.stage === Stage.Open) this.take(buffer, start, limit)
      else this.swallow(limit - start)
      this.leave(now, false)
    } finally {
      this.running = false
    }
  }

  receiveEnd(now: Instant): void {
    this.enter()
    try {
      this.peerEnded = true
      if (this.stage === Stage.Lingering) this.close(undefined)
      else if (this.stage === Stage.Open) this.takeEnd()
      this.leave(now, false)
    } finally {
      this.running = false
    }
  }

  receiveError(error: HeddleError, now: Instant): void {
    this.enter()
    try {
      if (!this.finished) {
        this.failAll(error, false)
        this.reset(error)
      }
      this.leave(now, true)
    } finally {
      this.running = false
    }
  }

  transmit(out: OutboxLike, now: Instant): boolean {
    this.enter()
    try {
      this.tellOvers(true)
      this.resume()
      this.inputTurn = false
      if (this.postponed) return this.transmitLater(now)
      do {
        if (this.queue.take(out) > 0) this.sendDeadline = Infinity
        this.reportSent()
        // What left made room for the answers to requests that wait: nothing else would come back to them.
      } while ((this.resume() || this.queue.ready) && out.room > 0)
      if (!this.queue.ready) this.sendDeadline = Infinity
      else if (this.sendDeadline === Infinity) this.sendDeadline = now + this.limits.sendTimeout
      this.leave(now, true)
      return this.queue.ready
    } finally {
      this.running = false
    }
  }

  private transmitLater(now: Instant): boolean {
    this.postponed = false
    this.leave(now, true)
    if (this.queue.ready) this.onDirty()
    return false
  }

  expire(now: Instant): void {
    this.enter()
    try {
      this.expireFirst(now)
      this.leave(now, true)
    } finally {
      this.running = false
    }
  }

  private expireFirst(now: Instant): void {
    if (now >= this.sendDeadline) {
      const error = new TimeoutError('send', 'the peer took nothing for too long')
      this.failAll(error, false)
      this.reset(error)
    } else if (now >= this.drainDeadline) {
      if (this.stage === Stage.Lingering) this.close(undefined)
      else this.expireDrain()
    } else if (now >= this.bodyDeadline) {
      this.bodyDeadline = Infinity
      this.expireBody()
    } else if (now >= this.waitDeadline) {
      this.expireWait()
    }
  }

  get deadline(): Instant {
    const first = this.waitDeadline < this.bodyDeadline ? this.waitDeadline : this.bodyDeadline
    const second = this.sendDeadline < this.drainDeadline ? this.sendDeadline : this.drainDeadline
    return first < second ? first : second
  }

  get closing(): 'no' | 'end' | 'close' | 'reset' {
    if (this.resets) return 'reset'
    if (this.queue.length > 0) return 'no'
    // A tunnel closes one direction at a time.
    if (this.stage === Stage.Open) return this.halfClosed ? 'end' : 'no'
    return this.stage === Stage.Lingering ? 'end' : 'close'
  }

  shutdown(): void {
    this.assertOutside()
    if (this.draining || this.stage !== Stage.Open) return
    this.draining = true
    this.startShutdown()
    this.onDirty()
  }

  abort(error: HeddleError): void {
    this.assertOutside()
    if (this.finished) return
    this.failAll(error, true)
    this.reset(error)
    this.onDirty()
  }

  private enter(): void {
    this.assertOutside()
    this.running = true
    if (!this.ready) this.tellReady()
  }

  private tellReady(): void {
    this.ready = true
    try {
      this.handler.onReady({ protocol: 'h1', maxExchanges: 1, extendedConnect: true })
    } catch (cause) {
      this.reset(new CancelledError(CancelReason.InternalError, 'onReady failed', { cause }))
    }
  }

  /** `includingLocal`: what this side did itself may be told now. */
  private leave(now: Instant, includingLocal: boolean): void {
    this.tellOvers(includingLocal)
    this.settle(now)
    if (
      this.drainDeadline === Infinity &&
      (this.stage === Stage.Open ? this.drains : this.stage === Stage.Lingering && this.queue.length === 0)
    ) {
      this.drainDeadline = now + this.limits.drainTimeout
    }
    if (this.stage === Stage.Closed && !this.finished && this.toldAll && (this.resets || this.queue.length === 0)) this.tellClosed()
    this.running = false
  }

  private tellClosed(): void {
    this.finished = true
    this.sendDeadline = Infinity
    try {
      this.handler.onClose(this.closeError)
    } catch {
      // The connection is over; there is nothing left that this could end.
    }
  }

  private assertOutside(): void {
    if (this.running) throw new UsageError('a handler may not run the engine, shut it down or abort it')
  }

  /** Tells the driver that there is something to do, when it is not at it already. */
  protected dirty(): void {
    if (!this.running) this.onDirty()
  }

  // ── Ends ────────────────────────────────────────────────────────────────────────────────────────

  /** The exchange is over. Its handler hears of it before long; `local`: by `transmit` or `expire`, since this side did it. */
  protected conclude(exchange: Http1Exchange, error: HeddleError | undefined, local: boolean): void {
    exchange.over = true
    exchange.error = error
    exchange.local = local
    this.overs.push(exchange)
  }

  /** Every exchange that is over has been told. */
  protected get toldOvers(): boolean {
    return this.overs.first === undefined
  }

  private get toldAll(): boolean {
    return this.overs.first === undefined && this.openExchanges === 0
  }

  private tellOvers(includingLocal: boolean): void {
    let exchange = this.overs.first
    while (exchange !== undefined && (includingLocal || !exchange.local)) {
      this.overs.shift()
      this.tellOver(exchange, exchange.error)
      exchange = this.overs.first
    }
  }

  /** Tells the handler that its exchange is over. */
  protected tellOver(exchange: Http1Exchange, error: HeddleError | undefined): void {
    try {
      exchange.handler.onClose(error)
    } catch (cause) {
      // It was the last call: there is nothing left that this could end.
      tellFault(this.handler, cause)
    }
  }

  /** FIN after what is queued, then nothing. */
  protected close(error: HeddleError | undefined): void {
    if (this.stage === Stage.Closed) return
    this.stage = Stage.Closed
    this.closeError = error
    this.forget()
  }

  /** At once. */
  protected reset(error: HeddleError | undefined): void {
    if (this.finished) return
    if (this.stage !== Stage.Closed) this.closeError = error
    this.stage = Stage.Closed
    this.resets = true
    this.queue.clear()
    this.forget()
  }

  /** FIN after what is queued; then the peer's is waited for, unless it has come already. */
  protected linger(): void {
    this.stage = this.peerEnded ? Stage.Closed : Stage.Lingering
    this.dropped = 0
    this.forget()
  }

  /** Bytes that come while the connection closes. */
  protected swallow(byteCount: number): void {
    if (this.stage !== Stage.Lingering) return
    this.dropped += byteCount
    if (this.dropped > this.limits.drainSize) this.close(undefined)
  }

  private forget(): void {
    this.waitDeadline = Infinity
    this.bodyDeadline = Infinity
    this.drainDeadline = Infinity
    this.drainOver = false
    this.dropInput()
  }
}

function nothingToDo(): void {}
