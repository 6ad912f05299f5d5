import { latin1Slice } from '../bytes/index.ts'
import { UsageError } from '../http/index.ts'
import { FrameType } from './frame.ts'
import type { Staging } from './staging.ts'

/** The most origins that are kept of one connection. */
const mostOrigins = 256
const longestOrigin = 1_024

/**
 * Adds the origins of an ORIGIN frame's payload (RFC 8336 §2.1) to `origins`, those known of the connection. What
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

/** Stages an ORIGIN frame. Throws UsageError for what is no origin. */
export function stageOrigins(staging: Staging, origins: readonly string[]): void {
  let length = 0
  for (const origin of origins) {
    if (!isOrigin(origin)) throw new UsageError(`${JSON.stringify(origin)} is no origin`)
    length += 2 + origin.length
  }
  if (length > 16_384) throw new UsageError('the origins do not fit in one frame')
  const out = staging.frame(length, FrameType.Origin, 0, 0)
  for (const origin of origins) {
    out.reserve(2)
    out.buffer[out.length++] = origin.length >>> 8
    out.buffer[out.length++] = origin.length
    out.writeLatin1(origin)
  }
}

/** RFC 6454 §6.2: scheme, host and perhaps a port, in ASCII, and nothing behind them. */
function isOrigin(text: string): boolean {
  return /^https?:\/\/[a-z0-9._~[\]:-]+$/.test(text)
}
