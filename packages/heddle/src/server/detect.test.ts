import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { test } from 'node:test'
import { UsageError } from '../http/index.ts'
import { makeCertificate, worldTest, type LinkSocket, type World } from '../testing/index.ts'
import { Response, serve, type Server, type ServeOptions } from './index.ts'

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
/** SETTINGS without settings, and a HEADERS frame for GET http://h/ that ends stream 1. */
const http2Request = Buffer.concat([
  Buffer.from(preface),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
  Buffer.from([0, 0, 6, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0x41, 1, 0x68]),
])

function start(world: World, options: Partial<ServeOptions> = {}): Promise<Server> {
  return serve({
    clock: world,
    listen: world.network.serve,
    hostname: 'h',
    port: 80,
    fetch: (request, { protocol }) => new Response(`${protocol} ${request.method} ${new URL(request.url).pathname}`),
    onError: () => {},
    ...options,
  })
}

/** A client that sends what the test says and keeps what comes. */
class Visitor {
  readonly socket: LinkSocket
  bytes = Buffer.alloc(0)
  ended = false
  closed = false

  constructor(socket: LinkSocket) {
    this.socket = socket
    socket.on('data', (chunk: Uint8Array) => (this.bytes = Buffer.concat([this.bytes, chunk])))
    socket.on('end', () => {
      this.ended = true
      socket.end()
    })
    socket.on('close', () => (this.closed = true))
    socket.on('error', () => {})
  }

  static come(world: World): Promise<Visitor> {
    return new Promise((resolve, reject) => {
      world.network.connect('h', 80, (error, connection) =>
        connection === undefined ? reject(error as Error) : resolve(new Visitor(connection.socket)),
      )
    })
  }

  get text(): string {
    return this.bytes.toString('latin1')
  }

  /** Content of DATA frames received, all streams together. */
  get content(): string {
    let content = ''
    for (let at = 0; at + 9 <= this.bytes.length; at += 9 + this.bytes.readUIntBE(at, 3)) {
      if (this.bytes[at + 3] === 0) content += this.bytes.toString('latin1', at + 9, at + 9 + this.bytes.readUIntBE(at, 3))
    }
    return content
  }
}

worldTest('HTTP/2 by prior knowledge is found at every split, and so is HTTP/1.1', { seeds: 2 }, async (world) => {
  const server = await start(world)
  const plain = Buffer.from('PRI /x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n')
  for (let cut = 1; cut < 30; cut++) {
    for (const [bytes, wanted] of [
      [http2Request, 'h2 GET /'],
      [plain, 'h1 PRI /x'],
    ] as const) {
      const visitor = await world.complete(Visitor.come(world))
      visitor.socket.write(bytes.subarray(0, cut))
      await world.settle({ until: world.now() + 100 })
      visitor.socket.write(bytes.subarray(cut))
      await world.settle({ until: world.now() + 100 })
      const seen = bytes === plain ? visitor.text.split('\r\n\r\n')[1] : visitor.content
      assert.equal(seen, wanted, `cut at ${cut}: ${visitor.text}`)
      visitor.socket.destroy()
    }
  }
  const byteByByte = await world.complete(Visitor.come(world))
  for (const byte of http2Request) {
    byteByByte.socket.write(Uint8Array.of(byte))
    await world.settle({ until: world.now() + 1 })
  }
  await world.settle({ until: world.now() + 100 })
  assert.equal(byteByByte.content, 'h2 GET /')
  const { http1, http2 } = server.stats()
  assert.deepEqual([http1.accepted, http1.requests, http2.accepted, http2.requests, http2.exchanges], [29, 29, 30, 30, 0])
  assert.deepEqual([http1.connections, http2.connections], [0, 1])
  const before = http2.bytesRead
  const whole = await world.complete(Visitor.come(world))
  whole.socket.write(http2Request)
  await world.settle({ until: world.now() + 100 })
  assert.equal(server.stats().http2.bytesRead - before, http2Request.length, 'the bytes that told the protocol count there')
  await world.complete(server.close({ deadline: 0 }), 60_000)
  assert.equal(world.armed, 0)
})

worldTest('requests that begin like the preface are HTTP/1.1, from the first byte that differs on', { seeds: 1 }, async (world) => {
  const server = await start(world)
  for (const method of ['GET', 'POST', 'PUT', 'PROPFIND', 'PRI', 'PRIx']) {
    const visitor = await world.complete(Visitor.come(world))
    visitor.socket.write(Buffer.from(`${method} / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n`))
    await world.settle({ until: world.now() + 100 })
    assert.ok(visitor.text.endsWith(`h1 ${method} /`), visitor.text)
    visitor.socket.destroy()
  }
  // One byte less than the preface of HTTP/2, and then something else.
  const almost = await world.complete(Visitor.come(world))
  almost.socket.write(Buffer.from(`${preface.slice(0, 23)}x`))
  await world.settle({ until: world.now() + 100 })
  assert.match(almost.text, /^HTTP\/1\.1 505 /)
  await world.complete(server.close({ deadline: 0 }), 60_000)
})

