/** First in, first out, in an array that is used again: what waits in a loop. */
export class Ring<T> {
  length: number
  #items: (T | undefined)[]
  #first: number

  constructor() {
    this.length = 0
    this.#items = Array.from({ length: 16 })
    this.#first = 0
  }

  push(item: T): void {
    if (this.length === this.#items.length) this.#grow()
    this.#items[(this.#first + this.length++) & (this.#items.length - 1)] = item
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined
    const item = this.#items[this.#first]
    this.#items[this.#first] = undefined
    this.#first = (this.#first + 1) & (this.#items.length - 1)
    this.length--
    return item
  }

  clear(): void {
    while (this.length > 0) this.shift()
  }

  #grow(): void {
    const { length } = this.#items
    const grown: (T | undefined)[] = Array.from({ length: length * 2 })
    for (let i = 0; i < length; i++) grown[i] = this.#items[(this.#first + i) & (length - 1)]
    this.#items = grown
    this.#first = 0
  }
}
