/** What is HTTP/3's own of a server, over real UDP. What it has in common with other versions is in serve-protocols.test.ts. */
import assert from 'node:assert/strict'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { get } from 'node:https'
import { connect, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { IncomingMessage } from 'node:http'
import { test, type TestContext, type TestOptions } from 'node:test'
import { UsageError, type HeddleError } from '../http/index.ts'
import { listen } from '../io/index.ts'
import { noHttp3 } from '../../test/h3-client.ts'
import { authority, localhost, ownAddress, serveHttp3, until } from '../../test/h3-scene.ts'
import { Response, serve, type ServeOptions, type Server } from './index.ts'

const quick: TestOptions = { timeout: 30_000, skip: noHttp3 }
const tls = { cert: localhost.cert, key: localhost.key }
const fetch = (): Response => new Response('served')

/** The head of an answer over HTTP/1.1. */
async function headOver1(server: Server): Promise<IncomingMessage> {
  const request = get({ host: server.hostname, port: server.port, servername: 'localhost', ca: authority.cert, agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'close')
  return response
}

const own = ownAddress(71)

/** Takes a port in UDP, at an address of its own, whose number is free in TCP. */
async function takePort(t: TestContext): Promise<{ socket: Socket; port: number }> {
  for (;;) {
    const socket = createSocket('udp4')
    socket.bind(0, own)
    await once(socket, 'listening')
    const { port } = socket.address()
    const tcp = createServer().listen(port, own)
    const [result] = await Promise.allSettled([once(tcp, 'listening')])
    tcp.close()
    if (result.status === 'rejected') {
      socket.close()
      continue
    }
    await once(tcp, 'close')
    let isOpen = true
    socket.once('close', () => (isOpen = false))
    t.after(() => isOpen && socket.close())
    return { socket, port }
  }
}

async function isFree(port: number): Promise<boolean> {
  const tcp = createServer().listen(port, own)
  const udp = createSocket('udp4')
  udp.bind(port, own)
  const results = await Promise.allSettled([once(tcp, 'listening'), once(udp, 'listening')])
  tcp.close()
  udp.close()
  return results.every(({ status }) => status === 'fulfilled')
}

test('one port number in TCP and UDP, and each version is told for itself', quick, async (t) => {
  const { server, connect } = await serveHttp3(t, (_request, { protocol }) => new Response(protocol))
  assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/)
  const client = connect()
  const answer = await client.ask()
  assert.deepEqual([answer.status, answer.text], [200, 'h3'])
  assert.equal(answer.headers['alt-svc'], undefined, 'who is there need not be told')
  assert.equal(typeof answer.headers['date'], 'string')
  assert.equal((await headOver1(server)).headers['alt-svc'], `h3=":${server.port}"; ma=86400`)
  const { connections, http1, http3, bytesRead, bytesWritten, accepted, requests } = server.stats()
  assert.ok(connections >= 1)
  assert.deepEqual([http3.connections, http3.accepted, http3.requests, http3.exchanges], [1, 1, 1, 0])
  assert.deepEqual([http1.requests, requests, accepted], [1, 2, 2])
  assert.ok(http3.bytesRead > 1_200 && http3.bytesWritten > 1_200 && http3.writes > 0)
  assert.deepEqual([bytesRead, bytesWritten], [http1.bytesRead + http3.bytesRead, http1.bytesWritten + http3.bytesWritten])
})

test('alt-svc is the handler’s, if it says something, and is not told if it shall not be', quick, async (t) => {
  const named = await serveHttp3(t, () => new Response('', { headers: { 'alt-svc': 'clear' } }))
  assert.equal((await headOver1(named.server)).headers['alt-svc'], 'clear')
  assert.equal((await named.connect().ask()).headers['alt-svc'], 'clear')
  const silent = await serveHttp3(t, fetch, { altSvc: false })
  assert.equal((await headOver1(silent.server)).headers['alt-svc'], undefined)
  const without = await serveHttp3(t, fetch, { protocols: ['h1'] })
  assert.equal((await headOver1(without.server)).headers['alt-svc'], undefined)
})

test('a port of TCP whose number is taken in UDP is given up for another, if any will do', quick, async (t) => {
  const { port } = await takePort(t)
  const tried: number[] = []
  const { server, connect: dial } = await serveHttp3(t, fetch, {
    hostname: own,
    listen: async (options) => {
      const listener = await listen({ ...options, port: tried.length < 2 ? port : 0 })
      tried.push(listener.address.port)
      return listener
    },
  })
  assert.deepEqual(tried, [port, port, server.port])
  assert.equal((await dial().ask()).text, 'served')
  assert.equal((await headOver1(server)).statusCode, 200)
})

test('HTTP/3 alone has no port of TCP', quick, async (t) => {
  const { server, connect: dial } = await serveHttp3(t, fetch, { protocols: ['h3'] })
  assert.ok(server.port > 0)
  assert.equal(server.hostname, '127.0.0.1')
  assert.equal((await dial().ask()).text, 'served')
  const refused = connect(server.port, '127.0.0.1')
  const [error] = (await once(refused, 'error')) as [NodeJS.ErrnoException]
  assert.equal(error.code, 'ECONNREFUSED')
})

test('it listens at names, at IPv6, and at all addresses', quick, async (t) => {
  const byName = await serveHttp3(t, fetch, { hostname: 'localhost' })
  assert.equal((await byName.connect({ address: byName.server.hostname }).ask()).text, 'served')
  const alone = await serveHttp3(t, fetch, { hostname: 'localhost', protocols: ['h3'] })
  assert.equal((await alone.connect({ address: alone.server.hostname }).ask()).text, 'served')
  const addresses: unknown[] = []
  const all = await serveHttp3(
    t,
    (_request, { remote }) => {
      addresses.push([remote.address, remote.family])
      return fetch()
    },
    { hostname: '' },
  )
  assert.match(all.server.url, /^https:\/\/localhost:/)
  assert.equal((await all.connect({ address: '127.0.0.1' }).ask()).text, 'served')
  assert.deepEqual(addresses, [['127.0.0.1', 'IPv4']])
  await assert.rejects(serve({ hostname: 'no.such.host.invalid', protocols: ['h3'], tls, fetch }), { syscall: 'getaddrinfo' })
})

test('answers leave from the address that was asked', { ...quick, skip: noHttp3 || process.platform !== 'linux' }, async (t) => {
  const { server, connect: dial } = await serveHttp3(t, (_request, { local }) => new Response(local.address), {
    hostname: '',
    maxConnections: 2,
  })
  const addresses = Object.values(networkInterfaces())
    .flatMap((ends) => ends ?? [])
    .filter(({ family }) => family === 'IPv4')
  for (const { address } of addresses.slice(0, 8)) {
    const client = dial({ address })
    assert.equal((await client.ask()).text, address)
    await client.close()
  }
  await until(() => server.stats().connections === 0, 'room')
  // The ports share what is the server's.
  const standing = [dial(), dial({ address: addresses.at(-1)?.address ?? '127.0.0.1' })]
  for (const client of standing) await client.ask()
  assert.equal(server.stats().connections, 2)
  await assert.rejects(dial().ready, { wireCode: 2 })
  // Though they are many, nobody else gets in between.
  await assert.rejects(serve({ port: server.port, protocols: ['h3'], tls, fetch }), { code: 'EADDRINUSE' })
  await assert.rejects(serve({ port: server.port, hostname: '127.0.0.1', protocols: ['h3'], tls, fetch }), { code: 'EADDRINUSE' })
})

test('IPv6', { ...quick, skip: noHttp3 }, async (t) => {
  const probe = createSocket('udp6')
  probe.bind(0, '::1')
  const [event] = (await Promise.race([once(probe, 'listening').then(() => [undefined]), once(probe, 'error')])) as [Error | undefined]
  probe.close()
  if (event !== undefined) return t.skip('this machine has no IPv6')
  for (const hostname of ['::1', '::']) {
    const { server, connect: dial } = await serveHttp3(t, (_request, { remote }) => new Response(remote.address), { hostname })
    assert.equal(server.address.family, 'IPv6')
    assert.equal((await dial({ address: '::1' }).ask()).text, '::1')
  }
})

test('a UDP port that is taken is told, and no port of TCP is left behind', quick, async (t) => {
  const { socket, port } = await takePort(t)
  const options: ServeOptions = { hostname: own, port, protocols: ['h3', 'h2', 'http/1.1'], tls, fetch }
  await assert.rejects(serve(options), { code: 'EADDRINUSE', syscall: 'bind', port })
  await assert.rejects(serve({ ...options, protocols: ['h3'] }), { code: 'EADDRINUSE' })
  socket.close()
  await once(socket, 'close')
  assert.ok(await isFree(port))
  const server = await serve(options)
  t.after(() => server.close({ deadline: 0 }))
  await assert.rejects(serve(options), { code: 'EADDRINUSE', syscall: 'listen' })
  await server.close({ deadline: 0 })
  assert.ok(await isFree(port), 'both are free when it is closed')
})

test('options that cannot be are refused before anything listens, with and without TCP', quick, async () => {
  for (const protocols of [['h3'], ['h3', 'http/1.1']] as const) {
    const refused = (options: object): Promise<void> =>
      assert.rejects(
        serve({ hostname: '127.0.0.1', protocols, tls, fetch, ...options } as ServeOptions),
        UsageError,
        JSON.stringify(options),
      )
    await refused({ tls: { ...tls, crt: 'x' } })
    await refused({ tls: { cert: tls.cert } })
    await refused({ tls: { ...tls, requestCert: true } })
    await refused({ tls: { ...tls, maxVersion: 'TLSv1.2' } })
    await refused({ tls: { ...tls, names: { 'a.test': { crt: 'x' } } } })
    await refused({ tls: { ...tls, names: { 'a.test': { minVersion: 'TLSv1.2' } } } })
    await refused({ maxConnections: 'many' })
    await refused({ maxHandshakes: -1 })
    await refused({ handshakeTimeout: 0 })
    await refused({ http3: { streamWindow: 0 } })
    await refused({ http3: { headTimeot: 1 } })
  }
})

test('fields, cookies and priorities arrive, and what is too much is refused', quick, async (t) => {
  const { connect: dial, server } = await serveHttp3(t, (request) => Response.json([...request.headers]), {
    limits: { maxFieldSectionSize: 4_000, maxFieldLineSize: 1_000 },
  })
  const client = dial()
  const echoed = await client.ask({ headers: { cookie: ['a=1', 'b=2'], priority: 'u=1', 'x-latin': 'gr\u00fc\u00df' } })
  const fields = Object.fromEntries(JSON.parse(echoed.text) as [string, string][])
  assert.deepEqual(
    [fields['cookie'], fields['priority'], fields['x-latin'], fields['host']],
    ['a=1; b=2', 'u=1', 'gr\u00fc\u00df', `localhost:${server.port}`],
  )
  assert.equal((await client.ask({ headers: { 'x-long': 'x'.repeat(1_500) } })).status, 431)
  const many = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`x-${i}`, 'x'.repeat(900)]))
  // The client knows the server's limit and keeps it (RFC 9114 §4.2.2), or asks in vain.
  const answer = await client.ask({ headers: many }).catch((error: HeddleError) => ({ status: 431, error }))
  assert.equal(answer.status, 431)
  assert.equal((await client.ask()).status, 200, 'the connection goes on')
})

