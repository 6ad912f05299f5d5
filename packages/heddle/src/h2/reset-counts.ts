import { errorName } from './frame.ts'

/** Codes RFC 9113 §7 names; what lies beyond is counted as one. */
const knownCodes = 14

/** How many streams were reset, by code and direction. One object may count for many connections. */
export class ResetCounts {
  readonly #sent: number[]
  readonly #received: number[]

  constructor() {
    this.#sent = Array.from({ length: knownCodes + 1 }, () => 0)
    this.#received = Array.from({ length: knownCodes + 1 }, () => 0)
  }

  /** We reset a stream. */
  countSent(code: number): void {
    count(this.#sent, code)
  }

  /** The peer reset a stream. */
  countReceived(code: number): void {
    count(this.#received, code)
  }

  /** Resets by us: the RFC's word for the code (`CANCEL`, …; `unknown`) → how many; codes that never came are left out. */
  get sent(): Record<string, number> {
    return named(this.#sent)
  }

  /** Resets by the peer, as `sent`. */
  get received(): Record<string, number> {
    return named(this.#received)
  }
}

function count(counts: number[], code: number): void {
  const at = code < knownCodes ? code : knownCodes
  counts[at] = (counts[at] as number) + 1
}

function named(counts: readonly number[]): Record<string, number> {
  const byName: Record<string, number> = {}
  for (const [code, times] of counts.entries()) if (times > 0) byName[code < knownCodes ? errorName(code) : 'unknown'] = times
  return byName
}
