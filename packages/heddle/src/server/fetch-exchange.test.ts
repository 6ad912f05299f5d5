import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CancelReason,
  PeerError,
  requestHead,
  responseHead,
  UsageError,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
} from '../http/index.ts'
import { Response, type Request } from '../web/index.ts'
import { FetchExchange, FetchFace } from './fetch-exchange.ts'
import type { FetchHandler, ServeOptions } from './options.ts'

const connection: ConnectionInfo = {
  id: 7,
  remote: { address: '192.0.2.1', port: 5, family: 'IPv4' },
  local: { address: '2001:db8::1', port: 80, family: 'IPv6' },
  tls: undefined,
}

/** An exchange without an engine: writes down what is sent, and is as writable as the test says. */
class ExchangeDouble implements Exchange {
  readonly protocol = 'h1'
  readonly connection = connection
  handler: ExchangeHandler
  readonly calls: string[] = []
  /** Once each, on the body: the content that was sent. */
  content = ''
  heads: Head[] = []
  ended = false
  writable = true
  consumed = 0

  constructor(make: (exchange: Exchange) => ExchangeHandler) {
    this.handler = make(this)
  }

  sendHead(head: Head, end: boolean): void {
    if (this.heads.some((sent) => sent.status >= 200)) throw new UsageError('the head was sent')
    this.heads.push(head)
    this.calls.push(`head ${head.status}${end ? ' end' : ''}`)
    this.ended ||= end
  }

  sendData(buffer: Uint8Array, start: number, limit: number, end: boolean): boolean {
    this.content += Buffer.from(buffer.subarray(start, limit)).toString()
    this.calls.push(`data ${limit - start}${end ? ' end' : ''}`)
    this.ended ||= end
    return this.writable
  }

  sendOwned(chunk: Uint8Array, end: boolean): boolean {
    return this.sendData(chunk, 0, chunk.length, end)
  }

  sendTrailers(fields: Fields): void {
    this.calls.push(`trailers ${fields.join(' ')}`)
    this.ended = true
  }

  consume(byteCount: number): void {
    this.consumed += byteCount
  }

  discard(): void {
    this.calls.push('discard')
  }

  setPriority(): void {}

  cancel(reason: CancelReason): void {
    this.calls.push(`cancel ${reason}`)
  }

  fieldsOf(status: number): Fields | undefined {
    return this.heads.find((head) => head.status === status)?.fields
  }
}

function begin(fetch: FetchHandler, method = 'GET', end = true, fields: Fields = [], more: Partial<ServeOptions> = {}): ExchangeDouble {
  const face = new FetchFace({ fetch, onError: () => {}, ...more })
  const exchange = new ExchangeDouble((made) => new FetchExchange(face, made))
  exchange.handler.onHead(requestHead(method, 'http', 'example.org', '/a', fields), end)
  return exchange
}

function receive(exchange: ExchangeDouble, text: string, end = false): void {
  exchange.handler.onData(Buffer.from(text), 0, Buffer.byteLength(text), end)
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a string is sent in one go, with its length in bytes', () => {
  const exchange = begin(() => new Response('grüße'))
  assert.deepEqual(exchange.calls, ['head 200', 'data 7 end'])
  assert.equal(exchange.content, 'grüße')
  assert.deepEqual(exchange.fieldsOf(200), ['content-type', 'text/plain;charset=UTF-8', 'content-length', '7'])
})

test('texts of one length in turn, and again and again, are each themselves', () => {
  for (const text of [
    'grüße',
    'grüne',
    'grüße',
    'grüße',
    'grüße',
    '',
    '',
    '',
    'grüne',
    'grüne',
    'grüße',
    'x'.repeat(21),
    'x'.repeat(21),
    'y'.repeat(5),
  ]) {
    const exchange = begin(() => new Response(text))
    assert.equal(exchange.content, text)
    assert.ok(exchange.fieldsOf(200)?.includes(`${Buffer.byteLength(text)}`))
  }
})

