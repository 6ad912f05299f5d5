import { Decoder, Encoder } from '../hpack/index.ts'
import {
  CancelledError,
  CancelReason,
  fieldValue,
  NetworkError,
  PeerError,
  ProtocolError,
  TimeoutError,
  UsageError,
  type ConnectionHandler,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type HttpConnection,
  type Instant,
  type OutboxLike,
  type StreamEngine,
} from '../http/index.ts'
import { Budget } from './budget.ts'
import { ReceiveWindow, SendWindow } from './flow.ts'
import { ErrorCode, errorName, FrameType, largestWindow, preface, writeUint32 } from './frame.ts'
import { clientLimits, serverLimits, type Http2Limits } from './limits.ts'
import { Liveness, PingKind } from './ping.ts'
import { Receiver } from './receive.ts'
import { Sender } from './send.ts'
import { SettingId, Settings } from './settings.ts'
import { Phase, Stream } from './stream.ts'

export interface Http2Options {
  readonly limits?: Partial<Http2Limits>
  /** Server: SETTINGS_ENABLE_CONNECT_PROTOCOL is sent (RFC 8441); it cannot be withdrawn. Default false. */
  readonly extendedConnect?: boolean
  /** Server: gives the `date` field of responses whose handler gave none. */
  readonly date?: { httpDate(): string } | undefined
}

/** How often streams are looked over for those that make no progress, ms: what a time limit may be late by. */
const sweepInterval = 1_000
/** How many streams we reset are remembered, so that what was under way on them is not taken for a fault. */
const mostRemembered = 256

/**
 * One HTTP/2 connection (RFC 9113), either role: a small owner of its parts. `Receiver` reads frames,
 * `Sender` writes them, `Liveness` watches the path, a `Stream` is an Exchange.
 */
class Connection implements StreamEngine, HttpConnection {
  readonly info: ConnectionInfo
  readonly handler: ConnectionHandler
  readonly isServer: boolean
  readonly limits: Http2Limits
  readonly extendedConnect: boolean
  readonly encoder: Encoder
  readonly decoder: Decoder
  readonly sender: Sender
  readonly receiver: Receiver
  readonly liveness: Liveness
  /** What the peer said of itself. */
  readonly peer: Settings
  readonly sendWindow: SendWindow
  readonly receiveWindow: ReceiveWindow
  /** A WINDOW_UPDATE of the connection is due. */
  creditDue: boolean

  /** Streams that are not closed. */
  readonly streams: Map<number, Stream>
  /** Client: streams opened and not begun. */
  reserved: number
  /** Streams begun by the other side that are open: what SETTINGS_MAX_CONCURRENT_STREAMS counts. */
  nextStreamId: number
  /** The highest stream the peer began. */
  lastPeerStreamId: number
  /** Streams reset by us of late whose peer may not know yet. */
  readonly remembered: Set<number>

  /** Time as the last call of the run loop gave it. */
  now: Instant
  onDirty: () => void
  closing: 'no' | 'end' | 'close' | 'reset'
  /** The last stream id we said we process; Infinity: no GOAWAY was sent. */
  sentGoaway: number
  /** The last stream id the peer processes; Infinity: no GOAWAY came. */
  receivedGoaway: number
  shuttingDown: boolean
  dead: boolean
  readonly peerResets: Budget
  readonly provokedResets: Budget
  readonly emptyFrames: Budget

  readonly #date: { httpDate(): string } | undefined
  /** Closed streams whose handler does not know yet. */
  readonly #closedStreams: Stream[]
  #error: HeddleError | undefined
  #running: boolean
  #ready: boolean
  #told: boolean
  #settingsDeadline: Instant
  #idleDeadline: Instant
  #sweepDeadline: Instant
  #shutdownDeadline: Instant
  #toldOpenable: number

