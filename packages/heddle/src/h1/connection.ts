import {
  CancelledError,
  CancelReason,
  TimeoutError,
  UsageError,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type HttpConnection,
  type Instant,
  type OutboxLike,
  type ProtocolError,
  type StreamEngine,
} from '../http/index.ts'
import { ContentReader } from './content-reader.ts'
import { ContentWriter } from './content-writer.ts'
import { ExchangeQueue, type ExchangeOwner, type Http1Exchange } from './exchange.ts'
import type { Http1Limits } from './limits.ts'
import { SendQueue } from './send-queue.ts'
import { advance, allows, Phase, Step } from './state.ts'

/** How far the connection itself has come. */
export const Stage = {
  Open: 0,
  /** Our last message is queued; what arrives is thrown away until the peer closes (RFC 9112 §9.6). */
  Lingering: 1,
  /** Nothing more is received; what is queued still goes out, unless it is a reset. */
  Closed: 2,
} as const
export type Stage = (typeof Stage)[keyof typeof Stage]

const nothing = new Uint8Array(0)

/**
 * What both roles of an HTTP/1.1 connection have in common: the run loop, the content of the message
 * received and of the message sent, back pressure and time limits. A role adds the heads and decides
 * what follows when a message ends.
 */
export abstract class Connection implements StreamEngine, HttpConnection, ExchangeOwner {
  readonly info: ConnectionInfo
  readonly handler: ConnectionHandler
  readonly limits: Http1Limits
  onDirty: () => void

  /** The exchange whose messages are under way. */
  protected current: Http1Exchange | undefined
  protected stage: Stage
  protected sending: Phase
  protected receiving: Phase
  protected readonly queue: SendQueue
  protected readonly writer: ContentWriter
  protected readonly reader: ContentReader
  /** The connection does not outlive the current exchange. */
  protected closeAfter: boolean
  /** `shutdown` was called. */
  protected draining: boolean
  /** Received content is thrown away; `dropped` counts it. */
  protected discarding: boolean
  protected dropped: number
  /** More was thrown away than is worth it: nothing more is read, and the connection will close. */
  protected drainOver: boolean
  /** Octets of content of the message being received, and those of them that nobody consumed. */
  protected received: number
  protected unconsumed: number
  /** Received and not looked at: the exchange in front has to end first. */
  protected backlog: Buffer
  protected backlogLength: number

  /** Instants; Infinity while the limit does not apply. What `waitDeadline` waits for is the role's. */
  protected waitDeadline: Instant
  protected bodyDeadline: Instant
  protected sendDeadline: Instant
  protected drainDeadline: Instant
  protected now: Instant

  protected running: boolean
  private peerEnded: boolean
  private ready: boolean
  private finished: boolean
  private resets: boolean
  private closeError: HeddleError | undefined
  /** Exchanges whose `onClose` is due. */
  private readonly overs: ExchangeQueue
  private contentArrived: boolean

  constructor(info: ConnectionInfo, handler: ConnectionHandler, limits: Http1Limits, now: Instant) {
    this.info = info
    this.handler = handler
    this.limits = limits
    this.onDirty = () => {}
    this.current = undefined
    this.stage = Stage.Open
    this.sending = Phase.Head
    this.receiving = Phase.Head
    this.queue = new SendQueue()
    this.writer = new ContentWriter(this.queue)
    this.reader = new ContentReader(limits)
    this.closeAfter = false
    this.draining = false
    this.discarding = false
    this.dropped = 0
    this.drainOver = false
    this.received = 0
    this.unconsumed = 0
    this.backlog = noBacklog
    this.backlogLength = 0
    this.waitDeadline = Infinity
    this.bodyDeadline = Infinity
    this.sendDeadline = Infinity
    this.drainDeadline = Infinity
    this.now = now
    this.running = false
    this.peerEnded = false
    this.ready = false
    this.finished = false
    this.resets = false
    this.closeError = undefined
    this.overs = new ExchangeQueue()
    this.contentArrived = false
  }

  // ── What the role adds ──────────────────────────────────────────────────────────────────────────

