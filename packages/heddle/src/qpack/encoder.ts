import { Outbox } from '../bytes/index.ts'
import {
  HeadMemo,
  HeadWriter,
  IntegerReader,
  isSensitive,
  knownNamesOf,
  longestIndexed,
  Treatment,
  truncated,
  writeInteger,
  writeString,
  type Entry,
  type KnownName,
  type KnownNames,
} from '../fieldcode/index.ts'
import type { Fields, Head, OutboxLike } from '../http/index.ts'
import { QpackError, type QpackFault } from './fault.ts'
import { encodeInsertCount, maxEntries } from './insert-count.ts'
import { InstructionStream, writeInstruction, type InstructionHandler } from './instructions.ts'
import { encoderLimits, largestTable, type EncoderLimits } from './limits.ts'
import { OutstandingSections } from './outstanding.ts'
import { staticTable } from './static-table.ts'

const knownNames: KnownNames = knownNamesOf(staticTable)
/** The usual length of a section's prefix. */
const shortPrefix = 2
const prefix = new Uint8Array(24)

/**
 * Encodes field sections (RFC 9204 §4.5), straight into an outbox, and builds the peer's table by what it
 * leaves in `instructions`. Never evicts what the peer may still need, and never lets more streams wait for
 * entries than the peer allows: a line that cannot be referred to is sent as a literal.
 */
export class Encoder extends HeadWriter implements InstructionHandler {
  /** What the peer did wrong on its decoder stream; undefined: nothing. */
  fault: QpackFault | undefined
  /** What is to be sent on our encoder stream: the owner sends it, before or with the section, and sets the length to 0. */
  readonly instructions: Outbox
  /**
   * Octets that `instructions` may come to. An instruction that is begun and cannot be finished for want of
   * credit could hold up the sections that would give it (RFC 9204 §2.1.3). Infinity at first.
   */
  instructionCredit: number
  readonly #limits: EncoderLimits
  readonly #memo: HeadMemo
  readonly #stream: InstructionStream
  readonly #integers: IntegerReader
  readonly #outstanding: OutstandingSections
  /** The peer's SETTINGS_QPACK_MAX_TABLE_CAPACITY, and the entries it makes. */
  #allowed: number
  #entries: number
  #maxBlocked: number
  /** Entries before this one are not referred to: they are in the way of new ones. */
  #draining: number
  // The section being written.
  #base: number
  #required: number
  #smallest: number
  #mayRefer: boolean
  #mayBlock: boolean
  /** A secret was written, or a line went without the reference it will have later: the section is not kept. */
  #unique: boolean

  constructor(limits: Partial<EncoderLimits> = {}) {
    super(knownNames, 0)
    this.fault = undefined
    this.instructions = new Outbox(Buffer.alloc(0), Infinity)
    this.instructionCredit = Infinity
    const given = { ...encoderLimits, ...limits }
    this.#limits = { ...given, maxTableCapacity: Math.min(given.maxTableCapacity, largestTable) }
    this.#memo = new HeadMemo()
    this.#stream = new InstructionStream(this)
    this.#integers = new IntegerReader()
    this.#outstanding = new OutstandingSections(maxEntries(this.#limits.maxTableCapacity))
    this.#allowed = 0
    this.#entries = 0
    this.#maxBlocked = 0
    this.#draining = 0
    this.#base = 0
    this.#required = 0
    this.#smallest = Infinity
    this.#mayRefer = false
    this.#mayBlock = false
    this.#unique = false
  }

  /** Octets the dynamic table counts for. */
  get tableSize(): number {
    return this.table.size
  }

  /** Sections with references that the peer has not acknowledged. */
  get outstandingSections(): number {
    return this.#outstanding.count
  }

