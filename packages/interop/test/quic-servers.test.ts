/** The client and the HTTP/3 of quic-go and aioquic. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { requestHead, type Client, type Exchange } from 'heddle'
import { heddleClient, type HeddleClient } from '../src/heddle-client.ts'
import { openQuicServer, quicPeers, type QuicPeer, type QuicServer } from '../src/quic-peers.ts'
import { tellQuicStory } from '../src/quic-story.ts'
import { openFolder, until } from '../src/stage.ts'
import { tellStory } from '../src/story.ts'

const quick = { timeout: 60_000 }

/** Sends `payload` through an extended CONNECT (RFC 9220); resolves with what comes back. */
function throughTunnel(client: Client, port: number, payload: Buffer): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let exchange: Exchange | undefined
  client.exchange(
    `https://127.0.0.1:${port}`,
    {
      onOpen: (opened) => {
        exchange = opened
        opened.sendHead(requestHead('CONNECT', 'https', `127.0.0.1:${port}`, '/quic/tunnel', [], 'websocket'), false)
      },
      onHead: ({ status }) => {
        assert.equal(status, 200)
        exchange?.sendOwned(payload, true)
      },
      onData: (buffer, start, limit) => {
        chunks.push(Buffer.from(buffer.subarray(start, limit)))
        exchange?.consume(limit - start)
      },
      onTrailers: () => {},
      onSent: () => {},
      onPriority: () => {},
      onClose: (error) => (error === undefined ? resolve(Buffer.concat(chunks)) : reject(error)),
    },
    { tunnel: true },
  )
  return promise
}

async function open(t: TestContext, peer: QuicPeer, ...flags: string[]): Promise<{ server: QuicServer; its: HeddleClient }> {
  const folder = openFolder(t)
  const server = await openQuicServer(t, peer, folder, ...flags)
  return { server, its: heddleClient(t, 'h3', server.port, folder) }
}

for (const peer of quicPeers) {
  test(`the client and ${peer}, a server: the story`, quick, async (t) => {
    const { its } = await open(t, peer)
    await tellStory(its, { version: 'h3', spoken: 'h3' })
    await tellQuicStory(its, peer === 'quic-go' ? 20_000_000 : 2_000_000)
    const { http3, streams, waiting } = its.client.stats()
    assert.deepEqual([http3.dialled, streams, waiting], [1, 0, 0], 'everything on one connection')
    await its.close()
  })

  test(`the client shows ${peer} that it receives at its address (Retry)`, quick, async (t) => {
    const { its } = await open(t, peer, '-retry')
    assert.equal((await its.ask({ path: '/hello' })).text, 'GET h3')
    assert.equal((await its.ask({ path: '/big' })).body.length, 2_000_000)
    await its.close()
  })

  test(`the client and ${peer} with connection ids of 20 octets`, quick, async (t) => {
    const { its } = await open(t, peer, '-id-length', '20')
    assert.equal((await its.ask({ method: 'POST', path: '/echo', body: Buffer.alloc(500_000, 'x') })).body.length, 500_000)
    await its.close()
  })

  test(`the client and ${peer} that stops`, quick, async (t) => {
    const { server, its } = await open(t, peer)
    await its.ask({ path: '/hello' })
    const running = its.ask({ path: '/quic/later' })
    await its.ask({ path: '/hello' })
    const stopped = server.stop()
    // aioquic knows no GOAWAY: it breaks off. A GET is tried again then, and nobody is there.
    if (peer === 'quic-go') assert.equal((await running).text, 'later')
    else await assert.rejects(running, { code: 'CONNECT_FAILED' })
    await stopped
    await until(() => its.client.stats().connections === 0, 'the connection to be gone')
    await assert.rejects(its.ask({ path: '/hello' }), { code: 'CONNECT_FAILED' })
    await its.close()
  })

  test(`the client and ${peer}, which falls silent`, quick, async (t) => {
    const { its } = await open(t, peer, '-idle', peer === 'quic-go' ? '500ms' : '0.5')
    await its.ask({ path: '/hello' })
    await until(() => its.client.stats().connections === 0, 'the connection to be gone')
    assert.equal((await its.ask({ path: '/hello' })).text, 'GET h3', 'on another connection')
    assert.equal(its.client.stats().http3.dialled, 2)
    await its.close()
  })

  test(`the client tunnels through ${peer} by extended CONNECT`, quick, async (t) => {
    const { server, its } = await open(t, peer)
    const payload = Buffer.alloc(300_000, 'through')
    assert.ok((await throughTunnel(its.client, server.port, payload)).equals(payload))
    await its.close()
  })

  test(`the client comes back to ${peer} with a ticket`, quick, async (t) => {
    const { its } = await open(t, peer, '-idle', peer === 'quic-go' ? '500ms' : '0.5')
    assert.equal((await its.ask({ path: '/quic/resumed' })).text, 'false')
    await until(() => its.client.stats().connections === 0, 'the connection to be gone')
    assert.equal((await its.ask({ path: '/quic/resumed' })).text, 'true')
    await its.close()
  })
}

for (const suite of ['AES_128_GCM_SHA256', 'AES_256_GCM_SHA384', 'CHACHA20_POLY1305_SHA256']) {
  test(`the client and aioquic's ${suite}`, quick, async (t) => {
    const { server, its } = await open(t, 'aioquic', '-suite', suite)
    assert.equal((await its.ask({ path: '/quic/suite' })).text, `TLS_${suite}`)
    // And what the server does of itself: other keys, another connection id.
    for (const order of ['update keys', 'change id', 'update keys']) {
      server.tell(order)
      assert.equal((await its.ask({ path: '/big' })).body.length, 2_000_000, order)
      assert.equal((await its.ask({ method: 'POST', path: '/echo', body: 'there and back' })).text, 'there and back')
    }
    assert.equal(its.client.stats().http3.dialled, 1, 'still on one connection')
    await its.close()
  })
}
