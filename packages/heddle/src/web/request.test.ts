import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestHead } from '../http/index.ts'
import { abortRequest, givenSignal, IncomingBody, Request, requestFields, requestFrom } from './index.ts'

const both = [Request, globalThis.Request] as const
const members = [
  'method',
  'url',
  'destination',
  'referrer',
  'referrerPolicy',
  'mode',
  'credentials',
  'cache',
  'redirect',
  'integrity',
  'keepalive',
  'isReloadNavigation',
  'isHistoryNavigation',
  'duplex',
  'bodyUsed',
] as const

function attempt(make: () => Request | globalThis.Request): unknown {
  try {
    const request = make() as Request
    return [...members.map((name) => [name, request[name]]), [...request.headers], request.body === null, request.signal.aborted]
  } catch (error) {
    return (error as Error).constructor
  }
}

function stream(): ReadableStream {
  return new Blob(['x']).stream()
}

test('the same is made and refused as in Node', () => {
  const inits: (() => [unknown, unknown?])[] = [
    () => ['http://h'],
    () => ['HTTP://H:80/a/../b?c#d'],
    () => [new URL('http://h/é')],
    () => ['/relative'],
    () => ['http://user:secret@h/'],
    () => ['http://h', { method: 'post' }],
    () => ['http://h', { method: 'patch' }],
    () => ['http://h', { method: 'qUERY' }],
    () => ['http://h', { method: 'connect' }],
    () => ['http://h', { method: 'TRACE' }],
    () => ['http://h', { method: 'a b' }],
    () => ['http://h', { method: '' }],
    () => ['http://h', { method: 'constructor' }],
    () => ['http://h', { body: 'x' }],
    () => ['http://h', { method: 'HEAD', body: 'x' }],
    () => ['http://h', { method: 'POST', body: 'x' }],
    () => ['http://h', { method: 'POST', body: null }],
    () => ['http://h', { method: 'POST', body: new URLSearchParams({ a: '1' }), headers: { a: '1' } }],
    () => ['http://h', { method: 'POST', body: stream() }],
    () => ['http://h', { method: 'POST', body: stream(), duplex: 'half' }],
    () => ['http://h', { method: 'POST', body: stream(), duplex: 'full' }],
    () => ['http://h', { headers: { 'bad name': 'x' } }],
    () => ['http://h', { headers: { cookie: 'a=1', host: 'x' } }],
    () => [
      'http://h',
      { redirect: 'error', credentials: 'omit', cache: 'no-store', integrity: 'sha256-x', keepalive: true, mode: 'no-cors' },
    ],
    () => ['http://h', { redirect: 'never' }],
    () => ['http://h', { credentials: 'x' }],
    () => ['http://h', { cache: 'x' }],
    () => ['http://h', { mode: 'x' }],
    () => ['http://h', { mode: 'navigate' }],
    () => ['http://h', { referrerPolicy: 'x' }],
    () => ['http://h', { referrerPolicy: 'origin', referrer: 'http://r/x' }],
    () => ['http://h', { referrer: '' }],
    () => ['http://h', { referrer: 'about:client' }],
    () => ['http://h', { referrer: ':' }],
    () => ['http://h', { cache: 'only-if-cached' }],
    () => ['http://h', { cache: 'only-if-cached', mode: 'same-origin' }],
    () => ['http://h', { window: null }],
    () => ['http://h', { window: 'x' }],
    () => ['http://h', { signal: AbortSignal.abort() }],
    () => ['http://h', { signal: null }],
    () => ['http://h', { signal: 'x' }],
    () => ['http://h', null],
  ]
  for (const make of inits) {
    const [ours, theirs] = both.map((Class) => attempt(() => new (Class as typeof Request)(...(make() as [string, object]))))
    assert.deepEqual(ours, theirs, JSON.stringify(make()))
  }
})

