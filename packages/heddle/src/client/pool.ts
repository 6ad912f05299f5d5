import { List } from '../bytes/index.ts'
import { HeddleError, UsageError } from '../http/index.ts'
import { Alarm, type Clock } from '../io/index.ts'
import type { PooledConnection } from './connection.ts'
import type { ExchangeOptions } from './options.ts'
import { PooledOrigin } from './origin.ts'
import { duration, type Settings } from './settings.ts'
import { Counters, poolCounts, type ClientStats } from './stats.ts'
import { ClientTicket, TicketState, type ClientExchangeHandler } from './ticket.ts'

const defaultPorts: Readonly<Record<string, number>> = { http: 80, https: 443 }

/**
 * All origins of a client and what they share: the limit over all connections, the origins that are
 * in nobody's use, and one task per turn.
 *
 * Engines call the pool from inside their run, where connections must not be shut down or aborted,
 * and programs ask for requests just before the connection they would need becomes free. So the pool
 * only notes what is to be done and does it in `attend`, once in a turn, after the turn's input:
 * tell the ended ones, dial, make room, close.
 */
export class Pool {
  readonly settings: Settings
  readonly clock: Clock
  /** Open connections and those being made. */
  connections: number
  /** Requests that wait, at all origins. */
  waiting: number
  /** Alarms armed. */
  timers: number
  /** Connections retired to make room and not gone yet. */
  evicting: number
  /** True: no new requests. */
  closing: boolean
  /** An origin stands in at most one of the three lists below. Origins with idle connections; kept only if the client has a limit over all. */
  readonly idle: List<PooledOrigin>
  /** Origins that want to dial and may not, because of the limit over all. */
  readonly blocked: List<PooledOrigin>
  /** Origins without connections and requests, the one unused longest first. */
  readonly unused: List<PooledOrigin>
  readonly #origins: Map<string, PooledOrigin>
  /** What forgotten origins counted. */
  readonly #forgotten: Counters
  /** Requests that are over without an exchange and have not been told. */
  readonly #ending: List<ClientTicket>
  #due: PooledOrigin[]
  #retiring: PooledConnection[]
  #attendDue: boolean
  readonly #attend: () => void
  readonly #sweep: Alarm
  /** Set by `destroy` until `attend` has carried it out. */
  #destruction: HeddleError | undefined
  #whenClosed: (() => void)[]

  constructor(settings: Settings) {
    this.settings = settings
    this.clock = settings.clock
    this.connections = 0
    this.waiting = 0
    this.timers = 0
    this.evicting = 0
    this.closing = false
    this.idle = new List()
    this.blocked = new List()
    this.unused = new List()
    this.#origins = new Map()
    this.#forgotten = new Counters()
    this.#ending = new List()
    this.#due = []
    this.#retiring = []
    this.#attendDue = false
    this.#attend = () => this.#run()
    this.#sweep = new Alarm(() => this.#forget())
    this.#destruction = undefined
    this.#whenClosed = []
  }

  /** The origin of `url`, made if it is not known. */
  origin(url: string | URL): PooledOrigin {
    if (typeof url === 'string') {
      const known = this.#origins.get(url)
      if (known !== undefined) return known
      if (!URL.canParse(url)) throw new UsageError(`not a URL: ${url}`)
    }
    const { protocol, host, hostname, port } = typeof url === 'string' ? new URL(url) : url
    const scheme = protocol.slice(0, -1)
    const defaultPort = defaultPorts[scheme]
    if (defaultPort === undefined) throw new UsageError(`only http and https URLs have an origin to send to, not ${protocol}`)
    const known = this.#origins.get(`${scheme}://${host}`)
    if (known !== undefined) return known
    const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
    return this.#remember(new PooledOrigin(this, scheme, host, bare, port === '' ? defaultPort : Number(port)))
  }

