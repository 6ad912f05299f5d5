import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IncomingBody, Response, streamFrom, type BodyInit } from './index.ts'

type Class = typeof Response | typeof globalThis.Response
const both: Class[] = [Response, globalThis.Response]
const nobody = { onBodyWanted(): void {}, onBodyConsumed(): void {}, onBodyCancelled(): void {} }

function arrived(text: string): IncomingBody {
  const body = new IncomingBody(nobody, -1)
  body.push(Buffer.from(text), 0, Buffer.byteLength(text))
  body.end()
  return body
}

async function* pieces(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"a"')
  yield Buffer.from(':1}')
}

function stream(): ReadableStream {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"a"'))
      controller.enqueue(new TextEncoder().encode(':1}'))
      controller.close()
    },
  })
}

/** Every kind of content, made anew at each call: each says {"a":1}. */
const kinds: Record<string, () => BodyInit | null> = {
  string: () => '{"a":1}',
  bytes: () => new TextEncoder().encode('{"a":1}'),
  buffer: () => new TextEncoder().encode('{"a":1}').buffer,
  'slice of a pooled Buffer': () => Buffer.from('{"a":1}'),
  view: () => new DataView(new TextEncoder().encode(' {"a":1}').buffer, 1),
  blob: () => new Blob(['{"a":1}'], { type: 'application/json' }),
  stream,
  iterable: pieces,
}

const methods = {
  text: (message: Response) => message.text(),
  json: (message: Response) => message.json(),
  bytes: async (message: Response) => Buffer.from(await message.bytes()),
  arrayBuffer: async (message: Response) => Buffer.from(await message.arrayBuffer()),
  blob: async (message: Response) => {
    const blob = await message.blob()
    return [blob.type, await blob.text()]
  },
  body: async (message: Response) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of message.body as ReadableStream<Uint8Array>) chunks.push(chunk)
    return Buffer.concat(chunks)
  },
  textStream: async (message: Response) => {
    let text = ''
    for await (const chunk of message.textStream()) text += chunk
    return text
  },
}

for (const [kind, make] of Object.entries(kinds)) {
  for (const [method, read] of Object.entries(methods)) {
    test(`${method} of ${kind} is as in Node`, async () => {
      const [ours, theirs] = await Promise.all(
        both.map(async (Class) => {
          const message = new Class(make() as never) as Response
          const type = message.headers.get('content-type')
          assert.equal(message.bodyUsed, false)
          const result = await read(message)
          assert.equal(message.bodyUsed, true)
          await assert.rejects(message.text(), TypeError)
          assert.throws(() => message.clone(), TypeError)
          assert.equal(message.body?.locked, method !== 'body' && method !== 'textStream')
          return { result, type }
        }),
      )
      assert.deepEqual(ours, theirs)
    })
  }
}

test('no content reads as nothing, as often as asked', async () => {
  for (const Class of both) {
    const message = new Class()
    assert.equal(message.body, null)
    assert.equal(await message.text(), '')
    assert.equal(await message.text(), '')
    assert.equal((await message.bytes()).length, 0)
    assert.equal(message.bodyUsed, false)
    await assert.rejects(message.json(), SyntaxError)
  }
})

test('any string, with lone surrogates and byte order marks, is encoded and read as the standard says', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: fc.oneof(fc.constantFrom('\ufeff', '\ud800', '\udc00', '😀'), fc.string({ maxLength: 3 })) }),
      async (text) => {
        // Not Node's text(): it strips two marks (Encoding §6 "UTF-8 decode" strips one).
        assert.equal(await new Response(text).text(), new TextDecoder().decode(new TextEncoder().encode(text)))
        const [bytes, theirBytes] = await Promise.all(both.map(async (Class) => Buffer.from(await new Class(text).arrayBuffer())))
        assert.deepEqual(bytes, theirBytes)
      },
    ),
  )
})

test('any bytes decode as the standard says', async () => {
  const octet = fc.oneof(fc.constantFrom(0xef, 0xbb, 0xbf, 0xe2, 0x82, 0xf0, 0x9f, 0xc0, 0x80), fc.nat(255))
  await fc.assert(
    fc.asyncProperty(fc.array(octet), async (octets) => {
      const bytes = Uint8Array.from(octets)
      assert.equal(await new Response(bytes).text(), new TextDecoder().decode(bytes))
    }),
    { numRuns: 500 },
  )
})

test('objects of no known kind become strings, as the standard says', async () => {
  for (const odd of [42, {}, true, Symbol.iterator.toString()]) {
    assert.equal(await new Response(odd as never).text(), await new globalThis.Response(odd as never).text())
  }
})

test('URLSearchParams and FormData bring their type and can be parsed again', async () => {
  for (const Class of both) {
    const message = new Class(new URLSearchParams({ a: '1 &', b: 'ü' }) as never)
    assert.equal(message.headers.get('content-type'), 'application/x-www-form-urlencoded;charset=UTF-8')
    assert.deepEqual(
      [...(await message.formData())],
      [
        ['a', '1 &'],
        ['b', 'ü'],
      ],
    )
  }
  const form = new FormData()
  form.append('text\n"', 'a\nb')
  form.append('file', new File(['content'], 'näme".txt', { type: 'text/plain' }))
  form.append('blob', new Blob(['x']))
  const parsed = await Promise.all(
    both.map(async (Class) => {
      const message = new Class(form as never)
      assert.match(message.headers.get('content-type') ?? '', /^multipart\/form-data; boundary=/)
      const entries: unknown[] = []
      for (const [name, value] of (await message.formData()) as FormData) {
        if (typeof value === 'string') entries.push([name, value])
        else entries.push([name, (value as File).name, (value as File).type, await (value as File).text()])
      }
      return entries
    }),
  )
  assert.deepEqual(parsed[0], parsed[1])
  assert.equal(parsed[0]?.length, 3)
})

