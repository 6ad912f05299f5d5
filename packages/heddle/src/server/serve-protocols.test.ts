/** One story, told to handlers over HTTP/1.1 and HTTP/2, plain and over TLS, and over HTTP/3: they cannot tell which it was. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import type { HeddleError } from '../http/index.ts'
import { Http3Client, noHttp3 } from '../../test/h3-client.ts'
import { NodeClient, ways as nodeWays, type Way as NodeWay } from '../../test/node-client.ts'
import { makeCertificate } from '../testing/index.ts'
import { Response, serve, type FetchHandler, type Server, type ServeOptions } from './index.ts'

const certificate = makeCertificate({ names: ['localhost'] })

type Way = NodeWay | 'h3'
const ways: readonly Way[] = [...nodeWays, 'h3']

interface Scene {
  readonly server: Server
  readonly client: NodeClient | Http3Client
  readonly way: Way
  /** HTTP/2, over whatever, or HTTP/3. */
  readonly multiplexed: boolean
  /** What `onError` was told. */
  readonly told: unknown[]
}

async function open(t: TestContext, way: Way, fetch: FetchHandler, options: Partial<ServeOptions> = {}): Promise<Scene> {
  const told: unknown[] = []
  const tls = way === 'h1' || way === 'h2c' ? undefined : { cert: certificate.cert, key: certificate.key }
  const server = await serve({
    hostname: '127.0.0.1',
    fetch,
    onError: (error) => void told.push(error),
    ...(tls === undefined ? undefined : { tls }),
    ...(way === 'h3' ? { protocols: ['h3', 'h2', 'http/1.1'] } : undefined),
    ...options,
  })
  const client = way === 'h3' ? new Http3Client({ port: server.port }) : new NodeClient(server.port, way)
  t.after(async () => {
    await client.close()
    await server.close({ deadline: 0 })
    const { connections, exchanges } = server.stats()
    assert.deepEqual({ connections, exchanges }, { connections: 0, exchanges: 0 })
  })
  return { server, client, way, multiplexed: way === 'h2' || way === 'h2c' || way === 'h3', told }
}

/** Tells `story` over every way. */
function overAll(name: string, story: (t: TestContext, way: Way) => Promise<void>): void {
  for (const way of ways) test(`${name} (${way})`, { timeout: 20_000, skip: way === 'h3' && noHttp3 }, (t) => story(t, way))
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < end, `waited for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

function patterned(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size)
  for (let i = 0; i < size; i++) bytes[i] = (i * 31 + (i >> 8)) & 0xff
  return bytes
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

overAll('the request is what was asked', async (t, way) => {
  const { client, server } = await open(t, way, async (request, context) => {
    const { method, url, headers } = request
    return Response.json([
      method,
      url,
      headers.get('host'),
      headers.get('x-a'),
      await request.text(),
      context.remote.address,
      context.tls?.version,
    ])
  })
  const scheme = way === 'h1' || way === 'h2c' ? 'http' : 'https'
  const host = `127.0.0.1:${server.port}`
  for (const method of ['GET', 'POST', 'DELETE', 'PROPFIND']) {
    const body = method === 'GET' ? undefined : `content of ${method}`
    const answer = await client.ask({
      method,
      path: '/a/../b?c=%20d',
      headers: { 'x-a': 'one, two' },
      ...(body === undefined ? {} : { body }),
    })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['content-type'], 'application/json')
    assert.ok(typeof answer.headers['date'] === 'string')
    assert.deepEqual(JSON.parse(answer.body.toString()), [
      method,
      `${scheme}://${host}/b?c=%20d`,
      host,
      'one, two',
      body ?? '',
      '127.0.0.1',
      scheme === 'https' ? 'TLSv1.3' : null,
    ])
  }
  const star = await client.ask({ method: 'OPTIONS', path: '*' })
  assert.equal((JSON.parse(star.body.toString()) as string[])[1], `${scheme}://${host}/`)
})

overAll('bodies of every kind are sent, and HEAD gets the head alone', async (t, way) => {
  const make: Record<string, () => string | Uint8Array<ArrayBuffer> | Blob | ReadableStream | null> = {
    none: () => null,
    empty: () => '',
    text: () => 'grüße',
    bytes: () => patterned(100_000),
    blob: () => new Blob([patterned(70_000)]),
    stream: () => new Blob([patterned(200_000)]).stream(),
  }
  const { client, multiplexed } = await open(t, way, (request) => new Response(make[new URL(request.url).pathname.slice(1)]?.() ?? null))
  for (const [name, body] of Object.entries(make)) {
    const expected = new Uint8Array(await new globalThis.Response(body()).arrayBuffer())
    const got = await client.ask({ path: `/${name}` })
    assert.equal(sha256(got.body), sha256(expected), name)
    assert.equal(
      got.headers['content-length'],
      name === 'stream' || (name === 'none' && multiplexed) ? undefined : `${expected.length}`,
      name,
    )
    const head = await client.ask({ path: `/${name}`, method: 'HEAD' })
    assert.equal(head.body.length, 0)
    if (name !== 'none') assert.equal(head.headers['content-length'], got.headers['content-length'], name)
  }
})

