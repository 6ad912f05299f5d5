/** The pool over connections that carry many requests at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, responseHead, UsageError } from '../http/index.ts'
import { Bench, type DoubleStreams, type Sent } from './double.test.ts'
import { Client } from './client.ts'
import type { ClientOptions } from './options.ts'
import { listOperations } from './list-operations.test.ts'

/** A bench whose secure origin has one h2 connection that allows `most`. */
function connected(most = 100, options: ClientOptions = {}): { bench: Bench; streams: DoubleStreams } {
  const bench = new Bench(options)
  ask(bench, 'first')
  bench.turn()
  const streams = bench.dials[0]?.acceptStreams(most) as DoubleStreams
  streams.respond()
  bench.takeLog()
  return { bench, streams }
}

function ask(bench: Bench, name: string, replayable = false): Sent {
  return bench.request(name, (handler) => (handler.replayable = replayable), bench.secure)
}

function askMany(bench: Bench, count: number, replayable = false): Sent[] {
  return Array.from({ length: count }, (_, i) => ask(bench, `r${i}`, replayable))
}

const opened = (sent: readonly Sent[]): number => sent.filter(({ handler }) => handler.opened.length > 0).length

test('a cold burst dials once; if the answer is h2 all go there', () => {
  const bench = new Bench()
  const sent = askMany(bench, 50)
  bench.turn()
  for (let i = 0; i < 20; i++) ask(bench, 'later')
  bench.turn()
  assert.equal(bench.dials.length, 1)
  bench.dials[0]?.acceptStreams()
  bench.turn()
  assert.deepEqual([bench.dials.length, opened(sent), bench.secure.protocol], [1, 50, 'h2'])
  const { streams, waiting, http2 } = bench.pool.directory.stats()
  assert.deepEqual([streams, waiting, http2.connections, http2.dialled, http2.requests], [70, 0, 1, 1, 70])
})

test('a cold burst dials once; if the answer is h1 the rest is dialled at once', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 6 })
  askMany(bench, 10)
  bench.turn()
  bench.dials[0]?.accept()
  bench.turn()
  assert.deepEqual([bench.dials.length, bench.secure.protocol], [6, 'h1'])
  assert.deepEqual(bench.dials[1]?.options.tls?.alpn, ['h2', 'http/1.1'], 'it may speak h2 next time')
})

test('what an origin spoke last is remembered: the next burst to it dials as many as that takes', () => {
  const { bench, streams } = connected(10, { whenFull: 'connect' })
  streams.close()
  askMany(bench, 25)
  bench.turn()
  assert.equal(bench.dials.length, 1 + 3)
  const queueing = connected(10)
  queueing.streams.close()
  askMany(queueing.bench, 25)
  queueing.bench.turn()
  assert.equal(queueing.bench.dials.length, 1 + 1)
})

test('a burst to an origin of h1 that has learnt h2 since keeps one connection', () => {
  const bench = new Bench()
  ask(bench, 'first')
  bench.turn()
  bench.dials[0]?.accept().close()
  askMany(bench, 5)
  bench.turn()
  assert.equal(bench.dials.length, 6)
  bench.dials[3]?.acceptStreams()
  assert.deepEqual(
    bench.dials.map((dial) => dial.cancelled),
    [false, true, true, false, true, true],
  )
  assert.equal(bench.pool.room.taken, 1)
})

test('when the streams are taken requests wait; one that ends wakes exactly one', () => {
  const { bench, streams } = connected(3)
  const sent = askMany(bench, 1000)
  bench.turn()
  assert.deepEqual([opened(sent), bench.pool.waiting, bench.dials.length], [3, 997, 1])
  for (let i = 0; i < 5; i++) {
    bench.takeLog()
    const steps = listOperations(() => streams.respond(1))
    assert.deepEqual(bench.takeLog(), [`r${i + 3} opened`, `r${i === 0 ? 1 : i === 1 ? 2 : i + 1} closed`])
    assert.equal(steps, 3, 'one out of its connection, one out of the queue and onto it')
  }
  assert.deepEqual([opened(sent), bench.pool.waiting], [8, 992])
})

