import { badLength, noFields, noLength, ProtocolError, type Fields } from '../http/index.ts'
import { ConnectionToken, namedFields, readFieldLine, type FieldLine } from './field-line.ts'
import { FieldKind, isDroppedTrailer, isForbiddenTrailer } from './field-name.ts'
import { LineCache, longestCachedLine } from './line-cache.ts'
import type { Http1Limits } from './limits.ts'

/**
 * A complete field section: the fields for others to see, and what HTTP/1.1 took out of them for
 * itself. Immutable once read; equal sections of different messages may be one object.
 */
export class FieldSection {
  fields: Fields
  /** Value of Host; meaningful while `hostCount` is 1. */
  host: string
  hostCount: number
  hostValid: boolean
  /** content-length, `noLength` or `badLength` (malformed, or given twice). */
  contentLength: number
  /** Transfer codings in order, joined with ", " if there were several lines; empty without. */
  transferEncoding: string
  /** {@link ConnectionToken} bits. */
  connection: number
  /** The values of Upgrade; empty without. */
  upgrade: string
  /** The value of Keep-Alive; empty without. */
  keepAlive: string
  expectContinue: boolean
  /** Value of Sec-WebSocket-Key; empty without or when given twice. It is in `fields` too. */
  websocketKey: string
  /** Value of Sec-WebSocket-Accept; as above. */
  websocketAccept: string
  lineCount: number
  /** name + value + 32 of every line. */
  size: number
  longestLine: number

  constructor() {
    this.fields = noFields
    this.host = ''
    this.hostCount = 0
    this.hostValid = false
    this.contentLength = noLength
    this.transferEncoding = ''
    this.connection = 0
    this.upgrade = ''
    this.keepAlive = ''
    this.expectContinue = false
    this.websocketKey = ''
    this.websocketAccept = ''
    this.lineCount = 0
    this.size = 0
    this.longestLine = 0
  }

  /** True if it is within `limits`. */
  fits(limits: Http1Limits): boolean {
    return this.lineCount <= limits.maxFieldLines && this.size <= limits.maxFieldSectionSize && this.longestLine <= limits.maxFieldLineSize
  }
}

const fieldLines = new LineCache<FieldLine>(2048)

/** Collects field lines into a {@link FieldSection}, or finds the fault in them. */
export class SectionBuilder {
  private readonly limits: Http1Limits
  private readonly trailers: boolean
  /** Why the last line was refused. */
  fault: ProtocolError | undefined
  /** The lines since `startRun`, and the octets of the longest of them. */
  run: FieldLine[]
  longestOfRun: number
  private section: FieldSection
  private fields: string[]
  private named: Set<string> | undefined
  private websocketKeys: number
  private websocketAccepts: number

  /** `trailers`: the section ends a message instead of beginning one. */
  constructor(limits: Http1Limits, trailers: boolean) {
    this.limits = limits
    this.trailers = trailers
    this.fault = undefined
    this.run = []
    this.longestOfRun = 0
    this.section = new FieldSection()
    this.fields = []
    this.named = undefined
    this.websocketKeys = 0
    this.websocketAccepts = 0
  }

  /** True: no line was taken yet. */
  get isEmpty(): boolean {
    return this.section.lineCount === 0
  }

  /**
   * Takes the line `buffer[start, limit)`, without its CRLF; `hash` is the hash of these bytes. Sets
   * `fault` if it is refused. True: the line is individual, so a run ends in front of it.
   */
  addLine(buffer: Uint8Array, start: number, limit: number, hash: number): boolean {
    const slot = fieldLines.slotOf(hash)
    let line = fieldLines.find(buffer, start, limit, slot)
    if (line === undefined) {
      const read = readFieldLine(buffer, start, limit)
      if (typeof read === 'string') {
        this.fault = new ProtocolError(read)
        return true
      }
      line = read
      if (line.cacheable) fieldLines.insert(buffer, start, limit, slot, line)
    }
    this.fault = this.accept(line, limit - start)
    if (!line.cacheable || limit - start > longestCachedLine) return true
    this.run.push(line)
    if (limit - start > this.longestOfRun) this.longestOfRun = limit - start
    return false
  }

  /** What comes next begins a run. */
  startRun(): void {
    this.run = []
    this.longestOfRun = 0
  }

