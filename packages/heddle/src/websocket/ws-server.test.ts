/** The server of the package ws, over every version, with heddle's own clients. What programs for ws do is told in the interop tests. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { Client } from '../client/index.ts'
import { createServer, type IncomingMessage, type NodeServer, type NodeServerOptions, type UpgradeSocket } from '../node/index.ts'
import type { Address, HeddleError } from '../http/index.ts'
import { makeCertificate } from '../testing/index.ts'
import { noHttp3 } from '../../test/h3-client.ts'
import { connect } from './connect.ts'
import type { ConnectOptions } from './connect-options.ts'
import { HandshakeError } from './handshake-error.ts'
import { NodeWebSocket } from './node-web-socket.ts'
import type { Socket } from './socket.ts'
import { WebSocketServer } from './ws-server.ts'
import type { VerifyInfo, WebSocketServerOptions } from './ws-options.ts'

type Version = 'h1' | 'h2' | 'h3'

const { cert, key } = makeCertificate({ names: ['localhost'], ipAddresses: ['127.0.0.1'] })

interface Scene {
  readonly wss: WebSocketServer
  readonly server: NodeServer
  readonly version: Version
  /** What `onError` of the server was told. */
  readonly told: unknown[]
  visit(options?: ConnectOptions, path?: string): Promise<Socket>
  /** The status it is refused with. */
  refused(options?: ConnectOptions, path?: string): Promise<number>
}

function onAll(name: string, story: (t: TestContext, version: Version) => Promise<void>): void {
  for (const version of ['h1', 'h2', 'h3'] as const)
    test(`${name} (${version})`, { timeout: 20_000, skip: version === 'h3' && noHttp3 }, (t) => story(t, version))
}

function optionsOf(version: Version): NodeServerOptions {
  return version === 'h3' ? { protocols: ['h3'], tls: { cert, key } } : {}
}

function clientOf(version: Version): Client {
  if (version === 'h3') return new Client({ protocols: ['h3'], tls: { ca: cert } })
  return new Client(version === 'h2' ? { h2c: true, protocols: ['h2'] } : {})
}

/** A server of its own, or one around which `noServer` is used. */
async function open(t: TestContext, version: Version, options: WebSocketServerOptions = {}): Promise<Scene> {
  const told: unknown[] = []
  const server = createServer({ onError: (error) => void told.push(error), ...optionsOf(version) }, (_request, response) =>
    response.end('a page'),
  )
  const wss = new WebSocketServer({ server, ...options })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = clientOf(version)
  t.after(async () => {
    client.destroy()
    await new Promise<void>((resolve) => server.close({ deadline: 0 }, () => resolve()))
    assert.deepEqual([server.stats()?.connections, server.stats()?.exchanges], [0, 0])
    assert.equal(wss.clients?.size ?? 0, 0)
  })
  const url = `${version === 'h3' ? 'wss' : 'ws'}://127.0.0.1:${(server.address() as Address).port}`
  const visit = async (asked: ConnectOptions = {}, path = '/'): Promise<Socket> => {
    const socket = await connect(url + path, { client, ...asked })
    assert.equal(socket.version, version)
    return socket
  }
  const refused = async (asked?: ConnectOptions, path?: string): Promise<number> => {
    const error: unknown = await visit(asked, path).catch((reason: unknown) => reason)
    assert.ok(error instanceof HandshakeError, String(error))
    return error.status
  }
  return { wss, server, version, told, visit, refused }
}

/** The server's side of the next WebSocket. */
async function next(wss: WebSocketServer): Promise<NodeWebSocket> {
  const [webSocket] = (await once(wss, 'connection')) as [NodeWebSocket]
  return webSocket
}

