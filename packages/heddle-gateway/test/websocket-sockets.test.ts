import { deepEqual, equal, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, connect as connectTcp, type AddressInfo, type Socket as TcpSocket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'heddle/client'
import { Response, serve, type Server } from 'heddle/server'
import { makeAuthority, makeCertificate, memoryNow } from 'heddle/testing'
import { accept, connect, upgrade, type Closed, type Socket } from 'heddle/websocket'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig, startGateway, type Gateway, type RequestRecord } from '../src/index.ts'
import { websocketAccept } from './rig.ts'
import { versions, type Version } from './tunnel-ends.ts'
import { closeFrame, frame, Opcode, readFrames } from './websocket-frames.ts'

interface Echo {
  readonly port: number
  /** What its sockets were closed with. */
  readonly closes: { code: number; wasClean: boolean }[]
  /** By which version, and with what the handshake came. */
  readonly seen: string[]
}

const serverNames: Readonly<Record<Version, 'http/1.1' | 'h2'>> = { h1: 'http/1.1', h2: 'h2' }

/** An origin that sends every message back. */
async function echoServer(context: TestContext, version: Version): Promise<Echo> {
  const closes: Echo['closes'] = []
  const seen: string[] = []
  const server: Server = await serve({
    port: 0,
    hostname: '127.0.0.1',
    protocols: [serverNames[version]],
    websocket: true,
    fetch(request) {
      if (new URL(request.url).pathname === '/page') return new Response('a page')
      const { response, socket } = upgrade(request, {
        protocol: 'echo',
        deflate: true,
        origin: (origin) => origin !== 'https://evil.example',
      })
      seen.push(`${socket.version} ${socket.protocol} ${request.headers.get('origin')} ${request.headers.get('via')}`)
      socket.binaryType = 'arraybuffer'
      socket.addEventListener('message', ({ data }) => socket.send(data))
      socket.addEventListener('close', ({ code, wasClean }) => closes.push({ code, wasClean }))
      return response
    },
  })
  context.after(() => server.close({ deadline: 0 }))
  return { port: server.port, closes, seen }
}

interface Started {
  readonly gateway: Gateway
  readonly port: number
  readonly records: RequestRecord[]
}

async function start(context: TestContext, port: number, to: Version, more = '', listener = ''): Promise<Started> {
  const config = parseConfig(`
${more}listeners: [{ name: web, host: 127.0.0.1, port: 0${listener} }]
routes: [{ name: ws, cluster: app, extendedConnect: true }]
clusters: [{ name: app, endpoints: ['127.0.0.1:${port}'], protocol: ${to === 'h1' ? 'h1' : 'h2c'} }]
`)
  const records: RequestRecord[] = []
  const gateway = await startGateway(config, { observer: { onRequestStart() {}, onRequestEnd: (record) => records.push(record) } })
  context.after(() => gateway.close({ deadline: 0 }))
  return { gateway, port: gateway.addresses[0]?.port ?? 0, records }
}

function clientOf(context: TestContext, version: Version): Client {
  const client = new Client({ protocols: [version], h2c: version === 'h2' })
  context.after(() => client.destroy())
  return client
}

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (await condition()) return
    await sleep(10)
  }
  throw new Error(`never: ${what}`)
}

