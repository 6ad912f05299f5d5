import assert from 'node:assert/strict'
import { requestHead, responseHead, type Exchange, type Fields, type Head, type HttpConnection } from '../../http/index.ts'
import type { LinkOptions } from '../link.ts'
import { enginePair, pair, type ConnectionEngine, type EngineFactory } from '../pair.ts'
import { RecordingConnection } from '../recording.ts'
import type { World } from '../world.ts'
import { Side, WatchedExchange } from './side.ts'

/** Limits the cases set; names and meaning as in `Http1Limits`, ms and bytes. */
export interface ConformanceLimits {
  readonly headTimeout?: number
  readonly bodyTimeout?: number
  readonly sendTimeout?: number
  readonly idleTimeout?: number
  readonly responseTimeout?: number
  readonly continueTimeout?: number
}

/** What a case asks of the connection it runs on. */
export interface ConnectOptions {
  readonly clientHandler: RecordingConnection
  readonly serverHandler: RecordingConnection
  readonly clientLimits: ConformanceLimits
  readonly serverLimits: ConformanceLimits
  /** Undefined: the protocol chooses by the world's seed. */
  readonly link: LinkOptions | undefined
}

/** A client and a server of one protocol that are connected. */
export interface ConformancePair {
  readonly client: HttpConnection
  readonly server: HttpConnection
  lose(loss: 'reset' | 'silence'): void
  readonly faults: readonly string[]
}

/** A protocol as the suite sees it. Its server opens tunnels of the protocol `conformance`. */
export interface ConformanceProtocol {
  readonly protocol: 'h1' | 'h2' | 'h3'
  /** The most content a receiver gets without consuming any, bytes. */
  readonly receiveWindow: number
  connect(world: World, options: ConnectOptions): ConformancePair
}

/** A protocol over a byte stream, run by the production driver over links of every kind, and in memory. */
export function streamProtocol(
  protocol: 'h1' | 'h2',
  receiveWindow: number,
  client: (limits: ConformanceLimits) => EngineFactory<ConnectionEngine>,
  server: (limits: ConformanceLimits) => EngineFactory<ConnectionEngine>,
): ConformanceProtocol {
  return {
    protocol,
    receiveWindow,
    connect(world, options) {
      const { clientHandler, serverHandler, clientLimits, serverLimits, link } = options
      const { random } = world
      const engines = { client: client(clientLimits), server: server(serverLimits), clientHandler, serverHandler }
      if (link === undefined && random.chance(0.4)) return enginePair(world, { ...engines, splits: 'random', room: 'random' })
      const chosen: LinkOptions = {
        delay: random.pick([0, 1, 20]),
        jitter: random.pick([0, 3]),
        splits: random.pick(['none', 'random']),
        capacity: random.pick([20_000, 262_144]),
        writes: random.pick(['sync', 'late']),
      }
      return pair(world, { ...engines, link: { ...chosen, ...link } })
    },
  }
}

/** What a {@link ConformanceCase} needs otherwise than usual. */
export interface CaseOptions {
  /** Limits of the client's engine. */
  readonly clientLimits?: ConformanceLimits
  /** Limits of the server's. */
  readonly serverLimits?: ConformanceLimits
  /** The link between them, where one is used. */
  readonly link?: LinkOptions
}

/** One thing every protocol must do. `run` sets the stage in motion; afterwards the stage checks that nothing is left. */
export interface ConformanceCase {
  readonly name: string
  readonly options: CaseOptions
  readonly run: (stage: Stage) => void
}

export function conformanceCase(name: string, run: (stage: Stage) => void, options: CaseOptions = {}): ConformanceCase {
  return { name, options, run }
}

/** A connected client and server in a world, and everything that was recorded of them. */
export class Stage {
  readonly world: World
  readonly protocol: ConformanceProtocol
  readonly clientConnection: RecordingConnection
  readonly serverConnection: RecordingConnection
  readonly pair: ConformancePair
  readonly sides: Side[]
  /** What the server does with a new exchange, before its head arrives. Default: answers 200 without content, at the request's end. */
  serve: (side: Side) => void
  /** Exchange methods that are running now. */
  depth: number

  constructor(world: World, protocol: ConformanceProtocol, options: CaseOptions) {
    this.world = world
    this.protocol = protocol
    this.sides = []
    this.depth = 0
    this.serve = (side) => whenReceived(side, () => side.exchange.sendHead(responseHead(200), true))
    this.clientConnection = new RecordingConnection()
    this.serverConnection = new RecordingConnection({
      onExchange: (exchange) => {
        const side = this.#side('server', exchange)
        this.serve(side)
        return side
      },
    })
    this.pair = protocol.connect(world, {
      clientHandler: this.clientConnection,
      serverHandler: this.serverConnection,
      clientLimits: options.clientLimits ?? {},
      serverLimits: options.serverLimits ?? {},
      link: options.link,
    })
    world.run()
  }

