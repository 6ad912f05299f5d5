/** Small apps of the frameworks people use, over HTTP/1.1 and HTTP/2. They do not know that it is not Node's server. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import express, { type NextFunction, type Request as ExpressRequest, type Response as ExpressResponse } from 'express'
import fastify from 'fastify'
import { serve, type Server } from 'heddle'
import { createServer, nodeListener, type NodeServer, type RequestListener } from 'heddle/node'
import { Hono } from 'hono'
import { streamText } from 'hono/streaming'
import Koa from 'koa'
import { NodeClient, type Answer, type Asked } from '../../heddle/test/node-client.ts'

const quick = { timeout: 30_000 }

type Version = 'h1' | 'h2'

/** Asks once, on a connection of its own. */
async function ask(port: number, version: Version, asked: Asked): Promise<Answer> {
  const client = new NodeClient(port, version === 'h1' ? 'h1' : 'h2c')
  try {
    return await client.ask(asked)
  } finally {
    client.close()
  }
}

const megabyte = Buffer.alloc(1_048_576, 'abcdefgh')

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function overBoth(name: string, story: (t: TestContext, version: Version) => Promise<void>): void {
  for (const version of ['h1', 'h2'] as const) test(`${name} (${version})`, quick, (t) => story(t, version))
}

async function serving(t: TestContext, listener: RequestListener): Promise<Server> {
  const server = await serve({
    hostname: '127.0.0.1',
    onExchange: nodeListener(listener, { onError: (error) => assert.fail(String(error)) }),
  })
  t.after(async () => {
    await server.close({ deadline: 100 })
    const { connections, exchanges } = server.stats()
    assert.deepEqual({ connections, exchanges }, { connections: 0, exchanges: 0 })
  })
  return server
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < end, `waited for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** What every framework is asked, in its own words behind these paths. `sized`: small answers have their length. */
async function commonStory(port: number, version: Version, { sized = true } = {}): Promise<void> {
  const hello = await ask(port, version, { path: '/hello/Ada%20L?x=1&x=2', headers: { cookie: ['a=1', 'b=2'] } })
  assert.equal(hello.status, 200)
  assert.deepEqual(JSON.parse(hello.text), { name: 'Ada L', x: ['1', '2'], cookie: 'a=1; b=2', host: `127.0.0.1:${port}` })
  if (sized) assert.equal(hello.headers['content-length'], `${hello.body.length}`)

  const head = await ask(port, version, { method: 'HEAD', path: '/hello/Ada' })
  assert.deepEqual([head.status, head.body.length], [200, 0])

  for (const streamed of [false, true]) {
    const posted = await ask(port, version, {
      method: 'POST',
      path: '/json',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ list: [1, 2, 3] }),
      streamed,
    })
    assert.deepEqual([posted.status, JSON.parse(posted.text)], [201, { sum: 6 }], streamed ? 'without a length' : 'with its length')
  }
  const broken = await ask(port, version, {
    method: 'POST',
    path: '/json',
    headers: { 'content-type': 'application/json' },
    body: '{"list":',
  })
  assert.equal(broken.status, 400)

  const uploaded = await ask(port, version, {
    method: 'PUT',
    path: '/hash',
    headers: { 'content-type': 'application/octet-stream' },
    body: megabyte,
  })
  assert.equal(uploaded.text, sha256(megabyte))

  const streamed = await ask(port, version, { path: '/stream' })
  assert.equal(sha256(streamed.body), sha256(megabyte))

  const cookies = await ask(port, version, { path: '/cookies' })
  const lines = cookies.headers['set-cookie'] as string[]
  assert.deepEqual(
    lines.map((line) => line.toLowerCase()),
    ['one=1; path=/', 'two=2; path=/'],
  )

  assert.equal((await ask(port, version, { path: '/missing' })).status, 404)
  assert.equal((await ask(port, version, { path: '/fail' })).status, 500)
  const empty = await ask(port, version, { method: 'DELETE', path: '/thing' })
  assert.deepEqual([empty.status, empty.body.length], [204, 0])

  const expected = await ask(port, version, {
    method: 'POST',
    path: '/json',
    headers: { 'content-type': 'application/json', expect: '100-continue' },
    body: JSON.stringify({ list: [4] }),
  })
  assert.deepEqual([expected.status, JSON.parse(expected.text), expected.informational], [201, { sum: 4 }, ['100']])
  // What nobody reads is in nobody's way.
  assert.equal(
    (await ask(port, version, { method: 'POST', path: '/hello/Ada', body: megabyte.subarray(0, 100_000) }).catch(() => ({ status: 404 })))
      .status,
    404,
  )
}

/** Counts an endless stream's end. */
class Endless extends Readable {
  static open = 0

  constructor() {
    super()
    Endless.open++
  }

  override _read(): void {
    setTimeout(() => this.push(Buffer.alloc(10_000)), 1)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    Endless.open--
    done(error)
  }
}

async function abortStory(port: number, version: Version): Promise<void> {
  const before = Endless.open
  const got = await ask(port, version, { path: '/endless', abortAfter: 50_000 })
  assert.ok(got.body.length >= 50_000)
  await until(() => Endless.open === before, 'the source is destroyed when the client leaves')
}

// ── Express 5 ───────────────────────────────────────────────────────────────────────────────────────

interface ExpressApp {
  readonly app: express.Express
  readonly file: string
  readonly closes: string[]
}

async function expressApp(t: TestContext): Promise<ExpressApp> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-express-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'file.txt')
  await writeFile(file, megabyte)
  const closes: string[] = []
  const app = express()
  const listed = express.Router()
  app.set('env', 'test')
  app.use((request, response, next) => {
    response.on('finish', () => closes.push(`finish ${request.url}`))
    response.on('close', () => closes.push(`close ${request.url}`))
    next()
  })
  listed.get('/hello/:name', (request, response) => {
    response.json({ name: request.params.name, x: request.query['x'], cookie: request.headers.cookie, host: request.get('host') })
  })
  app.use(listed)
  app.post('/json', express.json(), (request: ExpressRequest<object, unknown, { list: number[] }>, response) => {
    response.status(201).json({ sum: request.body.list.reduce((sum, one) => sum + one, 0) })
  })
  app.put('/hash', (request, response, next) => {
    const hash = createHash('sha256')
    request.on('data', (chunk: Buffer) => hash.update(chunk))
    request.on('end', () => response.type('text').send(hash.digest('hex')))
    request.on('error', next)
  })
  app.get('/stream', (_request, response) => void Readable.from([megabyte.subarray(0, 500_000), megabyte.subarray(500_000)]).pipe(response))
  app.get('/endless', (_request, response) => {
    const source = new Endless()
    response.on('close', () => source.destroy())
    source.pipe(response)
  })
  app.get('/cookies', (_request, response) => response.cookie('one', '1').cookie('two', '2').end())
  app.get('/file', (_request, response) => response.sendFile(file))
  app.get('/redirect', (_request, response) => response.redirect(303, '/hello/you'))
  app.delete('/thing', (_request, response) => response.sendStatus(204))
  app.get('/fail', async () => Promise.reject(new Error('failed')))
  app.get('/facts', (request, response) => {
    response.send([request.protocol, request.ip, request.secure, request.socket.remotePort === undefined, request.httpVersion].join(' '))
  })
  const mounted = express()
  mounted.get('/inner', (request, response) => response.append('x-inner', '1').append('x-inner', '2').send(request.baseUrl))
  app.use('/mounted', mounted)
  // oxlint-disable-next-line eslint/no-unused-vars -- four parameters make an error handler
  app.use((error: Error & { status?: number }, _request: ExpressRequest, response: ExpressResponse, _next: NextFunction) => {
    response.status(error.status ?? 500).send(error.message)
  })
  return { app, file, closes }
}

overBoth('Express', async (t, version) => {
  const { app, closes } = await expressApp(t)
  const { port } = await serving(t, app as unknown as RequestListener)
  await commonStory(port, version)
  await abortStory(port, version)

  const whole = await ask(port, version, { path: '/file' })
  assert.equal(sha256(whole.body), sha256(megabyte))
  assert.equal(whole.headers['content-length'], '1048576')
  const cached = await ask(port, version, { path: '/file', headers: { 'if-none-match': whole.headers['etag'] as string } })
  assert.deepEqual([cached.status, cached.body.length], [304, 0])
  const part = await ask(port, version, { path: '/file', headers: { range: 'bytes=8-11' } })
  assert.deepEqual([part.status, part.text, part.headers['content-range']], [206, 'abcd', 'bytes 8-11/1048576'])

  const redirect = await ask(port, version, { path: '/redirect' })
  assert.deepEqual([redirect.status, redirect.headers['location']], [303, '/hello/you'])
  assert.equal((await ask(port, version, { path: '/facts' })).text, `http 127.0.0.1 false false ${version === 'h1' ? '1.1' : '2.0'}`)
  const inner = await ask(port, version, { path: '/mounted/inner' })
  assert.deepEqual([inner.text, inner.headers['x-inner']], ['/mounted', '1, 2'])
  await until(() => closes.includes('close /mounted/inner') || closes.includes('close /inner'), 'close')
  const events = closes.filter((line) => line.endsWith('/facts'))
  assert.deepEqual(events, ['finish /facts', 'close /facts'])
})

// ── Koa ─────────────────────────────────────────────────────────────────────────────────────────────

function koaApp(): Koa {
  const app = new Koa()
  app.silent = true
  app.use(async (context, next) => {
    await next()
    context.set('x-after', 'yes')
  })
  app.use(async (context) => {
    const { method, path } = context
    if (path.startsWith('/hello/') && (method === 'GET' || method === 'HEAD')) {
      context.body = { name: decodeURIComponent(path.slice(7)), x: context.query['x'], cookie: context.get('cookie'), host: context.host }
    } else if (path === '/json') {
      const parts: Buffer[] = []
      for await (const part of context.req) parts.push(part as Buffer)
      let list: number[]
      try {
        list = (JSON.parse(Buffer.concat(parts).toString()) as { list: number[] }).list
      } catch {
        return context.throw(400, 'no JSON')
      }
      context.status = 201
      context.body = { sum: list.reduce((sum, one) => sum + one, 0) }
    } else if (path === '/hash') {
      const hash = createHash('sha256')
      for await (const part of context.req) hash.update(part as Buffer)
      context.body = hash.digest('hex')
    } else if (path === '/stream') context.body = Readable.from([megabyte.subarray(0, 500_000), megabyte.subarray(500_000)])
    else if (path === '/endless') context.body = new Endless()
    else if (path === '/cookies') {
      context.cookies.set('one', '1', { httpOnly: false })
      context.cookies.set('two', '2', { httpOnly: false })
      context.body = ''
    } else if (path === '/thing') context.status = 204
    else if (path === '/fail') throw new Error('failed')
  })
  return app
}

overBoth('Koa', async (t, version) => {
  const { port } = await serving(t, koaApp().callback() as unknown as RequestListener)
  await commonStory(port, version)
  await abortStory(port, version)
  const got = await ask(port, version, { path: '/hello/Ada' })
  assert.equal(got.headers['x-after'], 'yes')
})

// ── Fastify ─────────────────────────────────────────────────────────────────────────────────────────

overBoth('Fastify', async (t, version) => {
  let inner: NodeServer | undefined
  const aborts: string[] = []
  const responses: number[] = []
  const app = fastify({
    forceCloseConnections: 'idle',
    serverFactory: (handler) => (inner = createServer({}, handler as unknown as RequestListener)) as never,
  })
  t.after(() => app.close())
  app.addHook('onResponse', async (_request, reply) => void responses.push(reply.statusCode))
  app.addHook('onRequestAbort', async (request) => void aborts.push(request.url))
  app.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload))
  app.get('/hello/:name', (request, reply) => {
    const { name } = request.params as { name: string }
    reply.send({ name, x: (request.query as { x?: string[] }).x, cookie: request.headers.cookie, host: request.host })
  })
  app.post('/json', async (request, reply) => {
    reply.code(201)
    return { sum: (request.body as { list: number[] }).list.reduce((sum, one) => sum + one, 0) }
  })
  app.put('/hash', async (request, reply) => {
    const hash = createHash('sha256')
    for await (const part of request.body as Readable) hash.update(part as Buffer)
    return reply.type('text/plain').send(hash.digest('hex'))
  })
  app.get('/stream', (_request, reply) => reply.send(Readable.from([megabyte.subarray(0, 500_000), megabyte.subarray(500_000)])))
  app.get('/web', (_request, reply) => reply.send(new Blob([megabyte]).stream()))
  app.get('/endless', (_request, reply) => reply.send(new Endless()))
  app.get('/cookies', (_request, reply) => reply.header('set-cookie', ['one=1; Path=/', 'two=2; Path=/']).send())
  app.delete('/thing', (_request, reply) => reply.code(204).send())
  app.get('/fail', async () => Promise.reject(new Error('failed')))
  app.get('/hints', async (_request, reply) => {
    reply.writeEarlyHints({ link: '</a.css>; rel=preload' })
    return 'hinted'
  })
  app.get('/trailers', (_request, reply) => {
    reply.trailer('x-sum', (_reply, _payload, done) => void done(null, '42'))
    reply.send('summed')
  })
  app.get('/facts', async (request) => [request.protocol, request.ip, request.raw.httpVersionMajor].join(' '))
  app.get('/signal', async (request, reply) => {
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
    aborts.push('signal')
    return reply.send('too late')
  })

  const address = await app.listen({ port: 0, host: '127.0.0.1' })
  const port = Number(new URL(address).port)
  assert.equal(inner?.listening, true)
  await commonStory(port, version)
  await abortStory(port, version)
  await until(() => aborts.includes('/endless'), 'onRequestAbort')

  assert.equal(sha256((await ask(port, version, { path: '/web' })).body), sha256(megabyte))
  const hinted = await ask(port, version, { path: '/hints' })
  assert.deepEqual([hinted.text, hinted.informational], ['hinted', ['103 </a.css>; rel=preload']])
  const summed = await ask(port, version, { path: '/trailers' })
  assert.deepEqual([summed.text, summed.trailers['x-sum']], ['summed', '42'])
  assert.equal((await ask(port, version, { path: '/facts' })).text, `http 127.0.0.1 ${version === 'h1' ? 1 : 2}`)
  await until(() => responses.filter((status) => status === 200).length >= 6, 'onResponse')

  const gone = ask(port, version, { path: '/signal', headers: {} })
  gone.catch(() => {})
  await until(() => (inner?.stats()?.exchanges ?? 0) > 0, 'the request')
  inner?.closeAllConnections()
  await until(() => aborts.includes('signal'), 'request.signal')

  await app.close()
  assert.equal(inner?.listening, false)
  assert.equal(inner?.stats()?.connections, 0)
})

// ── Hono ────────────────────────────────────────────────────────────────────────────────────────────

overBoth('Hono', async (t, version) => {
  const app = new Hono()
  app.get('/hello/:name', (c) =>
    c.json({ name: c.req.param('name'), x: c.req.queries('x'), cookie: c.req.header('cookie'), host: c.req.header('host') }),
  )
  app.post('/json', async (c) => {
    const body = await c.req.json<{ list: number[] }>().catch(() => undefined)
    return body === undefined ? c.text('no JSON', 400) : c.json({ sum: body.list.reduce((sum, one) => sum + one, 0) }, 201)
  })
  app.put('/hash', async (c) => c.text(sha256(new Uint8Array(await c.req.arrayBuffer()))))
  app.get('/stream', () => new Response(new Blob([megabyte]).stream()))
  app.get('/endless', () => new Response(Readable.toWeb(new Endless()) as ReadableStream<Uint8Array<ArrayBuffer>>))
  app.get('/text', (c) =>
    streamText(c, async (stream) => {
      for (const part of ['one ', 'two ', 'three']) await stream.write(part)
    }),
  )
  app.get('/cookies', (c) => {
    c.header('set-cookie', 'one=1; Path=/', { append: true })
    c.header('set-cookie', 'two=2; Path=/', { append: true })
    return c.body(null)
  })
  app.delete('/thing', (c) => c.body(null, 204))
  app.get('/fail', () => {
    throw new Error('failed')
  })
  app.onError((_error, c) => c.text('failed', 500))
  const server = await serve({ hostname: '127.0.0.1', fetch: app.fetch })
  t.after(() => server.close({ deadline: 100 }))
  await commonStory(server.port, version, { sized: false })
  await abortStory(server.port, version)
  assert.equal((await ask(server.port, version, { path: '/text' })).text, 'one two three')
})
