/**
 * One client process: its only connection is busy with requests that are never answered (one over
 * HTTP/1.1, the 250 that the server allows over HTTP/2), `waiting` more stand behind them, and one more
 * is created and cancelled again and again. Prints a line of JSON per count; who starts it ends it when
 * that takes too long.
 */
import { writeSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { Client } from 'heddle'
import { CancelReason, requestHead, type Exchange } from 'heddle/http'
import type { ClientExchangeHandler } from 'heddle/client'
import { collectGarbage } from 'heddle/testing'
import { Agent, H2CClient } from 'undici'
import { waitingCounts, type QueueFact } from '../races/queue.ts'

const contestant = process.argv[2] as string
const isHttp2 = contestant.endsWith('2')
const allowed = 250
const server = isHttp2
  ? http2.createServer({ settings: { maxConcurrentStreams: allowed } })
  : net.createServer((socket) => socket.on('error', () => {}))
if (isHttp2) server.on('stream', (stream: http2.ServerHttp2Stream) => stream.on('error', () => {}))
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const port = (server.address() as AddressInfo).port
const url = `http://127.0.0.1:${port}/`
/** Creates one request and returns what cancels it. */
let create: () => () => void

if (contestant.startsWith('heddle')) {
  const client = new Client({ maxConnectionsPerOrigin: 1, maxWaitingPerOrigin: 1_000_000, h2c: isHttp2 })
  const origin = client.origin(url)
  const head = requestHead('GET', 'http', `127.0.0.1:${port}`, '/')
  class Waiting implements ClientExchangeHandler {
    onOpen(exchange: Exchange): void {
      exchange.sendHead(head, true)
    }
    onHead(): void {}
    onData(): void {}
    onTrailers(): void {}
    onSent(): void {}
    onPriority(): void {}
    onClose(): void {}
  }
  create = () => {
    const ticket = client.exchange(origin, new Waiting())
    return () => ticket.cancel(CancelReason.Cancelled)
  }
} else if (contestant === 'undici') {
  const agent = new Agent({ connections: 1, pipelining: 1 })
  create = () => {
    const controller = new AbortController()
    void agent.request({ origin: url, path: '/', method: 'GET', signal: controller.signal }).catch(() => {})
    return () => controller.abort()
  }
} else if (contestant === 'undici-h2') {
  const client = new H2CClient(url.slice(0, -1), { pipelining: allowed, maxConcurrentStreams: allowed })
  create = () => {
    const controller = new AbortController()
    void client.request({ path: '/', method: 'GET', signal: controller.signal }).catch(() => {})
    return () => controller.abort()
  }
} else if (contestant === 'node:http2') {
  const session = http2.connect(url)
  session.on('error', () => {})
  create = () => {
    const request = session.request({ ':path': '/' })
    request.on('error', () => {})
    return () => request.close(http2.constants.NGHTTP2_CANCEL)
  }
} else {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  create = () => {
    const request = http.get(url, { agent })
    request.on('error', () => {})
    return () => request.destroy()
  }
}

for (let i = 0; i < (isHttp2 ? allowed : 1); i++) create()
await new Promise((resolve) => setTimeout(resolve, 100))
let waiting = 0
const cancels: (() => void)[] = []
// The first count is run twice, and only the second is told: it warms the compiler up.
let warm = false
for (const count of [waitingCounts[0] as number, ...waitingCounts]) {
  for (; waiting < count; waiting++) {
    cancels.push(create())
    if (waiting % 1_000 === 999) await turn()
  }
  await turn()
  await turn()
  // What costs milliseconds each is measured often enough with fewer.
  const times = contestant.startsWith('heddle') ? 20_000 : count > 6_400 ? 100 : 1_000
  await churn(times / 4)
  // The queue was just built: collecting what that left behind is not the cost of one more.
  collectGarbage()
  const cpu = process.cpuUsage()
  const started = performance.now()
  const done = await churn(times)
  const { user, system } = process.cpuUsage(cpu)
  if (warm) tell({ waiting: count, cpuMicros: (user + system) / done, wallMicros: ((performance.now() - started) * 1000) / done })
  warm = true
}
const cancelStarted = performance.now()
for (const cancel of cancels) cancel()
await turn()
await turn()
tell({ cancelAllMs: performance.now() - cancelStarted })
process.exit(0)

function tell(fact: QueueFact): void {
  // At once, for this process may be ended any time.
  writeSync(1, `${JSON.stringify(fact)}\n`)
}

/** At most so many times, and not for long: what costs milliseconds is known soon. Returns how often it was. */
async function churn(times: number): Promise<number> {
  const deadline = performance.now() + 2_000
  let done = 0
  while (done < times && performance.now() < deadline) {
    create()()
    done++
    // Deferred work belongs to the cost.
    if (done % 100 === 0) await turn()
  }
  await turn()
  return done
}
