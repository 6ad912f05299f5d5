import {
  CancelledError,
  isBodiless,
  PeerError,
  ProtocolError,
  UsageError,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Head,
  type HeddleError,
  type Instant,
} from '../http/index.ts'
import { Connection } from './connection.ts'
import { ExchangeQueue, Http1Exchange, noHandler } from './exchange.ts'
import { serverLimits } from './limits.ts'
import { Framing, requestMessage, type RequestMessage, type UpgradePolicy } from './message.ts'
import type { Http1Options } from './options.ts'
import { requestSyntax } from './request-syntax.ts'
import { checkStatus, responseFields, writeFinalHead, writeInformationalHead, writeRefusal, writeTunnelHead } from './response-head.ts'
import { Stage } from './run-loop.ts'
import { SectionReader } from './section-reader.ts'
import type { RequestLine } from './start-line.ts'
import { advance, allows, Phase, Step } from './state.ts'
import { upgradePolicy, withoutHandshake } from './upgrade.ts'

/**
 * The server's end of an HTTP/1.1 connection. It does one exchange at a time; requests that come
 * behind wait. An exchange whose messages are complete but for bytes that have still to leave makes
 * place for the next, so the answers to pipelined requests leave together.
 */
export class ServerConnection extends Connection {
  private readonly options: Http1Options
  private readonly upgrades: UpgradePolicy
  private readonly secure: boolean
  private readonly heads: SectionReader<RequestLine, RequestMessage>
  /** The request of the current exchange; the one before when there is none. */
  private message: RequestMessage | undefined
  /** A 100 was sent. */
  private continued: boolean
  /** Complete, but not all taken by the driver. */
  private readonly finishing: ExchangeQueue
  /** What `waitDeadline` waits for. */
  private waiting: Waiting

  /** `now` counts as the time of accept. */
  constructor(info: ConnectionInfo, handler: ConnectionHandler, options: Http1Options, now: Instant) {
    super(info, handler, options.limits === undefined ? serverLimits : { ...serverLimits, ...options.limits })
    this.options = options
    this.upgrades = upgradePolicy(options)
    this.secure = info.tls !== undefined
    this.heads = new SectionReader(requestSyntax, this.limits)
    this.message = undefined
    this.continued = false
    this.finishing = new ExchangeQueue()
    this.waiting = Waiting.First
    this.waitDeadline = now + this.limits.headTimeout
  }

  /** A server opens nothing. */
  get openable(): number {
    return 0
  }

  get openExchanges(): number {
    return this.finishing.length + (this.current === undefined ? 0 : 1)
  }

  open(_handler: ExchangeHandler): Exchange | undefined {
    return undefined
  }

  // ── Receiving ───────────────────────────────────────────────────────────────────────────────────

  protected get mayReceiveHead(): boolean {
    // A client that sends requests and reads no answers waits until it does.
    return this.current === undefined && this.queue.length < this.limits.sendBuffer
  }

  protected receiveHead(buffer: Uint8Array, at: number, limit: number): number {
    const { heads } = this
    const end = heads.read(buffer, at, limit)
    if (heads.fault !== undefined) {
      this.refuse(heads.fault)
      return limit
    }
    const { line, section, whole } = heads
    if (line === undefined || section === undefined) return end
    let message = whole?.message
    if (message === undefined || message.line !== line || message.secure !== this.secure) {
      const made = requestMessage(line, section, this.secure, this.upgrades)
      if (made instanceof ProtocolError) {
        this.refuse(made)
        return limit
      }
      message = made
      // What an Upgrade comes to is this connection's policy.
      if (whole !== undefined && section.upgrade === '') whole.message = message
    }
    heads.next()
    if (message.length > this.limits.maxContentLength) this.refuse(tooLarge())
    else this.begin(message)
    return end
  }

