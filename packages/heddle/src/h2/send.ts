import { BufferPool, List, Outbox } from '../bytes/index.ts'
import type { Fields, Head, Instant, OutboxLike, Priority } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { Flag, frameHeaderSize, FrameType, putFrameHeader, writeFrameHeader, writeUint32 } from './frame.ts'
import { writeSettings } from './settings.ts'
import { Phase, type Stream } from './stream.ts'

/** Content goes straight behind its head while less than this waits: small answers need no queue of their own. */
const stagingSize = 16_384
const pool = new BufferPool(stagingSize, 256)
const empty = Buffer.alloc(0)

/**
 * What a connection wants to send. Control frames and heads go to `staging` in the order of the calls
 * (field compression depends on it). Content is framed as late as `transmit`, by urgency, so that
 * priorities and cancellations still count; only when nothing else waits it goes to `staging` at once.
 */
export class Sender {
  readonly owner: Connection
  readonly staging: Outbox
  /** Frames staged since the last `transmit`, of those a peer provokes: acks, resets, credit. */
  provoked: number
  /** Frames written in all. */
  frames: number
  /** Octets of content held as our own copies. */
  copied: number
  /** Streams with content (or an end) to send and a window for it, by urgency: those served one by one, and those in turns. */
  readonly #sequential: readonly List<Stream>[]
  readonly #incremental: readonly List<Stream>[]
  #ready: number
  /** Streams whose handler is to be told of framed content. */
  readonly #reports: Stream[]
  readonly #credits: Stream[]

  constructor(owner: Connection) {
    this.owner = owner
    this.staging = new Outbox(empty, Infinity)
    this.provoked = 0
    this.frames = 0
    this.copied = 0
    this.#sequential = Array.from({ length: 8 }, () => new List<Stream>())
    this.#incremental = Array.from({ length: 8 }, () => new List<Stream>())
    this.#ready = 0
    this.#reports = []
    this.#credits = []
  }

  /** Octets this connection pins for sending. */
  get pinned(): number {
    return this.copied + this.staging.length
  }

