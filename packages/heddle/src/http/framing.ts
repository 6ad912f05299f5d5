import type { Fields } from './fields.ts'

/** No content-length, or none that can be used. */
export const noLength = -1
/** content-length is malformed, or given twice with different values. */
export const badLength = -2

/**
 * Reads one content-length value (RFC 9110 §8.6): 1*DIGIT below 2^53, `badLength` for anything else.
 * A list of equal values ("5, 5") is refused too: RFC 9112 §6.3 allows it, and no honest peer sends it.
 */
export function parseLength(value: string): number {
  if (value.length === 0 || value.length > 16) return badLength
  let length = 0
  for (let i = 0; i < value.length; i++) {
    const digit = value.charCodeAt(i) - 0x30
    if (digit < 0 || digit > 9) return badLength
    length = length * 10 + digit
  }
  return length <= Number.MAX_SAFE_INTEGER ? length : badLength
}

/** The content-length of `fields`: a length, `noLength` or `badLength` (also when it stands there twice). */
export function contentLength(fields: Fields): number {
  let length = noLength
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== 'content-length') continue
    if (length !== noLength) return badLength
    length = parseLength(fields[i + 1] as string)
    if (length === badLength) return badLength
  }
  return length
}
