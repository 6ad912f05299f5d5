/** 'upgrade' as listeners of Node's own server know it, each story told on that server as well. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createNodeServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { createServer, UpgradeSocket } from './index.ts'

type Backend = 'node:http' | 'h1' | 'h2c'
type Listener = (request: IncomingMessage, socket: UpgradeSocket, head: Buffer) => void

const key = Buffer.alloc(16, 5).toString('base64')

/** A client's side of a tunnel, or what it was told instead. */
interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly tunnel: Duplex | undefined
  readonly text: string
}

interface Scene {
  readonly server: ReturnType<typeof createServer>
  /** What listeners that threw told. */
  readonly told: unknown[]
  ask(headers?: Record<string, string>): Promise<Answer>
}

async function open(t: TestContext, backend: Backend, listener: Listener | undefined): Promise<Scene> {
  const told: unknown[] = []
  const server =
    backend === 'node:http'
      ? (createNodeServer((_request, response) => response.end('a page')) as unknown as ReturnType<typeof createServer>)
      : createServer({ onError: (error) => void told.push(error) }, (_request, response) => response.end('a page'))
  server.listen(0, '127.0.0.1')
  // In the same tick, after `listen`: as programs do.
  if (listener !== undefined) server.on('upgrade', listener)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  let session: ClientHttp2Session | undefined
  t.after(async () => {
    session?.destroy()
    const closed = once(server, 'close')
    if (backend === 'node:http') server.close()
    else server.close({ deadline: 0 })
    server.closeAllConnections()
    await closed
  })
  if (backend === 'h2c') {
    session = connectHttp2(`http://127.0.0.1:${port}`)
    session.on('error', () => {})
    await once(session, 'remoteSettings')
  }
  return { server, told, ask: (headers = {}) => (session === undefined ? askHttp1(t, port, headers) : askHttp2(session, headers)) }
}

function askHttp1(t: TestContext, port: number, headers: Record<string, string>): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const handshake = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': key, 'sec-websocket-version': '13' }
  const request = httpRequest({ port, host: '127.0.0.1', path: '/chat?a=1', headers: { ...handshake, ...headers }, agent: false })
  request.on('upgrade', (response, tunnel, head) => {
    tunnel.unshift(head)
    t.after(() => tunnel.destroy())
    resolve({ status: response.statusCode as number, headers: response.headers, tunnel, text: '' })
  })
  request.on('response', (response) => {
    void response.toArray().then((chunks) => {
      resolve({ status: response.statusCode as number, headers: response.headers, tunnel: undefined, text: chunks.join('') })
    }, reject)
  })
  request.on('error', reject)
  request.end()
  return promise
}

async function askHttp2(session: ClientHttp2Session, headers: Record<string, string>): Promise<Answer> {
  const tunnel = session.request({
    ':method': 'CONNECT',
    ':protocol': 'websocket',
    ':scheme': 'http',
    ':path': '/chat?a=1',
    'sec-websocket-version': '13',
    ...headers,
  })
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
  tunnel.on('response', resolve)
  tunnel.on('error', reject)
  tunnel.on('close', () => reject(new Error('closed without an answer')))
  const answered = await promise
  const status = answered[':status'] as number
  if (status === 200) return { status, headers: answered, tunnel, text: '' }
  return { status, headers: answered, tunnel: undefined, text: (await tunnel.toArray()).join('') }
}

function onAll(name: string, story: (t: TestContext, backend: Backend) => Promise<void>): void {
  for (const backend of ['node:http', 'h1', 'h2c'] as const) test(`${name} (${backend})`, { timeout: 20_000 }, (t) => story(t, backend))
}

