/** The pool under any sequence of events, with its books checked after each. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { CancelReason, responseHead, type TlsFacts } from '../http/index.ts'
import { makeCertificate, Random, worldTest } from '../testing/index.ts'
import type { PooledConnection } from './connection.ts'
import { Bench, type Sent } from './double.test.ts'
import type { PooledOrigin } from './origin.ts'

const { cert } = makeCertificate({ names: ['secure.test', 'guest.test'] })
const tls: TlsFacts = {
  version: 'TLSv1.3',
  cipher: '',
  alpn: 'h2',
  serverName: undefined,
  authorized: true,
  peerCertificate: new X509Certificate(cert).raw,
}
const urls = ['http://origin.test', 'https://secure.test', 'https://guest.test']

class Model {
  readonly bench: Bench
  readonly random: Random
  readonly sent: Sent[] = []
  /** Dials already decided. */
  readonly #decided = new Set<unknown>()

  constructor(random: Random) {
    this.random = random
    this.bench = new Bench({
      maxConnectionsPerOrigin: random.integer(1, 4),
      maxTunnelsPerOrigin: random.chance(0.3) ? random.integer(1, 3) : Infinity,
      maxConnections: random.chance(0.4) ? random.integer(1, 4) : Infinity,
      whenFull: random.pick(['queue', 'connect']),
      coalesce: random.chance(0.5),
      queueTimeout: random.chance(0.3) ? 50 : Infinity,
      totalTimeout: random.chance(0.3) ? 200 : Infinity,
    })
  }

  step(): void {
    const { random, bench } = this
    const engine = bench.engines.length === 0 ? undefined : random.pick(bench.engines)
    const streams = bench.streams.length === 0 ? undefined : random.pick(bench.streams)
    const open = streams !== undefined && !streams.closed && streams.exchanges.length > 0
    switch (random.integer(0, 17)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return this.#ask()
      case 4:
        if (this.sent.length > 0) random.pick(this.sent).ticket.cancel(CancelReason.Cancelled)
        return
      case 5:
      case 6:
      case 7:
        return this.#decide()
      case 8:
      case 9:
        if (open) streams.respond(random.integer(0, streams.exchanges.length - 1))
        return
      case 10:
        if (engine?.exchange === undefined) return
        if (random.chance(0.3)) engine.exchange.handler.onHead(responseHead(200), false)
        else engine.respond(random.chance(0.5))
        return
      case 11:
        if (open) streams.reset(random.integer(0, streams.exchanges.length - 1), random.pick([7, 7, 2, 8, 0xd]))
        return
      case 12:
        if (streams !== undefined && !streams.closed && !streams.draining && random.chance(0.5)) streams.goAway(random.integer(0, 3))
        return
      case 13:
        if (streams !== undefined && random.chance(0.3)) streams.close(undefined, random.integer(0, 2))
        return
      case 14:
        if (engine !== undefined && random.chance(0.5)) engine.close()
        return
      case 15:
        if (streams !== undefined && !streams.closed && !streams.draining) {
          streams.numbers = random.chance(0.1) ? random.integer(0, 2) : streams.numbers
          streams.originSet = random.chance(0.3) ? new Set(urls) : streams.originSet
          streams.allow(random.integer(0, 4), random.chance(0.5))
        }
        return
      case 16:
        return void bench.world.advance(random.integer(0, 120))
      default:
        return bench.turn()
    }
  }

  #ask(): void {
    const { random, bench } = this
    const origin = bench.pool.directory.find(random.pick(urls))
    const tunnel = random.chance(0.2)
    const setUp = (handler: Sent['handler']): void => {
      handler.replayable = random.chance(0.7)
      // What programs do when they are told: ask for more, or give up.
      if (random.chance(0.2)) handler.whenClosed = () => this.sent.length < 300 && !bench.pool.closing && this.#ask()
      if (random.chance(0.05)) {
        handler.whenOpen = () => {
          throw new Error('the handler fails')
        }
      }
    }
    this.sent.push(bench.request(`r${this.sent.length}`, setUp, origin, tunnel ? { tunnel } : undefined))
  }

  #decide(): void {
    const { random, bench } = this
    const open = bench.dials.filter((dial) => !dial.cancelled && !this.#decided.has(dial))
    if (open.length === 0) return
    const dial = random.pick(open)
    this.#decided.add(dial)
    const alpn = dial.options.tls?.alpn ?? []
    if (random.chance(0.15)) dial.refuse()
    else if (alpn.includes('h2') && random.chance(0.7)) dial.acceptStreams(random.integer(0, 4), tls)
    else dial.accept()
  }

  /** Everything that is kept in two places says the same in both, and nobody waits for nothing. */
  check(): void {
    const { pool } = this.bench
    let waiting = 0
    let taken = 0
    for (const origin of pool.directory.origins()) {
      waiting += origin.waiting.length
      taken += origin.connections.size + origin.dials.size
      this.#checkOrigin(origin)
    }
    assert.equal(pool.waiting, waiting)
    assert.equal(pool.room.taken, taken)
    assert.ok(taken <= pool.settings.maxConnections)
    assert.ok(!pool.room.left || pool.room.blocked.length === 0, 'there is room, and somebody stands in line for it')
    if (pool.room.blocked.length <= pool.room.evicting) return
    const { first, last } = pool.room.blocked
    for (const origin of pool.directory.origins()) {
      const useless = [...origin.connections].filter(({ capacity, retired, tickets }) => capacity === 0 && !retired && tickets.length === 0)
      assert.ok(useless.length === 0 || (origin === first && origin === last), 'somebody stands in line for what is of no use')
    }
  }

  #checkOrigin(origin: PooledOrigin): void {
    const { pool, connections, available, waiting, usable, guestOf, dials } = origin
    const { maxConnectionsPerOrigin, maxTunnelsPerOrigin } = pool.settings
    const all = [...connections]
    const alive = all.filter(({ retired }) => !retired)
    assert.deepEqual(
      {
        h1: alive.filter(({ protocol }) => protocol === 'h1').length,
        h2: alive.filter(({ protocol }) => protocol === 'h2').length,
        h3: 0,
      },
      usable,
    )
    assert.equal(all.filter(({ retired, protocol }) => retired && protocol === 'h2').length, origin.leaving)
    assert.equal(all.filter(({ idle }) => idle).length, origin.idle)
    assert.equal(all.filter(({ evicted }) => evicted).length, origin.evicting)
    const parked = listed(available.first)
    assert.deepEqual(new Set(parked), new Set(all.filter((connection) => connection.parked)))
    for (const connection of all) {
      assert.equal(connection.idle, connection.parked && connection.tickets.length === 0)
      assert.ok(!(connection.parked && connection.retired))
      assert.equal(connection.tickets.length, connection.engine.openExchanges)
    }
    assert.equal(all.filter(({ tunnelling }) => tunnelling).length, origin.tunnelling)
    const taken = all.length + dials.size - origin.tunnelling
    assert.ok(taken - origin.leaving <= maxConnectionsPerOrigin && taken <= 2 * maxConnectionsPerOrigin)
    assert.ok(!origin.tunnelsOnly || (all.length + dials.size <= maxTunnelsPerOrigin && all.every(({ protocol }) => protocol === 'h1')))
    assert.ok(guestOf === undefined || (!guestOf.retired && guestOf.origin !== origin))
    if (waiting.length === 0) return
    for (const connection of alive) assert.equal(connection.engine.openable, 0, 'a request waits although a connection is free')
    const full = all.length - origin.tunnelling >= maxConnectionsPerOrigin || (origin.tunnelsOnly && all.length >= maxTunnelsPerOrigin)
    const hopes = dials.size > 0 || full || origin.list === pool.room.blocked || (origin.hasUsable && !origin.tunnelsOnly)
    assert.ok(hopes, `${origin} has requests that wait for nothing`)
  }
}

