import { originsPayload } from '../http/index.ts'
import { FrameType } from './frame.ts'
import type { Staging } from './staging.ts'

/** Stages an ORIGIN frame (RFC 8336). Throws UsageError for what is no origin. */
export function stageOrigins(staging: Staging, origins: readonly string[]): void {
  const payload = originsPayload(origins)
  staging.frame(payload.length, FrameType.Origin, 0, 0).writeBytes(payload, 0, payload.length)
}
