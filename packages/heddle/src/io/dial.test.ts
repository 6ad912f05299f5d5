import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect, createServer, type AddressInfo, type LookupFunction, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { NetworkError, TimeoutError, UsageError, type HeddleError } from '../http/index.ts'
import { makeAuthority, makeCertificate } from '../testing/index.ts'
import { dial, type Dialled, type DialOptions, type DialTarget } from './dial.ts'
import { systemClock } from './system-clock.ts'
import { TestEngine } from './test-engine.test.ts'
import { TlsSessions } from './tls-client.ts'

const clock = systemClock()
const authority = makeAuthority()
const certificate = makeCertificate({ names: ['localhost', 'origin.example'], ipAddresses: ['127.0.0.1'], ca: authority })

type Outcome = { readonly error: HeddleError; readonly dialled: undefined } | { readonly error: undefined; readonly dialled: Dialled }

/** Dials once and checks what holds for every dial. */
async function tryDial(target: DialTarget, options: Omit<DialOptions, 'clock'> = {}): Promise<Outcome> {
  let returned = false
  let calls = 0
  const outcome = await new Promise<Outcome>((resolve) => {
    dial(target, { clock, connectTimeout: 5000, ...options }, (error, dialled) => {
      assert.ok(returned, 'done comes after dial returned')
      assert.equal(++calls, 1, 'done comes once')
      assert.notEqual(error === undefined, dialled === undefined)
      resolve({ error, dialled } as Outcome)
    })
    returned = true
  })
  await sleep(5)
  return outcome
}

async function connected(t: TestContext, target: DialTarget, options: Omit<DialOptions, 'clock'> = {}): Promise<Dialled> {
  const { error, dialled } = await tryDial(target, options)
  if (dialled === undefined) throw error as Error
  t.after(() => dialled.socket.destroy())
  return dialled
}

async function refused(target: DialTarget, options: Omit<DialOptions, 'clock'> = {}): Promise<HeddleError> {
  const { error, dialled } = await tryDial(target, options)
  dialled?.socket.destroy()
  assert.ok(error !== undefined, 'it should have failed')
  assert.equal(error.unprocessed, true)
  return error
}

/** A TCP server on loopback; its connections are destroyed at the end. */
async function serveTcp(t: TestContext, onConnection: (socket: Socket) => void, hostname = '127.0.0.1', port = 0): Promise<Served> {
  const server = createServer((socket) => {
    onConnection(socket)
    // A socket that nobody reads does not notice that its peer went.
    socket.resume()
  })
  return started(t, server, hostname, port)
}

async function serveTls(t: TestContext, options: TlsOptions, onConnection: (socket: TLSSocket) => void): Promise<Served> {
  const server = createTlsServer(options, (socket) => {
    onConnection(socket)
    socket.on('error', () => {}).resume()
  })
  server.on('tlsClientError', () => {})
  return started(t, server)
}

interface Served {
  readonly port: number
  /** Connections open now. */
  readonly sockets: Set<Socket>
}

async function started(t: TestContext, server: Server, hostname = '127.0.0.1', port = 0): Promise<Served> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.listen(port, hostname)
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < end, `waited for: ${what}`)
    await sleep(2)
  }
}

function lookupOf(...addresses: string[]): LookupFunction {
  return ((_host: string, _options: unknown, done: (error: null, found: object[]) => void) => {
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }) as unknown as LookupFunction
}

// ── Names ─────────────────────────────────────────────────────────────────────────────────────────

test('a name is looked up once, for all addresses; an address is not', async (t) => {
  const { port } = await serveTcp(t, () => {})
  const asked: unknown[] = []
  const lookup = ((host: string, options: object, done: (error: null, found: string, family: number) => void) => {
    asked.push([host, options])
    setImmediate(() => done(null, '127.0.0.1', 4))
  }) as unknown as LookupFunction
  const dialled = await connected(t, { host: 'origin.example', port }, { lookup })
  assert.deepEqual(asked, [['origin.example', { all: true, family: 0, order: 'verbatim' }]])
  assert.equal(dialled.info.remote.port, port)
  assert.equal(dialled.info.remote.address, '127.0.0.1')
  assert.equal(dialled.info.tls, undefined)
  assert.equal(dialled.alpn, undefined)
  await connected(t, { host: '127.0.0.1', port }, { lookup })
  assert.equal(asked.length, 1)
})

