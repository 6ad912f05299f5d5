import { deepEqual, equal, ok } from 'node:assert/strict'
import { worldTest, type World } from 'heddle/testing'
import type { RouteConfig } from '../src/config/types.ts'
import { Code, pick, request, type QuietPeer } from './http2-peer.ts'
import { clusterConfig, matchConfig, Rig, routeConfig, type Upstream } from './rig.ts'

const few = { seeds: 3 }
const path = '/helloworld.Greeter/SayHello'
const call = { service: 'helloworld.Greeter', method: 'SayHello' }
const answerHead = [':status', '200', 'content-type', 'application/grpc']

/** A length-prefixed message. */
function message(text: string): Buffer {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(text.length, 1)
  return Buffer.concat([prefix, Buffer.from(text)])
}

function callHead(...more: string[]): string[] {
  return request('POST', path, 'content-type', 'application/grpc', 'te', 'trailers', 'user-agent', 'grpc-test', ...more)
}

interface Stage {
  readonly rig: Rig
  readonly host: Upstream
  readonly client: QuietPeer
  upstream(): QuietPeer
}

async function stage(world: World, route: Partial<RouteConfig> = {}): Promise<Stage> {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ protocol: 'h2c' })], routes: [routeConfig(route)] })
  const host = rig.upstream()
  const client = rig.http2Client()
  let upstream: QuietPeer | undefined
  return {
    rig,
    host,
    client,
    upstream() {
      world.run()
      return (upstream ??= host.http2Peer())
    },
  }
}

worldTest('unary: head, message and trailers go through untouched, te and grpc-timeout kept', few, async (world) => {
  const { rig, client, upstream } = await stage(world)
  client.sendHead(1, callHead('grpc-timeout', '5S', 'grpc-encoding', 'gzip', 'x-bin', 'AAEC'), false).sendContent(1, message('hi'), true)
  deepEqual(upstream().wantHead('the call', 1, false), [
    ...callHead('grpc-timeout', '5S', 'grpc-encoding', 'gzip', 'x-bin', 'AAEC', 'via', '2 gw'),
  ])
  deepEqual(upstream().wantContent('its message', 1, 7, true), message('hi'))
  upstream().sendHead(1, answerHead, false).sendContent(1, message('hello'), false)
  upstream().sendHead(1, ['grpc-status', '0', 'grpc-message', '', 'x-trailer-bin', 'AAEC'], true)
  deepEqual(client.wantHead('the head', 1, false).slice(0, 4), answerHead)
  deepEqual(client.wantContent('the message', 1, 10, false), message('hello'))
  client.wantTrailers('the trailers', 1, ['grpc-status', '0', 'grpc-message', '', 'x-trailer-bin', 'AAEC'])
  const { grpc, grpcStatus, status, reason } = rig.record()
  deepEqual([grpc, grpcStatus, status, reason], [call, 0, 200, ''])
  deepEqual(rig.leftovers(), [])
})

worldTest('server streaming: each message comes when it is sent', few, async (world) => {
  const { rig, client, upstream } = await stage(world)
  client.sendHead(1, callHead(), false).sendContent(1, message('go'), true)
  upstream().wantHead('the call', 1, false)
  upstream().wantContent('its message', 1, 7, true)
  upstream().sendHead(1, answerHead, false)
  client.wantHead('the head, before any message', 1, false)
  for (const text of ['one', 'two', 'three']) {
    upstream().sendContent(1, message(text), false)
    deepEqual(client.wantContent(text, 1, text.length + 5, false), message(text))
    world.advance(10_000)
  }
  upstream().sendHead(1, ['grpc-status', '0'], true)
  client.wantTrailers('the trailers', 1, ['grpc-status', '0'])
  const { grpcStatus, duration, timeToHead } = rig.record()
  equal(grpcStatus, 0)
  ok(duration >= 30_000 && timeToHead < 1_000, `${duration} ${timeToHead}`)
})

