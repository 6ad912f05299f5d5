import { deepEqual, equal, ok } from 'node:assert/strict'
import { worldTest } from 'heddle/testing'
import { Code, pick, request, type QuietPeer } from './http2-peer.ts'
import { clusterConfig, Rig, routeConfig } from './rig.ts'

const few = { seeds: 3 }
const h2c = [clusterConfig({ protocol: 'h2c' })]

worldTest(
  'HTTP/2 on both sides: requests of one connection go upstream on one, and come back each on its own stream',
  few,
  async (world) => {
    const rig = await Rig.make(world, { clusters: h2c })
    const host = rig.upstream()
    const client = rig.http2Client()
    client.sendHead(1, request('GET', '/one', 'accept', 'text/html', 'cookie', 'a=1', 'cookie', 'b=2'), true)
    client.sendHead(3, request('POST', '/two', 'content-length', '5'), false).sendContent(3, 'hello', true)
    world.run()
    const upstream = host.http2Peer()
    const first = upstream.wantHead('the first request', 1, true)
    deepEqual(first, [...request('GET', '/one', 'accept', 'text/html', 'cookie', 'a=1', 'cookie', 'b=2'), 'via', '2 gw'])
    const second = upstream.wantHead('the second request', 3, false)
    deepEqual(pick(second, ':method', ':path', 'content-length'), { ':method': 'POST', ':path': '/two', 'content-length': '5' })
    equal(upstream.wantContent('its content', 3, 5, true).toString(), 'hello')

    // The answers come the other way round.
    upstream.sendHead(3, [':status', '201', 'etag', '"x"'], false).sendContent(3, 'made', true)
    upstream.sendHead(1, [':status', '200', 'set-cookie', 'a=1', 'set-cookie', 'b=2'], true)
    world.run()
    const created = client.wantHead('the second answer', 3, false)
    deepEqual(pick(created, ':status', 'etag', 'via'), { ':status': '201', etag: '"x"', via: '2 gw' })
    equal(client.wantContent('its content', 3, 4, true).toString(), 'made')
    const found = client.wantHead('the first answer', 1, true)
    deepEqual(found.slice(0, 6), [':status', '200', 'set-cookie', 'a=1', 'set-cookie', 'b=2'])
    equal(host.peers.length, 1)
    deepEqual(
      rig.records.map(({ protocol, upstreamProtocol, path, status }) => [protocol, upstreamProtocol, path, status]),
      [
        ['h2', 'h2', '/two', 201],
        ['h2', 'h2', '/one', 200],
      ],
    )
    deepEqual(rig.leftovers(), [])
  },
)

worldTest("a client's CANCEL is a CANCEL upstream within the turn, and nothing else is disturbed", few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('GET', '/slow'), true).sendHead(3, request('POST', '/upload'), false)
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('the first', 1, true)
  upstream.wantHead('the second', 3, false)
  const at = world.now()
  client.send({ type: 'RST_STREAM', streamId: 1, code: Code.Cancel })
  upstream.wantReset('the same upstream', 1, Code.Cancel)
  ok(world.now() - at < 100, 'no timer was waited for')
  // Whatever a client's code is, to the upstream it means that nobody wants the answer any more.
  client.send({ type: 'RST_STREAM', streamId: 3, code: Code.InternalError })
  upstream.wantReset('cancelled as well', 3, Code.Cancel)
  deepEqual(
    rig.records.map(({ reason, status }) => [reason, status]),
    [
      ['client_closed', 0],
      ['client_closed', 0],
    ],
  )
  client.sendHead(5, request('GET', '/next'), true)
  upstream.wantHead('the connection stands', 5, true)
  upstream.sendHead(5, [':status', '204'], true)
  client.wantHead('and so does the other', 5, true)
  deepEqual(rig.leftovers(), [])
})

worldTest('a client connection that is lost cancels all that it had upstream', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.http2Client()
  for (const streamId of [1, 3, 5]) client.sendHead(streamId, request('GET', `/${streamId}`), true)
  world.run()
  const upstream = host.http2Peer()
  for (const streamId of [1, 3, 5]) upstream.wantHead('a request', streamId, true)
  client.peer.reset()
  for (const streamId of [1, 3, 5]) upstream.wantReset('cancelled', streamId, Code.Cancel)
  equal(rig.records.length, 3)
  deepEqual(rig.leftovers(), [])
})

worldTest(
  'what an upstream reset means after the head: the code where it is meant for the client, else INTERNAL_ERROR',
  few,
  async (world) => {
    const rig = await Rig.make(world, { clusters: h2c })
    const host = rig.upstream()
    const client = rig.http2Client()
    const codes: readonly [number, number][] = [
      [Code.Cancel, Code.Cancel],
      [Code.InternalError, Code.InternalError],
      [Code.EnhanceYourCalm, Code.EnhanceYourCalm],
      [Code.NoError, Code.InternalError],
      [Code.ProtocolError, Code.InternalError],
      [Code.RefusedStream, Code.InternalError],
    ]
    let upstream: QuietPeer | undefined
    for (const [i, [code, told]] of codes.entries()) {
      const streamId = 2 * i + 1
      client.sendHead(streamId, request('GET'), true)
      world.run()
      upstream ??= host.http2Peer()
      upstream.wantHead('the request', streamId, true)
      upstream.sendHead(streamId, [':status', '200'], false).sendContent(streamId, 'half', false)
      client.wantHead('the head', streamId, false)
      equal(client.wantContent('what there is', streamId, 4, false).toString(), 'half')
      upstream.send({ type: 'RST_STREAM', streamId, code })
      client.wantReset(`for ${code}`, streamId, told)
      const record = rig.record()
      deepEqual([record.status, record.reason, record.responseSize], [200, 'upstream_reset', 4])
    }
    equal(rig.cluster.stats().endpoints[0]?.failures, 5, 'CANCEL is about the request')
    deepEqual(rig.leftovers(), [])
  },
)

