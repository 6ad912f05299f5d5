import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Response } from 'heddle/server'
import { Http3Code as Code, Random, type Http3Probe, type ProbeStream } from 'heddle/testing'
import { http3Cluster, http3Origin, lines, origin, skip, start } from './http3-rig.ts'
import { malformedHeads, smuggled } from './malformed-heads.ts'

const upstreams = [
  ['HTTP/1.1', ''],
  ['HTTP/2', ', protocol: h2c'],
  ['HTTP/3', http3Cluster],
] as const

/** An origin that takes note of the paths it was asked for. */
async function noting(context: TestContext, cluster: string): Promise<{ port: number; seen: string[] }> {
  const seen: string[] = []
  const fetch = async (request: { url: string; text(): Promise<string> }): Promise<Response> => {
    seen.push(new URL(request.url).pathname)
    return new Response(await request.text())
  }
  const server = cluster === http3Cluster ? await http3Origin(context, { fetch }) : await origin(context, { fetch })
  return { port: server.port, seen }
}

async function wantReset(client: Http3Probe, stream: ProbeStream, why: string, code: number): Promise<void> {
  await client.until(why, () => stream.reset !== undefined || stream.ended || client.error !== undefined)
  equal(client.error, undefined, why)
  equal(stream.reset, code, why)
}

describe('heads that no version allows', { skip }, () => {
  for (const [name, cluster] of upstreams) {
    test(`do not reach an upstream of ${name}, and cost their client the stream`, async (context) => {
      const { port, seen } = await noting(context, cluster)
      const { connect, records } = await start(context, [port], { cluster })
      const client = await connect()
      for (const [why, head] of Object.entries(malformedHeads)) await wantReset(client, await client.request(head), why, Code.MessageError)
      const post = (...fields: string[]): string[] => lines('POST', '/attack', ...fields)
      const contents: Record<string, readonly [string[], string]> = {
        'transfer-encoding': [post('transfer-encoding', 'chunked'), '0\r\n\r\nGET /smuggled'],
        'two lengths': [post('content-length', '5', 'content-length', '6'), 'hello'],
        'a length that is none': [post('content-length', '+5'), 'hello'],
        'a length that is a list': [post('content-length', '5, 5'), 'hello'],
      }
      for (const [why, [head, content]] of Object.entries(contents)) {
        const stream = await client.request(head, false)
        await wantReset(client, stream.sendContent(content, true), why, Code.MessageError)
      }
      equal((await client.answer(await client.request(lines('GET', '/good')))).status, 200)
      deepEqual([seen, records.length], [['/good'], 1])
    })
  }
})

/** How requests that begin well go on: fields of a POST, and what must never make it complete. */
const broken: Readonly<Record<string, readonly [fields: readonly string[], rest: (stream: ProbeStream) => void]>> = {
  'less content than its length': [['content-length', '10'], (stream) => stream.sendContent('lo', true)],
  'more content than its length': [['content-length', '4'], (stream) => stream.sendContent('lo', true)],
  'trailers before the length is reached': [['content-length', '10'], (stream) => stream.sendHead(['x-a', 'b'], true)],
  'a pseudo-header field in trailers': [[], (stream) => stream.sendHead([':path', '/smuggled'], true)],
  'CR LF in trailers': [[], (stream) => stream.sendHead(['x-a', smuggled], true)],
  'transfer-encoding in trailers': [[], (stream) => stream.sendHead(['transfer-encoding', 'chunked'], true)],
  'content-length in trailers': [[], (stream) => stream.sendHead(['content-length', '3'], true)],
}

