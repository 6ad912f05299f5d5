/** Heddle's server with a small answer: `raw`, `fetch` (heddle's Response) or `fetch-native` (Node's Response). */
import { responseHead, type Exchange, type ExchangeHandler, type Head } from 'heddle/http'
import { Response as HeddleResponse, serve } from 'heddle'

const content = Buffer.from('hello, world')
const head = responseHead(200, ['content-type', 'text/plain', 'content-length', String(content.length)])

class Answer implements ExchangeHandler {
  readonly exchange: Exchange
  constructor(exchange: Exchange) {
    this.exchange = exchange
  }
  onHead(_head: Head, end: boolean): void {
    if (!end) this.exchange.discard()
    this.exchange.sendHead(head, false)
    this.exchange.sendData(content, 0, content.length, true)
  }
  onData(): void {}
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(): void {}
}

const kind = process.argv[2]
const text = { headers: { 'content-type': 'text/plain' } }
const server = await serve({
  port: 0,
  hostname: '127.0.0.1',
  ...(kind === 'raw'
    ? { onExchange: (exchange: Exchange) => new Answer(exchange) }
    : kind === 'fetch'
      ? { fetch: () => new HeddleResponse('hello, world', text) }
      : { fetch: () => new Response('hello, world', text) }),
})
console.log(`ready ${server.port}`)
process.on('SIGTERM', () => process.exit(0))
