import { varintSize, writeVarint, type RangeSet } from '../bytes/index.ts'
import { FrameType } from './frame-type.ts'
import type { PacketWriter } from './packet-writer.ts'

/** How many packets arrived with each mark (RFC 9000 §19.3.2). */
export interface EcnTotals {
  readonly ect0: number
  readonly ect1: number
  readonly ce: number
}

/** Ranges beside the first that one frame carries: their count stays one octet. */
const mostRanges = 63

/**
 * Appends ACK for the packet numbers of `ranges`, with ECN counts if there are any; false if not even the newest range fits.
 * Older ranges are left out when there is no room for them. `ackDelay`: as it goes on the wire, in units
 * of 2^ack_delay_exponent µs.
 */
export function writeAck(writer: PacketWriter, ranges: RangeSet, ackDelay: number, ecn: EcnTotals | undefined): boolean {
  const newest = ranges.count - 1
  if (newest < 0) return false
  const largest = ranges.limit(newest) - 1
  const firstRange = largest - ranges.start(newest)
  const ecnSize = ecn === undefined ? 0 : varintSize(ecn.ect0) + varintSize(ecn.ect1) + varintSize(ecn.ce)
  const needed = 2 + varintSize(largest) + varintSize(ackDelay) + varintSize(firstRange) + ecnSize
  if (needed > writer.room) return false

  const { buffer } = writer
  const rangesLimit = writer.limit - ecnSize
  buffer[writer.at] = ecn === undefined ? FrameType.ack : FrameType.ackEcn
  let at = writeVarint(buffer, writer.at + 1, largest)
  at = writeVarint(buffer, at, ackDelay)
  const countAt = at
  at = writeVarint(buffer, at + 1, firstRange)

  let count = 0
  let smallest = ranges.start(newest)
  for (let index = newest - 1; index >= 0 && count < mostRanges; index--) {
    // RFC 9000 §19.3.1: a gap says one less than the packets in it, a range one less than its packets.
    const gap = smallest - ranges.limit(index) - 1
    const length = ranges.limit(index) - ranges.start(index) - 1
    if (at + varintSize(gap) + varintSize(length) > rangesLimit) break
    at = writeVarint(buffer, writeVarint(buffer, at, gap), length)
    smallest = ranges.start(index)
    count++
  }
  buffer[countAt] = count

  if (ecn !== undefined) {
    at = writeVarint(buffer, at, ecn.ect0)
    at = writeVarint(buffer, at, ecn.ect1)
    at = writeVarint(buffer, at, ecn.ce)
  }
  writer.at = at
  return true
}
