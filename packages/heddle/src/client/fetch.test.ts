import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { HeddleError, UsageError } from '../http/index.ts'
import { Headers, Request, Response } from '../web/index.ts'
import { acceptEncoding } from './decompress.ts'
import { userAgent } from './fetch-fields.ts'
import { fetch } from './fetch-shared.ts'
import type { FetchInit, FetchInput } from './fetch-init.ts'
import { contentOf, startClient, startServer, testEach, type Answer } from './fetch-server.test.ts'

/** Says what it got. */
const echo: Answer = async (request, response) => {
  const content = await contentOf(request)
  const fields: Record<string, string> = {}
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const name = (request.rawHeaders[i] as string).toLowerCase()
    fields[name] = name in fields ? `${fields[name]} | ${request.rawHeaders[i + 1]}` : (request.rawHeaders[i + 1] as string)
  }
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ method: request.method, url: request.url, fields, content: content.toString('base64') }))
}

interface Echo {
  method: string
  url: string
  fields: Record<string, string>
  content: string
}

// Node's own words about itself, and what only a browser's fetch needs.
const incidental = ['user-agent', 'accept-language', 'accept-encoding', 'sec-fetch-mode', 'connection', 'host']

function comparable(said: Echo): Echo {
  const fields = Object.fromEntries(Object.entries(said.fields).filter(([name]) => !incidental.includes(name)))
  // Two lines or one with a comma: RFC 9110 §5.3 says that it is the same.
  for (const name in fields) fields[name] = (fields[name] as string).replaceAll(' | ', ', ')
  const type = fields['content-type'] ?? ''
  let content = Buffer.from(said.content, 'base64').toString('latin1')
  const boundary = /boundary=(\S+)/.exec(type)?.[1]
  if (boundary !== undefined) {
    content = content.replaceAll(boundary, 'BOUNDARY').toLowerCase()
    fields['content-type'] = type.replace(boundary, 'BOUNDARY')
    // Its length follows from that of the boundary.
    delete fields['content-length']
  }
  return { ...said, fields: Object.fromEntries(Object.entries(fields).sort()), content }
}

function form(): FormData {
  const data = new FormData()
  data.set('plain', 'a\nb"c')
  data.append('file', new File(['content'], 'name "x".txt', { type: 'text/x-test' }))
  data.append('file', new Blob([new Uint8Array([0, 255])]))
  return data
}

const bytes = new Uint8Array([1, 2, 3, 250, 251])

/** Requests that Node's fetch and ours must send alike. Made anew for each: some can be used once. */
const cases: Record<string, () => [path: string, init?: FetchInit]> = {
  'nothing said': () => ['/'],
  'path and query': () => ['/a/b%20c/../d?x=1&y=%C3%BC#fragment'],
  HEAD: () => ['/', { method: 'HEAD' }],
  'lower case method': () => ['/', { method: 'delete' }],
  'own method': () => ['/', { method: 'REPORT' }],
  'patch in lower case stays so': () => ['/', { method: 'PATCH', body: 'x' }],
  'POST without content': () => ['/', { method: 'POST' }],
  'PUT without content': () => ['/', { method: 'PUT' }],
  'DELETE without content': () => ['/', { method: 'DELETE' }],
  'empty string': () => ['/', { method: 'POST', body: '' }],
  string: () => ['/', { method: 'POST', body: 'häuser' }],
  'string with a type of its own': () => ['/', { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } }],
  Uint8Array: () => ['/', { method: 'POST', body: bytes }],
  'part of an ArrayBuffer': () => ['/', { method: 'POST', body: bytes.subarray(1, 3) }],
  ArrayBuffer: () => ['/', { method: 'PUT', body: bytes.buffer }],
  DataView: () => ['/', { method: 'PUT', body: new DataView(bytes.buffer, 2) }],
  'Blob with a type': () => ['/', { method: 'POST', body: new Blob(['blob'], { type: 'text/x-blob' }) }],
  'Blob without a type': () => ['/', { method: 'POST', body: new Blob(['blob']) }],
  URLSearchParams: () => ['/', { method: 'POST', body: new URLSearchParams({ a: '1 2', b: 'ü' }) }],
  FormData: () => ['/', { method: 'POST', body: form() }],
  stream: () => ['/', { method: 'POST', body: new Blob(['one', 'two']).stream(), duplex: 'half' }],
  'headers as an object': () => ['/', { headers: { 'X-One': '1', 'x-two': ' 2 ' } }],
  'headers as pairs': () => [
    '/',
    {
      headers: [
        ['x-one', '1'],
        ['X-One', '2'],
      ],
    },
  ],
  "Node's Headers": () => ['/', { headers: new globalThis.Headers({ 'x-one': '1' }) }],
  'own accept and user-agent': () => ['/', { headers: { accept: 'text/html', 'user-agent': 'me' } }],
  cookies: () => ['/', { headers: { cookie: 'a=1; b=2' } }],
  authorization: () => ['/', { headers: { authorization: 'Basic eDp5' } }],
}

