/** The client against Node's HTTP/2 servers, on real sockets. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import http2, { type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { connect as connectSocket, createServer as createSocketServer, type AddressInfo, type LookupFunction, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { requestHead, type Exchange, type Head, type HeddleError } from '../http/index.ts'
import { makeAuthority, makeCertificate } from '../testing/index.ts'
import { Client } from './client.ts'
import { until } from './fetch-server.test.ts'
import type { ClientOptions } from './options.ts'
import type { ClientExchangeHandler } from './ticket.ts'

const authority = makeAuthority()
const identity = makeCertificate({ names: ['localhost', 'a.test', 'b.test'], ipAddresses: ['127.0.0.1'], ca: authority })

/** Every name is this machine. */
const lookup = ((_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }] as never, 4)) as LookupFunction

interface Served {
  /** Without scheme. */
  readonly authority: string
  readonly port: number
  readonly sessions: ServerHttp2Session[]
  readonly server: Http2Server
  /** Streams ever. */
  readonly streams: () => number
}

type OnStream = (stream: ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void

async function serve(
  t: TestContext,
  onStream: OnStream,
  options: http2.SecureServerOptions & { readonly plain?: boolean; readonly path?: string } = {},
): Promise<Served> {
  const { plain = false, path, ...rest } = options
  const server = plain ? http2.createServer(rest) : http2.createSecureServer({ cert: identity.cert, key: identity.key, ...rest })
  const sessions: ServerHttp2Session[] = []
  const sockets = new Set<Socket>()
  let over = false
  let streams = 0
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    if (over) socket.destroy()
  })
  server.on('session', (session: ServerHttp2Session) => {
    sessions.push(session)
    session.on('error', () => {})
  })
  server.on('stream', (stream: ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
    streams++
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  await new Promise<void>((resolve) => (path === undefined ? server.listen(0, '127.0.0.1', resolve) : server.listen(path, resolve)))
  t.after(() => {
    over = true
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const port = path === undefined ? (server.address() as AddressInfo).port : 0
  return { authority: `127.0.0.1:${port}`, port, sessions, server: server as Http2Server, streams: () => streams }
}

function clientOf(t: TestContext, options: ClientOptions = {}): Client {
  const client = new Client({ lookup, ...options, tls: { ca: authority.cert, ...options.tls } })
  t.after(async () => {
    client.destroy()
    await client.close()
  })
  return client
}

const echoPath: OnStream = (stream, headers) => {
  stream.respond({ ':status': 200 })
  stream.end(headers[':path'])
}

for (const plain of [false, true]) {
  test(`2,000 requests over one connection that allows 100 streams (${plain ? 'h2c' : 'TLS'})`, async (t) => {
    const { authority: site, sessions } = await serve(t, echoPath, { plain, settings: { maxConcurrentStreams: 100 } })
    const client = clientOf(t, { h2c: plain })
    const url = `${plain ? 'http' : 'https'}://${site}`
    const texts = await Promise.all(Array.from({ length: 2000 }, async (_, i) => (await client.fetch(`${url}/${i}`)).text()))
    texts.forEach((text, i) => assert.equal(text, `/${i}`))
    assert.equal(sessions.length, 1)
    const { http2: counts, waiting, streams, retries } = client.stats()
    assert.deepEqual([counts.dialled, counts.requests - retries, waiting, streams], [1, 2000, 0, 0])
    assert.ok(counts.framesPerWrite > 5, String(counts.framesPerWrite))
  })
}

test('the server chooses by ALPN; without h2 there or here it is HTTP/1.1', async (t) => {
  const server = await serve(t, echoPath, { allowHTTP1: true })
  server.server.on('request', (request, response) => {
    if (request.httpVersion === '1.1') response.end('one')
  })
  const url = `https://${server.authority}/two`
  const spoken: unknown[] = []
  for (const protocols of [undefined, ['h1', 'h2'], ['h2'], ['h1']] as const) {
    const client = clientOf(t, { protocols })
    const text = await (await client.fetch(url)).text()
    spoken.push([text, client.stats().origins[0]?.protocol])
  }
  assert.deepEqual(spoken, [
    ['/two', 'h2'],
    ['/two', 'h2'],
    ['/two', 'h2'],
    ['one', 'h1'],
  ])
  // One that answers ALPN without h2, and one that knows nothing of ALPN.
  for (const old of [createHttpsServer(identity), createTlsServer(identity)]) {
    await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve))
    t.after(() => old.close())
    const strict = clientOf(t, { protocols: ['h2'] })
    const asked = strict.fetch(`https://127.0.0.1:${(old.address() as AddressInfo).port}`)
    await assert.rejects(asked, (error: HeddleError) => error.code === 'TLS_FAILED' && error.unprocessed)
  }
})

test('a large body both ways, with trailers and an interim response', async (t) => {
  const { authority: site } = await serve(t, (stream, headers) => {
    stream.additionalHeaders({ ':status': 103, link: '</a>; rel=preload' })
    stream.respond({ ':status': 200, 'x-length': headers['content-length'] ?? '' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '42' }))
    stream.pipe(stream)
  })
  const content = Buffer.alloc(8_000_000, 'heddle ')
  const hints: (string | null)[] = []
  const response = await clientOf(t).fetch(`https://${site}/`, {
    method: 'POST',
    body: content,
    onInformational: ({ headers }) => hints.push(headers.get('link')),
  })
  const { trailers } = response
  assert.ok(Buffer.from(await response.arrayBuffer()).equals(content))
  assert.deepEqual([hints, response.headers.get('x-length'), (await trailers).get('x-sum')], [['</a>; rel=preload'], '8000000', '42'])
})

