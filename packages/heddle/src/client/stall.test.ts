import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TimeoutError } from '../http/index.ts'
import { worldTest } from '../testing/index.ts'
import { Client } from './client.ts'
import { Bench, type DoubleEngine } from './double.test.ts'

test('a queue that stands still for 60 s ends those who have waited as long, and says what may be the matter', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 1 })
  bench.idle(1)
  bench.request('held')
  bench.request('a')
  bench.world.advance(20_000)
  bench.request('b')
  bench.request('endless', undefined, bench.origin, { queueTimeout: Infinity })
  assert.equal(bench.pool.timers, 1, 'one alarm for all who wait')
  bench.world.advance(39_999)
  assert.deepEqual(bench.takeLog(), ['held opened'])
  bench.world.advance(1)
  assert.deepEqual(bench.takeLog(), ['a closed QUEUE_TIMEOUT'])
  bench.world.advance(19_999)
  const c = bench.request('c')
  assert.deepEqual(bench.takeLog(), [])
  bench.world.advance(1)
  assert.deepEqual(bench.takeLog(), ['b closed QUEUE_TIMEOUT'])
  bench.world.advance(60_000)
  assert.deepEqual(bench.takeLog(), ['c closed QUEUE_TIMEOUT'])
  const { error } = c.handler
  assert.equal(error?.unprocessed, true)
  assert.equal(
    error.message,
    'no connection to http://origin.test became free for 60000 ms: a response that is neither read nor disposed of keeps its connection',
  )
  assert.equal(bench.pool.timers, 0, 'who waits for ever needs no alarm')
  bench.world.advance(3_600_000)
  assert.deepEqual([bench.takeLog(), bench.pool.waiting], [[], 1])
})

test('a queue that moves may be as long as it likes', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 1 })
  const [engine] = bench.idle(1) as [DoubleEngine]
  for (let i = 0; i < 10; i++) bench.request(`r${i}`)
  for (let i = 0; i < 9; i++) {
    bench.world.advance(59_999)
    engine.respond()
    bench.turn()
  }
  assert.deepEqual(
    bench.takeLog().filter((line) => line.includes('QUEUE_TIMEOUT')),
    [],
  )
  bench.request('behind')
  bench.world.advance(59_999)
  assert.deepEqual(bench.takeLog(), [])
  bench.world.advance(1)
  assert.deepEqual(bench.takeLog(), ['behind closed QUEUE_TIMEOUT'])
  engine.respond()
  bench.turn()
  assert.equal(bench.pool.timers, 0)
})

test('a limit of the client or of the request is the whole wait, and Infinity is for ever', () => {
  const bench = new Bench({ maxConnectionsPerOrigin: 1, queueTimeout: Infinity })
  bench.idle(1)
  bench.request('held')
  bench.request('a')
  bench.request('b', undefined, bench.origin, { queueTimeout: 120_000 })
  bench.world.advance(119_999)
  assert.deepEqual(bench.takeLog(), ['held opened'])
  bench.world.advance(1)
  assert.deepEqual(bench.takeLog(), ['b closed QUEUE_TIMEOUT'])
  bench.world.advance(3_600_000)
  assert.deepEqual([bench.takeLog(), bench.pool.waiting, bench.pool.timers], [[], 1, 0])
})

test('dials that never end count as a queue that stands still', () => {
  const bench = new Bench({ connectTimeout: Infinity })
  const { handler } = bench.request('a')
  bench.world.advance(60_000)
  assert.match(String(handler.error?.message), /became free for 60000 ms: none could be made$/)
})

worldTest('a program that holds every connection with responses it does not read is told so, and goes on', { seeds: 5 }, async (world) => {
  world.network.listen('origin.test', 80, ({ socket }) => {
    socket.on('error', () => {})
    socket.on('data', () =>
      socket.write(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n'), Buffer.alloc(200_000, 'x')])),
    )
  })
  const client = new Client({ clock: world, connect: world.network.dial, maxConnectionsPerOrigin: 2 })
  const ask = () => client.fetch('http://origin.test/')
  const held = await world.complete(Promise.all([ask(), ask()]))
  const begun = world.now()
  const error = await world.complete(ask().catch((reason: unknown) => reason))
  assert.ok(error instanceof TimeoutError && error.code === 'QUEUE_TIMEOUT', String(error))
  assert.match(error.message, /neither read nor disposed of keeps its connection/)
  assert.equal(world.now() - begun, 60_000)
  const waiting = ask()
  held[0]?.[Symbol.dispose]()
  assert.equal((await world.complete(waiting.then((response) => response.bytes()))).length, 200_000)
  held[1]?.[Symbol.dispose]()
  await world.complete(client.close())
})
