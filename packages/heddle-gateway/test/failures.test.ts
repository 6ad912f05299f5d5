import { deepEqual, equal, match, notEqual } from 'node:assert/strict'
import { worldTest, type ScriptedPeer, type World } from 'heddle/testing'
import { get, message, ok, post, wantHead } from './messages.ts'
import { clusterConfig, Rig, routeConfig } from './rig.ts'

const few = { seeds: 3 }

/** The gateway answers `client` with `status` and `reason`, and the client's connection stays good. */
function wantRefusal(client: ScriptedPeer, rig: Rig, status: string, reason: string): void {
  const answer = wantHead(client, reason)
  equal(answer.line, `HTTP/1.1 ${status}`)
  equal(answer.field('heddle-reason'), reason)
  client.want('words for people', `${status}: ${reason}\n`)
  client.wantIdle('the connection stays')
  const record = rig.record()
  equal(record.reason, reason)
  equal(record.status, Number(status.slice(0, 3)))
  equal(record.timeToHead, -1)
  deepEqual(rig.leftovers(), [])
}

worldTest('nobody listens: 502 connect_failed, and all is well once somebody does', few, async (world) => {
  const rig = await Rig.make(world)
  rig.upstream().stop()
  const client = rig.client().send(get())
  wantRefusal(client, rig, '502 Bad Gateway', 'connect_failed')
  const upstream = rig.upstream()
  client.send(get())
  world.run()
  wantHead(upstream.peer(), 'the next request')
  upstream.peer().send(ok())
  equal(wantHead(client, 'its response').line, 'HTTP/1.1 200 OK')
})

worldTest('a HEAD is refused without content, and the connection stays in step', few, async (world) => {
  const rig = await Rig.make(world)
  rig.upstream().stop()
  const client = rig.client().send(message(['HEAD / HTTP/1.1', 'Host: a']))
  const answer = wantHead(client, 'the refusal')
  equal(answer.line, 'HTTP/1.1 502 Bad Gateway')
  equal(answer.field('content-length'), '32')
  client.wantIdle('no content')
})

worldTest('an endpoint that keeps failing is left alone, tried once, and used again', few, async (world) => {
  const endpoints = [1, 2].map((last) => ({ host: `10.0.0.${last}`, port: 8080 }))
  const ejection = { consecutiveFailures: 3, baseTime: 10_000, maxTime: 60_000, maxShare: 0.5 }
  const rig = await Rig.make(world, { clusters: [clusterConfig({ endpoints, ejection })] })
  const good = rig.upstream('10.0.0.1')
  rig.upstream('10.0.0.2').stop()
  const ask = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const client = rig.client().send(get())
      world.advance(20)
      for (const peer of [...good.peers, ...(back?.peers ?? [])]) {
        if (peer.received.length > 0) {
          wantHead(peer, 'a request')
          peer.send(ok())
        }
      }
      equal(wantHead(client, 'a response').line, 'HTTP/1.1 200 OK')
      client.end()
      world.advance(10)
    }
  }
  let back: ReturnType<Rig['upstream']> | undefined
  const sick = (): { failures: number; ejected: boolean; requests: number } | undefined => rig.cluster.stats().endpoints[1]
  ask(40)
  equal(sick()?.ejected, true)
  equal(sick()?.failures, 3, 'no more than it took')
  ask(40)
  equal(sick()?.failures, 3)
  world.advance(10_000)
  ask(40)
  equal(sick()?.failures, 4, 'one trial, which failed')
  back = rig.upstream('10.0.0.2')
  ask(40)
  equal(sick()?.ejected, true, 'the back-off has doubled')
  world.advance(20_000)
  ask(40)
  equal(sick()?.ejected, false)
  equal(sick()?.failures, 4)
  equal((sick()?.requests ?? 0) > 6, true)
  equal(
    rig.records.every(({ status }) => status === 200),
    true,
  )
})

