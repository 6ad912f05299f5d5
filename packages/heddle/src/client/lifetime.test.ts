import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, HeddleError, UsageError } from '../http/index.ts'
import { Bench, type DoubleEngine } from './double.test.ts'

test('a request that waits too long ends with QUEUE_TIMEOUT; one that runs is not concerned', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 1, queueTimeout: 500 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  bench.request('a')
  const b = bench.request('b')
  assert.equal(bench.pool.timers, 1, 'a has its connection')
  bench.world.advance(499)
  assert.equal(b.handler.closes, 0)
  bench.world.advance(1)
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['a opened', 'b closed QUEUE_TIMEOUT'])
  assert.equal(b.handler.error?.unprocessed, true)
  assert.equal(b.handler.error?.message, `no connection to ${bench.origin.key} became free in time`)
  engine.respond()
  assert.equal(bench.pool.timers, 0)
})

test('the limit over the whole counts waiting and running, and can be set for one request', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 1, totalTimeout: 500 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  const a = bench.request('a')
  bench.request('b')
  bench.request('c', undefined, bench.origin, { totalTimeout: 5000 })
  bench.request('d', undefined, bench.origin, { totalTimeout: Infinity })
  bench.world.advance(400)
  engine.afterCancel = 'drain'
  bench.world.advance(100)
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['a opened', 'a closed TOTAL_TIMEOUT', 'b closed TOTAL_TIMEOUT'])
  assert.equal(a.handler.error?.unprocessed, false)
  engine.drained(1)
  bench.world.advance(4500)
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['c opened', 'c closed TOTAL_TIMEOUT'])
  engine.drained(1)
  bench.world.advance(100_000)
  assert.deepEqual([bench.takeLog(), bench.pool.timers], [['d opened'], 0])
})

test('a request that ends in time leaves no alarm', () => {
  const bench = new Bench({ totalTimeout: 500, queueTimeout: 100 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  bench.request('a')
  assert.equal(bench.pool.timers, 1)
  engine.respond()
  engine.afterCancel = 'drain'
  bench.request('b').ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  assert.deepEqual([bench.pool.timers, bench.world.armed], [0, 0])
})

test('close lets waiting and running requests finish, then closes what is idle', async () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 2 })
  const [first, second] = bench.idle(2) as [DoubleEngine, DoubleEngine]
  bench.request('a')
  bench.request('b')
  bench.request('c')
  let closed = false
  const promise = bench.pool.close().then(() => (closed = true))
  assert.throws(() => bench.request('late'), UsageError)
  bench.turn()
  second.respond()
  bench.turn()
  first.respond()
  await bench.world.settle()
  assert.deepEqual(bench.takeLog(), ['a opened', 'b opened', 'c opened', 'a closed', 'b closed'])
  assert.deepEqual([first.closed, second.closed, closed], [true, false, false])
  second.respond()
  await bench.world.settle()
  assert.deepEqual([second.closed, closed], [true, true])
  await promise
  await bench.world.complete(bench.pool.close())
  bench.assertEmpty()
  assert.equal(bench.world.armed, 0)
})

test('close ends dials nobody waits for, and waits for those somebody does', async () => {
  const bench = new Bench()
  bench.request('a').ticket.cancel(CancelReason.Cancelled)
  const b = bench.request('b')
  bench.request('c', undefined, bench.pool.directory.find('http://other.test'))
  bench.turn()
  b.ticket.cancel(CancelReason.Cancelled)
  const promise = bench.pool.close()
  bench.turn()
  assert.deepEqual(
    bench.dials.map((dial) => dial.cancelled),
    [true, false],
  )
  bench.dials[1]?.accept().respond()
  await bench.world.complete(promise)
  bench.assertEmpty()
})

test('a client that never did anything closes', async () => {
  const bench = new Bench()
  await bench.world.complete(bench.pool.close())
  assert.equal(bench.world.armed, 0)
})

test('destroy ends everything with its error: waiting, dialling, running, idle', async () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 3, totalTimeout: 10_000 })
  bench.idle(2)
  bench.request('running')
  bench.request('running too')
  bench.request('waiting')
  bench.request('waiting too')
  bench.turn()
  assert.equal(bench.dials.length, 3)
  bench.pool.destroy(new HeddleError('SHUTDOWN', 'enough'))
  assert.throws(() => bench.request('late'), UsageError)
  await bench.world.complete(bench.pool.close())
  assert.deepEqual(bench.takeLog().toSorted(), [
    'running closed SHUTDOWN',
    'running opened',
    'running too closed SHUTDOWN',
    'running too opened',
    'waiting closed SHUTDOWN',
    'waiting too closed SHUTDOWN',
  ])
  assert.equal(bench.dials[2]?.cancelled, true)
  bench.assertEmpty()
  assert.deepEqual([bench.pool.timers, bench.world.armed], [0, 0])
})

