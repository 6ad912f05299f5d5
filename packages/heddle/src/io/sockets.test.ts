import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { makeCertificate } from '../testing/index.ts'
import { dial, type Dialled, type DialOptions, type DialTarget } from './dial.ts'
import { listen, type Accepted, type Listener, type ListenOptions } from './listen.ts'
import { largestTurnLimit } from './output.ts'
import { systemClock } from './system-clock.ts'
import type { StreamDriver } from './tcp-driver.ts'
import { hashOf, TestEngine } from './test-engine.test.ts'

// The driver on sockets of Node: what the seeded world tells of it must hold here as well.

const clock = systemClock()
const certificate = makeCertificate({ names: ['localhost'], ipAddresses: ['127.0.0.1'] })
const kinds = ['tcp', 'tls', 'unix', "tcp by 'data'", "tls by 'data'"] as const
type Kind = (typeof kinds)[number]

interface Side {
  readonly engine: TestEngine
  readonly driver: StreamDriver
  readonly socket: Socket
}

interface Link {
  readonly client: Side
  readonly server: Side
  readonly listener: Listener
}

export async function until(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < end, `waited for: ${what}`)
    await sleep(2)
  }
}

async function startListener(t: TestContext, options: Omit<ListenOptions, 'clock'>): Promise<Listener> {
  const listener = await listen({ clock, ...(options.path === undefined ? { hostname: '127.0.0.1' } : {}), ...options })
  t.after(async () => {
    listener.destroyConnections()
    await listener.stop()
  })
  return listener
}

function dialOnce(target: DialTarget, options: Omit<DialOptions, 'clock'>): Promise<Dialled> {
  return new Promise((resolve, reject) => {
    dial(target, { clock, ...options }, (error, dialled) => (dialled === undefined ? reject(error as Error) : resolve(dialled)))
  })
}

async function startLink(t: TestContext, kind: Kind): Promise<Link> {
  let accepted: Accepted | undefined
  const engine = new TestEngine()
  let driver: StreamDriver | undefined
  let path: string | undefined
  if (kind === 'unix') {
    const folder = await mkdtemp(join(tmpdir(), 'heddle-'))
    t.after(() => rm(folder, { recursive: true }))
    path = join(folder, 'socket')
  }
  const listener = await startListener(t, {
    path,
    tls: kind.startsWith('tls') ? certificate : undefined,
    sharedReads: !kind.endsWith("'data'"),
    onConnection: (one) => {
      accepted = one
      driver = one.attach(engine)
    },
  })
  const target = path === undefined ? { host: '127.0.0.1', port: listener.address.port } : { path }
  const dialled = await dialOnce(target, { tls: kind.startsWith('tls') ? { ca: certificate.cert } : undefined })
  const clientEngine = new TestEngine()
  const clientDriver = dialled.attach(clientEngine)
  t.after(() => dialled.socket.destroy())
  await until(() => accepted !== undefined, 'accept')
  return {
    client: { engine: clientEngine, driver: clientDriver, socket: dialled.socket as Socket },
    server: { engine, driver: driver as StreamDriver, socket: (accepted as Accepted).socket as Socket },
    listener,
  }
}

function countWrites(socket: Socket): () => number {
  let writes = 0
  const write = socket.write.bind(socket)
  socket.write = ((...args: Parameters<typeof write>) => {
    writes++
    return write(...args)
  }) as typeof socket.write
  return () => writes
}

