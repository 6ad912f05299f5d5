/** Octets before each message: whether it is compressed, and its length. */
const prefixSize = 5

/** Knows where the messages of a gRPC call end, by the octets that pass: each has its length before it. */
export class MessageTracker {
  /** Octets of the message that are to come, once its length is known. */
  private left: number
  /** Octets of the prefix that came … */
  private prefix: number
  /** … and the length in them. */
  private length: number

  constructor() {
    this.left = 0
    this.prefix = 0
    this.length = 0
  }

  /** True: a message has just ended, or none has begun. */
  get atBoundary(): boolean {
    return this.left === 0 && this.prefix === 0
  }

  /** Takes note of `buffer[start, limit)`. */
  pass(buffer: Uint8Array, start: number, limit: number): void {
    let at = start
    while (at < limit) {
      if (this.left > 0) {
        const size = Math.min(this.left, limit - at)
        this.left -= size
        at += size
        continue
      }
      // The first octet leaves with what is beyond 32 bits.
      this.length = ((this.length << 8) | (buffer[at++] as number)) >>> 0
      if (++this.prefix < prefixSize) continue
      this.left = this.length
      this.prefix = 0
    }
  }
}