for (const from of versions) {
  for (const to of versions) {
    test(`${from} to ${to}: a WebSocket with subprotocol and compression, and its end when the gateway stops`, async (context) => {
      const echo = await echoServer(context, to)
      const { gateway, port, records } = await start(context, echo.port, to, 'tunnelGrace: 0s\n')
      const client = clientOf(context, from)
      const socket: Socket = await connect(`ws://127.0.0.1:${port}/chat`, {
        client,
        protocols: ['other', 'echo'],
        deflate: true,
        headers: { origin: 'https://app.example' },
      })
      deepEqual([socket.version, socket.protocol], [from, 'echo'])
      ok(socket.extensions.includes('permessage-deflate'), socket.extensions)
      deepEqual(echo.seen, [`${to} echo https://app.example ${from === 'h1' ? '1.1' : '2'} heddle`])
      const sizes = [0, 1, 125, 126, 1_000, 65_535, 65_536, 300_000]
      for (let i = 0; i < 40; i++) {
        const text = `${i} `.repeat(sizes[i % sizes.length] as number).slice(0, sizes[i % sizes.length])
        const sent = i % 2 === 0 ? text : Buffer.from(text)
        await socket.write(sent)
        const got = await socket.read()
        if (typeof sent === 'string') equal(got, sent)
        else ok(Buffer.from(got as Uint8Array).equals(sent), `message ${i}`)
      }
      const { requests, clusters } = await gateway.stats()
      const { open, opened, closed, received, sent } = requests.tunnels
      deepEqual([open, opened, closed, clusters[0]?.tunnels], [1, 1, 0, 1])
      ok(received > 0 && sent > 0 && requests.sent === 0, 'counted while it is open, and as no content')
      deepEqual([requests.active, requests.duration.count], [1, 0])

      const stopped = gateway.close({ deadline: 20_000 })
      const { code, wasClean }: Closed = await socket.closed
      deepEqual([code, wasClean], [1001, true])
      const at = performance.now()
      await stopped
      ok(performance.now() - at < 15_000, 'it has nothing to wait for')
      await until('the origin has been told', () => echo.closes.length === 1)
      deepEqual(echo.closes, [{ code: 1001, wasClean: true }])
      deepEqual([records.length, records[0]?.reason, records[0]?.tunnel], [1, 'shutdown', true])
      const after = (await gateway.stats()).requests.tunnels
      deepEqual([after.open, after.closed, after.duration.count], [0, 1, 1])
    })

    test(`${from} to ${to}: fifty at once, closed by either end; a refused Origin is told as the origin says it`, async (context) => {
      const echo = await echoServer(context, to)
      const { gateway, port, records } = await start(context, echo.port, to)
      const client = clientOf(context, from)
      const url = `ws://127.0.0.1:${port}/chat`
      const sockets = await Promise.all(Array.from({ length: 50 }, () => connect(url, { client, protocols: ['echo'] })))
      await Promise.all(
        sockets.map(async (socket, i) => {
          for (let j = 0; j < 5; j++) {
            await socket.write(`${i} ${j}`)
            equal(await socket.read(), `${i} ${j}`)
          }
          socket.close(4_000 + i, 'enough')
          const { code, wasClean } = await socket.closed
          deepEqual([code, wasClean], [4_000 + i, true])
        }),
      )
      await until('all are over', () => records.length === 50)
      deepEqual([...new Set(records.map(({ reason }) => reason))], [''])
      const { tunnels } = (await gateway.stats()).requests
      deepEqual([tunnels.open, tunnels.opened, tunnels.closed], [0, 50, 50])
      const refused = await connect(url, { client, headers: { origin: 'https://evil.example' } }).then(
        () => undefined,
        (error: { status?: number; response?: { status: number } }) => error,
      )
      equal(refused?.status ?? refused?.response?.status, 403)
      const page = await client.fetch(`http://127.0.0.1:${port}/page`)
      equal(await page.text(), 'a page', 'and ordinary requests go on beside it')
    })
  }
}

