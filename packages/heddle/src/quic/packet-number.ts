/**
 * Packet numbers on the wire are cut to their low 1–4 octets (RFC 9000 §17.1, §A.2, §A.3). A number
 * never reaches 2^53 here: at a million packets a second that takes 285 years.
 */

/** Octets that tell `packetNumber` from every other that may be in flight. `largestAcknowledged`: −1 for none yet. */
export function packetNumberSize(packetNumber: number, largestAcknowledged: number): 1 | 2 | 3 | 4 {
  // RFC 9000 §17.1: able to represent more than twice the range of what is not acknowledged.
  const unacknowledged = packetNumber - largestAcknowledged
  if (unacknowledged <= 0x80) return 1
  if (unacknowledged <= 0x8000) return 2
  return unacknowledged <= 0x80_0000 ? 3 : 4
}

/** Writes the low `size` octets of `packetNumber` at `at`. */
export function writePacketNumber(buffer: Uint8Array, at: number, packetNumber: number, size: number): void {
  if (size > 3) buffer[at++] = packetNumber >>> 24
  if (size > 2) buffer[at++] = packetNumber >>> 16
  if (size > 1) buffer[at++] = packetNumber >>> 8
  buffer[at] = packetNumber
}

/**
 * The packet number whose low `size` octets are `truncated`, and which is nearest to the one after
 * `largestReceived` (−1 for none yet).
 */
export function decodePacketNumber(truncated: number, size: number, largestReceived: number): number {
  const expected = largestReceived + 1
  const window = 2 ** (8 * size)
  const half = window / 2
  const candidate = expected - (expected % window) + truncated
  if (candidate <= expected - half) return candidate + window
  if (candidate > expected + half && candidate >= window) return candidate - window
  return candidate
}