test('localhost is found without a lookup function', async (t) => {
  const { port } = await serveTcp(t, () => {})
  await connected(t, { host: 'localhost', port })
})

test('what is wrong with a name is DNS_FAILED', async () => {
  const failing = (answer: (done: (error: Error | null, found?: unknown) => void) => void): LookupFunction =>
    ((_host: string, _options: unknown, done: (error: Error | null, found?: unknown) => void) => answer(done)) as unknown as LookupFunction
  const enotfound = Object.assign(new Error('getaddrinfo ENOTFOUND origin.example'), { code: 'ENOTFOUND' })
  for (const [lookup, text] of [
    [failing((done) => done(enotfound)), /origin\.example could not be resolved: getaddrinfo ENOTFOUND/],
    [failing((done) => setImmediate(done, enotfound)), /ENOTFOUND/],
    [failing((done) => done(null, [])), /it has no address/],
    [failing((done) => done(null, undefined)), /it has no address/],
    [failing((done) => done(null, [{ address: 'nonsense', family: 4 }])), /it has no address/],
    [
      failing(() => {
        throw new Error('the function is broken')
      }),
      /the function is broken/,
    ],
  ] as const) {
    const error = await refused({ host: 'origin.example', port: 1 }, { lookup })
    assert.ok(error instanceof NetworkError)
    assert.equal(error.code, 'DNS_FAILED')
    assert.match(error.message, text)
  }
  const wrongFamily = await refused({ host: 'origin.example', port: 1 }, { lookup: lookupOf('127.0.0.1'), family: 6 })
  assert.equal(wrongFamily.code, 'DNS_FAILED')
})

test('a lookup that answers twice counts once', async (t) => {
  const { port, sockets } = await serveTcp(t, () => {})
  const lookup = ((_host: string, _options: unknown, done: (error: null, found: object[]) => void) => {
    done(null, [{ address: '127.0.0.1', family: 4 }])
    done(null, [{ address: '127.0.0.1', family: 4 }])
  }) as unknown as LookupFunction
  await connected(t, { host: 'origin.example', port }, { lookup })
  await sleep(20)
  assert.equal(sockets.size, 1)
})

// ── Addresses ─────────────────────────────────────────────────────────────────────────────────────

test('an address that refuses is followed by the next at once', { skip: process.platform !== 'linux' }, async (t) => {
  const { port } = await serveTcp(t, () => {})
  const begin = performance.now()
  const dialled = await connected(
    t,
    { host: 'origin.example', port },
    { lookup: lookupOf('127.0.0.2', '127.0.0.3', '127.0.0.1'), attemptDelay: 4000 },
  )
  assert.equal(dialled.info.remote.address, '127.0.0.1')
  assert.ok(performance.now() - begin < 3000)
})

test('when every address fails the error tells of all of them', async (t) => {
  const { port } = await serveTcp(t, () => {})
  const free = await freePort()
  assert.notEqual(port, free)
  const error = await refused({ host: 'origin.example', port: free }, { lookup: lookupOf('127.0.0.1', '::1') })
  assert.equal(error.code, 'CONNECT_FAILED')
  assert.match(error.message, /no connection to origin\.example:\d+: connect ECONNREFUSED 127\.0\.0\.1:\d+; connect E[A-Z]+ ::1:\d+/)
  assert.ok(error.cause instanceof AggregateError)
  assert.equal(error.cause.errors.length, 2)
})

test('one address that fails is told with its own error', async () => {
  const error = await refused({ host: '127.0.0.1', port: await freePort() })
  assert.equal(error.code, 'CONNECT_FAILED')
  assert.equal((error.cause as NodeJS.ErrnoException).code, 'ECONNREFUSED')
})

