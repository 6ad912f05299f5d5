import {
  Budget,
  TimeoutError,
  UsageError,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type HeddleError,
  type HttpConnection,
  type Instant,
} from '../http/index.ts'
import type { QuicApplication, QuicStream, QuicStreamHandler } from '../quic/index.ts'
import { Announcements } from './announcements.ts'
import { Compression } from './compression.ts'
import { Exchanges } from './exchanges.ts'
import { ErrorCode, frameHeaderSize, reservedNumber, writeFrameHeader } from './frame.ts'
import { Lifetime, Stage } from './lifetime.ts'
import type { Http3Limits } from './limits.ts'
import { Notices } from './notices.ts'
import type { Http3Options } from './options.ts'
import { Receiver } from './receive.ts'
import type { ResetCounts } from './reset-counts.ts'
import { Sender } from './send.ts'
import { SettingId, Settings, settingsFrame } from './settings.ts'
import type { Stream } from './stream.ts'
import { Streams } from './streams.ts'
import { TimeLimits } from './time-limits.ts'
import type { QuicTransport } from './transport.ts'

/**
 * One HTTP/3 connection (RFC 9114), either role, on a QUIC connection that drives it: the owner of the parts that do
 * the work. `Receiver` reads requests' streams, `Sender` writes them, `Exchanges` holds them, `Streams` has those that
 * go one way, `Compression` QPACK, `Lifetime` the end, `TimeLimits` the clock. A `Stream` is an Exchange.
 *
 * `onReady` is called once QUIC can send, and again when the peer's SETTINGS say something else.
 */
export abstract class Connection implements HttpConnection, QuicApplication {
  readonly info: ConnectionInfo
  readonly handler: ConnectionHandler
  readonly isServer: boolean
  readonly limits: Http3Limits
  readonly extendedConnect: boolean
  readonly transport: QuicTransport
  /** What the peer said of itself. */
  readonly peer: Settings
  readonly streams: Streams
  readonly qpack: Compression
  readonly sender: Sender
  readonly exchanges: Exchanges
  readonly notices: Notices
  readonly announcements: Announcements
  readonly lifetime: Lifetime
  readonly timeLimits: TimeLimits
  readonly receiver: Receiver
  readonly peerResets: Budget
  readonly provokedResets: Budget
  readonly emptyFrames: Budget
  readonly resets: ResetCounts | undefined
  /**
   * Time as the last call of the run loop gave it, in whole ms. Between two runs it is an old one, and nobody knows
   * how old: what begins there is stamped by the next (`sentNow`).
   */
  now: Instant
  /** A run is under way: what is told to handlers is told in it. */
  isRunning: boolean

  /** What the peer's `origins` are (RFC 9412), or undefined while it has not said. */
  originSet: Set<string> | undefined

  readonly #date: { httpDate(): string } | undefined
  /** Streams on which something was sent between two runs. */
  readonly #untimed: Stream[]
  /** Until the peer's SETTINGS are here; Infinity: they are, or QUIC is not ready. */
  #settingsDeadline: Instant
  #ready: boolean

  constructor(
    isServer: boolean,
    info: ConnectionInfo,
    handler: ConnectionHandler,
    transport: QuicTransport,
    limits: Http3Limits,
    options: Http3Options,
    now: Instant,
  ) {
    this.info = info
    this.handler = handler
    this.isServer = isServer
    this.limits = limits
    this.extendedConnect = isServer && options.extendedConnect === true
    this.transport = transport
    this.now = Math.ceil(now)
    this.isRunning = false
    this.originSet = undefined
    this.peer = new Settings()
    this.peerResets = new Budget(limits.resetBurst, limits.resetRate)
    this.provokedResets = new Budget(limits.resetBurst, limits.resetRate)
    this.emptyFrames = new Budget(limits.emptyBurst, limits.emptyRate)
    this.resets = options.resets
    this.streams = new Streams(this)
    this.qpack = new Compression(this)
    this.sender = new Sender(this)
    this.exchanges = new Exchanges(this)
    this.notices = new Notices(this)
    this.announcements = new Announcements(this)
    this.lifetime = new Lifetime(this)
    this.timeLimits = new TimeLimits(this)
    this.receiver = new Receiver(this)
    this.#date = options.date
    this.#untimed = []
    this.#settingsDeadline = Infinity
    this.#ready = false
    this.#saySettings(options.origins)
  }

