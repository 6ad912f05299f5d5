import {
  CancelledError,
  CancelReason,
  contentLength,
  expectationOf,
  HeddleError,
  NetworkError,
  ProtocolError,
  reasonPhrase,
  responseHead,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
} from '../http/index.ts'
import { systemClock, type Clock } from '../io/index.ts'
import {
  abortRequest,
  cancelBody,
  cancelSource,
  fieldsFrom,
  IncomingBody,
  originFrom,
  requestFrom,
  Response,
  responseFields,
  responseSource,
  responseTrailers,
  sourceReader,
  UpgradeError,
  type BodySource,
  type IncomingOwner,
  type Request,
  type Source,
  type TrailersInit,
} from '../web/index.ts'
import type { Advertiser } from './advertiser.ts'
import { checkOrdinary, FetchTunnel, Tunnels } from './fetch-tunnel.ts'
import type { FetchApp, FetchHandler, ResponseLike, ServeOptions } from './options.ts'
import { RequestContext } from './request-context.ts'
import { ResponsePump, sendBytes, sendText, withLength, withoutLength, type PumpOwner } from './response-writer.ts'

/** What all exchanges of one server's fetch handler share. */
export class FetchFace {
  readonly handler: FetchHandler
  /** The object the handler is a method of. */
  readonly app: FetchApp
  readonly clock: Clock
  /** What clients tunnelled to; undefined: the server takes no WebSockets. */
  readonly tunnels: Tunnels | undefined
  /** Once HTTP/3 is up beside the other versions. */
  advertiser: Advertiser | undefined
  readonly #onError: ServeOptions['onError']

  constructor(options: ServeOptions) {
    const { fetch, clock = systemClock(), websocket = false } = options
    this.app = typeof fetch === 'object' && fetch !== null ? fetch : { fetch: fetch as FetchHandler }
    this.handler = this.app.fetch
    this.clock = clock
    this.tunnels = websocket ? new Tunnels() : undefined
    this.advertiser = undefined
    this.#onError = options.onError
  }

  /** Tells of a failure that no response can be sent for. */
  readonly report = (error: unknown): void => {
    void this.failed(error, undefined)
  }

  /** Tells of a failure; resolves with the response to send instead of the plain 500, if there is one. Never rejects. */
  async failed(error: unknown, request: Request | undefined): Promise<ResponseLike | undefined> {
    if (this.#onError === undefined) {
      // What clients and the network do is counted; printing it would let them fill the log.
      if (!(error instanceof NetworkError)) console.error(error)
      return undefined
    }
    try {
      return (await this.#onError(error, request)) ?? undefined
    } catch (second) {
      console.error(second)
      return undefined
    }
  }
}

/** One request and its response between the engine and a fetch handler. */
export class FetchExchange implements ExchangeHandler, IncomingOwner, PumpOwner {
  declare private readonly face: FetchFace
  declare private readonly exchange: Exchange
  declare private request: Request | undefined
  declare private body: IncomingBody | undefined
  declare private pump: ResponsePump | undefined
  /** What the request asks for, if it is a tunnel. */
  declare private tunnel: FetchTunnel | undefined
  /** The response to HEAD has no content. */
  declare private hasContent: boolean
  /** The client waits for 100 (Continue). */
  declare private expects: boolean
  /**
   * Of the response: none yet, or none that can be sent; one whose head waits for its content (in
   * `start`); its head was sent; all of it was. Or the exchange is over.
   */
  declare private state: 'waiting' | 'starting' | 'sending' | 'sent' | 'closed'
  /** The handler's response in the state `starting`. */
  declare private start: Head | undefined
  /** The handler, or its response, failed: what `onError` gave is the second and last try. */
  declare private failed: boolean
  /** Cancelled from here, which has been told. */
  declare private cut: boolean
  declare private error: unknown

  constructor(face: FetchFace, exchange: Exchange) {
    this.face = face
    this.exchange = exchange
    this.request = undefined
    this.body = undefined
    this.pump = undefined
    this.tunnel = undefined
    this.hasContent = true
    this.expects = false
    this.state = 'waiting'
    this.start = undefined
    this.failed = false
    this.cut = false
    this.error = undefined
  }

  onHead(head: Head, end: boolean): void {
    this.hasContent = head.method !== 'HEAD'
    const expectation = expectationOf(head.fields)
    if (!end) {
      this.body = new IncomingBody(this, contentLength(head.fields))
      this.expects = expectation === 'continue'
    }
    if (expectation === 'unknown') {
      // RFC 9110 §10.1.1: who asks for what cannot be met is told so, whatever it was asked for with.
      this.refuse(417)
      return
    }
    if (head.method === 'CONNECT' && !this.offer(head, end)) return
    const origin = originFrom(head.scheme, head.authority === '' ? authorityOf(this.exchange) : head.authority)
    if (origin === undefined) {
      this.refuse(400)
      return
    }
    const request = this.tunnel === undefined ? requestFrom(head, origin, this.body) : this.tunnel.request(origin)
    this.request = request
    let result: ResponseLike | Promise<ResponseLike>
    try {
      result = this.face.handler.call(this.face.app, request, new RequestContext(this.exchange))
    } catch (error) {
      this.fail(error)
      return
    }
    if (result instanceof Response) this.respond(result)
    else if (isThenable(result)) {
      result.then(
        (response) => this.respond(response),
        (error: unknown) => this.fail(error),
      )
    } else this.respond(result)
  }

