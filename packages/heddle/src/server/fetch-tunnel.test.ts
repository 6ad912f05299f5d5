/** Requests for a WebSocket as a fetch handler sees and answers them, over both versions, with our own engines at the other end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientConnection as Http1Client } from '../h1/index.ts'
import { ClientConnection as Http2Client } from '../h2/index.ts'
import { fieldValue, requestHead, type Exchange, type ExchangeHandler, type Fields, type Head, type HeddleError } from '../http/index.ts'
import { Recording, RecordingConnection, worldTest, type LinkSocket, type World } from '../testing/index.ts'
import { offeredTunnel, Request, UpgradeError, type TunnelTaker } from '../web/index.ts'
import { Response, serve, type Server, type ServeOptions } from './index.ts'
import { websocketAccept } from './websocket-accept.ts'

type Fetch = (request: Request) => Response | Promise<Response>

const versions = ['h1', 'h2'] as const
const key = Buffer.alloc(16, 7).toString('base64')

interface Stage {
  readonly world: World
  readonly server: Server
  /** What `onError` was told. */
  readonly told: unknown[]
  /** Asks for a tunnel on a connection of its own. */
  ask(fields?: Fields, protocol?: string, end?: boolean): Promise<Guest>
}

interface Guest {
  readonly recording: Recording
  readonly exchange: Exchange
  readonly client: Http1Client | Http2Client
  readonly socket: LinkSocket
}

/** A story over each version, in its world; at the end nothing is left. */
function story(
  name: string,
  fetch: Fetch,
  tell: (stage: Stage, version: 'h1' | 'h2') => Promise<void>,
  options: Partial<ServeOptions> = {},
): void {
  for (const version of versions) {
    worldTest(`${version}: ${name}`, { seeds: 3 }, async (world) => {
      const told: unknown[] = []
      const server = await start(world, { websocket: true, fetch, onError: (error) => void told.push(error), ...options })
      await tell({ world, server, told, ask: (fields, protocol, end) => ask(world, version, fields, protocol, end) }, version)
      await world.complete(server.close({ deadline: 0 }), 60_000)
      await world.settle()
      const { connections, exchanges, deadlines } = server.stats()
      assert.deepEqual({ connections, exchanges, deadlines }, { connections: 0, exchanges: 0, deadlines: 0 })
      assert.equal(world.armed, 0)
    })
  }
}

function start(world: World, options: Partial<ServeOptions>): Promise<Server> {
  return serve({ clock: world, listen: world.network.serve, hostname: 'h', port: 80, ...options })
}

async function ask(world: World, version: 'h1' | 'h2', fields: Fields = [], protocol = 'websocket', end = false): Promise<Guest> {
  const { client, socket } = await connect(world, version)
  const recording = new Recording()
  const exchange = client.open(recording) as Exchange
  exchange.sendHead(requestHead('CONNECT', 'http', 'h', '/chat?room=1', ['sec-websocket-version', '13', ...fields], protocol), end)
  await pass(world)
  return { recording, exchange, client, socket }
}

function connect(world: World, version: 'h1' | 'h2'): Promise<{ client: Http1Client | Http2Client; socket: LinkSocket }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ client: Http1Client | Http2Client; socket: LinkSocket }>()
  world.network.connect('h', 80, (error, connection) => {
    if (connection === undefined) return reject(error as HeddleError)
    const owner = new RecordingConnection()
    const client =
      version === 'h1'
        ? new Http1Client(connection.info, owner, { websocketKey: () => key, websocketAccept }, world.now())
        : new Http2Client(connection.info, owner, {}, world.now())
    connection.attach(client)
    resolve({ client, socket: connection.socket })
  })
  return world.complete(promise).then(async (made) => {
    await pass(world)
    return made
  })
}

async function pass(world: World): Promise<void> {
  await world.settle({ until: world.now() + 50 })
}

/** Sends back what comes through a tunnel, and notes what it is told. */
class Echo implements TunnelTaker, ExchangeHandler {
  readonly log: string[] = []
  exchange: Exchange | undefined
  release: () => void = () => {}

