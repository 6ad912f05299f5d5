import { Outbox } from '../bytes/index.ts'
import { SectionRole } from '../fieldcode/index.ts'
import { Decoder } from '../hpack/index.ts'

const boundless = { maxFieldLines: Infinity, maxFieldSectionSize: Infinity, maxFieldLineSize: Infinity }

/** Reads the field blocks of one direction of a connection, in order, for tests and logs only. */
export class DebugFields {
  readonly #decoder: Decoder

  constructor() {
    this.#decoder = new Decoder(boundless)
  }

  /** The lines as `[name, value, …]`, pseudo-header fields first; undefined: the block cannot be decoded. */
  read(block: Uint8Array, of: 'request' | 'response' | 'trailers'): string[] | undefined {
    const role = of === 'request' ? SectionRole.Request : of === 'response' ? SectionRole.Response : SectionRole.Trailers
    const section = this.#decoder.decode(block, 0, block.length, role)
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

/** A field block of literals that enter no table, whatever the names and values: malformed ones too. */
export function literalBlock(fields: readonly string[]): Uint8Array {
  const out = new Outbox(Buffer.alloc(0), Infinity)
  for (let i = 0; i < fields.length; i += 2) {
    out.writeBytes(Uint8Array.of(0), 0, 1)
    for (const text of [fields[i] as string, fields[i + 1] as string]) writeText(out, text)
  }
  return Uint8Array.prototype.slice.call(out.buffer, 0, out.length)
}

function writeText(out: Outbox, text: string): void {
  out.reserve(text.length + 8)
  // RFC 7541 §5.1: a length below 127 is one octet, a longer one continues by seven bits.
  let rest = text.length
  if (rest < 127) out.buffer[out.length++] = rest
  else {
    out.buffer[out.length++] = 127
    for (rest -= 127; rest >= 128; rest >>>= 7) out.buffer[out.length++] = (rest & 0x7f) | 0x80
    out.buffer[out.length++] = rest
  }
  out.writeLatin1(text)
}
