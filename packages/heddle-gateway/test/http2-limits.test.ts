import { deepEqual, equal, ok as truthy } from 'node:assert/strict'
import { worldTest } from 'heddle/testing'
import { Code, headers, pick, request, Setting } from './http2-peer.ts'
import { clusterConfig, listenerConfig, matchConfig, Rig, routeConfig } from './rig.ts'

const few = { seeds: 3 }
const h2c = [clusterConfig({ protocol: 'h2c' })]
const { http2: clusterHttp2 } = clusterConfig()

worldTest('credit goes to the upstream only for what the client has taken', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.http2Client([[Setting.InitialWindowSize, 0]])
  client.sendHead(1, request('GET'), true)
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('the request', 1, true)
  upstream.sendHead(1, [':status', '200'], false)
  const window = upstream.settings.get(Setting.InitialWindowSize) ?? 0
  equal(window, 131_072)
  const piece = Buffer.alloc(16_384, 'x')
  for (let sent = 0; sent < window; sent += piece.length) upstream.sendContent(1, piece, false)
  upstream.attend()
  equal(upstream.credit.get(1), undefined, 'a client that takes nothing gives nothing')
  client.wantHead('the head', 1, false)
  client.wantIdle('no window, no content')
  // The client takes a quarter, then three more: the upstream gets credit for what was taken, half a window at a time.
  client.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: window / 4 })
  client.send({ type: 'WINDOW_UPDATE', streamId: 0, increment: window })
  client.wantContent('a quarter', 1, window / 4, false)
  upstream.attend()
  equal(upstream.credit.get(1), undefined)
  client.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: window / 2 })
  client.wantContent('half', 1, window / 2, false)
  upstream.attend()
  const credit = upstream.credit.get(1) ?? 0
  truthy(credit >= window / 2, `${credit}`)
  client.send({ type: 'RST_STREAM', streamId: 1, code: Code.Cancel })
  upstream.wantReset('cancelled', 1, Code.Cancel)
  deepEqual(rig.leftovers(), [])
})

for (const protocol of ['h2c', 'h1'] as const) {
  worldTest(`credit goes to the client only for what an upstream of ${protocol} has taken`, few, async (world) => {
    const rig = await Rig.make(world, { clusters: [clusterConfig({ protocol })] })
    const host = rig.upstream('10.0.0.1', 8080, { capacity: 16_384 })
    const client = rig.http2Client()
    client.sendHead(1, request('POST'), false)
    world.run()
    if (protocol === 'h1') host.sockets[0]?.pause()
    else host.http2Peer(0, [[Setting.InitialWindowSize, 0]])
    const window = client.settings.get(Setting.InitialWindowSize) ?? 0
    const piece = Buffer.alloc(16_384, 'x')
    for (let sent = 0; sent < window; sent += piece.length) client.sendContent(1, piece, false)
    client.attend()
    equal(client.credit.get(1), undefined, 'an upstream that takes nothing gives nothing')
    client.send({ type: 'RST_STREAM', streamId: 1, code: Code.Cancel })
    world.run()
    deepEqual(rig.leftovers(), [])
  })
}

worldTest('a response that nobody reads stops no other response from the same upstream connection', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ protocol: 'h2c', http2: { ...clusterHttp2, streamWindow: 1_048_576 } })] })
  const host = rig.upstream()
  const slow = rig.http2Client([[Setting.InitialWindowSize, 0]])
  for (let i = 0; i < 6; i++) slow.sendHead(2 * i + 1, request('GET', '/slow'), true)
  world.run()
  const upstream = host.http2Peer()
  const piece = Buffer.alloc(16_384, 'x')
  for (let i = 0; i < 6; i++) {
    upstream.wantHead('a slow one', 2 * i + 1, true)
    upstream.sendHead(2 * i + 1, [':status', '200'], false)
  }
  upstream.attend()
  let room = 65_535 + (upstream.credit.get(0) ?? 0)
  for (let i = 0; i < 6; i++) {
    for (let sent = 0; sent < 1_048_576 && room >= piece.length; sent += piece.length, room -= piece.length)
      upstream.sendContent(2 * i + 1, piece, false)
  }
  const fast = rig.http2Client()
  fast.sendHead(1, request('GET', '/fast'), true)
  upstream.wantHead('a fast one', 13, true)
  upstream.sendHead(13, [':status', '200'], false)
  upstream.attend()
  truthy(65_535 + (upstream.credit.get(0) ?? 0) > 4_194_304, "the connection's window was widened for it")
  upstream.sendContent(13, 'quick', true)
  fast.wantHead('the head', 1, false)
  equal(fast.wantContent('its content', 1, 5, true).toString(), 'quick')
})

