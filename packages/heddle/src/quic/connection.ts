import { NetworkError, PeerError, ProtocolError, TimeoutError, type HeddleError, type Instant } from '../http/index.ts'
import type { QuicCrypto } from '../native/index.ts'
import type { QuicApplication } from './application.ts'
import type { ApplicationKeys } from './application-keys.ts'
import { armDeadlines } from './arm-deadlines.ts'
import { Closing } from './closing.ts'
import { Deadline, Deadlines } from './deadlines.ts'
import { Ending } from './ending.ts'
import { Fate } from './fate.ts'
import { Handshake } from './handshake.ts'
import { IdleTimer } from './idle.ts'
import { fewestConnectionIds, LocalIds } from './local-ids.ts'
import { PathMtu } from './mtu.ts'
import { quicDefaults, type QuicOptions } from './options.ts'
import { ownParameters } from './own-parameters.ts'
import { makeSpaces, type PacketSpace } from './packet-space.ts'
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
import { StreamsOfConnection } from './stream-owner.ts'
import { StreamSet } from './stream-set.ts'
import { TransportError, type TransportFault } from './transport-error.ts'

const none = new Uint8Array(0)
/** Octets of a token of NEW_TOKEN that is shown: one that left no room for the hello would keep a client from a server for good. */
const largestToken = 512
/** What may be in flight at least, octets, however small the windows are that this end gives. */
const leastInFlight = 1_048_576
/** The id that the client addressed first is known for so long after the handshake, ms. */
const shortestAlias = 5_000

/**
 * One QUIC connection, without a socket, a clock or randomness of its own (RFC 9000). The run loop: mutate
 * once (`receive`, `expire`, or a stream's method), then `transmit` until it returns 0, then read `deadline`.
 */
export class QuicConnection implements PathOwner {
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
  /** Set by the driver: something waits to be sent that came up outside a run, or at the end of one that sent nothing. */
  onDirty: () => void
  readonly #start: QuicStart
  readonly #deadlines: Deadlines
  readonly #fate: Fate
  readonly #ending: Ending
  #running: boolean
  /** The application was told that a run begins. */
  #isTelling: boolean
  /** The application closed between two runs, and hears of what it caused in one more. */
  #owesRun: boolean
  #dirty: boolean
  /** Something came up in the run at hand, behind what it sent. */
  #isBehind: boolean
  #keepAlive: boolean

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
    this.token = start.token !== undefined && start.token.length <= largestToken ? start.token : none
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
    this.#isBehind = false
    this.#keepAlive = false
    this.pingWanted = false
    this.tlsWaits = false
    this.alias = undefined
    this.handshakeDone = new SentValue()
    this.newToken = new SentValue()
    this.tokenToSend = undefined

