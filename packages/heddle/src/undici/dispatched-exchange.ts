import type { ClientExchangeHandler, Ticket } from '../client/index.ts'
import {
  CancelledError,
  CancelReason,
  PeerError,
  reasonPhrase,
  TimeoutError,
  type Exchange,
  type Fields,
  type Head,
  type HeddleError,
} from '../http/index.ts'
import { Alarm, type Clock } from '../io/index.ts'
import { ContentSender, StreamSource, type BodySource } from '../web/index.ts'
import { incomingFields, rawFields, type DispatchedRequest } from './request.ts'
import type { DispatchController, DispatchHandler } from './types.ts'
import { WatchedSource } from './watched-source.ts'

/** Time limits of one request, ms; Infinity: none. */
export interface DispatchTimes {
  readonly headersTimeout: number
  readonly bodyTimeout: number
}

/**
 * One request that undici's `dispatch` began, between the exchange and undici's handler, whose
 * controller it is. What comes while the handler pauses waits here, and the peer gets no credit for it.
 */
export class DispatchedExchange implements ClientExchangeHandler, DispatchController {
  ticket: Ticket | undefined
  rawHeaders: readonly Buffer[] | null
  rawTrailers: readonly Buffer[] | null
  paused: boolean
  /** By the handler. Undici's `retry` goes on after any other end, such as a time limit or an error that it threw itself. */
  aborted: boolean
  reason: Error | null
  readonly #request: DispatchedRequest
  readonly #handler: DispatchHandler
  readonly #clock: Clock
  readonly #times: DispatchTimes
  readonly #alarm: Alarm
  /** When something last came or went; what the alarm is measured from. */
  #lastAt: number
  #exchange: Exchange | undefined
  #sender: ContentSender | undefined
  /** What the sender reads from. */
  #content: WatchedSource | undefined
  /** Some content was taken from a source that gives it once. */
  #begun: boolean
  #sent: boolean
  #responded: boolean
  readonly #waiting: Buffer[]
  #delivering: boolean
  /** Trailers, once all content came. */
  #trailers: Fields | undefined
  /** Why this side ended it, before the handler is told. */
  #failure: Error | undefined
  /** The handler was told of the end. */
  #over: boolean
  readonly #onBodyError: (error: Error) => void

  constructor(request: DispatchedRequest, handler: DispatchHandler, clock: Clock, times: DispatchTimes) {
    this.ticket = undefined
    this.rawHeaders = null
    this.rawTrailers = null
    this.paused = false
    this.aborted = false
    this.reason = null
    this.#request = request
    this.#handler = handler
    this.#clock = clock
    this.#times = times
    this.#alarm = new Alarm(() => this.#expire())
    this.#lastAt = 0
    this.#exchange = undefined
    this.#sender = undefined
    this.#content = undefined
    this.#begun = false
    this.#sent = false
    this.#responded = false
    this.#waiting = []
    this.#delivering = false
    this.#trailers = undefined
    this.#failure = undefined
    this.#over = false
    this.#onBodyError = (error) => this.#stop(error)
  }

  get replayable(): boolean {
    return !this.#begun
  }

  /** Tells the handler. False: it does not want the request any more. */
  start(): boolean {
    // It may break long before there is a connection, and nobody reads, or hears, of it.
    this.#request.stream?.on('error', this.#onBodyError)
    this.#tell(() => this.#handler.onRequestStart?.(this, {}))
    return !this.stopped
  }

  /** This side ended it. */
  get stopped(): boolean {
    return this.#failure !== undefined
  }

  /** It could not begin. */
  refuse(error: Error): void {
    this.#fail(error)
  }

  // ── What the handler asks for ───────────────────────────────────────────────────────────────────

