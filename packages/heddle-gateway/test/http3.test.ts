import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { Client } from 'heddle/client'
import { Response } from 'heddle/server'
import { connect as openWebSocket, upgrade } from 'heddle/websocket'
import { startGateway, type Config } from '../src/index.ts'
import { parsePrometheus } from './parse-prometheus.ts'
import { ca, configOf, folder, honest, http3Cluster, http3Origin, lines, origin, own, probe, skip, start, valueIn } from './http3-rig.ts'

const upstreams = [
  ['h1', ''],
  ['h2', ', protocol: h2c'],
  ['h3', http3Cluster],
] as const
const versions = { h1: '1.1', h2: '2', h3: '3' } as const

const text = 'some content '.repeat(20_000)

/** An origin that says what it saw, and echoes. */
function echo(context: TestContext, version: 'h1' | 'h2' | 'h3') {
  const fetch = async (request: Request): Promise<Response> => {
    const { headers } = request
    const seen = ['via', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'].map((name) => headers.get(name)).join(' | ')
    const body = await request.text()
    return new Response(body === '' ? 'nothing' : body, { headers: { 'x-seen': `${request.method} ${seen}`, 'alt-svc': 'h3=":9"; ma=5' } })
  }
  const options = { fetch: fetch as never }
  return version === 'h3' ? http3Origin(context, options) : origin(context, options)
}

describe('requests in any version', { skip }, () => {
  for (const [version, cluster] of upstreams) {
    test(`go on from HTTP/3 to ${version}, and the gateway says what they are`, async (context) => {
      const server = await echo(context, version)
      const { connect, records, gateway } = await start(context, [server.port], { cluster })
      const client = await connect()
      const stream = await client.request(lines('POST', '/a?b'), false)
      const answer = await client.answer(stream.sendContent(text).sendContent('', true))
      equal(answer.status, 200)
      equal(answer.content, text)
      equal(valueIn(answer.head, 'x-seen'), 'POST 3 heddle | 127.0.0.1 | https | example.org')
      equal(valueIn(answer.head, 'via'), `${versions[version]} heddle`)
      equal(valueIn(answer.head, 'alt-svc'), undefined, "the upstream's port is not the gateway's")
      await client.until('the record', () => records.length === 1)
      const [record] = records
      deepEqual(
        [record?.protocol, record?.upstreamProtocol, record?.status, record?.requestSize, record?.responseSize, record?.reason],
        ['h3', version, 200, text.length, text.length, ''],
      )
      const { listeners, clusters } = await gateway.snapshot()
      deepEqual([listeners[0]?.connections, listeners[0]?.http3.connections, listeners[0]?.http3.streams], [1, 1, 0])
      ok((listeners[0]?.http3.datagrams ?? 0) > (listeners[0]?.http3.writes ?? 0), 'many datagrams at a time')
      deepEqual([clusters[0]?.active, clusters[0]?.http3.connections], [0, version === 'h3' ? 1 : 0])
    })
  }

  for (const version of ['h1', 'h2'] as const) {
    test(`go on from ${version} to h3, and the answer tells of HTTP/3 here`, async (context) => {
      const server = await echo(context, 'h3')
      const { port, records } = await start(context, [server.port], { cluster: http3Cluster })
      const client = honest(context, { protocols: [version] })
      const response = await client.fetch(`https://localhost:${port}/x`, { method: 'POST', body: text })
      equal(await response.text(), text)
      match(response.headers.get('x-seen') as string, new RegExp(`^POST ${versions[version].replace('.', '\\.')} heddle`))
      equal(response.headers.get('via'), '3 heddle')
      equal(response.headers.get('alt-svc'), `h3=":${port}"; ma=86400`)
      deepEqual([records[0]?.protocol, records[0]?.upstreamProtocol], [version, 'h3'])
    })
  }

  test('by a client that comes by TCP and goes on by QUIC', async (context) => {
    const server = await echo(context, 'h1')
    const { port, records } = await start(context, [server.port])
    const client = honest(context, { protocols: ['h3', 'h2'] })
    while (records.at(-1)?.protocol !== 'h3') {
      equal(await (await client.fetch(`https://localhost:${port}/`)).text(), 'nothing')
      await new Promise((resolve) => setImmediate(resolve))
    }
    equal(records[0]?.protocol, 'h2')
  })

  test('many at once, on one connection from the client and one to the upstream', async (context) => {
    const server = await echo(context, 'h3')
    const { port, gateway, records } = await start(context, [server.port], { cluster: http3Cluster })
    const client = honest(context)
    await Promise.all(
      Array.from({ length: 500 }, async (_, i) => {
        const response = await client.fetch(`https://localhost:${port}/${i}`, { method: 'POST', body: `content of ${i}` })
        equal(await response.text(), `content of ${i}`)
      }),
    )
    const { listeners, clusters } = await gateway.snapshot()
    deepEqual([listeners[0]?.accepted, clusters[0]?.active, listeners[0]?.exchanges], [1, 0, 0])
    ok((clusters[0]?.connections ?? 9) <= 5)
    deepEqual(new Set(records.map(({ status, reason }) => `${status}${reason}`)), new Set(['200']))
  })
})

describe('Alt-Svc', { skip }, () => {
  const altSvc = async (port: number, path = '/'): Promise<string | null> => {
    await using client = new Client({ protocols: ['h1'], tls: { ca: ca.cert } })
    const response = await client.fetch(`https://localhost:${port}${path}`)
    await response.text()
    return response.headers.get('alt-svc')
  }

  test('is of the port that clients see, or not there, and on answers of the gateway too', async (context) => {
    const server = await echo(context, 'h1')
    const usual = await start(context, [server.port], { route: ', match: { pathPrefix: /some }' })
    equal(await altSvc(usual.port, '/some'), `h3=":${usual.port}"; ma=86400`)
    equal(await altSvc(usual.port, '/none'), `h3=":${usual.port}"; ma=86400`, '404')
    const client = await usual.connect()
    equal(valueIn((await client.answer(await client.request(lines('GET', '/none')))).head, 'alt-svc'), undefined, 'it knows')
    equal(await altSvc((await start(context, [server.port], { listener: ', altSvc: 443' })).port), 'h3=":443"; ma=86400')
    const silent = await start(context, [server.port], { listener: ', altSvc: false' })
    equal(await altSvc(silent.port), 'h3=":9"; ma=5', 'what the upstream says is left to it')
    const without = await start(context, [server.port], { protocols: 'h2, h1' })
    equal(await altSvc(without.port), 'h3=":9"; ma=5')
  })

  test('goes by what a reload says', async (context) => {
    const server = await echo(context, 'h1')
    const { gateway, port } = await start(context, [server.port])
    equal(await altSvc(port), `h3=":${port}"; ma=86400`)
    await gateway.reload(configOf([server.port], { listener: ', altSvc: false' }))
    equal(await altSvc(port), 'h3=":9"; ma=5')
    await gateway.reload(configOf([server.port], { listener: ', altSvc: 8443' }))
    equal(await altSvc(port), 'h3=":8443"; ma=86400')
    const change = { protocols: 'h2, h1' }
    await rejects(gateway.reload(configOf([server.port], change)), { paths: ['listeners[0].protocols'] })
    const limits = { listener: ', http3: { maxConcurrentStreams: 5 }' }
    await rejects(gateway.reload(configOf([server.port], limits)), { paths: ['listeners[0].http3'] })
  })
})

describe('what messages carry', { skip }, () => {
  test('trailers both ways, 103 and 100, with upstreams of others', async (context) => {
    const server = http.createServer((request, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' })
      request.resume()
      request.on('end', () => {
        response.writeHead(200, { trailer: 'x-sum' })
        response.write('content')
        response.addTrailers({ 'x-sum': `${request.trailers['x-more']}` })
        response.end()
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    context.after(() => server.close())
    const { connect } = await start(context, [(server.address() as AddressInfo).port])
    const client = await connect()
    const stream = await client.request(lines('POST', '/', 'te', 'trailers', 'expect', '100-continue'), false)
    stream.sendContent('some').sendHead(['x-more', 'yes', 'x-forwarded-for', '9.9.9.9'], true)
    await client.until('the answer', () => stream.ended)
    const [hints, ...rest] = client.takeFrames(stream).filter((frame) => frame.type === 'HEADERS')
    const heads = [hints, ...rest].map((frame) => client.fields(stream, (frame as { block: Uint8Array }).block, frame === rest.at(-1)))
    deepEqual(
      heads.map((all) => (all[0] === ':status' ? all[1] : all)),
      ['100', '103', '200', ['x-sum', 'yes']].filter((_, i) => heads.length === 4 || i !== 0),
    )
    equal(valueIn(heads.find((all) => all[1] === '103') ?? [], 'link'), '</a.css>; rel=preload')
  })

  test('gRPC from HTTP/3 to HTTP/2: messages, trailers, and answers of the gateway in its words', async (context) => {
    const server = http2.createServer()
    server.on('stream', (stream: http2.ServerHttp2Stream) => {
      stream.on('error', () => {})
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '5', 'grpc-message': 'none' }))
      stream.pipe(stream)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    context.after(() => server.close())
    const { connect, records, gateway } = await start(context, [(server.address() as AddressInfo).port], { cluster: ', protocol: h2c' })
    const client = await connect()
    const call = lines('POST', '/a.B/C', 'content-type', 'application/grpc', 'te', 'trailers')
    const message = '\0\0\0\0\x02hi'
    const answer = await client.answer((await client.request(call, false)).sendContent(message, true))
    deepEqual([answer.content, answer.trailers], [message, ['grpc-status', '5', 'grpc-message', 'none']])
    await client.until('the record', () => records.length === 1)
    deepEqual([records[0]?.grpcStatus, records[0]?.protocol], [5, 'h3'])
    server.close()
    await gateway.reload(configOf([1], { cluster: ', protocol: h2c' }))
    const refused = await client.answer(await client.request(call))
    deepEqual([refused.status, valueIn(refused.head, 'grpc-status'), valueIn(refused.head, 'heddle-reason')], [200, '14', 'connect_failed'])
  })

  for (const [version, cluster] of upstreams) {
    test(`WebSocket over HTTP/3 to ${version}`, async (context) => {
      const options = { websocket: true, fetch: (request: Request) => accepting(request) }
      const server = version === 'h3' ? await http3Origin(context, options as never) : await origin(context, options as never)
      const { port, records, gateway } = await start(context, [server.port], { cluster, route: ', extendedConnect: true' })
      const client = honest(context)
      const socket = await openWebSocket(`wss://localhost:${port}/socket`, { client })
      await socket.write('hello')
      equal(await socket.read(), 'echo of hello')
      equal((await gateway.stats()).routes[0]?.tunnels.open, 1)
      socket.close()
      await socket.closed
      while (records.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      deepEqual([records[0]?.tunnel, records[0]?.protocol, records[0]?.upstreamProtocol], [true, 'h3', version])
    })
  }

  test('extended CONNECT is refused where no route allows it, and where this one does not', async (context) => {
    const server = await echo(context, 'h1')
    const one = await start(context, [server.port])
    const client = await one.connect()
    const ask = [...lines('CONNECT', '/socket'), ':protocol', 'websocket']
    const stream = await client.request([...ask.slice(0, 2), ':protocol', 'websocket', ...ask.slice(2, 8)], false)
    await client.until('the reset', () => stream.reset !== undefined)
    equal(stream.reset, 0x10e, 'H3_MESSAGE_ERROR')
  })
})

function accepting(request: Request): Response {
  const { response, socket } = upgrade(request as never)
  socket.onmessage = ({ data }) => socket.send(`echo of ${String(data)}`)
  return response as never
}

describe('a gateway with HTTP/3', { skip }, () => {
  test('alone: no port of TCP, and metrics by its name', async (context) => {
    const server = await echo(context, 'h1')
    const { connect, port, gateway } = await start(context, [server.port], { protocols: 'h3', more: 'admin: { port: 0 }' })
    const client = await connect()
    equal((await client.answer(await client.request(lines('GET', '/')))).status, 200)
    await using tcp = new Client({ tls: { ca: ca.cert } })
    await rejects(tcp.fetch(`https://localhost:${port}/`), { code: 'CONNECT_FAILED' })
    const families = parsePrometheus(await (await fetch(`${gateway.adminUrl}/metrics`)).text())
    const served = families.get('http_server_request_duration_seconds')?.samples.find(({ name }) => name.endsWith('_count'))
    equal(served?.labels['network_protocol_version'], '3')
    equal(families.get('heddle_server_open_http3_connections')?.samples[0]?.value, 1)
  })

  test('two listeners of one number, one by UDP and one by TCP, and a third that finds its port taken', async (context) => {
    const server = await echo(context, 'h1')
    const first = await start(context, [server.port], { protocols: 'h2, h1' })
    const fixed = { ...configOf([server.port], { protocols: 'h3' }) }
    const at = { ...fixed, listeners: fixed.listeners.map((listener) => ({ ...listener, port: first.port })) }
    const second = await startGateway(at)
    context.after(() => second.close({ deadline: 0 }))
    equal(second.addresses[0]?.port, first.port)
    await rejects(startGateway(at), {
      name: 'ListenError',
      message: `listener web cannot listen on 127.0.0.1:${first.port} (UDP): another program listens there`,
    })
  })

  test('asks for client certificates as it does by TCP', async (context) => {
    const server = await echo(context, 'h1')
    const config = configOf([server.port])
    const [listener] = config.listeners
    const tls = { ...listener?.tls, clientCa: join(folder, 'ca.crt') }
    const gateway = await startGateway({ ...config, listeners: [{ ...listener, tls }] } as Config)
    context.after(() => gateway.close({ deadline: 0 }))
    const port = gateway.addresses[0]?.port as number
    const known = await probe(context, port, { cert: own.cert, key: own.key })
    equal((await known.answer(await known.request(lines('GET', '/')))).status, 200)
    await rejects(async () => {
      const unknown = await probe(context, port)
      // TLS 1.3 refuses it when it thinks that it is done.
      await unknown.answer(await unknown.request(lines('GET', '/')))
    }, /certificate_required/)
  })
})
