/** The WebSocket on real sockets: HTTP/1.1 and HTTP/2, TLS, proxies, Unix sockets, and Node's servers as peers. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { constants, createSecureServer, type Http2SecureServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import {
  connect as connectSocket,
  type AddressInfo,
  type LookupFunction,
  type Server as NetServer,
  type Socket as NetSocket,
} from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { Client, type ClientOptions } from '../client/index.ts'
import { Response, serve, type Server, type ServeOptions } from '../server/index.ts'
import { makeAuthority, makeCertificate } from '../testing/index.ts'
import { encodePeerFrame, FrameLog } from '../testing/websocket/peer-frame.ts'
import { Opcode } from '../ws/index.ts'
import { connect } from './connect.ts'
import { upgrade } from './upgrade.ts'
import { WebSocket } from './web-socket.ts'

const authority = makeAuthority()
const identity = makeCertificate({ names: ['localhost', 'a.test'], ipAddresses: ['127.0.0.1'], ca: authority })
const lookup = ((_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }] as never, 4)) as LookupFunction

function clientOf(t: TestContext, options: ClientOptions = {}): Client {
  const client = new Client({ lookup, ...options, tls: { ca: authority.cert, ...options.tls } })
  t.after(async () => {
    client.destroy()
    await client.close()
  })
  return client
}

/** Sends every message back. */
async function echoServer(t: TestContext, options: Partial<ServeOptions> = {}): Promise<Server> {
  const server = await serve({
    port: 0,
    hostname: '127.0.0.1',
    websocket: true,
    fetch(request) {
      if (request.headers.get('upgrade') === null) return new Response('page')
      const { response, socket } = upgrade(request, { protocol: ['echo'], deflate: true })
      socket.binaryType = 'uint8array'
      socket.onmessage = ({ data }) => socket.send(data as string)
      return response
    },
    ...options,
  } as ServeOptions)
  t.after(() => server.close({ deadline: 0 }))
  return server
}

/** Listens, and closes at the end with every connection. */
async function listening<T extends NetServer>(t: TestContext, server: T, path?: string): Promise<T> {
  const sockets = new Set<NetSocket>()
  server.on('connection', (socket: NetSocket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => (path === undefined ? server.listen(0, '127.0.0.1', resolve) : server.listen(path, resolve)))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return server
}

const portOf = (server: NetServer): number => (server.address() as AddressInfo).port

/** The frames of RFC 6455, by hand, on a duplex of Node's: every message comes back. */
function echoFrames(duplex: Duplex): void {
  const log = new FrameLog()
  let told = 0
  duplex.on('error', () => {})
  duplex.on('data', (chunk: Uint8Array) => {
    log.add(chunk)
    for (; told < log.frames.length; told++) {
      const { opcode, payload } = log.frames[told] as (typeof log.frames)[number]
      duplex.write(encodePeerFrame({ first: 0x80 | opcode, payload }, false))
      if (opcode === Opcode.Close) duplex.end()
    }
  })
}

/** Node's 'upgrade', answered by hand. */
function acceptByHand(request: IncomingMessage, socket: Duplex): void {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${accept}`, '', '']
  socket.write(lines.join('\r\n'))
  echoFrames(socket)
}

/** What comes back for `messages`, and how it ends when it is closed then. */
async function roundTrip(webSocket: WebSocket, messages: readonly (string | Uint8Array)[] = ['hello']): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let count = 0
  webSocket.binaryType = 'uint8array'
  webSocket.onopen = () => {
    for (const message of messages) webSocket.send(message)
  }
  webSocket.onmessage = ({ data }) => {
    try {
      assert.deepEqual(data, messages[count])
    } catch (error) {
      reject(error as Error)
    }
    if (++count === messages.length) resolve()
  }
  webSocket.onerror = ({ message }) => reject(new Error(message))
  await promise
  webSocket.close(1000)
  const { code, wasClean } = await webSocket.closed
  return `${webSocket.version} ${code} ${wasClean ? 'clean' : 'not clean'}`
}

test("Node's own HTTP server as a peer, and one that refuses", async (t) => {
  const server = createHttpServer((_request, response) => response.writeHead(404).end())
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    if (request.url === '/refused') socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    else acceptByHand(request, socket)
  })
  await listening(t, server)
  const client = clientOf(t)
  const url = `ws://127.0.0.1:${portOf(server)}`
  assert.equal(await roundTrip(new WebSocket(url, { client }), ['a', new Uint8Array([1, 2]), 'é'.repeat(70_000)]), 'h1 1000 clean')
  await assert.rejects(connect(`${url}/refused`, { client }), { code: 'HANDSHAKE_FAILED', status: 403 })
  // A server without an 'upgrade' listener answers as if nothing had been asked.
  const plain = await listening(
    t,
    createHttpServer((_request, response) => response.end('page')),
  )
  await assert.rejects(connect(`ws://127.0.0.1:${portOf(plain)}/`, { client }), { code: 'HANDSHAKE_FAILED', status: 200 })
  assert.equal(client.stats().streams, 0)
})

