import { List } from '../bytes/index.ts'
import type { Instant } from '../http/index.ts'
import { giveBackSentPacket, type SentPacket } from './sent-packet.ts'

/** RFC 9002 §6.1.1: a packet is lost when one that was sent three later is acknowledged. */
const packetThreshold = 3
/** Packets that ask for no acknowledgement and are remembered all the same, at most. */
const mostQuiet = 128
/** So many packets in a row that ask for nothing, and the next one should (RFC 9000 §13.2.4). */
const quietRun = 32

/**
 * The packets of one packet number space that were sent and are neither acknowledged nor lost, in the
 * order of their numbers. Finding the acknowledged ones starts at the oldest; that is no walk, since
 * loss detection leaves at most two packets behind that are older than an acknowledged one.
 */
export class SentSpace {
  readonly packets: List<SentPacket>
  /** The number of the next packet. */
  nextNumber: number
  /** −1 for none. */
  largestAcknowledged: number
  /** When the oldest packet counts as lost, if it is not acknowledged meanwhile; Infinity: nothing older than what is acknowledged is missing. */
  lossTime: Instant
  /** When the last packet that asks for an acknowledgement was sent. */
  lastElicitingAt: Instant
  /** Packets in `packets` that ask for an acknowledgement. */
  elicitingCount: number
  /** Probes to be sent in this space, whatever the window is. */
  probes: number
  /** When the newest packet that is acknowledged was sent. */
  newestAckedSentAt: Instant
  /** When the losses began that `takeLost` returned the duration of. */
  longestLossSince: Instant
  /** Packets in `packets` that do not count as in flight. */
  #quietCount: number
  /** Packets in a row that asked for no acknowledgement. */
  #quietRun: number
  /** The packet that was sent last is acknowledged. */
  #endIsAcked: boolean
  /** When the first packet of the losses in a row that are the newest was sent; Infinity: none is lost. */
  #lossesSince: Instant

  constructor() {
    this.packets = new List()
    this.nextNumber = 0
    this.largestAcknowledged = -1
    this.lossTime = Infinity
    this.lastElicitingAt = -Infinity
    this.elicitingCount = 0
    this.probes = 0
    this.newestAckedSentAt = -Infinity
    this.longestLossSince = Infinity
    this.#quietCount = 0
    this.#quietRun = 0
    this.#endIsAcked = false
    this.#lossesSince = Infinity
  }

  /**
   * Many packets asked for no acknowledgement, as those of a receiver do: the next one should have a
   * PING, so that the peer's acknowledgement lets old ranges be forgotten (RFC 9000 §13.2.4).
   */
  get wantsPing(): boolean {
    return this.#quietRun >= quietRun
  }

  /** Appends a packet that was sent. */
  append(packet: SentPacket): void {
    packet.afterAcked = this.#endIsAcked
    this.#endIsAcked = false
    this.packets.append(packet)
    if (packet.ackEliciting) {
      this.lastElicitingAt = packet.timeSent
      this.elicitingCount++
      this.#quietRun = 0
      if (this.probes > 0) this.probes--
      return
    }
    this.#quietRun++
    if (packet.inFlight) return
    if (++this.#quietCount > mostQuiet) this.#forgetQuiet()
  }

  /** Moves what `ranges` (pairs `[smallest, largest]`, the newest first) acknowledge to `into`. */
  takeAcked(ranges: Float64Array, count: number, into: List<SentPacket>): void {
    let packet = this.packets.first
    if (packet === undefined) return
    let index = 0
    while (index + 1 < count && (ranges[2 * index + 3] as number) >= packet.packetNumber) index++
    while (packet !== undefined && index >= 0) {
      if (packet.packetNumber > (ranges[2 * index + 1] as number)) {
        index--
        continue
      }
      const next = packet.next as SentPacket | undefined
      if (packet.packetNumber >= (ranges[2 * index] as number)) {
        this.#remove(packet)
        if (next === undefined) this.#endIsAcked = true
        else next.afterAcked = true
        if (packet.timeSent > this.newestAckedSentAt) this.newestAckedSentAt = packet.timeSent
        into.append(packet)
      }
      packet = next
    }
  }

  /**
   * Moves what counts as lost to `into`, and sets `lossTime` (RFC 9002 §6.1, §A.10). Returns the longest
   * time (ms) in which packets that ask for acknowledgements were sent and none was acknowledged;
   * those that were sent by `firstSampleAt` do not count (RFC 9002 §7.6.2).
   */
  takeLost(lossDelay: number, firstSampleAt: Instant, now: Instant, into: List<SentPacket>): number {
    this.lossTime = Infinity
    let duration = 0
    let packet = this.packets.first
    while (packet !== undefined && packet.packetNumber < this.largestAcknowledged) {
      const next = packet.next as SentPacket | undefined
      const lostAt = packet.timeSent + lossDelay
      if (packet.packetNumber + packetThreshold > this.largestAcknowledged && lostAt > now) {
        if (packet.inFlight) {
          this.lossTime = lostAt
          break
        }
      } else {
        if (packet.afterAcked) this.#lossesSince = Infinity
        if (packet.ackEliciting && packet.timeSent > firstSampleAt) {
          if (this.#lossesSince === Infinity) this.#lossesSince = packet.timeSent
          if (packet.timeSent - this.#lossesSince > duration) {
            duration = packet.timeSent - this.#lossesSince
            this.longestLossSince = this.#lossesSince
          }
        }
        this.#remove(packet)
        into.append(packet)
      }
      packet = next
    }
    return duration
  }

  /** Moves packets to `into`, all or only those of 0-RTT, so that what they carried can be sent anew. */
  takeAll(onlyEarly: boolean, into: List<SentPacket>): void {
    let packet = this.packets.first
    while (packet !== undefined) {
      const next = packet.next as SentPacket | undefined
      if (!onlyEarly || packet.isEarly) {
        if (packet.afterAcked && next !== undefined) next.afterAcked = true
        this.#remove(packet)
        into.append(packet)
      }
      packet = next
    }
    this.lossTime = Infinity
    this.#lossesSince = Infinity
  }

  /** A new measure of losses in a row begins. */
  restartLosses(): void {
    this.#lossesSince = Infinity
  }

  #remove(packet: SentPacket): void {
    this.packets.remove(packet)
    if (packet.ackEliciting) this.elicitingCount--
    else if (!packet.inFlight) this.#quietCount--
  }

  /** A peer that acknowledges nothing must not make what is remembered grow: the older half of the quiet packets goes. */
  #forgetQuiet(): void {
    let packet = this.packets.first
    while (packet !== undefined && this.#quietCount > mostQuiet / 2) {
      const next = packet.next as SentPacket | undefined
      if (!packet.ackEliciting && !packet.inFlight) {
        if (packet.afterAcked && next !== undefined) next.afterAcked = true
        this.#remove(packet)
        giveBackSentPacket(packet)
      }
      packet = next
    }
  }
}
