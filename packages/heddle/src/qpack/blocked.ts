import type { FieldSection, SectionRole } from '../fieldcode/index.ts'

/** Who waits for a section that could not be decoded yet. */
export interface SectionHandler {
  /** The section: called once, from within the decoder's `receive`, unless its stream was cancelled before. */
  onSection(section: FieldSection): void
}

/** A section that refers to entries which have not come (RFC 9204 §2.1.2). */
export class BlockedSection {
  readonly streamId: number
  readonly role: SectionRole
  readonly handler: SectionHandler
  /** Its octets: a copy. */
  readonly octets: Uint8Array
  /** Where the lines begin, behind the prefix. */
  readonly lines: number
  readonly required: number
  readonly base: number

  constructor(
    streamId: number,
    role: SectionRole,
    handler: SectionHandler,
    octets: Uint8Array,
    lines: number,
    required: number,
    base: number,
  ) {
    this.streamId = streamId
    this.role = role
    this.handler = handler
    this.octets = octets
    this.lines = lines
    this.required = required
    this.base = base
  }
}

/** The sections that wait, in the order they came: one for each blocked stream, and few of them. */
export class BlockedSections {
  /** Octets of all sections. */
  pinned: number
  /** The least Required Insert Count among them; Infinity: none waits. */
  next: number
  readonly #sections: BlockedSection[]

  constructor() {
    this.pinned = 0
    this.next = Infinity
    this.#sections = []
  }

  get count(): number {
    return this.#sections.length
  }

  add(section: BlockedSection): void {
    this.#sections.push(section)
    this.pinned += section.octets.length
    if (section.required < this.next) this.next = section.required
  }

  /** Takes out the first section that needs no more than `inserted` entries. */
  take(inserted: number): BlockedSection | undefined {
    if (this.next > inserted) return undefined
    return this.#remove(this.#sections.findIndex((section) => section.required <= inserted))
  }

  /** Forgets what a stream waits for. */
  cancel(streamId: number): void {
    while (this.#remove(this.#sections.findIndex((section) => section.streamId === streamId)) !== undefined);
  }

  #remove(at: number): BlockedSection | undefined {
    if (at < 0) return undefined
    const [section] = this.#sections.splice(at, 1) as [BlockedSection]
    this.pinned -= section.octets.length
    this.next = Infinity
    for (const { required } of this.#sections) if (required < this.next) this.next = required
    return section
  }
}