onAll('messages come with what they are, and leave as they are sent', async (t, version) => {
  const { wss, visit } = await open(t, version, { perMessageDeflate: true })
  const got: unknown[] = []
  wss.on('connection', (webSocket: NodeWebSocket, request: IncomingMessage) => {
    got.push(request.url, request.headers.host?.startsWith('127.0.0.1'), request.socket.remoteAddress)
    webSocket.on('message', (data: Buffer, isBinary: boolean) => {
      got.push(Buffer.isBuffer(data), String(data), isBinary)
      webSocket.send(data, { binary: isBinary })
    })
  })
  const socket = await visit({}, '/room?a=1')
  const [ours] = [...wss.clients] as [NodeWebSocket]
  assert.deepEqual(
    [ours.readyState, ours.OPEN, NodeWebSocket.OPEN, ours.extensions, ours.protocol, ours.version],
    [1, 1, 1, 'permessage-deflate', '', version],
  )
  await socket.write('text')
  assert.equal(await socket.read(), 'text')
  await socket.write(Buffer.from('bytes'))
  assert.deepEqual(await socket.read(), new Uint8Array(Buffer.from('bytes')))
  assert.deepEqual(got, ['/room?a=1', true, '127.0.0.1', true, 'text', false, true, 'bytes', true])

  ours.removeAllListeners('message')
  ours.send(42)
  ours.send(new Uint8Array([1]).buffer)
  ours.send(new Uint16Array([513]))
  ours.send('bytes', { binary: true })
  ours.send(Buffer.from('text'), { binary: false, compress: false })
  ours.send(undefined as never)
  const sent: unknown[] = []
  for (let i = 0; i < 6; i++) sent.push(await socket.read())
  const bytes = (...all: number[]): Uint8Array => new Uint8Array(all)
  assert.deepEqual(sent, ['42', bytes(1), bytes(1, 2), new Uint8Array(Buffer.from('bytes')), 'text', bytes()])

  // In parts, which arrive as one; and a Blob, which holds back what is behind it.
  const order: string[] = []
  ours.send('one ', { fin: false }, () => order.push('one'))
  ours.send(Buffer.from('message'), { fin: true }, () => order.push('two'))
  ours.send(new Blob(['blob']), {}, () => order.push('blob'))
  ours.send('behind', () => order.push('behind'))
  ours.close(1000, Buffer.from('done'))
  assert.equal(await socket.read(), 'one message')
  assert.deepEqual(await socket.read(), new Uint8Array(Buffer.from('blob')))
  assert.equal(await socket.read(), 'behind')
  assert.deepEqual(order, ['one', 'two', 'blob', 'behind'])
  const { code, reason } = await socket.closed
  assert.deepEqual([code, reason], [1000, 'done'])
})

onAll('bytes come as binaryType says', async (t, version) => {
  const { wss, visit } = await open(t, version)
  const [ours, socket] = await Promise.all([next(wss), visit()])
  for (const [type, check] of [
    ['arraybuffer', (data: unknown) => data instanceof ArrayBuffer && data.byteLength === 3],
    ['fragments', (data: unknown) => Array.isArray(data) && Buffer.concat(data as Buffer[]).toString() === 'abc'],
    ['blob', (data: unknown) => data instanceof Blob && data.size === 3],
    ['nodebuffer', (data: unknown) => Buffer.isBuffer(data) && data.toString() === 'abc'],
  ] as const) {
    ours.binaryType = type
    const [binary] = await Promise.all([once(ours, 'message'), socket.write(Buffer.from('abc'))])
    assert.ok(check(binary[0]), type)
    const [text] = await Promise.all([once(ours, 'message'), socket.write('abc')])
    assert.deepEqual(text, [Buffer.from('abc'), false])
  }
  socket.close()
})

onAll('pings, pongs, pauses, and the end', async (t, version) => {
  const { wss, visit } = await open(t, version)
  const [ours, socket] = await Promise.all([next(wss), visit()])
  const [[ping]] = (await Promise.all([once(ours, 'ping'), socket.ping('are you there')])) as [[Buffer], void]
  assert.equal(ping.toString(), 'are you there')
  const [[pong], sent] = await Promise.all([
    once(ours, 'pong'),
    new Promise((resolve) => ours.ping('and you', false, resolve as () => void)),
  ])
  assert.deepEqual([String(pong), sent], ['and you', undefined])
  const pongs: string[] = []
  socket.handler = { onMessage() {}, onPong: (_socket, payload) => void pongs.push(Buffer.from(payload).toString()) }
  ours.pong(7, () => {})
  ours.pong()
  while (pongs.length < 2) await new Promise((resolve) => setTimeout(resolve, 2))
  assert.deepEqual(pongs, ['7', ''])

  const messages: string[] = []
  ours.on('message', (data: Buffer) => messages.push(String(data)))
  ours.pause()
  assert.equal(ours.isPaused, true)
  await socket.write('held')
  await new Promise((resolve) => setTimeout(resolve, 30))
  assert.deepEqual(messages, [])
  ours.resume()
  while (messages.length === 0) await new Promise((resolve) => setTimeout(resolve, 2))
  assert.deepEqual([messages, ours.isPaused, ours.bufferedAmount], [['held'], false, 0])

  assert.throws(() => ours.close(1005))
  const closed = once(ours, 'close')
  ours.close(4000, 'bye')
  assert.equal(ours.readyState, ours.CLOSING)
  const [code, reason] = (await closed) as [number, Buffer]
  assert.deepEqual([code, reason.toString(), ours.readyState], [4000, '', 3])
  const late = await new Promise<Error>((resolve) => ours.send('late', resolve as (error?: Error) => void))
  assert.match(late.message, /not open: readyState 3 \(CLOSED\)/)
  ours.send('late')
  ours.ping()
  ours.terminate()
})

