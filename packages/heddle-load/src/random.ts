/**
 * Numbers that look like chance and follow from a seed, so that a run can be run again: sfc32 by
 * Chris Doty-Humphrey, 32 bits a step.
 */
export class SeededRandom {
  #a: number
  #b: number
  #c: number
  #counter: number

  /** `seed`: any whole number; `stream` sets several with one seed apart. */
  constructor(seed: number, stream = 0) {
    this.#a = seed | 0
    this.#b = Math.floor(seed / 2 ** 32) | 0
    this.#c = stream | 0
    this.#counter = 1
    for (let i = 0; i < 15; i++) this.next()
  }

  /** The next one, at least 0 and below 1. */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }
}

/** Chooses among several by weight. */
export class WeightedChoice {
  readonly #random: SeededRandom
  /** Sums of the weights up to each. */
  readonly #limits: Float64Array

  constructor(weights: readonly number[], random: SeededRandom) {
    this.#random = random
    this.#limits = new Float64Array(weights.length)
    let sum = 0
    for (const [i, weight] of weights.entries()) this.#limits[i] = sum += weight
  }

  /** The index of the next one. */
  next(): number {
    const limits = this.#limits
    const last = limits.length - 1
    if (last === 0) return 0
    const point = this.#random.next() * (limits[last] as number)
    let low = 0
    let high = last
    while (low < high) {
      const middle = (low + high) >>> 1
      if (point < (limits[middle] as number)) high = middle
      else low = middle + 1
    }
    return low
  }
}
