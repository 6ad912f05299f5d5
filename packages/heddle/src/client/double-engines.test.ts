/** Engines that do what a test says. */
import {
  CancelledError,
  PeerError,
  responseHead,
  type CancelReason,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Head,
  type HeddleError,
  type HttpConnection,
  type StreamEngine,
} from '../http/index.ts'
import { connectionInfo, type World } from '../testing/index.ts'

/** What a double's exchange needs of its engine. */
interface ExchangeOwner {
  readonly world: World
  giveUp(exchange: DoubleExchange, error: HeddleError | undefined): void
}

export class DoubleExchange implements Exchange {
  readonly protocol: Exchange['protocol']
  readonly connection: ConnectionInfo = connectionInfo('client')
  readonly heads: Head[] = []
  handler: ExchangeHandler
  cancelled: CancelReason | undefined
  readonly #engine: ExchangeOwner

  constructor(protocol: Exchange['protocol'], engine: ExchangeOwner, handler: ExchangeHandler) {
    this.protocol = protocol
    this.#engine = engine
    this.handler = handler
  }

  sendHead(head: Head): void {
    this.heads.push(head)
  }
  sendData(): boolean {
    return true
  }
  sendOwned(): boolean {
    return true
  }
  sendTrailers(): void {}
  consume(): void {}
  discard(): void {}
  setPriority(): void {}
  cancel(reason: CancelReason): void {
    if (this.cancelled !== undefined) return
    this.cancelled = reason
    this.#engine.world.soon(() => this.#engine.giveUp(this, new CancelledError(reason)))
  }
}

/** HTTP/1.1 without HTTP: one exchange at a time, ended by the test. */
export class DoubleEngine implements HttpConnection, StreamEngine {
  readonly world: World
  readonly handler: ConnectionHandler
  readonly wantsInput: boolean = true
  readonly closing: StreamEngine['closing'] = 'no'
  readonly deadline: number = Infinity
  onDirty: () => void = () => {}
  openable = 1
  exchange: DoubleExchange | undefined
  /** True: `open` refuses, as it does once a FIN was seen that the pool has not been told of. */
  dead = false
  closed = false
  /** What a cancelled exchange leaves behind: content to drain, or a connection that has to go. */
  afterCancel: 'drain' | 'close' = 'close'

  constructor(world: World, handler: ConnectionHandler) {
    this.world = world
    this.handler = handler
  }

  get openExchanges(): number {
    return this.exchange === undefined ? 0 : 1
  }

  open(handler: ExchangeHandler): Exchange | undefined {
    if (this.openable === 0 || this.dead) return undefined
    this.openable = 0
    this.exchange = new DoubleExchange('h1', this, handler)
    return this.exchange
  }

  /** The whole response arrives. `early`: the engine can take the next exchange before it tells the end of this one. */
  respond(early = true, head: Head = responseHead(200)): void {
    const exchange = this.exchange as DoubleExchange
    this.exchange = undefined
    exchange.handler.onHead(head, true)
    if (early) this.openable = 1
    exchange.handler.onClose(undefined)
    if (!early) this.openable = 1
    if (this.openable > 0) this.handler.onCapacity(this.openable)
  }

  /** The exchange is over; what is left is drained until `drained` or `close`. */
  giveUp(exchange: DoubleExchange, error: HeddleError | undefined): void {
    if (this.exchange !== exchange) return
    this.exchange = undefined
    exchange.handler.onClose(error)
    if (this.afterCancel === 'close') this.close()
  }

  drained(byteCount: number): void {
    this.openable = 1
    this.handler.onDrained(byteCount, true)
    this.handler.onCapacity(1)
  }

  /** The connection is gone. */
  close(error?: HeddleError): void {
    if (this.closed) return
    this.closed = true
    this.openable = 0
    const { exchange } = this
    this.exchange = undefined
    exchange?.handler.onClose(error ?? new PeerError('PEER_CLOSED', 'closed'))
    this.handler.onClose(error)
  }

  shutdown(): void {
    this.openable = 0
    if (this.exchange === undefined) this.world.soon(() => this.close())
  }

  abort(error: HeddleError): void {
    this.world.soon(() => this.close(error))
  }

  receive(): void {}
  receiveEnd(): void {}
  receiveError(): void {}
  transmit(): boolean {
    return false
  }
  expire(): void {}
}

