import { BufferPool } from '../bytes/index.ts'
import type { OutboxLike } from '../http/index.ts'

const none = new Uint8Array(0)
/**
 * Where copies go: buffers of a few sizes, up to a whole DATA frame of the default size. Shared by all
 * connections, for a proxy copies whatever it passes on, and new memory costs more than the copy.
 */
const pools: readonly BufferPool[] = [new BufferPool(4_096, 256), new BufferPool(8_192, 64), new BufferPool(16_384, 256)]

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
    if (this.#tailIsOurs) {
      const last = this.#chunks.length - 1
      const tail = this.#chunks[last] as Uint8Array
      const at = this.#limits[last] as number
      const room = tail.length - at
      const cut = limit - start <= room ? limit : start + room
      copy(tail, at, buffer, start, cut)
      this.#limits[last] = at + cut - start
      if (cut === limit) return
      start = cut
    }
    const count = limit - start
    const chunk = poolOf(count)?.acquire() ?? Buffer.allocUnsafeSlow(count)
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

  /** Nothing of it is wanted any more. */
  clear(): void {
    for (let i = this.#first; i < this.#chunks.length; i++) this.#release(i)
    this.pinned = 0
    this.#chunks = []
    this.#limits = []
    this.#sizes = []
    this.#first = 0
    this.#start = 0
    this.#tailIsOurs = false
  }

  #release(index: number): void {
    if (this.#sizes[index] === 0) return
    const chunk = this.#chunks[index] as Buffer
    poolOf(chunk.length)?.release(chunk)
  }

  #dropFirst(): void {
    this.pinned -= this.#sizes[this.#first] as number
    this.#release(this.#first)
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

/** Where buffers for `byteCount` come from; undefined: from no pool. */
function poolOf(byteCount: number): BufferPool | undefined {
  for (let i = 0; i < pools.length; i++) if (byteCount <= (pools[i] as BufferPool).size) return pools[i]
  return undefined
}

function copy(target: Uint8Array, at: number, buffer: Uint8Array, start: number, limit: number): void {
  if (limit - start <= 32) for (let i = start; i < limit; i++) target[at++] = buffer[i] as number
  else target.set(start === 0 && limit === buffer.length ? buffer : buffer.subarray(start, limit), at)
}
