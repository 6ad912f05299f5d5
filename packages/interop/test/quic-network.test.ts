/** HTTP/3 between heddle and others over networks that lose, reorder and double datagrams, that carry small ones only, and behind NATs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sumOf } from '../src/application.ts'
import type { PeerClient } from '../src/clients.ts'
import { heddleClient } from '../src/heddle-client.ts'
import { quicApplication, sized } from '../src/quic-application.ts'
import { openQuicServer, quicClient, quicPeers } from '../src/quic-peers.ts'
import { openRelay, type RelayOptions } from '../src/relay.ts'
import { openFolder, openServer, until } from '../src/stage.ts'

const quick = { timeout: 60_000 }
const size = 300_000

const networks: readonly (RelayOptions & { readonly name: string })[] = [
  { name: 'loses 5 %', seed: 1, loss: 0.05 },
  { name: 'loses, reorders and doubles', seed: 2, loss: 0.02, late: 0.1, duplicates: 0.05 },
  { name: 'carries 1,300 octets', seed: 3, mtu: 1_300 },
]

async function exchange(client: PeerClient): Promise<void> {
  const answers = await Promise.all([
    client.ask({ path: `/quic/sized/${size}` }),
    client.ask({ method: 'POST', path: '/echo', body: sized(size) }),
    ...Array.from({ length: 20 }, (_, i) => client.ask({ method: 'POST', path: '/echo', body: sized(10 * i) })),
  ])
  assert.deepEqual(
    answers.map(({ body }) => sumOf(body)),
    [size, size, ...Array.from({ length: 20 }, (_, i) => 10 * i)].map((length) => sumOf(sized(length))),
  )
}

for (const peer of quicPeers) {
  for (const { name, ...options } of networks) {
    test(`${peer}, a client, and the server over a network that ${name}`, quick, async (t) => {
      const folder = openFolder(t)
      const { cert, key } = folder.identity
      const server = await openServer(t, { fetch: quicApplication(), protocols: ['h3'], tls: { cert, key } })
      const relay = await openRelay(t, server.port, options)
      const client = quicClient(t, peer, relay.port, folder)
      await exchange(client)
      await client.close()
      assert.equal(server.stats().http3.accepted, 1)
      if (options.loss !== undefined) assert.ok(relay.counts.lost > 0)
    })

    test(`the client and ${peer}, a server, over a network that ${name}`, quick, async (t) => {
      const folder = openFolder(t)
      const server = await openQuicServer(t, peer, folder)
      const relay = await openRelay(t, server.port, options)
      const client = heddleClient(t, 'h3', relay.port, folder)
      await exchange(client)
      assert.equal(client.client.stats().http3.dialled, 1)
      await client.close()
      if (options.loss !== undefined) assert.ok(relay.counts.lost > 0)
    })
  }

  test(`the client and ${peer} with a NAT between that changes its mind`, quick, async (t) => {
    const folder = openFolder(t)
    const server = await openQuicServer(t, peer, folder)
    const relay = await openRelay(t, server.port)
    const client = heddleClient(t, 'h3', relay.port, folder)
    await client.ask({ path: '/hello' })
    for (let i = 0; i < 3; i++) {
      const under = client.ask({ method: 'POST', path: '/sum', body: sized(2_000_000) })
      await until(() => client.client.stats().streams === 1, 'the request to begin')
      await relay.rebind()
      assert.equal((await under).text, sumOf(sized(2_000_000)))
      await exchange(client)
    }
    assert.equal(client.client.stats().http3.dialled, 1, 'still on one connection')
    await client.close()
  })

  test(`${peer}, a client, and the server with a NAT between that changes its mind`, quick, async (t) => {
    const folder = openFolder(t)
    const { cert, key } = folder.identity
    const server = await openServer(t, { fetch: quicApplication(), protocols: ['h3'], tls: { cert, key } })
    const relay = await openRelay(t, server.port)
    const client = quicClient(t, peer, relay.port, folder)
    await client.ask({ path: '/hello' })
    for (let i = 0; i < 3; i++) {
      const under = client.ask({ method: 'POST', path: '/sum', body: sized(2_000_000) })
      await until(() => server.stats().exchanges === 1, 'the request to begin')
      await relay.rebind()
      assert.equal((await under).text, sumOf(sized(2_000_000)))
      await exchange(client)
    }
    assert.equal(server.stats().http3.accepted, 1, 'still on one connection')
    await client.close()
  })
}

test('a network that ends: the client notices, and both forget the connection', quick, async (t) => {
  const folder = openFolder(t)
  const { cert, key } = folder.identity
  const server = await openServer(t, { fetch: quicApplication(), protocols: ['h3'], tls: { cert, key }, http3: { idleTimeout: 500 } })
  const relay = await openRelay(t, server.port)
  const client = quicClient(t, 'quic-go', relay.port, folder, '-idle', '1s')
  await client.ask({ path: '/hello' })
  relay.cut()
  await assert.rejects(client.ask({ path: '/hello' }), /timeout/)
  await until(() => server.stats().http3.connections === 0, 'the server to forget it')
  await client.close()
})

test('quic-go and a server that has lost its connections: a stateless reset', quick, async (t) => {
  const folder = openFolder(t)
  const { cert, key } = folder.identity
  const options = { fetch: quicApplication(), protocols: ['h3'], tls: { cert, key }, quicKey: Buffer.alloc(32, 'shared') } as const
  const first = await openServer(t, options)
  const second = await openServer(t, options)
  const relay = await openRelay(t, first.port)
  const client = quicClient(t, 'quic-go', relay.port, folder)
  await client.ask({ path: '/hello' })
  relay.turnTo(second.port)
  await assert.rejects(client.ask({ path: '/hello' }), /received a stateless reset/)
  assert.equal((await client.ask({ path: '/hello' })).text, 'GET h3')
  assert.equal(second.stats().http3.accepted, 1)
  await client.close()
})

test('the client and a quic-go that has lost its connections: a stateless reset', quick, async (t) => {
  const folder = openFolder(t)
  const [first, second] = await Promise.all([openQuicServer(t, 'quic-go', folder), openQuicServer(t, 'quic-go', folder)])
  const relay = await openRelay(t, first.port)
  const client = heddleClient(t, 'h3', relay.port, folder)
  await client.ask({ path: '/hello' })
  relay.turnTo(second.port)
  assert.equal((await client.ask({ path: '/hello' })).text, 'GET h3')
  assert.equal(client.client.stats().http3.dialled, 2)
  await client.close()
})
