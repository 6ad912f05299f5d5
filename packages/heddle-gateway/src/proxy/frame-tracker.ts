/** RFC 6455 §5.5.1 */
const closeOpcode = 0x8
/** Octets of a length that says how long the payload is: none, 2 or 8. */
const extendedSizes: readonly number[] = [0, 2, 8]
/** The largest upper half of a length below 2^53. */
const largestUpperHalf = 0x1f_ffff

/**
 * Knows where the frames of a WebSocket end (RFC 6455 §5.2), by the octets that pass. Nothing is decoded,
 * judged or kept but the head of a frame that came in part.
 */
export class FrameTracker {
  /** The head of a Close has passed: what follows that frame is none. */
  closing: boolean
  /** These are no frames. */
  lost: boolean
  /** Octets of the current frame that are to come, masking key included, once its length is known. */
  private left: number
  /** The first octets of a frame, up to its length … */
  private readonly head: Buffer
  /** … how many of them there are … */
  private headSize: number
  /** … and have to be. */
  private headEnd: number

  constructor() {
    this.closing = false
    this.lost = false
    this.left = 0
    this.head = Buffer.alloc(10)
    this.headSize = 0
    this.headEnd = 2
  }

  /** True: a frame has just ended, or none has begun, so another one may be put in here. */
  get atBoundary(): boolean {
    return this.left === 0 && this.headSize === 0 && !this.lost
  }

  /** Takes note of `buffer[start, limit)`, or, with `untilBoundary`, of its octets up to the next end of a frame. Returns where it stopped. */
  advance(buffer: Uint8Array, start: number, limit: number, untilBoundary: boolean): number {
    let at = start
    while (at < limit) {
      if (this.lost || (this.closing && this.atBoundary)) return limit
      if (this.left > 0) {
        const size = Math.min(this.left, limit - at)
        this.left -= size
        at += size
      } else {
        this.head[this.headSize++] = buffer[at++] as number
        if (this.headSize === this.headEnd) this.readHead()
      }
      if (untilBoundary && this.atBoundary) return at
    }
    return at
  }

  private readHead(): void {
    const { head } = this
    const size = (head[1] as number) & 0x7f
    const extended = extendedSizes[Math.max(0, size - 125)] as number
    if (this.headSize < 2 + extended) {
      this.headEnd = 2 + extended
      return
    }
    this.headSize = 0
    this.headEnd = 2
    // RFC 6455 §5.2: the most significant bit must be 0.
    if (extended === 8 && head.readUInt32BE(2) > largestUpperHalf) {
      this.lost = true
      return
    }
    const payload = extended === 0 ? size : extended === 2 ? head.readUInt16BE(2) : head.readUInt32BE(2) * 2 ** 32 + head.readUInt32BE(6)
    const maskingKey = ((head[1] as number) & 0x80) === 0 ? 0 : 4
    this.left = payload + maskingKey
    if (((head[0] as number) & 0x0f) === closeOpcode) this.closing = true
  }
}