  /** `head` asks for a tunnel. False: there is none, which the client was told. */
  private offer(head: Head, end: boolean): boolean {
    const { tunnels, clock, report } = this.face
    // RFC 9110 §9.3.6: an origin server that makes no tunnels.
    const refusal = head.protocol === '' || tunnels === undefined ? 501 : end ? 400 : 0
    if (refusal !== 0 || tunnels === undefined) {
      this.refuse(refusal)
      return false
    }
    // What comes is the tunnel's, and no body.
    this.body = undefined
    this.expects = false
    this.tunnel = new FetchTunnel(this.exchange, head, clock, tunnels, report)
    return true
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (this.tunnel !== undefined) {
      this.tooEarly(this.tunnel)
      return
    }
    const body = this.body as IncomingBody
    this.expects = false
    if (limit > start) body.push(buffer, start, limit)
    if (end) body.end()
  }

  /** RFC 6455 §4.1: a client waits for the answer to its handshake. HTTP/1.1 lets the bytes of one that does not wait, too. */
  private tooEarly(tunnel: FetchTunnel): void {
    tunnel.refuse(new ProtocolError('the client did not wait for the answer to its handshake', 0))
    this.cut = true
    this.exchange.cancel(CancelReason.MessageError)
  }

  onTrailers(fields: Fields): void {
    this.body?.end(fields)
  }

  onSent(_byteCount: number, writable: boolean): void {
    if (writable) this.pump?.onWritable()
  }

  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    const complete = this.state === 'sent'
    this.state = 'closed'
    this.error = error
    if (error === undefined) return
    this.tunnel?.refuse(error)
    // Nobody but this side cancels: the response was shorter than it said, or something here threw.
    if (error instanceof CancelledError && !this.cut) void this.face.failed(error.cause ?? error, this.request)
    this.body?.fail(error)
    if (!complete && this.request !== undefined) abortRequest(this.request, error)
    this.pump?.stop(error)
  }

  onBodyWanted(): void {
    // The content of the response may be made of that of the request.
    if (!this.expects || (this.state !== 'waiting' && this.state !== 'starting')) return
    this.expects = false
    this.exchange.sendHead(responseHead(100), false)
  }

  onBodyConsumed(byteCount: number): void {
    this.exchange.consume(byteCount)
  }

  onBodyCancelled(): void {
    this.exchange.discard()
  }

  onPumpStart(): void {
    this.exchange.sendHead(this.start as Head, false)
    this.start = undefined
    this.state = 'sending'
  }

  onPumped(): void {
    this.sent()
  }

  onPumpFailed(error: unknown): void {
    if (this.state === 'closed') return
    if (this.state === 'starting') {
      // Nothing of the response was sent, so the client can be told.
      this.state = 'waiting'
      this.pump = undefined
      this.fail(error)
      return
    }
    // The head is out: all that is left is to cut, so the client sees that content is missing.
    this.cut = true
    this.exchange.cancel(CancelReason.InternalError)
    void this.face.failed(error, this.request)
  }

  private respond(response: ResponseLike): void {
    if (this.state !== 'waiting') {
      // The client is gone; whatever stands behind the content must not wait for it.
      release(response, this.error)
      return
    }
    try {
      this.deliver(response)
    } catch (error) {
      this.fail(error)
    }
  }

  /** Throws for what is no response, and for one that cannot be sent; then nothing was sent. */
  private deliver(returned: ResponseLike): void {
    if (this.tunnel === undefined && this.face.tunnels !== undefined) checkOrdinary(returned)
    const response = this.tunnel === undefined ? returned : this.tunnel.answer(returned)
    if (response === 'opened') {
      // The tunnel is open, and its taker's.
      this.state = 'sent'
      return
    }
    if (response !== returned) release(returned, undefined)
    if (response instanceof Response) {
      this.send(response.status, this.advertised(responseFields(response)), responseSource(response), responseTrailers(response))
    } else if (isResponseLike(response)) {
      this.send(response.status, this.advertised(fieldsFrom(response.headers)), response.body, undefined)
    } else {
      throw new TypeError(`The fetch handler returned ${described(response)} and not a Response.`)
    }
  }

  /** With the advertisement of HTTP/3, where there is one to be made. */
  private advertised(fields: Fields): Fields {
    const { advertiser } = this.face
    return advertiser === undefined || this.exchange.protocol === 'h3' ? fields : advertiser.add(fields)
  }

