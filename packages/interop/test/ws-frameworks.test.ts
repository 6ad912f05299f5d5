/** WebSockets beside what frameworks do: Hono by `upgrade`, Express by the server of ws. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import express from 'express'
import { Client, serve } from 'heddle'
import { createServer, type RequestListener } from 'heddle/node'
import { connect, HandshakeError, upgrade, WebSocketServer, type NodeWebSocket } from 'heddle/websocket'
import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { secureHeaders } from 'hono/secure-headers'

const versions = ['h1', 'h2'] as const

function clientOf(version: 'h1' | 'h2'): Client {
  return new Client(version === 'h2' ? { h2c: true, protocols: ['h2'] } : {})
}

async function statusOf(attempt: Promise<unknown>): Promise<number> {
  const error: unknown = await attempt.catch((reason: unknown) => reason)
  assert.ok(error instanceof HandshakeError, String(error))
  return error.status
}

for (const version of versions) {
  test(`Hono, with middleware around (${version})`, { timeout: 30_000 }, async () => {
    const told: unknown[] = []
    const app = new Hono()
    app.use(async (c, next) => {
      if (c.req.query('token') === undefined && c.req.path === '/chat') return c.text('who are you?', 401)
      await next()
      c.header('x-after', c.req.header('upgrade') ?? 'none')
      return undefined
    })
    app.use(secureHeaders(), cors())
    app.get('/chat', (c) => {
      // Refusals are thrown: Hono answers what they say.
      const { response, socket } = upgrade(c.req.raw, { protocol: 'chat' })
      socket.onmessage = ({ data }) => socket.send(`${c.req.query('token')}: ${data as string}`)
      return response as unknown as Response
    })
    app.get('/page', (c) => c.text('a page'))
    await using server = await serve({
      hostname: '127.0.0.1',
      websocket: true,
      fetch: app.fetch,
      onError: (error) => void told.push(error),
    })
    const url = server.url.replace('http', 'ws')
    const client = clientOf(version)
    const socket = await connect(`${url}/chat?token=ada`, { client, protocols: ['chat'] })
    assert.deepEqual([socket.version, socket.protocol], [version, 'chat'])
    await socket.write('hello')
    assert.equal(await socket.read(), 'ada: hello')
    socket.close(1000)
    assert.equal((await socket.closed).wasClean, true)
    assert.equal(await statusOf(connect(`${url}/chat`, { client })), 401)
    assert.equal(await statusOf(connect(`${url}/nowhere?token=a`, { client })), 404)
    assert.equal(await statusOf(connect(`${url}/chat?token=a`, { client, origin: 'https://evil.example' })), 403)
    // A page that is asked for a WebSocket.
    assert.equal(await statusOf(connect(`${url}/page`, { client })), version === 'h2' ? 501 : 200)
    const plain = await client.fetch(`${server.url}/chat?token=a`)
    assert.deepEqual([plain.status, plain.headers.get('sec-websocket-version')], [426, '13'])
    assert.deepEqual(told, [])
    await client.close()
  })

  test(`Express, with a WebSocketServer on its server (${version})`, { timeout: 30_000 }, async () => {
    const app = express()
    app.get('/', (_request, response) => void response.send('a page'))
    const server = createServer(app as unknown as RequestListener)
    const wss = new WebSocketServer({ server, path: '/chat' })
    wss.on('connection', (ws: NodeWebSocket) => ws.on('message', (data: Buffer, isBinary: boolean) => ws.send(data, { binary: isBinary })))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const client = clientOf(version)
    assert.equal(await (await client.fetch(`http://127.0.0.1:${port}/`)).text(), 'a page')
    const socket = await connect(`ws://127.0.0.1:${port}/chat`, { client })
    await socket.write('hello')
    assert.deepEqual([await socket.read(), socket.version], ['hello', version])
    assert.equal(await statusOf(connect(`ws://127.0.0.1:${port}/`, { client })), 400)
    const closed = once(server, 'close')
    server.close()
    assert.equal((await socket.closed).code, 1001)
    await client.close()
    await closed
  })
}
