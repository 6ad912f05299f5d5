import { crc32 } from 'node:zlib'
import { Opcode } from '../../ws/index.ts'

/** A frame as a peer may send it, rules broken or not. */
export interface PeerFrame {
  /** The first octet: flags and opcode. */
  readonly first: number
  readonly payload: Uint8Array
  /** The length is written in this many octets, whatever it is. Default: the least. */
  readonly lengthOctets?: 2 | 8
  /** What the length says, in place of that of `payload`. */
  readonly declared?: bigint
  /** A mask, or none, whatever the role. */
  readonly mask?: boolean
}

const key = [0x37, 0xfa, 0x21, 0x3d] as const

/** The octets of a frame, masked if a client sends it. */
export function encodePeerFrame(frame: PeerFrame, fromClient: boolean): Buffer {
  const { first, payload, mask = fromClient } = frame
  const declared = frame.declared ?? BigInt(payload.length)
  const octets = frame.lengthOctets ?? (declared < 126n ? 0 : declared < 65_536n ? 2 : 8)
  const header = Buffer.alloc(2 + octets + (mask ? 4 : 0))
  header[0] = first
  header[1] = (mask ? 0x80 : 0) | (octets === 0 ? Number(declared) : octets === 2 ? 126 : 127)
  if (octets === 2) header.writeUInt16BE(Number(declared), 2)
  else if (octets === 8) header.writeBigUInt64BE(declared, 2)
  const body = Buffer.from(payload)
  if (mask) {
    header.set(key, 2 + octets)
    for (let i = 0; i < body.length; i++) body[i] = (body[i] as number) ^ (key[i & 3] as number)
  }
  return Buffer.concat([header, body])
}

/** A frame that came, its mask taken off. */
export interface ReceivedFrame {
  readonly fin: boolean
  /** RSV1–RSV3 as one number. */
  readonly reserved: number
  readonly opcode: number
  readonly masked: boolean
  readonly payload: Buffer
}

/** Takes octets apart into frames; asks nothing of them but that they are there. */
export class FrameLog {
  readonly frames: ReceivedFrame[] = []
  #rest: Buffer = Buffer.alloc(0)

  /** Octets of a frame that is not complete. */
  get rest(): Buffer {
    return this.#rest
  }

  add(bytes: Uint8Array): void {
    this.#rest = Buffer.concat([this.#rest, bytes])
    for (let size = this.#readOne(); size > 0; size = this.#readOne()) this.#rest = this.#rest.subarray(size)
  }

  #readOne(): number {
    const bytes = this.#rest
    if (bytes.length < 2) return 0
    const [first, second] = bytes as unknown as [number, number]
    const masked = second >= 0x80
    const short = second & 0x7f
    const octets = short < 126 ? 0 : short === 126 ? 2 : 8
    const start = 2 + octets + (masked ? 4 : 0)
    if (bytes.length < start) return 0
    const length = octets === 0 ? short : octets === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
    if (bytes.length < start + length) return 0
    const payload = Buffer.from(bytes.subarray(start, start + length))
    if (masked) for (let i = 0; i < length; i++) payload[i] = (payload[i] as number) ^ (bytes[start - 4 + (i & 3)] as number)
    this.frames.push({ fin: first >= 0x80, reserved: (first >> 4) & 7, opcode: first & 0x0f, masked, payload })
    return start + length
  }
}

const names: Readonly<Record<number, string>> = {
  [Opcode.Continuation]: 'continuation',
  [Opcode.Text]: 'text',
  [Opcode.Binary]: 'binary',
  [Opcode.Close]: 'close',
  [Opcode.Ping]: 'ping',
  [Opcode.Pong]: 'pong',
}

/** A frame in words: `text "Hello"`, `binary… 3 00ff12` (not the last), `close 1002`. A Close's reason is left out. */
export function frameLine({ fin, reserved, opcode, payload }: ReceivedFrame): string {
  const name = `${names[opcode] ?? opcode}${fin ? '' : '…'}${reserved === 0 ? '' : ` rsv${reserved}`}`
  if (opcode === Opcode.Close) return payload.length < 2 ? name : `${name} ${payload.readUInt16BE(0)}`
  return `${name} ${payloadText(payload, opcode === Opcode.Text)}`
}

/** A payload in words: short text is quoted, short bytes are in hex, of long ones the length and a checksum are shown. */
export function payloadText(payload: Uint8Array, isText: boolean): string {
  if (payload.length > 64) return `${payload.length} #${crc32(payload).toString(16)}`
  const bytes = Buffer.from(payload)
  return isText ? JSON.stringify(bytes.toString('utf8')) : `${payload.length} ${bytes.toString('hex')}`
}
