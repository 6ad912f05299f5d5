/**
 * Keeps streams of HTTP/3 busy with GETs by Heddle's client: `h3-generator.ts LOAD`, an {@link Http3Load}
 * in JSON. Prints what {@link http3Load} returns, in JSON. It is slower than the servers at times, so
 * their CPU per request is what counts.
 */
import { Client, type ClientExchangeHandler } from 'heddle/client'
import { requestHead, type Exchange, type Head, type HeddleError } from 'heddle/http'
import type { Http3Load } from './load.ts'

const { port, connections, streams, seconds } = JSON.parse(process.argv[2] as string) as Http3Load
const origin = `https://127.0.0.1:${port}`
const deadline = performance.now() + seconds * 1000
const head = requestHead('GET', 'https', `127.0.0.1:${port}`, '/', [])
let requests = 0
let failed = 0
let running = connections * streams

/** Asks again and again until the time is over. */
class Asker implements ClientExchangeHandler {
  readonly client: Client
  exchange: Exchange | undefined
  status: number

  constructor(client: Client) {
    this.client = client
    this.exchange = undefined
    this.status = 0
  }
  onOpen(exchange: Exchange): void {
    this.exchange = exchange
    exchange.sendHead(head, true)
  }
  onHead({ status }: Head): void {
    this.status = status
  }
  onData(_buffer: Uint8Array, start: number, limit: number): void {
    this.exchange?.consume(limit - start)
  }
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    if (error === undefined && this.status === 200) requests++
    else if (++failed > 100 && requests === 0) throw error ?? new Error(`status ${this.status}`)
    if (performance.now() < deadline) this.client.exchange(origin, this)
    else if (--running === 0) finish()
  }
}

const started = performance.now()
const clients = Array.from(
  { length: connections },
  () => new Client({ protocols: ['h3'], maxConnectionsPerOrigin: 1, tls: { rejectUnauthorized: false } }),
)
for (const client of clients) for (let i = 0; i < streams; i++) client.exchange(origin, new Asker(client))

function finish(): void {
  console.log(JSON.stringify({ requests, seconds: (performance.now() - started) / 1000, failed }))
  process.exit(0)
}
