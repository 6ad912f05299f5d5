import {
  isFieldValue,
  PeerError,
  ProtocolError,
  responseHead,
  TimeoutError,
  UsageError,
  withoutField,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Head,
  type HeddleError,
  type Instant,
} from '../http/index.ts'
import { isHarmless, unprocessed } from './client-errors.ts'
import { ClientRequest } from './client-request.ts'
import { DrainNotice, Waiting } from './client-waits.ts'
import { Connection } from './connection.ts'
import { Http1Exchange } from './exchange.ts'
import { idleTimeoutFor } from './keep-alive.ts'
import { clientLimits } from './limits.ts'
import { Framing, responseFraming, responseMessage, type ResponseMessage } from './message.ts'
import type { Http1Options } from './options.ts'
import { requestFields, writeRequestHead } from './request-head.ts'
import { responseSyntax } from './request-syntax.ts'
import { Stage } from './run-loop.ts'
import { SectionReader } from './section-reader.ts'
import type { StatusLine } from './start-line.ts'
import { advance, allows, Phase, Step } from './state.ts'
import { handshakeKey, switchProblem, withoutHandshake } from './upgrade.ts'

/**
 * The client's end of an HTTP/1.1 connection. It carries one exchange at a time; what is left of an
 * unwanted response is read and thrown away behind it, so that the connection can carry another.
 */
export class ClientConnection extends Connection {
  private readonly options: Http1Options
  private readonly heads: SectionReader<StatusLine, ResponseMessage>
  private request: ClientRequest
  private toldDraining: boolean
  /** `openable` as the owner knows it. */
  private toldOpenable: number
  private idleTimeout: number
  private waiting: Waiting
  private drainNotice: DrainNotice
  /** What `drainNotice` tells; `dropped` may count for the next response by then. */
  private drainedSize: number

  constructor(info: ConnectionInfo, handler: ConnectionHandler, options: Http1Options, _now: Instant) {
    super(info, handler, options.limits === undefined ? clientLimits : { ...clientLimits, ...options.limits })
    // Whatever goes into a head is checked; this here once.
    if (!isFieldValue(options.proxyAuthorization ?? '')) throw new UsageError('invalid proxyAuthorization')
    this.options = options
    this.heads = new SectionReader(responseSyntax, this.limits)
    this.request = new ClientRequest()
    this.toldDraining = false
    this.toldOpenable = 1
    this.idleTimeout = this.limits.idleTimeout
    this.waiting = Waiting.None
    this.drainNotice = DrainNotice.None
    this.drainedSize = 0
  }

  get openable(): number {
    return this.stage === Stage.Open && !this.draining && this.current === undefined && this.receiving === Phase.Head ? 1 : 0
  }

  get openExchanges(): number {
    return this.current === undefined ? 0 : 1
  }

  open(handler: ExchangeHandler): Exchange | undefined {
    if (this.openable === 0) return undefined
    const exchange = new Http1Exchange(this, this.info, handler)
    exchange.startAt = this.queue.queued
    this.current = exchange
    // RFC 9112 §6.3: what comes behind a response is no answer to anything. It may have arrived with
    // it, in the same TLS record or not, and is seen before a request that leaves a turn later.
    if (this.inputTurn) this.postponed = true
    this.toldOpenable = 0
    this.request = new ClientRequest()
    this.discarding = false
    this.drainOver = false
    this.dropped = 0
    this.received = 0
    this.unconsumed = 0
    return exchange
  }

  // ── Sending ─────────────────────────────────────────────────────────────────────────────────────

  sendHead(exchange: Http1Exchange, head: Head, end: boolean): void {
    if (exchange !== this.current) throw new UsageError('head after the end')
    if (head.status !== 0) throw new UsageError('a client sends request heads')
    if (!allows(this.sending, Step.Head)) advance(this.sending, Step.Head)
    const tunnel = head.method === 'CONNECT'
    if (tunnel && end) throw new UsageError('CONNECT opens a tunnel: it cannot end with its head')
    const key = handshakeKey(head, this.options)
    const { absoluteForm = false, proxyAuthorization = '' } = this.options
    const framing = writeRequestHead(this.queue, head, end, this.closeAfter, absoluteForm, key, proxyAuthorization)
    if (requestFields.close) this.closeAfter = true
    const { request } = this
    request.method = head.method
    request.protocol = head.protocol
    request.websocketKey = key
    this.writer.start(framing, framing === Framing.Length ? requestFields.contentLength : 0)
    this.sending = advance(this.sending, tunnel ? Step.Ask : end ? Step.HeadOnly : Step.Head)
    exchange.endAt = this.queue.queued
    request.awaitsContinue = !end && !tunnel && requestFields.expectContinue
    // RFC 9110 §10.1.1, RFC 9110 §9.3.6: content waits for the server's word.
    if (request.awaitsContinue || tunnel) this.queue.holdAt = this.queue.queued
    this.dirty()
  }

