import { RangeSet } from '../bytes/index.ts'

/** Small writes are copied together into chunks of this size, octets. */
const chunkSize = 16_384

interface Chunk {
  readonly buffer: Uint8Array
  /** The offset of `buffer[start]` in the stream. */
  readonly offset: number
  readonly start: number
  limit: number
  /** Memory of ours with room behind `limit`. */
  readonly isOurs: boolean
}

/**
 * What a stream sends, from the first octet that is not acknowledged to the last that was written.
 *
 *     base           next           end
 *      │ acknowledged,│              │
 *      │ lost, or     │ never sent   │
 *      │ under way    │              │
 *
 * Acknowledged octets are let go as soon as nothing before them is missing.
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

  /** Octets of memory that are held, about. */
  get held(): number {
    return this.end - this.base
  }

  /** Appends a copy of `buffer[start, limit)`. */
  write(buffer: Uint8Array, start: number, limit: number): void {
    while (start < limit) {
      let last = this.#chunks.at(-1)
      if (last === undefined || !last.isOurs || last.limit === last.buffer.length) {
        const size = Math.min(chunkSize, Math.max(limit - start, this.#chunks.length === 0 ? 0 : 2048))
        last = { buffer: new Uint8Array(size), offset: this.end, start: 0, limit: 0, isOurs: true }
        this.#chunks.push(last)
      }
      const count = Math.min(limit - start, last.buffer.length - last.limit)
      last.buffer.set(buffer.subarray(start, start + count), last.limit)
      last.limit += count
      start += count
      this.end += count
    }
  }

  /** Appends `chunk` itself. */
  writeOwned(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    this.#chunks.push({ buffer: chunk, offset: this.end, start: 0, limit: chunk.length, isOurs: false })
    this.end += chunk.length
  }

  /** Copies `count` octets from `offset` on into `target`. They are held. */
  copy(offset: number, count: number, target: Uint8Array, at: number): void {
    let index = this.#find(offset)
    while (count > 0) {
      const { buffer, offset: first, start, limit } = this.#chunks[index] as Chunk
      const from = start + offset - first
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
      this.#acknowledged.add(start, limit)
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
    this.#chunks = []
    this.#near = 0
    this.lost.clear()
    this.#acknowledged.clear()
  }

  #release(): void {
    let count = 0
    for (let chunk = this.#chunks[0]; chunk !== undefined; chunk = this.#chunks[count]) {
      if (chunk.offset + chunk.limit - chunk.start > this.base) break
      count++
    }
    if (count === 0) return
    this.#chunks.splice(0, count)
    this.#near = Math.max(0, this.#near - count)
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
        if (offset < chunk.offset + chunk.limit - chunk.start) return index
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