  /** See `Client.exchange`. */
  exchange(origin: PooledOrigin, handler: ClientExchangeHandler, options: ExchangeOptions | undefined): ClientTicket {
    if (origin.pool !== this) throw new UsageError('the origin was not made by this client')
    if (this.closing) throw new UsageError('the client is closed')
    const ticket = new ClientTicket(origin.known ? origin : this.#recall(origin), handler)
    let { queueTimeout, totalTimeout } = this.settings
    if (options !== undefined) {
      queueTimeout = duration('queueTimeout', options.queueTimeout, queueTimeout)
      totalTimeout = duration('totalTimeout', options.totalTimeout, totalTimeout)
    }
    if (queueTimeout !== Infinity || totalTimeout !== Infinity) {
      const now = this.clock.now()
      ticket.limit(now + queueTimeout, now + totalTimeout)
    }
    this.settings.loopHold?.enter()
    ticket.origin.enter(ticket)
    return ticket
  }

  /** Lets `ticket` wait, at the head of the queue if `first`. */
  wait(ticket: ClientTicket, first: boolean): void {
    const { origin } = ticket
    if (origin.waiting.length >= this.settings.maxWaitingPerOrigin) {
      this.end(ticket, new HeddleError('QUEUE_FULL', 'too many requests wait for a connection', { unprocessed: true }))
      return
    }
    if (origin.list === this.unused) this.#leaveList(origin)
    ticket.state = TicketState.Waiting
    ticket.since = this.clock.now()
    if (first) origin.waiting.prepend(ticket)
    else origin.waiting.append(ticket)
    this.waiting++
    if (origin.wantsDial) this.makeDue(origin)
  }

  /** `ticket`, which stands nowhere, ends with `error`; it is told in `attend`. */
  end(ticket: ClientTicket, error: HeddleError): void {
    ticket.state = TicketState.Ending
    ticket.failure = error
    this.#ending.append(ticket)
    this.attendSoon()
  }

  /** True while another connection may be made. */
  get hasRoom(): boolean {
    return this.connections < this.settings.maxConnections
  }

  /** A dial begins. */
  entered(): void {
    this.connections++
  }

  /** A connection is gone, or a dial failed: whoever was kept from dialling may. */
  left(): void {
    this.connections--
    const origin = this.blocked.first
    if (origin !== undefined) {
      this.#leaveList(origin)
      this.makeDue(origin)
    }
    if (this.closing) this.attendSoon()
  }

  /**
   * True if `origin`, a connection of which became free, must give it up although requests wait for
   * it: another origin has less than its share of the limit over all, and waits for room.
   */
  mustYield(origin: PooledOrigin): boolean {
    const { first } = this.blocked
    const other = first === origin ? first.next : first
    if (other === undefined || this.blocked.length <= this.evicting) return false
    const sharers = this.#origins.size - this.unused.length
    const share = Math.max(1, Math.floor(this.settings.maxConnections / sharers))
    const own = origin.connections.size - origin.evicting
    if (own > share) return true
    // More origins than connections: they take turns.
    return sharers > this.settings.maxConnections && (other as PooledOrigin).connections.size === 0
  }

  /** Closes `connection` in `attend` to make room. */
  evictSoon(connection: PooledConnection): void {
    this.#evict(connection)
    this.#retiring.push(connection)
    this.attendSoon()
  }

  /** `origin` looks in `attend` whether to dial. */
  makeDue(origin: PooledOrigin): void {
    if (origin.due) return
    origin.due = true
    this.#due.push(origin)
    this.attendSoon()
  }

  /** `origin` has to wait for another connection of the client to go. */
  block(origin: PooledOrigin): void {
    this.#enterList(origin, this.blocked)
    this.attendSoon()
  }

  unblock(origin: PooledOrigin): void {
    if (origin.list === this.blocked) this.#leaveList(origin)
  }

  /** The first connection of `origin` is idle. */
  becameIdle(origin: PooledOrigin): void {
    if (this.closing) this.attendSoon()
    if (this.settings.maxConnections === Infinity) return
    this.#enterList(origin, this.idle)
    if (this.blocked.length > 0) this.attendSoon()
  }

  /** No connection of `origin` is idle any more. */
  becameBusy(origin: PooledOrigin): void {
    if (origin.list === this.idle) this.#leaveList(origin)
  }

  /** `origin` has neither connections nor requests. */
  becameUnused(origin: PooledOrigin): void {
    origin.unusedSince = this.clock.now()
    this.#enterList(origin, this.unused)
    if (this.unused.length === 1) this.arm(this.#sweep, origin.unusedSince + this.settings.originLifetime)
  }

  arm(alarm: Alarm, deadline: number): void {
    if (alarm.list !== undefined) this.timers--
    this.clock.set(alarm, deadline)
    if (deadline !== Infinity) this.timers++
  }

  disarm(alarm: Alarm): void {
    if (alarm.list === undefined) return
    this.timers--
    this.clock.clear(alarm)
  }

  attendSoon(): void {
    if (this.#attendDue) return
    this.#attendDue = true
    this.clock.soon(this.#attend)
  }

  stats(): ClientStats {
    const total = new Counters()
    total.add(this.#forgotten)
    const census = { connections: 0, idle: 0, active: 0, dialling: 0, waiting: 0 }
    const origins = []
    for (const origin of this.#origins.values()) {
      total.add(origin.counters)
      const own = origin.census()
      census.connections += own.connections
      census.idle += own.idle
      census.active += own.active
      census.dialling += own.dialling
      census.waiting += own.waiting
      origins.push(origin.stats())
    }
    return { ...poolCounts(census, total), timers: this.timers, origins }
  }

  /** Fulfilled when nothing runs or waits and every connection is closed. */
  close(): Promise<void> {
    this.closing = true
    this.attendSoon()
    this.settings.loopHold?.enter()
    return new Promise((resolve) => this.#whenClosed.push(resolve))
  }

  destroy(error: HeddleError): void {
    this.closing = true
    this.#destruction ??= error
    this.attendSoon()
  }

  #run(): void {
    this.#attendDue = false
    if (this.#destruction !== undefined) this.#destroyAll(this.#destruction)
    // Only those that stand here now: what the program does meanwhile comes in the next turn.
    for (let count = this.#ending.length; count > 0; count--) this.#ending.shift()?.conclude()
    const due = this.#due
    this.#due = []
    for (const origin of due) origin.due = false
    for (let i = 0; i < due.length; i++) {
      const origin = due[i] as PooledOrigin
      if (origin.maybeDial()) due.push(origin)
    }
    const retiring = this.#retiring
    this.#retiring = []
    for (const connection of retiring) connection.retire()
    this.#makeRoom()
    if (this.closing) this.#closeIdle()
  }

  /** Retires idle connections of some origins as long as others wait for room. */
  #makeRoom(): void {
    for (let wanted = this.blocked.length - this.evicting; wanted > 0; wanted--) {
      const connection = this.idle.first?.available.first
      if (connection === undefined) return
      this.#evict(connection)
      connection.retire()
    }
  }

  #evict(connection: PooledConnection): void {
    connection.evicted = true
    connection.origin.evicting++
    this.evicting++
  }

  #closeIdle(): void {
    for (const origin of this.#origins.values()) {
      if (origin.waiting.length > 0) continue
      origin.cancelDials()
      for (let connection = origin.available.first; connection !== undefined; connection = origin.available.first) connection.retire()
    }
    if (this.connections > 0 || this.waiting > 0 || this.#ending.length > 0) return
    this.disarm(this.#sweep)
    for (const resolve of this.#whenClosed) {
      this.settings.loopHold?.leave()
      resolve()
    }
    this.#whenClosed = []
  }

  #destroyAll(error: HeddleError): void {
    this.#destruction = undefined
    for (const origin of this.#origins.values()) {
      origin.failWaiting(error)
      origin.cancelDials()
      for (const connection of origin.connections) {
        connection.abort(error)
      }
    }
  }

  /** What stands for `origin` now: itself again, or the one that took its place after it was forgotten. */
  #recall(origin: PooledOrigin): PooledOrigin {
    return this.#origins.get(origin.key) ?? this.#remember(origin)
  }

  #remember(origin: PooledOrigin): PooledOrigin {
    origin.known = true
    this.#origins.set(origin.key, origin)
    this.becameUnused(origin)
    return origin
  }

  /** Forgets the origins that have been unused for long. */
  #forget(): void {
    this.timers--
    const { originLifetime } = this.settings
    const now = this.clock.now()
    for (let origin = this.unused.first; origin !== undefined; origin = this.unused.first) {
      const end = origin.unusedSince + originLifetime
      if (end > now) {
        this.arm(this.#sweep, end)
        return
      }
      this.#leaveList(origin)
      origin.known = false
      this.#origins.delete(origin.key)
      this.#forgotten.add(origin.counters)
      origin.counters.reset()
    }
  }

  #enterList(origin: PooledOrigin, list: List<PooledOrigin>): void {
    if (origin.list === list) return
    if (origin.list !== undefined) this.#leaveList(origin)
    origin.list = list
    list.append(origin)
  }

  #leaveList(origin: PooledOrigin): void {
    const { list } = origin
    if (list === undefined) return
    list.remove(origin)
    origin.list = undefined
    if (list === this.unused && list.length === 0) this.disarm(this.#sweep)
  }
}
