/** Chromium's WebSocket with heddle's server: over HTTP/1.1, over the HTTP/2 or HTTP/3 connection of its page, and over one to the gateway and HTTP/1.1 behind it. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { test, type TestContext } from 'node:test'
import { Response, type FetchHandler } from 'heddle'
import type { ProxyObserver } from 'heddle-gateway'
import { Browser } from '../src/chromium.ts'
import { openFolder, openGateway, type Folder } from '../src/stage.ts'
import { target, type Conversation } from '../src/websocket-standard.ts'
import {
  checkFound,
  checkSize,
  conversations,
  openEchoServer,
  pingCount,
  type ConversationKind,
  type EchoServer,
  type Found,
} from '../src/websocket-stories.ts'

const modules = ['/websocket-messages.ts', '/websocket-standard.ts']

/** A page that can hold conversations: the modules are those that run in Node. `asked` is told the connection of each request. */
function site(asked: Set<number>): FetchHandler {
  return (request, { exchange }) => {
    asked.add(exchange.connection.id)
    const { pathname } = new URL(request.url)
    const as = (type: string): { headers: Record<string, string> } => ({ headers: { 'content-type': `${type}; charset=utf-8` } })
    if (pathname === '/') return new Response('<!doctype html><title>loom</title><link rel="icon" href="data:,">', as('text/html'))
    if (!modules.includes(pathname)) return new Response('not here\n', { status: 404 })
    return new Response(stripTypeScriptTypes(readFileSync(`${import.meta.dirname}/../src${pathname}`, 'utf8')), as('text/javascript'))
  }
}

type Versions = readonly [browser: string, server: string]

interface Place {
  readonly echo: EchoServer
  /** Of the page. */
  readonly origin: string
  /** What the WebSockets went by, as the gateway has seen it. */
  readonly tunnels?: readonly Versions[]
}

interface Route {
  readonly name: string
  /** What the page comes by. */
  readonly page: 'http/1.1' | 'h2' | 'h3'
  /** What the WebSocket comes by: to the gateway, if there is one, and to the server. */
  readonly versions: Versions
  readonly kinds: readonly ConversationKind[]
  open(t: TestContext, folder: Folder, deflate: ConversationKind[0], asked: Set<number>): Promise<Place>
}

async function openBehindGateway(t: TestContext, folder: Folder, echo: EchoServer, route?: string): Promise<Place> {
  const tunnels: Versions[] = []
  const observer: ProxyObserver = {
    onRequestStart: () => {},
    onTunnelStart: ({ protocol, upstreamProtocol }) => void tunnels.push([protocol, upstreamProtocol]),
    onRequestEnd: () => {},
  }
  const settings = route === undefined ? {} : { route }
  const { secure } = await openGateway(t, folder, { port: Number(echo.server.port), protocol: 'h1' }, settings, { observer })
  return { echo, origin: `https://localhost:${secure}`, tunnels }
}

const routes: readonly Route[] = [
  {
    name: 'HTTP/1.1',
    page: 'http/1.1',
    versions: ['h1', 'h1'],
    kinds: conversations,
    open: async (t, _folder, deflate, asked) => {
      const echo = await openEchoServer(t, deflate, { fetch: site(asked) })
      return { echo, origin: `http://localhost:${echo.server.port}` }
    },
  },
  {
    name: 'the HTTP/2 connection of its page',
    page: 'h2',
    versions: ['h2', 'h2'],
    kinds: conversations,
    open: async (t, { identity: { cert, key } }, deflate, asked) => {
      const echo = await openEchoServer(t, deflate, { fetch: site(asked), tls: { cert, key } })
      return { echo, origin: `https://localhost:${echo.server.port}` }
    },
  },
  {
    name: 'the HTTP/3 connection of its page',
    page: 'h3',
    versions: ['h3', 'h3'],
    kinds: [
      ['takeover', 'client', 2000],
      ['off', 'server', 200],
    ],
    open: async (t, { identity: { cert, key } }, deflate, asked) => {
      const echo = await openEchoServer(t, deflate, { fetch: site(asked), tls: { cert, key }, protocols: ['h3'], hostname: '127.0.0.1' })
      return { echo, origin: `https://localhost:${echo.server.port}` }
    },
  },
  {
    name: 'HTTP/2 to the gateway and HTTP/1.1 behind it',
    page: 'h2',
    versions: ['h2', 'h1'],
    kinds: conversations,
    open: async (t, folder, deflate, asked) =>
      openBehindGateway(t, folder, await openEchoServer(t, deflate, { fetch: site(asked) }), 'extendedConnect: true'),
  },
  {
    name: 'HTTP/1.1 to a gateway that offers no extended CONNECT, beside the HTTP/2 of its page',
    page: 'h2',
    versions: ['h1', 'h1'],
    kinds: [['takeover', 'client', 1000]],
    open: async (t, folder, deflate, asked) => openBehindGateway(t, folder, await openEchoServer(t, deflate, { fetch: site(asked) })),
  },
]

/** Chromium has WebSockets over HTTP/3 (RFC 9220), and will be asked for them. */
function overHttp3(origin: string): string[] {
  const { host } = new URL(origin)
  return [
    `--origin-to-force-quic-on=${host}`,
    '--host-resolver-rules=MAP localhost 127.0.0.1',
    '--enable-features=EnableWebsocketsOverHttp3',
  ]
}

for (const route of routes) {
  for (const kind of route.kinds) {
    const [deflate, closer, count] = kind
    test(`Chromium over ${route.name}: ${count} messages, deflate ${deflate}, the ${closer} closes`, { timeout: 90_000 }, async (t) => {
      const folder = openFolder(t)
      const asked = new Set<number>()
      const { echo, origin, tunnels } = await route.open(t, folder, deflate, asked)
      const browser = new Browser(t, folder.identity.cert, route.page === 'h3' ? overHttp3(origin) : undefined)
      const tab = await browser.open()
      await tab.go(`${origin}/`)
      await tab.evaluate(`import('/websocket-standard.ts').then((module) => { globalThis.converse = module.converse })`)
      assert.deepEqual(
        tab.seen.filter(({ url }) => url.startsWith(origin)).map(({ url, protocol }) => [new URL(url).pathname, protocol]),
        ['/', '/websocket-standard.ts', '/websocket-messages.ts'].map((path) => [path, route.page]),
      )
      const before = echo.server.stats()

      const url = target(origin.replace('http', 'ws'), count, closer)
      const theirs = (await tab.evaluate(`converse('${url}', ${count}, '${closer}')`)) as Conversation
      assert.equal(echo.found.length, 1)
      const { version, connectionId, pongs, ...ours } = await (echo.found[0] as Promise<Found>)

      checkFound(theirs, 'client', kind)
      checkFound(ours, 'server', kind)
      assert.deepEqual({ version, pongs }, { version: route.versions[1], pongs: pingCount(count) })
      if (tunnels !== undefined) assert.deepEqual(tunnels, [route.versions])
      else
        assert.equal(
          asked.has(connectionId as number),
          route.page !== 'http/1.1',
          'the connection of the page is kept for all, if it can be',
        )
      const after = echo.server.stats()
      checkSize(after.bytesRead - before.bytesRead, count, deflate !== 'off')
      checkSize(after.bytesWritten - before.bytesWritten, count, deflate !== 'off')
      assert.deepEqual(tab.complaints, [])
      await browser.close()
    })
  }
}