test('SETTINGS that allow more wake as many; that allow less wake none until there is room', () => {
  const { bench, streams } = connected(2)
  const sent = askMany(bench, 20)
  streams.allow(5)
  assert.equal(opened(sent), 5)
  streams.allow(3)
  streams.respond()
  streams.respond()
  assert.equal(opened(sent), 5)
  streams.respond()
  assert.equal(opened(sent), 6)
  streams.allow(0)
  for (let i = 0; i < 3; i++) streams.respond()
  bench.turn()
  assert.deepEqual([opened(sent), bench.dials.length], [6, 1], 'a server that allows none is waited for')
  streams.allow(100)
  assert.equal(opened(sent), 20)
})

test("with whenFull 'connect' another connection is made, as long as the limit allows", () => {
  const { bench, streams } = connected(4, { whenFull: 'connect', maxConnectionsPerOrigin: 3 })
  const sent = askMany(bench, 4)
  bench.turn()
  assert.equal(bench.dials.length, 1)
  sent.push(...askMany(bench, 3))
  bench.turn()
  assert.deepEqual([bench.dials.length, opened(sent)], [2, 4], 'one does for three')
  sent.push(...askMany(bench, 6))
  bench.turn()
  assert.deepEqual([bench.dials.length, opened(sent)], [3, 4], 'and another for more than four')
  bench.dials[1]?.acceptStreams(4)
  bench.dials[2]?.acceptStreams(4)
  assert.deepEqual([opened(sent), bench.pool.waiting], [12, 1])
  bench.turn()
  assert.equal(bench.dials.length, 3, 'the limit')
  streams.respond()
  assert.equal(opened(sent), 13)
})

test('the connection that had room last is filled first, so that the others can grow old', () => {
  const { bench, streams } = connected(2, { whenFull: 'connect' })
  askMany(bench, 4)
  bench.turn()
  const second = bench.dials[1]?.acceptStreams(2) as DoubleStreams
  assert.deepEqual([streams.openExchanges, second.openExchanges], [2, 2])
  second.respond()
  second.respond()
  assert.equal(bench.pool.directory.stats().idle, 1)
  streams.respond()
  for (let i = 0; i < 5; i++) {
    ask(bench, 'next')
    streams.respond()
  }
  assert.deepEqual([streams.openExchanges, second.openExchanges], [1, 0])
})

test('to create and cancel one more request takes the same steps behind 10 waiting ones as behind 10,000', () => {
  const steps = [10, 10_000].map((waiting) => {
    const { bench } = connected(250)
    askMany(bench, 250 + waiting)
    bench.turn()
    return listOperations(() => {
      ask(bench, 'one more').ticket.cancel(CancelReason.Cancelled)
      bench.turn()
    })
  })
  assert.deepEqual(steps, [4, 4])
})

test('to cancel N waiting requests takes steps in proportion, and those that run go on', () => {
  const { bench, streams } = connected(10)
  const sent = askMany(bench, 1010)
  const steps = listOperations(() => {
    for (const { ticket } of sent.slice(10)) ticket.cancel(CancelReason.Cancelled)
    bench.turn()
  })
  assert.equal(steps, 3001, 'three for each, and the alarm of the queue')
  assert.deepEqual([streams.openExchanges, bench.pool.waiting], [10, 0])
  assert.ok(sent.slice(0, 10).every(({ handler }) => handler.closes === 0))
})

test('cancelling a request that runs wakes the one that has waited longest', () => {
  const { bench } = connected(2)
  const [a] = askMany(bench, 4) as [Sent]
  a.ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['r0 opened', 'r1 opened', 'r2 opened', 'r0 closed CANCELLED'])
})

test('a refused request waits ahead of all others, in its order, and goes out again', () => {
  const { bench, streams } = connected(5)
  const sent = [...askMany(bench, 5, true), ...askMany(bench, 3)]
  // The server allows 2, and its SETTINGS came too late.
  streams.allow(2)
  for (let i = 0; i < 3; i++) streams.reset(2, 7)
  bench.takeLog()
  assert.deepEqual([streams.openExchanges, bench.pool.waiting], [2, 6])
  while (streams.openExchanges > 0) streams.respond()
  assert.deepEqual(
    bench.takeLog().filter((line) => line.endsWith('opened')),
    ['r2 opened', 'r3 opened', 'r4 opened', 'r0 opened', 'r1 opened', 'r2 opened'],
  )
  assert.ok(sent.every(({ handler }) => handler.closes === 1 && handler.error === undefined))
  assert.equal(bench.pool.directory.stats().retries, 3)
})

