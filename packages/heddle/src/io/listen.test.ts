import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { HeddleError, UsageError } from '../http/index.ts'
import { makeAuthority, makeCertificate } from '../testing/index.ts'
import { listen, type Accepted, type Listener, type ListenOptions } from './listen.ts'
import { systemClock } from './system-clock.ts'
import { TestEngine } from './test-engine.test.ts'

const clock = systemClock()
const authority = makeAuthority()
const identity = (...names: string[]): { cert: string; key: string } => makeCertificate({ names, ca: authority })

interface Started {
  readonly listener: Listener
  readonly port: number
  readonly accepted: Accepted[]
  readonly errors: unknown[]
}

async function start(t: TestContext, options: Partial<ListenOptions> = {}): Promise<Started> {
  const accepted: Accepted[] = []
  const errors: unknown[] = []
  const listener = await listen({
    clock,
    hostname: '127.0.0.1',
    onConnection: (one) => {
      accepted.push(one)
      const engine = new TestEngine()
      engine.onEnd = () => {
        engine.closing = 'close'
      }
      one.attach(engine)
      engine.send('hi')
    },
    onError: (error) => errors.push(error),
    ...options,
  })
  t.after(async () => {
    listener.destroyConnections()
    await listener.stop()
  })
  return { listener, port: listener.address.port, accepted, errors }
}

function client(t: TestContext, port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {}).resume()
  t.after(() => socket.destroy())
  return socket
}

/** Shakes hands as `servername`; resolves with the socket or with the code of what went wrong. */
async function handshake(t: TestContext, port: number, options: ConnectionOptions = {}): Promise<TLSSocket | string> {
  const socket = connectTls({ host: '127.0.0.1', port, ca: authority.cert, ALPNProtocols: ['http/1.1'], ...options })
  t.after(() => socket.destroy())
  const failure = new Promise<string>((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    socket.on('close', () => resolve('closed'))
  })
  // A TLS 1.3 client takes the connection for made before the server has judged its certificate: the greeting tells.
  const greeting = once(socket, 'data').then(() => socket)
  greeting.catch(() => {})
  return Promise.race([greeting, failure])
}

/** The first name of the certificate a server shows for `servername`. */
async function nameShown(t: TestContext, port: number, servername: string): Promise<string> {
  const socket = await handshake(t, port, { servername, checkServerIdentity: () => undefined })
  assert.ok(typeof socket !== 'string', `${servername}: ${String(socket)}`)
  const certificate = new X509Certificate(socket.getPeerCertificate().raw)
  socket.destroy()
  return certificate.subjectAltName?.split(/DNS:|, /)[1] ?? ''
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < end, `waited for: ${what}`)
    await sleep(2)
  }
}

// ── Plain ─────────────────────────────────────────────────────────────────────────────────────────

test('a free port, its address, and both ends of a connection', async (t) => {
  const { listener, port, accepted } = await start(t)
  assert.deepEqual(listener.address, { address: '127.0.0.1', port, family: 'IPv4' })
  assert.ok(port > 0)
  const socket = client(t, port)
  await until(() => accepted.length === 1, 'accept')
  const info = accepted[0]?.info
  assert.equal(info?.remote.port, socket.localPort)
  assert.equal(info?.local.port, port)
  assert.equal(info?.tls, undefined)
  assert.equal(accepted[0]?.alpn, undefined)
  assert.equal(listener.connections, 1)
  socket.destroy()
  await until(() => listener.connections === 0, 'gone')
  assert.equal(info?.remote.address, '127.0.0.1', 'facts outlive the socket')
  client(t, port)
  await until(() => accepted.length === 2, 'accept')
  assert.notEqual(accepted[1]?.info.id, info?.id)
})

test('a Unix socket', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'socket')
  const { listener, accepted } = await start(t, { path, hostname: undefined })
  assert.deepEqual(listener.address, { address: path, port: 0, family: 'unix' })
  const socket = connect(path)
  t.after(() => socket.destroy())
  await until(() => accepted.length === 1, 'accept')
  assert.deepEqual(accepted[0]?.info.local, { address: path, port: 0, family: 'unix' })
  assert.deepEqual(accepted[0]?.info.remote, { address: '', port: 0, family: 'unix' })
})

