import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http2 from 'node:http2'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import tls from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import { collectGarbage, makeAuthority, makeCertificate, memoryNow } from 'heddle/testing'
import { parseConfig, startGateway, type Gateway, type RequestRecord } from '../src/index.ts'

const megabyte = 1024 * 1024
const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = http2.constants

interface Started {
  readonly gateway: Gateway
  readonly port: number
  readonly records: RequestRecord[]
}

/** A gateway on a real socket before the origin on `port`, closed with the test. */
async function start(
  context: TestContext,
  port: number,
  options: { listener?: string; cluster?: string; route?: string } = {},
): Promise<Started> {
  const { listener = '', cluster = '', route = '' } = options
  const config = parseConfig(`
listeners: [{ name: web, host: 127.0.0.1, port: 0${listener} }]
routes: [{ name: all, cluster: app${route} }]
clusters: [{ name: app, endpoints: ['localhost:${port}']${cluster} }]
`)
  const records: RequestRecord[] = []
  const gateway = await startGateway(config, { observer: { onRequestStart() {}, onRequestEnd: (record) => records.push(record) } })
  context.after(() => gateway.close({ deadline: 100 }))
  return { gateway, port: gateway.addresses[0]?.port ?? 0, records }
}

interface Origin {
  readonly server: http2.Http2Server | http2.Http2SecureServer
  readonly port: number
  readonly sessions: Set<http2.ServerHttp2Session>
  /** Sessions ever. */
  opened: number
}

async function listen(
  context: TestContext,
  server: Origin['server'],
  onStream: (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void,
): Promise<Origin> {
  const origin: Origin = { server, port: 0, sessions: new Set(), opened: 0 }
  server.on('session', (session) => {
    origin.opened++
    origin.sessions.add(session)
    session.on('close', () => origin.sessions.delete(session))
    session.on('error', () => {})
  })
  server.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  context.after(() => {
    for (const session of origin.sessions) session.destroy()
    server.close()
  })
  return Object.assign(origin, { port: (server.address() as AddressInfo).port })
}

function connect(
  context: TestContext,
  port: number,
  options: http2.SecureClientSessionOptions & { secure?: boolean } = {},
): http2.ClientHttp2Session {
  const session = http2.connect(`${options.secure === true ? 'https' : 'http'}://127.0.0.1:${port}`, options)
  session.on('error', () => {})
  context.after(() => session.destroy())
  return session
}

interface Answer {
  readonly headers: http2.IncomingHttpHeaders
  readonly body: Buffer
  readonly trailers: http2.IncomingHttpHeaders | undefined
}

async function ask(session: http2.ClientHttp2Session, headers: http2.OutgoingHttpHeaders, content?: Buffer): Promise<Answer> {
  const stream = session.request(headers, { endStream: content === undefined })
  if (content !== undefined) stream.end(content)
  let trailers: http2.IncomingHttpHeaders | undefined
  stream.on('trailers', (all) => (trailers = all))
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [[answer]] = (await Promise.all([once(stream, 'response'), once(stream, 'end')])) as [[http2.IncomingHttpHeaders], unknown]
  return { headers: answer, body: Buffer.concat(chunks), trailers }
}

/** Echoes; `/trailers` with trailers. */
function echo(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
  const waits = headers[':path'] === '/trailers'
  stream.respond({ ':status': 200, 'x-seen': `${headers[':method']} ${headers[':path']} ${headers.via}` }, { waitForTrailers: waits })
  if (waits) stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '42' }))
  stream.pipe(stream)
}

