import { deepEqual, equal, match } from 'node:assert/strict'
import { worldTest } from 'heddle/testing'
import { get, message, ok, post, wantHead } from './messages.ts'
import { listenerConfig, matchConfig, Rig, routeConfig } from './rig.ts'

const few = { seeds: 3 }

worldTest('a request goes through and its response comes back, on connections that are kept', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client()
  for (const path of ['/one?x=1', '/two']) {
    client.send(get(path, 'Accept: text/html', 'X-Two: 1', 'X-Two: 2'))
    world.run()
    const request = wantHead(upstream.peer(), 'the request')
    equal(request.line, `GET ${path} HTTP/1.1`)
    equal(request.field('host'), 'example.org')
    equal(request.field('accept'), 'text/html')
    equal(request.field('x-two'), '1, 2')
    equal(request.field('via'), '1.1 gw')
    upstream.peer().wantIdle('a GET has no content')
    upstream.peer().send(ok('hello', 'ETag: "v1"', 'Via: 1.0 origin-cache', 'Set-Cookie: a=1', 'Set-Cookie: b=2'))
    const response = wantHead(client, 'the response')
    equal(response.line, 'HTTP/1.1 200 OK')
    equal(response.field('etag'), '"v1"')
    equal(response.field('via'), '1.0 origin-cache, 1.1 gw')
    equal(response.field('set-cookie'), 'a=1, b=2')
    equal(response.field('content-length'), '5')
    client.want('the content', 'hello')
    client.wantIdle('nothing more')
  }
  equal(upstream.peers.length, 1)
  equal(rig.started, 2)
  const [first, second] = rig.records
  deepEqual(
    { ...first, startedAt: 0, duration: 0, timeToHead: 0, upstreamLatency: 0, upstreamDuration: 0, remoteAddress: '' },
    {
      startedAt: 0,
      listener: 'web',
      route: 'all',
      cluster: 'app',
      endpoint: '10.0.0.1:8080',
      remoteAddress: '',
      protocol: 'h1',
      upstreamProtocol: 'h1',
      method: 'GET',
      authority: 'example.org',
      path: '/one?x=1',
      status: 200,
      reason: '',
      attempts: 1,
      requestSize: 0,
      responseSize: 5,
      duration: 0,
      timeToHead: 0,
      upstreamLatency: 0,
      upstreamDuration: 0,
      tunnel: false,
      grpc: undefined,
      grpcStatus: -1,
    },
  )
  equal((second?.timeToHead ?? -1) >= 0 && (second?.duration ?? -1) >= (second?.timeToHead ?? 0), true)
  deepEqual(rig.leftovers(), [])
})

worldTest("fields of the client's connection stop here, and cannot take what the gateway adds", few, async (world) => {
  const rig = await Rig.make(world, { listener: { forwarded: 'x-forwarded' } })
  const upstream = rig.upstream()
  rig
    .client()
    .send(
      get(
        '/',
        'Connection: X-Auth, X-Forwarded-For, Via, Keep-Alive',
        'X-Auth: 1',
        'Keep-Alive: timeout=5',
        'Proxy-Connection: x',
        'TE: trailers',
      ),
    )
  world.run()
  const request = wantHead(upstream.peer(), 'the request')
  for (const name of ['x-auth', 'keep-alive', 'proxy-connection']) equal(request.field(name), undefined, name)
  match(request.field('x-forwarded-for') ?? '', /^192\.0\.2\.\d+$/)
  equal(request.field('x-forwarded-host'), 'example.org')
  equal(request.field('x-forwarded-proto'), 'http')
  equal(request.field('via'), '1.1 gw')
  match(request.field('te') ?? '', /trailers/)
})

