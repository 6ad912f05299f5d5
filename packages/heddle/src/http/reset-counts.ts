/** How many streams were reset, by code and direction. One object may count for many connections. */
export class CodeCounts {
  readonly #names: readonly string[]
  readonly #first: number
  readonly #sent: number[]
  readonly #received: number[]

  /** `names`: the RFC's words for the codes from `first` on. What lies beyond is counted as one. */
  constructor(names: readonly string[], first: number) {
    this.#names = names
    this.#first = first
    this.#sent = Array.from({ length: names.length + 1 }, () => 0)
    this.#received = Array.from({ length: names.length + 1 }, () => 0)
  }

  /** We reset a stream. */
  countSent(code: number): void {
    this.#count(this.#sent, code)
  }

  /** The peer reset a stream. */
  countReceived(code: number): void {
    this.#count(this.#received, code)
  }

  /** Resets by us: the RFC's word for the code (`CANCEL`, …; `unknown`) → how many; codes that never came are left out. */
  get sent(): Record<string, number> {
    return this.#named(this.#sent)
  }

  /** Resets by the peer, as `sent`. */
  get received(): Record<string, number> {
    return this.#named(this.#received)
  }

  #count(counts: number[], code: number): void {
    const at = code - this.#first
    const known = this.#names.length
    const slot = at >= 0 && at < known ? at : known
    counts[slot] = (counts[slot] as number) + 1
  }

  #named(counts: readonly number[]): Record<string, number> {
    const byName: Record<string, number> = {}
    for (const [at, times] of counts.entries()) if (times > 0) byName[this.#names[at] ?? 'unknown'] = times
    return byName
  }
}
