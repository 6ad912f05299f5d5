/** RFC 9218 §4: urgency 0 (first) to 7 (last), default 3; incremental content may be interleaved. */
export interface Priority {
  readonly urgency: number
  readonly incremental: boolean
}

/** RFC 9218 §4: what applies when nothing was said. */
export const defaultPriority: Priority = Object.freeze({ urgency: 3, incremental: false })
