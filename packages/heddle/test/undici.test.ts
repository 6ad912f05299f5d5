import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server as NodeServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { Client, Response as HeddleResponse, serve, type Server } from 'heddle'
import { makeCertificate } from 'heddle/testing'
import { dispatcher } from 'heddle/undici'
import * as undici from 'undici'

const identity = makeCertificate({ names: ['localhost'] })

/** What the tests ask for, by path. */
async function answer(request: Request): Promise<Response> {
  const url = new URL(request.url)
  switch (url.pathname) {
    case '/echo':
      return new HeddleResponse(request.body, {
        headers: {
          'content-type': request.headers.get('content-type') ?? 'none',
          'x-length': request.headers.get('content-length') ?? 'none',
        },
      }) as unknown as Response
    case '/fields':
      return HeddleResponse.json(Object.fromEntries(request.headers)) as unknown as Response
    case '/gzip':
      return new HeddleResponse(gzipSync('small'), { headers: { 'content-encoding': 'gzip' } }) as unknown as Response
    case '/cookies':
      return new HeddleResponse(null, {
        status: 204,
        headers: [
          ['set-cookie', 'a=1'],
          ['set-cookie', 'b=2'],
        ],
      }) as unknown as Response
    case '/redirect':
      return new HeddleResponse(null, { status: 302, headers: { location: '/query?from=redirect' } }) as unknown as Response
    case '/large':
      return new HeddleResponse(Buffer.alloc(3_000_000, 'x')) as unknown as Response
    case '/never':
      return await new Promise(() => {})
    default:
      return new HeddleResponse(url.search, { trailers: { 'x-sum': '42' } } as never) as unknown as Response
  }
}

