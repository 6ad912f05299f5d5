/** quic-go and aioquic as clients of the server's HTTP/3. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Server, ServeOptions } from 'heddle'
import { BrokenOff } from '../src/application.ts'
import { quicApplication } from '../src/quic-application.ts'
import { halfHandshake, quicClient, quicPeers, type QuicClient, type QuicPeer } from '../src/quic-peers.ts'
import { tellQuicStory } from '../src/quic-story.ts'
import { openFolder, openServer, until, type Folder } from '../src/stage.ts'
import { tellStory } from '../src/story.ts'

const quick = { timeout: 60_000 }

interface Place {
  readonly folder: Folder
  readonly server: Server
  readonly client: (peer: QuicPeer, ...flags: string[]) => QuicClient
}

async function open(t: TestContext, options: Partial<ServeOptions> = {}): Promise<Place> {
  const folder = openFolder(t)
  const { cert, key } = folder.identity
  const onError = (error: unknown): undefined => assert.ok(error instanceof BrokenOff, String(error)) as undefined
  const server = await openServer(t, { fetch: quicApplication(), onError, protocols: ['h3'], tls: { cert, key }, ...options })
  return { folder, server, client: (peer, ...flags) => quicClient(t, peer, server.port, folder, ...flags) }
}

/** quic-go chooses its suite by the processor, aioquic takes what it is told. */
const suites = ['AES_128_GCM_SHA256', 'AES_256_GCM_SHA384', 'CHACHA20_POLY1305_SHA256'] as const

for (const peer of quicPeers) {
  test(`${peer}, a client, and the server: the story`, quick, async (t) => {
    const { server, client } = await open(t)
    const its = client(peer)
    await tellStory(its, { version: 'h3', spoken: 'h3' })
    await tellQuicStory(its, peer === 'quic-go' ? 20_000_000 : 2_000_000)
    assert.equal(server.stats().http3.accepted, 1, 'everything on one connection')
    await its.close()
  })

  test(`${peer} comes back with a ticket`, quick, async (t) => {
    const { server, client } = await open(t)
    const its = client(peer)
    assert.equal((await its.ask({ path: '/hello' })).resumed, false)
    // The ticket comes with or after the first answer.
    await its.ask({ path: '/quic/later' })
    await its.do('leave')
    assert.equal((await its.ask({ path: '/hello' })).resumed, true)
    assert.equal(server.stats().http3.accepted, 2)
    await its.close()
  })

  test(`${peer} must show that it receives at its address (Retry)`, quick, async (t) => {
    const { server, folder, client } = await open(t, { maxHandshakes: 10 })
    await halfHandshake(t, server, folder)
    const its = client(peer)
    assert.equal((await its.ask({ path: '/hello' })).text, 'GET h3')
    assert.equal((await its.ask({ path: '/big' })).body.length, 2_000_000)
    if (peer === 'aioquic') {
      assert.equal(await its.do('retry'), 'True')
      // It was given a token for the next time.
      await its.do('leave')
      await its.ask({ path: '/hello' })
      assert.equal(await its.do('retry'), 'False')
    }
    await its.close()
  })

  test(`${peer} moves to another address, in the midst of it`, quick, async (t) => {
    const { server, client } = await open(t)
    const its = client(peer)
    await its.ask({ path: '/hello' })
    const under = its.ask({ path: '/quic/sized/3000000' })
    await its.do('migrate') // What comes to the old address is lost.
    assert.equal((await under).body.length, 3_000_000)
    assert.equal((await its.ask({ method: 'POST', path: '/echo', body: Buffer.alloc(300_000) })).body.length, 300_000)
    assert.equal(server.stats().http3.accepted, 1, 'still on one connection')
    await its.close()
  })

  test(`${peer} and a server that stops: what runs is finished`, quick, async (t) => {
    const { server, client } = await open(t)
    const its = client(peer)
    await its.ask({ path: '/hello' })
    const running = its.ask({ path: '/quic/later' })
    await until(() => server.stats().exchanges === 1, 'the request to arrive')
    await server.close()
    assert.equal((await running).text, 'later')
    await its.close()
  })
}

