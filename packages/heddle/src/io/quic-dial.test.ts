/** QUIC connections by name, over real UDP on the loopback. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { test, type TestContext, type TestOptions } from 'node:test'
import { HeddleError, UsageError, type HeddleError as AnyError } from '../http/index.ts'
import { QuicTls, quicTlsFault, quicUnavailable, dialQuic, listenQuic, systemClock, type DialledQuic, type QuicListener } from './index.ts'
import type { QuicDialOptions, TlsClientOptions, TlsServerOptions } from './index.ts'
import type { QuicApplication, QuicOptions } from '../quic/index.ts'
import { makeAuthority, makeCertificate } from '../testing/index.ts'

const quick: TestOptions = { timeout: 60_000, skip: quicUnavailable() ?? false }
const authority = makeAuthority()
const identity = makeCertificate({ names: ['localhost', 'server.test'], ipAddresses: ['127.0.0.1'], ca: authority })
const clock = systemClock()

/** An application that waits for the end, and notes what it is told. */
class Witness implements QuicApplication {
  readonly deadline = Infinity
  readonly tickets: Uint8Array[] = []
  readonly tokens: Uint8Array[] = []
  ready = 0
  readonly closed: Promise<AnyError>
  #close: (error: AnyError) => void = () => {}
  #given: () => void = () => {}
  /** A ticket and a token are there. */
  readonly given: Promise<void>