  protected get unwanted(): boolean {
    return this.request.refused
  }

  protected endHeld(): void {
    this.request.endsOnOpen = true
  }

  protected contentTooLarge(): void {
    this.refuseResponse(new ProtocolError('content too large', 0, 'CONTENT_TOO_LARGE'))
  }

  private releaseContent(): void {
    this.request.awaitsContinue = false
    this.queue.holdAt = Infinity
  }

  /** The server will not read the rest of the request: what waits is dropped, and what follows too. */
  private refuseContent(): void {
    if (this.sending === Phase.Ended && this.queue.length === 0) return
    this.request.refused = true
    if (this.current !== undefined) {
      this.current.unsent = 0
      this.current.blocked = false
    }
    this.queue.clear()
    this.releaseContent()
    this.sending = Phase.Ended
    this.closeAfter = true
  }

  protected reportSent(): void {
    const exchange = this.current
    if (exchange === undefined) return
    if (exchange.unsent > 0 || exchange.blocked) this.report(exchange, this.queue.queued)
    this.maybeFinish()
  }

  // ── Receiving ───────────────────────────────────────────────────────────────────────────────────

  /** True once a byte of the current request was handed to the driver. */
  private get begun(): boolean {
    return this.current !== undefined && this.queue.taken > this.current.startAt
  }

  protected get mayReceiveHead(): boolean {
    return true
  }

  protected receiveHead(buffer: Uint8Array, at: number, limit: number): number {
    if (!this.begun) {
      this.receiveUnasked()
      return limit
    }
    const { heads } = this
    const end = heads.read(buffer, at, limit)
    if (heads.fault !== undefined) {
      this.refuseResponse(heads.fault)
      return limit
    }
    const { line, section, whole } = heads
    if (line === undefined || section === undefined) return end
    let message = whole?.message
    if (message === undefined || message.line !== line) {
      const made = responseMessage(line, section)
      if (made instanceof ProtocolError) {
        this.refuseResponse(made)
        return limit
      }
      message = made
      if (whole !== undefined) whole.message = message
    }
    heads.next()
    const exchange = this.current as Http1Exchange
    if (line.status === 101) this.receiveSwitch(exchange, message)
    else if (line.status < 200) this.receiveInformational(exchange, message.head)
    else this.receiveFinal(exchange, message)
    return end
  }

  /** RFC 9112 §9.3: bytes that answer nothing. Whoever would take them for the next answer could be fed a forged one. */
  private receiveUnasked(): void {
    const exchange = this.current
    this.current = undefined
    if (exchange !== undefined) {
      this.conclude(exchange, new PeerError('PEER_CLOSED', 'the server spoke before it was asked', { unprocessed: true }), false)
    }
    this.reset(new ProtocolError('bytes from the server that nothing asked for', 0))
  }

  private receiveInformational(exchange: Http1Exchange, head: Head): void {
    if (++this.request.informational > this.limits.maxInformational) {
      this.refuseResponse(new ProtocolError('too many 1xx responses', 0))
      return
    }
    if (head.status === 100 && this.request.awaitsContinue) this.releaseContent()
    this.deliverHead(exchange, head, false)
  }

  private receiveSwitch(exchange: Http1Exchange, message: ResponseMessage): void {
    const { section } = message
    const problem = switchProblem(section, this.request.protocol, this.request.websocketKey, this.options)
    if (problem !== '') {
      this.refuseResponse(new ProtocolError(problem, 0))
      return
    }
    this.openTunnel(exchange, responseHead(200, withoutHandshake(section.fields, 'sec-websocket-accept')))
  }

  private openTunnel(exchange: Http1Exchange, head: Head): void {
    this.receiving = advance(this.receiving, Step.Open)
    this.reader.start(Framing.Tunnel, 0)
    this.sending = advance(this.sending, Step.Open)
    this.releaseContent()
    this.closeAfter = true
    if (this.request.endsOnOpen) {
      this.sending = advance(this.sending, Step.End)
      exchange.endAt = this.queue.queued
    }
    this.deliverHead(exchange, head, false)
  }