for (const kind of kinds) {
  test(`${kind}: 120 sends in one turn are one write, both ways`, async (t) => {
    const { client, server } = await startLink(t, kind)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      await sleep(5)
      const writes = countWrites(from.socket)
      for (let i = 0; i < 120; i++) from.engine.send(`${i},`)
      await until(() => to.engine.text.split(',').length === 121, 'all of it')
      assert.equal(writes(), 1)
      assert.equal(from.driver.counters.writes, 1)
    }
  })

  test(`${kind}: the answers to one read are one write`, async (t) => {
    const { client, server } = await startLink(t, kind)
    const writes = countWrites(server.socket)
    server.engine.onReceive = () => {
      for (let i = 0; i < 100; i++) server.engine.send('answer ')
    }
    client.engine.send('question')
    await until(() => client.engine.text.length === 700, 'the answers')
    assert.equal(writes(), 1)
  })

  test(`${kind}: a slow reader gets every byte, in order, while others are appended behind`, async (t) => {
    const { client, server } = await startLink(t, kind)
    const sent: Buffer[] = []
    let total = 0
    // Reads a piece, pauses, reads on.
    client.engine.onReceive = () => {
      client.engine.wantsInput = false
      setTimeout(() => {
        client.engine.wantsInput = true
        client.engine.onDirty()
      }, 1)
    }
    let highest = 0
    for (let i = 0; i < 120; i++) {
      const size = i % 10 === 0 ? 200_000 : 1 + ((i * 7919) % 30_000)
      const bytes = Buffer.alloc(size)
      for (let at = 0; at < size; at += 1) bytes[at] = (at * 31 + i * 17) & 0xff
      sent.push(bytes)
      total += size
      server.engine.send(bytes)
      highest = Math.max(highest, server.socket.writableLength)
      if (i % 3 === 0) await sleep(1)
    }
    await until(() => client.driver.counters.bytesRead === total, 'all bytes')
    assert.equal(client.engine.hash, hashOf(...sent))
    assert.ok(highest <= 65_536 + largestTurnLimit + 16_384, `${highest} bytes were held by the socket`)
    assert.equal(server.driver.counters.bytesWritten, total)
    await until(() => server.socket.writableLength === 0, 'drained')
  })

  test(`${kind}: nobody reads: the engine is not asked for more, nothing is lost`, async (t) => {
    const { client, server } = await startLink(t, kind)
    client.engine.wantsInput = false
    client.engine.onDirty()
    await sleep(5)
    const body = Buffer.alloc(24_000_000, 'b')
    server.engine.send(body)
    await until(() => server.socket.writableLength > 0, 'a full socket')
    await sleep(50)
    assert.ok(server.engine.queue.length > 0, 'most of it waits in the engine')
    assert.ok(server.socket.writableLength <= 65_536 + largestTurnLimit)
    client.engine.wantsInput = true
    client.engine.onDirty()
    await until(() => client.driver.counters.bytesRead === body.length, 'all bytes')
    assert.equal(client.engine.hash, hashOf(body))
  })

  test(`${kind}: half-close in both directions`, async (t) => {
    const { client, server } = await startLink(t, kind)
    client.engine.send('question')
    client.engine.closing = 'end'
    await until(() => server.engine.calls.includes('end'), 'FIN')
    assert.equal(server.engine.text, 'question')
    server.engine.send('answer')
    await until(() => client.engine.text === 'answer', 'an answer after FIN')
    server.engine.send(' and more')
    server.engine.closing = 'end'
    await until(() => client.engine.calls.includes('end'), 'FIN of the other side')
    assert.equal(client.engine.text, 'answer and more')
    client.engine.closing = 'close'
    client.engine.onDirty()
    server.engine.closing = 'close'
    server.engine.onDirty()
    await until(() => client.socket.destroyed && server.socket.destroyed, 'both gone')
    await until(() => server.engine.error !== undefined && client.engine.error !== undefined, 'the last call')
    assert.ok(!server.engine.calls.includes('error PEER_RESET'))
  })

  test(`${kind}: "close" delivers the last bytes, however many`, async (t) => {
    const { client, server } = await startLink(t, kind)
    const body = Buffer.alloc(3_000_000, 'c')
    server.engine.send(body)
    server.engine.closing = 'close'
    client.engine.onEnd = () => {
      client.engine.closing = 'close'
    }
    await until(() => client.engine.calls.includes('end'), 'FIN')
    assert.equal(client.engine.hash, hashOf(body))
    await until(() => server.socket.destroyed && client.socket.destroyed, 'both gone')
  })

  test(`${kind}: "reset" is seen by the peer as one`, async (t) => {
    const { client, server } = await startLink(t, kind)
    client.engine.send('hello')
    await until(() => server.engine.text === 'hello', 'hello')
    server.engine.closing = 'reset'
    server.engine.onDirty()
    await until(() => client.engine.error !== undefined || client.engine.calls.includes('end'), 'the end')
    // Unix sockets and TLS have no RST of their own: the connection is just gone.
    if (kind.startsWith('tcp')) assert.deepEqual(client.engine.calls, ['error PEER_RESET'])
    assert.ok(server.socket.destroyed)
  })

  test(`${kind}: pausing stops the bytes, resuming brings them`, async (t) => {
    const { client, server } = await startLink(t, kind)
    client.engine.onReceive = () => {
      client.engine.wantsInput = false
    }
    server.engine.send('one')
    await until(() => client.engine.text === 'one', 'the first')
    server.engine.send('two')
    await sleep(30)
    assert.equal(client.engine.text, 'one')
    client.engine.wantsInput = true
    client.engine.onDirty()
    await until(() => client.engine.text === 'onetwo', 'the second')
  })
}

