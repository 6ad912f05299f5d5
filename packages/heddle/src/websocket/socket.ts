import { CancelledError, CancelReason, HeddleError, UsageError, type ConnectionInfo, type Exchange } from '../http/index.ts'
import type { PreparedMessage } from '../ws/index.ts'
import { SocketCore } from './core.ts'
import type { Closed, SocketHandler } from './socket-handler.ts'
import type { SocketOptions } from './socket-options.ts'
import { MessageIterator, readableOf, writableOf } from './streams.ts'

/** A message as it is read: text is a string, and bytes have an ArrayBuffer of their own. */
export type Message = string | Uint8Array<ArrayBuffer>

/** What can be sent as a message: text, bytes, or what `prepare` made. */
export type Sendable = string | ArrayBufferView | ArrayBufferLike | PreparedMessage

/** What `Socket.post` can be told. */
export interface PostOptions {
  /** False: this message is not compressed. Default true: it is, if that was agreed on and the message is long enough. */
  readonly compress?: boolean | undefined
  /** True: nobody will write to these bytes again, so they need not be copied. Default false. */
  readonly owned?: boolean | undefined
  /** Bytes are a text message; they are UTF-8, which is not checked. Default false. */
  readonly text?: boolean | undefined
}

/** What `Socket.write` can be told. */
export interface WriteOptions extends PostOptions {
  /** Its abort ends the connection, for a part of the message may have left, and rejects with its reason. */
  readonly signal?: AbortSignal | undefined
  /** ms until the message has to be accepted. On excess the connection ends, and the promise rejects with a TimeoutError. Default Infinity. */
  readonly deadline?: number | undefined
}

/** What `Socket.read` can be told. */
export interface ReadOptions {
  /** Its abort rejects this read with its reason; the connection goes on, and no message is lost. */
  readonly signal?: AbortSignal | undefined
  /** ms to wait. On excess this read rejects with a TimeoutError; the connection goes on, and no message is lost. Default Infinity. */
  readonly deadline?: number | undefined
}

/** Told once what became of a Ping: the time until its Pong in ms, or undefined if the connection ended before. */
export type PingCallback = (roundTrip: number | undefined) => void

/** What is behind a socket, for the other files of this folder. */
export let coreOf: (socket: Socket) => SocketCore

/**
 * One WebSocket connection in either role, over any version of HTTP: what the WHATWG `WebSocket` and the
 * server's `upgrade` stand on. Messages come by `handler`, `read`, iteration or `readable`; whoever
 * comes late has lost nothing, for what is not read stays with the peer but for `maxUnreadSize` bytes.
 *
 * `close`, `abort`, `write`, `read` and whatever the peer does may meet in any order: each promise is settled
 * once, and nothing throws but for a mistake of the program (UsageError).
 */
export class Socket implements AsyncDisposable {
  /** The subprotocol that was agreed on, or ''. */
  readonly protocol: string
  /** The extensions that were agreed on, or ''. */
  readonly extensions: string
  readonly #core: SocketCore
  #readable: ReadableStream<Message> | undefined
  #writable: WritableStream<Sendable> | undefined

  /**
   * Over `exchange`, a tunnel that is open, or is going to be: see `SocketOptions.opened`. Throws UsageError
   * for an option that is unknown or has a bad value.
   */
  constructor(exchange: Exchange, options: SocketOptions) {
    this.protocol = options.protocol ?? ''
    this.extensions = options.extensions ?? ''
    this.#core = new SocketCore(this, exchange, options)
    this.#readable = undefined
    this.#writable = undefined
  }

  static {
    coreOf = (socket) => socket.#core
  }

  /** The version of HTTP it runs over. */
  get version(): 'h1' | 'h2' | 'h3' {
    return this.#core.exchange.protocol
  }

  /** The connection it runs over, maybe with others: addresses and TLS. */
  get info(): ConnectionInfo {
    return this.#core.exchange.connection
  }

  /**
   * The head that opens the tunnel was sent: the socket becomes the exchange's handler, and what waited is
   * sent. Needed once with `opened: false`. After `abort` it cancels the exchange.
   */
  open(): void {
    this.#core.open()
  }

  /** 'closing': this side or the peer has closed, and nothing can be sent any more. */
  get state(): 'connecting' | 'open' | 'closing' | 'closed' {
    return this.#core.state
  }