test('204, 304 and HEAD have no content', quick, async (t) => {
  const { connect: dial } = await serveHttp3(t, (request) => {
    const status = Number(new URL(request.url).pathname.slice(1))
    return new Response(status === 200 ? 'content' : null, { status, headers: { etag: '"x"' } })
  })
  const client = dial()
  for (const [method, status] of [
    ['GET', 204],
    ['GET', 304],
    ['HEAD', 200],
    ['HEAD', 304],
  ] as const) {
    const answer = await client.ask({ method, path: `/${status}` })
    assert.deepEqual([answer.status, answer.body.length, answer.headers['etag']], [status, 0, '"x"'], `${method} ${status}`)
  }
  assert.equal((await client.ask({ method: 'HEAD', path: '/200' })).headers['content-length'], '7')
})

test('bodies of every size go both ways', quick, async (t) => {
  const { connect: dial } = await serveHttp3(t, async (request) => new Response(await request.bytes()))
  const client = dial()
  const content = new Uint8Array(300_000).map((_, i) => (i * 31 + (i >> 8)) & 0xff)
  for (const size of [0, 1, 63, 64, 1_150, 1_200, 1_201, 16_383, 16_384, 65_535, 65_536, 65_537, 300_000]) {
    const body = content.subarray(0, size)
    const answer = await client.ask({ method: 'POST', body, streamed: size % 2 === 1 })
    assert.ok(answer.body.equals(body), `${size} octets`)
  }
})

