import { HeddleError, NetworkError, type ConnectionInfo, type Instant } from '../http/index.ts'
import type { UdpCounters } from '../native/index.ts'
import { TransportError, type QuicApplication, type QuicConnection, type QuicOptions, type QuicStreamHandler } from '../quic/index.ts'
import type { Clock } from './clock.ts'
import { nextConnectionId } from './connection-facts.ts'
import { unprocessed } from './dial-errors.ts'
import type { DialledQuic } from './quic-dial.ts'
import type { QuicTls } from './quic-tls.ts'
import { UdpDriver, type UdpDriverOwner } from './udp-driver.ts'

/** What all attempts of one dial have in common. */
export interface AttemptSettings {
  readonly clock: Clock
  readonly tls: QuicTls
  /** Whom the certificate must be for. */
  readonly name: string
  /** Under which tickets and tokens are kept. */
  readonly server: string
  readonly port: number
  readonly localAddress: string | undefined
  /** The port does not keep the process running. */
  readonly unref: boolean
  readonly quic: Partial<QuicOptions> | undefined
}

/**
 * Where an attempt stands:
 *
 *     opening ──port──▶ shaking ──handshake──▶ ready ──attach──▶ handed over ──▶ over
 *        └───────────────── failed, cancelled ──────────────────────▶ over
 */
const Stage = { opening: 0, shaking: 1, ready: 2, handedOver: 3, over: 4 } as const
type Stage = (typeof Stage)[keyof typeof Stage]

/** H3_NO_ERROR: a connection that is not wanted. */
const noError = 0x100
/** TLS's alert no_application_protocol (RFC 7301 §3.2). */
const noApplicationProtocol = 120
/**
 * ms in which nobody was there at the server's address and nothing came, after which a connection that stood is taken
 * for dead. ICMP can be forged by whoever guesses two ports (RFC 5927 §4): against a connection on which anything comes it does nothing.
 */
const refusedTime = 1_000

/**
 * A QUIC connection to one address, from its port to the end: an attempt of a dial while it shakes hands, then
 * what the dial gives.
 */
export class QuicAttempt implements QuicApplication, UdpDriverOwner, DialledQuic {
  readonly deadline: Instant = Infinity
  readonly #settings: AttemptSettings
  readonly #done: (error: Error | undefined, attempt: QuicAttempt | undefined) => void
  #stage: Stage
  #driver: UdpDriver | undefined
  #connection: QuicConnection | undefined
  #info: ConnectionInfo | undefined
  #now: Instant
  /** Since when nobody listens at the server's address, and how much had been received by then. */
  #refusedSince: Instant
  #receivedThen: number

  constructor(
    address: string,
    family: 4 | 6,
    settings: AttemptSettings,
    done: (error: Error | undefined, attempt: QuicAttempt | undefined) => void,
  ) {
    this.#settings = settings
    this.#done = done
    this.#stage = Stage.opening
    this.#driver = undefined
    this.#connection = undefined
    this.#info = undefined
    this.#now = 0
    this.#refusedSince = 0
    this.#receivedThen = -1
    const { tls, port, localAddress = family === 4 ? '0.0.0.0' : '::', clock, quic } = settings
    const { udp, crypto } = tls.native
    const remote = udp.address(address, port)
    // The dial has a time limit of its own.
    const connection = { ...quic, handshakeTimeout: Infinity }
    UdpDriver.open(udp, { host: localAddress, remote }, clock, this, { crypto, connection }).then(
      (driver) => this.#opened(driver, remote),
      (error: unknown) => this.#fail(error as Error),
    )
  }