  /**
   * Bytes of messages (text in UTF-8) that were given to be sent and have not been taken by the connection
   * within the peer's window. What was lost with the connection still counts.
   */
  get bufferedAmount(): number {
    return this.#core.bufferedAmount
  }

  /** The next `post` may be told to go on. False: wait for `onWritable`. */
  get canPost(): boolean {
    return this.#core.canPost
  }

  /**
   * The fast path. While it is undefined, messages wait for `read`. What came before it was set, the end
   * included, is told soon after. Setting it throws UsageError while a `read` is pending.
   */
  get handler(): SocketHandler | undefined {
    return this.#core.handler
  }

  set handler(handler: SocketHandler | undefined) {
    this.#core.handler = handler
  }

  // ── Sending ─────────────────────────────────────────────────────────────────────────────────────

  /**
   * Sends a message, whatever waits already. True: go on; false: wait for `onWritable`, or for
   * `bufferedAmount` to fall. Once the socket closes nothing is sent, and the answer is false. Throws UsageError
   * for what is no message.
   */
  post(data: Sendable, options?: PostOptions): boolean {
    return this.#core.sending.post(data, options)
  }

  /**
   * Sends a message; fulfilled when it was taken by the connection within the peer's window, in the order of
   * the calls. Bytes may be written to again as soon as the call returns, unless they are `owned`. Rejects if the
   * connection ends before, or has been closed.
   */
  write(data: Sendable, options?: WriteOptions): Promise<void> {
    return this.#core.sending.write(data, options)
  }

  /** Sends a Ping, of 125 bytes at most. `callback` is told of the Pong that answers it. Throws UsageError for more bytes. */
  ping(payload?: string | Uint8Array, callback?: PingCallback): void {
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
    if (bytes !== undefined && bytes.length > 125) throw new UsageError('a Ping has 125 bytes at most')
    this.#core.sending.ping(bytes, callback)
  }

  /** Takes messages with back pressure, made at the first use. Closing it closes the connection, aborting it aborts. */
  get writable(): WritableStream<Sendable> {
    this.#writable ??= writableOf(this)
    return this.#writable
  }

  // ── Receiving ───────────────────────────────────────────────────────────────────────────────────

  /**
   * The next message; undefined: the connection has ended well. Reads are answered in the order of their
   * calls. Rejects if the connection has failed, when the messages that came before are read.
   */
  read(options?: ReadOptions): Promise<Message | undefined> {
    return this.#core.read(options, false) as Promise<Message | undefined>
  }

  /** The messages up to the end; throws if the connection fails. Leaving the loop leaves the connection open, and reading can go on. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Message, undefined> {
    return new MessageIterator(this.#core)
  }

  /** The messages as a stream, made at the first use; cancelling it closes the connection. */
  get readable(): ReadableStream<Message> {
    this.#readable ??= readableOf(this)
    return this.#readable
  }

  /** `handler` gets no more messages, and the peer is held back, from the end of the current call on. */
  pause(): void {
    this.#core.pause()
  }

  /** Goes on with what `pause` stopped. */
  resume(): void {
    this.#core.resume()
  }

  // ── The end ─────────────────────────────────────────────────────────────────────────────────────

  /**
   * Starts the closing handshake: what was given so far leaves, then a Close. The end comes by itself, and
   * `closeTimeout` sees to that. What the peer still sends is delivered to whoever reads; nobody is waited
   * for. Default code: none on the wire. Throws UsageError for a code that may not be sent, a reason without a
   * code, or one of more than 123 bytes. A no-op after the first time.
   */
  close(code?: number, reason: string = ''): void {
    this.#core.close(code, reason)
  }

  /**
   * Ends the connection at once, both ways, and whatever waits for it with `reason`: a HeddleError, or else the
   * `cause` of a CancelledError. What was not read is dropped.
   */
  abort(reason?: unknown): void {
    const isOwn = reason instanceof HeddleError
    this.#core.abort(isOwn ? reason : new CancelledError(CancelReason.Cancelled, 'this side has aborted the WebSocket', { cause: reason }))
  }

  /** How it ended; never rejects. */
  get closed(): Promise<Closed> {
    return this.#core.closedPromise
  }

  /** Closes with 1000 and waits for the end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close(1000)
    await this.closed
  }
}
