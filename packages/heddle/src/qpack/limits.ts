import type { SectionLimits } from '../fieldcode/index.ts'

/** What a decoder allows its peer's encoder; our SETTINGS must say the same. */
export interface DecoderLimits extends SectionLimits {
  /** Octets of the dynamic table: SETTINGS_QPACK_MAX_TABLE_CAPACITY. */
  readonly maxTableCapacity: number
  /** Streams that may wait for entries: SETTINGS_QPACK_BLOCKED_STREAMS. On excess: QPACK_DECOMPRESSION_FAILED. */
  readonly maxBlockedStreams: number
}

/** What an encoder makes of what its peer allows. */
export interface EncoderLimits {
  /** Octets of the dynamic table, whatever the peer allows: 1 MiB at most. Default 4 KiB. */
  readonly maxTableCapacity: number
  /** Streams that may have to wait for entries, whatever the peer allows. Default 16. */
  readonly maxBlockedStreams: number
  /**
   * Sections with references that the peer has not acknowledged. Default 1,024. On excess sections go without
   * references: a peer that never acknowledges costs no more memory than that.
   */
  readonly maxOutstandingSections: number
}

/** More than this an encoder does not use, whatever it may: it keeps count for every entry there could be. */
export const largestTable = 1_048_576

/** What is said in SETTINGS when nothing else is asked for. */
export const defaultTableCapacity = 4_096
/** … and for how many streams may be blocked. */
export const defaultBlockedStreams = 16

/** An encoder's limits when nothing is said. */
export const encoderLimits: EncoderLimits = Object.freeze({
  maxTableCapacity: defaultTableCapacity,
  maxBlockedStreams: defaultBlockedStreams,
  maxOutstandingSections: 1_024,
})
