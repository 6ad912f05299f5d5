import { deepEqual, equal, match, ok as truthy } from 'node:assert/strict'
import { worldTest, type World } from 'heddle/testing'
import { Code, pick, request, Setting, type QuietPeer } from './http2-peer.ts'
import { message, ok, wantHead } from './messages.ts'
import { clusterConfig, Rig, routeConfig, websocketAccept, type RigOptions } from './rig.ts'
import { frame, Opcode, readFrames } from './websocket-frames.ts'

const few = { seeds: 3 }
const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const asked = ['GET /chat HTTP/1.1', 'Host: example.org', 'Connection: Upgrade', `Sec-WebSocket-Key: ${key}`, 'Sec-WebSocket-Version: 13']
const upgrade = message([...asked, 'Upgrade: websocket'])
const extended = [...request('CONNECT', '/chat'), ':protocol', 'websocket', 'sec-websocket-version', '13']
const allowed = [routeConfig({ extendedConnect: true })]
const h2c = [clusterConfig({ protocol: 'h2c' })]

function switching(accept: string, ...more: string[]): string {
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Connection: Upgrade',
    'Upgrade: websocket',
    `Sec-WebSocket-Accept: ${accept}`,
    ...more,
  ]
  return message(lines)
}

/** A gateway with an upstream of HTTP/2 that offers extended CONNECT, and one request of it done. */
async function overHttp2(world: World, options: RigOptions = {}): Promise<{ rig: Rig; upstream: QuietPeer }> {
  const rig = await Rig.make(world, { clusters: h2c, routes: allowed, ...options })
  const host = rig.upstream()
  const first = rig.client().send('GET / HTTP/1.1\r\nHost: example.org\r\n\r\n')
  world.run()
  const upstream = host.http2Peer(0, [[Setting.EnableConnectProtocol, 1]])
  upstream.wantHead('a first request', 1, true)
  upstream.sendHead(1, [':status', '204'], true)
  wantHead(first, 'its answer')
  rig.record()
  return { rig, upstream }
}

worldTest('junk behind an Upgrade: the tunnel’s if it opens, a bad request if not, and no memory in between', few, async (world) => {
  for (const opens of [true, false]) {
    const rig = await Rig.make(world)
    const host = rig.upstream()
    const junk = '\0\x01 junk \r\n\r\n'.repeat(40_000)
    const client = rig.client().send(upgrade + junk)
    world.advance(1_000)
    const upstream = host.peer()
    const head = wantHead(upstream, 'the upgrade')
    upstream.wantIdle('and nothing else')
    truthy((rig.clientSockets[0]?.writableLength ?? 0) > 300_000, 'who says it keeps it')
    if (opens) {
      upstream.send(switching(websocketAccept(head.field('sec-websocket-key') ?? '')))
      wantHead(client, 'it is open')
      world.advance(1_000)
      equal(upstream.want('all of it', new RegExp(`^[^]{${junk.length}}`)).toString('latin1'), junk)
      client.reset()
    } else {
      upstream.send(message(['HTTP/1.1 403 Forbidden', 'Content-Length: 0']))
      equal(wantHead(client, 'refused').line, 'HTTP/1.1 403 Forbidden')
      equal(wantHead(client, 'and not understood').line, 'HTTP/1.1 400 Bad Request')
      upstream.wantClose('not a word of it', 'end')
    }
    world.advance(2_000)
    deepEqual(rig.leftovers(), [])
    await close(world, rig)
    host.stop()
  }
})

async function close(world: World, rig: Rig): Promise<void> {
  const closed = rig.server.close({ deadline: 0 })
  world.advance(10)
  await world.complete(closed)
}

worldTest('two Upgrades in a row: the second is a request only if the first was refused', few, async (world) => {
  for (const opens of [true, false]) {
    const rig = await Rig.make(world)
    const host = rig.upstream()
    const client = rig.client().send(upgrade + upgrade)
    world.run()
    const head = wantHead(host.peer(), 'the first')
    if (opens) {
      host.peer().send(switching(websocketAccept(head.field('sec-websocket-key') ?? '')))
      wantHead(client, 'it is open')
      host.peer().want('bytes like any others', upgrade)
      equal(host.peers.length, 1)
      client.reset()
    } else {
      host.peer().send(message(['HTTP/1.1 429 Too Many Requests', 'Content-Length: 0']))
      wantHead(client, 'refused')
      world.run()
      const second = wantHead(host.peer(1), 'the second')
      host.peer(1).send(switching(websocketAccept(second.field('sec-websocket-key') ?? '')))
      equal(wantHead(client, 'it is open').line, 'HTTP/1.1 101 Switching Protocols')
      equal(rig.proxy.tunnels.open.size, 1)
      client.reset()
    }
    world.advance(100)
    deepEqual(rig.leftovers(), [])
    await close(world, rig)
    host.stop()
  }
})

