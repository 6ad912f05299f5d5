import { HeddleError, UsageError } from '../http/index.ts'
import type { Clock } from '../io/index.ts'
import type { ClientOptions, ExchangeOptions } from './options.ts'
import type { Origin, PooledOrigin } from './origin.ts'
import { Pool } from './pool.ts'
import { duration, Settings } from './settings.ts'
import type { ClientStats } from './stats.ts'
import { ClientTicket, type ClientExchangeHandler, type Ticket } from './ticket.ts'

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
  readonly #queueTimeout: number
  readonly #totalTimeout: number

  /** Throws UsageError for an option out of range. */
  constructor(options: ClientOptions = {}) {
    const settings = new Settings(options)
    this.#pool = new Pool(settings)
    this.#queueTimeout = settings.queueTimeout
    this.#totalTimeout = settings.totalTimeout
  }

  /** Where this client's time comes from. */
  get clock(): Clock {
    return this.#pool.clock
  }

  /** The origin of `url`, whose path and query are ignored. Throws UsageError for anything but http and https. */
  origin(url: string | URL): Origin {
    return this.#pool.origin(url)
  }

  /**
   * Runs one request: `handler.onOpen` when a connection is there, `handler.onClose` when all is over
   * (see {@link ClientExchangeHandler}). An origin from `client.origin()` saves the look-up of its
   * name. Throws UsageError once the client is closed, and for the origin of another client.
   */
  exchange(origin: Origin | string, handler: ClientExchangeHandler, options?: ExchangeOptions): Ticket {
    const pool = this.#pool
    let pooled = typeof origin === 'string' ? pool.origin(origin) : (origin as PooledOrigin)
    if (pooled.pool !== pool) throw new UsageError('the origin was not made by this client')
    if (pool.closing) throw new UsageError('the client is closed')
    if (!pooled.known) pooled = pool.recall(pooled)
    const ticket = new ClientTicket(pooled, handler)
    let queueTimeout = this.#queueTimeout
    let totalTimeout = this.#totalTimeout
    if (options !== undefined) {
      queueTimeout = duration('queueTimeout', options.queueTimeout, queueTimeout)
      totalTimeout = duration('totalTimeout', options.totalTimeout, totalTimeout)
    }
    if (queueTimeout !== Infinity || totalTimeout !== Infinity) {
      const now = pool.clock.now()
      ticket.limit(now + queueTimeout, now + totalTimeout)
    }
    pooled.enter(ticket)
    return ticket
  }

  /** How the client is doing: connections, requests, reuse, drain, errors. A copy. */
  stats(): ClientStats {
    return this.#pool.stats()
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
