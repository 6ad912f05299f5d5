/** The client over HTTP/2, with both engines and the driver, in the seeded world. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, requestHead, responseHead, type Exchange, type Fields, type Head, type HeddleError } from '../http/index.ts'
import { World, worldTest, type LinkSocket } from '../testing/index.ts'
import { Client } from './client.ts'
import type { ClientOptions } from './options.ts'
import type { ClientExchangeHandler, Ticket } from './ticket.ts'
import { serveStreams, type WorldRequest, type WorldStreams } from './world-server.test.ts'

/** One request, and everything it is told. */
class Ask implements ClientExchangeHandler {
  readonly path: string
  readonly method: string
  readonly content: Buffer | undefined
  replayable = true
  exchanges: Exchange[] = []
  status = 0
  fields: Fields = []
  text = ''
  closes = 0
  error: HeddleError | undefined
  ticket: Ticket | undefined
  whenHead: (() => void) | undefined
  consumes = true

  constructor(path: string, method: string, content: Buffer | undefined) {
    this.path = path
    this.method = method
    this.content = content
  }

  onOpen(exchange: Exchange): void {
    this.exchanges.push(exchange)
    exchange.sendHead(requestHead(this.method, 'https', 'origin.test', this.path), this.content === undefined)
    if (this.content !== undefined) exchange.sendOwned(this.content, true)
  }
  onHead(head: Head): void {
    this.status = head.status
    this.fields = head.fields
    this.whenHead?.()
  }
  onData(buffer: Uint8Array, start: number, limit: number): void {
    this.text += Buffer.from(buffer.subarray(start, limit)).toString('latin1')
    if (this.consumes) this.exchanges.at(-1)?.consume(limit - start)
  }
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    this.closes++
    this.error = error
  }

  get outcome(): string {
    if (this.closes === 0) return 'open'
    return this.error === undefined ? `${this.status} ${this.text}` : this.error.code
  }
}

class Site {
  readonly world: World
  readonly client: Client
  readonly connections: WorldStreams[]

  constructor(
    world: World,
    onRequest: (request: WorldRequest) => void,
    options: ClientOptions = {},
    server: Parameters<typeof serveStreams>[4] = {},
  ) {
    this.world = world
    this.connections = serveStreams(world, 'origin.test', 443, onRequest, server)
    this.client = new Client({ clock: world, connect: world.network.dial, ...options })
  }

  ask(path = '/', method = 'GET', content?: Buffer): Ask {
    const ask = new Ask(path, method, content)
    ask.ticket = this.client.exchange('https://origin.test', ask)
    return ask
  }

  /** The client's end of its `index`th connection. */
  socket(index = 0): LinkSocket {
    return (this.connections[index] as WorldStreams).socket.link.ends[0]
  }

  /** Nothing runs, waits, is armed or open. */
  async assertGone(): Promise<void> {
    const { client, world } = this
    await world.complete(client.close())
    // A server at the end of a silent link needs a while to see it.
    world.advance(200_000)
    const { connections, idle, active, draining, dialling, waiting, streams, timers } = client.stats()
    assert.deepEqual([connections, idle, active, draining, dialling, waiting, streams, timers], [0, 0, 0, 0, 0, 0, 0, 0])
    assert.equal(world.armed, 0)
    for (const { engine } of this.connections) assert.equal(engine.openExchanges, 0)
  }
}

const answers = (request: WorldRequest): void => request.answer()

test('a burst of 100 to a new origin: one connection, and one write for preface, settings and all requests', async () => {
  const site = new Site(new World(), answers)
  const asks = Array.from({ length: 100 }, (_, i) => site.ask(`/${i}`))
  site.world.run()
  asks.forEach((ask, i) => assert.equal(ask.outcome, `200 /${i}`))
  assert.equal(site.connections.length, 1)
  const { http2, dialled, reused } = site.client.stats()
  assert.deepEqual([dialled, reused, http2.requests], [1, 99, 100])
  // SETTINGS, WINDOW_UPDATE and 100 HEADERS in the first; the acknowledgement of the server's SETTINGS in the other.
  assert.deepEqual([http2.writes, http2.frames, site.socket().writes], [2, 103, 2])
  assert.equal(asks[0]?.exchanges[0]?.protocol, 'h2')
  assert.equal(asks[0]?.exchanges[0]?.connection.tls?.alpn, 'h2')
  await site.assertGone()
})

