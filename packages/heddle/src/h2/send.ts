import { priorityValue, type Fields, type Head, type OutboxLike, type Priority } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ContentQueue } from './content-queue.ts'
import { Flag, frameHeaderSize, FrameType, putFrameHeader, writeUint32 } from './frame.ts'
import { Schedule } from './schedule.ts'
import { writeSettings } from './settings.ts'
import { Staging, stagingSize } from './staging.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'

/** The most content of one frame, whatever the peer would take: streams of one urgency share in turns of a frame. */
const largestContent = 32_768
const none = new Uint8Array(0)
/** Less than this is no progress for a peer that is slow to take content. */
const smallProgress = 64

/**
 * What a connection sends. Control frames and heads go to `staging` in the order of the calls. Content
 * is framed as late as `transmit`, in the order of the schedule, so that priorities and cancellations
 * still count; only when nothing else waits it is staged at once, behind its head.
 */
export class Sender {
  readonly staging: Staging
  readonly schedule: Schedule
  /** When the transport began to refuse what waits; Infinity: it does not. */
  blockedSince: number
  /** When content was last framed on any stream. */
  sentAt: number
  readonly #owner: Connection
  /** Octets allocated for copies of content, that of exempt streams aside. */
  #copied: number

  constructor(owner: Connection) {
    this.staging = new Staging()
    this.schedule = new Schedule()
    this.blockedSince = Infinity
    this.sentAt = owner.now
    this.#owner = owner
    this.#copied = 0
  }

  /**
   * Octets this connection pins for sending, as far as the peer can make it do so: what a client has to upload is its
   * program's doing.
   */
  get pinned(): number {
    return (this.#owner.isServer ? this.#copied : 0) + this.staging.length
  }

  // ── Heads and control frames ────────────────────────────────────────────────────────────────────

  stageSettings(settings: readonly number[]): void {
    writeSettings(this.staging, settings)
  }

  /** Throws UsageError, having staged nothing, for fields that cannot be sent. */
  stageRequest(streamId: number, head: Head, end: boolean): void {
    const { encoder, peer } = this.#owner
    const out = this.staging.startBlock()
    const start = out.length
    try {
      encoder.writeRequest(head, out)
    } catch (error) {
      out.length = start - frameHeaderSize
      throw error
    }
    this.staging.finishBlock(start, streamId, end, peer.maxFrameSize)
  }

  /** `opens`: a tunnel. Throws UsageError, having staged nothing, for fields that cannot be sent. */
  sendResponse(stream: Stream, head: Head, end: boolean, opens: boolean): void {
    this.stageResponse(stream.id, head, end, opens)
    stream.stagedFlush = this.staging.flushes
  }

  stageResponse(streamId: number, head: Head, end: boolean, opens: boolean): void {
    const { encoder, peer, date } = this.#owner
    const { status } = head
    const out = this.staging.startBlock()
    const start = out.length
    try {
      // RFC 9110 §8.6: no content-length in 1xx, 204, and what opens a tunnel. RFC 9110 §6.6.1: no date is owed in 1xx.
      encoder.writeResponse(head, status < 200 ? '' : date, opens || status < 200 || status === 204, out)
    } catch (error) {
      out.length = start - frameHeaderSize
      throw error
    }
    this.staging.finishBlock(start, streamId, end, peer.maxFrameSize)
  }

  stageWindowUpdate(streamId: number, increment: number): void {
    if (increment > 0) writeUint32(this.staging.frame(4, FrameType.WindowUpdate, 0, streamId), increment)
  }

  stagePriorityUpdate(streamId: number, priority: Priority): void {
    // RFC 9218 §7.1
    const value = priorityValue(priority)
    const out = this.staging.frame(4 + value.length, FrameType.PriorityUpdate, 0, 0)
    writeUint32(out, streamId)
    out.writeLatin1(value)
    this.#owner.markDirty()
  }

  prioritize(stream: Stream, { urgency, incremental }: Priority): void {
    const { isReady } = stream
    this.schedule.remove(stream)
    stream.urgency = urgency
    stream.incremental = incremental
    if (isReady) this.schedule.add(stream)
  }

  // ── Content ─────────────────────────────────────────────────────────────────────────────────────

  /** Takes content; false: the caller waits for `onSent(…, true)`. `owned`: the bytes stay as they are until sent. */
  sendContent(stream: Stream, buffer: Uint8Array, start: number, limit: number, end: boolean, owned: boolean): boolean {
    const owner = this.#owner
    const count = limit - start
    if (stream.pending === 0 && !stream.held && (count === 0 ? end : this.#leavesAtOnce(stream, count))) {
      this.staging.data(stream.id, buffer, start, limit, end, owner.peer.maxFrameSize)
      stream.stagedFlush = this.staging.flushes
      stream.sendWindow -= count
      owner.windows.sendWindow -= count
      if (count > 0) this.#report(stream, count)
      if (end) this.#ended(stream)
      owner.markDirty()
      return true
    }
    if (end) stream.endQueued = true
    if (count > 0) this.#enqueue(stream, buffer, start, limit, owned)
    owner.markDirty()
    if (stream.pending < owner.limits.sendBuffer) return true
    stream.senderWaits = true
    return false
  }

  #leavesAtOnce(stream: Stream, count: number): boolean {
    const { windows, peer } = this.#owner
    return (
      this.schedule.length === 0 &&
      count <= stream.sendWindow &&
      count <= windows.sendWindow &&
      count <= peer.maxFrameSize &&
      this.staging.length + count <= stagingSize - frameHeaderSize
    )
  }

  #enqueue(stream: Stream, buffer: Uint8Array, start: number, limit: number, owned: boolean): void {
    const queue = (stream.queue ??= new ContentQueue())
    if (stream.pending === 0) this.#owner.sentNow(stream)
    stream.pending += limit - start
    if (owned) queue.pushOwned(buffer)
    else {
      const before = queue.pinned
      queue.pushCopy(buffer, start, limit)
      if (!stream.queueExempt) this.#copied += queue.pinned - before
    }
    this.maybeReady(stream)
  }