for (const protocol of ['h1', 'h2c', 'h2 over TLS'] as const) {
  describe(protocol, () => {
    let server: Server
    let client: Client
    let url: string
    before(async () => {
      server = await serve({
        hostname: 'localhost',
        fetch: answer as never,
        ...(protocol === 'h2 over TLS' ? { tls: identity } : {}),
      })
      url = server.url.replace('127.0.0.1', 'localhost')
      client = new Client({ h2c: protocol === 'h2c', ...(protocol === 'h2 over TLS' ? { tls: { ca: identity.cert } } : {}) })
    })
    after(async () => {
      await client.close()
      await server.close({ deadline: 0 })
    })
    const through = {
      get dispatcher(): never {
        return dispatcher(client)
      },
    }

    test("Node's fetch: bodies both ways, fields, redirects, codings", async () => {
      const echoed = await fetch(`${url}/echo`, { method: 'POST', body: 'héllo', headers: { 'content-type': 'text/x' }, ...through })
      assert.deepEqual([echoed.headers.get('content-type'), echoed.headers.get('x-length'), await echoed.text()], ['text/x', '6', 'héllo'])
      const stream = Readable.toWeb(Readable.from(['a', 'b', 'c'].map((text) => Buffer.from(text)))) as ReadableStream
      const streamed = await fetch(`${url}/echo`, { method: 'POST', body: stream, duplex: 'half', ...through } as RequestInit)
      assert.deepEqual([streamed.headers.get('x-length'), await streamed.text()], ['none', 'abc'])
      const form = new FormData()
      form.set('name', 'value')
      form.set('file', new Blob(['content']), 'file.txt')
      const posted = await (await fetch(`${url}/echo`, { method: 'POST', body: form, ...through })).formData()
      assert.deepEqual([posted.get('name'), await (posted.get('file') as File).text()], ['value', 'content'])
      const fields = (await (await fetch(`${url}/fields`, { headers: { 'X-Own': 'mine' }, ...through })).json()) as Record<string, string>
      assert.equal(fields['x-own'], 'mine')
      assert.equal(fields['host'], new URL(url).host)
      const redirected = await fetch(`${url}/redirect`, through)
      assert.deepEqual([redirected.redirected, await redirected.text()], [true, '?from=redirect'])
      assert.equal(await (await fetch(`${url}/gzip`, through)).text(), 'small')
      assert.deepEqual((await fetch(`${url}/cookies`, through)).headers.getSetCookie(), ['a=1', 'b=2'])
      const { http1, http2 } = client.stats()
      assert.deepEqual([http1.dialled > 0, http2.dialled > 0], protocol === 'h1' ? [true, false] : [false, true])
    })

    test("Node's fetch: a body that is not read is held back; abort and cancel end the request", async () => {
      const large = await fetch(`${url}/large`, through)
      assert.equal((await large.arrayBuffer()).byteLength, 3_000_000)
      const cancelled = await fetch(`${url}/large`, through)
      await cancelled.body?.cancel()
      const controller = new AbortController()
      const aborted = fetch(`${url}/never`, { signal: controller.signal, ...through })
      setTimeout(() => controller.abort(new Error('enough')), 20)
      await assert.rejects(aborted, /enough/)
      while (client.stats().active > 0) await new Promise((resolve) => setTimeout(resolve, 5))
    })

    test("undici's request, stream and pipeline through an instance of its class", async () => {
      const instance = dispatcher(client, undici.Dispatcher)
      assert.ok(instance instanceof undici.Dispatcher)
      const { statusCode, headers, body, trailers } = await undici.request(`${url}/plain`, {
        dispatcher: instance,
        query: { a: [1, 2], b: 'c d' },
      })
      assert.deepEqual([statusCode, await body.text()], [200, '?a=1&a=2&b=c%20d'])
      assert.equal(typeof headers['date'], 'string')
      assert.deepEqual(trailers, { 'x-sum': '42' })
      const raw = await instance.request({ origin: url, path: '/cookies', method: 'GET', responseHeaders: 'raw' })
      await raw.body.dump()
      const cookies = await instance.request({ origin: url, path: '/cookies', method: 'GET' })
      assert.deepEqual(cookies.headers['set-cookie'], ['a=1', 'b=2'])
      await cookies.body.dump()
      const upload = await instance.request({
        origin: url,
        path: '/echo',
        method: 'PUT',
        body: Readable.from(['one ', 'two']),
        headers: ['X-A', '1', 'x-a', '2'],
      })
      assert.equal(await upload.body.text(), 'one two')
      const sink = new PassThrough()
      const collected = new Response(Readable.toWeb(sink) as never).text()
      await instance.stream({ origin: url, path: '/x?y', method: 'GET' }, () => sink)
      assert.equal(await collected, '?y')
      const pipeline = instance.pipeline({ origin: url, path: '/echo', method: 'POST' }, ({ body: response }) => response)
      pipeline.end('through')
      assert.equal(await new Response(Readable.toWeb(pipeline) as never).text(), 'through')
    })

    test("undici's interceptors, composed", async () => {
      const composed = dispatcher(client, undici.Dispatcher).compose(undici.interceptors.redirect({ maxRedirections: 2 }))
      const { body } = await composed.request({ origin: url, path: '/redirect', method: 'GET' })
      assert.equal(await body.text(), '?from=redirect')
      let tries = 0
      const retrying = dispatcher(client, undici.Dispatcher).compose(
        (dispatch) => (options, handler) => {
          tries++
          // It fails twice, as if nobody listened.
          return dispatch(tries <= 2 ? { ...options, origin: 'http://127.0.0.1:1' } : options, handler)
        },
        undici.interceptors.retry({ minTimeout: 1, errorCodes: ['CONNECT_FAILED'] }),
      )
      assert.equal(await (await retrying.request({ origin: url, path: '/x?tried', method: 'GET' })).body.text(), '?tried')
      assert.equal(tries, 3)
      const seen: string[] = []
      const own = dispatcher(client).compose((dispatch) => (options, handler) => {
        seen.push(options.path)
        return dispatch({ ...options, path: '/query?changed' }, handler)
      })
      assert.equal(await (await fetch(`${url}/first`, { dispatcher: own as never })).text(), '?changed')
      assert.deepEqual(seen, ['/first'])
    })
  })
}