test('one that leaves the queue meanwhile does not disturb the order of those that came back', () => {
  const { bench, streams } = connected(4)
  const sent = [...askMany(bench, 4, true), ...askMany(bench, 1)]
  streams.allow(0)
  for (let i = 0; i < 3; i++) streams.reset(0, 7)
  sent[2]?.ticket.cancel(CancelReason.Cancelled)
  streams.reset(0, 7)
  bench.turn()
  bench.takeLog()
  streams.allow(10)
  assert.deepEqual(bench.takeLog(), ['r0 opened', 'r1 opened', 'r3 opened', 'r0 opened'])
})

test('a request that is refused again and again is told after three moves', () => {
  const { bench, streams } = connected(5)
  const { handler } = ask(bench, 'a', true)
  for (let i = 0; i < 4; i++) {
    assert.equal(handler.closes, 0)
    streams.reset(0, 7)
    bench.turn()
  }
  assert.deepEqual([handler.opened.length, handler.closes, handler.error?.unprocessed], [4, 1, true])
  assert.equal(bench.dials.length, 1)
})

test('a connection whose requests get no answer eight times in a row is left; what it still has goes on', () => {
  const { bench, streams } = connected(5)
  const long = ask(bench, 'long')
  for (let i = 0; i < 8; i++) {
    assert.equal(bench.dials.length, 1, `after ${i}`)
    // Whatever the code is, and whether the request was acted on.
    const { handler } = ask(bench, 'a')
    streams.reset(1, i % 2 === 0 ? 7 : 2)
    assert.equal(handler.closes, 1)
  }
  const next = ask(bench, 'next')
  bench.turn()
  assert.deepEqual([bench.dials.length, next.handler.opened.length], [2, 0])
  bench.dials[1]?.acceptStreams()
  assert.equal(next.handler.opened.length, 1)
  assert.deepEqual([streams.draining, streams.openExchanges], [true, 1])
  streams.respond()
  assert.deepEqual([long.handler.closes, long.handler.error], [1, undefined])
})

test('no connection is left for failures that ran at once, with an answer between, that are CANCEL, or of our own making', () => {
  const { bench, streams } = connected(100)
  askMany(bench, 50)
  // More than the server allows, which its SETTINGS said too late.
  for (let i = 0; i < 50; i++) streams.reset(0, 7)
  for (let i = 0; i < 20; i++) {
    const sent = askMany(bench, 2)
    if (i % 4 === 0) {
      streams.respond()
      streams.reset(0, 2)
    } else if (i % 4 === 1) {
      streams.reset(0, 8)
      streams.reset(0, 8)
    } else if (i % 4 === 2) {
      for (const { ticket } of sent) ticket.cancel(CancelReason.Cancelled)
      bench.turn()
    } else {
      streams.exchanges[0]?.handler.onHead(responseHead(200), false)
      streams.reset(0, 2)
      streams.reset(0, 2)
    }
  }
  assert.equal(streams.openExchanges, 0)
  const { handler } = ask(bench, 'next')
  bench.turn()
  assert.deepEqual([handler.opened.length, bench.dials.length], [1, 1])
})

test('a server that refuses everybody has to greet one connection a second at most; maxFailuresInRow is how often', () => {
  const { bench } = connected(5, { maxFailuresInRow: 2 })
  const { world } = bench
  const begun = world.now()
  while (world.now() < begun + 10_000) {
    ask(bench, 'a')
    bench.turn()
    if (bench.streams.length < bench.dials.length) bench.dials.at(-1)?.acceptStreams()
    bench.streams.at(-1)?.reset(0, 7)
    world.advance(10)
  }
  assert.ok(bench.dials.length >= 10 && bench.dials.length <= 12, `${bench.dials.length} connections`)
  assert.throws(() => new Client({ maxFailuresInRow: 0 }), UsageError)
})

