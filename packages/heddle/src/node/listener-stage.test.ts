/** Where stories about listeners are told: on Node's own server, which is what ours has to be like, and on ours. */
import assert from 'node:assert/strict'
import { createServer as createNodeServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Http3Client, noHttp3 } from '../../test/h3-client.ts'
import { NodeClient } from '../../test/node-client.ts'
import { serve } from '../server/index.ts'
import { makeCertificate } from '../testing/index.ts'
import { nodeListener, type RequestListener } from './index.ts'

export type Backend = 'node:http' | 'h1' | 'h2c' | 'h2' | 'h3'
export type Listener = (request: IncomingMessage, response: ServerResponse) => unknown

export interface Scene {
  readonly client: NodeClient | Http3Client
  readonly port: number
  readonly backend: Backend
  /** It is ours. */
  readonly ours: boolean
  readonly multiplexed: boolean
  /** What `onError` was told. */
  readonly told: unknown[]
}

const certificate = makeCertificate({ names: ['localhost'] })

export async function open(t: TestContext, backend: Backend, listener: Listener): Promise<Scene> {
  const told: unknown[] = []
  if (backend === 'node:http') {
    const server = createNodeServer(listener)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const client = new NodeClient(port, 'h1')
    t.after(() => {
      client.close()
      server.close()
      server.closeAllConnections()
    })
    return { client, port, backend, ours: false, multiplexed: false, told }
  }
  const server = await serve({
    hostname: '127.0.0.1',
    onExchange: nodeListener(listener as RequestListener, { onError: (error) => void told.push(error) }),
    ...(backend === 'h2' || backend === 'h3' ? { tls: { cert: certificate.cert, key: certificate.key } } : undefined),
    ...(backend === 'h3' ? { protocols: ['h3'] } : undefined),
  })
  const client = backend === 'h3' ? new Http3Client({ port: server.port }) : new NodeClient(server.port, backend)
  t.after(async () => {
    await client.close()
    await server.close({ deadline: 0 })
    const { connections, exchanges } = server.stats()
    assert.deepEqual({ connections, exchanges }, { connections: 0, exchanges: 0 })
  })
  return { client, port: server.port, backend, ours: true, multiplexed: backend !== 'h1', told }
}

export function onAll(name: string, story: (t: TestContext, backend: Backend) => Promise<void>): void {
  for (const backend of ['node:http', 'h1', 'h2c', 'h2', 'h3'] as const)
    test(`${name} (${backend})`, { timeout: 20_000, skip: backend === 'h3' && noHttp3 }, (t) => story(t, backend))
}

export async function until(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000
  while (!condition()) {
    assert.ok(performance.now() < end, `waited for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** Writes down the events of both. */
export function watch(request: IncomingMessage, response: ServerResponse, log: string[]): void {
  for (const name of ['end', 'aborted', 'close']) request.on(name, () => log.push(`request ${name}`))
  for (const name of ['finish', 'close', 'drain']) response.on(name, () => log.push(`response ${name}`))
}
