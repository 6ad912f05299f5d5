import { List, type Linked } from '../bytes/index.ts'
import { ServerConnection as Http1Connection, type Http1Options } from '../h1/index.ts'
import { ResetCounts, ServerConnection as Http2Connection, type Http2Options } from '../h2/index.ts'
import { ResetCounts as Http3ResetCounts, ServerConnection as Http3Connection, type Http3Options } from '../h3/index.ts'
import {
  UsageError,
  type ConnectionHandler,
  type Exchange,
  type ExchangeHandler,
  type HeddleError,
  type HttpConnection,
  type Instant,
} from '../http/index.ts'
import {
  protocolOf,
  type Accepted,
  type AcceptedQuic,
  type Clock,
  type DriverCounters,
  type DriverOptions,
  type StreamDriver,
} from '../io/index.ts'
import { Detector, type ConnectionEngine, type DetectorOwner } from './detect.ts'
import { Gate, type Passage } from './gate.ts'

/** Chooses who answers an exchange that begins. */
export type Acceptor = (exchange: Exchange) => ExchangeHandler

/** What all connections of a server are made with. */
export interface ConnectionsOptions {
  readonly clock: Clock
  readonly acceptor: Acceptor
  /** Undefined: not spoken. At least one is. */
  readonly http1: Http1Options | undefined
  readonly http2: Http2Options | undefined
  readonly http3: Http3Options | undefined
  /** ms until a plain-text connection has said which of the two it speaks. */
  readonly headTimeout: number
  /** Protocols that may be tunnelled to over HTTP/2. */
  readonly tunnels: readonly string[]
  onBug(error: unknown): void
}

/** What the connections of one protocol came to. */
export class ProtocolTotals {
  /** Connections that began to speak it. */
  accepted: number
  /** Exchanges begun. */
  requests: number
  /** Frames sent on connections that are over; 0 for HTTP/1.1. */
  frames: number
  readonly counters: DriverCounters
  readonly driver: DriverOptions

  constructor(onBug: (error: unknown) => void) {
    this.accepted = 0
    this.requests = 0
    this.frames = 0
    this.counters = { writes: 0, bytesRead: 0, bytesWritten: 0 }
    this.driver = { counters: this.counters, onBug }
  }
}

/** How the connections of one protocol are now. */
export interface ProtocolCensus {
  connections: number
  exchanges: number
  /** Frames sent so far, on connections that are over too. */
  frames: number
}

/** All connections of a server, and what they counted. */
export class Connections {
  readonly list: List<ServedConnection>
  readonly options: ConnectionsOptions
  readonly http1: ProtocolTotals
  readonly http2: ProtocolTotals
  readonly http3: ProtocolTotals
  readonly resets: ResetCounts
  readonly http3Resets: Http3ResetCounts
  readonly http2Options: Http2Options
  readonly http3Options: Http3Options
  drained: number
  drainAbandoned: number
  drainedBytes: number
  /** TLS connections dropped because what ALPN chose is not spoken. */
  unspoken: number
  #closing: boolean

  constructor(options: ConnectionsOptions) {
    this.list = new List()
    this.options = options
    this.http1 = new ProtocolTotals(options.onBug)
    this.http2 = new ProtocolTotals(options.onBug)
    this.http3 = new ProtocolTotals(options.onBug)
    this.resets = new ResetCounts()
    this.http2Options = { ...options.http2, resets: this.resets }
    this.http3Resets = new Http3ResetCounts()
    this.http3Options = { ...options.http3, resets: this.http3Resets }
    this.drained = 0
    this.drainAbandoned = 0
    this.drainedBytes = 0
    this.unspoken = 0
    this.#closing = false
  }

  /** Puts an engine on a connection that was accepted. */
  accept(accepted: Accepted): void {
    if (this.#closing) {
      // Its handshake ended after the listener stopped.
      accepted.socket.destroy()
      return
    }
    const { clock, http1, http2, headTimeout } = this.options
    const connection = new SocketConnection(this, accepted)
    if (accepted.info.tls !== undefined) {
      const protocol = protocolOf(accepted.alpn)
      if (protocol === undefined || (protocol === 'h1' ? http1 : http2) === undefined) {
        this.unspoken++
        accepted.socket.destroy()
        return
      }
      connection.begin(protocol, clock.now())
    } else if (http1 === undefined) connection.begin('h2', clock.now())
    else if (http2 === undefined) connection.begin('h1', clock.now())
    else connection.engine = new Detector(connection, headTimeout, clock.now())
    this.list.append(connection)
    connection.start()
  }