test('a connection on which much is cancelled is left before its server takes that for an attack', () => {
  const { bench, streams } = connected(10)
  const { world } = bench
  const long = ask(bench, 'long')
  const cancelOne = (): void => {
    const { ticket } = ask(bench, 'a')
    bench.turn()
    if (bench.streams.length < bench.dials.length) bench.dials.at(-1)?.acceptStreams(10)
    ticket.cancel(CancelReason.Cancelled)
    bench.turn()
  }
  // Two a second, all day.
  for (let i = 0; i < 10_000; i++) {
    cancelOne()
    world.advance(500)
  }
  assert.equal(bench.dials.length, 1)
  for (let i = 0; i < 100; i++) cancelOne()
  assert.equal(bench.dials.length, 1)
  cancelOne()
  cancelOne()
  assert.deepEqual([bench.dials.length, streams.draining, streams.openExchanges], [2, true, 1])
  for (let i = 0; i < 1_000; i++) cancelOne()
  assert.equal(bench.dials.length, 11, 'one for a hundred')
  assert.equal(long.handler.closes, 0)
  streams.respond()
  assert.deepEqual([long.handler.closes, long.handler.error], [1, undefined])
})

test('a connection of little use is kept where no other could be made beside what it has', () => {
  const { bench, streams } = connected(10, { maxConnectionsPerOrigin: 1 })
  const { world } = bench
  const cancelMany = (): void => {
    for (let i = 0; i < 150; i++) {
      ask(bench, 'a').ticket.cancel(CancelReason.Cancelled)
      bench.turn()
    }
    world.advance(2_000)
    ask(bench, 'long')
    bench.turn()
  }
  ask(bench, 'long')
  cancelMany()
  const second = bench.dials[1]?.acceptStreams(10) as DoubleStreams
  cancelMany()
  cancelMany()
  assert.deepEqual([bench.dials.length, streams.draining, second.draining], [2, true, false])
  const next = ask(bench, 'next')
  assert.equal(next.handler.opened.length, 1)
  streams.respond()
  streams.close()
  world.advance(2_000)
  ask(bench, 'a').ticket.cancel(CancelReason.Cancelled)
  for (let i = 0; i < 150; i++) ask(bench, 'a').ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  assert.equal(second.draining, true, 'now there is room for another')
})

test('a handler is told when its request moves on, and may end it then', () => {
  const { bench, streams } = connected(5)
  const [told, leaves, throws] = askMany(bench, 3, true) as [Sent, Sent, Sent]
  const moved: string[] = []
  Object.assign(told.handler, { onMove: () => moved.push('told') })
  Object.assign(leaves.handler, { onMove: () => leaves.ticket.cancel(CancelReason.Cancelled) })
  Object.assign(throws.handler, {
    onMove: () => {
      throw new Error('no')
    },
  })
  for (let i = 0; i < 3; i++) streams.reset(0, 7)
  bench.turn()
  assert.deepEqual(moved, ['told'])
  assert.deepEqual([told.handler.opened.length, told.handler.closes], [2, 0])
  assert.deepEqual([leaves.handler.opened.length, leaves.handler.error?.code], [1, 'CANCELLED'])
  assert.deepEqual([throws.handler.opened.length, throws.handler.error?.code], [1, 'HANDLER_FAILED'])
  assert.equal(bench.pool.waiting, 0)
})

test('no request moves on that was answered, cancelled, reset for another reason, or cannot be replayed', () => {
  const { bench, streams } = connected(10)
  const cases = askMany(bench, 4, true)
  const [answered, cancelled, reset, single] = cases as [Sent, Sent, Sent, Sent]
  single.handler.replayable = false
  const [first] = streams.exchanges
  first?.handler.onHead(first.heads[0] as never, false)
  cancelled.ticket.cancel(CancelReason.Cancelled)
  streams.reset(0, 7)
  streams.reset(0, 7)
  streams.reset(0, 2)
  streams.reset(0, 7)
  bench.turn()
  for (const { handler } of cases) assert.deepEqual([handler.opened.length, handler.closes], [1, 1])
  assert.deepEqual(
    [answered, cancelled, reset, single].map(({ handler }) => handler.error?.code),
    ['PEER_RESET', 'PEER_RESET', 'PEER_RESET', 'PEER_RESET'],
  )
  assert.equal(bench.pool.waiting, 0)
})

