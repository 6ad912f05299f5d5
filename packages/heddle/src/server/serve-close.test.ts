import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Response, serve, type Request, type ServeOptions, type Server } from './index.ts'

const quick = { timeout: 20_000 }

/** A server that is gone when the test is over, however it ends. */
async function start(t: TestContext, options: ServeOptions): Promise<Server> {
  const server = await serve({ hostname: '127.0.0.1', ...options })
  t.after(() => server.close({ deadline: 0 }))
  return server
}

async function open(server: Server): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

async function textOf(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

test('close ends idle connections at once and lets running exchanges end', quick, async (t) => {
  let answer!: (response: Response) => void
  let arrived!: () => void
  const began = new Promise<void>((resolve) => (arrived = resolve))
  const server = await start(t, {
    fetch: () => (arrived(), new Promise<Response>((resolve) => (answer = resolve))),
  })
  const idle = await open(server)
  const busy = await open(server)
  busy.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
  await began
  assert.deepEqual([server.stats().connections, server.stats().exchanges, server.stats().idleConnections], [2, 1, 1])
  let closed = false
  const closing = server.close().then(() => (closed = true))
  assert.equal(await textOf(idle), '')
  assert.equal(closed, false)
  const refused = connect(server.port, '127.0.0.1')
  await once(refused, 'error')
  answer(new Response('done'))
  const text = await textOf(busy)
  assert.match(text, /connection: close/i)
  assert.match(text, /done$/)
  await closing
  assert.deepEqual([server.stats().connections, server.stats().exchanges], [0, 0])
})

test('what has not ended at the deadline is cut, and its signal aborts', quick, async (t) => {
  let signal!: AbortSignal
  let arrived!: () => void
  const began = new Promise<void>((resolve) => (arrived = resolve))
  const server = await start(t, {
    fetch: (request) => {
      signal = request.signal
      arrived()
      return new Promise<Response>(() => {})
    },
  })
  const socket = await open(server)
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
  await began
  await server.close({ deadline: 20 })
  assert.equal((signal.reason as { code: string }).code, 'SHUTDOWN')
  assert.equal(server.stats().connections, 0)
  socket.destroy()
})

test('a second close can bring the deadline forward', quick, async (t) => {
  let arrived!: () => void
  const began = new Promise<void>((resolve) => (arrived = resolve))
  const server = await start(t, { fetch: () => (arrived(), new Promise<Response>(() => {})) })
  const socket = await open(server)
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
  await began
  const first = server.close({ deadline: 600_000 })
  const second = server.close({ deadline: 10 })
  await Promise.all([first, second])
  await server.close()
  socket.destroy()
})

test('a handler may close the server, and is answered', quick, async (t) => {
  let closing!: Promise<void>
  const server: Server = await start(t, {
    fetch() {
      closing = server.close()
      return new Response('bye')
    },
  })
  const socket = await open(server)
  socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
  assert.match(await textOf(socket), /bye$/)
  await closing
})

test('a stream that runs when the server closes is finished', quick, async (t) => {
  let arrived!: () => void
  const began = new Promise<void>((resolve) => (arrived = resolve))
  let go!: () => void
  const gate = new Promise<void>((resolve) => (go = resolve))
  const server = await start(t, {
    fetch: () =>
      new Response(
        (async function* content() {
          yield 'one,'
          arrived()
          await gate
          yield 'two'
        })(),
      ),
  })
  const socket = await open(server)
  socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
  await began
  const closing = server.close()
  go()
  assert.match(await textOf(socket), /one,[^]*two[^]*0\r\n\r\n$/)
  await closing
})

test('await using closes at the end of the block', quick, async (t) => {
  const server = await start(t, { fetch: () => new Response('x') })
  const socket = await open(server)
  await server[Symbol.asyncDispose]()
  assert.equal(await textOf(socket), '')
  assert.equal(server.stats().connections, 0)
})

test('a client that closes its sending side is gone, unless halfOpen says that it waits', quick, async (t) => {
  let reason: unknown
  const fetch = async (request: Request): Promise<Response> => {
    request.signal.addEventListener('abort', () => (reason = request.signal.reason))
    await new Promise((resolve) => setTimeout(resolve, 30))
    return new Response('answer')
  }
  for (const halfOpen of [false, true]) {
    const server = await start(t, { fetch, halfOpen })
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true })
    socket.end('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    const text = await textOf(socket)
    if (halfOpen) assert.match(text, /answer$/)
    else assert.equal(text, '')
    assert.equal((reason as { code: string } | undefined)?.code, halfOpen ? undefined : 'PEER_CLOSED')
    reason = undefined
  }
})
