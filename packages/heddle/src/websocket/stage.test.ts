import assert from 'node:assert/strict'
import { ClientConnection as Http1Client, ServerConnection as Http1Server } from '../h1/index.ts'
import { ClientConnection as Http2Client, ServerConnection as Http2Server, type Http2Limits } from '../h2/index.ts'
import { requestHead, responseHead, type Exchange, type HttpConnection } from '../http/index.ts'
import {
  enginePair,
  pair,
  Recording,
  RecordingConnection,
  type LinkOptions,
  type PairOptions,
  type World,
  type ConnectionEngine,
} from '../testing/index.ts'
import { Socket } from './socket.ts'
import type { SocketOptions } from './socket-options.ts'

export type Version = 'h1' | 'h2'
export const versions: readonly Version[] = ['h1', 'h2']

/** How the connection below a pair of sockets is. */
export interface StageOptions {
  /** `memory`: the engines without drivers; else a link. Default: a link without delay. */
  readonly link?: LinkOptions | 'memory'
  readonly http2?: Partial<Http2Limits>
  /** Over HTTP/1.1. Default 64 KiB. */
  readonly receiveWindow?: number
  /** The peer that takes nothing is left alone for this long. Default 60 s. */
  readonly sendTimeout?: number
}

/** A client and a server that speak one version, connected in `world`, and their tunnels. */
export class WebSocketStage {
  readonly world: World
  readonly version: Version
  readonly client: HttpConnection
  readonly server: HttpConnection
  readonly lose: (loss: 'reset' | 'silence') => void
  readonly #faults: () => readonly string[]
  /** The server's side of the tunnel being opened. */
  #accepted: Exchange | undefined

  constructor(world: World, version: Version, options: StageOptions = {}) {
    this.world = world
    this.version = version
    this.#accepted = undefined
    const clientHandler = new RecordingConnection()
    const serverHandler = new RecordingConnection({
      onExchange: (exchange) => {
        this.#accepted = exchange
        return new Recording({ autoConsume: false })
      },
    })
    const { link = {}, sendTimeout = 60_000, receiveWindow = 65_536 } = options
    const limits = { sendTimeout, ...options.http2 }
    const http1 = {
      websocketAccept: (key: string) => `accept ${key}`,
      websocketKey: () => 'dGhlIHNhbXBsZSBub25jZQ==',
      upgrades: ['websocket'],
      limits: { sendTimeout, receiveWindow },
    }
    const engines: PairOptions<ConnectionEngine, ConnectionEngine> = {
      clientHandler,
      serverHandler,
      client: (info, handler, now) =>
        version === 'h1' ? new Http1Client(info, handler, http1, now) : new Http2Client(info, handler, { limits }, now),
      server: (info, handler, now) =>
        version === 'h1'
          ? new Http1Server(info, handler, http1, now)
          : new Http2Server(info, handler, { extendedConnect: true, limits }, now),
    }
    const made = link === 'memory' ? enginePair(world, { ...engines }) : pair(world, { ...engines, link })
    this.client = made.client
    this.server = made.server
    this.lose = (loss) => made.lose(loss)
    this.#faults = () => made.faults
    world.run()
  }

  /** The two ends of a tunnel that is open. */
  tunnel(): [Exchange, Exchange] {
    const recording = new Recording({ autoConsume: false })
    const exchange = this.client.open(recording)
    assert.ok(exchange !== undefined, 'the connection has room for a tunnel')
    exchange.sendHead(requestHead('CONNECT', 'http', 'example.org', '/chat', ['sec-websocket-version', '13'], 'websocket'), false)
    this.world.run()
    const accepted = this.#accepted
    assert.ok(accepted !== undefined, 'the server was asked')
    this.#accepted = undefined
    accepted.sendHead(responseHead(200), false)
    this.world.run()
    assert.equal(recording.head?.status, 200)
    return [exchange, accepted]
  }

  /** The two sockets of a WebSocket. */
  sockets(options: Partial<SocketOptions> = {}, serverOptions: Partial<SocketOptions> = options): [Socket, Socket] {
    const [client, server] = this.tunnel()
    const clock = this.world
    return [new Socket(client, { role: 'client', clock, ...options }), new Socket(server, { role: 'server', clock, ...serverOptions })]
  }

  /** Nothing is left: no exchange, no alarm but those of connections, no breach of a contract. */
  finish(): void {
    this.world.run()
    assert.deepEqual(this.#faults(), [])
    assert.equal(this.client.openExchanges, 0, 'exchanges of the client')
    assert.equal(this.server.openExchanges, 0, 'exchanges of the server')
    this.client.shutdown()
    this.server.shutdown()
    this.world.advance(100_000)
    assert.equal(this.world.armed, 0, 'alarms')
  }
}
