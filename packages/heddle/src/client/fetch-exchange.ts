import {
  CancelReason,
  contentLength,
  PeerError,
  requestHead,
  type Exchange,
  type Fields,
  type Head,
  type HeddleError,
} from '../http/index.ts'
import { IncomingBody, type ContentSender, type IncomingOwner } from '../web/index.ts'
import type { FetchJob } from './fetch-job.ts'
import type { FetchRequest } from './fetch-request.ts'
import type { ClientExchangeHandler, Ticket } from './ticket.ts'

/**
 * One attempt of a fetch: one request on one exchange, and its response. It lives as long as the
 * exchange and holds nothing of what the program holds, so that a forgotten Response can be collected.
 */
export class FetchExchange implements ClientExchangeHandler, IncomingOwner {
  readonly job: FetchJob
  readonly request: FetchRequest
  ticket: Ticket | undefined
  exchange: Exchange | undefined
  sender: ContentSender | undefined
  /** The final response's content; undefined before its head. */
  incoming: IncomingBody | undefined
  /** A connection was there. */
  opened: boolean
  /** Nothing that comes matters any more: it was given up, or redirected. */
  left: boolean

  constructor(job: FetchJob, request: FetchRequest) {
    this.job = job
    this.request = request
    this.ticket = undefined
    this.exchange = undefined
    this.sender = undefined
    this.incoming = undefined
    this.opened = false
    this.left = false
  }

  /** Nothing was sent that cannot be sent again. */
  get replayable(): boolean {
    const { content } = this.request
    return !this.left && (content === undefined || content.replayable || !content.begun)
  }

  onOpen(exchange: Exchange): void {
    // A second call: the first connection was dead before a byte of the request was on it.
    this.sender?.stop(undefined)
    this.exchange = exchange
    this.opened = true
    if (this.left) {
      exchange.cancel(CancelReason.Cancelled)
      return
    }
    const { request } = this
    const { target, content, host } = request
    const { site } = target
    try {
      exchange.sendHead(
        requestHead(request.method, site.scheme, host === undefined ? site.authority : host, target.path, request.fields),
        content === undefined || content.length === 0,
      )
      if (content !== undefined && content.length !== 0) this.sender = content.send(exchange, (error) => this.#contentFailed(error))
    } catch (error) {
      this.job.fail(error)
    }
  }

  onHead(head: Head, end: boolean): void {
    if (this.left) return
    if (head.status < 200) {
      this.job.informational(head)
      return
    }
    if (this.job.redirected(this, head)) return
    const incoming = new IncomingBody(this, contentLength(head.fields))
    this.incoming = incoming
    if (end) incoming.end()
    this.job.responded(head, incoming)
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const { incoming } = this
    if (incoming === undefined) return
    incoming.push(buffer, start, limit)
    if (end) incoming.end()
  }

  onTrailers(fields: Fields): void {
    this.incoming?.end(fields)
  }

  onSent(_byteCount: number, writable: boolean): void {
    if (writable) this.sender?.resume()
  }

  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    this.exchange = undefined
    this.sender?.stop(error)
    if (this.left) return
    const { incoming } = this
    if (incoming === undefined) {
      this.job.closed(this, error ?? new PeerError('PEER_CLOSED', 'the connection was closed before a response came'))
      return
    }
    incoming.fail(error ?? new PeerError('MESSAGE_TRUNCATED', 'the connection was closed before the response was complete'))
    this.job.finish()
  }

  onBodyWanted(): void {}

  onBodyConsumed(byteCount: number): void {
    this.exchange?.consume(byteCount)
  }

  /** The program, or the garbage collector, gave the rest of the content up. */
  onBodyCancelled(reason: unknown): void {
    this.leave(reason)
    this.job.finish()
  }

  /** Nothing more is wanted of this attempt, but its connection may be worth keeping. */
  leave(reason: unknown): void {
    if (this.left) return
    this.left = true
    const sending = this.sender !== undefined && !this.sender.finished
    this.sender?.stop(reason)
    // Half a request cannot be taken back: only a whole one leaves a connection behind that can be used again.
    if (sending || this.exchange === undefined) this.#cancel(CancelReason.Cancelled)
    else this.exchange.discard()
  }

  /** Ends it at once. What is read of its content from now on rejects with `reason`. */
  abort(reason: unknown): void {
    if (this.left) return
    this.left = true
    this.sender?.stop(reason)
    this.incoming?.fail(reason)
    this.#cancel(CancelReason.Cancelled)
  }

  #cancel(reason: CancelReason): void {
    // Without a ticket the pool is still inside `exchange()`, which has opened the exchange at once.
    if (this.ticket !== undefined) this.ticket.cancel(reason)
    else this.exchange?.cancel(reason)
  }

  #contentFailed(error: unknown): void {
    if (!this.left) this.job.fail(error)
  }
}