  private begin(message: RequestMessage): void {
    const { framing } = message
    const exchange = new Http1Exchange(this, this.info, noHandler)
    exchange.startAt = this.queue.queued
    this.current = exchange
    this.message = message
    this.waiting = Waiting.None
    this.waitDeadline = Infinity
    this.continued = false
    this.discarding = false
    this.dropped = 0
    this.received = 0
    this.unconsumed = 0
    if (!message.keepAlive || this.draining) this.closeAfter = true
    if (framing === Framing.None) {
      this.receiving = advance(this.receiving, Step.HeadOnly)
    } else if (framing === Framing.Tunnel) {
      this.receiving = advance(this.receiving, Step.Ask)
    } else {
      this.receiving = advance(this.receiving, Step.Head)
      this.reader.start(framing, message.length)
    }
    try {
      exchange.handler = this.handler.onExchange(exchange)
    } catch (error) {
      this.handlerFailed(exchange, error)
    }
    this.deliverHead(exchange, message.head, framing === Framing.None)
  }

  protected dropHead(): void {
    this.heads.drop()
  }

  protected receiveBehind(buffer: Uint8Array, at: number, limit: number): void {
    this.keep(buffer, at, limit)
  }

  protected takeEnd(): void {
    const exchange = this.current
    if (this.backlogLength > 0 && (exchange === undefined || (this.options.halfOpen === true && this.receiving === Phase.Ended))) {
      // Requests wait that were complete, perhaps, before the end: `resume` comes to the end behind them.
    } else if (exchange === undefined) {
      // Between requests, in a head, or in content that is drained: nobody is left to tell.
      this.close(undefined)
    } else if (this.receiving === Phase.Tunnel) {
      this.receiveTunnelEnd()
    } else if (this.receiving === Phase.Content) {
      this.goneAway(exchange, new PeerError('MESSAGE_TRUNCATED', 'the client closed the connection within the request'))
    } else if (this.options.halfOpen === true) {
      this.closeAfter = true
    } else {
      this.goneAway(exchange, new PeerError('PEER_CLOSED', 'the client closed the connection before the response was sent'))
    }
  }

  protected override resume(): boolean {
    const resumed = super.resume()
    if (resumed && this.peerEnded && this.backlogLength === 0 && this.stage === Stage.Open) this.takeEnd()
    return resumed
  }

  private goneAway(exchange: Http1Exchange, error: HeddleError): void {
    this.current = undefined
    this.conclude(exchange, error, false)
    this.close(undefined)
  }

  protected contentTooLarge(): void {
    const fault = tooLarge()
    if (this.current === undefined) this.abandonDrain(fault)
    else this.abandon(this.current, fault, fault.status, false)
  }

  discard(exchange: Http1Exchange): void {
    if (exchange !== this.current || this.discarding || this.receiving === Phase.Ended) return
    this.discarding = true
    this.unconsumed = 0
    if (this.receiving === Phase.Content) {
      if (this.limits.drainSize === 0 || this.reader.remaining > this.limits.drainSize) this.drainOver = this.closeAfter = true
      this.maybeFinish()
    }
    this.dirty()
  }

  // ── Sending ─────────────────────────────────────────────────────────────────────────────────────

  sendHead(exchange: Http1Exchange, head: Head, end: boolean): void {
    if (exchange !== this.current) throw new UsageError('head after the end')
    const { status } = head
    checkStatus(status)
    if (status < 200) {
      this.sendInformational(head, end)
      this.dirty()
      return
    }
    if (!allows(this.sending, Step.Head)) advance(this.sending, Step.Head)
    const opens = this.receiving === Phase.Waiting && status < 300 && !this.ignoresUpgrade(exchange)
    if (opens) this.openTunnel(exchange, head, end)
    else this.sendFinal(exchange, head, end)
    this.dirty()
  }

  private sendInformational(head: Head, end: boolean): void {
    if (end || head.status === 101) throw new UsageError(`status ${head.status} cannot be sent like this`)
    this.sending = advance(this.sending, Step.Informational)
    // RFC 9110 §15.2: never to an HTTP/1.0 client.
    if ((this.message as RequestMessage).line.minor === 0) return
    writeInformationalHead(this.queue, head)
    if (head.status === 100) this.continued = true
  }

