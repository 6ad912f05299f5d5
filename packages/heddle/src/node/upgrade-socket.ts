import { X509Certificate } from 'node:crypto'
import { Duplex } from 'node:stream'
import {
  CancelReason,
  contentLength,
  noLength,
  responseHead,
  UsageError,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
} from '../http/index.ts'
import { aborted, nodeError, streamDestroyed } from './errors.ts'
import { parseAnswer } from './written-answer.ts'

type WriteCallback = (error?: Error | null) => void

const nothing = Buffer.alloc(0)
/** A head that was begun and is longer than this is none. */
const longestHead = 65_536

/**
 * The socket of an 'upgrade' event: a stream over one tunnel, whatever the version of HTTP. What is written
 * first must be the head of an HTTP/1.1 response, as programs write it into a socket of Node's: a 101
 * opens the tunnel (over HTTP/2 it becomes a 200), any other status refuses it, and what follows is its content.
 * Or it is taken over, by `takeOver`.
 *
 *    asked ──101──▶ open ───────────────┐
 *      │  └──another status──▶ refused ──┤ end, destroy, 'close'
 *      └──takeOver──▶ taken ─────────────┘
 */
export class UpgradeSocket extends Duplex {
  /** The server that emits 'closing' when it closes, if there is one. */
  readonly server: unknown
  readonly head: Head
  readonly #exchange: Exchange
  #state: 'asked' | 'refused' | 'open' | 'taken' | 'over'
  /** What was written of a head that is not complete. */
  #begun: Buffer
  /** A refusal whose head waits for its content, or for the end. */
  #refusal: { readonly status: number; readonly fields: Fields } | undefined
  /** Of a refusal: content that its head has declared and that was not written yet. */
  #owed: number
  /** Told when there is room again. */
  #blocked: WriteCallback | undefined
  /** Bytes that the stream holds, and which are not credited yet. */
  #held: number
  /** Bytes that were handed to the exchange and have not left yet. */
  #unsent: number
  #sentEnd: boolean
  #receivedEnd: boolean
  #timer: NodeJS.Timeout | undefined
  /** ms without activity after which 'timeout' comes; 0: never. */
  timeout: number

  constructor(exchange: Exchange, head: Head, server: unknown) {
    super({ allowHalfOpen: true, decodeStrings: true })
    this.server = server
    this.head = head
    this.#exchange = exchange
    this.#state = 'asked'
    this.#begun = nothing
    this.#refusal = undefined
    this.#owed = noLength
    this.#blocked = undefined
    this.#held = 0
    this.#unsent = 0
    this.#sentEnd = false
    this.#receivedEnd = false
    this.#timer = undefined
    this.timeout = 0
    exchange.handler = new Tunnel(this)
  }

