import {
  HeadMemo,
  HeadWriter,
  isSensitive,
  knownNamesOf,
  longestIndexed,
  Treatment,
  writeInteger,
  writeString,
  type KnownNames,
} from '../fieldcode/index.ts'
import type { Fields, Head, OutboxLike } from '../http/index.ts'
import { staticCount, staticTable } from './static-table.ts'

const knownNames: KnownNames = knownNamesOf(staticTable)

/** Encodes field blocks (RFC 7541 §6), straight into an outbox. */
export class Encoder extends HeadWriter {
  readonly #memo: HeadMemo
  /** What we limit the table to, whatever the peer allows. */
  readonly #most: number
  /** Size updates to write first: the smallest since the last block, and the last one; -1: none. */
  #smallestOwed: number
  #owed: number
  /** A secret was written: the block is not kept. */
  #secret: boolean

  /** `maxTableSize`: octets we spend on the table at most. */
  constructor(maxTableSize = 4096) {
    super(knownNames, Math.min(4096, maxTableSize))
    this.#most = maxTableSize
    this.#memo = new HeadMemo()
    this.#owed = maxTableSize < 4096 ? maxTableSize : -1
    this.#smallestOwed = this.#owed
    this.#secret = false
  }

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
  allowTableSize(size: number): void {
    const capacity = Math.min(size, this.#most)
    if (capacity === this.table.capacity && this.#owed < 0) return
    // RFC 7541 §4.2: of several changes the smallest and the last are told.
    this.#smallestOwed = this.#owed < 0 ? capacity : Math.min(this.#smallestOwed, capacity)
    this.#owed = capacity
    this.table.resize(capacity)
  }

  /** Writes the block of a request's head. Throws UsageError, having written nothing, for fields that cannot be sent. */
  writeRequest(head: Head, out: OutboxLike): void {
    const known = this.#memo.find(head, '', this.table.version)
    if (known !== undefined) return this.#copy(known, out)
    this.validate(head.fields)
    this.#begin(out)
    const { version } = this.table
    const start = out.length
    this.writeRequestLines(out, head)
    this.#maybeKeep(head, out, start, version)
  }

  /**
   * Writes the block of a response's head. `date`: the value of a `date` field, unless there is one, or
   * empty. `omitLength`: there is no content, so nothing is said of its length. Throws UsageError,
   * having written nothing, for fields that cannot be sent.
   */
  writeResponse(head: Head, date: string, omitLength: boolean, out: OutboxLike): void {
    // A head of which the length is left out is rare, and would need a memo of its own.
    const known = omitLength ? undefined : this.#memo.find(head, date, this.table.version)
    if (known !== undefined) return this.#copy(known, out)
    this.validate(head.fields)
    this.#begin(out)
    const { version } = this.table
    const start = out.length
    this.writeResponseLines(out, head, date, omitLength)
    if (!omitLength) this.#maybeKeep(head, out, start, version)
  }

  /** Writes the block of trailers. */
  writeTrailers(fields: Fields, out: OutboxLike): void {
    this.validate(fields)
    this.#begin(out)
    this.writeFields(out, fields, false)
  }

  #copy(block: Uint8Array, out: OutboxLike): void {
    this.#begin(out)
    out.writeBytes(block, 0, block.length)
  }

  #maybeKeep(head: Head, out: OutboxLike, start: number, version: number): void {
    if (this.table.version === version && !this.#secret) this.#memo.keep(head, out.buffer, start, out.length, version)
    this.#secret = false
  }

  #begin(out: OutboxLike): void {
    if (this.#owed < 0) return
    out.reserve(12)
    if (this.#smallestOwed < this.#owed) out.length = writeInteger(this.#smallestOwed, 5, 0x20, out.buffer, out.length)
    out.length = writeInteger(this.#owed, 5, 0x20, out.buffer, out.length)
    this.#owed = -1
    this.#smallestOwed = -1
  }

  protected writeLine(out: OutboxLike, name: string, value: string): void {
    out.reserve(name.length + value.length + 16)
    const known = knownNames.get(name)
    const exact = known === undefined ? undefined : known.values.get(value)
    if (exact !== undefined) {
      out.buffer[out.length++] = 0x80 | exact
      return
    }
    const lines = this.lines.get(name)
    const number = lines === undefined ? undefined : lines.numbers.get(value)
    if (number !== undefined) {
      out.length = writeInteger(this.#indexOf(number), 7, 0x80, out.buffer, out.length)
      return
    }
    const nameIndex = known !== undefined && known.index > 0 ? known.index : lines === undefined ? 0 : this.#indexOf(lines.newest)
    if (isSensitive(name, value)) {
      this.#secret = true
      writeLiteral(out, 4, 0x10, nameIndex, name, value)
    } else if (
      value.length > longestIndexed ||
      (known !== undefined && (known.treatment === Treatment.Literal || known.treatment === Treatment.Length)) ||
      name.length + value.length + 32 > this.table.capacity
    ) {
      writeLiteral(out, 4, 0x00, nameIndex, name, value)
    } else {
      writeLiteral(out, 6, 0x40, nameIndex, name, value)
      this.insert(name, value)
    }
  }

  #indexOf(number: number): number {
    return staticCount + this.table.inserted - number
  }
}

function writeLiteral(out: OutboxLike, prefixBits: number, first: number, nameIndex: number, name: string, value: string): void {
  out.length = writeInteger(nameIndex, prefixBits, first, out.buffer, out.length)
  if (nameIndex === 0) writeString(out, name)
  writeString(out, value)
}
