import { responseHead, UsageError, type Address, type Exchange, type TlsFacts } from '../http/index.ts'
import { fieldsFrom, type HeadersInit } from '../web/index.ts'

/** What a fetch handler is told beside the request: facts of the connection, and what a Response cannot say. */
export class RequestContext {
  /** The exchange below. For facts; whoever sends on it must not return a response as well. */
  declare readonly exchange: Exchange

  constructor(exchange: Exchange) {
    this.exchange = exchange
  }

  /** The other end; behind a proxy that is the proxy. */
  get remote(): Address {
    return this.exchange.connection.remote
  }

  get local(): Address {
    return this.exchange.connection.local
  }

  get protocol(): 'h1' | 'h2' | 'h3' {
    return this.exchange.protocol
  }

  /** Undefined without TLS. */
  get tls(): TlsFacts | undefined {
    return this.exchange.connection.tls
  }

  /** Unique within the process. */
  get connectionId(): number {
    return this.exchange.connection.id
  }

  /**
   * Sends an informational response before the final one: `103` with `link` fields (RFC 8297), `102`.
   * 100 is sent by itself when the request's body is read. Does nothing for a client that is gone or
   * speaks HTTP/1.0. Throws UsageError for another status, or when the response was sent already.
   */
  sendInformational(status: number, headers: HeadersInit = []): void {
    if (!(status > 101 && status <= 199)) throw new UsageError(`${status} is not an informational status a handler may send`)
    this.exchange.sendHead(responseHead(status, fieldsFrom(headers)), false)
  }
}