overAll('cookies that come apart are one', async (t, way) => {
  const { client } = await open(t, way, (request) => {
    const pairs = [...request.headers].filter(([name]) => name === 'cookie')
    return Response.json([request.headers.get('cookie'), pairs], {
      headers: [
        ['set-cookie', 'x=1'],
        ['set-cookie', 'y=2'],
      ],
    })
  })
  const answer = await client.ask({ headers: { cookie: ['a=1', 'b=2', 'c=3'] } })
  assert.deepEqual(JSON.parse(answer.body.toString()), ['a=1; b=2; c=3', [['cookie', 'a=1; b=2; c=3']]])
  assert.deepEqual(answer.headers['set-cookie'], ['x=1', 'y=2'])
})

overAll('trailers travel both ways', async (t, way) => {
  const { client } = await open(t, way, async (request) => {
    const text = await request.text()
    const sum = (await request.trailers).get('x-sum')
    return new Response(`${text}!`, { trailers: { 'x-sum': `${sum} and more` } })
  })
  const answer = await client.ask({ method: 'POST', body: 'hello', trailers: { 'x-sum': '42' } })
  assert.equal(answer.body.toString(), 'hello!')
  assert.equal(answer.trailers['x-sum'], '42 and more')
})

overAll('early hints come before the response', async (t, way) => {
  const { client } = await open(t, way, async (_request, context) => {
    context.sendInformational(103, { link: '</a.css>; rel=preload' })
    await new Promise((resolve) => setImmediate(resolve))
    context.sendInformational(102)
    return new Response('done')
  })
  const answer = await client.ask()
  assert.deepEqual(answer.informational, ['103 </a.css>; rel=preload', '102'])
  assert.equal(answer.body.toString(), 'done')
})

overAll('100 is sent when the body is first read, and not at all when it is not', async (t, way) => {
  const { client, server } = await open(t, way, async (request) => {
    if (new URL(request.url).pathname === '/refuse') return new Response('no', { status: 403 })
    return new Response(await request.text())
  })
  const wanted = client.start({ method: 'POST', path: '/', headers: { expect: '100-continue', 'content-length': '5' } }, false)
  await wanted.continued
  wanted.out.end('hello')
  const { status, content } = await wanted.response
  assert.equal(status, 200)
  assert.equal((await content.toArray()).join(''), 'hello')

  const refused = client.start({ method: 'POST', path: '/refuse', headers: { expect: '100-continue', 'content-length': '5' } }, false)
  const answer = await refused.response
  assert.deepEqual([answer.status, (await answer.content.toArray()).join(''), refused.informational], [403, 'no', []])
  refused.abort()
  await until(() => server.stats().exchanges === 0, 'the exchange is over')
})

overAll('an expectation that is not known is answered with 417, and the handler is not called', async (t, way) => {
  let called = 0
  const { client, server } = await open(t, way, async (request) => {
    called++
    return new Response(await request.text())
  })
  for (const method of ['GET', 'HEAD', 'POST']) {
    const headers = { expect: '100-continue, the-best', ...(method === 'POST' ? { 'content-length': '5' } : undefined) }
    const talk = client.start({ method, path: '/', headers }, method !== 'POST')
    const { status, content } = await talk.response
    const text = method === 'HEAD' ? '' : 'Expectation Failed\n'
    assert.deepEqual([status, (await content.toArray()).join(''), talk.informational], [417, text, []])
    talk.abort()
  }
  await until(() => server.stats().exchanges === 0, 'the exchanges are over')
  assert.equal(called, 0)
  const answer = await client.ask({ method: 'POST', headers: { expect: '100-CONTINUE' }, body: 'content' })
  assert.deepEqual([answer.status, answer.body.toString(), called], [200, 'content', 1])
})

