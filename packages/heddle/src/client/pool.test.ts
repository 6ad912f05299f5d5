import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, PeerError, UsageError } from '../http/index.ts'
import { Bench, type DoubleEngine, type DoubleExchange } from './double.test.ts'
import { listOperations } from './list-operations.test.ts'

test('the connection used last is used first', () => {
  const bench = new Bench()
  const [first, second, third] = bench.idle(3) as [DoubleEngine, DoubleEngine, DoubleEngine]
  bench.request('a')
  bench.request('b')
  assert.ok(third.exchange !== undefined && second.exchange !== undefined && first.exchange === undefined)
  third.respond()
  second.respond()
  bench.request('c')
  assert.ok(second.exchange !== undefined, 'the one that became idle last')
  assert.deepEqual([first.exchange, third.exchange], [undefined, undefined])
})

test('an idle connection is taken before exchange() returns, and nothing is dialled', () => {
  const bench = new Bench()
  bench.idle(1)
  const { ticket } = bench.request('a')
  assert.deepEqual(bench.takeLog(), ['a opened'])
  assert.equal(ticket.reused, true)
  bench.turn()
  assert.equal(bench.dials.length, 1)
})

test('who waits is served in the order of arrival, one per freed connection', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 1 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  bench.request('a')
  for (const name of ['b', 'c', 'd']) bench.request(name)
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['a opened'])
  engine.respond()
  assert.deepEqual(bench.takeLog(), ['b opened', 'a closed'])
  engine.respond(false)
  assert.deepEqual(bench.takeLog(), ['b closed', 'c opened'])
  engine.respond()
  engine.respond()
  assert.deepEqual(bench.takeLog(), ['d opened', 'c closed', 'd closed'])
  assert.equal(bench.dials.length, 1)
})

test('a burst dials no more than it needs and no more than the limit', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 4 })
  for (let i = 0; i < 3; i++) bench.request(`r${i}`)
  assert.equal(bench.dials.length, 0, 'not before the turn is over')
  bench.turn()
  assert.equal(bench.dials.length, 3)
  for (let i = 3; i < 10; i++) bench.request(`r${i}`)
  bench.turn()
  assert.equal(bench.dials.length, 4)
  for (const dial of bench.dials) dial.accept()
  assert.deepEqual(bench.takeLog(), ['r0 opened', 'r1 opened', 'r2 opened', 'r3 opened'])
  for (let round = 0; round < 3; round++) for (const engine of bench.engines) if (engine.exchange !== undefined) engine.respond()
  assert.equal(bench.dials.length, 4)
  assert.equal(bench.pool.directory.stats().waiting, 0)
  assert.equal(bench.pool.directory.stats().idle, 4)
})

for (const early of [true, false]) {
  test(`a request begun as another ends takes its connection, told ${early ? 'before' : 'after'} it is free`, () => {
    const bench = new Bench()
    const [engine] = bench.idle(1) as [DoubleEngine]
    let left = 3
    const again = (): void => {
      if (left-- > 0) bench.request('next', (handler) => (handler.whenClosed = again))
    }
    again()
    for (let i = 0; i < 3; i++) {
      engine.respond(early)
      bench.turn()
    }
    assert.equal(bench.dials.length, 1)
    assert.equal(bench.pool.directory.stats().idle, 1)
    assert.deepEqual(bench.takeLog().filter((line) => line === 'next closed').length, 3)
  })
}

test('cancelling a waiting request touches no other and is told in a later turn', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 1 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  bench.request('a')
  bench.request('b')
  const c = bench.request('c')
  bench.request('d')
  c.ticket.cancel(CancelReason.Cancelled)
  c.ticket.cancel(CancelReason.Cancelled)
  assert.deepEqual(bench.takeLog(), ['a opened'])
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['c closed CANCELLED'])
  assert.equal(c.handler.error?.unprocessed, true)
  engine.respond()
  engine.respond()
  assert.deepEqual(bench.takeLog(), ['b opened', 'a closed', 'd opened', 'b closed'])
  c.ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  assert.equal(c.handler.closes, 1)
})

test('cancelling an open request is cancelling its exchange; afterwards it does nothing', () => {
  const bench = new Bench()
  const [engine] = bench.idle(1) as [DoubleEngine]
  const { ticket, handler } = bench.request('a')
  ticket.cancel(CancelReason.Timeout)
  assert.equal((handler.opened[0] as DoubleExchange).cancelled, CancelReason.Timeout)
  assert.equal(handler.closes, 0, 'never from inside cancel')
  bench.turn()
  assert.deepEqual([handler.closes, handler.error?.code, engine.closed], [1, 'CANCELLED', true])
  ticket.cancel(CancelReason.Timeout)
  bench.turn()
  assert.equal(handler.closes, 1)
  assert.deepEqual(bench.pool.directory.stats().errors, { CANCELLED: 1 })
  bench.assertEmpty()
})

