import { equal, ok } from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryNow, Random } from 'heddle/testing'
import { parseConfig, startGateway } from '../src/index.ts'

const host = 'Host: example.org\r\n'

/** Openings of connections that mean no good. What begins well (a faulty body) reaches the origin; what begins badly must not. */
const attacks: readonly ((random: Random) => string | Buffer)[] = [
  () =>
    `POST /attack HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /attack HTTP/1.1\r\n${host}\r\n`,
  () => `POST /attack HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef`,
  () => `POST /attack HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  () => `POST /attack HTTP/1.1\r\n${host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
  () => `GET /attack HTTP/1.1\r\n${host}X-A: 1\r\n X-Fold: 2\r\n\r\n`,
  () => `GET /attack HTTP/1.1\nHost: a\n\n`,
  () => `GET /attack HTTP/1.1\r\n${host}X-A: 1\rTransfer-Encoding: chunked\r\n\r\n`,
  () => `GET /attack\u0000 HTTP/1.1\r\n${host}\r\n`,
  () => `GET /attack HTTP/1.1\r\n\r\n`,
  () => `GET /attack HTTP/9.9\r\n${host}\r\n`,
  (random) => `GET /attack HTTP/1.1\r\n${host}${`X-${random.integer(0, 9)}: ${'v'.repeat(500)}\r\n`.repeat(200)}\r\n`,
  () => `GET /attack/${'a'.repeat(100_000)} HTTP/1.1\r\n${host}\r\n`,
  () => `GET /attack HTTP/1.1\r\n${host}X-Long: ${'v'.repeat(100_000)}\r\n\r\n`,
  (random) => random.bytes(random.integer(1, 2_000)),
  () => Buffer.from('16030100c8010000c40303', 'hex'),
  () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  () => `POST /body HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n`,
  () => `POST /body HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(10_000)}\r\na\r\n0\r\n\r\n`,
  () => `POST /body HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nBad Trailer: 1\r\n\r\n`,
  () => `POST /body HTTP/1.1\r\n${host}Content-Length: 1000\r\n\r\nand nothing more`,
  () => `GET /body HTTP/1.1\r\n${host}\r\nGET /attack HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`,
]

/** Sends `bytes`, perhaps in two pieces, waits a moment for what comes, and leaves, perhaps rudely. */
function attack(port: number, bytes: string | Buffer, random: Random): Promise<void> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' })
    const data = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
    const cut = random.chance(0.3) ? random.integer(0, data.length) : data.length
    const leaves = random.integer(0, 2)
    socket.on('error', () => {})
    socket.on('close', () => resolve())
    socket.on('data', () => {})
    socket.on('connect', () => {
      socket.write(data.subarray(0, cut))
      setImmediate(() => {
        if (cut < data.length) socket.write(data.subarray(cut))
        if (leaves === 0) socket.end()
        else if (leaves === 1) setTimeout(() => socket.resetAndDestroy(), random.integer(0, 20))
        else setTimeout(() => socket.destroy(), 100)
      })
    })
  })
}

test('10,000 malformed connections: the gateway goes on serving, and its memory comes back', { timeout: 120_000 }, async (context) => {
  const seen: string[] = []
  const origin = http.createServer((request, response) => {
    if (request.url !== '/body' && request.url !== '/good') seen.push(request.url ?? '')
    request.on('error', () => {})
    request.resume()
    request.on('end', () => response.end('good'))
  })
  origin.listen(0, '127.0.0.1')
  await once(origin, 'listening')
  const gateway = await startGateway(
    parseConfig(`
listeners: [{ name: web, host: 127.0.0.1, port: 0, limits: { headTimeout: 500ms, bodyTimeout: 500ms } }]
routes: [{ name: all, cluster: app }]
clusters: [{ name: app, endpoints: ['127.0.0.1:${(origin.address() as AddressInfo).port}'] }]
`),
  )
  context.after(async () => {
    await gateway.close({ deadline: 100 })
    origin.closeAllConnections()
    origin.close()
  })
  const port = gateway.addresses[0]?.port ?? 0
  const good = async (): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${port}/good`)
    equal(response.status, 200)
    equal(await response.text(), 'good')
  }
  const random = new Random(7)
  const wave = async (count: number): Promise<void> => {
    await Promise.all(
      Array.from({ length: count }, (_, i) => attack(port, (attacks[i % attacks.length] as (typeof attacks)[number])(random), random)),
    )
  }
  await wave(1_000)
  await good()
  await sleep(1_500)
  const before = await memoryNow()
  for (let i = 0; i < 50; i++) {
    await wave(200)
    if (i % 10 === 0) await good()
  }
  await good()
  // Whatever a connection was still allowed to wait for is over by then.
  await sleep(1_500)
  const after = await memoryNow()
  ok(after - before < 5 * 1024 * 1024, `${((after - before) / 1024 / 1024).toFixed(1)} MB more than before`)
  equal(seen.length, 0, `the origin saw ${seen.slice(0, 3).join(', ')}`)
  const { listeners, clusters } = await gateway.snapshot()
  equal(listeners[0]?.exchanges, 0)
  equal(clusters[0]?.active, 0)
  equal(clusters[0]?.waiting, 0)
})
