import assert from 'node:assert/strict'
import {
  requestHead,
  responseHead,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type Priority,
} from '../../http/index.ts'
import { offerFields } from '../../ws/index.ts'
import type { ConformancePair, ConformanceProtocol, ConnectOptions } from '../conformance/stage.ts'
import { RecordingConnection } from '../recording.ts'
import type { World } from '../world.ts'

/** Takes an end of a tunnel over as soon as it is open; becomes, or names, the exchange's handler. */
export type TunnelEnd = (exchange: Exchange) => void

/** A connected client and server, between which tunnels can be opened. */
export class TunnelStage {
  readonly world: World
  readonly pair: ConformancePair
  readonly #client: RecordingConnection
  readonly #server: ServerDouble

  constructor(world: World, protocol: ConformanceProtocol, options: Partial<ConnectOptions> = {}) {
    this.world = world
    this.#client = new RecordingConnection()
    this.#server = new ServerDouble()
    this.pair = protocol.connect(world, {
      clientLimits: {},
      serverLimits: {},
      link: undefined,
      ...options,
      clientHandler: this.#client,
      serverHandler: this.#server,
    })
    // An HTTP/2 server has to say first that it takes tunnels.
    world.run()
  }

  /** Opens a tunnel for WebSocket; each end is told when it is open there. */
  open(client: TunnelEnd, server: TunnelEnd): void {
    this.#server.ends.push(server)
    const opening = new Opening(client)
    const exchange = this.pair.client.open(opening)
    assert.ok(exchange !== undefined, 'the connection has a free slot')
    opening.exchange = exchange
    exchange.sendHead(requestHead('CONNECT', 'http', 'origin.test', '/chat', offerFields({}), 'websocket'), false)
  }

  /** Sees the connection closed, with nothing left behind. */
  finish(): void {
    const { client, server } = this.pair
    this.world.run()
    assert.equal(client.openExchanges, 0, 'the client holds no exchange')
    assert.equal(server.openExchanges, 0, 'the server holds no exchange')
    client.shutdown()
    server.shutdown()
    this.world.run()
    this.world.advance(600_000)
    assert.deepEqual([...this.pair.faults, ...this.#client.faults, ...this.#server.faults], [])
    assert.equal(this.world.armed, 0, 'no alarm is left')
  }
}

/** Lets the next end take each tunnel that is asked for. */
class ServerDouble extends RecordingConnection {
  readonly ends: TunnelEnd[] = []

  override onExchange(exchange: Exchange): never {
    const end = this.ends.shift()
    assert.ok(end !== undefined, 'a tunnel that was asked for')
    const opening = new Opening((opened) => {
      opened.sendHead(responseHead(200), false)
      end(opened)
    })
    opening.exchange = exchange
    return opening as never
  }
}

/** Waits for the head that opens a tunnel. */
class Opening implements ExchangeHandler {
  exchange: Exchange | undefined
  readonly #end: TunnelEnd

  constructor(end: TunnelEnd) {
    this.exchange = undefined
    this.#end = end
  }

  onHead(head: Head, _end: boolean): void {
    assert.ok(head.protocol === 'websocket' || head.status === 200)
    this.#end(this.exchange as Exchange)
  }

  onData(): void {
    assert.fail('octets before the tunnel is open')
  }

  onTrailers(_fields: Fields): void {
    assert.fail('trailers')
  }

  onSent(): void {}
  onPriority(_priority: Priority): void {}
  onClose(error: HeddleError | undefined): void {
    assert.fail(`closed before the tunnel was open: ${error?.message}`)
  }
}