worldTest('the time limit of heads covers the wait, in silence and within the preface', { seeds: 2 }, async (world) => {
  const server = await start(world, { limits: { headTimeout: 3000 } })
  const silent = await world.complete(Visitor.come(world))
  const slow = await world.complete(Visitor.come(world))
  slow.socket.write(Buffer.from(preface.slice(0, 5)))
  const late = await world.complete(Visitor.come(world))
  late.socket.write(Buffer.from('P'))
  await world.settle({ until: world.now() + 1500 })
  late.socket.write(Buffer.from('OST / HTTP/1.1\r\n'))
  await world.settle({ until: world.now() + 1000 })
  assert.deepEqual([silent.ended, slow.ended, late.ended], [false, false, false])
  assert.equal(server.stats().deadlines, 3)
  await world.settle({ until: world.now() + 1000 })
  assert.deepEqual([silent.ended, silent.text], [true, ''])
  assert.match(slow.text, /^HTTP\/1\.1 408 /)
  assert.match(late.text, /^HTTP\/1\.1 408 /, 'counted from accept, not from the decision')
  assert.deepEqual([slow.ended, late.ended], [true, true])
  await world.complete(server.close({ deadline: 0 }), 60_000)
  assert.equal(world.armed, 0)
})

worldTest('an HTTP/2 client that stops after its preface is told so', { seeds: 1 }, async (world) => {
  const server = await start(world, { limits: { headTimeout: 3000 } })
  const visitor = await world.complete(Visitor.come(world))
  visitor.socket.write(Buffer.from(preface))
  await world.settle({ until: world.now() + 2000 })
  assert.equal(visitor.ended, false)
  await world.settle({ until: world.now() + 2000 })
  assert.equal(visitor.ended, true)
  const goaway = visitor.bytes.subarray(visitor.bytes.lastIndexOf(Buffer.from([7, 0, 0, 0, 0, 0])) - 3)
  assert.equal(goaway.readUInt32BE(13), 1, 'PROTOCOL_ERROR')
  await world.complete(server.close({ deadline: 0 }), 60_000)
})

worldTest('a client that leaves before it has said what it speaks leaves nothing behind', { seeds: 2 }, async (world) => {
  const server = await start(world)
  for (const said of ['', 'PRI * HT']) {
    for (const how of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const visitor = await world.complete(Visitor.come(world))
      if (said !== '') visitor.socket.write(Buffer.from(said))
      await world.settle({ until: world.now() + 20 })
      assert.deepEqual([server.stats().connections, server.stats().idleConnections], [1, 1])
      visitor.socket[how]()
      await world.settle({ until: world.now() + 50 })
      assert.deepEqual([visitor.text, server.stats().connections], ['', 0], `${how} after ${JSON.stringify(said)}`)
    }
  }
  assert.equal(server.stats().requests, 0)
  await world.complete(server.close(), 60_000)
  assert.equal(world.armed, 0)
})

worldTest('close ends the silent at once and hears out those that have begun', { seeds: 2 }, async (world) => {
  const server = await start(world)
  const silent = await world.complete(Visitor.come(world))
  const begun = await world.complete(Visitor.come(world))
  begun.socket.write(http2Request.subarray(0, 7))
  await world.settle({ until: world.now() + 20 })
  const closing = server.close()
  await world.settle({ until: world.now() + 20 })
  assert.deepEqual([silent.ended, begun.ended], [true, false])
  begun.socket.write(http2Request.subarray(7))
  await world.complete(closing, 60_000)
  assert.equal(begun.content, 'h2 GET /')
  assert.equal(world.armed, 0)
})

worldTest('close cuts at its deadline those that say no more', { seeds: 1 }, async (world) => {
  const server = await start(world)
  const begun = await world.complete(Visitor.come(world))
  begun.socket.write(http2Request.subarray(0, 7))
  await world.settle({ until: world.now() + 20 })
  await world.complete(server.close({ deadline: 500 }), 60_000)
  assert.equal(begun.closed, true)
  assert.equal(server.stats().connections, 0)
  assert.equal(world.armed, 0)
})

