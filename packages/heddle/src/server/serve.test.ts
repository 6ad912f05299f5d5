import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { UsageError, type HeddleError } from '../http/index.ts'
import { memoryNow } from '../testing/index.ts'
import { Response, serve, type FetchHandler, type Request, type Server, type ServeOptions } from './index.ts'

const quick = { timeout: 20_000 }

/** Serves on loopback for the length of `use`, and checks that everything is at rest afterwards. */
async function serving(options: ServeOptions | FetchHandler, use: (server: Server, url: string) => Promise<void>): Promise<void> {
  const server = await serve({ hostname: '127.0.0.1', ...(typeof options === 'function' ? { fetch: options } : options) })
  try {
    await use(server, server.url)
  } finally {
    await server.close({ deadline: 2000 })
  }
  const { connections, exchanges, idleConnections, deadlines, handshakes } = server.stats()
  assert.deepEqual(
    { connections, exchanges, idleConnections, deadlines, handshakes },
    { connections: 0, exchanges: 0, idleConnections: 0, deadlines: 0, handshakes: 0 },
  )
}

/** Sends `text` as it is and gives everything that comes until the server closes. */
async function raw(server: Server, text: string): Promise<string> {
  const socket = connect(server.port, '127.0.0.1')
  socket.write(text)
  let answer = ''
  for await (const chunk of socket) answer += (chunk as Buffer).toString('latin1')
  return answer
}

interface Answer {
  status: number
  headers: IncomingMessage['headers']
  rawHeaders: string[]
  body: Buffer
  trailers: IncomingMessage['trailers']
}

/** One request by node:http. */
async function ask(url: string, options: RequestOptions = {}, body: string | Uint8Array | undefined = undefined): Promise<Answer> {
  const request = httpRequest(url, { agent: false, ...options })
  request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return {
    status: response.statusCode as number,
    headers: response.headers,
    rawHeaders: response.rawHeaders,
    body: Buffer.concat(chunks),
    trailers: response.trailers,
  }
}

function patterned(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + (i >>> 8)) & 0xff
  return bytes
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

test('every kind of body arrives whole', quick, async () => {
  const big = patterned(1_000_000)
  const bodies: Record<string, () => ConstructorParameters<typeof Response>[0]> = {
    string: () => 'grüße',
    'long string': () => 'ü'.repeat(300_000),
    empty: () => '',
    bytes: () => Uint8Array.from([0, 1, 2]),
    'many bytes': () => big,
    buffer: () => big.buffer,
    blob: () => new Blob(['blob']),
    'big blob': () => new Blob([big]),
    params: () => new URLSearchParams({ a: 'b c' }),
    stream: () => new Blob([big]).stream(),
    'stream of small chunks': () =>
      new ReadableStream({
        start(controller) {
          for (let i = 0; i < 500; i++) controller.enqueue(Buffer.from(`${i},`))
          controller.close()
        },
      }),
    iterable: async function* iterable() {
      yield 'one'
      await new Promise((resolve) => setImmediate(resolve))
      yield Buffer.from('two')
    } as never,
    none: () => null,
  }
  const make = (name: string): Response => {
    const body = bodies[name]!()
    return new Response(typeof body === 'function' ? (body as () => never)() : body)
  }
  await serving(
    (request) => make(decodeURIComponent(new URL(request.url).pathname.slice(1))),
    async (_server, url) => {
      for (const name of Object.keys(bodies)) {
        const expected = Buffer.from(await make(name).arrayBuffer())
        const answer = await ask(`${url}/${encodeURIComponent(name)}`)
        assert.equal(sha256(answer.body), sha256(expected), name)
        const isStream = name.includes('stream') || name === 'iterable'
        assert.equal(answer.headers['content-length'], isStream ? undefined : `${expected.length}`, name)
        assert.equal(answer.headers['transfer-encoding'], isStream ? 'chunked' : undefined, name)
        const head = await ask(`${url}/${encodeURIComponent(name)}`, { method: 'HEAD' })
        assert.equal(head.body.length, 0, name)
        if (!isStream && name !== 'none') assert.equal(head.headers['content-length'], `${expected.length}`, name)
      }
    },
  )
})

