import {
  CancelledError,
  CancelReason,
  NetworkError,
  PeerError,
  ProtocolError,
  UsageError,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type Priority,
} from '../http/index.ts'
import { CloseCode, closePayload, longestReason } from './close-code.ts'
import { largestControl, Opcode } from './frame.ts'
import { webSocketLimits, type WebSocketLimits } from './limits.ts'
import type { MessageHandler, PreparedMessage } from './message-handler.ts'
import type { WebSocketOptions } from './options.ts'
import { Pongs } from './pongs.ts'
import { Receiver, type ReceiverOwner } from './receiver.ts'
import { Sender } from './sender.ts'

/** How far a connection has come. */
export const State = {
  Open: 1,
  /** One side has closed, or the peer broke the rules: nothing more can be sent. */
  Closing: 2,
  /** `onClose` was called. */
  Closed: 3,
} as const
export type State = (typeof State)[keyof typeof State]

const none = new Uint8Array(0)

/**
 * One WebSocket (RFC 6455) on an open tunnel. It makes itself the exchange's handler.
 *
 *            close(), or the peer's Close answered,
 *            or a fault, or the tunnel's end                      onClose
 *    Open ─────────────────────────────────────────▶ Closing ─────────────────▶ Closed
 *
 * Closing well takes three steps: this side's Close leaves behind all it accepted; the peer's Close comes;
 * then the server ends the tunnel, and the client after it (RFC 6455 §7.1.1).
 *
 * 1. The methods that send return true while the sender may go on, and false when it should wait for
 *    `onSent(…, true)`: what was given has been taken all the same. After `close`, and once the connection
 *    fails or is over, they do nothing and return false.
 * 2. They never call the handler back, except for `resume`, `discardMessages` and the codec's results.
 * 3. What the peer sends never throws; UsageError is for mistakes of the program.
 * 4. There are no timers here: who closes sees to it that the connection ends in time, by `abort`.
 */
export class WebSocketConnection implements ExchangeHandler, ReceiverOwner {
  /** Replaceable at any time. */
  handler: MessageHandler
  readonly exchange: Exchange
  readonly isServer: boolean
  /** Octets that came, ever, looked at or not: a sign of life. */
  bytesReceived: number
  /** Octets that were taken by the transport within the peer's window, ever. */
  bytesSent: number
  readonly #limits: WebSocketLimits
  readonly #sender: Sender
  readonly #receiver: Receiver
  readonly #codec: WebSocketOptions['deflate']

  #state: State
  /** A Close is due, or was sent. */
  #closing: boolean
  #closePayload: Uint8Array
  #closeSent: boolean
  /** Nothing follows on the exchange any more. */
  #sentEnd: boolean
  #closeReceived: boolean
  #peerCode: number
  #peerReason: string
  #peerEnded: boolean
  /** Why it does not end well. */
  #error: HeddleError | undefined
  /** `#fail` was called: it cannot end well any more. */
  #failed: boolean

  readonly #pongs: Pongs

  constructor(exchange: Exchange, handler: MessageHandler, options: WebSocketOptions) {
    const limits = options.limits === undefined ? webSocketLimits : { ...webSocketLimits, ...options.limits }
    this.handler = handler
    this.exchange = exchange
    this.isServer = options.role === 'server'
    this.bytesReceived = 0
    this.bytesSent = 0
    this.#limits = limits
    this.#sender = new Sender(exchange, this, options, limits)
    this.#receiver = new Receiver(this, options, limits)
    this.#codec = options.deflate
    this.#state = State.Open
    this.#closing = false
    this.#closePayload = none
    this.#closeSent = false
    this.#sentEnd = false
    this.#closeReceived = false
    this.#peerCode = CloseCode.Abnormal
    this.#peerReason = ''
    this.#peerEnded = false
    this.#error = undefined
    this.#failed = false
    this.#pongs = new Pongs(this.#sender, limits)
    exchange.handler = this
    // Messages wait here as they do over HTTP/1.1: one that is large is no fault of the peer's, nor of the other exchanges.
    exchange.exemptQueue?.()
  }

