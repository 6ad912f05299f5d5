import { randomBytes } from 'node:crypto'
import { NetworkError, UsageError, type Address, type ConnectionInfo, type HeddleError, type Instant } from '../http/index.ts'
import { loadNative, type Native } from '../native/index.ts'
import type { EndpointServer, QuicApplication, QuicConnection, QuicOptions, QuicStreamHandler } from '../quic/index.ts'
import { Alarm, type Clock } from './clock.ts'
import { nextConnectionId } from './connection-facts.ts'
import { openEvery } from './every-address.ts'
import { checkNumber, type ListenerCounters } from './listen.ts'
import { QuicServerTls } from './quic-server-tls.ts'
import type { TlsServerOptions } from './tls-server.ts'
import { UdpDriver, udpError } from './udp-driver.ts'

/** Where and how {@link listenQuic} listens. */
export interface ListenQuicOptions {
  readonly clock: Clock
  /** Default: all addresses. Answers leave from the address that was asked, on Linux; elsewhere from the one the system chooses. */
  readonly hostname?: string | undefined
  readonly port: number
  readonly tls: TlsServerOptions
  /** ALPN protocols, best first. */
  readonly alpn: readonly string[]
  /** Connections held at once; more are told CONNECTION_REFUSED. Default: no limit. */
  readonly maxConnections?: number | undefined
  /** Connections that count toward `maxConnections` besides, such as those of TCP. */
  readonly heldElsewhere?: (() => number) | undefined
  /** Handshakes in flight; for more the oldest makes room if it has taken 1 s, else they are not answered. From a tenth of it on, clients must show first that they receive at their address (Retry). Default 1000. */
  readonly maxHandshakes?: number | undefined
  /** Processes share the port by SO_REUSEPORT. Default false. */
  readonly reusePort?: boolean | undefined
  /** 32 octets that tokens and stateless resets are made with: processes that share a port share them. Default: random. */
  readonly key?: Uint8Array | undefined
  readonly quic?: Partial<QuicOptions> | undefined
  /** A connection's handshake is complete: returns what runs on it. A throw closes that connection. */
  onConnection(accepted: AcceptedQuic): QuicApplication
  readonly onError?: ((error: unknown) => void) | undefined
}

/** A QUIC connection that a listener hands over. */
export interface AcceptedQuic {
  readonly connection: QuicConnection
  readonly info: ConnectionInfo
  /** As `Accepted.covers`. */
  readonly covers: ((host: string) => boolean) | undefined
}

/** A UDP port that QUIC connections come in by. */
export interface QuicListener {
  readonly address: Address
  /** Connections that stand or shake hands. */
  readonly connections: number
  readonly handshakes: number
  readonly counters: ListenerCounters
  /** Datagrams sent and calls that sent them. */
  readonly datagrams: { readonly sent: number; readonly sendCalls: number; readonly received: number }
  /** Octets of datagrams, those that were for no connection included. */
  readonly bytesRead: number
  readonly bytesWritten: number
  /** As `Listener.updateTls`. */
  updateTls(tls: TlsServerOptions): void
  /** Takes no more connections: they are told CONNECTION_REFUSED, and handshakes that go on have 1 s to end. What stands goes on. */
  stop(): void
  /** Handshakes that go on come to nothing; their clients are told CONNECTION_REFUSED. */
  refuseHandshakes(): void
  /** Everything ends, and the port is free. */
  close(error: HeddleError): Promise<void>
  ref(): void
  unref(): void
}

/** ms that handshakes have when no more are begun. */
const grace = 1_000

/** Waits for the end of a handshake, and puts the application in its place then. */
class Arriving implements QuicApplication {
  readonly deadline = Infinity
  readonly #listener: NativeListener
  readonly #connection: QuicConnection
  #now: Instant

  constructor(listener: NativeListener, connection: QuicConnection) {
    this.#listener = listener
    this.#connection = connection
    this.#now = 0
  }