test('a dial whose request was cancelled goes on, and its connection waits for the next', () => {
  const bench = new Bench()
  const a = bench.request('a')
  bench.turn()
  a.ticket.cancel(CancelReason.Cancelled)
  bench.request('b').ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  assert.equal(bench.dials.length, 1)
  bench.dials[0]?.accept()
  assert.equal(bench.pool.directory.stats().idle, 1)
  bench.request('c')
  assert.deepEqual(bench.takeLog(), ['a closed CANCELLED', 'b closed CANCELLED', 'c opened'])
})

test('to create and cancel one more request takes the same steps behind 10 waiting ones as behind 10,000', () => {
  const steps = [10, 10_000].map((waiting) => {
    const bench = new Bench({ maxConnectionsPerOrigin: 1 })
    bench.idle(1)
    bench.request('holder')
    for (let i = 0; i < waiting; i++) bench.request('w')
    bench.turn()
    return listOperations(() => {
      bench.request('one more').ticket.cancel(CancelReason.Cancelled)
      bench.turn()
    })
  })
  assert.deepEqual(steps, [4, 4])
})

test('to cancel all takes steps in proportion, from whichever end', () => {
  for (const order of ['oldest first', 'newest first', 'middle out'] as const) {
    const bench = new Bench({ maxConnectionsPerOrigin: 1 })
    bench.idle(1)
    bench.request('holder')
    const sent = Array.from({ length: 1000 }, (_, i) => bench.request(`w${i}`))
    if (order === 'newest first') sent.reverse()
    if (order === 'middle out')
      sent.sort((a, b) => Math.abs(Number(a.handler.name.slice(1)) - 500) - Math.abs(Number(b.handler.name.slice(1)) - 500))
    const steps = listOperations(() => {
      for (const { ticket } of sent) ticket.cancel(CancelReason.Cancelled)
      bench.turn()
    })
    assert.equal(steps, 3001, 'out of the queue, into the list of the ended, out of it; and the alarm of the queue')
    assert.ok(sent.every(({ handler }) => handler.closes === 1))
    assert.equal(bench.pool.waiting, 0)
  }
})

test('while a connection drains, the next request also dials, and takes whichever is ready first', () => {
  for (const winner of ['drained', 'dialled'] as const) {
    const bench = new Bench()
    const [engine] = bench.idle(1) as [DoubleEngine]
    engine.afterCancel = 'drain'
    bench.request('a').ticket.cancel(CancelReason.NoError)
    bench.turn()
    assert.equal(bench.pool.directory.stats().draining, 1)
    const { ticket } = bench.request('b')
    bench.turn()
    assert.equal(bench.dials.length, 2)
    if (winner === 'drained') engine.drained(512)
    else bench.dials[1]?.accept()
    assert.deepEqual(bench.takeLog(), ['a opened', 'a closed CANCELLED', 'b opened'])
    assert.equal(ticket.reused, winner === 'drained')
    if (winner === 'drained') bench.dials[1]?.accept()
    else engine.drained(512)
    const stats = bench.pool.directory.stats()
    assert.deepEqual([stats.idle, stats.active, stats.draining, stats.drained, stats.drainedBytes], [1, 1, 0, 1, 512])
  }
})

test('at the limit, a request behind a draining connection dials when the drain is given up', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 1 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  engine.afterCancel = 'drain'
  bench.request('a').ticket.cancel(CancelReason.NoError)
  bench.request('b')
  bench.turn()
  assert.equal(bench.dials.length, 1)
  engine.handler.onDrained(262_144, false)
  engine.close()
  bench.turn()
  assert.equal(bench.dials.length, 2)
  bench.dials[1]?.accept()
  assert.deepEqual(bench.takeLog(), ['a opened', 'a closed CANCELLED', 'b opened'])
  const { abandoned, abandonedBytes } = bench.pool.directory.stats()
  assert.deepEqual([abandoned, abandonedBytes], [1, 262_144])
})

test('an idle connection that closes leaves; one that only refuses is passed over', () => {
  const bench = new Bench()
  const [first, second, third] = bench.idle(3) as [DoubleEngine, DoubleEngine, DoubleEngine]
  second.close()
  third.dead = true
  assert.equal(bench.pool.directory.stats().idle, 2)
  bench.request('a')
  assert.ok(first.exchange !== undefined)
  assert.equal(bench.pool.directory.stats().idle, 0)
  third.close()
  assert.equal(bench.pool.directory.stats().connections, 1)
})

test('a connection that says it will close takes no further request', () => {
  const bench = new Bench()
  const [engine] = bench.idle(1) as [DoubleEngine]
  bench.request('a')
  engine.handler.onDraining()
  engine.respond()
  assert.equal(bench.pool.directory.stats().draining, 1)
  bench.request('b')
  bench.turn()
  assert.equal(bench.dials.length, 2)
  engine.close()
  assert.equal(bench.pool.directory.stats().connections, 0)
})