  private receiveFinal(exchange: Http1Exchange, message: ResponseMessage): void {
    const { status } = message.line
    if (this.sending === Phase.Waiting) {
      if (status < 300 && this.request.protocol === '') {
        // RFC 9112 §6.3: a length or coding in it means nothing.
        this.openTunnel(exchange, responseHead(status, withoutField(message.head.fields, 'content-length')))
        return
      }
      // On every version a 2xx opens the tunnel: who is not ready for another cannot be given this one.
      if (status < 300 && !exchange.mayIgnoreUpgrade) {
        this.refuseResponse(new ProtocolError(`the server answered ${status} instead of switching to ${this.request.protocol}`, 0))
        return
      }
      exchange.upgradeIgnored = status < 300
      const { closeAfter } = this
      this.refuseContent()
      // The request was complete: nothing but what was meant for the tunnel is dropped.
      this.closeAfter = closeAfter
    }
    if (!message.keepAlive) this.noteClose()
    // RFC 9110 §10.1.1: a final status before 100: the content is not sent. RFC 9112 §9.5: nor the rest
    // of it after an error that closes the connection.
    if (this.request.awaitsContinue || (status >= 400 && !message.keepAlive)) this.refuseContent()
    this.idleTimeout = idleTimeoutFor(message.section.keepAlive, this.limits.idleTimeout)
    const framing = responseFraming(message, this.request.method === 'HEAD')
    this.reader.start(framing, message.section.contentLength)
    this.receiving = advance(this.receiving, framing === Framing.None ? Step.HeadOnly : Step.Head)
    this.deliverHead(exchange, message.head, framing === Framing.None)
    if (this.discarding) this.judgeDrain()
    this.maybeFinish()
  }

  private noteClose(): void {
    this.closeAfter = true
    if (this.toldDraining) return
    this.toldDraining = true
    try {
      this.handler.onDraining()
    } catch {
      // It only tells what will be seen anyway: the connection closes.
    }
  }

  protected dropHead(): void {
    this.heads.drop()
  }

  protected receiveBehind(_buffer: Uint8Array, _at: number, _limit: number): void {
    if (this.receiving !== Phase.Ended) return
    // More than the response: the connection cannot be trusted with another request.
    this.closeAfter = true
  }

  protected takeEnd(): void {
    const exchange = this.current
    if (exchange === undefined) {
      if (this.receiving === Phase.Content) this.abandonDrain(undefined)
      else this.close(undefined)
    } else if (this.receiving === Phase.Tunnel) {
      this.receiveTunnelEnd()
    } else if (this.receiving === Phase.Content && this.reader.framing === Framing.Close) {
      this.receiving = advance(this.receiving, Step.End)
      this.closeAfter = true
      this.deliverEnd()
      this.refuseContent()
      this.maybeFinish()
    } else if (this.receiving === Phase.Ended) {
      this.refuseContent()
      this.maybeFinish()
    } else {
      this.endBy(exchange, this.closedError())
    }
  }

  private closedError(): HeddleError {
    if (!this.begun)
      return new PeerError('PEER_CLOSED', 'the server closed the connection before the request was sent', { unprocessed: true })
    if (this.receiving === Phase.Head && !this.heads.started && this.request.informational === 0) {
      return new PeerError('PEER_CLOSED', 'the server closed the connection without an answer')
    }
    return new PeerError('MESSAGE_TRUNCATED', 'the server closed the connection within the response')
  }

  private endBy(exchange: Http1Exchange, error: HeddleError): void {
    this.current = undefined
    this.conclude(exchange, error, false)
    this.queue.clear()
    this.close(undefined)
  }

  // ── Discard and drain ───────────────────────────────────────────────────────────────────────────

  discard(exchange: Http1Exchange): void {
    if (exchange !== this.current || this.discarding || this.receiving === Phase.Ended) return
    this.discarding = true
    this.unconsumed = 0
    if (this.receiving === Phase.Content) this.judgeDrain()
    this.maybeFinish()
    this.dirty()
  }

  /** Is the rest of the response worth reading? */
  private judgeDrain(): void {
    const { drainSize } = this.limits
    if (this.receiving !== Phase.Content) return
    if (this.closeAfter || drainSize === 0 || this.reader.framing === Framing.Close || this.reader.remaining > drainSize) {
      this.closeAfter = true
      this.drainOver = true
    }
  }

  protected abandonDrain(error: HeddleError | undefined): void {
    this.noteDrain(DrainNotice.GivenUp)
    this.reset(error)
  }

  // ── Ends ────────────────────────────────────────────────────────────────────────────────────────

  protected maybeFinish(): void {
    const exchange = this.current
    if (exchange === undefined) {
      if (this.receiving === Phase.Ended && this.stage === Stage.Open) this.finishDrain()
      return
    }
    // RFC 9112 §9.6: after a response that closes, nothing more is read of the request.
    if (this.receiving === Phase.Ended && this.toldDraining && this.writer.framing !== Framing.Tunnel) this.refuseContent()
    if (this.sending !== Phase.Ended || this.queue.length > 0) return
    if (this.receiving === Phase.Ended) this.finish(exchange)
    else if (this.receiving === Phase.Content && this.discarding) this.drainBehind(exchange, undefined)
  }

