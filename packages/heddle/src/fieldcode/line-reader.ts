import { Entry, isSensitive, Kind, kindOfLine, kindOfName } from './entry.ts'
import { IntegerReader, truncated } from './integer.ts'
import { InternCache, uncached, undecodable } from './intern-cache.ts'

// One pair for all connections of the thread: what peers send is much the same.
const names = new InternCache(512, true)
const values = new InternCache(2048, false)

/**
 * The literal field line being read: its name (given by reference, or read) and its value. One per
 * decoder, used for one line after the other; `integers.at` is the position behind what was read last.
 */
export class LineReader {
  readonly integers: IntegerReader
  name: string
  value: string
  /** Why the last string could not be read. */
  fault: string
  /** If that was for want of octets: up to which position more of them would help. Else 0. */
  needed: number
  #nameKind: Kind
  #valueKind: number
  /** A line that enters no table, made over for each. */
  readonly #line: Entry

  constructor() {
    this.integers = new IntegerReader()
    this.name = ''
    this.value = ''
    this.fault = ''
    this.needed = 0
    this.#nameKind = Kind.Regular
    this.#valueKind = 0
    this.#line = new Entry('', '', Kind.Regular)
  }

  /** The name is that of a table's entry; `kind`: what the name makes of a line. */
  takeName(name: string, kind: Kind): void {
    this.name = name
    this.#nameKind = kind
  }

  /** Reads a name whose length has a prefix of `prefixBits`, below the bit that says Huffman. */
  readName(buffer: Uint8Array, start: number, limit: number, prefixBits: number): boolean {
    const slot = this.#readString(names, buffer, start, limit, prefixBits, false)
    if (slot === undecodable) return false
    this.name = names.text
    this.#nameKind = slot === uncached ? kindOfName(names.text) : (names.kinds[slot] as Kind)
    return true
  }

  /** Reads the value behind the name. What is `secret`, by its name or because the peer says so, enters no cache. */
  readValue(buffer: Uint8Array, start: number, limit: number, secret: boolean): boolean {
    const spared = secret || this.name === 'cookie' || isSensitive(this.name, '')
    const slot = this.#readString(values, buffer, start, limit, 7, spared)
    if (slot === undecodable) return false
    this.value = values.text
    this.#valueKind = slot === uncached ? (kindOfLine(Kind.Regular, '', values.text) as number) : (values.kinds[slot] as number)
    return true
  }

  /** The line as an entry for a table. */
  newEntry(): Entry {
    return new Entry(this.name, this.value, this.#kind())
  }

  /** The line as an entry that is good until the next line is read. */
  lineOnce(): Entry {
    const line = this.#line
    line.name = this.name
    line.value = this.value
    line.kind = this.#kind()
    return line
  }

  #kind(): Kind {
    const kind = this.#nameKind
    if (kind === Kind.Malformed || this.#valueKind !== 0) return Kind.Malformed
    // A cached value is in order already; what is left to judge depends on the name.
    return kind === Kind.Regular && this.name !== 'te' ? kind : kindOfLine(kind, this.name, this.value)
  }

  /** Reads one string into `cache.text`. */
  #readString(cache: InternCache, buffer: Uint8Array, start: number, limit: number, prefixBits: number, secret: boolean): number {
    const { integers } = this
    const length = integers.read(buffer, start, limit, prefixBits)
    if (length < 0) return this.#fail('a broken string length', length === truncated ? limit + 1 : 0)
    const begin = integers.at
    const behind = begin + length
    if (behind > limit) return this.#fail('a string longer than its block', behind)
    const huffman = ((buffer[start] as number) & (1 << prefixBits)) !== 0
    const slot = secret ? cache.readSecret(buffer, begin, behind, huffman) : cache.read(buffer, begin, behind, huffman)
    integers.at = behind
    return slot === undecodable ? this.#fail('a string that is not Huffman code', 0) : slot
  }

  #fail(fault: string, needed: number): number {
    this.fault = fault
    this.needed = needed
    return undecodable
  }
}