  constructor(isServer: boolean, info: ConnectionInfo, handler: ConnectionHandler, options: Http2Options, now: Instant) {
    const limits: Http2Limits = { ...(isServer ? serverLimits : clientLimits), ...options.limits }
    this.info = info
    this.handler = handler
    this.isServer = isServer
    this.limits = limits
    this.extendedConnect = isServer && options.extendedConnect === true
    this.encoder = new Encoder(limits.headerTableSize)
    this.decoder = new Decoder(limits)
    this.peer = new Settings()
    this.sendWindow = new SendWindow(65_535)
    this.receiveWindow = new ReceiveWindow(65_535)
    this.creditDue = false
    this.streams = new Map()
    this.reserved = 0
    this.nextStreamId = isServer ? 2 : 1
    this.lastPeerStreamId = 0
    this.remembered = new Set()
    this.now = now
    this.onDirty = nothing
    this.closing = 'no'
    this.sentGoaway = Infinity
    this.receivedGoaway = Infinity
    this.shuttingDown = false
    this.dead = false
    this.peerResets = new Budget(limits.resetBurst, limits.resetRate)
    this.provokedResets = new Budget(limits.resetBurst, limits.resetRate)
    this.emptyFrames = new Budget(limits.emptyBurst, limits.emptyRate)
    this.sender = new Sender(this)
    this.receiver = new Receiver(this)
    this.liveness = new Liveness(this)
    this.#date = options.date
    this.#closedStreams = []
    this.#error = undefined
    this.#running = false
    this.#ready = false
    this.#told = false
    this.#settingsDeadline = now + limits.settingsTimeout
    this.#idleDeadline = now + limits.idleTimeout
    this.#sweepDeadline = Infinity
    this.#shutdownDeadline = Infinity
    this.#toldOpenable = -1
    this.#start()
  }

