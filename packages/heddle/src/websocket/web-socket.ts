import { CancelledError, CancelReason, HeddleError, type ConnectionInfo } from '../http/index.ts'
import { systemClock, type Clock } from '../io/index.ts'
import { closeArguments } from './close-arguments.ts'
import { Handshake, type ConnectOptions } from './connect-options.ts'
import { describe, WebSocketCloseEvent, WebSocketErrorEvent, type Report } from './events.ts'
import { Link, type LinkHooks } from './link.ts'
import { deliver, isListenedTo, MessageTarget } from './message-target.ts'
import { bytesAs, type BinaryType } from './message-data.ts'
import { Opening } from './opening.ts'
import { deadlineProblem, failure } from './operation.ts'
import { Reading } from './reading.ts'
import { isSendable, payloadSize, QueuedWrite, SendQueue, type SendableData } from './send-queue.ts'
import type { Closed } from './socket-handler.ts'
import { coreOf, type Message, type PingCallback, type ReadOptions, type Sendable, type Socket, type WriteOptions } from './socket.ts'
import { textOf } from './text.ts'
import { labelOf } from './url.ts'

/** What WHATWG calls the ready state. */
const ReadyState = { Connecting: 0, Open: 1, Closing: 2, Closed: 3 } as const
type ReadyState = (typeof ReadyState)[keyof typeof ReadyState]

/** Where messages go: nobody has said yet; to listeners, if there are any; to `read`, iteration or `readable`. */
type Flow = 'held' | 'events' | 'reading'

/** Whether the open event was dispatched. */
type Told = 'no' | 'soon' | 'yes'

/** What a WebSocket is made of that was not opened from here. */
class Accepted {
  readonly socket: Socket
  readonly url: string
  readonly clock: Clock
  readonly onThrown: Report | undefined

  constructor(socket: Socket, url: string, clock: Clock, onThrown: Report | undefined) {
    this.socket = socket
    this.url = url
    this.clock = clock
    this.onThrown = onThrown
  }
}

/** The private methods of a WebSocket that its link calls. */
let hooks: LinkHooks<WebSocket>

function onListened(target: MessageTarget): void {
  hooks.listened(target as WebSocket)
}

/**
 * The `WebSocket` of the WHATWG standard. It goes over HTTP/2 or HTTP/3 if the client has a connection there whose
 * server allows it, else over HTTP/1.1; `version` tells which it was. In place of subprotocols it takes
 * {@link ConnectOptions}. Throws a SyntaxError (DOMException) for a URL or a subprotocol that is none,
 * and a UsageError for an option that is unknown or wrong, or if the client is closed.
 *
 * It can be read as well, with back pressure: by `for await`, `read` or `readable`, to which all messages go
 * from the first use of one of them on; before that they go to message events. Those that come before anybody
 * listens or reads wait, up to `limits.maxUnreadSize`; then they are dropped, as the standard has it.
 *
 * ```ts
 * import { WebSocket } from 'heddle/websocket'
 *
 * const webSocket = new WebSocket('wss://example.org/chat', ['chat.v2', 'chat.v1'])
 * webSocket.onopen = () => webSocket.send('hello')
 * webSocket.onmessage = ({ data }) => console.log(data)
 * webSocket.onclose = ({ code, reason }) => console.log('closed', code, reason)
 * ```
 */
export class WebSocket extends MessageTarget implements AsyncDisposable {
  static readonly CONNECTING: 0 = ReadyState.Connecting
  static readonly OPEN: 1 = ReadyState.Open
  static readonly CLOSING: 2 = ReadyState.Closing
  static readonly CLOSED: 3 = ReadyState.Closed
  declare readonly CONNECTING: 0
  declare readonly OPEN: 1
  declare readonly CLOSING: 2
  declare readonly CLOSED: 3

