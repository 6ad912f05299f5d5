/** A pool over engines that do what a test says: the order of every call is in the test's hands. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CancelledError,
  NetworkError,
  PeerError,
  responseHead,
  UsageError,
  type CancelReason,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Head,
  type HeddleError,
  type HttpConnection,
  type StreamEngine,
} from '../http/index.ts'
import type { Dialled, DialOptions, DialTarget } from '../io/index.ts'
import { connectionInfo, World } from '../testing/index.ts'
import type { ClientOptions, ExchangeOptions } from './options.ts'
import type { PooledOrigin } from './origin.ts'
import { Pool } from './pool.ts'
import { Settings } from './settings.ts'
import type { ClientExchangeHandler, ClientTicket } from './ticket.ts'

export class DoubleExchange implements Exchange {
  readonly protocol: Exchange['protocol'] = 'h1'
  readonly connection: ConnectionInfo = connectionInfo('client')
  readonly heads: Head[] = []
  handler: ExchangeHandler
  cancelled: CancelReason | undefined
  readonly #engine: DoubleEngine

  constructor(engine: DoubleEngine, handler: ExchangeHandler) {
    this.#engine = engine
    this.handler = handler
  }

  sendHead(head: Head): void {
    this.heads.push(head)
  }
  sendData(): boolean {
    return true
  }
  sendOwned(): boolean {
    return true
  }
  sendTrailers(): void {}
  consume(): void {}
  discard(): void {}
  setPriority(): void {}
  cancel(reason: CancelReason): void {
    if (this.cancelled !== undefined) return
    this.cancelled = reason
    this.#engine.world.soon(() => this.#engine.giveUp(this, new CancelledError(reason)))
  }
}

/** HTTP/1.1 without HTTP: one exchange at a time, ended by the test. */
export class DoubleEngine implements HttpConnection, StreamEngine {
  readonly world: World
  readonly handler: ConnectionHandler
  readonly wantsInput: boolean = true
  readonly closing: StreamEngine['closing'] = 'no'
  readonly deadline: number = Infinity
  onDirty: () => void = () => {}
  openable = 1
  exchange: DoubleExchange | undefined
  /** True: `open` refuses, as it does once a FIN was seen that the pool has not been told of. */
  dead = false
  closed = false
  /** What a cancelled exchange leaves behind: content to drain, or a connection that has to go. */
  afterCancel: 'drain' | 'close' = 'close'

  constructor(world: World, handler: ConnectionHandler) {
    this.world = world
    this.handler = handler
  }

  get openExchanges(): number {
    return this.exchange === undefined ? 0 : 1
  }

  open(handler: ExchangeHandler): Exchange | undefined {
    if (this.openable === 0 || this.dead) return undefined
    this.openable = 0
    this.exchange = new DoubleExchange(this, handler)
    return this.exchange
  }

  /** The whole response arrives. `early`: the engine can take the next exchange before it tells the end of this one. */
  respond(early = true): void {
    const exchange = this.exchange as DoubleExchange
    this.exchange = undefined
    exchange.handler.onHead(responseHead(200), true)
    if (early) this.openable = 1
    exchange.handler.onClose(undefined)
    if (!early) this.openable = 1
    if (this.openable > 0) this.handler.onCapacity(this.openable)
  }

  /** The exchange is over; what is left is drained until `drained` or `close`. */
  giveUp(exchange: DoubleExchange, error: HeddleError | undefined): void {
    if (this.exchange !== exchange) return
    this.exchange = undefined
    exchange.handler.onClose(error)
    if (this.afterCancel === 'close') this.close()
  }

  drained(byteCount: number): void {
    this.openable = 1
    this.handler.onDrained(byteCount, true)
    this.handler.onCapacity(1)
  }

  /** The connection is gone. */
  close(error?: HeddleError): void {
    if (this.closed) return
    this.closed = true
    this.openable = 0
    const { exchange } = this
    this.exchange = undefined
    exchange?.handler.onClose(error ?? new PeerError('PEER_CLOSED', 'closed'))
    this.handler.onClose(error)
  }

  shutdown(): void {
    this.openable = 0
    if (this.exchange === undefined) this.world.soon(() => this.close())
  }

  abort(error: HeddleError): void {
    this.world.soon(() => this.close(error))
  }

  receive(): void {}
  receiveEnd(): void {}
  receiveError(): void {}
  transmit(): boolean {
    return false
  }
  expire(): void {}
}

/** One dial, to be decided by the test. */
export interface DoubleDial {
  readonly target: DialTarget
  readonly options: DialOptions
  cancelled: boolean
  accept(): DoubleEngine
  refuse(): void
}

