const none = new Uint8Array(0)

/**
 * A position in a buffer that steps over big-endian integers and variable-length integers
 * (RFC 9000 §16). Whoever reads past the limit gets 0 and sets `failed`, which stays set: so a whole
 * structure is read first and checked once.
 */
export class ByteReader {
  buffer: Uint8Array
  /** Where the next octet is. */
  at: number
  /** Behind the last octet that may be read. */
  limit: number
  /** Something was read past the limit; all that was read since `start` is worth nothing. */
  failed: boolean

  constructor() {
    this.buffer = none
    this.at = 0
    this.limit = 0
    this.failed = false
  }

  /** Begins anew with the octets of `buffer` from `start` to `limit`. */
  start(buffer: Uint8Array, start: number, limit: number): this {
    this.buffer = buffer
    this.at = start
    this.limit = limit
    this.failed = false
    return this
  }

  /** Octets that are left; 0 after a failure. */
  get remaining(): number {
    return this.limit - this.at
  }

  uint8(): number {
    const { at } = this
    if (at >= this.limit) return this.fail()
    this.at = at + 1
    return this.buffer[at] as number
  }

  uint16(): number {
    const { at, buffer } = this
    if (at + 2 > this.limit) return this.fail()
    this.at = at + 2
    return ((buffer[at] as number) << 8) | (buffer[at + 1] as number)
  }

  uint32(): number {
    const { at } = this
    if (at + 4 > this.limit) return this.fail()
    this.at = at + 4
    return this.word(at) >>> 0
  }

  /** A variable-length integer. Exact below 2^53; a larger one is rounded to 53 bits. */
  varint(): number {
    const { at, buffer, limit } = this
    if (at >= limit) return this.fail()
    const first = buffer[at] as number
    if (first < 0x40) {
      this.at = at + 1
      return first
    }
    const behind = at + (1 << (first >>> 6))
    if (behind > limit) return this.fail()
    this.at = behind
    if (first < 0x80) return ((first & 0x3f) << 8) | (buffer[at + 1] as number)
    const high = this.word(at) & 0x3fff_ffff
    return first < 0xc0 ? high : high * 0x1_0000_0000 + (this.word(at + 4) >>> 0)
  }

  /** Steps over `count` octets and returns where they begin. */
  skip(count: number): number {
    const { at } = this
    // A count read as a varint may be up to 2^62: compared before it is added.
    if (count > this.limit - at) return this.fail()
    this.at = at + count
    return at
  }

  private word(at: number): number {
    const { buffer } = this
    return (
      ((buffer[at] as number) << 24) | ((buffer[at + 1] as number) << 16) | ((buffer[at + 2] as number) << 8) | (buffer[at + 3] as number)
    )
  }

  private fail(): 0 {
    this.failed = true
    this.at = this.limit
    return 0
  }
}
