import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { Client, fetch, Response, serve, type FetchHandler, type Server } from 'heddle'
import { makeCertificate } from 'heddle/testing'

async function start(t: TestContext, handler: FetchHandler): Promise<string> {
  const server: Server = await serve({ port: 0, hostname: '127.0.0.1', fetch: handler })
  t.after(() => server.close({ deadline: 0 }))
  return `http://127.0.0.1:${server.port}`
}

function client(t: TestContext): Client {
  const client = new Client()
  t.after(() => client.destroy())
  return client
}

test('a server may answer with what it fetched', async (t) => {
  const text = 'all the same '.repeat(10_000)
  const coded = zlib.gzipSync(text)
  const origin = await start(t, () => new Response(coded, { headers: { 'content-encoding': 'gzip', 'x-own': '1' } }))
  const inner = client(t)
  const front = await start(t, (request) => inner.fetch(origin, { decompress: !request.url.endsWith('raw') }))
  for (const path of ['decoded', 'raw']) {
    const response = await globalThis.fetch(`${front}/${path}`)
    assert.equal(response.headers.get('content-encoding'), path === 'raw' ? 'gzip' : null)
    assert.equal(response.headers.get('x-own'), '1')
    assert.equal(await response.text(), text)
  }
})

test('a server may pass a request on, and its client’s going away with it', async (t) => {
  let gone: ((why: unknown) => void) | undefined
  const left = new Promise((resolve) => {
    gone = resolve
  })
  const origin = await start(t, async (request) => {
    if (request.method === 'POST') return new Response(`${request.headers.get('x-own')} ${await request.text()}`)
    request.signal.addEventListener('abort', () => gone?.(request.signal.reason))
    await left
    return new Response('late')
  })
  const inner = client(t)
  const front = await start(t, (request) => {
    const { pathname } = new URL(request.url)
    return inner.fetch(`${origin}${pathname}`, {
      method: request.method,
      headers: { 'x-own': request.headers.get('x-own') ?? '' },
      body: request.body,
      duplex: 'half',
      signal: request.signal,
    })
  })
  const echoed = await fetch(`${front}/echo`, { method: 'POST', headers: { 'x-own': 'mine' }, body: 'x'.repeat(300_000) })
  assert.equal(await echoed.text(), `mine ${'x'.repeat(300_000)}`)
  await assert.rejects(fetch(`${front}/wait`, { signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' })
  assert.ok((await left) !== undefined)
})

test('a program that fetches and serves ends when it has closed both', async () => {
  const program = `import { Client, Response, serve } from 'heddle'
    const server = await serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('ok') })
    const client = new Client()
    console.log(await (await client.fetch(server.url)).text())
    await client.close()
    await server.close()`
  const flags = ['--conditions=@heddle/source', '--input-type=module', '--eval', program]
  // A status other than 0, such as that of an unsettled await, rejects.
  const { stdout, stderr } = await promisify(execFile)(process.execPath, flags, { timeout: 20_000 })
  assert.deepEqual([stdout, stderr], ['ok\n', ''])
})

test('both ends of Heddle: a body there and back, and trailers behind it', async (t) => {
  const origin = await start(t, (request) => new Response(request.body, { trailers: { 'x-sum': '3' } }))
  async function* words(): AsyncGenerator<string> {
    yield 'one '
    yield 'two '
    yield 'three'
  }
  const response = await fetch(origin, { method: 'POST', body: words(), duplex: 'half' })
  assert.equal(await response.text(), 'one two three')
  assert.equal((await response.trailers).get('x-sum'), '3')
})

test('a server says which origins it answers for, over HTTP/2', async (t) => {
  const { cert, key } = makeCertificate({ names: ['a.test', 'b.test'] })
  const origins = ['https://a.test', 'https://b.test:8443']
  const server = await serve({ port: 0, hostname: '127.0.0.1', tls: { cert, key }, origins, fetch: () => new Response('') })
  t.after(() => server.close({ deadline: 0 }))
  const session = connect(server.url, { rejectUnauthorized: false, servername: 'a.test' })
  t.after(() => session.destroy())
  const [told] = (await once(session, 'origin')) as [string[]]
  assert.deepEqual(told, origins)
  assert.deepEqual(session.originSet, [`https://a.test:${server.port}`, ...origins])
})
