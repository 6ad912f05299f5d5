import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import http2 from 'node:http2'
import type { AddressInfo, LookupFunction, Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { responseHead, UsageError, type TlsFacts } from '../http/index.ts'
import { makeAuthority, makeCertificate } from '../testing/index.ts'
import { Client } from './client.ts'
import { Bench, type DoubleStreams, type Sent } from './double.test.ts'
import type { PooledConnection } from './connection.ts'
import type { ClientOptions } from './options.ts'

const identity = makeCertificate({ names: ['a.test', '*.shared.test'] })
const der = new X509Certificate(identity.cert).raw

function tlsFacts(authorized = true): TlsFacts {
  return { version: 'TLSv1.3', cipher: '', alpn: 'h2', serverName: 'a.test', authorized, peerCertificate: der }
}

/** A bench whose origin a.test has a connection, on which the server says it answers for `origins`. */
function hosting(origins: string[] | undefined, options: ClientOptions = {}, tls = tlsFacts()): { bench: Bench; streams: DoubleStreams } {
  const bench = new Bench({ coalesce: true, ...options })
  ask(bench, 'https://a.test', 'first')
  bench.turn()
  const streams = bench.dials[0]?.acceptStreams(3, tls) as DoubleStreams
  streams.originSet = origins === undefined ? undefined : new Set(origins)
  streams.respond()
  bench.takeLog()
  return { bench, streams }
}

function ask(bench: Bench, url: string, name: string, replayable = false): Sent {
  return bench.request(name, (handler) => (handler.replayable = replayable), bench.pool.directory.find(url))
}

test('an origin that a server names, and whose host its certificate covers, needs no connection', () => {
  const { bench, streams } = hosting(['https://a.test', 'https://b.shared.test', 'https://c.shared.test:8443'])
  const sent = [
    ask(bench, 'https://b.shared.test', 'b'),
    ask(bench, 'https://c.shared.test:8443', 'c'),
    ask(bench, 'https://b.shared.test', 'b2'),
  ]
  bench.turn()
  assert.deepEqual([bench.dials.length, streams.openExchanges], [1, 3])
  for (let i = 0; i < 3; i++) streams.respond()
  assert.ok(sent.every(({ handler }) => handler.closes === 1 && handler.error === undefined))
  assert.deepEqual(
    bench.pool.directory.stats().origins.map(({ origin, connections, requests, protocol }) => [origin, connections, requests, protocol]),
    [
      ['http://origin.test', 0, 0, 'h1'],
      ['https://a.test', 1, 1, 'h2'],
      ['https://b.shared.test', 0, 2, 'h2'],
      ['https://c.shared.test:8443', 0, 1, 'h2'],
    ],
  )
})

test('what the certificate does not cover, is not named, is not https or may not be shared has connections of its own', () => {
  const named = ['https://other.test', 'https://b.shared.test', 'http://b.shared.test']
  for (const [url, options, tls] of [
    ['https://other.test', {}, tlsFacts()],
    ['https://c.shared.test', {}, tlsFacts()],
    ['https://b.shared.test:444', {}, tlsFacts()],
    ['http://b.shared.test', {}, tlsFacts()],
    ['https://b.shared.test', { coalesce: false }, tlsFacts()],
    ['https://b.shared.test', {}, tlsFacts(false)],
    ['https://b.shared.test', { proxy: 'http://proxy.test' }, tlsFacts()],
  ] as const) {
    const { bench } = hosting(named, options, tls)
    ask(bench, url, 'x')
    bench.turn()
    assert.equal(bench.dials.length, 2, `${url} ${JSON.stringify(options)}`)
  }
})

test('no way of writing a name makes a certificate, or a server, say more than it does', () => {
  const { cert } = makeCertificate({ names: ['a.test', 'x.y.test', '*.shared.test'], ipAddresses: ['127.0.0.1'] })
  const tls = { ...tlsFacts(), peerCertificate: new X509Certificate(cert).raw }
  for (const [url, named, shared] of [
    ['https://127.0.0.1', 'https://127.0.0.1', true],
    ['https://127.0.0.2', 'https://127.0.0.2', false],
    ['https://[::1]', 'https://[::1]', false],
    ['https://0x7f.1', 'https://127.0.0.1', true],
    ['https://B.Shared.Test', 'https://b.shared.test', true],
    ['https://b.shared.test:443', 'https://b.shared.test', true],
    ['https://b.shared.test', 'https://b.shared.test:443', false],
    ['https://b.shared.test.', 'https://b.shared.test', false],
    ['https://b.shared.test', 'https://b.shared.test.', false],
    ['https://c.b.shared.test', 'https://c.b.shared.test', false],
    ['https://shared.test', 'https://shared.test', false],
    ['https://.y.test', 'https://.y.test', false],
    ['https://y.test', 'https://y.test', false],
  ] as const) {
    const { bench } = hosting([named], {}, tls)
    ask(bench, url, 'x')
    bench.turn()
    assert.equal(bench.dials.length, shared ? 1 : 2, `${url}, named as ${named}`)
  }
})

test('who came for the address leaves when the server says, later, what it answers for', () => {
  const { bench, streams } = hosting(undefined)
  const guest = bench.pool.directory.find('https://b.shared.test')
  guest.shareWith(bench.pool.directory.find('https://a.test').available.first as PooledConnection)
  const sent = Array.from({ length: 5 }, (_, i) => ask(bench, 'https://b.shared.test', `b${i}`))
  assert.equal(streams.openExchanges, 3)
  streams.originSet = new Set(['https://c.shared.test'])
  // One that waits finds out when its turn comes, one that is new at once.
  streams.respond()
  bench.turn()
  assert.deepEqual([bench.dials.length, streams.openExchanges, guest.guestOf], [2, 2, undefined])
  bench.dials[1]?.acceptStreams(10, tlsFacts())
  ask(bench, 'https://b.shared.test', 'new')
  assert.equal(bench.streams[1]?.openExchanges, 3)
  while (streams.openExchanges > 0) streams.respond()
  assert.equal(sent.filter(({ handler }) => handler.closes === 1 && handler.error === undefined).length, 3)

  const other = hosting(undefined)
  const late = other.bench.pool.directory.find('https://b.shared.test')
  late.shareWith(other.bench.pool.directory.find('https://a.test').available.first as PooledConnection)
  other.streams.originSet = new Set()
  ask(other.bench, 'https://b.shared.test', 'first')
  other.bench.turn()
  assert.deepEqual([other.bench.dials.length, other.streams.openExchanges], [2, 0])
})

test('requests of guests wait for a stream behind those of the host, and take turns', () => {
  const { bench, streams } = hosting(['https://b.shared.test', 'https://c.shared.test'])
  for (let i = 0; i < 3; i++) ask(bench, 'https://a.test', `a${i}`)
  for (let i = 0; i < 3; i++) ask(bench, 'https://b.shared.test', `b${i}`)
  bench.turn()
  assert.equal(bench.dials.length, 2, 'a full connection takes no guests')
  streams.respond()
  bench.dials[1]?.refuse()
  bench.turn()
  bench.takeLog()
  ask(bench, 'https://b.shared.test', 'b3')
  bench.turn()
  assert.deepEqual(bench.takeLog(), ['b3 opened'])
  for (const name of ['b4', 'b5']) ask(bench, 'https://b.shared.test', name)
  ask(bench, 'https://a.test', 'a3')
  assert.equal(bench.pool.waiting, 3)
  for (let i = 0; i < 3; i++) streams.respond()
  assert.deepEqual(
    bench.takeLog().filter((line) => line.endsWith('opened')),
    ['a3 opened', 'b4 opened', 'b5 opened'],
  )
  ask(bench, 'https://c.shared.test', 'c0')
  bench.turn()
  assert.equal(bench.dials.length, 3)
})

test('guests take turns', () => {
  const { bench, streams } = hosting(['https://b.shared.test', 'https://c.shared.test'])
  ask(bench, 'https://b.shared.test', 'b')
  ask(bench, 'https://c.shared.test', 'c')
  bench.turn()
  ask(bench, 'https://a.test', 'a')
  for (const name of ['b1', 'b2', 'b3']) ask(bench, 'https://b.shared.test', name)
  for (const name of ['c1', 'c2']) ask(bench, 'https://c.shared.test', name)
  bench.takeLog()
  for (let i = 0; i < 5; i++) streams.respond()
  assert.deepEqual(
    bench.takeLog().filter((line) => line.endsWith('opened')),
    ['b1 opened', 'c1 opened', 'b2 opened', 'c2 opened', 'b3 opened'],
  )
})

test('when the host connection leaves, guests get connections of their own', () => {
  const { bench, streams } = hosting(['https://b.shared.test'])
  const sent = Array.from({ length: 5 }, (_, i) => ask(bench, 'https://b.shared.test', `b${i}`, true))
  bench.turn()
  streams.goAway(1)
  bench.turn()
  assert.deepEqual([bench.dials.length, bench.dials[1]?.target], [2, { host: 'b.shared.test', port: 443 }])
  bench.dials[1]?.acceptStreams(10, tlsFacts())
  assert.ok(sent.every(({ handler }) => handler.closes === 0))
  assert.equal(bench.pool.waiting, 0)
  streams.respond()
  assert.equal(bench.pool.directory.find('https://b.shared.test').known, true)
})

test('421: the request goes to a connection of its own, and so do all that follow', () => {
  const { bench, streams } = hosting(['https://b.shared.test'])
  const [replayable, single] = [ask(bench, 'https://b.shared.test', 'b', true), ask(bench, 'https://b.shared.test', 'single')]
  bench.turn()
  const heads: number[] = []
  single.handler.onHead = ((head: { status: number }) => heads.push(head.status)) as never
  for (const { handler } of streams.exchanges) handler.onHead(responseHead(421), false)
  bench.turn()
  assert.deepEqual([heads, replayable.handler.closes, bench.dials.length], [[421], 0, 2], 'who cannot be replayed is told')
  bench.dials[1]?.acceptStreams(10, tlsFacts())
  assert.equal(replayable.handler.opened.length, 2)
  ask(bench, 'https://b.shared.test', 'later')
  bench.turn()
  assert.deepEqual([bench.dials.length, bench.streams[1]?.openExchanges], [2, 2])
  // From its own connection a 421 is an answer like any other.
  bench.streams[1]?.exchanges[0]?.handler.onHead(responseHead(421), true)
  assert.equal(replayable.handler.closes, 0)
})

test('an unused guest stays known as long as its host connection lives, and closing waits for nobody', async () => {
  const { bench, streams } = hosting(['https://b.shared.test'], { originLifetime: 1000 })
  ask(bench, 'https://b.shared.test', 'b')
  bench.turn()
  streams.respond()
  bench.world.advance(5000)
  const guest = bench.pool.directory.find('https://b.shared.test')
  assert.equal(guest.known, true)
  await bench.world.complete(bench.pool.close())
  assert.equal(guest.guestOf, undefined)
  bench.assertEmpty()
  assert.equal(bench.world.armed, 0)
})

test('options under which certificates say less are refused', () => {
  for (const tls of [{ rejectUnauthorized: false }, { servername: 'x' }, { checkServerIdentity: () => undefined }]) {
    assert.throws(() => new Client({ coalesce: true, tls }), UsageError)
    new Client({ tls })
  }
})

// ── On real sockets ───────────────────────────────────────────────────────────────────────────────

const authority = makeAuthority()
const served = makeCertificate({ names: ['a.test', 'b.test'], ca: authority })

async function serve(t: TestContext, origins: (port: number) => string[]): Promise<{ port: number; connections: () => number }> {
  let connections = 0
  const sockets = new Set<Socket>()
  const server = http2.createSecureServer({ cert: served.cert, key: served.key })
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => {})
  })
  server.on('session', (session) => {
    const named = origins((server.address() as AddressInfo).port)
    if (named.length > 0) session.origin(...named)
  })
  server.on('stream', (stream, headers) => stream.end(headers[':authority']))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, connections: () => connections }
}

