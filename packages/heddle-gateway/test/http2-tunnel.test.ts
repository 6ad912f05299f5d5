import { deepEqual, equal } from 'node:assert/strict'
import { worldTest } from 'heddle/testing'
import { Code, pick, request, Setting } from './http2-peer.ts'
import { message, wantHead } from './messages.ts'
import { clusterConfig, matchConfig, Rig, routeConfig, websocketAccept } from './rig.ts'

const few = { seeds: 3 }
const key = 'dGhlIHNhbXBsZSBub25jZQ=='
/** Extended CONNECT (RFC 8441 §4). */
const extended = [...request('CONNECT', '/chat'), ':protocol', 'websocket', 'sec-websocket-version', '13', 'sec-websocket-protocol', 'chat']
const upgrade = message([
  'GET /chat HTTP/1.1',
  'Host: example.org',
  'Connection: Upgrade',
  'Upgrade: websocket',
  `Sec-WebSocket-Key: ${key}`,
  'Sec-WebSocket-Version: 13',
])
const allowed = [routeConfig({ extendedConnect: true })]

worldTest('extended CONNECT is offered only if some route allows it', few, async (world) => {
  const rig = await Rig.make(world)
  const client = rig.http2Client()
  equal(client.settings.get(Setting.EnableConnectProtocol), undefined)
  client.sendHead(1, extended, false)
  client.wantReset('not offered, not spoken', 1, Code.ProtocolError)
})

worldTest('WebSocket over HTTP/2 to an upstream of HTTP/1.1: an Upgrade there, a 200 here, and bytes both ways', few, async (world) => {
  const rig = await Rig.make(world, { routes: allowed })
  const host = rig.upstream()
  const client = rig.http2Client()
  equal(client.settings.get(Setting.EnableConnectProtocol), 1)
  client.sendHead(1, extended, false)
  world.run()
  const upstream = host.peer()
  const head = wantHead(upstream, 'the upgrade')
  equal(head.line, 'GET /chat HTTP/1.1')
  deepEqual([head.field('upgrade'), head.field('sec-websocket-protocol'), head.field('host')], ['websocket', 'chat', 'example.org'])
  const accept = websocketAccept(head.field('sec-websocket-key') ?? '')
  upstream.send(
    message([
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      'Upgrade: websocket',
      `Sec-WebSocket-Accept: ${accept}`,
      'Sec-WebSocket-Protocol: chat',
    ]),
  )
  const answer = client.wantHead('the tunnel opens', 1, false)
  deepEqual(pick(answer, ':status', 'sec-websocket-protocol', 'sec-websocket-accept', 'upgrade', 'connection'), {
    ':status': '200',
    'sec-websocket-protocol': 'chat',
  })
  equal(rig.proxy.tunnels.open.size, 1)
  client.sendContent(1, 'to the upstream', false)
  upstream.want('bytes', 'to the upstream')
  upstream.send('back')
  equal(client.wantContent('bytes', 1, 4, false).toString(), 'back')
  client.send({ type: 'DATA', streamId: 1, data: new Uint8Array(0), end: true })
  world.advance(10)
  equal(upstream.closedBy, 'end')
  upstream.send('after your end').end()
  equal(client.wantContent('half-closed', 1, 14, true).toString(), 'after your end')
  const record = rig.record()
  deepEqual(
    [record.tunnel, record.status, record.method, record.reason, record.requestSize, record.responseSize],
    [true, 200, 'GET', '', 15, 18],
  )
  deepEqual(rig.leftovers(), [])
})

worldTest('a route that does not allow it refuses; the stream ends and the connection stays', few, async (world) => {
  const rig = await Rig.make(world, {
    routes: [routeConfig({ name: 'ws', match: matchConfig({ pathPrefix: '/ws' }), extendedConnect: true }), routeConfig()],
  })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, extended, false)
  deepEqual(pick(client.wantHead('refused', 1, false), ':status', 'heddle-reason'), { ':status': '405', 'heddle-reason': 'method_refused' })
  equal(host.peers.length, 0)
  client.sendHead(3, request('GET'), true)
  client.wantFrame('its text', { type: 'DATA', streamId: 1, end: true })
  world.run()
  equal(wantHead(host.peer(), 'the next').line, 'GET / HTTP/1.1')
})

