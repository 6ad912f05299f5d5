import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { HeddleError } from '../http/index.ts'
import { worldTest, type World, type WorldConnection } from '../testing/index.ts'
import { Client } from './client.ts'

/** Reads requests from `connection`, heads only or with content-length, and gives each as text. */
function serve({ socket }: WorldConnection, onRequest: (text: string) => void): void {
  let received = ''
  socket.on('error', () => {})
  socket.on('data', (chunk: Uint8Array) => {
    received += Buffer.from(chunk).toString('latin1')
    for (;;) {
      const headEnd = received.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const end = headEnd + 4 + Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0)
      if (received.length < end) return
      const text = received.slice(0, end)
      received = received.slice(end)
      onRequest(text)
    }
  })
}

function clientOf(world: World, options: ConstructorParameters<typeof Client>[0] = {}): Client {
  return new Client({ clock: world, connect: world.network.dial as never, ...options })
}

/** Nothing is left of a client whose requests are over and which was closed. */
async function assertQuiet(world: World, client: Client): Promise<void> {
  await world.complete(client.close())
  await world.settle()
  const { active, waiting, connections, dialling, timers } = client.stats()
  assert.deepEqual({ active, waiting, connections, dialling, timers }, { active: 0, waiting: 0, connections: 0, dialling: 0, timers: 0 })
  assert.equal(world.armed, 0)
}

worldTest(
  'a server that closes kept-alive connections at the worst moments: no GET fails, no POST runs twice',
  { seeds: 60 },
  async (world) => {
    const { random } = world
    const runs = new Map<string, number>()
    world.network.listen('origin.test', 80, (connection) => {
      serve(connection, (text) => {
        const { socket } = connection
        const id = /^x-id: (\S+)/im.exec(text)?.[1] as string
        if (socket.destroyed) return
        runs.set(id, (runs.get(id) ?? 0) + 1)
        socket.write(Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'))
        if (random.chance(0.5)) {
          world.after(random.integer(0, 30), () => {
            if (random.chance(0.5)) socket.destroy()
            else socket.end()
          })
        }
      })
    })
    const client = clientOf(world)
    let failures = 0
    const ask = async (id: string, method: string): Promise<void> => {
      await world.sleep(random.integer(0, 300))
      try {
        const response = await client.fetch('http://origin.test/', { method, headers: { 'x-id': id } })
        assert.equal(await response.text(), 'ok')
        assert.ok((runs.get(id) ?? 0) >= 1)
      } catch (error) {
        if (method === 'GET') throw error
        assert.ok(error instanceof HeddleError, String(error))
        failures++
      }
      if (method === 'POST') assert.ok((runs.get(id) ?? 0) <= 1, `${id} ran ${runs.get(id)} times`)
    }
    const asked: Promise<void>[] = []
    for (let i = 0; i < 30; i++) asked.push(ask(`get-${i}`, 'GET'), ask(`post-${i}`, 'POST'))
    await world.complete(Promise.all(asked))
    assert.ok(failures < 30)
    await assertQuiet(world, client)
  },
)

worldTest('aborted at any instant: the reason comes out, nothing is left, and others go on', { seeds: 80 }, async (world) => {
  const { random } = world
  world.network.listen('origin.test', 80, (connection) => {
    serve(connection, () => {
      const { socket } = connection
      const write = (text: string): boolean => !socket.destroyed && socket.write(Buffer.from(text))
      world.after(random.integer(0, 5), () => write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n'))
      world.after(random.integer(6, 10), () => write('2\r\ncd\r\n0\r\n\r\n'))
    })
  })
  const client = clientOf(world, { maxConnectionsPerOrigin: 2 })
  const reason = { seed: world.seed }
  const ask = async (aborts: boolean): Promise<void> => {
    const controller = new AbortController()
    const { signal } = controller
    await world.sleep(random.integer(0, 20))
    if (aborts) world.after(random.integer(0, 25), () => controller.abort(reason))
    const body = random.chance(0.3) ? { method: 'PUT', body: 'x'.repeat(random.integer(0, 200)) } : {}
    try {
      const response = await client.fetch('http://origin.test/', { signal, ...body })
      if (random.chance(0.5)) {
        assert.equal(await response.text(), 'abcd')
      } else {
        const reader = (response.body as ReadableStream<Uint8Array>).getReader()
        await reader.read()
        await reader.cancel()
      }
    } catch (error) {
      assert.ok(aborts, String(error))
      assert.equal(error, reason)
    }
    // A response that was given up may still be draining; a while later nothing listens.
    await world.sleep(200)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  }
  const asked: Promise<void>[] = []
  for (let i = 0; i < 8; i++) asked.push(ask(random.chance(0.6)))
  await world.complete(Promise.all(asked))
  await assertQuiet(world, client)
})

worldTest('bodies cut at any instant reject, and are never taken for complete', { seeds: 40 }, async (world) => {
  const { random } = world
  world.network.listen('origin.test', 80, (connection) => {
    serve(connection, (text) => {
      const { socket } = connection
      const isChunked = text.includes('GET /chunked')
      const message = isChunked
        ? 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'
        : 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'
      const cut = random.integer(0, message.length - 1)
      socket.write(Buffer.from(message.slice(0, cut)))
      world.after(random.integer(0, 10), () => (random.chance(0.5) ? socket.end() : socket.destroy()))
    })
  })
  const client = clientOf(world)
  for (const path of ['/length', '/chunked']) {
    const asked = client.fetch(`http://origin.test${path}`).then((response) => response.text())
    await world.complete(
      assert.rejects(asked, (error: unknown) => error instanceof HeddleError && /PEER_CLOSED|PEER_RESET|TRUNCATED/.test(error.code)),
    )
  }
  await assertQuiet(world, client)
})

worldTest('total time runs over waiting, redirects and body', { seeds: 10 }, async (world) => {
  world.network.listen('origin.test', 80, (connection) => {
    serve(connection, () => {
      world.after(40, () => {
        if (!connection.socket.destroyed)
          connection.socket.write(Buffer.from('HTTP/1.1 302 Found\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n'))
      })
    })
  })
  const client = clientOf(world)
  const started = world.now()
  await world.complete(
    assert.rejects(
      client.fetch('http://origin.test/', { timeout: 300 }),
      (error: unknown) => error instanceof HeddleError && error.code === 'TOTAL_TIMEOUT' && error.message.includes('http://origin.test'),
    ),
  )
  assert.ok(world.now() - started >= 300 && world.now() - started < 310, String(world.now() - started))
  await assertQuiet(world, client)
})
