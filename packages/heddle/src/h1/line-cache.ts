/** Longer lines are not kept. */
export const longestCachedLine = 256

/**
 * A bounded, direct-mapped cache from the raw bytes of a line to what the line came to, so a line
 * seen before costs one comparison: no string is made, nothing is validated again. There are no
 * chains, so an attacker who finds lines of one slot gains nothing but misses.
 */
export class LineCache<T extends object> {
  private readonly mask: number
  private readonly bytes: Uint8Array
  private readonly lengths: Uint16Array
  private readonly entries: (T | undefined)[]

  /** `slots`: a power of two. */
  constructor(slots: number) {
    this.mask = slots - 1
    this.bytes = new Uint8Array(slots * longestCachedLine)
    this.lengths = new Uint16Array(slots)
    this.entries = Array.from({ length: slots }, () => undefined)
  }

  /** Where a line with this hash stands, if it stands in the cache. */
  slotOf(hash: number): number {
    return (hash ^ (hash >>> 15)) & this.mask
  }

  /** What `buffer[start, limit)` came to, or undefined. `slot`: by the hash of the same bytes. */
  find(buffer: Uint8Array, start: number, limit: number, slot: number): T | undefined {
    if (this.lengths[slot] !== limit - start) return undefined
    const { bytes } = this
    let at = slot * longestCachedLine
    for (let i = start; i < limit; i++) if (bytes[at++] !== buffer[i]) return undefined
    return this.entries[slot]
  }

  /** Remembers what `buffer[start, limit)` came to, in place of what stood in its slot. */
  insert(buffer: Uint8Array, start: number, limit: number, slot: number, entry: T): void {
    const length = limit - start
    if (length > longestCachedLine) return
    let at = slot * longestCachedLine
    for (let i = start; i < limit; i++) this.bytes[at++] = buffer[i] as number
    this.lengths[slot] = length
    this.entries[slot] = entry
  }
}

/** What the hash of a line begins with. */
export const startHash: number = 0x811c9dc5 | 0

/** One step of the hash that {@link LineCache} is given: FNV-1a. */
export function hashStep(hash: number, octet: number): number {
  return Math.imul(hash ^ octet, 0x01000193)
}
