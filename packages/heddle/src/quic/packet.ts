import { ByteReader } from '../bytes/index.ts'

/** QUIC version 1 (RFC 9000 §15). */
export const version1 = 0x0000_0001

/** RFC 9000 §17.2: in version 1 a connection id has at most 20 octets. */
export const maxConnectionIdSize = 20

/** The first four are the types of version 1 as the wire has them (RFC 9000 §17.2). */
export const PacketType = {
  initial: 0,
  zeroRtt: 1,
  handshake: 2,
  retry: 3,
  oneRtt: 4,
  versionNegotiation: 5,
  /** A long header of a version that is not known here: only what every version has was read (RFC 8999). */
  unknownVersion: 6,
} as const
export type PacketType = (typeof PacketType)[keyof typeof PacketType]

/** Octets from the start of the packet number that a packet has at least: 4 and the sample's 16 (RFC 9001 §5.4.2). */
const shortestProtected = 20
/** The Retry integrity tag (RFC 9001 §5.8). */
export const retryTagSize = 16

const none = new Uint8Array(0)

/**
 * The packets of one datagram, one after the other, as far as they can be told apart without keys. What
 * is not a packet is silently left out, as RFC 9000 §5.2 wants: `next` is then false, or gives the next
 * packet. Positions are those of the buffer.
 */
export class PacketReader {
  buffer: Uint8Array
  type: PacketType
  /** 0 for a short header and for Version Negotiation. */
  version: number
  /** The packet's first octet; what header protection hides is still hidden. */
  packetStart: number
  /** Behind the packet's last octet. */
  packetLimit: number
  destinationStart: number
  destinationLimit: number
  /** Empty for a short header. */
  sourceStart: number
  sourceLimit: number
  /** The token of an Initial or Retry packet; else empty. */
  tokenStart: number
  tokenLimit: number
  /** Where the packet number begins, in a type that has one; for Version Negotiation where the list of versions begins. */
  payloadStart: number

  readonly #reader: ByteReader
  #limit: number
  #localIdSize: number
  #firstDestinationStart: number
  #firstDestinationLimit: number

  constructor() {
    this.buffer = none
    this.type = PacketType.oneRtt
    this.version = 0
    this.packetStart = 0
    this.packetLimit = 0
    this.destinationStart = 0
    this.destinationLimit = 0
    this.sourceStart = 0
    this.sourceLimit = 0
    this.tokenStart = 0
    this.tokenLimit = 0
    this.payloadStart = 0
    this.#reader = new ByteReader()
    this.#limit = 0
    this.#localIdSize = 0
    this.#firstDestinationStart = -1
    this.#firstDestinationLimit = -1
  }

  /**
   * Begins with a datagram. `localIdSize`: octets of the connection ids that this endpoint chose, which a
   * short header does not tell.
   */
  start(buffer: Uint8Array, start: number, limit: number, localIdSize: number): this {
    this.buffer = buffer
    this.packetStart = start
    this.packetLimit = start
    this.#limit = limit
    this.#localIdSize = localIdSize
    this.#firstDestinationStart = -1
    this.#firstDestinationLimit = -1
    return this
  }

  /** Goes to the next packet; false if there is none. */
  next(): boolean {
    while (this.packetLimit < this.#limit) {
      const start = this.packetLimit
      this.packetStart = start
      // A packet whose end is not known takes the rest of the datagram with it.
      this.packetLimit = this.#limit
      const first = this.buffer[start] as number
      const isPacket = first < 0x80 ? this.#readShort(start, first) : this.#readLong(start, first)
      if (isPacket && this.#hasSameDestination()) return true
    }
    return false
  }

  #readShort(start: number, first: number): boolean {
    // RFC 9000 §17.3.1: without the fixed bit it is not a packet of this version.
    if ((first & 0x40) === 0) return false
    const idLimit = start + 1 + this.#localIdSize
    if (this.#limit - idLimit < shortestProtected) return false
    this.type = PacketType.oneRtt
    this.version = 0
    this.destinationStart = start + 1
    this.destinationLimit = idLimit
    this.sourceStart = idLimit
    this.sourceLimit = idLimit
    this.tokenStart = idLimit
    this.tokenLimit = idLimit
    this.payloadStart = idLimit
    return true
  }

  #readLong(start: number, first: number): boolean {
    const reader = this.#reader.start(this.buffer, start + 1, this.#limit)
    this.version = reader.uint32()
    // RFC 8999 §5.1: in an unknown version the ids may have up to 255 octets.
    const destinationSize = reader.uint8()
    this.destinationStart = reader.skip(destinationSize)
    this.destinationLimit = reader.at
    const sourceSize = reader.uint8()
    this.sourceStart = reader.skip(sourceSize)
    this.sourceLimit = reader.at
    this.tokenStart = reader.at
    this.tokenLimit = reader.at
    this.payloadStart = reader.at
    if (reader.failed) return false
    if (this.version !== version1) {
      this.type = this.version === 0 ? PacketType.versionNegotiation : PacketType.unknownVersion
      return true
    }
    // RFC 9000 §17.2: longer ids and a fixed bit of 0 are not of this version.
    if ((first & 0x40) === 0 || destinationSize > maxConnectionIdSize || sourceSize > maxConnectionIdSize) return false
    this.type = ((first >>> 4) & 3) as PacketType
    return this.type === PacketType.retry ? this.#readRetry(reader) : this.#readNumbered(reader)
  }

  #readRetry(reader: ByteReader): boolean {
    // RFC 9000 §17.2.5.2: a Retry packet without a token is discarded.
    if (reader.remaining <= retryTagSize) return false
    this.tokenLimit = this.#limit - retryTagSize
    this.payloadStart = this.tokenLimit
    return true
  }

  #readNumbered(reader: ByteReader): boolean {
    if (this.type === PacketType.initial) {
      const tokenSize = reader.varint()
      this.tokenStart = reader.skip(tokenSize)
      this.tokenLimit = reader.at
    }
    const length = reader.varint()
    this.payloadStart = reader.skip(length)
    if (reader.failed) return false
    this.packetLimit = reader.at
    return length >= shortestProtected
  }

  /** RFC 9000 §12.2: a packet for another connection id than the first one of the datagram is left out. */
  #hasSameDestination(): boolean {
    const { buffer, destinationStart: start, destinationLimit: limit } = this
    const first = this.#firstDestinationStart
    if (first < 0) {
      this.#firstDestinationStart = start
      this.#firstDestinationLimit = limit
      return true
    }
    if (this.#firstDestinationLimit - first !== limit - start) return false
    for (let i = start; i < limit; i++) if (buffer[i] !== buffer[first + i - start]) return false
    return true
  }
}
