/** The server over HTTP/2 in the seeded world, with our own engine at the other end. */
import assert from 'node:assert/strict'
import { ClientConnection, type Http2Options } from '../h2/index.ts'
import {
  CancelReason,
  requestHead,
  responseHead,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type HeddleError,
} from '../http/index.ts'
import { Recording, RecordingConnection, worldTest, type LinkOptions, type LinkSocket, type World } from '../testing/index.ts'
import { Response, serve, type Request, type Server, type ServeOptions } from './index.ts'

function start(world: World, options: Partial<ServeOptions>): Promise<Server> {
  return serve({ clock: world, listen: world.network.serve, hostname: 'h', port: 80, onError: () => {}, ...options })
}

interface Guest {
  readonly client: ClientConnection
  readonly owner: RecordingConnection
  readonly socket: LinkSocket
}

async function come(world: World, link: LinkOptions = {}, options: Http2Options = {}): Promise<Guest> {
  const guest = await world.complete(
    new Promise<Guest>((resolve, reject) => {
      world.network.connect(
        'h',
        80,
        (error, connection) => {
          if (connection === undefined) return reject(error as HeddleError)
          const owner = new RecordingConnection()
          const client = new ClientConnection(connection.info, owner, options, world.now())
          connection.attach(client)
          resolve({ client, owner, socket: connection.socket })
        },
        link,
      )
    }),
  )
  await world.settle({ until: world.now() + 20 })
  return guest
}

/** Opens an exchange and sends its head. */
function ask(client: ClientConnection, path: string, end = true, fields: Fields = [], method = 'GET'): Recording & { exchange: Exchange } {
  const recording = new Recording()
  const exchange = client.open(recording)
  assert.ok(exchange !== undefined, 'no slot')
  recording.exchange = exchange
  exchange.sendHead(requestHead(method, 'http', 'h', path, fields), end)
  return recording as Recording & { exchange: Exchange }
}

async function assertQuiet(world: World, server: Server): Promise<void> {
  await world.complete(server.close({ deadline: 0 }), 60_000)
  await world.settle()
  const { connections, exchanges, deadlines } = server.stats()
  assert.deepEqual({ connections, exchanges, deadlines }, { connections: 0, exchanges: 0, deadlines: 0 })
  assert.equal(world.armed, 0)
}

const many = 120

worldTest('120 streams answered in one turn are one write', { seeds: 3 }, async (world) => {
  let answerAll!: (text: string) => void
  const gate = new Promise<string>((resolve) => (answerAll = resolve))
  const server = await start(world, {
    http2: { maxConcurrentStreams: many },
    fetch: (request) => {
      const { pathname } = new URL(request.url)
      return pathname === '/at-once' ? new Response('at once') : gate.then((text) => new Response(text))
    },
  })
  const { client, socket } = await come(world)
  const atServer = socket.peer

  // What is answered while one read is handled leaves at its end.
  let before = { reads: socket.writes, writes: atServer.writes, counted: server.stats().http2.writes }
  const atOnce = Array.from({ length: many }, () => ask(client, '/at-once'))
  await world.settle({ until: world.now() + 50 })
  assert.ok(atOnce.every((recording) => recording.content.toString() === 'at once' && recording.closed && recording.error === undefined))
  assert.equal(socket.writes - before.reads, 1, 'the requests came in one write')
  assert.equal(atServer.writes - before.writes, 1)
  assert.equal(server.stats().http2.writes - before.counted, 1)

  // What is answered later, by handlers that waited for one thing, leaves together too.
  const later = Array.from({ length: many }, () => ask(client, '/later'))
  await world.settle({ until: world.now() + 50 })
  assert.equal(server.stats().exchanges, many)
  before = { reads: socket.writes, writes: atServer.writes, counted: server.stats().http2.writes }
  const frames = server.stats().http2.frames
  answerAll('later')
  await world.settle({ until: world.now() + 50 })
  assert.ok(later.every((recording) => recording.content.toString() === 'later' && recording.closed && recording.error === undefined))
  assert.equal(atServer.writes - before.writes, 1)
  assert.equal(server.stats().http2.writes - before.counted, 1)
  assert.equal(server.stats().http2.frames - frames, 2 * many, 'HEADERS and DATA of each')
  assert.ok(server.stats().http2.framesPerWrite > 50)
  await assertQuiet(world, server)
})

