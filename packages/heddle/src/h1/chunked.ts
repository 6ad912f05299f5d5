import { ProtocolError, type Fields } from '../http/index.ts'
import type { Http1Limits } from './limits.ts'
import { SectionReader } from './section-reader.ts'

/*
 * chunk-size [chunk-ext] CRLF chunk-data CRLF … 0 [chunk-ext] CRLF trailer-section CRLF
 *
 *            ┌────────────────────────────────────────────────────────────────┐
 *            ▼                                                                │
 *   Size ──"; …"──▶ Extension ──CR──▶ SizeEnd ──LF──▶ Data ──▶ DataCr ──▶ DataLf
 *     └──────────────CR─────────────────▲ │
 *                                         └─ size 0 ──▶ Trailers ──▶ Ended
 */
const Step = { Size: 0, Extension: 1, SizeEnd: 2, Data: 3, DataCr: 4, DataLf: 5, Trailers: 6, Ended: 7 } as const
type Step = (typeof Step)[keyof typeof Step]

const cr = 0x0d
const lf = 0x0a
const semicolon = 0x3b
/** 13 hex digits stay below 2^53. */
const mostDigits = 13

/** -1, or the value of the hex digit. */
const hexValue = new Int8Array(256).fill(-1)
for (let i = 0; i < 16; i++) {
  hexValue['0123456789abcdef'.charCodeAt(i)] = i
  hexValue['0123456789ABCDEF'.charCodeAt(i)] = i
}

/**
 * Decodes the chunked transfer coding (RFC 9112 §7.1) from bytes that come in any pieces, strictly:
 * the sizes of chunks are what requests are smuggled with.
 */
export class ChunkedDecoder {
  /** Content found by the last `read`: `buffer[contentStart, contentLimit)`. */
  contentStart: number
  contentLimit: number
  /** The last chunk and the trailer section have been read. */
  ended: boolean
  /** The trailer section, once `ended`; without fields for most messages. */
  trailers: Fields
  fault: ProtocolError | undefined
  private readonly limits: Http1Limits
  private step: Step
  private size: number
  private digits: number
  private extensionSize: number
  private reader: SectionReader<never, never> | undefined

  constructor(limits: Http1Limits) {
    this.contentStart = 0
    this.contentLimit = 0
    this.ended = false
    this.trailers = []
    this.fault = undefined
    this.limits = limits
    this.step = Step.Size
    this.size = 0
    this.digits = 0
    this.extensionSize = 0
    this.reader = undefined
  }

  /** Makes ready for the next message. */
  reset(): void {
    this.ended = false
    this.trailers = []
    this.step = Step.Size
    this.size = 0
    this.digits = 0
    this.extensionSize = 0
  }

  /**
   * Reads on at `at`, up to the end of one piece of content, the end of the message, a fault or
   * `limit`, and returns where it stopped.
   */
  read(buffer: Uint8Array, at: number, limit: number): number {
    this.contentStart = at
    this.contentLimit = at
    while (at < limit) {
      if (this.step === Step.Data) return this.readData(buffer, at, limit)
      if (this.step === Step.Trailers) return this.readTrailers(buffer, at, limit)
      this.readOctet(buffer[at] as number)
      if (this.fault !== undefined) return limit
      at++
    }
    return at
  }

  private readData(buffer: Uint8Array, at: number, limit: number): number {
    const end = Math.min(limit, at + this.size)
    this.contentStart = at
    this.contentLimit = end
    this.size -= end - at
    if (this.size > 0) return end
    this.step = Step.DataCr
    this.digits = 0
    // The end of the message, when it is here already and plain, goes with the last content.
    if (limit - end >= 7 && isPlainEnd(buffer, end)) {
      this.step = Step.Ended
      this.ended = true
      return end + 7
    }
    return end
  }

  private readOctet(octet: number): void {
    switch (this.step) {
      case Step.Size:
        this.readSize(octet)
        return
      case Step.Extension:
        if (octet === cr) this.step = Step.SizeEnd
        // RFC 9112 §7.1.1: extensions are ignored, but neither without bound nor with a hidden line end.
        else if (octet < 0x20 && octet !== 0x09) this.refuse('forbidden octet in a chunk extension')
        else if (++this.extensionSize > this.limits.maxChunkExtensionSize) this.refuse('chunk extensions too large')
        return
      case Step.SizeEnd:
        if (octet !== lf) this.refuse('carriage return without line feed after a chunk size')
        else this.step = this.size > 0 ? Step.Data : Step.Trailers
        return
      case Step.DataCr:
        if (octet === cr) this.step = Step.DataLf
        else this.refuse('chunk longer than its size')
        return
      case Step.DataLf:
        if (octet === lf) this.step = Step.Size
        else this.refuse('chunk longer than its size')
        return
      default:
        return
    }
  }

  private readSize(octet: number): void {
    const digit = hexValue[octet] as number
    if (digit >= 0) {
      this.size = this.size * 16 + digit
      // RFC 9112 §7.1: a recipient must anticipate large sizes and prevent overflow.
      if (++this.digits > mostDigits) this.refuse('chunk size too large')
    } else if (this.digits === 0) {
      this.refuse('malformed chunk size')
    } else if (octet === cr) {
      this.step = Step.SizeEnd
    } else if (octet === semicolon) {
      this.step = Step.Extension
      if (++this.extensionSize > this.limits.maxChunkExtensionSize) this.refuse('chunk extensions too large')
    } else {
      this.refuse('malformed chunk size')
    }
  }

  private readTrailers(buffer: Uint8Array, at: number, limit: number): number {
    const reader = (this.reader ??= new SectionReader<never, never>(undefined, this.limits))
    const end = reader.read(buffer, at, limit)
    this.contentStart = end
    this.contentLimit = end
    if (reader.fault !== undefined) {
      this.fault = reader.fault
    } else if (reader.section !== undefined) {
      this.trailers = reader.section.fields
      this.step = Step.Ended
      this.ended = true
      reader.next()
    }
    return end
  }

  private refuse(message: string): void {
    this.fault = new ProtocolError(message)
  }
}

/** CRLF "0" CRLF CRLF */
function isPlainEnd(buffer: Uint8Array, at: number): boolean {
  return (
    buffer[at] === cr &&
    buffer[at + 1] === lf &&
    buffer[at + 2] === 0x30 &&
    buffer[at + 3] === cr &&
    buffer[at + 4] === lf &&
    buffer[at + 5] === cr &&
    buffer[at + 6] === lf
  )
}