test(
  'a black hole first: the second address wins after the delay, and the timeout names the phase',
  { skip: process.platform !== 'linux' },
  async (t) => {
    const { port } = await serveTcp(t, () => {})
    await blackHole(t, '127.0.0.2', port)
    const begin = performance.now()
    const dialled = await connected(t, { host: 'origin.example', port }, { lookup: lookupOf('127.0.0.2', '127.0.0.1'), attemptDelay: 100 })
    assert.equal(dialled.info.remote.address, '127.0.0.1')
    assert.ok(performance.now() - begin >= 99)
    const error = await refused({ host: '127.0.0.2', port }, { connectTimeout: 120 })
    assert.ok(error instanceof TimeoutError)
    assert.equal(error.code, 'CONNECT_TIMEOUT')
    assert.match(error.message, /no connection to 127\.0\.0\.2:\d+ within 120 ms \(connecting\)/)
  },
)

test('localAddress is where the connection comes from', { skip: process.platform !== 'linux' }, async (t) => {
  const { port, sockets } = await serveTcp(t, () => {})
  await connected(t, { host: '127.0.0.1', port }, { localAddress: '127.0.0.9' })
  await until(() => sockets.size > 0, 'accept')
  assert.equal([...sockets][0]?.remoteAddress, '127.0.0.9')
})

test('targets that cannot be are the caller’s mistake', () => {
  const ignore = (): void => {}
  assert.throws(() => dial({ host: '', port: 80 }, { clock }, ignore), UsageError)
  assert.throws(() => dial({ host: 'a', port: 65_536 }, { clock }, ignore), UsageError)
  assert.throws(() => dial({ host: 'a', port: 1.5 }, { clock }, ignore), UsageError)
  assert.throws(() => dial({ path: '' }, { clock }, ignore), UsageError)
  assert.throws(() => dial({ host: 'a', port: 80 }, { clock, localAddress: 'nowhere' }, ignore), UsageError)
  assert.throws(() => dial({ host: 'a', port: 80 }, { clock, proxy: { host: '', port: 1 } }, ignore), UsageError)
})

test('a Unix socket that is not there', async () => {
  const error = await refused({ path: join(tmpdir(), 'heddle-no-such-socket') })
  assert.equal(error.code, 'CONNECT_FAILED')
  assert.match(error.message, /ENOENT/)
})

// ── TLS ───────────────────────────────────────────────────────────────────────────────────────────

test('TLS: names, ALPN and facts', async (t) => {
  const names: unknown[] = []
  const { port } = await serveTls(t, { ...certificate, ALPNProtocols: ['http/1.1'] }, (socket) => names.push(socket.servername))
  const byName = await connected(t, { host: 'localhost', port }, { tls: { ca: authority.cert } })
  assert.equal(byName.alpn, 'http/1.1')
  assert.equal(byName.info.tls?.version, 'TLSv1.3')
  assert.equal(byName.info.tls.authorized, true)
  assert.equal(byName.info.tls.serverName, 'localhost')
  assert.ok((byName.info.tls.peerCertificate?.length ?? 0) > 300)
  const byAddress = await connected(t, { host: '127.0.0.1', port }, { tls: { ca: authority.cert } })
  assert.equal(byAddress.info.tls?.serverName, undefined, 'an address is no server name')
  const byOther = await connected(t, { host: '127.0.0.1', port }, { tls: { ca: authority.cert, servername: 'origin.example', alpn: [] } })
  assert.equal(byOther.alpn, undefined)
  assert.deepEqual(names, ['localhost', false, 'origin.example'])
})