worldTest("fields of the upstream's connection stop here", few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  wantHead(upstream.peer(), 'the request')
  upstream.peer().send(ok('', 'Connection: close, X-Hop', 'X-Hop: 1', 'Keep-Alive: timeout=5', 'Proxy-Connection: x', 'Upgrade: h2c'))
  const response = wantHead(client, 'the response')
  for (const name of ['x-hop', 'keep-alive', 'proxy-connection', 'upgrade', 'connection']) equal(response.field(name), undefined, name)
  client.wantIdle("the client's connection stays")
})

worldTest('content of known length, of unknown length, and trailers, both ways', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client()
  client.send(post('some content'))
  world.run()
  equal(wantHead(upstream.peer(), 'POST').field('content-length'), '12')
  upstream.peer().want('its content', 'some content')
  upstream.peer().send(message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked', 'Trailer: X-Sum'], '5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n'))
  const response = wantHead(client, 'the response')
  equal(response.field('transfer-encoding'), 'chunked')
  equal(response.field('trailer'), 'X-Sum')
  client.want('content and trailers', /5\r\nhello\r\n0\r\nx-sum: 42\r\n\r\n/i)

  client.send(message(['PUT /x HTTP/1.1', 'Host: example.org', 'Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\nX-Check: 7\r\n\r\n'))
  const put = wantHead(upstream.peer(), 'PUT')
  equal(put.field('transfer-encoding'), 'chunked')
  equal(put.field('content-length'), undefined)
  upstream.peer().want('content and trailers', /3\r\nabc\r\n0\r\nx-check: 7\r\n\r\n/i)
  upstream.peer().send(ok())
  wantHead(client, 'the response')
  client.want('its content', 'hello')
  deepEqual(
    rig.records.map(({ requestSize, responseSize }) => [requestSize, responseSize]),
    [
      [12, 5],
      [3, 5],
    ],
  )
})

worldTest('a response that ends with its connection ends in chunks', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  upstream
    .peer()
    .send(message(['HTTP/1.0 200 OK'], 'until the end'))
    .end()
  const response = wantHead(client, 'the response')
  equal(response.field('transfer-encoding'), 'chunked')
  client.want('its content', /d\r\nuntil the end\r\n0\r\n\r\n/)
  client.wantIdle('a whole message')
  equal(rig.record().reason, '')
})

worldTest('HEAD, 204 and 304 have no content, and HEAD keeps its content-length', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client()
  const cases = [
    ['HEAD', message(['HTTP/1.1 200 OK', 'Content-Length: 1000']), '1000'],
    ['GET', message(['HTTP/1.1 304 Not Modified', 'Content-Length: 1000', 'ETag: "v"']), '1000'],
    ['GET', message(['HTTP/1.1 204 No Content']), undefined],
    ['DELETE', message(['HTTP/1.1 205 Reset Content', 'Content-Length: 0']), '0'],
  ] as const
  for (const [method, response, length] of cases) {
    client.send(message([`${method} / HTTP/1.1`, 'Host: example.org']))
    world.run()
    equal(wantHead(upstream.peer(), method).line, `${method} / HTTP/1.1`)
    upstream.peer().send(response)
    equal(wantHead(client, 'the response').field('content-length'), length)
    client.wantIdle('and no content')
  }
  equal(upstream.peers.length, 1)
})

worldTest('1xx responses are passed on as they come', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client()
  client.send(message(['POST / HTTP/1.1', 'Host: example.org', 'Content-Length: 4', 'Expect: 100-continue']))
  world.run()
  equal(wantHead(upstream.peer(), 'the request').field('expect'), '100-continue')
  upstream.peer().wantIdle('no content yet')
  client.wantIdle('the gateway does not answer for the upstream')
  upstream.peer().send(message(['HTTP/1.1 103 Early Hints', 'Link: </a.css>; rel=preload']))
  const hints = wantHead(client, '103')
  equal(hints.line, 'HTTP/1.1 103 Early Hints')
  equal(hints.field('link'), '</a.css>; rel=preload')
  upstream.peer().send(message(['HTTP/1.1 100 Continue']))
  equal(wantHead(client, '100').line, 'HTTP/1.1 100 Continue')
  client.send('body')
  upstream.peer().want('the content', 'body')
  upstream.peer().send(ok())
  equal(wantHead(client, 'the response').line, 'HTTP/1.1 200 OK')
  deepEqual(rig.leftovers(), [])
})

