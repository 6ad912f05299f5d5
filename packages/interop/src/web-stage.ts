/** What command-line clients and browsers are pointed at: the application on the server itself, or behind the gateway. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { FetchHandler } from 'heddle'
import { application, BrokenOff } from './application.ts'
import { openFolder, openGateway, openServer, type Folder, type Upstream } from './stage.ts'

/** Where a client is pointed. */
export type Place = 'the server' | 'the gateway to h1' | 'the gateway to h2c'

/** Each of them. */
export const places: readonly Place[] = ['the server', 'the gateway to h1', 'the gateway to h2c']

/** A place that is open. */
export interface OpenPlace {
  readonly folder: Folder
  /** `http://…` and `https://…`, without a path. */
  readonly plain: string
  readonly secure: string
  /** The version the application is reached with, by a client that speaks `version`. */
  readonly reached: (version: 'h1' | 'h2') => 'h1' | 'h2'
  /** Connections that clients have made: of each version, ever. */
  readonly accepted: () => Promise<{ readonly plain: number; readonly secure: number }>
  /** Streams that had to be reset here, by code. */
  readonly resetsSent: () => Promise<Readonly<Record<string, number>>>
}

/** Opens `place` until the test is over. */
export async function openPlace(t: TestContext, place: Place, fetch: FetchHandler = application()): Promise<OpenPlace> {
  const folder = openFolder(t)
  const { cert, key } = folder.identity
  const onError = (error: unknown): undefined => assert.ok(error instanceof BrokenOff, String(error)) as undefined
  if (place === 'the server') {
    const plain = await openServer(t, { fetch, onError })
    const secure = await openServer(t, { fetch, onError, tls: { cert, key } })
    return {
      folder,
      plain: `http://127.0.0.1:${plain.port}`,
      secure: `https://localhost:${secure.port}`,
      reached: (version) => version,
      accepted: async () => ({ plain: plain.stats().accepted, secure: secure.stats().accepted }),
      resetsSent: async () => ({ ...plain.stats().http2.resetsSent, ...secure.stats().http2.resetsSent }),
    }
  }
  const origin = await openServer(t, { fetch, onError })
  const upstream: Upstream = { port: origin.port, protocol: place === 'the gateway to h1' ? 'h1' : 'h2c' }
  const { gateway, plain, secure } = await openGateway(t, folder, upstream)
  return {
    folder,
    plain: `http://127.0.0.1:${plain}`,
    secure: `https://localhost:${secure}`,
    reached: () => (upstream.protocol === 'h1' ? 'h1' : 'h2'),
    accepted: async () => {
      const [first, second] = (await gateway.stats()).listeners.map((listener) => listener.accepted) as [number, number]
      return { plain: first, secure: second }
    },
    resetsSent: async () =>
      Object.assign({}, ...(await gateway.stats()).listeners.map(({ http2 }) => http2.resetsSent)) as Record<string, number>,
  }
}
