import type { Entry } from './entry.ts'

/**
 * The dynamic table (RFC 7541 §2.3.2, RFC 9204 §3.2): a ring of entries, evicted oldest first. Entries
 * are numbered from 0 by insertion (the absolute index of RFC 9204 §3.2.4), so a number stays true while
 * relative indices shift: number n has the relative index `inserted - 1 - n`, 0 for the newest.
 */
export class DynamicTable {
  /** Octets the entries count for (RFC 7541 §4.1, RFC 9204 §3.2.1). */
  size: number
  /** Octets they may count for. */
  capacity: number
  /** Entries ever inserted: the number of the next one. */
  inserted: number
  /** Entries held. */
  count: number
  /** Changes with every insertion and every resize: what was looked up at one version is true at that version only. */
  version: number
  /** Told of each entry before it goes, with its insertion number. */
  readonly #onEvict: ((entry: Entry, number: number) => void) | undefined
  #ring: (Entry | undefined)[]

  constructor(capacity: number, onEvict?: (entry: Entry, number: number) => void) {
    this.size = 0
    this.capacity = capacity
    this.inserted = 0
    this.count = 0
    this.version = 0
    this.#onEvict = onEvict
    this.#ring = []
  }

  /** The entry with relative index `index`: 0 is the newest. */
  at(index: number): Entry | undefined {
    if (index >= this.count) return undefined
    return this.#ring[(this.inserted - 1 - index) & (this.#ring.length - 1)]
  }

  /** The entry that was inserted as number `number`, if it is still there. */
  byNumber(number: number): Entry | undefined {
    if (number < this.inserted - this.count || number >= this.inserted) return undefined
    return this.#ring[number & (this.#ring.length - 1)]
  }

  /**
   * Inserts `entry`, evicting what has to go. An entry larger than the table empties it and is not
   * kept: not an error (RFC 7541 §4.4).
   */
  insert(entry: Entry): void {
    const { size } = entry
    this.version++
    this.#evictTo(this.capacity - size)
    if (size > this.capacity) return
    if (this.count === this.#ring.length) this.#grow()
    this.#ring[this.inserted & (this.#ring.length - 1)] = entry
    this.inserted++
    this.count++
    this.size += size
  }

  /** RFC 7541 §4.3. */
  resize(capacity: number): void {
    this.version++
    this.capacity = capacity
    this.#evictTo(capacity)
  }

  #evictTo(size: number): void {
    while (this.size > size && this.count > 0) {
      const number = this.inserted - this.count
      const slot = number & (this.#ring.length - 1)
      const entry = this.#ring[slot] as Entry
      this.#ring[slot] = undefined
      this.count--
      this.size -= entry.size
      this.#onEvict?.(entry, number)
    }
  }

  #grow(): void {
    const ring: (Entry | undefined)[] = Array.from({ length: Math.max(16, this.#ring.length * 2) }, () => undefined)
    for (let number = this.inserted - this.count; number < this.inserted; number++) {
      ring[number & (ring.length - 1)] = this.#ring[number & (this.#ring.length - 1)]
    }
    this.#ring = ring
  }
}