    this.spaces = makeSpaces(crypto)
    this.#fate = new Fate(this)
    this.#ending = new Ending(this, start, this.#deadlines)
    this.recovery = new Recovery(
      {
        isServer,
        congestion: options.congestion === 'cubic' ? 'cubic' : 'newReno',
        mostInFlight: Math.max(options.largestWindow, leastInFlight),
        ecn: options.ecn,
        random: (byteCount) => crypto.random(byteCount),
      },
      this.#fate,
      now,
    )
    this.streams = new StreamSet(new StreamsOfConnection(this), isServer, options)
    this.remoteIds = new RemoteIds(start.remoteId, start.resetTokens)
    this.paths = new Paths(new Path(route, !isServer || start.isValidated), this, this.remoteIds)
    this.mtu = new PathMtu(options.maxDatagramSize)
    this.localIds = new LocalIds(start.localId, start.issuer)
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
    try {
      this.#failIf(this.handshake.start())
    } catch (thrown) {
      this.#ending.failOf(thrown)
    }
    this.#leave()
  }

  /** A datagram came. `ecn`: the two bits of its IP header. The octets are changed in place. */
  receive(buffer: Uint8Array, start: number, limit: number, route: Route, ecn: number, now: Instant): void {
    this.#enter(now)
    try {
      this.receiver.receive(buffer, start, limit, route, ecn, now)
    } catch (thrown) {
      this.#ending.failOf(thrown)
    }
    this.#leave()
  }

  /** Writes one datagram to `buffer[start, limit)`, for `route`; returns its octets, 0: nothing is to be sent now. */
  transmit(buffer: Uint8Array, start: number, limit: number, now: Instant): number {
    if (this.#ending.isGone) return 0
    this.#enter(now)
    this.#dirty = false
    let size = 0
    try {
      if (this.tlsWaits) this.#resumeTls(now)
      if (this.#isTelling) this.application.finishRun()
      this.#isBehind = false
      size = this.sender.transmit(buffer, start, limit, now)
    } catch (thrown) {
      this.#ending.failOf(thrown)
    }
    this.#leave()
    // Who was told of the end of this run had more to say: nobody would ask for it.
    if (size === 0 && this.#isBehind) this.wake()
    return size
  }

  #resumeTls(now: Instant): void {
    this.tlsWaits = false
    if (this.closing.state !== 'open') return
    this.#failIf(this.handshake.resume())
    this.receiver.receiveEarly(now)
  }

  #failIf(fault: TransportFault | undefined): void {
    if (fault !== undefined) this.fail(fault)
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
    const { isGone, isOver } = this.#ending
    return isGone ? Infinity : Math.min(this.#deadlines.earliest, isOver ? Infinity : this.application.deadline)
  }

  expire(now: Instant): void {
    if (this.#ending.isGone) return
    this.#enter(now)
    try {
      if (this.#deadlines.isDue(Deadline.closed, now)) this.#ending.finish()
      else if (this.closing.state === 'open') this.#expireOpen(now)
    } catch (thrown) {
      this.#ending.failOf(thrown)
    }
    this.#leave()
  }

  #expireOpen(now: Instant): void {
    const deadlines = this.#deadlines
    if (deadlines.isDue(Deadline.idle, now)) {
      this.#ending.giveUp(new TimeoutError('idle', `nothing came from the peer for ${this.idle.timeout} ms`))
    } else if (deadlines.isDue(Deadline.handshake, now)) {
      const error = new TimeoutError('connect', `the QUIC handshake took more than ${this.options.handshakeTimeout} ms`)
      this.#ending.endWith(error, { code: TransportError.noError, application: false, frameType: 0, reason: 'handshake timeout' })
    } else this.#expireParts(now)
  }

  #expireParts(now: Instant): void {
    const { recovery } = this
    if (recovery.expire(now)) this.#fate.prepareProbes()
    this.mtu.settle()
    for (const space of this.spaces) if (!space.isDiscarded) space.received.expire(now)
    if (this.#deadlines.isDue(Deadline.keys, now)) this.applicationKeys.expire(now)
    if (this.#deadlines.isDue(Deadline.path, now)) this.paths.expire(now)
    if (this.#deadlines.isDue(Deadline.keepAlive, now)) this.pingWanted = true
    if (this.#deadlines.isDue(Deadline.alias, now)) this.#dropAlias()
    if (this.application.deadline <= now) this.application.expire(now)
  }

  /** The peer probes, or says again what came already: it may miss something (RFC 9002 §6.2.3). */
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
    return this.handshake.isComplete && !this.#ending.isOver ? this.streams.ids.openable(true) : 0
  }

  /** CONNECTION_CLOSE of the application (or with a code of QUIC's), at once: nothing that still waits is sent. `onClose` is not called. */
  close(code: number, reason: string, application = true): void {
    if (this.#ending.isOver) return
    this.#ending.end()
    this.#owesRun = !this.#running
    this.#ending.startClosing({ code, application, frameType: 0, reason })
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
    if (this.#running) this.#isBehind = true
    if (this.#running || this.#dirty) return
    this.#dirty = true
    this.onDirty()
  }

  // ── what the parts tell ─────────────────────────────────────────────────────────────────────────

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
    this.discard(Space.initial)
  }

  /** A Handshake packet was sent: a client needs no Initial keys any more (RFC 9001 §4.9.1). */
  onHandshakeSent(): void {
    if (!this.isServer) this.discard(Space.initial)
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
    const names = versions
      .slice(0, 8)
      .map((version) => `0x${version.toString(16)}`)
      .join(', ')
    this.#ending.giveUp(
      new ProtocolError(`the server speaks no QUIC version 1, only ${names}`, 0, 'PROTOCOL_ERROR', { scope: 'connection' }),
    )
  }

  onHandshakeKeys(): void {
    this.recovery.onHandshakeKeys()
    this.receiver.wantsEarly = true
  }

  onHandshakeComplete(): void {
    this.#deadlines.clear(Deadline.handshake)
    this.#ending.endHandshake()
    // RFC 9000 §5.1.1: who uses no ids issues none.
    if (this.localIdSize > 0) this.localIds.allow(this.handshake.peer?.activeConnectionIdLimit ?? fewestConnectionIds)
    if (this.isServer) {
      this.handshakeDone.set()
      const { makeToken } = this.#start
      if (makeToken !== undefined) {
        this.tokenToSend = makeToken()
        this.newToken.set()
      }
      this.onConfirmed()
    }
    this.receiver.wantsEarly = true
    this.application.onReady()
  }

  /** RFC 9001 §4.1.2. */
  onConfirmed(): void {
    if (this.handshake.isConfirmed) return
    this.handshake.isConfirmed = true
    this.discard(Space.initial)
    this.discard(Space.handshake)
    this.recovery.onHandshakeConfirmed()
    this.applicationKeys.confirmed = true
    this.paths.mayMove = this.isServer
    // A copy of the client's first packets that comes late must find the connection, or would begin another.
    if (this.alias !== undefined) this.#deadlines.set(Deadline.alias, this.now + Math.max(3 * this.probeTimeout, shortestAlias))
  }

  #dropAlias(): void {
    this.#deadlines.clear(Deadline.alias)
    if (this.alias !== undefined) this.#start.issuer.retire(this.alias)
    this.alias = undefined
  }

  onPathChanged(path: Path, isNew: boolean): void {
    this.sender.path = path
    if (!isNew) return
    this.mtu.restart()
    this.recovery.resetPath(this.mtu.size, this.recovery.rtt.smoothed, this.now)
  }

  onNoPath(): void {
    this.#ending.giveUp(new NetworkError('NETWORK_ERROR', 'the peer does not answer at its new address', { scope: 'connection' }))
  }

  // ── the end ─────────────────────────────────────────────────────────────────────────────────────

  /** The peer broke the rules, or nothing goes any more. */
  fail(fault: TransportFault): void {
    this.#ending.fail(fault)
  }

  /** What runs on the connection, or was to run on it, threw, outside a run. */
  failOf(thrown: unknown): void {
    this.#ending.failOf(thrown)
    this.#rearm()
  }

  receiveClose(code: number, isApplication: boolean, reason: string): void {
    this.#ending.receiveClose(code, isApplication, reason)
  }

  /** RFC 9000 §10.3.1: the peer knows nothing of the connection. */
  receiveReset(): void {
    this.#ending.giveUp(new PeerError('PEER_RESET', 'the peer knows nothing of the QUIC connection any more', { scope: 'connection' }))
  }

  /** The socket is gone. */
  abandon(error: HeddleError): void {
    this.#enter(this.now)
    this.#ending.giveUp(error)
    this.#leave()
  }

  /** Nothing is told or sent: it is as if the connection had never been. */
  forget(): void {
    this.#ending.finish()
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
    this.#isTelling = !this.#ending.isOver || this.#owesRun
    this.#owesRun = false
    if (!this.#isTelling) return
    try {
      this.application.startRun(now)
    } catch (thrown) {
      this.#ending.failOf(thrown)
    }
  }

  #leave(): void {
    try {
      this.streams.settle()
      // A run that began ends, too, if it was the connection's last.
      if (this.#isTelling) this.application.finishRun()
    } catch (thrown) {
      this.#ending.failOf(thrown)
    }
    this.#isTelling = false
    this.#running = false
    this.#rearm()
  }

  #rearm(): void {
    if (this.closing.state === 'open') armDeadlines(this, this.#deadlines, this.#keepAlive)
    else this.#ending.arm()
  }

  /** The space is over (RFC 9001 §4.9). */
  discard(space: Space): void {
    const each = this.spaces[space]
    if (each.isDiscarded) return
    each.isDiscarded = true
    each.keys.discard()
    each.crypto.discard()
    this.recovery.discardSpace(space, this.now)
  }
}