  constructor() {
    this.closed = new Promise((resolve) => (this.#close = resolve))
    this.given = new Promise((resolve) => (this.#given = resolve))
  }

  startRun(): void {}
  finishRun(): void {}
  onReady(): void {
    this.ready++
  }
  onStream() {
    return { onData() {}, onReset() {}, onStopSending() {}, onSent() {}, onClose() {} }
  }
  onStreamsAvailable(): void {}
  onTicket(ticket: Uint8Array): void {
    this.tickets.push(ticket)
    this.#note()
  }
  onToken(token: Uint8Array): void {
    this.tokens.push(token)
    this.#note()
  }
  onClose(error: AnyError): void {
    this.#close(error)
  }
  expire(): void {}

  #note(): void {
    if (this.tickets.length > 0 && this.tokens.length > 0) this.#given()
  }
}

interface Served {
  readonly listener: QuicListener
  readonly port: number
  readonly accepted: Witness[]
}

async function listen(
  t: TestContext,
  tls: TlsServerOptions = identity,
  alpn = ['h3'],
  quic: Partial<QuicOptions> = {},
  hostname = '127.0.0.1',
): Promise<Served> {
  const accepted: Witness[] = []
  const listener = await listenQuic({
    clock,
    hostname,
    port: 0,
    tls,
    alpn,
    quic,
    onError() {},
    onConnection: () => {
      const witness = new Witness()
      accepted.push(witness)
      return witness
    },
  })
  t.after(() => listener.close(new HeddleError('SHUTDOWN', 'the test is over')))
  return { listener, port: listener.address.port, accepted }
}

/** A UDP port that never answers. */
async function silence(t: TestContext, address: string, port = 0): Promise<number> {
  const socket = createSocket('udp4')
  socket.bind(port, address)
  await once(socket, 'listening')
  t.after(() => socket.close())
  return socket.address().port
}

function tlsOf(options: TlsClientOptions = {}, alpn?: readonly string[]): QuicTls {
  return new QuicTls({ ca: authority.cert, ...options }, alpn)
}

/** Every name has these addresses. */
function lookupOf(...addresses: string[]): LookupFunction {
  return ((_host: string, _options: unknown, done: (error: null, all: LookupAddress[]) => void) =>
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )) as unknown as LookupFunction
}

interface Result {
  readonly error: AnyError | undefined
  readonly dialled: DialledQuic | undefined
  readonly witness: Witness
}

function dial(t: TestContext, target: { host: string; port: number }, options: Partial<QuicDialOptions> = {}): Promise<Result> {
  return new Promise((resolve) => {
    let returned = false
    const witness = new Witness()
    dialQuic(target, { clock, tls: tlsOf(), ...options }, (error, dialled) => {
      assert.ok(returned, 'done comes later')
      dialled?.attach(witness)
      if (dialled !== undefined) t.after(() => dialled.destroy())
      resolve({ error, dialled, witness })
    })
    returned = true
  })
}

/** Waits until `fact` is one; not for ever. */
async function until(fact: () => boolean): Promise<void> {
  for (let i = 0; i < 2_000 && !fact(); i++) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.ok(fact())
}

/** Open descriptors of this process, where the system tells: those of unreferenced sockets, too. */
function descriptors(): number {
  return existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : 0
}

test('a connection stands: what TLS agreed on, both addresses, and an application that is told it is ready', quick, async (t) => {
  const { port, accepted } = await listen(t)
  const { error, dialled, witness } = await dial(t, { host: 'server.test', port }, { lookup: lookupOf('127.0.0.1') })
  assert.equal(error, undefined)
  const { info, alpn } = dialled as DialledQuic
  assert.deepEqual([info.remote, alpn, witness.ready], [{ address: '127.0.0.1', port, family: 'IPv4' }, 'h3', 1])
  assert.deepEqual([info.tls?.version, info.tls?.serverName, info.tls?.authorized], ['TLSv1.3', 'server.test', true])
  assert.equal(info.local.address, '127.0.0.1')
  assert.ok(info.local.port > 0)
  await until(() => accepted.length === 1)
  dialled?.destroy()
  const end = await (accepted[0] as Witness).closed
  assert.deepEqual([end.code, end.wireCode], ['PEER_CLOSED', 0x100])
})

test('what the server gave is used for the next connection, once, and for no other name', quick, async (t) => {
  const { port } = await listen(t)
  const tls = tlsOf()
  const lookup = lookupOf('127.0.0.1')
  const resumed: unknown[] = []
  for (const host of ['server.test', 'server.test', 'localhost']) {
    const { dialled, witness } = await dial(t, { host, port }, { tls, lookup })
    resumed.push((dialled?.info.tls as { resumed?: boolean } | undefined)?.resumed)
    await witness.given
    for (const ticket of witness.tickets) dialled?.keepTicket(ticket)
    for (const token of witness.tokens) dialled?.keepToken(token)
  }
  assert.deepEqual(resumed, [false, true, false])
  assert.ok(tls.takeToken(`server.test:${port}`) instanceof Uint8Array)
  assert.equal(tls.takeToken(`server.test:${port + 1}`), undefined)
})

test('the address before is silent, or nobody is there: the next one is tried, after its time or at once', quick, async (t) => {
  const { port, accepted } = await listen(t)
  await silence(t, '127.0.0.2', port)
  for (const [first, attemptDelay] of [
    ['127.0.0.2', 20],
    // Nobody listens there: the dial would take too long if it waited.
    ['127.0.0.3', 600_000],
  ] as const) {
    const options = { lookup: lookupOf(first, '127.0.0.1'), attemptDelay, connectTimeout: 50_000 }
    const { dialled } = await dial(t, { host: 'server.test', port }, options)
    assert.equal(dialled?.info.remote.address, '127.0.0.1', first)
  }
  await until(() => accepted.length === 2)
})

test('nobody is there: CONNECT_FAILED, with the system’s error as cause', quick, async (t) => {
  const port = await silence(t, '127.0.0.1')
  const { error } = await dial(t, { host: '127.0.0.4', port })
  assert.deepEqual([error?.code, error?.unprocessed], ['CONNECT_FAILED', true])
  assert.match(
    String(error?.message),
    new RegExp(`^no QUIC connection to 127\\.0\\.0\\.4:${port}: nobody listens at that UDP port \\(.*ECONNREFUSED`),
  )
  assert.equal((error?.cause as NodeJS.ErrnoException | undefined)?.code, 'ECONNREFUSED')
})

test('silence: CONNECT_TIMEOUT, which says what it was doing', quick, async (t) => {
  const port = await silence(t, '127.0.0.1')
  const { error } = await dial(t, { host: '127.0.0.1', port }, { connectTimeout: 50 })
  assert.deepEqual([error?.code, error?.unprocessed], ['CONNECT_TIMEOUT', true])
  assert.equal(error?.message, `no QUIC connection to 127.0.0.1:${port} within 50 ms (shaking hands)`)
  const never = (() => {}) as unknown as LookupFunction
  const looking = await dial(t, { host: 'server.test', port }, { connectTimeout: 50, lookup: never })
  assert.equal(looking.error?.message, `no QUIC connection to server.test:${port} within 50 ms (looking up the name)`)
})

test('a name that leads nowhere: DNS_FAILED', quick, async (t) => {
  const failing = ((_host, _options, done) => done(new Error('no such name'), '', 4)) as LookupFunction
  const throwing = (() => {
    throw new Error('no such name')
  }) as unknown as LookupFunction
  for (const lookup of [failing, throwing, lookupOf(), lookupOf('::1')]) {
    const { error } = await dial(t, { host: 'server.test', port: 1 }, { lookup, family: 4 })
    assert.deepEqual([error?.code, error?.unprocessed], ['DNS_FAILED', true])
    assert.match(String(error?.message), /^the name server\.test could not be resolved: (no such name|it has no address)$/)
  }
})

test('a server that is not the one that was meant: TLS_FAILED, in words, and no other address is asked', quick, async (t) => {
  const { port, accepted } = await listen(t)
  const stranger = makeAuthority('stranger')
  const cases: [string, TlsClientOptions, RegExp][] = [
    ['other.test', {}, /^TLS with other\.test failed: .*mismatch/i],
    ['server.test', { servername: 'third.test' }, /^TLS with third\.test failed: .*mismatch/i],
    ['server.test', { ca: stranger.cert }, /^TLS with server\.test failed: .*(certificate|issuer)/i],
    ['server.test', { ca: [] }, /^TLS with server\.test failed: .*(certificate|issuer)/i],
    ['server.test', { cert: 'no certificate', key: 'no key' }, /^TLS with server\.test cannot be begun: /],
    ['.server.test', {}, /^TLS with \.server\.test cannot be begun: /],
  ]
  for (const [host, options, message] of cases) {
    const lookup = lookupOf('127.0.0.1', '127.0.0.9')
    const { error } = await dial(t, { host, port }, { tls: tlsOf(options), lookup, attemptDelay: 600_000 })
    assert.deepEqual([error?.code, error?.unprocessed], ['TLS_FAILED', true], `${host} ${JSON.stringify(options)}: ${error?.message}`)
    assert.match(String(error?.message), message)
  }
  assert.equal(accepted.length, 0)
  const { error, dialled } = await dial(
    t,
    { host: 'other.test', port },
    { tls: tlsOf({ ca: [], rejectUnauthorized: false }), lookup: lookupOf('127.0.0.1') },
  )
  assert.deepEqual([error, dialled?.info.tls?.authorized], [undefined, false])
})

test('a server of something else than HTTP/3: TLS_FAILED', quick, async (t) => {
  const { port } = await listen(t, identity, ['doq'])
  const { error } = await dial(t, { host: '127.0.0.1', port })
  assert.deepEqual([error?.code, error?.message], ['TLS_FAILED', 'TLS with 127.0.0.1 failed: the server speaks no HTTP/3'])
})

test('a client certificate is shown', quick, async (t) => {
  const { port } = await listen(t, { ...identity, ca: authority.cert, requestCert: true })
  const mine = makeCertificate({ names: ['me'], ca: authority })
  const { dialled, witness } = await dial(t, { host: '127.0.0.1', port }, { tls: tlsOf({ cert: mine.cert, key: mine.key }) })
  await witness.given
  assert.equal(dialled?.alpn, 'h3')
  // Without one the server says so when the client's handshake is over (RFC 8446 §4.4.2.4).
  const bare = await dial(t, { host: '127.0.0.1', port })
  assert.equal((await bare.witness.closed).code, 'TLS_FAILED')
})

test('secrets are told line by line, as node:tls does', quick, async (t) => {
  const { port } = await listen(t)
  const lines: string[] = []
  const tls = tlsOf({ keylog: (line) => lines.push(Buffer.from(line).toString()) })
  await dial(t, { host: '127.0.0.1', port }, { tls })
  assert.ok(lines.length >= 4, String(lines.length))
  for (const line of lines) assert.match(line, /^[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]+\n$/)
  assert.ok(lines.some((line) => line.startsWith('CLIENT_TRAFFIC_SECRET_0 ')))
})

test('cancelled at any moment it says nothing more, and its ports go', quick, async (t) => {
  const { port } = await listen(t)
  const mute = await silence(t, '127.0.0.1')
  const before = descriptors()
  let told = 0
  const begin = (target: number, lookup?: LookupFunction): { cancel(): void } =>
    dialQuic({ host: 'server.test', port: target }, { clock, tls: tlsOf(), lookup: lookup ?? lookupOf('127.0.0.1') }, () => told++)
  // While the name is looked up, before the port is open, in the handshake with a server that is silent, and again.
  let answer: (() => void) | undefined
  const late = ((_host: string, _options: unknown, done: (error: null, all: LookupAddress[]) => void) => {
    answer = () => done(null, [{ address: '127.0.0.1', family: 4 }])
  }) as unknown as LookupFunction
  begin(port, late).cancel()
  answer?.()
  const early = begin(port)
  early.cancel()
  early.cancel()
  const silent = begin(mute)
  await new Promise((resolve) => setTimeout(resolve, 50))
  silent.cancel()
  for (let i = 0; i < 20; i++) {
    const dialling = begin(port)
    for (let turn = 0; turn < i; turn++) await new Promise((resolve) => setImmediate(resolve))
    dialling.cancel()
  }
  const toldBy = told
  await until(() => descriptors() <= before)
  assert.equal(told, toldBy, 'nothing comes after cancel')
})

test('who does not take it in time has it closed', quick, async (t) => {
  const { port, listener } = await listen(t)
  const before = descriptors()
  await new Promise<void>((resolve) => dialQuic({ host: '127.0.0.1', port }, { clock, tls: tlsOf() }, () => resolve()))
  await until(() => descriptors() <= before)
  await until(() => listener.handshakes === 0 && listener.connections === 0)
})

test('a server that is gone without a word: noticed when nobody listens there any more, not by one forged word', quick, async (t) => {
  const { port, listener } = await listen(t)
  const { dialled, witness } = await dial(t, { host: '127.0.0.1', port }, { quic: { keepAlive: 50 } })
  dialled?.quic.keepAlive(true)
  // As if its machine had lost it: no CONNECTION_CLOSE.
  await listener.close(new HeddleError('SHUTDOWN', 'gone'))
  const end = await witness.closed
  assert.match(end.code, /^(NETWORK_ERROR|PEER_CLOSED)$/)
})

test('targets and addresses that cannot be are a UsageError at once', () => {
  const tls = tlsOf()
  const refused = (target: { host: string; port: number }, options = {}): void =>
    assert.throws(() => dialQuic(target, { clock, tls, ...options }, () => {}), UsageError)
  refused({ host: '', port: 1 })
  refused({ host: 'a', port: -1 })
  refused({ host: 'a', port: 65_536 })
  refused({ host: 'a', port: 1 }, { localAddress: 'localhost' })
})

test('what QUIC cannot honour is said', () => {
  assert.equal(quicTlsFault({ minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', rejectUnauthorized: false, servername: 'a' }), undefined)
  assert.match(String(quicTlsFault({ maxVersion: 'TLSv1.2' })), /TLS 1\.3/)
  assert.match(String(quicTlsFault({ ciphers: 'TLS_AES_128_GCM_SHA256' })), /ciphers/)
  assert.match(String(quicTlsFault({ checkServerIdentity: () => undefined })), /checkServerIdentity/)
})

test('a connection that was closed, and one that may fall silent, keep no process running', quick, async (t) => {
  const { port } = await listen(t)
  const index = JSON.stringify(new URL('index.ts', import.meta.url).href)
  const script = `
    import { dialQuic, QuicTls, systemClock } from ${index}
    const [port, ca] = JSON.parse(process.argv[1])
    const quiet = { deadline: Infinity, startRun() {}, finishRun() {}, onReady() {}, onStreamsAvailable() {}, onClose() {}, expire() {},
      onStream: () => ({ onData() {}, onReset() {}, onStopSending() {}, onSent() {}, onClose() {} }) }
    const options = { clock: systemClock(), tls: new QuicTls({ ca }) }
    dialQuic({ host: '127.0.0.1', port }, options, (error, dialled) => {
      if (error) throw error
      dialled.attach(quiet)
      dialled.unref()
      dialQuic({ host: '127.0.0.1', port }, options, (second, other) => {
        other.attach(quiet)
        other.destroy()
        console.log('both')
      })
    })`
  const argument = JSON.stringify([port, authority.cert])
  const child = spawn(process.execPath, ['--conditions=@heddle/source', '--input-type=module', '-e', script, argument], { timeout: 50_000 })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const code = await new Promise((resolve) => child.on('close', resolve))
  assert.deepEqual([code, output], [0, 'both\n'])
})