test('a port that is taken rejects with the system’s error', async (t) => {
  const { port } = await start(t)
  await assert.rejects(start(t, { port }), { code: 'EADDRINUSE' })
})

test('after stop the port is free, and what stands goes on', async (t) => {
  const { listener, port, accepted } = await start(t)
  const socket = client(t, port)
  await until(() => accepted.length === 1, 'accept')
  await listener.stop()
  const second = await start(t, { port })
  assert.equal(second.port, port)
  assert.equal(listener.connections, 1)
  assert.ok(!socket.destroyed)
  await listener.stop()
  listener.destroyConnections()
  await until(() => listener.connections === 0, 'gone')
})

test('connections over maxConnections are dropped and counted', async (t) => {
  const { listener, port, accepted } = await start(t, { maxConnections: 2 })
  const sockets = [client(t, port), client(t, port), client(t, port), client(t, port)]
  await until(() => sockets.filter((socket) => socket.destroyed).length === 2, 'two are dropped')
  assert.equal(accepted.length, 2)
  assert.equal(listener.counters.refused, 2)
  assert.equal(listener.counters.accepted, 2)
  sockets.find((socket) => !socket.destroyed)?.destroy()
  await until(() => listener.connections === 1, 'room')
  client(t, port)
  await until(() => accepted.length === 3, 'accept')
})

test('an onConnection that throws loses that connection only', async (t) => {
  let calls = 0
  const { listener, port, errors } = await start(t, {
    onConnection: () => {
      throw new Error(`call ${++calls}`)
    },
  })
  const sockets = [client(t, port), client(t, port)]
  await until(() => sockets.every((socket) => socket.destroyed), 'dropped')
  assert.deepEqual(
    errors.map((error) => (error as Error).message),
    ['call 1', 'call 2'],
  )
  await until(() => listener.connections === 0, 'gone')
})

test('file descriptors run out: the listener survives and goes on', { skip: process.platform === 'win32' }, async (t) => {
  const index = fileURLToPath(new URL('index.ts', import.meta.url))
  const code = `
    const io = await import(${JSON.stringify(index)})
    const listener = await io.listen({
      clock: io.systemClock(), hostname: '127.0.0.1',
      onConnection: ({ socket }) => { socket.on('error', () => {}); socket.on('end', () => socket.destroy()); socket.resume(); socket.write(Buffer.from('hi')) },
    })
    process.send(listener.address.port)
    process.on('message', () => process.send(listener.connections))`
  const command = `ulimit -n 48; exec "${process.execPath}" --conditions=@heddle/source --no-warnings --input-type=module -e "$HEDDLE_CODE"`
  const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: { ...process.env, HEDDLE_CODE: code } })
  t.after(() => child.kill('SIGKILL'))
  const [port] = (await once(child, 'message')) as [number]
  const ask = async (): Promise<number> => {
    child.send('?')
    const [connections] = (await once(child, 'message')) as [number]
    return connections
  }
  const greeted = new Set<Socket>()
  const sockets = Array.from({ length: 80 }, () => {
    const socket = client(t, port)
    socket.on('data', () => greeted.add(socket))
    return socket
  })
  await until(() => sockets.every((socket) => socket.destroyed || greeted.has(socket)), 'each is served or dropped')
  const served = await ask()
  assert.ok(served >= 10 && served < 60, `${served} connections`)
  for (const socket of sockets) socket.destroy()
  for (let connections = served; connections > 0; connections = await ask()) await sleep(5)
  const late = client(t, port)
  await once(late, 'data')
  assert.equal(child.exitCode, null)
})