  private finish(exchange: Http1Exchange): void {
    this.current = undefined
    this.conclude(exchange, undefined, false)
    if (this.closeAfter) {
      this.close(undefined)
      return
    }
    this.sending = advance(this.sending, Step.Next)
    this.receiving = advance(this.receiving, Step.Next)
  }

  /** The exchange is over; the rest of its response is read behind it, or costs the connection. */
  private drainBehind(exchange: Http1Exchange, error: HeddleError | undefined): void {
    this.current = undefined
    this.conclude(exchange, error, true)
    this.sending = advance(this.sending, Step.Next)
    if (this.drainOver) this.abandonDrain(undefined)
  }

  private finishDrain(): void {
    this.receiving = advance(this.receiving, Step.Next)
    this.drainDeadline = Infinity
    this.noteDrain(DrainNotice.Completed)
    if (this.closeAfter) this.close(undefined)
  }

  private noteDrain(notice: DrainNotice): void {
    this.drainNotice = notice
    this.drainedSize = this.dropped
  }

  private refuseResponse(error: HeddleError): void {
    const exchange = this.current
    if (exchange !== undefined) this.abandon(exchange, error, 0, false)
  }

  protected abandon(exchange: Http1Exchange, error: HeddleError, _status: number, local: boolean): void {
    if (exchange !== this.current) return
    if (!this.begun) {
      // Nothing of it has left: the connection is as good as before.
      this.current = undefined
      this.conclude(exchange, unprocessed(error), local)
      this.queue.clear()
      this.releaseContent()
      this.sending = Phase.Head
      if (this.closeAfter) this.close(undefined)
      return
    }
    if (this.receiving === Phase.Content && this.sending === Phase.Ended && this.queue.length === 0 && isHarmless(error)) {
      this.discarding = true
      this.unconsumed = 0
      this.judgeDrain()
      this.drainBehind(exchange, error)
      return
    }
    this.current = undefined
    this.conclude(exchange, error, local)
    this.reset(error instanceof ProtocolError ? error : undefined)
  }

  protected failAll(error: HeddleError, local: boolean): void {
    const exchange = this.current
    if (exchange === undefined) {
      if (this.receiving === Phase.Content) this.noteDrain(DrainNotice.GivenUp)
      return
    }
    const told = this.begun || local ? error : unprocessed(error)
    this.current = undefined
    this.conclude(exchange, told, local)
  }

  protected startShutdown(): void {
    this.closeAfter = true
    if (this.current !== undefined) return
    if (this.receiving === Phase.Content) this.abandonDrain(undefined)
    else this.close(undefined)
  }

  // ── Time, and what the owner is told ────────────────────────────────────────────────────────────

  protected settleRole(now: Instant): void {
    if (this.drainNotice !== DrainNotice.None && this.toldOvers) {
      const completed = this.drainNotice === DrainNotice.Completed
      this.drainNotice = DrainNotice.None
      try {
        this.handler.onDrained(this.drainedSize, completed)
      } catch {
        // It is a report: nothing depends on it.
      }
    }
    if (this.toldOpenable === 0 && this.openable === 1 && this.toldOvers) {
      this.toldOpenable = 1
      try {
        this.handler.onCapacity(1)
      } catch {
        // The slot stays free; `openable` tells it too.
      }
    }
    const waiting = this.stage === Stage.Open ? this.awaited : Waiting.None
    if (waiting === this.waiting) return
    this.waiting = waiting
    if (waiting === Waiting.Response) this.waitDeadline = now + this.limits.responseTimeout
    else if (waiting === Waiting.Continue) this.waitDeadline = now + this.limits.continueTimeout
    else if (waiting === Waiting.Idle) this.waitDeadline = now + this.idleTimeout
    else this.waitDeadline = Infinity
  }

  private get awaited(): Waiting {
    if (this.receiving !== Phase.Head) return Waiting.None
    if (this.current === undefined) return Waiting.Idle
    if (this.queue.ready || !this.begun) return Waiting.None
    if (this.request.awaitsContinue) return Waiting.Continue
    return this.sending === Phase.Ended || this.sending === Phase.Waiting ? Waiting.Response : Waiting.None
  }

  protected expireWait(): void {
    const exchange = this.current
    if (exchange === undefined) {
      this.close(undefined)
    } else if (this.request.awaitsContinue) {
      // RFC 9110 §10.1.1: not for an indefinite period; the server may not know the expectation.
      this.releaseContent()
    } else {
      this.abandon(exchange, new TimeoutError('head', 'no response came in time'), 0, false)
    }
  }
}