function listed(first: PooledConnection | undefined): PooledConnection[] {
  const all: PooledConnection[] = []
  for (let connection = first; connection !== undefined; connection = connection.next as PooledConnection | undefined) all.push(connection)
  return all
}

worldTest('any sequence of events: the books agree, nobody waits for nothing, everybody is told once', { seeds: 300 }, async (world) => {
  const model = new Model(world.random)
  const { bench, random, sent } = model
  const length = random.integer(10, 250)
  for (let i = 0; i < length; i++) {
    model.step()
    bench.turn()
    model.check()
  }
  // All that runs is answered until nothing is left.
  const closing = bench.pool.close()
  for (let i = 0; i < 3000 && bench.pool.room.taken + bench.pool.waiting > 0; i++) {
    bench.turn()
    for (const dial of bench.dials) {
      if (!dial.cancelled) dial.refuse()
    }
    for (const engine of bench.engines) if (engine.exchange !== undefined) engine.respond()
    for (const streams of bench.streams) {
      if (streams.closed) continue
      streams.most = 10
      while (streams.exchanges.length > 0) streams.respond()
      if (streams.draining) streams.close()
      else if (streams.openable > 0) streams.handler.onCapacity(streams.openable)
      else streams.goAway(0)
    }
    bench.world.advance(10)
  }
  await bench.world.complete(closing)
  bench.assertEmpty()
  assert.ok(sent.every(({ handler }) => handler.closes === 1))
  bench.world.advance(500_000)
  assert.equal(bench.world.armed, 0)
})
