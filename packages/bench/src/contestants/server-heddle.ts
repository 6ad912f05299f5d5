/**
 * Heddle's server: `server-heddle.ts KIND [SIZE] [tls | h3]`. KIND is `raw`, `fetch` (heddle's Response) or
 * `fetch-native` (Node's Response); SIZE the octets of its answer. The streams a connection may have
 * open are not what is measured, so there may be many.
 */
import { responseHead, type Exchange, type ExchangeHandler, type Head } from 'heddle/http'
import { Response as HeddleResponse, serve } from 'heddle'
import { makeCertificate } from 'heddle/testing'

const size = Number(process.argv[3] ?? 12)
const content = size === 12 ? Buffer.from('hello, world') : Buffer.alloc(size, 'x')
const head = responseHead(200, ['content-type', 'text/plain', 'content-length', String(content.length)])

class Answer implements ExchangeHandler {
  readonly exchange: Exchange
  constructor(exchange: Exchange) {
    this.exchange = exchange
  }
  onHead(_head: Head, end: boolean): void {
    if (end) this.#send()
  }
  onData(_buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.exchange.consume(limit - start)
    if (end) this.#send()
  }
  #send(): void {
    this.exchange.sendHead(head, false)
    this.exchange.sendOwned(content, true)
  }
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(): void {}
}

const kind = process.argv[2]
const body = size === 12 ? 'hello, world' : content
const text = { headers: { 'content-type': 'text/plain' } }
const server = await serve({
  port: 0,
  hostname: '127.0.0.1',
  http2: { maxConcurrentStreams: 1_000 },
  ...(process.argv[4] === undefined ? {} : { tls: makeCertificate({ names: ['localhost'] }) }),
  ...(process.argv[4] === 'h3' ? { protocols: ['h3'] as const, http3: { maxConcurrentStreams: 1_000 } } : {}),
  ...(kind === 'raw'
    ? { onExchange: (exchange: Exchange) => new Answer(exchange) }
    : kind === 'fetch'
      ? { fetch: () => new HeddleResponse(body, text) }
      : { fetch: () => new Response(body, text) }),
})
console.log(`ready ${server.port}`)
process.on('SIGTERM', () => process.exit(0))
