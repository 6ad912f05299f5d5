// The raw face that the gateway builds on: no promise, no stream, no copy. `npm run example -- client-raw [URL]`.
// Without a URL it asks http://localhost:8080, where the example server-hello listens.
import { Client } from 'heddle'
import type { ClientExchangeHandler } from 'heddle/client'
import { requestHead, type Exchange, type Fields, type Head, type HeddleError } from 'heddle/http'

const client = new Client()
const url = new URL(process.argv[2] ?? 'http://localhost:8080/')
const origin = client.origin(url)

class Printer implements ClientExchangeHandler {
  exchange: Exchange | undefined
  byteCount = 0
  onOpen(exchange: Exchange): void {
    this.exchange = exchange
    exchange.sendHead(requestHead('GET', origin.scheme, origin.authority, url.pathname, ['accept', '*/*']), true)
  }
  onHead(head: Head): void {
    console.log(head.status)
  }
  onData(_buffer: Uint8Array, start: number, limit: number): void {
    this.byteCount += limit - start
    this.exchange?.consume(limit - start)
  }
  onTrailers(_fields: Fields): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    console.log(error === undefined ? `${this.byteCount} bytes` : error.code)
    void client.close()
  }
}

client.exchange(origin, new Printer())