test('reads are shared on this Node, on both sides, unless told otherwise', async (t) => {
  // A Node whose sockets look otherwise works all the same, by 'data'; this test tells that it came.
  const listeners = async (kind: Kind): Promise<number[]> => {
    const { client, server } = await startLink(t, kind)
    return [client.socket.listenerCount('data'), server.socket.listenerCount('data')]
  }
  assert.deepEqual(await listeners('tcp'), [0, 0])
  assert.deepEqual(await listeners('tls'), [0, 0])
  assert.deepEqual(await listeners('unix'), [0, 0])
  assert.deepEqual(await listeners("tcp by 'data'"), [0, 1])
  assert.deepEqual(await listeners("tls by 'data'"), [0, 1])
})

test('tcp: many dialled connections share one read buffer and mix nothing up', async (t) => {
  const listener = await startListener(t, {
    onConnection: (accepted) => {
      const engine = new TestEngine()
      engine.onReceive = (bytes) => engine.send(bytes)
      accepted.attach(engine)
    },
  })
  const sides = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const dialled = await dialOnce({ host: '127.0.0.1', port: listener.address.port }, {})
      const engine = new TestEngine()
      dialled.attach(engine)
      t.after(() => dialled.socket.destroy())
      return { engine, body: Buffer.alloc(150_000, String.fromCharCode(65 + i)) }
    }),
  )
  for (const { engine, body } of sides) engine.send(body)
  await until(
    () => sides.every(({ engine, body }) => engine.received.reduce((sum, one) => sum + one.length, 0) === body.length),
    'the echoes',
  )
  for (const { engine, body } of sides) assert.equal(engine.hash, hashOf(body))
})

test('a peer that speaks before anybody is attached is heard', async (t) => {
  for (const tls of [undefined, certificate]) {
    const listener = await startListener(t, {
      tls,
      onConnection: (accepted) => {
        const engine = new TestEngine()
        accepted.attach(engine)
        engine.send('220 ready')
      },
    })
    const dialled = await dialOnce(
      { host: '127.0.0.1', port: listener.address.port },
      { tls: tls === undefined ? undefined : { ca: tls.cert } },
    )
    await sleep(30)
    const engine = new TestEngine()
    dialled.attach(engine)
    await until(() => engine.text === '220 ready', 'the greeting')
    dialled.socket.destroy()
  }
})

test('tls: a connection cut without close_notify ends too', async (t) => {
  const engine = new TestEngine()
  engine.onEnd = () => {
    engine.closing = 'close'
  }
  const listener = await startListener(t, { tls: certificate, onConnection: (accepted) => accepted.attach(engine) })
  const raw = connect(listener.address.port, '127.0.0.1')
  const secured = connectTls({ socket: raw, ca: certificate.cert, servername: 'localhost', ALPNProtocols: ['http/1.1'] })
  await once(secured, 'secureConnect')
  secured.write('hi')
  await until(() => engine.text === 'hi', 'hi')
  raw.destroy()
  await until(() => engine.calls.includes('end') || engine.error !== undefined, 'the end')
  await until(() => listener.connections === 0, 'gone')
})