  abort(reason?: Error | null): void {
    if (this.#over) {
      // The server was told all it wanted before all of the request was sent.
      if (this.#exchange !== undefined) this.#cancel()
      return
    }
    if (this.#failure !== undefined) return
    this.aborted = true
    this.reason = reason ?? new CancelledError(CancelReason.Cancelled, 'the request was aborted')
    this.#stop(this.reason)
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    if (!this.paused) return
    this.paused = false
    this.#lastAt = this.#clock.now()
    this.#deliver()
  }

  // ── What the exchange tells ─────────────────────────────────────────────────────────────────────

  onOpen(exchange: Exchange): void {
    const { head, content } = this.#request
    this.#exchange = exchange
    if (this.#failure !== undefined) {
      exchange.cancel(CancelReason.Cancelled)
      return
    }
    this.#watch(this.#times.headersTimeout)
    try {
      exchange.sendHead(head, content === undefined)
      if (content === undefined) this.#requestSent()
      else if (content instanceof Uint8Array) {
        exchange.sendData(content, 0, content.length, true)
        this.#tell(() => this.#handler.onBodySent?.(content))
        this.#requestSent()
      } else if (content instanceof Blob) this.#send(exchange, new StreamSource(content.stream()))
      else {
        this.#begun = true
        this.#send(exchange, content)
      }
    } catch (error) {
      this.#stop(error as Error)
    }
  }

  onMove(): void {
    this.#exchange = undefined
    this.#sender?.stop(undefined)
    this.#sender = undefined
    this.#clock.clear(this.#alarm)
  }

  onHead(head: Head, end: boolean): void {
    if (this.#failure !== undefined) return
    const { status, fields } = head
    this.rawHeaders = rawFields(fields)
    this.#tell(() => {
      if (!this.#responded) this.#handler.onResponseStarted?.()
      this.#handler.onResponseStart?.(this, status, incomingFields(fields), reasonPhrase(status))
    })
    if (status < 200) return
    this.#responded = true
    this.#watch(this.#times.bodyTimeout)
    if (end) this.#end([])
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (this.#failure !== undefined) return
    this.#lastAt = this.#clock.now()
    // The handler keeps what it is given, the buffer is the connection's.
    if (limit > start) this.#waiting.push(Buffer.copyBytesFrom(buffer, start, limit - start))
    if (end) this.#end([])
    else this.#deliver()
  }

  onTrailers(fields: Fields): void {
    if (this.#failure === undefined) this.#end(fields)
  }

  onSent(_byteCount: number, writable: boolean): void {
    if (!this.#responded) this.#lastAt = this.#clock.now()
    if (writable) this.#sender?.resume()
  }

  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    this.#exchange = undefined
    this.#leaveBody(error)
    if (this.#failure !== undefined) this.#fail(this.#failure)
    else if (this.#trailers === undefined)
      this.#fail(error ?? new PeerError('MESSAGE_TRUNCATED', 'the connection was closed before the response was complete'))
  }

  // ── ────────────────────────────────────────────────────────────────────────────────────────────

  #send(exchange: Exchange, source: BodySource): void {
    const content = new WatchedSource(source, (chunk) => this.#tell(() => this.#handler.onBodySent?.(chunk)))
    const sender = new ContentSender(exchange, content)
    this.#content = content
    this.#sender = sender
    sender.run().then(
      () => sender.finished && this.#requestSent(),
      (error: unknown) => {
        // Of a request that moved on, this is the sender of before.
        if (this.#sender !== sender) return
        if (this.#over) this.#cancel()
        else this.#stop(error as Error)
      },
    )
  }

  /** All of the response is here. */
  #end(trailers: Fields): void {
    this.#trailers = trailers
    this.#clock.clear(this.#alarm)
    this.#deliver()
  }

  #deliver(): void {
    // A handler that pauses and resumes in one call is told the rest after it, in its order.
    if (this.#delivering) return
    this.#delivering = true
    try {
      for (;;) {
        if (this.paused || this.#failure !== undefined || this.#over) return
        const chunk = this.#waiting.shift()
        if (chunk === undefined) break
        this.#tell(() => this.#handler.onResponseData?.(this, chunk))
        this.#exchange?.consume(chunk.length)
      }
    } finally {
      this.#delivering = false
    }
    if (this.#trailers === undefined) return
    this.#over = true
    const trailers = this.#trailers
    this.rawTrailers = rawFields(trailers)
    try {
      this.#handler.onResponseEnd?.(this, incomingFields(trailers))
    } catch (error) {
      // As undici does: its `retry` refuses a response in there.
      this.#tellError(error as Error)
    }
  }

  #requestSent(): void {
    if (this.#sent || this.#failure !== undefined) return
    this.#sent = true
    this.#lastAt = this.#clock.now()
    this.#tell(() => this.#handler.onRequestSent?.())
  }

  /** Runs what is the program's. If it throws, that ends the request. */
  #tell(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#stop(error as Error)
    }
  }

  /** Ends it with `error`, which the handler is told: not from inside the call in which that came up. */
  #stop(error: Error): void {
    if (this.#failure !== undefined || this.#over) return
    this.#failure = error
    this.#cancel()
    queueMicrotask(() => this.#fail(error))
  }

  #fail(error: Error): void {
    if (this.#over) return
    this.#over = true
    this.#failure ??= error
    this.#clock.clear(this.#alarm)
    this.#waiting.length = 0
    this.#leaveBody(error)
    this.#tellError(error)
  }

  /** What `onResponseError` itself throws is an uncaught exception, as with undici. */
  #tellError(error: Error): void {
    try {
      this.#handler.onResponseError?.(this, error)
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown
      })
    }
  }

  /** No more of it is sent. Of a stream that was begun the rest is lost; one that was not is still its program's. */
  #leaveBody(error: Error | undefined): void {
    const { stream } = this.#request
    if (!this.#begun) stream?.off('error', this.#onBodyError)
    if (this.#sender === undefined || this.#sender.finished) return
    this.#sender.stop(error)
    // An iterator that waits for its stream lets go of it no sooner than something comes.
    stream?.destroy(error)
  }

  #cancel(): void {
    if (this.ticket !== undefined) this.ticket.cancel(CancelReason.Cancelled)
    else this.#exchange?.cancel(CancelReason.Cancelled)
  }

  #watch(time: number): void {
    this.#lastAt = this.#clock.now()
    if (time === Infinity) this.#clock.clear(this.#alarm)
    else this.#clock.set(this.#alarm, this.#lastAt + time)
  }

  #expire(): void {
    const { headersTimeout, bodyTimeout } = this.#times
    const time = this.#responded ? bodyTimeout : headersTimeout
    const now = this.#clock.now()
    // The silence is the program's own while its handler pauses, and while its content is waited for.
    const ours = this.#responded ? this.paused : !this.#sent && this.#content?.reading === true
    const due = (ours ? now : this.#lastAt) + time
    if (due > now) this.#clock.set(this.#alarm, due)
    else
      this.#stop(
        new TimeoutError(this.#responded ? 'body' : 'head', `nothing came of the response of ${this.#request.origin} for ${time} ms`),
      )
  }
}