worldTest('an expectation that fails: the content is never sent upstream', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client()
  client.send(message(['POST / HTTP/1.1', 'Host: example.org', 'Content-Length: 4', 'Expect: 100-continue']))
  world.run()
  wantHead(upstream.peer(), 'the request')
  upstream.peer().send(message(['HTTP/1.1 417 Expectation Failed', 'Content-Length: 0']))
  equal(wantHead(client, 'the answer').line, 'HTTP/1.1 417 Expectation Failed')
  client.send('body')
  world.run()
  equal(upstream.peer().received.length, 0)
  world.advance(10_000)
  deepEqual(rig.leftovers(), [])
  equal(rig.record().status, 417)
})

worldTest('absolute-form: the target counts, Host does not; route.authority replaces both', few, async (world) => {
  const rig = await Rig.make(world, {
    routes: [
      routeConfig({
        name: 'renamed',
        match: matchConfig({ pathPrefix: '/renamed' }),
        authority: 'internal.example:81',
      }),
      routeConfig(),
    ],
  })
  const upstream = rig.upstream()
  const client = rig.client()
  client.send(message(['GET http://shop.example/path HTTP/1.1', 'Host: other.example']))
  world.run()
  const request = wantHead(upstream.peer(), 'absolute-form')
  equal(request.line, 'GET /path HTTP/1.1')
  equal(request.field('host'), 'shop.example')
  upstream.peer().send(ok(''))
  wantHead(client, 'its response')
  client.send(get('/renamed'))
  world.run()
  equal(wantHead(upstream.peer(), 'renamed').field('host'), 'internal.example:81')
})

worldTest('HTTP/1.0 without Host gets one towards the upstream, and no 1xx', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client().send('GET / HTTP/1.0\r\n\r\n')
  world.run()
  equal(wantHead(upstream.peer(), 'the request').field('host'), '10.0.0.1:8080')
  upstream
    .peer()
    .send(message(['HTTP/1.1 103 Early Hints']) + message(['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n'))
  const response = wantHead(client, 'the response')
  match(response.line, /^HTTP\/1\.[01] 200 OK$/)
  equal(response.field('transfer-encoding'), undefined)
  client.want('its content', 'hello')
  client.wantClose('which ends with the connection', 'end')
})

worldTest('an origin without a clock gets a Date, one with a clock keeps it', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client().send(get())
  world.run()
  upstream.peer().send(ok('', 'Date: Tue, 15 Nov 1994 08:12:31 GMT'))
  equal(wantHead(client, 'with Date').field('date'), 'Tue, 15 Nov 1994 08:12:31 GMT')
  client.send(get())
  world.run()
  upstream.peer().send(ok(''))
  equal(wantHead(client, 'without Date').field('date'), world.httpDate())
})

worldTest('TRACE and CONNECT are refused, and OPTIONS stops where Max-Forwards says', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  for (const request of ['TRACE / HTTP/1.1\r\nHost: a\r\n\r\n', 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n']) {
    const client = rig.client().send(request)
    const refusal = wantHead(client, request)
    equal(refusal.line, 'HTTP/1.1 405 Method Not Allowed')
    equal(refusal.field('heddle-reason'), 'method_refused')
    match(refusal.field('allow') ?? '', /GET/)
    equal(rig.record().reason, 'method_refused')
  }
  const client = rig.client().send(message(['OPTIONS / HTTP/1.1', 'Host: a', 'Max-Forwards: 0']))
  equal(wantHead(client, 'the last hop').line, 'HTTP/1.1 200 OK')
  equal(upstream.peers.length, 0)
  client.send(message(['OPTIONS / HTTP/1.1', 'Host: a', 'Max-Forwards: 3']))
  world.run()
  equal(wantHead(upstream.peer(), 'one hop fewer').field('max-forwards'), '2')
  upstream.peer().send(ok(''))
  wantHead(client, 'its answer')
  client.send(message(['GET / HTTP/1.1', 'Host: a', 'Max-Forwards: 0']))
  world.run()
  equal(wantHead(upstream.peer(), 'GET does not count').field('max-forwards'), '0')
})

