import { List } from '../bytes/index.ts'
import { HeddleError, UsageError } from '../http/index.ts'
import type { Alarm, Clock } from '../io/index.ts'
import { Alternatives } from './alternatives.ts'
import { Coalescing } from './coalescing.ts'
import type { PooledConnection } from './connection.ts'
import { Directory } from './directory.ts'
import type { ExchangeOptions } from './options.ts'
import type { PooledOrigin } from './origin.ts'
import { Room } from './room.ts'
import { duration, type Settings } from './settings.ts'
import { ClientTicket, TicketState, type ClientExchangeHandler } from './ticket.ts'

/**
 * What the origins of a client share: their directory, the room for connections, and one task per turn.
 *
 * Engines call the pool from inside their run, where connections must not be shut down or aborted,
 * and programs ask for requests just before the connection they would need becomes free. So the pool
 * only notes what is to be done and does it in `attend`, once in a turn, after the turn's input:
 * tell the ended ones, dial, make room, close.
 */
export class Pool {
  readonly settings: Settings
  readonly clock: Clock
  readonly directory: Directory
  readonly room: Room
  /** Undefined: every origin has connections of its own. */
  readonly coalescing: Coalescing | undefined
  /** Where servers speak HTTP/3; undefined: it is not spoken, or spoken without their saying so. */
  readonly alternatives: Alternatives | undefined
  /** Requests that wait, at all origins. */
  waiting: number
  /** Alarms armed. */
  timers: number
  /** True: no new requests. */
  closing: boolean
  /** Requests that are over without an exchange and have not been told. */
  readonly #ending: List<ClientTicket>
  /** Origins that may have to dial. */
  #due: PooledOrigin[]
  /** Connections to be shut down. */
  #retiring: PooledConnection[]
  #attendPlanned: boolean
  readonly #attend: () => void
  /** Set by `close` until `attend` has told those that run or wait. */
  #announcing: boolean
  /** Set by `destroy` until `attend` has carried it out. */
  #destruction: HeddleError | undefined
  #whenClosed: (() => void)[]

  constructor(settings: Settings) {
    this.settings = settings
    this.clock = settings.clock
    this.directory = new Directory(this)
    this.room = new Room(this)
    this.coalescing = settings.coalesces ? new Coalescing() : undefined
    const { quic, protocols, tls } = settings
    this.alternatives = quic !== undefined && protocols.length > 1 ? new Alternatives(tls.rejectUnauthorized === false) : undefined
    this.waiting = 0
    this.timers = 0
    this.closing = false
    this.#ending = new List()
    this.#due = []
    this.#retiring = []
    this.#attendPlanned = false
    this.#attend = () => this.#run()
    this.#announcing = false
    this.#destruction = undefined
    this.#whenClosed = []
  }

  /** See `Client.exchange`. */
  exchange(origin: PooledOrigin, handler: ClientExchangeHandler, options?: ExchangeOptions): ClientTicket {
    if (origin.pool !== this) throw new UsageError('the origin was not made by this client')
    if (this.closing) throw new UsageError('the client is closed')
    const known = origin.known ? origin : this.directory.recall(origin)
    const ticket = new ClientTicket(known, handler, options?.tunnel === true)
    let { queueTimeout, totalTimeout } = this.settings
    if (options !== undefined) {
      queueTimeout = duration('queueTimeout', options.queueTimeout, queueTimeout)
      totalTimeout = duration('totalTimeout', options.totalTimeout, totalTimeout)
      if (options.queueTimeout !== undefined) ticket.patient = false
      if (options.retry === true) ticket.origin.counters.retries++
    }
    if (queueTimeout !== Infinity || totalTimeout !== Infinity) {
      const now = this.clock.now()
      ticket.limit(now + queueTimeout, now + totalTimeout)
    }
    this.settings.loopHold?.enter()
    if (!ticket.tunnel) known.enter(ticket)
    else if (!known.enterStream(ticket)) {
      ticket.origin = this.directory.forTunnels(known)
      ticket.origin.enter(ticket)
    }
    return ticket
  }

