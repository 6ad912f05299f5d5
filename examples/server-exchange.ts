// The raw face: what the engine tells and takes, without Request and Response. Run it by `npm run example -- server-exchange`, then: curl -d hello http://localhost:8080
import { responseHead, type Exchange, type ExchangeHandler, type Head } from 'heddle/http'
import { serve } from 'heddle/server'

/** Sends the request's content back as it comes, no faster than the client takes it. */
class Echo implements ExchangeHandler {
  readonly exchange: Exchange

  constructor(exchange: Exchange) {
    this.exchange = exchange
  }

  onHead(head: Head, end: boolean): void {
    this.exchange.sendHead(responseHead(200, ['x-method', head.method]), end)
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.exchange.sendData(buffer, start, limit, end)
  }

  onTrailers(): void {
    this.exchange.sendTrailers([])
  }

  onSent(byteCount: number): void {
    this.exchange.consume(byteCount)
  }

  onPriority(): void {}

  onClose(): void {}
}

const server = await serve({ port: Number(process.env['PORT'] ?? 8080), onExchange: (exchange) => new Echo(exchange) })
console.log(server.url)
process.once('SIGTERM', () => void server.close())
