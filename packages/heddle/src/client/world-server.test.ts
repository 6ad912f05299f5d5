/** HTTP/2 servers in a world: the library's engine, with handlers that do what a test says. */
import { ServerConnection, writeDebugFrame, type DebugFrame, type Http2Options } from '../h2/index.ts'
import {
  responseHead,
  type ConnectionHandler,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type StreamEngine,
} from '../http/index.ts'
import type { LinkSocket, World, WorldConnection } from '../testing/index.ts'

/** One request as a server sees it. */
export class WorldRequest implements ExchangeHandler {
  readonly exchange: Exchange
  readonly connection: WorldStreams
  readonly streamId: number
  head: Head | undefined
  content: Buffer[]
  trailers: Fields | undefined
  ended: boolean
  closed: boolean
  error: HeddleError | undefined
  whenHead: ((request: WorldRequest) => void) | undefined
  whenClosed: (() => void) | undefined

  constructor(exchange: Exchange, connection: WorldStreams) {
    this.exchange = exchange
    this.connection = connection
    // A field of the engine's own: GOAWAY has to name it.
    this.streamId = (exchange as Exchange & { readonly id: number }).id
    this.head = undefined
    this.content = []
    this.trailers = undefined
    this.ended = false
    this.closed = false
    this.error = undefined
    this.whenHead = undefined
    this.whenClosed = undefined
  }

  get path(): string {
    return this.head?.path ?? ''
  }

  /** Answers in whole. */
  answer(status = 200, text: string = this.path, fields: Fields = []): void {
    this.exchange.sendHead(responseHead(status, fields), text === '')
    if (text !== '') this.exchange.sendOwned(Buffer.from(text), true)
  }

  onHead(head: Head, end: boolean): void {
    this.head = head
    this.ended = end
    this.whenHead?.(this)
  }
  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    this.content.push(Buffer.from(buffer.subarray(start, limit)))
    this.exchange.consume(limit - start)
    this.ended = end
  }
  onTrailers(fields: Fields): void {
    this.trailers = fields
    this.ended = true
  }
  onSent(): void {}
  onPriority(): void {}
  onClose(error: HeddleError | undefined): void {
    this.closed = true
    this.error = error
    this.whenClosed?.()
  }
}

/** One connection of such a server. */
export class WorldStreams implements ConnectionHandler {
  readonly engine: ServerConnection
  readonly socket: LinkSocket
  readonly requests: WorldRequest[] = []
  readonly #onRequest: (request: WorldRequest) => void

  constructor(world: World, connection: WorldConnection, options: Http2Options, onRequest: (request: WorldRequest) => void) {
    this.socket = connection.socket
    this.#onRequest = onRequest
    this.engine = new ServerConnection(connection.info, this, options, world.now())
    connection.attach(this.engine satisfies StreamEngine)
  }

  /** Writes a frame of the test's own, past the engine. */
  write(frame: DebugFrame): void {
    if (!this.socket.destroyed && !this.socket.writableEnded) this.socket.write(Buffer.from(writeDebugFrame(frame)))
  }

  onReady(): void {}
  onExchange(exchange: Exchange): ExchangeHandler {
    const request = new WorldRequest(exchange, this)
    this.requests.push(request)
    request.whenHead = this.#onRequest
    return request
  }
  onCapacity(): void {}
  onDraining(): void {}
  onDrained(): void {}
  onClose(): void {}
}

/** Serves HTTP/2 at `host`: with TLS at 443, by prior knowledge at 80. */
export function serveStreams(
  world: World,
  host: string,
  port: 80 | 443,
  onRequest: (request: WorldRequest) => void,
  options: Http2Options = {},
): WorldStreams[] {
  const connections: WorldStreams[] = []
  world.network.listen(
    host,
    port,
    (connection) => void connections.push(new WorldStreams(world, connection, options, onRequest)),
    port === 443 ? { tls: { alpn: ['h2', 'http/1.1'] } } : {},
  )
  return connections
}
