/**
 * Output buffers of one size, shared by every connection of the process: a connection takes one at
 * the first byte of a turn and gives it back once the bytes are in the kernel, so an idle connection
 * pins none. Buffers of another size (an outbox that grew) are let go.
 */
export class BufferPool {
  readonly size: number
  readonly #most: number
  readonly #free: Buffer[] = []

  /** `size`: bytes of each buffer. `most`: how many free buffers are kept. */
  constructor(size: number, most: number) {
    this.size = size
    this.#most = most
  }

  /** Free buffers held now. */
  get free(): number {
    return this.#free.length
  }

  acquire(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.size)
  }

  release(buffer: Buffer): void {
    if (buffer.length === this.size && this.#free.length < this.#most) this.#free.push(buffer)
  }
}
