import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable, Stream } from 'node:stream'
import { after, describe, test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { Client } from 'heddle'
import { dispatcher, type DispatchController, type DispatchHandler, type DispatchOptions } from 'heddle/undici'
import * as undici from 'undici'

/** Node's own server, of either version, and a client for it. */
async function start(
  t: TestContext,
  protocol: 'h1' | 'h2c',
  listener: RequestListener,
  options = {},
): Promise<{ origin: string; client: Client }> {
  const server = protocol === 'h1' ? createServer(listener) : createHttp2Server(listener as never)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new Client({ h2c: protocol === 'h2c', ...options })
  t.after(() => {
    client.destroy()
    if ('closeAllConnections' in server) server.closeAllConnections()
    server.close()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, client }
}

async function idle(client: Client): Promise<void> {
  for (let i = 0; i < 400; i++) {
    const { active, waiting } = client.stats()
    if (active === 0 && waiting === 0) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.fail(`${client.stats().active} active, ${client.stats().waiting} waiting`)
}

/** What a handler was told, and how it ended. */
async function dispatched(client: Client, options: Partial<DispatchOptions>, own: DispatchHandler = {}): Promise<string[]> {
  const events: string[] = []
  await new Promise<void>((resolve) => {
    const also = <Name extends keyof DispatchHandler>(name: Name, ...rest: unknown[]): void =>
      (own[name] as ((...rest: unknown[]) => void) | undefined)?.(...rest)
    dispatcher(client).dispatch({ path: '/', method: 'GET', ...options } as DispatchOptions, {
      onRequestStart: (controller) => {
        events.push('start')
        also('onRequestStart', controller)
      },
      onResponseStart: (controller, status) => {
        events.push(`${status}`)
        also('onResponseStart', controller, status)
      },
      onResponseData: (controller, chunk) => {
        events.push(`${chunk}`)
        also('onResponseData', controller, chunk)
      },
      onResponseEnd: (controller) => {
        events.push('end')
        also('onResponseEnd', controller)
        setTimeout(resolve, 20)
      },
      onResponseError: (_controller, error) => {
        events.push(error.message)
        setTimeout(resolve, 20)
      },
    })
  })
  return events
}

const unhandled: unknown[] = []
const onUncaught = (error: unknown): void => void unhandled.push(error)
process.on('uncaughtException', onUncaught)
after(() => {
  process.off('uncaughtException', onUncaught)
  assert.deepEqual(unhandled, [])
})

for (const protocol of ['h1', 'h2c'] as const) {
  describe(protocol, () => {
    test('whoever aborts, or throws, in a call is told once, after it, and nothing is left running', async (t) => {
      const { origin, client } = await start(t, protocol, (request, response) => {
        request.resume()
        response.writeHead(200, { 'content-type': 'text/plain' })
        response.write('some')
      })
      for (const name of ['onRequestStart', 'onResponseStart', 'onResponseData'] as const) {
        for (const how of ['abort', 'throw'] as const) {
          let inside = false
          const events = await dispatched(client, { origin }, {
            [name]: (controller: DispatchController) => {
              inside = true
              if (how === 'throw') throw new Error('thrown')
              controller.abort(new Error('aborted'))
              controller.abort(new Error('again'))
              inside = false
            },
          } as DispatchHandler)
          assert.deepEqual(events.at(-1), how === 'throw' ? 'thrown' : 'aborted', name)
          assert.equal(events.length, { onRequestStart: 2, onResponseStart: 3, onResponseData: 4 }[name])
          assert.equal(inside, how === 'throw')
        }
      }
      await idle(client)
    })

    test('a handler that pauses and resumes in one call is told what follows after it', async (t) => {
      const { origin, client } = await start(t, protocol, (_request, response) => void response.end('x'.repeat(100_000)))
      let depth = 0
      let deepest = 0
      let length = 0
      const events = await dispatched(
        client,
        { origin },
        {
          onResponseStart: (controller) => {
            controller.pause()
            setTimeout(() => controller.resume(), 30)
          },
          onResponseData: (controller, chunk) => {
            deepest = Math.max(deepest, ++depth)
            controller.pause()
            controller.resume()
            length += chunk.length
            depth--
          },
          onResponseEnd: () => assert.equal(depth, 0),
        },
      )
      assert.deepEqual([deepest, length, events.at(-1)], [1, 100_000, 'end'])
    })

    test('what the handler throws at the end goes to its onResponseError', async (t) => {
      const { origin, client } = await start(t, protocol, (_request, response) => void response.end('x'))
      const events = await dispatched(
        client,
        { origin },
        {
          onResponseEnd: () => {
            throw new Error('not that')
          },
        },
      )
      assert.deepEqual(events, ['start', '200', 'x', 'end', 'not that'])
    })

    test('an early response ends the request while its body is still being sent, and an abort ends that', async (t) => {
      const { origin, client } = await start(t, protocol, (_request, response) => void response.end('early'))
      const body = new PassThrough()
      body.write('x')
      let kept: DispatchController | undefined
      const events = await dispatched(client, { origin, method: 'POST', body }, { onRequestStart: (controller) => (kept = controller) })
      assert.deepEqual(events, ['start', '200', 'early', 'end'])
      kept?.abort(new Error('not told'))
      await idle(client)
      assert.equal(body.destroyed, true)
      assert.equal(events.length, 4)
    })

    test('a stream that breaks before it is read, while it is read, or is destroyed', async (t) => {
      const { origin, client } = await start(
        t,
        protocol,
        (request, response) =>
          void request
            .on('error', () => {})
            .resume()
            .on('end', () => response.end('ok')),
        { maxConnectionsPerOrigin: 1 },
      )
      const instance = dispatcher(client, undici.Dispatcher)
      const waiting = new PassThrough()
      const failed = dispatched(client, { origin, method: 'POST', body: waiting })
      waiting.destroy(new Error('broke early'))
      assert.equal((await failed).at(-1), 'broke early')
      for (const break_ of [(body: PassThrough) => body.destroy(new Error('broke')), (body: PassThrough) => body.destroy()]) {
        const body = new PassThrough()
        body.write('part')
        const request = instance.request({ origin, path: '/', method: 'POST', body })
        setTimeout(break_, 30, body)
        await assert.rejects(request)
      }
      const gone = new PassThrough()
      gone.destroy()
      await assert.rejects(instance.request({ origin, path: '/', method: 'POST', body: gone }))
      await idle(client)
    })

    test('a stream that waits is destroyed with its request', async (t) => {
      const { origin, client } = await start(t, protocol, (request) => void request.on('error', () => {}).resume())
      const body = new PassThrough()
      body.write('part')
      let kept: DispatchController | undefined
      const events = dispatched(client, { origin, method: 'POST', body }, { onRequestStart: (controller) => (kept = controller) })
      setTimeout(() => kept?.abort(new Error('enough')), 30)
      assert.equal((await events).at(-1), 'enough')
      assert.equal(body.destroyed, true)
      await idle(client)
    })

    test('headersTimeout counts from the last of the request that was sent', async (t) => {
      const { origin, client } = await start(t, protocol, (request, response) => {
        request.resume().on('end', () => request.url === '/answers' && response.end('ok'))
      })
      const body = async function* (): AsyncGenerator<string> {
        for (let i = 0; i < 5; i++) {
          await new Promise((resolve) => setTimeout(resolve, 60))
          yield 'x'
        }
      }
      const sent: string[] = []
      const events = await dispatched(
        client,
        { origin, path: '/answers', method: 'POST', body: body(), headersTimeout: 100 },
        { onBodySent: (chunk) => void sent.push(String(chunk)), onRequestSent: () => void sent.push('all') },
      )
      assert.deepEqual([events, sent], [['start', '200', 'ok', 'end'], []])
      const silent = await dispatched(client, { origin, path: '/', method: 'POST', body: body(), headersTimeout: 100 })
      assert.match(silent.at(-1) as string, /for 100 ms/)
      await idle(client)
    })

    test('onBodySent is told every chunk, onRequestSent once', async (t) => {
      const { origin, client } = await start(t, protocol, (request, response) => void request.resume().on('end', () => response.end()))
      const sent: string[] = []
      await new Promise<void>((resolve) => {
        dispatcher(client).dispatch(
          { origin, path: '/', method: 'POST', body: Readable.from(['one', 'two']) },
          {
            onBodySent: (chunk) => void sent.push(Buffer.from(chunk).toString()),
            onRequestSent: () => void sent.push('all'),
            onResponseEnd: () => resolve(),
            onResponseError: () => resolve(),
          },
        )
      })
      assert.deepEqual(sent, ['one', 'two', 'all'])
    })

    test('bodies: forms of undici, old streams, Blobs with their length, nothing', async (t) => {
      const { origin, client } = await start(t, protocol, (request, response) => {
        const { 'content-length': length = 'none', 'content-type': type = 'none' } = request.headers
        response.writeHead(200, { 'x-length': length, 'x-type': type })
        request.pipe(response)
      })
      const instance = dispatcher(client, undici.Dispatcher)
      const post = async (body: unknown, method = 'POST'): Promise<[length: unknown, type: string, text: string]> => {
        const response = await instance.request({ origin, path: '/', method: method as 'POST', body: body as never })
        return [response.headers['x-length'], String(response.headers['x-type']), await response.body.text()]
      }
      const form = new undici.FormData()
      form.set('name', 'value')
      const [length, type, text] = await post(form)
      assert.equal(length, String(text.length))
      assert.match(type, /^multipart\/form-data; boundary=/)
      assert.match(text, /name="name"\r\n\r\nvalue\r\n/)
      const fetched = await undici.fetch(origin, { method: 'POST', body: form, dispatcher: instance })
      assert.match(await fetched.text(), /name="name"\r\n\r\nvalue\r\n/)
      const request = new Request(origin, { method: 'PUT', body: 'of a Request' })
      assert.equal(await (await fetch(request, { dispatcher: dispatcher(client) } as never)).text(), 'of a Request')
      class Old extends Stream {
        resume(): void {
          this.emit('data', Buffer.from('old'))
          this.emit('end')
        }
        pause(): void {}
      }
      assert.deepEqual(await post(new Old()), ['none', 'none', 'old'])
      assert.deepEqual(await post(new Blob(['blob'], { type: 'text/x' })), ['4', 'text/x', 'blob'])
      assert.deepEqual(await post(['a', 'b']), ['none', 'none', 'ab'])
      assert.deepEqual(await post(new Uint8Array([65]).buffer), ['1', 'none', 'A'])
      assert.deepEqual(await post(''), ['0', 'none', ''])
      assert.deepEqual(await post(undefined), ['0', 'none', ''])
      assert.deepEqual(await post(undefined, 'GET'), ['none', 'none', ''])
      for (const wrong of [{ a: 1 }, 7, true])
        await assert.rejects(instance.request({ origin, path: '/', method: 'POST', body: wrong as never }), /body must be bytes.* and is/)
      const headers = { 'content-length': '3' }
      for (const body of ['four', null, new Blob(['x'])])
        await assert.rejects(instance.request({ origin, path: '/', method: 'POST', headers, body: body as never }), /content-length is 3/)
      await assert.rejects(instance.request({ origin, path: '/', method: 'POST', headers, body: Readable.from(['xxxx']) }))
      await idle(client)
    })

    test('HEAD, 204 and 304 end with their head, whatever length they state', async (t) => {
      const { origin, client } = await start(t, protocol, (request, response) => {
        response.writeHead(Number(request.url?.slice(1)), protocol === 'h1' || request.method === 'HEAD' ? { 'content-length': 5 } : {})
        response.end()
      })
      assert.deepEqual(await dispatched(client, { origin, path: '/200', method: 'HEAD' }), ['start', '200', 'end'])
      assert.deepEqual(await dispatched(client, { origin, path: '/204' }), ['start', '204', 'end'])
      assert.deepEqual(await dispatched(client, { origin, path: '/304' }), ['start', '304', 'end'])
      await idle(client)
    })
  })
}

test('a request that waits for a connection is aborted at once', async (t) => {
  const { origin, client } = await start(t, 'h1', () => {}, { maxConnectionsPerOrigin: 1 })
  const instance = dispatcher(client, undici.Dispatcher)
  const running = new AbortController()
  const first = instance.request({ origin, path: '/', method: 'GET', signal: running.signal })
  const waiting = new AbortController()
  const second = instance.request({ origin, path: '/', method: 'GET', signal: waiting.signal })
  const third = fetch(origin, { signal: waiting.signal, dispatcher: dispatcher(client) } as never)
  const settled = Promise.allSettled([second, third])
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(client.stats().waiting, 2)
  waiting.abort(new Error('enough'))
  for (const result of await settled) assert.match(String((result as PromiseRejectedResult).reason), /enough/)
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual([client.stats().active, client.stats().waiting], [1, 0])
  running.abort(new Error('all'))
  await assert.rejects(first, /all/)
  await idle(client)
})

describe("undici's interceptors", () => {
  test('retry: answers that are no good, time limits and bodies that are cut are tried again, of others one is told', async (t) => {
    let count = 0
    const content = 'x'.repeat(1_000)
    const { origin, client } = await start(t, 'h1', (request, response) => {
      count++
      const range = /bytes=(\d+)-/.exec(request.headers.range ?? '')
      if (request.url === '/unavailable') response.writeHead(count < 3 ? 503 : 200).end('well')
      else if (request.url === '/silent') {
        if (count > 1) response.end('well')
      } else if (range === null) {
        response.writeHead(200, { 'content-length': 1_000, etag: '"a"' }).write(content.slice(0, 400))
        setTimeout(() => response.destroy(), 20)
      } else {
        const from = Number(range[1])
        const etag = request.url === '/changed' ? '"b"' : '"a"'
        response
          .writeHead(206, { 'content-range': `bytes ${from}-999/1000`, 'content-length': 1_000 - from, etag })
          .end(content.slice(from))
      }
    })
    const composed = dispatcher(client, undici.Dispatcher).compose(
      undici.interceptors.retry({
        minTimeout: 1,
        maxTimeout: 5,
        errorCodes: ['HEAD_TIMEOUT', 'MESSAGE_TRUNCATED', 'PEER_CLOSED', 'PEER_RESET'],
      }),
    )
    const read = async (path: string): Promise<string> => {
      count = 0
      return (await composed.request({ origin, path, method: 'GET', headersTimeout: 50 })).body.text()
    }
    assert.equal(await read('/unavailable'), 'well')
    assert.equal(count, 3)
    assert.equal(await read('/silent'), 'well')
    assert.equal(await read('/cut'), content)
    await assert.rejects(read('/changed'), /ETag mismatch/)
    await idle(client)
  })

  test('dump: a response that is too large ends its request', async (t) => {
    const { origin, client } = await start(t, 'h1', (request, response) => {
      if (request.url === '/stated') response.writeHead(200, { 'content-length': 100_000 })
      response.write('x'.repeat(request.url === '/small' ? 10 : 50_000))
      if (request.url === '/small') response.end()
    })
    const composed = dispatcher(client, undici.Dispatcher).compose(undici.interceptors.dump({ maxSize: 1_000 }))
    const read = async (path: string): Promise<string> => (await composed.request({ origin, path, method: 'GET' })).body.text()
    assert.equal(await read('/small'), '')
    await assert.rejects(read('/stated'), /larger than maxSize/)
    await assert.rejects(read('/chunks'), /larger than maxSize/)
    await idle(client)
  })

  test('decompress, cache, deduplicate, responseError, and dns for http', async (t) => {
    let count = 0
    const large = 'y'.repeat(3_000_000)
    const { origin, client } = await start(t, 'h1', (request, response) => {
      count++
      if (request.url === '/gzip') response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(large))
      else if (request.url === '/404') response.writeHead(404, { 'content-type': 'text/plain' }).end('not here')
      else if (request.url === '/host') response.end(request.headers.host)
      else response.writeHead(200, { 'cache-control': 'max-age=60' }).end(large)
    })
    const instance = dispatcher(client, undici.Dispatcher)
    const through =
      (interceptor: undici.Dispatcher.DispatchInterceptor) =>
      async (path: string, at = origin) =>
        (await instance.compose(interceptor).request({ origin: at, path, method: 'GET' })).body.text()
    assert.equal(await through(undici.interceptors.decompress())('/gzip'), large)
    const cached = through(undici.interceptors.cache())
    const before = count
    for (let i = 0; i < 3; i++) assert.equal(await cached('/cache'), large)
    assert.equal(count, before + 1)
    const deduplicated = through(undici.interceptors.deduplicate())
    assert.deepEqual(await Promise.all([deduplicated('/x'), deduplicated('/x')]), [large, large])
    await assert.rejects(through(undici.interceptors.responseError())('/404'), { body: 'not here' })
    const lookup = (_origin: unknown, _options: unknown, done: (error: null, records: object[]) => void): void =>
      done(null, [{ address: '127.0.0.1', ttl: 1_000, family: 4 }])
    const named = origin.replace('127.0.0.1', 'name.example')
    const dns = through(undici.interceptors.dns({ lookup: lookup as never }))
    assert.equal(await dns('/host', named), new URL(named).host)
    await assert.rejects(dns('/host', named.replace('http:', 'https:')), /servername is that of the origin, 127\.0\.0\.1/)
    await idle(client)
  })
})
