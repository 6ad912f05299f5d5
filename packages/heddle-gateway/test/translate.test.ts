import { deepEqual, equal, match } from 'node:assert/strict'
import { worldTest } from 'heddle/testing'
import { Code, pick, request } from './http2-peer.ts'
import { get, message, ok, wantHead } from './messages.ts'
import { clusterConfig, Rig, routeConfig } from './rig.ts'

const few = { seeds: 3 }
const h2c = [clusterConfig({ protocol: 'h2c' })]

worldTest('HTTP/2 to HTTP/1.1: the head in its words, cookie crumbs as one, and the answer back', few, async (world) => {
  const rig = await Rig.make(world, { listener: { forwarded: 'x-forwarded' } })
  const host = rig.upstream()
  const client = rig.http2Client()
  const fields = ['accept', '*/*', 'cookie', 'a=1', 'x-two', '1', 'cookie', 'b=2; c=3', 'x-two', '2', 'te', 'trailers']
  client.sendHead(1, request('GET', '/path?x=1', ...fields), true)
  world.run()
  const upstream = host.peer()
  const head = wantHead(upstream, 'the request')
  equal(head.line, 'GET /path?x=1 HTTP/1.1')
  deepEqual(
    ['host', 'accept', 'cookie', 'x-two', 'via', 'x-forwarded-host', 'x-forwarded-proto'].map((name) => head.field(name)),
    ['example.org', '*/*', 'a=1; b=2; c=3', '1, 2', '2 gw', 'example.org', 'http'],
  )
  equal(head.fields.filter(([name]) => name === 'cookie').length, 1)
  equal(head.fields.filter(([name]) => name === 'host').length, 1)
  upstream.wantIdle('a GET that ended with its head has no content')
  upstream.send(
    ok('hello', 'Connection: keep-alive, X-Hop', 'X-Hop: 1', 'Keep-Alive: timeout=5', 'Upgrade: h2c', 'Set-Cookie: a=1', 'Set-Cookie: b=2'),
  )
  const answer = client.wantHead('the answer', 1, false)
  deepEqual(
    answer.filter((_, i) => i % 2 === 0),
    [':status', 'content-length', 'set-cookie', 'set-cookie', 'via', 'date'],
  )
  deepEqual(pick(answer, ':status', 'via', 'content-length'), { ':status': '200', via: '1.1 gw', 'content-length': '5' })
  equal(client.wantContent('its content', 1, 5, true).toString(), 'hello')
  deepEqual([rig.record().upstreamProtocol, rig.leftovers()], ['h1', []])
})

worldTest('HTTP/2 to HTTP/1.1: content of unknown length is chunked, trailers go through both ways, 1xx too', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('POST', '/'), false).sendContent(1, 'hello ', false)
  world.run()
  const upstream = host.peer()
  const head = wantHead(upstream, 'the request')
  deepEqual([head.field('transfer-encoding'), head.field('content-length')], ['chunked', undefined])
  client.sendContent(1, 'world', false).sendHead(1, ['x-sum', '42'], true)
  upstream.want('content and trailers', /6\r\nhello \r\n5\r\nworld\r\n0\r\nx-sum: 42\r\n\r\n/i)
  upstream.send('HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n')
  deepEqual(client.wantHead('the hint', 1, false), [':status', '103', 'link', '</a.css>'])
  upstream.send(message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', 'Trailer: X-Check'], '3\r\nabc\r\n0\r\nX-Check: 7\r\n\r\n'))
  deepEqual(pick(client.wantHead('the answer', 1, false), ':status', 'trailer'), { ':status': '200', trailer: 'X-Check' })
  equal(client.wantContent('its content', 1, 3, false).toString(), 'abc')
  client.wantTrailers('its trailers', 1, ['x-check', '7'])
  deepEqual(rig.leftovers(), [])
})