  private sendFinal(exchange: Http1Exchange, head: Head, end: boolean): void {
    const { line, expectContinue } = this.message as RequestMessage
    const refusesTunnel = this.receiving === Phase.Waiting
    const close =
      this.closeAfter ||
      // RFC 9110 §10.1.1: the client may now leave the content out, or send it; only closing is clear.
      (expectContinue && !this.continued && this.received === 0 && this.receiving === Phase.Content) ||
      // What follows a CONNECT may be meant for the tunnel: it must not be taken for a request.
      (refusesTunnel && line.method === 'CONNECT')
    const bodiless = line.method === 'HEAD' || isBodiless(head.status)
    const framing = writeFinalHead(this.queue, head, line.minor, bodiless, end, close, this.date)
    this.closeAfter = close || responseFields.close || framing === Framing.Close
    if (refusesTunnel) this.receiving = advance(this.receiving, Step.Refuse)
    this.writer.start(framing, framing === Framing.Length ? responseFields.contentLength : 0)
    this.sending = advance(this.sending, end ? Step.HeadOnly : Step.Head)
    if (!end) return
    exchange.endAt = this.queue.queued
    this.maybeFinish()
  }

  /** RFC 9110 §7.8: a server may; a CONNECT it can only refuse. */
  private ignoresUpgrade(exchange: Http1Exchange): boolean {
    return exchange.mayIgnoreUpgrade && (this.message as RequestMessage).head.protocol !== ''
  }

  private openTunnel(exchange: Http1Exchange, head: Head, end: boolean): void {
    const { head: asked, websocketKey } = this.message as RequestMessage
    const accept = websocketKey !== '' && this.options.websocketAccept !== undefined ? this.options.websocketAccept(websocketKey) : ''
    // Of this hop there is one; who hands on what another server sent may bring that one's.
    const fields = withoutHandshake(head.fields, 'sec-websocket-accept')
    writeTunnelHead(this.queue, head.status, fields, asked.protocol, accept, this.date)
    this.sending = advance(this.sending, Step.Open)
    this.receiving = advance(this.receiving, Step.Open)
    this.reader.start(Framing.Tunnel, 0)
    this.writer.start(Framing.Tunnel, 0)
    this.closeAfter = true
    if (!end) return
    this.sending = advance(this.sending, Step.End)
    exchange.endAt = this.queue.queued
  }

  protected get unwanted(): boolean {
    return false
  }

  /** Only a client sends into a tunnel before it is open. */
  protected endHeld(): void {}

  private get date(): string {
    return this.options.date === undefined ? '' : this.options.date.httpDate()
  }

  // ── Ends ────────────────────────────────────────────────────────────────────────────────────────

  protected maybeFinish(): void {
    const exchange = this.current
    if (exchange === undefined) {
      // Drained content of an exchange that is over has come to its end.
      if (this.receiving !== Phase.Ended) return
      this.receiving = advance(this.receiving, Step.Next)
      this.drainDeadline = Infinity
      return
    }
    if (this.sending !== Phase.Ended) return
    const complete = this.receiving === Phase.Ended
    if (!complete && !(this.receiving === Phase.Content && (this.discarding || this.isWithheld))) return
    this.current = undefined
    this.finishing.push(exchange)
    if (this.closeAfter) {
      // Both directions of a tunnel have ended; otherwise the client may still be sending.
      if (this.writer.framing === Framing.Tunnel) this.close(undefined)
      else this.linger()
      return
    }
    this.sending = advance(this.sending, Step.Next)
    if (complete) this.receiving = advance(this.receiving, Step.Next)
    // The rest of the request is read and thrown away, in the hope that the connection can be kept.
    else this.discarding = true
  }

  /** The client waits for a 100 that will not come any more. */
  private get isWithheld(): boolean {
    return (this.message as RequestMessage).expectContinue && !this.continued && this.received === 0
  }