test('Node, as a client and with its own Response, sees what was meant', quick, async () => {
  await serving(
    async (request) => {
      if (request.method === 'GET') return globalThis.Response.json({ url: request.url, agent: request.headers.get('x-agent') })
      return new globalThis.Response(request.body, {
        status: 201,
        headers: [
          ['set-cookie', 'a=1'],
          ['set-cookie', 'b=2'],
        ],
      })
    },
    async (_server, url) => {
      const got = await fetch(`${url}/a?b=c`, { headers: { 'x-agent': 'ü' } })
      assert.deepEqual(await got.json(), { url: `${url}/a?b=c`, agent: 'ü' })
      const put = await fetch(url, { method: 'PUT', body: 'text' })
      assert.deepEqual([put.status, put.headers.getSetCookie(), await put.text()], [201, ['a=1', 'b=2'], 'text'])
    },
  )
})

test('requests of every kind are read', quick, async () => {
  const form = new FormData()
  form.append('name', 'Ada')
  form.append('file', new File([patterned(100_000)], 'f.bin'))
  await serving(
    async (request) => {
      const { pathname } = new URL(request.url)
      if (pathname === '/form') {
        const parsed = await request.formData()
        return Response.json([parsed.get('name'), sha256(new Uint8Array(await (parsed.get('file') as File).arrayBuffer()))])
      }
      if (pathname === '/json') return Response.json(await request.json())
      return new Response(sha256(await request.bytes()))
    },
    async (_server, url) => {
      assert.deepEqual(await (await fetch(`${url}/form`, { method: 'POST', body: form })).json(), ['Ada', sha256(patterned(100_000))])
      assert.deepEqual(await (await fetch(`${url}/json`, { method: 'POST', body: '{"a":[1]}' })).json(), { a: [1] })
      const bytes = await fetch(`${url}/bytes`, { method: 'POST', body: new Blob([patterned(200_000)]).stream(), duplex: 'half' })
      assert.equal(await bytes.text(), sha256(patterned(200_000)))
    },
  )
})

test('10 MB go both ways at once, piece by piece', quick, async () => {
  const size = 10_000_000
  const content = patterned(size)
  await serving(
    (request) => new Response(request.body),
    async (server, url) => {
      const response = await fetch(url, { method: 'POST', body: new Blob([content]).stream(), duplex: 'half' })
      const hash = createHash('sha256')
      for await (const chunk of response.body as ReadableStream<Uint8Array>) hash.update(chunk)
      assert.equal(hash.digest('hex'), sha256(content))
      assert.ok(server.stats().bytesRead > size && server.stats().bytesWritten > size)
    },
  )
})

