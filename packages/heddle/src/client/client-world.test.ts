/** The client as a whole, with its real engine and driver, in the seeded world. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, requestHead, type Exchange, type Fields, type Head, type HeddleError } from '../http/index.ts'
import { worldTest, World, type LinkSocket } from '../testing/index.ts'
import { Client } from './client.ts'
import type { ClientOptions } from './options.ts'
import type { ClientExchangeHandler, Ticket } from './ticket.ts'

/** One GET, and everything it is told. */
class Get implements ClientExchangeHandler {
  readonly path: string
  replayable = true
  opens = 0
  exchange: Exchange | undefined
  status = 0
  fields: Fields = []
  text = ''
  ended = false
  closes = 0
  error: HeddleError | undefined
  whenHead: (() => void) | undefined

  constructor(path: string) {
    this.path = path
  }

  onOpen(exchange: Exchange): void {
    this.opens++
    this.exchange = exchange
    exchange.sendHead(requestHead('GET', 'http', 'origin.test', this.path), true)
  }
  onHead(head: Head, end: boolean): void {
    this.status = head.status
    this.fields = head.fields
    this.ended = end
    this.whenHead?.()
  }
  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.text += Buffer.from(buffer.subarray(start, limit)).toString('latin1')
    this.exchange?.consume(limit - start)
    this.ended = end
  }
  onTrailers(): void {
    this.ended = true
  }
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

/** Calls `onRequest` for each request head on `socket`, with its path. */
function eachRequest(socket: LinkSocket, onRequest: (path: string) => void): void {
  let received = ''
  socket.on('error', () => {})
  socket.on('data', (chunk: Uint8Array) => {
    received += Buffer.from(chunk).toString('latin1')
    for (let end = received.indexOf('\r\n\r\n'); end >= 0; end = received.indexOf('\r\n\r\n')) {
      const head = received.slice(0, end)
      received = received.slice(end + 4)
      onRequest(head.split(' ', 2)[1] as string)
    }
  })
}

