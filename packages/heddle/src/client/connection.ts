import { List, type Linked } from '../bytes/index.ts'
import type { Capabilities, Exchange, ExchangeHandler, HeddleError, Instant } from '../http/index.ts'
import { UsageError, type ConnectionHandler, type HttpConnection } from '../http/index.ts'
import type { Dialled } from '../io/index.ts'
import type { PooledOrigin } from './origin.ts'
import type { ClientTicket } from './ticket.ts'

/**
 * One connection as the pool sees it: idle (parked in its origin's list), active (with tickets), or
 * draining (neither: unwanted content is being read away, or it is closing).
 */
export class PooledConnection implements ConnectionHandler, Linked {
  previous: Linked | undefined
  next: Linked | undefined
  readonly origin: PooledOrigin
  readonly engine: HttpConnection
  /** The requests on it. */
  readonly tickets: List<ClientTicket>
  /** Requests it ever took. */
  served: number
  /** True while it stands in `origin.available`. */
  parked: boolean
  /** True: it takes no request any more. */
  retired: boolean
  /** True: it was retired to make room for another origin. */
  evicted: boolean

  constructor(origin: PooledOrigin, dialled: Dialled, now: Instant) {
    this.previous = undefined
    this.next = undefined
    this.origin = origin
    this.tickets = new List()
    this.served = 0
    this.parked = false
    // Until the engine is there, a call from its constructor must find nothing to do.
    this.retired = true
    this.evicted = false
    const engine = origin.pool.settings.makeEngine(dialled, this, origin.http1, now)
    this.engine = engine
    origin.connections.add(this)
    if (origin.pool.settings.loopHold !== undefined) dialled.socket.unref?.()
    dialled.attach(engine)
    this.retired = false
  }

  /** Opens an exchange for `ticket`; false if it cannot take one after all. */
  take(ticket: ClientTicket): boolean {
    const exchange = this.engine.open(ticket)
    if (exchange === undefined) return false
    this.#begin(ticket, exchange)
    return true
  }

  /** Takes waiting requests while it can; then, if it still can, waits for one itself. */
  offer(): void {
    if (this.retired) return
    const { waiting, pool } = this.origin
    while (this.engine.openable > 0) {
      const ticket = waiting.first
      if (ticket === undefined) {
        if (!this.parked) this.origin.park(this)
        return
      }
      if (pool.room.claims(this)) {
        this.retired = true
        return
      }
      const exchange = this.engine.open(ticket)
      if (exchange === undefined) break
      this.origin.unqueue(ticket)
      this.#begin(ticket, exchange)
    }
    if (this.parked) this.origin.unpark(this)
  }

  /** No new requests; closes once those on it are done. Not from inside an engine's calls. */
  retire(): void {
    if (this.parked) this.origin.unpark(this)
    this.retired = true
    this.engine.shutdown()
  }

  /** At once: every request on it ends with `error`. Not from inside an engine's calls. */
  abort(error: HeddleError): void {
    if (this.parked) this.origin.unpark(this)
    this.retired = true
    for (let ticket = this.tickets.first; ticket !== undefined; ticket = ticket.next as ClientTicket | undefined) {
      ticket.withdrawn = true
      ticket.failure = error
    }
    this.engine.abort(error)
  }

  onReady(_capabilities: Capabilities): void {
    this.offer()
  }

  onCapacity(_openable: number): void {
    // A ticket whose exchange was handed to another handler never heard of its end.
    if (this.tickets.length > 0 && this.engine.openExchanges === 0) this.#forgetTickets()
    this.offer()
  }

  onDraining(): void {
    this.retired = true
    if (this.parked) this.origin.unpark(this)
  }

  onDrained(byteCount: number, completed: boolean): void {
    this.origin.counters.countDrain(byteCount, completed)
  }

  onClose(_error: HeddleError | undefined): void {
    this.retired = true
    if (this.parked) this.origin.unpark(this)
    this.#forgetTickets()
    this.origin.closed(this)
  }

  onExchange(_exchange: Exchange): ExchangeHandler {
    throw new UsageError('a client connection takes no requests')
  }

  #begin(ticket: ClientTicket, exchange: Exchange): void {
    if (this.parked && this.engine.openable === 0) this.origin.unpark(this)
    this.tickets.append(ticket)
    const { counters } = this.origin
    if (this.served++ > 0) {
      ticket.reused = true
      counters.reused++
    }
    ticket.start(this, exchange)
  }

  #forgetTickets(): void {
    for (let ticket = this.tickets.shift(); ticket !== undefined; ticket = this.tickets.shift()) ticket.finish()
  }
}