  sendTrailers(stream: Stream, fields: Fields): void {
    stream.endQueued = true
    stream.trailers = fields
    this.maybeEnd(stream)
    this.#owner.markDirty()
  }

  /** Puts `stream` among those that can send, if it can. */
  maybeReady(stream: Stream): void {
    if (!stream.isReady && stream.pending > 0 && stream.sendWindow > 0 && !stream.held) this.schedule.add(stream)
  }

  /** Stages the end of the message once nothing is in front of it: it needs no window. */
  maybeEnd(stream: Stream): void {
    if (!stream.endQueued || stream.pending > 0 || stream.held) return
    const { staging } = this
    const { trailers } = stream
    if (trailers === undefined || trailers.length === 0) staging.data(stream.id, none, 0, 0, true, this.#owner.peer.maxFrameSize)
    else {
      const { encoder, peer } = this.#owner
      const out = staging.startBlock()
      const start = out.length
      encoder.writeTrailers(trailers, out)
      staging.finishBlock(start, stream.id, true, peer.maxFrameSize)
    }
    stream.stagedFlush = staging.flushes
    this.#ended(stream)
  }

  #ended(stream: Stream): void {
    stream.sending = Phase.Ended
    stream.endQueued = false
    stream.trailers = undefined
    // A client waits for the answer from now on.
    if (!this.#owner.isServer) this.#owner.sentNow(stream)
    this.#owner.exchanges.sendingEnded(stream)
  }

  /** Ends the message here and now; nothing is pending. */
  endAtOnce(stream: Stream): void {
    if (stream.sending === Phase.Ended) return
    stream.endQueued = true
    this.maybeEnd(stream)
  }

  /** Content that was held back may go. */
  release(stream: Stream): void {
    if (!stream.held) return
    stream.held = false
    stream.heldUntil = 0
    stream.sentAt = this.#owner.now
    this.maybeReady(stream)
    this.maybeEnd(stream)
  }

  /** From now on `stream` does not count for `pinned`. */
  exempt(stream: Stream): void {
    if (stream.queueExempt) return
    stream.queueExempt = true
    if (stream.queue !== undefined) this.#copied -= stream.queue.pinned
  }

  /** Drops what `stream` still had to send. */
  forget(stream: Stream): void {
    this.schedule.remove(stream)
    if (stream.queue !== undefined) {
      if (!stream.queueExempt) this.#copied -= stream.queue.pinned
      stream.queue.clear()
      stream.queue = undefined
    }
    stream.pending = 0
    stream.endQueued = false
    stream.trailers = undefined
    stream.held = false
    stream.senderWaits = false
  }

  // ── transmit ────────────────────────────────────────────────────────────────────────────────────

  /** Moves what may leave to `out`; true: more waits for room. */
  transmit(out: OutboxLike): boolean {
    const owner = this.#owner
    owner.credit.stage()
    if (out.room === 0) {
      const waits = this.#waits
      if (waits && this.blockedSince === Infinity) this.blockedSince = owner.now
      return waits
    }
    this.blockedSince = Infinity
    for (;;) {
      // In every round: who is told something may have begun another stream, whose head leaves now.
      if (!owner.isServer) owner.exchanges.lastSentStreamId = owner.exchanges.nextStreamId - 2
      this.staging.flush(out)
      if (this.schedule.length > 0) this.#pump(out)
      // What ends content was staged behind it.
      this.staging.flush(out)
      if (!owner.notices.hasReports) break
      owner.notices.tellReports()
      if (out.room === 0) break
      owner.credit.stage()
    }
    return this.#waits
  }

  get #waits(): boolean {
    return this.staging.length > 0 || (this.schedule.length > 0 && this.#owner.windows.sendWindow > 0)
  }

  #pump(out: OutboxLike): void {
    const { schedule } = this
    const { windows } = this.#owner
    while (windows.sendWindow > 0 && out.room > 0) {
      const stream = schedule.first
      if (stream === undefined) return
      this.#frameContent(stream, out)
      if (stream.pending === 0 || stream.sendWindow <= 0) schedule.remove(stream)
      else schedule.rotate(stream)
      this.maybeEnd(stream)
    }
  }