test('aioquic and each suite', quick, async (t) => {
  const { client } = await open(t)
  for (const suite of suites) {
    const its = client('aioquic', '-suite', suite)
    assert.equal((await its.ask({ path: '/quic/suite' })).text, `TLS_${suite}`)
    assert.equal((await its.ask({ path: '/big' })).body.length, 2_000_000)
    assert.equal((await its.ask({ method: 'POST', path: '/echo', body: 'there and back' })).text, 'there and back')
    await its.close()
  }
})

test('clients that begin with a version not spoken here are told what is', quick, async (t) => {
  const { client } = await open(t)
  const aioquic = client('aioquic', '-wrong-version')
  assert.equal((await aioquic.ask({ path: '/hello' })).text, 'GET h3')
  await aioquic.close()
  const go = client('quic-go', '-version2')
  await assert.rejects(go.ask({ path: '/hello' }), /no compatible QUIC version found \(we support \[v2\], server offered \[v1\]\)/)
  await go.close()
})

test('aioquic with small windows, and with connection ids of 20 octets', quick, async (t) => {
  const { client } = await open(t)
  for (const flags of [['-small-windows'], ['-id-length', '20']]) {
    const its = client('aioquic', ...flags)
    const [big, echo] = await Promise.all([
      its.ask({ path: '/big' }),
      its.ask({ method: 'POST', path: '/echo', body: Buffer.alloc(500_000, 'x') }),
    ])
    assert.deepEqual([big.body.length, echo.body.length], [2_000_000, 500_000])
    await its.close()
  }
})

test('aioquic updates its keys, changes its connection id, and is moved by a NAT', quick, async (t) => {
  const { server, client } = await open(t)
  const its = client('aioquic')
  await its.ask({ path: '/hello' })
  for (let i = 0; i < 4; i++) {
    assert.equal(await its.do('update keys'), `${(i + 1) % 2}`, 'the phase')
    assert.equal((await its.ask({ path: '/quic/sized/100000' })).body.length, 100_000)
  }
  for (let i = 0; i < 4; i++) {
    await its.do('change id')
    await its.do('rebind') // What comes to the socket it had is lost.
    assert.equal((await its.ask({ path: '/quic/sized/100000' })).body.length, 100_000)
  }
  // QPACK instructions went both ways: of our encoder, and what acknowledges them.
  const [inserted, received, acknowledged] = JSON.parse(await its.do('table')) as [number, number, number]
  assert.ok(inserted > 20 && received > 20 && acknowledged > 0, `${inserted}, ${received}, ${acknowledged}`)
  assert.equal(server.stats().http3.accepted, 1, 'still on one connection')
  await its.close()
})

test('a client that falls silent', quick, async (t) => {
  const { server, client } = await open(t)
  // Both ends agree on the smaller timeout.
  const its = client('aioquic', '-idle', '0.5')
  await its.ask({ path: '/hello' })
  assert.equal(server.stats().http3.connections, 1)
  await until(() => server.stats().http3.connections === 0, 'the server to forget it')
  assert.match(await its.do('ended'), /Idle timeout/)
  await its.close()
})

test('quic-go tunnels by extended CONNECT', quick, async (t) => {
  const { client } = await open(t, {
    fetch: undefined as never,
    upgrades: ['websocket'],
    onExchange: (exchange) => ({
      onHead: (head) => {
        const fits = head.method === 'CONNECT' && head.protocol === 'websocket' && head.path === '/quic/tunnel'
        exchange.sendHead({ ...head, method: '', status: fits ? 200 : 400, fields: [] } as never, !fits)
      },
      onData: (buffer, start, limit, end) => {
        exchange.sendData(buffer, start, limit, end)
        exchange.consume(limit - start)
      },
      onTrailers: () => {},
      onSent: () => {},
      onPriority: () => {},
      onClose: () => {},
    }),
  })
  const its = client('quic-go')
  await its.ask({ path: '/' }).catch(() => {})
  assert.equal(await its.do('tunnel', Buffer.alloc(300_000, 'through')), '300000')
  await its.close()
})