  onTunnelOpen(exchange: Exchange): void {
    this.log.push('open')
    this.exchange = exchange
    exchange.handler = this
  }
  onTunnelRefused(error: HeddleError): void {
    this.log.push(`refused ${error.code}`)
  }
  onTunnelShutdown(): void {
    this.log.push('shutdown')
    this.exchange?.sendData(Buffer.from('bye'), 0, 3, true)
  }
  onHead(): void {}
  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    if (!this.log.includes('shutdown')) this.exchange?.sendData(buffer, start, limit, end)
    this.exchange?.consume(limit - start)
  }
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    this.log.push(`close ${error?.code ?? 'well'}`)
    this.release()
  }
}

/** What a handler does that accepts. */
function take(request: Request | globalThis.Request, fields: Fields = []): { echo: Echo; response: Response } {
  const offer = offeredTunnel(request)
  assert.ok(offer !== undefined)
  const echo = new Echo()
  echo.release = () => offer.release()
  return { echo, response: offer.take(echo, ['sec-websocket-protocol', 'chat'], fields) }
}

let seen: Request | undefined
let echo: Echo | undefined

story(
  'the request is a GET that says what it wants, and its response opens the tunnel',
  (request) => {
    seen = request
    const taken = take(request, ['x-own', '1'])
    echo = taken.echo
    // As middleware does.
    taken.response.headers.append('set-cookie', 'a=1')
    taken.response.headers.append('set-cookie', 'b=2')
    taken.response.headers.set('sec-websocket-protocol', 'spoilt')
    // Not agreed on: the client would fail.
    taken.response.headers.set('sec-websocket-extensions', 'permessage-deflate')
    return taken.response
  },
  async ({ world, ask, server }, version) => {
    const { recording, exchange } = await ask(['origin', 'http://h'])
    assert.ok(seen !== undefined && echo !== undefined)
    const { method, url, headers, body } = seen
    assert.deepEqual([method, url, body], ['GET', 'http://h/chat?room=1', null])
    assert.deepEqual([headers.get('upgrade'), headers.get('connection')], ['websocket', 'upgrade'])
    assert.deepEqual([headers.get('origin'), headers.get('sec-websocket-version')], ['http://h', '13'])
    assert.equal(recording.head?.status, 200)
    const sent = (name: string): string[] => recording.head?.fields.filter((_, i, all) => i % 2 === 1 && all[i - 1] === name) ?? []
    assert.deepEqual([sent('x-own'), sent('set-cookie'), sent('sec-websocket-protocol')], [['1'], ['a=1', 'b=2'], ['chat']])
    assert.deepEqual(sent('sec-websocket-extensions'), [])
    exchange.sendData(Buffer.from('hello'), 0, 5, false)
    await pass(world)
    assert.equal(recording.content.toString(), 'hello')
    exchange.sendData(Buffer.alloc(0), 0, 0, true)
    await pass(world)
    assert.deepEqual([recording.closed, recording.error, echo.log], [true, undefined, ['open', 'close well']])
    assert.equal(server.stats()[version === 'h1' ? 'http1' : 'http2'].requests, 1)
  },
)

story(
  'any other response refuses it, and the connection goes on',
  (request) => {
    const status = Number(request.headers.get('x-status'))
    return status === 302 ? Response.redirect('http://h/login') : new Response(`no: ${status}`, { status })
  },
  async ({ world, ask }) => {
    for (const status of [302, 401, 404, 426, 503]) {
      const { recording, client } = await ask(['x-status', `${status}`])
      assert.equal(recording.head?.status, status)
      assert.equal(recording.content.toString(), status === 302 ? '' : `no: ${status}`)
      await pass(world)
      assert.deepEqual([recording.closed, recording.error], [true, undefined])
      const next = new Recording()
      const again = client.open(next)
      assert.ok(again !== undefined, `the connection is lost after ${status}`)
      again.sendHead(requestHead('GET', 'http', 'h', '/', ['x-status', '404']), true)
      await pass(world)
      assert.equal(next.head?.status, 404)
      client.shutdown()
      await pass(world)
    }
  },
)

