import { BufferPool, Outbox } from '../bytes/index.ts'
import type { OutboxLike } from '../http/index.ts'
import { Flag, frameHeaderSize, FrameType, putFrameHeader, writeFrameHeader, writeUint32 } from './frame.ts'

/** What fits without growing: the answers of one turn, as a rule. */
export const stagingSize = 65_536
const pool = new BufferPool(stagingSize, 64)
const empty = Buffer.alloc(0)

/**
 * Frames in the order in which they must leave: control frames, heads (the field compression depends on
 * their order), and content that needs to wait for nothing. Takes its buffer from the process's pool at
 * the first frame of a turn.
 */
export class Staging {
  readonly out: Outbox
  /** Frames written, those the sender writes elsewhere included. */
  frames: number
  /** Frames since the last flush that the peer provoked: acknowledgements and resets. */
  provoked: number
  /** Counts the flushes: what was staged at a lower number has left. */
  flushes: number
  // The last frame, if it is DATA that more of its stream may be added to: the stream, and where the frame begins.
  #dataStream: number
  #dataStart: number

  constructor() {
    this.out = new Outbox(empty, Infinity)
    this.frames = 0
    this.provoked = 0
    this.flushes = 1
    this.#dataStream = 0
    this.#dataStart = 0
  }

  get length(): number {
    return this.out.length
  }

  #open(): Outbox {
    const { out } = this
    if (out.buffer === empty) out.buffer = pool.acquire()
    this.#dataStream = 0
    return out
  }

  /** Writes a frame's header and returns where its `length` octets of payload go. */
  frame(length: number, type: number, flags: number, streamId: number): Outbox {
    const out = this.#open()
    writeFrameHeader(out, length, type, flags, streamId)
    this.frames++
    return out
  }

  /** Bytes that are no frame: the preface. */
  raw(bytes: Uint8Array): void {
    this.#open().writeBytes(bytes, 0, bytes.length)
  }

  /** Content, or the end of it; what follows DATA of the same stream is added to that frame, of `most` octets at most. */
  data(streamId: number, buffer: Uint8Array, start: number, limit: number, end: boolean, most: number): void {
    const { out } = this
    const count = limit - start
    if (this.#dataStream === streamId) {
      const length = out.length - this.#dataStart - frameHeaderSize + count
      if (length <= most) {
        out.writeBytes(buffer, start, limit)
        putFrameHeader(out.buffer, this.#dataStart, length, FrameType.Data, end ? Flag.EndStream : 0, streamId)
        if (end) this.#dataStream = 0
        return
      }
    }
    const at = out.length
    this.frame(count, FrameType.Data, end ? Flag.EndStream : 0, streamId).writeBytes(buffer, start, limit)
    if (end) return
    this.#dataStream = streamId
    this.#dataStart = at
  }

  goaway(lastStreamId: number, code: number, debug: string): void {
    const out = this.frame(8 + debug.length, FrameType.Goaway, 0, 0)
    writeUint32(out, lastStreamId)
    writeUint32(out, code)
    out.writeLatin1(debug)
  }

  reset(streamId: number, code: number): void {
    writeUint32(this.frame(4, FrameType.RstStream, 0, streamId), code)
    this.provoked++
  }

  ping(flags: number, first: number, second: number): void {
    const out = this.frame(8, FrameType.Ping, flags, 0)
    writeUint32(out, first)
    writeUint32(out, second)
    if (flags === Flag.Ack) this.provoked++
  }

  settingsAck(): void {
    this.frame(0, FrameType.Settings, Flag.Ack, 0)
    this.provoked++
  }

  /** Leaves room for the header of HEADERS; the caller writes a field block and calls `finishBlock`. */
  startBlock(): Outbox {
    const out = this.#open()
    out.reserve(frameHeaderSize)
    out.length += frameHeaderSize
    return out
  }

  /** Frames the block that begins at `start`. */
  finishBlock(start: number, streamId: number, end: boolean, maxFrameSize: number): void {
    const { out } = this
    const length = out.length - start
    const endFlag = end ? Flag.EndStream : 0
    this.frames++
    if (length <= maxFrameSize) {
      putFrameHeader(out.buffer, start - frameHeaderSize, length, FrameType.Headers, Flag.EndHeaders | endFlag, streamId)
      return
    }
    // RFC 9113 §4.3: one HEADERS and as many CONTINUATION frames as it takes, with nothing between them.
    const block = Uint8Array.prototype.slice.call(out.buffer, start, out.length)
    putFrameHeader(out.buffer, start - frameHeaderSize, maxFrameSize, FrameType.Headers, endFlag, streamId)
    out.length = start + maxFrameSize
    for (let at = maxFrameSize; at < block.length; at += maxFrameSize) {
      const limit = Math.min(at + maxFrameSize, block.length)
      writeFrameHeader(out, limit - at, FrameType.Continuation, limit === block.length ? Flag.EndHeaders : 0, streamId)
      out.writeBytes(block, at, limit)
      this.frames++
    }
  }

  /** Moves everything to `out` and gives the buffer back. */
  flush(out: OutboxLike): void {
    const staged = this.out
    if (staged.length > 0) {
      out.writeBytes(staged.buffer, 0, staged.length)
      staged.length = 0
      this.provoked = 0
      this.flushes++
    }
    this.#release()
  }

  /** Forgets everything. */
  clear(): void {
    this.out.length = 0
    this.#release()
  }

  #release(): void {
    this.#dataStream = 0
    const staged = this.out
    if (staged.buffer === empty) return
    pool.release(staged.buffer)
    staged.buffer = empty
  }
}
