import { BufferPool } from '../bytes/index.ts'
import type { OutboxLike } from '../http/index.ts'

/** Buffers for what waits to be sent: a head and a small body fit the small ones, streamed content the large. */
const smallBuffers = new BufferPool(8_192, 256)
const largeBuffers = new BufferPool(65_536, 32)
const nothing = Buffer.alloc(0)
/** Less room than this at the end of a buffer is not worth a piece of its own. */
const leastUse = 1_024

/** Bytes that wait in front of the tail: a buffer that filled up, or a chunk whose owner gave it away. */
class Segment {
  readonly buffer: Uint8Array
  start: number
  readonly limit: number
  /** The pool's buffer goes back to it when the segment is sent. */
  readonly pooled: boolean

  constructor(buffer: Uint8Array, start: number, limit: number, pooled: boolean) {
    this.buffer = buffer
    this.start = start
    this.limit = limit
    this.pooled = pooled
  }
}

/**
 * What a connection has to send and has not handed to the driver, in order. Heads and small content
 * are written straight into a pooled tail buffer, so the answers of one turn lie side by side and
 * leave with one copy; an idle connection holds no buffer.
 */
export class SendQueue {
  /** The tail: bytes `buffer[start, limit)`; the next byte goes to `buffer[limit]`. */
  buffer: Buffer
  start: number
  limit: number
  /** Octets ever queued and ever taken; they count on over the life of the connection. */
  queued: number
  taken: number
  /** `taken` may not pass this: what is behind it is held back. Infinity: nothing is. */
  holdAt: number
  private segments: Segment[]
  private first: number
  /** A segment in front still refers to the tail's buffer. */
  private shared: boolean

  constructor() {
    this.buffer = nothing
    this.start = 0
    this.limit = 0
    this.queued = 0
    this.taken = 0
    this.holdAt = Infinity
    this.segments = []
    this.first = 0
    this.shared = false
  }

  /** Octets that wait. */
  get length(): number {
    return this.queued - this.taken
  }

  /** True if something may be taken now. */
  get ready(): boolean {
    return this.taken < this.queued && this.taken < this.holdAt
  }

  /** Makes room for `byteCount` octets at `buffer[limit]`; may replace `buffer`. */
  reserve(byteCount: number): void {
    if (this.buffer.length - this.limit >= byteCount) return
    if (this.start < this.limit) this.segments.push(new Segment(this.buffer, this.start, this.limit, true))
    else if (!this.shared) release(this.buffer)
    this.buffer = acquire(byteCount, this.segments.length > this.first)
    this.start = 0
    this.limit = 0
    this.shared = false
  }

  /** Counts what was written up to `buffer[limit]`. */
  commit(limit: number): void {
    this.queued += limit - this.limit
    this.limit = limit
  }

  /** Queues a copy of `buffer[start, limit)`. */
  append(buffer: Uint8Array, start: number, limit: number): void {
    while (start < limit) {
      const wanted = Math.min(limit - start, largeBuffers.size)
      if (this.buffer.length - this.limit < Math.min(wanted, leastUse)) this.reserve(wanted)
      const count = Math.min(wanted, this.buffer.length - this.limit)
      copy.call(buffer, this.buffer, this.limit, start, start + count)
      this.limit += count
      this.queued += count
      start += count
    }
  }

  /** Queues `chunk` itself. */
  appendOwned(chunk: Uint8Array): void {
    if (this.start < this.limit) {
      // The tail's buffer goes on behind the chunk, and is given back with the tail, which leaves last.
      this.segments.push(new Segment(this.buffer, this.start, this.limit, false))
      this.start = this.limit
      this.shared = true
    }
    this.segments.push(new Segment(chunk, 0, chunk.length, false))
    this.queued += chunk.length
  }

  /** Moves what fits to `out`, in order. Returns the octets moved. */
  take(out: OutboxLike): number {
    const before = this.taken
    let budget = Math.min(out.room, this.holdAt - this.taken)
    while (this.first < this.segments.length && budget > 0) {
      const segment = this.segments[this.first] as Segment
      const count = Math.min(budget, segment.limit - segment.start)
      move(segment.buffer, segment.start, count, out)
      segment.start += count
      this.taken += count
      budget -= count
      if (segment.start === segment.limit) this.dropFirst(segment)
    }
    if (this.first === this.segments.length && this.start < this.limit && budget > 0) {
      const count = Math.min(budget, this.limit - this.start)
      move(this.buffer, this.start, count, out)
      this.start += count
      this.taken += count
    }
    if (this.taken === this.queued) this.letGo()
    return this.taken - before
  }

  /** Throws away what waits. */
  clear(): void {
    for (let i = this.first; i < this.segments.length; i++) {
      const segment = this.segments[i] as Segment
      if (segment.pooled) release(segment.buffer as Buffer)
    }
    this.segments = []
    this.first = 0
    this.taken = this.queued
    this.letGo()
  }

  private dropFirst(segment: Segment): void {
    if (segment.pooled) release(segment.buffer as Buffer)
    this.first++
    if (this.first === this.segments.length) {
      this.segments.length = 0
      this.first = 0
    } else if (this.first === 64) {
      this.segments.splice(0, 64)
      this.first = 0
    }
  }

  /** Nothing waits: no segment refers to the tail's buffer any more. */
  private letGo(): void {
    release(this.buffer)
    this.buffer = nothing
    this.start = 0
    this.limit = 0
    this.shared = false
  }
}

function move(buffer: Uint8Array, start: number, count: number, out: OutboxLike): void {
  out.reserve(count)
  copy.call(buffer, out.buffer, out.length, start, start + count)
  out.length += count
}

function acquire(byteCount: number, behindOthers: boolean): Buffer {
  if (byteCount <= smallBuffers.size && !behindOthers) return smallBuffers.acquire()
  if (byteCount <= largeBuffers.size) return largeBuffers.acquire()
  return Buffer.allocUnsafeSlow(byteCount)
}

function release(buffer: Buffer): void {
  if (buffer.length === smallBuffers.size) smallBuffers.release(buffer)
  else if (buffer.length === largeBuffers.size) largeBuffers.release(buffer)
}

// Copies with offsets, and makes no view on the way.
const { copy } = Buffer.prototype as unknown as {
  copy(this: Uint8Array, target: Uint8Array, at: number, start: number, limit: number): number
}
