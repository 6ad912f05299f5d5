const most = 4_096

/** Streams we reset of late, whose peer may not know yet: what was under way on them is nobody's fault. */
export class ResetMemory {
  /** There were too many to remember all. */
  forgets: boolean
  readonly #streamIds: Set<number>

  constructor() {
    this.forgets = false
    this.#streamIds = new Set()
  }

  remember(streamId: number): void {
    const streamIds = this.#streamIds
    streamIds.add(streamId)
    if (streamIds.size <= most) return
    streamIds.delete(streamIds.values().next().value as number)
    this.forgets = true
  }

  /** `ends`: nothing comes on the stream after this, so it can be forgotten. */
  isKnown(streamId: number, ends: boolean): boolean {
    return ends ? this.#streamIds.delete(streamId) : this.#streamIds.has(streamId)
  }
}