test('formData of another type rejects with TypeError', async () => {
  for (const Class of both) await assert.rejects(new Class('x').formData() as Promise<unknown>, TypeError)
})

test('what the program gets is its own: changing it does not change the source', async () => {
  const bytes = new Uint8Array([1, 2, 3])
  const got = await new Response(bytes).bytes()
  got[0] = 9
  assert.equal(bytes[0], 1)
  for await (const chunk of new Response(bytes).body as ReadableStream<Uint8Array>) chunk[0] = 9
  assert.deepEqual(bytes, new Uint8Array([1, 2, 3]))
})

test('a stream that is locked, or was read, makes no body', () => {
  for (const Class of both) {
    const locked = stream()
    locked.getReader()
    assert.throws(() => new Class(locked as never), TypeError)
  }
})

test('a reader on body locks out the methods until it is released', async () => {
  for (const Class of both) {
    const message = new Class('text')
    const reader = message.body!.getReader()
    assert.equal(message.bodyUsed, false)
    await assert.rejects(message.text(), TypeError)
    reader.releaseLock()
    assert.equal(await message.text(), 'text')
  }
})

test('cancelling body uses it up', async () => {
  for (const Class of both) {
    const message = new Class('text')
    await message.body!.cancel()
    assert.equal(message.bodyUsed, true)
    await assert.rejects(message.text(), TypeError)
  }
})

test('a stream that fails rejects with its error; one that gives no bytes with TypeError', async () => {
  const error = new Error('broken')
  const failing = new ReadableStream({
    pull() {
      throw error
    },
  })
  await assert.rejects(new Response(failing).text(), error)
  const strings = new ReadableStream({
    start(controller) {
      controller.enqueue('text')
    },
  })
  await assert.rejects(new Response(strings).text(), TypeError)
})

test('an iterable may give strings; anything else is a TypeError; cancel runs its cleanup', async () => {
  let cleaned = false
  async function* mixed(): AsyncGenerator<string | Uint8Array> {
    try {
      yield 'ä'
      yield Buffer.from('b')
      yield 'c'
    } finally {
      cleaned = true
    }
  }
  assert.equal(await new Response(mixed()).text(), 'äbc')
  cleaned = false
  const reader = new Response(mixed()).body!.getReader()
  await reader.read()
  await reader.cancel()
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(cleaned, true)
  async function* bad(): AsyncGenerator<never> {
    yield 5 as never
  }
  await assert.rejects(new Response(bad()).text(), TypeError)
})

test('clones of every kind both give the whole content', async () => {
  for (const [kind, make] of Object.entries(kinds)) {
    const message = new Response(make())
    const clone = message.clone()
    assert.equal(await clone.text(), '{"a":1}', kind)
    assert.equal(message.bodyUsed, false, kind)
    assert.equal(await message.text(), '{"a":1}', kind)
  }
  const received = new Response(arrived('whole') as never)
  const clone = received.clone()
  assert.deepEqual([await received.text(), await clone.text()], ['whole', 'whole'])
})

test('content that has arrived is read without a stream and without waiting for I/O', async () => {
  const message = new Response(arrived('whole') as never)
  let text: string | undefined
  void message.text().then((read) => (text = read))
  for (let i = 0; i < 8; i++) await Promise.resolve()
  assert.equal(text, 'whole')
})

test('dispose cancels what was not read, also under a reader, and leaves what is complete', async () => {
  const reasons: unknown[] = []
  const owner = { ...nobody, onBodyCancelled: (reason: unknown) => void reasons.push(reason) }
  new Response(new IncomingBody(owner, -1) as never)[Symbol.dispose]()
  assert.equal(reasons.length, 1)

  const streamed = new Response(new IncomingBody(owner, -1) as never)
  void streamed.body
  await streamed[Symbol.asyncDispose]()
  assert.equal(reasons.length, 2)

  const locked = new Response(new IncomingBody(owner, -1) as never)
  const read = locked.body!.getReader().read()
  locked[Symbol.dispose]()
  assert.equal(reasons.length, 3)
  await assert.rejects(read, { code: 'CANCELLED' })

  const reading = new Response(new IncomingBody(owner, -1) as never)
  const text = reading.text()
  reading[Symbol.dispose]()
  assert.equal(reasons.length, 4)
  await assert.rejects(text, { code: 'CANCELLED' })

  const whole = arrived('x')
  const complete = new Response(whole as never)
  assert.equal(await complete.text(), 'x')
  complete[Symbol.dispose]()
  assert.equal(reasons.length, 4)
})

test('a stream of a source can be handed to another message', async () => {
  assert.equal(await new Response(streamFrom(arrived('x'))).text(), 'x')
})