test('long strings and lone surrogates are encoded as UTF-8 says', () => {
  for (const text of ['ü'.repeat(5461), 'x'.repeat(5462), '😀'.repeat(10_000), '\ud800', `${'x'.repeat(30)}\ud800`]) {
    const exchange = begin(() => new Response(text))
    assert.equal(exchange.content, text.toWellFormed())
    assert.ok(exchange.fieldsOf(200)?.includes(`${Buffer.byteLength(text.toWellFormed())}`))
  }
})

test('a content-length of the handler is replaced by the true one', () => {
  const exchange = begin(() => new Response('four', { headers: { 'content-length': '400' } }))
  assert.deepEqual(exchange.fieldsOf(200), ['content-type', 'text/plain;charset=UTF-8', 'content-length', '4'])
})

test('a response that is made again has the same head, and any other has its own', () => {
  const headers = { 'content-type': 'text/x-again' }
  const headOf = (text: string, init: object = { headers }): Head => begin(() => new Response(text, init)).heads[0] as Head
  headOf('four')
  headOf('four')
  const known = headOf('four')
  assert.equal(headOf('5678'), known)
  assert.deepEqual(known.fields, ['content-type', 'text/x-again', 'content-length', '4'])
  assert.deepEqual(headOf('five!').fields, ['content-type', 'text/x-again', 'content-length', '5'])
  assert.equal(headOf('four', { headers, status: 201 }).status, 201)
  const changed = new Response('four', { headers })
  changed.headers.append('x-mine', '1')
  const exchange = begin(() => changed)
  assert.deepEqual(exchange.heads[0]?.fields, ['content-type', 'text/x-again', 'x-mine', '1', 'content-length', '4'])
  assert.equal(headOf('four'), known)
})

test('HEAD gets the head that GET would get, and a stream is cancelled', () => {
  assert.deepEqual(begin(() => new Response('four'), 'HEAD').calls, ['head 200 end'])
  assert.ok(
    begin(() => new Response('four'), 'HEAD')
      .fieldsOf(200)
      ?.includes('content-length'),
  )
  assert.ok(
    begin(() => new Response(new Blob(['four'])), 'HEAD')
      .fieldsOf(200)
      ?.includes('4'),
  )
  let cancelled = false
  const stream = new ReadableStream({ cancel: () => void (cancelled = true) })
  assert.deepEqual(begin(() => new Response(stream), 'HEAD').calls, ['head 200 end'])
  assert.equal(cancelled, true)
})

test('no content is a head alone', () => {
  assert.deepEqual(begin(() => new Response(null, { status: 204 })).calls, ['head 204 end'])
  assert.deepEqual(begin(() => new Response('')).calls, ['head 200 end'])
})

test('the stream is read no faster than the client takes it', async () => {
  let pulled = 0
  const stream = new ReadableStream(
    {
      pull(controller) {
        if (++pulled > 3) controller.close()
        else controller.enqueue(Buffer.from(`${pulled}`))
      },
    },
    { highWaterMark: 0 },
  )
  const exchange = begin(() => new Response(stream))
  exchange.writable = false
  await settled()
  assert.equal(exchange.content, '1')
  exchange.handler.onSent(1, false)
  await settled()
  assert.equal(exchange.content, '1')
  exchange.handler.onSent(0, true)
  await settled()
  assert.equal(exchange.content, '12')
  exchange.writable = true
  exchange.handler.onSent(1, true)
  await settled()
  assert.equal(exchange.content, '123')
  assert.equal(exchange.ended, true)
})

test('a stream that fails cuts the response, and is told', async () => {
  const told: unknown[] = []
  const error = new Error('broken')
  async function* chunks(): AsyncGenerator<string> {
    yield 'part'
    throw error
  }
  const exchange = begin(() => new Response(chunks()), 'GET', true, [], { onError: (one, request) => void told.push(one, request?.url) })
  await settled()
  assert.equal(exchange.content, 'part')
  assert.equal(exchange.ended, false)
  assert.deepEqual(exchange.calls.at(-1), `cancel ${CancelReason.InternalError}`)
  assert.deepEqual(told, [error, 'http://example.org/a'])
})

