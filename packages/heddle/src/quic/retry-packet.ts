/** The two packets without packet protection: Retry and Version Negotiation. A server sends them without a connection. */
import type { QuicCrypto } from '../native/index.ts'
import { PacketType, retryTagSize, version1 } from './packet.ts'
import { writeConnectionId, writeUint32 } from './packet-writer.ts'

/**
 * A Retry packet (RFC 9000 §17.2.5). `destination`: the client's Source Connection ID; `source`: the id
 * that the server chose for it; `originalDestination`: the Destination Connection ID of the Initial
 * packet that is answered. `unused`: four random bits.
 */
export function retryPacket(
  cryptography: QuicCrypto,
  destination: Uint8Array,
  source: Uint8Array,
  originalDestination: Uint8Array,
  token: Uint8Array,
  unused: number,
): Uint8Array {
  const size = 7 + destination.length + source.length + token.length + retryTagSize
  const packet = new Uint8Array(size)
  packet[0] = 0xc0 | (PacketType.retry << 4) | (unused & 0x0f)
  let at = writeUint32(packet, 1, version1)
  at = writeConnectionId(packet, at, destination)
  at = writeConnectionId(packet, at, source)
  packet.set(token, at)
  packet.set(cryptography.retryTag(pseudoPacket(originalDestination, packet, 0, size - retryTagSize)), size - retryTagSize)
  return packet
}

/**
 * The Retry packet from `start` to `limit` was made by somebody who saw the client's Initial packet with
 * the Destination Connection ID `originalDestination` (RFC 9001 §5.8).
 */
export function verifyRetry(
  cryptography: QuicCrypto,
  buffer: Uint8Array,
  start: number,
  limit: number,
  originalDestination: Uint8Array,
): boolean {
  const tagStart = limit - retryTagSize
  if (tagStart <= start) return false
  const tag = cryptography.retryTag(pseudoPacket(originalDestination, buffer, start, tagStart))
  let difference = 0
  for (let i = 0; i < retryTagSize; i++) difference |= (tag[i] as number) ^ (buffer[tagStart + i] as number)
  return difference === 0
}

/** RFC 9001 §5.8: the original id with its length, then the packet without its tag. */
function pseudoPacket(originalDestination: Uint8Array, buffer: Uint8Array, start: number, limit: number): Uint8Array {
  const pseudo = new Uint8Array(1 + originalDestination.length + limit - start)
  pseudo.set(buffer.subarray(start, limit), writeConnectionId(pseudo, 0, originalDestination))
  return pseudo
}

/**
 * A Version Negotiation packet (RFC 9000 §17.2.1), the answer to a packet of an unknown version whose
 * ids it gives back crossed. `unused`: six random bits.
 */
export function versionNegotiationPacket(
  destination: Uint8Array,
  source: Uint8Array,
  versions: readonly number[],
  unused: number,
): Uint8Array {
  const packet = new Uint8Array(7 + destination.length + source.length + 4 * versions.length)
  // The fixed bit is set, for whoever tells QUIC from other protocols by it (§17.2.1).
  packet[0] = 0xc0 | (unused & 0x3f)
  let at = writeUint32(packet, 1, 0)
  at = writeConnectionId(packet, at, destination)
  at = writeConnectionId(packet, at, source)
  for (const version of versions) at = writeUint32(packet, at, version)
  return packet
}

/** The versions of a Version Negotiation packet: the octets from `start` to `limit`. A part of one at the end is ignored. */
export function readVersions(buffer: Uint8Array, start: number, limit: number): number[] {
  const versions: number[] = []
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
  for (let at = start; at + 4 <= limit; at += 4) versions.push(view.getUint32(at))
  return versions
}