  #opened(driver: UdpDriver, remote: Parameters<UdpDriver['connect']>[0]): void {
    this.#driver = driver
    if (this.#stage === Stage.over) return this.#closePort()
    const { tls, name, server, unref } = this.#settings
    if (unref) driver.unref()
    this.#stage = Stage.shaking
    try {
      this.#connection = driver.connect(remote, this, tls.takeToken(server), (transportParameters, handler) =>
        tls.context.client({ host: name, transportParameters, ticket: tls.takeTicket(server) }, handler),
      )
    } catch (cause) {
      // A host that is no name for TLS.
      const message = `TLS with ${name} cannot be begun: ${(cause as Error).message}`
      this.#fail(new NetworkError('TLS_FAILED', message, unprocessed(cause)))
    }
  }

  /** Ends an attempt of which nothing was told; `done` is not called. */
  cancel(): void {
    if (this.#stage === Stage.over) return
    // A server that has said something is told; one that has not keeps nothing for long.
    if (this.#connection?.hasReceived === true) return this.destroy()
    this.#stage = Stage.over
    this.#closePort()
  }

  #fail(error: Error): void {
    if (this.#stage >= Stage.ready) return
    this.#stage = Stage.over
    this.#closePort()
    this.#done(error, undefined)
  }

  /** Not at once: connections are not closed from inside a run. */
  #closePort(): void {
    const driver = this.#driver
    if (driver === undefined) return
    driver.unref()
    this.#settings.clock.soon(() => void driver.close(new HeddleError('SHUTDOWN', 'the port is closed')))
  }

  // ── {@link UdpDriverOwner} ──────────────────────────────────────────────────────────────────────

  onError(error: NodeJS.ErrnoException): void {
    if (this.#stage < Stage.ready) return this.#fail(error)
    if (this.#stage === Stage.handedOver && error.code === 'ECONNREFUSED') this.#refused(error)
  }

  #refused(cause: Error): void {
    const connection = this.#connection as QuicConnection
    const { clock } = this.#settings
    const { received } = this.datagrams
    const now = clock.now()
    if (received !== this.#receivedThen) {
      this.#receivedThen = received
      this.#refusedSince = now
    } else if (now - this.#refusedSince >= refusedTime) {
      const facts = { cause, scope: 'connection' } as const
      connection.abandon(new NetworkError('NETWORK_ERROR', 'the connection failed: nobody listens there any more', facts))
      connection.wake()
    }
  }

  onGone(): void {
    this.#stage = Stage.over
    this.#closePort()
  }

  // ── {@link QuicApplication}, until another takes its place ───────────────────────────────────────

  startRun(now: Instant): void {
    this.#now = now
  }

  finishRun(): void {}

  onReady(): void {
    if (this.#stage !== Stage.shaking) return
    const { quic } = this
    const { remote, local } = quic.route
    this.#stage = Stage.ready
    this.#info = { id: nextConnectionId(), remote, local, tls: quic.handshake.session.facts() }
    this.#done(undefined, this)
    // Nobody took it.
    if (this.#stage === (Stage.ready as Stage)) this.destroy()
  }

  onStream(): QuicStreamHandler {
    return nobody
  }

  onStreamsAvailable(): void {}

  onClose(error: HeddleError): void {
    this.#fail(this.#dialError(error))
  }

  onTicket(ticket: Uint8Array): void {
    this.keepTicket(ticket)
  }

  onToken(token: Uint8Array): void {
    this.keepToken(token)
  }

  expire(): void {}

  #dialError(error: HeddleError): HeddleError {
    const { name } = this.#settings
    if (error.code !== 'TLS_FAILED') return error
    const isStranger = error.wireCode === TransportError.cryptoError + noApplicationProtocol
    const what = isStranger ? 'the server speaks no HTTP/3' : error.message
    return new NetworkError('TLS_FAILED', `TLS with ${name} failed: ${what}`, unprocessed(error))
  }

  // ── {@link DialledQuic} ─────────────────────────────────────────────────────────────────────────

  get quic(): QuicConnection {
    return this.#connection as QuicConnection
  }

  get info(): ConnectionInfo {
    return this.#info as ConnectionInfo
  }

  get alpn(): string | undefined {
    return this.info.tls?.alpn
  }

  get datagrams(): UdpCounters {
    return (this.#driver as UdpDriver).counters
  }

  attach(application: QuicApplication): void {
    if (this.#stage !== Stage.ready) return
    this.#stage = Stage.handedOver
    this.quic.application = application
    application.startRun(this.#now)
    application.onReady()
  }

  unref(): void {
    this.#driver?.unref()
  }

  keepTicket(ticket: Uint8Array): void {
    this.#settings.tls.keepTicket(this.#settings.server, ticket)
  }

  keepToken(token: Uint8Array): void {
    this.#settings.tls.keepToken(this.#settings.server, token)
  }

  destroy(): void {
    if (this.#stage === Stage.over) return
    this.#stage = Stage.over
    this.quic.close(noError, '')
    this.unref()
  }
}

/** For a stream of which nothing is wanted. */
const nobody: QuicStreamHandler = { onData() {}, onReset() {}, onStopSending() {}, onSent() {}, onClose() {} }
