import { List } from '../bytes/index.ts'
import {
  asUnprocessed,
  CancelledError,
  CancelReason,
  fieldValue,
  ProtocolError,
  UsageError,
  type Exchange,
  type ExchangeHandler,
  type Head,
  type HeddleError,
} from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, largestWindow } from './frame.ts'
import { ResetMemory } from './reset-memory.ts'
import { Phase } from './state.ts'
import { Stream } from './stream.ts'
import { StreamSet } from './stream-set.ts'
import { firstWindow } from './flow.ts'
import { untimed } from './time-limits.ts'
import { Unwanted } from './unwanted.ts'

/** The exchanges of one connection: how they begin, and every way they end. */
export class Exchanges {
  /** Streams that have begun and are not over. */
  readonly table: StreamSet
  /** Client: exchanges that were opened and have not begun. */
  readonly reserved: List<Stream>
  /** The next stream we begin. */
  nextStreamId: number
  /** The highest stream the peer began. */
  lastPeerStreamId: number
  /** The highest stream of ours whose HEADERS have left. */
  lastSentStreamId: number
  /** RST_STREAM frames so far. */
  resetsSent: number
  readonly #owner: Connection
  readonly #resets: ResetMemory
  /** Tunnels asked for before SETTINGS came; undefined: none. */
  #earlyTunnels: Map<Stream, Head> | undefined
  readonly unwanted: Unwanted

  constructor(owner: Connection) {
    this.table = new StreamSet()
    this.reserved = new List()
    this.nextStreamId = owner.isServer ? 2 : 1
    this.lastPeerStreamId = 0
    this.lastSentStreamId = 0
    this.resetsSent = 0
    this.#owner = owner
    this.#resets = new ResetMemory()
    this.#earlyTunnels = undefined
    this.unwanted = new Unwanted(owner)
  }

  get open(): number {
    return this.table.size + this.reserved.length
  }

  /** True: some stream's content is to go on, and all that came of it was read. */
  get someStarves(): boolean {
    return this.table.all().some(({ receiving, unconsumed, discarding }) => receiving === Phase.Content && unconsumed === 0 && !discarding)
  }

