import { deepEqual, equal, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { collectGarbage, makeAuthority, makeCertificate, memoryNow } from 'heddle/testing'
import { parseConfig, startGateway, type Gateway, type RequestRecord } from '../src/index.ts'

/** A gateway on real sockets before the given origins (ports of this machine, or `host:port`), closed with the test. */
async function start(
  context: TestContext,
  origins: readonly (number | string)[],
  more = '',
): Promise<{ gateway: Gateway; port: number; records: RequestRecord[] }> {
  const config = parseConfig(`
listeners: [{ name: web, host: 127.0.0.1, port: 0 }]
routes: [{ name: all, cluster: app }]
clusters:
  - name: app
    endpoints: [${origins.map((origin) => (typeof origin === 'number' ? `127.0.0.1:${origin}` : origin)).join(', ')}]
    ${more}
`)
  const records: RequestRecord[] = []
  const gateway = await startGateway(config, { observer: { onRequestStart() {}, onRequestEnd: (record) => records.push(record) } })
  context.after(() => gateway.close({ deadline: 100 }))
  return { gateway, port: gateway.addresses[0]?.port ?? 0, records }
}

async function origin(
  context: TestContext,
  handler: http.RequestListener,
  options: http.ServerOptions = {},
): Promise<{ server: http.Server; port: number }> {
  const server = http.createServer(options, handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, port: (server.address() as AddressInfo).port }
}

interface Answer {
  readonly response: http.IncomingMessage
  readonly body: Buffer
}

async function ask(port: number, options: http.RequestOptions, content?: string | Buffer): Promise<Answer> {
  const request = http.request({ host: '127.0.0.1', port, ...options })
  request.end(content)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { response, body: Buffer.concat(chunks) }
}

test('node:http on both sides: methods, content, trailers, 103, a thousand requests on few connections', async (context) => {
  let connections = 0
  const { server, port: originPort } = await origin(context, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const content = Buffer.concat(chunks)
      if (request.url === '/hints') response.writeEarlyHints({ link: '</a.css>; rel=preload' })
      response.setHeader('x-seen', `${request.method} ${request.headers['x-forwarded-for']} ${request.headers.via}`)
      if (request.url === '/trailers') {
        response.writeHead(200, { trailer: 'x-sum' })
        response.write(content)
        response.addTrailers({ 'x-sum': `${content.length} ${request.trailers['x-more']}` })
        response.end()
      } else response.end(content.length > 0 ? content : 'hello')
    })
  })
  server.on('connection', () => connections++)
  const { port, records, gateway } = await start(context, [originPort])
  const agent = new http.Agent({ keepAlive: true, maxSockets: 10 })
  context.after(() => agent.destroy())

  const plain = await ask(port, { agent })
  equal(plain.body.toString(), 'hello')
  equal(plain.response.headers['x-seen'], 'GET 127.0.0.1 1.1 heddle')
  equal(plain.response.headers.via, '1.1 heddle')
  const big = Buffer.alloc(300_000, 'content')
  deepEqual((await ask(port, { agent, method: 'PUT' }, big)).body, big)
  const head = await ask(port, { agent, method: 'HEAD' })
  equal(head.body.length, 0)

  const withTrailers = http.request({
    host: '127.0.0.1',
    port,
    agent,
    method: 'POST',
    path: '/trailers',
    headers: { 'transfer-encoding': 'chunked', te: 'trailers', trailer: 'x-more' },
  })
  withTrailers.write('some')
  withTrailers.addTrailers({ 'x-more': 'yes' })
  withTrailers.end()
  const [response] = (await once(withTrailers, 'response')) as [http.IncomingMessage]
  response.resume()
  await once(response, 'end')
  equal(response.trailers['x-sum'], '4 yes')

  const hinted = http.request({ host: '127.0.0.1', port, agent, path: '/hints' })
  const hints: http.InformationEvent[] = []
  hinted.on('information', (information) => hints.push(information))
  hinted.end()
  const [afterHints] = (await once(hinted, 'response')) as [http.IncomingMessage]
  afterHints.resume()
  await once(afterHints, 'end')
  deepEqual(
    hints.map(({ statusCode, headers }) => [statusCode, headers.link]),
    [[103, '</a.css>; rel=preload']],
  )

  await Promise.all(
    Array.from({ length: 1_000 }, async (_, i) => {
      const content = `content of request ${i}`
      equal((await ask(port, { agent, method: 'POST' }, content)).body.toString(), content)
    }),
  )
  ok(connections <= 12, `${connections} upstream connections`)
  equal(records.length, 1_005)
  equal(
    records.every(({ status, reason }) => status === 200 && reason === ''),
    true,
  )
  const { listeners, clusters } = await gateway.snapshot()
  equal(listeners[0]?.exchanges, 0)
  equal(clusters[0]?.active, 0)
})

