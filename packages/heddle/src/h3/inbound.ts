const none = new Uint8Array(0)

/**
 * What of a stream cannot be read yet: the pieces of a field block, or what came behind a block that waits for an
 * entry of QPACK's dynamic table. The latter is bounded by the stream's window, for none of it is credited.
 */
export class Inbound {
  block: Uint8Array
  length: number
  /** The block is complete, and QPACK waits for a table entry. */
  blocked: boolean
  readonly backlog: Uint8Array[]
  /** FIN came behind the backlog. */
  fin: boolean

  constructor() {
    this.block = none
    this.length = 0
    this.blocked = false
    this.backlog = []
    this.fin = false
  }

  /** Appends to the block. Room grows with what comes, not with what was announced. Returns by how much. */
  append(buffer: Uint8Array, start: number, limit: number): number {
    const needed = this.length + limit - start
    const before = this.block.length
    if (before < needed) {
      const block = new Uint8Array(Math.max(needed, before * 2, 256))
      block.set(this.block.subarray(0, this.length))
      this.block = block
    }
    this.block.set(buffer.subarray(start, limit), this.length)
    this.length = needed
    return this.block.length - before
  }

  /** Keeps a copy of what came behind the block. */
  keep(buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    if (limit > start) this.backlog.push(Uint8Array.prototype.slice.call(buffer, start, limit))
    if (fin) this.fin = true
  }
}