  readonly #url: string
  readonly #origin: string
  readonly #clock: Clock
  readonly #link: Link<WebSocket>
  readonly #isServer: boolean
  #state: ReadyState
  #opening: Opening | undefined
  #socket: Socket | undefined
  #told: Told
  #flow: Flow
  #binaryType: BinaryType
  /** Messages that wait for a Blob before them, or to be open. */
  #queue: SendQueue | undefined
  /** Reads that wait for it to be open, for the socket to take over. */
  #earlyReads: Reading | undefined
  /** Bytes given to `send` when nothing could be sent any more. */
  #lost: number
  #whenOpened: PromiseWithResolvers<WebSocket> | undefined
  #whenClosed: PromiseWithResolvers<Closed> | undefined
  #closed: Closed | undefined
  /** Why it is not going to be open. */
  #failure: unknown

  constructor(url: string | URL, options: string | readonly string[] | ConnectOptions = {}) {
    super(onListened, (url as unknown) instanceof Accepted ? (url as unknown as Accepted).onThrown : undefined)
    this.#link = new Link<WebSocket>(this, hooks)
    this.#state = ReadyState.Connecting
    this.#opening = undefined
    this.#socket = undefined
    this.#told = 'no'
    this.#flow = 'held'
    this.#binaryType = 'blob'
    this.#queue = undefined
    this.#earlyReads = undefined
    this.#lost = 0
    this.#whenOpened = undefined
    this.#whenClosed = undefined
    this.#closed = undefined
    this.#failure = undefined
    if ((url as unknown) instanceof Accepted) {
      const accepted = url as unknown as Accepted
      this.#url = accepted.url
      this.#origin = URL.canParse(accepted.url) ? new URL(accepted.url).origin : ''
      this.#clock = accepted.clock
      this.#isServer = true
      this.#adopt(accepted.socket)
      return
    }
    const isList = typeof options === 'string' || (typeof options === 'object' && options !== null && Symbol.iterator in options)
    const handshake = new Handshake(
      'WebSocket',
      url,
      isList ? { protocols: options as string | readonly string[] } : (options as ConnectOptions),
    )
    this.#url = handshake.target.href
    this.#origin = handshake.target.origin
    this.#clock = handshake.client.clock
    this.#isServer = false
    this.#opening = new Opening(handshake, this.#link)
    this.#opening.start()
  }

  static {
    const numbers = { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 }
    for (const [name, value] of Object.entries(numbers)) Object.defineProperty(this.prototype, name, { value, enumerable: true })
    hooks = {
      opened: (face, socket) => face.#opened(socket),
      opens: (face, socket) => face.#opensSoon(socket),
      listened: (face) => face.#listen(),
      full: (face) => face.#listen(),
      failed: (face, error) => face.#failed(error),
      over: (face, closed) => face.#over(closed),
      closed: (face, closed) => face.#finish(closed),
      message: (face, buffer, start, limit, binary) => face.#message(buffer, start, limit, binary),
    }
  }

  // ── The standard's ──────────────────────────────────────────────────────────────────────────────

  get [Symbol.toStringTag](): string {
    return 'WebSocket'
  }

  /** Normalised: `wss://example.org/chat`. */
  get url(): string {
    return this.#url
  }

