import {
  noFields,
  responseHead,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type Priority,
} from '../http/index.ts'

/** What a {@link Gate} lets pass. */
export interface Passage {
  /**
   * Protocols that may be tunnelled to over HTTP/2: HTTP/1.1 takes no Upgrade but to those by itself.
   * Undefined: the engine has seen to it.
   */
  readonly protocols: readonly string[] | undefined
  /** False for hosts that the client's certificate was not checked for; undefined: none was asked for. */
  readonly covers: ((host: string) => boolean) | undefined
}

/**
 * The first handler of an exchange whose head decides whether the program sees it at all. The
 * program's handler is made when the head has passed.
 */
export class Gate implements ExchangeHandler {
  readonly #exchange: Exchange
  readonly #passage: Passage
  readonly #accept: (exchange: Exchange) => ExchangeHandler

  constructor(exchange: Exchange, passage: Passage, accept: (exchange: Exchange) => ExchangeHandler) {
    this.#exchange = exchange
    this.#passage = passage
    this.#accept = accept
  }

  onHead(head: Head, end: boolean): void {
    const exchange = this.#exchange
    const refusal = refusalOf(head, this.#passage)
    if (refusal !== undefined) {
      exchange.sendHead(refusal, true)
      exchange.discard()
      return
    }
    const handler = this.#accept(exchange)
    exchange.handler = handler
    handler.onHead(head, end)
  }

  // What comes for an exchange that was refused.
  onData(_buffer: Uint8Array, start: number, limit: number, _end: boolean): void {
    this.#exchange.consume(limit - start)
  }
  onTrailers(_fields: Fields): void {}
  onSent(_byteCount: number, _writable: boolean): void {}
  onPriority(_priority: Priority): void {}
  onClose(_error: HeddleError | undefined): void {}
}

function refusalOf(head: Head, { protocols, covers }: Passage): Head | undefined {
  // RFC 9220 §3: a protocol that is not supported.
  if (protocols !== undefined && head.protocol !== '' && !protocols.includes(head.protocol)) return notImplemented
  // RFC 9110 §7.4: a certificate that was checked for one name opens no other; the client may come back by a connection of its own.
  if (covers !== undefined && !covers(hostOf(head.authority))) return misdirected
  return undefined
}

function hostOf(authority: string): string {
  return authority.replace(/:\d*$/, '').toLowerCase()
}

const notImplemented = responseHead(501, noFields)
const misdirected = responseHead(421, noFields)
