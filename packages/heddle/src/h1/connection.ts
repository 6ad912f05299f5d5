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
} from '../http/index.ts'
import { ContentReader } from './content-reader.ts'
import { ContentWriter } from './content-writer.ts'
import type { ExchangeOwner, Http1Exchange } from './exchange.ts'
import type { Http1Limits } from './limits.ts'
import { RunLoop, Stage } from './run-loop.ts'
import { advance, allows, Phase, Step } from './state.ts'

/** Owned chunks up to this are copied: that costs less than a piece of their own. */
const smallChunk = 2_048
const noBytes = Buffer.alloc(0)
/** Input that has to wait is read up to this, for behind it may come the news that the peer has gone. */
const backlogSize = 65_536

/**
 * What both roles have in common: the message received, the message sent, and back pressure. A role
 * adds the heads and decides what follows when a message ends.
 */
export abstract class Connection extends RunLoop implements HttpConnection, ExchangeOwner {
  /** The exchange whose messages are under way. */
  protected current: Http1Exchange | undefined
  protected sending: Phase
  protected receiving: Phase
  protected readonly writer: ContentWriter
  protected readonly reader: ContentReader
  /** The connection does not outlive the current exchange. */
  protected closeAfter: boolean
  /** Received content is thrown away; `dropped` counts it. */
  protected discarding: boolean
  /** Octets of content of the message being received, and those of them that nobody consumed. */
  protected received: number
  protected unconsumed: number
  /** Received and not looked at: what is in front of it has to end first. */
  private backlog: Buffer
  private backlogStart: number
  private backlogLimit: number
  private contentArrived: boolean

  constructor(info: ConnectionInfo, handler: ConnectionHandler, limits: Http1Limits) {
    super(info, handler, limits)
    this.current = undefined
    this.sending = Phase.Head
    this.receiving = Phase.Head
    this.writer = new ContentWriter(this.queue)
    this.reader = new ContentReader(limits)
    this.closeAfter = false
    this.discarding = false
    this.received = 0
    this.unconsumed = 0
    this.backlog = noBytes
    this.backlogStart = 0
    this.backlogLimit = 0
    this.contentArrived = false
  }

  // ── What the role adds ──────────────────────────────────────────────────────────────────────────

  abstract get openable(): number
  abstract open(handler: ExchangeHandler): Exchange | undefined
  abstract sendHead(exchange: Http1Exchange, head: Head, end: boolean): void
  abstract discard(exchange: Http1Exchange): void
  /** Reads in a head at `at`; returns where it stopped. */
  protected abstract receiveHead(buffer: Uint8Array, at: number, limit: number): number
  /** Lets go of a head that was not received to its end. */
  protected abstract dropHead(): void
  /** Octets behind the message received: of a pipelined request, or of nothing that was asked for. */
  protected abstract receiveBehind(buffer: Uint8Array, at: number, limit: number): void
  /** False while a new message may not begin: what arrives has to wait. */
  protected abstract get mayReceiveHead(): boolean
  /** Sets `waitDeadline` and tells the owner what has changed. */
  protected abstract settleRole(now: Instant): void
  /** Ends the exchange, and in general the connection with it. `status`: what a server may still answer. */
  protected abstract abandon(exchange: Http1Exchange, error: HeddleError, status: number, local: boolean): void
  /** Content that nobody gets is faulty, too long or too slow. */
  protected abstract abandonDrain(error: HeddleError | undefined): void
  /** A message ended, or what was queued left: is the exchange over? */
  protected abstract maybeFinish(): void
  /** More content came than `maxContentLength`. */
  protected abstract contentTooLarge(): void
  /** The sending end of a tunnel was closed before the tunnel was open. */
  protected abstract endHeld(): void
  /** True for content that the peer has said it will not take. */
  protected abstract get unwanted(): boolean

  // ── Receiving ───────────────────────────────────────────────────────────────────────────────────

  get wantsInput(): boolean {
    if (this.stage !== Stage.Open) return this.stage === Stage.Lingering
    if (this.drainOver) return false
    const { backlogLength } = this
    if (this.receiving === Phase.Head) return backlogLength === 0 && this.mayReceiveHead
    if (backlogLength > 0) return backlogLength < backlogSize
    return this.unconsumed < this.limits.receiveWindow || this.receiving === Phase.Ended
  }

  protected take(buffer: Uint8Array, start: number, limit: number): void {
    if (this.backlogLength === 0) {
      this.read(buffer, start, limit)
    } else {
      this.keep(buffer, start, limit)
      this.resume()
    }
  }

