/** Spreads a 32-bit seed over many bits (splitmix32), so that the seeds 1, 2, 3 give unrelated sequences. */
function spread(state: number): number {
  let z = (state + 0x9e3779b9) | 0
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad)
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
  return (z ^ (z >>> 15)) >>> 0
}

/**
 * A seeded generator (xoshiro128**): the same seed gives the same sequence on every machine. For
 * tests only; it keeps no secret.
 */
export class Random {
  readonly seed: number
  #a: number
  #b: number
  #c: number
  #d: number

  /** `seed`: any integer; its low 32 bits count. */
  constructor(seed: number) {
    this.seed = seed
    this.#a = spread(seed)
    this.#b = spread(this.#a)
    this.#c = spread(this.#b)
    this.#d = spread(this.#c)
    if ((this.#a | this.#b | this.#c | this.#d) === 0) this.#a = 1
  }

  /** The next 32 random bits, as an unsigned integer. */
  next(): number {
    const product = Math.imul(this.#b, 5)
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0
    const shifted = this.#b << 9
    this.#c ^= this.#a
    this.#d ^= this.#b
    this.#b ^= this.#c
    this.#a ^= this.#d
    this.#c ^= shifted
    this.#d = (this.#d << 11) | (this.#d >>> 21)
    return result
  }

  /** A fraction in [0, 1). */
  fraction(): number {
    return this.next() / 2 ** 32
  }

  /** An integer between `low` and `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1))
  }

  /** A length between 0 and `most`, small ones as likely as large ones (each power of two has its share). */
  length(most: number): number {
    const bits = this.integer(0, Math.ceil(Math.log2(most + 1)))
    return Math.min(most, this.integer(bits === 0 ? 0 : 2 ** (bits - 1), 2 ** bits - 1))
  }

  /** True with this probability (0 to 1). */
  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  /** One of `items`, which must not be empty. */
  pick<T>(items: readonly T[]): T {
    return items[this.integer(0, items.length - 1)] as T
  }

  /** A shuffled copy of `items`. */
  shuffle<T>(items: readonly T[]): T[] {
    const shuffled = [...items]
    for (let i = shuffled.length - 1; i > 0; i--) {
      const j = this.integer(0, i)
      const item = shuffled[i] as T
      shuffled[i] = shuffled[j] as T
      shuffled[j] = item
    }
    return shuffled
  }

  /** `byteCount` random bytes. */
  bytes(byteCount: number): Buffer {
    const bytes = Buffer.allocUnsafe(byteCount)
    let i = 0
    for (; i + 4 <= byteCount; i += 4) bytes.writeUInt32LE(this.next(), i)
    for (let bits = this.next(); i < byteCount; i++, bits >>>= 8) bytes[i] = bits & 0xff
    return bytes
  }

  /** A generator of its own, so that what one part of a test draws does not shift what another gets. */
  fork(): Random {
    return new Random(this.next())
  }
}
