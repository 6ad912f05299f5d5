import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Response, responseFields, responseFrom } from './index.ts'

const both = [Response, globalThis.Response] as const

function attempt(make: () => Response | globalThis.Response): unknown {
  try {
    const { status, statusText, ok, type, url, redirected, headers } = make()
    return { status, statusText, ok, type, url, redirected, headers: [...headers] }
  } catch (error) {
    return (error as Error).constructor
  }
}

test('the same is made and refused as in Node', () => {
  const inits: [unknown?, unknown?][] = [
    [],
    [undefined, undefined],
    ['text'],
    ['text', { status: 404, statusText: 'Nöt' }],
    [null, { status: 204 }],
    ['text', { status: 204 }],
    ['text', { status: 205 }],
    ['text', { status: 304 }],
    ['', { status: 204 }],
    [null, { status: 199 }],
    [null, { status: 600 }],
    [null, { status: 101 }],
    [null, { status: '201' }],
    [null, { status: 200.9 }],
    [null, { status: Number.NaN }],
    [null, { statusText: 'a\nb' }],
    [null, { statusText: 'Ā' }],
    [null, { headers: { a: '1' } }],
    ['text', { headers: { 'Content-Type': 'x/y' } }],
    [
      'text',
      {
        headers: [
          ['set-cookie', '1'],
          ['set-cookie', '2'],
        ],
      },
    ],
    ['text', { headers: { 'bad name': '1' } }],
    [new Blob(['x'], { type: 'a/b' })],
    [new Blob(['x'])],
    [new Uint8Array(1)],
    ['text', null],
  ]
  for (const [body, init] of inits) {
    const [ours, theirs] = both.map((Class) => attempt(() => new Class(body as never, init as never)))
    assert.deepEqual(ours, theirs, `${JSON.stringify(body)} ${JSON.stringify(init)}`)
  }
})

test('json, redirect and error are as in Node', () => {
  const json: [unknown, unknown?][] = [
    [{ a: 1 }],
    [null],
    ['text', { status: 201, headers: { 'content-type': 'x/y' } }],
    [undefined],
    [1, { status: 204 }],
    [Symbol.iterator],
  ]
  for (const [data, init] of json) {
    const [ours, theirs] = both.map((Class) => attempt(() => Class.json(data, init as never)))
    assert.deepEqual(ours, theirs, String(data))
  }
  const redirects: [string, number?][] = [['http://a/b c'], ['http://a', 308], ['/relative'], ['http://a', 200], ['http://a', 304]]
  for (const [url, status] of redirects) {
    const [ours, theirs] = both.map((Class) => attempt(() => Class.redirect(url, status as never)))
    assert.deepEqual(ours, theirs, url)
  }
  assert.deepEqual(
    attempt(() => Response.error()),
    attempt(() => globalThis.Response.error()),
  )
  for (const Class of both) {
    assert.throws(() => Class.redirect('http://a').headers.set('a', '1'), TypeError)
    assert.throws(() => Class.error().headers.set('a', '1'), TypeError)
  }
})

test('headers given are copied, those asked for belong to the response', () => {
  const given = { a: '1' }
  const response = new Response(null, { headers: given })
  given.a = '2'
  assert.equal(response.headers.get('a'), '1')
  response.headers.set('b', '3')
  assert.deepEqual(responseFields(response), ['a', '1', 'b', '3'])
  assert.equal(response.headers, response.headers)
})

test('a clone has headers of its own', () => {
  const response = new Response('x', { status: 201, headers: { a: '1' } })
  const clone = response.clone()
  clone.headers.set('a', '2')
  assert.equal(response.headers.get('a'), '1')
  assert.equal(clone.status, 201)
})

test('a received response has immutable headers', () => {
  const response = responseFrom(200, 'OK', ['a', '1'], 'text', 'http://h/', true)
  assert.deepEqual(
    attempt(() => response),
    {
      status: 200,
      statusText: 'OK',
      ok: true,
      type: 'basic',
      url: 'http://h/',
      redirected: true,
      headers: [['a', '1']],
    },
  )
  assert.throws(() => response.headers.set('a', '2'), TypeError)
  assert.deepEqual([...new Response(null, response).headers], [['a', '1']])
})

test('toNative shares the body', async () => {
  const response = new Response('text', {
    status: 201,
    statusText: 'Made',
    headers: [
      ['set-cookie', '1'],
      ['set-cookie', '2'],
    ],
  })
  const native = response.toNative()
  assert.ok(native instanceof globalThis.Response)
  assert.deepEqual([native.status, native.statusText, native.headers.getSetCookie()], [201, 'Made', ['1', '2']])
  assert.equal(await native.text(), 'text')
  assert.equal(response.bodyUsed, true)
  assert.throws(() => response.toNative(), TypeError)
  assert.equal(Response.error().toNative().type, 'error')
  assert.equal(new Response(null, { status: 204 }).toNative().body, null)
})

test('Node makes responses of ours, and the types agree', async () => {
  const native: globalThis.Response = new Response('text', { status: 202 })
  const again = new globalThis.Response(native.body, native)
  assert.equal(again.status, 202)
  assert.equal(await again.text(), 'text')
  assert.equal(String(native), '[object Response]')
})

test('trailers are given back, whatever they were made of', async () => {
  const made = [{ a: '1' }, Promise.resolve({ a: '1' }), () => ({ a: '1' }), async () => [['a', '1']] as const]
  for (const trailers of made) assert.equal((await new Response('x', { trailers: trailers as never }).trailers).get('a'), '1')
  assert.deepEqual([...(await new Response('x').trailers)], [])
})