let cancelled = false
story(
  'a handler that knows of no WebSockets and answers 2xx opens nothing',
  (request) =>
    request.headers.get('x-kind') === 'stream'
      ? new Response(new ReadableStream({ cancel: () => void (cancelled = true) }), { status: 206 })
      : new Response('a page'),
  async ({ world, ask, told }, version) => {
    if (version === 'h1') {
      // Where it can be, the Upgrade is ignored (RFC 9110 §7.8).
      assert.match(await answer(world, 'websocket'), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\na page$/)
    } else {
      for (const kind of ['text', 'stream']) {
        cancelled = false
        const { recording } = await ask(['x-kind', kind])
        assert.deepEqual([recording.head?.status, recording.content.toString()], [501, 'This resource speaks no WebSocket.\n'])
        assert.deepEqual([recording.closed, recording.error], [true, undefined])
        assert.equal(cancelled, kind === 'stream')
      }
    }
    assert.deepEqual(told, [])
  },
)

story(
  'whoever has taken the tunnel is told when it does not open',
  async (request) => {
    echo = take(request).echo
    const kind = request.headers.get('x-kind')
    if (kind === 'throw') throw new Error('thrown')
    if (kind === 'reject') await Promise.reject(new TypeError('rejected'))
    if (kind === 'nothing') return undefined as never
    return kind === 'page' ? new Response('a page') : kind === '403' ? new Response('no', { status: 403 }) : new Promise<Response>(() => {})
  },
  async ({ world, server, ask, told }, version) => {
    for (const [kind, status, code] of [
      ['throw', 500, 'HANDLER_FAILED'],
      ['reject', 500, 'HANDLER_FAILED'],
      ['nothing', 500, 'CANCELLED'],
      ...(version === 'h2' ? ([['page', 501, 'CANCELLED']] as const) : []),
      ['403', 403, 'CANCELLED'],
    ] as const) {
      const { recording } = await ask(['x-kind', kind])
      await pass(world)
      assert.equal(recording.head?.status, status, kind)
      assert.deepEqual(echo?.log, [`refused ${code}`], kind)
    }
    assert.deepEqual(
      told.map((error) => (error as Error).message),
      ['thrown', 'rejected', 'The fetch handler returned undefined and not a Response.'],
    )
    // A handler that never answers: until the client leaves.
    const { recording, socket } = await ask(['x-kind', 'never'])
    assert.deepEqual([recording.head, echo?.log], [undefined, []])
    socket.destroy()
    await pass(world)
    assert.match(echo?.log.join() ?? '', /^refused (PEER_CLOSED|PEER_RESET|NETWORK_ERROR)$/)
    // Or the server.
    await ask(['x-kind', 'never'])
    await world.complete(server.close({ deadline: 1000 }))
    await pass(world)
    assert.deepEqual(echo?.log, ['refused SHUTDOWN'])
  },
)

story(
  'a response that comes when the client is gone opens nothing; nor does taking its tunnel',
  async (request) => {
    const early = request.headers.get('x-kind') === 'early' ? take(request) : undefined
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
    const taken = early ?? take(request)
    echo = taken.echo
    return taken.response
  },
  async ({ world, ask }) => {
    for (const kind of ['early', 'late']) {
      const { exchange } = await ask(['x-kind', kind])
      exchange.cancel(1)
      await pass(world)
      assert.match(echo?.log.join() ?? '', /^refused /, kind)
    }
  },
)

let kept: Response | undefined
story(
  'a tunnel is opened once, and by its own response',
  (request) => {
    const taken = take(request)
    assert.throws(() => take(request), /upgraded already/)
    if (kept === undefined) {
      kept = taken.response
      return taken.response
    }
    echo = taken.echo
    return kept
  },
  async ({ world, ask, told }) => {
    kept = undefined
    assert.equal((await ask()).recording.head?.status, 200)
    // The one that was kept from another request.
    const { recording } = await ask()
    await pass(world)
    assert.equal(recording.head?.status, 500)
    assert.match((told[0] as Error).message, /response of another upgrade/)
    assert.deepEqual(echo?.log, ['refused HANDLER_FAILED'])
  },
)