  private read(buffer: Uint8Array, at: number, limit: number): void {
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

  protected get backlogLength(): number {
    return this.backlogLimit - this.backlogStart
  }

  /** Keeps a copy of `buffer[at, limit)` until it can be looked at. */
  protected keep(buffer: Uint8Array, at: number, limit: number): void {
    if (buffer === this.backlog) {
      // It is the backlog that is being read: what is left of it lies where it should.
      this.backlogStart = at
      this.backlogLimit = limit
      return
    }
    const { backlog, backlogLength } = this
    const needed = backlogLength + limit - at
    if (this.backlogStart + needed > backlog.length) {
      // Moved within the array only while it is half empty, so that small pieces do not move the rest each time.
      if (needed > backlog.length / 2) this.backlog = Buffer.allocUnsafeSlow(Math.max(needed, backlog.length * 2, 1024))
      backlog.copy(this.backlog, 0, this.backlogStart, this.backlogLimit)
      this.backlogStart = 0
      this.backlogLimit = backlogLength
    }
    Buffer.prototype.copy.call(buffer, this.backlog, this.backlogLimit, at, limit)
    this.backlogLimit += limit - at
  }

  protected resume(): boolean {
    if (this.backlogLength === 0) return false
    if (this.receiving === Phase.Head ? !this.mayReceiveHead : this.receiving !== Phase.Tunnel) return false
    const { backlog, backlogStart, backlogLimit } = this
    this.backlogStart = backlogLimit
    this.read(backlog, backlogStart, backlogLimit)
    if (this.backlogLength === 0) this.dropBacklog()
    return true
  }

  private dropBacklog(): void {
    this.backlog = noBytes
    this.backlogStart = 0
    this.backlogLimit = 0
  }

  protected dropInput(): void {
    this.dropBacklog()
    this.dropHead()
  }

  private receiveContent(buffer: Uint8Array, at: number, limit: number): number {
    const { reader } = this
    const end = reader.read(buffer, at, limit)
    const size = reader.contentLimit - reader.contentStart
    this.contentArrived = true
    this.received += size
    if (reader.fault !== undefined) {
      if (this.current === undefined) this.abandonDrain(reader.fault)
      else this.abandon(this.current, reader.fault, reader.fault.status, false)
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

  private drop(size: number): void {
    this.dropped += size
    if (this.dropped <= this.limits.drainSize || this.receiving === Phase.Ended) return
    this.closeAfter = true
    if (this.current === undefined) this.abandonDrain(undefined)
    else this.drainOver = true
  }

  protected get drains(): boolean {
    return this.receiving === Phase.Content && this.current === undefined
  }

  protected get halfClosed(): boolean {
    return this.receiving === Phase.Tunnel && this.sending === Phase.Ended
  }

  /** The peer ended its direction of the tunnel. */
  protected receiveTunnelEnd(): void {
    this.receiving = advance(this.receiving, Step.End)
    this.deliverEnd()
    this.maybeFinish()
  }

  /** An end that comes without bytes: of the connection. */
  protected deliverEnd(): void {
    this.deliver(noBytes, 0, 0, true)
  }

  consume(exchange: Http1Exchange, byteCount: number): void {
    if (exchange !== this.current || this.discarding) return
    const before = this.unconsumed
    this.unconsumed = before > byteCount ? before - byteCount : 0
    const { receiveWindow } = this.limits
    if (before >= receiveWindow && this.unconsumed < receiveWindow) this.dirty()
  }

  // ── Telling the handler ─────────────────────────────────────────────────────────────────────────

  protected deliverHead(exchange: Http1Exchange, head: Head, end: boolean): void {
    if (exchange.over) return
    try {
      exchange.handler.onHead(head, end)
    } catch (error) {
      this.handlerFailed(exchange, error)
    }
  }

  /** Hands over received content, or the bytes of a tunnel. */
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

  protected handlerFailed(exchange: Http1Exchange, cause: unknown): void {
    if (exchange.over) return
    this.abandon(exchange, new CancelledError(CancelReason.InternalError, 'the handler failed', { cause }), 500, false)
  }

  // ── Sending ─────────────────────────────────────────────────────────────────────────────────────

  sendContent(exchange: Http1Exchange, buffer: Uint8Array, start: number, limit: number, end: boolean): boolean {
    if (!this.admits(exchange, limit - start, end)) return false
    this.writer.write(buffer, start, limit)
    return this.wrote(exchange, end)
  }

  sendOwned(exchange: Http1Exchange, chunk: Uint8Array, end: boolean): boolean {
    if (!this.admits(exchange, chunk.length, end)) return false
    if (chunk.length <= smallChunk) this.writer.write(chunk, 0, chunk.length)
    else this.writer.writeOwned(chunk)
    return this.wrote(exchange, end)
  }

  sendTrailers(exchange: Http1Exchange, fields: Fields): void {
    if (exchange !== this.current) throw new UsageError('trailers after the end')
    if (this.unwanted) return
    if (!allows(this.sending, Step.Trailers)) advance(this.sending, Step.Trailers)
    this.writer.endWithTrailers(fields)
    this.sending = advance(this.sending, Step.Trailers)
    this.endSending(exchange)
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

  private wrote(exchange: Http1Exchange, end: boolean): boolean {
    const writable = this.queue.length < this.limits.sendBuffer
    if (!writable) exchange.blocked = true
    if (!end) {
      this.dirty()
      return writable
    }
    this.sending = advance(this.sending, Step.End)
    if (this.sending === Phase.Waiting) {
      this.endHeld()
    } else {
      this.writer.end()
      this.endSending(exchange)
    }
    return writable
  }

  private endSending(exchange: Http1Exchange): void {
    exchange.endAt = this.queue.queued
    if (this.writer.complete) this.maybeFinish()
    // The peer must see that something is missing: nothing may follow on this connection.
    else this.abandon(exchange, new CancelledError(CancelReason.MessageError, 'content shorter than its content-length'), 0, true)
    this.dirty()
  }

  // ── Ends and time ───────────────────────────────────────────────────────────────────────────────

  cancel(exchange: Http1Exchange, reason: CancelReason): void {
    this.abandon(exchange, new CancelledError(reason), cancelStatus[reason], true)
    this.dirty()
  }

  protected expireBody(): void {
    if (this.current !== undefined) this.abandon(this.current, new TimeoutError('body', 'no content arrived for too long'), 408, false)
  }

  protected expireDrain(): void {
    this.abandonDrain(undefined)
  }

  protected settle(now: Instant): void {
    // The time limit is for a peer that keeps us waiting, not for a handler that keeps the peer waiting.
    if (this.receiving !== Phase.Content || this.current === undefined || this.stage !== Stage.Open || !this.wantsInput) {
      this.bodyDeadline = Infinity
    } else if (this.contentArrived || this.bodyDeadline === Infinity) {
      this.bodyDeadline = now + this.limits.bodyTimeout
    }
    this.contentArrived = false
    this.settleRole(now)
  }
}

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