test('destroy in the middle of a callback waits for the end of the turn', () => {
  const bench = new Bench()
  const [engine] = bench.idle(1) as [DoubleEngine]
  bench.request('a', (handler) => {
    handler.whenClosed = () => bench.pool.destroy(new HeddleError('SHUTDOWN', 'enough'))
  })
  engine.respond()
  assert.equal(engine.closed, false)
  bench.turn()
  assert.equal(engine.closed, true)
  bench.assertEmpty()
})

test('an unused origin is forgotten, its counts are not; an origin kept by the program goes on working', () => {
  const bench = new Bench({ originLifetime: 1000 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  bench.world.advance(5000)
  assert.equal(bench.origin.known, true, 'not while it has a connection')
  engine.close()
  bench.world.advance(500)
  bench.pool.directory.find('http://other.test')
  bench.world.advance(500)
  assert.equal(bench.origin.known, false)
  assert.deepEqual(
    bench.pool.directory.stats().origins.map(({ origin }) => origin),
    ['http://other.test'],
  )
  assert.equal(bench.pool.directory.stats().dialled, 1)
  bench.request('a')
  bench.turn()
  bench.dials[1]?.accept()
  assert.deepEqual([bench.origin.known, bench.pool.directory.stats().dialled, bench.pool.directory.stats().requests], [true, 2, 2])
  bench.engines[1]?.close()
  bench.world.advance(2000)
  const successor = bench.pool.directory.find('http://origin.test')
  assert.notEqual(successor, bench.origin)
  bench.request('b')
  assert.deepEqual([successor.waiting.length, bench.origin.waiting.length], [1, 0], 'one queue for one origin')
  assert.equal(bench.pool.timers, 1, 'that of the queue')
})

test('names that were only asked for leave nothing behind', () => {
  const bench = new Bench({ originLifetime: 1000 })
  for (let i = 0; i < 2000; i++) bench.pool.directory.find(`http://host${i}.test`)
  assert.equal(bench.pool.timers, 1)
  bench.world.advance(1000)
  assert.equal(bench.pool.directory.stats().origins.length, 0)
  assert.equal(bench.world.armed, 0)
})

test('an attempt that is one more is counted as a retry, its limits being those of any other', () => {
  const bench = new Bench({ queueTimeout: 100 })
  bench.request('a', undefined, bench.origin, { retry: true })
  bench.request('b', undefined, bench.origin, { retry: false })
  const { retries, requests, timers } = bench.pool.directory.stats()
  assert.deepEqual([retries, requests, timers], [1, 2, 2])
})

test('stats tell the present by state and the past by sums', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 3 })
  const [first, , third] = bench.idle(3) as [DoubleEngine, DoubleEngine, DoubleEngine]
  third.afterCancel = 'drain'
  bench.request('draining').ticket.cancel(CancelReason.NoError)
  bench.turn()
  bench.request('active')
  const other = bench.pool.directory.find('http://other.test')
  bench.request('waiting', undefined, other)
  bench.turn()
  const { origins, ...total } = bench.pool.directory.stats()
  assert.deepEqual(total, {
    connections: 3,
    idle: 1,
    active: 1,
    draining: 1,
    dialling: 1,
    streams: 1,
    waiting: 1,
    requests: 6,
    dialled: 3,
    reused: 2,
    drained: 0,
    drainedBytes: 0,
    abandoned: 0,
    abandonedBytes: 0,
    retries: 0,
    errors: { CANCELLED: 1 },
    http1: { connections: 3, streams: 1, dialled: 3, requests: 5 },
    http2: { connections: 0, streams: 0, dialled: 0, requests: 0, frames: 0, writes: 0, framesPerWrite: 0 },
    http3: { connections: 0, streams: 0, dialled: 0, requests: 0 },
    http3Unavailable: undefined,
    timers: 1,
    resetsSent: {},
    resetsReceived: {},
    http3ResetsSent: {},
    http3ResetsReceived: {},
  })
  assert.deepEqual(
    origins.map(({ origin, waiting }) => [origin, waiting]),
    [
      ['http://origin.test', 0],
      ['http://other.test', 1],
    ],
  )
  assert.equal(first.exchange, undefined)
})
