import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldValue, type HeddleError } from '../http/index.ts'
import { Response } from '../server/index.ts'
import { Request, UpgradeError, type Response as WebResponse } from '../web/index.ts'
import { story } from './serve-stage.test.ts'
import type { Closed } from './socket-handler.ts'
import { accept, upgrade, type FetchUpgradeOptions } from './upgrade.ts'
import type { Socket } from './socket.ts'
import type { WebSocket } from './web-socket.ts'

type Handler = (request: Request) => WebResponse | Promise<WebResponse>

/** The server's side of what was accepted last. */
let served: WebSocket | undefined
let options: FetchUpgradeOptions = {}

/** Accepts with `options`, and echoes. */
const echo: Handler = (request) => {
  const { response, socket } = upgrade(request, options)
  served = socket
  socket.onmessage = ({ data }) => socket.send(data as string)
  return response
}

story('messages go both ways, and the end is told to both', { fetch: echo }, async ({ ask, pass, version }) => {
  options = {}
  const { socket, field } = await ask({ path: '/chat?room=1' })
  assert.deepEqual([served?.url, served?.version, served?.readyState], ['ws://h/chat?room=1', version, 1])
  assert.deepEqual([field('sec-websocket-protocol'), field('sec-websocket-extensions')], [undefined, undefined])
  let closed: Closed | undefined
  void served?.closed.then((how) => (closed = how))
  socket.post('hello')
  await pass()
  assert.equal(await socket.read(), 'hello')
  socket.close(1000, 'enough')
  await pass()
  assert.deepEqual(closed, { code: 1000, reason: 'enough', wasClean: true, error: undefined })
  assert.deepEqual(await socket.closed, { code: 1000, reason: '', wasClean: true, error: undefined })
})

story(
  'nothing is lost: what is sent before it is open, what comes before anybody listens',
  {
    fetch: async (request) => {
      const { response, socket } = upgrade(request)
      served = socket
      socket.send('first')
      await Promise.resolve()
      socket.send('second')
      return response
    },
  },
  async ({ ask, pass, world }) => {
    for (const way of ['event', 'handler', 'read', 'iteration']) {
      const { socket } = await ask()
      assert.deepEqual([await socket.read(), await socket.read()], ['first', 'second'])
      for (const text of ['a', 'b', 'c']) socket.post(text)
      await pass()
      await pass()
      const got: unknown[] = []
      const server = served as WebSocket
      if (way === 'event') server.addEventListener('message', ({ data }) => got.push(data))
      else if (way === 'handler') server.onmessage = ({ data }): unknown => got.push(data)
      else if (way === 'read') for (let i = 0; i < 3; i++) got.push(await world.complete(server.read()))
      if (way === 'iteration') {
        for await (const message of server) if (got.push(message) === 3) break
      }
      await pass()
      socket.post('d')
      await pass()
      if (way === 'read' || way === 'iteration') got.push(await server.read())
      assert.deepEqual(got, ['a', 'b', 'c', 'd'], way)
      socket.close(1000)
      await pass()
    }
  },
)

story('a client that closes before anybody listens is told to who listens then', { fetch: echo }, async ({ ask, pass }) => {
  options = {}
  const { socket } = await ask()
  const server = served as WebSocket
  socket.post('last words')
  socket.close(4000, 'bye')
  await pass()
  assert.deepEqual([server.readyState, (await server.closed).code], [3, 4000])
})

story('the subprotocol is chosen by the server', { fetch: echo }, async ({ ask, told, pass }) => {
  const offer = ['sec-websocket-protocol', 'chat.v1, chat.v2', 'sec-websocket-protocol', 'other']
  for (const [protocol, chosen] of [
    ['chat.v1', 'chat.v1'],
    [['chat.v3', 'chat.v2', 'chat.v1'], 'chat.v2'],
    [['Chat.v1'], undefined],
    [undefined, undefined],
    [(offered: readonly string[]): string | undefined => offered.at(-1), 'other'],
    [(): undefined => undefined, undefined],
  ] as const) {
    options = { protocol }
    const { field, socket } = await ask({ fields: offer })
    assert.equal(field('sec-websocket-protocol'), chosen)
    assert.equal(served?.protocol, chosen ?? '')
    socket.close()
    await pass()
  }
  options = { protocol: 'chat.v1' }
  assert.equal((await ask()).field('sec-websocket-protocol'), undefined, 'none was offered')
  assert.deepEqual(told, [])
  options = { protocol: () => 'made up' }
  assert.equal((await ask({ fields: offer })).status, 500)
  assert.match((told[0] as unknown as Error).message, /"made up" was not offered/)
})