worldTest("a finished request leaves nothing armed, however long its route's limit", few, async (world) => {
  const rig = await Rig.make(world, { routes: [routeConfig({ timeout: 3_600_000 })] })
  const upstream = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  wantHead(upstream.peer(), 'the request')
  upstream.peer().send(ok())
  wantHead(client, 'the response')
  await world.complete(Promise.all([rig.server.close(), rig.cluster.close()]))
  equal(world.armed, 0)
})

worldTest('a host that never answers SYN: 504 connect_timeout after connectTimeout', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ connectTimeout: 2_000 })] })
  world.network.blackHole('10.0.0.1', 8080)
  const client = rig.client().send(get())
  world.advance(1_900)
  client.wantIdle('not yet')
  world.advance(200)
  wantRefusal(client, rig, '504 Gateway Timeout', 'connect_timeout')
})

worldTest('TLS that fails: 502 tls_failed', few, async (world) => {
  const tls = { ca: undefined, cert: undefined, key: undefined, serverName: 'app.example' }
  const rig = await Rig.make(world, { clusters: [clusterConfig({ tls })] })
  rig.upstream()
  const client = rig.client().send(get())
  world.advance(100)
  wantRefusal(client, rig, '502 Bad Gateway', 'tls_failed')
})

worldTest('no head in headTimeout: 504 head_timeout, and the upstream connection is dropped', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ headTimeout: 3_000 })] })
  const upstream = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  wantHead(upstream.peer(), 'the request')
  world.advance(2_900)
  client.wantIdle('not yet')
  world.advance(200)
  wantRefusal(client, rig, '504 Gateway Timeout', 'head_timeout')
  world.advance(1_000)
  notEqual(upstream.peer().closedBy, 'no')
})

worldTest("the route's time is up before the head: 504 route_timeout", few, async (world) => {
  const rig = await Rig.make(world, { routes: [routeConfig({ timeout: 500 })] })
  const upstream = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  wantHead(upstream.peer(), 'the request')
  world.advance(600)
  wantRefusal(client, rig, '504 Gateway Timeout', 'route_timeout')
  world.advance(1_000)
  notEqual(upstream.peer().closedBy, 'no')
  equal(rig.cluster.stats().endpoints[0]?.failures, 1)
})

