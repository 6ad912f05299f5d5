/**
 * Heddle's two ends of a conversation, and what must be true of every one: all messages arrive as they were sent and in
 * order, both ways, the subprotocol and the compression are those agreed on, Pings are answered, and the Close
 * of either side reaches the other.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Client, Response, type FetchHandler, type Server, type ServeOptions } from 'heddle'
import { upgrade, WebSocket, type ConnectOptions, type UpgradeDeflate } from 'heddle/websocket'
import { openServer } from './stage.ts'
import { isSame, messageCount, messageOf, totalSize } from './websocket-messages.ts'
import { farewells, offered, spoken, target, type Closer, type Conversation } from './websocket-standard.ts'

/** Whether a conversation is compressed, and whether each message may refer to those before it. */
export type Deflate = 'off' | 'takeover' | 'fresh'

/** How it is compressed, who closes, and how many messages there are. */
export type ConversationKind = readonly [deflate: Deflate, closer: Closer, count: number]

/** Those that are told with every peer. */
export const conversations: readonly ConversationKind[] = [
  ['off', 'client', messageCount],
  ['takeover', 'client', messageCount],
  ['fresh', 'client', messageCount],
  ['takeover', 'server', 200],
]

/** What heddle's side found. */
export interface Found extends Conversation {
  readonly version: 'h1' | 'h2' | 'h3' | undefined
  /** Of the connection, as the handlers of requests see it. */
  readonly connectionId: number | undefined
  /** Pings of its own that were answered. */
  readonly pongs: number
}

/** Pings sent by each side of heddle's in a conversation. */
export const pingCount = (count: number): number => Math.floor((count + 499) / 1000)

/** A server of heddle's, and what it finds of each conversation, in the order in which they begin. */
export interface EchoServer {
  readonly server: Server
  readonly found: readonly Promise<Found>[]
}

const deflates: Readonly<Record<Deflate, boolean | UpgradeDeflate>> = {
  off: false,
  takeover: true,
  fresh: { serverNoContextTakeover: true, clientNoContextTakeover: true },
}

/** Starts a server that sends back what comes, as long as it is what should come. `fetch` answers what asks for no WebSocket. */
export async function openEchoServer(
  t: TestContext,
  deflate: Deflate,
  options: Omit<ServeOptions, 'fetch' | 'onExchange'> & { readonly fetch?: FetchHandler } = {},
): Promise<EchoServer> {
  const found: Promise<Found>[] = []
  const { fetch: other = () => new Response('not here\n', { status: 404 }), ...rest } = options
  const server = await openServer(t, {
    ...rest,
    websocket: true,
    fetch: async (request, context) => {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname !== '/echo') return other(request, context)
      const { response, socket } = upgrade(request, { protocol: spoken, deflate: deflates[deflate] })
      const last = searchParams.get('closer') === 'server' ? Number(searchParams.get('count')) : Infinity
      found.push(echo(socket, last))
      return response
    },
  } as ServeOptions)
  return { server, found }
}

async function echo(socket: WebSocket, last: number): Promise<Found> {
  const course = { received: 0, pongs: 0, fault: '' }
  try {
    for await (const message of socket) {
      if (!isSame(message, messageOf(course.received))) throw new Error(`message ${course.received} is not what should come`)
      if (++course.received % 1000 === 500) socket.ping(`warp ${course.received}`, (time) => (course.pongs += time === undefined ? 0 : 1))
      await socket.write(message)
      if (course.received === last) socket.close(farewells.server.code, farewells.server.reason)
    }
  } catch (error) {
    course.fault = String(error)
    socket.close(4400, 'not what is expected')
  }
  const end = await endOf(socket)
  return { ...course, ...end }
}

