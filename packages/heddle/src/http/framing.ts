import { UsageError } from './errors.ts'
import type { Fields } from './fields.ts'
import { isBodiless } from './status.ts'

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

/** The content-length of a message to send, or `noLength`. `end`: no content follows. Throws UsageError for one that cannot be sent. */
export function declaredLength(fields: Fields, end: boolean): number {
  const length = contentLength(fields)
  if (length === badLength) throw new UsageError('malformed or repeated content-length')
  if (end && length > 0) throw new UsageError(`content-length is ${length}, and no content follows`)
  return length
}

/** RFC 9113 §8.1.1, RFC 9114 §4.1.2: content-length and the content agree. Empty: they do so far. */
export function lengthFault(expected: number, received: number, end: boolean): string {
  if (expected === noLength) return ''
  if (received > expected) return `content-length is ${expected}, and more came`
  return end && received < expected ? `content-length is ${expected}, and ${received} octets came` : ''
}

/** The content-length a response is held to: of one without content it describes something else. */
export function heldLength(headRequest: boolean, status: number, length: number): number {
  return headRequest || isBodiless(status) ? 0 : length
}
