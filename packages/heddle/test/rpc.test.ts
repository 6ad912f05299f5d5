import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttp1Server } from 'node:http'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Client, serve } from 'heddle'
import { responseHead } from 'heddle/http'
import { universalClient, type UniversalClientRequest, type UniversalClientResponse } from 'heddle/rpc'
import { memoryNow } from 'heddle/testing'

/** Codes of gRPC. */
const RpcCode = { Unknown: 2, DeadlineExceeded: 4, Unavailable: 14 } as const

async function listening(t: TestContext, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** A server that speaks HTTP/2 with prior knowledge, and what Connect-ES would call it with. */
async function start(
  t: TestContext,
  onStream: (stream: ServerHttp2Stream, path: string) => void,
  options = {},
): Promise<{ client: Client; url: string; call: (request?: Partial<UniversalClientRequest>) => Promise<UniversalClientResponse> }> {
  const server = createServer()
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    onStream(stream as ServerHttp2Stream, String(headers[':path']))
  })
  const url = await listening(t, server as never)
  const client = new Client({ h2c: true, ...options })
  t.after(() => client.destroy())
  const send = universalClient(client)
  return { client, url, call: (request) => send({ url, method: 'POST', header: new Headers(), ...request }) }
}

async function idle(client: Client): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if (client.stats().active === 0) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.fail(`${client.stats().active} active`)
}

async function read(body: AsyncIterable<Uint8Array>): Promise<string> {
  let text = ''
  for await (const chunk of body) text += Buffer.from(chunk).toString('latin1')
  return text
}

async function* never(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('x')
  await new Promise(() => {})
}

test('a server that has answered ends the call, though the client had more to say', { timeout: 5_000 }, async (t) => {
  // It leaves the stream open.
  const server = await serve({
    hostname: '127.0.0.1',
    onExchange: (exchange) => ({
      onHead: () => {
        exchange.sendHead(responseHead(200, []), false)
        exchange.sendData(Buffer.from('over'), 0, 4, false)
        exchange.sendTrailers(['grpc-status', '5'])
      },
      onData: () => {},
      onTrailers: () => {},
      onSent: () => {},
      onPriority: () => {},
      onClose: () => {},
    }),
  })
  const client = new Client({ h2c: true })
  t.after(() => client.destroy())
  t.after(() => server.close({ deadline: 0 }))
  for (const signal of [undefined, new AbortController().signal]) {
    const request = { url: server.url, method: 'POST', header: new Headers(), body: never(), ...(signal === undefined ? {} : { signal }) }
    const response = await universalClient(client)(request)
    assert.deepEqual([await read(response.body), response.trailer.get('grpc-status')], ['over', '5'])
    await idle(client)
  }
})

test('a body that is read in part, or not at all, is given up by return()', { timeout: 5_000 }, async (t) => {
  const { client, call } = await start(t, (stream) => {
    stream.respond({ ':status': 200 })
    stream.write('x'.repeat(10_000))
  })
  const part = await call()
  for await (const chunk of part.body) {
    assert.ok(chunk.length > 0)
    break
  }
  await idle(client)
  const none = await call()
  await none.body[Symbol.asyncIterator]().return?.()
  await idle(client)
  const thrown = await call()
  const iterator = thrown.body[Symbol.asyncIterator]()
  await iterator.next()
  const reason = new Error('enough')
  await assert.rejects(
    async () => iterator.throw?.(reason),
    (error) => error === reason,
  )
  await idle(client)
})

test('without trailers they are empty; a connection lost in the body is Unavailable', { timeout: 5_000 }, async (t) => {
  const { client, url, call } = await start(t, (stream, path) => {
    stream.respond({ ':status': 200 })
    if (path === '/') return void stream.end('whole')
    stream.write('part')
    setTimeout(() => stream.session?.destroy(), 20)
  })
  const whole = await call()
  assert.deepEqual([await read(whole.body), [...whole.trailer]], ['whole', []])
  const cut = await call({ url: `${url}cut` })
  await assert.rejects(read(cut.body), { name: 'ConnectError', code: RpcCode.Unavailable })
  await idle(client)
  const server = createHttp1Server((_request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('part')
    setTimeout(() => response.destroy(), 20)
  })
  const http1 = new Client()
  t.after(() => http1.destroy())
  const cut1 = await universalClient(http1)({ url: await listening(t, server), method: 'POST', header: new Headers() })
  await assert.rejects(read(cut1.body), { name: 'ConnectError', code: RpcCode.Unavailable })
})

test('a signal ends a call in its body with its own reason', { timeout: 5_000 }, async (t) => {
  const { client, call } = await start(t, (stream) => {
    stream.respond({ ':status': 200 })
    stream.write('x')
  })
  const controller = new AbortController()
  const reason = new Error('late')
  const response = await call({ signal: controller.signal, body: never() })
  setTimeout(() => controller.abort(reason), 20)
  await assert.rejects(read(response.body), (error) => error === reason)
  await idle(client)
})

test('what the body of the request throws is told as it is if it is an error of Connect-ES', { timeout: 5_000 }, async (t) => {
  const { client, call } = await start(t, (stream) => void stream.resume())
  const mine = Object.assign(new Error('[invalid_argument] mine'), {
    name: 'ConnectError',
    code: 3,
    rawMessage: 'mine',
    metadata: new Headers(),
    details: [],
  })
  for (const [thrown, code] of [
    [mine, 3],
    [new Error('other'), RpcCode.Unknown],
  ] as const) {
    const body = (async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from('x')
      throw thrown
    })()
    await assert.rejects(call({ body }), (error: Error & { code: number }) => {
      assert.equal(error.code, code)
      assert.ok(error === mine || error.cause === thrown)
      return true
    })
  }
  await idle(client)
})

test('a time limit of the client in the body is DeadlineExceeded, and a large message arrives whole', { timeout: 5_000 }, async (t) => {
  const large = Buffer.alloc(20_000_000, 'x')
  const { client, url, call } = await start(
    t,
    (stream, path) => {
      stream.respond({ ':status': 200 })
      if (path === '/large') stream.end(large)
      else stream.write('x')
    },
    { http2: { bodyTimeout: 100 } },
  )
  const silent = await call()
  await assert.rejects(read(silent.body), { name: 'ConnectError', code: RpcCode.DeadlineExceeded })
  const { body } = await call({ url: `${url}large` })
  let length = 0
  for await (const chunk of body) length += chunk.length
  assert.equal(length, large.length)
  await idle(client)
})

test('a response that is forgotten is let go of', { timeout: 10_000 }, async (t) => {
  const { client, call } = await start(t, (stream) => {
    stream.respond({ ':status': 200 })
    stream.write('x')
  })
  const { signal } = new AbortController()
  await (async () => {
    const half = await call({ body: never(), signal })
    await half.body[Symbol.asyncIterator]().next()
    await call()
  })()
  for (let i = 0; i < 50 && client.stats().active > 0; i++) {
    await memoryNow()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  assert.equal(client.stats().active, 0)
})
