import { NetworkError, PeerError, ProtocolError, TimeoutError, type HeddleError, type Instant } from '../http/index.ts'
import type { QuicCrypto } from '../native/index.ts'
import type { QuicApplication } from './application.ts'
import type { ApplicationKeys } from './application-keys.ts'
import { armDeadlines } from './arm-deadlines.ts'
import { Closing, faultReason, type CloseReason } from './closing.ts'
import { Deadline, Deadlines } from './deadlines.ts'
import { Fate } from './fate.ts'
import { errorOfFault, Handshake } from './handshake.ts'
import { IdleTimer } from './idle.ts'
import { LocalIds } from './local-ids.ts'
import { PathMtu } from './mtu.ts'
import { quicDefaults, type QuicOptions } from './options.ts'
import { ownParameters } from './own-parameters.ts'
import { makeSpaces, type PacketSpace } from './packet-space.ts'
import { checkConnectionIds } from './parameter-checks.ts'
import { Path, type Route } from './path.ts'
import { Paths, type PathOwner } from './paths.ts'
import type { LevelKeys } from './protection.ts'
import { Receiver } from './receive.ts'
import { Recovery } from './recovery.ts'
import { RemoteIds } from './remote-ids.ts'
import { Sender } from './send.ts'
import type { QuicStart } from './start.ts'
import { SentValue } from './sent-value.ts'
import { Space } from './space.ts'
import type { QuicStream, QuicStreamHandler } from './stream.ts'
import { StreamSet, type StreamOwner } from './stream-set.ts'
import { TransportError, transportErrorName, type TransportFault } from './transport-error.ts'
import type { TransportParameters } from './transport-parameters.ts'

const none = new Uint8Array(0)

/**
 * One QUIC connection, without a socket, a clock or randomness of its own (RFC 9000). The run loop: mutate
 * once (`receive`, `expire`, or a stream's method), then `transmit` until it returns 0, then read `deadline`.
 */
export class QuicConnection implements StreamOwner, PathOwner {
  readonly isServer: boolean
  readonly crypto: QuicCrypto
  readonly options: QuicOptions
  application: QuicApplication
  readonly localId: Uint8Array
  readonly localIdSize: number
  originalDestination: Uint8Array
  retrySource: Uint8Array | undefined
  /** Client: goes with Initial packets. */
  token: Uint8Array
  /** What the peer calls itself in the handshake, once it is known. */
  peerInitialSource: Uint8Array
  peerIdIsKnown: boolean
  /** A packet of the peer's was opened. */
  hasReceived: boolean
  readonly spaces: readonly [PacketSpace, PacketSpace, PacketSpace]
  readonly recovery: Recovery
  readonly streams: StreamSet
  readonly handshake: Handshake
  readonly paths: Paths
  readonly mtu: PathMtu
  readonly localIds: LocalIds
  readonly remoteIds: RemoteIds
  readonly idle: IdleTimer
  readonly closing: Closing
  readonly receiver: Receiver
  readonly sender: Sender
  readonly handshakeDone: SentValue
  readonly newToken: SentValue
  tokenToSend: Uint8Array | undefined
  /** Server: the id that the client addressed first, by which it finds the connection until it has `localId`. */
  alias: Uint8Array | undefined
  /** TLS is to be called again. */
  tlsWaits: boolean
  /** A PING must leave. */
  pingWanted: boolean
  /** The time of the run that goes on, or was last. */
  now: Instant
  /** Set by the driver: something waits to be sent. */
  onDirty: () => void
  readonly #start: QuicStart
  readonly #deadlines: Deadlines
  readonly #fate: Fate
  #running: boolean
  /** The application was told that a run begins. */
  #isTelling: boolean
  /** The application closed between two runs, and hears of what it caused in one more. */
  #owesRun: boolean
  #dirty: boolean
  #keepAlive: boolean
  #isOver: boolean
  #isShaking: boolean
  #isGone: boolean

