/**
 * A set of whole numbers below 2^53, kept as half-open ranges `[start, limit)` in ascending order that
 * never touch: packet numbers that arrived, octets of a stream that are acknowledged. Finding a place is
 * a binary search, and at either end none is needed; what is added at the end moves nothing.
 */
export class RangeSet {
  /** `[start, limit, start, limit, …]` */
  readonly #bounds: number[]

  constructor() {
    this.#bounds = []
  }

  /** How many ranges there are. */
  get count(): number {
    return this.#bounds.length / 2
  }

  get isEmpty(): boolean {
    return this.#bounds.length === 0
  }

  /** The smallest number; −1 if there is none. */
  get min(): number {
    return this.#bounds.length === 0 ? -1 : (this.#bounds[0] as number)
  }

  /** The largest number; −1 if there is none. */
  get max(): number {
    return this.#bounds.length === 0 ? -1 : (this.#bounds[this.#bounds.length - 1] as number) - 1
  }

  /** The first number of the range at `index`, which is below `count`. */
  start(index: number): number {
    return this.#bounds[2 * index] as number
  }

  /** The number behind the last one of the range at `index`, which is below `count`. */
  limit(index: number): number {
    return this.#bounds[2 * index + 1] as number
  }

  contains(value: number): boolean {
    const index = this.#search(value)
    return index < this.count && this.start(index) <= value
  }

  /** Every number of `[start, limit)` is in the set; true for an empty range. */
  containsRange(start: number, limit: number): boolean {
    if (start >= limit) return true
    const index = this.#search(start)
    return index < this.count && this.start(index) <= start && limit <= this.limit(index)
  }

  /** The first number from `value` on that is not in the set. */
  firstMissing(value: number): number {
    const index = this.#search(value)
    return index < this.count && this.start(index) <= value ? this.limit(index) : value
  }

  /** The first number from `value` on that is in the set; Infinity if there is none. */
  firstPresent(value: number): number {
    const index = this.#search(value)
    return index < this.count ? Math.max(value, this.start(index)) : Infinity
  }

  /** Adds `[start, limit)`; false: every number of it was in the set already, or it is empty. */
  add(start: number, limit: number): boolean {
    if (start >= limit) return false
    const bounds = this.#bounds
    const size = bounds.length
    // Most often: the end grows, or something behind the end comes.
    if (size === 0 || start > (bounds[size - 1] as number)) {
      bounds.push(start, limit)
      return true
    }
    if (start >= (bounds[size - 2] as number)) {
      if (limit <= (bounds[size - 1] as number)) return false
      bounds[size - 1] = limit
      return true
    }
    // The ranges [first, behind) touch the new one and become one with it.
    const first = this.#search(start - 1)
    let behind = first
    while (behind < this.count && this.start(behind) <= limit) behind++
    if (behind === first) {
      this.#open(first, start, limit)
      return true
    }
    if (this.start(first) <= start && limit <= this.limit(first)) return false
    bounds[2 * first] = Math.min(start, this.start(first))
    bounds[2 * first + 1] = Math.max(limit, this.limit(behind - 1))
    this.#close(first + 1, behind)
    return true
  }

  /** Takes `[start, limit)` out; false: nothing of it was in the set. */
  remove(start: number, limit: number): boolean {
    if (start >= limit) return false
    const bounds = this.#bounds
    const first = this.#search(start)
    let behind = first
    while (behind < this.count && this.start(behind) < limit) behind++
    if (behind === first) return false
    const lowest = this.start(first)
    const highest = this.limit(behind - 1)
    const keepsLower = lowest < start
    const keepsUpper = highest > limit
    if (keepsLower && keepsUpper && behind === first + 1) {
      bounds[2 * first + 1] = start
      this.#open(first + 1, limit, highest)
      return true
    }
    if (keepsLower) bounds[2 * first + 1] = start
    if (keepsUpper) bounds[2 * (behind - 1)] = limit
    this.#close(keepsLower ? first + 1 : first, keepsUpper ? behind - 1 : behind)
    return true
  }

  /** Takes the lowest range out, if there is one. */
  dropLowest(): void {
    if (this.#bounds.length > 0) this.#close(0, 1)
  }

  clear(): void {
    this.#bounds.length = 0
  }

  /** The index of the first range that ends behind `value`; `count` if none does. */
  #search(value: number): number {
    const bounds = this.#bounds
    let low = 0
    let high = bounds.length / 2
    if (high > 0) {
      if (value >= (bounds[2 * high - 1] as number)) return high
      if (value < (bounds[1] as number)) return 0
    }
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((bounds[2 * middle + 1] as number) > value) high = middle
      else low = middle + 1
    }
    return low
  }

  /** Makes room for one more range at `index` and puts it there. */
  #open(index: number, start: number, limit: number): void {
    const bounds = this.#bounds
    const size = bounds.length
    bounds.push(0, 0)
    bounds.copyWithin(2 * index + 2, 2 * index, size)
    bounds[2 * index] = start
    bounds[2 * index + 1] = limit
  }

  /** Takes the ranges [first, behind) out. */
  #close(first: number, behind: number): void {
    if (first >= behind) return
    const bounds = this.#bounds
    bounds.copyWithin(2 * first, 2 * behind)
    bounds.length -= 2 * (behind - first)
  }
}
