import { deepEqual, equal, ok } from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { describe, test, type TestContext } from 'node:test'
import { CancelReason, responseHead, type Exchange, type ExchangeHandler } from 'heddle/http'
import { Response, type Server } from 'heddle/server'
import { Http3Code as Code, makeCertificate } from 'heddle/testing'
import { connect as openWebSocket } from 'heddle/websocket'
import { ca, honest, http3Cluster, http3Origin, lines, own, probe, skip, start, valueIn, type StartOptions } from './http3-rig.ts'

/** An upstream of HTTP/3 that does this with each exchange whose head has come. */
function acting(context: TestContext, act: (exchange: Exchange, path: string) => void, options: object = {}): Promise<Server> {
  return http3Origin(context, {
    onExchange: (exchange): ExchangeHandler => ({
      onHead: ({ path }) => act(exchange, path),
      onData: (_buffer, start, limit) => exchange.consume(limit - start),
      onTrailers() {},
      onSent() {},
      onPriority() {},
      onClose() {},
    }),
    ...options,
  })
}

/** What a client is told, by HTTP/3. */
async function told(context: TestContext, port: number, path = '/', fields: string[] = []) {
  const client = await probe(context, port)
  return client.answer(await client.request(lines('GET', path, ...fields)))
}

const quick: StartOptions = { cluster: `${http3Cluster}, connectTimeout: 300ms` }

describe('upstreams of HTTP/3 that are not there', { skip }, () => {
  test('nobody listens', async (context) => {
    const { port } = await start(context, [9], quick)
    const answer = await told(context, port)
    ok(['connect_failed', 'connect_timeout'].includes(valueIn(answer.head, 'heddle-reason') as string))
  })

  test('somebody listens and says nothing', async (context) => {
    const silent = createSocket('udp4')
    silent.bind(0, '127.0.0.1')
    await once(silent, 'listening')
    context.after(() => silent.close())
    const { port, gateway } = await start(context, [silent.address().port], quick)
    const answer = await told(context, port)
    deepEqual([answer.status, valueIn(answer.head, 'heddle-reason')], [504, 'connect_timeout'])
    equal((await gateway.snapshot()).clusters[0]?.endpoints[0]?.failures, 1)
  })

  test('the certificate is of another', async (context) => {
    const other = makeCertificate({ names: ['other.example'], ca })
    const server = await http3Origin(context, { tls: { cert: other.cert, key: other.key }, fetch: () => new Response('') })
    const { port } = await start(context, [server.port], { cluster: http3Cluster })
    const answer = await told(context, port)
    deepEqual([answer.status, valueIn(answer.head, 'heddle-reason')], [502, 'tls_failed'])
    const named = await start(context, [server.port], { cluster: http3Cluster.replace('localhost', 'other.example') })
    equal((await told(context, named.port)).status, 200)
  })

  test('an endpoint that fails is taken out, and requests go to the other', async (context) => {
    const silent = createSocket('udp4')
    silent.bind(0, '127.0.0.1')
    await once(silent, 'listening')
    context.after(() => silent.close())
    const server = await http3Origin(context, { fetch: () => new Response('here') })
    const { connect, gateway, records } = await start(context, [silent.address().port, server.port], {
      cluster: `${http3Cluster}, connectTimeout: 50ms, ejection: { consecutiveFailures: 2, baseTime: 30s }`,
    })
    const client = await connect()
    for (let i = 0; i < 50; i++) {
      equal((await client.answer(await client.request(lines('GET', '/')))).content, 'here')
      if ((await gateway.snapshot()).clusters[0]?.endpoints[0]?.ejected === true) break
    }
    deepEqual(
      (await gateway.snapshot()).clusters[0]?.endpoints.map(({ ejected }) => ejected),
      [true, false],
    )
    ok(records.some(({ attempts }) => attempts === 2))
  })
})