test('TLS: what is wrong reaches the user in words', async (t) => {
  const stranger = makeCertificate({ names: ['localhost'] })
  const expired = makeCertificate({ names: ['localhost'], ca: authority, days: -1 })
  const elsewhere = makeCertificate({ names: ['elsewhere.example'], ca: authority })
  const tls = { ca: authority.cert }
  const cases: [TlsOptions, DialOptions['tls'], RegExp][] = [
    [stranger, tls, /TLS with localhost failed: .*self-signed certificate.*DEPTH_ZERO_SELF_SIGNED_CERT/],
    [certificate, {}, /unable to verify|self-signed certificate in certificate chain/],
    [expired, tls, /certificate has expired \(CERT_HAS_EXPIRED\)/],
    [elsewhere, tls, /elsewhere\.example/],
    [{ ...certificate, maxVersion: 'TLSv1.2' }, { ...tls, minVersion: 'TLSv1.3' }, /protocol version|PROTOCOL_VERSION/i],
    [
      { ...certificate, ALPNProtocols: ['h2'] },
      tls,
      /failed: the server speaks none of http\/1\.1 \(ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL\)/,
    ],
    [{ ...certificate, requestCert: true, ca: authority.cert, maxVersion: 'TLSv1.2' }, tls, /TLS with localhost failed/],
    [
      certificate,
      {
        ...tls,
        checkServerIdentity: () => {
          throw new Error('the check is broken')
        },
      },
      /the check is broken/,
    ],
    [certificate, { ...tls, checkServerIdentity: () => new Error('not to my liking') }, /not to my liking/],
    [
      certificate,
      {
        ...tls,
        keylog: () => {
          throw new Error('the log is broken')
        },
      },
      /the log is broken/,
    ],
    [certificate, { ...tls, cert: 'no certificate', key: 'no key' }, /TLS with localhost cannot be begun/],
  ]
  for (const [server, client, text] of cases) {
    const { port } = await serveTls(t, server, () => {})
    const error = await refused({ host: 'localhost', port }, { tls: client })
    assert.equal(error.code, 'TLS_FAILED', error.message)
    assert.match(error.message, text)
  }
})

test('TLS: rejectUnauthorized false and checkServerIdentity let through what they shall', async (t) => {
  const stranger = makeCertificate({ names: ['elsewhere.example'] })
  const { port } = await serveTls(t, stranger, () => {})
  const lax = await connected(t, { host: 'localhost', port }, { tls: { rejectUnauthorized: false } })
  assert.equal(lax.info.tls?.authorized, false)
  const pinned = await connected(t, { host: 'localhost', port }, { tls: { ca: stranger.cert, checkServerIdentity: () => undefined } })
  assert.equal(pinned.info.tls?.authorized, true)
})

test('TLS: a server that speaks no TLS, hangs up, or never answers', async (t) => {
  const plain = await serveTcp(t, (socket) => socket.on('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')))
  const hangsUp = await serveTcp(t, (socket) => socket.once('data', () => socket.destroy()))
  const silent = await serveTcp(t, () => {})
  const spoken = await refused({ host: 'localhost', port: plain.port }, { tls: {} })
  assert.equal(spoken.message, 'TLS with localhost failed: what answers there speaks no TLS (ERR_SSL_WRONG_VERSION_NUMBER)')
  assert.equal(spoken.code, 'TLS_FAILED')
  const hungUp = await refused({ host: 'localhost', port: hangsUp.port }, { tls: {} })
  assert.equal(hungUp.code, 'TLS_FAILED')
  assert.match(hungUp.message, /closed|disconnected|ECONNRESET/)
  const error = await refused({ host: 'localhost', port: silent.port }, { tls: {}, connectTimeout: 100 })
  assert.equal(error.code, 'CONNECT_TIMEOUT')
  assert.match(error.message, /shaking hands for TLS/)
  await until(() => silent.sockets.size === 0, 'nothing left behind')
})

test('TLS: a client certificate is shown', async (t) => {
  const mine = makeCertificate({ names: ['me.example'], ca: authority })
  const seen: boolean[] = []
  const { port } = await serveTls(t, { ...certificate, requestCert: true, ca: authority.cert }, (socket) => seen.push(socket.authorized))
  await connected(t, { host: 'localhost', port }, { tls: { ca: authority.cert, cert: mine.cert, key: mine.key } })
  await until(() => seen.length > 0, 'the connection')
  assert.deepEqual(seen, [true])
})

test('TLS: sessions resume, each of them once', async (t) => {
  const { port } = await serveTls(t, certificate, (socket) => socket.write('.'))
  const tls = { ca: authority.cert, sessions: new TlsSessions() }
  const resumed: boolean[] = []
  for (let i = 0; i < 3; i++) {
    const dialled = await connected(t, { host: 'localhost', port }, { tls })
    const engine = new TestEngine()
    dialled.attach(engine)
    await until(() => engine.text === '.', 'a byte, and the ticket before it')
    resumed.push((dialled.socket as TLSSocket).isSessionReused())
    dialled.socket.destroy()
  }
  assert.deepEqual(resumed, [false, true, true])
})

