import { deepEqual, equal } from 'node:assert/strict'
import { worldTest, type World } from 'heddle/testing'
import { get, message, ok, post, wantHead } from './messages.ts'
import { clusterConfig, Rig, routeConfig, type Upstream } from './rig.ts'

const few = { seeds: 5 }
const two = clusterConfig({
  endpoints: [
    { host: '10.0.0.1', port: 8080 },
    { host: '10.0.0.2', port: 8080 },
  ],
})

/** Lets `path` be answered so that a kept-alive connection is there. */
function warm(world: World, rig: Rig, upstream: Upstream): void {
  const client = rig.client().send(get('/warm'))
  world.run()
  wantHead(upstream.peer(), 'the first request')
  upstream.peer().send(ok())
  wantHead(client, 'its response')
  client.end()
  world.advance(10)
  rig.records.length = 0
}

worldTest('a request whose endpoint cannot be reached goes to another, content included', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [two] })
  rig.upstream('10.0.0.1').stop()
  const alive = rig.upstream('10.0.0.2')
  // Enough requests for both endpoints to be drawn first.
  for (let i = 0; i < 24; i++) {
    const client = rig.client().send(post(`content ${i}`))
    world.advance(20)
    wantHead(alive.peer(), 'the request')
    alive.peer().want('its content', `content ${i}`)
    alive.peer().send(ok())
    equal(wantHead(client, 'its response').line, 'HTTP/1.1 200 OK')
    client.end()
    world.advance(10)
  }
  const retried = rig.records.filter(({ attempts }) => attempts === 2)
  equal(retried.length > 0, true)
  equal(
    rig.records.every(({ endpoint }) => endpoint === '10.0.0.2:8080'),
    true,
  )
  deepEqual(rig.leftovers(), [])
})

worldTest('no more attempts than the route allows', few, async (world) => {
  const five = [1, 2, 3, 4, 5].map((last) => ({ host: `10.0.0.${last}`, port: 8080 }))
  const rig = await Rig.make(world, { clusters: [clusterConfig({ endpoints: five })], routes: [routeConfig({ retry: { attempts: 2 } })] })
  for (const { host } of five) rig.upstream(host).stop()
  const client = rig.client().send(get())
  equal(wantHead(client, 'the end of patience').field('heddle-reason'), 'connect_failed')
  equal(rig.record().attempts, 3)
  deepEqual(
    rig.cluster.stats().endpoints.map(({ requests }) => requests <= 1),
    [true, true, true, true, true],
    'each at most once',
  )
})

worldTest('attempts 0: the first failure is the answer', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [two], routes: [routeConfig({ retry: { attempts: 0 } })] })
  rig.upstream('10.0.0.1').stop()
  rig.upstream('10.0.0.2').stop()
  const client = rig.client().send(get())
  equal(wantHead(client, 'refused').field('heddle-reason'), 'connect_failed')
  equal(rig.record().attempts, 1)
})

worldTest('a kept-alive connection that dies under an idempotent request: it is sent again', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  for (const request of [get('/again'), message(['PUT /again HTTP/1.1', 'Host: a', 'Content-Length: 7'], 'content')]) {
    const index = upstream.peers.length - 1
    if (index < 0) warm(world, rig, upstream)
    const old = upstream.peer(Math.max(index, 0))
    const client = rig.client().send(request)
    world.run()
    wantHead(old, 'the first try')
    old.end()
    world.advance(50)
    const fresh = upstream.peer(upstream.peers.length - 1)
    wantHead(fresh, 'the second try')
    if (request.startsWith('PUT')) fresh.want('its content', 'content')
    fresh.send(ok())
    equal(wantHead(client, 'the response').line, 'HTTP/1.1 200 OK')
    equal(rig.record().attempts, 2)
    equal(rig.cluster.stats().endpoints[0]?.failures, 0, 'the endpoint is not to blame')
    client.end()
    world.advance(10)
  }
  deepEqual(rig.leftovers(), [])
})

worldTest('a kept-alive connection that dies under an unsafe request: it is not sent again', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  warm(world, rig, upstream)
  const client = rig.client().send(post('transfer 1,000,000'))
  world.run()
  wantHead(upstream.peer(), 'the request')
  upstream.peer().end()
  world.advance(50)
  equal(wantHead(client, 'the answer').line, 'HTTP/1.1 502 Bad Gateway')
  equal(upstream.peers.length, 1)
  equal(rig.record().attempts, 1)
})

worldTest('a connection that dies after a byte of the response, or was new: not sent again', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const fresh = rig.client().send(get('/fresh'))
  world.run()
  upstream.peer().end()
  equal(wantHead(fresh, 'new').line, 'HTTP/1.1 502 Bad Gateway')
  equal(upstream.peers.length, 1)
  const second = rig.client().send(get('/warm'))
  world.advance(10)
  upstream.peer(1).send(ok())
  wantHead(second, 'its response')
  second.end()
  world.advance(10)
  const client = rig.client().send(get('/hints'))
  world.run()
  upstream
    .peer(1)
    .send(message(['HTTP/1.1 103 Early Hints']))
    .end()
  equal(wantHead(client, 'hints').line, 'HTTP/1.1 103 Early Hints')
  equal(wantHead(client, 'the end').line, 'HTTP/1.1 502 Bad Gateway')
  equal(upstream.peers.length, 2)
  deepEqual(rig.leftovers(), [])
})

worldTest('content that is too much to keep is not sent again', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  warm(world, rig, upstream)
  const client = rig.client().send(message(['PUT / HTTP/1.1', 'Host: a', 'Content-Length: 200000'], 'x'.repeat(150_000)))
  world.advance(100)
  wantHead(upstream.peer(), 'the request')
  upstream.peer().end()
  world.advance(100)
  client.send('x'.repeat(50_000))
  equal(wantHead(client, 'the answer').line, 'HTTP/1.1 502 Bad Gateway')
  equal(upstream.peers.length, 1)
  world.advance(5_000)
  deepEqual(rig.leftovers(), [])
})

worldTest('a connection that was closed before the request could be written: any request moves on', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  warm(world, rig, upstream)
  upstream.peer().end()
  world.advance(10)
  const client = rig.client().send(post('content'))
  world.advance(20)
  const fresh = upstream.peer(1)
  wantHead(fresh, 'on a new connection')
  fresh.want('its content', 'content')
  fresh.send(ok())
  equal(wantHead(client, 'the response').line, 'HTTP/1.1 200 OK')
})
