/** What clients do who want no WebSocket, but a server that is down: handshakes that are none, floods of them, tunnels that nobody uses. */
import assert from 'node:assert/strict'
import { connect as connectSocket } from 'node:net'
import { test } from 'node:test'
import { Client } from 'heddle'
import { Response, serve, type Request } from 'heddle/server'
import { memoryNow, Random, World, type ScriptedPeer } from 'heddle/testing'
import { accept, connect, upgrade, type Closed, type Socket, type WebSocket } from 'heddle/websocket'
import { worldServer, type WorldServer } from './target.ts'

const host = 'Host: origin.test\r\n'
const key = Buffer.alloc(16, 1).toString('base64')
const handshake = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
const good = `GET / HTTP/1.1\r\n${host}${handshake}Sec-WebSocket-Key: ${key}\r\n\r\n`
const head = /HTTP\/1\.1 (\d{3}) [^\r]*\r\n(?:[^\r]+\r\n)*\r\n/

function statusOf(peer: ScriptedPeer, why: string): number {
  return Number(head.exec(peer.want(why, head).toString('latin1'))?.[1])
}

/** A server that accepts and remembers; `others` answers what is no handshake for it. */
async function accepting(world: World, accepted: WebSocket[], others?: (request: Request) => Response): Promise<WorldServer> {
  return worldServer(world, {
    onExchange: undefined as never,
    websocket: true,
    fetch(request) {
      if (others !== undefined) return others(request)
      const { response, socket } = upgrade(request)
      accepted.push(socket)
      return response
    },
  })
}

const request = (line: string, fields: string): string => `${line}\r\n${host}${fields}\r\n`
const get = 'GET / HTTP/1.1'
const ofKey = (value: string): string => request(get, `${handshake}Sec-WebSocket-Key: ${value}\r\n`)
const bad: Record<string, readonly [string, number]> = {
  'no key': [request(get, handshake), 400],
  'a key of 15 bytes': [ofKey(Buffer.alloc(15).toString('base64')), 400],
  'a key of 17 bytes': [ofKey(Buffer.alloc(17).toString('base64')), 400],
  'a key that is no base64': [ofKey('!!!!!!!!!!!!!!!!!!!!!!=='), 400],
  'two keys': [request(get, `${handshake}Sec-WebSocket-Key: ${key}\r\nSec-WebSocket-Key: ${key}\r\n`), 400],
  'no version': [request(get, `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${key}\r\n`), 400],
  'two versions': [request(get, `${handshake}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n`), 400],
  'version 8': [request(get, `${handshake.replace('13', '8')}Sec-WebSocket-Key: ${key}\r\n`), 426],
  'a version that is more than digits': [request(get, `${handshake.replace('13', '13, 8')}Sec-WebSocket-Key: ${key}\r\n`), 426],
  'an upgrade that Connection does not name': [
    request(get, `Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n`),
    426,
  ],
  'HTTP/1.0': [request('GET / HTTP/1.0', `${handshake}Sec-WebSocket-Key: ${key}\r\n`), 426],
  'another method': [request('POST / HTTP/1.1', `${handshake}Sec-WebSocket-Key: ${key}\r\n`), 405],
  'a request with content': [`GET / HTTP/1.1\r\n${host}${handshake}Sec-WebSocket-Key: ${key}\r\nContent-Length: 3\r\n\r\nabc`, 426],
  'a foreign origin': [request(get, `${handshake}Origin: https://evil.example\r\nSec-WebSocket-Key: ${key}\r\n`), 403],
  'an origin that only looks like ours': [
    request(get, `${handshake}Origin: https://origin.test.evil.example\r\nSec-WebSocket-Key: ${key}\r\n`),
    403,
  ],
}
for (const [name, [bytes, status]] of Object.entries(bad)) {
  test(`no WebSocket comes of ${name}`, async () => {
    const accepted: WebSocket[] = []
    const { connect: visit, close, world } = await accepting(new World({ seed: 3 }), accepted)
    for (const splits of ['none', 'random'] as const) {
      const { peer } = visit({ splits })
      peer.send(bytes)
      assert.equal(statusOf(peer, name), status)
      peer.end()
      world.run()
    }
    assert.deepEqual(accepted, [])
    await close()
  })
}