story(
  'the response of an upgrade is none to an ordinary request',
  (request) => {
    if (offeredTunnel(request) === undefined) return request.headers.has('x-none') ? (undefined as never) : (kept as Response)
    kept = take(request).response
    return kept
  },
  async ({ world, ask, told }, version) => {
    const { client } = await ask()
    client.shutdown()
    const messages = [/response of an upgrade was returned to another request/, /returned undefined and not a Response/]
    for (const [i, fields] of [[], ['x-none', '1']].entries()) {
      const made = await connect(world, version)
      const recording = new Recording()
      made.client.open(recording)?.sendHead(requestHead('GET', 'http', 'h', '/', fields), true)
      await pass(world)
      assert.equal(recording.head?.status, 500)
      assert.equal(fieldValue(recording.head.fields, 'sec-websocket-accept'), undefined)
      assert.match((told[i] as Error).message, messages[i] as RegExp)
      made.client.shutdown()
    }
  },
)

story(
  'fields that cannot be sent are the handler’s fault, and nothing is open',
  (request) => {
    const offer = offeredTunnel(request)
    echo = new Echo()
    return offer?.take(echo, ['sec-websocket-protocol', 'a\r\nb'], []) as Response
  },
  async ({ world, ask, told }) => {
    const { recording } = await ask()
    await pass(world)
    assert.deepEqual([recording.head?.status, echo?.log], [500, []])
    assert.ok(told[0] instanceof TypeError)
  },
)

story(
  'a taker that throws has its tunnel cut',
  (request) => {
    const taken = take(request)
    echo = taken.echo
    echo.onTunnelOpen = () => {
      throw new Error('broken')
    }
    return taken.response
  },
  async ({ world, ask, told }) => {
    const { recording } = await ask()
    await pass(world)
    assert.ok(recording.closed && recording.error !== undefined)
    assert.match((told[0] as Error).message, /broken/)
  },
)

story(
  'copies of the request carry the tunnel along',
  (request) => {
    for (const copy of [
      request.clone(),
      new Request(request, { headers: { 'x-added': '1' } }),
      new Request('http://h/rewritten', request),
      request.toNative(),
      new Request(request).toNative(),
    ]) {
      assert.equal(offeredTunnel(copy), offeredTunnel(request))
    }
    return take(new Request('http://other/', request)).response
  },
  async ({ ask, told }) => {
    const { recording } = await ask()
    assert.deepEqual([recording.head?.status, told], [200, []])
  },
)

story(
  'a copy of the response opens the tunnel as well',
  (request) => {
    const { response } = take(request, ['x-own', '1'])
    assert.deepEqual([response.status, response.body], [200, null])
    const kind = request.headers.get('x-kind')
    if (kind === 'native') return response.toNative() as never
    if (kind === 'clone') return response.clone()
    const Made = kind === 'global' ? globalThis.Response : Response
    const copy = new Made(response.body as null, response as never)
    copy.headers.set('x-added', '2')
    return copy as Response
  },
  async ({ ask, told }) => {
    for (const kind of ['native', 'clone', 'global', 'ours']) {
      const { recording, exchange } = await ask(['x-kind', kind])
      const { status, fields } = recording.head as Head
      assert.deepEqual([status, fieldValue(fields, 'x-own'), fieldValue(fields, 'sec-websocket-protocol')], [200, '1', 'chat'], kind)
      assert.equal(fieldValue(fields, 'x-added'), kind === 'global' || kind === 'ours' ? '2' : undefined)
      assert.equal(fieldValue(fields, 'sec-websocket-accept'), undefined)
      exchange.cancel(1)
    }
    assert.deepEqual(told, [])
  },
)

story(
  'a handshake that is refused by a throw gets its answer, and nobody is told',
  async () => {
    await Promise.resolve()
    throw new UpgradeError('no', new Response('not you', { status: 403 }))
  },
  async ({ world, ask, told }) => {
    const { recording } = await ask()
    await pass(world)
    assert.deepEqual([recording.head?.status, recording.content.toString(), told], [403, 'not you', []])
  },
)

