import { List, type Linked } from '../bytes/index.ts'
import { errorAbout, type HeddleError, type Instant } from '../http/index.ts'
import type { Alternative } from './alternatives.ts'
import { isDisowned } from './coalescing.ts'
import { PooledConnection } from './connection.ts'
import { Dials } from './dials.ts'
import type { AnyDialled, EngineOptions } from './engine.ts'
import type { Pool } from './pool.ts'
import { isMultiplexed, type ClientProtocol } from './protocols.ts'
import { routeTo, type Route } from './route.ts'
import { Stall } from './stall.ts'
import { Census, Counters, poolCounts, type OriginStats } from './stats.ts'
import type { ClientTicket } from './ticket.ts'

/** Scheme, host and port that requests go to. Made by `client.origin()`; good for as long as the client is. */
export interface Origin {
  /** `http` or `https`. */
  readonly scheme: string
  /** What goes into a head: host, and the port where it is not the scheme's. */
  readonly authority: string
  /** Host without port; an IPv6 address without brackets. */
  readonly host: string
  readonly port: number
  /** What it spoke last, or is known to speak; undefined while no connection has told. */
  readonly protocol: ClientProtocol | undefined
  /** `https://example.org`, with the port where it is not the scheme's. */
  toString(): string
}

/** What sets the key of the tunnels to an origin that have HTTP/1.1 connections of their own apart from that of the origin. */
export const tunnelSuffix = ' tunnels over HTTP/1.1'

/** Requests an HTTP/2 connection is taken to run at once, until one has told (RFC 9113 §6.5.2: at least 100 is recommended). */
const usualStreams = 100
/** ms between two connections that are left because requests on them fail. */
const replacementInterval = 1_000

/**
 * The connections to one origin and the requests that wait for one.
 *
 * Whenever a connection can take a request, none waits: a connection is parked in `available` only
 * while `waiting` is empty. So a new request looks at the newest parked connection, and a connection
 * that becomes free looks at the request that has waited longest; nothing else is ever searched.
 */
export class PooledOrigin implements Origin, Linked {
  previous: Linked | undefined
  next: Linked | undefined
  /** The list it stands in: of the unused, of those with idle connections, of those that want room; or none. */
  list: List<PooledOrigin> | undefined
  readonly pool: Pool
  readonly scheme: string
  readonly authority: string
  readonly host: string
  readonly port: number
  /** `scheme://authority`, and perhaps `tunnelSuffix`: its key in the directory. */
  readonly key: string
  readonly route: Route
  readonly engines: EngineOptions
  readonly counters: Counters
  protocol: ClientProtocol | undefined
  /** It stands for the tunnels to an origin that have HTTP/1.1 connections of their own: each carries one and is not used again. */
  readonly tunnelsOnly: boolean
  /** Its connections must speak HTTP/1.1: they are for tunnels, or the server answered HTTP_1_1_REQUIRED. */
  http1Required: boolean
  /** Where it is served over HTTP/3, as its server said last. */
  alternative: Alternative | undefined
  /** Requests its HTTP/2 or HTTP/3 connections run at once, as the last one said. */
  streamsPerConnection: number
  /** Connections that can take a request, the one that became so last at the end: it is taken first. */
  readonly available: List<PooledConnection>
  /** Requests without a connection, the oldest first. */
  readonly waiting: List<ClientTicket>
  /** Every open connection. */
  readonly connections: Set<PooledConnection>
  /** Open connections that take requests, now or when they are free, by what is spoken. */
  readonly usable: Record<ClientProtocol, number>
  /** HTTP/2 and HTTP/3 connections that are open and take no more requests. */
  leaving: number
  /** HTTP/1.1 connections that have become tunnels. */
  tunnelling: number
  /** Connections that are idle. */
  idle: number
  /** Connections being made. */
  readonly dials: Dials
  /** Whether its queue moves. */
  readonly stall: Stall
  /** Another origin's connection that takes its requests (see `coalescing.ts`). */
  guestOf: PooledConnection | undefined
  /** As a guest it was told that it is at the wrong place (421): it has connections of its own. */
  misdirected: boolean
  /** True while the directory knows it. */
  known: boolean
  /** True: the pool will ask it whether it wants to dial. */
  due: boolean
  /** Connections of it that are closed to make room for other origins, and are not gone yet. */
  evicting: number
  /** When its last connection went; meaningful while it is unused. */
  unusedSince: Instant
  /** When the last connection was left because requests on it failed. */
  #replacedAt: Instant
  /** The last of the waiting requests that stood here before: all of those come first. */
  #lastReturned: ClientTicket | undefined