test('what goes on the wire is what Node sends', async (t) => {
  const { url } = await startServer(t, echo)
  const client = startClient(t)
  for (const [name, make] of Object.entries(cases)) {
    const [path, init] = make()
    const [nodePath, nodeInit] = make()
    const ours = await client.fetch(url + path, init)
    const theirs = await globalThis.fetch(url + nodePath, nodeInit as RequestInit)
    assert.equal(ours.status, theirs.status, name)
    assert.equal(ours.url, theirs.url, name)
    assert.equal(ours.headers.get('content-type'), theirs.headers.get('content-type'), name)
    const [said, expected] = [await ours.text(), await theirs.text()]
    if (expected === '') assert.equal(said, '', name)
    else assert.deepEqual(comparable(JSON.parse(said) as Echo), comparable(JSON.parse(expected) as Echo), name)
  }
})

test('the fields that fetch adds', async (t) => {
  assert.match(acceptEncoding, /^gzip, deflate, br(, zstd)?$/)
  const { url } = await startServer(t, echo)
  const client = startClient(t)
  const { fields } = (await (await client.fetch(url)).json()) as Echo
  assert.deepEqual(fields, { host: url.slice(7), accept: '*/*', 'accept-encoding': acceptEncoding, 'user-agent': userAgent })
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  assert.equal(userAgent, `heddle/${manifest.version}`)
  const range = (await (await client.fetch(url, { headers: { range: 'bytes=0-1' } })).json()) as Echo
  assert.equal(range.fields['accept-encoding'], 'identity')
  const raw = (await (await client.fetch(url, { decompress: false })).json()) as Echo
  assert.equal(raw.fields['accept-encoding'], undefined)
})

test('host overrides the authority; fields of the connection are the engine’s business', async (t) => {
  const { url } = await startServer(t, echo)
  const client = startClient(t)
  const headers = {
    host: 'other.example:81',
    connection: 'x-gone',
    'keep-alive': 'timeout=1',
    'transfer-encoding': 'chunked',
    te: 'gzip',
    'x-stays': '1',
  }
  const { fields } = (await (await client.fetch(url, { headers })).json()) as Echo
  assert.equal(fields['host'], 'other.example:81')
  assert.equal(fields['x-stays'], '1')
  for (const name of ['connection', 'keep-alive', 'transfer-encoding', 'te']) assert.equal(fields[name], undefined, name)
  const trailers = (await (await client.fetch(url, { headers: { te: 'trailers' } })).json()) as Echo
  assert.match(trailers.fields['te'] ?? '', /trailers/)
})

testEach('a Request, ours or Node’s, alone and with options over it', async (t) => {
  const { url } = await startServer(t, echo)
  const client = startClient(t)
  for (const Class of [Request, globalThis.Request] as (typeof Request)[]) {
    const request = new Class(`${url}/r?q`, { method: 'PUT', headers: { 'x-a': '1' }, body: 'content' })
    const said = (await (await client.fetch(request)).json()) as Echo
    assert.equal(said.method, 'PUT')
    assert.equal(said.url, '/r?q')
    assert.equal(said.fields['x-a'], '1')
    assert.equal(said.fields['content-type'], 'text/plain;charset=UTF-8')
    assert.equal(Buffer.from(said.content, 'base64').toString(), 'content')
    assert.ok(request.bodyUsed)
    await assert.rejects(client.fetch(request), TypeError)

    const over = (await (
      await client.fetch(new Class(url, { headers: { 'x-a': '1' } }), { method: 'POST', body: 'b', headers: { 'x-b': '2' } })
    ).json()) as Echo
    assert.equal(over.method, 'POST')
    assert.equal(over.fields['x-a'], undefined)
    assert.equal(over.fields['x-b'], '2')
    assert.equal(Buffer.from(over.content, 'base64').toString(), 'b')
  }
})

