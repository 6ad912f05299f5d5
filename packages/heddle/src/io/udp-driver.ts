import { HeddleError, NetworkError, type Address, type Instant } from '../http/index.ts'
import type { TlsSession, TlsSessionHandler, Udp, UdpAddress, UdpHandler, UdpOptions, UdpPort } from '../native/index.ts'
import { Endpoint, type EndpointOptions, type QuicApplication, type QuicConnection, type Route } from '../quic/index.ts'
import { Alarm, type Clock } from './clock.ts'

/** Octets that one call of the system takes at most, as datagrams of one size. */
const batchSize = 65_536
/** Datagrams in one call at most. */
const batchCount = 64
/** A datagram has room for this many octets. */
const roomFor = 2_048
/** Datagrams of one connection that leave before the others have their turn. */
const turnCount = 4 * batchCount

/** One for all ports of a thread: what is written to it has left when the next is written. */
const output = Buffer.allocUnsafeSlow(batchSize)

/** What a {@link UdpDriver} tells beside what its connections do. */
export interface UdpDriverOwner {
  /** Something was not sent, or nobody listens at the only peer's address. */
  onError(error: Error): void
  /** `connection` is over and nothing of it is needed any more. */
  onGone?(connection: QuicConnection): void
}

/** A connection and what the driver knows of it. */
class Driven {
  readonly connection: QuicConnection
  readonly alarm: Alarm
  /** What `alarm` is armed for; Infinity: not armed. */
  alarmAt: Instant
  /** It waits for its turn to send. */
  waits: boolean

  constructor(connection: QuicConnection, expire: () => void) {
    this.connection = connection
    this.alarm = new Alarm(expire)
    this.alarmAt = Infinity
    this.waits = false
  }
}

/**
 * Runs QUIC connections on a UDP port: everything that was received in one turn of the event loop is taken
 * first, then each connection that it was for sends what it has, in batches of datagrams of one size.
 * What comes up elsewhere (`onDirty`) leaves in the next batch of `clock.soon`. While the port is blocked
 * nothing is asked of connections; their timers run.
 */
export class UdpDriver implements UdpHandler {
  readonly endpoint: Endpoint
  /** Octets of datagrams received and sent. */
  bytesRead: number
  bytesWritten: number
  readonly #clock: Clock
  readonly #owner: UdpDriverOwner
  #port: UdpPort | undefined
  #local: Address
  readonly #routes: WeakMap<UdpAddress, Route>
  readonly #peers: WeakMap<Route, UdpAddress>
  readonly #driven: Map<QuicConnection, Driven>
  /** Those that have something to send, perhaps. */
  readonly #waiting: Driven[]
  #isPlanned: boolean
  readonly #flush: () => void