const ok = (text: string, fields = ''): string => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n${fields}\r\n${text}`

interface Site {
  readonly client: Client
  readonly world: World
  /** Connections the server has accepted. */
  readonly sockets: LinkSocket[]
  get(path?: string): Get & { readonly ticket: Ticket }
}

function siteOf(world: World, onRequest: (socket: LinkSocket, path: string, index: number) => void, options: ClientOptions = {}): Site {
  const sockets: LinkSocket[] = []
  world.network.listen('origin.test', 80, ({ socket }) => {
    const index = sockets.push(socket) - 1
    eachRequest(socket, (path) => onRequest(socket, path, index))
  })
  const client = new Client({ clock: world, connect: world.network.dial, ...options })
  const origin = client.origin('http://origin.test')
  return {
    client,
    world,
    sockets,
    get(path = '/') {
      const get = new Get(path)
      return Object.assign(get, { ticket: client.exchange(origin, get) })
    },
  }
}

const write = (socket: LinkSocket, text: string): void => {
  if (!socket.destroyed && !socket.writableEnded) socket.write(Buffer.from(text, 'latin1'))
}

/** Nothing runs, waits, is armed or open. */
async function assertGone({ client, world }: Site): Promise<void> {
  await world.complete(client.close())
  world.advance(20_000)
  const { connections, idle, active, draining, dialling, waiting, timers } = client.stats()
  assert.deepEqual([connections, idle, active, draining, dialling, waiting, timers], [0, 0, 0, 0, 0, 0, 0])
  assert.equal(world.armed, 0)
}

test('one connection serves one request after the other', async () => {
  const site = siteOf(new World(), (socket, path) => write(socket, ok(path)))
  for (const path of ['/a', '/b', '/c']) {
    const get = site.get(path)
    site.world.run()
    assert.equal(get.outcome, `200 ${path}`)
    assert.equal(get.ticket.reused, path !== '/a')
    assert.equal(get.ticket.responded, true)
  }
  assert.equal(site.sockets.length, 1)
  assert.equal(site.sockets[0]?.link.ends[0].writes, 3, 'one write per request')
  await assertGone(site)
})

test('a request begun in the callbacks of the one before takes its connection', async () => {
  for (const moment of ['onHead', 'onClose'] as const) {
    const site = siteOf(new World(), (socket, path) => write(socket, ok(path)))
    const first = site.get('/first')
    let second: Get | undefined
    if (moment === 'onHead') first.whenHead = () => (second = site.get('/second'))
    else {
      const { onClose } = first
      first.onClose = (error) => {
        onClose.call(first, error)
        second = site.get('/second')
      }
    }
    site.world.run()
    assert.equal(second?.outcome, '200 /second', moment)
    assert.equal(site.sockets.length, 1, moment)
    await assertGone(site)
  }
})

test('an idle connection is closed a second before the server would, or after 4 s', async () => {
  for (const [hint, time] of [
    ['', 4000],
    ['keep-alive: timeout=7\r\n', 6000],
    ['keep-alive: timeout=1, max=100\r\n', 1000],
  ] as const) {
    const site = siteOf(new World(), (socket) => write(socket, ok('x', hint)))
    site.get()
    site.world.run()
    site.world.advance(time - 10)
    assert.equal(site.client.stats().idle, 1)
    site.world.advance(20)
    assert.deepEqual([site.client.stats().connections, site.sockets[0]?.readableEnded], [0, true])
    await assertGone(site)
  }
})

test('an idle connection on which a FIN, a reset or bytes arrive is gone at once', async () => {
  const surprises: ((socket: LinkSocket) => void)[] = [
    (socket) => socket.end(),
    (socket) => socket.resetAndDestroy(),
    (socket) => write(socket, 'HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n'),
  ]
  for (const surprise of surprises) {
    const site = siteOf(new World(), (socket, path) => write(socket, ok(path)))
    site.get('/a')
    site.world.run()
    surprise(site.sockets[0] as LinkSocket)
    site.world.run()
    assert.equal(site.client.stats().connections, 0)
    const next = site.get('/b')
    site.world.run()
    assert.deepEqual([next.outcome, next.ticket.reused, site.sockets.length], ['200 /b', false, 2])
    await assertGone(site)
  }
})

test('a FIN that meets a new request: seen first it costs nothing, seen later it is PEER_CLOSED on a reused connection', async () => {
  const outcomes: string[] = []
  for (let at = 40; at < 75; at++) {
    const site = siteOf(new World(), (socket, path, index) => {
      if (index === 0 && path !== '/first') return
      write(socket, ok(path))
    })
    const { world } = site
    site.get('/first')
    world.run()
    world.after(5, () => site.sockets[0]?.end())
    let get: ReturnType<Site['get']> | undefined
    // The FIN needs 1 ms: around 6 ms it and the request meet.
    world.after(at / 10, () => (get = site.get('/second')))
    world.advance(100)
    outcomes.push(`${get?.outcome} ${get?.ticket.reused === true ? 'reused' : 'new'}`)
    await assertGone(site)
  }
  assert.deepEqual([...new Set(outcomes)], ['PEER_CLOSED reused', '200 /second new'])
})

test('Connection: close is the end of the connection, whatever waits', async () => {
  const site = siteOf(
    new World(),
    (socket, path) => {
      write(socket, ok(path, 'connection: close\r\n'))
      socket.end()
    },
    { maxConnectionsPerOrigin: 1 },
  )
  const gets = ['/a', '/b', '/c'].map((path) => site.get(path))
  site.world.run()
  site.world.advance(10)
  assert.deepEqual(
    gets.map((get) => get.outcome),
    ['200 /a', '200 /b', '200 /c'],
  )
  assert.equal(site.sockets.length, 3)
  await assertGone(site)
})

test('discarded and cancelled content is drained, counted, and the connection kept', async () => {
  for (const way of ['discard', 'cancel'] as const) {
    const site = siteOf(new World(), (socket, path) => {
      if (path !== '/big') return write(socket, ok(path))
      write(socket, 'HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n')
      site.world.after(10, () => write(socket, 'x'.repeat(100_000)))
    })
    const big = site.get('/big')
    big.whenHead = () => (way === 'discard' ? big.exchange?.discard() : big.ticket.cancel(CancelReason.Cancelled))
    site.world.run()
    const next = site.get('/next')
    site.world.run()
    assert.deepEqual([next.outcome, next.ticket.reused, site.sockets.length], ['200 /next', true, 1], way)
    const { drained, drainedBytes, abandoned } = site.client.stats()
    assert.deepEqual([drained, drainedBytes, abandoned], [1, 100_000, 0])
    assert.equal(big.outcome, way === 'discard' ? '200 ' : 'CANCELLED')
    await assertGone(site)
  }
})

test('what was drained is counted even when the next request begins in the same turn', async () => {
  const site = siteOf(new World(), (socket) => write(socket, ok('0123456789')))
  const first = site.get('/first')
  first.whenHead = () => first.exchange?.discard()
  let next: Get | undefined
  const { onClose } = first
  first.onClose = (error) => {
    onClose.call(first, error)
    next = site.get('/next')
  }
  site.world.advance(100)
  assert.deepEqual([next?.outcome, site.sockets.length], ['200 0123456789', 1])
  assert.deepEqual([site.client.stats().drained, site.client.stats().drainedBytes], [1, 10])
  await assertGone(site)
})

test('too much to drain, or too slow, costs the connection and is counted', async () => {
  for (const [declared, sent] of [
    [300_000, 1000],
    [1000, 400],
  ] as const) {
    const site = siteOf(new World(), (socket, path) => {
      if (path !== '/big') return write(socket, ok(path))
      write(socket, `HTTP/1.1 200 OK\r\ncontent-length: ${declared}\r\n\r\n${'x'.repeat(sent)}`)
    })
    const big = site.get('/big')
    big.whenHead = () => big.exchange?.discard()
    site.world.run()
    site.world.advance(60)
    assert.deepEqual([site.client.stats().connections, big.closes], [0, 1])
    const next = site.get('/next')
    site.world.run()
    assert.deepEqual([next.outcome, site.sockets.length], ['200 /next', 2])
    const { drained, abandoned } = site.client.stats()
    assert.deepEqual([drained, abandoned], [0, 1], String(declared))
    await assertGone(site)
  }
})

test('a request waits for the drained connection or a new one, whichever is first', async () => {
  for (const delay of [5, 40]) {
    const world = new World()
    const site = siteOf(world, (socket, path) => {
      if (path !== '/slow') return write(socket, ok(path))
      write(socket, 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n')
      world.after(delay, () => write(socket, 'rest.'))
    })
    const slow = site.get('/slow')
    // A new connection takes 2 ms, and its answer 2 more.
    slow.whenHead = () => slow.ticket.cancel(CancelReason.NoError)
    world.advance(4)
    const next = site.get('/next')
    world.advance(100)
    assert.deepEqual([next.outcome, next.ticket.reused], ['200 /next', false])
    assert.deepEqual([site.client.stats().idle, site.client.stats().drained], [2, 1])
    await assertGone(site)
  }
})

test('the time limits of connecting, of the head, of content and of the whole', async () => {
  const world = new World()
  world.network.blackHole('hole.test', 80)
  const site = siteOf(
    world,
    (socket, path) => {
      if (path === '/no-content') write(socket, 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n1')
      if (path === '/drip') {
        write(socket, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
        for (let i = 1; i < 100; i++) world.after(i * 100, () => write(socket, '1\r\nx\r\n'))
      }
    },
    { connectTimeout: 700, totalTimeout: 3000, limits: { responseTimeout: 500, bodyTimeout: 600 } },
  )
  const hole = new Get('/')
  site.client.exchange('http://hole.test', hole)
  const noHead = site.get('/no-head')
  const noContent = site.get('/no-content')
  const drip = site.get('/drip')
  const ends = new Map<string, number>()
  for (let i = 0; i < 500; i++) {
    world.advance(10)
    for (const get of [hole, noHead, noContent, drip]) if (get.closes > 0 && !ends.has(get.outcome)) ends.set(get.outcome, i * 10)
  }
  assert.deepEqual([...ends.keys()], ['HEAD_TIMEOUT', 'BODY_TIMEOUT', 'CONNECT_TIMEOUT', 'TOTAL_TIMEOUT'])
  for (const [code, least] of [
    ['HEAD_TIMEOUT', 500],
    ['BODY_TIMEOUT', 600],
    ['CONNECT_TIMEOUT', 690],
    ['TOTAL_TIMEOUT', 2990],
  ] as const) {
    const at = ends.get(code) as number
    assert.ok(at >= least && at <= least + 30, `${code} at ${at}`)
  }
  await assertGone(site)
})

test('refused, unknown and silent hosts have their own codes, all unprocessed', async () => {
  const world = new World()
  world.network.listen('closed.test', 80, () => {}).stop()
  const client = new Client({ clock: world, connect: world.network.dial })
  const outcomes = ['http://closed.test', 'http://nowhere.test'].map((origin) => {
    const get = new Get('/')
    client.exchange(origin, get)
    world.run()
    return [get.outcome, get.error?.unprocessed]
  })
  assert.deepEqual(outcomes, [
    ['CONNECT_FAILED', true],
    ['DNS_FAILED', true],
  ])
  await world.complete(client.close())
})

worldTest('any server, any moment: every request ends once, limits hold, nothing is left', { seeds: 150 }, async (world) => {
  const { random } = world
  const limit = random.integer(1, 5)
  let most = 0
  const site = siteOf(
    world,
    (socket, path) => {
      const answer = (): void => {
        const size = random.integer(0, 400)
        const kind = random.integer(0, 9)
        if (kind === 0) socket.destroy()
        else if (kind === 1) socket.resetAndDestroy()
        else if (kind === 2) {
          write(socket, ok(path, 'connection: close\r\n'))
          socket.end()
        } else if (kind === 3) write(socket, `HTTP/1.1 200 OK\r\ncontent-length: ${size + 500_000}\r\n\r\n${'y'.repeat(size)}`)
        else if (kind === 4) {
          write(socket, `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${(size + 1).toString(16)}\r\n`)
          world.after(random.integer(0, 80), () => write(socket, `${'z'.repeat(size + 1)}\r\n0\r\n\r\n`))
        } else if (kind === 5) {
          write(socket, ok(path))
          world.after(random.integer(0, 10), () => socket.end())
        } else write(socket, ok(path))
      }
      if (random.chance(0.3)) answer()
      else world.after(random.integer(0, 20), answer)
    },
    {
      maxConnectionsPerOrigin: limit,
      limits: { responseTimeout: 500, bodyTimeout: 300 },
      totalTimeout: random.chance(0.5) ? 200 : Infinity,
    },
  )
  const gets: Get[] = []
  for (let i = 0; i < 60; i++) {
    world.after(random.integer(0, 200), () => {
      const get = site.get(`/${i}`)
      get.replayable = random.chance(0.8)
      gets.push(get)
      if (random.chance(0.2)) world.after(random.integer(0, 30), () => get.ticket.cancel(CancelReason.Cancelled))
      if (random.chance(0.2)) get.whenHead = () => get.exchange?.discard()
      const { connections, dialling } = site.client.stats()
      most = Math.max(most, connections + dialling)
    })
  }
  world.advance(300)
  await world.complete(site.client.close())
  assert.equal(gets.length, 60)
  for (const get of gets) {
    assert.equal(get.closes, 1, get.path)
    if (get.error === undefined) assert.ok(get.text === get.path || /^z*$/.test(get.text), `${get.path} got ${get.text}`)
  }
  assert.ok(most <= limit, `${most} connections with a limit of ${limit}`)
  const { requests, errors } = site.client.stats()
  assert.equal(requests, 60)
  assert.equal(
    Object.values(errors).reduce((sum, times) => sum + times, 0),
    gets.filter((get) => get.error !== undefined).length,
  )
  await assertGone(site)
})
