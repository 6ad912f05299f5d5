import { deepEqual, equal } from 'node:assert/strict'
import { worldTest } from 'heddle/testing'
import { pick, request } from './http2-peer.ts'
import { get, message, ok, wantHead } from './messages.ts'
import { Rig, routeConfig } from './rig.ts'

const few = { seeds: 5 }
const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13']

/** Failures of the first endpoint. */
function failures(rig: Rig): number | undefined {
  return rig.cluster.stats().endpoints[0]?.failures
}

worldTest('RFC 9110 §7.8: an upstream may ignore an Upgrade, and is not to blame for it', few, async (world) => {
  const rig = await Rig.make(world, { routes: [routeConfig({ extendedConnect: true })] })
  const upstream = rig.upstream()
  const client = rig.client().send(get('/', ...upgrade))
  world.run()
  wantHead(upstream.peer(), 'the upgrade')
  upstream.peer().send(ok())
  equal(wantHead(client, 'the answer').line, 'HTTP/1.1 200 OK')
  client.want('its content', 'hello')
  equal(rig.record().reason, '')
  // To a client of HTTP/2 a 2xx is a tunnel, so it cannot be given this one.
  const other = rig.http2Client()
  other.sendHead(1, [...request('CONNECT'), ':protocol', 'websocket'], false)
  world.run()
  wantHead(upstream.peer(1), 'the upgrade')
  upstream.peer(1).send(ok())
  deepEqual(pick(other.wantHead('refused', 1, false), ':status', 'heddle-reason'), { ':status': '502', 'heddle-reason': 'upgrade_refused' })
  other.wantFrame('its text', { type: 'DATA', streamId: 1, end: true })
  world.advance(1_000)
  equal(rig.record().reason, 'upgrade_refused')
  equal(failures(rig), 0)
  deepEqual(rig.leftovers(), [])
})

worldTest('an endpoint is to blame for the time only once it had the whole request', few, async (world) => {
  const rig = await Rig.make(world, { routes: [routeConfig({ timeout: 500 })] })
  rig.upstream()
  const begun = message(['POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'], '1\r\na\r\n')
  const cases = [
    [begun, 0],
    [`${begun}0\r\n\r\n`, 1],
    [get('/', ...upgrade), 2],
  ] as const
  for (const [begins, blamed] of cases) {
    const client = rig.client().send(begins)
    world.advance(600)
    equal(wantHead(client, 'the end').field('heddle-reason'), 'route_timeout')
    equal(failures(rig), blamed)
    client.end()
    world.advance(10)
  }
})

worldTest('who the client is does not stand in trailers', few, async (world) => {
  const rig = await Rig.make(world, { listener: { trust: ['0.0.0.0/0', '::/0'] } })
  const upstream = rig.upstream()
  const head = message(['POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'])
  const lies = 'X-Real-IP: 1.1.1.1\r\nX-Forwarded-Port: 1\r\nX_Forwarded_For: 1.1.1.1\r\nForwarded: for=1.1.1.1\r\n'
  const cases = [
    ['X-Sum: 1\r\n', /0\r\nx-sum: 1\r\n\r\n$/],
    ['', /0\r\n\r\n$/],
  ] as const
  for (const [honest, sent] of cases) {
    for (const held of [true, false]) {
      const client = rig.client().send(`${head}1\r\na\r\n`)
      if (!held) world.advance(10)
      client.send(`0\r\n${lies}${honest}\r\n`)
      world.advance(10)
      const peer = upstream.peer(upstream.peers.length - 1)
      wantHead(peer, 'the request')
      peer.want('its content and honest trailers', '1\r\na\r\n')
      peer.want('its honest trailers only', sent)
      peer.send(ok())
      wantHead(client, 'the answer')
      client.end()
      world.advance(10)
    }
  }
  deepEqual(rig.leftovers(), [])
})
