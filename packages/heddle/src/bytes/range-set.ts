/**
 * A set of numbers kept as ranges `[start, limit)`, ascending and apart from each other, in two flat
 * arrays. What is added at the upper end, as packet numbers and stream offsets mostly are, costs a
 * comparison; anything else a binary search and a move of what lies behind.
 */
export class RangeSet {
  readonly #starts: number[]
  readonly #limits: number[]

  constructor() {
    this.#starts = []
    this.#limits = []
  }

  /** How many ranges there are. */
  get count(): number {
    return this.#starts.length
  }

  get isEmpty(): boolean {
    return this.#starts.length === 0
  }

  /** The first number of range `index`. */
  start(index: number): number {
    return this.#starts[index] as number
  }

  /** One more than the last number of range `index`. */
  limit(index: number): number {
    return this.#limits[index] as number
  }

  /** The least number; −1 if there is none. */
  get min(): number {
    return this.#starts[0] ?? -1
  }

  /** The greatest number; −1 if there is none. */
  get max(): number {
    return (this.#limits.at(-1) ?? 0) - 1
  }

  /** Adds `[start, limit)`. True if a number of it was not there. */
  add(start: number, limit: number): boolean {
    if (start >= limit) return false
    const starts = this.#starts
    const limits = this.#limits
    const last = starts.length - 1
    if (last < 0 || start > (limits[last] as number)) {
      starts.push(start)
      limits.push(limit)
      return true
    }
    if (start === limits[last]) {
      limits[last] = limit
      return true
    }
    // The ranges from `first` up to `behind` touch the new one and become one with it.
    const first = this.#firstWithLimitFrom(start)
    let behind = first
    while (behind < starts.length && (starts[behind] as number) <= limit) behind++
    if (first === behind) {
      starts.splice(first, 0, start)
      limits.splice(first, 0, limit)
      return true
    }
    const oldStart = starts[first] as number
    const oldLimit = limits[behind - 1] as number
    if (behind - first === 1 && oldStart <= start && limit <= oldLimit) return false
    starts[first] = Math.min(start, oldStart)
    limits[first] = Math.max(limit, oldLimit)
    starts.splice(first + 1, behind - first - 1)
    limits.splice(first + 1, behind - first - 1)
    return true
  }

  /** Takes `[start, limit)` out. */
  remove(start: number, limit: number): void {
    if (start >= limit) return
    const starts = this.#starts
    const limits = this.#limits
    const first = this.#firstWithLimitFrom(start + 1)
    let behind = first
    while (behind < starts.length && (starts[behind] as number) < limit) behind++
    if (first === behind) return
    const oldStart = starts[first] as number
    const oldLimit = limits[behind - 1] as number
    const keepsLow = oldStart < start
    const keepsHigh = oldLimit > limit
    if (keepsLow && keepsHigh && behind - first === 1) {
      limits[first] = start
      starts.splice(behind, 0, limit)
      limits.splice(behind, 0, oldLimit)
      return
    }
    if (keepsLow) limits[first] = start
    if (keepsHigh) starts[behind - 1] = limit
    const from = keepsLow ? first + 1 : first
    const until = keepsHigh ? behind - 1 : behind
    starts.splice(from, until - from)
    limits.splice(from, until - from)
  }

  contains(number: number): boolean {
    const index = this.#firstWithLimitFrom(number + 1)
    return index < this.#starts.length && (this.#starts[index] as number) <= number
  }

  /** All of `[start, limit)` is there; true of an empty range. */
  containsRange(start: number, limit: number): boolean {
    if (start >= limit) return true
    const index = this.#firstWithLimitFrom(start + 1)
    return index < this.#starts.length && (this.#starts[index] as number) <= start && limit <= (this.#limits[index] as number)
  }

  /** Takes the lowest range out. */
  dropLowest(): void {
    this.#starts.shift()
    this.#limits.shift()
  }

  clear(): void {
    this.#starts.length = 0
    this.#limits.length = 0
  }

  /** The index of the first range whose limit is at least `number`; `count` if there is none. */
  #firstWithLimitFrom(number: number): number {
    const limits = this.#limits
    let low = 0
    let high = limits.length
    // What is asked for is mostly near the upper end.
    if (high > 0 && (limits[high - 1] as number) < number) return high
    while (low < high) {
      const middle = (low + high) >> 1
      if ((limits[middle] as number) < number) low = middle + 1
      else high = middle
    }
    return low
  }
}