story('permessage-deflate is agreed on if both want it', { fetch: echo }, async ({ ask, pass }) => {
  const offer = 'permessage-deflate; server_max_window_bits=10; client_max_window_bits, permessage-deflate'
  for (const [deflate, answer] of [
    [undefined, undefined],
    [false, undefined],
    [true, 'permessage-deflate; server_max_window_bits=10'],
    [
      { serverNoContextTakeover: true, level: 9, threshold: 0 },
      'permessage-deflate; server_no_context_takeover; server_max_window_bits=10',
    ],
  ] as const) {
    options = { deflate }
    const { field, status } = await ask({ fields: ['sec-websocket-extensions', offer] })
    assert.deepEqual([status, field('sec-websocket-extensions'), served?.extensions], [200, answer, answer ?? ''])
    await pass()
  }
  options = { deflate: true }
  const { field } = await ask({ fields: ['sec-websocket-extensions', 'x-other; a=1'] })
  assert.equal(field('sec-websocket-extensions'), undefined)
})

story(
  'headers are sent, and may be added later',
  {
    fetch: (request) => {
      const { response } = upgrade(request, { headers: { 'x-one': '1' }, protocol: 'chat' })
      response.headers.set('x-two', '2')
      response.headers.delete('sec-websocket-protocol')
      assert.equal(response.status, 200)
      return response
    },
  },
  async ({ ask }) => {
    const { field } = await ask({ fields: ['sec-websocket-protocol', 'chat'] })
    assert.deepEqual([field('x-one'), field('x-two'), field('sec-websocket-protocol')], ['1', '2', 'chat'])
  },
)

story('a handshake that is none is answered, and nobody is told', { fetch: echo }, async ({ ask, told, version }) => {
  options = {}
  for (const [what, status, text] of [
    // Over HTTP/1.1 our own client adds one.
    ...(version === 'h2' ? ([[{ version: undefined }, 400, 'no Sec-WebSocket-Version']] as const) : []),
    [{ version: '8' }, 426, 'Sec-WebSocket-Version is not 13'],
    [{ fields: ['sec-websocket-version', '13'] }, 400, 'more than one Sec-WebSocket-Version'],
    [{ fields: ['sec-websocket-protocol', 'a, a'] }, 400, 'malformed Sec-WebSocket-Protocol'],
    [{ fields: ['sec-websocket-protocol', 'a b'] }, 400, 'malformed Sec-WebSocket-Protocol'],
    [{ fields: ['sec-websocket-extensions', 'a; b=" "'] }, 400, 'malformed Sec-WebSocket-Extensions'],
    [{ method: 'GET', version: undefined }, 426, 'Here is a WebSocket, and nothing else.'],
    [{ method: 'POST', version: undefined }, 405, 'A WebSocket is asked for with GET.'],
  ] as const) {
    const guest = await ask(what)
    assert.deepEqual([guest.status, guest.text], [status, `${text}\n`])
    // RFC 6455 §4.4
    assert.equal(
      guest.field('sec-websocket-version'),
      status === 405 || (status === 400 && !text.includes('Version') && !text.includes('malformed')) ? undefined : '13',
    )
    assert.equal(guest.field('allow'), status === 405 ? 'GET' : undefined)
    if (status === 426 && 'method' in what) assert.equal(guest.field('upgrade'), version === 'h1' ? 'websocket' : undefined)
  }
  assert.deepEqual(told, [])
})

story('pages of other hosts are refused', { fetch: echo }, async ({ ask, told }) => {
  const from = async (origin: string | undefined, allowed?: FetchUpgradeOptions['origin']): Promise<number> => {
    options = allowed === undefined ? {} : { origin: allowed }
    return (await ask({ fields: origin === undefined ? [] : ['origin', origin] })).status
  }
  // By default: the same host, whatever the scheme, and no browser at all.
  for (const origin of ['http://h', 'https://h', undefined]) assert.equal(await from(origin), 200, `${origin}`)
  for (const origin of [
    'http://evil.example',
    'http://h.evil.example',
    'http://evil-h',
    'http://h:8080',
    'null',
    'h',
    '',
    'http://h@evil.example',
    'file://',
  ])
    assert.equal(await from(origin), 403, origin)
  assert.equal((await ask({ fields: ['origin', 'http://h', 'origin', 'http://h'] })).status, 403)

  const list = ['https://app.example', 'chrome-extension://abc']
  for (const origin of [...list, undefined]) assert.equal(await from(origin, list), 200, `${origin}`)
  // A list says all of it: a name that leads here by a rebound DNS is none of ours.
  for (const origin of ['http://h', 'http://app.example', 'https://app.example.evil', 'https://app.example:444', 'null'])
    assert.equal(await from(origin, list), 403, origin)
  assert.equal(await from('null', 'null'), 200)
  assert.equal(await from('http://evil.example', '*'), 200)

  const asked: unknown[] = []
  const check = (origin: string | undefined, host: string): boolean => {
    asked.push(origin, host)
    return origin?.endsWith('.example') === true
  }
  assert.equal(await from('https://any.example', check), 200)
  assert.equal(await from(undefined, check), 403)
  assert.deepEqual(asked, ['https://any.example', 'h', undefined, 'h'])
  assert.deepEqual(told, [])
})

