import { Outbox } from '../bytes/index.ts'
import {
  BlockMemo,
  DynamicTable,
  Kind,
  kindOfName,
  LineReader,
  SectionReader,
  truncated,
  type Entry,
  type FieldSection,
  type SectionRole,
} from '../fieldcode/index.ts'
import { BlockedSection, BlockedSections, type SectionHandler } from './blocked.ts'
import { QpackError, type QpackFault } from './fault.ts'
import { decodeInsertCount, maxEntries } from './insert-count.ts'
import { InstructionStream, writeInstruction, type InstructionHandler } from './instructions.ts'
import type { DecoderLimits } from './limits.ts'
import { staticTable } from './static-table.ts'

/** Version of the table for sections that do not depend on it. */
const anyVersion = -1

/**
 * Decodes field sections (RFC 9204 §4.5), and keeps the table that the peer's encoder stream builds. A
 * fault is one of the connection, and nothing is decoded after it. A section that decodes to a malformed or
 * too large message is told in the section, and only its stream is lost.
 */
export class Decoder implements InstructionHandler {
  /** What the peer did wrong; undefined: nothing. */
  fault: QpackFault | undefined
  /**
   * What is to be sent on our decoder stream: acknowledgements and cancellations. The owner calls
   * `finishInstructions`, sends what is there, and sets the length to 0. A peer that lets nothing of it
   * through makes it grow by an instruction per section: the owner bounds it.
   */
  readonly instructions: Outbox
  readonly #limits: DecoderLimits
  readonly #entries: number
  readonly #table: DynamicTable
  readonly #section: SectionReader
  readonly #line: LineReader
  readonly #memo: BlockMemo
  readonly #stream: InstructionStream
  readonly #blocked: BlockedSections
  /** Insertions the peer's encoder knows we have: by acknowledged sections and increments. */
  #told: number
  /** Required Insert Count of the section being read. */
  #required: number

  constructor(limits: DecoderLimits) {
    this.fault = undefined
    this.instructions = new Outbox(Buffer.alloc(0), Infinity)
    this.#limits = limits
    this.#entries = maxEntries(limits.maxTableCapacity)
    // RFC 9204 §3.2.2: the encoder says how much of what is allowed it uses; at first nothing.
    this.#table = new DynamicTable(0)
    this.#section = new SectionReader(limits)
    this.#line = new LineReader()
    this.#memo = new BlockMemo()
    this.#stream = new InstructionStream(this)
    this.#blocked = new BlockedSections()
    this.#told = 0
    this.#required = 0
  }

  /** Octets the dynamic table counts for. */
  get tableSize(): number {
    return this.#table.size
  }

  /** Streams that wait for entries. */
  get blockedStreams(): number {
    return this.#blocked.count
  }

  /** Octets kept for sections and instructions that are not complete, and for what is to be sent. */
  get pinned(): number {
    return this.#blocked.pinned + this.#stream.pinned + this.instructions.buffer.length
  }