  private send(status: number, fields: Fields, source: Source, trailers: TrailersInit | undefined): void {
    if (!(status >= 200 && status <= 599)) throw new TypeError(`A response of status ${status} cannot be sent.`)
    if (trailers !== undefined) this.stream(status, withoutLength(fields), sourceReader(source), trailers, true)
    else if (source === null) {
      this.exchange.sendHead(responseHead(status, fields), true)
      this.sent()
    } else if (typeof source === 'string') {
      sendText(this.exchange, status, fields, source, this.hasContent)
      this.sent()
    } else if (source instanceof Uint8Array) {
      sendBytes(this.exchange, status, fields, source, this.hasContent)
      this.sent()
    } else {
      // What a Blob holds is there, or cannot be read.
      const isBlob = source instanceof Blob
      this.stream(status, isBlob ? withLength(fields, source.size) : fields, sourceReader(source), undefined, !isBlob)
    }
  }

  private stream(status: number, fields: Fields, source: BodySource, trailers: TrailersInit | undefined, prompt: boolean): void {
    const head = responseHead(status, fields)
    if (!this.hasContent) {
      try {
        this.exchange.sendHead(head, true)
      } finally {
        cancelSource(source, undefined)
      }
      this.sent()
      return
    }
    this.state = 'starting'
    this.start = head
    const pump = (this.pump = new ResponsePump(this.exchange, source, trailers, this))
    pump.run()
    // Content may be long in coming, and the client shall have the head meanwhile: at the end of this turn,
    // when it would leave in any case.
    if (prompt && this.state === 'starting') this.face.clock.soon(() => pump.start())
  }

  /** The response was handed over whole. */
  private sent(): void {
    if (this.state === 'closed') return
    this.state = 'sent'
    const body = this.body
    if (body === undefined || body.settled) return
    // RFC 9112 §9.3: the rest of the request has to be read, or the connection cannot go on.
    body.abandon()
    this.exchange.discard()
  }

  /** There is no response, and no head was sent: the handler failed, or what it returned cannot be sent. */
  private fail(error: unknown): void {
    this.tunnel?.refuse(new CancelledError(CancelReason.InternalError, 'the handler failed', { cause: error }))
    if (error instanceof UpgradeError && !this.failed) {
      this.failed = true
      this.recover(error.response)
      return
    }
    if (this.state === 'closed' && (isSameFailure(error, this.error) || (error as Error | undefined)?.name === 'AbortError')) {
      // It stopped because the client is gone, as it should.
      return
    }
    if (this.failed) {
      this.face.report(error)
      this.refuseFailed()
      return
    }
    this.failed = true
    this.face
      .failed(error, this.request)
      .then((response) => this.recover(response))
      .catch(this.face.report)
  }

  /** Sends what `onError` returned, or the plain 500. */
  private recover(response: ResponseLike | undefined): void {
    if (this.state !== 'waiting') {
      release(response, this.error)
      return
    }
    try {
      if (response !== undefined) {
        this.deliver(response)
        return
      }
    } catch (error) {
      this.face.report(error)
    }
    this.refuseFailed()
  }

  private refuseFailed(): void {
    if (this.state !== 'waiting') return
    try {
      this.refuse(500)
    } catch {
      // A handler that sent on the exchange by itself, which has been told: what it began has no end.
      this.cut = true
      this.exchange.cancel(CancelReason.InternalError)
    }
  }

  /** Answers without the handler. */
  private refuse(status: number): void {
    sendText(this.exchange, status, plainText, `${reasonPhrase(status)}\n`, this.hasContent)
    this.sent()
  }
}

const plainText: Fields = ['content-type', 'text/plain;charset=UTF-8']

function isThenable(result: unknown): result is Promise<ResponseLike> {
  return typeof result === 'object' && result !== null && typeof (result as Partial<Promise<unknown>>).then === 'function'
}

function isResponseLike(response: unknown): response is ResponseLike {
  if (typeof response !== 'object' || response === null) return false
  const { status, headers, body } = response as Partial<ResponseLike>
  return typeof status === 'number' && typeof headers?.[Symbol.iterator] === 'function' && (body === null || body instanceof ReadableStream)
}

function described(value: unknown): string {
  if (value === null || typeof value !== 'object') return `${typeof value === 'string' ? 'a string' : String(value)}`
  return `an object (${value.constructor?.name ?? 'without prototype'})`
}

/** The same error, or a copy of it that was made for its reader. */
function isSameFailure(one: unknown, other: unknown): boolean {
  if (one === other) return true
  return one instanceof HeddleError && other instanceof HeddleError && one.code === other.code && one.message === other.message
}

/** A response that will not be sent: frees what its content holds. */
function release(response: ResponseLike | undefined, reason: unknown): void {
  try {
    if (response instanceof Response) cancelBody(response, reason)
    else if (isResponseLike(response) && response.body !== null && !response.body.locked) response.body.cancel(reason).catch(() => {})
  } catch {
    // A look-alike that throws: nobody is left who could be told.
  }
}

/** RFC 9112 §3.3: HTTP/1.0 without Host is for the address it was sent to. */
function authorityOf(exchange: Exchange): string {
  const { address, port, family } = exchange.connection.local
  if (family === 'unix') return 'localhost'
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`
}