worldTest('what only looks like an Upgrade is an ordinary request, or none', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const ordinary = {
    'with content': message([...asked, 'Upgrade: websocket', 'Content-Length: 5'], 'hello'),
    'with chunked content': message([...asked, 'Upgrade: websocket', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n'),
    'of another method': message(['POST / HTTP/1.1', ...asked.slice(1), 'Upgrade: websocket', 'Content-Length: 0']),
    'of HTTP/1.0': message(['GET / HTTP/1.0', ...asked.slice(1), 'Upgrade: websocket']),
    'that Connection does not name': message(['GET / HTTP/1.1', 'Host: a', 'Upgrade: websocket']),
    'to something else': message([...asked, 'Upgrade: TLS/1.0, h2c', 'HTTP2-Settings: AAMAAABk']),
  }
  for (const [why, sent] of Object.entries(ordinary)) {
    const client = rig.client().send(sent)
    world.run()
    const upstream = host.peer(host.peers.length - 1)
    const head = wantHead(upstream, why)
    for (const name of ['upgrade', 'http2-settings']) equal(head.field(name), undefined, why)
    if (why.startsWith('with')) upstream.want('its content', /(?:5\r\n)?hello(?:\r\n0\r\n\r\n)?/)
    // Nobody asked for it.
    upstream.send(switching(websocketAccept(key)))
    match(wantHead(client, 'an answer').line, /^HTTP\/1\.[01] 502/)
    client.end()
    world.advance(20)
    equal(rig.record().reason, 'upstream_protocol_error', why)
  }
  const connections = host.peers.length
  const refused = [
    message(['GET / HTTP/1.1', 'Host: a', 'Connection: upgrade', 'Upgrade: websocket']),
    message([...asked, `Sec-WebSocket-Key: ${key}`, 'Upgrade: websocket']),
    message(['GET / HTTP/1.1', 'Host: a', 'Connection: upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: short']),
  ]
  for (const sent of refused) equal(wantHead(rig.client().send(sent), 'a handshake that is none').line, 'HTTP/1.1 400 Bad Request')
  equal(host.peers.length, connections)
  world.advance(1_000)
  deepEqual(rig.leftovers(), [])
})

worldTest('a client that leaves before its tunnel is open takes the upstream’s request with it', few, async (world) => {
  for (const leave of ['end', 'reset'] as const) {
    const rig = await Rig.make(world)
    const host = rig.upstream()
    const client = rig.client().send(`${upgrade}more`)
    world.run()
    wantHead(host.peer(), 'the upgrade')
    client[leave]()
    world.advance(100)
    truthy(host.peer().closedBy !== 'no')
    equal(rig.record().reason, 'client_closed')
    deepEqual(rig.leftovers(), [])
    await close(world, rig)
    host.stop()
  }
})

worldTest(
  'an upstream that switches wrongly: 502, nothing passes, and the endpoint is not to blame for what clients ask',
  few,
  async (world) => {
    const rig = await Rig.make(world, { routes: allowed })
    const host = rig.upstream()
    const wrong: Record<string, (accept: string) => string> = {
      'another key': () => switching(websocketAccept('AAAAAAAAAAAAAAAAAAAAAA==')),
      'no key': () => message(['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket']),
      'two keys': (accept) => switching(accept, `Sec-WebSocket-Accept: ${accept}`),
      'another protocol': (accept) =>
        message(['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: other', `Sec-WebSocket-Accept: ${accept}`]),
      'no Connection': (accept) => message(['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', `Sec-WebSocket-Accept: ${accept}`]),
    }
    for (const [why, answer] of Object.entries(wrong)) {
      const client = rig.client().send(upgrade)
      world.run()
      const upstream = host.peer(host.peers.length - 1)
      const head = wantHead(upstream, 'the upgrade')
      upstream.send(`${answer(websocketAccept(head.field('sec-websocket-key') ?? ''))}secret`)
      const response = wantHead(client, why)
      deepEqual([response.line, response.field('heddle-reason')], ['HTTP/1.1 502 Bad Gateway', 'upgrade_refused'], why)
      client.end()
      world.advance(20)
      truthy(!client.received.includes('secret'), why)
      equal(rig.record().reason, 'upgrade_refused', why)
    }
    equal(rig.cluster.stats().endpoints[0]?.failures, 0)
    deepEqual(rig.leftovers(), [])
  },
)

worldTest('an upstream of HTTP/2 that says what belongs to HTTP/1.1, or ends the tunnel with its head', few, async (world) => {
  const { rig, upstream } = await overHttp2(world)
  const client = rig.client().send(upgrade)
  upstream.wantHead('extended CONNECT', 3, false)
  upstream.sendHead(3, [':status', '200', 'sec-websocket-accept', 'forged', 'content-length', '0'], true)
  const response = wantHead(client, 'the tunnel opens')
  deepEqual(
    [response.line, response.field('sec-websocket-accept'), response.field('content-length')],
    ['HTTP/1.1 101 Switching Protocols', websocketAccept(key), undefined],
  )
  world.advance(10)
  equal(client.closedBy, 'end', 'the upstream has nothing to say')
  client.send('but the client has')
  upstream.wantContent('so it passes', 3, 18, false)
  client.end()
  upstream.wantFrame('its end', { type: 'DATA', streamId: 3, end: true })
  world.advance(10)
  deepEqual([rig.record().reason, rig.leftovers()], ['', []])

  const other = rig.client().send(upgrade)
  upstream.wantHead('extended CONNECT', 5, false)
  upstream.sendHead(5, [':status', '101'], false)
  equal(wantHead(other, 'RFC 9113 §8.6: there is no 101').line, 'HTTP/1.1 502 Bad Gateway')
  upstream.wantReset('told so', 5, Code.ProtocolError)
  other.end()
  world.advance(10)
  deepEqual(rig.leftovers(), [])
})

for (const to of ['h1', 'h2'] as const) {
  worldTest(
    `a tunnel that an upstream of ${to} refuses, of a client that goes on talking and does not end its stream`,
    few,
    async (world) => {
      const { rig, upstream } =
        to === 'h2' ? await overHttp2(world) : { rig: await Rig.make(world, { routes: allowed }), upstream: undefined }
      const host = to === 'h2' ? undefined : rig.upstream()
      const client = rig.http2Client()
      client.sendHead(1, extended, false)
      for (let i = 0; i < 6; i++) client.sendContent(1, 'x'.repeat(16_384), false)
      if (upstream !== undefined) {
        upstream.wantHead('extended CONNECT', 3, false)
        upstream.sendHead(3, [':status', '403', 'x-why', 'no'], false).sendContent(3, 'no entry', true)
      } else {
        world.run()
        wantHead(host!.peer(), 'the upgrade')
        host!.peer().send(message(['HTTP/1.1 403 Forbidden', 'X-Why: no', 'Content-Length: 8'], 'no entry'))
      }
      deepEqual(pick(client.wantHead('refused', 1, false), ':status', 'x-why'), { ':status': '403', 'x-why': 'no' })
      equal(client.wantContent('its content', 1, 8, true).toString(), 'no entry')
      client.sendContent(1, 'y'.repeat(10_000), false)
      world.advance(2_000)
      upstream?.wantFrame('nothing will be said', { type: 'DATA', streamId: 3, end: true })
      const { reason, status, tunnel } = rig.record()
      deepEqual([reason, status, tunnel], ['', 403, false])
      deepEqual(rig.leftovers(), [])
    },
  )
}

worldTest('what a client of HTTP/2 says before its tunnel is open is bounded by its window, and waits', few, async (world) => {
  const rig = await Rig.make(world, {
    routes: [routeConfig({ extendedConnect: true, streamWindow: 65_536 })],
    listener: { http2: { streamWindow: 65_536 } as never },
  })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, extended, false)
  for (let i = 0; i < 4; i++) client.sendContent(1, 'x'.repeat(16_384), false)
  client.attend()
  equal(client.credit.get(1), undefined, 'no credit for what waits')
  const head = wantHead(host.peer(), 'the upgrade')
  host.peer().wantIdle('and nothing more')
  client.sendContent(1, 'one too many', false)
  client.wantReset('over its window', 1, Code.FlowControlError)
  world.advance(10)
  truthy(head.line.startsWith('GET /chat') && host.peer().closedBy !== 'no')
  equal(rig.record().reason, 'client_error')
  deepEqual(rig.leftovers(), [])
})