  /** RFC 9113 §3.4: the preface, our settings, and the connection's window raised at once. */
  #start(): void {
    const { limits, sender } = this
    if (!this.isServer) sender.stageRaw(preface)
    const settings = [
      SettingId.InitialWindowSize,
      limits.streamWindow,
      SettingId.MaxHeaderListSize,
      limits.maxFieldSectionSize,
      SettingId.HeaderTableSize,
      limits.headerTableSize,
      SettingId.NoRfc7540Priorities,
      1,
    ]
    if (this.isServer) settings.push(SettingId.MaxConcurrentStreams, limits.maxConcurrentStreams)
    else settings.push(SettingId.EnablePush, 0)
    if (this.extendedConnect) settings.push(SettingId.EnableConnectProtocol, 1)
    sender.stageSettings(settings)
    this.receiveWindow.widen(limits.connectionWindow)
    this.creditDue = this.receiveWindow.owed > 0
  }

  // ---- the run loop

  receive(buffer: Uint8Array, start: number, limit: number, now: Instant): void {
    this.#enter(now)
    this.liveness.heard(now)
    if (!this.dead) this.receiver.receive(buffer, start, limit)
    this.#tellClosed()
    this.#running = false
  }

  receiveEnd(now: Instant): void {
    this.#enter(now)
    if (!this.dead) {
      const clean = this.streams.size === 0 && this.reserved === 0
      this.finish(clean ? undefined : new PeerError('PEER_CLOSED', 'the peer closed the connection with exchanges open'), 'close')
    }
    this.#tellClosed()
    this.#running = false
  }

  receiveError(error: HeddleError, now: Instant): void {
    this.#enter(now)
    this.finish(error, 'reset')
    this.#tellClosed()
    this.#running = false
  }

  transmit(out: OutboxLike, now: Instant): boolean {
    this.#enter(now)
    if (!this.#ready && !this.isServer) this.becomeReady()
    let more = false
    do {
      more = this.sender.transmit(out, now)
      this.#maybeFinishShutdown()
      this.#tellClosed()
    } while (this.sender.staging.length > 0)
    this.#tellOpenable()
    this.#running = false
    return more
  }

  get wantsInput(): boolean {
    // A peer that does not read what it provokes is not read either, until `maxQueuedControl` ends it.
    return this.closing !== 'reset'
  }

  get deadline(): Instant {
    if (this.dead) return Infinity
    return Math.min(
      this.#settingsDeadline,
      this.streams.size === 0 && this.reserved === 0 ? this.#idleDeadline : this.#sweepDeadline,
      this.receiver.headDeadline,
      this.liveness.deadline,
      this.#shutdownDeadline,
    )
  }

  expire(now: Instant): void {
    this.#enter(now)
    if (!this.dead) this.#expire(now)
    this.#tellClosed()
    this.#running = false
  }

  #expire(now: Instant): void {
    if (now >= this.receiver.headDeadline) {
      this.fail(ErrorCode.EnhanceYourCalm, 'no complete head in time', new TimeoutError('head', 'the peer did not complete a head in time'))
    } else if (now >= this.#settingsDeadline) {
      this.fail(
        ErrorCode.SettingsTimeout,
        'SETTINGS were not acknowledged',
        new TimeoutError('head', 'the peer did not acknowledge SETTINGS in time'),
      )
    } else if (this.liveness.expire(now)) {
      this.finish(new NetworkError('NETWORK_ERROR', 'the peer does not answer: the connection is dead'), 'reset')
    } else if (now >= this.#shutdownDeadline) this.#sayGoodbye()
    else if (this.streams.size === 0 && this.reserved === 0) {
      if (now >= this.#idleDeadline) this.fail(ErrorCode.NoError, '', undefined)
    } else if (now >= this.#sweepDeadline) this.#sweep(now)
  }

  #enter(now: Instant): void {
    if (this.#running) throw new UsageError('the run loop was entered from inside a handler')
    this.#running = true
    this.now = now
  }

  /** Something was left to send: the driver runs `transmit`. */
  markDirty(): void {
    if (!this.#running) this.onDirty()
  }

  // ---- exchanges

  open(handler: ExchangeHandler): Exchange | undefined {
    if (this.openable <= 0) return undefined
    this.reserved++
    const stream = new Stream(this, 0, handler, this.peer.initialWindowSize, this.limits.streamWindow, this.now)
    return stream
  }

  get openable(): number {
    if (this.isServer || this.dead || this.shuttingDown || this.receivedGoaway !== Infinity || this.nextStreamId > largestWindow) return 0
    return Math.max(0, this.peer.maxConcurrentStreams - this.streams.size - this.reserved)
  }

  get openExchanges(): number {
    return this.streams.size + this.reserved
  }

  /** Client: the stream gets its id with its first frame, so ids go out in order. */
  startRequest(stream: Stream, head: Head, end: boolean): void {
    this.reserved--
    stream.id = this.nextStreamId
    this.nextStreamId += 2
    stream.receivedAt = this.now
    stream.sendWindow.size = this.peer.initialWindowSize
    this.addStream(stream)
    this.liveness.used()
    if (!end && fieldValue(head.fields, 'expect')?.toLowerCase() === '100-continue') {
      stream.heldUntil = this.now + this.limits.continueTimeout
      this.#sweepDeadline = Math.min(this.#sweepDeadline, stream.heldUntil)
    }
    this.sender.stageRequest(stream, head, end)
  }

  /** Content that waited for a 100 goes out. */
  releaseContent(stream: Stream): void {
    if (stream.heldUntil === 0) return
    stream.heldUntil = 0
    this.sender.maybeReady(stream)
  }

  addStream(stream: Stream): void {
    this.streams.set(stream.id, stream)
    if (this.#sweepDeadline === Infinity) this.#sweepDeadline = this.now + sweepInterval
  }

  /** The date to add to a response, or empty. */
  dateFor(fields: Fields): string {
    if (this.#date === undefined) return ''
    for (let i = 0; i < fields.length; i += 2) if (fields[i] === 'date') return ''
    return this.#date.httpDate()
  }

  /** END_STREAM was framed. */
  sendingEnded(stream: Stream): void {
    if (stream.receiving === Phase.Ended) this.closeStream(stream, undefined)
    else if (this.isServer && stream.discarding) {
      // RFC 9113 §8.1: the response is complete, the rest of the request is not wanted.
      this.sender.stageReset(stream.id, ErrorCode.NoError)
      this.remember(stream.id)
      this.closeStream(stream, undefined)
    }
  }

  receivingEnded(stream: Stream): void {
    stream.receiving = Phase.Ended
    if (stream.sending === Phase.Ended && !stream.endQueued && stream.pending === 0) this.closeStream(stream, undefined)
    // A final answer instead of the 100: the content stays here, and the peer is told not to wait for it.
    else if (stream.heldUntil > 0) this.resetStream(stream, ErrorCode.Cancel, undefined)
  }

  discard(stream: Stream): void {
    this.credit(stream, stream.unconsumed)
    stream.unconsumed = 0
    if (stream.sending !== Phase.Ended || stream.receiving === Phase.Ended) return
    const code = this.isServer ? ErrorCode.NoError : ErrorCode.Cancel
    this.resetStream(stream, code, undefined)
  }

  /** RST_STREAM goes out (if the stream was begun) and the stream is over. */
  resetStream(stream: Stream, code: number, error: HeddleError | undefined): void {
    if (stream.closed) return
    if (stream.id === 0) this.reserved--
    else {
      this.sender.stageReset(stream.id, code)
      this.remember(stream.id)
    }
    this.closeStream(stream, error)
    this.markDirty()
  }

  /** The peer's fault ends the stream: counted, since it costs the peer next to nothing (CVE-2025-8671). */
  faultStream(stream: Stream, code: number, message: string): void {
    this.resetStream(stream, code, new ProtocolError(message, 400, 'PROTOCOL_ERROR', { wireCode: code, scope: 'stream' }))
    this.provoked()
  }

  /** Counts a reset that the peer provoked. */
  provoked(): void {
    if (!this.provokedResets.take(this.now)) this.fail(ErrorCode.EnhanceYourCalm, 'too many resets provoked')
  }

  remember(streamId: number): void {
    this.remembered.add(streamId)
    if (this.remembered.size > mostRemembered) this.remembered.delete(this.remembered.values().next().value as number)
  }

  closeStream(stream: Stream, error: HeddleError | undefined): void {
    if (stream.closed) return
    stream.closed = true
    stream.error = error
    if (this.streams.delete(stream.id) && this.streams.size === 0) {
      this.#idleDeadline = this.now + this.limits.idleTimeout
      this.#sweepDeadline = Infinity
    }
    // What the handler had not consumed is the connection's window, not lost.
    this.creditConnection(stream.unconsumed)
    stream.unconsumed = 0
    this.sender.forget(stream)
    this.#closedStreams.push(stream)
  }

  /** The handler consumed `byteCount` of the stream's content. */
  credit(stream: Stream, byteCount: number): void {
    if (byteCount === 0) return
    this.creditConnection(byteCount)
    if (stream.receiving !== Phase.Ended && stream.receiveWindow.consume(byteCount)) {
      this.sender.creditStream(stream)
      this.markDirty()
    }
  }

  creditConnection(byteCount: number): void {
    if (byteCount === 0 || !this.receiveWindow.consume(byteCount) || this.creditDue) return
    this.creditDue = true
    this.liveness.probeBandwidth()
    this.markDirty()
  }

  // ---- telling handlers

  tellSent(stream: Stream, byteCount: number, writable: boolean): void {
    try {
      stream.handler.onSent(byteCount, writable)
    } catch (error) {
      this.handlerFailed(stream, error)
    }
  }

  /** A handler that throws loses its exchange, nothing else. */
  handlerFailed(stream: Stream, cause: unknown): void {
    this.resetStream(stream, ErrorCode.InternalError, new CancelledError(CancelReason.InternalError, 'a handler failed', { cause }))
  }

  #tellClosed(): void {
    const closed = this.#closedStreams
    for (let i = 0; i < closed.length; i++) {
      const stream = closed[i] as Stream
      if (stream.unreported > 0) {
        const { unreported } = stream
        stream.unreported = 0
        this.tellSent(stream, unreported, false)
      }
      try {
        stream.handler.onClose(stream.error)
      } catch {
        // The exchange is over; there is nothing left to cancel.
      }
    }
    closed.length = 0
    if (this.dead && !this.#told) {
      this.#told = true
      this.handler.onClose(this.#error)
    }
  }

  becomeReady(): void {
    if (this.#ready) return
    this.#ready = true
    this.#tellReady()
  }

  #tellReady(): void {
    this.handler.onReady({ protocol: 'h2', maxExchanges: this.peer.maxConcurrentStreams, extendedConnect: this.peer.enableConnectProtocol })
  }

  /** The peer's SETTINGS came: what it allows may have changed. */
  settingsChanged(): void {
    this.#ready = true
    this.#tellReady()
  }

  settingsAcknowledged(): void {
    this.#settingsDeadline = Infinity
    this.decoder.allowTableSize(this.limits.headerTableSize)
  }

  #tellOpenable(): void {
    if (this.isServer || this.dead) return
    const { openable } = this
    if (openable > this.#toldOpenable) this.handler.onCapacity(openable)
    this.#toldOpenable = this.openable
  }

  // ---- the end

  /** GOAWAY, and the connection is over. `error`: what open exchanges end with; undefined: there are none. */
  fail(code: number, message: string, error?: HeddleError): void {
    if (this.dead) return
    const { sender } = this
    const debug = message.slice(0, 128)
    const out = sender.stageFrame(8 + debug.length, FrameType.Goaway, 0, 0)
    writeUint32(out, this.lastPeerStreamId)
    writeUint32(out, code)
    out.writeLatin1(debug)
    this.sentGoaway = this.lastPeerStreamId
    const cause =
      code === ErrorCode.NoError
        ? undefined
        : (error ?? new ProtocolError(`${errorName(code)}: ${message}`, 400, 'PROTOCOL_ERROR', { wireCode: code, scope: 'connection' }))
    this.finish(cause, 'close')
    this.markDirty()
  }

  /** Every exchange ends with `error`; nothing is sent any more but what is staged. */
  finish(error: HeddleError | undefined, closing: 'close' | 'reset'): void {
    if (this.dead) {
      if (closing === 'reset') this.closing = 'reset'
      return
    }
    this.dead = true
    this.closing = closing
    if (error !== undefined) this.#error = error
    for (const stream of [...this.streams.values()]) {
      this.closeStream(stream, error ?? new PeerError('PEER_CLOSED', 'the connection was closed'))
    }
    this.markDirty()
  }

  /** GOAWAY: no new exchanges here, and those past `last` were not processed. */
  receiveGoaway(last: number, code: number, debug: string): void {
    const first = this.receivedGoaway === Infinity
    // RFC 9113 §6.8: the number never grows.
    this.receivedGoaway = Math.min(this.receivedGoaway, last)
    if (first) this.handler.onDraining()
    const reason = `the peer is going away: ${errorName(code)}${debug === '' ? '' : ` (${debug})`}`
    for (const stream of [...this.streams.values()]) {
      if ((stream.id & 1) === (this.isServer ? 0 : 1) && stream.id > last) {
        this.closeStream(stream, new PeerError('PEER_CLOSED', reason, { unprocessed: true, wireCode: code, scope: 'connection' }))
      }
    }
    if (code !== ErrorCode.NoError) this.#error = new PeerError('PEER_CLOSED', reason, { wireCode: code, scope: 'connection' })
    this.#maybeFinishShutdown()
  }

  shutdown(): void {
    if (this.dead || this.shuttingDown) return
    this.shuttingDown = true
    if (this.isServer) {
      // RFC 9113 §6.8: first a GOAWAY that refuses nothing, then, a round trip later, the real one.
      this.sender.stageGoaway(largestWindow, ErrorCode.NoError)
      this.liveness.ping(PingKind.Shutdown)
      this.#shutdownDeadline = this.now + 1_000
    } else this.#sayGoodbye()
    this.markDirty()
  }

  /** The round trip after the first GOAWAY is over. */
  shutdownRoundTrip(): void {
    if (this.#shutdownDeadline !== Infinity) this.#sayGoodbye()
  }

  #sayGoodbye(): void {
    this.#shutdownDeadline = Infinity
    this.sentGoaway = this.lastPeerStreamId
    this.sender.stageGoaway(this.lastPeerStreamId, ErrorCode.NoError)
  }

  #maybeFinishShutdown(): void {
    if (this.dead || this.openExchanges > 0) return
    if ((this.shuttingDown && this.sentGoaway !== Infinity) || this.receivedGoaway !== Infinity) this.finish(undefined, 'close')
  }

  abort(error: HeddleError): void {
    this.fail(ErrorCode.Cancel, '', error)
  }

  /** Ends the streams that made no progress for their time limit. */
  #sweep(now: Instant): void {
    this.#sweepDeadline = now + sweepInterval
    const { limits } = this
    let stalled = 0
    for (const stream of [...this.streams.values()]) {
      if (stream.heldUntil > 0) {
        if (now >= stream.heldUntil) this.releaseContent(stream)
        else this.#sweepDeadline = Math.min(this.#sweepDeadline, stream.heldUntil)
      } else if (stream.pending > 0 && now - stream.sentAt >= limits.sendTimeout) {
        stalled++
        this.resetStream(
          stream,
          ErrorCode.Cancel,
          new TimeoutError('send', 'the peer gave no window for content, or did not read, in time'),
        )
      } else if (
        stream.receiving === Phase.Head &&
        stream.sending === Phase.Ended &&
        now - Math.max(stream.receivedAt, stream.sentAt) >= limits.responseTimeout
      ) {
        this.resetStream(stream, ErrorCode.Cancel, new TimeoutError('head', 'no response in time'))
      } else if (
        stream.receiving === Phase.Content &&
        !stream.tunnel &&
        stream.unconsumed === 0 &&
        now - stream.receivedAt >= limits.bodyTimeout
      ) {
        this.resetStream(stream, ErrorCode.Cancel, new TimeoutError('body', 'no content arrived in time'))
      }
    }
    // Nothing at all moves: the connection itself is stuck.
    if (stalled > 0 && this.streams.size === 0) this.fail(ErrorCode.EnhanceYourCalm, 'every stream is stalled')
    if (this.streams.size === 0) this.#sweepDeadline = Infinity
  }
}

/** The server's end of an HTTP/2 connection. */
export class ServerConnection extends Connection {
  constructor(info: ConnectionInfo, handler: ConnectionHandler, options: Http2Options, now: Instant) {
    super(true, info, handler, options, now)
  }
}

/** The client's end of an HTTP/2 connection. */
export class ClientConnection extends Connection {
  constructor(info: ConnectionInfo, handler: ConnectionHandler, options: Http2Options, now: Instant) {
    super(false, info, handler, options, now)
  }
}

export type { Connection }

function nothing(): void {}