test('twenty large responses at once, read one after the other', async (t) => {
  const { authority: site, sessions } = await serve(
    t,
    (stream) => {
      stream.respond({ ':status': 200 })
      stream.end(Buffer.alloc(2_000_000))
    },
    { maxSessionMemory: 1_000 },
  )
  const client = clientOf(t)
  const responses = await Promise.all(Array.from({ length: 20 }, () => client.fetch(`https://${site}`)))
  for (const response of responses) assert.equal((await response.arrayBuffer()).byteLength, 2_000_000)
  assert.equal(sessions.length, 1)
})

test('what a server refuses, and what a server that leaves has not taken, is asked again', async (t) => {
  let refusals = 5
  const server = await serve(t, (stream, headers) => {
    if (refusals-- > 0) stream.close(http2.constants.NGHTTP2_REFUSED_STREAM)
    else setTimeout(() => echoPath(stream, headers), 5)
  })
  const client = clientOf(t)
  const ask = async (i: number): Promise<string> => {
    const response = await client.fetch(`https://${server.authority}/${i}`, { method: 'POST', body: 'once' })
    return response.text()
  }
  const asked: Promise<string>[] = []
  for (let i = 0; i < 60; i++) {
    asked.push(ask(i))
    // GOAWAY, and the streams that are open are finished.
    if (i % 20 === 10) for (const session of server.sessions) session.close()
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  ;(await Promise.all(asked)).forEach((text, i) => assert.equal(text, `/${i}`))
  assert.equal(server.streams(), 65, 'each was taken once, after five refusals')
  assert.ok(server.sessions.length > 1)
  assert.equal(client.stats().resetsReceived['REFUSED_STREAM'], 5)
})

test('a connection that is cut takes its requests with it, and the next one is made at once', async (t) => {
  const server = await serve(t, (stream, headers) => {
    if (headers[':path'] !== '/cut') echoPath(stream, headers)
    else setTimeout(() => stream.session?.destroy(), 10)
  })
  const client = clientOf(t)
  const site = `https://${server.authority}`
  assert.equal(await (await client.fetch(`${site}/first`)).text(), '/first')
  const cut = client.fetch(`${site}/cut`, { method: 'POST' })
  await assert.rejects(cut, (error: HeddleError) => /PEER_CLOSED|PEER_RESET/.test(error.code) && !error.unprocessed)
  assert.equal(await (await client.fetch(`${site}/next`)).text(), '/next')
  assert.equal(server.sessions.length, 2)
})

test('an aborted fetch resets its stream; the server sees CANCEL, and the connection goes on', async (t) => {
  const codes: (number | undefined)[] = []
  let arrived: (() => void) | undefined
  const server = await serve(t, (stream, headers) => {
    stream.on('close', () => codes.push(stream.rstCode))
    arrived?.()
    if (headers[':path'] === '/') return
    stream.respond({ ':status': 200 })
    stream.write(Buffer.alloc(100))
  })
  const client = clientOf(t)
  for (const path of ['/', '/content']) {
    const controller = new AbortController()
    const arrival = new Promise<void>((resolve) => (arrived = resolve))
    const asked = client.fetch(`https://${server.authority}${path}`, { signal: controller.signal }).then((response) => response.text())
    await arrival
    controller.abort('enough')
    await assert.rejects(asked, (reason) => reason === 'enough')
    await until(() => codes.length === (path === '/' ? 1 : 2), 'the server was told')
  }
  assert.deepEqual(codes, [8, 8])
  assert.equal(server.sessions.length, 1)
})

test('through a proxy, h2 is spoken in the tunnel', async (t) => {
  const server = await serve(t, echoPath)
  const proxy = createHttpServer()
  const sockets = new Set<Socket>()
  proxy.on('connect', (_request, socket: Socket) => {
    const target = connectSocket(server.port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(target).pipe(socket)
    })
    for (const end of [socket, target]) {
      sockets.add(end)
      end.on('error', () => {})
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    proxy.close()
    for (const socket of sockets) socket.destroy()
  })
  const client = clientOf(t, { proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` })
  const texts = await Promise.all(['/a', '/b'].map(async (path) => (await client.fetch(`https://a.test${path}`)).text()))
  assert.deepEqual([texts, server.sessions.length, client.stats().http2.requests], [['/a', '/b'], 1, 2])
})

test('over a Unix socket, by prior knowledge', async (t) => {
  const path =
    process.platform === 'win32' ? String.raw`\\.\pipe\heddle-h2-${process.pid}` : join(tmpdir(), `heddle-h2-${process.pid}.sock`)
  await serve(t, (stream, headers) => stream.end(headers[':authority']), { plain: true, path })
  const client = clientOf(t, { socketPath: path, h2c: true })
  assert.equal(await (await client.fetch('http://any.test:8080/')).text(), 'any.test:8080')
})

/** A tunnel that says one word and wants it back. */
class Tunnel implements ClientExchangeHandler {
  readonly done: Promise<string>
  readonly #authority: string
  #exchange: Exchange | undefined
  #text = ''
  #resolve: (outcome: string) => void = () => {}

  constructor(site: string) {
    this.#authority = site
    this.done = new Promise((resolve) => (this.#resolve = resolve))
  }

  onOpen(exchange: Exchange): void {
    this.#exchange = exchange
    exchange.sendHead(requestHead('CONNECT', 'https', this.#authority, '/chat', [], 'websocket'), false)
  }
  onHead(head: Head): void {
    if (head.status === 200) this.#exchange?.sendOwned(Buffer.from('echo'), true)
  }
  onData(buffer: Uint8Array, start: number, limit: number): void {
    this.#text += Buffer.from(buffer.subarray(start, limit)).toString()
    this.#exchange?.consume(limit - start)
  }
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    this.#resolve(`${this.#exchange?.protocol} ${error?.code ?? this.#text}`)
  }
}

test('a tunnel: by extended CONNECT where the server offers it, else by an Upgrade over HTTP/1.1', async (t) => {
  for (const offers of [true, false]) {
    const server = await serve(
      t,
      (stream, headers) => {
        if (headers[':method'] !== 'CONNECT') return echoPath(stream, headers)
        stream.respond({ ':status': 200 })
        stream.pipe(stream)
      },
      { allowHTTP1: true, settings: { enableConnectProtocol: offers } },
    )
    server.server.on('upgrade', (_request: unknown, socket: Socket) => socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n'))
    const client = clientOf(t)
    const origin = client.origin(`https://${server.authority}`)
    await (await client.fetch(`https://${server.authority}/`)).text()
    const tunnel = new Tunnel(server.authority)
    client.exchange(origin, tunnel, { tunnel: true })
    assert.equal(await tunnel.done, offers ? 'h2 echo' : 'h1 ')
    assert.equal(origin.protocol, 'h2')
  }
})

test('a plain server that does not speak HTTP/2 after all is a PROTOCOL_ERROR, not a hang', async (t) => {
  const sockets = new Set<Socket>()
  const server = createSocketServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const client = clientOf(t, { h2c: true })
  await assert.rejects(client.fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`), { code: 'PROTOCOL_ERROR' })
})

test('a program that is done ends, although an HTTP/2 connection is idle', async (t) => {
  const server = await serve(t, echoPath, { plain: true })
  const script = `
    import { Client } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
    const client = new Client({ h2c: true, http2: { idleTimeout: 600_000, pingInterval: 100 } })
    const response = await client.fetch(process.argv[1])
    console.log(await response.text(), client.stats().http2.connections)`
  const child = spawn(process.execPath, [
    '--conditions=@heddle/source',
    '--input-type=module',
    '-e',
    script,
    `http://${server.authority}/x`,
  ])
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const started = performance.now()
  const code = await new Promise((resolve) => child.on('close', resolve))
  assert.deepEqual([code, output.trim()], [0, '/x 1'])
  assert.ok(performance.now() - started < 30_000)
})