worldTest('client streaming: the head goes upstream before any message, the answer comes at the end', few, async (world) => {
  const { rig, client, upstream } = await stage(world)
  client.sendHead(1, callHead(), false)
  upstream().wantHead('the call, before any message', 1, false)
  for (const text of ['one', 'two', 'three']) {
    client.sendContent(1, message(text), false)
    deepEqual(upstream().wantContent(text, 1, text.length + 5, false), message(text))
    // A client may think as long as it likes: no head is expected before it has ended.
    world.advance(20_000)
  }
  client.send({ type: 'DATA', streamId: 1, data: new Uint8Array(0), end: true })
  upstream().wantContent('the end', 1, 0, true)
  upstream().sendHead(1, answerHead, false).sendContent(1, message('sum'), false).sendHead(1, ['grpc-status', '0'], true)
  client.wantHead('the head', 1, false)
  client.wantContent('the message', 1, 8, false)
  client.wantTrailers('the trailers', 1, ['grpc-status', '0'])
  equal(rig.record().grpcStatus, 0)
  deepEqual(rig.leftovers(), [])
})

worldTest('bidirectional: both talk at once, and each ends by itself', few, async (world) => {
  const { rig, client, upstream } = await stage(world)
  client.sendHead(1, callHead(), false)
  upstream().wantHead('the call', 1, false)
  upstream().sendHead(1, answerHead, false)
  client.wantHead('the head', 1, false)
  for (let i = 0; i < 5; i++) {
    client.sendContent(1, message(`ping ${i}`), false)
    deepEqual(upstream().wantContent('ping', 1, 11, false), message(`ping ${i}`))
    upstream().sendContent(1, message(`pong ${i}`), false)
    deepEqual(client.wantContent('pong', 1, 11, false), message(`pong ${i}`))
  }
  client.send({ type: 'DATA', streamId: 1, data: new Uint8Array(0), end: true })
  upstream().wantContent("the client's end", 1, 0, true)
  upstream().sendContent(1, message('last'), false)
  client.wantContent('what the upstream still had to say', 1, 9, false)
  upstream().sendHead(1, ['grpc-status', '0'], true)
  client.wantTrailers('the trailers', 1, ['grpc-status', '0'])
  equal(rig.record().grpcStatus, 0)
  deepEqual(rig.leftovers(), [])
})

worldTest('a server that ends a bidirectional call early: the trailers arrive, and the client is told to stop', few, async (world) => {
  const { rig, client, upstream } = await stage(world)
  client.sendHead(1, callHead(), false).sendContent(1, message('one'), false)
  upstream().wantHead('the call', 1, false)
  upstream().wantContent('one', 1, 8, false)
  upstream().sendHead(1, answerHead, false).sendHead(1, ['grpc-status', '9', 'grpc-message', 'enough'], true)
  client.wantHead('the head', 1, false)
  client.wantTrailers('the trailers', 1, ['grpc-status', '9', 'grpc-message', 'enough'])
  upstream().wantReset('no more from us', 1, Code.NoError)
  // It may be about to end by itself.
  world.advance(1_000)
  client.wantReset('no more', 1, Code.NoError)
  equal(rig.record().grpcStatus, 9)
  deepEqual(rig.leftovers(), [])
})

worldTest('trailers-only: the head that ends the answer goes through as it is, and its status counts', few, async (world) => {
  const { rig, client, upstream } = await stage(world)
  client.sendHead(1, callHead(), false).sendContent(1, message('hi'), true)
  upstream().wantHead('the call', 1, false)
  upstream().wantContent('its message', 1, 7, true)
  upstream().sendHead(1, [...answerHead, 'grpc-status', '5', 'grpc-message', 'not%20found'], true)
  const head = client.wantHead('trailers-only', 1, true)
  deepEqual(head.slice(0, 8), [...answerHead, 'grpc-status', '5', 'grpc-message', 'not%20found'])
  equal(rig.record().grpcStatus, 5)
})