/** Heddle's client: it writes and reads at once, each as fast as the server takes and gives. */
export async function converseByHeddle(
  url: string,
  count: number,
  closer: Closer,
  options: ConnectOptions & { readonly client: Client },
): Promise<Found> {
  const webSocket = new WebSocket(url, { ...options, protocols: offered })
  await webSocket.opened
  const course = { received: 0, pongs: 0, fault: '' }
  const write = async (): Promise<void> => {
    for (let index = 0; index < count; index++) {
      if (index % 1000 === 500) webSocket.ping(`weft ${index}`, (time) => (course.pongs += time === undefined ? 0 : 1))
      await webSocket.write(messageOf(index))
    }
  }
  const writing = write()
  try {
    while (course.received < count) {
      const message = await webSocket.read()
      if (!isSame(message, messageOf(course.received)))
        throw new Error(`message ${course.received} came back as ${typeof message} that it is not`)
      course.received++
    }
    await writing
    if (closer === 'client') webSocket.close(farewells.client.code, farewells.client.reason)
    if ((await webSocket.read()) !== undefined) throw new Error('more came than was sent')
  } catch (error) {
    course.fault = String(error)
    webSocket.close(4400, 'not what was sent')
    await writing.catch(() => {})
  }
  const end = await endOf(webSocket)
  return { ...course, ...end }
}

async function endOf(webSocket: WebSocket): Promise<Omit<Found, 'received' | 'pongs' | 'fault'>> {
  const { code, reason, wasClean } = await webSocket.closed
  const { version, info, protocol, extensions } = webSocket
  return { version, connectionId: info?.id, protocol, extensions, code, reason, wasClean }
}

/** Of what `side` found: everything that has to be the same whatever it is. */
export function checkFound(found: Conversation, side: Closer, [deflate, closer, count]: ConversationKind): void {
  const { received, fault, protocol, extensions, code, reason, wasClean } = found
  // The answer to a Close has its code, and its reason or none (RFC 6455 §5.5.1).
  const expectedReason = side === closer && reason === '' ? '' : farewells[closer].reason
  assert.deepEqual(
    { received, fault, protocol, code, reason, wasClean },
    { received: count, fault: '', protocol: 'weave.v2', code: farewells[closer].code, reason: expectedReason, wasClean: true },
  )
  checkExtensions(extensions, deflate)
}

/** That `extensions` say what was to be agreed on. */
export function checkExtensions(extensions: string, deflate: Deflate): void {
  assert.deepEqual(
    ['permessage-deflate', 'server_no_context_takeover', 'client_no_context_takeover'].map((word) => extensions.includes(word)),
    [deflate !== 'off', deflate === 'fresh', deflate === 'fresh'],
    `${deflate} agrees on: ${extensions}`,
  )
}

/** That `bytes` were needed for the messages of one direction: fewer than they have if they were compressed. */
export function checkSize(bytes: number, count: number, compressed: boolean): void {
  const size = totalSize(count)
  if (compressed) assert.ok(bytes < 0.75 * size, `${bytes} bytes for ${size} that are compressed`)
  else assert.ok(bytes >= size && bytes < 1.1 * size, `${bytes} bytes for ${size} that are not compressed`)
}

/** Tells the whole story of a client with heddle's server. `compresses`: whether the client does, if that is agreed on. */
export async function clientStory(
  t: TestContext,
  kind: ConversationKind,
  compresses: boolean,
  converse: (url: string) => Promise<Conversation>,
): Promise<void> {
  const [deflate, closer, count] = kind
  const { server, found } = await openEchoServer(t, deflate)
  const theirs = await converse(target(server.url.replace('http', 'ws'), count, closer))
  checkFound(theirs, 'client', kind)
  assert.equal(found.length, 1)
  const { version, pongs, ...rest } = await (found[0] as Promise<Found>)
  checkFound(rest, 'server', kind)
  assert.deepEqual({ version, pongs }, { version: 'h1', pongs: pingCount(count) })
  const { bytesRead, bytesWritten } = server.stats()
  checkSize(bytesRead, count, deflate !== 'off' && compresses)
  checkSize(bytesWritten, count, deflate !== 'off')
}

/** Heddle's client with a server of others', and what must be true of it. */
export async function serverStory(t: TestContext, kind: ConversationKind, port: number, options: ConnectOptions = {}): Promise<Found> {
  const [deflate, closer, count] = kind
  const client = new Client()
  t.after(() => client.destroy())
  const url = target(`ws://127.0.0.1:${port}`, count, closer)
  const found = await converseByHeddle(url, count, closer, { deflate: deflate !== 'off', ...options, client })
  checkFound(found, 'client', kind)
  assert.deepEqual([found.version, found.pongs], ['h1', pingCount(count)])
  await client.close()
  return found
}
