import { List, type Linked } from '../bytes/index.ts'
import { ServerConnection, type Http1Options } from '../h1/index.ts'
import type { ConnectionHandler, Exchange, ExchangeHandler, HeddleError } from '../http/index.ts'
import type { Accepted, Clock, DriverCounters, DriverOptions } from '../io/index.ts'

/** Chooses who answers an exchange that begins. */
export type Acceptor = (exchange: Exchange) => ExchangeHandler

/** All connections of a server, and what they counted. */
export class Connections {
  readonly list: List<ServedConnection>
  readonly counters: DriverCounters
  readonly acceptor: Acceptor
  requests: number
  drained: number
  drainAbandoned: number
  drainedBytes: number
  readonly #clock: Clock
  readonly #http1: Http1Options
  readonly #driver: DriverOptions
  #closing: boolean

  constructor(clock: Clock, http1: Http1Options, acceptor: Acceptor, onBug: (error: unknown) => void) {
    this.list = new List()
    this.counters = { writes: 0, bytesRead: 0, bytesWritten: 0 }
    this.acceptor = acceptor
    this.requests = 0
    this.drained = 0
    this.drainAbandoned = 0
    this.drainedBytes = 0
    this.#clock = clock
    this.#http1 = http1
    this.#driver = { counters: this.counters, onBug }
    this.#closing = false
  }

  /** Puts an engine on a connection that was accepted. */
  accept(accepted: Accepted): void {
    if (this.#closing) {
      // Its handshake ended after the listener stopped.
      accepted.socket.destroy()
      return
    }
    const connection = new ServedConnection(this)
    const engine = new ServerConnection(accepted.info, connection, this.#http1, this.#clock.now())
    connection.engine = engine
    this.list.append(connection)
    accepted.attach(engine, this.#driver)
  }

  /** No new exchanges: idle connections close, the others when their exchange is over. */
  shutdown(): void {
    this.#closing = true
    for (const connection of this.#all()) connection.engine?.shutdown()
  }

  /** Every connection ends now, open exchanges with `error`. */
  abort(error: HeddleError): void {
    this.#closing = true
    for (const connection of this.#all()) connection.engine?.abort(error)
  }

  /** Open exchanges, connections without one, and connections that have a deadline. */
  census(): { exchanges: number; idle: number; deadlines: number } {
    let exchanges = 0
    let idle = 0
    let deadlines = 0
    for (let connection = this.list.first; connection !== undefined; connection = connection.next) {
      const engine = connection.engine as ServerConnection
      exchanges += engine.openExchanges
      if (engine.openExchanges === 0) idle++
      if (engine.deadline !== Infinity) deadlines++
    }
    return { exchanges, idle, deadlines }
  }

  // Connections leave the list while they are told.
  #all(): ServedConnection[] {
    const all: ServedConnection[] = []
    for (let connection = this.list.first; connection !== undefined; connection = connection.next) all.push(connection)
    return all
  }
}

/** One connection of a server, as its engine's owner. */
export class ServedConnection implements ConnectionHandler, Linked {
  previous: ServedConnection | undefined
  next: ServedConnection | undefined
  engine: ServerConnection | undefined
  readonly #owner: Connections

  constructor(owner: Connections) {
    this.previous = undefined
    this.next = undefined
    this.engine = undefined
    this.#owner = owner
  }

  onReady(): void {}

  onExchange(exchange: Exchange): ExchangeHandler {
    const owner = this.#owner
    owner.requests++
    return owner.acceptor(exchange)
  }

  onCapacity(): void {}

  onDraining(): void {}

  onDrained(byteCount: number, completed: boolean): void {
    const owner = this.#owner
    if (completed) owner.drained++
    else owner.drainAbandoned++
    owner.drainedBytes += byteCount
  }

  onClose(): void {
    this.#owner.list.remove(this)
  }
}