  startRun(now: Instant): void {
    this.#now = now
  }
  finishRun(): void {}
  onReady(): void {
    const application = this.#listener.handOver(this.#connection)
    if (application === undefined) return
    this.#connection.application = application
    application.startRun(this.#now)
    application.onReady()
  }
  onStream(): QuicStreamHandler {
    return nobody
  }
  onStreamsAvailable(): void {}
  onClose(error: HeddleError): void {
    this.#listener.onHandshakeFailed(error)
  }
  expire(): void {}
}

const nobody: QuicStreamHandler = { onData() {}, onReset() {}, onStopSending() {}, onSent() {}, onClose() {} }

/** Starts to listen for QUIC. Rejects with the system's error, or UsageError where QUIC is not to be had or options cannot be used. */
export async function listenQuic(options: ListenQuicOptions): Promise<QuicListener> {
  const native = loadNative()
  if ('unavailable' in native) throw new UsageError(native.unavailable)
  const listener = new NativeListener(native, options)
  await listener.start()
  return listener
}

class NativeListener implements QuicListener {
  readonly #native: Native
  readonly #options: ListenQuicOptions
  readonly #tls: QuicServerTls
  /** The first is the one that is known by its address; it may have others for the addresses of the machine. */
  #drivers: readonly UdpDriver[]
  #accepted: number
  #handshakesRefused: number
  #handshakesFailed: number
  /** Until handshakes that were going on when it stopped are refused. */
  readonly #grace: Alarm
  #isStopped: boolean
  /** The process may end though it listens, once no connection is left. */
  #isUnref: boolean

  constructor(native: Native, options: ListenQuicOptions) {
    checkNumber('maxConnections', options.maxConnections, 0)
    checkNumber('maxHandshakes', options.maxHandshakes, 0)
    checkNumber('handshakeTimeout', options.quic?.handshakeTimeout, 1)
    this.#native = native
    this.#options = options
    this.#tls = new QuicServerTls(native, options.tls, options.alpn, (error) => this.#report(error))
    this.#drivers = []
    this.#accepted = 0
    this.#handshakesRefused = 0
    this.#handshakesFailed = 0
    this.#grace = new Alarm(() => this.refuseHandshakes())
    this.#isStopped = false
    this.#isUnref = false
  }

  async start(): Promise<void> {
    try {
      await this.#open()
    } catch (error) {
      this.#tls.close()
      throw error
    }
  }

  async #open(): Promise<void> {
    const { hostname, port, reusePort = false, key = randomBytes(32), clock, quic } = this.#options
    const { udp, crypto } = this.#native
    const owner = { onError: (error: Error) => this.#report(udpError(error)), onGone: () => this.#holdOrNot() }
    const opened: UdpDriver[] = []
    this.#drivers = opened
    try {
      await openEvery(udp, hostname, port, reusePort, async (options) => {
        const server = this.#serverOf(() => opened[index])
        const index = opened.length
        const driver = await UdpDriver.open(udp, options, clock, owner, { crypto, key, connection: quic, server })
        opened.push(driver)
        return driver
      })
    } catch (error) {
      for (const driver of opened) await driver.close(error as HeddleError)
      throw error
    }
  }

  /** What the endpoint of one port asks: its limits are those of all together. */
  #serverOf(own: () => UdpDriver | undefined): EndpointServer {
    const { clock, maxConnections = Infinity, heldElsewhere = () => 0, maxHandshakes = 1000 } = this.#options
    const otherConnections = (): number => this.connections - (own()?.endpoint.standing ?? 0) + heldElsewhere()
    const otherHandshakes = (): number => this.handshakes - (own()?.endpoint.handshakes ?? 0)
    return {
      openTls: (transportParameters, handler) => this.#tls.open(transportParameters, handler),
      onConnection: (connection) => {
        this.#accepted++
        this.#holdOrNot()
        connection.application = new Arriving(this, connection)
      },
      onStillborn: (error) => {
        this.#accepted++
        this.onHandshakeFailed(error)
      },
      get maxConnections() {
        return maxConnections - otherConnections()
      },
      get maxHandshakes() {
        return maxHandshakes - otherHandshakes()
      },
      get retryAbove() {
        return Math.ceil(maxHandshakes / 10) - otherHandshakes()
      },
      wallTime: () => clock.wallTime(),
    }
  }