worldTest('HTTP/2 to HTTP/1.1: HEAD, 204, 304 and OPTIONS * are what they are', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('HEAD'), true)
  world.run()
  const upstream = host.peer()
  equal(wantHead(upstream, 'HEAD').line, 'HEAD / HTTP/1.1')
  upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n')
  deepEqual(pick(client.wantHead('no content', 1, true), ':status', 'content-length'), { ':status': '200', 'content-length': '5' })
  for (const [streamId, status] of [
    [3, '204'],
    [5, '304'],
  ] as const) {
    client.sendHead(streamId, request('GET'), true)
    wantHead(upstream, 'GET')
    upstream.send(`HTTP/1.1 ${status} X\r\n\r\n`)
    deepEqual(pick(client.wantHead('no content', streamId, true), ':status'), { ':status': status })
  }
  client.sendHead(7, request('OPTIONS', '*'), true)
  equal(wantHead(upstream, 'OPTIONS *').line, 'OPTIONS * HTTP/1.1')
  upstream.send(ok(''))
  client.wantHead('the answer', 7, true)
  equal(host.peers.length, 1, 'all on one connection')
})

worldTest(
  'HTTP/2 to HTTP/1.1: requests of one connection are spread over several, and one that breaks takes no other along',
  few,
  async (world) => {
    const rig = await Rig.make(world)
    const host = rig.upstream()
    const client = rig.http2Client()
    for (const streamId of [1, 3, 5]) client.sendHead(streamId, request('GET', `/${streamId}`), true)
    world.run()
    equal(host.peers.length, 3)
    const byPath = new Map(host.peers.map((peer) => [wantHead(peer, 'a request').line.split(' ')[1], peer]))
    byPath.get('/1')?.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf ').end()
    client.wantHead('the head', 1, false)
    client.wantContent('half of it', 1, 5, false)
    client.wantReset('what is not whole does not look so', 1, Code.InternalError)
    byPath.get('/3')?.send(ok('three'))
    client.wantHead('the next', 3, false)
    client.wantContent('its content', 3, 5, true)
    client.send({ type: 'RST_STREAM', streamId: 5, code: Code.Cancel })
    world.run()
    equal(byPath.get('/5')?.closedBy === 'no', false, "HTTP/1.1's way to cancel is to close")
    deepEqual(
      rig.records.map(({ reason }) => reason),
      ['upstream_truncated', '', 'client_closed'],
    )
    deepEqual(rig.leftovers(), [])
  },
)

worldTest('HTTP/1.1 to HTTP/2: no field of the connection goes on, Host is the authority', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.client()
  const fields = ['Connection: keep-alive, X-Hop, HTTP2-Settings', 'X-Hop: 1', 'Keep-Alive: timeout=5', 'Proxy-Connection: x']
  client.send(
    get('/path?x=1', ...fields, 'TE: trailers, gzip', 'Cookie: a=1; b=2', 'HTTP2-Settings: AAMAAABk', 'Upgrade: h2c', 'X-Mixed: Case'),
  )
  world.run()
  const upstream = host.http2Peer()
  deepEqual(upstream.wantHead('the request', 1, true), [
    ...request('GET', '/path?x=1', 'te', 'trailers', 'cookie', 'a=1; b=2', 'x-mixed', 'Case', 'via', '1.1 gw'),
  ])
  upstream.sendHead(1, [':status', '200', 'content-length', '5', 'x-a', 'b'], false).sendContent(1, 'hello', true)
  const answer = wantHead(client, 'the answer')
  equal(answer.line, 'HTTP/1.1 200 OK')
  deepEqual([answer.field('x-a'), answer.field('via'), answer.field('content-length')], ['b', '2 gw', '5'])
  client.want('its content', 'hello')
  deepEqual([rig.record().upstreamProtocol, rig.leftovers()], ['h2', []])
})

