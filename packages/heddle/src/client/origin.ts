import { List, type Linked } from '../bytes/index.ts'
import type { Http1Options } from '../h1/index.ts'
import { HeddleError, NetworkError, type Instant } from '../http/index.ts'
import { Alarm, type Dialled, type DialOptions, type DialTarget } from '../io/index.ts'
import { PooledConnection } from './connection.ts'
import type { Pool } from './pool.ts'
import { routeTo } from './route.ts'
import { Counters, poolCounts, type OriginStats } from './stats.ts'
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
  /** `https://example.org`, with the port where it is not the scheme's. */
  toString(): string
}

/** ms before the first new attempt after a dial failed while other connections live, doubled each time … */
const firstPause = 100
/** … up to this. */
const longestPause = 5_000

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
  /** `scheme://authority`, its key in the directory. */
  readonly key: string
  readonly target: DialTarget
  readonly dialOptions: DialOptions
  readonly http1: Http1Options
  readonly counters: Counters
  /** Connections that can take a request, the one used last at the end: it is taken first. */
  readonly available: List<PooledConnection>
  /** Requests without a connection, the oldest first. */
  readonly waiting: List<ClientTicket>
  /** Every open connection. */
  readonly connections: Set<PooledConnection>
  /** Connections being made. */
  readonly dials: Set<{ cancel(): void }>
  /** True while the directory knows it. */
  known: boolean
  /** True: the pool will ask it whether it wants to dial. */
  due: boolean
  /** Connections of it that are closed to make room for other origins, and are not gone yet. */
  evicting: number
  /** When its last connection went; meaningful while it is unused. */
  unusedSince: Instant
  /** The last dial failed: one attempt at a time until one succeeds. */
  #suspect: boolean
  /** Attempts in a row that failed while other connections lived. */
  #failures: number
  /** No new attempt before this while other connections live. */
  #pausedUntil: Instant
  /** Armed while requests wait for the end of the pause. */
  #pause: Alarm | undefined

  constructor(pool: Pool, scheme: string, authority: string, host: string, port: number) {
    this.previous = undefined
    this.next = undefined
    this.list = undefined
    this.pool = pool
    this.scheme = scheme
    this.authority = authority
    this.host = host
    this.port = port
    this.key = `${scheme}://${authority}`
    const route = routeTo(this, pool.settings)
    this.target = route.target
    this.dialOptions = route.options
    this.http1 = route.http1
    this.counters = new Counters()
    this.available = new List()
    this.waiting = new List()
    this.connections = new Set()
    this.dials = new Set()
    this.known = false
    this.due = false
    this.evicting = 0
    this.unusedSince = 0
    this.#suspect = false
    this.#failures = 0
    this.#pausedUntil = 0
    this.#pause = undefined
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

  /** Gives `ticket` the newest idle connection, or lets it wait for one. */
  enter(ticket: ClientTicket): void {
    this.counters.requests++
    if (!this.#takeAvailable(ticket)) this.pool.wait(ticket, false)
  }

  /** As `enter`, for a request that stood here before: it waits at the head of the queue. */
  enterAgain(ticket: ClientTicket): void {
    if (!this.#takeAvailable(ticket)) this.pool.wait(ticket, true)
  }

  /** `ticket` does not wait any more: it got a connection. */
  unqueue(ticket: ClientTicket): void {
    this.waiting.remove(ticket)
    this.pool.waiting--
    if (this.waiting.length === 0) this.#nobodyWaits()
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

  park(connection: PooledConnection): void {
    connection.parked = true
    this.available.append(connection)
    if (this.available.length === 1) this.pool.becameIdle(this)
  }

  unpark(connection: PooledConnection): void {
    connection.parked = false
    this.available.remove(connection)
    if (this.available.length === 0) this.pool.room.becameBusy(this)
  }

  /** True if another dial would be of use and its own limit allows it. */
  get wantsDial(): boolean {
    const dialling = this.dials.size
    return this.waiting.length > dialling && this.connections.size + dialling < this.pool.settings.maxConnectionsPerOrigin
  }

  /**
   * Starts a dial if there is a request waiting without one and the limits allow it. True: another
   * could be of use; asked one at a time, so that origins share the room they compete for.
   */
  maybeDial(): boolean {
    if (!this.wantsDial) return false
    if (this.#suspect && this.dials.size > 0) return false
    if (this.#suspect && this.connections.size > 0 && this.pool.clock.now() < this.#pausedUntil) {
      this.#pause ??= new Alarm(() => this.#endPause())
      this.pool.arm(this.#pause, this.#pausedUntil)
      return false
    }
    if (!this.pool.room.left) {
      this.pool.room.block(this)
      return false
    }
    this.#dial()
    return true
  }

  /** Ends dials that no request waits for. */
  cancelDials(): void {
    for (const dial of this.dials) {
      dial.cancel()
      this.dials.delete(dial)
      this.pool.left()
    }
  }

  /** `connection` is gone. */
  closed(connection: PooledConnection): void {
    if (!this.connections.delete(connection)) return
    this.pool.left()
    if (connection.evicted) {
      this.pool.room.evicting--
      this.evicting--
    }
    if (this.waiting.length > 0) this.pool.makeDue(this)
    else this.#maybeUnused()
  }

  stats(): OriginStats {
    return { origin: this.key, ...poolCounts(this.census(), this.counters) }
  }

  census(): { connections: number; idle: number; active: number; dialling: number; waiting: number } {
    let active = 0
    for (const connection of this.connections) if (connection.tickets.length > 0) active++
    return {
      connections: this.connections.size,
      idle: this.available.length,
      active,
      dialling: this.dials.size,
      waiting: this.waiting.length,
    }
  }

  #takeAvailable(ticket: ClientTicket): boolean {
    for (let connection = this.available.last; connection !== undefined; connection = this.available.last) {
      if (connection.take(ticket)) return true
      // It cannot any more, and has not yet come to say so.
      this.unpark(connection)
    }
    return false
  }

  #dial(): void {
    const dial = { cancel: () => {} }
    this.dials.add(dial)
    this.pool.room.take()
    try {
      const attempt = this.pool.settings.connect(this.target, this.dialOptions, (error, dialled) => {
        if (!this.dials.delete(dial)) dialled?.socket.destroy()
        else if (dialled !== undefined) this.#dialled(dialled)
        else this.#dialFailed(error as HeddleError)
      })
      dial.cancel = () => attempt.cancel()
    } catch (cause) {
      // An option that net or tls refuses, such as a certificate that is none.
      this.dials.delete(dial)
      const error = new NetworkError('CONNECT_FAILED', 'no connection could be begun', { cause, unprocessed: true })
      this.#dialFailed(cause instanceof HeddleError ? cause : error)
    }
  }

  #dialled(dialled: Dialled): void {
    this.#suspect = false
    this.#failures = 0
    this.counters.dialled++
    new PooledConnection(this, dialled, this.pool.clock.now()).offer()
    // What was held back while the origin was suspect.
    if (this.wantsDial) this.pool.makeDue(this)
  }

  /**
   * A dial failed. While others are under way, they decide. If nothing is left that could serve
   * them, all who wait are told; else those who have waited as long as a connection may take, and
   * the rest goes on waiting for the connections that live, with new attempts in growing intervals.
   */
  #dialFailed(error: HeddleError): void {
    this.counters.countError(error.code)
    this.#suspect = true
    this.pool.left()
    if (this.dials.size > 0) return
    if (this.connections.size === 0) {
      this.#failures = 0
      this.failWaiting(error)
      this.#maybeUnused()
      return
    }
    const now = this.pool.clock.now()
    const { connectTimeout } = this.pool.settings
    for (let ticket = this.waiting.first; ticket !== undefined && now - ticket.since >= connectTimeout; ticket = this.waiting.first) {
      this.leave(ticket, error)
    }
    this.#pausedUntil = now + Math.min(firstPause * 2 ** this.#failures, longestPause)
    this.#failures++
    if (this.waiting.length > 0) this.pool.makeDue(this)
  }

  #endPause(): void {
    this.pool.timers--
    this.pool.makeDue(this)
  }

  #nobodyWaits(): void {
    if (this.#pause !== undefined) this.pool.disarm(this.#pause)
    this.pool.room.unblock(this)
    this.#maybeUnused()
  }

  #maybeUnused(): void {
    if (this.connections.size === 0 && this.dials.size === 0 && this.waiting.length === 0) this.pool.directory.becameUnused(this)
  }
}
