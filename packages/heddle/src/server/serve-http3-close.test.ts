/** How a server of HTTP/3 stops: GOAWAY, the deadline, handshakes in flight, and ports that are free afterwards. */
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test, type TestContext, type TestOptions } from 'node:test'
import type { HeddleError } from '../http/index.ts'
import { noHttp3 } from '../../test/h3-client.ts'
import { assertAtRest, clientPort, localhost, ownAddress, serveHttp3 as serveHttp3At, until, type Http3Scene } from '../../test/h3-scene.ts'
import { Response, serve, type FetchHandler, type Server, type ServeOptions } from './index.ts'

const quick: TestOptions = { timeout: 30_000, skip: noHttp3 }

const own = ownAddress(72)

function serveHttp3(t: TestContext, fetch: FetchHandler, options: Partial<ServeOptions> = {}): Promise<Http3Scene> {
  return serveHttp3At(t, fetch, { hostname: own, ...options })
}

interface Held extends Http3Scene {
  /** Answers the oldest request that waits. */
  answer(text: string): void
  /** Requests that have come. */
  readonly arrived: () => number
  readonly reasons: HeddleError[]
}

/** A server whose answers wait until they are told. */
async function holding(t: TestContext, options: Partial<ServeOptions> = {}): Promise<Held> {
  const waiting: ((response: Response) => void)[] = []
  const reasons: HeddleError[] = []
  let count = 0
  const scene = await serveHttp3(
    t,
    (request) => {
      count++
      request.signal.addEventListener('abort', () => reasons.push(request.signal.reason as HeddleError))
      return new Promise((resolve) => waiting.push(resolve))
    },
    options,
  )
  return { ...scene, answer: (text) => waiting.shift()?.(new Response(text)), arrived: () => count, reasons }
}

async function assertFree(port: number): Promise<void> {
  const socket = createSocket('udp4')
  socket.bind(port, own)
  await once(socket, 'listening')
  socket.close()
  const tcp = connect(port, own)
  const [error] = (await once(tcp, 'error')) as [NodeJS.ErrnoException]
  assert.equal(error.code, 'ECONNREFUSED')
}

test('idle connections close at once, running exchanges end, new ones are refused', quick, async (t) => {
  const { server, connect: dial, answer, arrived } = await holding(t)
  const idle = dial()
  await idle.ready
  const busy = dial()
  const first = busy.ask()
  await until(() => arrived() === 1, 'the request')
  const closing = server.close({ deadline: 600_000 })
  assert.equal(await idle.closed, undefined, 'in peace')
  assert.deepEqual(idle.goaways, [0])
  await until(() => busy.goaways.length > 0, 'GOAWAY')
  assert.equal(busy.connection?.openable, 0, 'no more requests there')
  const late = dial()
  await assert.rejects(
    late.ready,
    { code: 'PEER_CLOSED', wireCode: 2, unprocessed: true },
    'nor connections: the client is told and need not wait',
  )
  answer('the end')
  assert.equal((await first).text, 'the end')
  assert.equal(await busy.closed, undefined)
  await closing
  assertAtRest(server)
  await assertFree(server.port)
})

test('a request that was under way when the server closed is answered', quick, async (t) => {
  const { server, connect: dial, answer, arrived } = await holding(t)
  const client = dial()
  await client.ready
  const asked = client.ask()
  // It leaves with the end of this turn, and the first GOAWAY refuses nothing. To the server the handshake may not be over.
  const closing = server.close({ deadline: 600_000 })
  await until(() => arrived() === 1, 'the request')
  answer('in time')
  assert.equal((await asked).text, 'in time')
  await closing
})

test('what has not ended at the deadline is cut; a second close may bring it forward', quick, async (t) => {
  const { server, connect: dial, arrived, reasons } = await holding(t)
  const client = dial()
  const asked = client.ask()
  asked.catch(() => {})
  await until(() => arrived() === 1, 'the request')
  const first = server.close({ deadline: 600_000 })
  const second = server.close({ deadline: 20 })
  await Promise.all([first, second])
  assert.equal(reasons[0]?.code, 'SHUTDOWN')
  await assert.rejects(asked, { code: 'PEER_CLOSED' })
  assertAtRest(server)
  await server.close()
  await assertFree(server.port)
})

