/** The package ws: its client with heddle's server, heddle's client with its server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { WebSocket, WebSocketServer, type PerMessageDeflateOptions, type RawData } from 'ws'
import { isSame, messageCount, messageOf, type Message } from '../src/websocket-messages.ts'
import { farewells, offered, spoken, type Conversation } from '../src/websocket-standard.ts'
import {
  checkFound,
  checkSize,
  clientStory,
  conversations,
  pingCount,
  serverStory,
  type ConversationKind,
  type Deflate,
} from '../src/websocket-stories.ts'

const quick = { timeout: 60_000 }

const deflates: Readonly<Record<Deflate, PerMessageDeflateOptions | false>> = {
  off: false,
  takeover: { threshold: 128 },
  fresh: { serverNoContextTakeover: true, clientNoContextTakeover: true },
}

function read(data: RawData, isBinary: boolean): Message {
  return isBinary ? new Uint8Array(data as Buffer<ArrayBuffer>) : (data as Buffer).toString()
}

/** Sends a message whole, or every tenth in fragments with a Ping between them. */
function send(webSocket: WebSocket, index: number): Promise<void> {
  const message = messageOf(index)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const sent = (error?: Error | null): void => (error ? reject(error) : resolve())
  if (index % 10 !== 0) webSocket.send(message, sent)
  else {
    const bytes = Buffer.from(message as string)
    const binary = typeof message !== 'string'
    const [first, second] = [Math.floor(bytes.length / 3), Math.floor(bytes.length / 2)]
    webSocket.send(bytes.subarray(0, first), { binary, fin: false })
    webSocket.send(bytes.subarray(first, second), { binary, fin: false })
    if (index % 1000 === 500) webSocket.ping(`pick ${index}`)
    webSocket.send(bytes.subarray(second), { binary, fin: true }, sent)
  }
  return promise
}

/** Receives and compares; `heard` is told after each. */
function listen(webSocket: WebSocket, heard: (count: number) => void): { received: number; fault: string; pings: number; pongs: string[] } {
  const course = { received: 0, fault: '', pings: 0, pongs: [] as string[] }
  webSocket.on('ping', () => course.pings++)
  webSocket.on('pong', (payload) => course.pongs.push(payload.toString()))
  webSocket.on('error', (error) => (course.fault ||= String(error)))
  webSocket.on('message', (data, isBinary) => {
    if (isSame(read(data, isBinary), messageOf(course.received))) heard(++course.received)
    else {
      course.fault ||= `message ${course.received} is not what should come`
      webSocket.close(4400)
    }
  })
  return course
}

/** What the Pings of {@link send} are answered with. */
function expectedPongs(count: number): string[] {
  return Array.from({ length: pingCount(count) }, (_, i) => `pick ${i * 1000 + 500}`)
}

/** `extensions` of ws has their names alone. */
async function endOf(webSocket: WebSocket): Promise<Omit<Conversation, 'received' | 'fault' | 'extensions'>> {
  const [code, reason] = (await once(webSocket, 'close')) as [number, Buffer]
  return { protocol: webSocket.protocol, code, reason: reason.toString(), wasClean: code !== 1006 }
}

async function converse(url: string, [, closer, count]: ConversationKind, perMessageDeflate: PerMessageDeflateOptions | false) {
  const webSocket = new WebSocket(url, [...offered], { perMessageDeflate })
  const upgraded = once(webSocket, 'upgrade') as Promise<[IncomingMessage]>
  const ended = endOf(webSocket)
  const course = listen(webSocket, (received) => {
    if (received === count && closer === 'client') webSocket.close(farewells.client.code, farewells.client.reason)
  })
  await once(webSocket, 'open')
  for (let index = 0; index < count && webSocket.readyState === WebSocket.OPEN; index++) await send(webSocket, index)
  const [{ headers }] = await upgraded
  const end = await ended
  const found = { ...course, ...end, extensions: headers['sec-websocket-extensions'] ?? '' }
  assert.deepEqual([found.pings, found.pongs], [pingCount(count), expectedPongs(count)])
  return found
}

interface WsServer {
  readonly port: number
  readonly found: Promise<Conversation & { pings: number; pongs: string[]; bytesRead: number; bytesWritten: number }>[]
}

/** A server of ws that sends back what comes, as long as it is what should come. */
async function openWsServer(t: TestContext, perMessageDeflate: PerMessageDeflateOptions | false): Promise<WsServer> {
  const server = createServer()
  const handleProtocols = (names: Set<string>): string | false => spoken.find((name) => names.has(name)) ?? false
  const webSockets = new WebSocketServer({ server, perMessageDeflate, handleProtocols })
  const found: WsServer['found'] = []
  let extensions = ''
  webSockets.on('headers', (lines) => {
    extensions = lines.find((line) => line.startsWith('Sec-WebSocket-Extensions: ')) ?? ''
  })
  webSockets.on('connection', (webSocket: WebSocket, { socket, url }: IncomingMessage) => {
    const { searchParams } = new URL(url as string, 'http://heddle.test')
    const last = searchParams.get('closer') === 'server' ? Number(searchParams.get('count')) : Infinity
    let sending = Promise.resolve()
    const course = listen(webSocket, (received) => {
      sending = sending.then(() => send(webSocket, received - 1))
      if (received === last) sending = sending.then(() => webSocket.close(farewells.server.code, farewells.server.reason))
      sending.catch((error: unknown) => (course.fault ||= String(error)))
    })
    const opened = { extensions }
    found.push(
      endOf(webSocket).then((end) => ({ ...course, ...end, ...opened, bytesRead: socket.bytesRead, bytesWritten: socket.bytesWritten })),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const webSocket of webSockets.clients) webSocket.terminate()
    webSockets.close()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, found }
}

async function tellServerStory(t: TestContext, kind: ConversationKind, deflate: PerMessageDeflateOptions | false, options = {}) {
  const [, , count] = kind
  const { port, found } = await openWsServer(t, deflate)
  await serverStory(t, kind, port, options)
  assert.equal(found.length, 1)
  const theirs = (await found[0]) as Awaited<WsServer['found'][0]>
  checkFound(theirs, 'server', kind)
  assert.deepEqual([theirs.pings, theirs.pongs], [pingCount(count), expectedPongs(count)])
  checkSize(theirs.bytesRead, count, deflate !== false)
  checkSize(theirs.bytesWritten, count, deflate !== false)
  return theirs
}

for (const kind of conversations) {
  const [deflate, closer, count] = kind
  const name = `${count} messages, deflate ${deflate}, the ${closer} closes`
  test(`the client of ws: ${name}`, quick, (t) => clientStory(t, kind, true, (url) => converse(url, kind, deflates[deflate])))
  test(`the server of ws: ${name}`, quick, async (t) => {
    await tellServerStory(t, kind, deflates[deflate])
  })
}

test('the client of ws, with small windows', quick, (t) => {
  const kind: ConversationKind = ['takeover', 'client', messageCount]
  return clientStory(t, kind, true, async (url) => {
    const found = await converse(url, kind, { threshold: 128, serverMaxWindowBits: 10, clientMaxWindowBits: 9 })
    assert.match(found.extensions, /server_max_window_bits=10/)
    return found
  })
})

test('the server of ws, with small windows, and fragments from heddle', quick, async (t) => {
  const deflate = { threshold: 128, serverMaxWindowBits: 9, clientMaxWindowBits: 10 }
  const { extensions } = await tellServerStory(t, ['takeover', 'client', messageCount], deflate, { fragmentSize: 1000 })
  assert.match(extensions, /server_max_window_bits=9/)
  assert.match(extensions, /client_max_window_bits=10/)
})