  /** Lets `ticket` wait, ahead of all who come for the first time if it `returns`. */
  wait(ticket: ClientTicket, returns: boolean): void {
    const { origin } = ticket
    if (origin.waiting.length >= this.settings.maxWaitingPerOrigin) {
      this.end(ticket, new HeddleError('QUEUE_FULL', `too many requests wait for a connection to ${origin.key}`, { unprocessed: true }))
      return
    }
    this.directory.becameUsed(origin)
    ticket.state = TicketState.Waiting
    ticket.since = this.clock.now()
    origin.queue(ticket, returns)
    this.waiting++
    if (ticket.patient) origin.stall.watch(ticket.since)
    if (origin.dials.isWanted) this.makeDue(origin)
  }

  /** `ticket`, which stands nowhere, ends with `error`; it is told in `attend`. */
  end(ticket: ClientTicket, error: HeddleError): void {
    ticket.state = TicketState.Ending
    ticket.failure = error
    this.#ending.append(ticket)
    this.attendSoon()
  }

  /** `origin` looks in `attend` whether to dial. */
  makeDue(origin: PooledOrigin): void {
    if (origin.due) return
    origin.due = true
    this.#due.push(origin)
    this.attendSoon()
  }

  /** A connection is gone, or a dial ended without one. */
  left(): void {
    this.room.give()
    if (this.closing) this.attendSoon()
  }

  /** `connection`, which takes no request any more, is shut down in `attend`. */
  retireSoon(connection: PooledConnection): void {
    this.#retiring.push(connection)
    this.attendSoon()
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
    if (this.#attendPlanned) return
    this.#attendPlanned = true
    this.clock.soon(this.#attend)
  }

  /** Fulfilled when nothing runs or waits and every connection is closed. */
  close(): Promise<void> {
    if (!this.closing) this.#announcing = true
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
    this.#attendPlanned = false
    if (this.#destruction !== undefined) this.#destroyAll(this.#destruction)
    else if (this.#announcing) this.#announceShutdown()
    // Only those that stand here now: what the program does meanwhile comes in the next turn.
    for (let count = this.#ending.length; count > 0; count--) this.#ending.shift()?.conclude()
    this.#dial()
    this.#retire()
    this.room.make()
    if (this.closing) this.#closeIdle()
  }

  /** One dial each in turn, so that origins share the room they compete for. */
  #dial(): void {
    const due = this.#due
    if (due.length === 0) return
    this.#due = []
    for (const origin of due) origin.due = false
    for (let i = 0; i < due.length || this.room.callUp(due); i++) {
      const origin = due[i] as PooledOrigin
      if (origin.dials.maybeStart()) due.push(origin)
    }
  }

  #retire(): void {
    const retiring = this.#retiring
    if (retiring.length === 0) return
    this.#retiring = []
    for (const connection of retiring) connection.retire()
  }

  #closeIdle(): void {
    for (const origin of this.directory.origins()) {
      if (origin.waiting.length > 0) continue
      origin.dials.cancelAll()
      for (let connection = origin.available.first; connection !== undefined; connection = origin.available.first) connection.retire()
      // A server may allow no streams for a while: its connection waits for none, and is not idle by the books.
      for (const connection of origin.connections) if (!connection.retired && connection.tickets.length === 0) connection.retire()
    }
    if (this.room.taken > 0 || this.waiting > 0 || this.#ending.length > 0) return
    this.directory.stopSweeping()
    const whenClosed = this.#whenClosed
    this.#whenClosed = []
    for (const resolve of whenClosed) {
      this.settings.loopHold?.leave()
      resolve()
    }
  }

  #announceShutdown(): void {
    this.#announcing = false
    const tickets: ClientTicket[] = []
    for (const origin of this.directory.origins()) {
      for (let ticket = origin.waiting.first; ticket !== undefined; ticket = ticket.next as ClientTicket | undefined) tickets.push(ticket)
      for (const { tickets: open } of origin.connections) {
        for (let ticket = open.first; ticket !== undefined; ticket = ticket.next as ClientTicket | undefined) tickets.push(ticket)
      }
    }
    // What they do changes those lists.
    for (const ticket of tickets) if (ticket.state !== TicketState.Over) ticket.announceShutdown()
  }

  #destroyAll(error: HeddleError): void {
    this.#destruction = undefined
    for (const origin of this.directory.origins()) {
      origin.failWaiting(error)
      origin.dials.cancelAll()
      for (const connection of origin.connections) connection.abort(error)
    }
  }
}