worldTest("the route's time is up in the middle of the response: both ends are cut", few, async (world) => {
  const rig = await Rig.make(world, { routes: [routeConfig({ timeout: 500 })] })
  const upstream = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  wantHead(upstream.peer(), 'the request')
  upstream.peer().send(message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n'))
  wantHead(client, 'the head')
  client.want('what came', '5\r\nhello\r\n')
  world.advance(600)
  notEqual(client.closedBy, 'no')
  equal(client.received.length, 0)
  world.advance(1_000)
  notEqual(upstream.peer().closedBy, 'no')
  const record = rig.record()
  equal(record.reason, 'route_timeout')
  equal(record.status, 200)
  deepEqual(rig.leftovers(), [])
})

worldTest(
  'a request waits for a connection no longer than for a head: 503 queue_timeout; more than maxWaiting: 503 queue_full',
  few,
  async (world) => {
    const cluster = clusterConfig({ maxConnectionsPerEndpoint: 1, maxWaiting: 2, headTimeout: 5_000 })
    const rig = await Rig.make(world, { clusters: [cluster], routes: [routeConfig({ retry: { attempts: 0 } })] })
    const upstream = rig.upstream()
    const served = rig.client().send(get('/served'))
    world.run()
    wantHead(upstream.peer(), 'the request')
    upstream.peer().send(message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n'))
    wantHead(served, 'a long response')
    const waiting = [rig.client().send(get('/1')), rig.client().send(get('/2'))]
    world.run()
    equal(rig.cluster.stats().waiting, 2)
    const tooMany = rig.client().send(get('/3'))
    equal(wantHead(tooMany, 'the queue is full').field('heddle-reason'), 'queue_full')
    world.advance(5_100)
    for (const client of waiting) equal(wantHead(client, 'the wait is over').field('heddle-reason'), 'queue_timeout')
    deepEqual(
      rig.records.map(({ reason, status }) => [reason, status]),
      [
        ['queue_full', 503],
        ['queue_timeout', 503],
        ['queue_timeout', 503],
      ],
    )
    equal(rig.cluster.stats().endpoints[0]?.failures, 0)
    upstream.peer().send('0\r\n\r\n')
    served.want('the end', '5\r\nhello\r\n0\r\n\r\n')
    deepEqual(rig.leftovers(), [])
  },
)

/** What upstreams say that is no response, and the reason the client is told. */
const broken: readonly (readonly [string, (peer: ScriptedPeer) => void, RegExp])[] = [
  ['closes without a word', (peer) => peer.end(), /^upstream_(closed|truncated)$/],
  ['resets', (peer) => peer.reset(), /^upstream_reset$/],
  ['closes inside the head', (peer) => peer.send('HTTP/1.1 200 OK\r\nContent-Le').end(), /^upstream_(closed|truncated)$/],
  ['speaks nonsense', (peer) => peer.send('SSH-2.0-OpenSSH_9.6\r\n\r\n'), /^upstream_protocol_error$/],
  [
    'answers 101 unasked',
    (peer) => peer.send(message(['HTTP/1.1 101 Switching Protocols', 'Connection: upgrade', 'Upgrade: x'])),
    /^upstream_protocol_error$/,
  ],
  [
    'gives two lengths',
    (peer) => peer.send(message(['HTTP/1.1 200 OK', 'Content-Length: 1', 'Content-Length: 2'], 'ab')),
    /^upstream_protocol_error$/,
  ],
  [
    'gives a length and chunks',
    (peer) => peer.send(message(['HTTP/1.1 200 OK', 'Content-Length: 5', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n')),
    /^upstream_protocol_error$/,
  ],
  [
    'puts a bare LF into a value',
    (peer) => peer.send(message(['HTTP/1.1 200 OK', 'X-A: 1\nX-B: 2', 'Content-Length: 0'])),
    /^upstream_protocol_error$/,
  ],
  [
    'puts NUL into a value',
    (peer) => peer.send(message(['HTTP/1.1 200 OK', 'X-A: 1\u0000', 'Content-Length: 0'])),
    /^upstream_protocol_error$/,
  ],
  [
    'sends 200 field lines',
    (peer) => peer.send(message(['HTTP/1.1 200 OK', ...Array.from({ length: 200 }, (_, i) => `X-${i}: 1`)])),
    /^upstream_protocol_error$/,
  ],
  ['floods with 1xx', (peer) => peer.send(message(['HTTP/1.1 103 Early Hints', 'Link: </a>']).repeat(10_000)), /^upstream_protocol_error$/],
]

for (const [what, act, reason] of broken) {
  worldTest(`an upstream that ${what}: 502, and its connection is not used again`, few, async (world) => {
    const rig = await Rig.make(world)
    const upstream = rig.upstream()
    const client = rig.client().send(post('content'))
    world.run()
    wantHead(upstream.peer(), 'the request')
    act(upstream.peer())
    const answer = wantFinalHead(client)
    equal(answer.line, 'HTTP/1.1 502 Bad Gateway')
    match(answer.field('heddle-reason') ?? '', reason)
    client.want('words for people', /502 Bad Gateway: \w+\n/)
    equal(rig.cluster.stats().endpoints[0]?.failures, 1)
    equal(rig.record().attempts, 1)
    client.send(get())
    world.advance(10)
    equal(upstream.peers.length, 2)
    wantHead(upstream.peer(1), 'the next request')
    upstream.peer(1).send(ok())
    equal(wantHead(client, 'its response').line, 'HTTP/1.1 200 OK')
    world.advance(1_000)
    // Who resets sees nothing of the other side any more.
    if (what !== 'resets') notEqual(upstream.peer(0).closedBy, 'no')
    deepEqual(rig.leftovers(), [])
  })
}

function wantFinalHead(client: ScriptedPeer): ReturnType<typeof wantHead> {
  for (;;) {
    const head = wantHead(client, 'a head')
    if (!head.line.startsWith('HTTP/1.1 1')) return head
  }
}

/** Responses that do not keep their promise. */
const truncated: readonly (readonly [string, string, (peer: ScriptedPeer) => void])[] = [
  ['ends before its content-length', message(['HTTP/1.1 200 OK', 'Content-Length: 10'], 'hello'), (peer) => peer.end()],
  ['is reset before its content-length', message(['HTTP/1.1 200 OK', 'Content-Length: 10'], 'hello'), (peer) => peer.reset()],
  ['ends between chunks', message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n'), (peer) => peer.end()],
  ['ends inside a chunk', message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], 'a\r\nhello'), (peer) => peer.end()],
  [
    'ends before its last empty line',
    message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n'),
    (peer) => peer.end(),
  ],
  ['has a broken chunk size', message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n'), (peer) => peer.send('x\r\n')],
  [
    'has a broken trailer',
    message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n'),
    (peer) => peer.send('0\r\nX Y: 1\r\n\r\n'),
  ],
]

for (const [what, start, finish] of truncated) {
  worldTest(`a response that ${what} never looks complete to the client`, few, async (world) => {
    const rig = await Rig.make(world)
    const upstream = rig.upstream()
    const client = rig.client().send(get())
    world.run()
    wantHead(upstream.peer(), 'the request')
    upstream.peer().send(start)
    const head = wantHead(client, 'the head')
    const chunked = head.field('transfer-encoding') === 'chunked'
    client.want('what came', chunked ? /[5a]\r\nhello(\r\n)?/ : 'hello')
    finish(upstream.peer())
    world.advance(5_000)
    equal(client.received.toString('latin1').includes('0\r\n\r\n'), false)
    notEqual(client.closedBy, 'no')
    const record = rig.record()
    equal(record.status, 200)
    match(record.reason, /^upstream_/)
    equal(rig.cluster.stats().endpoints[0]?.failures, 1)
    if (!what.startsWith('is reset')) notEqual(upstream.peer().closedBy, 'no')
    deepEqual(rig.leftovers(), [])
  })
}

worldTest('an upstream that goes silent in its content: the client is cut after bodyTimeout', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ bodyTimeout: 4_000 })] })
  const upstream = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  upstream.peer().send(message(['HTTP/1.1 200 OK', 'Content-Length: 10'], 'hello'))
  world.advance(3_500)
  equal(client.closedBy, 'no')
  world.advance(1_000)
  notEqual(client.closedBy, 'no')
  equal(rig.record().reason, 'body_timeout')
  deepEqual(rig.leftovers(), [])
})

