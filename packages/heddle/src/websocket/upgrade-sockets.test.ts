/** Servers of WebSockets on real sockets: plain text and TLS, every version, heddle's clients and Node's own. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { Client } from '../client/index.ts'
import { Response, serve, type Server } from '../server/index.ts'
import { makeCertificate, Random, Recording } from '../testing/index.ts'
import { noHttp3 } from '../../test/h3-client.ts'
import { acceptWebSocket } from './accept-websocket.ts'
import { connect } from './connect.ts'
import { HandshakeError } from './handshake-error.ts'
import type { Closed } from './socket-handler.ts'
import { upgrade, type FetchUpgradeOptions } from './upgrade.ts'

const ways = ['h1', 'h2c', 'wss h1', 'wss h2', 'wss h3'] as const
type Way = (typeof ways)[number]

interface Scene {
  readonly server: Server
  readonly client: Client
  readonly url: string
  /** How the server's sockets ended. */
  readonly ends: Closed[]
}

const { cert, key } = makeCertificate({ names: ['localhost'] })

/** A server that echoes, and a client that goes that way. */
async function open(t: TestContext, way: Way, options: FetchUpgradeOptions = {}): Promise<Scene> {
  const ends: Closed[] = []
  const secure = way.startsWith('wss')
  const server = await serve({
    hostname: '127.0.0.1',
    websocket: true,
    ...(secure ? { tls: { cert, key } } : undefined),
    ...(way === 'wss h3' ? { protocols: ['h3', 'h2'] } : undefined),
    onError: (error) => assert.fail(String(error)),
    fetch(request, info) {
      const { pathname } = new URL(request.url)
      if (pathname === '/page') return new Response('a page')
      const { response, socket } = upgrade(request, options)
      assert.deepEqual([socket.url, info.tls !== undefined], [request.url.replace('http', 'ws'), secure])
      void socket.closed.then((how) => ends.push(how))
      void (async () => {
        for await (const message of socket) await socket.write(message)
      })().catch(() => {})
      return response
    },
  })
  const client = new Client({
    protocols: [way.includes('h1') ? 'h1' : way.includes('h2') ? 'h2' : 'h3'],
    h2c: way === 'h2c',
    tls: { ca: cert },
  })
  t.after(async () => {
    client.destroy()
    await server.close({ deadline: 0 })
    const { connections, exchanges } = server.stats()
    assert.deepEqual({ connections, exchanges }, { connections: 0, exchanges: 0 })
  })
  return { server, client, url: `${secure ? 'wss' : 'ws'}://localhost:${server.port}`, ends }
}

for (const way of ways) {
  const skip = way === 'wss h3' && noHttp3
  test(`${way}: messages of all sizes come back as they went, many at a time`, { timeout: 60_000, skip }, async (t) => {
    for (const deflate of [false, true]) {
      const { client, url, ends } = await open(t, way, { deflate })
      const random = new Random(11)
      const echo = async (): Promise<void> => {
        await using socket = await connect(`${url}/chat?a=1`, { client })
        assert.deepEqual(
          [socket.version, socket.extensions !== ''],
          [way.includes('h2') ? 'h2' : way.includes('h3') ? 'h3' : 'h1', deflate],
        )
        const sent = Array.from({ length: 40 }, (_, i) => {
          const size = random.pick([0, 1, 125, 126, 1000, 65_535, 65_536, 300_000])
          return i % 2 === 0 ? random.bytes(size) : 'ä€𝄞x'.repeat(size >> 3)
        })
        const read = (async () => {
          for (const message of sent) assert.deepEqual(await socket.read(), typeof message === 'string' ? message : new Uint8Array(message))
        })()
        for (const message of sent) await socket.write(message)
        await read
      }
      await Promise.all(Array.from({ length: 5 }, echo))
      while (ends.length < 5) await new Promise((resolve) => setTimeout(resolve, 2))
      assert.ok(ends.every(({ code, wasClean }) => code === 1000 && wasClean))
    }
  })

  test(`${way}: a refusal, a page and a WebSocket; and the server stops`, { timeout: 30_000, skip }, async (t) => {
    const { client, url, server } = await open(t, way)
    const refused: unknown = await connect(url, { client, origin: 'https://evil.example' }).catch((error: unknown) => error)
    assert.ok(refused instanceof HandshakeError && refused.status === 403, String(refused))
    assert.equal(await (await client.fetch(url.replace('ws', 'http') + '/page')).text(), 'a page')
    const plain = await client.fetch(url.replace('ws', 'http'))
    assert.deepEqual([plain.status, await plain.text()], [426, 'Here is a WebSocket, and nothing else.\n'])
    const sockets = await Promise.all(Array.from({ length: 3 }, () => connect(url, { client })))
    const start = performance.now()
    await server.close({ deadline: 20_000 })
    assert.ok(performance.now() - start < 10_000)
    for (const socket of sockets) assert.deepEqual([(await socket.closed).code, (await socket.closed).wasClean], [1001, true])
  })
}