const neverSent = (): PeerError => new PeerError('PEER_CLOSED', 'closed before the request was sent', { unprocessed: true })

test('a replayable request whose kept connection was dead moves on, ahead of those that wait', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 2 })
  const [first, second] = bench.idle(2) as [DoubleEngine, DoubleEngine]
  const a = bench.request('a', (handler) => (handler.replayable = true))
  bench.request('b')
  bench.request('c')
  assert.deepEqual(bench.takeLog(), ['a opened', 'b opened'])
  second.close(neverSent())
  bench.turn()
  assert.deepEqual(bench.takeLog(), [])
  assert.equal(bench.dials.length, 3)
  first.respond()
  assert.deepEqual(bench.takeLog(), ['a opened', 'b closed'])
  assert.equal(a.handler.opened.length, 2)
  assert.notEqual(a.handler.opened[0], a.handler.opened[1])
  first.respond()
  assert.deepEqual(bench.takeLog(), ['c opened', 'a closed'])
  assert.equal(bench.pool.directory.stats().retries, 1)
  assert.deepEqual(bench.pool.directory.stats().errors, {})
})

test('no request moves on that was sent, was answered, was cancelled, cannot be replayed, or had a new connection', () => {
  const cases: Record<string, (bench: Bench, engine: DoubleEngine) => void> = {
    sent: (_, engine) => engine.close(new PeerError('PEER_CLOSED', 'closed')),
    answered: (_, engine) => {
      engine.exchange?.handler.onHead(engine.exchange.heads[0] as never, false)
      engine.close(neverSent())
    },
    cancelled: (_, engine) => {
      engine.exchange?.cancel(CancelReason.Cancelled)
      engine.close(neverSent())
    },
    'not replayable': (_, engine) => engine.close(neverSent()),
  }
  for (const [name, close] of Object.entries(cases)) {
    const bench = new Bench()
    const [engine] = bench.idle(1) as [DoubleEngine]
    const { handler, ticket } = bench.request('a', (a) => (a.replayable = name !== 'not replayable'))
    if (name === 'cancelled') ticket.cancel(CancelReason.Cancelled)
    close(bench, engine)
    bench.turn()
    assert.deepEqual([handler.closes, handler.opened.length], [1, 1], name)
    assert.equal(bench.dials.length, 1, name)
  }
  const bench = new Bench()
  const { handler } = bench.request('a', (a) => (a.replayable = true))
  bench.turn()
  bench.dials[0]?.accept().close(neverSent())
  bench.turn()
  assert.deepEqual([handler.closes, handler.error?.unprocessed, bench.dials.length], [1, true, 1])
})

test('a handler that throws in onOpen has its exchange cancelled and is told why', () => {
  const bench = new Bench()
  bench.idle(1)
  const oops = new Error('oops')
  const { handler } = bench.request('a', (a) => {
    a.whenOpen = () => {
      throw oops
    }
  })
  bench.turn()
  assert.deepEqual([handler.closes, handler.error?.code, handler.error?.cause], [1, 'HANDLER_FAILED', oops])
  bench.assertEmpty()
})

test('a handler that throws when a waiting request ends disturbs nobody', () => {
  const bench = new Bench()
  const throwing = bench.request('a', (a) => {
    a.whenClosed = () => {
      throw new Error('oops')
    }
  })
  const other = bench.request('b')
  throwing.ticket.cancel(CancelReason.Cancelled)
  other.ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['a closed CANCELLED', 'b closed CANCELLED'])
})

test('a ticket whose exchange got another handler is over when the connection is free again', () => {
  const bench = new Bench({ totalTimeout: 1000 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  const { ticket, handler } = bench.request('a')
  const { handler: taker } = bench.request('unrelated')
  const exchange = handler.opened[0] as DoubleExchange
  exchange.handler = taker
  engine.respond()
  assert.deepEqual([handler.closes, taker.closes], [0, 1])
  ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  assert.equal(exchange.cancelled, undefined)
  assert.equal(bench.pool.timers, 1, 'that of the other request')
})

test('origins are found again by any spelling, and only http and https have one', () => {
  const { pool, origin } = new Bench()
  for (const spelling of ['http://origin.test', 'http://origin.test:80/path?query', 'HTTP://ORIGIN.test/', new URL('http://origin.test')]) {
    assert.equal(pool.directory.find(spelling), origin)
  }
  assert.deepEqual(
    [origin.scheme, origin.authority, origin.host, origin.port, `${origin}`],
    ['http', 'origin.test', 'origin.test', 80, 'http://origin.test'],
  )
  const secure = pool.directory.find('https://[::1]:8443/')
  assert.deepEqual([secure.scheme, secure.authority, secure.host, secure.port], ['https', '[::1]:8443', '::1', 8443])
  assert.throws(() => pool.directory.find('ftp://origin.test'), UsageError)
  assert.throws(() => pool.directory.find('origin.test'), UsageError)
  assert.throws(() => new Bench().request('a', undefined, origin), UsageError)
})