  #open(): Outbox {
    const { staging } = this
    if (staging.buffer === empty) staging.buffer = pool.acquire()
    return staging
  }

  stageFrame(length: number, type: number, flags: number, streamId: number): Outbox {
    const out = this.#open()
    writeFrameHeader(out, length, type, flags, streamId)
    this.frames++
    return out
  }

  /** Stages bytes that are no frame: the preface. */
  stageRaw(bytes: Uint8Array): void {
    this.#open().writeBytes(bytes, 0, bytes.length)
  }

  stageSettings(settings: readonly number[]): void {
    writeSettings(this.#open(), settings)
    this.frames++
  }

  stageGoaway(lastStreamId: number, code: number): void {
    const out = this.stageFrame(8, FrameType.Goaway, 0, 0)
    writeUint32(out, lastStreamId)
    writeUint32(out, code)
  }

  stageReset(streamId: number, code: number): void {
    writeUint32(this.stageFrame(4, FrameType.RstStream, 0, streamId), code)
    this.provoked++
  }

  stageRequest(stream: Stream, head: Head, end: boolean): void {
    const start = this.#startBlock()
    this.owner.encoder.writeRequest(head, this.staging)
    this.#finishBlock(start, stream.id, end)
  }

  stageResponse(stream: Stream, head: Head, end: boolean): void {
    const { owner } = this
    const start = this.#startBlock()
    owner.encoder.writeResponse(head.status, head.fields, head.status < 200 ? '' : owner.dateFor(head.fields), this.staging)
    this.#finishBlock(start, stream.id, end)
  }

  #startBlock(): number {
    const out = this.#open()
    out.reserve(frameHeaderSize)
    out.length += frameHeaderSize
    return out.length
  }

  #finishBlock(start: number, streamId: number, end: boolean): void {
    const out = this.staging
    const most = this.owner.peer.maxFrameSize
    const length = out.length - start
    const endFlag = end ? Flag.EndStream : 0
    this.frames++
    if (length <= most) {
      putFrameHeader(out.buffer, start - frameHeaderSize, length, FrameType.Headers, Flag.EndHeaders | endFlag, streamId)
      return
    }
    // RFC 9113 §4.3: one HEADERS and as many CONTINUATION frames as it takes, with nothing between them.
    const block = Uint8Array.prototype.slice.call(out.buffer, start, out.length)
    putFrameHeader(out.buffer, start - frameHeaderSize, most, FrameType.Headers, endFlag, streamId)
    out.length = start + most
    for (let at = most; at < block.length; at += most) {
      const limit = Math.min(at + most, block.length)
      writeFrameHeader(out, limit - at, FrameType.Continuation, limit === block.length ? Flag.EndHeaders : 0, streamId)
      out.writeBytes(block, at, limit)
      this.frames++
    }
  }

  sendTrailers(stream: Stream, fields: Fields): void {
    if (stream.pending > 0 || stream.heldUntil > 0) {
      stream.endQueued = true
      stream.trailers = fields
    } else this.#stageTrailers(stream, fields)
    this.owner.markDirty()
  }

  #stageTrailers(stream: Stream, fields: Fields): void {
    if (fields.length === 0) this.stageFrame(0, FrameType.Data, Flag.EndStream, stream.id)
    else {
      const start = this.#startBlock()
      this.owner.encoder.writeTrailers(fields, this.staging)
      this.#finishBlock(start, stream.id, true)
    }
    stream.trailers = undefined
    this.#ended(stream)
  }

  #ended(stream: Stream): void {
    stream.sending = Phase.Ended
    stream.endQueued = false
    this.owner.sendingEnded(stream)
  }

  /** Takes content; false: the caller waits for `onSent(…, true)`. `owned`: the bytes stay as they are until sent. */
  sendData(stream: Stream, buffer: Uint8Array, start: number, limit: number, end: boolean, owned: boolean): boolean {
    const { owner } = this
    const count = limit - start
    if (stream.pending === 0) stream.sentAt = owner.now
    if (
      stream.pending === 0 &&
      stream.heldUntil === 0 &&
      this.#ready === 0 &&
      count <= stream.sendWindow.size &&
      count <= owner.sendWindow.size &&
      count <= owner.peer.maxFrameSize &&
      this.staging.length + count <= stagingSize &&
      (count > 0 || end)
    ) {
      const out = this.stageFrame(count, FrameType.Data, end ? Flag.EndStream : 0, stream.id)
      out.writeBytes(buffer, start, limit)
      stream.sendWindow.size -= count
      owner.sendWindow.size -= count
      this.#report(stream, count)
      if (end) this.#ended(stream)
      owner.markDirty()
      return true
    }
    if (count > 0) {
      stream.chunks.push(owned ? buffer : Uint8Array.prototype.slice.call(buffer, start, limit))
      stream.pending += count
      if (!owned) {
        stream.copied += count
        this.copied += count
      }
    }
    if (end) stream.endQueued = true
    this.maybeReady(stream)
    owner.markDirty()
    if (stream.pending < owner.limits.sendBuffer) return true
    stream.senderWaits = true
    return false
  }

  #report(stream: Stream, byteCount: number): void {
    stream.unreported += byteCount
    if (stream.inReports) return
    stream.inReports = true
    this.#reports.push(stream)
  }

  /** Puts `stream` in the list of those that can send, if it can. */
  maybeReady(stream: Stream): void {
    if (stream.inReady || stream.closed || stream.heldUntil > 0) return
    if (stream.pending > 0 ? stream.sendWindow.size <= 0 : !stream.endQueued) return
    stream.inReady = true
    this.#ready++
    this.#listOf(stream).append(stream)
  }

  #listOf(stream: Stream): List<Stream> {
    return (stream.incremental ? this.#incremental : this.#sequential)[stream.urgency] as List<Stream>
  }

  #unready(stream: Stream): void {
    if (!stream.inReady) return
    stream.inReady = false
    this.#ready--
    this.#listOf(stream).remove(stream)
  }

  prioritize(stream: Stream, urgency: number, incremental: boolean): void {
    const ready = stream.inReady
    this.#unready(stream)
    stream.urgency = urgency
    stream.incremental = incremental
    if (ready) this.maybeReady(stream)
  }

  stagePriorityUpdate(stream: Stream, { urgency, incremental }: Priority): void {
    const value = `u=${urgency}${incremental ? ', i' : ''}`
    const out = this.stageFrame(4 + value.length, FrameType.PriorityUpdate, 0, 0)
    writeUint32(out, stream.id)
    out.writeLatin1(value)
    this.owner.markDirty()
  }

  /** Drops what `stream` still had to send. */
  forget(stream: Stream): void {
    this.#unready(stream)
    this.copied -= stream.copied
    stream.copied = 0
    stream.pending = 0
    stream.chunks.length = 0
    stream.firstChunk = 0
    stream.chunkOffset = 0
    stream.endQueued = false
    stream.trailers = undefined
  }

  /** A WINDOW_UPDATE for `stream` is due. */
  creditStream(stream: Stream): void {
    if (stream.inCredits) return
    stream.inCredits = true
    this.#credits.push(stream)
  }

  #stageCredits(): void {
    const { owner } = this
    for (const stream of this.#credits) {
      stream.inCredits = false
      // RFC 9113 §5.1: a stream whose peer has ended needs no window.
      if (!stream.closed && stream.receiving !== Phase.Ended) this.#stageWindowUpdate(stream.id, stream.receiveWindow.refill())
    }
    this.#credits.length = 0
    if (owner.creditDue) {
      owner.creditDue = false
      this.#stageWindowUpdate(0, owner.receiveWindow.refill())
    }
  }

  #stageWindowUpdate(streamId: number, increment: number): void {
    if (increment === 0) return
    writeUint32(this.stageFrame(4, FrameType.WindowUpdate, 0, streamId), increment)
  }

  /** Moves everything that may leave to `out`; true: more waits for room. */
  transmit(out: OutboxLike, now: Instant): boolean {
    for (;;) {
      this.#stageCredits()
      this.#flushStaging(out)
      this.#pump(out, now)
      // Trailers are staged when their content is through.
      this.#flushStaging(out)
      if (this.#reports.length === 0) break
      this.#tellReports()
    }
    return this.#ready > 0 && this.#next() !== undefined
  }

  #flushStaging(out: OutboxLike): void {
    const { staging } = this
    if (staging.length > 0) {
      out.writeBytes(staging.buffer, 0, staging.length)
      staging.length = 0
      this.provoked = 0
    }
    if (staging.buffer !== empty) {
      pool.release(staging.buffer)
      staging.buffer = empty
    }
  }

  #tellReports(): void {
    const reports = this.#reports
    for (let i = 0; i < reports.length; i++) {
      const stream = reports[i] as Stream
      stream.inReports = false
      const { unreported } = stream
      stream.unreported = 0
      const writable = stream.senderWaits && stream.pending * 2 <= this.owner.limits.sendBuffer
      if (writable) stream.senderWaits = false
      if (unreported > 0 || writable) this.owner.tellSent(stream, unreported, writable)
    }
    reports.length = 0
  }

  /** The stream to serve next: most urgent first, then those served one by one, then those in turns. */
  #next(): Stream | undefined {
    const windowless = this.owner.sendWindow.size <= 0
    for (let urgency = 0; urgency < 8; urgency++) {
      for (const list of [this.#sequential[urgency] as List<Stream>, this.#incremental[urgency] as List<Stream>]) {
        let stream = list.first
        // Without a connection window only ends can go; they need none.
        while (windowless && stream !== undefined && stream.pending > 0) stream = stream.next as Stream | undefined
        if (stream !== undefined) return stream
      }
    }
    return undefined
  }

  #pump(out: OutboxLike, now: Instant): void {
    while (this.#ready > 0 && out.room > 0) {
      const stream = this.#next()
      if (stream === undefined) return
      this.#frameContent(stream, out, now)
      if (stream.pending > 0 ? stream.sendWindow.size <= 0 : !stream.endQueued) this.#unready(stream)
      else if (stream.incremental && stream.next !== undefined) {
        // Its turn is over.
        const list = this.#listOf(stream)
        list.remove(stream)
        list.append(stream)
      }
    }
  }

  #frameContent(stream: Stream, out: OutboxLike, now: Instant): void {
    const { owner } = this
    const count = Math.max(0, Math.min(stream.pending, stream.sendWindow.size, owner.sendWindow.size, owner.peer.maxFrameSize, out.room))
    if (count > 0 || stream.trailers === undefined) {
      const end = stream.endQueued && count === stream.pending && stream.trailers === undefined
      out.reserve(frameHeaderSize + count)
      putFrameHeader(out.buffer, out.length, count, FrameType.Data, end ? Flag.EndStream : 0, stream.id)
      out.length += frameHeaderSize
      this.frames++
      this.#take(stream, out, count)
      stream.sendWindow.size -= count
      owner.sendWindow.size -= count
      stream.sentAt = now
      if (count > 0) this.#report(stream, count)
      if (end) this.#ended(stream)
    }
    if (stream.pending === 0 && stream.trailers !== undefined) this.#stageTrailers(stream, stream.trailers)
  }

  /** Moves `count` octets of content to `out`. */
  #take(stream: Stream, out: OutboxLike, count: number): void {
    let left = count
    while (left > 0) {
      const chunk = stream.chunks[stream.firstChunk] as Uint8Array
      const limit = Math.min(chunk.length, stream.chunkOffset + left)
      out.writeBytes(chunk, stream.chunkOffset, limit)
      left -= limit - stream.chunkOffset
      stream.chunkOffset = limit
      if (limit < chunk.length) break
      stream.chunkOffset = 0
      stream.chunks[stream.firstChunk++] = none
      if (stream.firstChunk === stream.chunks.length || stream.firstChunk === 64) {
        stream.chunks.splice(0, stream.firstChunk)
        stream.firstChunk = 0
      }
    }
    stream.pending -= count
    // Copies are counted as they came: the share of what is left cannot be more than what is left.
    if (stream.copied > stream.pending) {
      this.copied -= stream.copied - stream.pending
      stream.copied = stream.pending
    }
  }
}

const none = new Uint8Array(0)
