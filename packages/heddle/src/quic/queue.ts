/** From so many places on, those at the front that are empty are given back. */
const fewPlaces = 32

/**
 * First in, first out, in constant time however many wait: an array whose front moves. What has left is
 * not held any more.
 */
export class Queue<T> {
  readonly #places: (T | undefined)[]
  /** The place of the first that waits. */
  #front: number

  constructor() {
    this.#places = []
    this.#front = 0
  }

  /** How many wait. */
  get length(): number {
    return this.#places.length - this.#front
  }

  /** The one that waits longest; it stays. */
  get first(): T | undefined {
    return this.#places[this.#front]
  }

  push(item: T): void {
    this.#places.push(item)
  }

  /** Takes the one that waits longest. */
  shift(): T | undefined {
    const places = this.#places
    const front = this.#front
    if (front === places.length) return undefined
    const item = places[front]
    places[front] = undefined
    this.#front = front + 1
    if (this.#front === places.length) this.clear()
    else if (this.#front >= fewPlaces && this.#front * 2 >= places.length) {
      // Each is moved at most once for each that left.
      places.copyWithin(0, this.#front)
      places.length -= this.#front
      this.#front = 0
    }
    return item
  }

  clear(): void {
    this.#places.length = 0
    this.#front = 0
  }
}
