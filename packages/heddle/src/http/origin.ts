import { latin1Slice, latin1Write } from '../bytes/index.ts'
import { UsageError } from './errors.ts'

/** The most origins that are kept of one connection. */
const mostOrigins = 256
const longestOrigin = 1_024
/** The longest payload of an ORIGIN frame that is made. */
const longestPayload = 16_384

/**
 * Adds the origins of an ORIGIN frame's payload (RFC 8336 §2.1, RFC 9412 §2) to `origins`, those known of the connection. What
 * is no origin is skipped: the frame is advice.
 */
export function readOrigins(buffer: Uint8Array, start: number, limit: number, origins: Set<string>): void {
  let at = start
  while (at + 2 <= limit && origins.size < mostOrigins) {
    const length = ((buffer[at] as number) << 8) | (buffer[at + 1] as number)
    at += 2
    // RFC 8336 §2.1: a frame that is not well formed to its end is ignored from there on.
    if (at + length > limit) break
    const text = length > longestOrigin ? '' : latin1Slice(buffer, at, at + length)
    if (isOrigin(text)) origins.add(text)
    at += length
  }
}

/** The payload of an ORIGIN frame. Throws UsageError for what is no origin. */
export function originsPayload(origins: readonly string[]): Uint8Array {
  let length = 0
  for (const origin of origins) {
    if (!isOrigin(origin)) throw new UsageError(`${JSON.stringify(origin)} is no origin`)
    length += 2 + origin.length
  }
  if (length > longestPayload) throw new UsageError('the origins do not fit in one frame')
  const payload = Buffer.alloc(length)
  let at = 0
  for (const origin of origins) {
    payload[at++] = origin.length >>> 8
    payload[at++] = origin.length
    at += latin1Write(payload, origin, at)
  }
  return payload
}

/** RFC 6454 §6.2: scheme, host and perhaps a port, in ASCII, and nothing behind them. */
function isOrigin(text: string): boolean {
  return /^https?:\/\/[a-z0-9._~[\]:-]+$/.test(text)
}
