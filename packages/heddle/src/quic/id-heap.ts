/** What stands in an {@link IdHeap}. */
export interface Placed {
  readonly id: number
  /** Where it stands in the heap; −1: nowhere. */
  place: number
}

/** The one with the lowest id comes first: a binary heap in which everybody knows their place, so that any may leave. */
export class IdHeap<T extends Placed> {
  readonly #items: T[]

  constructor() {
    this.#items = []
  }

  get length(): number {
    return this.#items.length
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  /** Adds `item`, which must not stand in a heap. */
  add(item: T): void {
    this.#items.push(item)
    this.#rise(item, this.#items.length - 1)
  }

  /** Takes `item` out, which must stand in this heap. */
  remove(item: T): void {
    const { place } = item
    const last = this.#items.pop() as T
    item.place = -1
    if (last === item) return
    this.#sink(last, place)
    this.#rise(last, last.place)
  }

  /** Puts `item` at `place`, or further up. */
  #rise(item: T, place: number): void {
    const items = this.#items
    while (place > 0) {
      const above = (place - 1) >> 1
      const other = items[above] as T
      if (other.id <= item.id) break
      items[place] = other
      other.place = place
      place = above
    }
    items[place] = item
    item.place = place
  }

  /** Puts `item` at `place`, or further down. */
  #sink(item: T, place: number): void {
    const items = this.#items
    for (let below = 2 * place + 1; below < items.length; below = 2 * place + 1) {
      if (below + 1 < items.length && (items[below + 1] as T).id < (items[below] as T).id) below++
      const other = items[below] as T
      if (other.id >= item.id) break
      items[place] = other
      other.place = place
      place = below
    }
    items[place] = item
    item.place = place
  }
}