test('node:http2 on both sides, plain text: content both ways, trailers, two thousand requests on one upstream connection', async (context) => {
  const origin = await listen(context, http2.createServer(), echo)
  const { port, gateway, records } = await start(context, origin.port, { cluster: ', protocol: h2c' })
  const session = connect(context, port)
  const large = Buffer.alloc(3 * megabyte, 'x')
  const answer = await ask(session, { ':method': 'POST', ':path': '/large' }, large)
  ok(answer.body.equals(large))
  equal(answer.headers['x-seen'], 'POST /large 2 heddle')
  equal(answer.headers.via, '2 heddle')
  deepEqual((await ask(session, { ':method': 'POST', ':path': '/trailers' }, Buffer.from('a'))).trailers?.['x-sum'], '42')
  for (let i = 0; i < 20; i++) {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, j) => ask(session, { ':path': `/${i}/${j}` })))
    ok(answers.every(({ headers }, j) => Number(headers[':status']) === 200 && headers['x-seen'] === `GET /${i}/${j} 2 heddle`))
  }
  equal(origin.opened, 1)
  await sleep(20)
  equal(records.length, 2_002)
  const { listeners, clusters } = await gateway.stats()
  deepEqual([listeners[0]?.http2.streams, clusters[0]?.http2.streams, clusters[0]?.http2.connections], [0, 0, 1])
  ok((clusters[0]?.http2.framesPerWrite ?? 0) > 2 && (listeners[0]?.http2.framesPerWrite ?? 0) > 2, JSON.stringify(clusters[0]?.http2))
  equal(listeners[0]?.latency.count, 2_002)
  // What /metrics.json shows of every listener, upstream and endpoint.
  const shown = ['avg', 'count', 'max', 'min', 'p50', 'p75', 'p90', 'p95', 'p99', 'p999', 'p9999']
  for (const part of [listeners[0], clusters[0], clusters[0]?.endpoints[0]]) {
    for (const { count, min, p50, p9999, max, ...rest } of [part!.latency, part!.duration]) {
      deepEqual(Object.keys({ count, min, p50, p9999, max, ...rest }).sort(), shown)
      ok(count === 2_002 && min > 0 && min <= p50 && p50 <= p9999 && p9999 <= max)
    }
    ok(part!.duration.avg >= part!.latency.avg)
    deepEqual([part!.waiting, part!.connections], [0, 1])
  }
  for (const { connections, streams, resetsSent, resetsReceived } of [listeners[0]!.http2, clusters[0]!.http2]) {
    deepEqual([connections, streams, resetsSent, resetsReceived], [1, 0, {}, {}])
  }
})