  /**
   * The peer's SETTINGS: until then nothing enters the table. A client that sent early data has given what it
   * remembered; then another capacity than that, if it was not 0, is a fault (RFC 9204 §3.2.3).
   */
  allow(maxTableCapacity: number, maxBlockedStreams: number): QpackFault | undefined {
    if (this.#allowed !== 0 && maxTableCapacity !== this.#allowed) {
      this.#fail(`a table of ${maxTableCapacity} octets, where early data relied on ${this.#allowed}`)
      return this.fault
    }
    this.#allowed = maxTableCapacity
    this.#entries = maxEntries(maxTableCapacity)
    this.#maxBlocked = Math.min(maxBlockedStreams, this.#limits.maxBlockedStreams)
    if (this.table.capacity === 0) this.setCapacity(this.#limits.maxTableCapacity)
    return undefined
  }

  /**
   * Uses no more than `capacity` octets of what is allowed. False: entries that the peer may need are in the
   * way, and nothing changes.
   */
  setCapacity(capacity: number): boolean {
    const most = Math.min(capacity, this.#limits.maxTableCapacity, this.#allowed)
    if (most === this.table.capacity) return true
    // No section is being written that would need anything.
    this.#smallest = Infinity
    if (this.#firstKept(most) >= 0) return false
    this.table.resize(most)
    // RFC 9204 §4.3.1
    writeInstruction(this.instructions, most, 5, 0x20)
    return true
  }

  /** Writes the section of a request's head. Throws UsageError, having written nothing, for fields that cannot be sent. */
  writeRequest(streamId: number, head: Head, out: OutboxLike): void {
    const { version } = this.table
    const known = this.#memo.find(head, '', version)
    if (known !== undefined && this.#mayCopy(streamId)) return this.#copy(streamId, known, out)
    this.validate(head.fields)
    const start = this.#begin(streamId, out)
    this.writeRequestLines(out, head)
    this.#finish(streamId, out, start)
    this.#maybeKeep(head, out, start, version)
  }

  /**
   * Writes the section of a response's head. `date`: the value of a `date` field, unless there is one, or
   * empty. `omitLength`: there is no content, so nothing is said of its length. Throws UsageError,
   * having written nothing, for fields that cannot be sent.
   */
  writeResponse(streamId: number, head: Head, date: string, omitLength: boolean, out: OutboxLike): void {
    const { version } = this.table
    // A head of which the length is left out is rare, and would need a memo of its own.
    const known = omitLength ? undefined : this.#memo.find(head, date, version)
    if (known !== undefined && this.#mayCopy(streamId)) return this.#copy(streamId, known, out)
    this.validate(head.fields)
    const start = this.#begin(streamId, out)
    this.writeResponseLines(out, head, date, omitLength)
    this.#finish(streamId, out, start)
    if (!omitLength) this.#maybeKeep(head, out, start, version)
  }

  /** Writes the section of trailers. Throws UsageError, having written nothing, for fields that cannot be sent. */
  writeTrailers(streamId: number, fields: Fields, out: OutboxLike): void {
    this.validate(fields)
    const start = this.#begin(streamId, out)
    this.writeFields(out, fields, false)
    this.#finish(streamId, out, start)
  }

  /** Sections of the stream were written but never sent, and the peer will not see the stream: it cannot tell of them. */
  abandon(streamId: number): void {
    this.#outstanding.release(streamId)
  }

  // ── The peer's decoder stream (RFC 9204 §4.4) ───────────────────────────────────────────────────

  /** Takes what came on the peer's decoder stream. */
  receive(buffer: Uint8Array, start: number, limit: number): QpackFault | undefined {
    return this.#stream.receive(buffer, start, limit) ? undefined : this.fault
  }

  /** Of `InstructionHandler`; for the stream only. */
  readInstruction(buffer: Uint8Array, start: number, limit: number): number {
    const octet = buffer[start] as number
    const number = this.#integers.readLarge(buffer, start, limit, octet >= 0x80 ? 7 : 6)
    if (number === truncated) return limit + 1
    if (number < 0) return this.#fail('a number that is too large')
    const outstanding = this.#outstanding
    if (octet >= 0x80) {
      // RFC 9204 §4.4.1
      if (!outstanding.acknowledge(number)) return this.#fail(`nothing of stream ${number} is to be acknowledged`)
    } else if (octet >= 0x40) {
      // RFC 9204 §4.4.2
      outstanding.cancel(number)
    } else {
      // RFC 9204 §4.4.3
      const known = outstanding.known + number
      if (number === 0 || known > this.table.inserted) return this.#fail(`an Insert Count Increment of ${number}`)
      outstanding.learn(known)
    }
    return this.#integers.at
  }

  #fail(reason: string): number {
    this.fault = { code: QpackError.decoderStreamError, reason }
    return -1
  }

  // ── One section ─────────────────────────────────────────────────────────────────────────────────

  /** True: the section the memo found may go to this stream. */
  #mayCopy(streamId: number): boolean {
    const { required } = this.#memo
    const outstanding = this.#outstanding
    if (required === 0) return true
    if (outstanding.count >= this.#limits.maxOutstandingSections || outstanding.isCancelled(streamId)) return false
    return required <= outstanding.known || outstanding.mayBlock(streamId, this.#maxBlocked)
  }

  #copy(streamId: number, section: Uint8Array, out: OutboxLike): void {
    const { required, smallest } = this.#memo
    out.writeBytes(section, 0, section.length)
    if (required > 0) this.#outstanding.add(streamId, required, smallest)
  }

  #begin(streamId: number, out: OutboxLike): number {
    const outstanding = this.#outstanding
    this.#base = this.table.inserted
    this.#required = 0
    this.#smallest = Infinity
    this.#mayRefer =
      this.table.capacity > 0 && outstanding.count < this.#limits.maxOutstandingSections && !outstanding.isCancelled(streamId)
    this.#mayBlock = outstanding.mayBlock(streamId, this.#maxBlocked)
    this.#unique = false
    out.reserve(shortPrefix)
    const start = out.length
    out.length = start + shortPrefix
    return start
  }

  /** Puts the prefix in front (RFC 9204 §4.5.1), which is known only now. */
  #finish(streamId: number, out: OutboxLike, start: number): void {
    const required = this.#required
    const base = this.#base
    let size = writeInteger(encodeInsertCount(required, this.#entries), 8, 0, prefix, 0)
    if (required === 0) size = writeInteger(0, 7, 0, prefix, size)
    else if (base >= required) size = writeInteger(base - required, 7, 0, prefix, size)
    else size = writeInteger(required - base - 1, 7, 0x80, prefix, size)
    const more = size - shortPrefix
    if (more > 0) {
      out.reserve(more)
      out.buffer.copyWithin(start + size, start + shortPrefix, out.length)
      out.length += more
    }
    for (let i = 0; i < size; i++) out.buffer[start + i] = prefix[i] as number
    if (required > 0) this.#outstanding.add(streamId, required, this.#smallest)
  }

  #maybeKeep(head: Head, out: OutboxLike, start: number, version: number): void {
    if (this.#unique || this.table.version !== version) return
    this.#memo.keep(head, out.buffer, start, out.length, version, this.#required, this.#smallest)
  }

  // ── One line ────────────────────────────────────────────────────────────────────────────────────

  protected writeLine(out: OutboxLike, name: string, value: string): void {
    out.reserve(name.length + value.length + 24)
    const known = knownNames.get(name)
    const exact = known === undefined ? undefined : known.values.get(value)
    if (exact !== undefined) {
      // RFC 9204 §4.5.2
      out.length = writeInteger(exact, 6, 0xc0, out.buffer, out.length)
      return
    }
    const number = this.#numberOf(known, name, value)
    if (number >= 0 && this.#isUsable(number)) return this.#writeReference(out, number)
    // What went without a reference may have one when the peer has said more.
    if (number >= 0) this.#unique = true
    // RFC 9204 §7.1.3
    const secret = isSensitive(name, value)
    if (secret) this.#unique = true
    this.#writeLiteral(out, known, name, value, secret)
  }

  /** The entry to refer to for a line: found, made again in a better place, or new; -1: there is none. */
  #numberOf(known: KnownName | undefined, name: string, value: string): number {
    if (!this.#mayRefer) {
      this.#unique = true
      return -1
    }
    const number = this.lines.get(name)?.numbers.get(value)
    if (number === undefined) return this.#maybeInsert(known, name, value)
    if (number >= this.#draining) return number
    // RFC 9204 §2.1.1.1: a duplicate instead of a reference that keeps the oldest entries where they are.
    const { size } = this.table.byNumber(number) as Entry
    if (!this.#hasCredit(11) || !this.#fits(size)) return -1
    writeInstruction(this.instructions, this.table.inserted - 1 - number, 5, 0x00)
    return this.insert(name, value)
  }

  #maybeInsert(known: KnownName | undefined, name: string, value: string): number {
    const size = name.length + value.length + 32
    if (
      value.length > longestIndexed ||
      (known !== undefined && (known.treatment === Treatment.Literal || known.treatment === Treatment.Length)) ||
      isSensitive(name, value) ||
      !this.#hasCredit(size) ||
      !this.#fits(size)
    ) {
      return -1
    }
    const out = this.instructions
    out.reserve(size)
    const lines = this.lines.get(name)
    if (known !== undefined && known.index >= 0) out.length = writeInteger(known.index, 6, 0xc0, out.buffer, out.length)
    else if (lines !== undefined) out.length = writeInteger(this.table.inserted - 1 - lines.newest, 6, 0x80, out.buffer, out.length)
    else writeString(out, name, 5, 0x40)
    writeString(out, value)
    return this.insert(name, value)
  }

  #isUsable(number: number): boolean {
    return number < this.#outstanding.known || this.#mayBlock
  }

  #writeReference(out: OutboxLike, number: number): void {
    this.#refer(number)
    const before = this.#base - 1 - number
    // RFC 9204 §4.5.2, §4.5.3
    if (before >= 0) out.length = writeInteger(before, 6, 0x80, out.buffer, out.length)
    else out.length = writeInteger(-1 - before, 4, 0x10, out.buffer, out.length)
  }

  #writeLiteral(out: OutboxLike, known: KnownName | undefined, name: string, value: string, secret: boolean): void {
    const newest = known !== undefined && known.index >= 0 ? undefined : this.lines.get(name)?.newest
    if (known !== undefined && known.index >= 0) {
      // RFC 9204 §4.5.4
      out.length = writeInteger(known.index, 4, secret ? 0x70 : 0x50, out.buffer, out.length)
    } else if (newest !== undefined && this.#mayReferToName(newest)) {
      this.#refer(newest)
      const before = this.#base - 1 - newest
      if (before >= 0) out.length = writeInteger(before, 4, secret ? 0x60 : 0x40, out.buffer, out.length)
      // RFC 9204 §4.5.5
      else out.length = writeInteger(-1 - before, 3, secret ? 0x08 : 0x00, out.buffer, out.length)
    } else {
      // RFC 9204 §4.5.6
      writeString(out, name, 3, secret ? 0x30 : 0x20)
    }
    writeString(out, value)
  }

  #mayReferToName(number: number): boolean {
    if (this.#mayRefer && number >= this.#draining && this.#isUsable(number)) return true
    this.#unique = true
    return false
  }

  #refer(number: number): void {
    if (number >= this.#required) this.#required = number + 1
    if (number < this.#smallest) this.#smallest = number
  }

  // ── Room in the table ───────────────────────────────────────────────────────────────────────────

  #hasCredit(byteCount: number): boolean {
    if (this.instructions.length + byteCount <= this.instructionCredit) return true
    this.#unique = true
    return false
  }

  /** True: an entry of `size` octets can be inserted, for what has to go for it may go (RFC 9204 §2.1.1). */
  #fits(size: number): boolean {
    const { table } = this
    if (size > table.capacity) return false
    const inTheWay = this.#firstKept(table.capacity - size)
    if (inTheWay < 0) return true
    this.#drain(inTheWay)
    this.#unique = true
    return false
  }

  /** The first entry that must stay but would have to go for the table to come down to `most` octets; -1: none. */
  #firstKept(most: number): number {
    const { table } = this
    let { size } = table
    for (let number = table.inserted - table.count; size > most; number++) {
      if (number >= this.#smallest || !this.#outstanding.mayEvict(number)) return number
      size -= (table.byNumber(number) as Entry).size
    }
    return -1
  }

  /** Entries from the oldest on, and for a quarter of the table, are referred to no more: new ones shall find room. */
  #drain(inTheWay: number): void {
    if (inTheWay < this.#draining) return
    const { table } = this
    let number = table.inserted - table.count
    for (let size = 0; number < table.inserted && (number <= inTheWay || size < table.capacity / 4); number++) {
      size += (table.byNumber(number) as Entry).size
    }
    this.#draining = number
  }
}
