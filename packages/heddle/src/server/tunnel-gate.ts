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

/**
 * The first handler of an exchange on a connection with extended CONNECT. HTTP/1.1 takes no Upgrade
 * but to the protocols that were asked for; this holds tunnels of HTTP/2 to the same list, and lets the
 * program's handler be made when the head has passed.
 */
export class TunnelGate implements ExchangeHandler {
  readonly #exchange: Exchange
  readonly #protocols: readonly string[]
  readonly #accept: (exchange: Exchange) => ExchangeHandler

  constructor(exchange: Exchange, protocols: readonly string[], accept: (exchange: Exchange) => ExchangeHandler) {
    this.#exchange = exchange
    this.#protocols = protocols
    this.#accept = accept
  }

  onHead(head: Head, end: boolean): void {
    const exchange = this.#exchange
    if (head.protocol !== '' && !this.#protocols.includes(head.protocol)) {
      // RFC 9220 §3: a protocol that is not supported.
      exchange.sendHead(notImplemented, true)
      return
    }
    const handler = this.#accept(exchange)
    exchange.handler = handler
    handler.onHead(head, end)
  }

  // What comes for a tunnel that was refused.
  onData(_buffer: Uint8Array, start: number, limit: number, _end: boolean): void {
    this.#exchange.consume(limit - start)
  }
  onTrailers(_fields: Fields): void {}
  onSent(_byteCount: number, _writable: boolean): void {}
  onPriority(_priority: Priority): void {}
  onClose(_error: HeddleError | undefined): void {}
}

const notImplemented = responseHead(501, noFields)