worldTest('extended CONNECT that is malformed, or ended with its head', few, async (world) => {
  const rig = await Rig.make(world, { routes: allowed })
  const host = rig.upstream()
  const client = rig.http2Client()
  const malformed = [
    [':method', 'CONNECT', ':protocol', 'websocket', ':authority', 'example.org'],
    [':method', 'CONNECT', ':protocol', 'websocket', ':scheme', 'http', ':path', 'chat', ':authority', 'example.org'],
    [':method', 'GET', ':protocol', 'websocket', ':scheme', 'http', ':path', '/', ':authority', 'example.org'],
    [':method', 'CONNECT', ':protocol', 'web socket', ':scheme', 'http', ':path', '/', ':authority', 'example.org'],
    [':method', 'CONNECT', ':protocol', 'websocket\r\nx: y', ':scheme', 'http', ':path', '/', ':authority', 'example.org'],
  ]
  malformed.forEach((lines, i) => {
    client.sendHead(2 * i + 1, lines, false)
    client.wantReset(lines.join(' '), 2 * i + 1, Code.ProtocolError)
  })
  equal(host.peers.length, 0)
  client.sendHead(21, [...request('CONNECT'), ':protocol', 'connect-udp'], false)
  equal(pick(client.wantHead('another protocol', 21, true), ':status')[':status'], '501')
  // It has nothing to say, and may listen.
  client.sendHead(23, extended, true)
  world.run()
  const head = wantHead(host.peer(), 'the upgrade')
  host.peer().send(`${switching(websocketAccept(head.field('sec-websocket-key') ?? ''))}news`)
  equal(pick(client.wantHead('open', 23, false), ':status')[':status'], '200')
  client.wantContent('news', 23, 4, false)
  equal(host.peer().closedBy, 'end')
  host.peer().end()
  client.wantFrame('the end', { type: 'DATA', streamId: 23, end: true })
  world.advance(1_000)
  deepEqual(rig.leftovers(), [])
})

