import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { HeddleError } from '../http/index.ts'
import { contentOf, startClient, startServer, testEach, until } from './fetch-server.test.ts'

const content = randomBytes(10_000_000)
const sum = createHash('sha256').update(content).digest('hex')

async function* pieces(size: number): AsyncGenerator<Uint8Array> {
  // One array filled again and again, as generators like to do.
  const array = new Uint8Array(size)
  for (let at = 0; at < content.length; at += size) {
    const piece = content.subarray(at, at + size)
    array.set(piece)
    yield array.subarray(0, piece.length)
  }
}

function* slices(): Generator<Uint8Array> {
  for (let at = 0; at < content.length; at += 65_536) yield content.subarray(at, at + 65_536)
}

const bodies: Record<string, () => { body: never; duplex?: 'half' }> = {
  bytes: () => ({ body: content as never }),
  Blob: () => ({ body: new Blob([content]) as never }),
  ReadableStream: () => ({ body: ReadableStream.from(pieces(100_000)) as never, duplex: 'half' }),
  'async iterable': () => ({ body: pieces(33_333) as never, duplex: 'half' }),
  'Node stream': () => ({ body: Readable.from(slices()) as never, duplex: 'half' }),
}

for (const [name, make] of Object.entries(bodies)) {
  testEach(`10 MB up from ${name}`, async (t) => {
    const { url } = await startServer(t, async (request, response) => {
      const hash = createHash('sha256')
      for await (const chunk of request) hash.update(chunk as Buffer)
      response.end(hash.digest('hex'))
    })
    const client = startClient(t)
    const response = await client.fetch(url, { method: 'POST', ...make() })
    assert.equal(await response.text(), sum)
  })
}

testEach('a stream that fails: rejects with what it threw, and the request is never completed', async (t) => {
  let completed = false
  let aborted = false
  const { url } = await startServer(t, (request) => {
    request.on('error', () => {})
    request.on('end', () => (completed = !aborted))
    request.on('aborted', () => (aborted = true))
    request.resume()
  })
  const client = startClient(t)
  const failure = new Error('disk on fire')
  async function* failing(): AsyncGenerator<string> {
    yield 'some'
    await new Promise((resolve) => setTimeout(resolve, 10))
    throw failure
  }
  await assert.rejects(client.fetch(url, { method: 'POST', body: failing(), duplex: 'half' }), (error) => error === failure)
  await until(() => aborted, 'the server saw it break off')
  assert.equal(completed, false)
})

testEach('a chunk that is no bytes is a TypeError', async (t) => {
  const { url } = await startServer(t, (request) => void request.resume())
  const client = startClient(t)
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(42)
    },
  })
  await assert.rejects(client.fetch(url, { method: 'POST', body: stream, duplex: 'half' }), TypeError)
})

testEach('a stream can be sent once: the second fetch of it rejects with TypeError', async (t) => {
  const { url } = await startServer(t, (request, response) => {
    // A request whose content fails at once is cut off behind its head.
    contentOf(request).then(
      (content) => response.end(content),
      () => {},
    )
  })
  const client = startClient(t)
  const body = new Blob(['content']).stream()
  const first = client.fetch(url, { method: 'POST', body, duplex: 'half' })
  await assert.rejects(client.fetch(url, { method: 'POST', body, duplex: 'half' }), TypeError)
  assert.equal(await (await first).text(), 'content')
  await assert.rejects(client.fetch(url, { method: 'POST', body, duplex: 'half' }), TypeError)
})

testEach('content that is longer or shorter than the program stated', async (t) => {
  const { url } = await startServer(t, (request) => void request.on('error', () => {}).resume())
  const client = startClient(t)
  for (const length of ['3', '5']) {
    const body = new Blob(['four']).stream()
    await assert.rejects(
      client.fetch(url, { method: 'POST', body, duplex: 'half', headers: { 'content-length': length } }),
      (error: unknown) => error instanceof HeddleError,
      length,
    )
  }
})

testEach('Expect: 100-continue holds the content back until the server wants it', async (t) => {
  const order: string[] = []
  const { url, server } = await startServer(t, async (request, response) => {
    order.push(`content ${(await contentOf(request)).length}`)
    response.end('done')
  })
  server.on('checkContinue', (request, response) => {
    order.push('head')
    setTimeout(() => {
      order.push('continue')
      response.writeContinue()
      server.emit('request', request, response)
    }, 30)
  })
  const client = startClient(t)
  const statuses: number[] = []
  const response = await client.fetch(url, {
    method: 'PUT',
    body: 'x'.repeat(1_000),
    headers: { expect: '100-continue' },
    onInformational: ({ status }) => statuses.push(status),
  })
  assert.equal(await response.text(), 'done')
  assert.deepEqual(order, ['head', 'continue', 'content 1000'])
  assert.deepEqual(statuses, [100])
})

testEach('Expect: 100-continue refused: the content is never sent', async (t) => {
  let received = 0
  const { url, server } = await startServer(t, () => {})
  server.on('checkContinue', (request, response) => {
    request.on('data', (chunk: Buffer) => (received += chunk.length))
    response.writeHead(417).end('no')
  })
  const client = startClient(t)
  const body = new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(new Uint8Array(10))
        controller.close()
      },
    },
    { highWaterMark: 0 },
  )
  const response = await client.fetch(url, { method: 'PUT', body, duplex: 'half', headers: { expect: '100-continue' } })
  assert.equal(response.status, 417)
  assert.equal(await response.text(), 'no')
  assert.equal(received, 0)
})

testEach('an answer before the content has ended: the stream goes on, both ways at once', async (t) => {
  const { url } = await startServer(t, (request, response) => {
    request.on('data', (chunk: Buffer) => response.write(chunk.toString().toUpperCase()))
    request.on('end', () => response.end())
    response.flushHeaders()
  })
  const client = startClient(t)
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const response = await client.fetch(url, { method: 'POST', body: readable, duplex: 'half' })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  for (const word of ['one', 'two', 'three']) {
    await writer.write(Buffer.from(word))
    const { value } = await reader.read()
    assert.equal(Buffer.from(value as Uint8Array).toString(), word.toUpperCase())
  }
  await writer.close()
  assert.equal((await reader.read()).done, true)
})

test('an early final answer to an upload: the program gets it, the stream is cancelled', async (t) => {
  const { url } = await startServer(t, (_request, response) => {
    response.writeHead(413, { connection: 'close' })
    response.end('too large')
  })
  const client = startClient(t)
  let cancelled = false
  const body = new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      controller.enqueue(new Uint8Array(1_000))
    },
    cancel() {
      cancelled = true
    },
  })
  const response = await client.fetch(url, { method: 'POST', body, duplex: 'half' })
  assert.equal(response.status, 413)
  assert.equal(await response.text(), 'too large')
  await until(() => cancelled, 'the stream was cancelled')
})
