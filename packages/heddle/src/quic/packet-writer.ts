import { varintSize, writeVarint, writeVarintOfSize } from '../bytes/index.ts'
import { PacketType } from './packet.ts'
import { packetNumberSize, writePacketNumber } from './packet-number.ts'

/** Octets that the AEAD adds behind the payload: the same for every suite (RFC 9001 §5.3). */
export const tagSize = 16
/** What two octets of Length say at most: a long packet ends there. */
const largestLength = 0x3fff

const none = new Uint8Array(0)

/** What protects a packet: the keys of a level. */
export interface PacketSealer {
  /**
   * Seals the payload in place, writes the tag at `payloadLimit` and masks the header
   * (RFC 9001 §5.3, §5.4).
   */
  seal(
    buffer: Uint8Array,
    headerStart: number,
    packetNumberStart: number,
    payloadStart: number,
    payloadLimit: number,
    packetNumber: number,
  ): void
}

/**
 * A datagram that is being written, packet by packet, in a buffer of the caller's. A packet is started
 * speculatively; the writers of frames append to it; then it is finished, or abandoned if nothing came:
 * so "is there something to send" and "send it" are one path.
 *
 *     startDatagram ─► startLong/startShort ─► write frames ─► finish ─┐
 *                        ▲                           └──► abandon ─────┤
 *                        └─────────── coalesced packets ───────────────┘
 */
export class PacketWriter {
  buffer: Uint8Array
  /** Where the next octet goes. */
  at: number
  /** Behind the last octet that frames of this packet may take; equal to `at` while no packet is open. */
  limit: number
  /** The packet has a frame that asks for an acknowledgement (RFC 9000 §13.2.1). Set by the writers of frames. */
  ackEliciting: boolean
  /** The packet has PADDING: it counts as in flight (RFC 9002 §2). Kept until the next packet is started. */
  padded: boolean
  /** The number of the packet that is open, or was finished last. */
  packetNumber: number
  /** Where the datagram starts. */
  datagramStart: number
  /** Behind the last octet of the datagram. */
  datagramLimit: number
  packetStart: number
  /** Where the Length field is; −1 in a short header. */
  lengthStart: number
  packetNumberStart: number
  payloadStart: number

  constructor() {
    this.buffer = none
    this.at = 0
    this.limit = 0
    this.ackEliciting = false
    this.padded = false
    this.packetNumber = 0
    this.datagramStart = 0
    this.datagramLimit = 0
    this.packetStart = 0
    this.lengthStart = -1
    this.packetNumberStart = 0
    this.payloadStart = 0
  }

  /** Octets that frames of the open packet may still take; 0 while none is open. */
  get room(): number {
    return this.limit - this.at
  }

  /** The open packet has no frame yet. */
  get isEmpty(): boolean {
    return this.at === this.payloadStart
  }

  /** Octets of the datagram so far. */
  get datagramSize(): number {
    return this.at - this.datagramStart
  }

  /** Begins a datagram of at most `limit - start` octets. */
  startDatagram(buffer: Uint8Array, start: number, limit: number): void {
    this.buffer = buffer
    this.datagramStart = start
    this.datagramLimit = Math.min(limit, buffer.length)
    this.packetStart = start
    this.payloadStart = start
    this.at = start
    this.limit = start
    this.ackEliciting = false
    this.padded = false
  }

