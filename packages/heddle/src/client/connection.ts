import { List, type Linked } from '../bytes/index.ts'
import type { Capabilities, ConnectionHandler, ConnectionInfo, Exchange, ExchangeHandler, HeddleError, Instant } from '../http/index.ts'
import { UsageError } from '../http/index.ts'
import { warnOfFault, type DriverCounters } from '../io/index.ts'
import { Guests } from './coalescing.ts'
import { attach, type AnyDialled, type ClientEngine } from './engine.ts'
import type { PooledOrigin } from './origin.ts'
import { isMultiplexed, type ClientProtocol } from './protocols.ts'
import { ResetAllowance } from './reset-allowance.ts'
import type { ClientTicket } from './ticket.ts'

/**
 * One connection as the pool sees it: idle (parked in its origin's list without a ticket), active (with
 * tickets; one of HTTP/2 or HTTP/3 stays parked while it can take more), or draining (neither: unwanted
 * content is being read away, or it is closing).
 */
export class PooledConnection implements ConnectionHandler, Linked {
  previous: Linked | undefined
  next: Linked | undefined
  readonly origin: PooledOrigin
  readonly protocol: ClientProtocol
  readonly info: ConnectionInfo
  readonly engine: ClientEngine
  /** What its socket carried. */
  readonly traffic: DriverCounters
  /** The requests on it. */
  readonly tickets: List<ClientTicket>
  /** Other origins whose requests it takes besides. */
  guests: Guests | undefined
  /** Requests it ever took. */
  taken: number
  /** A response began on it, so it was of use once. */
  proven: boolean
  /** How often requests got no answer since the last one that did; those that ran at once count once. */
  failuresInRow: number
  /** What `taken` was at the last of these. */
  failedAt: number
  /** Made with the first reset. */
  #resetAllowance: ResetAllowance | undefined
  /** True while it stands in `origin.available`. */
  parked: boolean
  /** Parked, and without a request. */
  idle: boolean
  /** True: it takes no request any more. */
  retired: boolean
  /** True: it was retired to make room for another origin. */
  evicted: boolean
  /** Requests that may run on it at once. */
  capacity: number
  /** Tunnels with a protocol may be tried. */
  tunnels: boolean
  /** HTTP/1.1: it has become a tunnel. */
  tunnelling: boolean

  constructor(origin: PooledOrigin, dialled: AnyDialled, protocol: ClientProtocol, now: Instant) {
    const { settings } = origin.pool
    this.previous = undefined
    this.next = undefined
    this.origin = origin
    this.protocol = protocol
    this.info = dialled.info
    this.traffic = { writes: 0, bytesRead: 0, bytesWritten: 0 }
    this.tickets = new List()
    this.guests = undefined
    this.taken = 0
    this.proven = false
    this.failuresInRow = 0
    this.failedAt = 0
    this.#resetAllowance = undefined
    this.parked = false
    this.idle = false
    // Until the engine is there, a call from its constructor must find nothing to do.
    this.retired = true
    this.evicted = false
    this.capacity = 1
    this.tunnels = false
    this.tunnelling = false
    const engine = settings.makeEngine(protocol, dialled, this, origin.engines, now)
    this.engine = engine
    origin.connections.add(this)
    attach(dialled, engine, this.traffic, settings.loopHold !== undefined)
    this.retired = false
    if (this.capacity === 0) this.#noteShut()
    origin.usable[protocol]++
  }

  /** Opens an exchange for `ticket`; false if it cannot take one after all. */
  take(ticket: ClientTicket): boolean {
    const exchange = this.engine.open(ticket)
    if (exchange === undefined) return false
    this.#begin(ticket, exchange)
    return true
  }

  /** True: another origin needs it more, so it takes no more requests. */
  yields(): boolean {
    if (!this.origin.pool.room.claims(this)) return false
    this.#leave()
    return true
  }

