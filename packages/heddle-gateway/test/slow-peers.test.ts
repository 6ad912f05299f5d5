import { deepEqual, equal, ok as truthy } from 'node:assert/strict'
import { worldTest, type World } from 'heddle/testing'
import { Code, pick, request, Setting, type QuietPeer } from './http2-peer.ts'
import { get, message, wantHead } from './messages.ts'
import type { ClusterConfig } from '../src/config/types.ts'
import { clusterConfig, Rig, routeConfig, type Upstream } from './rig.ts'

const few = { seeds: 3 }
const narrow = { capacity: 8_192 }
const versions = ['h1', 'h2'] as const
type Version = (typeof versions)[number]
const content = 'x'.repeat(200_000)
const other = { upgrades: ['other'] }
const shut = [[Setting.InitialWindowSize, 0]] as const

function cluster(version: Version, sendTimeout: number): ClusterConfig[] {
  return [clusterConfig({ protocol: version === 'h1' ? 'h1' : 'h2c', sendTimeout })]
}

interface Uploading {
  /** More than the windows on the way hold. */
  more(): void
  /** What the client was told: the status, and the gateway's reason. */
  answer(): readonly (string | undefined)[]
  /** It has given up waiting. */
  leave(): void
}

/** A client that has begun a request. */
function upload(rig: Rig, version: Version): Uploading {
  if (version === 'h1') {
    const client = rig.client().send(message(['POST / HTTP/1.1', 'Host: a', `Content-Length: ${content.length}`]))
    return {
      more: () => void client.send(content),
      answer() {
        const { line, field } = wantHead(client, 'an answer')
        return [line.split(' ')[1], field('heddle-reason')]
      },
      leave: () => void client.reset(),
    }
  }
  const client = rig.http2Client()
  client.sendHead(1, request('POST'), false)
  return {
    more() {
      // As much as it may: one that stops before keeps the gateway waiting.
      for (let sent = 0; sent < 1_000_000; sent += 10_000) client.sendContent(1, content.slice(0, 10_000), false)
    },
    answer() {
      const head = pick(client.wantHead('an answer', 1, false), ':status', 'heddle-reason')
      return [head[':status'], head['heddle-reason']]
    },
    leave: () => void client.send({ type: 'RST_STREAM', streamId: 1, code: Code.Cancel }),
  }
}

/** An upstream that takes no content. */
function takesNothing(world: World, host: Upstream, version: Version): void {
  world.run()
  if (version === 'h1') host.sockets[0]?.pause()
  else host.http2Peer(0, shut).wantHead('the request', 1, false)
}