/** HTTP/2 or HTTP/3 without HTTP: as many exchanges at once as it is told, each ended by the test. */
export class DoubleStreams implements HttpConnection, StreamEngine {
  readonly world: World
  readonly handler: ConnectionHandler
  readonly wantsInput: boolean = true
  readonly closing: StreamEngine['closing'] = 'no'
  readonly deadline: number = Infinity
  onDirty: () => void = () => {}
  /** The peer's MAX_CONCURRENT_STREAMS. */
  most: number
  /** Numbers left for new streams. */
  numbers: number = Infinity
  readonly exchanges: DoubleExchange[] = []
  framesSent = 0
  resetsSent = 0
  originSet: ReadonlySet<string> | undefined
  draining = false
  closed = false

  readonly protocol: 'h2' | 'h3'

  constructor(world: World, handler: ConnectionHandler, most: number, protocol: 'h2' | 'h3' = 'h2') {
    this.world = world
    this.handler = handler
    this.most = most
    this.protocol = protocol
    handler.onReady({ protocol, maxExchanges: most, extendedConnect: false })
  }

  get openable(): number {
    if (this.draining || this.closed) return 0
    return Math.max(0, Math.min(this.most - this.exchanges.length, this.numbers))
  }

  get openExchanges(): number {
    return this.exchanges.length
  }

  open(handler: ExchangeHandler): Exchange | undefined {
    if (this.openable === 0) return undefined
    const exchange = new DoubleExchange(this.protocol, this, handler)
    this.exchanges.push(exchange)
    this.numbers--
    this.framesSent++
    return exchange
  }

  /** SETTINGS come. */
  allow(most: number, extendedConnect = false): void {
    this.most = most
    this.handler.onReady({ protocol: this.protocol, maxExchanges: most, extendedConnect })
  }

  /** The exchange that was opened `index`th, of those that are open, is answered. */
  respond(index = 0, head: Head = responseHead(200)): void {
    const [exchange] = this.exchanges.splice(index, 1) as [DoubleExchange]
    exchange.handler.onHead(head, true)
    exchange.handler.onClose(undefined)
  }

  /** The peer resets it. */
  reset(index: number, wireCode: number, unprocessed: boolean = wireCode === 7): void {
    const [exchange] = this.exchanges.splice(index, 1) as [DoubleExchange]
    exchange.handler.onClose(new PeerError('PEER_RESET', 'reset', { wireCode, scope: 'stream', unprocessed }))
  }

  /** GOAWAY: the first `kept` of the open exchanges go on. */
  goAway(kept: number, wireCode = 0): void {
    this.draining = true
    this.handler.onDraining()
    const facts = { wireCode, scope: 'connection', unprocessed: true } as const
    for (const { handler } of this.exchanges.splice(kept)) handler.onClose(new PeerError('PEER_CLOSED', 'going away', facts))
    if (this.exchanges.length === 0) this.close()
  }

  giveUp(exchange: DoubleExchange, error: HeddleError | undefined): void {
    const index = this.exchanges.indexOf(exchange)
    if (index < 0) return
    this.exchanges.splice(index, 1)
    if (error !== undefined) this.resetsSent++
    exchange.handler.onClose(error)
    if (this.draining && this.exchanges.length === 0) this.close()
    else if (this.openable > 0) this.handler.onCapacity(this.openable)
  }

  /** The connection is gone; those of its exchanges that were never sent are `unsent`. */
  close(error?: HeddleError, unsent = 0): void {
    if (this.closed) return
    this.closed = true
    const open = this.exchanges.splice(0)
    open.forEach(({ handler }, index) => {
      const unprocessed = index >= open.length - unsent
      handler.onClose(new PeerError('PEER_CLOSED', 'closed', { unprocessed }))
    })
    this.handler.onClose(error)
  }

  shutdown(): void {
    this.draining = true
    if (this.exchanges.length === 0) this.world.soon(() => this.close())
  }

  abort(error: HeddleError): void {
    this.world.soon(() => {
      for (const { handler } of this.exchanges.splice(0)) handler.onClose(error)
      this.close(error)
    })
  }

  receive(): void {}
  receiveEnd(): void {}
  receiveError(): void {}
  transmit(): boolean {
    return false
  }
  expire(): void {}
}