test('GOAWAY: what runs goes on, what was not acted on moves to a new connection, nothing new comes here', () => {
  const { bench, streams } = connected(10)
  const sent = askMany(bench, 6, true)
  streams.goAway(2)
  ask(bench, 'later')
  bench.turn()
  assert.deepEqual([streams.openExchanges, bench.dials.length, bench.pool.waiting], [2, 2, 5])
  const next = bench.dials[1]?.acceptStreams() as DoubleStreams
  assert.deepEqual([next.openExchanges, bench.pool.waiting], [5, 0])
  assert.ok(sent.every(({ handler }) => handler.closes === 0))
  streams.respond()
  streams.respond()
  streams.close()
  assert.equal(bench.pool.directory.stats().connections, 1)
})

for (const when of ['before its answers', 'behind them'] as const) {
  test(`a server that goes away after every other request, ${when}, gets a burst done in its order`, () => {
    const { bench, streams } = connected(10)
    const sent = askMany(bench, 40, true)
    const answered: number[] = []
    let connection: DoubleStreams | undefined = streams
    for (let i = 0; connection !== undefined; i++) {
      assert.ok(i <= 20, 'two are answered on each connection')
      if (when === 'before its answers') connection.goAway(2)
      connection.respond()
      connection.respond()
      if (when === 'behind them') connection.goAway(0)
      connection.close()
      answered.push(sent.filter(({ handler }) => handler.closes === 1).length)
      bench.turn()
      const dial = bench.dials[i + 1]
      connection = dial?.acceptStreams(10)
      bench.turn()
    }
    assert.deepEqual(
      answered,
      Array.from({ length: 20 }, (_, i) => 2 * i + 2),
    )
    assert.ok(sent.every(({ handler }) => handler.error === undefined && handler.closes === 1))
    assert.ok((sent.at(-1)?.ticket.moves ?? 0) > 3)
  })
}

test('a server that goes away from all and answers nobody is given up after three moves', () => {
  const { bench, streams } = connected(10)
  // The first connection had answered somebody before; the others never did.
  const sent = askMany(bench, 4, true)
  let connection: DoubleStreams | undefined = streams
  let dials = 1
  while (connection !== undefined) {
    connection.goAway(0)
    bench.turn()
    connection = bench.dials[dials++]?.acceptStreams(10)
    bench.turn()
  }
  for (const { handler, ticket } of sent) {
    assert.deepEqual([handler.closes, handler.error?.code, handler.error?.unprocessed], [1, 'PEER_CLOSED', true])
    assert.equal(ticket.moves, 4)
  }
})

test('connections that only finish what they have do not count for the limit, up to as many again', () => {
  const { bench, streams } = connected(10, { maxConnectionsPerOrigin: 1 })
  const all = [streams]
  for (let i = 0; i < 3; i++) {
    ask(bench, `r${i}`)
    all.at(-1)?.goAway(1)
    ask(bench, `r${i} too`)
    bench.turn()
    if (bench.dials.length > all.length) all.push(bench.dials.at(-1)?.acceptStreams() as DoubleStreams)
  }
  assert.deepEqual([bench.dials.length, bench.pool.waiting], [2, 3], 'two at most')
  streams.respond()
  streams.close()
  bench.turn()
  assert.equal(bench.dials.length, 3)
})

test('a connection whose stream numbers are used up is left and replaced', () => {
  const { bench, streams } = connected(10)
  streams.numbers = 2
  const sent = askMany(bench, 3)
  bench.turn()
  assert.deepEqual([streams.openExchanges, streams.draining, bench.dials.length], [2, true, 2])
  bench.dials[1]?.acceptStreams()
  assert.equal(opened(sent), 3)
})

test('a dead connection is left: what never left moves on, the rest is told', () => {
  const { bench, streams } = connected(10)
  const sent = askMany(bench, 5, true)
  streams.close(undefined, 2)
  bench.turn()
  assert.deepEqual(
    sent.map(({ handler }) => handler.closes),
    [1, 1, 1, 0, 0],
  )
  bench.dials[1]?.acceptStreams()
  assert.deepEqual(
    sent.map(({ handler }) => handler.opened.length),
    [1, 1, 1, 2, 2],
  )
})