  constructor(start: QuicStart, application: QuicApplication, now: Instant) {
    const { isServer, crypto, route } = start
    const options = { ...quicDefaults, ...start.options }
    this.isServer = isServer
    this.crypto = crypto
    this.options = options
    this.application = application
    this.localId = start.localId
    this.localIdSize = start.localId.length
    this.originalDestination = start.originalDestination
    this.retrySource = start.retrySource
    this.token = start.token ?? none
    this.peerInitialSource = isServer ? start.remoteId : none
    this.peerIdIsKnown = isServer
    this.hasReceived = false
    this.now = now
    this.onDirty = () => {}
    this.#start = start
    this.#deadlines = new Deadlines()
    this.#running = false
    this.#isTelling = false
    this.#owesRun = false
    this.#dirty = false
    this.#keepAlive = false
    this.#isOver = false
    this.#isGone = false
    this.pingWanted = false
    this.tlsWaits = false
    this.alias = undefined
    this.#isShaking = true
    this.handshakeDone = new SentValue()
    this.newToken = new SentValue()
    this.tokenToSend = undefined

    this.spaces = makeSpaces(crypto)
    this.#fate = new Fate(this)
    this.recovery = new Recovery(
      {
        isServer,
        congestion: options.congestion === 'cubic' ? 'cubic' : 'newReno',
        ecn: options.ecn,
        random: (byteCount) => crypto.random(byteCount),
      },
      this.#fate,
      now,
    )
    this.streams = new StreamSet(this, isServer, options)
    this.paths = new Paths(new Path(route, !isServer || start.isValidated), this)
    this.mtu = new PathMtu(options.maxDatagramSize)
    this.localIds = new LocalIds(start.localId, start.issuer)
    this.remoteIds = new RemoteIds(start.remoteId)
    this.idle = new IdleTimer(options.maxIdleTimeout, now)
    this.closing = new Closing()
    this.receiver = new Receiver(this)
    this.sender = new Sender(this, this.paths.current)
    this.handshake = new Handshake(this, (handler) => start.openTls(ownParameters(this, start.issuer), handler))
    this.#initialKeys.installInitial(start.retrySource ?? start.originalDestination, isServer)
    this.#deadlines.set(Deadline.handshake, now + options.handshakeTimeout)
    this.#rearm()
  }

  // ── the run loop ────────────────────────────────────────────────────────────────────────────────

  /** Client: makes the first flight. */
  start(now: Instant): void {
    this.#enter(now)
    const fault = this.handshake.start()
    if (fault !== undefined) this.fail(fault)
    this.#leave()
  }

  /** A datagram came. `ecn`: the two bits of its IP header. The octets are changed in place. */
  receive(buffer: Uint8Array, start: number, limit: number, route: Route, ecn: number, now: Instant): void {
    this.#enter(now)
    this.receiver.receive(buffer, start, limit, route, ecn, now)
    this.#leave()
  }