worldTest('protocols restrict what a plain-text port understands', { seeds: 1 }, async (world) => {
  const only1 = await start(world, { protocols: ['http/1.1'] })
  const two = await world.complete(Visitor.come(world))
  two.socket.write(http2Request)
  await world.settle({ until: world.now() + 100 })
  assert.match(two.text, /^HTTP\/1\.1 505 /)
  await world.complete(only1.close({ deadline: 0 }), 60_000)

  const only2 = await start(world, { protocols: ['h2'] })
  const one = await world.complete(Visitor.come(world))
  one.socket.write(Buffer.from('GET / HTTP/1.1\r\nhost: h\r\n\r\n'))
  const other = await world.complete(Visitor.come(world))
  other.socket.write(http2Request)
  await world.settle({ until: world.now() + 100 })
  assert.equal(one.bytes[3], 4, 'SETTINGS come first')
  assert.equal(other.content, 'h2 GET /')
  await world.settle({ until: world.now() + 5000 })
  assert.deepEqual([one.ended, only2.stats().http2.requests], [true, 1])
  await world.complete(only2.close({ deadline: 0 }), 60_000)
})

test('TLS goes by ALPN alone', { timeout: 20_000 }, async (t) => {
  const { cert, key } = makeCertificate({ names: ['localhost'] })
  const answered = async (options: Partial<ServeOptions>, offered: string[] | undefined): Promise<string> => {
    const server = await serve({
      hostname: '127.0.0.1',
      tls: { cert, key },
      fetch: (_request, { protocol }) => new Response(protocol),
      onError: () => {},
      ...options,
    })
    t.after(() => server.close({ deadline: 0 }))
    const socket = connectTls({
      port: server.port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ...(offered === undefined ? {} : { ALPNProtocols: offered }),
    })
    let text = ''
    socket.on('error', (error) => (text = (error as NodeJS.ErrnoException).code ?? ''))
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (/h[12]/.test(text)) socket.destroy()
    })
    socket.on('end', () => socket.destroy())
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.once('secureConnect', () => {
      if (socket.alpnProtocol === 'h2') socket.write(http2Request)
      else socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    })
    await closed
    return /h[12]/.exec(text)?.[0] ?? text
  }
  assert.equal(await answered({}, ['http/1.1', 'h2']), 'h2', 'the server prefers h2')
  assert.equal(await answered({ protocols: ['http/1.1', 'h2'] }, ['h2', 'http/1.1']), 'h1')
  assert.equal(await answered({}, ['http/1.1']), 'h1')
  assert.equal(await answered({}, undefined), 'h1', 'without ALPN')
  assert.match(await answered({ protocols: ['http/1.1'] }, ['h2']), /ALERT/)
  assert.match(await answered({}, ['spdy/3']), /ALERT/)
  const only2 = await serve({
    hostname: '127.0.0.1',
    protocols: ['h2'],
    tls: { cert, key },
    fetch: () => new Response(),
    onError: () => {},
  })
  t.after(() => only2.close({ deadline: 0 }))
  const socket = connectTls({ port: only2.port, host: '127.0.0.1', rejectUnauthorized: false })
  socket.on('error', () => {})
  socket.resume()
  await new Promise((resolve) => socket.on('close', resolve))
  assert.deepEqual([only2.stats().rejected, only2.stats().requests], [1, 0], 'without ALPN it is no HTTP/2 (RFC 9113 §3.2)')
  only2.updateTls({ cert, key })
  const renewed = connectTls({ port: only2.port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  await once(renewed, 'secureConnect')
  assert.equal(renewed.alpnProtocol, 'h2', 'updateTls keeps the protocols')
  renewed.destroy()
})

test('a Unix socket detects as well', { timeout: 20_000 }, async (t) => {
  const path = `/tmp/heddle-detect-${process.pid}.sock`
  const server = await serve({ path, fetch: (_request, { protocol }) => new Response(protocol) })
  t.after(() => server.close({ deadline: 0 }))
  const socket = connect(path)
  socket.write(http2Request)
  let bytes = Buffer.alloc(0)
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk as Buffer])
    if (bytes.includes('h2')) break
  }
  assert.equal(server.stats().http2.requests, 1)
})

test('protocols that make no sense are refused', async () => {
  const fetch = (): Response => new Response()
  await assert.rejects(serve({ fetch, protocols: [] }), UsageError)
  await assert.rejects(serve({ fetch, protocols: ['h3' as 'h2'] }), UsageError)
  await assert.rejects(serve({ fetch, http2: { maxStreams: 1 } as object }), /there is no option http2\.maxStreams/)
  await assert.rejects(serve({ fetch, http2: { headTimeout: -1 } }), UsageError)
})
