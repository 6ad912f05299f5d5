import assert from 'node:assert/strict'
import { createHash, createPrivateKey, sign } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { describe, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { authority, clientContext, End, localhost, openssl, Pair, serverContext, skip, withPair } from './tls-pair.test.ts'
import { Level } from './types.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const calls = ['onCrypto', 'onSecret', 'onTransportParameters', 'onTicket'] as const

/** Runs `act` in the nth call of the handler's `what` on one side. */
function during(pair: Pair, side: 'client' | 'server', what: string, nth: number, act: () => void): void {
  let count = 0
  pair[side].during = (name) => {
    if (name === what && count++ === nth) act()
  }
}

describe('what a callback of OpenSSL must not do', { skip }, () => {
  test('a throw comes out of the outer call, wherever it was, and the next handshake is well', () => {
    let thrown = 0
    for (const side of ['client', 'server'] as const) {
      for (const what of calls) {
        for (let nth = 0; nth < 6; nth++) {
          const pair = new Pair()
          const error = new Error(`${side} ${what} ${nth}`)
          during(pair, side, what, nth, () => {
            throw error
          })
          try {
            pair.run()
          } catch (caught) {
            thrown++
            assert.equal(caught, error)
            // It is closed by that.
            assert.equal(pair[side].open.receive(Level.initial, new Uint8Array(10)), undefined)
          }
          pair.close()
        }
      }
    }
    assert.ok(thrown >= 16, String(thrown))
    withPair({}, (pair) => assert.ok(pair.complete))
  })

  test('a throw when the stack is at its end ends only that handshake', () => {
    const pair = new Pair()
    const dive = (): number => dive() + 1
    pair.server.during = (what) => void (what === 'onSecret' && dive())
    assert.throws(() => pair.run(), RangeError)
    pair.close()
    withPair({}, (next) => assert.ok(next.complete))
  })

  test('a call when the stack is nearly at its end is a RangeError before OpenSSL is called', () => {
    const lists = { clientContext: clientContext(), serverContext: serverContext() }
    const ends = { early: 0, whole: 0 }
    // Down to the end of the stack, and a handshake from every few frames on the way back, until they succeed.
    const dive = (depth: number): void => {
      try {
        dive(depth + 1)
      } catch {
        // The end.
      }
      if (ends.whole >= 3 || depth % 5 !== 0) return
      try {
        withPair(lists, (pair) => {
          assert.ok(pair.complete)
          ends.whole++
        })
      } catch (error) {
        assert.ok(error instanceof RangeError)
        ends.early++
      }
    }
    dive(0)
    assert.equal(ends.whole, 3)
    assert.ok(ends.early > 10)
    lists.clientContext.close()
    lists.serverContext.close()
  })

  test('closing itself, the other end or the context, wherever it is', () => {
    for (const side of ['client', 'server'] as const) {
      for (const what of calls) {
        for (let nth = 0; nth < 6; nth++) {
          const clients = clientContext()
          const servers = serverContext()
          const pair = new Pair({ clientContext: clients, serverContext: servers })
          const said: string[] = []
          during(pair, side, what, nth, () => {
            pair.client.open.close()
            pair.server.open.close()
            clients.close()
            servers.close()
            for (const end of [pair.client, pair.server]) end.during = (name) => said.push(name)
          })
          pair.run()
          // Nothing is told after the end.
          assert.deepEqual(said, [])
          assert.deepEqual(pair.faults, [undefined, undefined])
          pair.close()
          clients.close()
          servers.close()
        }
      }
    }
    withPair({}, (pair) => assert.ok(pair.complete))
  })

  test('a keylog that throws fails its handshake, and is reported', () => {
    const failures: unknown[] = []
    const error = new Error('disk full')
    const keylog = (): void => {
      throw error
    }
    withPair({ server: { keylog, onCallbackFailed: (failure) => failures.push(failure) } }, (pair) => {
      assert.equal(pair.server.fault?.code, 0x150)
      assert.match(pair.server.fault.message, /the keylog callback failed/)
      assert.equal(failures[0], error)
    })
    const both = (): void => {
      throw new Error('and that, too')
    }
    withPair({ server: { keylog, onCallbackFailed: both } }, (pair) => assert.equal(pair.server.fault?.code, 0x150))
  })

  test('closing in the SNI callback and in the keylog', () => {
    for (const name of ['sniCallback', 'keylog'] as const) {
      const act = (): undefined => void pair.server.open.close()
      const pair: Pair = new Pair({ server: { [name]: act } })
      pair.run()
      assert.equal(pair.server.fault, undefined)
      assert.equal(pair.server.open.complete, false)
      pair.close()
    }
  })

  test('more input given in the middle waits for the outer call', () => {
    const pair = new Pair()
    // Both ends call each other from within.
    pair.client.onCrypto = (level, bytes) => pair.server.receive(level, bytes)
    pair.server.onCrypto = (level, bytes) => pair.client.receive(level, bytes)
    pair.client.fault = pair.client.open.start()
    assert.deepEqual(pair.faults, [undefined, undefined])
    assert.ok(pair.complete)
    assert.equal(pair.client.tickets.length, 2)
    pair.close()
  })
})

describe('closing', { skip }, () => {
  test('at any moment, and again, does no harm', () => {
    for (let moment = 0; moment < 12; moment++) {
      const pair = new Pair()
      pair.pieceSize = 200
      let left = moment
      const { server } = pair
      const receive = server.receive.bind(server)
      server.receive = (level, bytes) => {
        if (left-- === 0) pair.close()
        receive(level, bytes)
      }
      pair.run()
      pair.close()
      pair.close()
      assert.equal(server.open.start(), undefined)
      assert.equal(server.open.receive(Level.handshake, new Uint8Array(3)), undefined)
    }
  })

  test('a context leaves its sessions to go on', () => {
    const clients = clientContext()
    const servers = serverContext()
    const pair = new Pair({ clientContext: clients, serverContext: servers })
    pair.client.open.start()
    for (const { level, bytes } of pair.client.flights.splice(0)) pair.server.receive(level, bytes)
    clients.close()
    servers.close()
    servers.close()
    pair.run()
    assert.ok(pair.complete)
    pair.close()
    assert.throws(() => clients.client({ host: 'localhost', transportParameters: new Uint8Array(0) }, pair.client), /closed/)
    assert.throws(() => servers.server({ transportParameters: new Uint8Array(0) }, pair.server), /closed/)
  })

  test('a context before the ClientHello comes refuses it', () => {
    const servers = serverContext()
    const pair = new Pair({ serverContext: servers })
    servers.close()
    pair.run()
    assert.equal(pair.server.fault?.alert, 112)
    pair.close()
  })

  test('a context makes sessions of its side only', () => {
    const clients = clientContext()
    const servers = serverContext()
    const handler = new End()
    const transportParameters = new Uint8Array(0)
    assert.throws(() => clients.server({ transportParameters }, handler), /the TLS context is for a client/)
    assert.throws(() => servers.client({ transportParameters, host: 'localhost' }, handler), /the TLS context is for a server/)
    clients.close()
    servers.close()
  })
})

describe('beside the rest of the process', { skip }, () => {
  test('errors of node:tls and ours do not mix', async () => {
    const strict = createServer({ cert: localhost.cert, key: localhost.key, ALPNProtocols: ['h2'] }, (socket) => socket.end('fine'))
    strict.on('tlsClientError', () => {})
    strict.listen(0, '127.0.0.1')
    await once(strict, 'listening')
    const { port } = strict.address() as { port: number }
    for (let i = 0; i < 8; i++) {
      const trusted = i % 2 === 0
      const socket: TLSSocket = connect({ port, host: '127.0.0.1', ALPNProtocols: ['h2'], ...(trusted ? { ca: authority.cert } : {}) })
      const ended = once(socket, trusted ? 'end' : 'error')
      const chunks: Buffer[] = []
      socket.on('data', (chunk: Buffer) => chunks.push(chunk))
      // In the middle of that: handshakes that fail in all ways, and ones that do not.
      for (let step = 0; step < 4; step++) {
        withPair({ session: { host: 'other.test' } }, (pair) => assert.equal(pair.client.fault?.alert, 42))
        withPair({ client: { alpn: ['x'] } }, (pair) => assert.equal(pair.server.fault?.alert, 120))
        withPair({}, (pair) => assert.ok(pair.complete))
        assert.throws(() => createPrivateKey('garbage'))
        await turn()
      }
      const [error] = (await ended) as [Error | undefined]
      if (trusted) assert.equal(Buffer.concat(chunks).toString(), 'fine')
      else assert.match(error?.message ?? '', /unable to (verify|get)/)
      socket.destroy()
    }
    strict.close()
    await once(strict, 'close')
  })

  test('errors that others left in the queue are not taken for ours, and none is left there', () => {
    const { f } = openssl()
    const pair = new Pair()
    const leave = (): void => {
      // An operation that fails without cleaning up.
      f.SSL_CTX_set_ciphersuites(context, 'NONSENSE')
    }
    const context = f.SSL_CTX_new(f.TLS_method())
    for (const end of [pair.client, pair.server]) {
      const receive = end.receive.bind(end)
      end.receive = (level, bytes) => {
        leave()
        receive(level, bytes)
        assert.equal(f.ERR_get_error(), 0n)
      }
    }
    leave()
    pair.run()
    assert.deepEqual(pair.faults, [undefined, undefined])
    assert.ok(pair.complete)
    pair.close()
    withPair({ client: { alpn: ['x'] } }, () => {})
    assert.equal(f.ERR_get_error(), 0n)
    f.SSL_CTX_free(context)
    assert.ok(sign('sha256', createHash('sha256').digest(), localhost.key).length > 0)
  })

  test('thousands of handshakes take no more memory than hundreds', () => {
    const clients = clientContext()
    const servers = serverContext()
    const lists = { clientContext: clients, serverContext: servers }
    const round = (count: number): void => {
      for (let i = 0; i < count; i++) {
        const pair = new Pair(lists)
        // Some end in the middle, and some badly.
        if (i % 4 === 0) pair.client.open.start()
        else if (i % 4 === 1) pair.server.receive(Level.initial, new Uint8Array(50))
        else pair.run()
        pair.close()
      }
    }
    round(800)
    const before = process.memoryUsage.rss()
    round(2400)
    const grown = process.memoryUsage.rss() - before
    // A session that is not freed is worth some 20 KB, so all of them would be 48 MB and more.
    assert.ok(grown < 24 * 1024 * 1024, `${grown} octets more`)
    clients.close()
    servers.close()
  })

  test('contexts and updates that come and go take no memory with them', () => {
    const round = (count: number): void => {
      for (let i = 0; i < count; i++) {
        const servers = serverContext({ names: { 'one.test': { cert: localhost.cert, key: localhost.key } } })
        for (let j = 0; j < 5; j++) servers.update({ cert: localhost.cert, key: localhost.key })
        assert.throws(() => servers.update({ cert: localhost.cert, key: 'garbage' }))
        servers.close()
        clientContext().close()
      }
    }
    round(20)
    const before = process.memoryUsage.rss()
    round(100)
    const grown = process.memoryUsage.rss() - before
    // 1,300 contexts of some 20 KB and more.
    assert.ok(grown < 16 * 1024 * 1024, `${grown} octets more`)
  })

  test('worker threads shake hands each for itself, and may be ended in the middle', async () => {
    const source = `
      import { parentPort } from 'node:worker_threads'
      import { Pair } from ${JSON.stringify(new URL('tls-pair.test.ts', import.meta.url).href)}
      let count = 0
      const round = () => {
        for (let i = 0; i < 5; i++) {
          const pair = new Pair().run()
          if (!pair.complete) throw new Error('not complete')
          pair.close()
          count++
        }
        parentPort.postMessage(count)
        setImmediate(round)
      }
      round()
    `
    for (const rounds of [1, 2, 4]) {
      const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
        execArgv: ['--conditions=@heddle/source'],
      })
      const failed = once(worker, 'error')
      for (let i = 0; i < rounds; i++) {
        const [message] = (await Promise.race([once(worker, 'message'), failed])) as [unknown]
        assert.equal(typeof message, 'number', String(message))
        withPair({}, (pair) => assert.ok(pair.complete))
      }
      await worker.terminate()
      withPair({}, (pair) => assert.ok(pair.complete))
    }
  })
})
