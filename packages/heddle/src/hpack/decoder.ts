import {
  BlockMemo,
  DynamicTable,
  kindOfName,
  LineReader,
  Kind,
  SectionReader,
  type Entry,
  type FieldSection,
  type SectionLimits,
  type SectionRole,
} from '../fieldcode/index.ts'
import { staticCount, staticTable } from './static-table.ts'

/**
 * Decodes field blocks (RFC 7541 §3). A block that cannot be decoded leaves the tables of both ends out
 * of step: the connection is lost. A block that decodes to a malformed or too large section is told in
 * the section, and only its stream is lost.
 */
export class Decoder {
  /** Why the last block could not be decoded. */
  fault: string
  readonly #table: DynamicTable
  readonly #section: SectionReader
  readonly #line: LineReader
  readonly #memo: BlockMemo
  /** What our SETTINGS_HEADER_TABLE_SIZE allows. */
  #allowed: number
  /** The smallest size allowed since the encoder last said one, if it must say one now. */
  #owed: number

  /** Begins with the 4,096 octets of RFC 9113 §6.5.2; `allowTableSize` changes that. */
  constructor(limits: SectionLimits) {
    this.fault = ''
    this.#table = new DynamicTable(4096)
    this.#section = new SectionReader(limits)
    this.#line = new LineReader()
    this.#memo = new BlockMemo()
    this.#allowed = 4096
    this.#owed = Infinity
  }

  /** Octets the dynamic table counts for. */
  get tableSize(): number {
    return this.#table.size
  }

  /** Our SETTINGS_HEADER_TABLE_SIZE was acknowledged: from now on the encoder keeps to `size`. */
  allowTableSize(size: number): void {
    this.#allowed = size
    // RFC 7541 §4.2: the encoder must say a smaller size before it goes on.
    if (size < this.#table.capacity) this.#owed = Math.min(this.#owed, size)
  }

  /** Decodes the whole block `buffer[start, limit)`; undefined: COMPRESSION_ERROR, `fault` says why. */
  decode(buffer: Uint8Array, start: number, limit: number, role: SectionRole): FieldSection | undefined {
    const { version } = this.#table
    if (this.#owed === Infinity) {
      const known = this.#memo.find(buffer, start, limit, role, version)
      if (known !== undefined) return known
    }
    const section = this.#section
    section.start(role)
    if (!this.#readBlock(buffer, start, limit)) return undefined
    const read = section.finish()
    if (this.#table.version === version && this.#owed === Infinity) this.#memo.keep(buffer, start, limit, role, version, read)
    return read
  }

  #readBlock(buffer: Uint8Array, start: number, limit: number): boolean {
    const line = this.#line
    const { integers } = line
    const section = this.#section
    let at = start
    let first = true
    while (at < limit) {
      const octet = buffer[at] as number
      if ((octet & 0xe0) === 0x20) {
        // RFC 7541 §4.2: size updates stand at the beginning of a block.
        if (!first) return this.#fail('a table size update after a field line')
        const size = integers.read(buffer, at, limit, 5)
        if (size < 0) return this.#fail('a broken table size update')
        if (!this.#resize(size)) return false
        at = integers.at
        continue
      }
      if (this.#owed !== Infinity) return this.#fail('no table size update after a smaller SETTINGS_HEADER_TABLE_SIZE')
      first = false
      if (octet >= 0x80) {
        const index = integers.read(buffer, at, limit, 7)
        const entry = index > 0 ? this.#entry(index) : undefined
        if (entry === undefined) return this.#fail(`no field line has the index ${index}`)
        section.add(entry)
        at = integers.at
        continue
      }
      const indexing = octet >= 0x40
      at = this.#readLine(buffer, at, limit, indexing ? 6 : 4, (octet & 0xf0) === 0x10)
      if (at < 0) return false
      if (indexing) {
        const entry = line.newEntry()
        this.#table.insert(entry)
        section.add(entry)
      } else section.add(line.lineOnce())
    }
    // RFC 7541 §4.2: an update that is owed comes with the next block, even an empty one.
    return this.#owed === Infinity || limit === start || this.#fail('no table size update after a smaller SETTINGS_HEADER_TABLE_SIZE')
  }

  /** Reads name and value of a literal; returns the position behind it, or -1. */
  #readLine(buffer: Uint8Array, start: number, limit: number, prefixBits: number, neverIndexed: boolean): number {
    const line = this.#line
    const { integers } = line
    const index = integers.read(buffer, start, limit, prefixBits)
    if (index < 0) return this.#lost('a broken name index')
    if (index > 0) {
      const entry = this.#entry(index)
      if (entry === undefined) return this.#lost(`no field line has the index ${index}`)
      line.takeName(entry.name, index <= staticCount ? (nameKinds[index] as Kind) : kindOfName(entry.name))
    } else if (!line.readName(buffer, integers.at, limit, 7)) return this.#lost(line.fault)
    if (!line.readValue(buffer, integers.at, limit, neverIndexed)) return this.#lost(line.fault)
    return integers.at
  }

  #entry(index: number): Entry | undefined {
    return index <= staticCount ? staticTable[index] : this.#table.at(index - staticCount - 1)
  }

  #resize(size: number): boolean {
    // RFC 7541 §6.3: at most what SETTINGS_HEADER_TABLE_SIZE allows.
    if (size > this.#allowed) return this.#fail(`a table of ${size} octets where ${this.#allowed} are allowed`)
    if (size <= this.#owed) this.#owed = Infinity
    this.#table.resize(size)
    return true
  }

  #fail(fault: string): boolean {
    this.fault = fault
    return false
  }

  #lost(fault: string): number {
    this.fault = fault
    return -1
  }
}

const nameKinds: readonly Kind[] = staticTable.map((entry) => (entry === undefined ? Kind.Malformed : kindOfName(entry.name)))
