import { latin1Write } from '../bytes/index.ts'
import { Entry, huffmanLength, isSensitive, writeHuffman, writeInteger } from '../fieldcode/index.ts'
import { isFieldName, isFieldValue, UsageError, type Fields, type Head, type OutboxLike } from '../http/index.ts'
import { DynamicTable } from './dynamic-table.ts'
import { HeadMemo } from './head-memo.ts'
import { knownNames, Treatment } from './known-names.ts'
import { staticCount } from './static-table.ts'

/** A value longer than this stays out of the table: it would push out everything else. */
const longestIndexed = 1024

/** The table's lines of one name. */
interface Lines {
  /** value → insertion number. */
  readonly numbers: Map<string, number>
  /** The newest of them: the last to be evicted. */
  newest: number
}

/**
 * Encodes field blocks (RFC 7541 §6), straight into an outbox. Fields of an HTTP/1.1 connection are left
 * out (RFC 9113 §8.2.2). Names and values are validated before anything is written, for what is in the
 * table must be what the peer has in its own.
 */
export class Encoder {
  readonly #table: DynamicTable
  /** The table by name. */
  readonly #lines: Map<string, Lines>
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
    this.#most = maxTableSize
    this.#lines = new Map()
    this.#table = new DynamicTable(Math.min(4096, maxTableSize), (entry, number) => this.#forget(entry, number))
    this.#memo = new HeadMemo()
    this.#owed = maxTableSize < 4096 ? maxTableSize : -1
    this.#smallestOwed = this.#owed
    this.#secret = false
  }

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
  allowTableSize(size: number): void {
    const capacity = Math.min(size, this.#most)
    if (capacity === this.#table.capacity && this.#owed < 0) return
    // RFC 7541 §4.2: of several changes the smallest and the last are told.
    this.#smallestOwed = this.#owed < 0 ? capacity : Math.min(this.#smallestOwed, capacity)
    this.#owed = capacity
    this.#table.resize(capacity)
  }

  /** Throws UsageError if a line of `fields` cannot be sent. */
  validate(fields: Fields): void {
    if (fields.length % 2 !== 0) throw new UsageError('fields have a name without a value')
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string
      const value = fields[i + 1] as string
      if (!knownNames.has(name) && !this.#lines.has(name) && !isFieldName(name)) {
        throw new UsageError(`the field name ${JSON.stringify(name)} is not a lower-case token`)
      }
      // What is in the table was validated when it entered.
      if (value.length > 64 && this.#lines.get(name)?.numbers.has(value) === true) continue
      if (!isFieldValue(value)) throw new UsageError(`the value of ${name} holds a control, a code above U+00FF, or white space at an end`)
    }
  }

  /** Writes the block of a request's head. Throws UsageError, having written nothing, for fields that cannot be sent. */
  writeRequest(head: Head, out: OutboxLike): void {
    const known = this.#memo.find(head, '', this.#table.version)
    if (known !== undefined) return this.#copy(known, out)
    const { method, scheme, authority, path, protocol, fields } = head
    this.validate(fields)
    this.#begin(out)
    const { version } = this.#table
    const start = out.length
    this.#writeLine(out, ':method', method)
    if (scheme !== '') this.#writeLine(out, ':scheme', scheme)
    if (authority !== '') this.#writeLine(out, ':authority', authority)
    if (path !== '') this.#writeLine(out, ':path', path)
    if (protocol !== '') this.#writeLine(out, ':protocol', protocol)
    this.#writeFields(out, fields, false)
    this.#maybeKeep(head, out, start, version)
  }

  /**
   * Writes the block of a response's head. `date`: the value of a `date` field, unless there is one, or
   * empty. `omitLength`: there is no content, so nothing is said of its length. Throws UsageError,
   * having written nothing, for fields that cannot be sent.
   */
  writeResponse(head: Head, date: string, omitLength: boolean, out: OutboxLike): void {
    // A head of which the length is left out is rare, and would need a memo of its own.
    const known = omitLength ? undefined : this.#memo.find(head, date, this.#table.version)
    if (known !== undefined) return this.#copy(known, out)
    const { status, fields } = head
    this.validate(fields)
    this.#begin(out)
    const { version } = this.#table
    const start = out.length
    this.#writeLine(out, ':status', statusTexts[status] ?? String(status))
    const dated = this.#writeFields(out, fields, omitLength)
    if (date !== '' && !dated) this.#writeLine(out, 'date', date)
    if (!omitLength) this.#maybeKeep(head, out, start, version)
  }

  /** Writes the block of trailers. */
  writeTrailers(fields: Fields, out: OutboxLike): void {
    this.validate(fields)
    this.#begin(out)
    this.#writeFields(out, fields, false)
  }

  #copy(block: Uint8Array, out: OutboxLike): void {
    this.#begin(out)
    out.writeBytes(block, 0, block.length)
  }

  #maybeKeep(head: Head, out: OutboxLike, start: number, version: number): void {
    if (this.#table.version === version && !this.#secret) this.#memo.keep(head, out.buffer, start, out.length, version)
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

  /** True: there was a `date`. */
  #writeFields(out: OutboxLike, fields: Fields, omitLength: boolean): boolean {
    let dated = false
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string
      const value = fields[i + 1] as string
      const treatment = knownNames.get(name)?.treatment
      if (treatment === Treatment.Dropped) continue
      if (treatment === Treatment.Te && value !== 'trailers') continue
      if (treatment === Treatment.Length && omitLength) continue
      if (treatment === Treatment.DateLine) dated = true
      this.#writeLine(out, name, value)
    }
    return dated
  }

  #writeLine(out: OutboxLike, name: string, value: string): void {
    out.reserve(name.length + value.length + 16)
    const known = knownNames.get(name)
    const exact = known === undefined ? undefined : known.values.get(value)
    if (exact !== undefined) {
      out.buffer[out.length++] = 0x80 | exact
      return
    }
    const lines = this.#lines.get(name)
    const number = lines === undefined ? undefined : lines.numbers.get(value)
    if (number !== undefined) {
      out.length = writeInteger(this.#indexOf(number), 7, 0x80, out.buffer, out.length)
      return
    }
    const nameIndex = known !== undefined && known.index > 0 ? known.index : lines === undefined ? 0 : this.#indexOf(lines.newest)
    if (isSensitive(name, value)) {
      this.#secret = true
      this.#writeLiteral(out, 4, 0x10, nameIndex, name, value)
    } else if (
      value.length > longestIndexed ||
      (known !== undefined && (known.treatment === Treatment.Literal || known.treatment === Treatment.Length)) ||
      name.length + value.length + 32 > this.#table.capacity
    ) {
      this.#writeLiteral(out, 4, 0x00, nameIndex, name, value)
    } else {
      this.#writeLiteral(out, 6, 0x40, nameIndex, name, value)
      this.#insert(name, value)
    }
  }

  #insert(name: string, value: string): void {
    const entry = new Entry(name, value, 0)
    const number = this.#table.inserted
    this.#table.insert(entry)
    const lines = this.#lines.get(name)
    if (lines === undefined) this.#lines.set(name, { numbers: new Map([[value, number]]), newest: number })
    else {
      lines.numbers.set(value, number)
      lines.newest = number
    }
  }

  #forget(entry: Entry, number: number): void {
    const lines = this.#lines.get(entry.name) as Lines
    if (lines.numbers.get(entry.value) === number) lines.numbers.delete(entry.value)
    if (lines.newest === number) this.#lines.delete(entry.name)
  }

  #indexOf(number: number): number {
    return staticCount + this.#table.inserted - number
  }

  #writeLiteral(out: OutboxLike, prefixBits: number, first: number, nameIndex: number, name: string, value: string): void {
    out.length = writeInteger(nameIndex, prefixBits, first, out.buffer, out.length)
    if (nameIndex === 0) writeString(out, name)
    writeString(out, value)
  }
}

function writeString(out: OutboxLike, text: string): void {
  const coded = huffmanLength(text)
  const huffman = coded < text.length
  out.length = writeInteger(huffman ? coded : text.length, 7, huffman ? 0x80 : 0, out.buffer, out.length)
  if (huffman) out.length = writeHuffman(text, out.buffer, out.length)
  else out.length += latin1Write(out.buffer, text, out.length)
}

const statusTexts: readonly string[] = Array.from({ length: 600 }, (_, status) => String(status))
