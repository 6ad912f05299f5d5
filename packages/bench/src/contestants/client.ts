/**
 * A client under test: `client.ts KIND PORT CONCURRENCY`. Says `ready`, then for every line `go MS` on
 * its standard input keeps CONCURRENCY requests in flight for MS, HTTP/1.1 on as many connections and
 * HTTP/2 on one, and prints `done REQUESTS SECONDS`.
 */
import http from 'node:http'
import http2 from 'node:http2'
import { createInterface } from 'node:readline'
import { Client } from 'heddle'
import { requestHead, type Exchange, type HeddleError } from 'heddle/http'
import type { ClientExchangeHandler } from 'heddle/client'
import { Agent, fetch as undiciFetch, H2CClient, request as undiciRequest } from 'undici'

const [, , kind, port, connectionsText] = process.argv as [string, string, string, string, string]
const connections = Number(connectionsText)
const url = `http://127.0.0.1:${port}/`
let deadline = 0
let count = 0

const loops: Record<string, () => (finished: () => void) => void> = {
  heddle: () => raw(new Client({ maxConnectionsPerOrigin: connections })),
  'heddle-h2': () => raw(new Client({ h2c: true })),
  'node:http2': () => {
    const session = http2.connect(url)
    const ask = (finished: () => void): void => {
      const request = session.request({ ':path': '/' })
      request.on('error', (error) => {
        throw error
      })
      request.resume()
      request.on('end', () => {
        count++
        if (performance.now() < deadline) ask(finished)
        else finished()
      })
      request.end()
    }
    return ask
  },
  'undici-h2': () => {
    const client = new H2CClient(url.slice(0, -1), { pipelining: connections, maxConcurrentStreams: connections })
    return promised(async () => await (await client.request({ path: '/', method: 'GET' })).body.dump())
  },
  'heddle-fetch': () => {
    const client = new Client({ maxConnectionsPerOrigin: connections })
    return promised(async () => await (await client.fetch(url)).text())
  },
  undici: () => {
    const dispatcher = new Agent({ connections, pipelining: 1 })
    return promised(async () => await (await undiciRequest(url, { dispatcher })).body.dump())
  },
  'undici-fetch': () => {
    const dispatcher = new Agent({ connections, pipelining: 1 })
    return promised(async () => await (await undiciFetch(url, { dispatcher })).text())
  },
  'node:http': () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: connections })
    const once = (finished: () => void): void => {
      http.get(url, { agent }, (response) => {
        response.resume()
        response.on('end', () => {
          count++
          if (performance.now() < deadline) once(finished)
          else finished()
        })
      })
    }
    return once
  },
}

/** Requests by the raw face, each begun by the end of the one before. */
function raw(client: Client): (finished: () => void) => void {
  const origin = client.origin(url)
  const head = requestHead('GET', 'http', `127.0.0.1:${port}`, '/')
  class Loop implements ClientExchangeHandler {
    readonly #finished: () => void
    #exchange: Exchange | undefined
    constructor(finished: () => void) {
      this.#finished = finished
      client.exchange(origin, this)
    }
    onOpen(exchange: Exchange): void {
      this.#exchange = exchange
      exchange.sendHead(head, true)
    }
    onHead(): void {}
    onData(_buffer: Uint8Array, start: number, limit: number): void {
      this.#exchange?.consume(limit - start)
    }
    onTrailers(): void {}
    onSent(): void {}
    onPriority(): void {}
    onClose(error: HeddleError | undefined): void {
      if (error !== undefined) throw error
      count++
      if (performance.now() < deadline) client.exchange(origin, this)
      else this.#finished()
    }
  }
  return (finished) => void new Loop(finished)
}

function promised(ask: () => Promise<unknown>): (finished: () => void) => void {
  const loop = async (finished: () => void): Promise<void> => {
    while (performance.now() < deadline) {
      await ask()
      count++
    }
    finished()
  }
  return (finished) => void loop(finished)
}

const start = loops[kind]
if (start === undefined) throw new Error(`no client is called ${kind}; there are ${Object.keys(loops).join(', ')}`)
const loop = start()
console.log('ready')

createInterface({ input: process.stdin }).on('line', (line) => {
  const started = performance.now()
  deadline = started + Number(line.split(' ')[1])
  count = 0
  let running = connections
  for (let i = 0; i < connections; i++) {
    loop(() => {
      if (--running === 0) console.log(`done ${count} ${(performance.now() - started) / 1000}`)
    })
  }
})
process.on('SIGTERM', () => process.exit(0))
