import { EventEmitter } from 'node:events'
import { ProtocolError, type HeddleError } from '../http/index.ts'
import { EmitterEvents, type EmitterListener, type ListenerOptions } from './emitter-events.ts'
import type { SocketHandler } from './socket-handler.ts'
import { coreOf, type PostOptions, type Socket } from './socket.ts'

/** What messages come as: a Buffer, an ArrayBuffer, a Blob, or an array of Buffers. Text is always a Buffer. */
export type NodeBinaryType = 'nodebuffer' | 'arraybuffer' | 'blob' | 'fragments'

/** What a message comes as: text, and bytes by `binaryType`. */
export type NodeMessage = Buffer | ArrayBuffer | Blob | Buffer[]

/** The events of a {@link NodeWebSocket}. */
export interface NodeWebSocketEvents {
  open: []
  /** The type of `data` is that of the default `binaryType`; with another, bytes are a {@link NodeMessage}. */
  message: [data: Buffer, isBinary: boolean]
  close: [code: number, reason: Buffer]
  error: [error: Error]
  ping: [data: Buffer]
  pong: [data: Buffer]
}

/** What `NodeWebSocket.send` takes; of Buffers in an array all are one message. */
export type NodeSendable = string | number | ArrayBufferView | ArrayBuffer | Blob | readonly Buffer[]

/** How `NodeWebSocket.send` sends. */
export interface NodeSendOptions {
  /** Default: true unless the data are a string. */
  readonly binary?: boolean | undefined
  /** Default true: if it was agreed on and the message is long enough. */
  readonly compress?: boolean | undefined
  /** False: more of the same message follows. It is sent when all of it is there. Default true. */
  readonly fin?: boolean | undefined
  /** Of no effect: a server does not mask. */
  readonly mask?: boolean | undefined
}

type Sent = (error?: Error) => void

const empty = Buffer.alloc(0)
const states = { connecting: 0, open: 1, closing: 2, closed: 3 } as const

/**
 * A server's WebSocket with the face of the package ws: an EventEmitter with 'message' (data, isBinary), 'close' (code,
 * reason), 'error', 'ping' and 'pong' (data). 'error' is emitted if anybody listens: a client that breaks the
 * protocol is no reason to end the process.
 */
export class NodeWebSocket extends EventEmitter<NodeWebSocketEvents> {
  static readonly CONNECTING: 0 = states.connecting
  static readonly OPEN: 1 = states.open
  static readonly CLOSING: 2 = states.closing
  static readonly CLOSED: 3 = states.closed
  declare readonly CONNECTING: 0
  declare readonly OPEN: 1
  declare readonly CLOSING: 2
  declare readonly CLOSED: 3

  readonly protocol: string
  /** The extension that was agreed on, or ''. */
  readonly extensions: string
  /** The version of HTTP it runs over. */
  readonly version: 'h1' | 'h2' | 'h3'
  binaryType: NodeBinaryType
  readonly #socket: Socket
  #events: EmitterEvents | undefined
  readonly #onError: (error: unknown, webSocket: NodeWebSocket) => void
  #paused: boolean
  /** Of a message that is sent in parts. */
  #parts: { readonly binary: boolean; readonly compress: boolean; readonly chunks: Uint8Array[]; readonly done: Sent[] } | undefined

  /** What waits for the bytes of a Blob. */
  #held: (() => void)[] | undefined

  /** Around a server's `socket`, whose handler it becomes. */
  constructor(socket: Socket, onError: (error: unknown, webSocket: NodeWebSocket) => void = (error) => console.error(error)) {
    super()
    this.protocol = socket.protocol
    this.extensions = socket.extensions === '' ? '' : 'permessage-deflate'
    this.version = socket.version
    this.binaryType = 'nodebuffer'
    this.#socket = socket
    this.#events = undefined
    this.#onError = onError
    this.#paused = false
    this.#parts = undefined
    this.#held = undefined
    socket.handler = new Emitting(this)
  }

  static {
    for (const [name, value] of Object.entries(states))
      Object.defineProperty(this.prototype, name.toUpperCase(), { value, enumerable: true })
  }

