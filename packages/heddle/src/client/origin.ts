import { List, type Linked } from '../bytes/index.ts'
import { HeddleError, NetworkError, type Instant } from '../http/index.ts'
import { Alarm, type Dialled } from '../io/index.ts'
import { PooledConnection } from './connection.ts'
import type { EngineOptions } from './engine.ts'
import type { Pool } from './pool.ts'
import { chosenProtocol, type ClientProtocol } from './protocols.ts'
import { routeTo, type Route } from './route.ts'
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

/** What sets the key of an origin whose connections all speak HTTP/1.1 apart from that of the same origin with any. */
export const http1Suffix = ' over HTTP/1.1'

/** Requests an HTTP/2 connection is taken to run at once, until one has told (RFC 9113 §6.5.2: at least 100 is recommended). */
const usualStreams = 100

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
  /** `scheme://authority`, and perhaps `http1Suffix`: its key in the directory. */
  readonly key: string
  readonly route: Route
  readonly engines: EngineOptions
  readonly counters: Counters
  protocol: ClientProtocol | undefined
  /** The server wants HTTP/1.1 for what it was asked over HTTP/2 (HTTP_1_1_REQUIRED). */
  http1Required: boolean
  /** Requests its HTTP/2 connections run at once, as the last one said. */
  streamsPerConnection: number
  /** Connections that can take a request, the one that became so last at the end: it is taken first. */
  readonly available: List<PooledConnection>
  /** Requests without a connection, the oldest first. */
  readonly waiting: List<ClientTicket>
  /** Every open connection. */
  readonly connections: Set<PooledConnection>
  /** Open connections that take requests, now or when they are free, by what is spoken. */
  readonly usable: Record<ClientProtocol, number>
  /** HTTP/2 connections that are open and take no more requests. */
  leaving: number
  /** Connections that are idle. */
  idle: number
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
  /** The last of the waiting requests that stood here before: all of those come first. */
  #lastReturned: ClientTicket | undefined

  /** `http1Only`: its connections speak HTTP/1.1, whatever the client's `protocols` say. */
  constructor(pool: Pool, scheme: string, authority: string, host: string, port: number, http1Only = false) {
    this.previous = undefined
    this.next = undefined
    this.list = undefined
    this.pool = pool
    this.scheme = scheme
    this.authority = authority
    this.host = host
    this.port = port
    this.key = `${scheme}://${authority}${http1Only ? http1Suffix : ''}`
    this.route = routeTo(this, pool.settings)
    this.engines = { http1: this.route.http1, http2: pool.settings.engines.http2 }
    this.protocol = http1Only ? 'h1' : this.route.protocol
    this.http1Required = http1Only
    this.streamsPerConnection = usualStreams
    this.counters = new Counters()
    this.available = new List()
    this.waiting = new List()
    this.connections = new Set()
    this.usable = { h1: 0, h2: 0 }
    this.leaving = 0
    this.idle = 0
    this.dials = new Set()
    this.known = false
    this.due = false
    this.evicting = 0
    this.unusedSince = 0
    this.#suspect = false
    this.#failures = 0
    this.#pausedUntil = 0
    this.#pause = undefined
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

  /** Gives `ticket` a connection that can take it, or lets it wait for one. */
  enter(ticket: ClientTicket): void {
    this.counters.requests++
    if (!this.#takeAvailable(ticket)) this.pool.wait(ticket, false)
  }

  /** As `enter`, for a request that stood here before: it waits ahead of those that did not. */
  enterAgain(ticket: ClientTicket): void {
    if (!this.#takeAvailable(ticket)) this.pool.wait(ticket, true)
  }

  /** `ticket` waits; ahead of all who come for the first time if it `returns`. */
  queue(ticket: ClientTicket, returns: boolean): void {
    const { waiting } = this
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

  /**
   * True if another dial would be of use and its own limit allows it. While nobody knows what the
   * origin speaks, one dial at a time: it tells whether more are needed.
   */
  get wantsDial(): boolean {
    const { protocol } = this
    const waiting = this.waiting.length
    const dialling = this.dials.size
    if (waiting === 0 || !this.#mayConnect) return false
    if (protocol === undefined) return dialling === 0
    if (protocol === 'h1') return waiting > dialling
    if (!this.pool.settings.connectsWhenFull) return dialling === 0 && this.usable.h2 === 0
    return waiting > dialling * this.streamsPerConnection
  }

  get #mayConnect(): boolean {
    const { maxConnectionsPerOrigin } = this.pool.settings
    const taken = this.connections.size + this.dials.size
    if (taken < maxConnectionsPerOrigin) return true
    // What a leaving HTTP/2 connection still has to finish may take hours: new requests do not wait for it.
    return taken - this.leaving < maxConnectionsPerOrigin && taken < maxConnectionsPerOrigin * 2
  }

  /**
   * Starts a dial if there is a request waiting without one and the limits allow it. True: another
   * could be of use; asked one at a time, so that origins share the room they compete for.
   */
  maybeDial(): boolean {
    if (!this.wantsDial) return false
    if (this.#suspect && this.dials.size > 0) return false
    if (this.#suspect && this.#hasUsable && this.pool.clock.now() < this.#pausedUntil) {
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
    this.counters.frames += connection.engine.framesSent ?? 0
    if (connection.protocol === 'h2') {
      this.leaving--
      this.counters.writes += connection.traffic.writes
    }
    if (this.waiting.length > 0) this.pool.makeDue(this)
    else this.#maybeUnused()
  }

  /** The server wants HTTP/1.1: no more requests over HTTP/2. False: the client may not speak it. */
  requireHttp1(): boolean {
    if (!this.route.protocols.includes('h1')) return false
    if (this.http1Required) return true
    this.http1Required = true
    this.protocol = 'h1'
    for (const connection of this.connections) if (connection.protocol === 'h2') connection.retireSoon()
    return true
  }

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

  /** Something is there that can serve a request, now or when it is free. */
  get #hasUsable(): boolean {
    return this.usable.h1 + this.usable.h2 > 0
  }

  #takeAvailable(ticket: ClientTicket): boolean {
    for (let connection = this.available.last; connection !== undefined; connection = this.available.last) {
      // One that is never idle is asked here whether it may go on.
      if (!connection.idle && connection.yields()) continue
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
      const { target, options, http1Options } = this.route
      const attempt = this.pool.settings.connect(target, this.http1Required ? http1Options : options, (error, dialled) => {
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
    const protocol = this.#spokenOn(dialled)
    if (protocol === undefined) {
      dialled.socket.destroy()
      const message = `${this.key} speaks none of ${this.route.protocols.join(', ')}`
      return this.#dialFailed(new NetworkError('TLS_FAILED', message, { unprocessed: true }))
    }
    if (protocol === 'h2' && this.http1Required) {
      // It was on its way when the server asked for HTTP/1.1.
      dialled.socket.destroy()
      this.pool.left()
      if (this.waiting.length > 0) this.pool.makeDue(this)
      return
    }
    this.#suspect = false
    this.#failures = 0
    this.protocol = protocol
    this.counters.dialled[protocol]++
    new PooledConnection(this, dialled, protocol, this.pool.clock.now()).offer()
    // What was held back while the origin was suspect, or nobody knew what it speaks.
    if (this.wantsDial) this.pool.makeDue(this)
    // One connection does for all, where several were thought to be needed.
    else if (protocol === 'h2' && this.waiting.length === 0) this.cancelDials()
  }

  #spokenOn({ alpn }: Dialled): ClientProtocol | undefined {
    const { protocol, protocols } = this.route
    if (this.scheme === 'https') return chosenProtocol(alpn, protocols)
    return this.http1Required ? 'h1' : protocol
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
    if (!this.#hasUsable) {
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