test('TLS on both sides, and a cluster that speaks what ALPN comes to: a tunnel goes over HTTP/2 once the upstream has offered that', async (context) => {
  const authority = makeAuthority()
  const { cert, key } = makeCertificate({ names: ['localhost', '127.0.0.1'], ca: authority })
  const folder = mkdtempSync(join(tmpdir(), 'heddle-gateway-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const write = (name: string, text: string | Buffer): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const files = { ca: write('ca.pem', authority.cert), cert: write('cert.pem', cert), key: write('key.pem', key) }
  const seen: string[] = []
  const server = await serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: { cert, key },
    websocket: true,
    fetch(request) {
      if (request.headers.get('upgrade') === null) return new Response('a page')
      const { response, socket } = upgrade(request, { origin: '*' })
      seen.push(socket.version ?? '')
      socket.addEventListener('message', ({ data }) => socket.send(data))
      return response
    },
  })
  context.after(() => server.close({ deadline: 0 }))
  const config = parseConfig(`
listeners: [{ name: web, host: 127.0.0.1, port: 0, tls: { certificates: [{ cert: ${files.cert}, key: ${files.key} }] } }]
routes: [{ name: ws, cluster: app, extendedConnect: true }]
clusters: [{ name: app, endpoints: ['localhost:${server.port}'], tls: { ca: ${files.ca} } }]
`)
  const gateway = await startGateway(config)
  context.after(() => gateway.close({ deadline: 0 }))
  const origin = `localhost:${gateway.addresses[0]?.port}`
  const client = new Client({ tls: { ca: authority.cert } })
  context.after(() => client.destroy())
  const echoed = async (): Promise<Socket> => {
    const socket = await connect(`wss://${origin}/chat`, { client })
    await socket.write('hello')
    equal(await socket.read(), 'hello')
    return socket
  }
  const first = await echoed()
  equal(await (await client.fetch(`https://${origin}/page`)).text(), 'a page')
  const second = await echoed()
  deepEqual([first.version, second.version], ['h1', 'h2'], 'the client does likewise')
  deepEqual(seen, ['h1', 'h2'])
  const { clusters } = await gateway.stats()
  deepEqual([clusters[0]?.tunnels, clusters[0]?.http2.streams, clusters[0]?.endpoints[0]?.connections], [2, 1, 2])
  for (const socket of [first, second]) {
    socket.close()
    equal((await socket.closed).wasClean, true)
  }
})

test("Node's own WebSocket through the gateway to an upstream of HTTP/2", async (context) => {
  const echo = await echoServer(context, 'h2')
  const { port } = await start(context, echo.port, 'h2')
  const socket = new WebSocket(`ws://127.0.0.1:${port}/chat`, 'echo')
  socket.binaryType = 'arraybuffer'
  await once(socket, 'open')
  equal(socket.protocol, 'echo')
  const sent = Buffer.alloc(100_000, 'node')
  socket.send(sent)
  const [{ data }] = (await once(socket, 'message')) as [{ data: ArrayBuffer }]
  ok(Buffer.from(data).equals(sent))
  socket.close(3_001, 'bye')
  const [{ code, wasClean }] = (await once(socket, 'close')) as [{ code: number; wasClean: boolean }]
  deepEqual([code, wasClean], [3_001, true])
})

interface Raw {
  readonly client: TcpSocket
  readonly upstream: TcpSocket
  readonly started: Started
  /** What came since the handshake. */
  readonly received: Record<'client' | 'upstream', Buffer>
}

const key = 'dGhlIHNhbXBsZSBub25jZQ=='

/** As `once`, for a socket that may have been reset. */
function closeOf(socket: TcpSocket): Promise<void> {
  return new Promise((resolve) => socket.on('close', () => resolve()))
}

/** A tunnel between two bare sockets. */
async function raw(context: TestContext, more = '', listener = ''): Promise<Raw> {
  const received = { client: Buffer.alloc(0), upstream: Buffer.alloc(0) }
  const origin = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(origin, 'listening')
  const started = await start(context, (origin.address() as AddressInfo).port, 'h1', more, listener)
  const arrived = once(origin, 'connection') as Promise<[TcpSocket]>
  const client = connectTcp({ port: started.port, host: '127.0.0.1', allowHalfOpen: true })
  context.after(() => {
    client.destroy()
    origin.close()
  })
  client.write(
    `GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  )
  const [upstream] = await arrived
  context.after(() => upstream.destroy())
  for (const socket of [client, upstream]) socket.on('error', () => {})
  const [head] = (await once(upstream, 'data')) as [Buffer]
  const asked = /sec-websocket-key: (.*)\r\n/i.exec(head.toString('latin1'))?.[1] as string
  upstream.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${websocketAccept(asked)}\r\n\r\n`,
  )
  const [answer] = (await once(client, 'data')) as [Buffer]
  ok(answer.toString('latin1').startsWith('HTTP/1.1 101'))
  client.on('data', (chunk: Buffer) => (received.client = Buffer.concat([received.client, chunk])))
  upstream.on('data', (chunk: Buffer) => (received.upstream = Buffer.concat([received.upstream, chunk])))
  return { client, upstream, started, received }
}

