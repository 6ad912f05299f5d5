/** The integer is not complete in the bytes given. */
export const truncated = -1
/** The integer is larger than this implementation takes, or is coded in too many octets. */
export const tooLarge = -2

// Indices and lengths need no more than 2^32; longer codings are attempts to waste time (RFC 7541 §5.1).
const maxContinuation = 5
// RFC 9204 §4.1.1: stream ids, counts and a Base may have 62 bits.
const maxLargeContinuation = 9

/**
 * Reads integers with a prefix (RFC 7541 §5.1, RFC 9204 §4.1.1). `at` is the position behind the last
 * integer read: one reader per decoder, so that nothing is allocated per integer.
 */
export class IntegerReader {
  at: number

  constructor() {
    this.at = 0
  }

  /** Reads the integer whose prefix is the low `prefixBits` bits of `buffer[start]`; `truncated` or `tooLarge` if there is none. */
  read(buffer: Uint8Array, start: number, limit: number, prefixBits: number): number {
    if (start >= limit) return truncated
    const most = (1 << prefixBits) - 1
    let value = (buffer[start] as number) & most
    let at = start + 1
    if (value < most) {
      this.at = at
      return value
    }
    let factor = 1
    for (let count = 0; ; count++) {
      if (count === maxContinuation) return tooLarge
      if (at >= limit) return truncated
      const octet = buffer[at++] as number
      value += (octet & 0x7f) * factor
      if (octet < 0x80) break
      factor *= 128
    }
    this.at = at
    return value <= 0xffff_ffff ? value : tooLarge
  }

  /** Reads one of up to 62 bits; above 2^53 it is rounded, and good for comparisons only. */
  readLarge(buffer: Uint8Array, start: number, limit: number, prefixBits: number): number {
    if (start >= limit) return truncated
    const most = (1 << prefixBits) - 1
    let value = (buffer[start] as number) & most
    let at = start + 1
    if (value === most) {
      let factor = 1
      for (let count = 0; ; count++) {
        if (count === maxLargeContinuation) return tooLarge
        if (at >= limit) return truncated
        const octet = buffer[at++] as number
        value += (octet & 0x7f) * factor
        if (octet < 0x80) break
        factor *= 128
      }
    }
    this.at = at
    // 2^62 - 1 rounds to 2^62.
    return value <= 2 ** 62 ? value : tooLarge
  }
}

/** Writes `value` with a prefix of `prefixBits` below the bits of `first`, and returns the position behind it. Takes at most 6 octets below 2^32, 10 below 2^62. */
export function writeInteger(value: number, prefixBits: number, first: number, target: Uint8Array, at: number): number {
  const most = (1 << prefixBits) - 1
  if (value < most) {
    target[at] = first | value
    return at + 1
  }
  target[at++] = first | most
  let rest = value - most
  while (rest >= 128) {
    target[at++] = (rest % 128) | 0x80
    rest = Math.floor(rest / 128)
  }
  target[at++] = rest
  return at
}
