import type { CancelReason, ConnectionInfo, Exchange, ExchangeHandler, Fields, Head, HeddleError, Priority } from '../http/index.ts'

/** The connection, as its exchanges see it. */
export interface ExchangeOwner {
  sendHead(exchange: Http1Exchange, head: Head, end: boolean): void
  sendContent(exchange: Http1Exchange, buffer: Uint8Array, start: number, limit: number, end: boolean): boolean
  sendOwned(exchange: Http1Exchange, chunk: Uint8Array, end: boolean): boolean
  sendTrailers(exchange: Http1Exchange, fields: Fields): void
  consume(exchange: Http1Exchange, byteCount: number): void
  discard(exchange: Http1Exchange): void
  cancel(exchange: Http1Exchange, reason: CancelReason): void
}

/**
 * One request and its response on an HTTP/1.1 connection: a handle. The connection does one exchange
 * at a time and holds the state itself, so the handle is all that has to be made per request.
 */
export class Http1Exchange implements Exchange {
  readonly protocol: 'h1'
  readonly connection: ConnectionInfo
  handler: ExchangeHandler
  /** For the engine: the rest of the fields. */
  readonly owner: ExchangeOwner
  /** Where its message begins and ends among all octets the connection ever queued. */
  startAt: number
  endAt: number
  /** Content octets taken by `sendData` that `onSent` has not reported. */
  unsent: number
  /** `sendData` returned false. */
  blocked: boolean
  /** It is over: `onClose` was called or is due. */
  over: boolean
  /** What `onClose` will be given, while it is due. */
  error: HeddleError | undefined
  /** It was ended by this side: `onClose` waits for `transmit` or `expire`. */
  local: boolean
  /** An Upgrade may be ignored, or is. */
  mayIgnoreUpgrade: boolean
  upgradeIgnored: boolean
  /** Behind it in the list it stands in. */
  next: Http1Exchange | undefined

  constructor(owner: ExchangeOwner, connection: ConnectionInfo, handler: ExchangeHandler) {
    this.protocol = 'h1'
    this.connection = connection
    this.handler = handler
    this.owner = owner
    this.startAt = 0
    this.endAt = 0
    this.unsent = 0
    this.blocked = false
    this.over = false
    this.error = undefined
    this.local = false
    this.mayIgnoreUpgrade = false
    this.upgradeIgnored = false
    this.next = undefined
  }

  sendHead(head: Head, end: boolean): void {
    if (!this.over) this.owner.sendHead(this, head, end)
  }

  sendData(buffer: Uint8Array, start: number, limit: number, end: boolean): boolean {
    return !this.over && this.owner.sendContent(this, buffer, start, limit, end)
  }

  sendOwned(chunk: Uint8Array, end: boolean): boolean {
    return !this.over && this.owner.sendOwned(this, chunk, end)
  }

  sendTrailers(fields: Fields): void {
    if (!this.over) this.owner.sendTrailers(this, fields)
  }

  consume(byteCount: number): void {
    if (!this.over) this.owner.consume(this, byteCount)
  }

  discard(): void {
    if (!this.over) this.owner.discard(this)
  }

  /** HTTP/1.1 has nothing to order: one exchange at a time. */
  setPriority(_priority: Priority): void {}

  ignoreUpgrade(): void {
    this.mayIgnoreUpgrade = true
  }

  cancel(reason: CancelReason): void {
    if (!this.over) this.owner.cancel(this, reason)
  }
}

/** Stands in until the owner has named the handler of a new exchange. */
export const noHandler: ExchangeHandler = {
  onHead() {},
  onData() {},
  onTrailers() {},
  onSent() {},
  onPriority() {},
  onClose() {},
}

/** Exchanges in a row, linked through themselves. */
export class ExchangeQueue {
  first: Http1Exchange | undefined
  last: Http1Exchange | undefined
  length: number

  constructor() {
    this.first = undefined
    this.last = undefined
    this.length = 0
  }

  push(exchange: Http1Exchange): void {
    exchange.next = undefined
    if (this.last === undefined) this.first = exchange
    else this.last.next = exchange
    this.last = exchange
    this.length++
  }

  shift(): Http1Exchange | undefined {
    const { first } = this
    if (first === undefined) return undefined
    this.first = first.next
    if (this.first === undefined) this.last = undefined
    first.next = undefined
    this.length--
    return first
  }
}
