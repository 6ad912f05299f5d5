import { BufferPool } from '../bytes/index.ts'

const pools: readonly BufferPool[] = [new BufferPool(1_024, 256), new BufferPool(8_192, 128), new BufferPool(65_536, 64)]
const none = Buffer.alloc(0)

/**
 * Bytes put one behind the other: a message in pieces, or input that has to wait. It grows with what
 * arrives, never with what was announced, by half as much again as there is or more; what is small comes
 * from a pool of the process.
 */
export class Gathering {
  /** The bytes are `buffer[start, limit)`. */
  buffer: Buffer
  start: number
  limit: number

  constructor() {
    this.buffer = none
    this.start = 0
    this.limit = 0
  }

  get length(): number {
    return this.limit - this.start
  }

  /** Adds a copy of `buffer[start, limit)`. `expected`: how much there will be in all, as far as is known. */
  append(buffer: Uint8Array, start: number, limit: number, expected: number): void {
    const count = limit - start
    if (this.buffer.length - this.limit < count) this.#makeRoom(count, expected)
    copy.call(buffer, this.buffer, this.limit, start, limit)
    this.limit += count
  }

  #makeRoom(count: number, expected: number): void {
    const { buffer, length } = this
    const needed = length + count
    // Moved to the front only while it is half empty, so that small pieces do not move the rest each time.
    if (needed <= buffer.length / 2) {
      buffer.copyWithin(0, this.start, this.limit)
    } else {
      const room = Math.min(Math.max(needed * 2, 512), Math.max(needed, expected))
      this.buffer = poolOf(room)?.acquire() ?? Buffer.allocUnsafeSlow(room)
      buffer.copy(this.buffer, 0, this.start, this.limit)
      release(buffer)
    }
    this.start = 0
    this.limit = length
  }

  /** Lets go of the bytes. */
  clear(): void {
    release(this.buffer)
    this.forget()
  }

  /** They belong to somebody else now. */
  forget(): void {
    this.buffer = none
    this.start = 0
    this.limit = 0
  }
}

function release(buffer: Buffer): void {
  poolOf(buffer.length)?.release(buffer)
}

/** Where buffers for `byteCount` come from; undefined: from no pool. */
function poolOf(byteCount: number): BufferPool | undefined {
  for (let i = 0; i < pools.length; i++) if (byteCount <= (pools[i] as BufferPool).size) return pools[i]
  return undefined
}

// Copies with offsets, and makes no view on the way.
const { copy } = Buffer.prototype as unknown as {
  copy(this: Uint8Array, target: Uint8Array, at: number, start: number, limit: number): number
}