  /**
   * Takes what came on the peer's encoder stream, and then decodes what waited for it: `onSection` is
   * called from within.
   */
  receive(buffer: Uint8Array, start: number, limit: number): QpackFault | undefined {
    if (!this.#stream.receive(buffer, start, limit)) return this.fault
    for (;;) {
      const blocked = this.#blocked.take(this.#table.inserted)
      if (blocked === undefined) return undefined
      const { streamId, octets, lines, role, required, base, handler } = blocked
      const section = this.#decodeLines(streamId, octets, 0, lines, octets.length, role, required, base)
      if (section === undefined) return this.fault
      handler.onSection(section)
      if (this.fault !== undefined) return this.fault
    }
  }

  /**
   * Decodes the whole section `buffer[start, limit)` of a stream. Undefined: `fault` says why not; or there is
   * no fault, and the section waits for entries: it has been copied, and will be told to `handler`. Until
   * then the stream's next section must not be given.
   */
  decode(
    streamId: number,
    buffer: Uint8Array,
    start: number,
    limit: number,
    role: SectionRole,
    handler: SectionHandler,
  ): FieldSection | undefined {
    const { integers } = this.#line
    const encoded = integers.read(buffer, start, limit, 8)
    const required = encoded < 0 ? -1 : decodeInsertCount(encoded, this.#entries, this.#table.inserted)
    if (required < 0) return this.#failSection('a Required Insert Count that cannot be')
    const at = integers.at
    const delta = integers.readLarge(buffer, at, limit, 7)
    if (delta < 0) return this.#failSection('a broken Base')
    // RFC 9204 §4.5.1.2
    const base = ((buffer[at] as number) & 0x80) === 0 ? required + delta : required - delta - 1
    if (base < 0) return this.#failSection('a negative Base')
    if (required > this.#table.inserted) {
      // RFC 9204 §2.1.2
      if (this.#blocked.count >= this.#limits.maxBlockedStreams) return this.#failSection('more blocked streams than allowed')
      const octets = Uint8Array.prototype.slice.call(buffer, start, limit)
      this.#blocked.add(new BlockedSection(streamId, role, handler, octets, integers.at - start, required, base))
      return undefined
    }
    return this.#decodeLines(streamId, buffer, start, integers.at, limit, role, required, base)
  }

  /**
   * The stream was reset before its end, or is read no further: the peer's encoder need not wait for
   * acknowledgements of its sections (RFC 9204 §2.2.2.2), and nothing will be told to its handler.
   */
  cancelStream(streamId: number): void {
    this.#blocked.cancel(streamId)
    // Without a table there are no references that anybody waits for.
    if (this.#entries > 0) writeInstruction(this.instructions, streamId, 6, 0x40)
  }

  /** Adds to `instructions` how many entries came that no acknowledgement told of: once before they are sent, not for each. */
  finishInstructions(): void {
    const increment = this.#table.inserted - this.#told
    if (increment === 0) return
    this.#told = this.#table.inserted
    writeInstruction(this.instructions, increment, 6, 0x00)
  }

  // ── The encoder stream (RFC 9204 §4.3) ──────────────────────────────────────────────────────────

  /** Of `InstructionHandler`; for the stream only. */
  readInstruction(buffer: Uint8Array, start: number, limit: number): number {
    const octet = buffer[start] as number
    const line = this.#line
    const { integers } = line
    if (octet >= 0x40 && octet < 0x80) {
      // RFC 9204 §4.3.3
      if (!line.readName(buffer, start, limit, 5)) return this.#wait(start)
      return this.#readInsertion(buffer, start, limit)
    }
    const insertion = octet >= 0x80
    const number = integers.read(buffer, start, limit, insertion ? 6 : 5)
    if (number < 0) return number === truncated ? limit + 1 : this.#failStream('a number that is too large')
    if (!insertion && octet >= 0x20) {
      // RFC 9204 §4.3.1
      if (number > this.#limits.maxTableCapacity) {
        return this.#failStream(`a table of ${number} octets where ${this.#limits.maxTableCapacity} are allowed`)
      }
      this.#table.resize(number)
      return integers.at
    }
    const isStatic = insertion && (octet & 0x40) !== 0
    const entry = isStatic ? staticTable[number] : this.#table.at(number)
    // RFC 9204 §2.2.3, §3.1
    if (entry === undefined) return this.#failStream(`no entry has the index ${number}`)
    if (insertion) {
      // RFC 9204 §4.3.2
      line.takeName(entry.name, isStatic ? (nameKinds[number] as Kind) : kindOfName(entry.name))
      return this.#readInsertion(buffer, start, limit)
    }
    // RFC 9204 §4.3.4. What goes for it may be the entry itself.
    this.#table.insert(entry)
    return integers.at
  }

  #readInsertion(buffer: Uint8Array, start: number, limit: number): number {
    const line = this.#line
    const { integers } = line
    if (!line.readValue(buffer, integers.at, limit, false)) return this.#wait(start)
    const entry = line.newEntry()
    // RFC 9204 §3.2.2
    if (entry.size > this.#table.capacity) return this.#failStream(`an entry of ${entry.size} octets in a table of ${this.#table.capacity}`)
    this.#table.insert(entry)
    return integers.at
  }

  /** A string could not be read: what there is to wait for. */
  #wait(start: number): number {
    const { needed, fault } = this.#line
    if (needed === 0) return this.#failStream(fault)
    // An octet takes four in the worst Huffman code: what is longer fits in no table, and is not waited for.
    if (needed - start > this.#table.capacity * 4 + 16) return this.#failStream('an entry larger than the table')
    return needed
  }

  #failStream(reason: string): number {
    this.fault = { code: QpackError.encoderStreamError, reason }
    return -1
  }

  // ── Sections (RFC 9204 §4.5) ────────────────────────────────────────────────────────────────────

  /** Decodes `buffer[start, limit)`, whose lines begin at `lines`, and acknowledges it. */
  #decodeLines(
    streamId: number,
    buffer: Uint8Array,
    start: number,
    lines: number,
    limit: number,
    role: SectionRole,
    required: number,
    base: number,
  ): FieldSection | undefined {
    const version = required === 0 ? anyVersion : this.#table.version
    let section = this.#memo.find(buffer, start, limit, role, version)
    if (section === undefined) {
      this.#required = required
      this.#section.start(role)
      if (!this.#readLines(buffer, lines, limit, base)) return undefined
      section = this.#section.finish()
      this.#memo.keep(buffer, start, limit, role, version, section)
    }
    if (required > 0) {
      // RFC 9204 §4.4.1
      writeInstruction(this.instructions, streamId, 7, 0x80)
      if (required > this.#told) this.#told = required
    }
    return section
  }

  #readLines(buffer: Uint8Array, start: number, limit: number, base: number): boolean {
    const section = this.#section
    const line = this.#line
    const { integers } = line
    let at = start
    while (at < limit) {
      const octet = buffer[at] as number
      if (octet >= 0x80 || (octet & 0xf0) === 0x10) {
        const entry = this.#readEntry(buffer, at, limit, base)
        if (entry === undefined) return false
        section.add(entry)
        at = integers.at
        continue
      }
      let neverIndexed: boolean
      if ((octet & 0xe0) === 0x20) {
        // RFC 9204 §4.5.6
        neverIndexed = (octet & 0x10) !== 0
        if (!line.readName(buffer, at, limit, 3)) return this.#failLine(line.fault)
      } else {
        // RFC 9204 §4.5.4, §4.5.5
        neverIndexed = (octet & (octet >= 0x40 ? 0x20 : 0x08)) !== 0
        const entry = this.#readEntry(buffer, at, limit, base)
        if (entry === undefined) return false
        line.takeName(entry.name, kindOfName(entry.name))
      }
      if (!line.readValue(buffer, integers.at, limit, neverIndexed)) return this.#failLine(line.fault)
      section.add(line.lineOnce())
      at = integers.at
    }
    return true
  }

  /** The entry that the line beginning at `at` refers to. */
  #readEntry(buffer: Uint8Array, at: number, limit: number, base: number): Entry | undefined {
    const { integers } = this.#line
    const octet = buffer[at] as number
    const prefixBits = octet >= 0x80 ? 6 : octet >= 0x10 ? 4 : 3
    const index = integers.read(buffer, at, limit, prefixBits)
    if (index < 0) return this.#failReference('a broken index')
    if (octet >= 0x40) {
      const isStatic = (octet & (octet >= 0x80 ? 0x40 : 0x10)) !== 0
      if (isStatic) return staticTable[index] ?? this.#failReference(`no static entry has the index ${index}`)
    }
    const number = octet >= 0x40 ? base - 1 - index : base + index
    // RFC 9204 §2.2.3: neither evicted nor beyond what the section said it needs.
    const entry = number < this.#required ? this.#table.byNumber(number) : undefined
    return entry ?? this.#failReference(`the section may not refer to entry ${number}`)
  }

  #failReference(reason: string): undefined {
    this.#failLine(reason)
    return undefined
  }

  #failSection(reason: string): undefined {
    this.#failLine(reason)
    return undefined
  }

  #failLine(reason: string): false {
    this.fault = { code: QpackError.decompressionFailed, reason }
    return false
  }
}

const nameKinds: readonly Kind[] = staticTable.map((entry) => kindOfName(entry.name))