  /** RFC 9114 §6.2.1: SETTINGS are the first frame. Something that means nothing is among and behind them (RFC 9114 §7.2.4.1). */
  #saySettings(origins: readonly string[] | undefined): void {
    const { limits, info } = this
    const settings: number[] = [SettingId.QpackMaxTableCapacity, limits.headerTableSize]
    // RFC 9114 §4.2.2: there is no limit where none is said.
    if (Number.isSafeInteger(limits.maxFieldSectionSize)) settings.push(SettingId.MaxFieldSectionSize, limits.maxFieldSectionSize)
    settings.push(SettingId.QpackBlockedStreams, limits.blockedStreams)
    if (this.extendedConnect) settings.push(SettingId.EnableConnectProtocol, 1)
    const reserved = reservedNumber(info.id % 1_000)
    this.streams.sendControl(settingsFrame([...settings, reserved, info.id % 64]))
    const frame = new Uint8Array(frameHeaderSize(reserved, 0))
    writeFrameHeader(frame, 0, reserved, 0)
    this.streams.sendControl(frame)
    if (origins !== undefined && this.isServer) this.streams.sendOrigins(origins)
  }

  // ── QuicApplication: the run ────────────────────────────────────────────────────────────────────

  startRun(now: Instant): void {
    this.isRunning = true
    this.now = Math.ceil(now)
    this.timeLimits.stamp()
    this.lifetime.stamp()
    if (this.#untimed.length === 0) return
    for (const stream of this.#untimed) {
      stream.sentAt = this.now
      this.timeLimits.stampStream(stream)
    }
    this.#untimed.length = 0
  }

  finishRun(): void {
    this.#settle()
    this.isRunning = false
  }

  /** QUIC tells something behind a `finishRun` that was not the last of its run. */
  continueRun(): void {
    this.isRunning = true
  }

  /** Tells handlers what is due. */
  #settle(): void {
    const { notices, lifetime, exchanges } = this
    do {
      exchanges.unwanted.settle()
      if (notices.hasClosed) notices.tellAllClosed()
      this.#judgeLoad()
      if (this.#ready) lifetime.maybeFinish()
      if (!this.isServer && this.#ready) this.announcements.tellOpenable()
      // Handlers that were told may have ended more.
    } while (notices.hasClosed)
    this.qpack.flushDecoder()
    this.sender.flushAll()
    if (lifetime.stage === Stage.Closed) this.announcements.maybeTellClosed()
  }

  /** What the peer makes this connection hold: what a client has to upload is its program's doing. */
  #judgeLoad(): void {
    const { sender, receiver, limits, lifetime, qpack } = this
    const pinned = receiver.pinned + qpack.pinned + (this.isServer ? sender.queued : 0)
    if (pinned > limits.maxPinned) lifetime.fail(ErrorCode.ExcessiveLoad, 'too much is waiting')
  }

  get deadline(): Instant {
    if (this.lifetime.stage !== Stage.Open) return Infinity
    return Math.min(this.#settingsDeadline, this.timeLimits.deadline, this.lifetime.deadline)
  }

  expire(now: Instant): void {
    const { lifetime, timeLimits } = this
    lifetime.expire(now)
    timeLimits.expire(now)
    if (lifetime.stage !== Stage.Open || now < this.#settingsDeadline) return
    const error = new TimeoutError('head', 'the peer did not send SETTINGS in time')
    lifetime.fail(ErrorCode.MissingSettings, error.message, error)
  }

  // ── QuicApplication: what QUIC tells ────────────────────────────────────────────────────────────

  onReady(): void {
    if (this.#ready || this.lifetime.stage !== Stage.Open) return
    this.#ready = true
    this.#settingsDeadline = this.peer.received ? Infinity : this.now + this.limits.settingsTimeout
    this.streams.open()
    this.announcements.tellReady()
  }

  onStream(stream: QuicStream): QuicStreamHandler {
    const { id } = stream
    if ((id & 2) !== 0) return this.streams.accept(stream)
    const { lifetime, exchanges, isServer } = this
    if (!isServer) {
      // RFC 9114 §6.1
      lifetime.fail(ErrorCode.StreamCreationError, 'a request from a server')
      return noStream
    }
    if (id >= lifetime.sentGoaway || lifetime.stage !== Stage.Open) {
      // RFC 9114 §5.2: what came after our last GOAWAY is not processed.
      stream.reset(ErrorCode.RequestRejected)
      stream.stopSending(ErrorCode.RequestRejected)
      this.qpack.cancelStream(id)
      this.resets?.countSent(ErrorCode.RequestRejected)
      return noStream
    }
    return exchanges.accept(stream)
  }

  onStreamsAvailable(): void {
    if (this.#ready && this.lifetime.stage === Stage.Open) this.streams.open()
  }

  onClose(error: HeddleError): void {
    this.lifetime.receiveClose(error)
  }

  // ── HttpConnection ──────────────────────────────────────────────────────────────────────────────

  get openable(): number {
    if (this.isServer || !this.#ready || this.lifetime.stage !== Stage.Open || this.lifetime.isDraining) return 0
    return this.exchanges.openable
  }

  get openExchanges(): number {
    return this.exchanges.open
  }

  open(handler: ExchangeHandler): Exchange | undefined {
    return this.openable > 0 ? this.exchanges.reserve(handler) : undefined
  }

  shutdown(): void {
    this.#assertOutside()
    this.lifetime.shutdown()
  }

  abort(error: HeddleError): void {
    this.#assertOutside()
    this.lifetime.abort(error, true)
  }

  #assertOutside(): void {
    if (this.isRunning) throw new UsageError('a handler may not run the engine, shut it down or abort it')
  }

  /** Streams reset from here so far. */
  get resetsSent(): number {
    return this.exchanges.resetsSent
  }

  // ── For the parts ───────────────────────────────────────────────────────────────────────────────

  /** The time limits of `stream` count from now. */
  sentNow(stream: Stream): void {
    stream.sentAt = this.now
    if (!this.isRunning) this.#untimed.push(stream)
  }

  /** Something was left to tell or to send: tells the driver, when it is not at it already. */
  wake(): void {
    if (!this.isRunning) this.transport.wake()
  }

  /** The date to add to a response that has none, or empty. */
  get date(): string {
    return this.#date === undefined ? '' : this.#date.httpDate()
  }

  /** The peer's SETTINGS are here. */
  settingsCame(): void {
    this.#settingsDeadline = Infinity
    this.qpack.settingsCame(this.peer)
    if (this.lifetime.stage !== Stage.Open) return
    if (this.#ready) this.announcements.tellReady()
    this.exchanges.settingsCame()
  }
}

/** For a stream of which nothing is wanted. */
const noStream: QuicStreamHandler = {
  onData() {},
  onReset() {},
  onStopSending() {},
  onSent() {},
  onClose() {},
}