  /** True: so much was cancelled on it that its server may lose its patience with it, and it takes no more requests. */
  isWorn(): boolean {
    const { resetsSent } = this.engine
    if (resetsSent === undefined || resetsSent === 0 || this.retired) return false
    const { origin } = this
    const now = origin.pool.clock.now()
    this.#resetAllowance ??= new ResetAllowance(now)
    if (!this.#resetAllowance.isSpent(resetsSent, now) || !origin.isReplaceable(this)) return false
    this.retireSoon()
    return true
  }

  /** Takes waiting requests while it can; then, if it still can, waits for one itself. */
  offer(): void {
    if (this.retired) return
    const { origin, engine } = this
    while (engine.openable > 0) {
      const ticket = origin.waiting.first ?? this.guests?.next()
      if (ticket === undefined) {
        if (!this.parked) origin.park(this)
        return
      }
      if (this.yields() || this.isWorn()) return
      const exchange = engine.open(ticket)
      if (exchange === undefined) break
      ticket.origin.unqueue(ticket)
      ticket.origin.stall.moved()
      this.#begin(ticket, exchange)
      // The program was told and may have ended it all.
      if (this.retired) return
    }
    this.#noteFull()
  }

  /** `ticket`, which was on it, is over or moves on. */
  release(ticket: ClientTicket): void {
    this.tickets.remove(ticket)
    this.#noteIdle()
    if (this.capacity === 0) this.#noteShut()
    const { pool, tunnelsOnly } = this.origin
    if (tunnelsOnly) pool.retireSoon(this)
    // One that may not take another is parked no more, which is how the pool hears of the rest.
    else if (pool.closing && this.tickets.length === 0) pool.attendSoon()
  }

  /** The request on it was answered: from now on it is a tunnel. */
  becameTunnel(): void {
    if (this.protocol !== 'h1' || this.tunnelling) return
    const { origin } = this
    this.tunnelling = true
    origin.tunnelling++
    if (origin.waiting.length > 0) origin.pool.makeDue(origin)
  }

  /** No new requests; closes once those on it are done. Not from inside an engine's calls. */
  retire(): void {
    this.#leave()
    this.engine.shutdown()
  }

  /** No new requests, from now on; `retire` follows in the pool's next task. */
  retireSoon(): void {
    if (this.retired) return
    this.#leave()
    this.origin.pool.retireSoon(this)
  }

  /** A response has begun on it. */
  answered(): void {
    this.proven = true
    this.failuresInRow = 0
  }

  /**
   * The request that was the `order`th got no answer, by the server's doing. A connection can be of no
   * use and yet look the best there is, since what fails at once leaves its stream free: it may lead to a
   * machine that is not well behind a balancer where others are, or the two ends may disagree on what was
   * said. What ran at once and failed at once, such as the rest of a first burst that was more than the
   * server allows, is one failure.
   */
  failed(order: number): void {
    if (!isMultiplexed(this.protocol) || this.retired || order <= this.failedAt) return
    this.failedAt = this.taken
    this.failuresInRow++
    const { origin } = this
    if (this.failuresInRow < origin.pool.settings.maxFailuresInRow || !origin.mayReplace(this)) return
    if (this.protocol === 'h3') origin.alternativeFailed()
    this.retireSoon()
  }

  /** The requests of `guest`, another origin, come here. */
  welcome(guest: PooledOrigin): void {
    this.guests ??= new Guests()
    this.guests.add(guest)
    this.offer()
  }

  /** At once: every request on it ends with `error`. Not from inside an engine's calls. */
  abort(error: HeddleError): void {
    this.#leave()
    for (let ticket = this.tickets.first; ticket !== undefined; ticket = ticket.next as ClientTicket | undefined) {
      ticket.withdrawn = true
      ticket.failure = error
    }
    this.engine.abort(error)
  }

  /** Its place in `origin.available`, or whether it has one, changed. */
  setParked(parked: boolean): void {
    this.parked = parked
    this.#noteIdle()
  }

  onReady({ maxExchanges, extendedConnect }: Capabilities): void {
    const wasShut = this.capacity === 0
    this.capacity = maxExchanges
    if (wasShut || maxExchanges === 0) this.#noteShut()
    this.tunnels = extendedConnect
    if (isMultiplexed(this.protocol) && maxExchanges > 0) this.origin.streamsPerConnection = maxExchanges
    this.offer()
  }

  onCapacity(openable: number): void {
    // A server of HTTP/3 says what it allows bit by bit.
    if (openable > this.capacity) {
      const wasShut = this.capacity === 0
      this.capacity = openable
      if (wasShut) this.#noteShut()
    }
    // A ticket whose exchange was handed to another handler never heard of its end.
    if (this.tickets.length > this.engine.openExchanges) this.#forgetHandedOver(this.tickets.length - this.engine.openExchanges)
    this.offer()
  }

  onDraining(): void {
    this.#leave()
  }

  onDrained(byteCount: number, completed: boolean): void {
    this.origin.counters.countDrain(byteCount, completed)
  }

  onClose(error: HeddleError | undefined): void {
    if (this.protocol === 'h3' && error !== undefined && !this.proven && !this.retired) this.origin.alternativeFailed()
    this.#leave()
    for (let ticket = this.tickets.shift(); ticket !== undefined; ticket = this.tickets.shift()) ticket.finish()
    this.origin.closed(this)
  }

  onFault(cause: unknown): void {
    warnOfFault(cause)
  }

  onExchange(_exchange: Exchange): ExchangeHandler {
    throw new UsageError('a client connection takes no requests')
  }

  #begin(ticket: ClientTicket, exchange: Exchange): void {
    const { counters } = ticket.origin
    if (this.taken++ > 0) counters.reused++
    counters.taken[this.protocol]++
    ticket.order = this.taken
    ticket.reused = this.proven
    this.tickets.append(ticket)
    // Whatever becomes of it, this connection is for no other.
    if (this.origin.tunnelsOnly) this.#leave()
    if (this.engine.openable === 0) this.#noteFull()
    else this.#noteIdle()
    ticket.start(this, exchange)
  }