test('bytes behind a handshake are the tunnel’s when it opens, and the next request when it does not', async () => {
  const accepted: WebSocket[] = []
  const { connect: visit, close, world } = await accepting(new World(), accepted)
  // A masked text frame: "hi".
  const frame = Buffer.from([0x81, 0x82, 1, 2, 3, 4, 0x68 ^ 1, 0x69 ^ 2])
  const { peer } = visit()
  peer.send(Buffer.concat([Buffer.from(good), frame]))
  assert.equal(statusOf(peer, 'it is open'), 101)
  const [socket] = accepted as [WebSocket]
  assert.equal(await world.complete(socket.read()), 'hi')
  peer.reset()
  world.run()
  assert.equal((await world.complete(socket.closed)).code, 1006)
  await close()

  const asked: string[] = []
  const refusing = await accepting(new World(), [], (one) => {
    asked.push(new URL(one.url).pathname)
    return new Response(null, { status: 404 })
  })
  const { peer: other } = refusing.connect()
  other.send(`${good}GET /next HTTP/1.1\r\n${host}\r\n`)
  assert.deepEqual([statusOf(other, 'refused'), statusOf(other, 'the next')], [404, 404])
  other.send(Buffer.concat([Buffer.from(good), frame, Buffer.from('\r\n\r\n')]))
  assert.equal(statusOf(other, 'refused again'), 404)
  assert.equal(statusOf(other, 'a frame is no request'), 400)
  assert.deepEqual(asked, ['/', '/next', '/'])
  refusing.world.advance(2000)
  await refusing.close()
})

test('clients that leave within the handshake, or right behind it, leave nothing', async () => {
  const world = new World({ seed: 5 })
  const accepted: WebSocket[] = []
  const { connect: visit, server, close } = await accepting(world, accepted)
  let open = 0
  const watch = (): void => {
    for (const socket of accepted.splice(0)) {
      open++
      void socket.closed.then(() => open--)
    }
  }
  for (let i = 0; i < 500; i++) {
    const { peer } = visit()
    peer.send(good.slice(0, world.random.chance(0.5) ? good.length : world.random.length(good.length)))
    for (let steps = world.random.integer(0, 30); steps > 0; steps--) world.step()
    watch()
    if (world.random.chance(0.5)) peer.reset()
    else peer.end()
  }
  world.advance(20_000)
  watch()
  await world.settle()
  assert.deepEqual([server.stats().connections, server.stats().exchanges, open], [0, 0, 0])
  await close()
})

test('a client that opens a WebSocket and takes nothing costs what it may, and is ended', async () => {
  const world = new World()
  const sockets: Socket[] = []
  const {
    connect: visit,
    server,
    close,
  } = await worldServer(world, {
    onExchange: undefined as never,
    websocket: true,
    fetch(asked) {
      const { response, socket } = accept(asked)
      sockets.push(socket)
      return response
    },
  })
  const { peer, socket: wire } = visit()
  peer.send(good)
  statusOf(peer, 'it is open')
  wire.pause()
  const [socket] = sockets as [Socket]
  let outcome: unknown
  const chunk = new Uint8Array(65_536)
  void (async (): Promise<void> => {
    for (;;) await socket.write(chunk)
  })().catch((error: unknown) => (outcome = error))
  world.advance(30_000)
  await world.settle({ until: world.now() + 1 })
  assert.ok(socket.bufferedAmount <= 2 * chunk.length, `${socket.bufferedAmount} bytes wait`)
  await world.settle({ until: world.now() + 60_000 })
  assert.equal((outcome as { code: string }).code, 'SEND_TIMEOUT')
  assert.deepEqual([(await socket.closed).code, server.stats().connections], [1006, 0])
  wire.destroy()
  await close()
})