worldTest('HTTP/1.1 to HTTP/2: chunks become DATA and DATA chunks; trailers and 1xx go through', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.client()
  client.send(message(['PUT /x HTTP/1.1', 'Host: example.org', 'Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\nX-Check: 7\r\n\r\n'))
  world.run()
  const upstream = host.http2Peer()
  const head = upstream.wantHead('the request', 1, false)
  deepEqual(pick(head, ':method', 'transfer-encoding', 'content-length'), { ':method': 'PUT' })
  equal(upstream.wantContent('its content', 1, 3, false).toString(), 'abc')
  upstream.wantTrailers('its trailers', 1, ['x-check', '7'])
  upstream.sendHead(1, [':status', '103', 'link', '</a.css>'], false)
  match(wantHead(client, 'the hint').line, /^HTTP\/1\.1 103 /)
  upstream.sendHead(1, [':status', '200'], false).sendContent(1, 'hello', false).sendHead(1, ['x-sum', '42'], true)
  equal(wantHead(client, 'the answer').field('transfer-encoding'), 'chunked')
  client.want('content and trailers', /5\r\nhello\r\n0\r\nx-sum: 42\r\n\r\n/i)
  deepEqual(rig.leftovers(), [])
})

worldTest('HTTP/1.1 to HTTP/2: a response that the upstream resets is a broken message', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.client()
  client.send(get())
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('the request', 1, true)
  upstream.sendHead(1, [':status', '200'], false).sendContent(1, 'half', false)
  wantHead(client, 'the head')
  client.want('what there is', '4\r\nhalf\r\n')
  upstream.send({ type: 'RST_STREAM', streamId: 1, code: Code.Cancel })
  world.run()
  equal(client.received.length, 0, 'no last chunk')
  equal(client.closedBy === 'no', false)
  equal(rig.record().reason, 'upstream_reset')
  deepEqual(rig.leftovers(), [])
})

worldTest('HTTP/1.1 to HTTP/2: a client that leaves is a CANCEL upstream', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('the request', 1, true)
  client.reset()
  upstream.wantReset('cancelled', 1, Code.Cancel)
  upstream.wantIdle('the connection stands')
  deepEqual(rig.leftovers(), [])
})

worldTest('an expectation goes from HTTP/2 to HTTP/1.1 and its 100 back; one that fails keeps the content here', few, async (world) => {
  const rig = await Rig.make(world)
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('POST', '/', 'expect', '100-continue', 'content-length', '5'), false)
  world.run()
  const upstream = host.peer()
  equal(wantHead(upstream, 'the request').field('expect'), '100-continue')
  upstream.wantIdle('the content waits')
  upstream.send('HTTP/1.1 100 Continue\r\n\r\n')
  deepEqual(pick(client.wantHead('the 100', 1, false), ':status'), { ':status': '100' })
  client.sendContent(1, 'hello', true)
  upstream.want('the content', 'hello')
  upstream.send(ok(''))
  client.wantHead('the answer', 1, true)

  client.sendHead(3, request('POST', '/', 'expect', '100-continue', 'content-length', '5'), false)
  world.run()
  equal(wantHead(upstream, 'the request').field('expect'), '100-continue')
  upstream.send('HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
  deepEqual(pick(client.wantHead('the answer', 3, true), ':status'), { ':status': '417' })
  world.advance(1_000)
  client.wantReset('nobody wants the content', 3, Code.NoError)
  deepEqual(rig.leftovers(), [])
})

worldTest('an answer that comes before the request is complete: the rest is not wanted, of either side', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('POST', '/'), false).sendContent(1, 'begin', false)
  world.run()
  const upstream = host.http2Peer()
  upstream.wantHead('the request', 1, false)
  upstream.wantContent('what there is', 1, 5, false)
  upstream.sendHead(1, [':status', '413', 'content-length', '0'], true)
  upstream.wantReset('the gateway sends no more', 1, Code.NoError)
  deepEqual(pick(client.wantHead('the answer', 1, true), ':status'), { ':status': '413' })
  world.advance(1_000)
  client.wantReset('and wants no more', 1, Code.NoError)
  const record = rig.record()
  deepEqual([record.status, record.reason], [413, ''])
  deepEqual(rig.leftovers(), [])
})

worldTest('route.authority is the :authority upstream', few, async (world) => {
  const rig = await Rig.make(world, { clusters: h2c, routes: [routeConfig({ authority: 'internal.example:81' })] })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('GET'), true)
  world.run()
  equal(pick(host.http2Peer().wantHead('the request', 1, true), ':authority')[':authority'], 'internal.example:81')
})