worldTest(
  'a client that reads a hundred large responses slowly keeps its connection, and little waits for it',
  { seeds: 1 },
  async (world) => {
    const rig = await Rig.make(world, { clusters: h2c })
    const host = rig.upstream()
    // A fast client first, for which the windows of the upstream connection grow.
    const fast = rig.http2Client([[Setting.InitialWindowSize, 1_000_000_000]])
    fast.send({ type: 'WINDOW_UPDATE', streamId: 0, increment: 1_000_000_000 })
    fast.sendHead(1, request('GET', '/fast'), true)
    world.run()
    const upstream = host.http2Peer(0, [[Setting.MaxConcurrentStreams, 1_000]])
    upstream.wantHead('the fast one', 1, true)
    upstream.sendHead(1, [':status', '200'], false)
    fast.wantHead('its head', 1, false)
    const piece = Buffer.alloc(16_384, 'x')
    const initial = upstream.settings.get(Setting.InitialWindowSize) ?? 0
    const sent = new Map([[1, 0]])
    let total = 0
    const room = (streamId: number): number =>
      Math.min(initial + (upstream.credit.get(streamId) ?? 0) - (sent.get(streamId) ?? 0), 65_535 + (upstream.credit.get(0) ?? 0) - total)
    const sendSome = (streamId: number): number => {
      const size = Math.min(room(streamId), piece.length)
      if (size <= 0) return 0
      upstream.sendContent(streamId, piece.subarray(0, size), false)
      sent.set(streamId, (sent.get(streamId) ?? 0) + size)
      total += size
      return size
    }
    for (let i = 0; i < 40; i++) {
      let burst = 0
      for (let size = sendSome(1); size > 0; size = sendSome(1)) burst += size
      upstream.attend()
      fast.wantContent('it takes all', 1, burst, false)
      upstream.attend()
    }
    truthy(room(1) > 2 * initial, `the window of one response grew: ${room(1)}`)

    // It takes something of each response, whose window could grow then, and nothing more.
    const taken = initial / 2
    const slow = rig.http2Client([[Setting.InitialWindowSize, taken]])
    slow.send({ type: 'WINDOW_UPDATE', streamId: 0, increment: 1_000_000_000 })
    const streamIds = Array.from({ length: 100 }, (_, i) => 2 * i + 1)
    for (const streamId of streamIds) slow.sendHead(streamId, request('GET', '/large'), true)
    for (const streamId of streamIds) {
      upstream.wantHead('a large one', streamId + 2, true)
      upstream.sendHead(streamId + 2, [':status', '200'], false)
      slow.wantHead('its head', streamId, false)
    }
    // So much that the windows of all of them are full.
    const before = total
    const got = new Map<number, number>()
    for (let moved = 1; moved > 0;) {
      moved = 0
      for (const streamId of streamIds) {
        const size = sendSome(streamId + 2)
        moved += size
        const already = got.get(streamId) ?? 0
        const more = Math.min(size, taken - already)
        if (more > 0) slow.wantContent('it takes some', streamId, more, false)
        got.set(streamId, already + more)
      }
      upstream.attend()
    }
    slow.wantIdle('it is slow, and may be')
    const held = total - before - 100 * taken
    truthy(held >= 100 * initial, `the windows are full: ${held}`)
    truthy(held < 100 * initial + 4_194_304, `and grew by little: ${held}`)
    for (const streamId of streamIds) {
      slow.send({ type: 'WINDOW_UPDATE', streamId, increment: 1_000_000_000 })
      slow.wantContent('all of it', streamId, (sent.get(streamId + 2) ?? 0) - taken, false)
      upstream.sendContent(streamId + 2, 'end', true)
      slow.wantContent('and its end', streamId, 3, true)
    }
    upstream.sendContent(1, 'end', true)
    fast.wantContent('the end', 1, 3, true)
    deepEqual(rig.leftovers(), [])
  },
)