worldTest('an Upgrade of HTTP/1.1 to an upstream of HTTP/2 that takes extended CONNECT', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ protocol: 'h2c' })] })
  const host = rig.upstream()
  const first = rig.client().send('GET / HTTP/1.1\r\nHost: example.org\r\n\r\n')
  world.run()
  const upstream = host.http2Peer(0, [[Setting.EnableConnectProtocol, 1]])
  upstream.wantHead('a first request', 1, true)
  upstream.sendHead(1, [':status', '204'], true)
  wantHead(first, 'its answer')
  const client = rig.client().send(upgrade)
  const head = upstream.wantHead('extended CONNECT', 3, false)
  deepEqual(pick(head, ':method', ':protocol', ':path', ':scheme', ':authority', 'sec-websocket-key', 'upgrade', 'connection'), {
    ':method': 'CONNECT',
    ':protocol': 'websocket',
    ':path': '/chat',
    ':scheme': 'http',
    ':authority': 'example.org',
  })
  upstream.sendHead(3, [':status', '200'], false)
  const answer = wantHead(client, 'the tunnel opens')
  equal(answer.line, 'HTTP/1.1 101 Switching Protocols')
  equal(answer.field('sec-websocket-accept'), websocketAccept(key))
  client.send('there')
  equal(upstream.wantContent('bytes', 3, 5, false).toString(), 'there')
  upstream.sendContent(3, 'and back', false)
  client.want('bytes', 'and back')
  client.reset()
  upstream.wantReset('a tunnel whose one end is lost', 3, Code.ConnectError)
  deepEqual(rig.leftovers(), [])
})

worldTest('an upstream of HTTP/2 that takes no extended CONNECT: 502, and nothing is sent', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ protocol: 'h2c' })] })
  const host = rig.upstream()
  const first = rig.client().send('GET / HTTP/1.1\r\nHost: example.org\r\n\r\n')
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('a first request', 1, true)
  upstream.sendHead(1, [':status', '204'], true)
  wantHead(first, 'its answer')
  const client = rig.client().send(upgrade)
  const answer = wantHead(client, 'refused')
  deepEqual([answer.line, answer.field('heddle-reason')], ['HTTP/1.1 502 Bad Gateway', 'tunnel_unsupported'])
  upstream.wantIdle('nothing was sent')
  deepEqual(rig.leftovers(), [])
})

worldTest('on a new connection the tunnel waits for what the upstream allows', few, async (world) => {
  for (const [allows, line] of [
    [1, 'HTTP/1.1 101 Switching Protocols'],
    [0, 'HTTP/1.1 502 Bad Gateway'],
  ] as const) {
    const rig = await Rig.make(world, {
      listener: { host: `gateway${allows}` },
      clusters: [clusterConfig({ protocol: 'h2c', endpoints: [{ host: `10.0.0.${allows}`, port: 8080 }] })],
    })
    const host = rig.upstream(`10.0.0.${allows}`)
    const client = rig.client().send(upgrade)
    world.run()
    const upstream = host.http2Peer(0, allows === 1 ? [[Setting.EnableConnectProtocol, 1]] : [])
    if (allows === 1) {
      upstream.wantHead('extended CONNECT', 1, false)
      upstream.sendHead(1, [':status', '200'], false)
    }
    equal(wantHead(client, 'the answer').line, line)
    client.reset()
    world.run()
    deepEqual(rig.leftovers(), [])
  }
})

worldTest('HTTP/2 to HTTP/2: a tunnel that the upstream resets is reset here', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ protocol: 'h2c' })], routes: allowed })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('GET'), true)
  world.run()
  const upstream = host.http2Peer(0, [[Setting.EnableConnectProtocol, 1]])
  upstream.wantHead('a first request', 1, true)
  upstream.sendHead(1, [':status', '204'], true)
  client.wantHead('its answer', 1, true)
  client.sendHead(3, extended, false).sendContent(3, 'too early', false)
  upstream.wantHead('extended CONNECT', 3, false)
  upstream.wantIdle('what the client says before the tunnel is open waits')
  upstream.sendHead(3, [':status', '200'], false)
  client.wantHead('the tunnel opens', 3, false)
  equal(upstream.wantContent('what had to wait', 3, 9, false).toString(), 'too early')
  upstream.send({ type: 'RST_STREAM', streamId: 3, code: Code.Cancel })
  client.wantReset('cut', 3, Code.ConnectError)
  deepEqual(rig.leftovers(), [])
})