  constructor(pool: Pool, scheme: string, authority: string, host: string, port: number, tunnelsOnly = false) {
    this.previous = undefined
    this.next = undefined
    this.list = undefined
    this.pool = pool
    this.scheme = scheme
    this.authority = authority
    this.host = host
    this.port = port
    this.key = `${scheme}://${authority}${tunnelsOnly ? tunnelSuffix : ''}`
    this.route = routeTo(this, pool.settings)
    this.engines = { ...pool.settings.engines, http1: this.route.http1 }
    this.protocol = tunnelsOnly ? 'h1' : this.route.protocol
    this.tunnelsOnly = tunnelsOnly
    this.http1Required = tunnelsOnly
    this.alternative = pool.alternatives?.find(this.key)
    this.streamsPerConnection = usualStreams
    this.counters = new Counters()
    this.available = new List()
    this.waiting = new List()
    this.connections = new Set()
    this.usable = { h1: 0, h2: 0, h3: 0 }
    this.leaving = 0
    this.tunnelling = 0
    this.idle = 0
    this.dials = new Dials(this)
    this.stall = new Stall(this)
    this.guestOf = undefined
    this.misdirected = false
    this.known = false
    this.due = false
    this.evicting = 0
    this.unusedSince = 0
    this.#replacedAt = -Infinity
    this.#lastReturned = undefined
  }

  toString(): string {
    return this.key
  }

  moveTo(list: List<PooledOrigin> | undefined): void {
    if (this.list === list) return
    this.list?.remove(this)
    this.list = list
    list?.append(this)
  }

  /** Some connection serves its requests, or will when it is free. */
  get hasUsable(): boolean {
    return this.usable.h1 > 0 || this.hasStreams
  }

  /** The same of HTTP/2 and HTTP/3 connections. */
  get hasStreams(): boolean {
    return this.usable.h2 > 0 || this.usable.h3 > 0 || this.guestOf !== undefined
  }

  // ── Requests ────────────────────────────────────────────────────────────────────────────────────