test('deadline 0 cuts at once', quick, async (t) => {
  const { server, connect: dial, arrived } = await holding(t)
  const clients = [dial(), dial(), dial()]
  const asked = clients.map((client) => client.ask())
  for (const each of asked) each.catch(() => {})
  await until(() => arrived() === 3, 'the requests')
  await server.close({ deadline: 0 })
  for (const each of asked) await assert.rejects(each, { code: 'PEER_CLOSED' })
})

test('a handler may close the server, and is answered', quick, async (t) => {
  let closing: Promise<void> | undefined
  const scene: Http3Scene = await serveHttp3(t, () => {
    closing = scene.server.close()
    return new Response('bye')
  })
  assert.equal((await scene.connect().ask()).text, 'bye')
  await closing
  assertAtRest(scene.server)
})

test('the deadline ends handshakes, too', quick, async (t) => {
  const { server, connect: dial } = await serveHttp3(t, () => new Response(), {
    tls: { cert: localhost.cert, key: localhost.key, sniCallback: () => new Promise(() => {}) },
  })
  const client = dial()
  client.ready.catch(() => {})
  await until(() => server.stats().handshakes === 1, 'the handshake')
  await server.close({ deadline: 0 })
  await assert.rejects(client.ready, { code: 'PEER_CLOSED', wireCode: 2 })
})

test('handshakes in flight do not hold a close up for long', quick, async (t) => {
  const { server, connect: dial } = await serveHttp3(t, () => new Response(), {
    tls: { cert: localhost.cert, key: localhost.key, sniCallback: () => new Promise(() => {}) },
    handshakeTimeout: 600_000,
  })
  const client = dial()
  client.ready.catch(() => {})
  await until(() => server.stats().handshakes === 1, 'the handshake')
  await server.close({ deadline: 600_000 })
  await assert.rejects(client.ready, { code: 'PEER_CLOSED', wireCode: 2 })
  const { handshakes, connections, rejected, handshakesFailed } = server.stats()
  assert.deepEqual(
    { handshakes, connections, rejected, handshakesFailed },
    { handshakes: 0, connections: 0, rejected: 1, handshakesFailed: 0 },
  )
  await assertFree(server.port)
})

test('clients that are gone without a word do not hold a close up', quick, async (t) => {
  const { server } = await serveHttp3(t, () => new Response('x'))
  const port = await clientPort(t)
  const { Http3Client } = await import('../../test/h3-client.ts')
  const client = new Http3Client({ port: server.port, address: own, from: port })
  await client.ask()
  // The port goes, and with it all that the client would say.
  await port.driver.close(new Error('gone') as HeddleError)
  await server.close({ deadline: 600_000 })
  assertAtRest(server)
})

test('a response under way is sent to its end', quick, async (t) => {
  let go!: () => void
  const gate = new Promise<void>((resolve) => (go = resolve))
  const { server, connect: dial } = await serveHttp3(t, () => {
    const content = async function* (): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(100_000)
      await gate
      yield new Uint8Array(1_000_000)
    }
    return new Response(content())
  })
  const { content } = await dial().start({}, true).response
  const closing = server.close({ deadline: 600_000 })
  go()
  let length = 0
  for await (const chunk of content) length += (chunk as Buffer).length
  assert.equal(length, 1_100_000)
  await closing
})

test('closeIdleConnections and closeAllConnections close, and the server goes on', quick, async (t) => {
  const { server, connect: dial, answer, arrived, reasons } = await holding(t)
  const idle = dial()
  await idle.ready
  const busy = dial()
  const asked = busy.ask()
  await until(() => arrived() === 1, 'the request')
  server.closeIdleConnections()
  assert.equal(await idle.closed, undefined)
  await until(() => server.stats().http3.connections === 1, 'the idle one is gone')
  answer('still there')
  assert.equal((await asked).text, 'still there')
  const again = busy.ask()
  again.catch(() => {})
  await until(() => arrived() === 2, 'another')
  server.closeAllConnections()
  await assert.rejects(again, { code: 'PEER_CLOSED' })
  await until(() => reasons.length === 1, 'the signal')
  assert.equal(server.stats().http3.connections, 0)
  const after = dial().ask()
  await until(() => arrived() === 3, 'a new one')
  answer('goes on')
  // The oldest that waits is the one that was cut.
  answer('goes on')
  assert.equal((await after).text, 'goes on')
})

test('await using closes both ports', quick, async () => {
  let port = 0
  {
    await using server: Server = await serve({
      hostname: own,
      protocols: ['h3', 'h2'],
      tls: { cert: localhost.cert, key: localhost.key },
      fetch: () => new Response(),
    })
    port = server.port
  }
  await assertFree(port)
})