test('HTTP_1_1_REQUIRED: the request goes out again over HTTP/1.1, and so do all that follow', () => {
  const { bench, streams } = connected(10)
  const [a, b, c] = [ask(bench, 'a', true), ask(bench, 'b'), ask(bench, 'c', true)]
  streams.reset(1, 0xd)
  streams.reset(0, 0xd)
  ask(bench, 'd')
  bench.turn()
  assert.deepEqual([b.handler.error?.wireCode, streams.draining, bench.dials.length], [0xd, true, 3])
  assert.deepEqual(bench.dials[1]?.options.tls?.alpn, ['http/1.1'])
  bench.dials[1]?.accept()
  bench.dials[2]?.accept()
  assert.deepEqual([a.handler.opened.length, a.handler.opened[1]?.protocol], [2, 'h1'])
  streams.respond()
  assert.deepEqual([c.handler.closes, c.handler.error, bench.secure.protocol], [1, undefined, 'h1'], 'what ran there went on')
})

test('a client that may not speak HTTP/1.1 is told HTTP_1_1_REQUIRED', () => {
  const { bench, streams } = connected(10, { protocols: ['h2'] })
  const { handler } = ask(bench, 'a', true)
  streams.reset(0, 0xd)
  bench.turn()
  assert.deepEqual([handler.error?.wireCode, handler.opened.length], [0xd, 1])
  assert.deepEqual(bench.dials[0]?.options.tls?.alpn, ['h2'])
})

test('a server that agrees on nothing the client may speak is TLS_FAILED', () => {
  const bench = new Bench({ protocols: ['h2'] })
  const { handler } = ask(bench, 'a')
  bench.turn()
  bench.dials[0]?.accept()
  bench.turn()
  assert.deepEqual([handler.error?.code, handler.error?.unprocessed], ['TLS_FAILED', true])
  bench.assertEmpty()
})

test('h2c: plain connections speak HTTP/2 because the program says so', () => {
  const bench = new Bench({ h2c: true })
  bench.request('a')
  bench.request('b')
  bench.turn()
  const streams = bench.dials[0]?.acceptPlainStreams() as DoubleStreams
  assert.deepEqual([bench.dials.length, streams.openExchanges, bench.dials[0]?.options.tls], [1, 2, undefined])
})

test('a tunnel goes to an h2 connection only where the server allows it, else to HTTP/1.1', () => {
  const { bench, streams } = connected(10)
  const tunnel = (name: string): Sent => bench.request(name, undefined, bench.secure, { tunnel: true })
  const a = tunnel('a')
  bench.turn()
  assert.deepEqual(bench.dials[1]?.options.tls?.alpn, ['http/1.1'])
  bench.dials[1]?.accept()
  assert.equal(a.handler.opened[0]?.protocol, 'h1')
  streams.allow(10, true)
  assert.equal(tunnel('b').handler.opened[0]?.protocol, 'h2')
  assert.deepEqual(
    bench.pool.directory.stats().origins.map(({ origin, streams: count }) => [origin, count]),
    [
      ['http://origin.test', 0],
      ['https://secure.test', 1],
      ['https://secure.test tunnels over HTTP/1.1', 1],
    ],
  )
  const plain = bench.request('plain', undefined, bench.origin, { tunnel: true })
  bench.turn()
  bench.dials[2]?.accept()
  assert.equal(plain.handler.opened[0]?.protocol, 'h1')
})

test('a ticket whose exchange got another handler is over when its stream is', () => {
  const { bench, streams } = connected(10)
  const { ticket, handler } = ask(bench, 'tunnel')
  ask(bench, 'other')
  const [exchange] = streams.exchanges
  if (exchange !== undefined) exchange.handler = ask(bench, 'taker').handler
  streams.respond()
  streams.handler.onCapacity(streams.openable)
  assert.deepEqual([handler.closes, bench.pool.directory.stats().streams], [0, 2])
  ticket.cancel(CancelReason.Cancelled)
  assert.equal(exchange?.cancelled, undefined)
})

test('close: h2 connections finish what they have', async () => {
  const { bench, streams } = connected(2)
  const sent = askMany(bench, 3)
  let closed = false
  const closing = bench.pool.close().then(() => (closed = true))
  bench.turn()
  streams.respond()
  bench.turn()
  assert.equal(streams.draining, false, 'one still waits for the second stream')
  assert.equal(opened(sent), 3)
  streams.respond()
  bench.turn()
  assert.deepEqual([streams.draining, closed], [true, false])
  streams.respond()
  streams.close()
  await bench.world.complete(closing)
  bench.assertEmpty()
})

