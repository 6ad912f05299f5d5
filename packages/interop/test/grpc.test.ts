/** Real gRPC clients and servers, of npm and of Go, with the gateway between. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { sumOf } from '../src/application.ts'
import { goGrpcClient, goGrpcServer } from '../src/grpc-go.ts'
import { jsGrpcClient, jsGrpcServer } from '../src/grpc-js.ts'
import {
  statusDetails,
  type Call,
  type Entries,
  type GrpcClient,
  type GrpcClientMaker,
  type GrpcServerMaker,
  type Outcome,
} from '../src/grpc.ts'
import { openFolder, openGateway, until, type OpenGateway } from '../src/stage.ts'

const quick = { timeout: 60_000 }

const clients: Readonly<Record<string, GrpcClientMaker>> = { 'grpc-js': jsGrpcClient, 'grpc-go': goGrpcClient }
const servers: Readonly<Record<string, GrpcServerMaker>> = { 'grpc-js': jsGrpcServer, 'grpc-go': goGrpcServer }

const text = (value: string): Buffer => Buffer.from(value)

async function well(client: GrpcClient, call: Call): Promise<Outcome> {
  const outcome = await client.call(call)
  assert.equal(outcome.code, status.OK, `${call.method}: ${outcome.message}`)
  return outcome
}

/** All values, as strings. */
function strings(entries: Entries, name: string): string[] {
  return (entries[name] ?? []).map((value) => value.toString('latin1'))
}

/** Every kind of call there is. */
async function fourKinds(client: GrpcClient): Promise<void> {
  for (const gzip of [false, true]) {
    const request = Buffer.alloc(3000, 'unary')
    const { replies: one } = await well(client, { method: 'Unary', messages: [request], gzip })
    assert.deepEqual(one, [request])
    assert.deepEqual((await well(client, { method: 'Unary', messages: [Buffer.alloc(0)], gzip })).replies, [Buffer.alloc(0)])

    const { replies: many } = await well(client, { method: 'Server', messages: [text('200 1000')], gzip })
    assert.deepEqual(
      many,
      Array.from({ length: 200 }, (_, i) => Buffer.alloc(1000, i)),
    )

    const messages = Array.from({ length: 200 }, (_, i) => Buffer.alloc(i * 10, i))
    const { replies: counted } = await well(client, { method: 'Client', messages, gzip })
    const all = Buffer.concat(messages)
    assert.deepEqual(counted.map(String), [`200 ${all.length} ${sumOf(all)}`])

    for (const inTurn of [false, true]) {
      assert.deepEqual((await well(client, { method: 'Both', messages, gzip, inTurn })).replies, messages)
    }
    assert.deepEqual((await well(client, { method: 'Both', messages: [], gzip })).replies, [])
  }
}

async function metadata(client: GrpcClient): Promise<void> {
  const octets = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  const { header, trailer, replies } = await well(client, {
    method: 'Unary',
    messages: [text('hello')],
    metadata: [
      ['x-asked', text('one')],
      ['x-asked', text('two, three')],
      ['x-asked', Buffer.alloc(4000, 'v')],
      ['x-asked-bin', octets],
      ['x-asked-bin', Buffer.alloc(0)],
    ],
    timeout: 20_000,
  })
  assert.deepEqual(replies.map(String), ['hello'])
  for (const [entries, name] of [
    [header, 'x-answered'],
    [trailer, 'x-last'],
  ] as const) {
    assert.equal(strings(entries, name).join(', '), `one, two, three, ${'v'.repeat(4000)}`)
    assert.deepEqual((entries[`${name}-bin`] ?? [])[0], octets)
  }
  const left = Number(strings(header, 'x-deadline')[0])
  assert.ok(left > 10_000 && left <= 20_000, `the server knows of the deadline: ${left} ms`)
}

async function failures(client: GrpcClient): Promise<void> {
  for (const message of ['not now', 'naïve – 100%\n', '']) {
    const code = status.FAILED_PRECONDITION
    const early = await client.call({ method: 'Fail', messages: [text(`${code} ${message}`)] })
    assert.deepEqual([early.code, early.message, early.replies], [code, message, []])
    assert.deepEqual(early.details, statusDetails(code, message))
    const late = await client.call({ method: 'FailLate', messages: [text(`${status.DATA_LOSS} ${message}`)] })
    assert.deepEqual([late.code, late.message, late.replies.map(String)], [status.DATA_LOSS, message, ['so far', 'so far']])
    assert.deepEqual(late.details, statusDetails(status.DATA_LOSS, message))
  }
}

async function seen(client: GrpcClient): Promise<number> {
  return Number((await well(client, { method: 'Seen', messages: [text('')] })).replies[0])
}