test('what is written is held back by a client that does not read, and goes on when it does', quick, async (t) => {
  let produced = 0
  const chunk = new Uint8Array(16_384)
  const { connect: dial, server } = await serveHttp3(t, () => {
    const body = new ReadableStream({
      pull(controller) {
        produced += chunk.length
        if (produced > 4_000_000) controller.close()
        else controller.enqueue(chunk)
      },
    })
    return new Response(body)
  })
  const client = dial({ http3: { limits: { streamWindow: 65_536 } }, quic: { initialMaxStreamData: 65_536 } })
  const { content } = await client.start({}, true).response
  let before = -1
  while (before !== produced) {
    before = produced
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.ok(produced < 1_000_000, `${produced} octets were made though nobody read them`)
  assert.equal(server.stats().exchanges, 1)
  let length = 0
  for await (const piece of content) length += (piece as Buffer).length
  assert.equal(length, 244 * chunk.length)
})

test('a client may have as many requests at once as it is told, and the next waits', quick, async (t) => {
  const gates: (() => void)[] = []
  const { connect: dial, server } = await serveHttp3(
    t,
    async () => {
      await new Promise<void>((resolve) => gates.push(resolve))
      return new Response('done')
    },
    { http3: { maxConcurrentStreams: 3 } },
  )
  const client = dial()
  const answers = Array.from({ length: 5 }, () => client.ask())
  await until(() => gates.length === 3, 'three requests')
  await new Promise((resolve) => setTimeout(resolve, 30))
  assert.deepEqual([gates.length, server.stats().exchanges], [3, 3])
  let opened = 0
  while (opened < 5) {
    await until(() => gates.length > opened, 'the next')
    gates[opened++]?.()
  }
  assert.ok((await Promise.all(answers)).every(({ text }) => text === 'done'))
})

test('more connections than maxConnections are refused, those of TCP counted with them', quick, async (t) => {
  const { connect: dial, server } = await serveHttp3(t, fetch, { maxConnections: 2 })
  const first = dial()
  await first.ask()
  const overTcp = connect(server.port, '127.0.0.1')
  overTcp.on('error', () => {})
  await until(() => server.stats().connections === 2, 'both')
  const refused = dial()
  await assert.rejects(refused.ready, { code: 'PEER_CLOSED', wireCode: 2 })
  const overTcpToo = connect(server.port, '127.0.0.1')
  overTcpToo.on('error', () => {})
  await once(overTcpToo, 'close')
  const { rejected, connections, http3 } = server.stats()
  assert.ok(rejected >= 2)
  assert.deepEqual([connections, http3.connections, http3.accepted], [2, 1, 1])
  overTcp.destroy()
  await until(() => server.stats().connections === 1, 'room')
  assert.equal((await dial().ask()).text, 'served')
  await first.close()
  await until(() => server.stats().connections === 1, 'a client that closes is gone at once')
  assert.equal((await dial().ask()).text, 'served')
})

test('a handler that throws harms its own exchange only, raw ones too', quick, async (t) => {
  let accepted = 0
  const accept = (): void => {
    if (++accepted === 1) throw new Error('thrown in onExchange')
  }
  const scene = await serveHttp3(t, undefined, {
    onExchange: (exchange) => (
      accept(),
      {
        onHead(head) {
          if (head.path === '/throw') throw new Error('thrown in onHead')
          exchange.sendHead({ ...head, method: '', status: 200, fields: [] } as never, true)
        },
        onData() {
          throw new Error('thrown in onData')
        },
        onTrailers() {},
        onSent() {},
        onPriority() {},
        onClose(error) {
          if (error !== undefined) throw error
        },
      }
    ),
  })
  const client = scene.connect()
  await assert.rejects(client.ask(), { code: 'PEER_RESET', wireCode: 0x102 })
  assert.equal((scene.told.shift() as Error).message, 'thrown in onExchange')
  const standing = client.ask()
  await assert.rejects(client.ask({ path: '/throw' }))
  assert.equal((await standing).status, 200)
  assert.equal((await client.ask()).status, 200)
  await until(() => scene.told.length === 1, 'onError')
  assert.equal((scene.told[0] as HeddleError).code, 'HANDLER_FAILED')
  assert.equal(scene.server.stats().http3.connections, 1)
})
