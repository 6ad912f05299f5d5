/** The time limits of a server of HTTP/3, in a clock that skips what would have to be waited for. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test, type TestContext, type TestOptions } from 'node:test'
import type { HeddleError } from '../http/index.ts'
import { Http3Client, noHttp3, type Http3ClientOptions } from '../../test/h3-client.ts'
import { clientPort, localhost, serveHttp3, SkippingClock, until, type Http3Scene } from '../../test/h3-scene.ts'
import { Response, type FetchHandler, type ServeOptions } from './index.ts'

const quick: TestOptions = { timeout: 30_000, skip: noHttp3 }
/** A client that sets no limit to silence itself. */
const patient: Partial<Http3ClientOptions> = { quic: { maxIdleTimeout: 0 } }

interface TimedScene extends Http3Scene {
  readonly clock: SkippingClock
  /** Skips time until something is the case: what is under way arrives meanwhile. */
  skipUntil(condition: () => boolean, step: number, most: number): Promise<void>
}

async function timed(t: TestContext, fetch: FetchHandler, options: Partial<ServeOptions> = {}): Promise<TimedScene> {
  const clock = new SkippingClock()
  const scene = await serveHttp3(t, fetch, { clock, ...options })
  return {
    ...scene,
    clock,
    async skipUntil(condition, step, most) {
      for (let skipped = 0; !condition(); skipped += step) {
        assert.ok(skipped <= most, `nothing came of ${most} ms`)
        clock.skip(step)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    },
  }
}

test('content that does not come: bodyTimeout', quick, async (t) => {
  const reasons: HeddleError[] = []
  const { server, clock, connect } = await timed(t, async (request) => {
    await request.text().catch((error: HeddleError) => reasons.push(error))
    return new Response('late')
  })
  const client = connect(patient)
  const talk = client.start({ method: 'POST', headers: { 'content-length': '10' } }, false)
  talk.out.write('half')
  await until(() => server.stats().exchanges === 1, 'the request')
  clock.skip(29_000)
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(reasons.length, 0)
  clock.skip(2_000)
  await assert.rejects(talk.response, { code: 'PEER_RESET' })
  assert.equal(reasons[0]?.code, 'BODY_TIMEOUT')
  assert.equal(server.stats().http3.connections, 1)
})

test('a head that does not come: headTimeout', quick, async (t) => {
  let called = 0
  const { server, clock, connect } = await timed(t, () => (called++, new Response()))
  const client = connect(patient)
  await client.ask()
  const codes: number[] = []
  const stream = client.quic?.open(true, {
    onData() {},
    onReset: (code) => void codes.push(code),
    onStopSending() {},
    onSent() {},
    onClose() {},
  })
  // RFC 9114 §7.2.2: HEADERS of 32 octets, of which three come.
  stream?.send(Uint8Array.of(1, 32, 0, 0, 0xd1), 0, 5, false)
  await until(() => server.stats().exchanges === 1, 'the stream')
  clock.skip(9_000)
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual(codes, [])
  clock.skip(2_000)
  await until(() => codes.length === 1, 'the reset')
  assert.deepEqual([called, server.stats().exchanges], [1, 0])
  assert.equal((await client.ask()).status, 200)
})

test('a client that takes nothing: sendTimeout', quick, async (t) => {
  const reasons: HeddleError[] = []
  const chunk = new Uint8Array(65_536)
  const { server, clock, connect } = await timed(t, (request) => {
    request.signal.addEventListener('abort', () => reasons.push(request.signal.reason as HeddleError))
    return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(chunk) }))
  })
  const client = connect({ quic: { maxIdleTimeout: 0, initialMaxStreamData: 65_536 } })
  const { content } = await client.start({}, true).response
  let before = -1
  while (server.stats().bytesWritten !== before) {
    before = server.stats().bytesWritten
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
  clock.skip(61_000)
  const [error] = (await once(content, 'error')) as [HeddleError]
  assert.equal(error.code, 'PEER_CLOSED', 'every stream was stalled')
  assert.equal(reasons[0]?.code, 'SEND_TIMEOUT')
})

test('idle connections stay as long as idleTimeout says, and are told when they are over', quick, async (t) => {
  const { server, clock, connect } = await timed(t, () => new Response(), { http3: { idleTimeout: 100_000 } })
  const client = connect(patient)
  await client.ask()
  for (let i = 0; i < 3; i++) {
    clock.skip(90_000)
    assert.equal((await client.ask()).status, 200)
  }
  assert.equal(server.stats().http3.accepted, 1)
  clock.skip(101_000)
  assert.equal(await client.closed, undefined)
  assert.deepEqual(client.goaways, [0])
  await until(() => server.stats().connections === 0, 'nothing is left')
})

test('an answer that takes long keeps its connection', quick, async (t) => {
  let answer!: (response: Response) => void
  const { server, clock, connect } = await timed(t, () => new Promise<Response>((resolve) => (answer = resolve)))
  const client = connect(patient)
  const asked = client.ask()
  await until(() => server.stats().exchanges === 1, 'the request')
  // Ten minutes, in which only PING and its acknowledgement come and go.
  const before = server.stats().http3.bytesRead
  for (let i = 0; i < 40; i++) {
    clock.skip(15_000)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.ok(server.stats().http3.bytesRead > before)
  answer(new Response('at last'))
  assert.equal((await asked).text, 'at last')
})

test('clients that are gone without a word are noticed, with what they had asked for', quick, async (t) => {
  const reasons: string[] = []
  const { server, skipUntil } = await timed(
    t,
    (request) => {
      request.signal.addEventListener('abort', () => reasons.push((request.signal.reason as HeddleError).code))
      return new Promise<Response>(() => {})
    },
    { protocols: ['h3'] },
  )
  const port = await clientPort(t)
  const clients = Array.from({ length: 10 }, () => new Http3Client({ port: server.port, from: port }))
  const asked = clients.map((client) => client.start({}, true))
  await until(() => server.stats().exchanges === 10, 'the requests')
  await port.driver.close(new Error('gone') as HeddleError)
  await skipUntil(() => server.stats().connections === 0, 5_000, 120_000)
  assert.deepEqual(
    reasons,
    Array.from({ length: 10 }, () => 'IDLE_TIMEOUT'),
  )
  for (const { response } of asked) await assert.rejects(response)
})

test('a handshake that never ends: handshakeTimeout', quick, async (t) => {
  const { server, clock, connect, told } = await timed(t, () => new Response(), {
    tls: { cert: localhost.cert, key: localhost.key, sniCallback: () => new Promise(() => {}) },
  })
  const client = connect(patient)
  client.ready.catch(() => {})
  await until(() => server.stats().handshakes === 1, 'the handshake')
  clock.skip(9_000)
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual([server.stats().handshakes, server.stats().connections], [1, 1])
  clock.skip(2_000)
  await until(() => server.stats().handshakesFailed === 1, 'its end')
  assert.deepEqual([server.stats().handshakes, server.stats().connections], [0, 0])
  const [error] = told as HeddleError[]
  assert.deepEqual([error?.code, (error?.cause as HeddleError | undefined)?.code], ['TLS_FAILED', 'CONNECT_TIMEOUT'])
})
