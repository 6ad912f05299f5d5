/** Many connections, and clients that mean no good: nothing is left, and the others are served. */
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test, type TestOptions } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Http3Client, noHttp3 } from '../../test/h3-client.ts'
import { authority, clientPort, localhost, serveHttp3, until } from '../../test/h3-scene.ts'
import { makeCertificate, memoryNow, type Certificate } from '../testing/index.ts'
import { Response } from './index.ts'

const slow: TestOptions = { timeout: 110_000, skip: noHttp3 }

test('many connections, one after the other, leave nothing', slow, async (t) => {
  const { server, told } = await serveHttp3(t, async (request) => new Response(await request.text()))
  const port = await clientPort(t)
  const askOnce = async (i: number): Promise<void> => {
    const client = new Http3Client({ port: server.port, host: 'localhost', ca: authority.cert, from: port })
    const { text } = await client.ask({ method: 'POST', body: `body ${i}` })
    assert.equal(text, `body ${i}`)
    await client.close()
  }
  const round = async (count: number): Promise<number> => {
    for (let i = 0; i < count; i += 10) await Promise.all(Array.from({ length: 10 }, (_, k) => askOnce(i + k)))
    await until(() => server.stats().connections === 0 && port.driver.connections === 0, 'all are gone')
    return memoryNow()
  }
  // The first ones make what is made once.
  await round(300)
  const before = await round(200)
  const after = await round(1_000)
  const { connections, handshakes, exchanges, deadlines, handshakesFailed, rejected, http3 } = server.stats()
  assert.deepEqual(
    { connections, handshakes, exchanges, deadlines, handshakesFailed, rejected, accepted: http3.accepted },
    { connections: 0, handshakes: 0, exchanges: 0, deadlines: 0, handshakesFailed: 0, rejected: 0, accepted: 1_500 },
  )
  assert.deepEqual(told, [])
  // A connection that is kept costs tens of kilobytes.
  assert.ok(after - before < 1_000 * 4_096, `${after - before} bytes more`)
})

test('from a tenth of maxHandshakes on clients must show their address, and are served all the same', slow, async (t) => {
  const gate = Promise.withResolvers<Certificate>()
  const { server, connect: dial } = await serveHttp3(t, () => new Response('served'), {
    maxHandshakes: 20,
    handshakeTimeout: 60_000,
    tls: { cert: localhost.cert, key: localhost.key, sniCallback: (name) => (name === 'late.test' ? gate.promise : undefined) },
  })
  const late = ['late.test', 'late.test'].map((host) => dial({ host }))
  for (const client of late) client.ready.catch(() => {})
  await until(() => server.stats().handshakes === 2, 'two handshakes')
  const client = dial()
  assert.equal((await client.ask()).text, 'served')
  assert.notEqual(client.quic?.retrySource, undefined, 'it was sent away once')
  gate.resolve(makeCertificate({ names: ['late.test'], ca: authority }))
  await until(() => server.stats().handshakes === 0, 'the others')
  // They count until they have said their last words, as whoever forges addresses leaves many that fail.
  let unasked = dial()
  for (let tries = 0; tries < 100; tries++) {
    assert.equal((await unasked.ask()).text, 'served')
    if (unasked.quic?.retrySource === undefined) break
    await delay(50)
    unasked = dial()
  }
  assert.equal(unasked.quic?.retrySource, undefined)
})

test('handshakes that never end make room for others', slow, async (t) => {
  const { server, connect: dial } = await serveHttp3(t, () => new Response('served'), {
    maxHandshakes: 3,
    handshakeTimeout: 60_000,
    tls: {
      cert: localhost.cert,
      key: localhost.key,
      sniCallback: (name) => (name === 'late.test' ? new Promise(() => {}) : undefined),
    },
  })
  const stuck = Array.from({ length: 3 }, () => dial({ host: 'late.test' }))
  for (const client of stuck) client.ready.catch(() => {})
  await until(() => server.stats().handshakes === 3, 'no room')
  // It asks again until the oldest of them has had its second.
  assert.equal((await dial().ask()).text, 'served')
  const { handshakes, handshakesFailed } = server.stats()
  assert.deepEqual([handshakes, handshakesFailed], [2, 1])
})

test('datagrams that are none of QUIC’s harm nobody', slow, async (t) => {
  const { server, connect: dial, told } = await serveHttp3(t, () => new Response('served'))
  const client = dial()
  await client.ask()
  const socket = createSocket('udp4')
  t.after(() => socket.close())
  socket.connect(server.port, '127.0.0.1')
  await once(socket, 'connect')
  let seed = 1
  const random = (): number => (seed = (seed * 48_271) % 0x7fff_ffff)
  for (let i = 0; i < 500; i++) {
    const datagram = Buffer.from(Array.from({ length: 1 + (random() % 1_400) }, () => random() & 0xff))
    // Long headers of version 1 among them.
    if (i % 2 === 0 && datagram.length > 5) datagram.set([0xc0 | (datagram[0] as number), 0, 0, 0, 1])
    socket.send(datagram)
    if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal((await client.ask()).text, 'served')
  assert.equal((await dial().ask()).text, 'served')
  const { handshakesFailed, handshakes } = server.stats()
  assert.deepEqual([handshakesFailed, handshakes, told], [0, 0, []])
})

test('requests that are reset at once, again and again, cost the connection', slow, async (t) => {
  const {
    server,
    connect: dial,
    told,
  } = await serveHttp3(t, () => new Promise<Response>(() => {}), {
    http3: { resetBurst: 50, resetRate: 1 },
  })
  const client = dial()
  await client.ready
  let error: { wireCode?: number } | undefined
  void client.closed.then((reason) => (error = (reason ?? {}) as { wireCode?: number }))
  while (error === undefined) {
    const talk = client.start({}, true)
    talk.out.on('error', () => {})
    await new Promise((resolve) => setImmediate(resolve))
    talk.abort()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal((error as { wireCode?: number }).wireCode, 0x107, 'H3_EXCESSIVE_LOAD')
  await until(() => server.stats().exchanges === 0, 'nothing is open')
  const other = dial()
  const asked = other.start({}, true)
  await until(() => server.stats().exchanges === 1, 'others are served')
  asked.abort()
  assert.deepEqual(told, [])
})
