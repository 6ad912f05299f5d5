import { latin1Write } from '../bytes/index.ts'
import { isFieldName, isFieldValue, UsageError, type Fields, type Head, type OutboxLike } from '../http/index.ts'
import { DynamicTable } from './dynamic-table.ts'
import { Entry } from './entry.ts'
import { huffmanLength, writeHuffman } from './huffman.ts'
import { writeInteger } from './integer.ts'
import { Treatment, type KnownNames } from './known-names.ts'

/** A value longer than this stays out of a table: it would push out everything else. */
export const longestIndexed = 1024

/** The table's lines of one name. */
export interface TableLines {
  /** value → insertion number. */
  readonly numbers: Map<string, number>
  /** The newest of them: the last to be evicted. */
  newest: number
}

/**
 * What the encoders of HPACK and QPACK have in common: the dynamic table by name and value, and the
 * lines of heads and trailers in their order. Fields of an HTTP/1.1 connection are left out (RFC 9113
 * §8.2.2, RFC 9114 §4.2). Names and values are validated before anything is written, for what is in the
 * table must be what the peer has in its own.
 */
export abstract class HeadWriter {
  protected readonly names: KnownNames
  protected readonly table: DynamicTable
  /** The table by name. */
  protected readonly lines: Map<string, TableLines>

  constructor(names: KnownNames, capacity: number) {
    this.names = names
    this.lines = new Map()
    this.table = new DynamicTable(capacity, (entry, number) => this.#forget(entry, number))
  }

  /** Writes one line; the outbox has no room reserved for it. */
  protected abstract writeLine(out: OutboxLike, name: string, value: string): void

  /** Throws UsageError if a line of `fields` cannot be sent. */
  validate(fields: Fields): void {
    if (fields.length % 2 !== 0) throw new UsageError('fields have a name without a value')
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string
      const value = fields[i + 1] as string
      // What is known is in order, but for pseudo-header fields: a ':' begins the name of no field.
      const isKnown = name.charCodeAt(0) !== 0x3a && (this.names.has(name) || this.lines.has(name))
      if (!isKnown && !isFieldName(name)) {
        throw new UsageError(`the field name ${JSON.stringify(name)} is not a lower-case token`)
      }
      // What is in the table was validated when it entered.
      if (value.length > 64 && this.lines.get(name)?.numbers.has(value) === true) continue
      if (!isFieldValue(value)) throw new UsageError(`the value of ${name} holds a control, a code above U+00FF, or white space at an end`)
    }
  }

  protected writeRequestLines(out: OutboxLike, head: Head): void {
    const { method, scheme, authority, path, protocol, fields } = head
    this.writeLine(out, ':method', method)
    if (scheme !== '') this.writeLine(out, ':scheme', scheme)
    if (authority !== '') this.writeLine(out, ':authority', authority)
    if (path !== '') this.writeLine(out, ':path', path)
    if (protocol !== '') this.writeLine(out, ':protocol', protocol)
    this.writeFields(out, fields, false)
  }

  /** `date`: the value of a `date` field, unless there is one, or empty. `omitLength`: nothing is said of the content's length. */
  protected writeResponseLines(out: OutboxLike, head: Head, date: string, omitLength: boolean): void {
    const { status, fields } = head
    this.writeLine(out, ':status', statusTexts[status] ?? String(status))
    const dated = this.writeFields(out, fields, omitLength)
    if (date !== '' && !dated) this.writeLine(out, 'date', date)
  }

  /** True: there was a `date`. */
  protected writeFields(out: OutboxLike, fields: Fields, omitLength: boolean): boolean {
    let dated = false
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string
      const value = fields[i + 1] as string
      const treatment = this.names.get(name)?.treatment
      if (treatment === Treatment.Dropped) continue
      if (treatment === Treatment.Te && value !== 'trailers') continue
      if (treatment === Treatment.Length && omitLength) continue
      if (treatment === Treatment.DateLine) dated = true
      this.writeLine(out, name, value)
    }
    return dated
  }

  /** Puts a line into the table and returns its number. It must fit. */
  protected insert(name: string, value: string): number {
    const number = this.table.inserted
    this.table.insert(new Entry(name, value, 0))
    const lines = this.lines.get(name)
    if (lines === undefined) this.lines.set(name, { numbers: new Map([[value, number]]), newest: number })
    else {
      lines.numbers.set(value, number)
      lines.newest = number
    }
    return number
  }

  #forget(entry: Entry, number: number): void {
    const lines = this.lines.get(entry.name) as TableLines
    if (lines.numbers.get(entry.value) === number) lines.numbers.delete(entry.value)
    if (lines.newest === number) this.lines.delete(entry.name)
  }
}

/**
 * Writes a string (RFC 7541 §5.2, RFC 9204 §4.1.2), Huffman-coded if that is shorter: its length has a prefix of
 * `prefixBits`, below the bit that says Huffman and the bits of `first`. There must be room for its length and 6 octets.
 */
export function writeString(out: OutboxLike, text: string, prefixBits = 7, first = 0): void {
  const coded = huffmanLength(text)
  if (coded < text.length) {
    out.length = writeInteger(coded, prefixBits, first | (1 << prefixBits), out.buffer, out.length)
    out.length = writeHuffman(text, out.buffer, out.length)
  } else {
    out.length = writeInteger(text.length, prefixBits, first, out.buffer, out.length)
    out.length += latin1Write(out.buffer, text, out.length)
  }
}

const statusTexts: readonly string[] = Array.from({ length: 600 }, (_, status) => String(status))
