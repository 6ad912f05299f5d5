import type { Exchange } from 'heddle/http'

/** Bytes of a chunk that is made for more than the first piece, at least. */
const minTail = 4_096

/** Copies of request content: what came before there was a connection, and what may have to be sent again. */
export class HeldContent {
  /** Bytes. */
  size: number
  /** Filled, except the last. */
  private readonly chunks: Buffer[]
  /** Bytes of the last chunk that are in use. */
  private used: number

  constructor() {
    this.size = 0
    this.chunks = []
    this.used = 0
  }

  /** Keeps a copy of `buffer[start, limit)`, which must not be empty, and returns it. */
  add(buffer: Uint8Array, start: number, limit: number): Uint8Array {
    const { chunks } = this
    const size = limit - start
    let last = chunks[chunks.length - 1]
    if (last === undefined || last.length - this.used < size) {
      if (last !== undefined) chunks[chunks.length - 1] = last.subarray(0, this.used)
      // Most content comes in one piece; what comes in many must not cost an allocation for each.
      last = Buffer.allocUnsafeSlow(last === undefined ? size : Math.max(size, minTail))
      chunks.push(last)
      this.used = 0
    }
    const at = this.used
    this.used = at + size
    this.size += size
    last.set(buffer.subarray(start, limit), at)
    return last.subarray(at, this.used)
  }

  /** Sends all of it and keeps it. `end`: the message ends with it. */
  sendTo(exchange: Pick<Exchange, 'sendOwned'>, end: boolean): void {
    const { chunks } = this
    const last = chunks.length - 1
    for (let i = 0; i < last; i++) exchange.sendOwned(chunks[i] as Buffer, false)
    exchange.sendOwned((chunks[last] as Buffer).subarray(0, this.used), end)
  }
}