worldTest('handlers that answer from tasks of their own, in one phase of the loop, share a write', { seeds: 5 }, async (world) => {
  const exchanges: Exchange[] = []
  const content = Buffer.from('later')
  const server = await start(world, {
    http2: { maxConcurrentStreams: many },
    onExchange: (exchange) => {
      exchanges.push(exchange)
      return new Recording()
    },
  })
  const { client, socket } = await come(world)
  const asked = Array.from({ length: many }, () => ask(client, '/'))
  await world.settle({ until: world.now() + 50 })
  assert.equal(exchanges.length, many)
  const before = socket.peer.writes
  for (const exchange of exchanges) {
    world.soon(() => {
      exchange.sendHead(responseHead(200), false)
      exchange.sendData(content, 0, content.length, true)
    })
  }
  await world.settle({ until: world.now() + 50 })
  assert.ok(asked.every((recording) => recording.content.equals(content)))
  // The first one's flush is planned behind the others.
  assert.equal(socket.peer.writes - before, 1)
  await assertQuiet(world, server)
})

worldTest('streams beyond the limit wait or are refused, those within are served', { seeds: 3 }, async (world) => {
  const server = await start(world, { http2: { maxConcurrentStreams: 10 }, fetch: () => new Promise<Response>(() => {}) })
  const { client } = await come(world)
  for (let i = 0; i < 10; i++) ask(client, '/')
  assert.equal(client.openable, 0)
  await world.settle({ until: world.now() + 50 })
  assert.equal(server.stats().http2.exchanges, 10)
  await assertQuiet(world, server)
})

worldTest('time limits are those of `limits`, unless `http2` says otherwise', { seeds: 2 }, async (world) => {
  const reasons: unknown[] = []
  const server = await start(world, {
    limits: { bodyTimeout: 2000, idleTimeout: 90_000 },
    http2: { idleTimeout: 5000 },
    fetch: async (request) => {
      request.signal.addEventListener('abort', () => reasons.push(request.signal.reason))
      return new Response(await request.text())
    },
  })
  const { client, owner } = await come(world, {}, { limits: { idleTimeout: Infinity } })
  const stopped = ask(client, '/', false, [], 'POST')
  stopped.exchange.sendData(Buffer.from('half'), 0, 4, false)
  await world.settle({ until: world.now() + 1900 })
  assert.equal(reasons.length, 0)
  await world.settle({ until: world.now() + 300 })
  assert.equal((reasons[0] as HeddleError).code, 'BODY_TIMEOUT')
  assert.equal(owner.closed, false)
  await world.settle({ until: world.now() + 6000 })
  assert.equal(owner.closed, true, 'idle for 5 s')
  await assertQuiet(world, server)
})

worldTest('close says GOAWAY twice, loses no request on its way, and ends when the last is answered', { seeds: 5 }, async (world) => {
  const answers: ((response: Response) => void)[] = []
  const server = await start(world, { fetch: () => new Promise<Response>((resolve) => answers.push(resolve)) })
  const { client, owner } = await come(world, { delay: 20 })
  const first = ask(client, '/first')
  await world.settle({ until: world.now() + 60 })
  const closing = server.close()
  await world.settle({ until: world.now() + 1 })
  // The client knows nothing of it yet.
  const crossing = ask(client, '/crossing')
  await world.settle({ until: world.now() + 100 })
  assert.ok(owner.lines.includes('draining'))
  assert.equal(client.openable, 0)
  assert.equal(answers.length, 2, 'the request that crossed the first GOAWAY is served')
  for (const answer of answers) answer(new Response('bye'))
  await world.complete(closing, 60_000)
  for (const recording of [first, crossing]) {
    assert.equal(recording.content.toString(), 'bye')
    assert.equal(recording.error, undefined)
  }
  await world.settle({ until: world.now() + 3000 })
  assert.deepEqual([owner.closed, owner.error], [true, undefined])
  await assertQuiet(world, server)
})