test('a request whose body nobody reads waits with the client, and is read at full length later', quick, async () => {
  let go!: () => void
  const gate = new Promise<void>((resolve) => (go = resolve))
  await serving(
    async (request) => {
      await gate
      return new Response(`${(await request.bytes()).length}`)
    },
    async (server) => {
      const socket = connect(server.port, '127.0.0.1')
      socket.write('POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 8000000\r\n\r\n')
      socket.write(Buffer.alloc(8_000_000))
      let before = -1
      while (server.stats().bytesRead !== before) {
        before = server.stats().bytesRead
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      assert.ok(before < 400_000, `${before} bytes were read though nobody wanted them`)
      go()
      let answer = ''
      for await (const chunk of socket) answer += String(chunk)
      assert.match(answer, /\r\n\r\n8000000$/)
    },
  )
})

test('a client that does not read holds the source back', quick, async () => {
  let made = 0
  await serving(
    () =>
      new Response(
        new ReadableStream(
          {
            pull(controller) {
              made += 65_536
              controller.enqueue(new Uint8Array(65_536))
              if (made >= 50_000_000) controller.close()
            },
          },
          { highWaterMark: 0 },
        ),
      ),
    async (server) => {
      const socket = connect(server.port, '127.0.0.1')
      socket.pause()
      socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
      let before = -1
      while (made !== before) {
        before = made
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      assert.ok(made < 20_000_000, `${made} bytes were made though nobody reads`)
      socket.destroy()
    },
  )
})

test('one connection serves many requests, pipelined ones in order', quick, async () => {
  await serving(
    async (request) => {
      const { pathname } = new URL(request.url)
      if (pathname === '/slow') await new Promise((resolve) => setTimeout(resolve, 30))
      return new Response(`${pathname} ${await request.text()};`)
    },
    async (server, url) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      for (let i = 0; i < 5; i++) assert.equal((await ask(`${url}/${i}`, { agent, method: 'POST' }, 'x')).body.toString(), `/${i} x;`)
      agent.destroy()
      assert.equal(server.stats().accepted, 1)
      const answer = await raw(
        server,
        'GET /slow HTTP/1.1\r\nhost: h\r\n\r\nPOST /b HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhiGET /c HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n',
      )
      assert.deepEqual(answer.match(/\/\w+ \w*;/g), ['/slow ;', '/b hi;', '/c ;'])
      assert.equal(server.stats().requests, 8)
    },
  )
})

test('204 and 304 have no content and no length of one', quick, async () => {
  await serving(
    (request) =>
      request.url.endsWith('/304')
        ? new Response(null, { status: 304, headers: { etag: '"a"', 'content-length': '5' } })
        : { status: 204, headers: [], body: new Blob(['not to be seen']).stream() },
    async (_server, url) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const unchanged = await ask(`${url}/304`, { agent })
      assert.deepEqual([unchanged.status, unchanged.headers.etag, unchanged.body.length], [304, '"a"', 0])
      const empty = await ask(url, { agent })
      assert.deepEqual(
        [empty.status, empty.headers['content-length'], empty.headers['transfer-encoding'], empty.body.length],
        [204, undefined, undefined, 0],
      )
      agent.destroy()
    },
  )
})

test('a date is added, and one of the handler is kept', quick, async () => {
  await serving(
    (request) => new Response('x', request.url.endsWith('/own') ? { headers: { date: 'Thu, 01 Jan 1970 00:00:00 GMT' } } : {}),
    async (_server, url) => {
      const { date } = (await ask(url)).headers
      assert.ok(Math.abs(Date.parse(`${date}`) - Date.now()) < 3000, `${date}`)
      assert.equal((await ask(`${url}/own`)).headers.date, 'Thu, 01 Jan 1970 00:00:00 GMT')
    },
  )
})

test('Expect: 100-continue is answered when the body is read, and not when it is refused', quick, async () => {
  await serving(
    async (request) => (request.url.endsWith('/no') ? new Response('no', { status: 403 }) : new Response(await request.text())),
    async (server) => {
      const taken = connect(server.port, '127.0.0.1')
      taken.write('POST /yes HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 4\r\nconnection: close\r\n\r\n')
      const [first] = (await once(taken, 'data')) as [Buffer]
      assert.match(first.toString(), /^HTTP\/1\.1 100 /)
      taken.write('text')
      let answer = ''
      for await (const chunk of taken) answer += String(chunk)
      assert.match(answer, /^HTTP\/1\.1 200 [^]*text$/)

      const refused = connect(server.port, '127.0.0.1')
      refused.write('POST /no HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n')
      const [only] = (await once(refused, 'data')) as [Buffer]
      assert.match(only.toString(), /^HTTP\/1\.1 403 /)
      refused.destroy()
    },
  )
})

