import { latin1Write } from './latin1.ts'

const smallest = 1024

/**
 * The bytes one turn of one connection wants on the wire: a single growing buffer that engines
 * append to and the driver writes once.
 *
 * An engine first calls `reserve(n)` and then writes straight into `buffer` at `length`, or uses one
 * of the `write…` methods, which reserve for themselves. `room` is how much the driver still wants
 * this turn: bodies stop there, heads and control bytes may go past it.
 */
export class Outbox {
  buffer: Buffer
  /** Bytes appended so far; the next byte goes to `buffer[length]`. */
  length: number
  /** Soft bound for `length`, set by the driver before `transmit`. */
  limit: number

  constructor(buffer: Buffer, limit: number) {
    this.buffer = buffer
    this.length = 0
    this.limit = limit
  }

  /** Bytes of body an engine may still append this turn; never negative. */
  get room(): number {
    return this.limit > this.length ? this.limit - this.length : 0
  }

  /** Makes `buffer` long enough for `byteCount` more bytes; may replace `buffer`. */
  reserve(byteCount: number): void {
    const needed = this.length + byteCount
    if (needed <= this.buffer.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(smallest, this.buffer.length * 2, needed))
    this.buffer.copy(grown, 0, 0, this.length)
    this.buffer = grown
  }

  /** Appends `buffer[start, limit)`. */
  writeBytes(buffer: Uint8Array, start: number, limit: number): void {
    const count = limit - start
    this.reserve(count)
    if (count <= 32) {
      const target = this.buffer
      let at = this.length
      for (let i = start; i < limit; i++) target[at++] = buffer[i] as number
    } else if (start === 0 && limit === buffer.length) {
      this.buffer.set(buffer, this.length)
    } else {
      this.buffer.set(buffer.subarray(start, limit), this.length)
    }
    this.length += count
  }

  /**
   * Appends a string whose code units are all ≤ 0xFF, one byte each. The caller has validated it:
   * a higher unit would be truncated, and U+010A would become a line feed.
   */
  writeLatin1(text: string): void {
    const count = text.length
    this.reserve(count)
    if (count <= 16) {
      const target = this.buffer
      let at = this.length
      for (let i = 0; i < count; i++) target[at++] = text.charCodeAt(i)
    } else {
      latin1Write(this.buffer, text, this.length)
    }
    this.length += count
  }
}