describe('requests that begin well and end badly', { skip }, () => {
  test('are never complete at an upstream of HTTP/1.1', async (context) => {
    let text = ''
    let open = 0
    const server = net.createServer((socket) => {
      open++
      socket.on('data', (chunk) => (text += chunk.toString('latin1')))
      socket.on('error', () => {})
      socket.on('close', () => open--)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    context.after(() => server.close())
    const { connect, records, gateway } = await start(context, [(server.address() as AddressInfo).port])
    const client = await connect()
    for (const [why, [more, rest]] of Object.entries(broken)) {
      const stream = await client.request(lines('POST', '/attack', ...more), false)
      stream.sendContent('hel')
      await client.until(`${why}: it begins well`, () => text.includes('hel'))
      rest(stream)
      await wantReset(client, stream, why, Code.MessageError)
      await client.until(`${why}: the end of the upstream's connection`, () => open === 0)
      // Chunks without a last one, or fewer octets than promised.
      match(text, more.length === 0 ? /^POST [^]*\r\n\r\n3\r\nhel\r\n$/ : /^POST [^]*\r\n\r\nhel$/)
      text = ''
    }
    deepEqual(new Set(records.map(({ reason, status }) => `${reason} ${status}`)), new Set(['client_error 400']))
    equal((await gateway.snapshot()).clusters[0]?.endpoints[0]?.failures, 0)
  })
})

describe('clients that mean no good', { skip }, () => {
  test('rapid reset (CVE-2023-44487): the client loses its connection, others notice nothing', async (context) => {
    const { port } = await noting(context, http3Cluster)
    const { connect, gateway } = await start(context, [port], { cluster: http3Cluster })
    const [good, attacker] = [await connect(), await connect()]
    while (attacker.error === undefined) {
      if (attacker.connection.openableBidirectional === 0) await sleep(1)
      else {
        const stream = attacker.openNow().sendHead(lines('GET', '/attack'))
        await client(attacker, stream)
        stream.quic?.reset(Code.RequestCancelled)
      }
    }
    equal(attacker.error.wireCode, Code.ExcessiveLoad)
    equal((await good.answer(await good.request(lines('GET', '/good')))).status, 200)
    deepEqual(await idle(gateway), [0, 0])
    const { listeners, clusters } = await gateway.snapshot()
    ok((listeners[0]?.http3.resetsReceived['H3_REQUEST_CANCELLED'] ?? 0) >= 200)
    // What came to the upstream of it went away again.
    equal(clusters[0]?.active, 0)
  })

  test('octets that are no QUIC, and handshakes that go nowhere', async (context) => {
    const { port } = await noting(context, '')
    const started = await start(context, [port])
    const socket = createSocket('udp4')
    context.after(() => socket.close())
    const random = new Random(1)
    for (let i = 0; i < 2_000; i++) {
      const bytes = Buffer.from(random.bytes(random.integer(1, 1_400)))
      // Long headers of version 1, Initial mostly, and short ones.
      if (i % 3 === 0 && bytes.length > 20) bytes.set([0xc0 | (i & 0x3f), 0, 0, 0, 1, 8], 0)
      socket.send(bytes, started.port, '127.0.0.1')
      if (i % 100 === 0) await sleep(0)
    }
    const client = await started.connect()
    equal((await client.answer(await client.request(lines('GET', '/')))).status, 200)
    const { listeners } = await started.gateway.snapshot()
    equal(listeners[0]?.http3.connections, 1)
  })

  test('a thousand field lines, a field of 100 KB, streams and frames without a meaning', async (context) => {
    const { port, seen } = await noting(context, '')
    const { connect } = await start(context, [port])
    const client = await connect()
    const many = Array.from({ length: 1_000 }, (_, i) => [`x-${i}`, 'v']).flat()
    for (const head of [lines('GET', '/', ...many), lines('GET', '/', 'x-long', 'v'.repeat(100_000))]) {
      const stream = await client.request(head)
      await client.until('its end', () => stream.ended || stream.reset !== undefined)
      if (stream.ended) equal((await client.answer(stream)).status, 431)
    }
    client.openCritical(0x21).sendBytes(Buffer.alloc(1_000))
    const stream = await client.open()
    stream.send({ type: 'UNKNOWN', frameType: 0x21, payload: Buffer.alloc(10) } as never)
    equal((await client.answer(stream.sendHead(lines('GET', '/good'), true))).status, 200)
    deepEqual(seen, ['/good'])
  })
})

/** Waits until a request has left, or the connection is over. */
async function client(probe: Http3Probe, stream: ProbeStream): Promise<void> {
  await probe.until('a request to leave', () => stream.quic?.queued === 0 || probe.error !== undefined)
}

/** Requests and attempts that are left, once none should be. */
async function idle(gateway: { snapshot(): Promise<unknown> }): Promise<number[]> {
  type Counts = { listeners: { exchanges: number }[]; clusters: { active: number }[] }
  let left = [-1, -1]
  const look = async (): Promise<void> => {
    const { listeners, clusters } = (await gateway.snapshot()) as Counts
    left = [listeners[0]?.exchanges ?? -1, clusters[0]?.active ?? -1]
  }
  for (let i = 0; i < 2_000 && left.join() !== '0,0'; i++) {
    await look()
    await sleep(5)
  }
  return left
}

const megabyte = 2 ** 20

describe('clients that send what nobody reads', { skip }, () => {
  for (const [route, most] of [
    ['', 2.2],
    [', streamWindow: 64KiB', 1.2],
  ] as const) {
    test(`are held back where they are${route}`, async (context) => {
      let came = 0
      const server = await http3Origin(context, {
        onExchange: () => ({
          onHead() {},
          onData: (_buffer, start, limit) => void (came += limit - start),
          onTrailers() {},
          onSent() {},
          onPriority() {},
          onClose() {},
        }),
      })
      const { connect } = await start(context, [server.port], { cluster: http3Cluster, route })
      const client = await connect()
      const stream = await client.request(lines('POST', '/'), false)
      const size = 8 * megabyte
      for (let i = 0; i < 8; i++) stream.sendContent(Buffer.alloc(megabyte))
      for (let before = -1; before !== came || came === 0;) {
        before = came
        await sleep(300)
      }
      const sent = (size - (stream.quic?.queued ?? 0)) / megabyte
      ok(sent <= most, `${sent} MiB were taken, and ${came / megabyte} arrived`)
      const good = await connect()
      const other = await good.request(lines('GET', '/'))
      await good.until('a request beside it', () => other.quic?.queued === 0)
    })
  }

  test('have as many requests at once as the listener allows', async (context) => {
    const { port } = await noting(context, '')
    const { connect } = await start(context, [port], { listener: ', http3: { maxConcurrentStreams: 3 }' })
    const client = await connect()
    equal(client.connection.openableBidirectional, 3)
    const streams = [client.openNow(), client.openNow(), client.openNow()]
    equal(client.connection.openableBidirectional, 0)
    for (const stream of streams) equal((await client.answer(stream.sendHead(lines('GET', '/'), true))).status, 200)
    await client.until('credit for more', () => client.connection.openableBidirectional > 0)
  })
})

describe('clients that read nothing', { skip }, () => {
  for (const [name, cluster] of upstreams) {
    test(`hold upstreams of ${name} back, and nobody else; when they read, they get it all`, { timeout: 60_000 }, async (context) => {
      let made = 0
      const size = 8 * megabyte
      const fetch = (request: { url: string }): Response => {
        if (!request.url.endsWith('/large')) return new Response('small')
        let left = size
        const body = new ReadableStream<Uint8Array>(
          {
            pull(controller) {
              controller.enqueue(new Uint8Array(65_536))
              made += 65_536
              left -= 65_536
              if (left === 0) controller.close()
            },
          },
          { highWaterMark: 0 },
        )
        return new Response(body)
      }
      const server = cluster === http3Cluster ? await http3Origin(context, { fetch }) : await origin(context, { fetch })
      const { connect, gateway } = await start(context, [server.port], { cluster })
      const slow = await connect({ quic: { initialMaxStreamData: 65_536, initialMaxData: 4 * megabyte } })
      const streams: ProbeStream[] = []
      for (let i = 0; i < 8; i++) {
        const stream = await slow.open()
        stream.reads = stream.keeps = false
        streams.push(stream.sendHead(lines('GET', '/large'), true))
      }
      // Until nothing moves any more.
      for (let before = -1; before !== made || made === 0;) {
        before = made
        await sleep(300)
      }
      // By TCP what the kernel holds; else windows of 128 KiB, and what an origin has ready besides.
      ok(made < (cluster === '' ? 7 * size : 3 * megabyte), `${made / megabyte} MiB are on their way`)
      const good = await connect()
      for (let i = 0; i < 20; i++) equal((await good.answer(await good.request(lines('GET', '/small')))).content, 'small')
      for (const stream of streams) {
        stream.reads = true
        stream.read()
      }
      await slow.until('everything', () => streams.every(({ ended }) => ended))
      for (const { count } of streams) ok(count > size && count < size * 1.01, `${count} octets`)
      deepEqual(await idle(gateway), [0, 0])
    })
  }
})
