import { Decoder, Encoder } from '../hpack/index.ts'
import {
  Budget,
  NetworkError,
  TimeoutError,
  UsageError,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type HeddleError,
  type HttpConnection,
  type Instant,
  type OutboxLike,
  type StreamEngine,
} from '../http/index.ts'
import { Announcements } from './announcements.ts'
import { Exchanges } from './exchanges.ts'
import { Credit, firstWindow, Windows } from './flow.ts'
import { ErrorCode, preface } from './frame.ts'
import { Lifetime, Stage } from './lifetime.ts'
import { largestSetting, type Http2Limits } from './limits.ts'
import type { Http2Options } from './options.ts'
import { Notices } from './notices.ts'
import { Liveness } from './ping.ts'
import { Receiver } from './receive.ts'
import type { ResetCounts } from './reset-counts.ts'
import { Sender } from './send.ts'
import { SettingId, Settings } from './settings.ts'
import type { Stream } from './stream.ts'
import { TimeLimits } from './time-limits.ts'

/**
 * One HTTP/2 connection (RFC 9113), either role: the run loop the driver calls, and the owner of the parts
 * that do the work. `Receiver` reads frames, `Sender` writes them, `Exchanges` holds the streams, `Credit`
 * the receive windows, `Lifetime` the end, `TimeLimits` and `Liveness` the clock. A `Stream` is an Exchange.
 *
 * `onReady` is called once at the start, with what every peer allows, and again when the peer's SETTINGS
 * say something else.
 */
export abstract class Connection implements StreamEngine, HttpConnection {
  readonly info: ConnectionInfo
  readonly handler: ConnectionHandler
  readonly isServer: boolean
  readonly limits: Http2Limits
  readonly extendedConnect: boolean
  readonly encoder: Encoder
  readonly decoder: Decoder
  /** What the peer said of itself. */
  readonly peer: Settings
  /** The connection's own windows. */
  readonly windows: Windows
  readonly sender: Sender
  readonly exchanges: Exchanges
  readonly notices: Notices
  readonly announcements: Announcements
  readonly liveness: Liveness
  readonly credit: Credit
  readonly lifetime: Lifetime
  readonly timeLimits: TimeLimits
  readonly receiver: Receiver
  readonly peerResets: Budget
  readonly provokedResets: Budget
  readonly emptyFrames: Budget
  readonly resets: ResetCounts | undefined
  /**
   * Time as the last call of the run loop gave it, in whole ms: a small integer costs no memory to keep. Between
   * two calls it is an old one, and nobody knows how old: what begins there is stamped by the next (`sentNow`).
   */
  now: Instant
  onDirty: () => void
  /** The peer has taken our SETTINGS. */
  settingsAcknowledged: boolean
  /** What the peer's `origins` are (RFC 8336), or undefined while it has not said. */
  originSet: Set<string> | undefined

  readonly #date: { httpDate(): string } | undefined
  #running: boolean
  /** Streams on which something was sent between two runs. */
  readonly #untimed: Stream[]
  #ready: boolean
  #settingsDeadline: Instant

  constructor(
    isServer: boolean,
    info: ConnectionInfo,
    handler: ConnectionHandler,
    limits: Http2Limits,
    options: Http2Options,
    now: Instant,
  ) {
    this.info = info
    this.handler = handler
    this.isServer = isServer
    this.limits = limits
    this.extendedConnect = isServer && options.extendedConnect === true
    this.now = Math.ceil(now)
    this.onDirty = nothingToDo
    this.settingsAcknowledged = false
    this.originSet = undefined
    this.encoder = new Encoder(limits.headerTableSize)
    this.decoder = new Decoder(limits)
    this.peer = new Settings()
    this.windows = new Windows(firstWindow, firstWindow)
    this.peerResets = new Budget(limits.resetBurst, limits.resetRate)
    this.provokedResets = new Budget(limits.resetBurst, limits.resetRate)
    this.emptyFrames = new Budget(limits.emptyBurst, limits.emptyRate)
    this.resets = options.resets
    this.sender = new Sender(this)
    this.exchanges = new Exchanges(this)
    this.notices = new Notices(this)
    this.announcements = new Announcements(this)
    this.lifetime = new Lifetime(this)
    this.timeLimits = new TimeLimits(this)
    this.receiver = new Receiver(this)
    this.credit = new Credit(this)
    this.liveness = new Liveness(this)
    this.#date = options.date
    this.#running = false
    this.#untimed = []
    this.#ready = false
    this.#settingsDeadline = this.now + limits.settingsTimeout
    this.#start()
  }