test('a stream that fails at once is answered with what onError gives, and that failing too with a plain 500', async () => {
  const told: unknown[] = []
  const broken = (name: string): Response =>
    new Response(new ReadableStream({ start: (controller) => controller.error(new Error(name)) }), { status: 201 })
  const exchange = begin(() => broken('first'), 'GET', true, [], {
    onError: (error, request) => {
      told.push([(error as Error).message, request?.url])
      return request === undefined ? undefined : broken('second')
    },
  })
  await settled()
  await settled()
  assert.deepEqual(exchange.calls, ['head 500', 'data 22 end'])
  assert.deepEqual(told, [
    ['first', 'http://example.org/a'],
    ['second', undefined],
  ])
})

test('the head of a stream leaves with its first chunk, or at the end of the turn', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  async function* chunks(): AsyncGenerator<string> {
    await promise
    yield 'late'
  }
  const quick = begin(() => new Response(new Blob(['soon']).stream()))
  const slow = begin(() => new Response(chunks()))
  assert.deepEqual([quick.calls, slow.calls], [[], []])
  await settled()
  assert.deepEqual(slow.calls, ['head 200'])
  assert.deepEqual(quick.calls.slice(0, 2), ['head 200', 'data 4'])
  resolve()
  await settled()
  assert.deepEqual(slow.calls, ['head 200', 'data 4', 'data 0 end'])
})

test('a Blob that cannot be read is a 500, however long that takes to know', async () => {
  const blob = new Blob(['text'])
  const { promise, reject } = Promise.withResolvers<Uint8Array>()
  blob.stream = () => new ReadableStream({ pull: async (controller) => controller.enqueue(await promise) }) as never
  const exchange = begin(() => new Response(blob))
  for (let i = 0; i < 5; i++) await settled()
  assert.deepEqual(exchange.calls, [])
  reject(new Error('the file is gone'))
  await settled()
  assert.deepEqual(exchange.calls, ['head 500', 'data 22 end'])
})

test('a client that goes before the head of a stream could leave has the stream cancelled', async () => {
  let reason: unknown
  const stream = new ReadableStream({ cancel: (why) => void (reason = why) })
  const exchange = begin(() => new Response(stream))
  const gone = new PeerError('PEER_CLOSED', 'gone')
  exchange.handler.onClose(gone)
  await settled()
  assert.deepEqual([exchange.calls, reason], [[], gone])
})

test('a head that cannot be sent cancels the stream behind it', async () => {
  let cancelled = false
  const stream = new ReadableStream({ cancel: () => void (cancelled = true) })
  const exchange = begin((_request, { exchange }) => {
    exchange.sendHead(responseHead(204), true)
    return new Response(stream)
  })
  await settled()
  await settled()
  assert.equal(cancelled, true)
  assert.deepEqual(exchange.calls, ['head 204 end', `cancel ${CancelReason.InternalError}`])
})

test('trailers are sent behind the content, without content-length', async () => {
  const exchange = begin(() => new Response('text', { headers: { 'content-length': '4' }, trailers: async () => ({ 'x-hash': '1' }) }))
  await settled()
  assert.deepEqual(exchange.calls, ['head 200', 'data 4', 'trailers x-hash 1'])
  assert.equal(exchange.fieldsOf(200)?.includes('content-length'), false)
})

test('trailers that fail cut the response', async () => {
  const exchange = begin(() => new Response('text', { trailers: () => Promise.reject(new Error('none')) }))
  await settled()
  assert.deepEqual(exchange.calls, ['head 200', 'data 4', `cancel ${CancelReason.InternalError}`])
})

test("Node's Response is sent, with every set-cookie", async () => {
  const native = new globalThis.Response('text', {
    status: 201,
    headers: [
      ['set-cookie', 'a'],
      ['set-cookie', 'b'],
    ],
  })
  const exchange = begin(() => native)
  await settled()
  assert.equal(exchange.content, 'text')
  assert.deepEqual(exchange.fieldsOf(201), ['content-type', 'text/plain;charset=UTF-8', 'set-cookie', 'a', 'set-cookie', 'b'])
})

