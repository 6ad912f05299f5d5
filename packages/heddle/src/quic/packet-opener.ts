import type { HeaderKey } from '../native/index.ts'
import { decodePacketNumber } from './packet-number.ts'
import { tagSize } from './packet-writer.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** The mask of one packet: made and used in one go. */
const mask = new Uint8Array(16)

/**
 * How many packets of a connection could not be opened, whatever the key (RFC 9001 §6.6). One for all
 * the keys of a connection.
 */
export class ForgeryCount {
  count: number

  constructor() {
    this.count = 0
  }
}

/** Hides the first octet's low bits and the packet number (RFC 9001 §5.4.1). The payload is sealed already. */
export function maskHeader(key: HeaderKey, buffer: Uint8Array, packetStart: number, packetNumberStart: number, numberSize: number): void {
  key.mask(buffer, packetNumberStart + 4, mask)
  const first = buffer[packetStart] as number
  buffer[packetStart] = first ^ ((mask[0] as number) & hiddenBits(first))
  for (let i = 0; i < numberSize; i++) buffer[packetNumberStart + i] = (buffer[packetNumberStart + i] as number) ^ (mask[i + 1] as number)
}

/** A long header hides four bits, a short one five (RFC 9001 §5.4.1). */
function hiddenBits(first: number): number {
  return first < 0x80 ? 0x1f : 0x0f
}

/** What the opening of packets leaves behind: valid after `open` said true, until it is called again. */
export class PacketOpener {
  packetNumber: number
  /** Where the frames begin. */
  payloadStart: number
  /** Behind the last octet of the frames. */
  payloadLimit: number
  /** The connection must end: set when `open` returned false for more than a packet that is to be dropped. */
  fault: TransportFault | undefined

  constructor() {
    this.packetNumber = 0
    this.payloadStart = 0
    this.payloadLimit = 0
    this.fault = undefined
  }

  /** Takes header protection off, in place, and finds the packet number. False if the packet is too short for that. */
  unmask(
    key: HeaderKey,
    buffer: Uint8Array,
    packetStart: number,
    packetNumberStart: number,
    limit: number,
    largestReceived: number,
  ): boolean {
    this.fault = undefined
    // RFC 9001 §5.4.2: a packet without a whole sample is discarded.
    if (packetNumberStart + 4 + tagSize > limit) return false
    key.mask(buffer, packetNumberStart + 4, mask)
    const hidden = buffer[packetStart] as number
    const first = hidden ^ ((mask[0] as number) & hiddenBits(hidden))
    buffer[packetStart] = first
    const size = (first & 3) + 1
    let truncated = 0
    for (let i = 0; i < size; i++) {
      const octet = (buffer[packetNumberStart + i] as number) ^ (mask[i + 1] as number)
      buffer[packetNumberStart + i] = octet
      truncated = truncated * 256 + octet
    }
    this.packetNumber = decodePacketNumber(truncated, size, largestReceived)
    this.payloadStart = packetNumberStart + size
    this.payloadLimit = limit - tagSize
    return true
  }

  /** What must hold of a packet once its AEAD was found right. */
  accept(buffer: Uint8Array, packetStart: number): boolean {
    const first = buffer[packetStart] as number
    // RFC 9000 §17.2, §17.3.1: reserved bits that are not 0, seen only now so that nobody else can set them.
    if ((first & (first < 0x80 ? 0x18 : 0x0c)) === 0) return true
    return this.refuse(TransportError.protocolViolation, 'reserved bits are set')
  }

  /** Counts a packet that could not be opened. `limit`: of the suite. */
  countForgery(forgeries: ForgeryCount, limit: number): false {
    forgeries.count++
    if (forgeries.count <= limit) return false
    return this.refuse(TransportError.aeadLimitReached, 'too many packets could not be opened')
  }

  refuse(code: TransportError, reason: string): false {
    this.fault = transportFault(code, 0, reason)
    return false
  }
}