test('wss to a server of both versions: HTTP/1.1 while nothing is known, HTTP/2 over the connection of a fetch', async (t) => {
  const server = await echoServer(t, { tls: { cert: identity.cert, key: identity.key } })
  const client = clientOf(t)
  const url = `wss://127.0.0.1:${server.port}/chat`
  assert.equal(await roundTrip(new WebSocket(url, { client, protocols: 'echo' })), 'h1 1000 clean')
  assert.equal(await (await client.fetch(url.replace('wss', 'https'))).text(), 'page')
  const before = client.stats()
  const webSockets = Array.from({ length: 20 }, () => new WebSocket(url, { client, protocols: ['echo'] }))
  assert.deepEqual(new Set(await Promise.all(webSockets.map((webSocket) => roundTrip(webSocket)))), new Set(['h2 1000 clean']))
  const { http2, streams, dialled } = client.stats()
  assert.deepEqual([http2.dialled, streams, dialled], [1, 0, before.dialled])
})

test('a client of HTTP/2 only, with TLS and by prior knowledge; a server that does not offer it', async (t) => {
  const secure = await echoServer(t, { tls: { cert: identity.cert, key: identity.key } })
  const plain = await echoServer(t)
  const client = clientOf(t, { protocols: ['h2'], h2c: true })
  assert.equal(await roundTrip(new WebSocket(`wss://127.0.0.1:${secure.port}/`, { client })), 'h2 1000 clean')
  assert.equal(await roundTrip(new WebSocket(`ws://127.0.0.1:${plain.port}/`, { client })), 'h2 1000 clean')
  const without = await serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('page') })
  t.after(() => without.close({ deadline: 0 }))
  for (const _ of ['a connection is made', 'it is there']) {
    await assert.rejects(connect(`ws://127.0.0.1:${without.port}/`, { client }), {
      code: 'HANDSHAKE_FAILED',
      status: 0,
      message: /takes no WebSockets over HTTP\/2 \(it does not offer extended CONNECT, RFC 8441\)/,
    })
  }
})

test('a client of HTTP/3 only, and a server that does not offer it', async (t) => {
  const client = clientOf(t, { protocols: ['h3'] })
  const tls = { cert: identity.cert, key: identity.key }
  const server = await serve({ hostname: '127.0.0.1', protocols: ['h3'], tls, fetch: () => new Response('page') })
  t.after(() => server.close({ deadline: 0 }))
  for (const _ of ['a connection is made', 'it is there']) {
    await assert.rejects(connect(`wss://127.0.0.1:${server.port}/`, { client }), {
      code: 'HANDSHAKE_FAILED',
      status: 0,
      message: /takes no WebSockets over HTTP\/3 \(it does not offer extended CONNECT, RFC 9220\)/,
    })
  }
})