describe('what upstreams of HTTP/3 do', { skip }, () => {
  test('refusals are sent again, and told as such in the end; nobody is blamed', async (context) => {
    let refusals = 0
    const server = await acting(context, (exchange, path) => {
      if (path === '/never' || refusals++ < 2) exchange.cancel(CancelReason.Refused)
      else exchange.sendHead(responseHead(200, []), true)
    })
    const { port, gateway } = await start(context, [server.port], { cluster: http3Cluster })
    equal((await told(context, port)).status, 200)
    const answer = await told(context, port, '/never')
    deepEqual([answer.status, valueIn(answer.head, 'heddle-reason')], [503, 'upstream_refused'])
    equal((await gateway.snapshot()).clusters[0]?.endpoints[0]?.failures, 0)
  })

  test('resets before the head: CANCEL blames nobody, others do; gRPC is told what they mean', async (context) => {
    const server = await acting(context, (exchange, path) => {
      exchange.cancel(
        path.endsWith('cancel') ? CancelReason.Cancelled : path.endsWith('load') ? CancelReason.ExcessiveLoad : CancelReason.InternalError,
      )
    })
    const { port, gateway, connect } = await start(context, [server.port], { cluster: http3Cluster })
    const failures = async (): Promise<number | undefined> => (await gateway.snapshot()).clusters[0]?.endpoints[0]?.failures
    equal(valueIn((await told(context, port, '/cancel')).head, 'heddle-reason'), 'upstream_reset')
    equal(await failures(), 0)
    equal(valueIn((await told(context, port, '/other')).head, 'heddle-reason'), 'upstream_reset')
    equal(await failures(), 1)
    const client = await connect()
    const status = async (path: string): Promise<string | undefined> => {
      const call = lines('POST', path, 'content-type', 'application/grpc', 'te', 'trailers')
      return valueIn((await client.answer(await client.request(call))).head, 'grpc-status')
    }
    deepEqual([await status('/a.B/cancel'), await status('/a.B/load'), await status('/a.B/other')], ['1', '8', '13'])
  })

  test('resets after the head go on as what they mean, and never look complete', async (context) => {
    const server = await acting(context, (exchange, path) => {
      exchange.sendHead(responseHead(200, []), false)
      exchange.sendOwned(Buffer.from('some'), false)
      const reason = { '/cancel': CancelReason.Cancelled, '/load': CancelReason.ExcessiveLoad }[path] ?? CancelReason.MessageError
      setTimeout(() => exchange.cancel(reason), 20)
    })
    const { connect, records } = await start(context, [server.port], { cluster: http3Cluster })
    const client = await connect()
    for (const [path, code] of [
      ['/cancel', Code.RequestCancelled],
      ['/load', Code.ExcessiveLoad],
      ['/other', Code.InternalError],
    ] as const) {
      const stream = await client.request(lines('GET', path))
      await client.until(path, () => stream.reset !== undefined || stream.ended)
      equal(stream.reset, code, path)
    }
    deepEqual(new Set(records.map(({ reason, status }) => `${reason} ${status}`)), new Set(['upstream_reset 200']))
  })

  test('one that goes away is left without a lost request', async (context) => {
    const handler = { fetch: () => new Response('x') }
    const first = await http3Origin(context, handler)
    const { connect, records } = await start(context, [first.port], { cluster: `${http3Cluster}, connectTimeout: 10s` })
    const client = await connect()
    const ask = async (): Promise<void> => {
      const answer = await client.answer(await client.request(lines('GET', '/')))
      deepEqual([answer.status, answer.content], [200, 'x'])
    }
    await ask()
    const { port } = first
    for (let round = 0; round < 3; round++) {
      await (round === 0 ? first : await http3Origin(context, { ...handler, port })).close()
      const asked = [ask(), ask(), ask()]
      const next = await http3Origin(context, { ...handler, port })
      await Promise.all(asked)
      await next.close()
    }
    deepEqual(new Set(records.map(({ status }) => status)), new Set([200]))
  })

  test('a tunnel is refused where the upstream offers none', async (context) => {
    const server = await http3Origin(context, { fetch: () => new Response('x') })
    const { port, records } = await start(context, [server.port], { cluster: http3Cluster, route: ', extendedConnect: true' })
    for (const protocols of [['h3'], ['h1']] as const) {
      let refused = ''
      const client = honest(context, { protocols })
      await openWebSocket(`wss://localhost:${port}/`, { client }).catch((error: Error) => (refused = error.message))
      ok(refused.includes('502'), refused)
    }
    deepEqual(new Set(records.map(({ reason, tunnel }) => `${reason} ${tunnel}`)), new Set(['tunnel_unsupported false']))
  })

  test('time limits: no head, and no content', async (context) => {
    const server = await acting(context, (exchange, path) => {
      if (path === '/content') {
        exchange.sendHead(responseHead(200, []), false)
        exchange.sendOwned(Buffer.from('some'), false)
      }
    })
    const { port, records, connect } = await start(context, [server.port], {
      cluster: `${http3Cluster}, headTimeout: 200ms, bodyTimeout: 200ms, ejection: { consecutiveFailures: 0 }`,
    })
    const answer = await told(context, port)
    deepEqual([answer.status, valueIn(answer.head, 'heddle-reason')], [504, 'head_timeout'])
    const client = await connect()
    const stream = await client.request(lines('GET', '/content'))
    await client.until('the reset', () => stream.reset !== undefined)
    deepEqual([records.at(-1)?.reason, stream.ended], ['body_timeout', false])
  })
})

test('a client certificate is shown to upstreams of HTTP/3 that ask', { skip }, async (context) => {
  const server = await http3Origin(context, {
    tls: { cert: own.cert, key: own.key, requestCert: true, ca: ca.cert },
    fetch: () => new Response('known'),
  })
  const keys = ', protocol: h3, tls: { ca: ca.crt, serverName: localhost'
  const shown = await start(context, [server.port], { cluster: `${keys}, cert: own.crt, key: own.key }`, route: ', authority: localhost' })
  equal((await told(context, shown.port)).content, 'known')
  const hidden = await start(context, [server.port], { cluster: `${keys} }`, route: ', authority: localhost' })
  equal((await told(context, hidden.port)).status, 502)
})