  get state(): State {
    return this.#state
  }

  /** Octets of payload (text in UTF-8) in messages and parts that were accepted and have not left wholly. */
  get bufferedAmount(): number {
    return this.#sender.bufferedAmount
  }

  /** Messages and parts accepted by the methods that send, ever. Read after such a call: the number of what was sent. */
  get messagesAccepted(): number {
    return this.#sender.messagesAccepted
  }

  /** How many of them have left wholly. They leave in order. */
  get messagesSent(): number {
    return this.#sender.ledger.messages
  }

  /** False: a sender should wait for `onSent(…, true)`. */
  get writable(): boolean {
    return this.#mayWait(this.#mayBegin && this.#sender.writable)
  }

  // ── Sending ─────────────────────────────────────────────────────────────────────────────────────

  /** Sends a text message; lone surrogates become U+FFFD. `compress`: if deflate was agreed on and it is long enough. */
  sendText(text: string, compress: boolean): boolean {
    return this.#mayBegin && this.#sender.sendText(text, compress)
  }

  /**
   * Sends a message. `binary` false: the bytes are UTF-8, which is not checked. `owned`: nobody writes to
   * `bytes` any more, so they need not be copied; else they are free again after the call.
   */
  sendBytes(bytes: Uint8Array, binary: boolean, compress: boolean, owned: boolean): boolean {
    return this.#mayBegin && this.#sender.sendBytes(bytes, binary, compress, owned)
  }

  /** Sends a message that was encoded before; see {@link PreparedMessage}. */
  sendPrepared(message: PreparedMessage, compress: boolean): boolean {
    return this.#mayBegin && this.#sender.sendPrepared(message, compress)
  }

  /** Begins a message that is sent in parts, each a frame of its own. Until its last part, no other message can be sent. */
  startMessage(binary: boolean, compress: boolean): void {
    if (this.#mayBegin) this.#sender.startMessage(binary, compress)
  }

  /** Sends a part of the message begun; `end`: the last. Strings only in text messages; a surrogate pair may be cut in two. */
  sendPart(part: string | Uint8Array, end: boolean): boolean {
    return this.#mayBegin && this.#sender.sendPart(part, end)
  }

  /** Sends a Ping. Throws UsageError for more than 125 bytes. */
  sendPing(payload: Uint8Array): boolean {
    return this.#sendControl(Opcode.Ping, payload)
  }

  /** Sends a Pong nobody asked for, as a one-way heartbeat (RFC 6455 §5.5.3). Throws UsageError for more than 125 bytes. */
  sendPong(payload: Uint8Array): boolean {
    return this.#sendControl(Opcode.Pong, payload)
  }

  #sendControl(opcode: number, payload: Uint8Array): boolean {
    if (payload.length > largestControl) throw new UsageError(`a control frame has ${largestControl} bytes at most`)
    if (!this.#mayBegin) return false
    this.#sender.writeControl(opcode, payload, false)
    return this.#mayWait(this.#sender.writable)
  }

  #mayWait(writable: boolean): boolean {
    if (!writable) this.#sender.waits = true
    return writable
  }