onAll('terminate, a client that has gone, and one that breaks the rules', async (t, version) => {
  const { wss, visit } = await open(t, version)
  const [first, socket] = await Promise.all([next(wss), visit()])
  first.terminate()
  assert.deepEqual(await once(first, 'close'), [1006, Buffer.alloc(0)])
  assert.equal((await socket.closed).code, 1006)

  const [second, gone] = await Promise.all([next(wss), visit()])
  second.on('error', () => assert.fail('a client that has gone is no error'))
  gone.abort()
  assert.equal((await once(second, 'close'))[0], 1006)
  // Without a listener an error ends no process.
  for (const listens of [true, false]) {
    const [third, bad] = await Promise.all([next(wss), visit()])
    const errors: Error[] = []
    if (listens) third.on('error', (error) => errors.push(error))
    bad.post(Buffer.from([0xff]), { text: true })
    assert.equal(await new Promise((resolve) => third.once('close', resolve)), 1006)
    assert.equal((await bad.closed).code, 1007)
    assert.equal(errors.length, listens ? 1 : 0)
  }
})

onAll('listeners of the other kind', async (t, version) => {
  const { wss, visit } = await open(t, version)
  const [ours, socket] = await Promise.all([next(wss), visit()])
  const log: unknown[] = []
  const listener = {
    handleEvent: ({ type, data, target }: { type: string; data?: unknown; target: unknown }): void =>
      void log.push(type, data, target === ours),
  }
  ours.addEventListener('message', listener)
  ours.addEventListener('message', listener)
  ours.addEventListener('message', ({ data }) => log.push(`once ${data as string}`), { once: true })
  ours.addEventListener('nothing', () => log.push('nothing'))
  ours.onmessage = () => log.push('replaced')
  ours.onmessage = ({ data }) => log.push(`attribute ${data as string}`)
  await socket.write('a')
  while (log.length < 5) await new Promise((resolve) => setTimeout(resolve, 2))
  ours.removeEventListener('message', listener)
  await socket.write('b')
  while (log.length < 6) await new Promise((resolve) => setTimeout(resolve, 2))
  assert.deepEqual(log, ['message', 'a', true, 'once a', 'attribute a', 'attribute b'])
  ours.onmessage = null
  assert.deepEqual([ours.onmessage, ours.onclose, ours.onopen, ours.onerror], [null, null, null, null])
  const closed = new Promise((resolve) => (ours.onclose = ({ type, code, reason, wasClean }) => resolve([type, code, reason, wasClean])))
  socket.close(4000, 'why')
  assert.deepEqual(await closed, ['close', 4000, 'why', true])
})

onAll('what listeners throw closes that WebSocket, and is told', async (t, version) => {
  const thrown: unknown[] = []
  const { wss, told, visit } = await open(t, version, {
    onError: (error, webSocket) => thrown.push((error as Error).message, webSocket.readyState),
  })
  wss.once('connection', (webSocket: NodeWebSocket) => {
    webSocket.on('message', () => {
      throw new Error('in message')
    })
  })
  const socket = await visit()
  await socket.write('x')
  assert.equal((await socket.closed).code, 1011)
  assert.deepEqual(thrown, ['in message', 2])
  wss.once('connection', () => {
    throw new Error('in connection')
  })
  assert.equal((await (await visit()).closed).code, 1011)
  assert.match((told[0] as Error).message, /in connection/)
})

