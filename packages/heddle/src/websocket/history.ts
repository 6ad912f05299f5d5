/**
 * The last bytes that went through one direction of a connection with context takeover: what RFC 7692
 * calls its LZ77 sliding window (§7.1.1). It is the whole of what such a connection keeps between two
 * messages; a compressor or decompressor is made for one message, is given this as its dictionary, and
 * is gone with it. Grows with use, up to a quarter more than `size`.
 */
export class History {
  /** Bytes to look back, at most. */
  readonly size: number
  /** Bytes held; what counts are the last `size` of them. */
  #length: number
  #buffer: Buffer | undefined

  constructor(size: number) {
    this.size = size
    this.#length = 0
    this.#buffer = undefined
  }

  /** Bytes of memory held. */
  get memory(): number {
    return this.#buffer === undefined ? 0 : this.#buffer.length
  }

  /** The window, oldest byte first, or undefined while it is empty. Valid until the next `append`. */
  get window(): Buffer | undefined {
    const length = this.#length
    return this.#buffer === undefined || length === 0 ? undefined : this.#buffer.subarray(Math.max(0, length - this.size), length)
  }

  /** `bytes[start, limit)` went through. They are copied. */
  append(bytes: Uint8Array, start: number, limit: number): void {
    const { size } = this
    const first = Math.max(start, limit - size)
    const count = limit - first
    if (count === 0) return
    const buffer = this.#room(count)
    buffer.set(first === 0 && limit === bytes.length ? bytes : bytes.subarray(first, limit), this.#length)
    this.#length += count
  }

  /** Lets go of the memory. */
  clear(): void {
    this.#buffer = undefined
    this.#length = 0
  }

  /** The buffer, with room for `count` bytes behind what it holds. */
  #room(count: number): Buffer {
    const { size } = this
    const buffer = this.#buffer
    const wanted = this.#length + count
    if (buffer !== undefined && wanted <= buffer.length) return buffer
    // The quarter on top is for moving the window to the front only once in a quarter of a window.
    const most = size + (size >> 2)
    if (buffer !== undefined && wanted > most) {
      const kept = size - count
      buffer.copyWithin(0, this.#length - kept, this.#length)
      this.#length = kept
      if (size <= buffer.length) return buffer
    }
    const grown = Buffer.allocUnsafeSlow(Math.min(most, Math.max(1024, 2 * (this.#length + count))))
    if (buffer !== undefined) grown.set(buffer.subarray(0, this.#length))
    this.#buffer = grown
    return grown
  }
}
