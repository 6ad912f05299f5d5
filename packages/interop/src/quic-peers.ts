/** Other people's QUIC and HTTP/3, as clients and as servers: quic-go and aioquic. Both programs take the same words. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { askBy, type Answer, type Asked, type PeerClient, type ToldAnswer } from './clients.ts'
import type { Server } from 'heddle'
import { openRelay } from './relay.ts'
import { until, type Folder } from './stage.ts'
import { ToldClient } from './told-client.ts'
import { tool } from './tools.ts'

/** Whose. */
export type QuicPeer = 'quic-go' | 'aioquic'

/** Each of them. */
export const quicPeers: readonly QuicPeer[] = ['quic-go', 'aioquic']

const programs: Readonly<Record<QuicPeer, readonly [program: string, ...words: string[]]>> = {
  'quic-go': [tool('peer')],
  aioquic: [tool('aioquic'), '-B', fileURLToPath(new URL('../python/peer.py', import.meta.url))],
}

/** A client of HTTP/3, on one connection at a time. */
export interface QuicClient extends PeerClient {
  ask(asked: Asked): Promise<Answer & { readonly resumed: boolean }>
  /** Does what is no request, such as `migrate`; resolves with what came of it. */
  do(what: string, payload?: Uint8Array): Promise<string>
}

/** Starts a client that ends with its test. */
export function quicClient(t: TestContext, peer: QuicPeer, port: number, folder: Folder, ...flags: string[]): QuicClient {
  const [program, ...words] = programs[peer]
  const all = [...words, 'http-client', '-way', 'h3', '-address', `127.0.0.1:${port}`, '-ca', folder.ca, ...flags]
  const client = new ToldClient<object, ToldAnswer>(t, program, all)
  const act = async (what: string, payload = new Uint8Array()): Promise<string> => {
    const { Error: error, Content: content } = await client.carryOut({ Do: what, Content: Buffer.from(payload).toString('base64') })
    if (error !== '') throw new Error(`${what}: ${error}`)
    return Buffer.from(content ?? '', 'base64').toString()
  }
  return {
    // aioquic takes a length without content for a fault, whatever the method.
    lacks: peer === 'aioquic' ? ['HEAD'] : [],
    ask: (asked) => askBy(client, asked),
    do: act,
    close: async () => {
      // A server that hears nothing waits, for the last answer may not have arrived.
      await act('leave')
      await client.close()
    },
  }
}

/** Begins a handshake that does not go on: with a `maxHandshakes` of 10 others must show now that they receive at their address. */
export async function halfHandshake(t: TestContext, server: Server, folder: Folder): Promise<void> {
  const relay = await openRelay(t, server.port, { mute: true })
  const client = quicClient(t, 'quic-go', relay.port, folder)
  client.ask({ path: '/hello' }).catch(() => {})
  await until(() => server.stats().handshakes === 1, 'a handshake to begin')
}

/** A server of HTTP/3 that runs the application. */
export interface QuicServer {
  readonly port: number
  /** Gives an order to all its connections. */
  tell(order: string): void
  /** Lets it go; resolves when the process has ended. */
  stop(): Promise<void>
}

/** Starts a server that ends with its test. */
export async function openQuicServer(t: TestContext, peer: QuicPeer, folder: Folder, ...flags: string[]): Promise<QuicServer> {
  const [program, ...words] = programs[peer]
  const all = [...words, 'quic-server', '-cert', folder.cert, '-key', folder.key, ...flags]
  const child = spawn(program, all, { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const stop = async (): Promise<void> => {
    child.stdin.end()
    const forced = setTimeout(() => child.kill('SIGKILL'), 8000)
    await ended
    clearTimeout(forced)
  }
  t.after(stop)
  child.stdin.on('error', () => {})
  let printed = ''
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk.toString()
      const [, found] = /^quic (\d+)$/m.exec(printed) ?? []
      if (found !== undefined) resolve(Number(found))
    })
    child.on('close', (status) => reject(new Error(`${peer} ended with ${status}: ${printed}`)))
  })
  return { port, tell: (order) => void child.stdin.write(`${order}\n`), stop }
}
