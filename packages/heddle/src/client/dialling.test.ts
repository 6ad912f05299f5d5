import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, UsageError } from '../http/index.ts'
import { Bench, type DoubleDial, type DoubleEngine } from './double.test.ts'
import { Settings } from './settings.ts'

test('when every dial fails, all who wait are told, once, and nothing is dialled again', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 3 })
  const sent = Array.from({ length: 5 }, (_, i) => bench.request(`r${i}`))
  bench.turn()
  bench.dials[0]?.refuse()
  bench.dials[1]?.refuse()
  bench.turn()
  assert.deepEqual([bench.takeLog(), bench.dials.length], [[], 3], 'the last one may still succeed')
  bench.dials[2]?.refuse()
  bench.turn()
  assert.deepEqual(
    bench.takeLog(),
    ['r0', 'r1', 'r2', 'r3', 'r4'].map((name) => `${name} closed CONNECT_FAILED`),
  )
  assert.ok(sent.every(({ handler }) => handler.error?.unprocessed === true))
  assert.equal(bench.dials.length, 3)
  assert.deepEqual(bench.pool.directory.stats().errors, { CONNECT_FAILED: 8 })
  bench.assertEmpty()
})

test('after a failure one dial at a time, until one succeeds', () => {
  const bench = new Bench()
  bench.request('a')
  bench.turn()
  bench.dials[0]?.refuse()
  bench.turn()
  for (let i = 0; i < 4; i++) bench.request(`r${i}`)
  bench.turn()
  assert.equal(bench.dials.length, 2)
  bench.dials[1]?.accept()
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['a closed CONNECT_FAILED', 'r0 opened'])
  assert.equal(bench.dials.length, 5, 'the other three at once')
})

test('a request begun by one that failed gets a dial of its own, and does not spin', () => {
  const bench = new Bench()
  let left = 3
  const again = (): void => {
    if (left-- > 0) bench.request('r', (handler) => (handler.whenClosed = again))
  }
  again()
  for (let i = 0; i < 5; i++) {
    bench.turn()
    if (bench.dials.length === i + 1) bench.dials[i]?.refuse()
  }
  bench.turn()
  assert.equal(bench.dials.length, 3)
  assert.equal(bench.log.length, 3)
  bench.assertEmpty()
})

test('one dial of several fails: who waits is served by the others, then by a new one', () => {
  const bench = new Bench()
  for (const name of ['a', 'b', 'c']) bench.request(name)
  bench.turn()
  bench.dials[0]?.refuse()
  bench.dials[1]?.accept()
  bench.dials[2]?.accept()
  assert.deepEqual(bench.takeLog(), ['a opened', 'b opened'])
  bench.turn()
  assert.equal(bench.dials.length, 4)
  bench.dials[3]?.accept()
  assert.deepEqual(bench.takeLog(), ['c opened'])
})

test('while a connection lives, failed dials are repeated in growing intervals and nobody fails early', () => {
  const bench = new Bench({ connectTimeout: 10_000 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  bench.request('a')
  bench.request('b')
  bench.turn()
  const pauses: number[] = []
  for (let i = 1; i <= 4; i++) {
    bench.dials[i]?.refuse()
    const failedAt = bench.world.now()
    while (bench.dials.length === i + 1) bench.world.advance(10)
    pauses.push(bench.world.now() - failedAt)
  }
  assert.deepEqual(pauses, [100, 200, 400, 800])
  assert.deepEqual(bench.takeLog(), ['a opened'])
  engine.respond()
  assert.deepEqual(bench.takeLog(), ['b opened', 'a closed'])
  bench.dials[5]?.refuse()
  engine.respond()
  assert.equal(bench.pool.timers, 0, 'nobody waits: no pause is kept')
})

test('a connection that lives but never becomes free does not hold waiting requests for ever', () => {
  const bench = new Bench({ connectTimeout: 1000 })
  bench.idle(1)
  bench.request('tunnel')
  const old = bench.request('old')
  bench.turn()
  bench.dials[1]?.refuse()
  bench.world.advance(100)
  bench.world.advance(950)
  bench.request('young')
  bench.dials[2]?.refuse()
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['tunnel opened', 'old closed CONNECT_FAILED'])
  assert.equal(old.handler.error?.unprocessed, true)
  bench.world.advance(200)
  bench.dials[3]?.accept()
  assert.deepEqual(bench.takeLog(), ['young opened'])
})

test('the last connection goes during a pause: the next dial does not wait for its end', () => {
  const bench = new Bench()
  const [engine] = bench.idle(1) as [DoubleEngine]
  bench.request('a')
  bench.request('b')
  bench.turn()
  bench.dials[1]?.refuse()
  bench.turn()
  assert.equal(bench.dials.length, 2)
  engine.close()
  bench.turn()
  assert.equal(bench.dials.length, 3)
  bench.dials[2]?.accept().respond()
  assert.deepEqual(bench.takeLog(), ['a opened', 'a closed PEER_CLOSED', 'b opened', 'b closed'])
  assert.equal(bench.pool.timers, 0)
})

test('a connect function that throws is a failed dial', () => {
  const bench = new Bench({
    connect: () => {
      throw new TypeError('a certificate that is none')
    },
  })
  const { handler } = bench.request('a')
  bench.turn()
  assert.deepEqual([handler.error?.code, handler.error?.unprocessed], ['CONNECT_FAILED', true])
  assert.ok(handler.error?.cause instanceof TypeError)
  bench.assertEmpty()
})

test('more waiting requests than the limit fail at once with QUEUE_FULL', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 1, maxWaitingPerOrigin: 2 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  for (const name of ['a', 'b', 'c', 'd']) bench.request(name)
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['a opened', 'd closed QUEUE_FULL'])
  engine.respond()
  bench.request('e')
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['b opened', 'a closed'])
  assert.deepEqual(bench.pool.directory.stats().errors, { QUEUE_FULL: 1 })
})

