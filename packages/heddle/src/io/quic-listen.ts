import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { NetworkError, UsageError, type Address, type ConnectionInfo, type HeddleError, type Instant } from '../http/index.ts'
import { loadNative, type Native } from '../native/index.ts'
import type { QuicApplication, QuicConnection, QuicOptions, QuicStreamHandler } from '../quic/index.ts'
import { Alarm, type Clock } from './clock.ts'
import { nextConnectionId } from './connection-facts.ts'
import { checkNumber, type ListenerCounters } from './listen.ts'
import { QuicServerTls } from './quic-server-tls.ts'
import type { TlsServerOptions } from './tls-server.ts'
import { UdpDriver, udpError } from './udp-driver.ts'

/** Where and how {@link listenQuic} listens. */
export interface ListenQuicOptions {
  readonly clock: Clock
  /** Default: all addresses. */
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
  #driver: UdpDriver | undefined
  #accepted: number
  #handshakesRefused: number
  #handshakesFailed: number
  /** Until handshakes that were going on when it stopped are refused. */
  readonly #grace: Alarm
  /** The process may end though it listens, once no connection is left. */
  #isUnref: boolean

  constructor(native: Native, options: ListenQuicOptions) {
    checkNumber('maxConnections', options.maxConnections, 0)
    checkNumber('maxHandshakes', options.maxHandshakes, 0)
    checkNumber('handshakeTimeout', options.quic?.handshakeTimeout, 1)
    this.#native = native
    this.#options = options
    this.#tls = new QuicServerTls(native, options.tls, options.alpn, (error) => this.#report(error))
    this.#driver = undefined
    this.#accepted = 0
    this.#handshakesRefused = 0
    this.#handshakesFailed = 0
    this.#grace = new Alarm(() => this.refuseHandshakes())
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
    const {
      clock,
      hostname,
      port,
      maxConnections = Infinity,
      heldElsewhere = () => 0,
      maxHandshakes = 1000,
      reusePort,
      key,
      quic,
    } = this.#options
    this.#driver = await UdpDriver.open(
      this.#native.udp,
      { host: await addressFor(hostname), port, reusePort },
      clock,
      {
        onError: (error) => this.#report(udpError(error)),
        onGone: () => this.#holdOrNot(),
      },
      {
        crypto: this.#native.crypto,
        key,
        connection: quic,
        server: {
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
            return maxConnections - heldElsewhere()
          },
          maxHandshakes,
          retryAbove: Math.ceil(maxHandshakes / 10),
          wallTime: () => clock.wallTime(),
        },
      },
    )
  }

  get counters(): ListenerCounters {
    const refused = this.#driver?.endpoint.refused ?? 0
    return {
      accepted: this.#accepted,
      refused,
      handshakesRefused: this.#handshakesRefused,
      handshakesFailed: this.#handshakesFailed,
      acceptErrors: 0,
    }
  }

  get address(): Address {
    return (this.#driver as UdpDriver).local
  }

  get connections(): number {
    return this.#driver?.endpoint.standing ?? 0
  }

  get handshakes(): number {
    return this.#driver?.endpoint.handshakes ?? 0
  }

  get datagrams(): QuicListener['datagrams'] {
    return (this.#driver as UdpDriver).counters
  }

  get bytesRead(): number {
    return this.#driver?.bytesRead ?? 0
  }

  get bytesWritten(): number {
    return this.#driver?.bytesWritten ?? 0
  }

  updateTls(tls: TlsServerOptions): void {
    this.#tls.update(tls)
  }

  stop(): void {
    const driver = this.#driver
    if (driver === undefined || driver.endpoint.closed) return
    const { clock } = this.#options
    driver.endpoint.closed = true
    // To a client it may be over already, and its first request under way.
    clock.set(this.#grace, clock.now() + grace)
  }

  refuseHandshakes(): void {
    this.#handshakesRefused += this.#driver?.endpoint.refuseHandshakes() ?? 0
  }

  async close(error: HeddleError): Promise<void> {
    this.#options.clock.clear(this.#grace)
    await this.#driver?.close(error)
    this.#tls.close()
  }

  ref(): void {
    this.#isUnref = false
    this.#driver?.ref()
  }

  unref(): void {
    this.#isUnref = true
    this.#holdOrNot()
  }

  /** As TCP's connections do, those of QUIC keep the process alive, though the port by itself does not. */
  #holdOrNot(): void {
    if (!this.#isUnref) return
    if ((this.#driver?.connections ?? 0) > 0) this.#driver?.ref()
    else this.#driver?.unref()
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

/** A name as the address that TCP would listen at. Rejects with the system's error. */
async function addressFor(hostname: string | undefined): Promise<string | undefined> {
  if (hostname === undefined || hostname === '') return undefined
  return isIP(hostname) === 0 ? (await lookup(hostname)).address : hostname
}
