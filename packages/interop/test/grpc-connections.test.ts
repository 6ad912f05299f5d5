/** What becomes of gRPC calls when connections come and go: with real clients and servers, and the gateway between. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { goGrpcClient, goGrpcServerWith } from '../src/grpc-go.ts'
import { jsGrpcClient, jsGrpcServer } from '../src/grpc-js.ts'
import type { GrpcClient, GrpcClientMaker, Outcome } from '../src/grpc.ts'
import { Running } from '../src/process.ts'
import { openFolder, openGateway } from '../src/stage.ts'
import { tool } from '../src/tools.ts'

const quick = { timeout: 60_000 }
const clients: Readonly<Record<string, GrpcClientMaker>> = { 'grpc-js': jsGrpcClient, 'grpc-go': goGrpcClient }
const nothing = [Buffer.alloc(0)]

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Outcomes by code. */
function tally(outcomes: readonly Outcome[]): Record<string, number> {
  const all: Record<string, number> = {}
  for (const { code, message } of outcomes) {
    const key = code === status.OK ? 'OK' : `${status[code]}: ${message}`
    all[key] = (all[key] ?? 0) + 1
  }
  return all
}

test('grpc-go sends every connection away after 300 ms: no call is lost', quick, async (t) => {
  const folder = openFolder(t)
  const { plain } = await goGrpcServerWith('-max-age', '300ms')(t, folder)
  const { gateway, plain: port } = await openGateway(t, folder, { port: plain, protocol: 'h2c' })
  const client = jsGrpcClient(t, false, port, folder)
  const calls: Promise<Outcome>[] = []
  const messages = Array.from({ length: 20 }, (_, i) => Buffer.from(`message ${i}`))
  for (let round = 0; round < 150; round++) {
    calls.push(...Array.from({ length: 10 }, (_, i) => client.call({ method: 'Unary', messages: [Buffer.from(`${round} ${i}`)] })))
    calls.push(client.call({ method: 'Both', messages, inTurn: true }))
    await pause(15)
  }
  const outcomes = await Promise.all(calls)
  assert.deepEqual(tally(outcomes), { OK: 1650 })
  const connections = new Set(outcomes.flatMap(({ header }) => (header['x-connection'] ?? []).map(String)))
  assert.ok(connections.size >= 5, `one after the other: ${connections.size}`)
  const { errors } = (await gateway.stats()).requests
  assert.deepEqual(errors, {})
})

for (const [name, open] of Object.entries(clients)) {
  test(`a gateway that stops lets ${name} finish what it has begun`, quick, async (t) => {
    const folder = openFolder(t)
    const { plain } = await jsGrpcServer(t, folder)
    const { gateway, plain: port } = await openGateway(t, folder, { port: plain, protocol: 'h2c' })
    const client: GrpcClient = open(t, false, port, folder)
    await client.call({ method: 'Unary', messages: nothing })
    const messages = Array.from({ length: 100 }, (_, i) => Buffer.alloc(1000, i))
    const begun = Array.from({ length: 50 }, () => client.call({ method: 'Both', messages, inTurn: true }))
    while ((await gateway.stats()).requests.active < 50) await pause(1)
    const closed = gateway.close()
    const outcomes = await Promise.all(begun)
    assert.deepEqual(tally(outcomes), { OK: 50 })
    assert.ok(outcomes.every(({ replies }) => replies.length === 100))
    await closed
    assert.equal((await client.call({ method: 'Unary', messages: nothing })).code, status.UNAVAILABLE)
  })

  test(`what is left to ${name} at the end of a gateway's drainTimeout is UNAVAILABLE`, quick, async (t) => {
    const folder = openFolder(t)
    const { plain } = await jsGrpcServer(t, folder)
    const { gateway, plain: port } = await openGateway(t, folder, { port: plain, protocol: 'h2c' })
    const client: GrpcClient = open(t, false, port, folder)
    await client.call({ method: 'Unary', messages: nothing })
    // One without a response, one in the middle of one, one whose client reads slower than its server writes.
    const waiting = client.call({ method: 'Wait', messages: nothing })
    const streaming = client.call({ method: 'Server', messages: [Buffer.from('1000000 1000')] })
    const talking = client.call({ method: 'Both', messages: Array.from({ length: 1_000_000 }, () => Buffer.from('x')), inTurn: true })
    while ((await gateway.stats()).requests.active < 3) await pause(1)
    await pause(100)
    await gateway.close({ deadline: 300 })
    const { code, message } = await waiting
    assert.deepEqual([status[code], message], ['UNAVAILABLE', 'gateway: shutdown'])
    assert.equal(status[(await streaming).code], 'UNAVAILABLE')
    assert.equal(status[(await talking).code], 'UNAVAILABLE')
  })

  test(`a server that dies while it streams to ${name}`, quick, async (t) => {
    const folder = openFolder(t)
    const dying = new Running(t, tool('peer'), ['grpc-server', '-cert', folder.cert, '-key', folder.key])
    const plain = Number((await dying.prints(/^ready (\d+)/m))[1])
    const { plain: port } = await openGateway(t, folder, { port: plain, protocol: 'h2c' })
    const client = open(t, false, port, folder)
    await client.call({ method: 'Unary', messages: nothing })
    const streaming = client.call({ method: 'Server', messages: [Buffer.from('1000000 1000')] })
    const waiting = client.call({ method: 'Wait', messages: nothing })
    await pause(200)
    dying.child.kill('SIGKILL')
    assert.equal((await streaming).code, status.INTERNAL)
    const { code, message } = await waiting
    assert.equal(code, status.UNAVAILABLE)
    assert.match(message, /^gateway: upstream_(closed|reset)$/)
  })
}

test('a quiet stream to grpc-go, which closes connections that ping more often than it allows', quick, async (t) => {
  const folder = openFolder(t)
  // As 15 s are to its default of 5 minutes.
  const { plain } = await goGrpcServerWith('-min-ping', '1s')(t, folder)
  const { plain: port, gateway } = await openGateway(
    t,
    folder,
    { port: plain, protocol: 'h2c' },
    { cluster: 'http2: { pingInterval: 50ms }' },
  )
  const client = jsGrpcClient(t, false, port, folder)
  const quiet = client.call({ method: 'Wait', messages: nothing, cancelAfter: 6000 })
  await pause(5500)
  const { http2 } = (await gateway.stats()).clusters[0] as { http2: { frames: number } }
  assert.ok(http2.frames >= 8, `the gateway has pinged: ${http2.frames} frames`)
  assert.equal((await quiet).code, status.CANCELLED)
})
