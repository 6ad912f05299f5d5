import type { Linked } from '../bytes/index.ts'
import type { ClientExchangeHandler, Ticket } from '../client/index.ts'
import {
  CancelledError,
  CancelReason,
  fieldValue,
  HeddleError,
  PeerError,
  ProtocolError,
  requestHead,
  TimeoutError,
  UsageError,
  type Exchange,
  type Head,
} from '../http/index.ts'
import { Alarm } from '../io/index.ts'
import { unwatchAbort, watchAbort, type Abortable } from '../web/index.ts'
import { CloseCode, readAnswer, type Agreement } from '../ws/index.ts'
import { answerTextOf, type AnswerText } from './answer-text.ts'
import type { Handshake } from './connect-options.ts'
import { HandshakeError, unexpectedStatus } from './handshake-error.ts'
import type { Closed } from './socket-handler.ts'
import { Socket } from './socket.ts'
import { labelOf } from './url.ts'

/** ms that the text of an answer may take behind its head: most come with it. */
const textTime = 100

/** Who wants the socket. */
export interface OpeningOwner {
  /** Here it is; messages follow in the same turn, perhaps. */
  onOpened(socket: Socket): void
  /** There will be none. Never called from inside `start` or `fail`. */
  onFailed(error: unknown): void
  /** The socket that was there is over. */
  onOver(closed: Closed): void
}

/**
 * A WebSocket on its way: from the pool's exchange, by the handshake, to the socket; or to the error that
 * says what happened, where, and what was expected. It stays the pool's handler until the socket is over.
 *
 *     start ──▶ waiting ──connection──▶ asking ──2xx──▶ open ──▶ over
 *                  │                      │
 *                  └──── error, abort, time ────▶ failed
 */
export class Opening implements ClientExchangeHandler, Abortable {
  previous: Linked | undefined
  next: Linked | undefined
  readonly #handshake: Handshake
  readonly #owner: OpeningOwner
  readonly #alarm: Alarm | undefined
  #ticket: Ticket | undefined
  #exchange: Exchange | undefined
  #socket: Socket | undefined
  #watching: boolean
  /** An answer that opens nothing, and its text, which is waited for until the alarm. */
  #refusal: Head | undefined
  #text: AnswerText | undefined
  #textAlarm: Alarm | undefined
  /** The owner knows how it went. */
  #settled: boolean
  #failed: boolean
  #reason: unknown

  constructor(handshake: Handshake, owner: OpeningOwner) {
    this.previous = undefined
    this.next = undefined
    this.#handshake = handshake
    this.#owner = owner
    this.#alarm = handshake.timeout === Infinity ? undefined : new Alarm(() => this.#expire())
    this.#ticket = undefined
    this.#exchange = undefined
    this.#socket = undefined
    this.#watching = false
    this.#refusal = undefined
    this.#text = undefined
    this.#textAlarm = undefined
    this.#settled = false
    this.#failed = false
    this.#reason = undefined
  }