  private constructor(clock: Clock, owner: UdpDriverOwner, options: EndpointOptions) {
    this.endpoint = new Endpoint(options)
    this.bytesRead = 0
    this.bytesWritten = 0
    this.#clock = clock
    this.#owner = owner
    this.#port = undefined
    this.#local = { address: '::', port: 0, family: 'IPv6' }
    this.#routes = new WeakMap()
    this.#peers = new WeakMap()
    this.#driven = new Map()
    this.#waiting = []
    this.#isPlanned = false
    this.#flush = () => {
      this.#isPlanned = false
      this.#turn()
    }
  }

  /** Opens a port. Rejects with the system's error. */
  static async open(udp: Udp, port: UdpOptions, clock: Clock, owner: UdpDriverOwner, options: EndpointOptions): Promise<UdpDriver> {
    const driver = new UdpDriver(clock, owner, options)
    driver.#port = await udp.bind(port, driver)
    driver.#local = addressOf(driver.#port.local)
    return driver
  }

  /** Where it is bound. */
  get local(): Address {
    return this.#local
  }

  /** Connections that are not gone. */
  get connections(): number {
    return this.endpoint.connections.size
  }

  /** Datagrams and calls of the system. */
  get counters(): UdpPort['counters'] {
    return (this.#port as UdpPort).counters
  }

  /** Client: begins a connection to `peer`. */
  connect(
    peer: UdpAddress,
    application: QuicApplication,
    token: Uint8Array | undefined,
    openTls: (transportParameters: Uint8Array, handler: TlsSessionHandler) => TlsSession,
  ): QuicConnection {
    const connection = this.endpoint.connect(this.#routeOf(peer), application, token, openTls, this.#clock.now())
    this.#want(connection)
    this.#plan()
    return connection
  }

  ref(): void {
    this.#port?.ref()
  }

  unref(): void {
    this.#port?.unref()
  }

  /** Every connection ends with `error`, and the port closes when what they had to say has left. */
  async close(error: HeddleError): Promise<void> {
    this.endpoint.closed = true
    // What connections have to say, their farewell above all, leaves first.
    this.#turn()
    for (const connection of this.endpoint.connections) connection.abandon(error)
    for (const { alarm } of this.#driven.values()) this.#clock.clear(alarm)
    this.#driven.clear()
    await this.#port?.close()
  }

  // ── {@link UdpHandler} ──────────────────────────────────────────────────────────────────────────

  onBatch(port: UdpPort, count: number): void {
    const now = this.#startTurn()
    for (let i = 0; i < count; i++) {
      const start = port.offset(i)
      const limit = start + port.length(i)
      this.bytesRead += limit - start
      // Of some datagrams the mark is not known, so none is counted (RFC 9000 §13.4.1).
      try {
        const connection = this.endpoint.receive(port.buffer, start, limit, this.#routeOf(port.peer(i)), 0, now)
        if (connection !== undefined) this.#want(connection)
      } catch (error) {
        this.#owner.onError(error instanceof Error ? error : new Error(String(error)))
      }
    }
    this.#sendLoose(port)
    this.#sendWaiting(now)
    this.#clock.endTurn?.()
  }

  onWritable(): void {
    this.#turn()
  }

  onError(_port: UdpPort, error: NodeJS.ErrnoException): void {
    this.#owner.onError(error)
  }

  // ── inside ──────────────────────────────────────────────────────────────────────────────────────

  #startTurn(): Instant {
    return this.#clock.startTurn?.() ?? this.#clock.now()
  }

  #turn(): void {
    const now = this.#startTurn()
    this.#sendWaiting(now)
    this.#clock.endTurn?.()
  }

  #add(connection: QuicConnection): Driven {
    const driven = new Driven(connection, () => this.#expire(driven))
    this.#driven.set(connection, driven)
    connection.onDirty = () => {
      this.#enlist(driven)
      this.#plan()
    }
    return driven
  }

  #want(connection: QuicConnection): void {
    this.#enlist(this.#driven.get(connection) ?? this.#add(connection))
  }

  #enlist(driven: Driven): void {
    if (driven.waits) return
    driven.waits = true
    this.#waiting.push(driven)
  }

  /** What a connection throws, which it never should, ends that one and is told. */
  #onBug(connection: QuicConnection, error: unknown): void {
    this.#owner.onError(error instanceof Error ? error : new Error(String(error)))
    try {
      connection.abandon(new HeddleError('HANDLER_FAILED', 'the QUIC connection failed', { cause: error }))
    } catch {
      connection.forget()
    }
  }

  #plan(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    this.#clock.soon(this.#flush)
  }

  #expire(driven: Driven): void {
    driven.alarmAt = Infinity
    const now = this.#startTurn()
    const { connection } = driven
    // A deadline that moved away did not move the alarm.
    try {
      if (connection.deadline <= now) connection.expire(now)
    } catch (error) {
      this.#onBug(connection, error)
    }
    this.#enlist(driven)
    this.#sendWaiting(now)
    this.#clock.endTurn?.()
  }

  #sendWaiting(now: Instant): void {
    const port = this.#port as UdpPort
    const waiting = this.#waiting
    for (let count = waiting.length; count > 0; count--) {
      const driven = waiting.shift() as Driven
      driven.waits = false
      let isDone = true
      try {
        isDone = this.#send(driven.connection, port, now)
      } catch (error) {
        this.#onBug(driven.connection, error)
      }
      if (!isDone) {
        this.#enlist(driven)
        // A blocked port says when it goes on.
        if (!port.blocked) this.#plan()
      }
      this.#arm(driven, now)
    }
  }

  /** Sends what a connection has; false: there may be more. */
  #send(connection: QuicConnection, port: UdpPort, now: Instant): boolean {
    for (let sent = 0; sent < turnCount;) {
      if (port.blocked) return false
      const count = this.#sendBatch(connection, port, now)
      if (count === 0) return true
      sent += count
    }
    return false
  }

  /** Sends datagrams of one size to one peer; returns how many. */
  #sendBatch(connection: QuicConnection, port: UdpPort, now: Instant): number {
    const size = connection.transmit(output, 0, roomFor, now)
    if (size === 0) return 0
    const { route, ecn } = connection
    let at = size
    let count = 1
    // Small datagrams go alone: others would have to be as small.
    while (size >= 1_200 && count < batchCount && at + size <= batchSize) {
      const more = connection.transmit(output, at, at + size, now)
      if (more === 0) break
      if (connection.route !== route || connection.ecn !== ecn) {
        this.#write(port, route, output, 0, at, size, ecn)
        this.#write(port, connection.route, output, at, at + more, more, connection.ecn)
        return count + 1
      }
      at += more
      count++
      if (more < size) break
    }
    this.#write(port, route, output, 0, at, size, ecn)
    return count
  }

  #write(port: UdpPort, route: Route, buffer: Uint8Array, start: number, limit: number, size: number, ecn: number): void {
    const peer = this.#peers.get(route)
    if (peer === undefined) return
    this.bytesWritten += limit - start
    port.send(peer, buffer, start, limit, size, port.sendsEcn ? ecn : 0)
  }

  #sendLoose(port: UdpPort): void {
    const { loose } = this.endpoint
    for (const { route, bytes } of loose) this.#write(port, route, bytes, 0, bytes.length, bytes.length, 0)
    loose.length = 0
  }

  #arm(driven: Driven, now: Instant): void {
    const { connection } = driven
    if (!this.endpoint.connections.has(connection)) {
      this.#clock.clear(driven.alarm)
      if (this.#driven.delete(connection)) this.#owner.onGone?.(connection)
      return
    }
    const { deadline } = connection
    // Nearly every packet moves a deadline away: the alarm stays, and looks again when it goes off.
    if (deadline >= driven.alarmAt) return
    // A deadline that came while it sent is for the next turn.
    driven.alarmAt = deadline
    this.#clock.set(driven.alarm, Math.max(deadline, now))
  }

  #routeOf(peer: UdpAddress): Route {
    let route = this.#routes.get(peer)
    if (route === undefined) {
      route = { key: peer.key, remote: addressOf(peer), local: this.#local }
      this.#routes.set(peer, route)
      this.#peers.set(route, peer)
    }
    return route
  }
}

function addressOf({ host, port, family }: UdpAddress): Address {
  return { address: host, port, family: family === 4 ? 'IPv4' : 'IPv6' }
}

/** The error of a port whose only peer does not listen, and of whatever else fails there. */
export function udpError(error: NodeJS.ErrnoException): NetworkError {
  const code = error.code === 'ECONNREFUSED' ? 'CONNECT_FAILED' : 'NETWORK_ERROR'
  return new NetworkError(code, error.message, { cause: error, unprocessed: code === 'CONNECT_FAILED' })
}