  /** Gives `ticket` a connection that can take it, or lets it wait for one. */
  enter(ticket: ClientTicket): void {
    this.counters.requests++
    if (!this.#takeAvailable(ticket)) this.pool.wait(ticket, false)
    if (this.alternative !== undefined) this.dials.considerProbe()
  }

  /** As `enter`, for a request that stood here before: it waits ahead of those that did not. */
  enterAgain(ticket: ClientTicket): void {
    if (!this.#takeAvailable(ticket)) this.pool.wait(ticket, true)
  }

  /** Gives `ticket`, a tunnel, a stream of an HTTP/2 connection whose server has allowed it there; false: none is free. */
  enterStream(ticket: ClientTicket): boolean {
    for (let connection = this.available.last; connection !== undefined;) {
      const older = connection.previous as PooledConnection | undefined
      if (this.#opensTunnel(connection, ticket)) return true
      connection = older
    }
    return this.guestOf !== undefined && !this.leavesHost() && this.#opensTunnel(this.guestOf, ticket)
  }

  #opensTunnel(connection: PooledConnection, ticket: ClientTicket): boolean {
    // RFC 8441 §3, RFC 9220 §3: only where the server has said that it may.
    if (!isMultiplexed(connection.protocol) || !connection.tunnels || !this.#takes(connection, ticket)) return false
    this.counters.requests++
    return true
  }

  #takeAvailable(ticket: ClientTicket): boolean {
    for (let connection = this.available.last; connection !== undefined; connection = this.available.last) {
      if (this.#takes(connection, ticket)) return true
      // It cannot any more, and has not yet come to say so.
      if (connection.parked) this.unpark(connection)
    }
    return this.guestOf !== undefined && !this.leavesHost() && this.#takes(this.guestOf, ticket)
  }

  /** One that is never idle is asked here whether it may go on. */
  #takes(connection: PooledConnection, ticket: ClientTicket): boolean {
    return (connection.idle || !connection.yields()) && !connection.isWorn() && connection.take(ticket)
  }

  /** `ticket` waits; ahead of all who come for the first time if it `returns`. */
  queue(ticket: ClientTicket, returns: boolean): void {
    const { waiting } = this
    this.guestOf?.guests?.wait(this)
    if (!returns) return waiting.append(ticket)
    const next = this.#lastReturned === undefined ? waiting.first : this.#lastReturned.next
    if (next === undefined) waiting.append(ticket)
    else waiting.insertBefore(ticket, next as ClientTicket)
    this.#lastReturned = ticket
  }

  /** `ticket` does not wait any more: it got a connection. */
  unqueue(ticket: ClientTicket): void {
    if (ticket === this.#lastReturned) this.#lastReturned = ticket.previous as ClientTicket | undefined
    this.waiting.remove(ticket)
    this.pool.waiting--
    if (this.waiting.length > 0) return
    this.dials.stopPausing()
    this.stall.stop()
    this.pool.room.unblock(this)
    this.maybeUnused()
  }

  /** `ticket` does not wait any more: it ends with `error`. */
  leave(ticket: ClientTicket, error: HeddleError): void {
    this.unqueue(ticket)
    this.pool.end(ticket, error)
  }

  /** Every waiting request ends with `error`. */
  failWaiting(error: HeddleError): void {
    for (let ticket = this.waiting.first; ticket !== undefined; ticket = this.waiting.first) this.leave(ticket, error)
  }

  // ── Connections ─────────────────────────────────────────────────────────────────────────────────

  /** A connection was made. */
  connected(dialled: AnyDialled, protocol: ClientProtocol): void {
    this.protocol = protocol
    this.counters.dialled[protocol]++
    const connection = new PooledConnection(this, dialled, protocol, this.pool.clock.now())
    this.pool.coalescing?.add(connection)
    connection.offer()
    if (protocol !== 'h3' || this.alternative === undefined) return
    // What came by TCP until now finishes what it has.
    for (const other of this.connections) if (other.protocol !== 'h3') other.retireSoon()
  }

  park(connection: PooledConnection): void {
    this.available.append(connection)
    connection.setParked(true)
    if (this.pool.closing) this.pool.attendSoon()
  }

  unpark(connection: PooledConnection): void {
    this.available.remove(connection)
    connection.setParked(false)
  }

  /** One connection more or less is idle. */
  countIdle(change: 1 | -1): void {
    this.idle += change
    if (this.idle === 0) this.pool.room.becameBusy(this)
    else if (this.idle === 1 && change === 1) this.pool.room.becameIdle(this)
  }

  /** The connection that became idle first. */
  get oldestIdle(): PooledConnection | undefined {
    let connection = this.available.first
    while (connection !== undefined && !connection.idle) connection = connection.next as PooledConnection | undefined
    return connection
  }

  /** False: `connection` would be left with nothing in its place, and one of little use is better than none. */
  isReplaceable(connection: PooledConnection): boolean {
    // It stays for as long as what is on it.
    return connection.tickets.length === 0 || this.dials.isReplaceable
  }

  /**
   * True, and then not again for a while: `connection` may be left because requests on it fail. A server that
   * refuses everybody must not have to greet everybody as well.
   */
  mayReplace(connection: PooledConnection): boolean {
    if (!this.isReplaceable(connection)) return false
    const now = this.pool.clock.now()
    if (now - this.#replacedAt < replacementInterval) return false
    this.#replacedAt = now
    return true
  }

  /** `connection` is gone. */
  closed(connection: PooledConnection): void {
    if (!this.connections.delete(connection)) return
    this.pool.left()
    if (connection.tunnelling) this.tunnelling--
    if (connection.evicted) {
      this.pool.room.evicting--
      this.evicting--
    }
    if (isMultiplexed(connection.protocol)) this.leaving--
    if (connection.protocol === 'h2') {
      this.counters.frames += connection.engine.framesSent ?? 0
      this.counters.writes += connection.traffic.writes
    }
    if (this.waiting.length > 0) this.pool.makeDue(this)
    else this.maybeUnused()
  }

  /** The server wants HTTP/1.1: no more requests over HTTP/2 or HTTP/3. False: the client may not speak it. */
  requireHttp1(): boolean {
    if (!this.route.protocols.includes('h1')) return false
    if (this.http1Required) return true
    this.http1Required = true
    this.protocol = 'h1'
    for (const connection of this.connections) if (isMultiplexed(connection.protocol)) connection.retireSoon()
    this.guestOf?.guests?.dismiss(this)
    return true
  }

  /** RFC 7838 §6: who answers at the alternative does not answer for it (421). False: there is no other way to it. */
  loseAlternative(connection: PooledConnection): boolean {
    if (this.alternative === undefined || this.route.quicOnly) return false
    this.alternative.withdraw()
    connection.retireSoon()
    return true
  }

  /** An HTTP/3 connection was of no use. */
  alternativeFailed(): void {
    this.alternative?.failed(this.pool.clock.now())
  }

  // ── Another origin's connection ─────────────────────────────────────────────────────────────────

  /** Its requests go to `host` from now on, a connection of another origin. */
  shareWith(host: PooledConnection): void {
    this.guestOf = host
    this.protocol = 'h2'
    host.welcome(this)
  }

  /** True: the server of `guestOf` has said meanwhile that it does not answer for it, and it is a guest no more. */
  leavesHost(): boolean {
    const { guestOf } = this
    if (guestOf === undefined || !isDisowned(guestOf, this)) return false
    guestOf.guests?.dismiss(this)
    return true
  }

  /** `guestOf` takes none of its requests any more. */
  lostHost(): void {
    this.guestOf = undefined
    if (this.waiting.length > 0) this.pool.makeDue(this)
    else this.maybeUnused()
  }

  /** RFC 9110 §15.5.20: the server does not answer for it after all. */
  misdirect(): void {
    this.misdirected = true
    this.guestOf?.guests?.dismiss(this)
  }

  /** `error`, which its server or the way there led to, with its name; see the function of that name. */
  errorAbout(error: HeddleError): HeddleError {
    const { scheme, authority, host, port } = this
    // Those of dialling tell the name and the port.
    if (error.message.includes(` ${host.includes(':') ? `[${host}]` : host}:${port}`)) return error
    return errorAbout(`${scheme}://${authority}`, error)
  }

  // ── Counts ──────────────────────────────────────────────────────────────────────────────────────

  stats(): OriginStats {
    return { origin: this.key, protocol: this.protocol, ...poolCounts(this.census(), this.counters) }
  }

  census(): Census {
    const census = new Census()
    census.idle = this.idle
    census.dialling = this.dials.size
    census.waiting = this.waiting.length
    for (const { protocol, tickets, engine, traffic } of this.connections) {
      census.connections[protocol]++
      census.streams[protocol] += tickets.length
      if (tickets.length > 0) census.active++
      if (engine.framesSent === undefined) continue
      census.frames += engine.framesSent
      census.writes += traffic.writes
    }
    return census
  }

  maybeUnused(): void {
    if (this.connections.size > 0 || this.dials.size > 0 || this.waiting.length > 0 || this.guestOf !== undefined) return
    this.pool.directory.becameUnused(this)
  }
}