  /** RFC 9113 §3.4: the preface and our settings come first; the connection's window is raised with them. */
  #start(): void {
    const { limits, sender } = this
    if (!this.isServer) sender.staging.raw(preface)
    const settings: number[] = [SettingId.InitialWindowSize, limits.streamWindow]
    // RFC 9113 §6.5.2: there is no limit to these where none is said.
    if (limits.maxFieldSectionSize <= largestSetting) settings.push(SettingId.MaxHeaderListSize, limits.maxFieldSectionSize)
    // RFC 9218 §2.1 for the last of these.
    settings.push(SettingId.HeaderTableSize, limits.headerTableSize, SettingId.NoRfc7540Priorities, 1)
    if (!this.isServer) settings.push(SettingId.EnablePush, 0)
    else if (limits.maxConcurrentStreams <= largestSetting) settings.push(SettingId.MaxConcurrentStreams, limits.maxConcurrentStreams)
    if (this.extendedConnect) settings.push(SettingId.EnableConnectProtocol, 1)
    sender.stageSettings(settings)
  }

  // ── The run loop ────────────────────────────────────────────────────────────────────────────────
  //
  // What throws in here, a bug or something that was injected, is the driver's to report; `receiveError`
  // comes after it and must find the way free.

  receive(buffer: Uint8Array, start: number, limit: number, now: Instant): void {
    this.#enter(now)
    try {
      this.liveness.heard(this.now)
      const { lifetime } = this
      if (lifetime.stage === Stage.Open) {
        this.exchanges.unwanted.startInput()
        this.receiver.receive(buffer, start, limit)
        this.exchanges.unwanted.finishInput()
      } else if (lifetime.stage === Stage.Lingering) lifetime.swallow(limit - start)
      this.#tellEnd()
    } finally {
      this.#running = false
    }
  }

  receiveEnd(now: Instant): void {
    this.#enter(now)
    try {
      this.lifetime.receiveEnd()
      this.#tellEnd()
    } finally {
      this.#running = false
    }
  }

  receiveError(error: HeddleError, now: Instant): void {
    this.#enter(now)
    try {
      if (!this.announcements.isFinished) this.lifetime.reset(error, false)
      this.notices.tellAllClosed()
      this.#tellEnd()
    } finally {
      this.#running = false
    }
  }

  transmit(out: OutboxLike, now: Instant): boolean {
    this.#enter(now)
    try {
      const { sender, notices, lifetime } = this
      let waits = false
      do {
        if (notices.hasClosed) notices.tellAllClosed()
        lifetime.maybeFinish()
        waits = sender.transmit(out)
        // Handlers that were told may have left more to say, and the last exchange may have ended.
      } while (notices.hasClosed || (waits && sender.staging.length > 0 && out.room > 0) || lifetime.mayFinish)
      if (!this.isServer) this.announcements.tellOpenable()
      this.#tellEnd()
      return waits
    } finally {
      this.#running = false
    }
  }

  expire(now: Instant): void {
    this.#enter(now)
    try {
      this.#expireAll()
      this.notices.tellAllClosed()
      this.#tellEnd()
    } finally {
      this.#running = false
    }
  }

  #expireAll(): void {
    const { lifetime, timeLimits, liveness, receiver } = this
    lifetime.expire(this.now)
    timeLimits.expire(this.now)
    if (lifetime.stage === Stage.Open) {
      if (this.now >= receiver.headDeadline) receiver.expireHead()
      else if (this.now >= this.#settingsDeadline) {
        const error = new TimeoutError('head', 'the peer did not acknowledge SETTINGS in time')
        lifetime.fail(ErrorCode.SettingsTimeout, error.message, error)
      } else if (liveness.expire(this.now)) {
        lifetime.reset(new NetworkError('NETWORK_ERROR', 'the peer does not answer: the connection is dead'), false)
      }
    }
  }

  get wantsInput(): boolean {
    return this.lifetime.stage !== Stage.Closed
  }

  get closing(): 'no' | 'end' | 'close' | 'reset' {
    const { stage, resets } = this.lifetime
    if (resets) return 'reset'
    if (stage === Stage.Open || this.sender.staging.length > 0) return 'no'
    return stage === Stage.Lingering ? 'end' : 'close'
  }

  get deadline(): Instant {
    const { lifetime, timeLimits } = this
    if (lifetime.stage !== Stage.Open) return Math.min(lifetime.deadline, timeLimits.blockedDeadline)
    return Math.min(this.#settingsDeadline, timeLimits.deadline, this.receiver.headDeadline, this.liveness.deadline, lifetime.deadline)
  }

  #enter(now: Instant): void {
    this.#assertOutside()
    this.#running = true
    this.now = Math.ceil(now)
    this.#stamp()
    if (!this.#ready) {
      this.#ready = true
      this.announcements.tellReady()
    }
  }

  /** What happened since the last run happened now, as far as time limits go. */
  #stamp(): void {
    const { now, timeLimits, lifetime } = this
    timeLimits.stamp()
    lifetime.stamp()
    if (this.#untimed.length === 0) return
    for (const stream of this.#untimed) {
      stream.sentAt = now
      timeLimits.stampStream(stream)
    }
    this.#untimed.length = 0
  }

  #tellEnd(): void {
    if (this.lifetime.stage === Stage.Closed) this.announcements.maybeTellClosed()
  }

  #assertOutside(): void {
    if (this.#running) throw new UsageError('a handler may not run the engine, shut it down or abort it')
  }

  /** False: user code is at it, between two runs, and `now` is not the time. */
  get knowsTime(): boolean {
    return this.#running
  }

  /** The time limits of `stream` count from now. */
  sentNow(stream: Stream): void {
    stream.sentAt = this.now
    if (!this.#running) this.#untimed.push(stream)
  }

  /** Something was left to send: tells the driver, when it is not at it already. */
  markDirty(): void {
    if (!this.#running) this.onDirty()
  }

  // ── HttpConnection ──────────────────────────────────────────────────────────────────────────────

  get openable(): number {
    if (this.isServer || this.lifetime.stage !== Stage.Open || this.lifetime.isDraining) return 0
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
    if (!this.announcements.isFinished) this.lifetime.reset(error, true)
  }

  /** Frames sent so far; with the driver's `writes` it tells how well they are batched. */
  get framesSent(): number {
    return this.sender.staging.frames
  }

  /** Streams reset from here so far. */
  get resetsSent(): number {
    return this.exchanges.resetsSent
  }

  /** The date to add to a response that has none, or empty. */
  get date(): string {
    return this.#date === undefined ? '' : this.#date.httpDate()
  }

  // ── What the peer's SETTINGS change ─────────────────────────────────────────────────────────────

  receiveSettingsAck(): void {
    if (this.settingsAcknowledged) return
    this.settingsAcknowledged = true
    this.#settingsDeadline = Infinity
    this.decoder.allowTableSize(this.limits.headerTableSize)
    this.credit.settle()
  }

  settingsChanged(): void {
    this.announcements.tellReady()
  }
}

function nothingToDo(): void {}