test('close: a connection whose server allows no streams is not waited for', async () => {
  for (const runs of [0, 1]) {
    const { bench, streams } = connected(2)
    if (runs > 0) ask(bench, 'runs')
    streams.allow(0)
    const closing = bench.pool.close()
    bench.turn()
    assert.equal(streams.draining, runs === 0)
    if (runs > 0) streams.respond()
    bench.turn()
    assert.equal(streams.draining, true)
    streams.close()
    await bench.world.complete(closing)
    bench.assertEmpty()
  }
})

test('an origin that is never idle gives its connection up when it has more than its share', () => {
  const { bench, streams } = connected(10, { maxConnections: 1 })
  ask(bench, 'a')
  bench.request('other')
  bench.turn()
  assert.equal(bench.dials.length, 1)
  streams.respond()
  bench.turn()
  assert.equal(streams.draining, true, 'idle, it makes room')

  const busy = connected(10, { maxConnections: 1 })
  ask(busy.bench, 'a')
  busy.bench.request('other')
  busy.bench.turn()
  assert.equal(busy.streams.draining, false)
  ask(busy.bench, 'b')
  busy.bench.turn()
  assert.deepEqual([busy.streams.draining, busy.streams.openExchanges, busy.bench.pool.waiting], [true, 1, 2])
  busy.streams.respond()
  busy.streams.close()
  busy.bench.turn()
  assert.equal(busy.bench.dials.length, 2)
  assert.deepEqual(busy.bench.dials[1]?.target, { host: 'origin.test', port: 80 })
})

test('a connection whose server allows no requests makes room for other origins, not for its own', () => {
  for (const when of ['from the start', 'later', 'once the last request is done'] as const) {
    const { bench, streams } = connected(when === 'from the start' ? 1 : 10, { maxConnections: 1, whenFull: 'connect' })
    if (when === 'from the start') {
      streams.close()
      ask(bench, 'a')
      bench.turn()
      bench.dials[1]?.acceptStreams(0)
    } else {
      if (when !== 'later') ask(bench, 'runs')
      streams.allow(0)
      ask(bench, 'a')
    }
    bench.turn()
    const shut = bench.streams.at(-1) as DoubleStreams
    assert.equal(shut.draining, false, `${when}: for its own origin there is nothing better`)
    const dials = bench.dials.length
    bench.request('other')
    bench.turn()
    if (when === 'once the last request is done') {
      assert.equal(shut.draining, false)
      shut.respond()
      bench.turn()
    }
    assert.equal(shut.draining, true, when)
    bench.turn()
    assert.deepEqual([bench.dials.length, bench.dials[dials]?.target], [dials + 1, { host: 'origin.test', port: 80 }])
    bench.dials[dials]?.accept().respond()
    bench.turn()
    // In turns: the connection of the other is idle now.
    assert.deepEqual(bench.dials[dials + 1]?.target, { host: 'secure.test', port: 443 })
    bench.dials[dials + 1]?.acceptStreams(10).respond()
    assert.equal(bench.pool.waiting, 0)
  }
})

test('a connection whose server allows requests again stays', () => {
  const { bench, streams } = connected(10, { maxConnections: 1 })
  streams.allow(0)
  const waits = ask(bench, 'a')
  streams.allow(1)
  bench.request('other')
  bench.turn()
  assert.deepEqual([streams.draining, waits.handler.opened.length], [false, 1])
})

test('reused says that another request was answered there before, not merely sent', () => {
  const bench = new Bench()
  const sent = askMany(bench, 3)
  bench.turn()
  const streams = bench.dials[0]?.acceptStreams() as DoubleStreams
  assert.ok(sent.every(({ ticket }) => !ticket.reused))
  streams.respond()
  assert.equal(ask(bench, 'later').ticket.reused, true)
  assert.equal(bench.pool.directory.stats().reused, 3)
})

test('options that make no sense are refused', () => {
  for (const options of [
    { protocols: [] },
    { protocols: ['h4'] },
    { protocols: ['h1', 'h1'] },
    { protocols: 'h2' },
    { protocols: ['h1'], h2c: true },
    { whenFull: 'wait' },
    { http2: { pingInterval: -1 } },
  ]) {
    assert.throws(() => new Client(options as never), UsageError, JSON.stringify(options))
  }
})
