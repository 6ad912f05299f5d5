import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { worldTest, type LinkOptions, type LinkSocket, type ScriptedPeer, type World } from 'heddle/testing'
import { get, message, ok, wantHead } from './messages.ts'
import { matchConfig, Rig, routeConfig, websocketAccept, type RigOptions, type Upstream } from './rig.ts'

const few = { seeds: 5 }
const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const upgrade = message([
  'GET /chat HTTP/1.1',
  'Host: example.org',
  'Connection: Upgrade',
  'Upgrade: websocket',
  `Sec-WebSocket-Key: ${key}`,
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Protocol: chat',
])

interface Tunnel {
  readonly rig: Rig
  readonly client: ScriptedPeer
  readonly upstream: ScriptedPeer
  readonly host: Upstream
}

async function open(world: World, options: RigOptions & { readonly upstreamLink?: LinkOptions } = {}): Promise<Tunnel> {
  const rig = await Rig.make(world, options)
  const host = rig.upstream('10.0.0.1', 8080, options.upstreamLink)
  const client = rig.client().send(upgrade)
  world.run()
  const upstream = host.peer()
  const request = wantHead(upstream, 'the upgrade')
  equal(request.line, 'GET /chat HTTP/1.1')
  equal(request.field('upgrade'), 'websocket')
  equal(request.field('sec-websocket-protocol'), 'chat')
  const accept = websocketAccept(request.field('sec-websocket-key') ?? '')
  upstream.send(
    message([
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      'Upgrade: websocket',
      `Sec-WebSocket-Accept: ${accept}`,
      'Sec-WebSocket-Protocol: chat',
    ]),
  )
  const response = wantHead(client, 'the tunnel opens')
  equal(response.line, 'HTTP/1.1 101 Switching Protocols')
  equal(response.field('upgrade'), 'websocket')
  equal(response.field('sec-websocket-accept'), websocketAccept(key))
  equal(response.field('sec-websocket-protocol'), 'chat')
  equal(rig.proxy.tunnels.open.size, 1)
  return { rig, client, upstream, host }
}

worldTest('an upgrade becomes a tunnel; bytes go both ways as they are', few, async (world) => {
  const { rig, client, upstream } = await open(world)
  client.send('HTTP? \r\n\r\n0\r\n\r\n')
  upstream.want('to the upstream', 'HTTP? \r\n\r\n0\r\n\r\n')
  upstream.send('back')
  client.want('to the client', 'back')
  client.end()
  world.advance(10)
  equal(upstream.closedBy, 'end')
  upstream.send('after your end')
  client.want('half-closed', 'after your end')
  upstream.end()
  world.advance(10)
  equal(client.closedBy, 'end')
  const record = rig.record()
  deepEqual([record.tunnel, record.status, record.method, record.reason], [true, 101, 'GET', ''])
  deepEqual([record.requestSize, record.responseSize], [15, 18])
  deepEqual(rig.leftovers(), [])
})

worldTest('what the client says before the tunnel is open waits for it', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.client().send(`${upgrade}too early`)
  world.run()
  const upstream = host.peer()
  const request = wantHead(upstream, 'the upgrade')
  upstream.wantIdle('nothing before the 101')
  const accept = websocketAccept(request.field('sec-websocket-key') ?? '')
  upstream.send(
    message(['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Accept: ${accept}`]) + 'hello',
  )
  wantHead(client, 'the tunnel opens')
  client.want('what the upstream said with its 101', 'hello')
  upstream.want('what had to wait', 'too early')
})

worldTest('a refused upgrade leaves HTTP/1.1 as it was: what follows is the next request, with a plan of its own', few, async (world) => {
  const rig = await Rig.make(world, {
    routes: [routeConfig({ match: matchConfig({ hosts: ['example.org'] }) })],
  })
  const host = rig.upstream()
  const client = rig.client().send(`${upgrade}GET / HTTP/1.1\r\nHost: smuggled.example\r\n\r\n`)
  world.run()
  const upstream = host.peer()
  wantHead(upstream, 'the upgrade')
  upstream.wantIdle('nothing more of this client')
  upstream.send(message(['HTTP/1.1 403 Forbidden', 'Content-Length: 0']))
  equal(wantHead(client, 'refused').line, 'HTTP/1.1 403 Forbidden')
  equal(wantHead(client, 'no route').line, 'HTTP/1.1 404 Not Found')
  upstream.wantClose('a connection for tunnels is for no other request', 'end')
  equal(rig.proxy.tunnels.open.size, 0)
  deepEqual(rig.leftovers(), [])
})

worldTest('an upstream that does not upgrade answers as to a GET', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.client().send(upgrade)
  world.run()
  wantHead(host.peer(), 'the upgrade')
  const wants = ['Connection: Upgrade', 'Upgrade: TLS/1.0, WebSocket', 'Sec-WebSocket-Version: 13']
  host.peer().send(message(['HTTP/1.1 426 Upgrade Required', 'Content-Length: 3', ...wants], 'no!'))
  const response = wantHead(client, 'the answer')
  equal(response.line, 'HTTP/1.1 426 Upgrade Required')
  // RFC 9110 §15.5.22; a client can have here what the listener tunnels.
  deepEqual(
    ['upgrade', 'connection', 'sec-websocket-version'].map((name) => response.field(name)),
    ['WebSocket', 'upgrade', '13'],
  )
  client.want('its content', 'no!')
  equal(rig.record().tunnel, false)
  deepEqual(rig.leftovers(), [])
})

