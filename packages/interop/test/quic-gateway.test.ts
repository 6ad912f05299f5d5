/** The gateway between clients and servers of HTTP/3, and between HTTP/3 and other versions. */
import { test } from 'node:test'
import { openQuicServer, quicClient, type QuicPeer } from '../src/quic-peers.ts'
import { tellQuicStory } from '../src/quic-story.ts'
import { goServer } from '../src/servers.ts'
import { goClient } from '../src/clients.ts'
import { openFolder, openGateway, type Upstream } from '../src/stage.ts'
import { tellStory } from '../src/story.ts'

const quick = { timeout: 60_000 }

for (const [client, server] of [
  ['quic-go', 'quic-go'],
  ['aioquic', 'quic-go'],
  ['quic-go', 'aioquic'],
] as const satisfies readonly [QuicPeer, QuicPeer][]) {
  test(`${client}, the gateway, and ${server}`, quick, async (t) => {
    const folder = openFolder(t)
    const { port } = await openQuicServer(t, server, folder)
    const { secure } = await openGateway(t, folder, { port, protocol: 'h3' }, { protocols: '[h3, h2]' })
    const its = quicClient(t, client, secure, folder)
    await tellStory(its, { version: 'h3', spoken: 'h3' })
    await tellQuicStory(its, client === server ? 5_000_000 : 2_000_000)
    await its.close()
  })
}

for (const protocol of ['h1', 'h2c', 'h2'] as const satisfies readonly Upstream['protocol'][]) {
  test(`quic-go, the gateway, and net/http (${protocol})`, quick, async (t) => {
    const folder = openFolder(t)
    const ports = await goServer(t, folder)
    const { secure } = await openGateway(t, folder, { port: ports[protocol], protocol }, { protocols: '[h3, h2]' })
    const its = quicClient(t, 'quic-go', secure, folder)
    await tellStory(its, { version: protocol === 'h1' ? 'h1' : 'h2', spoken: 'h3' })
    await its.close()
  })
}

for (const way of ['h1', 'h2'] as const) {
  test(`net/http (${way}), the gateway, and quic-go`, quick, async (t) => {
    const folder = openFolder(t)
    const { port } = await openQuicServer(t, 'quic-go', folder)
    const { plain, secure } = await openGateway(t, folder, { port, protocol: 'h3' })
    const client = goClient()(t, way, way === 'h2' ? secure : plain, folder)
    // quic-go's server says no 100, so that net/http would wait ten seconds.
    await tellStory(client, { version: 'h3', spoken: way, lacks: ['expect'] })
    await client.close()
  })
}