worldTest('idle connections can be closed alone, and all of them', { seeds: 2 }, async (world) => {
  const server = await start(world, { fetch: () => new Promise<Response>(() => {}) })
  const idle = await come(world)
  const busy = await come(world)
  const waiting = ask(busy.client, '/')
  await world.settle({ until: world.now() + 50 })
  server.closeIdleConnections()
  await world.settle({ until: world.now() + 3000 })
  assert.deepEqual([idle.owner.closed, busy.owner.closed, server.stats().http2.connections], [true, false, 1])
  server.closeAllConnections()
  await world.settle({ until: world.now() + 50 })
  assert.deepEqual([busy.owner.closed, waiting.closed, server.stats().connections], [true, true, 0])
  const next = await come(world)
  assert.equal(next.owner.closed, false, 'it goes on listening')
  await assertQuiet(world, server)
})

worldTest('extended CONNECT is offered when asked for, and to those protocols only', { seeds: 2 }, async (world) => {
  const without = await start(world, { onExchange: () => new Recording() })
  const stranger = await come(world)
  assert.equal(stranger.owner.capabilities?.extendedConnect, false)
  stranger.client.abort(new Error('enough') as HeddleError)
  await assertQuiet(world, without)

  const heads: string[] = []
  const server = await start(world, {
    websocket: true,
    onExchange: (exchange) => {
      const handler: Partial<ExchangeHandler> = {
        onHead(head) {
          heads.push(`${head.method} ${head.protocol}`)
          exchange.sendHead(responseHead(200), head.method !== 'CONNECT')
        },
        onData(buffer, at, limit, end) {
          exchange.sendData(buffer, at, limit, end)
          exchange.consume(limit - at)
        },
      }
      return new Recording({ on: handler, autoConsume: false })
    },
  })
  const { client, owner } = await come(world)
  assert.equal(owner.capabilities?.extendedConnect, true)
  const open = (protocol: string): Recording & { exchange: Exchange } => {
    const recording = new Recording()
    const exchange = client.open(recording) as Exchange
    recording.exchange = exchange
    exchange.sendHead(requestHead('CONNECT', 'http', 'h', '/chat', [], protocol), false)
    return recording as Recording & { exchange: Exchange }
  }
  const tunnel = open('websocket')
  const refused = open('something')
  const plain = ask(client, '/')
  await world.settle({ until: world.now() + 50 })
  assert.deepEqual([tunnel.head?.status, refused.head?.status, plain.head?.status], [200, 501, 200])
  assert.deepEqual(heads, ['CONNECT websocket', 'GET '])
  tunnel.exchange.sendData(Buffer.from('ping'), 0, 4, false)
  await world.settle({ until: world.now() + 50 })
  assert.equal(tunnel.content.toString(), 'ping')
  tunnel.exchange.sendData(Buffer.alloc(0), 0, 0, true)
  refused.exchange.sendData(Buffer.from('for nobody'), 0, 10, true)
  await world.settle({ until: world.now() + 50 })
  assert.deepEqual([tunnel.closed, tunnel.error, refused.closed], [true, undefined, true])
  await assertQuiet(world, server)
})