  abstract get openable(): number
  abstract get openExchanges(): number
  abstract open(handler: ExchangeHandler): Exchange | undefined
  abstract sendHead(exchange: Http1Exchange, head: Head, end: boolean): void
  /** Reads in a head at `at`; returns where it stopped. */
  protected abstract receiveHead(buffer: Uint8Array, at: number, limit: number): number
  /** Octets behind the message received: of a pipelined request, or of nothing that was asked for. */
  protected abstract receiveBehind(buffer: Uint8Array, at: number, limit: number): void
  /** False while a new message may not begin: what arrives is kept. */
  protected abstract readonly mayReceiveHead: boolean
  protected abstract receiveEnded(): void
  /** Ends the exchange, and in general the connection with it. `status`: what a server may still answer. */
  protected abstract abandon(exchange: Http1Exchange, error: HeddleError, status: number, local: boolean): void
  /** All exchanges end with `error`; the connection is over. */
  protected abstract failAll(error: HeddleError, local: boolean): void
  /** Content that nobody will get is at fault, cut off or too long: there is no exchange to tell. */
  protected abstract abandonDrain(error: HeddleError | undefined): void
  /** A message ended or what is queued left: is the exchange over? */
  protected abstract maybeFinish(): void
  /** Reports what left: `onSent`, and what follows from it. */
  protected abstract reportSent(): void
  /** Sets `waitDeadline` and tells the owner what has changed. */
  protected abstract settle(now: Instant): void
  protected abstract expireWait(now: Instant): void
  protected abstract shutdownRole(): void
  abstract discard(exchange: Http1Exchange): void

  // ── Run loop ────────────────────────────────────────────────────────────────────────────────────

  receive(buffer: Uint8Array, start: number, limit: number, now: Instant): void {
    this.enter(now)
    if (this.backlogLength > 0) {
      this.keep(buffer, start, limit)
      this.resume()
    } else {
      this.process(buffer, start, limit)
    }
    this.leave(now, false)
  }

  receiveEnd(now: Instant): void {
    this.enter(now)
    this.peerEnded = true
    if (this.stage === Stage.Lingering) this.close(undefined)
    else if (this.stage === Stage.Open) this.receiveEnded()
    this.leave(now, false)
  }

  receiveError(error: HeddleError, now: Instant): void {
    this.enter(now)
    if (this.stage !== Stage.Closed || !this.finished) {
      this.failAll(error, false)
      this.reset(error)
    }
    this.leave(now, true)
  }

  transmit(out: OutboxLike, now: Instant): boolean {
    this.enter(now)
    this.tellOvers(true)
    for (;;) {
      this.resume()
      const moved = this.queue.take(out)
      if (moved > 0) this.sendDeadline = Infinity
      this.reportSent()
      this.maybeFinish()
      if (out.room === 0 || !(this.queue.ready || this.resumable)) break
    }
    if (!this.queue.ready) this.sendDeadline = Infinity
    else if (this.sendDeadline === Infinity) this.sendDeadline = now + this.limits.sendTimeout
    this.leave(now, true)
    return this.queue.ready
  }

  expire(now: Instant): void {
    this.enter(now)
    if (now >= this.sendDeadline) {
      const error = new TimeoutError('send', 'the peer took nothing for too long')
      this.failAll(error, false)
      this.reset(error)
    } else if (now >= this.drainDeadline) {
      if (this.stage === Stage.Lingering) this.close(undefined)
      else this.abandonDrain(undefined)
    } else if (now >= this.bodyDeadline) {
      this.bodyDeadline = Infinity
      if (this.current !== undefined) this.abandon(this.current, new TimeoutError('body', 'no content arrived for too long'), 408, false)
    } else if (now >= this.waitDeadline) {
      this.expireWait(now)
    }
    this.leave(now, true)
  }

  get deadline(): Instant {
    if (this.finished) return Infinity
    const first = this.waitDeadline < this.bodyDeadline ? this.waitDeadline : this.bodyDeadline
    const second = this.sendDeadline < this.drainDeadline ? this.sendDeadline : this.drainDeadline
    return first < second ? first : second
  }

  get closing(): 'no' | 'end' | 'close' | 'reset' {
    if (this.stage === Stage.Open) {
      // A tunnel closes one direction at a time.
      return this.receiving === Phase.Tunnel && this.sending === Phase.Ended && this.queue.length === 0 ? 'end' : 'no'
    }
    if (this.resets) return 'reset'
    if (this.queue.length > 0) return 'no'
    return this.stage === Stage.Lingering ? 'end' : 'close'
  }

  get wantsInput(): boolean {
    if (this.stage !== Stage.Open) return this.stage === Stage.Lingering
    if (this.backlogLength > 0 || this.drainOver) return false
    if (this.receiving === Phase.Head) return this.mayReceiveHead
    return this.unconsumed < this.limits.receiveWindow || this.receiving === Phase.Ended
  }