  /** It takes no request now; none ever, if it could run more and does not: the numbers of its streams are used up. */
  #noteFull(): void {
    const { engine } = this
    if (this.parked) this.origin.unpark(this)
    if (this.protocol === 'h2' && engine.openExchanges < this.capacity) this.retireSoon()
  }

  #leave(): void {
    if (this.parked) this.origin.unpark(this)
    if (this.retired) return
    const { origin, protocol } = this
    this.retired = true
    if (this.capacity === 0) this.#noteShut()
    origin.usable[protocol]--
    if (isMultiplexed(protocol)) origin.leaving++
    // Whoever hoped for it may need another one.
    if (origin.waiting.length > 0) origin.pool.makeDue(origin)
    origin.pool.coalescing?.remove(this)
    this.guests?.dismissAll()
  }

  /** A server may allow no requests for a while (RFC 9113 §6.5.2): without any, its connection is not idle, and does nothing. */
  #noteShut(): void {
    this.origin.pool.room.noteShut(this, this.capacity === 0 && this.tickets.length === 0 && !this.retired)
  }

  #noteIdle(): void {
    const idle = this.parked && this.tickets.length === 0
    if (idle === this.idle) return
    this.idle = idle
    this.origin.countIdle(idle ? 1 : -1)
  }

  #forgetHandedOver(count: number): void {
    let left = count
    for (let ticket = this.tickets.first; ticket !== undefined && left > 0;) {
      const next = ticket.next as ClientTicket | undefined
      if (isHandedOver(ticket)) {
        this.release(ticket)
        ticket.finish()
        left--
      }
      ticket = next
    }
  }
}

/** Its exchange was given another handler, and is over as far as can be told: only streams of HTTP/2 say that they are not. */
function isHandedOver(ticket: ClientTicket): boolean {
  const exchange = ticket.exchange as (Exchange & { readonly closed?: boolean }) | undefined
  return exchange?.handler !== ticket && exchange?.closed !== false
}
