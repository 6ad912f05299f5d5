import { ServerResponse as NodeServerResponse, STATUS_CODES, type OutgoingHttpHeader, type OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { fieldValue, isBodiless, responseHead, UsageError, type Exchange, type Fields, type Head } from '../http/index.ts'
import { headersSent, nodeError, streamDestroyed, writeAfterEnd } from './errors.ts'
import { checkedFields, fieldsOf, hintFields, pairsOf, type HeaderInput, type HeaderValue } from './header-fields.ts'
import type { IncomingMessage } from './incoming-message.ts'
import type { MessageSocket } from './message-socket.ts'

type Done = (error?: Error | null) => void

/** Whom a {@link ServerResponse} tells. */
export interface ResponseOwner {
  /** The program has said all of the response. */
  onResponseEnded(): void
  /** All of it has left. */
  onResponseFinished(): void
  /** The program gives the response up. */
  onResponseDestroyed(error: Error | undefined): void
}

/** Bookkeeping of Node's class that its own methods and other people's middleware look at. */
interface Internals {
  /** Truthy once the head is decided: `headersSent`, and header methods throw. */
  _header: string | null
  _closed: boolean
  /** The program removed content-length, and wants none to be added. */
  _removedContLen: boolean
}

interface PendingWrite {
  /** Bytes of content up to the end of this write. */
  readonly at: number
  readonly done: Done
}

/** The exchange took `byteCount` bytes of content; `writable`: it wants more. */
export let responseSent: (response: ServerResponse, byteCount: number, writable: boolean) => void
/** The exchange is over; `error`: before all was sent. */
export let responseClosed: (response: ServerResponse, error: Error | undefined) => void

/**
 * A response as Node's frameworks know it: a real `http.ServerResponse`. Node's class keeps the header
 * fields; what is sent goes to an exchange. The head leaves with the first of the content.
 */
export class ServerResponse extends NodeServerResponse<IncomingMessage> {
  // Node's class computes these from what only it can set.
  override socket: Socket | null
  override connection: Socket | null
  override writableFinished: boolean
  override writableLength: number
  override writableNeedDrain: boolean
  override errored: Error | null
  readonly #exchange: Exchange
  readonly #owner: ResponseOwner
  /** Decided and not sent yet. */
  #head: Head | undefined
  #hasContent: boolean
  /** Bytes of content given to the exchange, and those of them that left. */
  #given: number
  #left: number
  #pending: PendingWrite[]
  #trailers: Fields

  static {
    responseSent = (response, byteCount, writable) => response.#sent(byteCount, writable)
    responseClosed = (response, error) => response.#over(error)
  }

  constructor(request: IncomingMessage, socket: MessageSocket, exchange: Exchange, owner: ResponseOwner) {
    super(request)
    this.socket = socket as unknown as Socket
    this.connection = this.socket
    this.writableFinished = false
    this.writableLength = 0
    this.writableNeedDrain = false
    this.errored = null
    this.#exchange = exchange
    this.#owner = owner
    this.#head = undefined
    this.#hasContent = request.method !== 'HEAD'
    this.#given = 0
    this.#left = 0
    this.#pending = []
    this.#trailers = []
    // Express gives the object the prototype of Node's class: what is ours must be the object's own.
    const ours = ServerResponse.prototype as this
    this.writeHead = ours.writeHead
    this.write = ours.write
    this.end = ours.end
    this.flushHeaders = ours.flushHeaders
    this._implicitHeader = ours._implicitHeader
    this.writeInformation = ours.writeInformation
    this.writeContinue = ours.writeContinue
    this.writeProcessing = ours.writeProcessing
    this.writeEarlyHints = ours.writeEarlyHints
    this.addTrailers = ours.addTrailers
    this.setTimeout = ours.setTimeout
    this.destroy = ours.destroy
  }

  // ── Heads ───────────────────────────────────────────────────────────────────────────────────────

  /**
   * Decides the head. `statusMessage` is kept on the object and not sent. Throws ERR_HTTP_HEADERS_SENT, and
   * ERR_HTTP_INVALID_STATUS_CODE for a status that is not 200–599.
   */
  override writeHead(
    statusCode: number,
    statusMessage?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    if (this.headersSent) throw headersSent('write')
    const status = statusCode | 0
    if (status < 200 || status > 599) {
      throw nodeError('ERR_HTTP_INVALID_STATUS_CODE', `Invalid status code: ${statusCode}`, RangeError)
    }
    this.statusCode = status
    if (typeof statusMessage === 'string') this.statusMessage = statusMessage
    else {
      this.statusMessage ||= STATUS_CODES[status] ?? 'unknown'
      headers ??= statusMessage
    }
    if (headers !== undefined && headers !== null) this.#setAll(headers as HeaderInput)
    if (isBodiless(status)) this.#hasContent = false
    this.#head = responseHead(status, fieldsOf(this.getHeaders() as Record<string, HeaderValue>))
    ;(this as unknown as Internals)._header = `HTTP/1.1 ${status}\r\n\r\n`
    return this
  }

  /** What is given here takes the place of what was set before; lines of one name within it all stay. */
  #setAll(headers: HeaderInput): void {
    const pairs = pairsOf(headers)
    if (!Array.isArray(headers)) {
      for (const [name, value] of pairs) this.setHeader(name, value)
      return
    }
    for (const [name] of pairs) this.removeHeader(name)
    for (const [name, value] of pairs) this.appendHeader(name, value as string)
  }

  /** What `write` and `end` call when `writeHead` was not: the place where middleware changes the head last. */
  _implicitHeader(): void {
    this.writeHead(this.statusCode)
  }

  override flushHeaders(): void {
    if (!this.headersSent) this._implicitHeader()
    this.#sendHead(false)
  }

  #sendHead(end: boolean): void {
    const head = this.#head
    if (head === undefined) return
    this.#head = undefined
    this.#exchange.sendHead(head, end)
  }

  /** Sends an informational response: 100, 102–199. */
  override writeInformation(statusCode: number, headers?: HeaderInput | (() => void) | null, done?: () => void): void {
    if (typeof headers === 'function') return this.writeInformation(statusCode, null, headers)
    if (this.headersSent) throw headersSent('write')
    if (!(statusCode >= 100 && statusCode <= 199) || statusCode === 101) {
      throw nodeError('ERR_HTTP_INVALID_STATUS_CODE', `Invalid status code: ${statusCode}`, RangeError)
    }
    this.#exchange.sendHead(responseHead(statusCode, headers === undefined || headers === null ? [] : checkedFields(headers)), false)
    if (done !== undefined) process.nextTick(done)
  }

  /** Sends 100. Not needed: it is sent when the request is first read. */
  override writeContinue(done?: () => void): void {
    this.writeInformation(100, null, done)
  }

  override writeProcessing(done?: () => void): void {
    this.writeInformation(102, null, done)
  }

  override writeEarlyHints(hints: Record<string, string | string[]>, done?: () => void): void {
    const fields = hintFields(hints)
    if (fields.length > 0) this.writeInformation(103, fields, done)
  }

  // ── Content ─────────────────────────────────────────────────────────────────────────────────────

  override write(chunk: unknown, encoding?: BufferEncoding | Done | null, done?: Done | null): boolean {
    const then = (typeof encoding === 'function' ? encoding : done) ?? undefined
    const bytes = bytesOf(chunk, typeof encoding === 'function' ? undefined : encoding)
    if (!this.#mayWrite(then)) return false
    if (!this.headersSent) this._implicitHeader()
    try {
      this.#sendHead(false)
      return this.#send(bytes, false, then)
    } catch (error) {
      return this.#fail(error, then)
    }
  }

  override end(chunk?: unknown, encoding?: BufferEncoding | Done | null, done?: Done | null): this {
    if (typeof chunk === 'function') return this.end(undefined, undefined, chunk as Done)
    const then = (typeof encoding === 'function' ? encoding : done) ?? undefined
    const bytes =
      chunk === undefined || chunk === null || chunk === '' ? none : bytesOf(chunk, typeof encoding === 'function' ? undefined : encoding)
    if (this.finished && bytes.length === 0) {
      if (then !== undefined) this.#afterFinish(then)
      return this
    }
    if (!this.#mayWrite(then)) return this
    if (!this.headersSent) this._implicitHeader()
    if (then !== undefined) this.once('finish', then)
    this.emit('prefinish')
    this.finished = true
    try {
      this.#sendLast(bytes)
    } catch (error) {
      this.#fail(error, undefined)
      return this
    }
    this.#owner.onResponseEnded()
    if (this.#left === this.#given) process.nextTick(() => this.#finish())
    return this
  }

  /** Sends what is left to send: head, content, trailers. */
  #sendLast(bytes: Uint8Array): void {
    const hasTrailers = this.#trailers.length > 0 && this.#hasContent
    const hasBytes = bytes.length > 0 && this.#hasContent
    const head = this.#head
    if (head !== undefined) {
      if (!hasTrailers && this.#hasContent && this.#mayAddLength(head)) {
        this.#head = responseHead(head.status, [...head.fields, 'content-length', `${bytes.length}`])
      }
      this.#sendHead(!hasBytes && !hasTrailers)
      if (!hasBytes && !hasTrailers) return
    }
    if (hasBytes) this.#send(bytes, !hasTrailers, undefined)
    else if (!hasTrailers) this.#exchange.sendData(none, 0, 0, true)
    if (hasTrailers) this.#exchange.sendTrailers(this.#trailers)
  }

  /** The length is known because all of the content is here. */
  #mayAddLength({ fields }: Head): boolean {
    if (fieldValue(fields, 'content-length') !== undefined || fieldValue(fields, 'transfer-encoding') !== undefined) return false
    return !(this as unknown as Internals)._removedContLen
  }

  #send(bytes: Uint8Array, end: boolean, done: Done | undefined): boolean {
    if (!this.#hasContent || bytes.length === 0) {
      if (done !== undefined) process.nextTick(done)
      return true
    }
    this.#given += bytes.length
    this.writableLength += bytes.length
    if (done !== undefined) this.#pending.push({ at: this.#given, done })
    const writable = this.#exchange.sendOwned(bytes, end)
    this.writableNeedDrain = !writable && !end
    return writable
  }

  /** Throws Node's errors for names and values that cannot be sent. */
  override addTrailers(headers: OutgoingHttpHeaders | readonly [string, string][]): void {
    this.#trailers = checkedFields(headers as HeaderInput)
  }

  #mayWrite(done: Done | undefined): boolean {
    if (!this.finished && !this.destroyed) return true
    const error = this.finished ? writeAfterEnd() : streamDestroyed()
    process.nextTick(() => {
      done?.(error)
      if (this.finished && !this.destroyed && this.listenerCount('error') > 0) this.emit('error', error)
    })
    return false
  }

  /** The exchange does not take what was written: more content than was declared, for example. */
  #fail(error: unknown, done: Done | undefined): false {
    if (!(error instanceof UsageError)) throw error
    this.destroy(error)
    process.nextTick(() => {
      done?.(error)
      if (this.listenerCount('error') > 0) this.emit('error', error)
    })
    return false
  }

  // ── Ends ────────────────────────────────────────────────────────────────────────────────────────

  override destroy(error?: Error): this {
    if (this.destroyed) return this
    this.destroyed = true
    this.errored = error ?? null
    if (!this.writableFinished) this.#owner.onResponseDestroyed(error)
    return this
  }

  override setTimeout(timeout: number, callback?: () => void): this {
    if (callback !== undefined) this.on('timeout', callback)
    this.socket?.setTimeout(timeout)
    return this
  }

  #sent(byteCount: number, writable: boolean): void {
    this.#left += byteCount
    this.writableLength = this.#given - this.#left
    while (this.#pending.length > 0 && (this.#pending[0] as PendingWrite).at <= this.#left) (this.#pending.shift() as PendingWrite).done()
    if (writable && this.writableNeedDrain) {
      this.writableNeedDrain = false
      if (!this.finished && !this.destroyed) this.emit('drain')
    }
    if (this.finished && this.#left === this.#given) this.#finish()
  }

  /** All of it has left. */
  #finish(): void {
    if (this.writableFinished || this.destroyed) return
    this.writableFinished = true
    this.emit('finish')
    this.#owner.onResponseFinished()
    process.nextTick(() => this.#close())
  }

  #over(error: Error | undefined): void {
    if (error === undefined && this.finished) this.#finish()
    if (this.writableFinished) return
    this.writableLength = 0
    try {
      this.#failPending(error ?? streamDestroyed())
    } finally {
      this.#close()
    }
  }

  /** Every callback is told, whatever one of them throws. Throws what the first one threw. */
  #failPending(error: Error): void {
    const thrown: unknown[] = []
    for (const { done } of this.#pending.splice(0)) {
      try {
        done(error)
      } catch (cause) {
        thrown.push(cause)
      }
    }
    if (thrown.length > 0) throw thrown[0]
  }

  #close(): void {
    const internals = this as unknown as Internals
    if (internals._closed) return
    this.destroyed = true
    internals._closed = true
    this.emit('close')
  }

  #afterFinish(done: Done): void {
    if (this.writableFinished)
      process.nextTick(done, nodeError('ERR_STREAM_ALREADY_FINISHED', 'Cannot call end after a stream was finished'))
    else this.once('finish', done)
  }
}

const none = Buffer.alloc(0)

/** Throws Node's errors for what is no content. */
function bytesOf(chunk: unknown, encoding: BufferEncoding | null | undefined): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk, encoding ?? 'utf8')
  if (chunk instanceof Uint8Array) return chunk
  if (chunk === null) throw nodeError('ERR_STREAM_NULL_VALUES', 'May not write null values to stream', TypeError)
  throw nodeError('ERR_INVALID_ARG_TYPE', 'The "chunk" argument must be of type string or an instance of Buffer or Uint8Array.', TypeError)
}
