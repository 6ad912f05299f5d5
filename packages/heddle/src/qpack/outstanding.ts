/** Cancelled streams that are remembered. */
const mostCancelled = 256

/** A section that was sent with references to the dynamic table, and that the peer has not acknowledged. */
class SentSection {
  streamId: number
  required: number
  /** The oldest entry it refers to. */
  smallest: number
  /** The stream's next section; or the next one that is free for use. */
  next: SentSection | undefined

  constructor() {
    this.streamId = 0
    this.required = 0
    this.smallest = 0
    this.next = undefined
  }
}

/**
 * What the peer's decoder has not told us yet (RFC 9204 §2.1): which sections it may still have to decode, so
 * that none of their entries is evicted, and which of them may block it.
 */
export class OutstandingSections {
  /** The Known Received Count (RFC 9204 §2.1.4): entries the peer is known to have. */
  known: number
  /** Sections not acknowledged. */
  count: number
  /** A stream's sections, oldest first. */
  readonly #streams: Map<number, SentSection>
  /** Sections that need entries beyond those known: few, for few streams may be blocked. */
  #risky: SentSection[]
  /**
   * Sections by their oldest entry. Entries go oldest first, so an entry that no section has for its oldest is safe
   * from going as long as those before it are. A ring: it has a place for every entry there can be at once.
   */
  readonly #pins: Int32Array
  #free: SentSection | undefined
  /**
   * Streams whose cancellation came, oldest first. What is written to one after that, because nobody has told its
   * writer yet, is never read: it would be outstanding for ever.
   */
  readonly #cancelled: Set<number>

  /** `entries`: that there can be at once. */
  constructor(entries: number) {
    this.known = 0
    this.count = 0
    this.#streams = new Map()
    this.#risky = []
    let slots = 1
    while (slots < entries) slots *= 2
    this.#pins = new Int32Array(slots)
    this.#free = undefined
    this.#cancelled = new Set()
  }

  /** True: the peer has said that it reads the stream no further. */
  isCancelled(streamId: number): boolean {
    return this.#cancelled.size > 0 && this.#cancelled.has(streamId)
  }

  /** True: the stream may be sent a section that blocks, where `most` streams may be blocked (RFC 9204 §2.1.2). */
  mayBlock(streamId: number, most: number): boolean {
    return most > 0 && (this.#risky.length < most || this.#risky.some((section) => section.streamId === streamId))
  }

  /** True: the peer has the entry, and no outstanding section has it for its oldest (RFC 9204 §2.1.1). */
  mayEvict(number: number): boolean {
    return number < this.known && this.#pins[number & (this.#pins.length - 1)] === 0
  }

  /** A section goes out. */
  add(streamId: number, required: number, smallest: number): void {
    const section = this.#free ?? new SentSection()
    this.#free = section.next
    section.next = undefined
    section.streamId = streamId
    section.required = required
    section.smallest = smallest
    this.count++
    const slot = smallest & (this.#pins.length - 1)
    this.#pins[slot] = (this.#pins[slot] as number) + 1
    let last = this.#streams.get(streamId)
    if (last === undefined) this.#streams.set(streamId, section)
    else {
      while (last.next !== undefined) last = last.next
      last.next = section
    }
    if (required > this.known) this.#risky.push(section)
  }

  /** The stream's oldest section was decoded; false: it has none. */
  acknowledge(streamId: number): boolean {
    const section = this.#streams.get(streamId)
    if (section === undefined) return false
    if (section.next === undefined) this.#streams.delete(streamId)
    else this.#streams.set(streamId, section.next)
    // RFC 9204 §2.1.4
    if (section.required > this.known) this.learn(section.required)
    this.#release(section)
    return true
  }

  /** The peer says that it decodes nothing of the stream any more. */
  cancel(streamId: number): void {
    const cancelled = this.#cancelled
    if (cancelled.size === mostCancelled) {
      for (const oldest of cancelled) {
        cancelled.delete(oldest)
        break
      }
    }
    cancelled.add(streamId)
    this.release(streamId)
  }

  /** None of the stream's sections will be decoded. */
  release(streamId: number): void {
    let section = this.#streams.get(streamId)
    if (section === undefined) return
    this.#streams.delete(streamId)
    if (this.#risky.length > 0) this.#risky = this.#risky.filter((risky) => risky.streamId !== streamId)
    while (section !== undefined) {
      const { next } = section as SentSection
      this.#release(section)
      section = next
    }
  }

  /** The peer has the entries before `known`. */
  learn(known: number): void {
    this.known = known
    if (this.#risky.length > 0) this.#risky = this.#risky.filter((risky) => risky.required > known)
  }

  #release(section: SentSection): void {
    const slot = section.smallest & (this.#pins.length - 1)
    this.#pins[slot] = (this.#pins[slot] as number) - 1
    this.count--
    section.next = this.#free
    this.#free = section
  }
}
