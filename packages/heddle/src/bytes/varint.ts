/**
 * Variable-length integers (RFC 9000 §16): the top two bits of the first octet say how many octets
 * there are. Numbers are doubles: exact below 2^53, and rounded to 53 bits above.
 */

/** The largest value that a variable-length integer carries, as the nearest double (2^62 − 1 rounds to 2^62). */
export const largestVarint: number = 2 ** 62

/** Octets of the shortest coding of `value`, a whole number from 0 to 2^62 − 1. */
export function varintSize(value: number): 1 | 2 | 4 | 8 {
  if (value < 0x40) return 1
  if (value < 0x4000) return 2
  return value < 0x4000_0000 ? 4 : 8
}

/** Writes the shortest coding of `value` at `at` and returns the position behind it. The buffer must have the room. */
export function writeVarint(buffer: Uint8Array, at: number, value: number): number {
  if (value < 0x40) {
    buffer[at] = value
    return at + 1
  }
  return writeVarintOfSize(buffer, at, value, varintSize(value))
}

/** Writes `value` in exactly `size` octets, which must be enough for it, and returns the position behind it. */
export function writeVarintOfSize(buffer: Uint8Array, at: number, value: number, size: 1 | 2 | 4 | 8): number {
  switch (size) {
    case 1:
      buffer[at] = value
      return at + 1
    case 2:
      buffer[at] = (value >>> 8) | 0x40
      buffer[at + 1] = value
      return at + 2
    case 4:
      buffer[at] = (value >>> 24) | 0x80
      return writeLow(buffer, at + 1, value, 3)
    default: {
      const high = Math.floor(value / 0x1_0000_0000)
      buffer[at] = (high >>> 24) | 0xc0
      writeLow(buffer, at + 1, high, 3)
      return writeLow(buffer, at + 4, value, 4)
    }
  }
}

function writeLow(buffer: Uint8Array, at: number, value: number, octets: 3 | 4): number {
  // `>>>` takes the low 32 bits of any double.
  if (octets === 4) buffer[at++] = value >>> 24
  buffer[at] = value >>> 16
  buffer[at + 1] = value >>> 8
  buffer[at + 2] = value
  return at + 3
}