  /**
   * Starts an Initial, 0-RTT or Handshake packet. False, and nothing written, if the datagram has no room
   * for one. `token`: of an Initial packet; empty otherwise. `largestAcknowledged`: −1 for none.
   */
  startLong(
    type: PacketType,
    version: number,
    destination: Uint8Array,
    source: Uint8Array,
    token: Uint8Array,
    packetNumber: number,
    largestAcknowledged: number,
  ): boolean {
    const size = packetNumberSize(packetNumber, largestAcknowledged)
    const isInitial = type === PacketType.initial
    const tokenSize = isInitial ? varintSize(token.length) + token.length : 0
    const headerSize = 9 + destination.length + source.length + tokenSize + size
    if (!this.#fits(headerSize, size)) return false
    const { buffer, at: start } = this
    // RFC 9000 §17.2: the long header form, the fixed bit, the type, reserved bits of 0, the size of the number.
    buffer[start] = 0xc0 | (type << 4) | (size - 1)
    let at = writeUint32(buffer, start + 1, version)
    at = writeConnectionId(buffer, at, destination)
    at = writeConnectionId(buffer, at, source)
    if (isInitial) {
      at = writeVarint(buffer, at, token.length)
      buffer.set(token, at)
      at += token.length
    }
    this.lengthStart = at
    this.#open(start, at + 2, packetNumber, size)
    this.limit = Math.min(this.limit, this.packetNumberStart + largestLength - tagSize)
    return true
  }

  /**
   * Starts a 1-RTT packet, which is the last of its datagram. False, and nothing written, if there is no
   * room for one. `keyPhase`: 0 or 1. `largestAcknowledged`: −1 for none.
   */
  startShort(destination: Uint8Array, packetNumber: number, largestAcknowledged: number, keyPhase: number, spin: boolean): boolean {
    const size = packetNumberSize(packetNumber, largestAcknowledged)
    if (!this.#fits(1 + destination.length + size, size)) return false
    const { buffer, at: start } = this
    // RFC 9000 §17.3.1: the short header form, the fixed bit, spin, reserved bits of 0, key phase, size of the number.
    buffer[start] = 0x40 | (spin ? 0x20 : 0) | (keyPhase << 2) | (size - 1)
    buffer.set(destination, start + 1)
    this.lengthStart = -1
    this.#open(start, start + 1 + destination.length, packetNumber, size)
    return true
  }

  /** Takes the open packet back. */
  abandon(): void {
    this.at = this.packetStart
    this.payloadStart = this.at
    this.limit = this.at
    this.ackEliciting = false
    this.padded = false
  }

  /**
   * Protects the open packet and returns its octets, tag included; an empty packet is abandoned, and 0
   * returned. `padTo`: PADDING is added until the whole datagram has that many octets, as far as it may.
   */
  finish(keys: PacketSealer, padTo = 0): number {
    if (this.isEmpty) {
      this.abandon()
      return 0
    }
    const { buffer, packetStart, packetNumberStart, payloadStart } = this
    // RFC 9001 §5.4.2: the sample begins 4 octets behind the start of the packet number.
    const shortest = packetNumberStart + 4
    const end = Math.max(shortest, Math.min(this.datagramStart + padTo - tagSize, this.limit))
    if (this.at < end) {
      buffer.fill(0, this.at, end)
      this.at = end
      this.padded = true
    }
    const payloadLimit = this.at
    this.at = payloadLimit + tagSize
    this.limit = this.at
    if (this.lengthStart >= 0) writeVarintOfSize(buffer, this.lengthStart, this.at - packetNumberStart, 2)
    keys.seal(buffer, packetStart, packetNumberStart, payloadStart, payloadLimit, this.packetNumber)
    this.packetStart = this.at
    this.payloadStart = this.at
    return this.at - packetStart
  }

  #fits(headerSize: number, numberSize: number): boolean {
    // At least one octet of payload, and what header protection samples.
    const shortest = headerSize + Math.max(1, 4 - numberSize) + tagSize
    return shortest <= this.datagramLimit - this.at
  }

  #open(start: number, packetNumberStart: number, packetNumber: number, size: number): void {
    writePacketNumber(this.buffer, packetNumberStart, packetNumber, size)
    this.packetStart = start
    this.packetNumberStart = packetNumberStart
    this.packetNumber = packetNumber
    this.payloadStart = packetNumberStart + size
    this.at = this.payloadStart
    this.limit = this.datagramLimit - tagSize
    this.ackEliciting = false
    this.padded = false
  }
}

/** Writes 32 bits, big endian, and returns the position behind them. */
export function writeUint32(buffer: Uint8Array, at: number, value: number): number {
  buffer[at] = value >>> 24
  buffer[at + 1] = value >>> 16
  buffer[at + 2] = value >>> 8
  buffer[at + 3] = value
  return at + 4
}

/** Writes a connection id of a long header, its length first, and returns the position behind it. */
export function writeConnectionId(buffer: Uint8Array, at: number, id: Uint8Array): number {
  buffer[at] = id.length
  buffer.set(id, at + 1)
  return at + 1 + id.length
}
