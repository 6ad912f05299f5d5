/** The tests of a peer that is a client, a server, or both: the story is told with it directly and with the gateway between. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { application, BrokenOff } from './application.ts'
import { ways, type ClientMaker, type Way } from './clients.ts'
import { heddleClient } from './heddle-client.ts'
import type { ServerMaker } from './servers.ts'
import { openFolder, openGateway, openServer } from './stage.ts'
import { tellStory, type Setting } from './story.ts'

const quick = { timeout: 60_000 }

function versionOf(way: Way): 'h1' | 'h2' {
  return way === 'h2' || way === 'h2c' ? 'h2' : 'h1'
}

/** A client against the server. */
export function clientStories(name: string, maker: ClientMaker, itsWays: readonly Way[] = ways): void {
  for (const way of itsWays) {
    test(`${name}, a client, and the server (${way})`, quick, async (t) => {
      const folder = openFolder(t)
      const { cert, key } = folder.identity
      const secure = way === 'h2' || way === 'https'
      const told: unknown[] = []
      const onError = (error: unknown): undefined => void told.push(error)
      const server = await openServer(t, { fetch: application(), onError, ...(secure && { tls: { cert, key } }) })
      const client = maker(t, way, server.port, folder)
      const version = versionOf(way)
      await tellStory(client, { version, spoken: version })
      const { http1, http2 } = server.stats()
      if (version === 'h1') assert.equal(http2.requests, 0)
      else if (client.lacks.includes('one connection')) assert.equal(http1.requests, 0)
      else assert.deepEqual([http1.requests, http2.accepted], [0, 1], 'everything on one connection')
      assert.ok(told.length > 0 && told.every((error) => error instanceof BrokenOff), String(told))
      await client.close()
    })
  }
}

/** Heddle's client against a server. */
export function serverStories(name: string, maker: ServerMaker, lacks: Setting['lacks'] = []): void {
  for (const way of ways) {
    test(`the client and ${name}, a server (${way})`, quick, async (t) => {
      const folder = openFolder(t)
      const ports = await maker(t, folder)
      const client = heddleClient(t, way, ports[way], folder)
      const version = versionOf(way)
      await tellStory(client, { version, spoken: version, lacks })
      const { http1, http2, streams, waiting } = client.client.stats()
      if (version === 'h1') assert.equal(http2.requests, 0)
      else assert.deepEqual([http1.requests, http2.dialled], [0, 1], 'everything on one connection')
      assert.deepEqual([streams, waiting], [0, 0])
      await client.close()
    })
  }
}

/** A client, the gateway, and a server. */
export function gatewayStories(
  name: string,
  clientMaker: ClientMaker,
  serverMaker: ServerMaker,
  combinations: readonly [way: Way, upstream: 'h1' | 'h2c' | 'h2'][],
  lacks: Setting['lacks'] = [],
): void {
  for (const [way, protocol] of combinations) {
    test(`${name}, the gateway between (${way} → ${protocol})`, quick, async (t) => {
      const folder = openFolder(t)
      const ports = await serverMaker(t, folder)
      const { plain, secure, gateway } = await openGateway(t, folder, { port: ports[protocol], protocol })
      const client = clientMaker(t, way, way === 'h2' || way === 'https' ? secure : plain, folder)
      await tellStory(client, { version: protocol === 'h1' ? 'h1' : 'h2', spoken: versionOf(way), lacks })
      await client.close()
      const { clusters } = await gateway.stats()
      if (protocol !== 'h1') assert.equal(clusters[0]?.http2.connections, 1, 'everything on one connection upstream')
    })
  }
}