test(
  'several listeners share a port with reusePort',
  { skip: process.platform !== 'linux' || Number(process.versions.node.split('.')[0]) < 24 },
  async (t) => {
    const first = await start(t, { reusePort: true })
    const second = await start(t, { reusePort: true, port: first.port })
    for (let i = 0; i < 64; i++) client(t, first.port)
    await until(() => first.accepted.length + second.accepted.length === 64, 'all of them')
    assert.ok(first.accepted.length > 0 && second.accepted.length > 0, 'the kernel spreads them')
  },
)

// ── TLS ───────────────────────────────────────────────────────────────────────────────────────────

test('the identity follows the server name, and can be replaced while running', async (t) => {
  const { listener, port } = await start(t, {
    tls: {
      ...identity('default.example'),
      names: { 'a.example': identity('a.example'), '*.b.example': identity('*.b.example'), 'x.b.example': identity('x.b.example') },
    },
  })
  const shown = (name: string): Promise<string> => nameShown(t, port, name)
  assert.equal(await shown('a.example'), 'a.example')
  assert.equal(await shown('A.Example'), 'a.example')
  assert.equal(await shown('y.b.example'), '*.b.example')
  assert.equal(await shown('x.b.example'), 'x.b.example')
  assert.equal(await shown('z.y.b.example'), 'default.example', 'a wildcard stands for one label')
  assert.equal(await shown('b.example'), 'default.example')
  assert.equal(await shown(''), 'default.example', 'no server name')
  const standing = await handshake(t, port, { servername: 'default.example' })
  assert.ok(typeof standing !== 'string')

  listener.updateTls({ ...identity('new.example'), names: { 'c.example': identity('c.example') } })
  assert.equal(await shown('c.example'), 'c.example')
  assert.equal(await shown('a.example'), 'new.example')
  assert.equal(await shown(''), 'new.example')
  assert.ok(!standing.destroyed, 'what stands is left alone')

  for (const bad of [
    { cert: 'nonsense', key: 'nonsense' },
    { ...identity('d.example'), names: { e: { cert: 'x', key: 'y' } } },
  ]) {
    assert.throws(() => listener.updateTls(bad), UsageError)
  }
  assert.throws(() => listener.updateTls({ ...identity('d.example'), requestCert: true }), UsageError)
  assert.equal(await shown('c.example'), 'c.example', 'a bad update changes nothing')
  assert.equal(await shown(''), 'new.example')
})

test('an identity that cannot be used is a UsageError, and updateTls needs TLS', async (t) => {
  await assert.rejects(start(t, { tls: { cert: 'nonsense', key: 'nonsense' } }), UsageError)
  const { listener } = await start(t)
  assert.throws(() => listener.updateTls(identity('a.example')), UsageError)
})

test('sniCallback is asked for other names; where it fails only that handshake does', async (t) => {
  const asked: string[] = []
  const late = identity('late.example')
  const { listener, port, errors } = await start(t, {
    tls: {
      ...identity('default.example'),
      names: { 'known.example': identity('known.example') },
      sniCallback: (name) => {
        asked.push(name)
        if (name === 'throws.example') throw new Error('the callback is broken')
        if (name === 'rejects.example') return Promise.reject(new Error('the promise is broken'))
        if (name === 'bad.example') return { cert: 'nonsense', key: 'nonsense' }
        if (name === 'late.example') return sleep(5).then(() => late)
        return undefined
      },
    },
  })
  assert.equal(await nameShown(t, port, 'late.example'), 'late.example')
  assert.equal(await nameShown(t, port, 'other.example'), 'default.example')
  assert.equal(await nameShown(t, port, 'known.example'), 'known.example')
  for (const name of ['throws.example', 'rejects.example', 'bad.example']) {
    assert.equal(typeof (await handshake(t, port, { servername: name })), 'string')
  }
  assert.equal(await nameShown(t, port, 'late.example'), 'late.example')
  assert.deepEqual(asked, ['late.example', 'other.example', 'throws.example', 'rejects.example', 'bad.example', 'late.example'])
  assert.equal(listener.counters.handshakesFailed, 3)
  assert.equal(listener.handshakes, 0)
  assert.ok(errors.some((error) => (error as Error).message === 'the callback is broken'))
})