story('options that cannot be kept are the program’s fault', { fetch: echo }, async ({ ask, told, pass }) => {
  const wrong: FetchUpgradeOptions[] = [
    { origin: 'app.example' },
    { origin: ['https://app.example/'] },
    { origin: ['https://App.example'] },
    { origin: ['https://app.example:443'] },
    { limits: { maxMessageSize: -1 } },
    { limits: { maxMesageSize: 1 } as never },
    { deflate: { serverMaxWindowBits: 8 } },
    { deflate: { levle: 1 } as never },
    { protocols: ['chat'] } as never,
    { headers: { 'sec-websocket-protocol': 'chat' } },
    { fragmentSize: 0 },
  ]
  for (const one of wrong) {
    options = one
    const origin = one.origin === undefined ? [] : ['origin', 'https://other.example']
    const { status } = await ask({ fields: [...origin, 'sec-websocket-extensions', 'permessage-deflate'] })
    assert.deepEqual([status, (told.pop() as HeddleError).code], [500, 'USAGE'], JSON.stringify(one))
    await pass()
  }
  options = { origin: 'app.example' }
  await ask({ fields: ['origin', 'https://app.example'] })
  assert.match((told[0] as Error).message, /"app.example" is no origin; one looks like https:\/\/app.example.org/)
})

const ended: (Closed | undefined)[] = []
story(
  'a socket whose response is not returned, or comes too late, ends with the reason, and nothing stays',
  {
    fetch: async (request) => {
      const { response, socket } = upgrade(request)
      const at = ended.push(undefined) - 1
      void socket.closed.then((how) => (ended[at] = how))
      socket.send('never')
      const kind = request.headers.get('x-kind')
      if (kind === 'throw') throw new Error('thrown')
      if (kind === 'other') return new Response('no', { status: 401 })
      if (kind === 'closed') socket.close(1000)
      if (kind === 'aborted') socket.abort()
      if (kind === 'late') await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
      return response
    },
  },
  async ({ ask, pass, told }) => {
    ended.length = 0
    assert.equal((await ask({ fields: ['x-kind', 'throw'] })).status, 500)
    assert.equal((await ask({ fields: ['x-kind', 'other'] })).status, 401)
    const late = await ask({ fields: ['x-kind', 'late'] })
    late.exchange.cancel(1)
    await pass()
    const { socket } = await ask({ fields: ['x-kind', 'closed'] })
    assert.equal(await socket.read(), 'never', 'closed is not aborted')
    await pass()
    const aborted = await ask({ fields: ['x-kind', 'aborted'] })
    await pass()
    // Over HTTP/1.1 the head is lost with the connection.
    assert.ok(aborted.recording.closed || (await aborted.socket.closed).code === 1006)
    assert.deepEqual(
      ended.map((how) => [how?.code, how?.wasClean, how?.error?.code]),
      [
        [1006, false, 'HANDLER_FAILED'],
        [1006, false, 'CANCELLED'],
        [1006, false, ended[2]?.error?.code],
        [1000, true, undefined],
        [1006, false, 'CANCELLED'],
      ],
    )
    assert.match(ended[2]?.error?.code ?? '', /^(PEER_CLOSED|PEER_RESET|NETWORK_ERROR)$/)
    assert.deepEqual(
      told.map((error) => (error as Error).message),
      ['thrown'],
    )
  },
)

let lean: Socket | undefined
story(
  'the lean face',
  {
    fetch: (request) => {
      const { response, socket } = accept(request, { protocol: 'chat' })
      lean = socket
      socket.post('first')
      return response
    },
  },
  async ({ ask, pass, world }) => {
    const { socket } = await ask({ fields: ['sec-websocket-protocol', 'chat'] })
    assert.equal(await world.complete(socket.read()), 'first')
    socket.post('a')
    await pass()
    assert.deepEqual([await lean?.read(), lean?.protocol, lean?.state], ['a', 'chat', 'open'])
  },
)

