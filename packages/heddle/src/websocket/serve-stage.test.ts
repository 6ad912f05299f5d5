/** Where stories about servers of WebSockets are told: `serve` in the seeded world, over both versions, with our own engines at the other end. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { ClientConnection as Http1Client } from '../h1/index.ts'
import { ClientConnection as Http2Client } from '../h2/index.ts'
import { fieldValue, requestHead, type Exchange, type Fields, type Head, type HeddleError } from '../http/index.ts'
import { serve, type Server, type ServeOptions } from '../server/index.ts'
import { Recording, RecordingConnection, worldTest, type LinkSocket, type World } from '../testing/index.ts'
import { Socket } from './socket.ts'
import type { SocketOptions } from './socket-options.ts'

export type Version = 'h1' | 'h2'
export const versions: readonly Version[] = ['h1', 'h2']

/** What a client asks, beside a version of 13. */
export interface Ask {
  readonly version?: string | undefined
  readonly fields?: Fields
  readonly path?: string
  readonly method?: string
  /** Of the client's socket. */
  readonly socket?: Partial<SocketOptions>
}

/** What came of it. */
export interface Guest {
  readonly status: number
  readonly head: Head | undefined
  /** Of a refusal. */
  readonly text: string
  readonly recording: Recording
  readonly exchange: Exchange
  readonly wire: LinkSocket
  /** The client's side, if it was accepted. */
  readonly socket: Socket
  field(name: string): string | undefined
}

export interface Stage {
  readonly world: World
  readonly version: Version
  readonly server: Server
  /** What `onError` was told. */
  readonly told: unknown[]
  /** Asks for a WebSocket, on a connection of its own. */
  ask(what?: Ask): Promise<Guest>
  /** Lets 50 ms pass. */
  pass(): Promise<void>
}

/** Tells `tell` over each version, for a few seeds; at the end nothing is left. */
export function story(name: string, options: Partial<ServeOptions>, tell: (stage: Stage) => Promise<void>, seeds = 2): void {
  for (const version of versions) {
    worldTest(`${version}: ${name}`, { seeds }, async (world) => {
      const told: unknown[] = []
      const server = await serve({
        clock: world,
        listen: world.network.serve,
        hostname: 'h',
        port: 80,
        websocket: true,
        onError: (error) => void told.push(error),
        ...options,
      })
      const pass = async (): Promise<void> => void (await world.settle({ until: world.now() + 50 }))
      await tell({ world, version, server, told, pass, ask: (what) => ask(world, version, what) })
      await world.complete(server.close({ deadline: 0 }), 60_000)
      await world.settle()
      const { connections, exchanges, deadlines } = server.stats()
      assert.deepEqual({ connections, exchanges, deadlines }, { connections: 0, exchanges: 0, deadlines: 0 })
      assert.equal(world.armed, 0)
    })
  }
}

async function ask(world: World, version: Version, { path = '/chat', method = 'CONNECT', socket, ...what }: Ask = {}): Promise<Guest> {
  const { client, wire } = await world.complete(connect(world, version))
  await world.settle({ until: world.now() + 50 })
  const recording = new Recording()
  const exchange = client.open(recording) as Exchange
  const asked = 'version' in what ? what.version : '13'
  const fields = [...(asked === undefined ? [] : ['sec-websocket-version', asked]), ...(what.fields ?? [])]
  exchange.sendHead(requestHead(method, 'http', 'h', path, fields, method === 'CONNECT' ? 'websocket' : ''), method !== 'CONNECT')
  // In the turn of its head, as clients do: what follows it is for the socket.
  let made: Socket | undefined
  const { onHead } = recording
  recording.onHead = (head, end) => {
    onHead.call(recording, head, end)
    if (head.status === 200 && method === 'CONNECT') made = new Socket(exchange, { role: 'client', clock: world, ...socket })
  }
  await world.settle({ until: world.now() + 50 })
  const { head } = recording
  return {
    status: head?.status ?? 0,
    head,
    text: recording.content.toString(),
    recording,
    exchange,
    wire,
    get socket() {
      assert.ok(made !== undefined, 'it was not accepted')
      return made
    },
    field: (name) => (head === undefined ? undefined : fieldValue(head.fields, name)),
  }
}

function connect(world: World, version: Version): Promise<{ client: Http1Client | Http2Client; wire: LinkSocket }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ client: Http1Client | Http2Client; wire: LinkSocket }>()
  world.network.connect('h', 80, (error, connection) => {
    if (connection === undefined) return reject(error as HeddleError)
    const owner = new RecordingConnection()
    const client =
      version === 'h1'
        ? new Http1Client(connection.info, owner, { websocketKey: () => key, websocketAccept: accept }, world.now())
        : new Http2Client(connection.info, owner, {}, world.now())
    connection.attach(client)
    resolve({ client, wire: connection.socket })
  })
  return promise
}

const key = Buffer.alloc(16, 9).toString('base64')

function accept(given: string): string {
  return createHash('sha1').update(`${given}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}