worldTest(
  'an upstream reset before the head is a 502; REFUSED_STREAM is tried again, on the same connection if there is no other',
  few,
  async (world) => {
    const rig = await Rig.make(world, { clusters: h2c })
    const host = rig.upstream()
    const client = rig.http2Client()
    client.sendHead(1, request('POST'), false).sendContent(1, 'content', true)
    world.run()
    const upstream = host.http2Peer()
    upstream.wantHead('the request', 1, false)
    upstream.wantContent('its content', 1, 7, true)
    upstream.send({ type: 'RST_STREAM', streamId: 1, code: Code.RefusedStream })
    upstream.wantHead('again, content and all', 3, false)
    equal(upstream.wantContent('its content', 3, 7, true).toString(), 'content')
    upstream.sendHead(3, [':status', '200'], true)
    deepEqual(pick(client.wantHead('the answer', 1, true), ':status'), { ':status': '200' })
    deepEqual([rig.record().status, rig.cluster.stats().endpoints[0]?.failures], [200, 0])

    client.sendHead(3, request('GET'), true)
    upstream.wantHead('another request', 5, true)
    upstream.send({ type: 'RST_STREAM', streamId: 5, code: Code.InternalError })
    const refused = client.wantHead('a 502', 3, false)
    deepEqual(pick(refused, ':status', 'heddle-reason'), { ':status': '502', 'heddle-reason': 'upstream_reset' })
    client.wantContent('its text', 3, 32, true)
    upstream.wantIdle('RST_STREAM is an answer: it is not sent again although it is a GET')
    const record = rig.record()
    deepEqual([record.status, record.reason, record.attempts], [502, 'upstream_reset', 1])
    deepEqual(rig.leftovers(), [])
  },
)

worldTest('an upstream that refuses again and again: 503 upstream_refused, and the endpoint stays in', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c, routes: [routeConfig({ retry: { attempts: 1 } })] })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('GET'), true)
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('the request', 1, true)
  for (let streamId = 1; ; streamId += 2) {
    if (streamId > 1) {
      world.run()
      if (upstream.peer.received.length === 0) break
      upstream.wantHead('again', streamId, true)
    }
    upstream.send({ type: 'RST_STREAM', streamId, code: Code.RefusedStream })
    ok(streamId < 100, 'it ends')
  }
  deepEqual(pick(client.wantHead('a 503', 1, false), ':status', 'heddle-reason'), { ':status': '503', 'heddle-reason': 'upstream_refused' })
  equal(rig.record().reason, 'upstream_refused')
  equal(rig.cluster.stats().endpoints[0]?.failures, 0)
})

worldTest('GOAWAY: what the upstream did not process moves to a new connection, the rest finishes on the old one', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('GET', '/processed'), true)
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('the first', 1, true)
  client.sendHead(3, request('POST', '/not-processed'), false).sendContent(3, 'content', true)
  upstream.wantHead('the second', 3, false)
  upstream.wantContent('its content', 3, 7, true)
  upstream.send({ type: 'GOAWAY', lastStreamId: 1, code: Code.NoError, debug: '' })
  world.run()
  const successor = host.http2Peer(1)
  successor.wantHead('the second, on a new connection', 1, false)
  equal(successor.wantContent('its content', 1, 7, true).toString(), 'content')
  successor.sendHead(1, [':status', '201'], true)
  deepEqual(pick(client.wantHead('its answer', 3, true), ':status'), { ':status': '201' })
  upstream.sendHead(1, [':status', '200'], false).sendContent(1, 'late', true)
  client.wantHead('the first answer', 1, false)
  client.wantContent('its content', 1, 4, true)
  client.sendHead(5, request('GET', '/next'), true)
  successor.wantHead('new requests go where they are welcome', 3, true)
  successor.sendHead(3, [':status', '204'], true)
  client.wantHead('and are answered', 5, true)
  deepEqual(
    rig.records.map(({ status, reason }) => [status, reason]),
    [
      [201, ''],
      [200, ''],
      [204, ''],
    ],
  )
  equal(rig.cluster.stats().endpoints[0]?.failures, 0)
  deepEqual(rig.leftovers(), [])
})

worldTest('PRIORITY_UPDATE is for this hop; the priority field goes on', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('GET', '/', 'priority', 'u=1'), true)
  world.run()
  const upstream = host.http2Peer()
  equal(pick(upstream.wantHead('the request', 1, true), 'priority')['priority'], 'u=1')
  client.send({ type: 'PRIORITY_UPDATE', prioritizedId: 1, value: 'u=7' })
  upstream.wantIdle('nothing of it goes upstream')
  upstream.sendHead(1, [':status', '204'], true)
  client.wantHead('the answer', 1, true)
})
