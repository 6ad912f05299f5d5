import { RangeSet } from '../bytes/index.ts'
import type { Instant } from '../http/index.ts'
import type { EcnTotals } from './ack-writer.ts'
import { Ecn, EcnCounter } from './ecn.ts'
import { Space } from './space.ts'

/** Ranges that are remembered and told. */
const mostRanges = 64

/** When acknowledgements are sent. */
export interface AckOptions {
  /** ms an acknowledgement waits for company at most: what our max_ack_delay promises. Default 25. */
  readonly maxAckDelay?: number
  /** Ack-eliciting packets that are acknowledged together at most. Default 2 (RFC 9000 §13.2.2). */
  readonly threshold?: number
}

/**
 * The packets of one space that arrived: what an ACK frame says of them, and when one is due
 * (RFC 9000 §13.2). At most 64 ranges are kept. Numbers below all of them count as seen, so what could
 * not be acknowledged any more is not accepted either (§13.2.3).
 */
export class ReceivedPackets {
  /** What an ACK frame acknowledges. */
  readonly ranges: RangeSet
  /** The largest number that arrived; −1 for none. */
  largest: number
  /** Something arrived that no ACK frame has told: worth one in any packet that is sent anyway. */
  hasNews: boolean
  /** An ACK frame has to be sent at once. */
  shouldAckNow: boolean
  /** When one has to be sent at the latest; Infinity if nothing that arrived asks for one. */
  deadline: Instant
  readonly #ecn: EcnCounter
  readonly #maxAckDelay: number
  readonly #threshold: number
  /** Every number below it counts as seen. */
  #floor: number
  #largestAt: Instant
  #largestEliciting: number
  /** Ack-eliciting packets since the last ACK frame. */
  #waiting: number
  /** The smallest number since the last ACK frame. */
  #smallestNews: number

  constructor(space: Space, options: AckOptions = {}) {
    this.ranges = new RangeSet()
    this.largest = -1
    this.hasNews = false
    this.shouldAckNow = false
    this.deadline = Infinity
    this.#ecn = new EcnCounter()
    // RFC 9000 §13.2.1: Initial and Handshake packets are acknowledged at once.
    this.#maxAckDelay = options.maxAckDelay ?? 25
    this.#threshold = space === Space.application ? (options.threshold ?? 2) : 1
    this.#floor = 0
    this.#largestAt = 0
    this.#largestEliciting = -1
    this.#waiting = 0
    this.#smallestNews = Infinity
  }

  /** The packet was received before, or is so old that nobody knows: it is dropped. */
  isDuplicate(packetNumber: number): boolean {
    if (packetNumber > this.largest) return false
    return packetNumber < this.#floor || this.ranges.contains(packetNumber)
  }

  /** The ECN counts for an ACK frame, if marks were seen. */
  get ecnTotals(): EcnTotals | undefined {
    return this.#ecn.isMarked ? this.#ecn : undefined
  }

  /** How long the largest packet has waited for its acknowledgement (ms). */
  ackDelay(now: Instant): number {
    return Math.max(0, now - this.#largestAt)
  }

  /** A packet was received and processed. `ecn`: how its datagram was marked. */
  receive(packetNumber: number, ackEliciting: boolean, ecn: number, now: Instant): void {
    if (this.isDuplicate(packetNumber)) return
    const { ranges } = this
    ranges.add(packetNumber, packetNumber + 1)
    if (ranges.count > mostRanges) {
      this.#floor = ranges.limit(0)
      ranges.dropLowest()
    }
    this.#ecn.count(ecn)
    if (packetNumber > this.largest) {
      this.largest = packetNumber
      this.#largestAt = now
    }
    this.hasNews = true
    if (packetNumber < this.#smallestNews) this.#smallestNews = packetNumber
    if (!ackEliciting) return

    if (this.#isOutOfOrder(packetNumber) || ecn === Ecn.ce) this.shouldAckNow = true
    if (packetNumber > this.#largestEliciting) this.#largestEliciting = packetNumber
    if (++this.#waiting >= this.#threshold) this.shouldAckNow = true
    if (this.deadline === Infinity) this.deadline = now + this.#maxAckDelay
  }

  /** Time has come to `now`: an acknowledgement that waited long enough is due. */
  expire(now: Instant): void {
    if (now >= this.deadline) this.shouldAckNow = true
  }

  /** An ACK frame with all of `ranges` was sent. */
  onAckSent(): void {
    this.hasNews = false
    this.shouldAckNow = false
    this.deadline = Infinity
    this.#waiting = 0
    this.#smallestNews = Infinity
  }

  /** The peer has an ACK frame of ours that went up to `largestAcknowledged`: no need to say that again (RFC 9000 §13.2.4). */
  onAckOfAck(largestAcknowledged: number): void {
    // What came late and has not been acknowledged yet stays.
    const limit = Math.min(largestAcknowledged + 1, this.#smallestNews)
    if (limit <= this.#floor) return
    this.ranges.remove(0, limit)
    this.#floor = limit
  }

  /**
   * RFC 9000 §13.2.1: it came late, or something is missing before it, which the peer should know soon.
   * The packet is in `ranges` already.
   */
  #isOutOfOrder(packetNumber: number): boolean {
    if (packetNumber < this.#largestEliciting) return true
    const { ranges } = this
    const known = Math.max(this.#largestEliciting + 1, this.#floor)
    return !ranges.containsRange(known, packetNumber + 1)
  }
}

/** `delay` (ms) as it goes on the wire, in units of 2^`exponent` µs (RFC 9000 §19.3). */
export function ackDelayUnits(delay: number, exponent: number): number {
  return Math.floor((delay * 1000) / 2 ** exponent)
}

/** The ACK Delay field in ms. */
export function ackDelayTime(units: number, exponent: number): number {
  return (units * 2 ** exponent) / 1000
}