  /** Puts an engine on a QUIC connection whose handshake is done, and returns it. */
  acceptQuic({ connection, info, covers }: AcceptedQuic): Http3Connection {
    const served = new ServedConnection(this, covers, this.http3)
    const engine = new Http3Connection(info, served, connection, this.http3Options, this.options.clock.now())
    served.engine = engine
    this.http3.accepted++
    this.list.append(served)
    // Its handshake ended after the listener stopped.
    if (this.#closing) this.options.clock.soon(() => engine.shutdown())
    return engine
  }

  /** No new exchanges: idle connections close, the others when their exchanges are over. */
  shutdown(): void {
    this.#closing = true
    for (const connection of this.#all()) connection.engine?.shutdown()
  }

  /** Connections without an open exchange close; others are left alone. */
  shutdownIdle(): void {
    for (const connection of this.#all()) if (connection.engine?.openExchanges === 0) connection.engine.shutdown()
  }

  /** Every connection ends now, open exchanges with `error`. */
  abort(error: HeddleError): void {
    for (const connection of this.#all()) connection.engine?.abort(error)
  }

  /** Connections without an exchange and those that have a deadline, and what each protocol has open. O(connections). */
  census(): { idle: number; deadlines: number; http1: ProtocolCensus; http2: ProtocolCensus; http3: ProtocolCensus } {
    let idle = 0
    let deadlines = 0
    const http1 = { connections: 0, exchanges: 0, frames: 0 }
    const http2 = { connections: 0, exchanges: 0, frames: this.http2.frames }
    const http3 = { connections: 0, exchanges: 0, frames: 0 }
    for (let connection = this.list.first; connection !== undefined; connection = connection.next) {
      const engine = connection.engine as ServedEngine
      if (engine.openExchanges === 0) idle++
      if (engine.deadline !== Infinity) deadlines++
      if (connection.totals === undefined) continue
      const protocol = connection.totals === this.http1 ? http1 : connection.totals === this.http2 ? http2 : http3
      protocol.connections++
      protocol.exchanges += engine.openExchanges
      if (engine instanceof Http2Connection) protocol.frames += engine.framesSent
    }
    return { idle, deadlines, http1, http2, http3 }
  }

  // Connections leave the list while they are told.
  #all(): ServedConnection[] {
    const all: ServedConnection[] = []
    for (let connection = this.list.first; connection !== undefined; connection = connection.next) all.push(connection)
    return all
  }
}

/** What every version's engine has. */
export type ServedEngine = HttpConnection & { readonly deadline: Instant }

/** One connection of a server, as its engine's owner. */
export class ServedConnection implements ConnectionHandler, Linked {
  previous: ServedConnection | undefined
  next: ServedConnection | undefined
  engine: ServedEngine | undefined
  /** The totals of the protocol it speaks; undefined until that is known. */
  totals: ProtocolTotals | undefined
  protected readonly owner: Connections
  readonly #covers: ((host: string) => boolean) | undefined
  /** What its exchanges have to pass, once there is one that has to. */
  #passage: Passage | undefined

  constructor(owner: Connections, covers: ((host: string) => boolean) | undefined, totals: ProtocolTotals | undefined) {
    this.previous = undefined
    this.next = undefined
    this.engine = undefined
    this.totals = totals
    this.owner = owner
    this.#covers = covers
    this.#passage = undefined
  }

  onReady(): void {}

  onExchange(exchange: Exchange): ExchangeHandler {
    const { owner } = this
    const { options } = owner
    const totals = this.totals as ProtocolTotals
    totals.requests++
    const covers = this.#covers
    const protocols = options.tunnels.length > 0 && totals !== owner.http1 ? options.tunnels : undefined
    if (protocols !== undefined || covers !== undefined) {
      this.#passage ??= { protocols, covers }
      return new Gate(exchange, this.#passage, options.acceptor)
    }
    return options.acceptor(exchange)
  }

  onCapacity(): void {}

  onDraining(): void {}

  onDrained(byteCount: number, completed: boolean): void {
    const { owner } = this
    if (completed) owner.drained++
    else owner.drainAbandoned++
    owner.drainedBytes += byteCount
  }

  /** What a handler throws in its last call goes where other failures of handlers go. */
  onFault(cause: unknown): void {
    this.owner.options.onBug(cause)
  }

  onClose(error?: HeddleError): void {
    const { owner } = this
    // QUIC contains what its application throws, which it never should.
    if (error?.code === 'HANDLER_FAILED' && this.engine instanceof Http3Connection) owner.options.onBug(error.cause ?? error)
    if (this.engine instanceof Http2Connection) owner.http2.frames += this.engine.framesSent
    owner.list.remove(this)
  }
}

/** A connection by TCP. */
export class SocketConnection extends ServedConnection implements DetectorOwner {
  readonly #accepted: Accepted
  #driver: StreamDriver | undefined

  constructor(owner: Connections, accepted: Accepted) {
    super(owner, accepted.covers, undefined)
    this.#accepted = accepted
    this.#driver = undefined
  }

  begin(protocol: 'h1' | 'h2', acceptedAt: Instant): ConnectionEngine {
    const { owner } = this
    const { info } = this.#accepted
    const totals = protocol === 'h1' ? owner.http1 : owner.http2
    const engine =
      protocol === 'h1'
        ? new Http1Connection(info, this, owner.options.http1 ?? {}, acceptedAt)
        : new Http2Connection(info, this, owner.http2Options, acceptedAt)
    totals.accepted++
    this.engine = engine
    this.totals = totals
    this.#driver?.replace(engine, totals.counters)
    return engine
  }

  /** Starts to read. */
  start(): void {
    const engine = this.engine as ConnectionEngine | undefined
    if (engine === undefined) throw new UsageError('a connection without an engine')
    this.#driver = this.#accepted.attach(engine, (this.totals ?? this.owner.http1).driver)
  }
}
