const smallest = 256

/**
 * The beginning of a line whose end has not arrived: a copy, because received bytes are valid during
 * the call only. Never longer than the longest line allowed, and none at all between lines.
 */
export class LineCarry {
  bytes: Buffer
  length: number

  constructor() {
    this.bytes = nothing
    this.length = 0
  }

  /** Copies `buffer[start, limit)` behind what is there. */
  append(buffer: Uint8Array, start: number, limit: number): void {
    const needed = this.length + limit - start
    if (needed > this.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(smallest, needed, this.bytes.length * 2))
      this.bytes.copy(grown, 0, 0, this.length)
      this.bytes = grown
    }
    Buffer.prototype.copy.call(buffer, this.bytes, this.length, start, limit)
    this.length = needed
  }

  /** Lets the copy go. */
  clear(): void {
    this.bytes = nothing
    this.length = 0
  }
}

const nothing = Buffer.alloc(0)