overAll('a client that goes away aborts the signal and cancels the stream', async (t, way) => {
  const reasons: unknown[] = []
  const { client, server, multiplexed, told } = await open(t, way, (request) => {
    request.signal.addEventListener('abort', () => reasons.push(request.signal.reason))
    if (new URL(request.url).pathname === '/never') return new Promise<Response>(() => {})
    const endless = new ReadableStream({
      pull: async (controller) => {
        await new Promise((resolve) => setTimeout(resolve, 1))
        controller.enqueue(new Uint8Array(1000))
      },
      cancel: (reason) => void reasons.push(reason),
    })
    return new Response(endless)
  })
  const waiting = client.start({ path: '/never' }, true)
  waiting.out.end()
  await until(() => server.stats().exchanges === 1, 'the request')
  waiting.abort()
  await until(() => reasons.length === 1, 'abort')
  const streaming = client.start({ path: '/endless' }, true)
  streaming.out.end()
  const { content } = await streaming.response
  content.resume()
  streaming.abort()
  await until(() => reasons.length === 3, 'abort and cancel')
  for (const reason of reasons) assert.equal((reason as HeddleError).code, multiplexed ? 'PEER_RESET' : (reason as HeddleError).code)
  assert.deepEqual(told, [])
  if (multiplexed) {
    // A request that was sent whole has no stream to reset, but STOP_SENDING.
    const { http2, http3 } = server.stats()
    if (way !== 'h3') assert.deepEqual(http2.resetsReceived, { CANCEL: 2 })
    else assert.deepEqual(http3.resetsReceived, { H3_REQUEST_CANCELLED: 2 })
    assert.equal(server.stats().connections, 1, 'the connection goes on')
    assert.equal((await client.ask({ path: '/never-mind', method: 'HEAD' })).status, 200)
  }
})

overAll('a body that nobody reads hurts nobody', async (t, way) => {
  const { client, server, multiplexed } = await open(t, way, () => new Response('unread'))
  for (let i = 0; i < 20; i++) assert.equal((await client.ask({ method: 'POST', body: 'x'.repeat(i * 100) })).body.toString(), 'unread')
  assert.equal(server.stats().accepted, 1, 'one connection')
  if (!multiplexed) return
  assert.deepEqual(server.stats().http2.resetsSent, {}, 'what was there already needs no reset')
  // Heads and contents may have come apart.
  const earlier = server.stats().http3.resetsSent['H3_NO_ERROR']
  const upload = client.start({ method: 'POST', headers: { 'content-length': '5000000' } }, false)
  upload.out.write(new Uint8Array(1000))
  const { content } = await upload.response
  assert.equal((await content.toArray()).join(''), 'unread')
  await until(() => server.stats().exchanges === 0, 'the stream is over')
  if (way !== 'h3') assert.deepEqual(server.stats().http2.resetsSent, { NO_ERROR: 1 })
  else assert.deepEqual(server.stats().http3.resetsSent, { H3_NO_ERROR: (earlier ?? 0) + 1 })
  assert.equal((await client.ask()).body.toString(), 'unread')
  assert.equal(server.stats().accepted, 1)
})

overAll('5 MB go both ways at once, piece by piece', async (t, way) => {
  const content = patterned(5_000_000)
  const { client } = await open(t, way, (request) => new Response(request.body))
  const talk = client.start({ method: 'POST' }, false)
  let sent = 0
  const send = (): void => {
    while (sent < content.length) {
      const more = talk.out.write(content.subarray(sent, (sent += 50_000)))
      if (!more) return
    }
    talk.out.end()
  }
  talk.out.on('drain', send)
  send()
  const { content: received } = await talk.response
  const hash = createHash('sha256')
  for await (const chunk of received) hash.update(chunk as Buffer)
  assert.equal(hash.digest('hex'), sha256(content))
})