  shutdown(): void {
    this.assertOutside()
    if (this.draining || this.stage !== Stage.Open) return
    this.draining = true
    this.shutdownRole()
    this.onDirty()
  }

  abort(error: HeddleError): void {
    this.assertOutside()
    if (this.finished) return
    this.failAll(error, true)
    this.reset(error)
    this.onDirty()
  }

  private enter(now: Instant): void {
    this.assertOutside()
    this.running = true
    this.now = now
    if (!this.ready) {
      this.ready = true
      try {
        this.handler.onReady({ protocol: 'h1', maxExchanges: 1, extendedConnect: true })
      } catch (error) {
        this.reset(new CancelledError(CancelReason.InternalError, 'onReady failed', { cause: error }))
      }
    }
  }

  /** `includingLocal`: what this side did itself may be told now. */
  private leave(now: Instant, includingLocal: boolean): void {
    this.tellOvers(includingLocal)
    this.settleBody(now)
    this.settle(now)
    if (this.drainDeadline === Infinity && this.drains) this.drainDeadline = now + this.limits.drainTimeout
    // What left last is reported by the next transmit, and its exchange closed: the connection closes after it.
    const told = this.overs.first === undefined && this.openExchanges === 0
    if (this.stage === Stage.Closed && !this.finished && told && (this.resets || this.queue.length === 0)) {
      this.finished = true
      try {
        this.handler.onClose(this.closeError)
      } catch {
        // The connection is over; there is nothing left that this could end.
      }
    }
    this.running = false
  }

  /** Bytes are read only to be thrown away. */
  private get drains(): boolean {
    if (this.stage === Stage.Open) return this.receiving === Phase.Content && this.current === undefined
    return this.stage === Stage.Lingering && this.queue.length === 0
  }

  /** Every exchange that is over has been told, and none is left. */
  protected get toldAll(): boolean {
    return this.overs.first === undefined && this.openExchanges === 0
  }

  private settleBody(now: Instant): void {
    // The time limit is for a peer that keeps us waiting, not for a handler that keeps the peer waiting.
    if (this.receiving !== Phase.Content || this.current === undefined || this.stage !== Stage.Open || !this.wantsInput) {
      this.bodyDeadline = Infinity
    } else if (this.contentArrived || this.bodyDeadline === Infinity) {
      this.bodyDeadline = now + this.limits.bodyTimeout
    }
    this.contentArrived = false
  }

  private assertOutside(): void {
    if (this.running) throw new UsageError('a handler may not run the engine, shut it down or abort it')
  }

  /** Tells the driver that there is something to do, when it is not at it already. */
  protected dirty(): void {
    if (!this.running) this.onDirty()
  }

  // ── Receiving ───────────────────────────────────────────────────────────────────────────────────

  private process(buffer: Uint8Array, at: number, limit: number): void {
    while (at < limit) {
      if (this.stage !== Stage.Open) {
        this.swallow(limit - at)
        return
      }
      switch (this.receiving) {
        case Phase.Head:
          if (!this.mayReceiveHead) {
            this.receiveBehind(buffer, at, limit)
            return
          }
          at = this.receiveHead(buffer, at, limit)
          break
        case Phase.Content:
          at = this.receiveContent(buffer, at, limit)
          break
        case Phase.Tunnel:
          this.deliver(buffer, at, limit, false)
          return
        default:
          this.receiveBehind(buffer, at, limit)
          return
      }
    }
  }