worldTest('more content than promised, and responses nobody asked for, reach no client', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const first = rig.client().send(get('/1'))
  world.run()
  wantHead(upstream.peer(), 'the request')
  upstream.peer().send(ok('hello') + ok('STOLEN'))
  wantHead(first, 'the response')
  first.want('content', 'hello')
  first.wantIdle('no second response')
  const second = rig.client().send(get('/2'))
  world.advance(10)
  equal(upstream.peers.length, 2, 'a connection with unasked bytes is not used again')
  wantHead(upstream.peer(1), 'the second request')
  upstream.peer(1).send(ok('mine'))
  wantHead(second, 'its response')
  second.want('content', 'mine')
  // Unasked bytes on an idle connection: the same.
  upstream.peer(1).send(ok('STOLEN'))
  world.advance(10)
  const third = rig.client().send(get('/3'))
  world.advance(10)
  equal(upstream.peers.length, 3)
  upstream.peer(2).send(ok('mine too'))
  wantHead(third, 'its response')
  third.want('content', 'mine too')
  deepEqual(rig.leftovers(), [])
})

/** Heads that are malformed or ambiguous: the start of smuggling. */
const faultyHeads: readonly (readonly [string, string])[] = [
  ['a length and chunks', message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n')],
  ['two lengths', message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: 5', 'Content-Length: 6'], 'abcdef')],
  ['a length with a sign', message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: +5'], 'abcde')],
  ['chunked twice', message(['POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked, chunked'], '0\r\n\r\n')],
  ['chunked not last', message(['POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked, gzip'], '0\r\n\r\n')],
  ['space before the colon', message(['GET / HTTP/1.1', 'Host: a', 'X-A : 1'])],
  ['obs-fold', message(['GET / HTTP/1.1', 'Host: a', 'X-A: 1', ' 2'])],
  ['a bare CR', message(['GET / HTTP/1.1', 'Host: a', 'X-A: 1\rX-B: 2'])],
  ['NUL', message(['GET / HTTP/1.1', 'Host: a', 'X-A: \u0000'])],
  ['no Host', message(['GET / HTTP/1.1'])],
  ['two Hosts', message(['GET / HTTP/1.1', 'Host: a', 'Host: b'])],
  ['a Host that is none', message(['GET / HTTP/1.1', 'Host: a/b'])],
  ['a space in the target', message(['GET /a b HTTP/1.1', 'Host: a'])],
  ['HTTP/2.0', message(['GET / HTTP/2.0', 'Host: a'])],
  ['a method that is no token', message(['G(T / HTTP/1.1', 'Host: a'])],
]

for (const [what, head] of faultyHeads) {
  worldTest(`a head with ${what} is refused before a byte reaches the upstream`, few, async (world) => {
    const rig = await Rig.make(world, { clientLink: { splits: 'random' } })
    const upstream = rig.upstream()
    const client = rig.client().send(head + get('/smuggled'))
    const answer = wantHead(client, 'a refusal')
    match(answer.line, /^HTTP\/1\.1 (400|501|505) /)
    world.advance(5_000)
    equal(upstream.peers.length, 0)
    notEqual(client.closedBy, 'no')
    deepEqual(rig.records, [])
    deepEqual(rig.leftovers(), [])
  })
}

/** Content that breaks off or breaks the rules after a good start. */
const faultyContent: readonly (readonly [string, (client: ScriptedPeer) => void, string])[] = [
  ['a chunk size that is none', (client) => client.send('zz\r\n'), 'client_error'],
  ['a chunk without its CRLF', (client) => client.send('3\r\nabcX'), 'client_error'],
  ['a trailer that is malformed', (client) => client.send('0\r\nX Y: 1\r\n\r\n'), 'client_error'],
  ['too many chunk extensions', (client) => client.send(`1;${'x'.repeat(5_000)}\r\na\r\n`), 'client_error'],
  ['a reset', (client) => client.reset(), 'client_closed'],
  ['an early end', (client) => client.end(), ''],
]

for (const [what, finish, reason] of faultyContent) {
  worldTest(`content with ${what} never looks complete to the upstream, whose connection is not used again`, few, async (world) => {
    const rig = await Rig.make(world)
    const upstream = rig.upstream()
    const client = rig.client().send(message(['POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n'))
    world.run()
    wantHead(upstream.peer(), 'the request')
    upstream.peer().want('the good start', /5\r\nhello\r\n/)
    finish(client)
    world.advance(5_000)
    equal(upstream.peer().received.toString('latin1').includes('0\r\n'), false)
    notEqual(upstream.peer().closedBy, 'no')
    const record = rig.record()
    if (reason !== '') equal(record.reason, reason)
    else notEqual(record.reason, '')
    deepEqual(rig.leftovers(), [])
    const next = rig.client().send(get())
    world.advance(10)
    equal(upstream.peers.length, 2)
    upstream.peer(1).send(ok())
    wantHead(next, 'the next one is served')
  })
}

worldTest('a body that stops coming: the client gets 408 and the upstream is cut', few, async (world) => {
  const limits = { bodyTimeout: 2_000 } as never
  const rig = await Rig.make(world, { listener: { limits } })
  const upstream = rig.upstream()
  const client = rig.client().send(message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: 10'], 'hello'))
  world.advance(10)
  wantHead(upstream.peer(), 'the request')
  world.advance(3_000)
  equal(wantHead(client, 'the client is told').line, 'HTTP/1.1 408 Request Timeout')
  world.advance(5_000)
  notEqual(upstream.peer().closedBy, 'no')
  const record = rig.record()
  equal(record.reason, 'client_timeout')
  equal(record.status, 408)
  deepEqual(rig.leftovers(), [])
})

worldTest('content over the limit is refused with 413: a declared length before the upstream hears of it', few, async (world) => {
  const limits = { maxContentLength: 100 } as never
  const rig = await Rig.make(world, { listener: { limits } })
  const upstream = rig.upstream()
  const declared = rig.client().send(post('x'.repeat(101)))
  equal(wantHead(declared, 'declared').line, 'HTTP/1.1 413 Content Too Large')
  equal(upstream.peers.length, 0)
  const streamed = rig.client().send(message(['POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'], `32\r\n${'x'.repeat(50)}\r\n`))
  world.run()
  wantHead(upstream.peer(), 'the request')
  streamed.send(`64\r\n${'x'.repeat(100)}\r\n0\r\n\r\n`)
  equal(wantHead(streamed, 'streamed').line, 'HTTP/1.1 413 Content Too Large')
  world.advance(5_000)
  equal(upstream.peer().received.toString('latin1').includes('0\r\n\r\n'), false)
  notEqual(upstream.peer().closedBy, 'no')
  deepEqual(rig.leftovers(), [])
})

worldTest('the client goes away: the upstream is cancelled at once', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  wantHead(upstream.peer(), 'the request')
  client.reset()
  world.run()
  world.advance(100)
  notEqual(upstream.peer().closedBy, 'no')
  const record = rig.record()
  equal(record.reason, 'client_closed')
  equal(record.status, 0)
  equal(rig.cluster.stats().endpoints[0]?.failures, 0, "it was not the endpoint's fault")
  deepEqual(rig.leftovers(), [])
})

worldTest('the client goes away while its request waits for a connection: nothing is sent', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ maxConnectionsPerEndpoint: 1 })] })
  const upstream = rig.upstream()
  const first = rig.client().send(get('/first'))
  world.run()
  wantHead(upstream.peer(), 'the first request')
  const second = rig.client().send(get('/second'))
  world.run()
  second.reset()
  world.run()
  equal(rig.cluster.stats().waiting, 0)
  upstream.peer().send(ok())
  wantHead(first, 'the first response')
  world.advance(100)
  upstream.peer().wantIdle('nothing of the second')
  deepEqual(
    rig.records.map(({ path, reason }) => [path, reason]),
    [
      ['/second', 'client_closed'],
      ['/first', ''],
    ],
  )
  deepEqual(rig.leftovers(), [])
})