  /** Writes one datagram to `buffer[start, limit)`, for `route`; returns its octets, 0: nothing is to be sent now. */
  transmit(buffer: Uint8Array, start: number, limit: number, now: Instant): number {
    if (this.#isGone) return 0
    this.#enter(now)
    this.#dirty = false
    if (this.tlsWaits) {
      this.tlsWaits = false
      const fault = this.handshake.resume()
      if (fault !== undefined) this.fail(fault)
    }
    if (this.#isTelling) this.application.finishRun()
    const size = this.sender.transmit(buffer, start, limit, now)
    this.#leave()
    return size
  }

  /** Where the datagram that was written last goes. */
  get route(): Route {
    return this.sender.path.route
  }

  /** The ECN bits of the datagram that was written last. */
  get ecn(): number {
    return this.sender.ecn
  }

  /** When `expire` must be called next; Infinity: never. */
  get deadline(): Instant {
    return this.#isGone ? Infinity : Math.min(this.#deadlines.earliest, this.#isOver ? Infinity : this.application.deadline)
  }

  expire(now: Instant): void {
    if (this.#isGone) return
    const deadlines = this.#deadlines
    this.#enter(now)
    if (deadlines.isDue(Deadline.closed, now)) this.#finish()
    else if (this.closing.state === 'open') {
      if (deadlines.isDue(Deadline.idle, now))
        this.#giveUp(new TimeoutError('idle', `nothing came from the peer for ${this.idle.timeout} ms`))
      else if (deadlines.isDue(Deadline.handshake, now)) {
        this.#endWith(new TimeoutError('connect', `the QUIC handshake took more than ${this.options.handshakeTimeout} ms`), {
          code: TransportError.noError,
          application: false,
          frameType: 0,
          reason: 'handshake timeout',
        })
      } else this.#expireParts(now)
    }
    this.#leave()
  }

  #expireParts(now: Instant): void {
    const { recovery } = this
    if (recovery.expire(now)) this.#fate.prepareProbes()
    for (const space of this.spaces) if (!space.isDiscarded) space.received.expire(now)
    if (this.#deadlines.isDue(Deadline.keys, now)) this.applicationKeys.expire(now)
    if (this.#deadlines.isDue(Deadline.path, now)) this.paths.expire(now)
    if (this.#deadlines.isDue(Deadline.keepAlive, now)) this.pingWanted = true
    if (this.application.deadline <= now) this.application.expire(now)
  }

  /** Server: the client probes, or says again what came already (RFC 9002 §6.2.3). */
  onHandshakeProbe(): void {
    if (this.recovery.speedUpHandshake()) this.#fate.prepareProbes()
  }

  // ── for the application ─────────────────────────────────────────────────────────────────────────

  /** Opens a stream of ours; undefined: the peer allows no more of its kind now. */
  open(bidirectional: boolean, handler: QuicStreamHandler): QuicStream | undefined {
    return this.handshake.isComplete ? this.streams.open(bidirectional, handler) : undefined
  }

  /** How many bidirectional streams `open` would open now. */
  get openableBidirectional(): number {
    return this.handshake.isComplete && !this.#isOver ? this.streams.ids.openable(true) : 0
  }

  /** CONNECTION_CLOSE of the application, at once: nothing that still waits is sent. `onClose` is not called. */
  close(applicationError: number, reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#owesRun = !this.#running
    this.#startClosing({ code: applicationError, application: true, frameType: 0, reason })
    this.wake()
  }

  /** True: the path is to be kept alive and watched; false: it may fall silent. */
  keepAlive(wanted: boolean): void {
    this.#keepAlive = wanted
  }

  /** Smoothed, ms; a guess until something was measured. */
  get roundTripTime(): number {
    return this.recovery.rtt.smoothed
  }

  /** The time after which an answer is missed, ms (RFC 9002 §6.2.1). */
  get probeTimeout(): number {
    return this.recovery.rtt.probeTimeout + this.recovery.maxAckDelay
  }

  /** Something waits for a run. Does nothing in a run. */
  wake(): void {
    if (this.#running || this.#dirty) return
    this.#dirty = true
    this.onDirty()
  }

  // ── what the parts tell ─────────────────────────────────────────────────────────────────────────

  /** {@link StreamOwner}. */
  onStream(stream: QuicStream): QuicStreamHandler {
    return this.application.onStream(stream)
  }

  onStreamsAvailable(): void {
    if (this.handshake.isComplete && !this.#isOver) this.application.onStreamsAvailable()
  }

  /** The server's first Source Connection ID is what it is addressed by from then on (RFC 9000 §7.2). */
  onPeerSource(buffer: Uint8Array, start: number, limit: number): void {
    if (this.peerIdIsKnown) return
    this.peerIdIsKnown = true
    this.peerInitialSource = new Uint8Array(buffer.subarray(start, limit))
    this.remoteIds.replaceFirst(this.peerInitialSource)
  }

  /** A Handshake packet came: the client has what was sent to its address, and Initial keys are over (RFC 9000 §8.1, RFC 9001 §4.9.1). */
  onHandshakePacket(path: Path): void {
    if (!this.isServer) return
    path.validated = true
    this.#discard(Space.initial)
  }

  /** A Handshake packet was sent: a client needs no Initial keys any more (RFC 9001 §4.9.1). */
  onHandshakeSent(): void {
    if (!this.isServer) this.#discard(Space.initial)
  }

  onRetry(source: Uint8Array, token: Uint8Array, now: Instant): void {
    this.retrySource = source
    this.token = token
    this.remoteIds.replaceFirst(source)
    this.#initialKeys.installInitial(source, false)
    this.recovery.onRetry(now)
  }

  /** Client: the server speaks none of our versions. */
  onVersions(versions: readonly number[]): void {
    // RFC 9000 §6.2: it must not name the version that was used.
    if (versions.includes(1)) return
    const names = versions.map((version) => `0x${version.toString(16)}`).join(', ')
    this.#giveUp(new ProtocolError(`the server speaks no QUIC version 1, only ${names}`, 0, 'PROTOCOL_ERROR', { scope: 'connection' }))
  }

  checkPeerIds(parameters: TransportParameters): TransportFault | undefined {
    return checkConnectionIds(parameters, !this.isServer, this.peerInitialSource, this.originalDestination, this.retrySource)
  }

  onPeerParameters(parameters: TransportParameters): void {
    this.idle.setPeer(parameters.maxIdleTimeout)
    this.mtu.setPeer(parameters.maxUdpPayloadSize)
    this.recovery.maxAckDelay = parameters.maxAckDelay
    if (parameters.statelessResetToken !== undefined) this.remoteIds.setFirstResetToken(parameters.statelessResetToken)
    this.streams.setPeer(parameters)
  }

  onHandshakeKeys(): void {
    this.recovery.onHandshakeKeys()
  }

  onHandshakeComplete(): void {
    this.#deadlines.clear(Deadline.handshake)
    this.#endHandshake()
    const { peer } = this.handshake
    if (this.remoteIds.current.length > 0 || this.localIdSize > 0) this.localIds.allow(peer?.activeConnectionIdLimit ?? 2)
    if (this.isServer) {
      this.handshakeDone.set()
      const { makeToken } = this.#start
      if (makeToken !== undefined) {
        this.tokenToSend = makeToken()
        this.newToken.set()
      }
      this.onConfirmed()
    }
    this.application.onReady()
    this.receiver.receiveEarly(this.now)
  }

  /** RFC 9001 §4.1.2. */
  onConfirmed(): void {
    if (this.handshake.isConfirmed) return
    this.handshake.isConfirmed = true
    this.#discard(Space.initial)
    this.#discard(Space.handshake)
    this.recovery.onHandshakeConfirmed()
    this.applicationKeys.confirmed = true
    this.paths.mayMove = this.isServer
    this.receiver.discardEarly()
  }

  onPathChanged(path: Path, isNew: boolean): void {
    this.sender.path = path
    // RFC 9000 §9.5: other addresses, another id.
    this.remoteIds.change()
    if (!isNew) return
    this.mtu.restart()
    this.recovery.resetPath(this.mtu.size, this.recovery.rtt.smoothed, this.now)
  }

  onNoPath(): void {
    this.#giveUp(new NetworkError('NETWORK_ERROR', 'the peer does not answer at its new address', { scope: 'connection' }))
  }

  // ── the end ─────────────────────────────────────────────────────────────────────────────────────

  /** The peer broke the rules, or nothing goes any more. */
  fail(fault: TransportFault): void {
    this.#endWith(errorOfFault(fault), faultReason(fault))
  }

  receiveClose(code: number, isApplication: boolean, reason: string): void {
    if (!this.closing.receiveClose()) return
    const what = isApplication ? `error 0x${code.toString(16)}` : transportErrorName(code)
    const message = `the peer closed the QUIC connection: ${what}${reason === '' ? '' : `, ${reason}`}`
    const isTls = !isApplication && code >= TransportError.cryptoError && code < TransportError.cryptoError + 256
    const facts = { wireCode: code, scope: 'connection' } as const
    this.#tellClose(isTls ? new NetworkError('TLS_FAILED', message, facts) : new PeerError('PEER_CLOSED', message, facts))
    this.#deadlines.clearAll()
    this.#deadlines.set(Deadline.closed, this.closing.deadline(this.probeTimeout, this.now))
  }

  /** RFC 9000 §10.3.1: the peer knows nothing of the connection. */
  receiveReset(): void {
    this.#giveUp(new PeerError('PEER_RESET', 'the peer knows nothing of the QUIC connection any more', { scope: 'connection' }))
  }

  /** The socket is gone. */
  abandon(error: HeddleError): void {
    this.#enter(this.now)
    this.#giveUp(error)
    this.#leave()
  }

  #endWith(error: HeddleError, reason: CloseReason): void {
    if (this.closing.state !== 'open') return
    this.#startClosing(reason)
    this.#tellClose(error)
  }

  #startClosing(reason: CloseReason): void {
    if (!this.closing.close(reason)) return
    this.streams.close()
    this.#deadlines.clearAll()
    this.#deadlines.set(Deadline.closed, this.closing.deadline(this.probeTimeout, this.now))
  }

  /** Over at once, without a word to the peer (RFC 9000 §10.1). */
  #giveUp(error: HeddleError): void {
    this.#tellClose(error)
    this.#finish()
  }

  #tellClose(error: HeddleError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.streams.close()
    this.application.onClose(error)
  }

  /** Nothing is told or sent: it is as if the connection had never been. */
  forget(): void {
    this.#isOver = true
    this.#finish()
  }

  #endHandshake(): void {
    if (!this.#isShaking) return
    this.#isShaking = false
    this.#start.onHandshakeOver?.()
  }

  #finish(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#endHandshake()
    this.closing.finish()
    this.streams.close()
    this.#deadlines.clearAll()
    this.localIds.close()
    for (const space of [Space.initial, Space.handshake, Space.application]) this.#discard(space)
    this.handshake.close()
    this.#start.onGone(this)
  }

  // ── inside ──────────────────────────────────────────────────────────────────────────────────────

  get applicationKeys(): ApplicationKeys {
    return this.spaces[Space.application].keys as ApplicationKeys
  }

  get #initialKeys(): LevelKeys {
    return this.spaces[Space.initial].keys as LevelKeys
  }

  #enter(now: Instant): void {
    this.now = now
    this.#running = true
    this.#isTelling = !this.#isOver || this.#owesRun
    this.#owesRun = false
    if (this.#isTelling) this.application.startRun(now)
  }

  #leave(): void {
    this.streams.settle()
    // A run that began ends, too, if it was the connection's last.
    if (this.#isTelling) this.application.finishRun()
    this.#isTelling = false
    this.#running = false
    this.#rearm()
  }

  #rearm(): void {
    if (this.closing.state === 'open') armDeadlines(this, this.#deadlines, this.#keepAlive)
  }

  #discard(space: Space): void {
    const each = this.spaces[space]
    if (each.isDiscarded) return
    each.isDiscarded = true
    each.keys.discard()
    each.crypto.discard()
    this.recovery.discardSpace(space, this.now)
  }
}