/** Node's HTTP/2 server, which allows any number of streams. */
async function nodeServer(t: TestContext, onConnect: (stream: ServerHttp2Stream) => void): Promise<Http2SecureServer> {
  const { cert, key } = identity
  const server = createSecureServer({ cert, key, allowHTTP1: true, settings: { enableConnectProtocol: true } })
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on('error', () => {})
    if (headers[':method'] === 'CONNECT') return onConnect(stream)
    stream.respond({ ':status': 200 })
    stream.end('page')
  })
  server.on('upgrade', acceptByHand)
  return listening(t, server)
}

test("Node's HTTP/2 server as a peer", async (t) => {
  const server = await nodeServer(t, (stream) => {
    stream.respond({ ':status': 200 })
    echoFrames(stream)
  })
  const client = clientOf(t)
  const url = `wss://127.0.0.1:${portOf(server)}/`
  await (await client.fetch(url.replace('wss', 'https'))).text()
  const messages = ['a', randomBytes(100_000) as Uint8Array, 'z'].map((each) => (typeof each === 'string' ? each : new Uint8Array(each)))
  assert.equal(await roundTrip(new WebSocket(url, { client }), messages), 'h2 1000 clean')
  // However many streams it allows, the one that ended is known to have.
  assert.equal(client.stats().streams, 0)
})

test('a stream that is refused: the same WebSocket opens over HTTP/1.1', async (t) => {
  let refused = 0
  const server = await nodeServer(t, (stream) => {
    refused++
    stream.close(constants.NGHTTP2_REFUSED_STREAM)
  })
  const client = clientOf(t)
  const url = `wss://127.0.0.1:${portOf(server)}/`
  await (await client.fetch(url.replace('wss', 'https'))).text()
  assert.equal(await roundTrip(new WebSocket(url, { client })), 'h1 1000 clean')
  assert.deepEqual([refused, client.stats().http2.connections], [1, 1])
})

for (const deflate of [false, true]) {
  for (const version of ['h1', 'h2'] as const) {
    test(`messages of all sizes over ${version}, ${deflate ? 'compressed' : 'plain'}`, async (t) => {
      const server = await echoServer(t, { tls: { cert: identity.cert, key: identity.key } })
      const client = clientOf(t, { protocols: [version] })
      const noise = randomBytes(300_000)
      const messages = Array.from({ length: 400 }, (_, i) => {
        const size = i < 300 ? i : (i - 300) * 1_500
        return i % 2 === 0 ? 'täxt'.repeat(Math.ceil(size / 5)) : new Uint8Array(noise.subarray(0, size))
      })
      const webSocket = new WebSocket(`wss://127.0.0.1:${server.port}/`, { client, deflate })
      assert.equal(await roundTrip(webSocket, messages), `${version} 1000 clean`)
      assert.equal(webSocket.extensions.startsWith('permessage-deflate'), deflate)
      assert.equal(webSocket.bufferedAmount, 0)
    })
  }
}

test('back pressure: a writer waits for a server that does not read, and goes on when it does', async (t) => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<WebSocket>()
  const server = await serve({
    port: 0,
    hostname: '127.0.0.1',
    websocket: true,
    fetch(request) {
      const { response, socket } = upgrade(request)
      arrive(socket)
      return response
    },
  })
  t.after(() => server.close({ deadline: 0 }))
  const client = clientOf(t)
  const webSocket = new WebSocket(`ws://127.0.0.1:${server.port}/`, { client })
  const peer = await arrived
  const first = peer.read()
  const chunk = new Uint8Array(1_000_000)
  let written = 0
  const writing = (async (): Promise<void> => {
    for (; written < 50; written++) await webSocket.write(chunk)
  })()
  await first
  while (webSocket.bufferedAmount === 0) await new Promise((resolve) => setImmediate(resolve))
  const stuck = written
  assert.ok(stuck < 30, `${stuck} MB went to somebody who read one`)
  for (let i = 1; i < 50; i++) assert.equal(((await peer.read()) as Uint8Array).length, 1_000_000)
  await writing
  assert.equal(webSocket.bufferedAmount, 0)
})