test('informational responses come before the final one', quick, async () => {
  await serving(
    async (_request, context) => {
      context.sendInformational(103, { link: '</a.css>; rel=preload' })
      await new Promise((resolve) => setTimeout(resolve, 10))
      return new Response('x')
    },
    async (server, url) => {
      const request = httpRequest(url, { agent: false })
      const hints: unknown[] = []
      request.on('information', (information) => hints.push([information.statusCode, information.headers['link']]))
      request.end()
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      response.resume()
      await once(response, 'end')
      assert.deepEqual(hints, [[103, '</a.css>; rel=preload']])
      // RFC 9110 §15.2: never to HTTP/1.0.
      assert.match(await raw(server, 'GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /)
    },
  )
})

test('trailers follow the content, both ways', quick, async () => {
  await serving(
    async (request) => {
      const hash = createHash('sha256')
      async function* content(): AsyncGenerator<Uint8Array> {
        for await (const chunk of request.body ?? []) {
          hash.update(chunk)
          yield chunk
        }
      }
      return new Response(content(), { trailers: () => ({ 'x-hash': hash.digest('hex') }) })
    },
    async (_server, url) => {
      const answer = await ask(url, { method: 'POST' }, 'abc')
      assert.equal(answer.body.toString(), 'abc')
      assert.equal(answer.trailers['x-hash'], sha256(Buffer.from('abc')))
    },
  )
})

test('HTTP/1.0 gets its answer and the end of the connection', quick, async () => {
  await serving(
    (request) => new Response(request.url.endsWith('/stream') ? new Blob(['streamed']).stream() : 'plain'),
    async (server) => {
      assert.match(await raw(server, 'GET / HTTP/1.0\r\n\r\n'), /\r\n\r\nplain$/)
      const streamed = await raw(server, 'GET /stream HTTP/1.0\r\n\r\n')
      assert.match(streamed, /\r\n\r\nstreamed$/)
      assert.doesNotMatch(streamed, /transfer-encoding/i)
    },
  )
})

test('a handler that fails is answered with 500, told, and harms no other request', quick, async () => {
  const told: string[] = []
  await serving(
    {
      fetch(request) {
        if (request.url.endsWith('/throw')) throw new Error('thrown')
        if (request.url.endsWith('/reject')) return Promise.reject(new Error('rejected'))
        if (request.url.endsWith('/odd')) return 'text' as never
        return new Response('fine')
      },
      onError: (error) => void told.push((error as Error).message),
    },
    async (server, url) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      for (const path of ['/throw', '/reject', '/odd']) {
        const answer = await ask(url + path, { agent })
        assert.deepEqual([answer.status, answer.body.toString()], [500, 'Internal Server Error\n'])
      }
      assert.equal((await ask(url, { agent })).body.toString(), 'fine')
      agent.destroy()
      assert.deepEqual(told, ['thrown', 'rejected', 'The fetch handler returned a string and not a Response.'])
      assert.equal(server.stats().accepted, 1)
    },
  )
})

test('a stream that fails cuts the response so that the client sees it', quick, async () => {
  const told: unknown[] = []
  await serving(
    {
      fetch: () =>
        new Response(
          (async function* content() {
            yield 'part'
            await new Promise((resolve) => setTimeout(resolve, 10))
            throw new Error('broken')
          })(),
        ),
      onError: (error) => void told.push((error as Error).message),
    },
    async (_server, url) => {
      await assert.rejects((await fetch(url)).text())
      assert.deepEqual(told, ['broken'])
    },
  )
})

test('a stream with another length than it states is cut, never stretched', quick, async () => {
  const told: unknown[] = []
  await serving(
    {
      fetch: (request) =>
        new Response(new Blob(['four']).stream(), { headers: { 'content-length': request.url.endsWith('/short') ? '5' : '3' } }),
      onError: (error) => void told.push(error),
    },
    async (_server, url) => {
      await assert.rejects((await fetch(`${url}/short`)).text())
      const long = await fetch(`${url}/long`)
        .then((response) => response.text())
        .catch(() => 'cut')
      assert.ok(long === 'fou' || long === 'cut', long)
      assert.equal(told.length, 2)
    },
  )
})

test('a client that goes away aborts the signal and cuts the body', quick, async () => {
  let request!: Request
  let arrived!: () => void
  let began = new Promise<void>((resolve) => (arrived = resolve))
  await serving(
    (one) => {
      request = one
      arrived()
      return new Promise<Response>((_resolve, reject) => one.signal.addEventListener('abort', () => reject(one.signal.reason)))
    },
    async (server) => {
      const socket = connect(server.port, '127.0.0.1')
      socket.write('POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\nhalf')
      await began
      const text = request.text()
      const aborted = once(request.signal, 'abort')
      socket.resetAndDestroy()
      await aborted
      assert.equal(typeof (request.signal.reason as HeddleError).code, 'string')
      await assert.rejects(text, request.signal.reason)

      began = new Promise<void>((resolve) => (arrived = resolve))
      const second = connect(server.port, '127.0.0.1')
      second.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
      await began
      const gone = once(request.signal, 'abort')
      second.resetAndDestroy()
      await gone
    },
  )
})

test('the rest of a request that was answered is drained, and the connection goes on', quick, async () => {
  await serving(
    () => new Response('early'),
    async (server) => {
      const answer = await raw(
        server,
        `POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 100000\r\n\r\n${'x'.repeat(100_000)}GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n`,
      )
      assert.equal(answer.match(/early/g)?.length, 2)
      assert.equal(server.stats().requests, 2)
    },
  )
})

test('too much content is answered with 413, declared or not', quick, async () => {
  await serving(
    { fetch: async (request) => new Response(await request.text()), limits: { maxContentLength: 10 }, onError: () => {} },
    async (server, url) => {
      assert.equal((await ask(url, { method: 'POST' }, 'x'.repeat(10))).status, 200)
      assert.match(await raw(server, 'POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 11\r\n\r\n'), /^HTTP\/1\.1 413 /)
      assert.match(
        await raw(server, `POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nb\r\n${'x'.repeat(11)}\r\n0\r\n\r\n`),
        /^HTTP\/1\.1 413 /,
      )
    },
  )
})

test('what is no request is refused without a word to the handler', quick, async () => {
  await serving(
    () => assert.fail('called'),
    async (server) => {
      assert.match(await raw(server, 'no request\r\n\r\n'), /^HTTP\/1\.1 400 /)
      assert.match(await raw(server, 'GET / HTTP/1.1\r\n\r\n'), /^HTTP\/1\.1 400 /)
      assert.match(await raw(server, 'GET / HTTP/1.1\r\nhost: h:99999\r\nconnection: close\r\n\r\n'), /^HTTP\/1\.1 400 /)
      assert.match(await raw(server, 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n'), /^HTTP\/1\.1 501 /)
    },
  )
})

test('an Upgrade nobody offers is an ordinary request', quick, async () => {
  await serving(
    (request) => new Response(`${request.method} ${request.headers.get('upgrade')}`),
    async (server) => {
      const answer = await raw(server, 'GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n')
      assert.match(answer, /^HTTP\/1\.1 200 [^]*GET null$/)
    },
  )
})

test('a Unix socket serves too', quick, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-'))
  const path = join(folder, 'socket')
  try {
    await serving({ path, fetch: (request, context) => Response.json([request.url, context.remote.family]) }, async (server, url) => {
      assert.equal(url, `unix:${path}`)
      assert.deepEqual([server.port, server.hostname], [0, path])
      const answer = await ask('http://localhost/x', { socketPath: path })
      assert.deepEqual(JSON.parse(answer.body.toString()), ['http://localhost/x', 'unix'])
    })
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('more connections than allowed are dropped and counted', quick, async () => {
  await serving({ fetch: () => new Response('x'), maxConnections: 1 }, async (server, url) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    assert.equal((await ask(url, { agent })).status, 200)
    await assert.rejects(ask(url))
    assert.equal((await ask(url, { agent })).status, 200)
    agent.destroy()
    assert.equal(server.stats().rejected, 1)
  })
})

test('small answers cost one write each', quick, async () => {
  await serving(
    async (request) => (request.url.endsWith('/async') ? (await Promise.resolve(), new Response('x')) : new Response('x')),
    async (server, url) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      for (const path of ['/', '/async']) {
        await ask(url + path, { agent })
        const before = server.stats().writes
        for (let i = 0; i < 10; i++) await ask(url + path, { agent })
        assert.equal(server.stats().writes - before, 10)
      }
      agent.destroy()
    },
  )
})

test('nothing holds a finished exchange, though its connection stands', quick, async () => {
  const finished: WeakRef<object>[] = []
  await serving(
    async (request) => {
      const { pathname } = new URL(request.url)
      const { signal } = request
      const response = new Response(pathname === '/stream' ? new Blob([await request.bytes()]).stream() : await request.text())
      finished.push(new WeakRef(request), new WeakRef(response), new WeakRef(signal))
      return response
    },
    async (server, url) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      for (const path of ['/text', '/stream', '/text']) await ask(url + path, { agent, method: 'POST' }, 'content')
      await memoryNow()
      assert.deepEqual(
        finished.map((one) => one.deref()),
        Array.from({ length: 9 }, () => undefined),
      )
      assert.equal(server.stats().connections, 1)
      agent.destroy()
    },
  )
})

test('options that contradict each other are refused', async () => {
  await assert.rejects(serve({}), UsageError)
  await assert.rejects(serve({ fetch: () => new Response(), onExchange: () => assert.fail() }), UsageError)
  await assert.rejects(serve({ fetch: () => new Response(), upgrades: ['websocket'] }), UsageError)
  await assert.rejects(serve({ fetch: () => new Response(), limits: { maxFieldLine: 3 } as never }), UsageError)
  await assert.rejects(serve({ fetch: () => new Response(), limits: { headTimeout: -1 } }), UsageError)
})

test('a port that is taken rejects with the system error', quick, async () => {
  await serving(
    () => new Response(),
    async (server) => {
      await assert.rejects(serve({ hostname: '127.0.0.1', port: server.port, fetch: () => new Response() }), { code: 'EADDRINUSE' })
    },
  )
})

test('the raw face sees heads, content and trailers, and tunnels', quick, async () => {
  const seen: string[] = []
  await serving(
    {
      upgrades: ['echo'],
      onExchange: (exchange) => ({
        onHead(head, end) {
          seen.push(`${head.method} ${head.protocol} ${head.path} ${end}`)
          exchange.sendHead({ ...head, status: 200, fields: [] }, head.method !== 'CONNECT' && end)
        },
        onData(buffer, start, limit, end) {
          exchange.consume(limit - start)
          exchange.sendData(buffer, start, limit, end)
        },
        onTrailers(fields) {
          exchange.sendTrailers(fields)
        },
        onSent() {},
        onPriority() {},
        onClose(error) {
          seen.push(`close ${error?.code}`)
        },
      }),
    },
    async (server) => {
      const socket = connect(server.port, '127.0.0.1')
      socket.write('GET /t HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
      const [head] = (await once(socket, 'data')) as [Buffer]
      assert.match(head.toString(), /^HTTP\/1\.1 101 /)
      socket.write('ping')
      const [echo] = (await once(socket, 'data')) as [Buffer]
      assert.equal(echo.toString(), 'ping')
      socket.end()
      await once(socket, 'close')
      const answer = await raw(
        server,
        'POST /p HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-t: 1\r\n\r\n',
      )
      assert.match(answer, /x-t: 1/)
      assert.deepEqual(seen, ['CONNECT echo /t false', 'close undefined', 'POST  /p false', 'close undefined'])
    },
  )
})

test('a response of Node with gzip content passes through as it is', quick, async () => {
  const zipped = gzipSync('zipped')
  await serving(
    () => new globalThis.Response(zipped, { headers: { 'content-encoding': 'gzip' } }),
    async (_server, url) => {
      assert.equal(await (await fetch(url)).text(), 'zipped')
    },
  )
})
