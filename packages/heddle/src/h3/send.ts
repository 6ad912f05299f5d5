import { BufferPool, latin1Write, Outbox, varintSize, writeVarint } from '../bytes/index.ts'
import { priorityValue, type Fields, type Head, type Priority } from '../http/index.ts'
import type { QuicStream } from '../quic/index.ts'
import type { Connection } from './connection.ts'
import { frameHeaderSize, FrameType, largestFrameHeader, writeFrameHeader } from './frame.ts'
import { HeldContent } from './held-content.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'

/** Pieces of content up to this are put together to one frame in a run, octets. */
const smallPiece = 1_024
/** Where the content of such a frame begins: its header has a type of one octet and a length of two. */
const stagedStart = 3
const stagedPool = new BufferPool(4_096, 256)
/** Less than this is no progress for a peer that is slow to take content. */
const smallProgress = 64

/**
 * What a connection sends on request streams. All of it is queued on the QUIC stream within the call, but for content
 * that is held back; when it leaves, and in which order, is QUIC's business.
 */
export class Sender {
  /**
   * Octets queued on the streams of this connection that have not left, those of exempt streams and content that the
   * sender gave away aside.
   */
  queued: number
  /** When something last left on any stream. */
  sentAt: number
  readonly #owner: Connection
  readonly #out: Outbox
  /** Streams with small pieces of content. */
  readonly #staged: Stream[]

  constructor(owner: Connection) {
    this.queued = 0
    this.sentAt = owner.now
    this.#owner = owner
    this.#out = new Outbox(Buffer.allocUnsafeSlow(1024), Infinity)
    this.#staged = []
  }

  // ── Heads and trailers ──────────────────────────────────────────────────────────────────────────

  /** `head` can be sent: it was validated. */
  sendRequest(stream: Stream, head: Head, end: boolean): void {
    const out = this.#startBlock()
    this.#owner.qpack.encoder.writeRequest(stream.id, head, out)
    this.#finishBlock(stream, end)
  }

  /** `opens`: a tunnel. Throws UsageError, having queued nothing, for fields that cannot be sent. */
  sendResponse(stream: Stream, head: Head, end: boolean, opens: boolean): void {
    const { qpack, date } = this.#owner
    const { status } = head
    const out = this.#startBlock()
    // RFC 9110 §8.6: no content-length in 1xx, 204, and what opens a tunnel. RFC 9110 §6.6.1: no date is owed in 1xx.
    qpack.encoder.writeResponse(stream.id, head, status < 200 ? '' : date, opens || status < 200 || status === 204, out)
    this.#finishBlock(stream, end)
  }

  sendTrailers(stream: Stream, fields: Fields): void {
    if (stream.held) {
      const held = (stream.heldContent ??= new HeldContent())
      held.end = true
      held.trailers = fields
      stream.endQueued = true
      return
    }
    if (fields.length === 0) return this.#end(stream)
    this.#flush(stream, false)
    const out = this.#startBlock()
    this.#owner.qpack.encoder.writeTrailers(stream.id, fields, out)
    this.#finishBlock(stream, true)
    this.#owner.wake()
  }