test('the session cache is bounded and hands each session out once', () => {
  const sessions = new TlsSessions(2)
  for (const name of ['a1', 'b1', 'a2', 'c1', 'c2', 'c3', 'c4', 'c5']) sessions.put(name.charAt(0), Buffer.from(name))
  const takeAll = (name: string): string[] => Array.from({ length: 6 }, () => sessions.take(name)?.toString() ?? '')
  assert.deepEqual(takeAll('b'), ['', '', '', '', '', ''], 'the oldest name went')
  assert.deepEqual(takeAll('a'), ['a2', 'a1', '', '', '', ''])
  assert.deepEqual(takeAll('c'), ['c5', 'c4', 'c3', 'c2', '', ''])
})

test('SSLKEYLOGFILE and the keylog option get the secrets', async (t) => {
  const { port } = await serveTls(t, certificate, () => {})
  const lines: string[] = []
  await connected(
    t,
    { host: 'localhost', port },
    { tls: { ca: authority.cert, keylog: (line) => lines.push(Buffer.from(line).toString()) } },
  )
  assert.ok(lines.some((line) => /^CLIENT_TRAFFIC_SECRET_0 [0-9a-f]{64} [0-9a-f]+\n$/.test(line)))
  const folder = await mkdtemp(join(tmpdir(), 'heddle-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'keys.log')
  const index = fileURLToPath(new URL('index.ts', import.meta.url))
  const code = `
    const io = await import(${JSON.stringify(index)})
    io.dial({ host: 'localhost', port: ${port} }, { clock: io.systemClock(), tls: { rejectUnauthorized: false } }, (error, dialled) => {
      if (error) throw error
      dialled.socket.destroy()
    })`
  await promisify(execFile)(process.execPath, ['--conditions=@heddle/source', '--no-warnings', '--input-type=module', '-e', code], {
    env: { ...process.env, SSLKEYLOGFILE: file },
    timeout: 20_000,
  })
  assert.match(await readFile(file, 'latin1'), /^SERVER_HANDSHAKE_TRAFFIC_SECRET [0-9a-f]{64} /m)
})

// ── Proxies ───────────────────────────────────────────────────────────────────────────────────────

interface Proxy {
  readonly port: number
  readonly asked: { readonly url: string | undefined; readonly authorization: string | undefined }[]
  readonly sockets: Set<Socket>
}

/** A proxy of Node's http that opens tunnels to loopback, whatever the name. */
async function serveProxy(t: TestContext, options: { tls?: TlsOptions; answer?: string } = {}): Promise<Proxy> {
  const asked: Proxy['asked'] = []
  const server = options.tls === undefined ? createHttpServer() : createHttpsServer(options.tls)
  server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    asked.push({ url: request.url, authorization: request.headers['proxy-authorization'] })
    client.on('error', () => {})
    if (options.answer !== undefined) {
      client.end(options.answer)
      return
    }
    const origin = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      origin.write(head)
      origin.pipe(client).pipe(origin)
    })
    origin.on('error', () => client.destroy())
    client.on('close', () => origin.destroy())
  })
  return { ...(await started(t, server)), asked }
}

test('a tunnel through a proxy carries TLS to the target, which the proxy resolves', async (t) => {
  const { port } = await serveTls(t, { ...certificate, ALPNProtocols: ['http/1.1'] }, (socket) => socket.pipe(socket))
  const proxy = await serveProxy(t)
  const tls = { ca: authority.cert }
  const lookup = lookupOf() // never asked
  const dialled = await connected(
    t,
    { host: 'origin.example', port },
    { tls, lookup, proxy: { host: '127.0.0.1', port: proxy.port, authorization: 'Basic Zm9vOmJhcg==' } },
  )
  assert.deepEqual(proxy.asked, [{ url: `origin.example:${port}`, authorization: 'Basic Zm9vOmJhcg==' }])
  assert.equal(dialled.alpn, 'http/1.1')
  assert.equal(dialled.info.tls?.serverName, 'origin.example')
  const engine = new TestEngine()
  dialled.attach(engine)
  engine.send('through the tunnel')
  await until(() => engine.text === 'through the tunnel', 'the echo')
})