async function endings(client: GrpcClient): Promise<void> {
  const before = await seen(client)
  const cancelled = await client.call({ method: 'Wait', messages: [text('')], cancelAfter: 100 })
  assert.equal(cancelled.code, status.CANCELLED)
  await until(async () => (await seen(client)) === before + 1, 'the service to see the cancellation')
  const late = await client.call({ method: 'Wait', messages: [text('')], timeout: 150 })
  // grpc-go's server resets with CANCEL what its own deadline ends, and its client takes that for DEADLINE_EXCEEDED only once its own has passed.
  assert.ok(late.code === status.DEADLINE_EXCEEDED || late.code === status.CANCELLED, `${late.code} ${late.message}`)
  await until(async () => (await seen(client)) === before + 2, 'the service to see the deadline')
  const broken = await client.call({ method: 'Server', messages: [text('100000 50000')], cancelAfter: 100 })
  assert.equal(broken.code, status.CANCELLED)
}

async function large(client: GrpcClient): Promise<void> {
  const request = Buffer.alloc(8_000_000, 'large message')
  const { replies } = await well(client, { method: 'Unary', messages: [request] })
  assert.equal(sumOf(replies[0] as Buffer), sumOf(request))
  const messages = Array.from({ length: 4 }, (_, i) => Buffer.alloc(3_000_000, i))
  const both = await well(client, { method: 'Both', messages })
  assert.deepEqual(both.replies.map(sumOf), messages.map(sumOf))
}

async function many(client: GrpcClient): Promise<void> {
  const outcomes = await Promise.all(
    Array.from({ length: 1000 }, (_, i) => client.call({ method: i % 10 === 0 ? 'Both' : 'Unary', messages: [text(`number ${i}`)] })),
  )
  assert.deepEqual(
    outcomes.map(({ code, replies }) => `${code} ${replies.map(String)}`),
    Array.from({ length: 1000 }, (_, i) => `0 number ${i}`),
  )
}

/** What the gateway says of it. */
async function counts({ gateway }: OpenGateway, secure: boolean): Promise<void> {
  const { listeners, clusters, grpc } = await gateway.stats()
  const listener = listeners[secure ? 1 : 0]
  assert.equal(listener?.accepted, 1, 'the client made one connection')
  assert.equal(clusters[0]?.http2.connections, 1, 'so did the gateway')
  const calls = (method: string, name: string): number =>
    grpc.filter((one) => one.method === method).reduce((sum, { statuses }) => sum + (statuses[name] ?? 0), 0)
  assert.equal(calls('Fail', 'FAILED_PRECONDITION'), 3)
  assert.equal(calls('FailLate', 'DATA_LOSS'), 3)
}

for (const [clientName, openClient] of Object.entries(clients)) {
  for (const [serverName, openServer] of Object.entries(servers)) {
    for (const [way, protocol] of [
      ['h2c', 'h2c'],
      ['TLS', 'h2c'],
      ['TLS', 'h2'],
    ] as const) {
      test(`${clientName} → gateway → ${serverName} (${way} → ${protocol})`, quick, async (t) => {
        const folder = openFolder(t)
        const { plain, secure } = await openServer(t, folder)
        const gateway = await openGateway(t, folder, { port: protocol === 'h2' ? secure : plain, protocol }, { protocols: '[h2]' })
        const client = openClient(t, way === 'TLS', way === 'TLS' ? gateway.secure : gateway.plain, folder)
        const step = (name: string, story: () => Promise<void>): Promise<void> => t.test(name, { timeout: 10_000 }, story)
        await step('the four kinds of calls, compressed or not', () => fourKinds(client))
        await step('metadata, binary too, and the deadline', () => metadata(client))
        await step('failures in trailers only and after messages, with details', () => failures(client))
        await step('large messages', () => large(client))
        await step('cancellations and deadlines reach the service', () => endings(client))
        await step('a thousand calls at once on one connection', () => many(client))
        await step('counts', () => counts(gateway, way === 'TLS'))
        await client.close()
      })
    }
  }
}

for (const [clientName, openClient] of Object.entries(clients)) {
  test(`${clientName} is told what the gateway has to say itself`, quick, async (t) => {
    const folder = openFolder(t)
    const dead = await openGateway(t, folder, { port: 1, protocol: 'h2c' })
    const elsewhere = await openGateway(t, folder, { port: 1, protocol: 'h2c' }, { route: 'match: { hosts: [elsewhere.test] }' })
    for (const secure of [false, true]) {
      const unavailable = await openClient(t, secure, secure ? dead.secure : dead.plain, folder).call({
        method: 'Unary',
        messages: [text('')],
      })
      assert.deepEqual([unavailable.code, unavailable.message], [status.UNAVAILABLE, 'gateway: connect_failed'])
      assert.deepEqual(strings(unavailable.trailer, 'heddle-reason'), ['connect_failed'])
      const client = openClient(t, secure, secure ? elsewhere.secure : elsewhere.plain, folder)
      const unknown = await client.call({ method: 'Both', messages: [text('')] })
      assert.deepEqual([unknown.code, unknown.message], [status.UNIMPLEMENTED, 'gateway: no_route'])
    }
  })
}