test('through proxies: plain to the proxy itself, secure through its tunnel', async (t) => {
  const server = await echoServer(t)
  const secure = await echoServer(t, { tls: { cert: identity.cert, key: identity.key } })
  const seen: string[] = []
  const proxy = createHttpServer()
  const relay = (socket: Duplex, port: number, first: string): void => {
    const target = connectSocket(port, '127.0.0.1', () => {
      target.write(first)
      if (first === '') socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(target).pipe(socket)
    })
    for (const end of [socket, target]) end.on('error', () => end.destroy())
  }
  proxy.on('connect', (request: IncomingMessage, socket: Duplex) => {
    seen.push(`CONNECT ${request.url}`)
    relay(socket, secure.port, '')
  })
  proxy.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    seen.push(`GET ${request.url}`)
    const lines: string[] = []
    for (let i = 0; i < request.rawHeaders.length; i += 2) lines.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}`)
    relay(socket, server.port, ['GET / HTTP/1.1', ...lines, '', ''].join('\r\n'))
  })
  await listening(t, proxy)
  const client = clientOf(t, { proxy: `http://127.0.0.1:${portOf(proxy)}` })
  assert.equal(await roundTrip(new WebSocket('ws://a.test/', { client })), 'h1 1000 clean')
  assert.equal(await roundTrip(new WebSocket('wss://a.test/', { client })), 'h1 1000 clean')
  assert.deepEqual(seen, ['GET http://a.test/', 'CONNECT a.test:443'])
})

test('over a Unix socket', async (t) => {
  const name = `heddle-websocket-${process.pid}`
  const path = process.platform === 'win32' ? String.raw`\\.\pipe\${name}` : join(tmpdir(), `${name}.sock`)
  const server = createHttpServer()
  server.on('upgrade', acceptByHand)
  await listening(t, server, path)
  const client = clientOf(t, { socketPath: path })
  assert.equal(await roundTrip(new WebSocket('ws://any.test/', { client })), 'h1 1000 clean')
})

test('a certificate that is not trusted, a port nobody listens on: the error says what and where', async (t) => {
  const server = await echoServer(t, { tls: { cert: identity.cert, key: identity.key } })
  const client = new Client()
  t.after(() => client.close())
  const told: string[] = []
  for (const url of [`wss://127.0.0.1:${server.port}/?secret`, 'ws://127.0.0.1:1/']) {
    const webSocket = new WebSocket(url, { client })
    webSocket.onerror = ({ message, error }) => told.push(`${(error as { code: string }).code} ${message}`)
    assert.equal((await webSocket.closed).code, 1006)
  }
  assert.match(told[0] ?? '', new RegExp(`^TLS_FAILED wss://127\\.0\\.0\\.1:${server.port}/: .*certificate`))
  assert.match(told[1] ?? '', /^CONNECT_FAILED ws:\/\/127\.0\.0\.1:1\/: /)
})

test('the process lives as long as the WebSocket, and no longer', async (t) => {
  const server = createHttpServer()
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    acceptByHand(request, socket)
    if (request.url === '/ends')
      setTimeout(() => socket.write(encodePeerFrame({ first: 0x88, payload: Buffer.from([0x03, 0xe8]) }, false)), 200)
  })
  await listening(t, server)
  const script = `
    import { WebSocket } from ${JSON.stringify(new URL('./web-socket.ts', import.meta.url).href)}
    const [url] = process.argv.slice(1)
    const webSocket = new WebSocket(url)
    webSocket.onopen = () => url.endsWith('/ends') || webSocket.close(1000)
    webSocket.onclose = ({ code, wasClean }) => console.log('closed', code, wasClean)`
  for (const path of ['/ends', '/closed']) {
    const url = `ws://127.0.0.1:${portOf(server)}${path}`
    const child = spawn(process.execPath, ['--conditions=@heddle/source', '--input-type=module', '-e', script, url])
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const code = await new Promise((resolve) => child.on('close', resolve))
    assert.deepEqual([code, output.trim()], [0, 'closed 1000 true'], path)
  }
})