  /** The frame's header goes in front of the block once its length is known. */
  #startBlock(): Outbox {
    const out = this.#out
    out.length = largestFrameHeader
    return out
  }

  #finishBlock(stream: Stream, end: boolean): void {
    const { buffer, length } = this.#out
    // What the block refers to goes first.
    this.#owner.qpack.flush()
    const size = length - largestFrameHeader
    const start = largestFrameHeader - frameHeaderSize(FrameType.Headers, size)
    writeFrameHeader(buffer, start, FrameType.Headers, size)
    this.#addOverhead(stream, length - start)
    if (end) stream.endQueued = true
    ;(stream.quic as QuicStream).send(buffer, start, length, end)
  }

  // ── Priorities ──────────────────────────────────────────────────────────────────────────────────

  prioritize(stream: Stream, { urgency, incremental }: Priority): void {
    stream.urgency = urgency
    stream.incremental = incremental
    stream.quic?.setPriority(urgency, incremental)
  }

  /** Client: RFC 9218 §7.2. */
  sendPriorityUpdate(stream: Stream): void {
    const value = priorityValue(stream)
    const length = varintSize(stream.id) + value.length
    const frame = Buffer.alloc(frameHeaderSize(FrameType.PriorityUpdate, length) + length)
    const at = writeVarint(frame, writeFrameHeader(frame, 0, FrameType.PriorityUpdate, length), stream.id)
    latin1Write(frame, value, at)
    this.#owner.streams.sendControl(frame)
    this.#owner.wake()
  }

  // ── Content ─────────────────────────────────────────────────────────────────────────────────────

  /** Takes content; false: the caller waits for `onSent(…, true)`. `owned`: the bytes stay as they are until sent. */
  sendContent(stream: Stream, buffer: Uint8Array, start: number, limit: number, end: boolean, owned: boolean): boolean {
    const owner = this.#owner
    const count = limit - start
    let takes = true
    if (stream.held) takes = this.#hold(stream, buffer, start, limit, end, owned)
    else if (count > 0 && count <= smallPiece) takes = this.#stage(stream, buffer, start, limit, end)
    else if (count > 0) takes = this.#sendFrame(stream, buffer, start, limit, end, owned)
    else if (end) this.#end(stream)
    else takes = !stream.quicWaits
    owner.wake()
    if (!takes) stream.senderWaits = true
    return takes
  }

  #hold(stream: Stream, buffer: Uint8Array, start: number, limit: number, end: boolean, owned: boolean): boolean {
    const held = (stream.heldContent ??= new HeldContent())
    held.add(buffer, start, limit, owned)
    if (end) {
      held.end = true
      stream.endQueued = true
    }
    return held.length < this.#owner.limits.sendBuffer
  }

  /** Puts a small piece behind those of this run. */
  #stage(stream: Stream, buffer: Uint8Array, start: number, limit: number, end: boolean): boolean {
    if (stream.staged !== undefined && stream.stagedLimit + limit - start > stream.staged.length) this.#flush(stream, false)
    let { staged } = stream
    if (staged === undefined) {
      staged = stream.staged = stagedPool.acquire()
      stream.stagedLimit = stagedStart
      this.#staged.push(stream)
    }
    let at = stream.stagedLimit
    for (let i = start; i < limit; i++) staged[at++] = buffer[i] as number
    stream.stagedLimit = at
    if (end) this.#flush(stream, true)
    return !stream.quicWaits
  }

  /** A run ends: what was put together leaves. */
  flushAll(): void {
    const streams = this.#staged
    if (streams.length === 0) return
    for (const stream of streams) this.#flush(stream, false)
    streams.length = 0
  }

  #flush(stream: Stream, end: boolean): void {
    const { staged, stagedLimit } = stream
    if (staged === undefined) return
    stream.staged = undefined
    const count = stagedLimit - stagedStart
    const start = stagedStart - frameHeaderSize(FrameType.Data, count)
    writeFrameHeader(staged, start, FrameType.Data, count)
    this.#addOverhead(stream, stagedStart - start)
    this.#addContent(stream, count, false)
    if (end) stream.endQueued = true
    stream.quicWaits = !(stream.quic as QuicStream).send(staged, start, stagedLimit, end)
    stagedPool.release(staged)
  }

  #sendFrame(stream: Stream, buffer: Uint8Array, start: number, limit: number, end: boolean, owned: boolean): boolean {
    this.#flush(stream, false)
    const quic = stream.quic as QuicStream
    const count = limit - start
    const header = this.#out.buffer
    const size = writeFrameHeader(header, 0, FrameType.Data, count)
    this.#addOverhead(stream, size)
    this.#addContent(stream, count, owned)
    quic.send(header, 0, size, false)
    if (end) stream.endQueued = true
    const takes = owned ? quic.sendOwned(buffer, end) : quic.send(buffer, start, limit, end)
    stream.quicWaits = !takes
    return takes
  }

  #end(stream: Stream): void {
    this.#flush(stream, false)
    const quic = stream.quic as QuicStream
    stream.endQueued = true
    quic.send(this.#out.buffer, 0, 0, true)
    // A FIN needs no window: with nothing in front of it, it leaves.
    if (stream.layout.unsent === 0) this.#ended(stream)
    this.#owner.wake()
  }

  #ended(stream: Stream): void {
    // A client waits for the answer from now on.
    if (!this.#owner.isServer) this.#owner.sentNow(stream)
    this.#owner.exchanges.sendingEnded(stream)
  }

  #addOverhead(stream: Stream, byteCount: number): void {
    const { layout } = stream
    if (layout.unsent === 0) this.#owner.sentNow(stream)
    layout.addOverhead(byteCount)
    if (!stream.queueExempt) this.queued += byteCount
  }

  #addContent(stream: Stream, byteCount: number, owned: boolean): void {
    stream.layout.addContent(byteCount, owned)
    if (!stream.queueExempt && !owned) this.queued += byteCount
  }

  /** Ends the message here and now; nothing is held. */
  endAtOnce(stream: Stream): void {
    if (stream.sending !== Phase.Ended && !stream.endQueued) this.#end(stream)
  }

  /** Content that was held back may go. */
  release(stream: Stream): void {
    if (!stream.held) return
    const held = stream.heldContent
    stream.held = false
    stream.heldUntil = 0
    stream.heldContent = undefined
    if (held === undefined) return
    const last = held.chunks.length - 1
    const endsWithContent = held.end && held.trailers === undefined && last >= 0
    for (const [i, chunk] of held.chunks.entries()) this.#sendFrame(stream, chunk, 0, chunk.length, endsWithContent && i === last, true)
    if (held.end && !endsWithContent) {
      if (held.trailers === undefined) this.#end(stream)
      else this.sendTrailers(stream, held.trailers)
    }
  }

  /** Drops what `stream` still had to send. */
  forget(stream: Stream): void {
    if (!stream.queueExempt) this.queued -= stream.layout.pinned
    stream.layout.clear()
    if (stream.staged !== undefined) {
      stagedPool.release(stream.staged)
      stream.staged = undefined
    }
    stream.held = false
    stream.heldUntil = 0
    stream.heldContent = undefined
    stream.senderWaits = false
  }

  // ── What QUIC tells ─────────────────────────────────────────────────────────────────────────────

  /** `byteCount` octets of the stream have left. `writable`: QUIC takes more. */
  sent(stream: Stream, byteCount: number, writable: boolean): void {
    const owner = this.#owner
    owner.continueRun()
    if (stream.closed) return
    const { layout } = stream
    const before = layout.pinned
    const content = layout.take(byteCount)
    if (!stream.queueExempt) this.queued -= before - layout.pinned
    if (byteCount >= smallProgress || layout.unsent === 0) {
      this.sentAt = owner.now
      stream.sentAt = owner.now
    }
    if (writable) stream.quicWaits = false
    // What was told to wait while it was held back may go on as soon as any of it leaves.
    const wakes = stream.senderWaits && !stream.quicWaits && !stream.held
    if (wakes) stream.senderWaits = false
    if (content > 0 || wakes) this.tellSent(stream, content, wakes)
    if (stream.endQueued && !stream.held && layout.unsent === 0 && stream.sending !== Phase.Ended && !stream.closed) this.#ended(stream)
  }

  tellSent(stream: Stream, byteCount: number, writable: boolean): void {
    try {
      stream.handler.onSent(byteCount, writable)
    } catch (error) {
      this.#owner.exchanges.handlerFailed(stream, error)
    }
  }
}