test('a tunnel may be plain, and bytes that came with the answer are not lost', async (t) => {
  const { port } = await serveTcp(t, (socket) => {
    socket.write('220 greeting;')
    socket.pipe(socket)
  })
  const proxy = await serveProxy(t)
  const dialled = await connected(t, { host: '::1', port }, { proxy: { host: '127.0.0.1', port: proxy.port } })
  assert.equal(proxy.asked[0]?.url, `[::1]:${port}`)
  const engine = new TestEngine()
  dialled.attach(engine)
  engine.send('hello')
  await until(() => engine.text === '220 greeting;hello', 'both')
  // The very same segment.
  const eager = await serveTcp(t, (socket) => socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\nearly bytes')))
  const second = await connected(t, { host: 'origin.example', port: 1 }, { proxy: { host: '127.0.0.1', port: eager.port } })
  const early = new TestEngine()
  second.attach(early)
  await until(() => early.text === 'early bytes', 'the early bytes')
})

test('a proxy may be spoken to by TLS, with TLS inside', async (t) => {
  const { port } = await serveTls(t, certificate, (socket) => socket.pipe(socket))
  const proxy = await serveProxy(t, { tls: certificate })
  const tls = { ca: authority.cert }
  const dialled = await connected(t, { host: 'origin.example', port }, { tls, proxy: { host: 'localhost', port: proxy.port, tls } })
  const engine = new TestEngine()
  dialled.attach(engine)
  const body = Buffer.alloc(300_000, 'p')
  engine.send(body)
  await until(() => engine.received.reduce((sum, one) => sum + one.length, 0) === body.length, 'the echo')
  engine.closing = 'close'
  engine.onDirty()
  await until(() => proxy.sockets.size === 0, 'nothing left behind')
})

test('a proxy that opens no tunnel is PROXY_FAILED, and says why', async (t) => {
  const target = { host: 'origin.example', port: 443 }
  for (const [answer, text] of [
    [
      'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n',
      /it answered 407 Proxy Auth/,
    ],
    ['HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\nsorry', /it answered 502 Bad Gateway/],
    ['nonsense\r\n\r\n', /opened no tunnel/],
    ['', /opened no tunnel/],
  ] as const) {
    const { port, sockets } = await serveProxy(t, { answer })
    const error = await refused(target, { tls: {}, proxy: { host: '127.0.0.1', port } })
    assert.equal(error.code, 'PROXY_FAILED', error.message)
    assert.match(error.message, text)
    await until(() => sockets.size === 0, 'nothing left behind')
  }
  const silent = await serveTcp(t, () => {})
  const late = await refused(target, { proxy: { host: '127.0.0.1', port: silent.port }, connectTimeout: 100 })
  assert.equal(late.code, 'CONNECT_TIMEOUT')
  assert.match(late.message, /origin\.example:443 .*asking the proxy/)
  await until(() => silent.sockets.size === 0, 'nothing left behind')
  assert.match(late.message, new RegExp(`by the proxy 127\\.0\\.0\\.1:${silent.port} `))
})

test('what fails on the way to a proxy is PROXY_FAILED too, and names it, not the origin', async (t) => {
  const origin = { host: 'origin.example', port: 443 }
  const port = await freePort()
  const untrusted = await serveProxy(t, { tls: certificate })
  const lookup = lookupOf()
  const cases: [DialTarget, Omit<DialOptions, 'clock'>, RegExp][] = [
    [
      origin,
      { proxy: { host: '127.0.0.1', port } },
      new RegExp(`^the proxy 127\\.0\\.0\\.1:${port} cannot be used: no connection to it: .*ECONNREFUSED`),
    ],
    [
      { host: '127.0.0.1', port },
      { targetIsProxy: true },
      new RegExp(`^the proxy 127\\.0\\.0\\.1:${port} cannot be used: no connection to it: .*ECONNREFUSED`),
    ],
    [
      origin,
      { lookup, proxy: { host: 'proxy.example', port: 3128 } },
      /^the proxy proxy\.example:3128 cannot be used: its name could not be resolved: it has no address/,
    ],
    [
      { host: 'proxy.example', port: 3128 },
      { lookup, targetIsProxy: true },
      /^the proxy proxy\.example:3128 cannot be used: its name could not be resolved/,
    ],
    [
      origin,
      { proxy: { host: '127.0.0.1', port: untrusted.port, tls: {} } },
      /^the proxy 127\.0\.0\.1:\d+ cannot be used: TLS with 127\.0\.0\.1 failed/,
    ],
    [
      { host: '127.0.0.1', port: untrusted.port },
      { tls: {}, targetIsProxy: true },
      /^the proxy 127\.0\.0\.1:\d+ cannot be used: TLS with 127\.0\.0\.1 failed/,
    ],
  ]
  for (const [target, options, message] of cases) {
    const error = await refused(target, options)
    assert.match(error.message, message)
    assert.deepEqual([error.code, error.unprocessed, error.cause instanceof Error], ['PROXY_FAILED', true, true], error.message)
  }
  const late = await refused(
    { host: 'proxy.example', port: 1 },
    { lookup: (() => {}) as unknown as LookupFunction, targetIsProxy: true, connectTimeout: 20 },
  )
  assert.equal(late.message, 'no connection to the proxy proxy.example:1 within 20 ms (looking up the name)')
})

// ── Cancelling ────────────────────────────────────────────────────────────────────────────────────

test('cancel leaves nothing behind, whatever is going on', async (t) => {
  const echo = await serveTls(t, certificate, () => {})
  const silent = await serveTcp(t, () => {})
  const target = { host: 'localhost', port: silent.port }
  const never = (() => {}) as unknown as LookupFunction
  const lookup = lookupOf('127.0.0.1')
  const cases: [string, DialTarget, Omit<DialOptions, 'clock'>, number][] = [
    ['at once', target, {}, 0],
    ['looking up', target, { lookup: never }, 10],
    ['connecting', target, { lookup }, 0],
    ['shaking hands', target, { lookup, tls: {} }, 30],
    ['asking a proxy', { host: 'x', port: 1 }, { proxy: { host: '127.0.0.1', port: silent.port } }, 30],
    ['shaking hands with a proxy', { host: 'x', port: 1 }, { proxy: { host: '127.0.0.1', port: silent.port, tls: {} } }, 30],
    ['shaking hands that work', { host: 'localhost', port: echo.port }, { lookup, tls: { ca: authority.cert } }, 3],
  ]
  for (const [what, to, options, delay] of cases) {
    let called = false
    let arrived: Dialled | undefined
    const dialling = dial(to, { clock, ...options }, (_error, dialled) => {
      called = true
      arrived = dialled
    })
    if (delay > 0) await sleep(delay)
    const before = called
    dialling.cancel()
    dialling.cancel()
    await sleep(20)
    assert.equal(called, before, `${what}: nothing is told after cancel`)
    arrived?.socket.destroy()
    await until(() => silent.sockets.size === 0 && echo.sockets.size === 0, `${what}: sockets are gone`)
  }
})

test('a pending dial is what keeps a process running, and nothing of it after cancel', async (t) => {
  const silent = await serveTcp(t, () => {})
  const index = fileURLToPath(new URL('index.ts', import.meta.url))
  const code = `
    const io = await import(${JSON.stringify(index)})
    const dialling = io.dial({ host: '127.0.0.1', port: ${silent.port} }, { clock: io.systemClock(), tls: {} }, () => console.log('told'))
    setTimeout(() => dialling.cancel(), 100)`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=@heddle/source', '--no-warnings', '--input-type=module', '-e', code],
    { timeout: 20_000 },
  )
  assert.equal(stdout, '')
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Linux answers no SYN once the backlog of a listener that accepts nothing is full. */
async function blackHole(t: TestContext, hostname: string, port: number): Promise<void> {
  const code = `require('node:net').createServer().listen({ host: '${hostname}', port: ${port}, backlog: 1 }, () => console.log('up'))`
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  for (let i = 0; i < 6; i++) {
    const filler = connect(port, hostname)
    filler.on('error', () => {})
    t.after(() => filler.destroy())
  }
  await sleep(50)
}
