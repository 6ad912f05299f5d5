import type { Instant } from 'heddle/http'
import type { SeededRandom } from './random.ts'

/** How requests of an open loop follow each other: at equal distances, or as independent users come (a Poisson process). */
export type ArrivalKind = 'uniform' | 'poisson'

/** When the requests of an open loop are due. The plan is made from its beginning, never from when something happened, so it cannot drift. */
export class Arrivals {
  /** When the next one is due. */
  next: Instant
  readonly #kind: ArrivalKind
  readonly #start: Instant
  /** ms between two, on average. */
  readonly #distance: number
  readonly #random: SeededRandom
  /** How far the first one is from the beginning, in distances; threads that share a rate stand between each other. */
  readonly #phase: number
  #count: number

  constructor(kind: ArrivalKind, perSecond: number, start: Instant, random: SeededRandom, phase = 0) {
    this.#kind = kind
    this.#start = start
    this.#distance = 1_000 / perSecond
    this.#random = random
    this.#phase = phase
    this.#count = 0
    this.next = start
    if (kind === 'uniform') this.next += phase * this.#distance
    else this.advance()
  }

  /** Goes on to the next one. */
  advance(): void {
    if (this.#kind === 'uniform') this.next = this.#start + (++this.#count + this.#phase) * this.#distance
    // The distances of a Poisson process are exponential; `next()` is never 1, so the logarithm is finite.
    else this.next -= Math.log(1 - this.#random.next()) * this.#distance
  }
}
