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
import { cancelSource, ContentSender } from '../web/index.ts'
import { incomingFields, rawFields, type DispatchedRequest } from './request.ts'
import type { DispatchController, DispatchHandler } from './types.ts'

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
  aborted: boolean
  reason: Error | null
  readonly #request: DispatchedRequest
  readonly #handler: DispatchHandler
  readonly #clock: Clock
  readonly #times: DispatchTimes
  readonly #alarm: Alarm
  /** When something last came; what the alarm is measured from. */
  #lastAt: number
  #exchange: Exchange | undefined
  #sender: ContentSender | undefined
  /** `onRequestStart` was called. */
  #started: boolean
  /** Some content was taken from a source that gives it once. */
  #begun: boolean
  #responded: boolean
  readonly #waiting: Buffer[]
  /** Trailers, once all content came. */
  #trailers: Fields | undefined
  /** The handler was told of the end. */
  #over: boolean

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
    this.#started = false
    this.#begun = false
    this.#responded = false
    this.#waiting = []
    this.#trailers = undefined
    this.#over = false
  }

  get replayable(): boolean {
    return !this.#begun
  }

  // ── What the handler asks for ───────────────────────────────────────────────────────────────────

  abort(reason?: Error | null): void {
    if (this.aborted || this.#over) return
    const error = reason ?? new CancelledError(CancelReason.Cancelled, 'the request was aborted')
    this.aborted = true
    this.reason = error
    this.#cancel(CancelReason.Cancelled)
    // Not from inside the call in which it aborts.
    queueMicrotask(() => this.#fail(error))
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
    this.#sender?.stop(undefined)
    this.#sender = undefined
    this.#exchange = exchange
    if (!this.#started) {
      this.#started = true
      this.#tell(() => this.#handler.onRequestStart?.(this, {}))
    }
    if (this.aborted) {
      exchange.cancel(CancelReason.Cancelled)
      return
    }
    this.#watch(this.#times.headersTimeout)
    try {
      const empty = content === undefined || (content instanceof Uint8Array && content.length === 0)
      exchange.sendHead(head, empty)
      if (empty) this.#sent()
      else if (content instanceof Uint8Array) {
        exchange.sendData(content, 0, content.length, true)
        this.#tell(() => this.#handler.onBodySent?.(content))
        this.#sent()
      } else {
        this.#begun = true
        const sender = new ContentSender(exchange, content)
        this.#sender = sender
        sender.run().then(
          () => sender.finished && this.#sent(),
          (error: unknown) => this.abort(error as Error),
        )
      }
    } catch (error) {
      this.abort(error as Error)
    }
  }

  onHead(head: Head, end: boolean): void {
    if (this.aborted) return
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
    if (this.aborted) return
    this.#lastAt = this.#clock.now()
    // The handler keeps what it is given, the buffer is the connection's.
    if (limit > start) this.#waiting.push(Buffer.copyBytesFrom(buffer, start, limit - start))
    if (end) this.#end([])
    else this.#deliver()
  }

  onTrailers(fields: Fields): void {
    if (!this.aborted) this.#end(fields)
  }

  onSent(_byteCount: number, writable: boolean): void {
    if (writable) this.#sender?.resume()
  }

  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    this.#exchange = undefined
    this.#sender?.stop(error)
    if (this.reason !== null) this.#fail(this.reason)
    else if (this.#trailers === undefined)
      this.#fail(error ?? new PeerError('MESSAGE_TRUNCATED', 'the connection was closed before the response was complete'))
  }

  // ── ────────────────────────────────────────────────────────────────────────────────────────────

  /** All of the response is here. */
  #end(trailers: Fields): void {
    this.#trailers = trailers
    this.#clock.clear(this.#alarm)
    this.#deliver()
  }

  #deliver(): void {
    for (;;) {
      if (this.paused || this.aborted || this.#over) return
      const chunk = this.#waiting.shift()
      if (chunk === undefined) break
      this.#tell(() => this.#handler.onResponseData?.(this, chunk))
      this.#exchange?.consume(chunk.length)
    }
    if (this.#trailers === undefined) return
    this.#over = true
    const trailers = this.#trailers
    this.rawTrailers = rawFields(trailers)
    this.#tell(() => this.#handler.onResponseEnd?.(this, incomingFields(trailers)))
  }

  #sent(): void {
    if (!this.aborted) this.#tell(() => this.#handler.onRequestSent?.())
  }

  /** Runs what is the program's. If it throws, that ends the request; of one that is over nobody else hears. */
  #tell(call: () => void): void {
    try {
      call()
    } catch (error) {
      if (!this.#over) this.abort(error as Error)
      else
        queueMicrotask(() => {
          throw error
        })
    }
  }

  #fail(error: Error): void {
    if (this.#over) return
    this.#over = true
    this.#clock.clear(this.#alarm)
    this.#waiting.length = 0
    this.#sender?.stop(error)
    const { content } = this.#request
    if (content !== undefined && !(content instanceof Uint8Array) && !this.#begun) cancelSource(content, error)
    // Undici's own come here: what they throw is an uncaught exception, as with undici.
    this.#handler.onResponseError?.(this, error)
  }

  #cancel(reason: CancelReason): void {
    if (this.ticket !== undefined) this.ticket.cancel(reason)
    else this.#exchange?.cancel(reason)
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
    const due = (this.paused ? now : this.#lastAt) + time
    // While the handler pauses, the silence is its own.
    if (due > now) this.#clock.set(this.#alarm, due)
    else
      this.abort(
        new TimeoutError(this.#responded ? 'body' : 'head', `nothing came of the response of ${this.#request.origin} for ${time} ms`),
      )
  }
}