test('whatever goes wrong in the handler is a 500 and is told', async () => {
  const used = new Response('text')
  await used.text()
  const locked = new globalThis.Response('text')
  locked.body?.getReader()
  const handlers: [string, () => unknown, RegExp][] = [
    ['throws', () => assert.fail('thrown'), /thrown/],
    ['rejects', () => Promise.reject(new Error('rejected')), /rejected/],
    ['nothing', () => undefined, /returned undefined and not a Response/],
    ['null', async () => null, /returned null and not a Response/],
    ['a string', () => 'text', /returned a string and not a Response/],
    ['an object', () => ({ status: 200 }), /returned an object \(Object\) and not a Response/],
    ['a used body', () => used, /unusable/],
    ['a locked body', () => locked, /locked/],
    ['Response.error()', () => Response.error(), /status 0 cannot be sent/],
    ['a status that is none', () => ({ status: 1000, headers: [], body: null }), /status 1000 cannot be sent/],
    ['invalid fields', () => ({ status: 200, headers: [['a b', 'c']], body: null }), /invalid header name/],
  ]
  for (const [name, fetch, message] of handlers) {
    const told: unknown[] = []
    const exchange = begin(fetch as FetchHandler, 'GET', true, [], { onError: (error) => void told.push(error) })
    await settled()
    assert.deepEqual(exchange.calls, ['head 500', 'data 22 end'], name)
    assert.match((told[0] as Error).message, message, name)
    assert.equal(told.length, 1, name)
  }
})

test('onError may answer; when it fails too, the plain 500 is sent', async () => {
  const fetch = (): never => assert.fail('thrown')
  const answered = begin(fetch, 'GET', true, [], {
    onError: async (_error, request) => new Response(`${request?.method} failed`, { status: 503 }),
  })
  await settled()
  assert.deepEqual([answered.calls, answered.content], [['head 503', 'data 10 end'], 'GET failed'])
  const { error } = console
  const printed: unknown[] = []
  console.error = (one) => void printed.push(one)
  try {
    const failed = begin(fetch, 'GET', true, [], { onError: () => Promise.reject(new Error('second')) })
    await settled()
    assert.deepEqual(failed.calls, ['head 500', 'data 22 end'])
    const wrong = begin(fetch, 'GET', true, [], { onError: () => 'text' as never })
    await settled()
    assert.deepEqual(wrong.calls, ['head 500', 'data 22 end'])
  } finally {
    console.error = error
  }
  assert.match(String(printed[0]), /second/)
})

test('content is credited as it is read', async () => {
  let text = ''
  const exchange = begin(
    async (request) => {
      const reader = request.body!.getReader()
      text += Buffer.from((await reader.read()).value!).toString()
      await new Promise(() => {})
      return new Response()
    },
    'POST',
    false,
  )
  receive(exchange, 'one')
  await settled()
  receive(exchange, 'two')
  await settled()
  assert.equal(text, 'one')
  assert.equal(exchange.consumed, 3)
})

test('100 is sent when the content is first read, and only then', async () => {
  let read!: () => void
  const asked = new Promise<void>((resolve) => (read = resolve))
  const exchange = begin(
    async (request) => {
      await asked
      return new Response(await request.text())
    },
    'POST',
    false,
    ['expect', '100-continue', 'content-length', '2'],
  )
  await settled()
  assert.deepEqual(exchange.calls, [])
  read()
  await settled()
  assert.deepEqual(exchange.calls, ['head 100'])
  receive(exchange, 'hi', true)
  await settled()
  assert.deepEqual(exchange.calls, ['head 100', 'head 200', 'data 2 end'])
})

test('no 100 when it was not asked for, content has come already, or the answer is out', async () => {
  const expecting: Fields = ['expect', '100-continue']
  const text: FetchHandler = async (request) => new Response(await request.text())
  const plain = begin(text, 'POST', false)
  receive(plain, 'a', true)
  await settled()
  assert.deepEqual(plain.calls, ['head 200', 'data 1 end'])

  const late = begin(async (request) => (await settled(), text(request, undefined as never)), 'POST', false, expecting)
  receive(late, 'a', true)
  await settled()
  await settled()
  assert.deepEqual(late.calls, ['head 200', 'data 1 end'])

  let request!: Request
  const answered = begin((one) => ((request = one), new Response(null)), 'POST', false, expecting)
  await assert.rejects(request.text(), { code: 'CANCELLED' })
  assert.deepEqual(answered.calls, ['head 200 end', 'discard'])
})