  /** True: no stream of this number was ever begun. */
  isIdle(streamId: number): boolean {
    const isPeers = (streamId & 1) === (this.#owner.isServer ? 1 : 0)
    return isPeers ? streamId > this.lastPeerStreamId : streamId >= this.nextStreamId
  }

  // ── Beginning ───────────────────────────────────────────────────────────────────────────────────

  /** Client: how many exchanges can be opened now. */
  get openable(): number {
    const left = this.#owner.peer.maxConcurrentStreams - this.open
    // RFC 9113 §5.1.1: numbers are not used twice; a connection that ran out of them is replaced.
    const numbers = (largestWindow - this.nextStreamId) / 2 + 1 - this.reserved.length
    return Math.max(0, Math.min(left, Math.floor(numbers)))
  }

  reserve(handler: ExchangeHandler): Exchange {
    const owner = this.#owner
    const stream = new Stream(owner, 0, handler, 0, this.#receiveWindow, owner.now)
    this.reserved.append(stream)
    return stream
  }

  /**
   * Client: the stream gets its number with its first frame, so numbers go out in order. Throws
   * UsageError, having changed nothing, for fields that cannot be sent.
   */
  start(stream: Stream, head: Head, end: boolean): void {
    const owner = this.#owner
    const { sender, peer, now, timeLimits, liveness, credit } = owner
    sender.stageRequest(this.nextStreamId, head, end)
    this.reserved.remove(stream)
    stream.id = this.nextStreamId
    this.nextStreamId += 2
    stream.stagedFlush = sender.staging.flushes
    stream.sendWindow = peer.initialWindowSize
    stream.receivedAt = now
    owner.sentNow(stream)
    this.table.add(stream)
    timeLimits.watch()
    liveness.used()
    if (stream.prioritized) sender.stagePriorityUpdate(stream.id, stream)
    // A window of its own may have been asked for before it had a number.
    if (stream.receiveOwed > 0) credit.maybeUpdate(stream)
    if (stream.tunnel) stream.held = true
    else if (!end && fieldValue(head.fields, 'expect')?.toLowerCase() === '100-continue') {
      // RFC 9110 §10.1.1
      stream.held = true
      stream.heldUntil = untimed
      timeLimits.limitStream(stream)
    }
  }

  /** Client: `stream` is to become a tunnel as soon as the server has said that there may be any. */
  awaitOffer(stream: Stream, head: Head): void {
    this.#earlyTunnels ??= new Map()
    this.#earlyTunnels.set(stream, head)
  }

  /** Client: SETTINGS came. */
  settingsCame(): void {
    const early = this.#earlyTunnels
    if (early === undefined) return
    this.#earlyTunnels = undefined
    for (const [stream, head] of early) {
      if (stream.closed) continue
      if (this.#owner.peer.enableConnectProtocol) this.#startEarly(stream, head)
      else this.close(stream, new UsageError('the server offers no extended CONNECT'))
    }
  }

  #startEarly(stream: Stream, head: Head): void {
    try {
      this.start(stream, head, false)
    } catch (cause) {
      this.close(stream, new CancelledError(CancelReason.InternalError, 'the head cannot be sent', { cause }))
    }
  }

  /** Server: the peer began `streamId`. */
  accept(streamId: number): Stream {
    const owner = this.#owner
    const stream = new Stream(owner, streamId, noHandler, owner.peer.initialWindowSize, this.#receiveWindow, owner.now)
    this.table.add(stream)
    owner.timeLimits.watch()
    return stream
  }

  /** RFC 9113 §6.9.2: a peer that has not taken our SETTINGS yet goes by the first window. */
  get #receiveWindow(): number {
    const { limits, settingsAcknowledged } = this.#owner
    return settingsAcknowledged || limits.streamWindow > firstWindow ? limits.streamWindow : firstWindow
  }

  // ── Ending ──────────────────────────────────────────────────────────────────────────────────────

  /** END_STREAM was framed. */
  sendingEnded(stream: Stream): void {
    if (stream.receiving === Phase.Ended) this.#completed(stream)
    // RFC 9113 §8.1: the response is complete, and the rest of the request is wanted by nobody.
    else this.unwanted.maybeAbandon(stream)
  }

  /** The peer's message ended. */
  receivingEnded(stream: Stream): void {
    stream.receiving = Phase.Ended
    if (stream.sending === Phase.Ended) this.#completed(stream)
    // A final answer came instead of the 100: the content stays here, and the peer is told not to wait for it.
    else if (stream.dropsContent) this.abandon(stream, ErrorCode.Cancel)
  }

  /** Nothing more is wanted of the peer's message. */
  discard(stream: Stream): void {
    const owner = this.#owner
    stream.discarding = true
    owner.credit.give(stream, stream.unconsumed)
    stream.unconsumed = 0
    this.unwanted.maybeAbandon(stream)
  }

  /** The response is complete, and nothing more comes of the request, which nobody wants. */
  finishedByPeer(stream: Stream): void {
    this.#completed(stream)
  }

  /** Ends well as far as we are concerned; the peer is told to send no more. */
  abandon(stream: Stream, code: number): void {
    this.sayReset(stream.id, code)
    this.#completed(stream)
    this.#owner.markDirty()
  }

  #completed(stream: Stream): void {
    const { sender, notices } = this.#owner
    this.#leave(stream)
    stream.complete = true
    if (stream.inReports || stream.stagedFlush === sender.staging.flushes) notices.reportLater(stream)
    else notices.closedLater(stream)
  }

  /** RST_STREAM goes out, if the stream has begun, and the stream is over: nothing but `onClose` is called after this. */
  reset(stream: Stream, code: number, error: HeddleError): void {
    if (stream.closed) return
    if (stream.id !== 0) this.sayReset(stream.id, code)
    this.close(stream, error)
    this.#owner.markDirty()
  }

  /** The peer's fault ends the stream: counted, since it costs the peer next to nothing (CVE-2025-8671). */
  fault(stream: Stream, code: number, message: string): void {
    this.reset(stream, code, new ProtocolError(message, 400, 'PROTOCOL_ERROR', { wireCode: code, scope: 'stream' }))
    this.provoked()
  }

  /** Resets a stream that is not, or no longer, in the table: for a fault of the peer, so it is counted. */
  refuse(streamId: number, code: number): void {
    this.sayReset(streamId, code)
    this.provoked()
  }

  /** Counts a reset that the peer provoked. */
  provoked(): void {
    const owner = this.#owner
    if (!owner.provokedResets.take(owner.now)) owner.lifetime.fail(ErrorCode.EnhanceYourCalm, 'too many resets provoked')
  }

  /** RST_STREAM goes out; what was under way on the stream is nobody's fault. */
  sayReset(streamId: number, code: number): void {
    this.resetsSent++
    this.#owner.sender.staging.reset(streamId, code)
    this.#owner.resets?.countSent(code)
    this.#resets.remember(streamId)
  }

  /** A frame came for a stream that had ended, and not because we reset it. */
  receivedAfterEnd(streamId: number): void {
    const { isServer, lifetime } = this.#owner
    // RFC 9113 §5.1: an error of the stream, or of the connection. A client may pay for it with its budget;
    // a server that says more than its answer cannot be trusted with another, unless it is we who forget.
    if (isServer) this.refuse(streamId, ErrorCode.StreamClosed)
    else if (!this.#resets.forgets) lifetime.fail(ErrorCode.StreamClosed, 'a frame on a closed stream')
  }

  /** True: we reset it, so what still comes is nobody's fault. `ends`: nothing comes after this. */
  isRemembered(streamId: number, ends: boolean): boolean {
    return this.#resets.isKnown(streamId, ends)
  }

  /** The stream is over without another frame of ours. */
  close(stream: Stream, error: HeddleError): void {
    if (stream.closed) return
    this.#leave(stream)
    stream.unreported = 0
    stream.error = error
    this.#owner.notices.closedLater(stream)
  }

  /** Out of the table, and out of every list but those of what is to be told. */
  #leave(stream: Stream): void {
    const owner = this.#owner
    stream.closed = true
    if (stream.id === 0) this.reserved.remove(stream)
    else this.table.delete(stream)
    owner.sender.forget(stream)
    // What the handler had not consumed is the connection's window, not lost.
    owner.credit.giveConnection(stream.unconsumed)
    stream.unconsumed = 0
    if (this.table.size === 0) owner.timeLimits.idles()
  }

  /** Every exchange ends with `error`, or with what makes of it that the peer has seen nothing of the request. */
  closeAll(error: HeddleError, isLocal: boolean): void {
    const { isServer } = this.#owner
    for (const stream of this.table.all()) {
      const isSent = isServer || isLocal || stream.id <= this.lastSentStreamId
      this.close(stream, isSent ? error : asUnprocessed(error))
    }
    for (let stream = this.reserved.first; stream !== undefined; stream = this.reserved.first) {
      this.close(stream, isLocal ? error : asUnprocessed(error))
    }
  }

  /** Client: the peer will not process streams beyond `lastStreamId`, nor new ones. */
  closeBeyond(lastStreamId: number, error: HeddleError): void {
    for (const stream of this.table.all()) {
      if (stream.id <= lastStreamId) continue
      this.#resets.remember(stream.id)
      this.close(stream, error)
    }
    for (let stream = this.reserved.first; stream !== undefined; stream = this.reserved.first) this.close(stream, error)
  }

  /** A handler that throws loses its exchange, nothing else. */
  handlerFailed(stream: Stream, cause: unknown): void {
    const error = new CancelledError(CancelReason.InternalError, 'the handler failed', { cause })
    if (stream.complete && stream.error === undefined) stream.error = error
    else this.reset(stream, ErrorCode.InternalError, error)
  }
}

/** Stands in until the owner has named the handler of a new exchange. */
const noHandler: ExchangeHandler = {
  onHead() {},
  onData() {},
  onTrailers() {},
  onSent() {},
  onPriority() {},
  onClose() {},
}
