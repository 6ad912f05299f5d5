/** What the program of a server throws once a WebSocket is open: it ends that WebSocket, and nothing else. */
import assert from 'node:assert/strict'
import { story } from './serve-stage.test.ts'
import { accept, upgrade } from './upgrade.ts'
import type { WebSocket } from './web-socket.ts'

/** As it is with what clients send: not what the program expects. */
const parse = ({ data }: { data: unknown }): unknown => JSON.parse(data as string)

/** Ways to listen to messages. */
const ways: Readonly<Record<string, (socket: WebSocket) => void>> = {
  attribute: (socket) => void (socket.onmessage = parse),
  listener: (socket) => socket.addEventListener('message', parse),
  object: (socket) => socket.addEventListener('message', { handleEvent: parse }),
  both: (socket) => {
    socket.onmessage = parse
    socket.addEventListener('message', () => {}, { once: true })
  },
  rejection: (socket) => void (socket.onmessage = async (event) => parse(event)),
  'rejection of a listener': (socket) => socket.addEventListener('message', async (event) => parse(event)),
}

story(
  'a listener that cannot cope with a message: 1011, onError is told, the others go on',
  {
    fetch: (request) => {
      const { response, socket } = upgrade(request)
      const way = ways[request.headers.get('x-way') ?? '']
      if (way === undefined) socket.onmessage = ({ data }) => socket.send(data)
      else way(socket)
      return response
    },
  },
  async ({ ask, pass, told, world }) => {
    const other = (await ask()).socket
    for (const way of Object.keys(ways)) {
      const { socket } = await ask({ fields: ['x-way', way] })
      socket.post('{}')
      await pass()
      assert.equal(socket.state, 'open', way)
      socket.post('no JSON')
      const { code } = await world.complete(socket.closed)
      assert.equal(code, 1011, way)
      assert.ok(told.length === 1 && told.pop() instanceof SyntaxError, way)
    }
    other.post('still here')
    assert.equal(await world.complete(other.read()), 'still here')
    other.close(1000)
    assert.equal((await world.complete(other.closed)).code, 1000)
  },
)

const failing = (type: string) => (): never => {
  throw new Error(type)
}

story(
  'listeners for open and close, which are told all the same',
  {
    fetch: (request) => {
      const { response, socket } = upgrade(request)
      if (request.headers.has('x-open')) socket.addEventListener('open', failing('open'))
      for (const type of ['error', 'close'] as const) socket.addEventListener(type, failing(type))
      return response
    },
  },
  async ({ ask, pass, told, world }) => {
    const { socket } = await ask({ fields: ['x-open', '1'] })
    assert.equal((await world.complete(socket.closed)).code, 1011)
    const { exchange } = await ask()
    exchange.cancel(1)
    await pass()
    const messages = told.map((error) => (error as Error).message)
    assert.deepEqual(messages, ['open', 'close', 'error', 'close'])
  },
)

story(
  'listeners are removed, added twice and called once as with any target',
  {
    fetch: (request) => {
      const { response, socket } = upgrade(request)
      const twice = (): void => socket.send('twice')
      const never = { handleEvent: failing('removed') }
      socket.addEventListener('message', twice)
      socket.addEventListener('message', twice)
      socket.addEventListener('message', () => socket.send('once'), { once: true })
      socket.addEventListener('message', never)
      socket.removeEventListener('message', never)
      socket.addEventListener('message', function (this: WebSocket) {
        assert.equal(this, socket)
      })
      socket.onclose = failing('replaced')
      socket.onclose = null
      socket.addEventListener('close', () => {})
      socket.onclose = function (this: WebSocket) {
        assert.equal(this, socket)
      }
      return response
    },
  },
  async ({ ask, pass, told, world }) => {
    const { socket } = await ask()
    socket.post('a')
    socket.post('b')
    for (const answer of ['twice', 'once', 'twice']) assert.equal(await world.complete(socket.read()), answer, String(told))
    socket.close(1000)
    assert.equal(await world.complete(socket.read()), undefined)
    await pass()
    assert.deepEqual(told, [])
  },
)

story(
  'a handler of the lean face: 1011, and onError is told what it threw',
  {
    fetch: (request) => {
      const { response, socket } = accept(request)
      socket.handler = { onMessage: failing('message') }
      return response
    },
  },
  async ({ ask, pass, told, world }) => {
    const { socket } = await ask()
    socket.post('x')
    assert.equal((await world.complete(socket.closed)).code, 1011)
    await pass()
    assert.deepEqual(
      told.map((error) => (error as Error).message),
      ['message'],
    )
    // A client that breaks the rules is no failure of the program's.
    const rude = await ask()
    rude.exchange.sendData(Buffer.from([0xff]), 0, 1, false)
    rude.exchange.cancel(1)
    await world.complete(rude.socket.closed)
    await pass()
    assert.equal(told.length, 1)
  },
)
