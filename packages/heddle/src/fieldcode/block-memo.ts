import type { FieldSection, SectionRole } from './section.ts'

const slots = 16
const longest = 512

/**
 * Whole field blocks (encoded field sections) a peer repeats, with what they decoded to: a repeated one
 * costs one comparison. A memo is true only while the dynamic table has not changed, and is kept from the second sighting on,
 * so that blocks seen once cost no copy. Belongs to one connection; direct-mapped and bounded.
 */
export class BlockMemo {
  readonly #hashes: Int32Array
  readonly #versions: Float64Array
  readonly #blocks: (Uint8Array | undefined)[]
  readonly #sections: (FieldSection | undefined)[]
  readonly #roles: Uint8Array
  #hash: number

  constructor() {
    this.#hashes = new Int32Array(slots)
    this.#versions = new Float64Array(slots)
    this.#blocks = Array.from({ length: slots }, () => undefined)
    this.#sections = Array.from({ length: slots }, () => undefined)
    this.#roles = new Uint8Array(slots)
    this.#hash = 0
  }

  /** The section `buffer[start, limit)` decoded to before, if the table still is at `version`. Call `keep` after a miss. */
  find(buffer: Uint8Array, start: number, limit: number, role: SectionRole, version: number): FieldSection | undefined {
    let hash = limit - start
    if (hash > longest) return undefined
    for (let i = start; i < limit; i++) hash = Math.imul(hash ^ (buffer[i] as number), 0x0100_0193)
    hash ^= hash >>> 13
    this.#hash = hash
    const slot = hash & (slots - 1)
    const block = this.#blocks[slot]
    if (block === undefined || this.#hashes[slot] !== hash || this.#versions[slot] !== version || this.#roles[slot] !== role)
      return undefined
    if (block.length !== limit - start) return undefined
    for (let i = 0; i < block.length; i++) if (block[i] !== buffer[start + i]) return undefined
    return this.#sections[slot]
  }

  /** Remembers what `find` just missed; the block itself only if its hash was the last one here too. */
  keep(buffer: Uint8Array, start: number, limit: number, role: SectionRole, version: number, section: FieldSection): void {
    if (limit - start > longest) return
    const slot = this.#hash & (slots - 1)
    if (this.#hashes[slot] === this.#hash) {
      this.#blocks[slot] = Uint8Array.prototype.slice.call(buffer, start, limit)
      this.#sections[slot] = section
      this.#versions[slot] = version
      this.#roles[slot] = role
    } else {
      this.#hashes[slot] = this.#hash
      this.#blocks[slot] = undefined
      this.#sections[slot] = undefined
    }
  }
}
