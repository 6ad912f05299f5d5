/**
 * Soak: many requests over connections that are kept, through a gateway, everything in this process. Fails if memory
 * grows or a count does not return to zero.
 *
 *     node --conditions=@heddle/source packages/heddle-gateway/test/soak.ts [requests, default 1000000] [h1 or h2, default h1]
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Client, responseHead, serve, type ClientExchangeHandler, type Exchange, type ExchangeHandler } from 'heddle'
import { requestHead } from 'heddle/http'
import { collectGarbage } from 'heddle/testing'
import { parseConfig, startGateway } from '../src/index.ts'

// V8 lets its young generation grow in steps of many megabytes, whenever it likes: with a fixed size,
// memory that grows is memory that is kept.
if (!process.execArgv.some((option) => option.startsWith('--min-semi-space-size'))) {
  const options = ['--min-semi-space-size=16', '--max-semi-space-size=16', ...process.execArgv]
  const { status } = spawnSync(process.execPath, [...options, fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  process.exit(status ?? 1)
}

const total = Number(process.argv[2] ?? 1_000_000)
const warmUp = Math.min(100_000, Math.ceil(total / 10))
const version = process.argv[3] ?? 'h1'
/** Requests at once, and with HTTP/1.1 the connections they are on. */
const connections = 50
/** One of so many is given up: few enough for the limit of resets. */
const givenUp = version === 'h1' ? 1_000 : 10_000

const content = Buffer.from('{"message":"hello"}\n')
const responseFields = ['content-type', 'application/json', 'content-length', String(content.length)]

/** Answers every request once it has come to its end. */
class Answer implements ExchangeHandler {
  readonly exchange: Exchange
  constructor(exchange: Exchange) {
    this.exchange = exchange
  }
  onHead(_head: unknown, end: boolean): void {
    if (end) this.#send()
  }
  onData(_buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.exchange.consume(limit - start)
    if (end) this.#send()
  }
  onTrailers(): void {
    this.#send()
  }
  onSent(): void {}
  onPriority(): void {}
  onClose(): void {}
  #send(): void {
    this.exchange.sendHead(responseHead(200, responseFields), false)
    this.exchange.sendOwned(content, true)
  }
}

await using origin = await serve({ hostname: '127.0.0.1', onExchange: (exchange) => new Answer(exchange) })
await using gateway = await startGateway(
  parseConfig(`
listeners: [{ name: web, host: 127.0.0.1, port: 0 }]
routes: [{ name: all, cluster: app, timeout: 30s }]
clusters:
  - name: app
    endpoints: ['127.0.0.1:${origin.port}']
    maxConnectionsPerEndpoint: ${connections}
    protocol: ${version === 'h1' ? 'h1' : 'h2c'}
    http2: { idleTimeout: 4s }
`),
)
await using client = new Client({ maxConnectionsPerOrigin: connections, h2c: version !== 'h1', http2: { idleTimeout: 4_000 } })
const target = client.origin(`http://127.0.0.1:${gateway.addresses[0]?.port}`)

let begun = 0
let done = 0
let failed = 0
const upload = Buffer.alloc(2_000, 0x75)

/** One request after another until all are begun: most are GETs, some have content, some are given up. */
class Asker implements ClientExchangeHandler {
  readonly #finished: () => void
  readonly #until: number
  #exchange: Exchange | undefined
  #number = 0
  #received = 0

  constructor(until: number, finished: () => void) {
    this.#until = until
    this.#finished = finished
  }
  next(): void {
    if (begun >= this.#until) {
      this.#finished()
      return
    }
    this.#number = begun++
    this.#received = 0
    client.exchange(target, this)
  }
  onOpen(exchange: Exchange): void {
    this.#exchange = exchange
    const posts = this.#number % 10 === 9
    const fields = posts ? ['content-length', String(upload.length)] : ['accept', '*/*', 'x-number', String(this.#number % 100)]
    exchange.sendHead(requestHead(posts ? 'POST' : 'GET', 'http', target.authority, `/path/${this.#number % 1_000}`, fields), !posts)
    if (posts) exchange.sendOwned(upload, true)
    if (this.#number % givenUp === 500) exchange.cancel(1)
  }
  onHead(): void {}
  onData(_buffer: Uint8Array, start: number, limit: number): void {
    this.#received += limit - start
    this.#exchange?.consume(limit - start)
  }
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(): void {
    done++
    if (this.#received !== content.length && this.#number % givenUp !== 500) failed++
    setImmediate(() => this.next())
  }
}

function run(until: number): Promise<unknown> {
  return Promise.all(Array.from({ length: connections }, () => new Promise<void>((resolve) => new Asker(until, resolve).next())))
}

function rss(): number {
  collectGarbage()
  collectGarbage()
  return process.memoryUsage.rss() / 1024 / 1024
}

const problems: string[] = []
await run(warmUp)
const warm = rss()
console.log(`warmed up with ${done} requests: ${warm.toFixed(1)} MB`)
const step = Math.ceil((total - warmUp) / 10)
for (let until = warmUp + step; begun < total; until += step) {
  const startedAt = performance.now()
  const before = done
  await run(Math.min(until, total))
  const perSecond = ((done - before) / (performance.now() - startedAt)) * 1_000
  console.log(`${done} requests: ${rss().toFixed(1)} MB, ${perSecond.toFixed(0)}/s`)
}
const end = rss()
if (end > warm * 1.2) problems.push(`RSS grew from ${warm.toFixed(1)} to ${end.toFixed(1)} MB`)
if (failed > 0) problems.push(`${failed} requests failed`)

// Idle: every time limit of a kept-alive connection has passed.
await new Promise((resolve) => setTimeout(resolve, 6_000))
const zero = (name: string, value: number | undefined): void => {
  if (value !== 0) problems.push(`${name} is ${value}`)
}
const { listeners, clusters } = await gateway.snapshot()
zero('listener.exchanges', listeners[0]?.exchanges)
zero('cluster.active', clusters[0]?.active)
zero('cluster.waiting', clusters[0]?.waiting)
zero('cluster.connections', clusters[0]?.connections)
zero('origin.exchanges', origin.stats().exchanges)
zero('origin.connections', origin.stats().connections)
const stats = client.stats()
zero('client.active', stats.active)
zero('client.waiting', stats.waiting)
zero('client.connections', stats.connections)
zero('listener.connections', listeners[0]?.connections)

for (const problem of problems) console.error(`FAILED: ${problem}`)
if (problems.length === 0) console.log(`ok: ${done} requests, RSS ${(end / warm).toFixed(2)} of the warmed-up value, all counts zero`)
process.exitCode = problems.length === 0 ? 0 : 1