worldTest(
  'a 2xx to an upgrade is no tunnel but the answer to a GET, whatever its framing; the next request follows',
  few,
  async (world) => {
    const answers = [
      [ok('a page'), 'content-length', '6', 'a page'],
      [
        message(['HTTP/1.1 203 Fine', 'Transfer-Encoding: chunked'], '6\r\na page\r\n0\r\n\r\n'),
        'transfer-encoding',
        'chunked',
        '6\r\na page\r\n0\r\n\r\n',
      ],
      [message(['HTTP/1.1 204 No Content']), 'content-length', undefined, ''],
    ] as const
    const rig = await Rig.make(world)
    const host = rig.upstream()
    const client = rig.client()
    for (const [answer, name, value, content] of answers) {
      client.send(upgrade)
      world.run()
      const upstream = host.peer(host.peers.length - 1)
      wantHead(upstream, 'the upgrade')
      upstream.send(answer)
      const response = wantHead(client, 'an answer')
      deepEqual([response.line.slice(0, 11), response.field(name), response.field('upgrade')], ['HTTP/1.1 20', value, undefined])
      if (content !== '') client.want('its content', content)
      const record = rig.record()
      deepEqual([record.tunnel, record.reason, record.responseSize], [false, '', content === '' ? 0 : 6])
      equal(rig.proxy.tunnels.open.size, 0)
    }
    client.send(get('/next'))
    world.run()
    wantHead(host.peer(host.peers.length - 1), 'the next request')
    deepEqual(rig.cluster.stats().endpoints[0]?.failures, 0)
  },
)

worldTest('a protocol the listener does not name is not upgraded', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.client()
  client.send(
    message([
      'GET / HTTP/1.1',
      'Host: a',
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA',
    ]),
  )
  world.run()
  const request = wantHead(host.peer(), 'an ordinary request')
  for (const name of ['upgrade', 'http2-settings']) equal(request.field(name), undefined, name)
  host.peer().send(ok())
  equal(wantHead(client, 'an ordinary response').line, 'HTTP/1.1 200 OK')
})

worldTest('what a client said before it left in peace still reaches a slow upstream', few, async (world) => {
  const { rig, client, upstream, host } = await open(world, { upstreamLink: { capacity: 1_024 } })
  upstream.end()
  world.advance(10)
  equal(client.closedBy, 'end')
  const socket = host.sockets[0] as LinkSocket
  socket.pause()
  client.send('x'.repeat(30_000)).end()
  world.advance(100)
  equal(rig.proxy.active, 0, 'the client has got and given all')
  socket.resume()
  world.advance(1_000)
  upstream.want('all of it', 'x'.repeat(30_000))
  upstream.wantClose('and its end', 'end')
  deepEqual(rig.leftovers(), [])
})

worldTest('a tunnel whose one end is lost is cut at the other', few, async (world) => {
  for (const lost of ['client', 'upstream'] as const) {
    const tunnel = await open(world, { listener: { host: `gateway`, port: 80 } })
    tunnel[lost].reset()
    world.advance(100)
    notEqual(tunnel[lost === 'client' ? 'upstream' : 'client'].closedBy, 'no')
    notEqual(tunnel.rig.record().reason, '')
    deepEqual(tunnel.rig.leftovers(), [])
    const closing = tunnel.rig.server.close()
    world.advance(1)
    tunnel.host.stop()
    await world.complete(closing)
  }
})

worldTest('a tunnel is cut when no byte moved for tunnelIdleTimeout, and only then', few, async (world) => {
  const { rig, client, upstream } = await open(world, { routes: [routeConfig({ timeout: 1_000, tunnelIdleTimeout: 10_000 })] })
  for (let i = 0; i < 5; i++) {
    world.advance(9_000)
    if (i % 2 === 0) client.send('x')
    else upstream.send('x')
    world.advance(10)
  }
  equal(client.closedBy, 'no')
  world.advance(9_000)
  equal(client.closedBy, 'no')
  world.advance(1_100)
  // Neither of the two knows what a Close is.
  world.advance(5_000)
  notEqual(client.closedBy, 'no')
  notEqual(upstream.closedBy, 'no')
  equal(rig.record().reason, 'tunnel_idle')
  deepEqual(rig.leftovers(), [])
})