test('bare sockets: either end may stop talking and still listen', async (context) => {
  const { client, upstream, received, started } = await raw(context)
  client.end('that was all')
  await once(upstream, 'end')
  equal(received.upstream.toString(), 'that was all')
  upstream.write('still ')
  await sleep(20)
  upstream.end('here')
  await once(client, 'end')
  equal(received.client.toString(), 'still here')
  await until('it is over', () => started.records.length === 1)
  deepEqual([started.records[0]?.reason, started.records[0]?.requestSize, started.records[0]?.responseSize], ['', 12, 10])
})

test('bare sockets: one that resets in the middle of a frame is a reset at the other end', async (context) => {
  for (const leaver of ['client', 'upstream'] as const) {
    const tunnel = await raw(context)
    const other = tunnel[leaver === 'client' ? 'upstream' : 'client']
    tunnel[leaver].write(Buffer.from('82fe1000', 'hex'))
    await until('half a frame came', () => tunnel.received[leaver === 'client' ? 'upstream' : 'client'].length === 4)
    const lost = closeOf(other)
    tunnel[leaver].resetAndDestroy()
    await lost
    await until('it is over', () => tunnel.started.records.length === 1)
    ok(tunnel.started.records[0]?.reason !== '')
  }
})

test('bare sockets: a client that never reads stops the upstream, and is cut off in time', { timeout: 30_000 }, async (context) => {
  const { client, upstream, started } = await raw(context, '', ', limits: { sendTimeout: 1s }')
  client.pause()
  const closed = closeOf(upstream)
  let written = 0
  const piece = Buffer.alloc(1_048_576, 'x')
  const more = (): void => {
    while (written < 200 && upstream.write(piece)) written++
    if (written < 200) upstream.once('drain', more)
  }
  more()
  await closed
  ok(written < 100, `${written} MiB were taken for somebody who does not read`)
  await until('it is over', () => started.records.length === 1)
  equal(started.records[0]?.reason, 'client_timeout')
})

test('bare sockets: a Close from the gateway, answered or not', { timeout: 60_000 }, async (context) => {
  const { client, upstream, received, started } = await raw(context, 'tunnelGrace: 100ms\ndrainTimeout: 25s\n')
  client.write(frame('hello', Buffer.from('mask')))
  await until('a frame came', () => received.upstream.length > 0)
  const at = performance.now()
  const stopped = started.gateway.close()
  await until('both were told', () => readFrames(received.client).frames.length === 1 && readFrames(received.upstream).frames.length === 2)
  ok(performance.now() - at >= 95, 'there was grace')
  const last = readFrames(received.upstream).frames[1]
  deepEqual([last?.opcode, last?.masked, last?.payload.readUInt16BE(0)], [Opcode.Close, true, 1001])
  // The client answers and is let go; the upstream does not, and is cut.
  client.write(closeFrame(1001, Buffer.from('mask')))
  await once(client, 'end')
  client.end()
  equal(upstream.destroyed, false)
  const closed = closeOf(upstream)
  await closed
  const took = performance.now() - at
  ok(took > 4_500 && took < 20_000, `${took} ms`)
  await stopped
})

test('two thousand tunnels, one after the other, leave nothing behind', { timeout: 60_000 }, async (context) => {
  const server = await serve({
    port: 0,
    hostname: '127.0.0.1',
    websocket: true,
    fetch(request) {
      const { response, socket } = accept(request)
      socket.handler = { onMessage: () => socket.close(1000) }
      return response
    },
  })
  context.after(() => server.close({ deadline: 0 }))
  const { gateway, port, records } = await start(context, server.port, 'h2')
  const client = clientOf(context, 'h2')
  const url = `ws://127.0.0.1:${port}/`
  const run = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 20) {
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          const socket = await connect(url, { client })
          socket.post('hello')
          equal((await socket.closed).code, 1000)
        }),
      )
    }
    records.length = 0
  }
  await run(500)
  const before = await memoryNow()
  await run(2_000)
  const growth = (await memoryNow()) - before
  ok(growth < 2 * 1_048_576, `${(growth / 1_024).toFixed(0)} KiB more than before`)
  const { requests, clusters } = await gateway.stats()
  deepEqual(
    [requests.tunnels.open, requests.tunnels.closed, requests.active, clusters[0]?.active, clusters[0]?.tunnels],
    [0, 2_500, 0, 0, 0],
  )
})