for (const [how, origins, lookups] of [
  ['the server names it', (port: number) => [`https://b.test:${port}`], ['a.test']],
  ['its name leads to the same address', () => [], ['a.test', 'b.test']],
] as const) {
  test(`one connection for two names of one server: ${how}`, async (t) => {
    const { port, connections } = await serve(t, origins as never)
    const asked: string[] = []
    const lookup = ((host, _options, done) => {
      asked.push(host)
      done(null, [{ address: host === 'elsewhere.test' ? '127.0.0.2' : '127.0.0.1', family: 4 }] as never, 4)
    }) as LookupFunction
    const client = new Client({ coalesce: true, lookup, tls: { ca: authority.cert } })
    t.after(() => client.destroy())
    const ask = async (host: string): Promise<string> => (await client.fetch(`https://${host}:${port}/`)).text()
    assert.equal(await ask('a.test'), `a.test:${port}`)
    assert.deepEqual(await Promise.all([ask('b.test'), ask('b.test'), ask('a.test')]), [
      `b.test:${port}`,
      `b.test:${port}`,
      `a.test:${port}`,
    ])
    assert.equal(await ask('b.test'), `b.test:${port}`)
    assert.equal(connections(), 1)
    assert.deepEqual(asked, lookups)
    // The certificate is not good for it, so it is dialled, and fails.
    await assert.rejects(ask('elsewhere.test'))
    await client.close()
  })
}