test('the raw face over HTTP/3, and servers that take no WebSockets', { timeout: 30_000, skip: noHttp3 }, async (t) => {
  const raw = await serve({
    hostname: '127.0.0.1',
    protocols: ['h3'],
    tls: { cert, key },
    websocket: true,
    onExchange(exchange) {
      const handler = new Recording()
      handler.onHead = (head) => {
        const socket = acceptWebSocket(exchange, head, { deflate: true })
        if (socket === undefined) return
        socket.handler = {
          onMessage(from, buffer, start, limit, binary) {
            from.post(binary ? buffer.slice(start, limit) : Buffer.from(buffer.subarray(start, limit)).toString('latin1'))
          },
          onClose() {},
        }
      }
      return handler
    },
  })
  const without = await serve({ hostname: '127.0.0.1', protocols: ['h3'], tls: { cert, key }, fetch: () => new Response('a page') })
  const client = new Client({ protocols: ['h3'], tls: { ca: cert } })
  t.after(async () => {
    client.destroy()
    for (const server of [raw, without]) await server.close({ deadline: 0 })
  })
  await using socket = await connect(`wss://localhost:${raw.port}/`, { client })
  assert.equal(socket.version, 'h3')
  for (const message of ['text', Uint8Array.of(1, 2, 3), 'x'.repeat(300_000), new Uint8Array(300_000).fill(7)]) {
    await socket.write(message)
    assert.deepEqual(await socket.read(), message)
  }
  const error: unknown = await connect(`wss://localhost:${without.port}/`, { client }).catch((reason: unknown) => reason)
  assert.ok(error instanceof HandshakeError)
  assert.equal(error.status, 0, 'the server offers none, so none is asked for')
  assert.equal(without.stats().requests, 0)
})

test('Node’s own client', { timeout: 30_000 }, async (t) => {
  const { url, ends } = await open(t, 'h1', { protocol: ['b', 'a'], deflate: true })
  const socket = new globalThis.WebSocket(`${url}/x`, ['a', 'b'])
  socket.binaryType = 'arraybuffer'
  await once(socket, 'open')
  assert.deepEqual([socket.protocol, socket.extensions], ['b', 'permessage-deflate'])
  for (const message of ['text', 'long '.repeat(50_000)]) {
    socket.send(message)
    const [event] = (await once(socket, 'message')) as [MessageEvent]
    assert.equal(event.data, message)
  }
  socket.send(new Uint8Array(100_000).fill(3))
  const [event] = (await once(socket, 'message')) as [MessageEvent]
  assert.deepEqual(new Uint8Array(event.data as ArrayBuffer), new Uint8Array(100_000).fill(3))
  socket.close(3000, 'done')
  await once(socket, 'close')
  while (ends.length < 1) await new Promise((resolve) => setTimeout(resolve, 2))
  assert.deepEqual([ends[0]?.code, ends[0]?.reason, ends[0]?.wasClean], [3000, 'done', true])
})
