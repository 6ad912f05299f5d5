import { BufferPool, Outbox } from '../bytes/index.ts'

/** Bytes of bodies an engine may hand over in one turn, if nothing else was said. */
export const defaultTurnLimit = 262_144
/** … while turns of that size leave at once: fewer, larger writes cost the kernel a third less. */
export const largestTurnLimit = 1_048_576

// Most turns fit in a small buffer. One that does not gets a large one: a whole turn's bodies, and frames and heads besides.
const smallBuffers = new BufferPool(65_536, 64)
const largeBuffers = new BufferPool(defaultTurnLimit + 16_384, 8)
const largestBuffers = new BufferPool(largestTurnLimit + 16_384, 4)
const pools: readonly BufferPool[] = [smallBuffers, largeBuffers, largestBuffers]
const noBuffer = Buffer.alloc(0)
/** With less room than this behind bytes in flight a new buffer is begun. */
const leastRoom = 16_384

function release(buffer: Buffer): void {
  for (const pool of pools) pool.release(buffer)
}

/** Free pooled buffers, in bytes: what the pools keep for the next turn. */
export function pooledBytes(): number {
  return pools.reduce((sum, { free, size }) => sum + free * size, 0)
}

/**
 * What one connection is sending. A buffer is taken from the pool at the first byte of a turn and
 * given back as soon as the socket has nothing of it left, which with TCP is right after `write`.
 * While bytes are in flight they stay where they are and the next turn is appended behind them.
 */
export class Output extends Outbox {
  /** Where this turn begins in `buffer`; bytes before it are in flight. */
  start: number
  /** Full buffers with bytes in flight. */
  #retired: Buffer[]
  #lastLength: number

  constructor() {
    super(noBuffer, 0)
    this.start = 0
    this.#retired = []
    this.#lastLength = 0
  }

  /** Bytes of this turn. */
  get pending(): number {
    return this.length - this.start
  }

  /** Begins a turn of at most `turnLimit` bytes of bodies. `idle`: nothing is in flight. */
  startTurn(turnLimit: number, idle: boolean): void {
    if (this.buffer.length > 0) {
      if (idle) this.release()
      else if (this.buffer.length - this.length < leastRoom) {
        this.#retired.push(this.buffer)
        this.buffer = noBuffer
        this.length = 0
      }
    }
    this.start = this.length
    this.limit = this.start + turnLimit
  }

  /** The bytes of this turn, as a view that is valid until `release`. */
  finishTurn(): Buffer {
    this.#lastLength = this.length - this.start
    return this.buffer.subarray(this.start, this.length)
  }

  /** Forgets the bytes of this turn. */
  dropTurn(): void {
    this.length = this.start
    // Older bytes may still be in flight, but none of them is in this buffer then.
    if (this.start > 0) return
    if (this.buffer.length > 0) release(this.buffer)
    this.buffer = noBuffer
  }

  /** Nothing is in flight any more: gives all buffers back. */
  release(): void {
    if (this.buffer.length > 0) release(this.buffer)
    this.buffer = noBuffer
    this.length = 0
    this.start = 0
    if (this.#retired.length === 0) return
    for (const buffer of this.#retired) release(buffer)
    this.#retired = []
  }

  override reserve(byteCount: number): void {
    const needed = this.length + byteCount
    if (needed > this.buffer.length) this.#grow(needed)
  }

  #grow(needed: number): void {
    const before = this.buffer
    // Who had much to send last time probably has again.
    const last = before.length === 0 ? this.#lastLength : largeBuffers.size
    if (needed <= smallBuffers.size && last < smallBuffers.size / 2) this.buffer = smallBuffers.acquire()
    else if (needed <= largeBuffers.size && last <= largeBuffers.size) this.buffer = largeBuffers.acquire()
    else if (needed <= largestBuffers.size) this.buffer = largestBuffers.acquire()
    else this.buffer = Buffer.allocUnsafeSlow(Math.max(needed, before.length * 2))
    if (before.length === 0) return
    // Positions stay as they are, for the engine may hold some; bytes in flight stay in the old buffer.
    before.copy(this.buffer, this.start, this.start, this.length)
    if (this.start > 0) this.#retired.push(before)
    else release(before)
  }
}