  /** Begins. Throws UsageError if the client is closed. */
  start(): void {
    const { client, target, signal, timeout } = this.#handshake
    const { clock } = client
    if (signal?.aborted === true) {
      this.#failed = true
      this.#reason = signal.reason
      clock.soon(() => this.#settle())
      return
    }
    // How long a request may take says nothing of how long a WebSocket may live.
    this.#ticket = client.exchange(`${target.scheme}://${target.authority}`, this, { tunnel: true, totalTimeout: Infinity })
    if (this.#alarm !== undefined) clock.set(this.#alarm, clock.now() + timeout)
    if (signal === undefined) return
    this.#watching = true
    watchAbort(signal, this)
  }

  /** The owner does not want it any more: it is told `reason`, in a later turn. */
  fail(reason: unknown, how: CancelReason = CancelReason.Cancelled): void {
    if (this.#failed || this.#settled) return
    this.#failed = true
    this.#reason = reason
    this.#ticket?.cancel(how)
  }

  onAbort(): void {
    this.#watching = false
    this.fail(this.#handshake.signal?.reason)
  }

  #expire(): void {
    if (this.#refusal !== undefined) return this.#refuseSoFar()
    const what = this.#exchange === undefined ? 'no connection was to be had' : 'the server gave no answer'
    const message = `${this.#label}: ${what} within ${this.#handshake.timeout} ms`
    this.fail(new TimeoutError(this.#exchange === undefined ? 'queue' : 'head', message), CancelReason.Timeout)
  }

  /** Where it goes, without what may be secret. */
  get #label(): string {
    return labelOf(this.#handshake.target.href)
  }

  // ── What the pool and the exchange tell ─────────────────────────────────────────────────────────

  /** Nothing but the handshake was sent, and that can be sent again. */
  get replayable(): boolean {
    return !this.#failed && !this.#settled
  }

  onOpen(exchange: Exchange): void {
    const { scheme, authority, path } = this.#handshake.target
    this.#exchange = exchange
    // RFC 9110 §7.8: such an answer is told with its status, in place of an error of the protocol.
    exchange.ignoreUpgrade?.()
    try {
      exchange.sendHead(requestHead('CONNECT', scheme, authority, path, this.#handshake.fields, 'websocket'), false)
    } catch (cause) {
      this.#failed = true
      this.#reason = this.#explained(cause)
      throw cause
    }
  }

  onMove(): void {
    this.#exchange = undefined
  }

  onHead(head: Head, end: boolean): void {
    const { status, fields } = head
    const exchange = this.#exchange
    if (exchange === undefined || this.#failed || status < 200) return
    if (status >= 300 || exchange.upgradeIgnored === true) {
      return this.#hear(head, end)
    }
    if (end) return this.#refuse(head, 'the server closed the WebSocket as it opened it, without a Close')
    const { offer } = this.#handshake
    const agreement = readAnswer(fields, offer)
    if (agreement instanceof ProtocolError) return this.#refuse(head, agreement.message, agreement)
    // Fetch, establish a WebSocket connection: a server that speaks none of the subprotocols will not do.
    if (offer.protocols !== undefined && offer.protocols.length > 0 && agreement.protocol === '') {
      return this.#refuse(head, `the server chose none of the subprotocols ${offer.protocols.join(', ')}`)
    }
    this.#open(exchange, agreement)
  }

  /** An ordinary answer. What it says is part of the error, if it comes with it or soon after. */
  #hear(head: Head, end: boolean): void {
    this.#refusal = head
    this.#text = end ? undefined : answerTextOf(head.fields)
    if (this.#text === undefined) return this.#refuseSoFar()
    const { clock } = this.#handshake.client
    this.#textAlarm = new Alarm(() => this.#refuseSoFar())
    clock.set(this.#textAlarm, clock.now() + textTime)
  }

  /** Tells of the answer, with what has come of its text. */
  #refuseSoFar(): void {
    this.fail(this.#refused(this.#refusal as Head))
  }

  #refused({ status, fields }: Head): HandshakeError {
    const what = unexpectedStatus(status, (this.#exchange as Exchange).protocol, fieldValue(fields, 'location'))
    return new HandshakeError(this.#label, status, fields, what, undefined, this.#text?.text)
  }

  #refuse({ status, fields }: Head, what: string, cause?: unknown): void {
    // Over HTTP/1.1 what opens a tunnel is a 101, whatever its head says here.
    const isSwitch = this.#exchange?.protocol === 'h1'
    this.fail(new HandshakeError(this.#label, isSwitch ? 101 : status, fields, what, cause))
  }

  #open(exchange: Exchange, agreement: Agreement): void {
    const socket = new Socket(exchange, this.#handshake.socketOptions(agreement))
    this.#socket = socket
    this.#release()
    this.#settled = true
    void socket.closed.then((closed) => this.#over(closed))
    this.#owner.onOpened(socket)
  }

  #over(closed: Closed): void {
    this.#ticket?.handedBack(closed.error)
    this.#owner.onOver(closed)
  }

  onShutdown(): void {
    if (this.#socket !== undefined) this.#socket.close(CloseCode.GoingAway)
    else if (this.#refusal !== undefined) this.#refuseSoFar()
    else this.fail(new CancelledError(CancelReason.Cancelled, `${this.#label}: the client was closed before the WebSocket was open`))
  }

  onClose(error: HeddleError | undefined): void {
    if (!this.#failed) {
      this.#failed = true
      const isEnd = error === undefined
      if (this.#refusal !== undefined) this.#reason = this.#refused(this.#refusal)
      else
        this.#reason = isEnd ? new PeerError('PEER_CLOSED', `${this.#label}: the server closed without an answer`) : this.#explained(error)
    }
    this.#settle()
  }

  /** What the engines of HTTP/2 and HTTP/3 say of a server without extended CONNECT, to whoever did not know which it would be. */
  #explained(error: unknown): unknown {
    const cause = error instanceof CancelledError && error.cause instanceof UsageError ? error.cause : error
    if (!(cause instanceof UsageError)) return error
    const [version, rfc] = this.#exchange?.protocol === 'h3' ? ['HTTP/3', 'RFC 9220'] : ['HTTP/2', 'RFC 8441']
    const what = `the server takes no WebSockets over ${version} (it does not offer extended CONNECT, ${rfc}), and the client may not speak HTTP/1.1`
    return new HandshakeError(this.#label, 0, [], what, cause)
  }

  #settle(): void {
    if (this.#settled) return
    this.#settled = true
    this.#release()
    this.#owner.onFailed(this.#reason)
  }

  #release(): void {
    const { client, signal } = this.#handshake
    if (this.#alarm !== undefined) client.clock.clear(this.#alarm)
    if (this.#textAlarm !== undefined) client.clock.clear(this.#textAlarm)
    if (this.#watching) unwatchAbort(signal as AbortSignal, this)
    this.#watching = false
  }

  // What comes of an answer that opens nothing is for its error, or nobody.
  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.#exchange?.consume(limit - start)
    const text = this.#text
    if (text === undefined || this.#failed) return
    text.receive(buffer, start, limit)
    if (end || text.complete) this.#refuseSoFar()
  }
  onTrailers(): void {
    if (this.#text !== undefined) this.#refuseSoFar()
  }
  onSent(): void {}
  onPriority(): void {}
}