/** What programs do that speak the protocol by themselves. */
function accept(request: IncomingMessage, socket: Duplex): void {
  const digest = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${digest}\r\nX-Own: yes\r\n\r\n`,
  )
}

onAll('a 101 that is written opens the tunnel, and bytes go both ways to their end', async (t, backend) => {
  const seen: unknown[] = []
  const events: string[] = []
  const { ask } = await open(t, backend, (request, socket, head) => {
    const { method, url, httpVersion, headers } = request
    seen.push(method, url, httpVersion, headers.upgrade, headers.connection, headers['sec-websocket-version'], headers['sec-websocket-key'])
    seen.push(head.length, request.socket === (socket as unknown), socket.remoteAddress, socket.encrypted)
    for (const name of ['end', 'finish', 'close']) socket.on(name, () => events.push(name))
    accept(request, socket)
    socket.pipe(socket)
  })
  const { status, headers, tunnel } = await ask()
  const h2 = backend === 'h2c'
  assert.deepEqual([status, headers['x-own']], [h2 ? 200 : 101, 'yes'])
  assert.equal(
    headers['sec-websocket-accept'],
    h2 ? undefined : createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64'),
  )
  assert.deepEqual(seen.splice(0, 6), ['GET', '/chat?a=1', h2 ? '2.0' : '1.1', 'websocket', 'Upgrade', '13'])
  assert.equal(Buffer.from(seen[0] as string, 'base64').length, 16)
  assert.deepEqual(seen.slice(1), [0, true, '127.0.0.1', undefined])
  assert.ok(tunnel !== undefined)
  const large = Buffer.alloc(1_000_000, 'heddle ')
  tunnel.end(large)
  assert.ok(Buffer.concat(await tunnel.toArray()).equals(large))
  await until(() => events.length === 3)
  assert.deepEqual(events.sort(), ['close', 'end', 'finish'])
})

onAll('a refusal that is written and destroyed, or ended, reaches the client', async (t, backend) => {
  const answers: Record<string, (socket: Duplex) => void> = {
    bare: (socket) => {
      socket.write('HTTP/1.1 401 Unauthorized\r\n\r\n')
      socket.destroy()
    },
    ended: (socket) => socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\nX-Why: no\r\nContent-Length: 3\r\n\r\nno\n'),
    parts: (socket) => {
      socket.write('HTTP/1.1 400 Bad')
      socket.write(' Request\r\nContent-Length: 5\r\n\r\n')
      socket.write('parts')
      socket.end()
    },
    unsized: (socket) => socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\nlater'),
  }
  const { ask } = await open(t, backend, (request, socket) => answers[request.headers['x-kind'] as string]?.(socket))
  for (const [kind, status, text] of [
    ['bare', 401, ''],
    ['ended', 403, 'no\n'],
    ['parts', 400, 'parts'],
    ['unsized', 503, 'later'],
  ] as const) {
    const answer = await ask({ 'x-kind': kind })
    assert.deepEqual([answer.status, answer.text], [status, text], kind)
    assert.equal(answer.headers['x-why'], kind === 'ended' ? 'no' : undefined)
  }
})

onAll('a socket that is destroyed without an answer leaves the client without one', async (t, backend) => {
  const { ask } = await open(t, backend, (_request, socket) => socket.destroy())
  await assert.rejects(ask())
})

onAll('a client that leaves is told by end or close, and needs no listener for errors', async (t, backend) => {
  const events: string[] = []
  const { ask } = await open(t, backend, (request, socket) => {
    for (const name of ['end', 'close']) socket.on(name, () => events.push(name))
    accept(request, socket)
    socket.resume()
    socket.on('end', () => socket.end())
  })
  const { tunnel } = await ask()
  tunnel?.destroy()
  await until(() => events.includes('close'))
})

onAll('writing waits for the client to read', async (t, backend) => {
  const drained = Promise.withResolvers<void>()
  let written = 0
  const { ask } = await open(t, backend, (request, socket) => {
    accept(request, socket)
    socket.on('error', () => {})
    const chunk = Buffer.alloc(65_536)
    const more = (): void => {
      do written++
      while (socket.write(chunk) && written < 640)
      if (written >= 640) socket.end()
      else socket.once('drain', more)
    }
    more()
    socket.on('finish', () => drained.resolve())
  })
  const { tunnel } = await ask()
  tunnel?.pause()
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.ok(written < 640, 'all of it is held somewhere')
  let read = 0
  tunnel?.on('data', (chunk: Buffer) => (read += chunk.length))
  tunnel?.resume()
  await drained.promise
  tunnel?.end()
  await until(() => read === 640 * 65_536)
})

test('without a listener an Upgrade is ignored, and HTTP/2 clients are not told that they may ask', { timeout: 20_000 }, async (t) => {
  for (const backend of ['node:http', 'h1'] as const) {
    const { ask } = await open(t, backend, undefined)
    const { status, text } = await ask()
    assert.deepEqual([status, text], [200, 'a page'], backend)
  }
  const { server } = await open(t, 'h2c', undefined)
  const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const [settings] = (await once(session, 'remoteSettings')) as [{ enableConnectProtocol?: boolean }]
  assert.ok(settings.enableConnectProtocol !== true)
  session.destroy()
})

test('a listener that goes away leaves Upgrades to be ignored, over HTTP/2 refused', { timeout: 20_000 }, async (t) => {
  for (const [backend, status] of [
    ['h1', 200],
    ['h2c', 501],
  ] as const) {
    const { server, ask } = await open(t, backend, () => {})
    server.removeAllListeners('upgrade')
    if (backend === 'h1') assert.equal((await ask()).text, 'a page')
    else assert.equal((await ask()).status, status)
  }
})

test('what a listener throws, and text that is no response, end that tunnel alone', { timeout: 20_000 }, async (t) => {
  for (const backend of ['h1', 'h2c'] as const) {
    const errors: string[] = []
    const { told, ask } = await open(t, backend, (request, socket) => {
      socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code as string))
      const kind = request.headers['x-kind'] as string
      if (kind === 'throw') throw new Error('thrown')
      socket.write(kind)
    })
    await assert.rejects(ask({ 'x-kind': 'throw' }))
    assert.equal((told[0] as Error).message, 'thrown')
    assert.equal(errors.length, 0)
  }
  const texts: string[] = []
  const { ask } = await open(t, 'h1', (_request, socket) => {
    socket.on('error', (error: NodeJS.ErrnoException) => texts.push(error.code as string))
    socket.write(pending.shift() as string)
  })
  const pending = [
    'HELLO\r\n\r\n',
    'HTTP/1.1 200 OK\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\n\r\n',
    'HTTP/1.1 404 Not Found\r\nno colon\r\n\r\n',
    'HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'HTTP/1.1 404 Not Found\r\nbad name: x\r\n\r\n',
    'x'.repeat(70_000),
  ]
  const count = pending.length
  for (let i = 0; i < count; i++) await assert.rejects(ask())
  assert.equal(texts.length, count)
  assert.deepEqual(new Set(texts), new Set(['ERR_INVALID_HTTP_RESPONSE', 'ERR_INVALID_HTTP_TOKEN']))
})

test('a socket is taken over once, and only before it was answered', { timeout: 20_000 }, async (t) => {
  const { ask } = await open(t, 'h1', (_request, socket) => {
    if (pending.shift() === 'written') {
      socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
      assert.throws(() => socket.takeOver(), { code: 'USAGE' })
      socket.end()
      return
    }
    const exchange = socket.takeOver()
    assert.throws(() => socket.takeOver(), { code: 'USAGE' })
    exchange.cancel(1)
  })
  const pending = ['written', 'taken']
  assert.equal((await ask()).status, 404)
  await assert.rejects(ask())
})

async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < end, 'waited too long')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