test('TLS on both sides: ALPN chooses, and each client gets what it speaks', async (context) => {
  const authority = makeAuthority()
  const { cert, key } = makeCertificate({ names: ['localhost', '127.0.0.1'], ca: authority })
  const folder = mkdtempSync(join(tmpdir(), 'heddle-gateway-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const write = (name: string, text: string | Buffer): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const files = { ca: write('ca.pem', authority.cert), cert: write('cert.pem', cert), key: write('key.pem', key) }
  const origin = await listen(context, http2.createSecureServer({ cert, key, allowHTTP1: true }), echo)
  const versions: string[] = []
  origin.server.on('request', (request: http2.Http2ServerRequest) => versions.push(request.httpVersion))
  const old = https.createServer({ cert, key }, (request, response) => response.end(`over ${request.httpVersion}`)).listen(0, 'localhost')
  await once(old, 'listening')
  context.after(() => {
    old.closeAllConnections()
    old.close()
  })
  const listener = `, tls: { certificates: [{ cert: ${files.cert}, key: ${files.key} }] }`
  const cluster = `, tls: { ca: ${files.ca} }`
  const { port, records } = await start(context, origin.port, { listener, cluster })
  const session = connect(context, port, { secure: true, ca: authority.cert, servername: 'localhost' })
  equal((await ask(session, { ':path': '/h2' })).headers['x-seen'], 'GET /h2 2 heddle')
  equal(session.alpnProtocol, 'h2')
  const either = tls.connect({ host: '127.0.0.1', port, ca: authority.cert, servername: 'localhost', ALPNProtocols: ['http/1.1', 'h2'] })
  await once(either, 'secureConnect')
  equal(either.alpnProtocol, 'h2', 'preferred, whatever the client and the order of `protocols` say')
  either.destroy()
  const request = https.get({ host: 'localhost', port, path: '/h1', ca: authority.cert, agent: false })
  const [response] = (await once(request, 'response')) as [NodeJS.ReadableStream & { headers: Record<string, string> }]
  equal(response.headers['x-seen'], 'GET /h1 1.1 heddle')
  response.resume()
  await once(response, 'end')
  await sleep(20)
  deepEqual(
    records.map(({ protocol, upstreamProtocol, path }) => [protocol, upstreamProtocol, path]),
    [
      ['h2', 'h2', '/h2'],
      ['h1', 'h2', '/h1'],
    ],
  )
  deepEqual([origin.opened, new Set(versions)], [1, new Set(['2.0'])])

  // An upstream that knows no ALPN is spoken to in HTTP/1.1, unless the configuration will have none of it.
  const second = await start(context, (old.address() as AddressInfo).port, { listener, cluster })
  const other = connect(context, second.port, { secure: true, ca: authority.cert, servername: 'localhost' })
  equal((await ask(other, { ':path': '/' })).body.toString(), 'over 1.1')
  const third = await start(context, (old.address() as AddressInfo).port, { listener, cluster: `${cluster}, protocol: h2` })
  const strict = connect(context, third.port, { secure: true, ca: authority.cert, servername: 'localhost' })
  const refused = await ask(strict, { ':path': '/' })
  deepEqual([Number(refused.headers[':status']), refused.headers['heddle-reason']], [502, 'tls_failed'])
})

test('a client that cancels is an upstream stream with CANCEL, at once; an upstream that breaks off is a client stream with its code', async (context) => {
  const streams: http2.ServerHttp2Stream[] = []
  const origin = await listen(context, http2.createServer(), (stream) => {
    streams.push(stream)
    stream.respond({ ':status': 200 })
    stream.write('begin')
  })
  const { port, gateway } = await start(context, origin.port, { cluster: ', protocol: h2c' })
  const session = connect(context, port)
  const cancelled = session.request({ ':path': '/' })
  cancelled.on('error', () => {})
  await once(cancelled, 'data')
  const seen = once(streams[0] as http2.ServerHttp2Stream, 'close')
  const at = performance.now()
  cancelled.close(NGHTTP2_CANCEL)
  await seen
  ok(performance.now() - at < 5_000, 'and not only after a time limit')
  equal(streams[0]?.rstCode, NGHTTP2_CANCEL)

  const broken = session.request({ ':path': '/' })
  broken.on('error', () => {})
  await once(broken, 'data')
  const closed = new Promise((resolve) => broken.on('close', resolve))
  // `close` would end the content first.
  streams[1]?.destroy(new Error('broken off'))
  await closed
  equal(broken.rstCode, NGHTTP2_INTERNAL_ERROR)
  const { listeners, clusters } = await gateway.stats()
  deepEqual([listeners[0]?.http2.resetsReceived, clusters[0]?.http2.resetsSent], [{ CANCEL: 1 }, { CANCEL: 1 }])
  deepEqual(clusters[0]?.http2.resetsReceived, { INTERNAL_ERROR: 1 })
  deepEqual(listeners[0]?.http2.resetsSent, { INTERNAL_ERROR: 1 })
})

test('a graceful stop: GOAWAY, what runs finishes, and nothing is cut', async (context) => {
  let finish: (() => void) | undefined
  const origin = await listen(context, http2.createServer(), (stream) => {
    stream.respond({ ':status': 200 })
    stream.write('begin ')
    finish = () => stream.end('end')
  })
  const { port, gateway } = await start(context, origin.port, { cluster: ', protocol: h2c' })
  const session = connect(context, port)
  const stream = session.request({ ':path': '/' })
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(stream, 'data')
  const goaway = once(session, 'goaway')
  const closed = gateway.close({ deadline: 5_000 })
  const [code] = (await goaway) as [number]
  equal(code, NGHTTP2_NO_ERROR)
  setTimeout(() => finish?.(), 50)
  await once(stream, 'end')
  equal(Buffer.concat(chunks).toString(), 'begin end')
  await closed
  equal(stream.rstCode, NGHTTP2_NO_ERROR)
})

test('an upstream that restarts with GOAWAY loses no request', { timeout: 30_000 }, async (context) => {
  const origin = await listen(context, http2.createServer(), (stream) => {
    setTimeout(() => {
      if (stream.destroyed) return
      stream.respond({ ':status': 200 })
      stream.end('ok')
    }, Math.random() * 5)
  })
  const { port, gateway } = await start(context, origin.port, { cluster: ', protocol: h2c' })
  const session = connect(context, port)
  let done = false
  const statuses = new Map<number, number>()
  const load = Array.from({ length: 20 }, async () => {
    while (!done) {
      const { headers } = await ask(session, { ':method': 'POST', ':path': '/' }, Buffer.from('x'))
      const status = Number(headers[':status'])
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  })
  // A slow machine takes longer for as much.
  for (let i = 0; i < 10 || (statuses.get(200) ?? 0) <= 100 || origin.opened < 5; i++) {
    await sleep(30)
    // Graceful: GOAWAY, and what was accepted is answered.
    for (const open of origin.sessions) open.close()
  }
  done = true
  await Promise.all(load)
  deepEqual([...statuses.keys()], [200], JSON.stringify([...statuses]))
  equal((await gateway.stats()).clusters[0]?.endpoints[0]?.failures, 0)
})

test(
  '100 MB to a client that reads slowly, over HTTP/2 on both sides: the gateway holds little of it',
  { timeout: 60_000 },
  async (context) => {
    const total = 100 * megabyte
    const piece = Buffer.alloc(megabyte, 0x61)
    let written = 0
    const origin = await listen(context, http2.createServer(), (stream) => {
      stream.respond({ ':status': 200 })
      const more = (): void => {
        while (written < total) {
          written += piece.length
          if (!stream.write(piece)) {
            stream.once('drain', more)
            return
          }
        }
        stream.end()
      }
      more()
    })
    const { port } = await start(context, origin.port, { cluster: ', protocol: h2c' })
    const before = await memoryNow()
    const session = connect(context, port)
    const stream = session.request({ ':path': '/' })
    let received = 0
    let most = 0
    let stood = 0
    stream.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received < (stood + 1) * 10 * megabyte) return
      stood++
      stream.pause()
      setTimeout(() => {
        collectGarbage()
        const { heapUsed, arrayBuffers } = process.memoryUsage()
        most = Math.max(most, heapUsed + arrayBuffers - before)
        stream.resume()
      }, 50)
    })
    await once(stream, 'end')
    equal(received, total)
    ok(stood >= 9)
    // All of it lies in this process: what node:http2 holds on either side as well.
    ok(most < 48 * megabyte, `${(most / megabyte).toFixed(1)} MB more than before`)
  },
)

test('plain text: HTTP/1.1 and HTTP/2 on the same port, and only what protocols allows', async (context) => {
  const origin = await listen(context, http2.createServer(), echo)
  const both = await start(context, origin.port, { cluster: ', protocol: h2c' })
  const response = await fetch(`http://127.0.0.1:${both.port}/h1`)
  equal(response.headers.get('x-seen'), 'GET /h1 1.1 heddle')
  equal((await ask(connect(context, both.port), { ':path': '/h2' })).headers['x-seen'], 'GET /h2 2 heddle')
  const { listeners } = await both.gateway.stats()
  equal(listeners[0]?.http2.connections, 1)

  const onlyOld = await start(context, origin.port, { listener: ', protocols: [h1]', cluster: ', protocol: h2c' })
  const session = http2.connect(`http://127.0.0.1:${onlyOld.port}`)
  const [error] = (await once(session, 'error')) as [Error]
  match(error.message, /Protocol error|closed|ECONNRESET/)
  session.destroy()
  equal((await fetch(`http://127.0.0.1:${onlyOld.port}/`)).status, 200)
})