test('an async iterable of bytes and strings is content', async (t) => {
  const { url } = await startServer(t, echo)
  const client = startClient(t)
  async function* body(): AsyncGenerator<Uint8Array | string> {
    yield 'hä'
    yield new Uint8Array(0)
    yield bytes
  }
  const said = (await (await client.fetch(url, { method: 'POST', body: body(), duplex: 'half' })).json()) as Echo
  assert.equal(said.fields['transfer-encoding'], 'chunked')
  assert.equal(said.content, Buffer.concat([Buffer.from('hä'), bytes]).toString('base64'))
})

testEach('a stream whose length the program states is sent without chunks', async (t) => {
  const { url } = await startServer(t, echo)
  const client = startClient(t)
  const said = (await (
    await client.fetch(url, { method: 'POST', body: new Blob(['123456']).stream(), duplex: 'half', headers: { 'content-length': '6' } })
  ).json()) as Echo
  assert.equal(said.fields['content-length'], '6')
  assert.equal(said.fields['transfer-encoding'], undefined)
})

testEach('bytes are those of the moment of the call', async (t) => {
  const { url } = await startServer(t, echo)
  const client = startClient(t)
  const body = Buffer.from('before')
  const asked = client.fetch(url, { method: 'POST', body })
  body.fill('x')
  assert.equal(Buffer.from(((await (await asked).json()) as Echo).content, 'base64').toString(), 'before')
})

