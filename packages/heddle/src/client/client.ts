import { UsageError, type HeddleError } from '../http/index.ts'
import type { ClientOptions, ExchangeOptions } from './options.ts'
import { Origin } from './origin.ts'
import type { ClientStats } from './stats.ts'
import type { ClientExchangeHandler, Ticket } from './ticket.ts'

/** Sends requests over pooled connections. */
export class Client {
  constructor(_options: ClientOptions = {}) {}

  /** The origin of `url`; path and query are ignored. Throws UsageError for anything but http and https. */
  origin(url: string | URL): Origin {
    const { protocol, host, hostname, port } = new URL(url)
    return new Origin(protocol.slice(0, -1), host, hostname, Number(port))
  }

  /** Runs one request. See {@link ClientExchangeHandler}. Throws UsageError once the client is closed. */
  exchange(_origin: Origin | string, _handler: ClientExchangeHandler, _options?: ExchangeOptions): Ticket {
    throw new UsageError('not yet')
  }

  /** How the client is doing. */
  stats(): ClientStats {
    throw new UsageError('not yet')
  }

  /** Takes no new requests, lets those waiting and running finish, then closes every connection. */
  close(): Promise<void> {
    return Promise.resolve()
  }

  /** Ends every request with `error` (default SHUTDOWN) and drops every connection. */
  destroy(_error?: HeddleError): void {}

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