test('by prior knowledge without TLS', async () => {
  const world = new World()
  const connections = serveStreams(world, 'plain.test', 80, answers)
  const client = new Client({ clock: world, connect: world.network.dial, h2c: true })
  const asks = [new Ask('/a', 'GET', undefined), new Ask('/b', 'POST', Buffer.from('content'))]
  for (const ask of asks) client.exchange('http://plain.test', ask)
  world.run()
  assert.deepEqual(
    asks.map(({ outcome }) => outcome),
    ['200 /a', '200 /b'],
  )
  assert.equal(connections.length, 1)
  await world.complete(client.close())
})

test('an https server without h2 is spoken to in HTTP/1.1 over as many connections as it takes', async () => {
  const world = new World()
  let accepted = 0
  world.network.listen(
    'old.test',
    443,
    ({ socket }) => {
      accepted++
      socket.on('error', () => {})
      socket.on('data', () => socket.write(Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nold')))
    },
    { tls: { alpn: ['http/1.1'] } },
  )
  const client = new Client({ clock: world, connect: world.network.dial })
  const asks = Array.from({ length: 5 }, () => new Ask('/', 'GET', undefined))
  const started = world.now()
  for (const ask of asks) client.exchange('https://old.test', ask)
  world.run()
  assert.ok(asks.every(({ outcome }) => outcome === '200 old'))
  assert.equal(accepted, 5)
  // One handshake of 4 ms to learn it, one for the others, and a round trip.
  assert.ok(world.now() - started < 12, String(world.now() - started))
  assert.equal(client.stats().origins[0]?.protocol, 'h1')
  await world.complete(client.close())
})

test('a server that allows 10: the first burst is refused in part and comes again, later ones wait here', async () => {
  const world = new World()
  let runs = 0
  const site = new Site(
    world,
    (request) => {
      runs++
      world.after(5, () => request.answer())
    },
    {},
    { limits: { maxConcurrentStreams: 10 } },
  )
  const first = Array.from({ length: 50 }, (_, i) => site.ask(`/${i}`))
  world.advance(200)
  assert.ok(first.every(({ outcome, path }) => outcome === `200 ${path}`))
  assert.equal(runs, 50, 'none ran twice')
  const { retries, resetsReceived } = site.client.stats()
  assert.deepEqual([retries, resetsReceived], [40, { REFUSED_STREAM: 40 }])
  const second = Array.from({ length: 50 }, (_, i) => site.ask(`/${i}`))
  assert.deepEqual([site.client.stats().streams, site.client.stats().waiting], [10, 40])
  world.advance(200)
  assert.ok(second.every(({ outcome, path }) => outcome === `200 ${path}`))
  assert.equal(site.client.stats().retries, 40)
  assert.equal(site.connections.length, 1)
  await site.assertGone()
})

test('discarded and cancelled responses reset their stream and nothing else', async () => {
  for (const way of ['discard', 'cancel', 'cancel before the head'] as const) {
    const world = new World()
    const site = new Site(world, (request) => {
      if (request.path !== '/endless') return request.answer()
      if (way === 'cancel before the head') return
      request.exchange.sendHead(responseHead(200), false)
      request.exchange.sendOwned(Buffer.alloc(100_000), false)
    })
    const endless = site.ask('/endless')
    const slow = site.ask('/other')
    endless.whenHead = () => (way === 'discard' ? endless.exchanges[0]?.discard() : endless.ticket?.cancel(CancelReason.Cancelled))
    if (way === 'cancel before the head') world.after(20, () => endless.ticket?.cancel(CancelReason.Cancelled))
    world.advance(50)
    assert.equal(endless.outcome, way === 'discard' ? '200 ' : 'CANCELLED')
    assert.equal(slow.outcome, '200 /other')
    assert.equal(site.connections[0]?.requests[0]?.error?.wireCode, 8, 'CANCEL')
    assert.deepEqual(site.client.stats().resetsSent, { CANCEL: 1 })
    assert.equal(site.ask('/next').ticket?.reused, true)
    world.run()
    await site.assertGone()
  }
})

test('what a program cancels all day costs no other exchange its connection', async () => {
  const world = new World()
  const requests: WorldRequest[] = []
  const site = new Site(world, (request) => requests.push(request))
  const long = site.ask('/long', 'POST', Buffer.from('once'))
  world.advance(100)
  for (let second = 0; second < 30; second++) {
    for (let i = 0; i < 50; i++) {
      const { ticket } = site.ask()
      world.advance(10)
      ticket?.cancel(CancelReason.Cancelled)
      world.advance(10)
    }
    assert.equal(long.outcome, 'open', `second ${second}`)
    for (const { engine } of site.connections) assert.equal(engine.lifetime.error, undefined)
  }
  requests[0]?.answer()
  world.advance(100)
  assert.equal(long.outcome, '200 /long')
  await site.assertGone()
})

test('a graceful end: what runs goes on, new requests go to a new connection, the old one closes', async () => {
  const world = new World()
  const site = new Site(world, (request) => world.after(100, () => request.answer()))
  const before = [site.ask('/1'), site.ask('/2')]
  world.advance(20)
  site.connections[0]?.engine.shutdown()
  world.advance(20)
  const after = site.ask('/3')
  world.advance(20)
  assert.equal(site.connections.length, 2)
  assert.deepEqual([site.client.stats().connections, site.client.stats().streams], [2, 3])
  world.advance(200)
  for (const ask of [...before, after]) assert.equal(ask.outcome, `200 ${ask.path}`)
  assert.deepEqual([site.client.stats().connections, site.client.stats().retries], [1, 0])
  await site.assertGone()
})

test('an abrupt GOAWAY: what is beyond it goes out again elsewhere, and ran once', async () => {
  const world = new World()
  const runs = new Map<string, number>()
  const site = new Site(world, (request) => {
    const { connection, streamId, path } = request
    if (site.connections[0] === connection && streamId > 3) return
    runs.set(path, (runs.get(path) ?? 0) + 1)
    world.after(10, () => request.answer())
    if (streamId === 3 && site.connections[0] === connection) connection.write({ type: 'GOAWAY', lastStreamId: 3, code: 0, debug: '' })
  })
  const asks = Array.from({ length: 8 }, (_, i) => site.ask(`/${i}`, i % 2 === 0 ? 'GET' : 'POST'))
  const single = asks[7] as Ask
  single.replayable = false
  world.advance(100)
  assert.deepEqual([single.outcome, single.error?.unprocessed], ['PEER_CLOSED', true])
  for (const ask of asks.slice(0, 7)) assert.equal(ask.outcome, `200 ${ask.path}`)
  assert.deepEqual([...runs.values()], [1, 1, 1, 1, 1, 1, 1])
  assert.deepEqual([site.connections.length, site.client.stats().retries], [2, 5])
  await site.assertGone()
})

test('a connection that answers no PING is left at once: what never left moves on, the rest is told', async () => {
  const world = new World()
  const site = new Site(
    world,
    (request) => {
      if (request.path !== '/held') request.answer()
    },
    { http2: { pingInterval: 1000, pingTimeout: 500 } },
  )
  site.ask('/first')
  const held = site.ask('/held')
  world.advance(50)
  site.socket().link.lose('silence')
  world.advance(1200)
  assert.deepEqual([held.outcome, site.client.stats().connections], ['open', 1], 'asked, and the answer may still come')
  world.advance(400)
  assert.equal(held.outcome, 'NETWORK_ERROR')
  assert.equal(site.client.stats().connections, 0)
  const next = site.ask('/next')
  world.advance(50)
  assert.deepEqual([next.outcome, site.connections.length], ['200 /next', 2])
  await site.assertGone()
})

test('requests that a dead connection kept from leaving move on to a new one', async () => {
  const world = new World()
  const site = new Site(
    world,
    (request) => {
      if (request.path !== '/upload') request.answer()
    },
    { http2: { pingInterval: 1000, pingTimeout: 500 } },
  )
  site.ask('/first')
  world.advance(50)
  const socket = site.socket()
  socket.link.lose('silence')
  // The upload fills what the socket holds; what comes after it does not leave any more.
  const upload = site.ask('/upload', 'POST', Buffer.alloc(2_000_000))
  world.advance(100)
  const later = [site.ask('/a', 'POST'), site.ask('/b')]
  world.advance(5000)
  assert.equal(upload.outcome, 'NETWORK_ERROR')
  assert.deepEqual(
    later.map(({ outcome }) => outcome),
    ['200 /a', '200 /b'],
  )
  assert.equal(site.connections.length, 2)
  await site.assertGone()
})

test('a request begun in onSent, and sent, is not told later that it was not acted on', async () => {
  const world = new World()
  const seen: string[] = []
  const site = new Site(world, (request) => {
    seen.push(request.path)
    if (request.path === '/first') request.answer()
    if (request.path === '/next') request.connection.socket.link.lose()
  })
  site.ask('/first')
  world.advance(50)
  const upload = site.ask('/upload', 'POST', Buffer.alloc(1000))
  let next: Ask | undefined
  upload.onSent = () => (next ??= site.ask('/next'))
  world.advance(100)
  assert.deepEqual(seen, ['/first', '/upload', '/next'])
  assert.deepEqual([upload.outcome, next?.outcome, next?.error?.unprocessed], ['PEER_RESET', 'PEER_RESET', false])
  await site.assertGone()
})

test('HTTP_1_1_REQUIRED: the request comes again over HTTP/1.1', async () => {
  const world = new World()
  let old = 0
  world.network.listen(
    'origin.test',
    443,
    (connection) => {
      const { socket } = connection
      if (connection.alpn === 'h2') {
        socket.on('error', () => {})
        socket.on('data', () => {})
        socket.write(Buffer.from('000000040000000000' + '000004030000000001' + '0000000d', 'hex'))
        return
      }
      old++
      socket.on('error', () => {})
      socket.on('data', () => socket.write(Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nold')))
    },
    { tls: { alpn: ['h2', 'http/1.1'] } },
  )
  const client = new Client({ clock: world, connect: world.network.dial })
  const ask = new Ask('/', 'POST', Buffer.from('once'))
  world.after(0, () => client.exchange('https://origin.test', ask))
  world.advance(100)
  assert.deepEqual([ask.outcome, old, ask.exchanges.map(({ protocol }) => protocol)], ['200 old', 1, ['h2', 'h1']])
  const next = new Ask('/', 'GET', undefined)
  client.exchange('https://origin.test', next)
  world.run()
  assert.equal(next.exchanges[0]?.protocol, 'h1')
  await world.complete(client.close())
})

test('responses that nobody reads do not stop one that is read, however small the window of the connection', async () => {
  const world = new World()
  const size = 200_000
  const windows = { streamWindow: 70_000, connectionWindow: 150_000, maxWindow: 150_000 }
  const site = new Site(world, (request) => request.answer(200, 'x'.repeat(size)), { http2: windows })
  const asks = Array.from({ length: 20 }, (_, i) => {
    const ask = site.ask(`/${i}`)
    ask.consumes = false
    return ask
  })
  world.advance(100)
  const unread = asks.reduce((sum, ask) => sum + ask.text.length, 0)
  assert.ok(unread < 10 * windows.streamWindow, `${unread} bytes are there though nobody asked for them`)
  for (const ask of asks) {
    ask.consumes = true
    ask.exchanges[0]?.consume(ask.text.length)
    world.advance(200)
    assert.deepEqual([ask.closes, ask.text.length], [1, size], ask.path)
  }
  await site.assertGone()
})

test('destroy ends what runs and what waits with its error, and drops the connection', async () => {
  const world = new World()
  const site = new Site(world, () => {}, {}, { limits: { maxConcurrentStreams: 2 } })
  site.ask('/first')
  world.advance(20)
  const asks = Array.from({ length: 5 }, (_, i) => site.ask(`/${i}`))
  world.advance(20)
  assert.deepEqual([site.client.stats().streams, site.client.stats().waiting], [2, 4])
  site.client.destroy()
  world.advance(20)
  assert.ok(asks.every(({ outcome }) => outcome === 'SHUTDOWN'))
  assert.deepEqual([site.client.stats().connections, site.connections[0]?.engine.openExchanges], [0, 0])
  await site.assertGone()
})

test('an unused connection is closed after its idle time, with GOAWAY', async () => {
  const site = new Site(new World(), answers, { http2: { idleTimeout: 7000 } })
  site.ask()
  site.world.run()
  site.world.advance(6900)
  assert.equal(site.client.stats().idle, 1)
  site.world.advance(200)
  assert.equal(site.client.stats().connections, 0)
  await site.assertGone()
})

worldTest('any server, any moment: every request ends once, ran no more than once, and nothing is left', { seeds: 200 }, async (world) => {
  const { random } = world
  const runs = new Map<string, number>()
  const site = new Site(
    world,
    (request) => {
      const { connection, exchange, path } = request
      if (request.streamId > (ends.get(connection) ?? Infinity)) return
      const kind = random.integer(0, 19)
      if (kind === 0) return exchange.cancel(CancelReason.Refused)
      runs.set(path, (runs.get(path) ?? 0) + 1)
      const act = (): void => {
        if (kind === 1) exchange.cancel(CancelReason.InternalError)
        else if (kind === 2) connection.socket.destroy()
        else if (kind === 3) connection.socket.resetAndDestroy()
        else if (kind === 4) world.soon(() => connection.engine.shutdown())
        else if (kind === 5) connection.socket.link.lose('silence')
        else if (kind === 6) goAway(connection)
        else if (kind === 7) exchange.sendHead(responseHead(200), false)
        if (kind > 3 && kind !== 7) request.answer(200, path.repeat(random.integer(1, 200)))
      }
      if (random.chance(0.3)) act()
      else world.after(random.integer(0, 30), act)
    },
    {
      maxConnectionsPerOrigin: random.integer(1, 4),
      maxConnections: random.chance(0.3) ? random.integer(1, 3) : Infinity,
      whenFull: random.pick(['queue', 'connect']),
      http2: { responseTimeout: 600, bodyTimeout: 400, pingInterval: 150, pingTimeout: 100, idleTimeout: random.integer(50, 1000) },
      totalTimeout: random.chance(0.5) ? 700 : Infinity,
    },
    { limits: { maxConcurrentStreams: random.integer(1, 20) } },
  )
  /** The last stream that each connection's own GOAWAY lets run. */
  const ends = new Map<WorldStreams, number>()
  const goAway = (connection: WorldStreams): void => {
    const last = connection.requests.at(-1)?.streamId ?? 0
    if (ends.has(connection)) return
    ends.set(connection, last)
    connection.write({ type: 'GOAWAY', lastStreamId: last, code: 0, debug: '' })
    world.after(random.integer(0, 300), () => connection.socket.end())
  }
  const asks: Ask[] = []
  for (let i = 0; i < 60; i++) {
    world.after(random.integer(0, 200), () => {
      const ask = site.ask(`/${i}`, random.pick(['GET', 'POST']), random.chance(0.2) ? Buffer.alloc(random.integer(1, 100_000)) : undefined)
      ask.replayable = random.chance(0.8)
      asks.push(ask)
      if (random.chance(0.2)) world.after(random.integer(0, 30), () => ask.ticket?.cancel(CancelReason.Cancelled))
      if (random.chance(0.2)) ask.whenHead = () => ask.exchanges.at(-1)?.discard()
    })
  }
  world.advance(300)
  await world.complete(site.client.close())
  assert.equal(asks.length, 60)
  for (const ask of asks) {
    const ran = runs.get(ask.path) ?? 0
    assert.equal(ask.closes, 1, ask.path)
    assert.ok(ran <= 1, `${ask.path} ran ${ran} times`)
    // Three moves from connections of no use; each other one answered somebody.
    assert.ok(ask.exchanges.length <= 4 + 60, `${ask.path} moved ${ask.exchanges.length - 1} times`)
    if (ask.error === undefined) assert.ok(ran === 1 && ask.text.replaceAll(ask.path, '') === '', `${ask.path} got ${ask.text}`)
    else if (ask.error.unprocessed) assert.equal(ran, 0, `${ask.path} ran and is told it did not: ${ask.error.message}`)
    if (!ask.replayable) assert.ok(ask.exchanges.length <= 1, `${ask.path} was sent again`)
  }
  const { requests, errors } = site.client.stats()
  assert.equal(requests, 60)
  assert.equal(
    Object.values(errors).reduce((sum, times) => sum + times, 0),
    asks.filter((ask) => ask.error !== undefined).length,
  )
  await site.assertGone()
})