test('the response', async (t) => {
  const { url } = await startServer(t, (_request, response) => {
    response.writeHead(203, 'My Words', [
      ['X-One', '1'],
      ['x-one', '2'],
      ['Set-Cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['content-type', 'application/json'],
    ] as never)
    response.end('{"a":[1,2]}')
  })
  const client = startClient(t)
  const response = await client.fetch(`${url}/x#fragment`)
  assert.ok(response instanceof Response)
  assert.ok(response.headers instanceof Headers)
  assert.equal(response.status, 203)
  assert.equal(response.ok, true)
  assert.equal(response.statusText, 'Non-Authoritative Information')
  assert.equal(response.type, 'basic')
  assert.equal(response.url, `${url}/x`)
  assert.equal(response.redirected, false)
  assert.equal(response.headers.get('x-one'), '1, 2')
  assert.deepEqual(response.headers.getSetCookie(), ['a=1', 'b=2'])
  assert.throws(() => response.headers.set('a', 'b'), TypeError)
  assert.equal(response.bodyUsed, false)
  const clone = response.clone()
  assert.deepEqual(await response.json(), { a: [1, 2] })
  assert.equal(response.bodyUsed, true)
  await assert.rejects(response.text(), TypeError)
  assert.equal(await clone.text(), '{"a":[1,2]}')
})

testEach('every way to read, of a body that came at once and of one that came in pieces', async (t) => {
  const { url } = await startServer(t, (request, response) => {
    response.setHeader('content-type', 'text/x-test')
    if (request.url === '/whole') response.end('häuser')
    else {
      response.write('h')
      setTimeout(() => response.write(Buffer.from('ä').subarray(0, 1)), 5)
      setTimeout(() => response.end(Buffer.concat([Buffer.from('ä').subarray(1), Buffer.from('user')])), 10)
    }
  })
  const client = startClient(t)
  const expected = Buffer.from('häuser')
  for (const path of ['/whole', '/pieces']) {
    const ask = (): Promise<Response> => client.fetch(url + path)
    assert.equal(await (await ask()).text(), 'häuser')
    assert.deepEqual(Buffer.from(await (await ask()).bytes()), expected)
    assert.deepEqual(Buffer.from(await (await ask()).arrayBuffer()), expected)
    const blob = await (await ask()).blob()
    assert.equal(blob.type, 'text/x-test')
    assert.equal(await blob.text(), 'häuser')
    await assert.rejects(async () => (await ask()).json(), SyntaxError)
    const chunks: Uint8Array[] = []
    for await (const chunk of (await ask()).body as AsyncIterable<Uint8Array>) chunks.push(chunk)
    assert.deepEqual(Buffer.concat(chunks), expected)
  }
})

testEach('responses that have no body at all', async (t) => {
  const { url } = await startServer(t, (request, response) => {
    const status = Number((request.url as string).slice(1))
    response.writeHead(status, status === 200 ? { 'content-length': '5', 'content-encoding': 'gzip' } : {})
    response.end(request.method === 'HEAD' || status !== 205 ? undefined : '')
  })
  const client = startClient(t)
  for (const [path, method] of [
    ['/204', 'GET'],
    ['/304', 'GET'],
    ['/205', 'GET'],
    ['/200', 'HEAD'],
  ] as const) {
    const response = await client.fetch(url + path, { method })
    assert.equal(response.body, null, path)
    assert.equal(await response.text(), '', path)
  }
})

testEach('an empty body is a body', async (t) => {
  const { url } = await startServer(t, (_request, response) => response.end())
  const response = await startClient(t).fetch(url)
  assert.notEqual(response.body, null)
  assert.equal(await response.text(), '')
})

testEach('codings are undone, unless the program wants the content as it came', async (t) => {
  const text = 'all the same '.repeat(1_000)
  const { url } = await startServer(t, (request, response) => {
    const coded = zlib.gzipSync(text)
    response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': coded.length })
    if (request.url === '/whole') response.end(coded)
    else {
      response.write(coded.subarray(0, 40))
      setTimeout(() => response.end(coded.subarray(40)), 5)
    }
  })
  const client = startClient(t)
  for (const path of ['/whole', '/pieces']) {
    const response = await client.fetch(url + path)
    assert.equal(await response.text(), text)
    assert.equal(response.headers.get('content-encoding'), 'gzip')
    const chunks: Uint8Array[] = []
    for await (const chunk of (await client.fetch(url + path)).body as AsyncIterable<Uint8Array>) chunks.push(chunk)
    assert.equal(Buffer.concat(chunks).toString(), text)
    const raw = await client.fetch(url + path, { decompress: false })
    assert.equal(zlib.gunzipSync(await raw.bytes()).toString(), text)
  }
})

testEach('content that is not what its coding says', async (t) => {
  const { url } = await startServer(t, (request, response) => {
    response.writeHead(200, { 'content-encoding': request.url === '/tower' ? 'gzip,'.repeat(9) : 'gzip' })
    response.end('this is no gzip')
  })
  const client = startClient(t)
  for (const path of ['/', '/tower']) {
    const response = await client.fetch(url + path)
    assert.equal(response.status, 200)
    await assert.rejects(response.text(), (error: unknown) => error instanceof HeddleError && error.code === 'PROTOCOL_ERROR', path)
  }
})

testEach('trailers, and interim responses', async (t) => {
  const { url } = await startServer(t, (request, response) => {
    if (request.url === '/hints') response.writeEarlyHints({ link: '</a.css>; rel=preload' })
    response.setHeader('trailer', 'x-sum')
    response.write('content')
    response.addTrailers({ 'x-sum': '42' })
    response.end()
  })
  const client = startClient(t)
  const heard: [number, string | null][] = []
  const response = await client.fetch(`${url}/hints`, {
    onInformational: ({ status, headers }) => heard.push([status, headers.get('link')]),
  })
  assert.deepEqual(heard, [[103, '</a.css>; rel=preload']])
  const trailers = response.trailers
  assert.equal(await response.text(), 'content')
  assert.equal((await trailers).get('x-sum'), '42')
  const failure = new Error('the program failed')
  await assert.rejects(
    client.fetch(`${url}/hints`, {
      onInformational: () => {
        throw failure
      },
    }),
    (error) => error === failure,
  )
})

test('idle connections do not keep a program running; closing them properly does', async (t) => {
  const { url } = await startServer(t, echo)
  const door = new URL('../index.ts', import.meta.url).href
  for (const end of ['', 'await client.close(); console.log("closed")']) {
    const program = `import { Client } from '${door}'
      const client = new Client({ limits: { idleTimeout: 600_000 } })
      console.log((await client.fetch('${url}')).status)
      ${end}`
    const flags = ['--conditions=@heddle/source', '--input-type=module', '--eval', program]
    const { stdout, stderr } = await promisify(execFile)(process.execPath, flags, { timeout: 20_000 })
    assert.equal(stdout, end === '' ? '200\n' : '200\nclosed\n')
    assert.equal(stderr, '')
  }
})

test('data: URLs', async () => {
  const response = await fetch('data:text/x-test;base64,aMOk#fragment')
  assert.equal(response.status, 200)
  assert.equal(response.url, 'data:text/x-test;base64,aMOk')
  assert.equal(response.headers.get('content-type'), 'text/x-test')
  assert.equal(await response.text(), 'hä')
  await assert.rejects(fetch('data:nothing'), TypeError)
  await assert.rejects(fetch('data:,x', { signal: AbortSignal.abort('gone') }), (reason) => reason === 'gone')
})

/** Calls that are wrong in themselves. */
const wrong: Record<string, [input: unknown, init?: unknown]> = {
  'no URL': [''],
  'relative URL': ['/path'],
  'other scheme': ['ftp://example.org/'],
  credentials: ['http://user:pass@example.org/'],
  'init no object': ['http://a.example/', 'GET'],
  'method with a space': ['http://a.example/', { method: 'GE T' }],
  CONNECT: ['http://a.example/', { method: 'CONNECT' }],
  TRACE: ['http://a.example/', { method: 'trace' }],
  'body with GET': ['http://a.example/', { body: 'x' }],
  'body with HEAD': ['http://a.example/', { method: 'HEAD', body: 'x' }],
  'field name': ['http://a.example/', { headers: { 'a b': 'c' } }],
  'field value with a line feed': ['http://a.example/', { headers: { a: 'b\nc' } }],
  'field value above latin1': ['http://a.example/', { headers: { a: '\u010a' } }],
  'pair of three': ['http://a.example/', { headers: [['a', 'b', 'c']] }],
  'host that is none': ['http://a.example/', { headers: { host: 'a/b' } }],
  'content-length that lies': ['http://a.example/', { method: 'POST', body: 'four', headers: { 'content-length': '5' } }],
  'content-length that is none': ['http://a.example/', { method: 'POST', body: 'four', headers: { 'content-length': '4, 4' } }],
  'content-length without content': ['http://a.example/', { headers: { 'content-length': '4' } }],
  'stream without duplex': ['http://a.example/', { method: 'POST', body: new ReadableStream() }],
  'iterable without duplex': ['http://a.example/', { method: 'POST', body: (async function* () {})() }],
  duplex: ['http://a.example/', { method: 'POST', body: 'x', duplex: 'full' }],
  redirect: ['http://a.example/', { redirect: 'maybe' }],
  signal: ['http://a.example/', { signal: {} }],
  timeout: ['http://a.example/', { timeout: -1 }],
  'timeout that is none': ['http://a.example/', { timeout: Number.NaN }],
  retries: ['http://a.example/', { retries: 0.5 }],
  integrity: ['http://a.example/', { integrity: 'sha256-abc' }],
  dispatcher: ['http://a.example/', { dispatcher: {} }],
  onInformational: ['http://a.example/', { onInformational: 'log' }],
}

test('wrong arguments reject with TypeError, and nothing is sent', async (t) => {
  const client = startClient(t)
  for (const [name, [input, init]] of Object.entries(wrong)) {
    await assert.rejects(client.fetch(input as FetchInput, init as FetchInit), TypeError, name)
  }
  assert.equal(client.stats().requests, 0)
})

test('what fails on the way rejects with its code', async (t) => {
  const client = startClient(t)
  const { url, server } = await startServer(t, (request) => request.socket.destroy())
  await assert.rejects(
    client.fetch(url, { retries: 0 }),
    (error: unknown) => error instanceof HeddleError && /PEER_CLOSED|PEER_RESET/.test(error.code),
  )
  await new Promise((resolve) => server.close(resolve))
  await assert.rejects(client.fetch(url), (error: unknown) => error instanceof HeddleError && error.code === 'CONNECT_FAILED')
  client.destroy()
  await assert.rejects(client.fetch(url), UsageError)
})

test('the shared fetch is a drop-in; a client for one call', async (t) => {
  const { url } = await startServer(t, echo)
  const dropIn: typeof globalThis.fetch = fetch
  assert.equal((await dropIn(url)).status, 200)
  const client = startClient(t)
  assert.equal((await fetch(url, { client })).status, 200)
  assert.equal(client.stats().requests, 1)
})