onAll('upgrades are refused as the options say', async (t, version) => {
  const { wss, refused, visit } = await open(t, version, { path: '/here', origin: 'https://app.example', maxPayload: 10 })
  assert.equal(await refused({}, '/elsewhere'), 400)
  assert.equal(await refused({}, '/here/not'), 400)
  assert.equal(await refused({ origin: 'https://evil.example' }, '/here?a'), 403)
  const socket = await visit({ origin: 'https://app.example' }, '/here?a=1')
  await socket.write('x'.repeat(11))
  assert.equal((await socket.closed).code, 1009)

  const seen: unknown[] = []
  wss.once('wsClientError', (error: Error, ours: UpgradeSocket, request: IncomingMessage) => {
    seen.push(error.message, request.url)
    ours.end('HTTP/1.1 410 Gone\r\n\r\n')
  })
  assert.equal(await refused({}, '/elsewhere'), 410)
  assert.deepEqual(seen, ['There is no WebSocket here.', '/elsewhere'])
})

onAll('a promise is no decision: it would let everybody in', async (t, version) => {
  for (const verdict of [async () => false, () => Promise.reject(new Error('of the program'))]) {
    const { visit, told } = await open(t, version, { verifyClient: ((_info: VerifyInfo) => verdict()) as never })
    await assert.rejects(visit())
    const [error] = told as [HeddleError]
    assert.match(error.message, /what verifyClient returns must be true or false \(or give it a callback\), not a Promise/)
  }
})

onAll('verifyClient decides, at once or later', async (t, version) => {
  let decide: (...parameters: never[]) => unknown = () => true
  const infos: unknown[] = []
  const { visit } = await open(t, version, {
    verifyClient: (info, done) => {
      infos.push(info.origin, info.secure, info.req.url)
      decide(done as never)
    },
  })
  decide = (done: (ok: boolean) => void) => setTimeout(() => done(true), 5)
  ;(await visit({ origin: 'https://a.example' }, '/x')).close()
  assert.deepEqual(infos, ['https://a.example', version === 'h3', '/x'])
  decide = (done: (...all: unknown[]) => void) => {
    done(false, 403, 'Not you', { 'x-why': 'because' })
    done(true)
  }
  const error: unknown = await visit().catch((reason: unknown) => reason)
  assert.ok(error instanceof HandshakeError)
  assert.deepEqual([error.status, error.headers.get('x-why')], [403, 'because'])
  // The client does not wait for it.
  let late: (() => void) | undefined
  decide = (done: (ok: boolean) => void) => (late = () => done(true))
  const controller = new AbortController()
  const left = assert.rejects(visit({ signal: controller.signal }))
  while (late === undefined) await new Promise((resolve) => setTimeout(resolve, 2))
  controller.abort()
  await left
  await new Promise((resolve) => setTimeout(resolve, 30))
  late()

  const simple = await open(t, version, { verifyClient: ({ origin }: VerifyInfo) => origin === 'https://b.example' })
  assert.equal(await simple.refused(), 401)
  ;(await simple.visit({ origin: 'https://b.example' })).close()
})

onAll('subprotocols, headers, a class of one’s own', async (t, version) => {
  class Own extends NodeWebSocket {
    readonly born: string = 'here'
  }
  const offered: unknown[] = []
  const { wss, visit } = await open(t, version, {
    WebSocket: Own,
    handleProtocols: (protocols) => {
      offered.push([...protocols])
      return protocols.has('b') ? 'b' : false
    },
  })
  const lines: string[][] = []
  wss.on('headers', (headers: string[], request: IncomingMessage) => {
    lines.push([...headers])
    headers.push(`X-Url: ${request.url}`, 'Set-Cookie: a=1')
  })
  const [ours, socket] = await Promise.all([next(wss), visit({ protocols: ['a', 'b'] }, '/p')])
  assert.ok(ours instanceof Own && ours.born === 'here')
  assert.deepEqual([ours.protocol, socket.protocol, offered], ['b', 'b', [['a', 'b']]])
  assert.deepEqual(lines, [['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', 'sec-websocket-protocol: b']])
  socket.close()
  const plain = await open(t, version)
  const chosen = await plain.visit({ protocols: ['first', 'second'] })
  assert.equal(chosen.protocol, 'first')
  chosen.close()
  // Headers that cannot be sent are the program's fault.
  wss.once('headers', (headers: string[]) => headers.push('bad name: x'))
  await assert.rejects(visit())
})

