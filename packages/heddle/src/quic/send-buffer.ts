import { BufferPool, RangeSet } from '../bytes/index.ts'

/**
 * Where copies go, octets: small writes are packed behind each other. Shared by all connections, for a
 * proxy copies whatever it passes on, and new memory costs more than the copy.
 */
const pools: readonly BufferPool[] = [new BufferPool(4_096, 256), new BufferPool(8_192, 64), new BufferPool(16_384, 256)]

/** What is given away and has no more octets than this is copied after all: a copy costs less than a chunk of its own. */
const fewOctets = 512
/** What is copied between two chunks of the caller's, and has no more octets than this, gets no buffer of a pool. */
const headerSize = 64

const none = new Uint8Array(0)

interface Chunk {
  /** Empty when all of it has arrived before what lies in front of it. */
  buffer: Uint8Array
  /** The offset of `buffer[0]` in the stream. */
  readonly offset: number
  /** Behind the last octet. */
  limit: number
  /** Memory of ours, with room behind `limit` or not. */
  isOurs: boolean
}

/**
 * What a stream sends, from the first octet that is not acknowledged to the last that was written.
 *
 *     base           next           end
 *      │ acknowledged,│              │
 *      │ lost, or     │ never sent   │
 *      │ under way    │              │
 *
 * Chunks are let go as soon as all of their octets are acknowledged, whatever is missing before them: a
 * peer that never acknowledges the first octet pins no more than what is under way.
 */
export class SendBuffer {
  /** All before this offset has arrived. */
  base: number
  /** The next offset that was never sent. */
  next: number
  /** Behind the last octet written. */
  end: number
  /** Sent, and lost since. */
  readonly lost: RangeSet
  readonly #acknowledged: RangeSet
  #chunks: Chunk[]
  /** The chunk that was read last. */
  #near: number

  constructor() {
    this.base = 0
    this.next = 0
    this.end = 0
    this.lost = new RangeSet()
    this.#acknowledged = new RangeSet()
    this.#chunks = []
    this.#near = 0
  }

  /** Octets that were never sent. */
  get unsent(): number {
    return this.end - this.next
  }

  /** Octets from the first that is not acknowledged on. */
  get held(): number {
    return this.end - this.base
  }

  /** Octets of memory that are pinned. */
  get pinned(): number {
    let count = 0
    for (const { buffer } of this.#chunks) count += buffer.length
    return count
  }

  /** Appends a copy of `buffer[start, limit)`. */
  write(buffer: Uint8Array, start: number, limit: number): void {
    while (start < limit) {
      let last = this.#chunks.at(-1)
      if (last !== undefined && last.buffer.length > headerSize && !last.isOurs && limit - start <= headerSize) {
        return this.#append(new Uint8Array(buffer.subarray(start, limit)))
      }
      if (last === undefined || !last.isOurs || last.limit === last.buffer.length) {
        last = { buffer: poolOf(limit - start).acquire(), offset: this.end, limit: 0, isOurs: true }
        this.#chunks.push(last)
      }
      const count = Math.min(limit - start, last.buffer.length - last.limit)
      last.buffer.set(buffer.subarray(start, start + count), last.limit)
      last.limit += count
      start += count
      this.end += count
    }
  }

  /** Appends `chunk` itself; a small one is copied. */
  writeOwned(chunk: Uint8Array): void {
    if (chunk.length <= fewOctets) this.write(chunk, 0, chunk.length)
    else this.#append(chunk)
  }

  /** Copies `count` octets from `offset` on into `target`. They are held. */
  copy(offset: number, count: number, target: Uint8Array, at: number): void {
    let index = this.#find(offset)
    while (count > 0) {
      const { buffer, offset: first, limit } = this.#chunks[index] as Chunk
      const from = offset - first
      const part = Math.min(count, limit - from)
      target.set(buffer.subarray(from, from + part), at)
      this.#near = index++
      at += part
      offset += part
      count -= part
    }
  }

  /** Octets `[start, limit)` were lost. What arrived meanwhile is not sent again. */
  onLost(start: number, limit: number): void {
    const acknowledged = this.#acknowledged
    for (let from = acknowledged.firstMissing(Math.max(start, this.base)); from < limit;) {
      const until = Math.min(limit, acknowledged.firstPresent(from))
      this.lost.add(from, until)
      from = acknowledged.firstMissing(until)
    }
  }

  /** Octets `[start, limit)` arrived. */
  onAcked(start: number, limit: number): void {
    if (limit <= this.base) return
    this.lost.remove(start, limit)
    if (start > this.base) {
      if (this.#acknowledged.add(start, limit)) this.#releaseWithin(start, limit)
      return
    }
    this.base = limit
    const acknowledged = this.#acknowledged
    while (!acknowledged.isEmpty && acknowledged.start(0) <= this.base) {
      this.base = Math.max(this.base, acknowledged.limit(0))
      acknowledged.dropLowest()
    }
    this.#release()
  }

  /** Everything is let go. */
  clear(): void {
    for (const chunk of this.#chunks) release(chunk)
    this.#chunks = []
    this.#near = 0
    this.lost.clear()
    this.#acknowledged.clear()
  }

  #append(buffer: Uint8Array): void {
    this.#chunks.push({ buffer, offset: this.end, limit: buffer.length, isOurs: false })
    this.end += buffer.length
  }

  #release(): void {
    let count = 0
    for (let chunk = this.#chunks[0]; chunk !== undefined; chunk = this.#chunks[count]) {
      if (chunk.offset + chunk.limit > this.base) break
      release(chunk)
      count++
    }
    if (count === 0) return
    this.#chunks.splice(0, count)
    this.#near = Math.max(0, this.#near - count)
  }

  /** Lets go of the chunks with octets of `[start, limit)`, which arrived, that have arrived in all. */
  #releaseWithin(start: number, limit: number): void {
    const chunks = this.#chunks
    const acknowledged = this.#acknowledged
    for (let index = this.#find(start); index < chunks.length; index++) {
      const chunk = chunks[index] as Chunk
      if (chunk.offset >= limit) return
      if (chunk.buffer.length === 0 || !acknowledged.containsRange(chunk.offset, chunk.offset + chunk.limit)) continue
      release(chunk)
      chunk.buffer = none
      chunk.isOurs = false
    }
  }

  /** The index of the chunk with octet `offset`. */
  #find(offset: number): number {
    const chunks = this.#chunks
    const near = chunks[this.#near]
    let low = 0
    let high = chunks.length - 1
    if (near !== undefined && near.offset <= offset) {
      // Mostly it is the chunk of before, or the one behind it.
      for (let index = this.#near; index < Math.min(this.#near + 2, chunks.length); index++) {
        const chunk = chunks[index] as Chunk
        if (offset < chunk.offset + chunk.limit) return index
      }
      low = this.#near
    }
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((chunks[middle] as Chunk).offset <= offset) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** The pool of the smallest buffers that take `byteCount` octets, or of the largest. */
function poolOf(byteCount: number): BufferPool {
  for (const pool of pools) if (byteCount <= pool.size) return pool
  return pools[pools.length - 1] as BufferPool
}

function release({ buffer, isOurs }: Chunk): void {
  if (isOurs) poolOf(buffer.length).release(buffer as Buffer)
}