worldTest('what goes nowhere is told why', few, async (world) => {
  const rig = await Rig.make(world, {
    listener: listenerConfig(),
    routes: [routeConfig({ match: matchConfig({ hosts: ['known.example'] }) })],
  })
  const client = rig.client()
  const ask = (host: string, path: string, ...fields: string[]): string => message([`GET ${path} HTTP/1.1`, `Host: ${host}`, ...fields])
  const cases = [
    [ask('unknown.example', '/'), '404 Not Found', 'no_route'],
    [ask('known.example', '/a/../b'), '400 Bad Request', 'unsafe_path'],
    [ask('known.example', '/', ...Array.from({ length: 10 }, () => 'Via: 1.1 gw')), '508 Loop Detected', 'loop_detected'],
    [ask('known.example', '/'), '502 Bad Gateway', 'dns_failed'],
  ] as const
  for (const [request, status, reason] of cases) {
    client.send(request)
    const answer = wantHead(client, reason)
    equal(answer.line, `HTTP/1.1 ${status}`)
    equal(answer.field('heddle-reason'), reason)
    equal(answer.field('via'), undefined)
    client.want('words for people', `${status}: ${reason}\n`)
    const record = rig.record()
    equal(record.reason, reason)
    equal(record.status, Number(status.slice(0, 3)))
  }
  deepEqual(rig.leftovers(), [])
})

worldTest('an answer of our own to a request with content leaves the connection usable, or closes it', few, async (world) => {
  const rig = await Rig.make(world, { routes: [] })
  const client = rig.client().send(post('x'.repeat(1_000)))
  equal(wantHead(client, 'a small body').line, 'HTTP/1.1 404 Not Found')
  client.want('its content', '404 Not Found: no_route\n')
  client.send(get())
  equal(wantHead(client, 'the next one').line, 'HTTP/1.1 404 Not Found')
  const big = rig.client().send(message(['POST / HTTP/1.1', 'Host: a', 'Content-Length: 100000000'], 'x'.repeat(1_000)))
  equal(wantHead(big, 'a body nobody waits for').line, 'HTTP/1.1 404 Not Found')
  world.advance(20_000)
  big.want('its content', '404 Not Found: no_route\n')
  equal(big.closedBy === 'no', false)
  deepEqual(rig.leftovers(), [])
})

worldTest('pipelined requests are forwarded one after the other and answered in order', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const client = rig.client().send(get('/1') + post('two') + get('/3'))
  for (const content of ['one', 'two', 'three']) {
    world.run()
    wantHead(upstream.peer(), content)
    if (content === 'two') upstream.peer().want('content', 'two')
    upstream.peer().wantIdle('one at a time')
    upstream.peer().send(ok(content))
  }
  for (const content of ['one', 'two', 'three']) {
    wantHead(client, content)
    client.want('content', content)
  }
})

worldTest('a failure of our own is a 500 for that request, and for nothing else', few, async (world) => {
  const rig = await Rig.make(world)
  const upstream = rig.upstream()
  const { match: find } = rig.proxy.router
  rig.proxy.router.match = () => {
    throw new Error('a bug')
  }
  const client = rig.client().send(get())
  equal(wantHead(client, 'the answer').line, 'HTTP/1.1 500 Internal Server Error')
  deepEqual([rig.records[0]?.status, rig.records[0]?.reason], [500, 'internal_error'])
  rig.proxy.router.match = find
  world.advance(1_000)
  deepEqual(rig.leftovers(), [])
  rig.client().send(get())
  world.run()
  wantHead(upstream.peer(), 'the next request')
})