test('what was not read when the response is complete is discarded, and later reads reject', async () => {
  let request!: Request
  const exchange = begin((one) => ((request = one), new Response('done')), 'POST', false)
  assert.deepEqual(exchange.calls, ['head 200', 'data 4 end', 'discard'])
  await assert.rejects(request.text(), { code: 'CANCELLED' })
})

test('a small body that came before the response can still be read after it', async () => {
  let request!: Request
  let answer!: (response: Response) => void
  const exchange = begin((one) => ((request = one), new Promise<Response>((resolve) => (answer = resolve))), 'POST', false)
  receive(exchange, 'all', true)
  answer(new Response('done'))
  await settled()
  assert.deepEqual(exchange.calls, ['head 200', 'data 4 end'])
  exchange.handler.onClose(undefined)
  assert.equal(await request.text(), 'all')
})

test('a client that goes away aborts the signal, cuts the body and frees the response', async () => {
  const gone = new PeerError('PEER_CLOSED', 'the client went away')
  let request!: Request
  let answer!: (response: Response) => void
  const told: unknown[] = []
  const exchange = begin((one) => ((request = one), new Promise<Response>((resolve) => (answer = resolve))), 'POST', false, [], {
    onError: (error) => void told.push(error),
  })
  const { signal } = request
  const read = request.text()
  exchange.handler.onClose(gone)
  assert.equal(signal.reason, gone)
  await assert.rejects(read, gone)
  let cancelled: unknown
  answer(new Response(new ReadableStream({ cancel: (reason) => void (cancelled = reason) })))
  await settled()
  assert.equal(cancelled, gone)
  assert.deepEqual(exchange.calls, [])
  assert.deepEqual(told, [])
})

test('a handler that stops because of that is not told as a failure; another failure is', async () => {
  const gone = new PeerError('PEER_CLOSED', 'the client went away')
  const told: unknown[] = []
  for (const reason of [gone, new DOMException('stopped', 'AbortError'), new Error('bug')]) {
    const exchange = begin(() => settled().then(() => Promise.reject(reason)), 'GET', true, [], {
      onError: (error) => void told.push(error),
    })
    exchange.handler.onClose(gone)
    await settled()
    await settled()
    assert.deepEqual(exchange.calls, [])
  }
  assert.deepEqual(
    told.map((error) => (error as Error).message),
    ['bug'],
  )
})

test('a client that goes away while it is sent to cancels the source', async () => {
  const gone = new PeerError('PEER_CLOSED', 'the client went away')
  let cancelled: unknown
  let request!: Request
  const exchange = begin((one) => {
    request = one
    return new Response(new ReadableStream({ cancel: (reason) => void (cancelled = reason) }))
  })
  await settled()
  exchange.handler.onClose(gone)
  await settled()
  assert.equal(cancelled, gone)
  assert.equal(request.signal.reason, gone)
})

test('the signal of a request that ended well stays quiet', () => {
  let request!: Request
  const exchange = begin((one) => ((request = one), new Response('done')))
  exchange.handler.onClose(undefined)
  assert.equal(request.signal.aborted, false)
})

test('request trailers end the body', async () => {
  const exchange = begin(async (request) => new Response(await request.text()), 'POST', false)
  receive(exchange, 'text')
  exchange.handler.onTrailers(['a', '1'])
  await settled()
  assert.equal(exchange.content, 'text')
})

test('the handler is told of the connection, and may send informational heads', () => {
  const exchange = begin((_request, context) => {
    assert.deepEqual(
      [context.remote, context.local, context.protocol, context.tls, context.connectionId],
      [connection.remote, connection.local, 'h1', undefined, 7],
    )
    context.sendInformational(103, { link: '</a>' })
    assert.throws(() => context.sendInformational(100), UsageError)
    assert.throws(() => context.sendInformational(101), UsageError)
    assert.throws(() => context.sendInformational(200), UsageError)
    return new Response('x')
  })
  assert.deepEqual(exchange.calls, ['head 103', 'head 200', 'data 1 end'])
  assert.deepEqual(exchange.fieldsOf(103), ['link', '</a>'])
})