worldTest(
  "an upstream's limit of streams: another connection is made, and when no more may be, requests wait in order",
  few,
  async (world) => {
    const rig = await Rig.make(world, { clusters: [clusterConfig({ protocol: 'h2c', maxConnectionsPerEndpoint: 2 })] })
    const host = rig.upstream()
    const client = rig.http2Client()
    client.sendHead(1, request('GET', '/1'), true)
    world.run()
    const first = host.http2Peer(0, [[Setting.MaxConcurrentStreams, 1]])
    first.wantHead('the first', 1, true)
    for (const streamId of [3, 5, 7]) client.sendHead(streamId, request('GET', `/${streamId}`), true)
    world.run()
    const second = host.http2Peer(1, [[Setting.MaxConcurrentStreams, 1]])
    // A new connection takes what the RFC lets it before it knows better; what is too much is refused and comes again.
    while (!second.isQuiet) {
      const frame = second.want('requests', ({ type }) => type === 'HEADERS')
      if (frame.type === 'HEADERS' && frame.streamId > 1)
        second.send({ type: 'RST_STREAM', streamId: frame.streamId, code: Code.RefusedStream })
    }
    equal(host.peers.length, 2)
    const { waiting, active, connections, http2 } = rig.cluster.stats()
    deepEqual([waiting, active, connections, http2.streams], [2, 4, 2, 2])
    equal(rig.waiting, 2)
    first.sendHead(1, [':status', '200'], true)
    client.wantHead('the first answer', 1, true)
    first.wantHead('who waited longest', 3, true)
    equal(rig.waiting, 1)
    // One that waits can leave at once.
    client.send({ type: 'RST_STREAM', streamId: 7, code: Code.Cancel })
    world.run()
    equal(rig.waiting, 0)
    first.sendHead(3, [':status', '200'], true)
    client.wantHead('its answer', 5, true)
    second.sendHead(1, [':status', '200'], true)
    client.wantHead('and the last', 3, true)
    deepEqual(rig.leftovers(), [])
  },
)

worldTest(
  "a route's limit of requests at once: more are told 503, a gRPC client UNAVAILABLE; other routes have their own",
  few,
  async (world) => {
    const rig = await Rig.make(world, {
      clusters: h2c,
      routes: [
        routeConfig({ name: 'small', match: matchConfig({ pathPrefix: '/small' }), maxConcurrentStreams: 2 }),
        routeConfig({ name: 'rest' }),
      ],
    })
    const host = rig.upstream()
    const client = rig.http2Client()
    for (const streamId of [1, 3]) client.sendHead(streamId, request('GET', '/small'), true)
    world.run()
    const upstream = host.http2Peer()
    for (const streamId of [1, 3]) upstream.wantHead('two of them', streamId, true)
    client.sendHead(5, request('GET', '/small'), true)
    deepEqual(pick(client.wantHead('one too many', 5, false), ':status', 'heddle-reason'), {
      ':status': '503',
      'heddle-reason': 'route_full',
    })
    client.wantContent('its text', 5, 36, true)
    client.sendHead(7, request('POST', '/small', 'content-type', 'application/grpc'), true)
    deepEqual(pick(client.wantHead('in words of gRPC', 7, true), 'grpc-status', 'heddle-reason'), {
      'grpc-status': '14',
      'heddle-reason': 'route_full',
    })
    client.sendHead(9, request('GET', '/other'), true)
    upstream.wantHead('another route', 5, true)
    upstream.sendHead(1, [':status', '200'], true)
    client.wantHead('one is done', 1, true)
    client.sendHead(11, request('GET', '/small'), true)
    upstream.wantHead('and there is room for the next', 7, true)
    client.peer.reset()
    world.run()
    deepEqual(rig.leftovers(), [])
  },
)

worldTest("a client's streams above the listener's limit are refused, unprocessed", few, async (world) => {
  const { http2 } = listenerConfig()
  const rig = await Rig.make(world, { clusters: h2c, listener: { http2: { ...http2, maxConcurrentStreams: 2 } } })
  rig.upstream()
  const client = rig.http2Client()
  equal(client.settings.get(Setting.MaxConcurrentStreams), 2)
  for (const streamId of [1, 3, 5]) client.sendHead(streamId, request('GET'), true)
  client.wantReset('one too many', 5, Code.RefusedStream)
  equal(rig.started, 2)
})