overAll('a request that is not read waits with the client', async (t, way) => {
  let go!: () => void
  const gate = new Promise<void>((resolve) => (go = resolve))
  const { client, server } = await open(
    t,
    way,
    async (request) => {
      await gate
      return new Response(`${(await request.bytes()).length}`)
    },
    { http2: { streamWindow: 100_000 }, http3: { streamWindow: 100_000 } },
  )
  const talk = client.start({ method: 'POST', headers: { 'content-length': '3000000' } }, false)
  talk.out.end(new Uint8Array(3_000_000))
  let before = -1
  while (server.stats().bytesRead !== before) {
    before = server.stats().bytesRead
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.ok(before < 500_000, `${before} bytes were read though nobody wanted them`)
  go()
  const { content } = await talk.response
  assert.equal((await content.toArray()).join(''), '3000000')
})

overAll('maxContentLength holds for every protocol', async (t, way) => {
  let called = 0
  const { client, multiplexed } = await open(
    t,
    way,
    async (request) => {
      called++
      return new Response(await request.text())
    },
    { limits: { maxContentLength: 1000 } },
  )
  assert.equal((await client.ask({ method: 'POST', body: 'x'.repeat(1000) })).status, 200)
  const declared = client.start({ method: 'POST', headers: { 'content-length': '1001' } }, false)
  declared.out.write('x')
  assert.equal((await declared.response).status, 413)
  assert.equal(called, 1, 'a declared length is judged before the handler')
  declared.abort()
  const grown = client.start({ method: 'POST' }, false)
  grown.out.write('x'.repeat(900))
  await new Promise((resolve) => setTimeout(resolve, 20))
  grown.out.write('x'.repeat(900))
  assert.equal((await grown.response).status, 413)
  grown.abort()
  if (multiplexed) assert.equal((await client.ask({ method: 'POST', body: 'fine' })).body.toString(), 'fine')
})

overAll('too many fields are answered with 431', async (t, way) => {
  const { client } = await open(t, way, () => new Response(), { limits: { maxFieldLines: 20 } })
  const headers: Record<string, string> = {}
  for (let i = 0; i < 30; i++) headers[`x-${i}`] = 'v'
  assert.equal((await client.ask({ headers })).status, 431)
})

overAll('what handlers throw is a 500, and what their streams throw breaks the response off', async (t, way) => {
  const { client, told, multiplexed, server } = await open(t, way, (request) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/throw') throw new Error('thrown')
    if (pathname === '/reject') return Promise.reject(new Error('rejected'))
    if (pathname === '/nothing') return undefined as never
    return new Response(
      (async function* content() {
        yield 'a part'
        await new Promise((resolve) => setTimeout(resolve, 10))
        throw new Error('broken')
      })(),
    )
  })
  for (const path of ['/throw', '/reject', '/nothing']) assert.equal((await client.ask({ path })).status, 500)
  await assert.rejects(client.ask({ path: '/broken' }))
  await until(() => told.length === 4, 'onError')
  assert.deepEqual(
    told.map((error) => (error as Error).message),
    ['thrown', 'rejected', 'The fetch handler returned undefined and not a Response.', 'broken'],
  )
  if (way === 'h3') assert.deepEqual(server.stats().http3.resetsSent, { H3_INTERNAL_ERROR: 1 })
  else if (multiplexed) assert.deepEqual(server.stats().http2.resetsSent, { INTERNAL_ERROR: 1 })
})

for (const way of ['h2c', 'h2', 'h3'] as const) {
  test(`CONNECT is answered with 501 (${way})`, { timeout: 20_000, skip: way === 'h3' && noHttp3 }, async (t) => {
    const { client, server } = await open(t, way, () => new Response('called'))
    const answer = await client.start({ method: 'CONNECT', path: 'elsewhere.example:443' }, false).response
    assert.equal(answer.status, 501)
    answer.content.resume()
    await until(() => server.stats().exchanges === 0, 'the exchange is over')
    assert.equal((await client.ask({ method: 'TRACE' })).body.toString(), 'called')
  })
}

overAll('close lets running exchanges end, and cuts them at its deadline', async (t, way) => {
  const answer = Promise.withResolvers<Response>()
  const reasons: unknown[] = []
  const { client, server, multiplexed } = await open(t, way, (request) => {
    request.signal.addEventListener('abort', () => reasons.push(request.signal.reason))
    return answer.promise
  })
  const first = client.start({}, true)
  first.out.end()
  await until(() => server.stats().exchanges === 1, 'the request')
  const closing = server.close({ deadline: 10_000 })
  await new Promise((resolve) => setTimeout(resolve, 5))
  if (multiplexed) await until(() => client.goaways.length >= 1, 'GOAWAY')
  answer.resolve(new Response('the end'))
  const { status, content, headers } = await first.response
  assert.deepEqual([status, (await content.toArray()).join('')], [200, 'the end'])
  if (!multiplexed) assert.equal(headers['connection'], 'close')
  await closing
  assert.equal(server.stats().connections, 0)
  if (multiplexed) assert.ok(client.goaways.every((code) => code === 0))
  assert.equal(reasons.length, 0)

  const again = await open(t, way, (request) => {
    request.signal.addEventListener('abort', () => reasons.push(request.signal.reason))
    return new Promise<Response>(() => {})
  })
  const cut = again.client.start({}, true)
  cut.out.end()
  await until(() => again.server.stats().exchanges === 1, 'the request')
  await again.server.close({ deadline: 20 })
  assert.equal((reasons[0] as HeddleError).code, 'SHUTDOWN')
  await assert.rejects(cut.response)
})