test('a tunnel is refused, and so is a Host that makes no URL; both without the handler', () => {
  const face = new FetchFace({ fetch: () => assert.fail('called') })
  const tunnel = new ExchangeDouble((made) => new FetchExchange(face, made))
  tunnel.handler.onHead(requestHead('CONNECT', '', 'example.org:443', ''), false)
  assert.deepEqual(tunnel.calls, ['head 501', 'data 16 end', 'discard'])
  const odd = new ExchangeDouble((made) => new FetchExchange(face, made))
  odd.handler.onHead(requestHead('GET', 'http', 'h:99999', '/'), true)
  assert.deepEqual(odd.calls, ['head 400', 'data 12 end'])
})

test('HTTP/1.0 without Host is for the address it came to', () => {
  let url = ''
  const face = new FetchFace({ fetch: (request) => ((url = request.url), new Response()) })
  const exchange = new ExchangeDouble((made) => new FetchExchange(face, made))
  exchange.handler.onHead(requestHead('GET', 'http', '', '/x'), true)
  assert.equal(url, 'http://[2001:db8::1]/x')
})

test('an app object keeps its this', () => {
  class App {
    greeting = 'hello'
    fetch(): Response {
      return new Response(this.greeting)
    }
  }
  const face = new FetchFace({ fetch: new App() })
  const exchange = new ExchangeDouble((made) => new FetchExchange(face, made))
  exchange.handler.onHead(requestHead('GET', 'http', 'h', '/'), true)
  assert.equal(exchange.content, 'hello')
})

test('trailers given as a promise that rejects end nothing but their response', async () => {
  const seen: unknown[] = []
  const note = (reason: unknown): void => void seen.push(reason)
  process.on('unhandledRejection', note)
  try {
    const respond = (): Response => new Response(new ReadableStream(), { trailers: Promise.reject(new Error('not read to its end')) })
    assert.deepEqual(begin(respond, 'HEAD').calls, ['head 200 end'])
    const cut = begin(respond)
    cut.handler.onClose(new PeerError('PEER_CLOSED', 'gone'))
    const gone = begin(() => settled().then(respond))
    gone.handler.onClose(new PeerError('PEER_CLOSED', 'gone'))
    await settled()
    await settled()
    assert.deepEqual(seen, [])
  } finally {
    process.off('unhandledRejection', note)
  }
})

test('cleanup of the program that throws ends nothing', async () => {
  const iterable = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<IteratorResult<string>>(() => {}),
      return(): never {
        throw new Error('cleanup')
      },
    }),
  }
  const source = {
    trailers: [],
    read: () => new Promise<undefined>(() => {}),
    take: () => undefined,
    cancel(): never {
      throw new Error('cleanup')
    },
  }
  for (const body of [iterable, source]) {
    assert.deepEqual(begin(() => new Response(body as never), 'HEAD').calls, ['head 200 end'])
    const cut = begin(() => new Response(body as never))
    cut.handler.onClose(new PeerError('PEER_CLOSED', 'gone'))
    const late = begin(() => settled().then(() => new Response(body as never)))
    late.handler.onClose(new PeerError('PEER_CLOSED', 'gone'))
    await settled()
  }
})

test('a handler that sent a head by itself and then returns or throws has its exchange cancelled', async () => {
  const handlers: FetchHandler[] = [
    (_request, { exchange }) => (exchange.sendHead({ ...requestHead('', '', '', ''), status: 200 }, false), new Response('x')),
    (_request, { exchange }) => {
      exchange.sendHead({ ...requestHead('', '', '', ''), status: 200 }, false)
      throw new UsageError('late')
    },
  ]
  for (const fetch of handlers) {
    const errors: unknown[] = []
    const exchange = begin(fetch, 'GET', true, [], { onError: (error) => void errors.push(error) })
    await settled()
    assert.deepEqual(exchange.calls, ['head 200', `cancel ${CancelReason.InternalError}`])
    assert.equal(errors.length, 1)
    assert.ok(errors[0] instanceof UsageError)
  }
})