worldTest("a route's time limits take the place of its cluster's, shorter and longer", few, async (world) => {
  const rig = await Rig.make(world, {
    clusters: [clusterConfig({ protocol: 'h2c', headTimeout: 1_000, bodyTimeout: 1_000 })],
    routes: [
      routeConfig({ name: 'hasty', match: matchConfig({ pathPrefix: '/hasty' }), headTimeout: 300, bodyTimeout: 300 }),
      routeConfig({ name: 'patient', match: matchConfig({ pathPrefix: '/patient' }), headTimeout: Infinity, bodyTimeout: Infinity }),
      routeConfig({ name: 'usual' }),
    ],
  })
  const host = rig.upstream()
  const client = rig.http2Client()
  for (const [streamId, path] of [
    [1, '/hasty'],
    [3, '/usual'],
    [5, '/patient'],
  ] as const) {
    client.sendHead(streamId, request('GET', path), true)
  }
  world.run()
  const upstream = host.http2Peer()
  for (const streamId of [1, 3, 5]) upstream.wantHead('a request', streamId, true)
  world.advance(350)
  equal(pick(client.wantHead('the hasty one', 1, false), ':status')[':status'], '504')
  client.wantContent('its text', 1, 34, true)
  upstream.wantReset('cancelled', 1, Code.Cancel)
  client.wantIdle('the others wait')
  world.advance(700)
  equal(pick(client.wantHead('the usual one', 3, false), ':status')[':status'], '504')
  client.wantContent('its text', 3, 34, true)
  upstream.wantReset('cancelled', 3, Code.Cancel)
  for (let seconds = 0; seconds < 100; seconds += 5) {
    world.advance(5_000)
    upstream.attend()
    client.wantIdle('the patient one waits as long as it takes')
  }
  upstream.sendHead(5, [':status', '200'], false)
  client.wantHead('its answer', 5, false)
  deepEqual(
    rig.records.splice(0).map(({ route, reason }) => [route, reason]),
    [
      ['hasty', 'head_timeout'],
      ['usual', 'head_timeout'],
    ],
  )
  for (const [streamId, path] of [
    [7, '/hasty'],
    [9, '/usual'],
  ] as const) {
    client.sendHead(streamId, request('GET', path), true)
    upstream.wantHead('a request', streamId, true)
    upstream.sendHead(streamId, [':status', '200'], false).sendContent(streamId, 'begin', false)
    client.wantHead('the head', streamId, false)
    client.wantContent('its beginning', streamId, 5, false)
  }
  world.advance(250)
  upstream.sendContent(7, 'more', false)
  client.wantContent('time begins anew', 7, 4, false)
  world.advance(250)
  client.wantIdle('it is not up')
  world.advance(100)
  client.wantReset('the hasty one', 7, Code.InternalError)
  upstream.wantReset('cancelled', 7, Code.Cancel)
  world.advance(500)
  client.wantReset('the usual one', 9, Code.InternalError)
  upstream.wantReset('cancelled', 9, Code.Cancel)
  upstream.sendContent(5, 'late', true)
  equal(client.wantContent('the patient one', 5, 4, true).toString(), 'late')
  deepEqual(
    rig.records.map(({ route, reason }) => [route, reason]),
    [
      ['hasty', 'body_timeout'],
      ['usual', 'body_timeout'],
      ['patient', ''],
    ],
  )
  deepEqual(rig.leftovers(), [])
})

worldTest("a client that is slow to take a response is not its upstream's fault, whatever the route's limit", few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c, routes: [routeConfig({ bodyTimeout: 300 })] })
  const host = rig.upstream()
  const client = rig.http2Client([[Setting.InitialWindowSize, 2]])
  client.sendHead(1, request('GET'), true)
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('the request', 1, true)
  upstream.sendHead(1, [':status', '200'], false).sendContent(1, 'hello', false)
  client.wantHead('the head', 1, false)
  client.wantContent('what there is room for', 1, 2, false)
  world.advance(5_000)
  client.wantIdle('it may take its time')
  client.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 1_000 })
  client.wantContent('the rest', 1, 3, false)
  world.advance(700)
  client.wantReset('now the upstream is late', 1, Code.InternalError)
  equal(rig.record().reason, 'body_timeout')
})

