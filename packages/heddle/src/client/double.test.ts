/** A pool over engines that do what a test says: the order of every call is in the test's hands. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NetworkError, UsageError, type Exchange, type HeddleError, type TlsFacts } from '../http/index.ts'
import type { Dialled, DialledQuic, DialOptions, DialTarget, QuicDialOptions } from '../io/index.ts'
import { connectionInfo, World } from '../testing/index.ts'
import { DoubleEngine, DoubleStreams, type DoubleExchange } from './double-engines.test.ts'
import type { ClientOptions, ExchangeOptions } from './options.ts'
import type { PooledOrigin } from './origin.ts'
import { Pool } from './pool.ts'
import { Settings } from './settings.ts'
import type { ClientExchangeHandler, ClientTicket } from './ticket.ts'

export { DoubleEngine, DoubleStreams, type DoubleExchange } from './double-engines.test.ts'

/** One dial, to be decided by the test. */
export interface DoubleDial {
  readonly target: DialTarget
  readonly options: DialOptions
  cancelled: boolean
  accept(): DoubleEngine
  /** Accepts; ALPN says http/1.1. */
  acceptHttp1(tls?: TlsFacts): DoubleEngine
  /** Accepts; ALPN says h2, and SETTINGS that allow `most` are there at once. */
  acceptStreams(most?: number, tls?: TlsFacts): DoubleStreams
  /** Accepts without TLS, where h2 is known to be spoken. */
  acceptPlainStreams(): DoubleStreams
  refuse(): void
}

/** One dial by QUIC, to be decided by the test. */
export interface DoubleQuicDial {
  readonly target: { readonly host: string; readonly port: number }
  readonly options: QuicDialOptions
  readonly state: 'dialling' | 'cancelled' | 'connected' | 'destroyed' | 'refused'
  /** Accepts; the server allows `most` streams at first. */
  accept(most?: number): DoubleStreams
  refuse(): void
}

/** What TLS says of a server whose certificate is good. */
export const verified: TlsFacts = {
  version: 'TLSv1.3',
  cipher: 'TLS_AES_128_GCM_SHA256',
  alpn: 'h2',
  serverName: 'secure.test',
  authorized: true,
  peerCertificate: undefined,
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
  readonly quicDials: DoubleQuicDial[] = []
  readonly engines: DoubleEngine[] = []
  /** Those of connections that speak h2 or h3. */
  readonly streams: DoubleStreams[] = []
  readonly log: string[] = []
  readonly origin: PooledOrigin
  #most = 100

  constructor(options: ClientOptions = {}) {
    this.world = new World()
    const settings = new Settings(
      {
        clock: this.world,
        connect: (target, dialOptions, done) => this.#connect(target, dialOptions, done),
        connectQuic: (target, dialOptions, done) => this.#connectQuic(target, dialOptions, done),
        ...options,
      },
      (protocol, _dialled, handler) => {
        if (protocol !== 'h1') {
          const streams = new DoubleStreams(this.world, handler, this.#most, protocol)
          this.streams.push(streams)
          return streams
        }
        const engine = new DoubleEngine(this.world, handler)
        this.engines.push(engine)
        return engine
      },
    )
    this.pool = new Pool(settings)
    this.origin = this.pool.directory.find('http://origin.test')
  }

  /** An origin that speaks what its dials say when they are accepted. */
  get secure(): PooledOrigin {
    return this.pool.directory.find('https://secure.test')
  }

  #connect(target: DialTarget, options: DialOptions, done: (error: HeddleError | undefined, dialled: Dialled | undefined) => void) {
    const arrive = (alpn: string | undefined, tls?: TlsFacts): void => {
      assert.equal(dial.cancelled, false)
      const dialled = { info: { ...connectionInfo('client'), tls }, alpn, attach: () => undefined, socket: { destroy: () => {} } }
      done(undefined, dialled as unknown as Dialled)
    }
    const dial: DoubleDial = {
      target,
      options,
      cancelled: false,
      accept: () => {
        arrive(undefined)
        return this.engines.at(-1) as DoubleEngine
      },
      acceptHttp1: (tls) => {
        arrive('http/1.1', tls)
        return this.engines.at(-1) as DoubleEngine
      },
      acceptStreams: (most = 100, tls = undefined) => {
        this.#most = most
        arrive('h2', tls)
        return this.streams.at(-1) as DoubleStreams
      },
      acceptPlainStreams: () => {
        arrive(undefined)
        return this.streams.at(-1) as DoubleStreams
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

  #connectQuic(
    target: { readonly host: string; readonly port: number },
    options: QuicDialOptions,
    done: (error: HeddleError | undefined, dialled: DialledQuic | undefined) => void,
  ) {
    let state: DoubleQuicDial['state'] = 'dialling'
    const leave = (next: DoubleQuicDial['state']): void => {
      assert.equal(state, 'dialling')
      state = next
    }
    this.quicDials.push({
      target,
      options,
      get state() {
        return state
      },
      accept: (most = 100) => {
        leave('connected')
        this.#most = most
        const dialled = { info: { ...connectionInfo('client'), tls: verified }, alpn: 'h3', quic: {}, attach: () => undefined }
        const destroy = (): void => {
          state = 'destroyed'
        }
        done(undefined, { ...dialled, destroy } as unknown as DialledQuic)
        return this.streams.at(-1) as DoubleStreams
      },
      refuse: () => {
        leave('refused')
        done(new NetworkError('CONNECT_FAILED', 'refused by QUIC', { unprocessed: true }), undefined)
      },
    })
    return { cancel: () => leave('cancelled') }
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