onAll('a server that closes ends its WebSockets with 1001', async (t, version) => {
  const { wss, server, visit } = await open(t, version)
  const sockets = await Promise.all([visit(), visit(), visit()])
  const closed = once(server, 'close')
  server.close({ deadline: 5000 })
  for (const socket of sockets) assert.deepEqual([(await socket.closed).code, (await socket.closed).wasClean], [1001, true])
  await closed
  assert.equal(wss.clients?.size, 0)
})

onAll('a server that has no server of its own takes what it is given', async (t, version) => {
  const wss = new WebSocketServer({ noServer: true, clientTracking: false })
  const other = new WebSocketServer({ noServer: true })
  assert.equal(wss.clients, undefined)
  assert.throws(() => wss.address(), /noServer/)
  const server = createServer(optionsOf(version))
  const told: unknown[] = []
  server.on('upgrade', (request: IncomingMessage, socket: UpgradeSocket, head: Buffer) => {
    if (request.url === '/nobody') return void socket.destroy()
    const to = request.url === '/other' ? other : wss
    to.handleUpgrade(request, socket, head, (webSocket) => {
      told.push(to === wss ? 'wss' : 'other', webSocket instanceof NodeWebSocket)
      webSocket.close(4000)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = clientOf(version)
  t.after(async () => {
    client.destroy()
    await new Promise<void>((resolve) => server.close({ deadline: 0 }, () => resolve()))
  })
  const url = `${version === 'h3' ? 'wss' : 'ws'}://127.0.0.1:${(server.address() as Address).port}`
  for (const path of ['/', '/other']) assert.equal((await (await connect(url + path, { client })).closed).code, 4000)
  await assert.rejects(connect(`${url}/nobody`, { client }))
  assert.deepEqual(told, ['wss', true, 'other', true])
  const events: unknown[] = []
  wss.on('close', () => events.push('close'))
  await new Promise<void>((resolve) => wss.close(() => resolve()))
  const again = await new Promise<Error | undefined>((resolve) => wss.close(resolve))
  assert.deepEqual([events, again?.message], [['close'], 'The server is not running'])
  // It takes nothing any more, and the other does.
  const error: unknown = await connect(`${url}/`, { client }).catch((reason: unknown) => reason)
  assert.equal((error as HandshakeError).status, 503)
  assert.throws(() => other.handleUpgrade({} as never, {} as never, Buffer.alloc(0), () => {}), { code: 'USAGE' })
})

test(
  'a server of its own listens, answers other requests with 426, and closes when the last WebSocket has gone',
  { timeout: 20_000 },
  async () => {
    const events: string[] = []
    const wss = new WebSocketServer({ port: 0, host: '127.0.0.1', backlog: 10 }, () => events.push('callback'))
    wss.on('listening', () => events.push('listening'))
    wss.on('close', () => events.push('close'))
    await once(wss, 'listening')
    const { port } = wss.address() as Address
    const response = await fetch(`http://127.0.0.1:${port}/`)
    assert.deepEqual([response.status, await response.text()], [426, 'Upgrade Required\n'])
    const client = new Client()
    const socket = await connect(`ws://127.0.0.1:${port}`, { client })
    const closed = new Promise<void>((resolve) => wss.close(() => resolve()))
    await new Promise((resolve) => setTimeout(resolve, 30))
    assert.deepEqual(events, ['callback', 'listening'], 'WebSockets are left alone')
    socket.close(1000)
    await closed
    assert.deepEqual(events, ['callback', 'listening', 'close'])
    await assert.rejects(connect(`ws://127.0.0.1:${port}`, { client }))
    await client.close()
  },
)

test('an address that is taken is an error event', { timeout: 20_000 }, async () => {
  const first = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(first, 'listening')
  const second = new WebSocketServer({ port: (first.address() as Address).port, host: '127.0.0.1' })
  const [error] = (await once(second, 'error')) as [NodeJS.ErrnoException]
  assert.equal(error.code, 'EADDRINUSE')
  await new Promise<void>((resolve) => first.close(() => resolve()))
})

test('options are checked', () => {
  const server = createServer()
  for (const options of [{}, { port: 0, noServer: true }, { port: 0, server }, { server, noServer: true }]) {
    assert.throws(() => new WebSocketServer(options), { name: 'TypeError', message: /One and only one/ })
  }
  for (const options of [{ autoPong: false }, { maxPaylod: 1 }, { perMessageDeflate: { treshold: 1 } }]) {
    assert.throws(() => new WebSocketServer({ noServer: true, ...(options as object) }), { code: 'USAGE' })
  }
})