worldTest('a cancelled call is a CANCEL upstream, and counts as CANCELLED', few, async (world) => {
  const { rig, client, upstream } = await stage(world)
  client.sendHead(1, callHead(), false).sendContent(1, message('hi'), true)
  upstream().wantHead('the call', 1, false)
  upstream().wantContent('its message', 1, 7, true)
  upstream().sendHead(1, answerHead, false)
  client.wantHead('the head', 1, false)
  client.send({ type: 'RST_STREAM', streamId: 1, code: Code.Cancel })
  upstream().wantReset('cancelled', 1, Code.Cancel)
  const { grpcStatus, reason } = rig.record()
  deepEqual([grpcStatus, reason], [1, 'client_closed'])
  deepEqual(rig.leftovers(), [])
})

worldTest('grpc-timeout is only passed on, unless the route says that it is a deadline here too', few, async (world) => {
  const { rig, client, upstream } = await stage(world)
  client.sendHead(1, callHead('grpc-timeout', '500m'), true)
  equal(pick(upstream().wantHead('the call', 1, true), 'grpc-timeout')['grpc-timeout'], '500m')
  world.advance(5_000)
  client.wantIdle('the upstream decides')
  upstream().sendHead(1, [...answerHead, 'grpc-status', '4'], true)
  client.wantHead('its answer', 1, true)
  equal(rig.record().reason, '')
})

worldTest('a deadline that the route honours: DEADLINE_EXCEEDED in trailers only, and a CANCEL upstream', few, async (world) => {
  const { rig, client, upstream } = await stage(world, { grpcDeadline: true })
  client.sendHead(1, callHead('grpc-timeout', '500m'), true)
  equal(pick(upstream().wantHead('the call', 1, true), 'grpc-timeout')['grpc-timeout'], '500m')
  world.advance(400)
  client.wantIdle('there is time')
  world.advance(200)
  const head = client.wantHead('time is up', 1, true)
  deepEqual(pick(head, ':status', 'content-type', 'grpc-status', 'grpc-message', 'heddle-reason'), {
    ':status': '200',
    'content-type': 'application/grpc',
    'grpc-status': '4',
    'grpc-message': 'gateway: grpc_timeout',
    'heddle-reason': 'grpc_timeout',
  })
  upstream().wantReset('cancelled', 1, Code.Cancel)
  const { grpcStatus, reason, status } = rig.record()
  deepEqual([grpcStatus, reason, status], [4, 'grpc_timeout', 200])

  // In the middle of a response nothing but a reset is left to say.
  client.sendHead(3, callHead('grpc-timeout', '500m'), true)
  upstream().wantHead('another call', 3, true)
  upstream().sendHead(3, answerHead, false).sendContent(3, message('one'), false)
  client.wantHead('the head', 3, false)
  client.wantContent('one', 3, 8, false)
  world.advance(600)
  client.wantReset('time is up', 3, Code.Cancel)
  upstream().wantReset('cancelled', 3, Code.Cancel)
  equal(rig.record().grpcStatus, 4)

  // A call that is in time leaves nothing armed.
  client.sendHead(5, callHead('grpc-timeout', '500m'), true)
  upstream().wantHead('a third', 5, true)
  upstream().sendHead(5, [...answerHead, 'grpc-status', '0'], true)
  client.wantHead('its answer', 5, true)
  world.advance(600)
  client.wantIdle('nothing more')
  equal(rig.record().reason, '')
  deepEqual(rig.leftovers(), [])
})

worldTest("the route's own timeout wins if it is shorter", few, async (world) => {
  const { rig, client, upstream } = await stage(world, { grpcDeadline: true, timeout: 1_000 })
  client.sendHead(1, callHead('grpc-timeout', '1H'), true)
  upstream().wantHead('the call', 1, true)
  world.advance(1_100)
  equal(pick(client.wantHead('time is up', 1, true), 'grpc-status')['grpc-status'], '4')
  equal(rig.record().reason, 'route_timeout')
})