worldTest('whatever handlers and clients do, complete answers are right and nothing is left behind', { seeds: 30 }, async (world) => {
  const { random } = world
  const told: unknown[] = []
  const kinds = ['throw', 'unread', 'echo', 'pipe', 'partly', 'stream', 'trailers'] as const
  const server = await start(world, {
    onError: (error) => void told.push(error),
    http2: random.chance(0.5) ? { streamWindow: random.integer(1, 70_000), sendBuffer: random.integer(1, 65_536) } : {},
    fetch: async (request: Request) => {
      const kind = new URL(request.url).pathname.slice(1)
      const signal = random.chance(0.5) ? request.signal : undefined
      if (random.chance(0.5)) await world.sleep(random.integer(0, 50))
      if (kind === 'throw') throw new Error('thrown')
      if (kind === 'unread') return new Response('unread:ok')
      if (kind === 'echo') return new Response(`echo:${await request.text()}`)
      if (kind === 'pipe') return new Response(request.body)
      if (kind === 'trailers') {
        const { length } = await request.bytes()
        return new Response('trailers:ok', {
          trailers: { 'x-length': `${length}`, 'x-told': (await request.trailers).get('x-told') ?? '' },
        })
      }
      if (kind === 'partly') {
        const reader = request.body?.getReader()
        await reader?.read()
        if (random.chance(0.5)) await reader?.cancel()
        return new Response('partly:ok')
      }
      return new Response(
        (async function* content() {
          for (let i = 0; i < 5; i++) {
            if (signal?.aborted === true) throw signal.reason
            yield `part ${i};`
            await world.sleep(random.integer(0, 10))
          }
        })(),
      )
    },
  })

  const exchange = async (client: ClientConnection, owner: RecordingConnection): Promise<void> => {
    await world.sleep(random.integer(0, 300))
    if (client.openable === 0) return
    const kind = random.pick(kinds)
    const content = Buffer.alloc(random.integer(0, 100_000), 'abcdefg')
    const cancelled = random.chance(0.2)
    const asked = ask(client, `/${kind}`, false, random.chance(0.3) && !cancelled ? ['content-length', `${content.length}`] : [], 'POST')
    const cancelAt = random.integer(0, content.length)
    for (let at = 0; at < content.length && !asked.closed;) {
      const next = Math.min(content.length, at + random.integer(1, random.chance(0.2) ? 100 : 50_000))
      if (cancelled && next >= cancelAt) break
      asked.exchange.sendData(content, at, next, false)
      at = next
      if (random.chance(0.3)) await world.sleep(random.integer(0, 20))
    }
    if (cancelled) {
      asked.exchange.cancel(CancelReason.Cancelled)
      return
    }
    if (!asked.closed) asked.exchange.sendTrailers(['x-told', 'yes'])
    for (let i = 0; i < 200 && !asked.closed; i++) await world.sleep(50)
    assert.ok(asked.closed, `${kind} never ended`)
    // A connection that was lost took its exchanges with it.
    if (asked.error !== undefined && owner.closed) return
    assert.equal(asked.error, undefined, kind)
    assert.deepEqual(asked.faults, [])
    assert.equal(asked.head?.status, kind === 'throw' ? 500 : 200)
    const text = asked.content.toString('latin1')
    if (kind === 'echo') assert.ok(text === `echo:${content.toString('latin1')}`)
    else if (kind === 'pipe') assert.ok(asked.content.equals(content))
    else if (kind === 'stream') assert.equal(text, 'part 0;part 1;part 2;part 3;part 4;')
    else if (kind !== 'throw') assert.equal(text, `${kind}:ok`)
    if (kind === 'trailers') assert.deepEqual(asked.trailers, ['x-length', `${content.length}`, 'x-told', 'yes'])
  }

  const visits: Promise<void>[] = []
  for (let i = 0; i < 4; i++) {
    const { client, owner } = await come(world, {
      splits: random.pick(['none', 'random']),
      jitter: random.integer(0, 5),
      writes: random.pick(['sync', 'late']),
      ...(random.chance(0.2) ? { loseAt: { bytes: random.integer(1000, 1_000_000) } } : {}),
    })
    for (let j = 0; j < 12; j++) visits.push(exchange(client, owner))
  }
  await world.complete(Promise.all(visits), 600_000)
  for (const error of told) assert.match((error as Error).message, /^thrown$/)
  const { http1, http2 } = server.stats()
  assert.deepEqual([http1.requests, http2.accepted], [0, 4])
  await assertQuiet(world, server)
})
