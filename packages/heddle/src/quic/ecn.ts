import type { EcnTotals } from './ack-writer.ts'
import { spaceCount, type Space } from './space.ts'

/** The two bits of ECN in an IP header (RFC 3168 §5). */
export const Ecn = { none: 0, ect1: 1, ect0: 2, ce: 3 } as const
export type Ecn = (typeof Ecn)[keyof typeof Ecn]

/** Packets that are marked to find out whether marks get through (RFC 9000 §A.4). */
const trials = 10

/** How many packets with each mark arrived in a space (RFC 9000 §13.4.1). */
export class EcnCounter implements EcnTotals {
  ect0: number
  ect1: number
  ce: number

  constructor() {
    this.ect0 = 0
    this.ect1 = 0
    this.ce = 0
  }

  count(mark: number): void {
    if (mark === Ecn.ect0) this.ect0++
    else if (mark === Ecn.ect1) this.ect1++
    else if (mark === Ecn.ce) this.ce++
  }

  /** A mark was seen. */
  get isMarked(): boolean {
    return this.ect0 + this.ect1 + this.ce > 0
  }
}

/**
 * Whether the path carries ECN marks, and the peer tells of them honestly (RFC 9000 §13.4.2, §A.4).
 *
 *     testing ──ten packets marked──► unknown ──they are acknowledged, marks and all──► capable
 *        └───────┴────all of them are lost, or the counts are wrong────┴────────► failed
 */
export class EcnValidation {
  state: 'testing' | 'unknown' | 'capable' | 'failed'
  readonly #enabled: boolean
  /** Marked packets sent, by space. */
  readonly #sent: Float64Array
  /** Marked packets sent on this path, and lost. */
  #sentTotal: number
  #lost: number
  /** The counts that the peer told last, by space. */
  readonly #ect0: Float64Array
  readonly #ce: Float64Array

  constructor(enabled: boolean) {
    this.state = enabled ? 'testing' : 'failed'
    this.#enabled = enabled
    this.#sent = new Float64Array(spaceCount)
    this.#sentTotal = 0
    this.#lost = 0
    this.#ect0 = new Float64Array(spaceCount)
    this.#ce = new Float64Array(spaceCount)
  }

  /** Another path is tried anew; the peer's counts go on (RFC 9000 §13.4.2). */
  restart(): void {
    this.state = this.#enabled ? 'testing' : 'failed'
    this.#sentTotal = 0
    this.#lost = 0
  }

  /** How the next datagram is marked. */
  get mark(): Ecn {
    return this.state === 'testing' || this.state === 'capable' ? Ecn.ect0 : Ecn.none
  }

  /** A packet marked ECT(0) was sent. */
  onSent(space: Space): void {
    this.#sent[space] = (this.#sent[space] as number) + 1
    if (++this.#sentTotal >= trials && this.state === 'testing') this.state = 'unknown'
  }

  /** A probe timeout expired `count` times in a row: perhaps it is the marks that do not get through. */
  onProbeTimeout(count: number): void {
    if (this.state === 'testing' && this.#sentTotal > 0 && count >= 2) this.state = 'unknown'
  }

  /** Packets marked ECT(0) were lost. */
  onLost(count: number): void {
    this.#lost += count
    // RFC 9000 §13.4.2: none of them got through.
    if (this.state === 'unknown' && this.#lost >= this.#sentTotal) this.state = 'failed'
  }

  /**
   * An ACK frame acknowledged `marked` packets anew that were marked ECT(0). `counts`: what it says of
   * marks, if anything. `isNewest`: its largest number is larger than all before. True: the network
   * reports congestion anew.
   */
  onAcked(space: Space, marked: number, counts: EcnTotals | undefined, isNewest: boolean): boolean {
    // RFC 9000 §13.4.2.1: frames that arrive out of order prove nothing.
    if (this.state === 'failed' || !isNewest) return false
    if (counts === undefined) {
      if (marked > 0) this.state = 'failed'
      return false
    }
    const ect0Rise = counts.ect0 - (this.#ect0[space] as number)
    const ceRise = counts.ce - (this.#ce[space] as number)
    const sent = this.#sent[space] as number
    // RFC 9000 §13.4.2.1: fewer marks than marked packets, more than were sent, or one that is never sent.
    const isWrong = ect0Rise < 0 || ceRise < 0 || ect0Rise + ceRise < marked || counts.ect0 + counts.ce > sent || counts.ect1 > 0
    if (isWrong) {
      this.state = 'failed'
      return false
    }
    this.#ect0[space] = counts.ect0
    this.#ce[space] = counts.ce
    if (marked > 0 && this.state !== 'capable') this.state = 'capable'
    return ceRise > 0
  }
}