  /** Messages may be sent. */
  get #mayBegin(): boolean {
    return this.#state === State.Open
  }

  // ── Closing ─────────────────────────────────────────────────────────────────────────────────────

  /**
   * Starts the closing handshake: behind what was accepted so far, a Close leaves. Messages of the peer are
   * delivered until its Close comes (see `discardMessages`). Throws UsageError for a code that may not be
   * sent, a reason without a code, and a reason of more than 123 bytes of UTF-8. A no-op after the first time.
   */
  close(code?: number, reason = ''): void {
    const payload = closePayload(code, reason)
    if (this.#state === State.Open) this.#startClosing(payload)
  }

  #startClosing(payload: Uint8Array): void {
    this.#state = State.Closing
    this.#closing = true
    this.#closePayload = payload
    this.#maybeSendClose()
  }

  /** Behind the messages, so that none is lost. */
  #maybeSendClose(): void {
    if (!this.#closing || this.#closeSent || !this.#sender.idle) return
    this.#closeSent = true
    this.#pongs.forget()
    // RFC 6455 §7.1.1: the server is the first to end, as soon as both have closed.
    this.#sentEnd = this.#closeReceived && (this.isServer || this.#peerEnded)
    this.#sender.writeControl(Opcode.Close, this.#closePayload, this.#sentEnd)
  }

  #sendEnd(): void {
    if (this.#sentEnd) return
    this.#sentEnd = true
    this.exchange.sendData(none, 0, 0, true)
  }

  /** RFC 6455 §7.1.7: tells the peer why, and ends; what it still sends is not looked at. */
  #fail(code: number, error: HeddleError): void {
    if (this.#failed || this.#sentEnd) return
    this.#failed = true
    this.#error ??= error
    this.#state = State.Closing
    this.#sender.drop()
    if (this.#closeSent) this.#sendEnd()
    else {
      this.#closing = true
      this.#closeSent = true
      this.#sentEnd = true
      this.#pongs.forget()
      this.#sender.writeControl(Opcode.Close, closePayload(code, error.message.slice(0, longestReason)), true)
    }
    this.#receiver.stop()
    this.#tellClosing()
  }

  #tellClosing(): void {
    try {
      this.handler.onClosing?.(this.#error as HeddleError)
    } catch {
      // It is ending already.
    }
  }

  /** Ends the exchange at once. `onClose` follows, with `error`. A no-op once the connection is over. */
  abort(error: HeddleError, reason: CancelReason = CancelReason.Cancelled): void {
    if (this.#state === State.Closed) return
    this.#error ??= error
    this.#state = State.Closing
    this.#sentEnd = true
    this.#sender.drop()
    this.#receiver.stop()
    this.exchange.cancel(reason)
  }

  // ── Receiving ───────────────────────────────────────────────────────────────────────────────────

  /** No more messages are delivered, Pings answered and credit given, from the end of the current call of the handler. */
  pause(): void {
    if (!this.#receiver.discarding) this.#receiver.paused = true
  }

  /** Goes on. Delivers what has arrived before it returns; within a call of the handler, after that. */
  resume(): void {
    this.#receiver.paused = false
    this.#receiver.resume()
  }

  /** `pause` was called, and neither `resume` nor `discardMessages` since. */
  get paused(): boolean {
    return this.#receiver.paused
  }

  /** What the peer still sends is checked and thrown away; `onMessage` is not called again. Ends a pause. */
  discardMessages(): void {
    this.#receiver.discarding = true
    this.resume()
  }

  /**
   * Within `onMessage`: true if its bytes are the caller's to keep from now on, without a copy; false: they
   * are valid during the call only.
   */
  keepMessage(): boolean {
    if (this.#receiver.keepable) this.#receiver.kept = true
    return this.#receiver.keepable
  }

  // ── Told by the receiver ────────────────────────────────────────────────────────────────────────

  receivedMessage(buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    try {
      this.handler.onMessage(buffer, start, limit, binary)
    } catch (error) {
      this.#handlerFailed(error)
    }
  }

  receivedControl(opcode: number, buffer: Uint8Array, start: number, limit: number): void {
    if (opcode === Opcode.Ping && !this.#closeSent && !this.#pongs.answer(buffer, start, limit)) {
      this.failed(CloseCode.PolicyViolation, 'too many Pings, and no Pong is taken')
      return
    }
    try {
      if (opcode === Opcode.Ping) this.handler.onPing(buffer, start, limit)
      else this.handler.onPong(buffer, start, limit)
    } catch (error) {
      this.#handlerFailed(error)
    }
  }

  receivedClose(code: number, reason: string): void {
    this.#closeReceived = true
    this.#peerCode = code
    this.#peerReason = reason
    this.#receiver.stop()
    try {
      this.handler.onPeerClose(code, reason)
    } catch (error) {
      this.#handlerFailed(error)
      return
    }
    // RFC 6455 §5.5.1: the answer has the code that came.
    if (this.#state === State.Open) this.#startClosing(closePayload(code === CloseCode.NoStatus ? undefined : code, ''))
    else if (this.#closeSent && this.isServer) this.#sendEnd()
  }

  receivedEnd(): void {
    this.#peerEnded = true
    // Aborted, failed or over: the end is what was waited for.
    if (this.#sentEnd) return
    if (this.#closeReceived) {
      if (this.#closeSent) this.#sendEnd()
      return
    }
    // RFC 6455 §7.1.5: 1006.
    this.#error ??= new PeerError('PEER_CLOSED', 'the peer ended the connection without a Close')
    this.#state = State.Closing
    this.#sender.drop()
    this.#sendEnd()
    this.#tellClosing()
  }

  failed(code: number, message: string): void {
    this.#fail(code, new ProtocolError(message, 0, 'PROTOCOL_ERROR', { wireCode: code, scope: 'stream' }))
  }

  credit(byteCount: number): void {
    this.exchange.consume(byteCount)
  }

  #handlerFailed(cause: unknown): void {
    this.#fail(CloseCode.InternalError, new CancelledError(CancelReason.InternalError, 'the handler failed', { cause }))
  }

  // ── Told by the codec ───────────────────────────────────────────────────────────────────────────

  /** See {@link CodecSink}. */
  deflated(buffer: Uint8Array, start: number, limit: number, owned: boolean): void {
    if (!this.#sender.deflated(buffer, start, limit, owned)) return
    this.#maybeSendClose()
    this.#tellSent(0)
  }

  /** See {@link CodecSink}. */
  inflated(buffer: Uint8Array, start: number, limit: number, owned: boolean): void {
    this.#receiver.inflated(buffer, start, limit, owned)
  }

  /** See {@link CodecSink}. */
  inflatedTooMuch(): void {
    this.#receiver.inflateFailed(CloseCode.MessageTooBig, `a message of more than ${this.#limits.maxMessageSize} bytes, inflated`)
  }

  /** See {@link CodecSink}. */
  codecFailed(direction: 'deflate' | 'inflate', cause: unknown): void {
    if (direction === 'inflate') this.#receiver.inflateFailed(CloseCode.InvalidPayload, 'a compressed message that cannot be inflated')
    else this.#fail(CloseCode.InternalError, new CancelledError(CancelReason.InternalError, 'compressing failed', { cause }))
  }

  // ── Told by the exchange ────────────────────────────────────────────────────────────────────────

  /** A tunnel that is open has no more heads. */
  onHead(_head: Head, _end: boolean): void {}

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.bytesReceived += limit - start
    this.#receiver.receive(buffer, start, limit, end)
    this.#pongs.inputTaken()
  }

  /** RFC 8441 §5: the end of the stream is the end of the connection, however it comes. */
  onTrailers(_fields: Fields): void {
    this.#receiver.receive(none, 0, 0, true)
  }

  onSent(byteCount: number, writable: boolean): void {
    const { ledger, writer } = this.#sender
    const before = ledger.messages
    this.bytesSent += byteCount
    ledger.settle(byteCount)
    if (writable) writer.writable = true
    this.#pongs.sent()
    this.#tellSent(ledger.messages - before)
  }

  #tellSent(messageCount: number): void {
    const sender = this.#sender
    const writable = sender.waits && sender.writable
    if (messageCount === 0 && !writable) return
    if (writable) sender.waits = false
    try {
      this.handler.onSent(messageCount, sender.writable)
    } catch (error) {
      this.#handlerFailed(error)
    }
  }

  onPriority(_priority: Priority): void {}

  onClose(error: HeddleError | undefined): void {
    if (this.#state === State.Closed) return
    const sender = this.#sender
    const clean = this.#closeReceived && this.#closeSent && !this.#failed && sender.lostNothing
    this.#state = State.Closed
    this.#sentEnd = true
    sender.drop()
    this.#receiver.stop()
    this.#codec?.codec.release(this)
    const why = clean ? undefined : (this.#error ?? error ?? new NetworkError('NETWORK_ERROR', 'the connection ended before it was closed'))
    // What it throws is the engine's to tell of, as with the last call of any exchange.
    this.handler.onClose(this.#peerCode, this.#peerReason, clean, why)
  }
}