describe('what goes wrong', () => {
  test('what a handler is told: unknown hosts, refusals, wrong options, each once and by onResponseError', async () => {
    await using client = new Client({ connectTimeout: 2_000 })
    const own = dispatcher(client)
    const failed = (options: object): Promise<Error> =>
      new Promise((resolve) => {
        own.dispatch(options as never, { onRequestStart() {}, onResponseError: (_controller, error) => resolve(error) })
      })
    const good = { origin: 'http://127.0.0.1:1', path: '/', method: 'GET' }
    assert.equal(((await failed(good)) as NodeJS.ErrnoException).code, 'CONNECT_FAILED')
    for (const [wrong, says] of [
      [{ origin: undefined }, /origin is missing/],
      [{ origin: 'nonsense' }, /origin is no URL: "nonsense"/],
      [{ origin: 'ftp://x' }, /http or https, and is ftp:/],
      [{ path: 'x' }, /begin with a slash/],
      [{ path: 7 }, /path must be a string, and is number/],
      [{ method: 7 }, /method must be a string, and is number/],
      [{ method: 'CONNECT' }, /CONNECT is not supported/],
      [{ upgrade: 'websocket' }, /heddle\/websocket/],
      [{ path: '/?a', query: { b: 1 } }, /in path and in query/],
      [{ headers: ['a'] }, /in turn/],
      [{ headers: [['a', 'b', 'c']] }, /pairs/],
      [{ headers: 'a: b' }, /an object or an array/],
      [{ headers: { 'a b': 'c' } }, /"a b" is no field name/],
      [{ headers: { a: 'b\r\nc: d' } }, /value of a/],
      [{ headers: { 'transfer-encoding': 'chunked' } }, /not the program's/],
      [{ headersTimeout: -1 }, /headersTimeout must be/],
      [{ bodyTimeout: 'soon' }, /bodyTimeout must be/],
    ] as const)
      assert.match((await failed({ ...good, ...wrong })).message, says)
    assert.throws(() => own.dispatch(good, undefined as never), /handler must be an object/)
  })

  test('headersTimeout and bodyTimeout end a request, and a handler that pauses has all the time', async () => {
    const server: NodeServer = createServer((request, response) => {
      if (request.url === '/silent') return
      response.write('begin')
      if (request.url === '/slow') setTimeout(() => response.end('end'), 20)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const client = new Client()
    const instance = dispatcher(client, undici.Dispatcher)
    await assert.rejects(instance.request({ origin, path: '/silent', method: 'GET', headersTimeout: 50 }), { code: 'HEAD_TIMEOUT' })
    const stuck = await instance.request({ origin, path: '/stuck', method: 'GET', bodyTimeout: 50 })
    await assert.rejects(stuck.body.text(), { code: 'BODY_TIMEOUT' })
    const events: string[] = []
    await new Promise<void>((resolve) => {
      dispatcher(client).dispatch(
        { origin, path: '/slow', method: 'GET', bodyTimeout: 50 },
        {
          onRequestStart: () => void events.push('start'),
          onResponseStart: (controller) => {
            controller.pause()
            setTimeout(() => controller.resume(), 200)
          },
          onResponseData: (_controller, chunk) => void events.push(chunk.toString()),
          onResponseEnd: () => resolve(void events.push('over')),
          onResponseError: (_controller, error) => resolve(void events.push(error.message)),
        },
      )
    })
    assert.deepEqual([events[0], events.slice(1, -1).join(''), events.at(-1)], ['start', 'beginend', 'over'])
    client.destroy()
    server.closeAllConnections()
    server.close()
  })

  test('a handler that throws, at any point, ends its request with what it threw', async () => {
    const server = await serve({ hostname: '127.0.0.1', fetch: () => new HeddleResponse('content') })
    await using client = new Client()
    for (const name of ['onRequestStart', 'onResponseStart', 'onResponseData'] as const) {
      const error = await new Promise<Error>((resolve) => {
        dispatcher(client).dispatch(
          { origin: server.url, path: '/', method: 'GET' },
          {
            onRequestStart() {},
            [name]: () => {
              throw new Error(`thrown by ${name}`)
            },
            onResponseError: (_controller, reason) => resolve(reason),
          },
        )
      })
      assert.equal(error.message, `thrown by ${name}`)
    }
    await server.close()
  })

  test('a body that fails, and a request that is aborted before it has a connection', async () => {
    const server = await serve({ hostname: '127.0.0.1', fetch: async (request) => new HeddleResponse(await request.text()) })
    await using client = new Client()
    const instance = dispatcher(client, undici.Dispatcher)
    const broken = Readable.from(
      (async function* () {
        yield 'some'
        throw new Error('the source broke')
      })(),
    )
    await assert.rejects(instance.request({ origin: server.url, path: '/', method: 'POST', body: broken }), /the source broke/)
    const controller = new AbortController()
    const early = instance.request({ origin: server.url, path: '/', method: 'GET', signal: controller.signal })
    controller.abort(new Error('at once'))
    await assert.rejects(early, /at once/)
    await server.close({ deadline: 0 })
  })

  test('handlers in the words of undici 6', async () => {
    const server = await serve({
      hostname: '127.0.0.1',
      fetch: () => new HeddleResponse('x'.repeat(200_000), { trailers: { t: '1' } } as never),
    })
    await using client = new Client()
    const events: string[] = []
    let length = 0
    await new Promise<void>((resolve) => {
      let goOn = (): void => {}
      dispatcher(client).dispatch(
        { origin: server.url, path: '/', method: 'GET' },
        {
          onConnect: () => void events.push('connect'),
          onHeaders: (status, headers, resume, text) => {
            events.push(`${status} ${text} ${headers.map(String).includes('date')}`)
            goOn = resume
          },
          onData: (chunk) => {
            length += chunk.length
            setTimeout(goOn, 1)
            return false
          },
          onComplete: (trailers) => resolve(void events.push(trailers.map(String).join('='))),
          onError: (error) => resolve(void events.push(error.message)),
        },
      )
    })
    assert.deepEqual(events, ['connect', '200 OK true', 't=1'])
    assert.equal(length, 200_000)
    await server.close()
  })

  test("the global dispatcher of Node's fetch", async () => {
    const server = await serve({ hostname: '127.0.0.1', fetch: () => new HeddleResponse('content') })
    const client = new Client()
    const before = undici.getGlobalDispatcher()
    undici.setGlobalDispatcher(dispatcher(client, undici.Dispatcher))
    try {
      assert.equal(await (await fetch(server.url)).text(), 'content')
      assert.equal(await (await undici.fetch(server.url)).text(), 'content')
      assert.equal(client.stats().requests, 2)
    } finally {
      undici.setGlobalDispatcher(before)
    }
    await client.close()
    await server.close()
  })

  test("close and destroy are the client's", async () => {
    const client = new Client()
    const own = dispatcher(client)
    assert.equal(own.closed, false)
    await own.close()
    assert.equal(own.closed, true)
    const error = await new Promise<Error>((resolve) => {
      own.dispatch(
        { origin: 'http://127.0.0.1:1', path: '/', method: 'GET' },
        { onRequestStart() {}, onResponseError: (_controller, reason) => resolve(reason) },
      )
    })
    assert.equal((error as NodeJS.ErrnoException).code, 'USAGE')
    const other = new Client()
    await dispatcher(other).destroy(new Error('no more'))
    assert.throws(() => other.exchange('http://127.0.0.1:1', {} as never))
  })
})
