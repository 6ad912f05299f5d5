import { NetworkError, UsageError, type Address, type ConnectionInfo, type HeddleError, type Instant } from '../http/index.ts'
import {
  loadNative,
  type Native,
  type TlsContext,
  type TlsContextOptions,
  type TlsIdentity as QuicIdentity,
  type TlsUpdate,
} from '../native/index.ts'
import type { QuicApplication, QuicConnection, QuicOptions, QuicStreamHandler } from '../quic/index.ts'
import type { Clock } from './clock.ts'
import { nextConnectionId } from './connection-facts.ts'
import type { ListenerCounters } from './listen.ts'
import type { TlsServerOptions } from './tls-server.ts'
import type { TlsIdentity } from './tls-identity.ts'
import { UdpDriver } from './udp-driver.ts'

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
  /** Handshakes in flight; more are not answered. From a tenth of it on, clients must show first that they receive at their address (Retry). Default 1000. */
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
}

/** A UDP port that QUIC connections come in by. */
export interface QuicListener {
  readonly address: Address
  /** Connections that stand or shake hands; those that say their last words included. */
  readonly connections: number
  readonly handshakes: number
  readonly counters: ListenerCounters
  /** Datagrams sent and calls that sent them. */
  readonly datagrams: { readonly sent: number; readonly sendCalls: number; readonly received: number }
  /** As `Listener.updateTls`. */
  updateTls(tls: TlsServerOptions): void
  /** Takes no more connections; those that stand go on. */
  stop(): void
  /** Everything ends, and the port is free. */
  close(error: HeddleError): Promise<void>
  ref(): void
  unref(): void
}

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

/** Why QUIC is not to be had in this process, in plain words; undefined: it is. */
export function quicObstacle(): string | undefined {
  const native = loadNative()
  return 'unavailable' in native ? native.unavailable : undefined
}

/** Starts to listen for QUIC. Rejects with the system's error, or UsageError where QUIC is not to be had or options cannot be used. */
export async function listenQuic(options: ListenQuicOptions): Promise<QuicListener> {
  const native = loadNative()
  if ('unavailable' in native) throw new UsageError(native.unavailable)
  const listener = new NativeListener(native, options)
  await listener.start()
  return listener
}

class NativeListener implements QuicListener {
  readonly counters: ListenerCounters
  readonly #native: Native
  readonly #options: ListenQuicOptions
  readonly #tls: TlsContext
  #driver: UdpDriver | undefined

  constructor(native: Native, options: ListenQuicOptions) {
    this.counters = { accepted: 0, refused: 0, handshakesRefused: 0, handshakesFailed: 0, acceptErrors: 0 }
    this.#native = native
    this.#options = options
    this.#tls = native.tls(contextOptions(options, (error) => this.#report(error)))
    this.#driver = undefined
  }

  async start(): Promise<void> {
    const { clock, hostname, port, maxConnections = Infinity, maxHandshakes = 1000, reusePort, key, quic } = this.#options
    this.#driver = await UdpDriver.open(
      this.#native.udp,
      { host: hostname, port, reusePort },
      clock,
      { onError: (error) => this.#report(error) },
      {
        crypto: this.#native.crypto,
        key,
        connection: quic,
        server: {
          openTls: (transportParameters, handler) => this.#tls.server({ transportParameters }, handler),
          onConnection: (connection) => {
            this.counters.accepted++
            connection.application = new Arriving(this, connection)
          },
          maxConnections,
          maxHandshakes,
          retryAbove: Math.ceil(maxHandshakes / 10),
          wallTime: () => clock.wallTime(),
        },
      },
    )
  }

  get address(): Address {
    return (this.#driver as UdpDriver).local
  }

  get connections(): number {
    return this.#driver?.connections ?? 0
  }

  get handshakes(): number {
    return this.#driver?.endpoint.handshakes ?? 0
  }

  get datagrams(): QuicListener['datagrams'] {
    return (this.#driver as UdpDriver).counters
  }

  updateTls(tls: TlsServerOptions): void {
    this.#tls.update(updateOf(tls))
  }

  stop(): void {
    const driver = this.#driver
    if (driver !== undefined) driver.endpoint.closed = true
  }

  async close(error: HeddleError): Promise<void> {
    await this.#driver?.close(error)
    this.#tls.close()
  }

  ref(): void {
    this.#driver?.ref()
  }

  unref(): void {
    this.#driver?.unref()
  }

  /** The application of a connection whose handshake is complete; undefined: it is closed. */
  handOver(connection: QuicConnection): QuicApplication | undefined {
    const { remote, local } = connection.route
    const info: ConnectionInfo = { id: nextConnectionId(), remote, local, tls: connection.handshake.session.facts() }
    try {
      return this.#options.onConnection({ connection, info })
    } catch (error) {
      connection.close(0, '')
      this.#report(error)
      return undefined
    }
  }

  onHandshakeFailed(error: HeddleError): void {
    this.counters.handshakesFailed++
    // What clients do is no fault of this program: told as one of the network.
    this.#report(error instanceof NetworkError ? error : new NetworkError('HANDSHAKE_FAILED', error.message, { cause: error }))
  }

  #report(error: unknown): void {
    try {
      this.#options.onError?.(error)
    } catch (second) {
      process.emitWarning(`onError failed: ${String(second)}`, 'HeddleWarning')
    }
  }
}

/** Of a server's options for TLS those that QUIC has. TLS 1.3 and its ciphers are QUIC's own affair. */
function contextOptions({ tls, alpn }: ListenQuicOptions, onCallbackFailed: (error: unknown) => void): TlsContextOptions {
  const { requestCert, rejectUnauthorized, ticketKeys } = tls
  if (tls.maxVersion !== undefined && tls.maxVersion !== 'TLSv1.3') {
    throw new UsageError(`HTTP/3 needs TLS 1.3, and tls.maxVersion is ${tls.maxVersion}`)
  }
  return { side: 'server', alpn, ...updateOf(tls), requestCert, rejectUnauthorized, ticketKeys, onCallbackFailed }
}

function updateOf(tls: TlsServerOptions): TlsUpdate {
  const { names, sniCallback } = tls
  return {
    ...identityFor(tls),
    names:
      names === undefined ? undefined : Object.fromEntries(Object.entries(names).map(([name, identity]) => [name, identityFor(identity)])),
    sniCallback:
      sniCallback === undefined
        ? undefined
        : (serverName) => {
            const found = sniCallback(serverName)
            return found instanceof Promise ? found.then((identity) => identity && identityFor(identity)) : found && identityFor(found)
          },
  }
}

function identityFor({ cert, key, pfx, passphrase, ca }: TlsIdentity): QuicIdentity {
  return { cert, key, pfx, passphrase, ca }
}
