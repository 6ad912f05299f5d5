import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { HeddleError, TimeoutError } from '../http/index.ts'
import { Client } from './client.ts'
import { startClient, startRawServer, startServer, still, testEach, until } from './fetch-server.test.ts'

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length

test('aborted before: rejects at once with the reason, sends nothing, cancels the body', async (t) => {
  const client = startClient(t)
  const reason = { any: 'thing' }
  await assert.rejects(client.fetch('http://127.0.0.1:1/', { signal: AbortSignal.abort(reason) }), (thrown) => thrown === reason)
  let cancelled: unknown
  const body = new ReadableStream({
    cancel(why) {
      cancelled = why
    },
  })
  await assert.rejects(client.fetch('http://127.0.0.1:1/', { method: 'POST', body, duplex: 'half', signal: AbortSignal.abort(reason) }))
  assert.equal(cancelled, reason)
  assert.equal(client.stats().requests, 0)
})

test('aborted while waiting for a connection', async (t) => {
  const { url } = await startServer(t, () => {})
  const client = startClient(t, { maxConnectionsPerOrigin: 1 })
  const holding = new AbortController()
  const held = client.fetch(url, { signal: holding.signal })
  const controller = new AbortController()
  const waiting = client.fetch(url, { signal: controller.signal })
  await until(() => client.stats().active === 1 && client.stats().waiting === 1, 'one runs, one waits')
  controller.abort('changed my mind')
  await assert.rejects(waiting, (reason) => reason === 'changed my mind')
  assert.equal(listeners(controller.signal), 0)
  await until(() => client.stats().waiting === 0, 'it left the queue')
  holding.abort()
  await assert.rejects(held, { name: 'AbortError' })
})

test('ten thousand fetches with one signal have one listener, and end with one abort', async () => {
  const client = new Client({ connect: (() => ({ cancel() {} })) as never, maxConnectionsPerOrigin: 1 })
  const controller = new AbortController()
  const { signal } = controller
  const started = performance.now()
  const asked = Array.from({ length: 10_000 }, () => client.fetch('http://127.0.0.1:1/', { signal }).catch((reason: unknown) => reason))
  assert.equal(listeners(signal), 1)
  controller.abort('enough')
  assert.equal(listeners(signal), 0)
  assert.ok((await Promise.all(asked)).every((reason) => reason === 'enough'))
  assert.equal(client.stats().waiting, 0)
  // With a listener each it took a second to begin, and another one to end; it takes a tenth of one. The machine may be busy.
  assert.ok(performance.now() - started < 20_000)
  const again = client.fetch('http://127.0.0.1:1/', { signal: new AbortController().signal })
  client.destroy()
  await assert.rejects(again, { code: 'SHUTDOWN' })
})

test('a handler that begins another fetch with the aborted signal, or aborts a second one, disturbs nobody', async () => {
  const client = new Client({ connect: (() => ({ cancel() {} })) as never })
  const [first, second] = [new AbortController(), new AbortController()]
  const ask = (signal: AbortSignal): Promise<unknown> => client.fetch('http://127.0.0.1:1/', { signal }).catch((reason: unknown) => reason)
  const asked = [ask(first.signal), ask(second.signal), ask(first.signal), ask(second.signal)]
  first.signal.addEventListener('abort', () => {
    asked.push(ask(first.signal))
    second.abort('second')
  })
  first.abort('first')
  assert.deepEqual(await Promise.all(asked), ['first', 'second', 'first', 'second', 'first'])
  assert.deepEqual([listeners(second.signal), client.stats().waiting], [0, 0])
  client.destroy()
})

test('aborted while connecting', async (t) => {
  const client = startClient(t, { connect: (() => ({ cancel() {} })) as never })
  const controller = new AbortController()
  const asked = client.fetch('http://127.0.0.1:1/', { signal: controller.signal })
  setImmediate(() => controller.abort())
  await assert.rejects(asked, { name: 'AbortError' })
})

test('aborted before the head: the server sees the connection close', async (t) => {
  let closed = false
  const { url } = await startServer(t, (request) => void request.on('close', () => (closed = true)))
  const client = startClient(t)
  const controller = new AbortController()
  const asked = client.fetch(url, { signal: controller.signal })
  await until(() => client.stats().active === 1, 'it runs')
  controller.abort('enough')
  await assert.rejects(asked, (reason) => reason === 'enough')
  await until(() => closed, 'the server was told')
  await until(() => client.stats().connections === 0, 'the connection is gone')
})

testEach('aborted while sending: the body is cancelled with the reason', async (t) => {
  const { url } = await startServer(t, (request) => void request.pause())
  const client = startClient(t)
  const controller = new AbortController()
  let cancelled: unknown
  let pulls = 0
  const body = new ReadableStream({
    pull(stream) {
      pulls++
      stream.enqueue(new Uint8Array(65_536))
    },
    cancel(reason) {
      cancelled = reason
    },
  })
  const asked = client.fetch(url, { method: 'POST', body, duplex: 'half', signal: controller.signal })
  await until(() => pulls > 1, 'it sends')
  await still(() => pulls)
  assert.ok(pulls < 1_000, 'back pressure reaches the stream')
  controller.abort('enough')
  await assert.rejects(asked, (reason) => reason === 'enough')
  assert.equal(cancelled, 'enough')
})