  /** Takes all lines of a run, each at most `longestLine` octets long and `size` together. Sets `fault` if they are too many. */
  addRun(lines: readonly FieldLine[], longestLine: number, size: number): void {
    const { section, fields } = this
    if (longestLine > section.longestLine) section.longestLine = longestLine
    section.size += size
    section.lineCount += lines.length
    if (!section.fits(this.limits)) {
      this.fault = tooLarge()
      return
    }
    for (let i = 0; i < lines.length; i++) {
      const line = lines[i] as FieldLine
      if (line.kind === FieldKind.Ordinary) fields.push(line.name, line.value)
      else this.addSpecial(line)
    }
  }

  private accept(line: FieldLine, length: number): ProtocolError | undefined {
    const { section, limits } = this
    if (length > section.longestLine) section.longestLine = length
    section.size += line.size
    section.lineCount++
    if (!section.fits(limits)) return tooLarge()
    if (this.trailers) return this.addTrailer(line)
    if (line.kind === FieldKind.Ordinary) this.fields.push(line.name, line.value)
    else this.addSpecial(line)
    return undefined
  }

  /** The section is complete: hands it over and makes ready for the next one. */
  finish(): FieldSection {
    const section = this.section
    section.fields = this.fields
    if (this.named !== undefined) section.fields = withoutNamed(this.fields, this.named)
    if (this.websocketKeys > 1) section.websocketKey = ''
    if (this.websocketAccepts > 1) section.websocketAccept = ''
    this.reset()
    return section
  }

  /** Forgets what was collected. */
  reset(): void {
    this.section = new FieldSection()
    this.fields = []
    this.named = undefined
    this.websocketKeys = 0
    this.websocketAccepts = 0
  }

  private name(value: string): void {
    this.named ??= new Set()
    for (const name of namedFields(value)) this.named.add(name)
  }

  private addTrailer(line: FieldLine): ProtocolError | undefined {
    // RFC 9110 §6.5.1: not where the message is already framed and routed by its head.
    if (isForbiddenTrailer(line.kind)) return new ProtocolError(`${line.name} in the trailer section`)
    if (!isDroppedTrailer(line.name)) this.fields.push(line.name, line.value)
    return undefined
  }

  private addSpecial(line: FieldLine): void {
    const section = this.section
    switch (line.kind) {
      case FieldKind.Host:
        section.hostCount++
        section.host = line.value
        section.hostValid = line.number === 1
        return
      case FieldKind.ContentLength:
        // RFC 9112 §6.3: differing lengths are an unrecoverable error; equal ones are refused with them.
        section.contentLength = section.contentLength === noLength ? line.number : badLength
        break
      case FieldKind.TransferEncoding:
        section.transferEncoding = joined(section.transferEncoding, line.value)
        // An empty list is still a Transfer-Encoding, and one that nobody can agree on.
        if (section.transferEncoding === '') section.transferEncoding = ','
        return
      case FieldKind.Connection:
        section.connection |= line.number
        if ((line.number & ConnectionToken.Names) !== 0) this.name(line.value)
        return
      case FieldKind.KeepAlive:
        section.keepAlive = joined(section.keepAlive, line.value)
        return
      case FieldKind.Upgrade:
        section.upgrade = joined(section.upgrade, line.value)
        return
      case FieldKind.Te:
        // RFC 9110 §10.1.4: TE describes this connection only, but for the willingness to take trailers.
        if (line.number === 1) this.fields.push('te', 'trailers')
        return
      case FieldKind.Expect:
        if (line.number === 1) section.expectContinue = true
        break
      case FieldKind.WebSocketKey:
        this.websocketKeys++
        section.websocketKey = line.value
        break
      case FieldKind.WebSocketAccept:
        this.websocketAccepts++
        section.websocketAccept = line.value
        break
      default:
        return
    }
    this.fields.push(line.name, line.value)
  }
}

function joined(before: string, value: string): string {
  return before === '' ? value : `${before}, ${value}`
}

// RFC 9110 §7.6.1: an intermediary removes the fields that Connection names; nobody else has use for them.
function withoutNamed(fields: readonly string[], named: ReadonlySet<string>): Fields {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (!named.has(name)) kept.push(name, fields[i + 1] as string)
  }
  return kept
}

/** The fault of a section over its limits. */
export function tooLarge(): ProtocolError {
  return new ProtocolError('field section too large', 431, 'FIELDS_TOO_LARGE')
}