worldTest('an early answer goes to the client, and the rest of the request to nobody', few, async (world: World) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client().send(message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: 50000000'], 'x'.repeat(10_000)))
  world.run()
  wantHead(upstream.peer(), 'the request')
  upstream.peer().send(message(['HTTP/1.1 403 Forbidden', 'Content-Length: 2', 'Connection: close'], 'no'))
  equal(wantHead(client, 'the answer').line, 'HTTP/1.1 403 Forbidden')
  client.want('content', 'no')
  for (let i = 0; i < 20; i++) client.send('x'.repeat(100_000))
  world.advance(20_000)
  notEqual(client.closedBy, 'no')
  notEqual(upstream.peer().closedBy, 'no')
  equal(upstream.peer().received.length < 300_000, true)
  equal(rig.record().status, 403)
  deepEqual(rig.leftovers(), [])
})

worldTest('an early answer to a request whose rest is small: the client may go on with its connection', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client().send(message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: 20'], 'x'.repeat(10)))
  world.run()
  upstream.peer().send(ok('done'))
  wantHead(client, 'the answer')
  client.want('content', 'done')
  client.send('x'.repeat(10) + get('/next'))
  world.advance(100)
  const last = upstream.peer(upstream.peers.length - 1)
  if (upstream.peers.length === 1) wantHead(last, 'the first request')
  equal(wantHead(last, 'the next request').line, 'GET /next HTTP/1.1')
})
