import type { OutboxLike } from '../http/index.ts'

const smallest = 4_096
const none = new Uint8Array(0)

/**
 * Content that waits to be framed: chunks the caller gave away, and copies of what it lent, which are
 * packed behind each other so that many small pieces do not cost an object each.
 */
export class ContentQueue {
  /** Octets allocated for copies. */
  pinned: number
  #chunks: Uint8Array[]
  /** Where the content of each chunk ends. */
  #limits: number[]
  /** What each chunk counts for in `pinned`. */
  #sizes: number[]
  #first: number
  /** Where the content of the first chunk begins. */
  #start: number
  /** The last chunk is ours and has room behind its content. */
  #tailIsOurs: boolean

  constructor() {
    this.pinned = 0
    this.#chunks = []
    this.#limits = []
    this.#sizes = []
    this.#first = 0
    this.#start = 0
    this.#tailIsOurs = false
  }

  /** Keeps the reference. */
  pushOwned(chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.#limits.push(chunk.length)
    this.#sizes.push(0)
    this.#tailIsOurs = false
  }

  /** Copies `buffer[start, limit)`. */
  pushCopy(buffer: Uint8Array, start: number, limit: number): void {
    const count = limit - start
    const last = this.#chunks.length - 1
    if (this.#tailIsOurs) {
      const tail = this.#chunks[last] as Uint8Array
      const at = this.#limits[last] as number
      if (tail.length - at >= count) {
        copy(tail, at, buffer, start, limit)
        this.#limits[last] = at + count
        return
      }
    }
    const chunk = Buffer.allocUnsafeSlow(count > smallest ? count : smallest)
    copy(chunk, 0, buffer, start, limit)
    this.pinned += chunk.length
    this.#chunks.push(chunk)
    this.#limits.push(count)
    this.#sizes.push(chunk.length)
    this.#tailIsOurs = true
  }

  /** Moves the first `byteCount` octets to `out`. There must be as many. */
  take(out: OutboxLike, byteCount: number): void {
    let left = byteCount
    while (left > 0) {
      const chunk = this.#chunks[this.#first] as Uint8Array
      const limit = this.#limits[this.#first] as number
      const end = this.#start + left < limit ? this.#start + left : limit
      out.writeBytes(chunk, this.#start, end)
      left -= end - this.#start
      this.#start = end
      if (end === limit) this.#dropFirst()
    }
  }

  #dropFirst(): void {
    this.pinned -= this.#sizes[this.#first] as number
    this.#chunks[this.#first++] = none
    this.#start = 0
    const isEmpty = this.#first === this.#chunks.length
    if (!isEmpty && this.#first < 64) return
    this.#chunks.splice(0, this.#first)
    this.#limits.splice(0, this.#first)
    this.#sizes.splice(0, this.#first)
    this.#first = 0
    if (isEmpty) this.#tailIsOurs = false
  }
}

function copy(target: Uint8Array, at: number, buffer: Uint8Array, start: number, limit: number): void {
  if (limit - start <= 32) for (let i = start; i < limit; i++) target[at++] = buffer[i] as number
  else target.set(start === 0 && limit === buffer.length ? buffer : buffer.subarray(start, limit), at)
}
