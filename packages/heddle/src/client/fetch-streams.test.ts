/** `fetch` over HTTP/2, in the seeded world. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, HeddleError, responseHead } from '../http/index.ts'
import { World, worldTest } from '../testing/index.ts'
import { Client } from './client.ts'
import type { ClientOptions } from './options.ts'
import { serveStreams, type WorldRequest } from './world-server.test.ts'

const url = 'https://origin.test'

function clientOf(world: World, options: ClientOptions = {}): Client {
  return new Client({ clock: world, connect: world.network.dial, ...options })
}

/** Nothing is left of a client whose requests are over and which was closed. */
async function assertQuiet(world: World, client: Client): Promise<void> {
  await world.complete(client.close())
  world.advance(200_000)
  const { streams, waiting, connections, dialling, timers } = client.stats()
  assert.deepEqual({ streams, waiting, connections, dialling, timers }, { streams: 0, waiting: 0, connections: 0, dialling: 0, timers: 0 })
  assert.equal(world.armed, 0)
}

worldTest('a server that restarts at any moment: nothing fails, and nothing runs twice', { seeds: 60 }, async (world) => {
  const { random } = world
  const runs = new Map<string, number>()
  const refused = new Set<string>()
  const connections = serveStreams(
    world,
    'origin.test',
    443,
    (request) => {
      const id = request.path.slice(1)
      if (random.chance(0.2) && !refused.has(id)) {
        refused.add(id)
        return request.exchange.cancel(CancelReason.Refused)
      }
      runs.set(id, (runs.get(id) ?? 0) + 1)
      world.after(random.integer(0, 20), () => {
        if (!request.closed) request.answer(200, id)
      })
    },
    { limits: { maxConcurrentStreams: random.integer(5, 50) } },
  )
  for (let at = 20; at < 300; at += random.integer(5, 60)) {
    world.after(at, () => connections.at(-1)?.engine.shutdown())
  }
  const client = clientOf(world, { whenFull: random.pick(['queue', 'connect']) })
  const ask = async (id: string, method: string): Promise<void> => {
    await world.sleep(random.integer(0, 300))
    const init = method === 'GET' ? {} : { method, body: 'x'.repeat(random.integer(1, 5000)) }
    const response = await client.fetch(`${url}/${id}`, init)
    assert.equal(await response.text(), id)
  }
  const asked: Promise<void>[] = []
  for (let i = 0; i < 40; i++) asked.push(ask(`get-${i}`, 'GET'), ask(`post-${i}`, 'POST'))
  await world.complete(Promise.all(asked))
  assert.equal(runs.size, 80)
  assert.ok([...runs.values()].every((times) => times === 1))
  await assertQuiet(world, client)
})

worldTest('a server that breaks off at any moment: no POST runs twice, no body is taken for complete', { seeds: 60 }, async (world) => {
  const { random } = world
  const runs = new Map<string, number>()
  serveStreams(world, 'origin.test', 443, (request) => {
    const id = request.path.slice(1)
    runs.set(id, (runs.get(id) ?? 0) + 1)
    const { exchange, connection } = request
    world.after(random.integer(0, 10), () => {
      const kind = random.integer(0, 9)
      if (kind === 0) connection.socket.destroy()
      else if (kind === 1) connection.socket.resetAndDestroy()
      else if (kind === 2) exchange.cancel(CancelReason.InternalError)
      else if (kind === 3) {
        exchange.sendHead(responseHead(200), false)
        exchange.sendData(Buffer.from('half'), 0, 4, false)
        world.after(random.integer(0, 5), () =>
          random.chance(0.5) ? exchange.cancel(CancelReason.Cancelled) : connection.socket.destroy(),
        )
      } else request.answer(200, id)
    })
  })
  const client = clientOf(world)
  let succeeded = 0
  const ask = async (id: string, method: string): Promise<void> => {
    await world.sleep(random.integer(0, 200))
    try {
      const response = await client.fetch(`${url}/${id}`, { method })
      assert.equal(await response.text(), id)
      succeeded++
    } catch (error) {
      assert.ok(error instanceof HeddleError, String(error))
    }
    if (method === 'POST') assert.equal(runs.get(id) ?? 1, 1)
  }
  const asked: Promise<void>[] = []
  for (let i = 0; i < 30; i++) asked.push(ask(`get-${i}`, 'GET'), ask(`post-${i}`, 'POST'))
  await world.complete(Promise.all(asked))
  assert.ok(succeeded > 0)
  await assertQuiet(world, client)
})