worldTest('what the gateway itself has to say is said in trailers only', few, async (world) => {
  const rig = await Rig.make(world, {
    clusters: [clusterConfig({ protocol: 'h2c' })],
    routes: [routeConfig({ match: matchConfig({ grpcService: 'helloworld.Greeter' }) })],
  })
  rig.upstream().stop()
  const client = rig.http2Client()
  client.sendHead(1, callHead(), true)
  world.run()
  deepEqual(pick(client.wantHead('nobody listens', 1, true), ':status', 'grpc-status', 'heddle-reason'), {
    ':status': '200',
    'grpc-status': '14',
    'heddle-reason': 'connect_failed',
  })
  client.sendHead(3, request('POST', '/other.Service/Method', 'content-type', 'application/grpc'), true)
  deepEqual(pick(client.wantHead('no route', 3, true), 'grpc-status', 'heddle-reason'), {
    'grpc-status': '12',
    'heddle-reason': 'no_route',
  })
  // Who does not speak gRPC is told in HTTP's words.
  client.sendHead(5, request('POST', path, 'content-type', 'application/json'), true)
  deepEqual(pick(client.wantHead('no route', 5, false), ':status', 'heddle-reason'), { ':status': '404', 'heddle-reason': 'no_route' })
  client.wantContent('its text', 5, 24, true)
  deepEqual(
    rig.records.map(({ grpcStatus, status }) => [grpcStatus, status]),
    [
      [14, 200],
      [12, 200],
      [-1, 404],
    ],
  )
  deepEqual(rig.leftovers(), [])
})

worldTest('what an upstream reset before its head means to a gRPC client', few, async (world) => {
  const { rig, client, upstream } = await stage(world, { retry: { attempts: 0 } })
  const codes: readonly [number, string, string][] = [
    [Code.Cancel, '1', 'upstream_reset'],
    [Code.InternalError, '13', 'upstream_reset'],
    [Code.EnhanceYourCalm, '8', 'upstream_reset'],
  ]
  for (const [i, [code, status, reason]] of codes.entries()) {
    const streamId = 2 * i + 1
    client.sendHead(streamId, callHead(), true)
    upstream().wantHead('the call', streamId, true)
    upstream().send({ type: 'RST_STREAM', streamId, code })
    deepEqual(pick(client.wantHead('the answer', streamId, true), 'grpc-status', 'heddle-reason'), {
      'grpc-status': status,
      'heddle-reason': reason,
    })
    equal(rig.record().grpcStatus, Number(status))
  }
})

worldTest('an answer that is none of gRPC goes through, and counts as what clients take it for', few, async (world) => {
  const { rig, client, upstream } = await stage(world)
  for (const [streamId, status, counted] of [
    [1, '404', 12],
    [3, '503', 14],
    [5, '200', 2],
  ] as const) {
    client.sendHead(streamId, callHead(), true)
    upstream().wantHead('the call', streamId, true)
    upstream().sendHead(streamId, [':status', status, 'content-type', 'text/html'], false).sendContent(streamId, '<html>', true)
    equal(pick(client.wantHead('the answer', streamId, false), ':status')[':status'], status)
    client.wantContent('its content', streamId, 6, true)
    equal(rig.record().grpcStatus, counted)
  }
})

worldTest('a call over HTTP/2 to an upstream of HTTP/1.1: message, te and trailers survive', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, callHead(), false).sendContent(1, message('hi'), true)
  world.run()
  const head = host
    .peer()
    .want('the call', /[^]*?\r\n\r\n/)
    .toString('latin1')
  ok(/^te: trailers\r$/im.test(head), head)
  host.peer().want('its message', Buffer.concat([Buffer.from('7\r\n'), message('hi'), Buffer.from('\r\n0\r\n\r\n')]))
  host.peer().send('HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n')
  host.peer().send(Buffer.concat([Buffer.from('7\r\n'), message('yo'), Buffer.from('\r\n0\r\nGrpc-Status: 0\r\n\r\n')]))
  client.wantHead('the head', 1, false)
  deepEqual(client.wantContent('the message', 1, 7, false), message('yo'))
  client.wantTrailers('the trailers', 1, ['grpc-status', '0'])
  equal(rig.record().grpcStatus, 0)
})