worldTest('what many requests of one turn send upstream leaves in one write, and so do the answers', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream(undefined, undefined, { delay: 1 })
  const client = rig.http2Client()
  client.sendHead(1, request('GET'), true)
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('a first one', 1, true)
  upstream.sendHead(1, [':status', '204'], true)
  client.wantHead('its answer', 1, true)
  const before = [rig.cluster.stats().http2, rig.server.stats().http2] as const
  const streamIds = Array.from({ length: 50 }, (_, i) => 2 * i + 3)
  client.batch(streamIds.map((streamId) => headers(streamId, request('GET', `/${streamId}`), true)))
  for (const streamId of streamIds) upstream.wantHead('a request', streamId, true)
  const sent = rig.cluster.stats().http2
  deepEqual([sent.frames - before[0].frames, sent.writes - before[0].writes], [50, 1])
  upstream.batch(streamIds.map((streamId) => headers(streamId, [':status', '204'], true)))
  for (const streamId of streamIds) client.wantHead('an answer', streamId, true)
  const answered = rig.server.stats().http2
  deepEqual([answered.frames - before[1].frames, answered.writes - before[1].writes], [50, 1])
})

worldTest("a route's window takes the place of the connections', on both sides", few, async (world) => {
  const rig = await Rig.make(world, {
    clusters: h2c,
    routes: [
      routeConfig({ name: 'narrow', match: matchConfig({ pathPrefix: '/narrow' }), streamWindow: 32_768 }),
      routeConfig({ streamWindow: 4_194_304 }),
    ],
  })
  const host = rig.upstream()
  const client = rig.http2Client([[Setting.InitialWindowSize, 1_000_000_000]])
  client.send({ type: 'WINDOW_UPDATE', streamId: 0, increment: 1_000_000_000 })
  client.sendHead(1, request('POST', '/wide'), false)
  world.run()
  const upstream = host.http2Peer(0, [[Setting.InitialWindowSize, 1_000_000_000]])
  upstream.send({ type: 'WINDOW_UPDATE', streamId: 0, increment: 1_000_000_000 })
  upstream.wantHead('a request', 1, false)
  client.attend()
  upstream.attend()
  deepEqual([client.credit.get(1), upstream.credit.get(1)], [3_145_728, 4_194_304 - 131_072])

  client.sendHead(3, request('POST', '/narrow'), false)
  upstream.wantHead('a request', 3, false)
  upstream.sendHead(3, [':status', '200'], false)
  client.wantHead('the head', 3, false)
  const piece = Buffer.alloc(16_384)
  // The first window was given before anybody knew the route. Of it, the difference is not given again.
  for (let i = 0; i < 64; i++) {
    client.sendContent(3, piece, false)
    upstream.wantContent('up', 3, 16_384, false)
    upstream.sendContent(3, piece, false)
    client.wantContent('down', 3, 16_384, false)
  }
  client.attend()
  upstream.attend()
  deepEqual([client.credit.get(3), upstream.credit.get(3)], [32_768, 1_048_576 - 131_072 + 32_768])
})

for (const kind of ['uploads', 'tunnels'] as const) {
  worldTest(`${kind} that the upstream leaves unread do not cost the others their connection to it`, { seeds: 1 }, async (world) => {
    const rig = await Rig.make(world, { clusters: h2c, routes: [routeConfig({ extendedConnect: true })] })
    const host = rig.upstream()
    const good = rig.http2Client()
    good.sendHead(1, request('POST'), false)
    world.run()
    const upstream = host.http2Peer(0, [
      [Setting.InitialWindowSize, 0],
      [Setting.EnableConnectProtocol, 1],
    ])
    upstream.wantHead('the good request', 1, false)
    const piece = Buffer.alloc(16_384)
    const tunnel = [
      ':method',
      'CONNECT',
      ':protocol',
      'websocket',
      ':scheme',
      'http',
      ':authority',
      'gateway',
      ':path',
      '/',
      'sec-websocket-version',
      '13',
    ]
    let streamId = 1
    // 24 MiB, as much as the clients' windows let through.
    for (let i = 0; i < 6; i++) {
      const client = rig.http2Client()
      for (let id = 1; id < 9; id += 2) {
        client.sendHead(id, kind === 'tunnels' ? tunnel : request('POST'), false)
        upstream.wantHead('another', (streamId += 2), false)
        if (kind === 'tunnels') {
          upstream.sendHead(streamId, [':status', '200'], false)
          client.wantHead('the tunnel is open', id, false)
        }
        for (let sent = 0; sent < 1_048_576; sent += piece.length) client.sendContent(id, piece, false)
        world.run()
      }
    }
    good.sendContent(1, 'good', true)
    world.run()
    upstream.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 100 })
    upstream.wantContent('what others wait for', 1, 4, true)
    upstream.sendHead(1, [':status', '204'], true)
    good.wantHead('the answer', 1, true)
  })
}