  /** Keeps a copy of `buffer[at, limit)` until it can be looked at. */
  protected keep(buffer: Uint8Array, at: number, limit: number): void {
    const needed = this.backlogLength + limit - at
    if (needed > this.backlog.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, 1024))
      this.backlog.copy(grown, 0, 0, this.backlogLength)
      this.backlog = grown
    }
    Buffer.prototype.copy.call(buffer, this.backlog, this.backlogLength, at, limit)
    this.backlogLength = needed
  }

  private get resumable(): boolean {
    if (this.backlogLength === 0) return false
    return this.receiving === Phase.Head ? this.mayReceiveHead : this.receiving === Phase.Tunnel || this.stage !== Stage.Open
  }

  /** Looks at what was kept, if that is possible now. */
  private resume(): void {
    if (!this.resumable) return
    const { backlog, backlogLength } = this
    this.backlog = noBacklog
    this.backlogLength = 0
    this.process(backlog, 0, backlogLength)
  }

  /** Bytes that come while the connection closes. */
  private swallow(byteCount: number): void {
    if (this.stage !== Stage.Lingering) return
    this.dropped += byteCount
    if (this.dropped > this.limits.drainSize) this.close(undefined)
  }

  private receiveContent(buffer: Uint8Array, at: number, limit: number): number {
    const { reader } = this
    const end = reader.read(buffer, at, limit)
    const size = reader.contentLimit - reader.contentStart
    this.contentArrived = true
    this.received += size
    if (reader.fault !== undefined) {
      this.contentFault(reader.fault)
      return limit
    }
    if (this.received > this.limits.maxContentLength) {
      this.contentTooLarge()
      return limit
    }
    if (reader.ended) this.receiving = advance(this.receiving, Step.End)
    if (this.discarding) this.drop(size)
    else if (reader.trailers.length > 0) this.deliverTrailers(buffer, reader.contentStart, reader.contentLimit, reader.trailers)
    else if (size > 0 || reader.ended) this.deliver(buffer, reader.contentStart, reader.contentLimit, reader.ended)
    if (reader.ended) this.maybeFinish()
    return end
  }

  protected contentTooLarge(): void {}

  private contentFault(fault: ProtocolError): void {
    if (this.current === undefined) this.abandonDrain(fault)
    else this.abandon(this.current, fault, fault.status, false)
  }

  private drop(size: number): void {
    this.dropped += size
    if (this.dropped <= this.limits.drainSize || this.receiving === Phase.Ended) return
    this.closeAfter = true
    if (this.current === undefined) this.abandonDrain(undefined)
    else this.drainOver = true
  }

  /** Hands received content, or the bytes of a tunnel, to the handler. */
  protected deliver(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const exchange = this.current
    if (exchange === undefined || this.discarding) return
    this.unconsumed += limit - start
    try {
      exchange.handler.onData(buffer, start, limit, end)
    } catch (error) {
      this.handlerFailed(exchange, error)
    }
  }

  /** The peer ended its direction of the tunnel. */
  protected receiveTunnelEnd(): void {
    this.receiving = advance(this.receiving, Step.End)
    this.deliver(nothing, 0, 0, true)
    this.maybeFinish()
  }

  private deliverTrailers(buffer: Uint8Array, start: number, limit: number, trailers: Fields): void {
    const exchange = this.current
    if (limit > start) this.deliver(buffer, start, limit, false)
    if (exchange === undefined || exchange.over || this.discarding) return
    try {
      exchange.handler.onTrailers(trailers)
    } catch (error) {
      this.handlerFailed(exchange, error)
    }
  }

  protected deliverHead(exchange: Http1Exchange, head: Head, end: boolean): void {
    if (exchange.over) return
    try {
      exchange.handler.onHead(head, end)
    } catch (error) {
      this.handlerFailed(exchange, error)
    }
  }

  protected handlerFailed(exchange: Http1Exchange, cause: unknown): void {
    if (exchange.over) return
    this.abandon(exchange, new CancelledError(CancelReason.InternalError, 'the handler failed', { cause }), 500, false)
  }

  consume(exchange: Http1Exchange, byteCount: number): void {
    if (exchange !== this.current || this.discarding) return
    const before = this.unconsumed
    this.unconsumed = before > byteCount ? before - byteCount : 0
    const { receiveWindow } = this.limits
    if (before >= receiveWindow && this.unconsumed < receiveWindow) this.dirty()
  }

  // ── Sending ─────────────────────────────────────────────────────────────────────────────────────

  sendContent(exchange: Http1Exchange, buffer: Uint8Array, start: number, limit: number, end: boolean): boolean {
    if (!this.admits(exchange, limit - start, end)) return false
    this.writer.write(buffer, start, limit)
    return this.sent(exchange, end)
  }

  sendOwned(exchange: Http1Exchange, chunk: Uint8Array, end: boolean): boolean {
    if (!this.admits(exchange, chunk.length, end)) return false
    // What is small costs less as a copy than as a piece of its own.
    if (chunk.length <= smallChunk) this.writer.write(chunk, 0, chunk.length)
    else this.writer.writeOwned(chunk)
    return this.sent(exchange, end)
  }

  sendTrailers(exchange: Http1Exchange, fields: Fields): void {
    if (exchange !== this.current) throw new UsageError('trailers after the end')
    if (this.unwanted) return
    if (!allows(this.sending, Step.Trailers)) advance(this.sending, Step.Trailers)
    this.writer.endWithTrailers(fields)
    this.sending = advance(this.sending, Step.Trailers)
    this.endSending(exchange)
  }

  /** True for content that the peer has said it will not take. */
  protected get unwanted(): boolean {
    return false
  }

  /** Checks that content may be sent now, before anything is written. False: it is dropped. */
  private admits(exchange: Http1Exchange, byteCount: number, end: boolean): boolean {
    if (exchange !== this.current) throw new UsageError('content after the end')
    if (this.unwanted) return false
    const step = end ? Step.End : Step.Content
    if (!allows(this.sending, step)) advance(this.sending, step)
    this.writer.admit(byteCount)
    exchange.unsent += byteCount
    return true
  }

  private sent(exchange: Http1Exchange, end: boolean): boolean {
    const writable = this.queue.length < this.limits.sendBuffer
    if (!writable) exchange.blocked = true
    if (end) {
      this.sending = advance(this.sending, Step.End)
      if (this.sending === Phase.Waiting) {
        this.endHeld()
      } else {
        this.writer.end()
        this.endSending(exchange)
      }
    } else {
      this.dirty()
    }
    return writable
  }

  /** The end of a tunnel that is not open yet. */
  protected endHeld(): void {}

  private endSending(exchange: Http1Exchange): void {
    exchange.endAt = this.queue.queued
    if (this.writer.complete) this.maybeFinish()
    // The peer must see that something is missing: nothing may follow on this connection.
    else this.abandon(exchange, new CancelledError(CancelReason.MessageError, 'content shorter than its content-length'), 0, true)
    this.dirty()
  }

  /** Tells `exchange` how much of its content, which ends at the octet `endAt`, has left. */
  protected report(exchange: Http1Exchange, endAt: number): void {
    // Of what waits we cannot tell content from framing: taking all for content keeps the count safe.
    const waiting = endAt - this.queue.taken
    const sent = waiting > 0 ? exchange.unsent - Math.min(exchange.unsent, waiting) : exchange.unsent
    const writable = this.queue.length < this.limits.sendBuffer
    if (sent === 0 && !(exchange.blocked && writable)) return
    exchange.unsent -= sent
    if (writable) exchange.blocked = false
    try {
      exchange.handler.onSent(sent, writable)
    } catch (error) {
      this.handlerFailed(exchange, error)
    }
  }

  cancel(exchange: Http1Exchange, reason: CancelReason): void {
    this.abandon(exchange, new CancelledError(reason), cancelStatus[reason] as number, true)
    this.dirty()
  }

  // ── Ends ────────────────────────────────────────────────────────────────────────────────────────

  /** The exchange is over; its handler hears of it soon. */
  protected conclude(exchange: Http1Exchange, error: HeddleError | undefined, local: boolean): void {
    exchange.over = true
    exchange.error = error
    exchange.local = local
    this.overs.push(exchange)
  }

  private tellOvers(includingLocal: boolean): void {
    let exchange = this.overs.first
    while (exchange !== undefined && (includingLocal || !exchange.local)) {
      this.overs.shift()
      tellOver(exchange, exchange.error)
      exchange = this.overs.first
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

  /** FIN after what is queued; then we wait for the peer's, so that it can read our last words (RFC 9112 §9.6). */
  protected linger(): void {
    // A peer that has closed already is waited for no longer.
    this.stage = this.peerEnded ? Stage.Closed : Stage.Lingering
    this.dropped = 0
    this.forget()
  }

  private forget(): void {
    this.backlog = noBacklog
    this.backlogLength = 0
    this.waitDeadline = Infinity
    this.bodyDeadline = Infinity
    this.drainDeadline = Infinity
    this.drainOver = false
  }
}

/** Tells the handler that its exchange is over. */
export function tellOver(exchange: Http1Exchange, error: HeddleError | undefined): void {
  try {
    exchange.handler.onClose(error)
  } catch {
    // It was the last call: there is nothing left that this could end.
  }
}

const noBacklog = Buffer.alloc(0)
const smallChunk = 2_048

/** What a server answers when an exchange is cancelled before its response began; 0: nothing. */
const cancelStatus: Readonly<Record<CancelReason, number>> = {
  [CancelReason.NoError]: 0,
  [CancelReason.Cancelled]: 0,
  [CancelReason.Refused]: 503,
  [CancelReason.InternalError]: 500,
  [CancelReason.Timeout]: 504,
  [CancelReason.MessageError]: 400,
  [CancelReason.ConnectError]: 502,
  [CancelReason.ExcessiveLoad]: 503,
}