testEach('aborted while the body is read: the reader gets the reason', async (t, protocol) => {
  const { url } = await startServer(t, (_request, response) => void response.write('part'))
  const client = startClient(t)
  for (const way of ['text', 'stream', 'later'] as const) {
    const controller = new AbortController()
    const response = await client.fetch(url, { signal: controller.signal })
    assert.equal(listeners(controller.signal), 1)
    const reading = way === 'text' ? response.text() : way === 'stream' ? drain(response.body as ReadableStream<Uint8Array>) : undefined
    await new Promise((resolve) => setImmediate(resolve))
    controller.abort('enough')
    await assert.rejects(reading ?? response.text(), (reason) => reason === 'enough', way)
    assert.equal(listeners(controller.signal), 0)
  }
  await until(() => client.stats().streams === 0, 'nothing runs')
  await until(() => client.stats().connections === (protocol === 'h1' ? 0 : 1), 'HTTP/1.1 has lost its connections, HTTP/2 has not')
})

async function drain(body: ReadableStream<Uint8Array>): Promise<void> {
  for await (const _ of body);
}

testEach('AbortSignal.timeout passes its own reason on', async (t) => {
  const { url } = await startServer(t, () => {})
  await assert.rejects(startClient(t).fetch(url, { signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' })
})

testEach('the signal of a Request counts, unless the options have another', async (t) => {
  const { url } = await startServer(t, () => {})
  const client = startClient(t)
  const controller = new AbortController()
  const asked = client.fetch(new globalThis.Request(url, { signal: controller.signal }))
  controller.abort('theirs')
  await assert.rejects(asked, (reason) => reason === 'theirs')
  const own = new AbortController()
  const other = client.fetch(new globalThis.Request(url, { signal: new AbortController().signal }), { signal: own.signal })
  own.abort('ours')
  await assert.rejects(other, (reason) => reason === 'ours')
})

testEach('a long-lived signal collects no listeners', async (t) => {
  const { url } = await startServer(t, (request, response) => {
    if (request.url === '/redirect') response.writeHead(302, { location: '/' }).end()
    else if (request.url === '/fail') request.socket.destroy()
    else if (request.url === '/large') response.end(Buffer.alloc(200_000))
    else response.end('ok')
  })
  const client = startClient(t)
  const { signal } = new AbortController()
  for (let i = 0; i < 20; i++) {
    await (await client.fetch(url, { signal })).text()
    await (await client.fetch(`${url}/redirect`, { signal })).text()
    await (await client.fetch(`${url}/large`, { signal })).text()
    ;(await client.fetch(`${url}/large`, { signal }))[Symbol.dispose]()
    await assert.rejects(client.fetch(`${url}/fail`, { signal }))
    await assert.rejects(client.fetch('not a URL', { signal }))
  }
  assert.equal(listeners(signal), 0)
  const response = await client.fetch(url, { signal })
  await until(() => client.stats().streams === 0, 'the body came')
  assert.equal(listeners(signal), 0, 'a body that has come needs none')
  assert.equal(await response.text(), 'ok')
})

testEach('abort after the end does nothing', async (t) => {
  const { url } = await startServer(t, (_request, response) => response.end('ok'))
  const controller = new AbortController()
  const client = startClient(t)
  const response = await client.fetch(url, { signal: controller.signal })
  await until(() => client.stats().streams === 0, 'the body came')
  controller.abort()
  assert.equal(await response.text(), 'ok')
})

testEach('total time: over waiting, head and body', async (t, protocol) => {
  const { url } = await startServer(t, (request, response) => {
    if (request.url === '/body') response.write('part')
  })
  const client = startClient(t)
  const late = (error: unknown): boolean => error instanceof TimeoutError && error.phase === 'total'
  await assert.rejects(client.fetch(url, { timeout: 40 }), late)
  const response = await client.fetch(`${url}/body`, { timeout: 60 })
  await assert.rejects(response.text(), late)
  await until(() => client.stats().streams === 0, 'nothing runs')
  await until(() => client.stats().connections === (protocol === 'h1' ? 0 : 1), 'HTTP/1.1 has lost its connections, HTTP/2 has not')
})

test('a server that goes away in the middle of a body', async (t) => {
  const { url } = await startRawServer(t, (socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf')
      setTimeout(() => socket.destroy(), 5)
    })
  })
  const client = startClient(t)
  const response = await client.fetch(url)
  await assert.rejects(response.text(), (error: unknown) => error instanceof HeddleError && /TRUNCATED|CLOSED|RESET/.test(error.code))
})