  get readyState(): 0 | 1 | 2 | 3 {
    return states[this.#socket.state]
  }

  /** Bytes of messages that were sent and have not left within the client's window. */
  get bufferedAmount(): number {
    return this.#socket.bufferedAmount
  }

  get isPaused(): boolean {
    return this.#paused
  }

  /** A client's; a server's has none. */
  get url(): undefined {
    return undefined
  }

  /** The socket below, for what ws has not: `write` with back pressure, deadlines, `read`. */
  get socket(): Socket {
    return this.#socket
  }

  /** `sent` is called when the message has left within the client's window, or with an error if it cannot. */
  send(data: NodeSendable, options?: NodeSendOptions | Sent, sent?: Sent): void {
    const done = typeof options === 'function' ? options : sent
    const {
      binary = typeof data !== 'string' && typeof data !== 'number',
      compress = true,
      fin = true,
    } = typeof options === 'object' ? options : {}
    if (this.readyState !== 1) return this.#tooLate(done)
    if (this.#held !== undefined) {
      this.#held.push(() => this.send(data, options, sent))
      return
    }
    if (data instanceof Blob) {
      if (fin && this.#parts === undefined) return this.#sendBlob(data, compress, done)
      throw new TypeError('a Blob is sent whole')
    }
    const content = contentOf(data)
    if (fin && this.#parts === undefined) this.#sendWhole(content, binary, compress, done)
    else this.#sendPart(content, binary, compress, fin, done)
  }

  #sendWhole(content: string | ArrayBufferView | ArrayBuffer, binary: boolean, compress: boolean, done: Sent | undefined): void {
    const data = typeof content === 'string' && binary ? Buffer.from(content) : content
    const options: PostOptions = { compress, text: !binary }
    if (done === undefined) this.#socket.post(data, options)
    else
      this.#socket.write(data, options).then(
        () => done(),
        (error: Error) => done(error),
      )
  }

  /** One message leaves as one frame: parts are put together here, which the client cannot tell. */
  #sendPart(
    content: string | ArrayBufferView | ArrayBuffer,
    binary: boolean,
    compress: boolean,
    fin: boolean,
    done: Sent | undefined,
  ): void {
    const parts = (this.#parts ??= { binary, compress, chunks: [], done: [] })
    parts.chunks.push(copyOf(content))
    if (done !== undefined) parts.done.push(done)
    if (!fin) return
    this.#parts = undefined
    const all: Sent = (error) => {
      for (const one of parts.done) one(error)
    }
    this.#sendWhole(Buffer.concat(parts.chunks), parts.binary, parts.compress, parts.done.length === 0 ? undefined : all)
  }

  /** What is sent after it waits for its bytes. */
  #sendBlob(blob: Blob, compress: boolean, done: Sent | undefined): void {
    this.#held = []
    const goOn = (send: () => void): void => {
      const held = this.#held as (() => void)[]
      this.#held = undefined
      send()
      for (const run of held) run()
    }
    blob.arrayBuffer().then(
      (bytes) => goOn(() => (this.readyState === 1 ? this.#sendWhole(bytes, true, compress, done) : this.#tooLate(done))),
      (error: Error) => goOn(() => (done === undefined ? this.#failed(error) : done(error))),
    )
  }

  /** `data` of 125 bytes at most. `sent` is called when it was accepted. */
  ping(data?: NodeSendable | Sent, mask?: boolean | Sent, sent?: Sent): void {
    this.#control('ping', data, mask, sent)
  }

  /** A Pong nobody asked for. */
  pong(data?: NodeSendable | Sent, mask?: boolean | Sent, sent?: Sent): void {
    this.#control('pong', data, mask, sent)
  }

  #control(kind: 'ping' | 'pong', data: NodeSendable | Sent | undefined, mask: boolean | Sent | undefined, sent: Sent | undefined): void {
    const done = typeof data === 'function' ? data : typeof mask === 'function' ? mask : sent
    if (this.readyState !== 1) return this.#tooLate(done)
    if (data instanceof Blob) throw new TypeError('a Blob cannot be the content of a Ping')
    const bytes = copyOf(contentOf(typeof data === 'function' ? undefined : data))
    if (kind === 'ping') this.#socket.ping(bytes)
    else coreOf(this.#socket).connection?.sendPong(bytes)
    if (done !== undefined) process.nextTick(done)
  }

  pause(): void {
    if (this.readyState === 3) return
    this.#paused = true
    this.#socket.pause()
  }

  resume(): void {
    if (this.readyState === 3) return
    this.#paused = false
    this.#socket.resume()
  }

  /** Starts the closing handshake; 'close' follows, after `closeTimeout` at the latest. Throws for a code that may not be sent. */
  close(code?: number, reason?: string | Buffer): void {
    if (this.#held !== undefined) {
      this.#held.push(() => this.close(code, reason))
      return
    }
    this.#socket.close(code, typeof reason === 'object' ? reason.toString() : reason)
  }

  /** Ends the connection at once. */
  terminate(): void {
    this.#socket.abort()
  }

  #tooLate(done: Sent | undefined): void {
    if (done === undefined) return
    const error = new Error(`WebSocket is not open: readyState ${this.readyState} (${this.#socket.state.toUpperCase()})`)
    process.nextTick(done, error)
  }

  /** What a listener threw: the connection is closed, and the process goes on. */
  #failed(error: unknown): void {
    this.#socket.close(1011)
    this.#onError(error, this)
  }

  /** @internal Emits an event of the connection. */
  tell<Name extends keyof NodeWebSocketEvents>(name: Name, ...parameters: NodeWebSocketEvents[Name]): void {
    try {
      ;(this as EventEmitter).emit(name, ...parameters)
    } catch (error) {
      this.#failed(error)
    }
  }

  // ── The face of the WHATWG ──────────────────────────────────────────────────────────────────────

  /** 'open', 'message', 'close' or 'error', with an object that has what the event of that name has. */
  addEventListener(type: string, listener: EmitterListener, options: ListenerOptions = {}): void {
    this.#listeners.add(type, listener, options)
  }

  removeEventListener(type: string, listener: EmitterListener): void {
    this.#listeners.remove(type, listener)
  }

  get #listeners(): EmitterEvents {
    return (this.#events ??= new EmitterEvents(this))
  }

  get onopen(): EmitterListener | null {
    return this.#listeners.attribute('open')
  }
  set onopen(listener: EmitterListener | null) {
    this.#listeners.setAttribute('open', listener)
  }
  get onmessage(): EmitterListener | null {
    return this.#listeners.attribute('message')
  }
  set onmessage(listener: EmitterListener | null) {
    this.#listeners.setAttribute('message', listener)
  }
  get onclose(): EmitterListener | null {
    return this.#listeners.attribute('close')
  }
  set onclose(listener: EmitterListener | null) {
    this.#listeners.setAttribute('close', listener)
  }
  get onerror(): EmitterListener | null {
    return this.#listeners.attribute('error')
  }
  set onerror(listener: EmitterListener | null) {
    this.#listeners.setAttribute('error', listener)
  }
}

/** Makes events of what a socket tells. */
class Emitting implements SocketHandler {
  readonly #webSocket: NodeWebSocket

  constructor(webSocket: NodeWebSocket) {
    this.#webSocket = webSocket
  }

  onMessage(_socket: Socket, buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    const webSocket = this.#webSocket
    const bytes = Buffer.from(buffer.subarray(start, limit))
    webSocket.tell('message', binary ? (received(bytes, webSocket.binaryType) as Buffer) : bytes, binary)
  }
  onPing(_socket: Socket, payload: Uint8Array): void {
    this.#webSocket.tell('ping', Buffer.from(payload))
  }
  onPong(_socket: Socket, payload: Uint8Array): void {
    this.#webSocket.tell('pong', Buffer.from(payload))
  }
  onClose(_socket: Socket, code: number, reason: string, _wasClean: boolean, error: HeddleError | undefined): void {
    const webSocket = this.#webSocket
    // As ws does: what the client did wrong, and not that it has gone.
    if (error instanceof ProtocolError && webSocket.listenerCount('error') > 0) webSocket.tell('error', error)
    webSocket.tell('close', code, Buffer.from(reason))
  }
}

function received(bytes: Buffer, type: NodeBinaryType): NodeMessage {
  if (type === 'nodebuffer') return bytes
  if (type === 'fragments') return [bytes]
  // Its own memory, not the pool's.
  const own = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
  return type === 'arraybuffer' ? own : new Blob([own])
}

function contentOf(data: Exclude<NodeSendable, Blob> | undefined | null): string | ArrayBufferView | ArrayBuffer {
  if (data === undefined || data === null) return empty
  if (typeof data === 'number') return `${data}`
  return Array.isArray(data) ? Buffer.concat(data as Buffer[]) : (data as string | ArrayBufferView | ArrayBuffer)
}

function copyOf(content: string | ArrayBufferView | ArrayBuffer): Buffer {
  if (typeof content === 'string') return Buffer.from(content)
  if (content instanceof ArrayBuffer) return Buffer.from(new Uint8Array(content))
  return Buffer.from(new Uint8Array(content.buffer, content.byteOffset, content.byteLength))
}