story(
  'close tells those that are open, those that open then, and waits for them until its deadline',
  async (request) => {
    if (request.headers.get('x-kind') === 'late') await new Promise((resolve) => (open = resolve as () => void))
    const taken = take(request)
    echos.push(taken.echo)
    if (request.headers.get('x-kind') === 'deaf') taken.echo.onTunnelShutdown = () => {}
    return taken.response
  },
  async ({ world, server, ask }) => {
    echos.length = 0
    const prompt = await ask()
    const late = await ask(['x-kind', 'late'])
    await ask(['x-kind', 'deaf'])
    const start = world.now()
    const closed = server.close({ deadline: 3000 })
    await pass(world)
    assert.deepEqual([prompt.recording.content.toString(), prompt.recording.ended], ['bye', true])
    prompt.exchange.sendData(Buffer.alloc(0), 0, 0, true)
    open()
    await pass(world)
    assert.deepEqual([late.recording.content.toString(), late.recording.ended], ['bye', true])
    late.exchange.sendData(Buffer.alloc(0), 0, 0, true)
    await world.complete(closed)
    assert.ok(world.now() - start >= 3000 && world.now() - start < 3200)
    assert.deepEqual(
      echos.map(({ log }) => log.join()),
      ['open,shutdown,close well', 'open,close SHUTDOWN', 'open,shutdown,close well'],
    )
  },
)
const echos: Echo[] = []
let open = (): void => {}

worldTest('h2: a client that does not wait for the answer, or has nothing to send, is refused', { seeds: 3 }, async (world) => {
  const told: unknown[] = []
  const server = await start(world, {
    websocket: true,
    onError: (error) => void told.push(error),
    fetch: async (request) => {
      const taken = take(request)
      echo = taken.echo
      await world.sleep(1000)
      return taken.response
    },
  })
  const { client } = await connect(world, 'h2')
  const recording = new Recording()
  const exchange = client.open(recording) as Exchange & { held: boolean }
  exchange.sendHead(requestHead('CONNECT', 'http', 'h', '/', ['sec-websocket-version', '13'], 'websocket'), false)
  // Our own client would wait.
  exchange.held = false
  exchange.sendData(Buffer.from('too early'), 0, 9, false)
  await world.settle({ until: world.now() + 2000 })
  assert.ok(recording.closed)
  assert.equal((recording.error as HeddleError).wireCode, 1)
  assert.deepEqual([echo?.log, told], [['refused PROTOCOL_ERROR'], []])
  await world.complete(server.close({ deadline: 0 }))
})

worldTest(
  'protocols that are not served, and a plain CONNECT, get 501; without `websocket` all is as ever',
  { seeds: 2 },
  async (world) => {
    const asked: (string | null)[] = []
    const fetch: Fetch = (request) => {
      asked.push(request.headers.get('upgrade'))
      return new Response('a page')
    }
    const server = await start(world, { websocket: true, fetch })
    assert.equal((await ask(world, 'h2', [], 'connect-udp')).recording.head?.status, 501)
    // Upgrade to what is not served is ignored.
    assert.match(await answer(world, 'other'), /^HTTP\/1\.1 200 OK/)
    const plain = new Recording()
    ;((await connect(world, 'h1')).client.open(plain) as Exchange).sendHead(requestHead('CONNECT', '', 'h:1', ''), false)
    await pass(world)
    assert.equal(plain.head?.status, 501)
    assert.deepEqual(asked, [null], 'of these only the Upgrade that was ignored is a request')
    await world.complete(server.close({ deadline: 0 }))

    const without = await start(world, { fetch })
    assert.match(await answer(world, 'websocket'), /^HTTP\/1\.1 200 OK/)
    const refused = await ask(world, 'h2').catch((error: unknown) => error)
    assert.match((refused as Error).message, /offers no extended CONNECT/)
    await world.complete(without.close({ deadline: 0 }))
  },
)

/** What an Upgrade to `protocol` is answered with, as text: our own client takes no 2xx for it. */
async function answer(world: World, protocol: string): Promise<string> {
  let text = ''
  world.network.connect('h', 80, (_error, connection) => {
    const socket = connection?.socket as LinkSocket
    socket.on('data', (chunk: Uint8Array) => (text += Buffer.from(chunk).toString('latin1')))
    socket.write(
      Buffer.from(
        `GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: ${protocol}\r\nsec-websocket-key: ${key}\r\nsec-websocket-version: 13\r\n\r\n`,
      ),
    )
  })
  await pass(world)
  return text
}

test('a fetch handler takes no other tunnels than WebSockets', async () => {
  const fetch: Fetch = () => new Response()
  for (const options of [{ upgrades: ['other'] }, { upgrades: ['websocket'] }, { upgrades: ['other'], websocket: true }]) {
    await assert.rejects(serve({ fetch, ...options }), { code: 'USAGE' })
  }
})
