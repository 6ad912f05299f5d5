import { HeddleError } from '../http/index.ts'
import type { Clock } from '../io/index.ts'
import type { Response } from '../web/index.ts'
import type { FetchInit, FetchInput } from './fetch-init.ts'
import { clientFetch } from './fetch.ts'
import type { ClientOptions, ExchangeOptions } from './options.ts'
import type { Origin, PooledOrigin } from './origin.ts'
import { Pool } from './pool.ts'
import { Settings } from './settings.ts'
import type { ClientStats } from './stats.ts'
import type { ClientExchangeHandler, Ticket } from './ticket.ts'

/**
 * Sends requests over pooled connections. Make one and keep it: each has a pool of its own.
 *
 * ```ts
 * await using client = new Client({ maxConnectionsPerOrigin: 16 })
 * const response = await client.fetch('https://example.org/')
 * ```
 */
export class Client {
  readonly #pool: Pool

  /** Throws UsageError for an option that is unknown, and for one out of range. */
  constructor(options: ClientOptions = {}) {
    this.#pool = new Pool(new Settings(options))
  }

  /** Where this client's time comes from. */
  get clock(): Clock {
    return this.#pool.clock
  }

  /** The origin of `url`, whose path and query are ignored. Throws UsageError for anything but http and https. */
  origin(url: string | URL): Origin {
    return this.#pool.directory.find(url)
  }

  /**
   * Runs one request: `handler.onOpen` when a connection is there, `handler.onClose` when all is over
   * (see {@link ClientExchangeHandler}). An origin from `client.origin()` saves the look-up of its
   * name. Throws UsageError once the client is closed, and for the origin of another client.
   */
  exchange(origin: Origin | string, handler: ClientExchangeHandler, options?: ExchangeOptions): Ticket {
    const pool = this.#pool
    return pool.exchange(typeof origin === 'string' ? pool.directory.find(origin) : (origin as PooledOrigin), handler, options)
  }

  /** `fetch` over the connections of this client; see the function of that name. */
  fetch(input: FetchInput, init?: FetchInit): Promise<Response> {
    return clientFetch(this, input, init)
  }

  /** How the client is doing: connections, requests, reuse, drain, errors. A copy. */
  stats(): ClientStats {
    return this.#pool.directory.stats()
  }

  /** Takes no new requests, lets those that wait or run finish, closes every connection; fulfilled then. */
  close(): Promise<void> {
    return this.#pool.close()
  }

  /** Ends every request with `error` (default: SHUTDOWN) and drops every connection, in the next turn. */
  destroy(error: HeddleError = new HeddleError('SHUTDOWN', 'the client was destroyed')): void {
    this.#pool.destroy(error)
  }

  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