  /**
   * Hands the tunnel over: whoever takes it sends the head and becomes the exchange's handler, and nothing goes
   * through this stream any more. It has to call `destroy` when the exchange is over. Throws UsageError if
   * something was written already, or the client has gone.
   */
  takeOver(): Exchange {
    if (this.#state !== 'asked' || this.#begun.length > 0) throw new UsageError('the socket of an upgrade was answered, taken or destroyed')
    this.#state = 'taken'
    return this.#exchange
  }

  // ── The stream ──────────────────────────────────────────────────────────────────────────────────

  override _read(): void {
    this.#credit()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: WriteCallback): void {
    this.#touch()
    try {
      if (this.#state === 'asked') this.#answer(chunk, callback)
      else if (this.#state === 'refused') this.#sendContent(chunk, callback)
      else if (this.#state === 'open') this.#send(chunk, callback)
      else callback(streamDestroyed())
    } catch (error) {
      callback(error as Error)
    }
  }

  override _final(callback: WriteCallback): void {
    if (this.#state === 'asked') this.#exchange.cancel(CancelReason.Cancelled)
    else this.#end()
    callback()
  }

  override _destroy(error: Error | null, callback: WriteCallback): void {
    clearTimeout(this.#timer)
    this.#leave()
    const blocked = this.#blocked
    this.#blocked = undefined
    blocked?.(error ?? streamDestroyed())
    // An error nobody listens for is no reason to end the process.
    callback(this.listenerCount('error') === 0 ? null : error)
  }

  /** The program is done with it. */
  #leave(): void {
    const state = this.#state
    if (state === 'over' || state === 'taken') return
    this.#state = 'over'
    // A refusal that was written and whose socket is destroyed then is complete, as far as anybody knows.
    if (state === 'refused' && (this.#owed === 0 || this.#owed === noLength)) this.#end()
    else if (!this.#sentEnd || (this.#unsent === 0 && !this.#receivedEnd)) this.#exchange.cancel(CancelReason.Cancelled)
    // What was sent to its end leaves first.
  }

  #answer(chunk: Buffer, callback: WriteCallback): void {
    const text = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk])
    const answer = parseAnswer(text)
    if (answer === undefined) {
      if (text.length > longestHead) throw nodeError('ERR_INVALID_HTTP_RESPONSE', 'what was written is no response')
      this.#begun = text
      callback()
      return
    }
    const { status, fields, end } = answer
    const rest = text.subarray(end)
    this.#begun = nothing
    if (status === 101) {
      this.#exchange.sendHead(responseHead(200, fields), false)
      this.#state = 'open'
      if (rest.length > 0) this.#send(rest, callback)
      else callback()
      return
    }
    // A 2xx opens the tunnel, in HTTP/2 at least.
    if (status < 300) throw nodeError('ERR_INVALID_HTTP_RESPONSE', `a request for a tunnel is not refused by a ${status}`)
    this.#state = 'refused'
    this.#refusal = { status, fields }
    this.#owed = contentLength(fields)
    if (rest.length > 0) {
      this.#sendContent(rest, callback)
      return
    }
    // Most refusals have no content: the head waits for a sign of it until the end of this tick.
    process.nextTick(() => this.#sendRefusal(false))
    callback()
  }

  #sendRefusal(end: boolean): void {
    const refusal = this.#refusal
    if (refusal === undefined) return
    this.#refusal = undefined
    this.#sentEnd = end
    this.#exchange.sendHead(responseHead(refusal.status, refusal.fields), end)
  }

  #sendContent(chunk: Buffer, callback: WriteCallback): void {
    this.#sendRefusal(false)
    // What is longer than it said would spoil what the connection carries next.
    const content = this.#owed === noLength ? chunk : chunk.subarray(0, this.#owed)
    if (this.#owed !== noLength) this.#owed -= content.length
    if (content.length > 0) this.#send(content, callback)
    else callback()
  }

  #send(chunk: Buffer, callback: WriteCallback): void {
    this.#unsent += chunk.length
    if (this.#exchange.sendData(chunk, 0, chunk.length, false)) callback()
    else this.#blocked = callback
  }

  #end(): void {
    if (this.#refusal !== undefined) {
      const hasContent = this.#owed !== 0 && this.#owed !== noLength
      this.#sendRefusal(!hasContent)
    }
    if (this.#sentEnd) return
    this.#sentEnd = true
    this.#exchange.sendData(nothing, 0, 0, true)
  }

  #credit(): void {
    const held = this.#held
    if (held === 0) return
    this.#held = 0
    this.#exchange.consume(held)
  }

  // ── From the engine ─────────────────────────────────────────────────────────────────────────────

  /** @internal */
  receive(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.#touch()
    const count = limit - start
    if (count > 0) {
      this.#held += count
      // Copied, because it is kept; credited once the stream has room for more.
      if (this.push(Buffer.from(buffer.subarray(start, limit)))) this.#credit()
    }
    if (end) {
      this.#receivedEnd = true
      this.push(null)
    }
  }

  /** @internal */
  sent(byteCount: number, writable: boolean): void {
    this.#touch()
    this.#unsent -= byteCount
    if (this.destroyed && this.#unsent === 0 && !this.#receivedEnd) this.#exchange.cancel(CancelReason.Cancelled)
    if (!writable) return
    const blocked = this.#blocked
    this.#blocked = undefined
    blocked?.()
  }

  /** @internal The exchange is over. */
  exchangeClosed(error: HeddleError | undefined): void {
    const refused = this.#state === 'refused'
    this.#state = 'over'
    if (error !== undefined) {
      this.destroy(aborted(error))
      return
    }
    // What was received may still be read.
    this.push(null)
    if (refused) this.resume()
  }

  // ── What `net.Socket` has besides ───────────────────────────────────────────────────────────────

  get #info(): ConnectionInfo {
    return this.#exchange.connection
  }
  get remoteAddress(): string | undefined {
    return this.#info.remote.address
  }
  get remotePort(): number | undefined {
    return this.#info.remote.port
  }
  get remoteFamily(): string | undefined {
    return this.#info.remote.family
  }
  get localAddress(): string | undefined {
    return this.#info.local.address
  }
  get localPort(): number | undefined {
    return this.#info.local.port
  }
  get localFamily(): string | undefined {
    return this.#info.local.family
  }
  /** True over TLS; undefined else, as with Node's sockets. */
  get encrypted(): true | undefined {
    return this.#info.tls === undefined ? undefined : true
  }
  get authorized(): boolean {
    return this.#info.tls?.authorized ?? false
  }
  get alpnProtocol(): string | false {
    return this.#info.tls?.alpn ?? false
  }
  get servername(): string | false {
    return this.#info.tls?.serverName ?? false
  }
  getProtocol(): string | null {
    return this.#info.tls?.version ?? null
  }
  /** The client's certificate as `tls.TLSSocket` gives it; an empty object if it sent none. */
  getPeerCertificate(): object {
    const raw = this.#info.tls?.peerCertificate
    return raw === undefined ? {} : new X509Certificate(raw).toLegacyObject()
  }

  /** 'timeout' comes after `timeout` ms without a byte; 0 turns it off. */
  setTimeout(timeout: number, callback?: () => void): this {
    this.timeout = timeout
    clearTimeout(this.#timer)
    this.#timer = timeout > 0 && !this.destroyed ? setTimeout(() => this.emit('timeout'), timeout).unref() : undefined
    if (callback !== undefined) {
      if (timeout > 0) this.once('timeout', callback)
      else this.removeListener('timeout', callback)
    }
    return this
  }

  #touch(): void {
    this.#timer?.refresh()
  }

  destroySoon(): void {
    if (this.writable) this.end(() => this.destroy())
    else this.destroy()
  }

  // The connection is heddle's, and may carry other requests too.
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
}

/** What the engine tells, handed on to the socket. */
class Tunnel implements ExchangeHandler {
  readonly #socket: UpgradeSocket

  constructor(socket: UpgradeSocket) {
    this.#socket = socket
  }

  onHead(): void {}
  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.#socket.receive(buffer, start, limit, end)
  }
  onTrailers(): void {}
  onSent(byteCount: number, writable: boolean): void {
    this.#socket.sent(byteCount, writable)
  }
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    this.#socket.exchangeClosed(error)
  }
}