worldTest('a client of HTTP/2 cannot have more tunnels than streams, and its other requests go on beside them', few, async (world) => {
  const { rig, upstream } = await overHttp2(world, { listener: { http2: { maxConcurrentStreams: 3 } as never } })
  const client = rig.http2Client()
  for (const streamId of [1, 3]) client.sendHead(streamId, extended, false)
  for (const streamId of [3, 5]) {
    upstream.wantHead('a tunnel', streamId, false)
    upstream.sendHead(streamId, [':status', '200'], false)
  }
  for (const streamId of [1, 3]) client.wantHead('open', streamId, false)
  client.sendHead(5, request('GET', '/beside'), true)
  upstream.wantHead('a request', 7, true)
  upstream.sendHead(7, [':status', '204'], true)
  client.wantHead('its answer', 5, true)
  client.sendHead(7, extended, false).sendHead(9, extended, false)
  upstream.wantHead('a third tunnel', 9, false)
  client.wantReset('one too many', 9, Code.RefusedStream)
  equal(rig.proxy.tunnels.open.size, 2)
  client.peer.reset()
  for (const streamId of [3, 5, 9]) upstream.want('cut', (frame) => frame.type === 'RST_STREAM' && frame.streamId === streamId)
  world.advance(100)
  deepEqual(rig.leftovers(), [])
})

worldTest('an ordinary answer to an Upgrade that breaks off never looks complete', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.client().send(upgrade)
  world.run()
  wantHead(host.peer(), 'the upgrade')
  host.peer().send(message(['HTTP/1.1 200 OK', 'Content-Length: 100'], 'half'))
  equal(wantHead(client, 'the answer').line, 'HTTP/1.1 200 OK')
  client.want('what there is', 'half')
  host.peer().end()
  world.advance(20)
  equal(client.closedBy, 'reset')
  equal(rig.record().reason, 'upstream_truncated')
  const next = rig.client().send(upgrade)
  world.run()
  wantHead(host.peer(1), 'the upgrade')
  host.peer(1).send(ok('a') + ok('unasked'))
  wantHead(next, 'the answer')
  next.want('of which there is one', 'a')
  next.wantIdle('and no other')
  world.advance(1_000)
  deepEqual(rig.leftovers(), [])
})

worldTest('what a client said before its tunnel was open comes before the Close of a gateway that drains', few, async (world) => {
  const rig = await Rig.make(world, { routes: allowed })
  const host = rig.upstream()
  const early = frame('early', Buffer.from('mask'))
  const client = rig.http2Client().sendHead(1, extended, false).sendContent(1, early, false)
  world.run()
  const head = wantHead(host.peer(), 'the upgrade')
  rig.proxy.tunnels.end(0)
  host.peer().send(switching(websocketAccept(head.field('sec-websocket-key') ?? '')))
  world.run()
  const { frames, rest } = readFrames(host.peer().received)
  deepEqual(
    frames.map(({ opcode, masked, payload }) => [opcode, masked, payload.toString('latin1')]),
    [
      [Opcode.Binary, true, 'early'],
      [Opcode.Close, true, '\x03\xe9'],
    ],
  )
  equal(rest.length, 0)
  client.peer.reset()
  host.peer().reset()
  world.advance(100)
  deepEqual(rig.leftovers(), [])
})
