/** What a handler throws in its last call is told, and harms nobody: over HTTP/1.1 and HTTP/2, server and client. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Client } from 'heddle/client'
import { requestHead, responseHead, type Exchange, type ExchangeHandler, type Head } from 'heddle/http'
import { acceptWebSocket, connect } from 'heddle/websocket'
import { serve, type Server, type ServeOptions } from 'heddle/server'

const versions = ['h1', 'h2'] as const

async function open(t: TestContext, version: 'h1' | 'h2', options: Partial<ServeOptions>): Promise<{ server: Server; client: Client }> {
  const server = await serve({ hostname: '127.0.0.1', protocols: [version === 'h1' ? 'http/1.1' : 'h2'], ...options })
  const client = new Client({ protocols: [version], h2c: version === 'h2', maxConnectionsPerOrigin: 1 })
  t.after(async () => {
    client.destroy()
    await server.close({ deadline: 0 })
    const { connections, exchanges } = server.stats()
    assert.deepEqual({ connections, exchanges }, { connections: 0, exchanges: 0 })
  })
  return { server, client }
}

class Quiet implements ExchangeHandler {
  onHead(_head: Head, _end: boolean): void {}
  onData(): void {}
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(): void {}
}

class Answering extends Quiet {
  readonly exchange: Exchange
  readonly failure: Error

  constructor(exchange: Exchange, failure: Error) {
    super()
    this.exchange = exchange
    this.failure = failure
  }

  override onHead(): void {
    this.exchange.sendHead(responseHead(204), true)
  }

  override onClose(): void {
    throw this.failure
  }
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; !condition(); i++) {
    assert.ok(i < 5_000, 'it never came')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** The next warning of the process; others are left to the default. */
function warning(): Promise<Error> {
  return new Promise((resolve) => process.once('warning', resolve))
}

for (const version of versions) {
  test(`${version}: the server's onError is told of an onClose that throws, and the connection goes on`, { timeout: 20_000 }, async (t) => {
    const told: unknown[] = []
    const failure = new Error('of the last call')
    const { server, client } = await open(t, version, {
      onExchange: (exchange) => new Answering(exchange, failure),
      onError: (error) => {
        told.push(error)
        throw new Error('and so does onError')
      },
    })
    for (let i = 0; i < 3; i++) assert.equal((await client.fetch(server.url)).status, 204)
    await until(() => told.length === 3)
    assert.deepEqual(told, [failure, failure, failure])
    assert.equal(server.stats().accepted, 1)
  })

  test(`${version}: a client's onClose that throws is a warning, and the connection goes on`, { timeout: 20_000 }, async (t) => {
    const { server, client } = await open(t, version, {
      onExchange: (exchange) => new Answering(exchange, new Error('unseen')),
      onError() {},
    })
    const warned = warning()
    const url = new URL(server.url)
    class Asking extends Quiet {
      onOpen(exchange: Exchange): void {
        exchange.sendHead(requestHead('GET', 'http', url.host, '/'), true)
      }
      override onClose(): void {
        throw new Error(`the client's last call over ${version}`)
      }
    }
    client.exchange(server.url, new Asking())
    const { name, message } = await warned
    assert.equal(name, 'HeddleWarning')
    assert.match(message, new RegExp(`the client's last call over ${version}`))
    assert.equal((await client.fetch(server.url)).status, 204)
    assert.equal(server.stats().accepted, 1)
  })

  test(`${version}: so is that of a WebSocket's handler told, on both sides`, { timeout: 20_000 }, async (t) => {
    const told: unknown[] = []
    const failure = new Error('the last call of a WebSocket')
    const handler = {
      onMessage(): void {},
      onClose(): void {
        throw failure
      },
    }
    const { server, client } = await open(t, version, {
      websocket: true,
      onExchange: (exchange) =>
        new (class extends Quiet {
          override onHead(head: Head): void {
            const socket = acceptWebSocket(exchange, head)
            if (socket !== undefined) socket.handler = handler
          }
        })(),
      onError: (error) => void told.push(error),
    })
    const warned = warning()
    const socket = await connect(server.url.replace('http', 'ws'), { client })
    socket.handler = handler
    socket.close(1000)
    assert.match((await warned).message, /the last call of a WebSocket/)
    await until(() => told.length > 0)
    assert.deepEqual(told, [failure])
    assert.equal((await socket.closed).wasClean, true)
  })
}

test('a request that never had a connection: what its onClose throws is a warning, whatever it is', { timeout: 20_000 }, async () => {
  await using client = new Client()
  for (const thrown of [new Error('without a connection'), undefined, Object.create(null) as object]) {
    const warned = warning()
    class Unlucky extends Quiet {
      onOpen(): void {}
      override onClose(): void {
        throw thrown
      }
    }
    client.exchange('http://127.0.0.1:1', new Unlucky()).cancel(1)
    const { name, message } = await warned
    assert.equal(name, 'HeddleWarning')
    assert.match(message, thrown instanceof Error ? /without a connection/ : /a handler threw (undefined|object)/)
  }
})