export class DoubleHandler implements ClientExchangeHandler {
  readonly name: string
  readonly log: string[]
  replayable = false
  opened: Exchange[] = []
  closes = 0
  error: HeddleError | undefined
  whenOpen: ((exchange: Exchange) => void) | undefined
  whenClosed: (() => void) | undefined

  constructor(name: string, log: string[]) {
    this.name = name
    this.log = log
  }

  onOpen(exchange: Exchange): void {
    this.log.push(`${this.name} opened`)
    this.opened.push(exchange)
    this.whenOpen?.(exchange)
  }
  onHead(): void {}
  onData(): void {}
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    this.closes++
    this.error = error
    this.log.push(`${this.name} closed${error === undefined ? '' : ` ${error.code}`}`)
    this.whenClosed?.()
  }
}

/** A pool in a world, its dials in the order they were made, and what its handlers were told. */
export class Bench {
  readonly world: World
  readonly pool: Pool
  readonly dials: DoubleDial[] = []
  readonly engines: DoubleEngine[] = []
  readonly log: string[] = []
  readonly origin: PooledOrigin

  constructor(options: ClientOptions = {}) {
    this.world = new World()
    const settings = new Settings(
      { clock: this.world, connect: (target, dialOptions, done) => this.#connect(target, dialOptions, done), ...options },
      (_protocol, _dialled, handler) => {
        const engine = new DoubleEngine(this.world, handler)
        this.engines.push(engine)
        return engine
      },
    )
    this.pool = new Pool(settings)
    this.origin = this.pool.directory.find('http://origin.test')
  }

  #connect(target: DialTarget, options: DialOptions, done: (error: HeddleError | undefined, dialled: Dialled | undefined) => void) {
    const dial: DoubleDial = {
      target,
      options,
      cancelled: false,
      accept: () => {
        assert.equal(dial.cancelled, false)
        const dialled = { info: connectionInfo('client'), alpn: undefined, attach: () => undefined, socket: {} }
        done(undefined, dialled as unknown as Dialled)
        return this.engines.at(-1) as DoubleEngine
      },
      refuse: () => done(new NetworkError('CONNECT_FAILED', 'refused', { unprocessed: true }), undefined),
    }
    this.dials.push(dial)
    return {
      cancel: () => {
        dial.cancelled = true
      },
    }
  }

  /** Begins a request whose handler logs as `name`. */
  request(name: string, setUp?: (handler: DoubleHandler) => void, origin: PooledOrigin = this.origin, options?: ExchangeOptions): Sent {
    const handler = new DoubleHandler(name, this.log)
    setUp?.(handler)
    return { handler, ticket: this.pool.exchange(origin, handler, options) }
  }

  /** Ends the turn: what the pool put off happens. */
  turn(): void {
    this.world.run()
  }

  /** `count` idle connections, the one made first at the start. */
  idle(count: number): DoubleEngine[] {
    const before = this.engines.length
    for (let i = 0; i < count; i++) this.request('warm-up')
    this.turn()
    for (const dial of this.dials.slice(-count)) dial.accept()
    const engines = this.engines.slice(before)
    for (const engine of engines) engine.respond()
    this.log.length = 0
    return engines
  }

  /** What was logged since it was last taken. */
  takeLog(): string[] {
    return this.log.splice(0)
  }

  /** Nothing is left of anything. */
  assertEmpty(): void {
    const { connections, idle, active, draining, dialling, waiting } = this.pool.directory.stats()
    assert.deepEqual({ connections, idle, active, draining, dialling, waiting }, nothing)
    assert.equal(this.pool.room.taken, 0)
    assert.equal(this.pool.waiting, 0)
    assert.equal(this.pool.room.evicting, 0)
  }
}

export interface Sent {
  readonly handler: DoubleHandler
  readonly ticket: ClientTicket
}

const nothing = { connections: 0, idle: 0, active: 0, draining: 0, dialling: 0, waiting: 0 }

test('the double takes one exchange at a time and tells its end once', () => {
  const bench = new Bench()
  const [engine] = bench.idle(1) as [DoubleEngine]
  const handler = new DoubleHandler('a', [])
  const exchange = engine.open(handler) as DoubleExchange
  assert.equal(engine.open(handler), undefined)
  exchange.cancel(1)
  exchange.cancel(1)
  bench.turn()
  assert.deepEqual([handler.closes, handler.error?.code, engine.closed], [1, 'CANCELLED', true])
  assert.throws(() => engine.handler.onExchange(exchange), UsageError)
})