  /** Opens an exchange; its head is yet to be sent. Undefined if the connection has no slot. */
  maybeOpen(): Side | undefined {
    const side = new Side(this, 'client')
    const exchange = this.pair.client.open(side)
    if (exchange === undefined) return undefined
    side.exchange = new WatchedExchange(exchange, side)
    this.sides.push(side)
    return side
  }

  open(): Side {
    const side = this.maybeOpen()
    assert.ok(side !== undefined, 'the connection has a free slot')
    return side
  }

  /** Opens an exchange and sends its head. */
  request(head: Head, end: boolean): Side {
    const side = this.open()
    side.exchange.sendHead(head, end)
    return side
  }

  /** The server's side of the newest exchange that arrived. */
  get served(): Side {
    const side = this.sides.findLast(({ role }) => role === 'server')
    assert.ok(side !== undefined, 'the request arrived')
    return side
  }

  /** Runs until the world is quiet. */
  run(): void {
    this.world.run()
  }

  /** Sees every exchange over and the connection closed, with nothing left behind. */
  finish(): void {
    const { client, server } = this.pair
    this.run()
    this.checkOver()
    client.shutdown()
    server.shutdown()
    this.run()
    this.world.advance(600_000)
    assert.deepEqual(this.faults, [])
    assert.equal(this.clientConnection.closed, true, 'the client is told that the connection closed')
    assert.equal(this.serverConnection.closed, true, 'the server is told that the connection closed')
    assert.equal(client.open(new Side(this, 'client')), undefined, 'a closed connection opens nothing')
    assert.equal(this.world.armed, 0, 'no alarm is left')
  }

  /** Every exchange had its one onClose, and no connection holds one any more. */
  checkOver(): void {
    const { client, server } = this.pair
    assert.deepEqual(this.faults, [])
    for (const side of this.sides) assert.equal(side.closed, true, `the ${side.role}'s exchange is over: ${side.lines.join(' | ')}`)
    assert.equal(client.openExchanges, 0, 'the client holds no exchange')
    assert.equal(server.openExchanges, 0, 'the server holds no exchange')
  }

  get faults(): string[] {
    const { clientConnection, serverConnection, pair } = this
    const faults = [...pair.faults, ...clientConnection.faults, ...serverConnection.faults]
    for (const side of this.sides) faults.push(...side.faults.map((fault) => `${side.role}: ${fault}`))
    return faults
  }

  #side(role: 'client' | 'server', exchange: Exchange): Side {
    const side = new Side(this, role)
    side.exchange = new WatchedExchange(exchange, side)
    this.sides.push(side)
    return side
  }
}

/** A request without content that every server answers. */
export function get(path = '/', fields: Fields = []): Head {
  return requestHead('GET', 'http', 'origin.test', path, fields)
}

/** A request with content, of `length` bytes if it is given. */
export function post(length?: number, fields: Fields = []): Head {
  return requestHead(
    'POST',
    'http',
    'origin.test',
    '/upload',
    length === undefined ? fields : [...fields, 'content-length', String(length)],
  )
}

/** Calls `then` once the whole message was received; other hooks of the side stay. */
export function whenReceived(side: Side, then: () => void): void {
  const { on } = side
  side.on = {
    ...on,
    onHead(head, end) {
      on.onHead?.(head, end)
      if (end) then()
    },
    onData(buffer, start, limit, end) {
      on.onData?.(buffer, start, limit, end)
      if (end) then()
    },
    onTrailers(fields) {
      on.onTrailers?.(fields)
      then()
    },
  }
}

/** Asserts that `side` received `content`, whole and well ended. */
export function assertReceived(side: Side, content: Uint8Array): void {
  assert.ok(side.ended, `the ${side.role} received the end`)
  assert.equal(side.received, content.length, `the ${side.role} received all bytes`)
  assert.ok(side.content.equals(content), `the ${side.role} received the right bytes`)
}

/** Asserts that the exchange ended well on `side`. */
export function assertWell(...sides: Side[]): void {
  for (const side of sides) {
    assert.ok(side.closed, `the ${side.role}'s exchange is over: ${side.lines.join(' | ')}`)
    assert.equal(side.error, undefined, `the ${side.role}'s exchange ended well: ${side.error?.message}`)
  }
}
