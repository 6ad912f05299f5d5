import type { CancelReason, Exchange, ExchangeHandler, Fields, Head, HeddleError, Priority } from '../http/index.ts'
import type { CodecSink } from './codec.ts'
import type { MessageHandler, PreparedMessage } from './message-handler.ts'
import type { WebSocketOptions } from './options.ts'

/** How far a connection has come. */
export const State = {
  Open: 1,
  /** One side has closed, or the peer broke the rules: nothing more can be sent. */
  Closing: 2,
  /** `onClose` was called. */
  Closed: 3,
} as const
export type State = (typeof State)[keyof typeof State]

/**
 * One WebSocket (RFC 6455) on an open tunnel. It makes itself the exchange's handler.
 *
 * 1. The methods that send return true while the sender may go on, and false when it should wait for
 *    `onSent(…, true)`: what was given has been taken all the same. After `close`, and once the connection
 *    fails or is over, they do nothing and return false.
 * 2. They never call the handler back, except for `resume`, `discardMessages` and the codec's results.
 * 3. What the peer sends never throws; UsageError is for mistakes of the program.
 * 4. There are no timers here: who closes sees to it that the connection ends in time, by `abort`.
 */
export declare class WebSocketConnection implements ExchangeHandler, CodecSink {
  /** Replaceable at any time. */
  handler: MessageHandler
  readonly exchange: Exchange
  readonly isServer: boolean
  constructor(exchange: Exchange, handler: MessageHandler, options: WebSocketOptions)

  get state(): State
  /** Bytes that were given to be sent (of payload; text in UTF-8) in messages and parts that have not left wholly. */
  get bufferedAmount(): number
  /** Messages and parts accepted by the methods that send, ever. Read after such a call: the number of what was sent. */
  get messagesAccepted(): number
  /** How many of them have left wholly. They leave in order. */
  get messagesSent(): number
  /** The next message or part would be told to go on. */
  get writable(): boolean

  /** Sends a text message; lone surrogates become U+FFFD. `compress`: if deflate was agreed on and it is long enough. */
  sendText(text: string, compress: boolean): boolean
  /**
   * Sends a message. `binary` false: the bytes are UTF-8, which is not checked. `owned`: nobody writes to
   * `bytes` any more, so they need not be copied; else they are free again after the call.
   */
  sendBytes(bytes: Uint8Array, binary: boolean, compress: boolean, owned: boolean): boolean
  /** Sends a message that was encoded before; see {@link PreparedMessage}. */
  sendPrepared(message: PreparedMessage, compress: boolean): boolean
  /** Begins a message that is sent in parts, each a frame of its own. Until its last part, no other message can be sent. */
  startMessage(binary: boolean, compress: boolean): void
  /** Sends a part of the message begun; `end`: the last. Strings only in text messages; a surrogate pair may be cut in two. */
  sendPart(part: string | Uint8Array, end: boolean): boolean
  /** Sends a Ping. Throws UsageError for more than 125 bytes. */
  sendPing(payload: Uint8Array): boolean
  /** Sends a Pong nobody asked for, as a one-way heartbeat (RFC 6455 §5.5.3). */
  sendPong(payload: Uint8Array): boolean
  /**
   * Starts the closing handshake: behind what was accepted so far, a Close leaves. Messages of the peer are
   * delivered until its Close comes (see `discardMessages`). Throws UsageError for a code that may not be
   * sent, a reason without a code, and a reason of more than 123 bytes of UTF-8. A no-op after the first time.
   */
  close(code?: number, reason?: string): void
  /** Ends the exchange at once. `onClose` follows, with `error`. A no-op once the connection is over. */
  abort(error: HeddleError, reason?: CancelReason): void

  /** No more messages are delivered, Pings answered and credit given, from the end of the current call of the handler. */
  pause(): void
  /** Goes on. Delivers what has arrived before it returns; within a call of the handler, after that. */
  resume(): void
  get paused(): boolean
  /** What the peer still sends is checked and thrown away; `onMessage` is not called again. Ends a pause. */
  discardMessages(): void
  /**
   * Within `onMessage`: true if its bytes are the caller's to keep from now on, without a copy; false: they
   * are valid during the call only.
   */
  keepMessage(): boolean

  deflated(buffer: Uint8Array, start: number, limit: number, owned: boolean): void
  inflated(buffer: Uint8Array, start: number, limit: number, owned: boolean): void
  inflatedTooMuch(): void
  codecFailed(direction: 'deflate' | 'inflate', cause: unknown): void

  onHead(head: Head, end: boolean): void
  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void
  onTrailers(fields: Fields): void
  onSent(byteCount: number, writable: boolean): void
  onPriority(priority: Priority): void
  onClose(error: HeddleError | undefined): void
}