  #frameContent(stream: Stream, out: OutboxLike): void {
    const owner = this.#owner
    const { windows, peer, now } = owner
    const queue = stream.queue as ContentQueue
    const most = Math.min(stream.sendWindow, windows.sendWindow, peer.maxFrameSize, largestContent, out.room)
    const count = stream.pending < most ? stream.pending : most
    const end = stream.endQueued && count === stream.pending && stream.trailers === undefined
    out.reserve(frameHeaderSize + count)
    putFrameHeader(out.buffer, out.length, count, FrameType.Data, end ? Flag.EndStream : 0, stream.id)
    out.length += frameHeaderSize
    this.staging.frames++
    const before = queue.pinned
    queue.take(out, count)
    if (!stream.queueExempt) this.#copied += queue.pinned - before
    stream.pending -= count
    stream.sendWindow -= count
    windows.sendWindow -= count
    if (count >= smallProgress || stream.pending === 0) {
      this.sentAt = now
      stream.sentAt = now
    }
    this.#report(stream, count)
    if (end) {
      stream.stagedFlush = 0
      this.#ended(stream)
    }
  }

  #report(stream: Stream, byteCount: number): void {
    stream.unreported += byteCount
    this.#owner.notices.reportLater(stream)
  }

  /** The transport takes nothing any more: what is staged goes nowhere. */
  drop(): void {
    this.staging.clear()
    this.blockedSince = Infinity
  }
}
