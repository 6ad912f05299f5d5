import { latin1Write } from '../bytes/index.ts'
import { badLength, isFieldName, noLength, parseLength, reasonPhrase, UsageError, valueTable, type Fields } from '../http/index.ts'
import { listItems } from './field-line.ts'
import { FieldKind, isIndividual, knownKind } from './field-name.ts'

const cr = 0x0d
const lf = 0x0a
const colon = 0x3a
const space = 0x20

const slots = 128
const longest = 2048

/** An encoded field section without its empty line, and the strings it was made of. */
class FieldBlock {
  hash: number
  /** Empty until the section came a second time. */
  strings: string[]
  bytes: Buffer
  length: number
  contentLength: number
  hasDate: boolean

  constructor() {
    this.hash = 0
    this.strings = []
    this.bytes = Buffer.alloc(0)
    this.length = 0
    this.contentLength = noLength
    this.hasDate = false
  }
}

/**
 * Encodes field sections, validating every name and value on the way. A section that comes again is
 * recognised by its strings and costs one copy; what makes the comparison safe against arrays that
 * change is that the strings are compared and not the array's identity.
 */
export class FieldEncoder {
  /** Facts about the section written last. */
  contentLength: number
  hasDate: boolean
  /** It asked for `connection: close`. */
  close: boolean
  /** It has `te: trailers`. */
  te: boolean
  expectContinue: boolean
  private readonly blocks: (FieldBlock | undefined)[]

  constructor() {
    this.contentLength = noLength
    this.hasDate = false
    this.close = false
    this.te = false
    this.expectContinue = false
    this.blocks = Array.from({ length: slots }, () => undefined)
  }

  /**
   * Writes `fields` to `buffer` at `at`, which must have `fieldsSize(fields)` octets of room, and
   * returns where it stopped. Fields of the connection are left out, and content-length too if
   * `omitLength`. Throws UsageError for what cannot go on the wire.
   */
  write(fields: Fields, buffer: Buffer, at: number, omitLength: boolean): number {
    this.contentLength = noLength
    this.hasDate = false
    this.close = false
    this.te = false
    this.expectContinue = false
    if (fields.length === 0) return at
    const hash = hashOf(fields)
    const slot = (hash ^ (hash >>> 16)) & (slots - 1)
    let block = this.blocks[slot]
    if (block === undefined) this.blocks[slot] = block = new FieldBlock()
    if (block.hash !== hash || omitLength) {
      block.hash = hash
      block.strings.length = 0
      return this.encode(fields, buffer, at, omitLength)
    }
    if (holds(block, fields)) {
      block.bytes.copy(buffer, at, 0, block.length)
      this.contentLength = block.contentLength
      this.hasDate = block.hasDate
      return at + block.length
    }
    const end = this.encode(fields, buffer, at, false)
    this.remember(block, fields, buffer, at, end)
    return end
  }

  private encode(fields: Fields, buffer: Buffer, at: number, omitLength: boolean): number {
    if (fields.length % 2 !== 0) throw new UsageError('fields have a name without a value')
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i] as string
      const value = fields[i + 1] as string
      const kind = knownKind(name)
      if (kind === undefined) {
        if (!isFieldName(name)) throw new UsageError(`invalid field name ${JSON.stringify(name)}`)
      } else if (kind !== FieldKind.Ordinary) {
        if (!this.admit(kind, value, omitLength)) continue
      } else if (name === 'date') {
        this.hasDate = true
      }
      at = writeFieldLine(buffer, at, name, value)
    }
    return at
  }

  /** Notes what a field means to the connection. False: it is not written. */
  private admit(kind: FieldKind, value: string, omitLength: boolean): boolean {
    switch (kind) {
      case FieldKind.ContentLength: {
        const length = this.contentLength === noLength ? parseLength(value) : badLength
        if (length === badLength) throw new UsageError('malformed or repeated content-length')
        this.contentLength = length
        return !omitLength
      }
      case FieldKind.Connection:
        if (listItems(value).includes('close')) this.close = true
        return false
      case FieldKind.Te:
        this.te = value === 'trailers'
        return this.te
      case FieldKind.Expect:
        if (value.toLowerCase() === '100-continue') this.expectContinue = true
        return true
      case FieldKind.WebSocketKey:
      case FieldKind.WebSocketAccept:
        return true
      default:
        return false
    }
  }

  private remember(block: FieldBlock, fields: Fields, buffer: Buffer, start: number, end: number): void {
    const length = end - start
    if (length > longest || this.close || this.te || this.expectContinue) return
    for (let i = 0; i < fields.length; i += 2) if (isIndividual(fields[i] as string, fields[i + 1] as string)) return
    if (block.bytes.length < length) block.bytes = Buffer.allocUnsafeSlow(Math.min(longest, length * 2))
    buffer.copy(block.bytes, 0, start, end)
    block.length = length
    block.strings = fields.slice()
    block.contentLength = this.contentLength
    block.hasDate = this.hasDate
  }
}

/** The room `fields` need at most, in octets. */
export function fieldsSize(fields: Fields): number {
  let size = 0
  for (let i = 0; i < fields.length; i++) size += (fields[i] as string).length + 2
  return size
}

function holds(block: FieldBlock, fields: Fields): boolean {
  const { strings } = block
  if (strings.length !== fields.length) return false
  for (let i = 0; i < fields.length; i++) if (strings[i] !== fields[i]) return false
  return true
}

function hashOf(fields: Fields): number {
  let hash = fields.length
  for (let i = 1; i < fields.length; i += 2) {
    const value = fields[i] as string
    const { length } = value
    hash = Math.imul(hash ^ (length === 0 ? 0 : (length << 8) ^ value.charCodeAt(length - 1)), 0x01000193)
  }
  return hash | 0
}

/** `name: value CRLF`; the name is valid, the value is validated while it is written. */
function writeFieldLine(buffer: Buffer, at: number, name: string, value: string): number {
  for (let i = 0; i < name.length; i++) buffer[at++] = name.charCodeAt(i)
  buffer[at++] = colon
  buffer[at++] = space
  const last = value.length - 1
  for (let i = 0; i <= last; i++) {
    const code = value.charCodeAt(i)
    // A unit above 0xFF would be cut: U+010A would become a line feed.
    if (code > 0xff || valueTable[code] === 0) throw new UsageError(`invalid value of field ${name}`)
    buffer[at++] = code
  }
  if (last >= 0 && (isBlank(value.charCodeAt(0)) || isBlank(value.charCodeAt(last))))
    throw new UsageError(`white space around the value of field ${name}`)
  buffer[at++] = cr
  buffer[at++] = lf
  return at
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** Writes `text`, all of whose code units are known to be valid, and returns where it stopped. */
export function writeText(buffer: Buffer, at: number, text: string): number {
  if (text.length > 24) return at + latin1Write(buffer, text, at)
  for (let i = 0; i < text.length; i++) buffer[at++] = text.charCodeAt(i)
  return at
}

const statusLines: (Buffer | undefined)[] = []

/** `HTTP/1.1 status reason CRLF`; `status` 100–599. */
export function statusLine(status: number): Buffer {
  return (statusLines[status] ??= Buffer.from(`HTTP/1.1 ${status} ${reasonPhrase(status)}\r\n`, 'latin1'))
}

let dateText = ''
let dateBytes = Buffer.alloc(0)

/** `date: …CRLF` for the text of an HTTP date; renewed when the text changes. */
export function dateLine(date: string): Buffer {
  if (date !== dateText) {
    dateText = date
    dateBytes = Buffer.from(`date: ${date}\r\n`, 'latin1')
  }
  return dateBytes
}