test('ALPN: our order decides, nothing in common is the alert, no ALPN at all is let through', async (t) => {
  const { listener, port, accepted } = await start(t, { tls: { ...identity('a.example'), alpn: ['h2', 'http/1.1'] } })
  const chosen = async (protocols: string[] | undefined): Promise<string | false | null> => {
    const socket = await handshake(t, port, { servername: 'a.example', ALPNProtocols: protocols })
    return typeof socket === 'string' ? socket : socket.alpnProtocol
  }
  assert.equal(await chosen(['http/1.1', 'h2']), 'h2')
  assert.equal(await chosen(['http/1.1']), 'http/1.1')
  assert.equal(await chosen(undefined), false)
  assert.equal(await chosen(['spdy/1']), 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL')
  assert.deepEqual(
    accepted.map(({ alpn }) => alpn),
    ['h2', 'http/1.1', undefined],
  )
  assert.equal(listener.counters.handshakesFailed, 1)
})

test('alpnCallback chooses; a throw or nonsense fails that handshake only', async (t) => {
  const answers: Record<string, () => string | undefined> = {
    'one.example': () => 'http/1.1',
    'none.example': () => undefined,
    'nonsense.example': () => 'not offered',
    'throws.example': () => {
      throw new Error('the callback is broken')
    },
  }
  const { listener, port, errors } = await start(t, {
    tls: { ...identity('one.example', '*.example'), alpnCallback: (name) => answers[name]?.() },
  })
  for (const name of ['none.example', 'nonsense.example', 'throws.example']) {
    assert.equal(await handshake(t, port, { servername: name }), 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL')
  }
  const socket = await handshake(t, port, { servername: 'one.example' })
  assert.ok(typeof socket !== 'string')
  assert.equal(listener.counters.handshakesFailed, 3)
  assert.ok(errors.some((error) => (error as Error).message === 'the callback is broken'))
})

test('client certificates: asked for, verified, and told', async (t) => {
  const mine = makeCertificate({ names: ['me.example'], ca: authority })
  const strangers = makeCertificate({ names: ['stranger.example'] })
  const tls = { ...identity('a.example'), requestCert: true, ca: authority.cert }
  const servername = 'a.example'
  const strict = await start(t, { tls })
  assert.ok(typeof (await handshake(t, strict.port, { servername, cert: mine.cert, key: mine.key })) !== 'string')
  assert.equal(typeof (await handshake(t, strict.port, { servername })), 'string')
  assert.equal(typeof (await handshake(t, strict.port, { servername, cert: strangers.cert, key: strangers.key })), 'string')
  assert.equal(strict.accepted.length, 1)
  await until(() => strict.listener.counters.handshakesFailed === 2, 'both failures')
  const facts = strict.accepted[0]?.info.tls
  assert.equal(facts?.authorized, true)
  assert.deepEqual(Buffer.from(facts?.peerCertificate ?? []), new X509Certificate(mine.cert).raw)
  strict.listener.destroyConnections()
  await until(() => strict.listener.connections === 0, 'gone')
  assert.ok((facts?.peerCertificate?.length ?? 0) > 0, 'facts outlive the socket')

  const lax = await start(t, { tls: { ...tls, rejectUnauthorized: false } })
  assert.ok(typeof (await handshake(t, lax.port, { servername })) !== 'string')
  assert.ok(typeof (await handshake(t, lax.port, { servername, cert: strangers.cert, key: strangers.key })) !== 'string')
  assert.deepEqual(
    lax.accepted.map(({ info }) => [info.tls?.authorized, info.tls?.peerCertificate !== undefined]),
    [
      [false, false],
      [false, true],
    ],
  )
})

test('handshakes that fail, stall or are broken off end, are counted, and hurt nobody', async (t) => {
  const { listener, port, errors } = await start(t, { tls: identity('a.example'), handshakeTimeout: 150 })
  const garbage = client(t, port)
  garbage.write('GET / HTTP/1.1\r\n\r\n')
  const silent = client(t, port)
  const leaves = client(t, port)
  leaves.on('connect', () => leaves.end(Buffer.from([22, 3, 1, 2])))
  const breaks = client(t, port)
  breaks.on('connect', () => breaks.resetAndDestroy())
  await until(() => [garbage, silent, leaves, breaks].every((socket) => socket.destroyed), 'all of them are gone')
  await until(() => listener.counters.handshakesFailed === 4, 'each counted once')
  assert.equal(listener.handshakes, 0)
  await until(() => listener.connections === 0, 'nothing is left')
  assert.ok(errors.every((error) => error instanceof HeddleError && error.code === 'TLS_FAILED'))
  assert.ok(typeof (await handshake(t, port, { servername: 'a.example' })) !== 'string')
})

test('handshakes in flight are bounded', async (t) => {
  const { listener, port } = await start(t, { tls: identity('a.example'), maxHandshakes: 3 })
  const stalled = [client(t, port), client(t, port), client(t, port)]
  await until(() => listener.handshakes === 3, 'three in flight')
  const fourth = client(t, port)
  await until(() => fourth.destroyed, 'the fourth is dropped')
  assert.equal(listener.counters.handshakesRefused, 1)
  stalled[0]?.destroy()
  await until(() => listener.handshakes === 2, 'one is gone')
  assert.ok(typeof (await handshake(t, port, { servername: 'a.example' })) !== 'string')
  listener.destroyConnections()
  await until(() => listener.handshakes === 0 && listener.connections === 0, 'destroyConnections reaches handshakes too')
})

test('handshakes that take long make room when too many are in flight', async (t) => {
  const { listener, port, accepted } = await start(t, { tls: identity('a.example'), maxHandshakes: 3 })
  const done = await handshake(t, port, { servername: 'a.example' })
  const stalled = [client(t, port), client(t, port), client(t, port)] as const
  await until(() => listener.handshakes === 3, 'three in flight')
  await sleep(1_050)
  assert.ok(typeof (await handshake(t, port, { servername: 'a.example' })) !== 'string', 'it gets the place of the first')
  await until(() => stalled[0].destroyed && listener.handshakes === 2, 'the first is gone')
  assert.deepEqual([stalled[1].destroyed, stalled[2].destroyed, listener.counters.handshakesRefused], [false, false, 0])
  assert.ok(typeof done !== 'string' && !done.destroyed && accepted.length === 2, 'who has ended one is not in flight')
  assert.equal(listener.counters.handshakesFailed, 1)
})

test('TLS 1.2 renegotiation is refused', async (t) => {
  const { port } = await start(t, { tls: { ...identity('a.example'), names: { 'b.example': identity('b.example') } } })
  for (const servername of ['a.example', 'b.example']) {
    const socket = await handshake(t, port, { servername, maxVersion: 'TLSv1.2' })
    assert.ok(typeof socket !== 'string')
    const outcome = new Promise<string>((resolve) => {
      socket.renegotiate({}, (error) => resolve(error === null ? 'renegotiated' : 'refused'))
      socket.on('error', () => resolve('refused')).on('close', () => resolve('refused'))
      setTimeout(() => resolve('ignored'), 2_000).unref()
    })
    assert.equal(await outcome, 'refused')
  }
})

test('sessions resume at another listener with the same ticket keys', async (t) => {
  const tls = { ...identity('a.example'), ticketKeys: randomBytes(48) }
  const first = await start(t, { tls })
  const second = await start(t, { tls })
  const sessions: Buffer[] = []
  const socket = connectTls({ host: '127.0.0.1', port: first.port, ca: authority.cert, servername: 'a.example' })
  t.after(() => socket.destroy())
  socket.on('session', (session: Buffer) => sessions.push(session))
  await once(socket, 'data')
  await until(() => sessions.length > 0, 'a ticket')
  const resumed = await handshake(t, second.port, { servername: 'a.example', session: sessions[0] })
  assert.ok(typeof resumed !== 'string' && resumed.isSessionReused())
})
