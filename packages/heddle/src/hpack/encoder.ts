import { latin1Write, type Outbox } from '../bytes/index.ts'
import { Entry, huffmanLength, isSensitive, writeHuffman, writeInteger } from '../fieldcode/index.ts'
import { isFieldName, isFieldValue, UsageError, type Fields, type Head } from '../http/index.ts'
import { DynamicTable } from './dynamic-table.ts'
import { staticCount, staticNames } from './static-table.ts'

/** Names whose values are too seldom repeated to be worth a table entry. */
const unindexed: ReadonlySet<string> = new Set([
  ':path',
  'age',
  'content-length',
  'content-range',
  'etag',
  'if-modified-since',
  'if-none-match',
  'last-modified',
  'location',
  'range',
  'referer',
  'set-cookie',
  'traceparent',
  'x-request-id',
])
/** A value longer than this stays out of the table: it would push out everything else. */
const longestIndexed = 1024
const memoSlots = 4
const longestMemo = 512

/** The table's lines of one name. */
interface Lines {
  /** value → insertion number. */
  readonly numbers: Map<string, number>
  /** The newest of them: the last to be evicted. */
  newest: number
}

/** A head that was encoded before: true while the table is at `version`. */
interface Memo {
  fields: Fields | undefined
  status: number
  version: number
  block: Uint8Array | undefined
}

/**
 * Encodes field blocks (RFC 7541 §6). Names and values are validated when they are written as literals;
 * what stands in a table was validated when it entered. Writes straight into an outbox.
 */
export class Encoder {
  readonly #table: DynamicTable
  /** The table by name. */
  readonly #lines: Map<string, Lines>
  readonly #memos: Memo[]
  #nextMemo: number
  /** What we limit the table to, whatever the peer allows. */
  readonly #most: number
  /** Size updates to write first: the smallest since the last block, and the last one; -1: none. */
  #smallestOwed: number
  #owed: number

  /** `maxTableSize`: octets we spend on the table at most. */
  constructor(maxTableSize = 4096) {
    this.#most = maxTableSize
    this.#lines = new Map()
    this.#table = new DynamicTable(Math.min(4096, maxTableSize), (entry, number) => this.#forget(entry, number))
    this.#memos = Array.from({ length: memoSlots }, () => ({ fields: undefined, status: 0, version: 0, block: undefined }))
    this.#nextMemo = 0
    this.#smallestOwed = -1
    this.#owed = maxTableSize < 4096 ? maxTableSize : -1
    this.#smallestOwed = this.#owed
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

  /** Throws UsageError if a line of `fields` cannot be sent; a table lookup that hits needs no look at the octets. */
  validate(fields: Fields): void {
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string
      const value = fields[i + 1] as string
      if (this.#lines.get(name)?.numbers.has(value) === true) continue
      if (!isFieldName(name)) throw new UsageError(`the field name ${JSON.stringify(name)} is not a lower-case token`)
      if (!isFieldValue(value)) throw new UsageError(`the value of ${name} holds a control, a code above U+00FF, or white space at an end`)
    }
  }

  /** Writes the block of a request's head. */
  writeRequest(head: Head, out: Outbox): void {
    this.#begin(out)
    const { method, scheme, authority, path, protocol, fields } = head
    this.#writeLine(out, ':method', method)
    if (scheme !== '') this.#writeLine(out, ':scheme', scheme)
    if (authority !== '') this.#writeLine(out, ':authority', authority)
    if (path !== '') this.#writeLine(out, ':path', path)
    if (protocol !== '') this.#writeLine(out, ':protocol', protocol)
    this.#writeFields(out, fields)
  }

  /** Writes the block of a response's head; `date`: the value of a `date` field to add, or empty. */
  writeResponse(status: number, fields: Fields, date: string, out: Outbox): void {
    this.#begin(out)
    const memo = this.#memo(status, fields)
    if (memo?.block !== undefined) out.writeBytes(memo.block, 0, memo.block.length)
    else {
      const { version } = this.#table
      const start = out.length
      this.#writeLine(out, ':status', statusText(status))
      this.#writeFields(out, fields)
      // From the second time on: fields made for one response only are not worth a copy.
      if (memo !== undefined && version === this.#table.version && out.length - start <= longestMemo) {
        memo.block = Uint8Array.prototype.slice.call(out.buffer, start, out.length)
        memo.version = version
      }
    }
    if (date !== '') this.#writeLine(out, 'date', date)
  }

  /** Writes the block of trailers. */
  writeTrailers(fields: Fields, out: Outbox): void {
    this.#begin(out)
    this.#writeFields(out, fields)
  }

  /** The memo of this head if it was seen before, with a block if that is still true; else makes a place for it. */
  #memo(status: number, fields: Fields): Memo | undefined {
    for (const memo of this.#memos) {
      if (memo.fields !== fields || memo.status !== status) continue
      if (memo.version !== this.#table.version) memo.block = undefined
      return memo
    }
    const memo = this.#memos[this.#nextMemo++ % memoSlots] as Memo
    memo.fields = fields
    memo.status = status
    memo.block = undefined
    return undefined
  }

  #begin(out: Outbox): void {
    if (this.#owed < 0) return
    out.reserve(12)
    if (this.#smallestOwed < this.#owed) out.length = writeInteger(this.#smallestOwed, 5, 0x20, out.buffer, out.length)
    out.length = writeInteger(this.#owed, 5, 0x20, out.buffer, out.length)
    this.#owed = -1
    this.#smallestOwed = -1
  }

  #writeFields(out: Outbox, fields: Fields): void {
    for (let i = 0; i < fields.length; i += 2) this.#writeLine(out, fields[i] as string, fields[i + 1] as string)
  }

  #writeLine(out: Outbox, name: string, value: string): void {
    out.reserve(name.length + value.length + 16)
    const known = staticNames.get(name)
    const exact = known?.values.get(value)
    if (exact !== undefined) {
      out.buffer[out.length++] = 0x80 | exact
      return
    }
    const lines = this.#lines.get(name)
    const number = lines?.numbers.get(value)
    if (number !== undefined) {
      out.length = writeInteger(this.#indexOf(number), 7, 0x80, out.buffer, out.length)
      return
    }
    const nameIndex = known !== undefined ? known.index : lines === undefined ? 0 : this.#indexOf(lines.newest)
    if (isSensitive(name, value)) this.#writeLiteral(out, 4, 0x10, nameIndex, name, value)
    else if (value.length > longestIndexed || unindexed.has(name) || name.length + value.length + 32 > this.#table.capacity) {
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

  #writeLiteral(out: Outbox, prefixBits: number, first: number, nameIndex: number, name: string, value: string): void {
    out.length = writeInteger(nameIndex, prefixBits, first, out.buffer, out.length)
    if (nameIndex === 0) writeString(out, name)
    writeString(out, value)
  }
}

function writeString(out: Outbox, text: string): void {
  const coded = huffmanLength(text)
  const huffman = coded < text.length
  out.length = writeInteger(huffman ? coded : text.length, 7, huffman ? 0x80 : 0, out.buffer, out.length)
  if (huffman) out.length = writeHuffman(text, out.buffer, out.length)
  else out.length += latin1Write(out.buffer, text, out.length)
}

const statusTexts: readonly string[] = Array.from({ length: 600 }, (_, status) => String(status))

function statusText(status: number): string {
  return statusTexts[status] ?? String(status)
}