  #sum(of: (driver: UdpDriver) => number): number {
    let sum = 0
    for (const driver of this.#drivers) sum += of(driver)
    return sum
  }

  get counters(): ListenerCounters {
    return {
      accepted: this.#accepted,
      refused: this.#sum(({ endpoint }) => endpoint.refused),
      handshakesRefused: this.#handshakesRefused,
      handshakesFailed: this.#handshakesFailed,
      acceptErrors: 0,
    }
  }

  get address(): Address {
    return (this.#drivers[0] as UdpDriver).local
  }

  get connections(): number {
    return this.#sum(({ endpoint }) => endpoint.standing)
  }

  get handshakes(): number {
    return this.#sum(({ endpoint }) => endpoint.handshakes)
  }

  get datagrams(): QuicListener['datagrams'] {
    return {
      sent: this.#sum(({ counters }) => counters.sent),
      sendCalls: this.#sum(({ counters }) => counters.sendCalls),
      received: this.#sum(({ counters }) => counters.received),
    }
  }

  get bytesRead(): number {
    return this.#sum(({ bytesRead }) => bytesRead)
  }

  get bytesWritten(): number {
    return this.#sum(({ bytesWritten }) => bytesWritten)
  }

  updateTls(tls: TlsServerOptions): void {
    this.#tls.update(tls)
  }

  stop(): void {
    if (this.#isStopped) return
    this.#isStopped = true
    for (const { endpoint } of this.#drivers) endpoint.closed = true
    const { clock } = this.#options
    // To a client it may be over already, and its first request under way.
    clock.set(this.#grace, clock.now() + grace)
  }

  refuseHandshakes(): void {
    this.#handshakesRefused += this.#sum(({ endpoint }) => endpoint.refuseHandshakes())
  }

  async close(error: HeddleError): Promise<void> {
    this.#options.clock.clear(this.#grace)
    await Promise.all(this.#drivers.map((driver) => driver.close(error)))
    this.#tls.close()
  }

  ref(): void {
    this.#isUnref = false
    for (const driver of this.#drivers) driver.ref()
  }

  unref(): void {
    this.#isUnref = true
    this.#holdOrNot()
  }

  /** As TCP's connections do, those of QUIC keep the process alive, though the port by itself does not. */
  #holdOrNot(): void {
    if (!this.#isUnref) return
    for (const driver of this.#drivers) {
      if (driver.connections > 0) driver.ref()
      else driver.unref()
    }
  }

  /** The application of a connection whose handshake is complete; undefined: it is closed. */
  handOver(connection: QuicConnection): QuicApplication | undefined {
    const { remote, local } = connection.route
    const tls = connection.handshake.session.facts()
    const info: ConnectionInfo = { id: nextConnectionId(), remote, local, tls }
    try {
      return this.#options.onConnection({ connection, info, covers: this.#tls.coverageOf(tls.serverName) })
    } catch (error) {
      connection.close(0, '')
      this.#report(error)
      return undefined
    }
  }

  onHandshakeFailed(error: HeddleError): void {
    this.#handshakesFailed++
    this.#report(new NetworkError('TLS_FAILED', `a QUIC handshake failed: ${error.message}`, { cause: error }))
  }

  #report(error: unknown): void {
    try {
      this.#options.onError?.(error)
    } catch (second) {
      process.emitWarning(`onError failed: ${String(second)}`, 'HeddleWarning')
    }
  }
}