for (const from of versions) {
  for (const to of versions) {
    worldTest(`${from} to ${to}: an upstream that takes no content for sendTimeout is told off, and only it`, few, async (world) => {
      const rig = await Rig.make(world, { clusters: cluster(to, 5_000), listener: { limits: { bodyTimeout: 2_000 } as never } })
      const host = rig.upstream('10.0.0.1', 8080, narrow)
      const client = upload(rig, from)
      takesNothing(world, host, to)
      client.more()
      // Longer than the listener waits for content: it is not the client that keeps anybody waiting.
      world.advance(4_500)
      equal(rig.proxy.active, 1)
      world.advance(5_000)
      deepEqual(client.answer(), ['504', 'send_timeout'])
      equal(rig.cluster.stats().endpoints[0]?.failures, 1)
      client.leave()
      world.advance(1_000)
      equal(rig.record().reason, 'send_timeout')
      deepEqual(rig.leftovers(), [])
    })

    worldTest(`${from} to ${to}: a client that sends no more content is given up after bodyTimeout`, few, async (world) => {
      const rig = await Rig.make(world, { clusters: cluster(to, 60_000), listener: { limits: { bodyTimeout: 5_000 } as never } })
      const host = rig.upstream()
      if (from === 'h1') rig.client().send(message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: 10'], 'half'))
      else
        rig
          .http2Client()
          .sendHead(1, request('POST', '/', 'content-length', '10'), false)
          .sendContent(1, 'half', false)
      world.run()
      const upstream = to === 'h1' ? undefined : host.http2Peer()
      world.advance(10_000)
      if (upstream === undefined) truthy(host.peer().closedBy !== 'no', 'it never looks complete')
      else {
        upstream.wantHead('the request', 1, false)
        upstream.wantContent('what came', 1, 4, false)
        upstream.wantReset('given up', 1, Code.Cancel)
      }
      const { reason, status } = rig.record()
      deepEqual([reason, status], ['client_timeout', 408])
      equal(rig.cluster.stats().endpoints[0]?.failures, 0)
      deepEqual(rig.leftovers(), [])
    })

    worldTest(
      `${from} to ${to}: a client that takes nothing is given up after sendTimeout, and its upstream with it`,
      few,
      async (world) => {
        const rig = await Rig.make(world, {
          clusters: cluster(to, 60_000),
          clientLink: narrow,
          listener: { limits: { sendTimeout: 5_000 } as never },
        })
        const host = rig.upstream()
        if (from === 'h1') {
          rig.client().send(get('/big'))
          rig.clientSockets[0]?.pause()
        } else rig.http2Client(shut).sendHead(1, request('GET', '/big'), true)
        world.run()
        if (to === 'h1') host.peer().send(message(['HTTP/1.1 200 OK', `Content-Length: ${content.length}`], content))
        else {
          const upstream = host.http2Peer()
          upstream.wantHead('the request', 1, true)
          upstream.sendHead(1, [':status', '200'], false)
          // As much as the window lets through.
          for (let sent = 0; sent < 130_000; sent += 10_000) upstream.sendContent(1, content.slice(0, 10_000), false)
        }
        world.advance(4_000)
        equal(rig.proxy.active, 1)
        world.advance(6_000)
        equal(rig.record().reason, 'client_timeout')
        equal(rig.cluster.stats().endpoints[0]?.failures, 0)
        deepEqual(rig.leftovers(), [])
      },
    )
  }
}

worldTest('a client connection has no more streams of a shared upstream connection than its listener gives it', few, async (world) => {
  const rig = await Rig.make(world, {
    clusters: [clusterConfig({ protocol: 'h2c', maxConnectionsPerEndpoint: 1 })],
    routes: [routeConfig()],
    listener: { http2: { maxConcurrentStreams: 2 } as never },
  })
  const host = rig.upstream()
  const greedy = rig.http2Client()
  equal(greedy.settings.get(Setting.MaxConcurrentStreams), 2)
  for (const streamId of [1, 3, 5, 7]) greedy.sendHead(streamId, request('GET', `/${streamId}`), true)
  world.run()
  const upstream = host.http2Peer(0, [[Setting.MaxConcurrentStreams, 3]])
  upstream.wantHead('one', 1, true)
  upstream.wantHead('another', 3, true)
  upstream.wantIdle('no more of this client')
  greedy.wantReset('over its share', 5, Code.RefusedStream)
  greedy.wantReset('over its share', 7, Code.RefusedStream)
  const modest = rig.http2Client()
  modest.sendHead(1, request('GET', '/modest'), true)
  deepEqual(pick(upstream.wantHead('there is a stream left', 5, true), ':path'), { ':path': '/modest' })
})

worldTest(
  'an endpoint has no more HTTP/1.1 connections for tunnels than maxTunnelsPerEndpoint, beside those for requests',
  few,
  async (world) => {
    const rig = await Rig.make(world, {
      clusters: [clusterConfig({ maxTunnelsPerEndpoint: 1, maxConnectionsPerEndpoint: 1, headTimeout: 5_000 })],
      listener: other,
    })
    const host = rig.upstream()
    const upgrade = get('/', 'Connection: Upgrade', 'Upgrade: other')
    const first = rig.client().send(upgrade)
    world.run()
    wantHead(host.peer(), 'the first')
    host.peer().send(message(['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: other']))
    wantHead(first, 'it is open')
    const second = rig.client().send(upgrade)
    const third = rig.client().send(upgrade)
    world.advance(1_000)
    rig.client().send(get('/beside'))
    world.run()
    deepEqual([wantHead(host.peer(1), 'a request').line, host.peers.length, rig.waiting], ['GET /beside HTTP/1.1', 2, 2])
    first.reset()
    world.advance(100)
    wantHead(host.peer(2), 'the second')
    host.peer(2).send(message(['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: other']))
    wantHead(second, 'it is open')
    world.advance(5_000)
    equal(wantHead(third, 'it waited too long').field('heddle-reason'), 'queue_timeout')
  },
)

worldTest('an upstream connection that gives no answers is left for another one', few, async (world) => {
  const rig = await Rig.make(world, {
    clusters: [
      clusterConfig({
        protocol: 'h2c',
        http2: { maxFailuresInRow: 3 } as never,
        ejection: { consecutiveFailures: 0, baseTime: 1, maxTime: 1, maxShare: 0 },
      }),
    ],
  })
  const host = rig.upstream()
  const client = rig.http2Client()
  let first: QuietPeer | undefined
  for (const streamId of [1, 3, 5]) {
    client.sendHead(streamId, request('GET'), true)
    world.run()
    first ??= host.http2Peer()
    first.wantHead('a request', streamId, true)
    first.send({ type: 'RST_STREAM', streamId, code: Code.InternalError })
    equal(pick(client.wantHead('no answer', streamId, false), 'heddle-reason')['heddle-reason'], 'upstream_reset')
    client.wantFrame('its text', { type: 'DATA', streamId, end: true })
  }
  client.sendHead(7, request('GET'), true)
  world.run()
  const second = host.http2Peer(1)
  second.wantHead('the next', 1, true)
  second.sendHead(1, [':status', '204'], true)
  client.wantHead('an answer', 7, true)
})
