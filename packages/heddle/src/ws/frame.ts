/** What a frame is (RFC 6455 §5.2, §11.8). */
export const Opcode = {
  Continuation: 0x0,
  Text: 0x1,
  Binary: 0x2,
  Close: 0x8,
  Ping: 0x9,
  Pong: 0xa,
} as const
export type Opcode = (typeof Opcode)[keyof typeof Opcode]

/** Bits of a frame's first octet. */
export const Flag = { Fin: 0x80, Rsv1: 0x40 } as const
/** The bit of the second octet that says that a mask follows. */
export const maskBit = 0x80
/** The largest payload of a control frame (RFC 6455 §5.5). */
export const largestControl = 125
/** 2 octets, 8 of length, 4 of the mask. */
export const largestHeader = 14

/** Octets of the header of a frame with `length` octets of payload, its mask aside. */
export function headerSize(length: number): number {
  return length < 126 ? 2 : length < 65_536 ? 4 : 10
}

/**
 * Writes the header of a frame at `at` and returns where it ends, the mask's place not included.
 * `first`: opcode and flags; `mask`: `maskBit` or 0.
 */
export function writeHeader(target: Uint8Array, at: number, first: number, mask: number, length: number): number {
  target[at] = first
  if (length < 126) {
    target[at + 1] = mask | length
    return at + 2
  }
  if (length < 65_536) {
    target[at + 1] = mask | 126
    target[at + 2] = length >>> 8
    target[at + 3] = length & 0xff
    return at + 4
  }
  target[at + 1] = mask | 127
  writeUint32(target, at + 2, Math.floor(length / 0x1_0000_0000))
  writeUint32(target, at + 6, length % 0x1_0000_0000)
  return at + 10
}

/** Writes the low 32 bits of `value`, most significant octet first. */
export function writeUint32(target: Uint8Array, at: number, value: number): void {
  target[at] = value >>> 24
  target[at + 1] = value >>> 16
  target[at + 2] = value >>> 8
  target[at + 3] = value
}

/** One whole, unmasked frame of a message, as a server sends it. `compressed`: `payload` is. */
export function encodeFrame(payload: Uint8Array, binary: boolean, compressed: boolean): Uint8Array {
  const frame = new Uint8Array(headerSize(payload.length) + payload.length)
  const first = Flag.Fin | (compressed ? Flag.Rsv1 : 0) | (binary ? Opcode.Binary : Opcode.Text)
  frame.set(payload, writeHeader(frame, 0, first, 0, payload.length))
  return frame
}
