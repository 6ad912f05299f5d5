import type { Linked, List } from '../bytes/index.ts'
import type { Instant } from '../http/index.ts'
import { Carried, carriedWidth } from './carried.ts'
import { Ecn } from './ecn.ts'

/** Packets that are kept for the next to be sent, of all connections of a thread. */
const mostKept = 4_096

/**
 * A packet that was sent and is neither acknowledged nor lost (RFC 9002 §A.1.1). Taken from a pool by
 * `Recovery.takePacket` and given back to it by recovery: nobody keeps one behind `onAcked` and `onLost`.
 */
export class SentPacket implements Linked {
  previous: Linked | undefined
  next: Linked | undefined
  packetNumber: number
  timeSent: Instant
  /** Octets in the datagram, from the header to the tag. */
  size: number
  ackEliciting: boolean
  /** It counts towards the bytes in flight: it asks for an acknowledgement, or has PADDING (RFC 9002 §2). */
  inFlight: boolean
  /** How the datagram is marked: an `Ecn`. */
  ecn: number
  /** It was sent in 0-RTT: it may have to be sent again if the server refuses that. */
  isEarly: boolean
  /** It tries how large a datagram may be: its loss says nothing of congestion (RFC 9000 §14.4). */
  isMtuProbe: boolean
  /** Which keys of 1-RTT protect it: how often they were updated (RFC 9001 §6.1). */
  keyPhase: number
  /** Recovery's: the packet sent before this one was acknowledged. */
  afterAcked: boolean
  /** What it tells, in records of four numbers (carried.ts). */
  carried: number[]

  constructor() {
    this.previous = undefined
    this.next = undefined
    this.packetNumber = 0
    this.timeSent = 0
    this.size = 0
    this.ackEliciting = false
    this.inFlight = false
    this.ecn = 0
    this.isEarly = false
    this.isMtuProbe = false
    this.keyPhase = 0
    this.afterAcked = false
    this.carried = []
  }
}

let kept: SentPacket | undefined
let keptCount = 0

/** A packet as a new one. */
export function takeSentPacket(): SentPacket {
  const packet = kept
  if (packet === undefined) return new SentPacket()
  kept = packet.next as SentPacket | undefined
  keptCount--
  packet.next = undefined
  return packet
}

/** Takes back a packet that stands in no list. */
export function giveBackSentPacket(packet: SentPacket): void {
  if (keptCount >= mostKept) return
  packet.previous = undefined
  packet.size = 0
  packet.ackEliciting = false
  packet.inFlight = false
  packet.ecn = 0
  packet.isEarly = false
  packet.isMtuProbe = false
  packet.keyPhase = 0
  packet.afterAcked = false
  if (packet.carried.length > 0) packet.carried.length = 0
  packet.next = kept
  kept = packet
  keptCount++
}

/** It asks for an acknowledgement, and carries more than a PING and acknowledgements. */
export function hasContent({ ackEliciting, carried }: SentPacket): boolean {
  return ackEliciting && carried.length > (carried[0] === Carried.ack ? carriedWidth : 0)
}

/** One of `packets` asks for an acknowledgement. */
export function hasEliciting(packets: List<SentPacket>): boolean {
  for (let packet = packets.last; packet !== undefined; packet = packet.previous as SentPacket | undefined) {
    if (packet.ackEliciting) return true
  }
  return false
}

/** How many of `packets` were marked ECT(0). */
export function countMarked(packets: List<SentPacket>): number {
  let marked = 0
  for (let packet = packets.first; packet !== undefined; packet = packet.next as SentPacket | undefined) {
    if (packet.ecn === Ecn.ect0) marked++
  }
  return marked
}
