import type { ConnectionInfo, Exchange, HeddleError } from '../http/index.ts'
import type { PreparedMessage } from '../ws/index.ts'
import type { Closed, SocketHandler } from './socket-handler.ts'
import type { SocketOptions } from './socket-options.ts'

/** A message as it is read: text is a string, and bytes have an ArrayBuffer of their own. */
export type Message = string | Uint8Array<ArrayBuffer>

/** What can be sent as a message: text, bytes, or what `prepare` made. */
export type Sendable = string | ArrayBufferView | ArrayBuffer | PreparedMessage

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

/**
 * One WebSocket connection in either role, over any version of HTTP: what the WHATWG `WebSocket` and the
 * server's `upgrade` stand on. Messages come by `handler`, `read`, iteration or `readable`; whoever
 * comes late has lost nothing, for what is not read stays with the peer but for `maxUnreadSize` bytes.
 *
 * `close`, `abort`, `write`, `read` and whatever the peer does may meet in any order: each promise is settled
 * once, and nothing throws but for a mistake of the program (UsageError).
 */
export declare class Socket implements AsyncDisposable {
  /** The subprotocol that was agreed on, or ''. */
  readonly protocol: string
  /** The extensions that were agreed on, or ''. */
  readonly extensions: string
  /** The version of HTTP it runs over. */
  readonly version: 'h1' | 'h2' | 'h3'
  /** Of the connection it runs over, maybe with others: addresses and TLS. */
  readonly info: ConnectionInfo

  /**
   * Over `exchange`, a tunnel that is open, or is going to be: see `SocketOptions.opened`. Throws UsageError
   * for an option that is unknown or has a bad value.
   */
  constructor(exchange: Exchange, options: SocketOptions)

  /**
   * The head that opens the tunnel was sent: the socket becomes the exchange's handler, and what waited is
   * sent. Needed once with `opened: false`. After `abort` it cancels the exchange.
   */
  open(): void

  /** 'closing': this side or the peer has closed, and nothing can be sent any more. */
  get state(): 'connecting' | 'open' | 'closing' | 'closed'
  /** Bytes of messages that were given to be sent and have not been taken by the connection within the peer's window. */
  get bufferedAmount(): number
  /** The next `post` would return true. */
  get canPost(): boolean
  /**
   * The fast path. While it is undefined, messages wait for `read`. What came before it was set is
   * delivered soon after. A UsageError while a `read` is pending.
   */
  get handler(): SocketHandler | undefined
  set handler(handler: SocketHandler | undefined)

  /**
   * Sends a message, whatever waits already. True: go on; false: wait for `onWritable`, or for
   * `bufferedAmount` to fall. Once the socket closes: nothing is sent, and the answer is false.
   */
  post(data: Sendable, options?: PostOptions): boolean
  /**
   * Sends a message; fulfilled when it was taken by the connection within the peer's window, in the order of
   * the calls. Bytes may be written to again then (at once, as long as it is not `owned`). Rejects if the
   * connection ends before, or has closed already.
   */
  write(data: Sendable, options?: WriteOptions): Promise<void>
  /**
   * The next message; undefined: the connection has ended well. Reads are answered in the order of their
   * calls. Rejects if the connection has failed, when the messages that came before are read.
   */
  read(options?: ReadOptions): Promise<Message | undefined>
  /** The messages up to the end; throws if the connection fails. Leaving the loop leaves the connection open, and reading can go on. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Message>
  /** The messages as a stream, made at the first use; cancelling it closes the connection. */
  get readable(): ReadableStream<Message>
  /** Takes messages with back pressure, made at the first use; closing it closes the connection, aborting it aborts. */
  get writable(): WritableStream<Sendable>

  /** Sends a Ping, of 125 bytes at most. `callback` is told of the Pong that answers it. Throws UsageError for more bytes. */
  ping(payload?: string | Uint8Array, callback?: PingCallback): void
  /** `handler` gets no more messages, and the peer is held back, from the end of the current call on. */
  pause(): void
  /** Goes on with what `pause` stopped. */
  resume(): void

  /**
   * Starts the closing handshake: what was given so far leaves, then a Close. Ends by itself, after
   * `closeTimeout` at the latest. What still comes is delivered if it is read; what is not does not hold the end
   * up. Default code: none on the wire. Throws UsageError for a code that may not be sent, or a reason of more than 123 bytes.
   * A no-op after the first time.
   */
  close(code?: number, reason?: string): void
  /** Ends the connection at once, both ways, and whatever waits for it with `error` (default: a CancelledError). */
  abort(error?: HeddleError): void
  /** How it ended; never rejects. */
  get closed(): Promise<Closed>
  /** Closes with 1000 and waits for the end. */
  [Symbol.asyncDispose](): Promise<void>
}