test('HTTP/2: floods of tunnels, and tunnels without a window', { timeout: 60_000 }, async () => {
  const open = new Set<Socket>()
  const ends: Closed[] = []
  await using server = await serve({
    hostname: '127.0.0.1',
    websocket: true,
    onError: (error) => assert.fail(String(error)),
    limits: { sendTimeout: 300 },
    fetch(asked) {
      const { pathname } = new URL(asked.url)
      if (pathname === '/page') return new Response('a page')
      const { response, socket } = accept(asked)
      open.add(socket)
      void socket.closed.then((how) => {
        open.delete(socket)
        ends.push(how)
      })
      if (pathname === '/talk') for (let i = 0; i < 20; i++) socket.post(new Uint8Array(10_000))
      return response
    },
  })
  const url = server.url.replace('http', 'ws')
  const page = async (): Promise<void> => assert.equal(await (await fetch(`${server.url}/page`)).text(), 'a page')
  const client = new Client({ h2c: true, protocols: ['h2'], http2: { streamWindow: 1000, maxConcurrentStreams: 1000 } })

  // Nobody reads, so the windows stay shut: each is ended after `sendTimeout`, however many there are. Others are served.
  for (const count of [20, 80]) {
    const stalled = await Promise.all(Array.from({ length: count }, () => connect(`${url}/talk`, { client, deflate: false })))
    for (const socket of stalled) assert.equal(socket.version, 'h2')
    await page()
    for (const socket of stalled) assert.equal((await socket.closed).code, 1006)
    await page()
    while (open.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
    const codes = ends.splice(0).map(({ error }) => error?.code)
    assert.deepEqual([codes.length, new Set(codes)], [count, new Set(['SEND_TIMEOUT'])])
  }
  client.destroy()

  // Opened and dropped, as fast as it goes: the connection is given up, those of others are not.
  const hasty = new Client({ h2c: true, protocols: ['h2'] })
  let dropped = 0
  for (let round = 0; round < 10; round++) {
    const attempts = Array.from({ length: 90 }, async () => {
      const socket = await connect(url, { client: hasty }).catch(() => undefined)
      socket?.abort()
      dropped++
    })
    await Promise.all(attempts)
  }
  assert.equal(dropped, 900)
  await page()
  hasty.destroy()
  while (open.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
})

test('a thousand handshakes on sockets that are dropped anywhere: memory comes back, others are served', { timeout: 60_000 }, async () => {
  const sockets = new Set<Socket>()
  await using server = await serve({
    hostname: '127.0.0.1',
    websocket: true,
    onError: (error) => assert.fail(String(error)),
    async fetch(asked) {
      const { pathname } = new URL(asked.url)
      if (pathname === '/page') return new Response('a page')
      if (pathname === '/late') await new Promise((resolve) => setTimeout(resolve, 5))
      const { response, socket } = accept(asked)
      sockets.add(socket)
      void socket.closed.then(() => sockets.delete(socket))
      socket.post('welcome')
      return response
    },
  })
  const random = new Random(9)
  const attack = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connectSocket({ port: server.port, host: '127.0.0.1' })
      socket.on('error', () => {})
      socket.on('close', () => resolve())
      const bytes = good
        .replace('GET /', random.pick(['GET /', 'GET /late', 'POST /']))
        .slice(0, random.chance(0.7) ? undefined : random.integer(1, good.length))
      socket.write(bytes)
      setTimeout(() => (random.chance(0.5) ? socket.resetAndDestroy() : socket.destroy()), random.integer(0, 15))
    })
  const round = async (count: number): Promise<void> => {
    for (let done = 0; done < count; done += 50) await Promise.all(Array.from({ length: 50 }, attack))
    while (sockets.size > 0 || server.stats().connections > 1) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await round(200)
  const before = await memoryNow()
  await round(1000)
  assert.equal(await (await fetch(`${server.url}/page`)).text(), 'a page')
  const after = await memoryNow()
  assert.equal(server.stats().exchanges, 0)
  assert.ok(after - before < 5_000_000, `${after - before} bytes more`)
})
