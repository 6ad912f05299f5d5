import { Outbox } from '../bytes/index.ts'
import { SectionRole, writeInteger } from '../fieldcode/index.ts'
import { Decoder } from '../qpack/index.ts'

const boundless = { maxFieldLines: Infinity, maxFieldSectionSize: Infinity, maxFieldLineSize: Infinity }

/** Reads the field sections of one direction of a connection, for tests and logs only. */
export class DebugFields {
  readonly #decoder: Decoder

  /** As the SETTINGS of the side that reads say. */
  constructor(maxTableCapacity: number, maxBlockedStreams: number) {
    this.#decoder = new Decoder({ ...boundless, maxTableCapacity, maxBlockedStreams })
  }

  /** What came on the encoder stream. */
  receive(bytes: Uint8Array): void {
    const fault = this.#decoder.receive(bytes, 0, bytes.length)
    if (fault !== undefined) throw new Error(`the encoder stream is broken: ${fault.reason}`)
  }

  /** What is to be sent on the decoder stream by now. */
  takeInstructions(): Uint8Array {
    this.#decoder.finishInstructions()
    const { instructions } = this.#decoder
    const bytes = Uint8Array.prototype.slice.call(instructions.buffer, 0, instructions.length)
    instructions.length = 0
    return bytes
  }

  /** The lines as `[name, value, …]`, pseudo-header fields first; undefined: the section cannot be decoded, or not yet. */
  read(streamId: number, block: Uint8Array, of: 'request' | 'response' | 'trailers'): string[] | undefined {
    const role = of === 'request' ? SectionRole.Request : of === 'response' ? SectionRole.Response : SectionRole.Trailers
    const section = this.#decoder.decode(streamId, block, 0, block.length, role, { onSection() {} })
    if (section === undefined) return undefined
    const { head, fields, fault } = section
    if (fault !== '') return [`malformed: ${fault}`, '']
    if (head === undefined) return [...fields]
    if (head.status !== 0) return [':status', String(head.status), ...fields]
    const pseudo = {
      ':method': head.method,
      ':scheme': head.scheme,
      ':authority': head.authority,
      ':path': head.path,
      ':protocol': head.protocol,
    }
    return [...Object.entries(pseudo).flatMap(([name, value]) => (value === '' ? [] : [name, value])), ...fields]
  }
}

/** A field section of literals that refer to no table, whatever the names and values: malformed ones too. */
export function literalSection(fields: readonly string[]): Uint8Array {
  const out = new Outbox(Buffer.alloc(0), Infinity)
  // RFC 9204 §4.5.1: it needs no entry.
  out.writeBytes(Uint8Array.of(0, 0), 0, 2)
  for (let i = 0; i < fields.length; i += 2) {
    // RFC 9204 §4.5.6
    writeText(out, fields[i] as string, 3, 0x20)
    writeText(out, fields[i + 1] as string, 7, 0)
  }
  return Uint8Array.prototype.slice.call(out.buffer, 0, out.length)
}

function writeText(out: Outbox, text: string, prefixBits: number, first: number): void {
  out.reserve(text.length + 8)
  out.length = writeInteger(text.length, prefixBits, first, out.buffer, out.length)
  out.writeLatin1(text)
}