story('limits hold', { fetch: echo }, async ({ ask, world }) => {
  options = { limits: { maxMessageSize: 10 } }
  const { socket } = await ask()
  socket.post('x'.repeat(11))
  const { code, wasClean } = await world.complete(socket.closed)
  assert.deepEqual([code, wasClean], [1009, true])
})

story(
  'close ends those that are open with 1001, and cuts those that do not answer',
  { fetch: echo },
  async ({ ask, server, world, pass }) => {
    options = { limits: { closeTimeout: 60_000 } }
    const prompt = await ask()
    const deaf = await ask()
    deaf.wire.pause()
    const start = world.now()
    const closed = server.close({ deadline: 2000 })
    await pass()
    const { code, wasClean } = await world.complete(prompt.socket.closed)
    assert.deepEqual([code, wasClean], [1001, true])
    await world.complete(closed)
    assert.ok(world.now() - start >= 2000)
    deaf.wire.destroy()
  },
)

let sleep: (ms: number) => Promise<void> = () => Promise.resolve()
const all: { socket: WebSocket | Socket; ends: Closed[]; kind: string }[] = []
const settled = (): boolean => all.every(({ ends }) => ends.length === 1)

story(
  'whatever handlers, clients and the server do, in whatever order: each socket ends once, and nothing is left',
  {
    fetch: async (request) => {
      const kind = request.headers.get('x-kind') ?? ''
      const wait = Number(request.headers.get('x-wait'))
      const early = request.headers.get('x-early') === '1'
      if (!early) await sleep(wait)
      const { response, socket } = kind.startsWith('lean') ? accept(request) : upgrade(request)
      const one = { socket, ends: [] as Closed[], kind }
      all.push(one)
      void socket.closed.then((how) => one.ends.push(how))
      void socket.write('welcome').catch(() => {})
      if (kind.endsWith('read')) void (socket as Socket).read().catch(() => {})
      if (early) await sleep(wait)
      if (kind.endsWith('throw')) throw new Error('thrown')
      if (kind.endsWith('refuse')) return new Response('no', { status: 403 })
      if (kind.endsWith('close')) socket.close(4000)
      if (kind.endsWith('abort')) socket.abort()
      return response
    },
  },
  async ({ ask, world, server }) => {
    all.length = 0
    sleep = (ms) => world.sleep(ms)
    const { random } = world
    for (let i = 0; i < 12; i++) {
      const kind = `${random.pick(['', 'lean '])}${random.pick(['plain', 'read', 'throw', 'refuse', 'close', 'abort'])}`
      const fields = ['x-kind', kind, 'x-wait', `${random.integer(0, 150)}`, 'x-early', random.chance(0.5) ? '1' : '0']
      const { exchange, wire, recording } = await ask({ fields })
      const leave = random.integer(0, 5)
      world.after(random.integer(0, 200), () => {
        if (leave === 0) wire.destroy()
        else if (leave === 1) wire.end()
        else if (leave === 2) exchange.cancel(1)
        else if (leave === 3 && recording.head?.status === 200) exchange.sendData(Buffer.from([0x88, 0x80, 0, 0, 0, 0]), 0, 6, false)
      })
    }
    await world.settle({ until: world.now() + random.integer(0, 200) })
    await world.complete(server.close({ deadline: random.integer(0, 300) }), 60_000)
    await world.settle({ until: world.now() + 10_000 })
    assert.ok(settled(), JSON.stringify(all.filter(({ ends }) => ends.length !== 1).map(({ kind, ends }) => [kind, ends.length])))
    assert.ok(all.every(({ socket }) => ('readyState' in socket ? socket.readyState === 3 : socket.state === 'closed')))
  },
  25,
)

test('a request that no server of heddle’s has received is no request to upgrade', () => {
  const request = new Request('http://h/', { headers: { upgrade: 'websocket', connection: 'upgrade' } })
  assert.throws(() => upgrade(request), { code: 'USAGE', message: /not the request that the fetch handler was given/ })
  assert.throws(
    () => upgrade(new Request('http://h/')),
    (error) => {
      assert.ok(error instanceof UpgradeError)
      assert.deepEqual([error.status, error.response.status, error.getResponse()], [426, 426, error.response])
      assert.equal(fieldValue([...error.response.headers].flat(), 'upgrade'), 'websocket')
      return true
    },
  )
})