test('the limit over all: an idle connection of another origin makes room, the oldest first', () => {
  const bench = new Bench({ maxConnections: 2 })
  const [oldest, newest] = bench.idle(2) as [DoubleEngine, DoubleEngine]
  const other = bench.pool.directory.find('http://other.test')
  bench.request('a', undefined, other)
  bench.turn()
  assert.deepEqual([oldest.closed, newest.closed, bench.dials.length], [true, false, 3])
  const [taken] = bench.dials.slice(-1) as [DoubleDial]
  taken.accept().respond()
  assert.deepEqual(bench.takeLog(), ['a opened', 'a closed'])
  assert.equal(bench.pool.room.evicting, 0)
})

test('the limit over all: who may not dial waits until a connection becomes idle or goes', () => {
  const bench = new Bench({ maxConnections: 1 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  const other = bench.pool.directory.find('http://other.test')
  bench.request('a')
  bench.request('b', undefined, other)
  bench.turn()
  assert.equal(bench.dials.length, 1)
  engine.respond()
  bench.turn()
  assert.deepEqual([engine.closed, bench.dials.length], [true, 2])
  const next = bench.dials[1]?.accept() as DoubleEngine
  bench.request('c')
  bench.turn()
  next.close()
  bench.turn()
  bench.dials[2]?.accept().respond()
  assert.deepEqual(bench.takeLog(), ['a opened', 'a closed', 'b opened', 'b closed PEER_CLOSED', 'c opened', 'c closed'])
})

test('the limit over all: a busy origin gives connections up until each has its share, and keeps those', () => {
  const bench = new Bench({ maxConnections: 4 })
  const other = bench.pool.directory.find('http://other.test')
  const busy = (origin = bench.origin): void => {
    bench.request('r', (handler) => (handler.whenClosed = () => busy(origin)), origin)
  }
  for (let i = 0; i < 8; i++) busy()
  bench.turn()
  for (const dial of bench.dials) dial.accept()
  for (let i = 0; i < 8; i++) busy(other)
  const dialled: number[] = []
  for (let round = 0; round < 20; round++) {
    bench.turn()
    while (dialled.length < bench.dials.length) dialled.push(round)
    for (const dial of bench.dials.slice(bench.engines.length)) dial.accept()
    for (const engine of bench.engines) if (engine.exchange !== undefined) engine.respond()
  }
  assert.deepEqual([bench.origin.connections.size, other.connections.size], [2, 2])
  assert.ok(dialled.length <= 8 && Math.max(...dialled) < 5, `settles soon: dialled in rounds ${dialled.join(' ')}`)
})

test('the limit over all: more busy origins than connections take turns', () => {
  const bench = new Bench({ maxConnections: 1 })
  const served: string[] = []
  for (const name of ['a', 'b', 'c']) {
    const origin = bench.pool.directory.find(`http://${name}.test`)
    const busy = (): void => {
      bench.request(
        name,
        (handler) => {
          handler.whenOpen = () => served.push(name)
          handler.whenClosed = busy
        },
        origin,
      )
    }
    busy()
    busy()
  }
  for (let round = 0; round < 9; round++) {
    bench.turn()
    for (const dial of bench.dials.slice(bench.engines.length)) dial.accept()
    for (const engine of bench.engines) if (engine.exchange !== undefined) engine.respond()
  }
  assert.equal(served.join(''), 'abcabcabc')
})

test('options out of range are refused', () => {
  for (const options of [
    { maxConnectionsPerOrigin: 0 },
    { maxConnections: 1.5 },
    { maxWaitingPerOrigin: -1 },
    { connectTimeout: 0 },
    { queueTimeout: Number.NaN },
    { totalTimeout: -1 },
    { socketPath: '/run/x.sock', proxy: 'http://proxy.test' },
    { limits: { idleTimeout: Number.NaN } },
    { limits: { drainSize: -1 } },
  ]) {
    assert.throws(() => new Bench(options), UsageError, JSON.stringify(options))
  }
  const bench = new Bench()
  assert.throws(() => bench.request('a', undefined, bench.origin, { totalTimeout: 0 }), UsageError)
  assert.equal(bench.pool.waiting, 0)
})

test('a limit that is undefined is as if it were not given', () => {
  const limits = { idleTimeout: undefined, drainSize: 0 } as never
  const { http1, http2 } = new Settings({ limits, http2: { idleTimeout: undefined, pingTimeout: 5 } as never }).engines
  assert.deepEqual([http1.limits, http2.limits], [{ drainSize: 0 }, { connectionWindow: 104_857_600, pingTimeout: 5 }])
  const { engines } = new Settings({})
  assert.deepEqual([engines.http1.limits, engines.http2.limits], [undefined, { connectionWindow: 104_857_600 }])
})

test('a request cancelled by another that the same failure ends is told once', () => {
  const bench = new Bench()
  const second: { cancel(): void } = { cancel: () => {} }
  bench.request('a', (handler) => (handler.whenClosed = () => second.cancel()))
  const b = bench.request('b')
  second.cancel = () => b.ticket.cancel(CancelReason.Cancelled)
  bench.turn()
  bench.dials[0]?.refuse()
  bench.dials[1]?.refuse()
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['a closed CONNECT_FAILED', 'b closed CONNECT_FAILED'])
})