test('a request made of another takes its content over, as in Node', async () => {
  for (const Class of both as unknown as (typeof Request)[]) {
    const first = new Class('http://h/a', { method: 'PUT', headers: { a: '1' }, body: 'text' })
    const second = new Class(first, { headers: { b: '2' } })
    assert.equal(first.bodyUsed, true)
    assert.equal(second.method, 'PUT')
    assert.equal(second.headers.get('a'), null)
    assert.equal(second.headers.get('b'), '2')
    assert.equal(await second.text(), 'text')
    assert.throws(() => new Class(first), TypeError)
    const third = new Class(first, { body: 'new' })
    assert.equal(await third.text(), 'new')
    assert.throws(() => new Class(third, { method: 'GET', body: 'x' }), TypeError)
  }
})

test('a request can be made of one of Node', async () => {
  const native = new globalThis.Request('http://h/a', { method: 'POST', body: 'text', headers: { a: '1' }, redirect: 'manual' })
  const request = new Request(native)
  assert.deepEqual([request.url, request.method, request.headers.get('a'), request.redirect], ['http://h/a', 'POST', '1', 'manual'])
  assert.equal(native.bodyUsed, true)
  assert.equal(await request.text(), 'text')
})

test('signals follow the one that was given', () => {
  for (const Class of both as unknown as (typeof Request)[]) {
    const controller = new AbortController()
    const request = new Class('http://h', { signal: controller.signal })
    const copy = new Class(request)
    const clone = request.clone()
    assert.notEqual(request.signal, controller.signal)
    assert.equal(request.signal, request.signal)
    controller.abort('why')
    for (const one of [request, copy, clone]) assert.equal(one.signal.reason, 'why')
  }
  const { signal } = new AbortController()
  assert.equal(givenSignal(new Request('http://h', { signal })), signal)
  assert.equal(givenSignal(new Request('http://h')), undefined)
})

function received(method = 'GET', path = '/a?b', fields = ['a', '1']): Request {
  const body = method === 'POST' ? new IncomingBody({ onBodyWanted() {}, onBodyConsumed() {}, onBodyCancelled() {} }, -1) : undefined
  body?.push(Buffer.from('text'), 0, 4)
  body?.end(['x-t', '1'])
  return requestFrom(requestHead(method, 'http', 'H', path, fields), 'http://h', body)
}

test('a received request says what its head said', () => {
  const request = received()
  assert.equal(request.url, 'http://h/a?b')
  assert.equal(request.method, 'GET')
  assert.deepEqual(
    [...request.headers],
    [
      ['a', '1'],
      ['host', 'H'],
    ],
  )
  assert.deepEqual(requestFields(received()), ['a', '1'])
  assert.equal(request.body, null)
  assert.equal(request.signal.aborted, false)
})

test('its signal aborts whether it was asked for before or after', () => {
  const before = received()
  const { signal } = before
  abortRequest(before, 'gone')
  abortRequest(before, 'again')
  assert.equal(signal.reason, 'gone')
  const after = received()
  abortRequest(after, 'gone')
  assert.equal(after.signal.reason, 'gone')
  const copied = received()
  const copy = new Request(copied)
  const clone = copied.clone()
  abortRequest(copied, 'gone')
  assert.equal(copy.signal.reason, 'gone')
  assert.equal(clone.signal.reason, 'gone')
})

test('trailers are those received, or none', async () => {
  assert.equal((await received('POST').trailers).get('x-t'), '1')
  assert.equal((await received('POST').clone().trailers).get('x-t'), '1')
  assert.deepEqual([...(await new Request('http://h').trailers)], [])
})

test('toNative shares body and signal', async () => {
  const request = received('POST')
  const native = request.toNative()
  assert.ok(native instanceof globalThis.Request)
  assert.deepEqual([native.method, native.url, native.headers.get('a')], ['POST', 'http://h/a?b', '1'])
  abortRequest(request, 'gone')
  assert.equal(native.signal.reason, 'gone')
  assert.equal(await native.text(), 'text')
  assert.equal(request.bodyUsed, true)
  assert.throws(() => request.toNative(), TypeError)
  assert.equal(received().toNative().body, null)
})

test('clones of a received request both read', async () => {
  const request = received('POST')
  const clone = request.clone()
  assert.deepEqual([await request.text(), await clone.text()], ['text', 'text'])
  assert.equal(clone.url, request.url)
})

test('handlers written for the global Request take ours: the types agree', () => {
  const native: globalThis.Request = received()
  assert.equal(native.url, 'http://h/a?b')
  assert.equal(String(native), '[object Request]')
})