worldTest('aborted at any instant: the reason comes out, the connection stays, and others go on', { seeds: 60 }, async (world) => {
  const { random } = world
  const connections = serveStreams(world, 'origin.test', 443, (request) => {
    const { exchange } = request
    world.after(random.integer(0, 5), () => exchange.sendHead(responseHead(200), false))
    world.after(random.integer(6, 10), () => exchange.sendData(Buffer.from('abcd'), 0, 4, true))
  })
  const client = clientOf(world, { http2: { idleTimeout: 1000 } })
  const reason = { seed: world.seed }
  const { signal, abort } = ((controller) => ({ signal: controller.signal, abort: () => controller.abort(reason) }))(new AbortController())
  const ask = async (aborts: boolean): Promise<void> => {
    await world.sleep(random.integer(0, 20))
    const body = random.chance(0.3) ? { method: 'PUT', body: 'x'.repeat(random.integer(0, 200_000)) } : {}
    try {
      const response = await client.fetch(url, aborts ? { signal, ...body } : body)
      if (random.chance(0.5)) assert.equal(await response.text(), 'abcd')
      else await response.body?.cancel()
    } catch (error) {
      assert.ok(aborts, String(error))
      assert.equal(error, reason)
    }
  }
  world.after(random.integer(0, 30), abort)
  const asked: Promise<void>[] = []
  for (let i = 0; i < 12; i++) asked.push(ask(random.chance(0.6)))
  await world.complete(Promise.all(asked))
  world.advance(50)
  assert.equal(connections.length, 1)
  assert.deepEqual([client.stats().streams, client.stats().connections], [0, 1])
  await assertQuiet(world, client)
})

test('what the connection is about is told by the exchange, not by the fetch: fields and authority are those of HTTP/2', async () => {
  const world = new World()
  const seen: WorldRequest[] = []
  serveStreams(world, 'origin.test', 443, (request) => {
    seen.push(request)
    request.answer(200, 'x')
  })
  const client = clientOf(world)
  const headers = {
    connection: 'x-gone',
    'keep-alive': 'timeout=1',
    'transfer-encoding': 'chunked',
    te: 'trailers',
    host: 'other.test',
    'x-stays': '1',
  }
  const response = await world.complete(client.fetch(`${url}/path?query#fragment`, { method: 'POST', body: 'content', headers }))
  assert.equal(response.status, 200)
  const { head } = seen[0] as WorldRequest
  assert.deepEqual([head?.method, head?.scheme, head?.authority, head?.path], ['POST', 'https', 'other.test', '/path?query'])
  const names = head?.fields.filter((_, i) => i % 2 === 0)
  assert.deepEqual(names, ['te', 'x-stays', 'content-type', 'content-length', 'accept', 'accept-encoding', 'user-agent'])
  await assertQuiet(world, client)
})

test('400 uploads to a server that reads none of them for a while keep their connection', async () => {
  const world = new World()
  const seen: WorldRequest[] = []
  let goesOn = false
  const limits = { maxConcurrentStreams: 1000, streamWindow: 65_535, connectionWindow: 65_535 }
  const onRequest = (request: WorldRequest): void => {
    seen.push(request)
    let received = 0
    // It keeps its credit until it goes on.
    request.onData = (_buffer, start, limit, end) => {
      received += limit - start
      if (goesOn) request.exchange.consume(limit - start)
      if (end) request.answer(200, String(received))
    }
    credits.push(() => request.exchange.consume(received))
  }
  const credits: (() => void)[] = []
  const connections = serveStreams(world, 'origin.test', 443, onRequest, { limits })
  const client = clientOf(world)
  const size = 80_000
  async function* pieces(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(size)
    yield new Uint8Array(size)
  }
  const texts = Array.from({ length: 400 }, async () => {
    const response = await client.fetch(url, { method: 'POST', body: pieces() as never, duplex: 'half' })
    return response.text()
  })
  for (let i = 0; i < 5; i++) {
    world.advance(1000)
    await world.settle()
  }
  // All but one window of it waits in the client.
  assert.equal(seen.length, 400)
  goesOn = true
  for (const credit of credits) credit()
  assert.ok((await world.complete(Promise.all(texts))).every((text) => text === String(2 * size)))
  assert.deepEqual([connections.length, client.stats().retries], [1, 0])
  await assertQuiet(world, client)
})