  /** CONNECTING, OPEN, CLOSING or CLOSED. */
  get readyState(): 0 | 1 | 2 | 3 {
    if (this.#state !== ReadyState.Open) return this.#state
    const state = this.#socket?.state
    if (state === 'connecting') return ReadyState.Connecting
    return state === 'open' ? ReadyState.Open : ReadyState.Closing
  }

  /** Bytes of messages that were given to `send` or `write` and have not been taken by the connection within the peer's window. */
  get bufferedAmount(): number {
    return (this.#socket?.bufferedAmount ?? 0) + (this.#queue?.size ?? 0) + this.#lost
  }

  /** The subprotocol the server chose, or ''. */
  get protocol(): string {
    return this.#socket?.protocol ?? ''
  }

  /** The extensions that were agreed on, or ''. */
  get extensions(): string {
    return this.#socket?.extensions ?? ''
  }

  /**
   * What message events carry bytes as: `blob` (the standard's default), `arraybuffer`, or `uint8array`, which
   * costs least: of 64 bytes a Blob costs 1.7 µs, an ArrayBuffer half of that, a Uint8Array a tenth.
   */
  get binaryType(): BinaryType {
    return this.#binaryType
  }

  /** What it cannot be set to is ignored (Web IDL). */
  set binaryType(type: BinaryType) {
    if (type === 'blob' || type === 'arraybuffer' || type === 'uint8array') this.#binaryType = type
  }

  /**
   * Sends a message, in the order of the calls, also behind a Blob that has to be read first; bytes are free again
   * after the call. Once it closes nothing is sent, and `bufferedAmount` grows. Throws an InvalidStateError
   * (DOMException) before it is open.
   */
  send(data: SendableData): void {
    const socket = this.#socket
    if (socket === undefined && this.#state === ReadyState.Connecting) throw invalidState('send')
    // Web IDL: whatever is no bytes is text; of a symbol that is a TypeError.
    const message = isSendable(data) ? data : `${data as string}`
    if (socket === undefined || this.readyState >= ReadyState.Closing) {
      this.#lost += payloadSize(message)
    } else if (!(message instanceof Blob) && (this.#queue === undefined || this.#queue.isEmpty)) {
      socket.post(message)
    } else {
      this.#queued(
        message,
        (sendable) => void socket.post(sendable),
        (error) => this.abort(unreadable(error)),
      )
    }
  }

  /**
   * Starts the closing handshake; before it is open, the attempt fails. `code` is 1000 or 3000–4999 (a server's
   * socket takes all that may be sent), `reason` has 123 bytes of UTF-8 at most; throws an InvalidAccessError
   * or SyntaxError (DOMException) for others.
   */
  close(code?: number, reason?: string): void {
    const [number, text] = closeArguments(code, reason, this.#isServer)
    if (this.readyState >= ReadyState.Closing) return
    const socket = this.#socket
    this.#state = ReadyState.Closing
    if (socket === undefined) {
      this.#opening?.fail(new CancelledError(CancelReason.Cancelled, `${labelOf(this.#url)}: closed before it was open`))
    } else if (this.#queue === undefined || this.#queue.isEmpty) socket.close(number, text)
    else this.#queue.after(() => socket.close(number, text))
  }

  // ── Beyond the standard ─────────────────────────────────────────────────────────────────────────

  /** The version of HTTP it runs over; undefined before it is open. */
  get version(): 'h1' | 'h2' | 'h3' | undefined {
    return this.#socket?.version
  }

  /** Of the connection it runs over, maybe with others: addresses and TLS. Undefined before it is open. */
  get info(): ConnectionInfo | undefined {
    return this.#socket?.info
  }

  /** The connection itself, for `Heartbeat` and `SocketGroup`; undefined before it is open. Its `handler` is this WebSocket's to set. */
  get socket(): Socket | undefined {
    return this.#socket
  }

  /** Fulfilled, with this WebSocket, when it is open (a server's: at once); rejected if it is not going to be. */
  get opened(): Promise<WebSocket> {
    if (this.#socket !== undefined) return Promise.resolve(this)
    if (this.#closed !== undefined) return failure(this.#failure)
    this.#whenOpened ??= Promise.withResolvers<WebSocket>()
    return this.#whenOpened.promise
  }

  /** How it ended; never rejects. */
  get closed(): Promise<Closed> {
    if (this.#closed !== undefined) return Promise.resolve(this.#closed)
    this.#whenClosed ??= Promise.withResolvers<Closed>()
    return this.#whenClosed.promise
  }

  /**
   * Sends a message, once it is open; fulfilled when it was taken by the connection within the peer's window.
   * Rejects if that ends before, or has ended. See `Socket.write`.
   */
  write(data: SendableData, options?: WriteOptions): Promise<void> {
    const socket = this.#socket
    if (socket !== undefined && !(data instanceof Blob) && (this.#queue === undefined || this.#queue.isEmpty)) {
      return socket.write(data, options)
    }
    if (this.readyState >= ReadyState.Closing) return failure(this.#failure ?? this.#closed?.error ?? closedAlready())
    const problem = deadlineProblem(options?.deadline)
    if (problem !== undefined) return Promise.reject(problem)
    if (options?.signal?.aborted === true) return Promise.reject(options.signal.reason)
    const write = new QueuedWrite(options, this.#clock)
    this.#queued(
      data,
      (sendable) => write.run(this.#socket as Socket, sendable),
      (error) => write.fail(error),
    )
    return write.promise
  }

  /** The next message, from the first of all on if nobody listened to events; undefined: it has ended well. Rejects if it has failed. See `Socket.read`. */
  read(options?: ReadOptions): Promise<Message | undefined> {
    this.#claim()
    if (this.#socket !== undefined) return this.#socket.read(options)
    if (this.#closed !== undefined) return failure(this.#failure)
    const problem = deadlineProblem(options?.deadline)
    if (problem !== undefined) return Promise.reject(problem)
    if (options?.signal?.aborted === true) return Promise.reject(options.signal.reason)
    this.#earlyReads ??= new Reading()
    return this.#earlyReads.wait(options, this.#clock, false) as Promise<Message | undefined>
  }

  /** The messages up to the end; throws if it fails. Leaving the loop leaves it open, and reading can go on. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Message> {
    this.#claim()
    return this.#messages()
  }

  async *#messages(): AsyncGenerator<Message, void, undefined> {
    for (let message = await this.read(); message !== undefined; message = await this.read()) yield message
  }

  /** The messages as a stream; cancelling it closes the connection. Throws an InvalidStateError (DOMException) before it is open. */
  get readable(): ReadableStream<Message> {
    const socket = this.#opener('readable')
    this.#claim()
    return socket.readable
  }

  /** Takes messages with back pressure; closing it closes the connection, aborting it aborts. Throws an InvalidStateError (DOMException) before it is open. */
  get writable(): WritableStream<Sendable> {
    return this.#opener('writable').writable
  }

  /**
   * Sends a Ping, of 125 bytes at most. `callback` is told the time until its Pong in ms, or undefined if it ended
   * before. Throws an InvalidStateError (DOMException) before it is open, a UsageError for more bytes.
   */
  ping(payload?: string | Uint8Array, callback?: PingCallback): void {
    this.#opener('ping').ping(payload, callback)
  }

  /** Ends it at once, whatever waits for it with `error` (default: a CancelledError). */
  abort(error?: HeddleError): void {
    if (this.#socket !== undefined) return this.#socket.abort(error)
    if (this.#state === ReadyState.Connecting) this.#state = ReadyState.Closing
    this.#opening?.fail(error ?? new CancelledError(CancelReason.Cancelled, `${labelOf(this.#url)}: aborted before it was open`))
  }

  /** Closes with 1000 and waits for the end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close(1000)
    await this.closed
  }

  #opener(what: string): Socket {
    if (this.#socket === undefined) throw invalidState(what)
    return this.#socket
  }

  #queued(data: SendableData, send: (data: Sendable) => void, fail: (error: unknown) => void): void {
    this.#queue ??= new SendQueue(this.#socket === undefined ? this.opened : Promise.resolve())
    this.#queue.push(data, send, fail)
  }

  // ── What happens to it ──────────────────────────────────────────────────────────────────────────

  /** A server's socket, which is going to be open, or is. There is time to listen before that is told. */
  #adopt(socket: Socket): void {
    this.#socket = socket
    this.#state = ReadyState.Open
    void socket.closed.then((closed) => this.#over(closed))
    if (socket.state === 'connecting') coreOf(socket).watch(this.#link)
    else this.#opensSoon(socket)
  }

  #opensSoon(socket: Socket): void {
    this.#told = 'soon'
    this.#clock.soon(() => {
      if (this.#closed === undefined) this.#opened(socket)
    })
  }

  #opened(socket: Socket): void {
    this.#socket = socket
    this.#opening = undefined
    // A server's may be closing already.
    if (this.#state === ReadyState.Connecting) this.#state = ReadyState.Open
    this.#told = 'yes'
    if (this.#earlyReads !== undefined) coreOf(socket).adopt(this.#earlyReads)
    this.#earlyReads = undefined
    this.#whenOpened?.resolve(this)
    this.dispatchEvent(new Event('open'))
    if (this.#flow !== 'held') return
    const core = coreOf(socket)
    if (isListenedTo(this) || core.isHeldBack || core.closed !== undefined) this.#startEvents(socket)
    // Nobody listens or reads yet. What comes waits, but not for ever.
    else core.watch(this.#link)
  }

  /** Messages are for listeners, from the first that came on. */
  #startEvents(socket: Socket): void {
    this.#flow = 'events'
    coreOf(socket).unwatch(this.#link)
    socket.handler = this.#link
  }

  /** Somebody listens for messages, or it is time to give them away. */
  #listen(): void {
    if (this.#flow === 'held' && this.#told === 'yes') this.#startEvents(this.#socket as Socket)
  }

  /** Somebody reads: messages are for nobody else from now on. */
  #claim(): void {
    if (this.#flow === 'reading') return
    const listened = this.#flow === 'events'
    this.#flow = 'reading'
    const socket = this.#socket
    if (!listened || socket === undefined) return
    socket.handler = undefined
    // Its end may have been on its way to the link.
    if (socket.state === 'closed') void socket.closed.then((closed) => this.#finish(closed))
  }

  #message(buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    if (!isListenedTo(this)) return
    deliver(this, binary ? bytesAs(this.#binaryType, buffer, start, limit) : textOf(buffer, start, limit), this.#origin)
  }

  #failed(error: unknown): void {
    this.#opening = undefined
    this.#failure = error
    this.#earlyReads?.end(error)
    this.#whenOpened?.resolve(failure(error))
    const told = error instanceof HeddleError ? error : new CancelledError(CancelReason.Cancelled, 'aborted', { cause: error })
    this.#end({ code: 1006, reason: '', wasClean: false, error: told }, error)
  }

  #over(closed: Closed): void {
    if (this.#flow === 'reading' || this.#told === 'no') this.#finish(closed)
    // What came before the end is still to be told.
    else this.#listen()
  }

  #finish(closed: Closed): void {
    this.#end(closed, closed.error)
  }

  #end(closed: Closed, error: unknown): void {
    if (this.#closed !== undefined) return
    this.#closed = closed
    this.#state = ReadyState.Closed
    this.#whenClosed?.resolve(closed)
    if (closed.error !== undefined) this.dispatchEvent(new WebSocketErrorEvent(describe(labelOf(this.#url), error), error))
    this.dispatchEvent(new WebSocketCloseEvent(closed.code, closed.reason, closed.wasClean))
  }
}

/**
 * A WebSocket around `socket`, that of a server as a rule. The open event comes a turn after it is open (and one
 * after this call at the earliest); what is sent before leaves then. Its `close` takes every code that may be sent.
 * `url`: what it shall say. `onThrown`: told what listeners throw; default: that is an uncaught exception.
 */
export function webSocketOver(
  socket: Socket,
  url = '',
  clock: Clock = systemClock(),
  onThrown: ((error: unknown) => void) | undefined = undefined,
): WebSocket {
  return new WebSocket(new Accepted(socket, url, clock, onThrown) as never)
}

function invalidState(what: string): DOMException {
  return new DOMException(`WebSocket: ${what} needs an open WebSocket, and this one is still connecting`, 'InvalidStateError')
}

function unreadable(cause: unknown): HeddleError {
  return new CancelledError(CancelReason.InternalError, 'a Blob that was to be sent cannot be read', { cause })
}

function closedAlready(): HeddleError {
  return new CancelledError(CancelReason.NoError, 'this side has closed the WebSocket')
}