test('an origin that is killed gives 502 with a reason, and serves again once it is back', async (context) => {
  const first = await origin(context, (_request, response) => response.end('first'))
  const { port } = await start(context, [first.port])
  equal((await ask(port, {})).body.toString(), 'first')
  first.server.closeAllConnections()
  first.server.close()
  await once(first.server, 'close')
  for (let i = 0; i < 3; i++) {
    const { response, body } = await ask(port, {})
    equal(response.statusCode, 502)
    equal(response.headers['heddle-reason'], 'connect_failed')
    equal(body.toString(), '502 Bad Gateway: connect_failed\n')
  }
  const second = http.createServer((_request, response) => response.end('second')).listen(first.port, '127.0.0.1')
  await once(second, 'listening')
  context.after(() => {
    second.closeAllConnections()
    second.close()
  })
  equal((await ask(port, {})).body.toString(), 'second')
})

test('one of two origins is dead: no client notices', async (context) => {
  const alive = await origin(context, (_request, response) => response.end('alive'))
  const dead = await origin(context, () => {})
  dead.server.close()
  await once(dead.server, 'close')
  const { port, records } = await start(context, [alive.port, dead.port])
  for (let i = 0; i < 50; i++) equal((await ask(port, { method: i % 2 === 0 ? 'PUT' : 'POST' }, `content ${i}`)).response.statusCode, 200)
  ok(records.some(({ attempts }) => attempts === 2))
})

test('an origin that resets kept-alive connections while idle: no client notices', async (context) => {
  const sockets = new Set<net.Socket>()
  const { server, port: originPort } = await origin(context, (request, response) => {
    request.resume()
    response.end('ok')
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const { port } = await start(context, [originPort])
  for (let i = 0; i < 30; i++) {
    const { response } = await ask(port, { method: i % 2 === 0 ? 'GET' : 'PUT' }, i % 2 === 0 ? undefined : 'content')
    equal(response.statusCode, 200)
    for (const socket of sockets) socket.resetAndDestroy()
    if (i % 3 === 0) await sleep(5)
  }
})

test('a tunnel by Upgrade between raw sockets: both ways, half-closed, many bytes', async (context) => {
  const { server, port: originPort } = await origin(context, (_request, response) => response.end())
  server.on('upgrade', (request: http.IncomingMessage, socket: net.Socket) => {
    import('./rig.ts').then(({ websocketAccept }) => {
      const accept = websocketAccept(request.headers['sec-websocket-key'] ?? '')
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      )
      socket.pipe(socket)
    }, context.diagnostic)
  })
  const { port, records } = await start(context, [originPort])
  const client = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  client.write(
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  const chunks: Buffer[] = []
  client.on('data', (chunk: Buffer) => chunks.push(chunk))
  while (!Buffer.concat(chunks).toString('latin1').includes('\r\n\r\n')) await once(client, 'data')
  const head = Buffer.concat(chunks).toString('latin1')
  ok(head.startsWith('HTTP/1.1 101 '))
  ok(head.includes('s3pPLMBiTxaQ9kYGzzhZRbK+xOo='))
  const bytes = Buffer.alloc(5_000_000)
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31) & 0xff
  chunks.length = 0
  client.end(bytes)
  await once(client, 'end')
  deepEqual(Buffer.concat(chunks), bytes)
  await sleep(20)
  const [record] = records
  equal(record?.tunnel, true)
  equal(record?.responseSize, bytes.length)
})

test('an upstream with TLS: its certificate is checked against the name it was configured by', async (context) => {
  const authority = makeAuthority()
  const { cert, key } = makeCertificate({ names: ['localhost'], ca: authority })
  const server = https
    .createServer({ cert, key }, (request, response) => response.end(`hello ${request.headers.host}`))
    .listen(0, 'localhost')
  await once(server, 'listening')
  const folder = mkdtempSync(join(tmpdir(), 'heddle-gateway-'))
  const ca = join(folder, 'ca.pem')
  writeFileSync(ca, authority.cert)
  context.after(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  })
  const { port: originPort } = server.address() as AddressInfo
  const cases = [
    [`tls: { ca: ${ca} }`, 200, undefined],
    [`tls: { ca: ${ca}, serverName: other.example }`, 502, 'tls_failed'],
    ['tls: {}', 502, 'tls_failed'],
  ] as const
  for (const [tls, status, reason] of cases) {
    const { port } = await start(context, [`localhost:${originPort}`], tls)
    const { response, body } = await ask(port, { headers: { host: 'shop.example' } })
    equal(response.statusCode, status, tls)
    equal(response.headers['heddle-reason'], reason)
    if (status === 200) equal(body.toString(), 'hello shop.example')
  }
})