  protected abandonDrain(_error: HeddleError | undefined): void {
    this.linger()
  }

  protected reportSent(): void {
    let exchange = this.finishing.first
    while (exchange !== undefined) {
      this.report(exchange, exchange.endAt)
      if (exchange.endAt > this.queue.taken || exchange !== this.finishing.first) return
      this.finishing.shift()
      exchange.over = true
      this.tellOver(exchange, undefined)
      exchange = this.finishing.first
    }
    if (this.current !== undefined && (this.current.unsent > 0 || this.current.blocked)) this.report(this.current, this.queue.queued)
  }

  /** Answers a request that never became an exchange, and closes. */
  private refuse(fault: ProtocolError): void {
    writeRefusal(this.queue, fault.status === 0 ? 400 : fault.status, `${fault.message}\n`, this.date)
    this.linger()
  }

  protected abandon(exchange: Http1Exchange, error: HeddleError, status: number, local: boolean): void {
    if (exchange !== this.current) {
      // All of it is queued; the only way to take it back is to drop the connection.
      this.failAll(error, local)
      this.reset(error)
      return
    }
    this.current = undefined
    this.conclude(exchange, error, local)
    if (this.sending === Phase.Head && status !== 0) {
      // What the client did wrong it is told, as in `refuse`; what failed here is nobody else's business.
      const silent = local || error instanceof CancelledError || this.message?.line.method === 'HEAD'
      writeRefusal(this.queue, status, silent ? '' : `${error.message}\n`, this.date)
      this.linger()
    } else if (this.finishing.length > 0 && this.writer.framing !== Framing.Close) {
      // Answers in front of it are complete and shall arrive; this one is seen to be cut off.
      this.close(undefined)
    } else {
      this.failAll(error, local)
      this.reset(undefined)
    }
  }

  protected failAll(error: HeddleError, local: boolean): void {
    for (let exchange = this.finishing.shift(); exchange !== undefined; exchange = this.finishing.shift())
      this.conclude(exchange, error, local)
    if (this.current !== undefined) this.conclude(this.current, error, local)
    this.current = undefined
  }

  protected startShutdown(): void {
    this.closeAfter = true
    this.closeIfDrained()
  }

  /** RFC 9112 §9.6: after `shutdown`, nothing is left to answer. */
  private closeIfDrained(): void {
    if (this.openExchanges === 0 && this.receiving === Phase.Head && !this.heads.started && this.backlogLength === 0) this.close(undefined)
  }

  // ── Time ────────────────────────────────────────────────────────────────────────────────────────

  protected settleRole(now: Instant): void {
    if (this.stage !== Stage.Open) return
    // The response in flight at `shutdown` has left, or the content behind it has been drained.
    if (this.draining) this.closeIfDrained()
    const waiting =
      this.current !== undefined || this.receiving !== Phase.Head
        ? Waiting.None
        : this.heads.started
          ? Waiting.Head
          : this.finishing.length > 0
            ? Waiting.None
            : Waiting.Idle
    // From accept to the first head counts as one wait.
    if (waiting === this.waiting || (this.waiting === Waiting.First && waiting !== Waiting.None)) return
    this.waiting = waiting
    if (waiting === Waiting.None) this.waitDeadline = Infinity
    else this.waitDeadline = now + (waiting === Waiting.Head ? this.limits.headTimeout : this.limits.idleTimeout)
  }

  protected expireWait(): void {
    if (this.heads.started) this.refuse(new ProtocolError('the request head took too long', 408))
    else this.close(undefined)
  }
}

/** What a server's connection waits for between exchanges. */
const Waiting = { First: 0, None: 1, Head: 2, Idle: 3 } as const
type Waiting = (typeof Waiting)[keyof typeof Waiting]

function tooLarge(): ProtocolError {
  return new ProtocolError('content too large', 413, 'CONTENT_TOO_LARGE')
}