const megabyte = 1024 * 1024

test('100 MB to a client that reads slowly: the gateway holds little of it', { timeout: 60_000 }, async (context) => {
  const total = 100 * megabyte
  const piece = Buffer.alloc(megabyte, 0x61)
  let written = 0
  const { port: originPort } = await origin(context, (_request, response) => {
    response.writeHead(200, { 'content-length': total })
    const more = (): void => {
      while (written < total) {
        written += piece.length
        if (!response.write(piece)) {
          response.once('drain', more)
          return
        }
      }
      response.end()
    }
    more()
  })
  const { port } = await start(context, [originPort])
  const before = await memoryNow()
  const client = net.connect({ port, host: '127.0.0.1' })
  client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  let received = 0
  let most = 0
  let stood = 0
  client.on('data', (chunk: Buffer) => {
    received += chunk.length
    // Ten stops, long enough for everything upstream of us to come to a stand.
    if (received >= (stood + 1) * 10 * megabyte) {
      stood++
      client.pause()
      setTimeout(() => {
        collectGarbage()
        const { heapUsed, arrayBuffers } = process.memoryUsage()
        most = Math.max(most, heapUsed + arrayBuffers - before)
        client.resume()
      }, 50)
    }
  })
  await once(client, 'close')
  ok(received > total && received < total + 1_000, `${received} bytes`)
  equal(written, total)
  equal(stood, 10)
  ok(most < 16 * megabyte, `${(most / megabyte).toFixed(1)} MB more than before`)
})

test('a reader that stands still stops the writer at the other end', { timeout: 60_000 }, async (context) => {
  let taken = 0
  const sockets: net.Socket[] = []
  const sink = net.createServer((socket) => {
    sockets.push(socket)
    socket.once('data', (chunk: Buffer) => {
      taken += chunk.length
      socket.pause()
    })
    socket.on('error', () => {})
  })
  sink.listen(0, '127.0.0.1')
  await once(sink, 'listening')
  context.after(() => sink.close())
  const { port, gateway } = await start(context, [(sink.address() as AddressInfo).port])
  const before = await memoryNow()
  const client = net.connect({ port, host: '127.0.0.1' })
  context.after(() => client.destroy())
  client.on('error', () => {})
  client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${1024 * megabyte}\r\n\r\n`)
  const piece = Buffer.alloc(megabyte, 0x61)
  let written = 0
  // Until nothing has moved for a while: all buffers on the way are full.
  for (let still = 0; still < 10;) {
    if (client.writableLength === 0 && written < 512 * megabyte) {
      client.write(piece)
      written += piece.length
      still = 0
    } else still++
    await sleep(10)
  }
  ok(taken > 0)
  // The kernel's buffers of four socket ends take some megabytes; 512 were on offer.
  ok(written < 64 * megabyte, `${written / megabyte} MB were taken`)
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  const more = (heapUsed + arrayBuffers - before) / megabyte
  ok(more < 8, `${more.toFixed(1)} MB more than before`)
  // The reader goes: that is seen at once, and ends the client's side too.
  const closed = new Promise((resolve) => client.on('close', resolve))
  for (const socket of sockets) socket.resetAndDestroy()
  await closed
  equal((await gateway.snapshot()).clusters[0]?.active, 0)
})
