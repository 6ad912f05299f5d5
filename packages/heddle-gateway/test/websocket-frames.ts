/** A frame of a WebSocket, unmasked. */
export interface Frame {
  readonly opcode: number
  readonly masked: boolean
  readonly payload: Buffer
}

export const Opcode = { Binary: 2, Close: 8, Ping: 9 } as const

/** A whole frame; `key` masks it (RFC 6455 §5.2). */
export function frame(payload: Uint8Array | string, key?: Uint8Array, opcode: number = Opcode.Binary): Buffer {
  const content = Buffer.from(payload as string)
  const mask = key === undefined ? 0 : 0x80
  const { length } = content
  const head =
    length < 126
      ? Buffer.from([0x80 | opcode, mask | length])
      : length < 65_536
        ? Buffer.from([0x80 | opcode, mask | 126, length >> 8, length & 0xff])
        : Buffer.from([0x80 | opcode, mask | 127, 0, 0, 0, 0, length >>> 24, (length >> 16) & 0xff, (length >> 8) & 0xff, length & 0xff])
  return Buffer.concat(key === undefined ? [head, content] : [head, key, masked(content, key)])
}

export function closeFrame(code: number, key?: Uint8Array): Buffer {
  return frame(Uint8Array.of(code >> 8, code & 0xff), key, Opcode.Close)
}

/** The whole frames at the beginning of `bytes`, and what is behind them. */
export function readFrames(bytes: Buffer): { readonly frames: Frame[]; readonly rest: Buffer } {
  const frames: Frame[] = []
  let rest = bytes
  for (let next = readFrame(rest); next !== undefined; next = readFrame(rest)) {
    frames.push(next)
    rest = rest.subarray(next.size)
  }
  return { frames, rest }
}

function readFrame(bytes: Buffer): (Frame & { size: number }) | undefined {
  if (bytes.length < 2) return undefined
  const short = (bytes[1] as number) & 0x7f
  const extended = short < 126 ? 0 : short === 126 ? 2 : 8
  const isMasked = ((bytes[1] as number) & 0x80) !== 0
  const start = 2 + extended + (isMasked ? 4 : 0)
  if (bytes.length < start) return undefined
  const length = extended === 0 ? short : extended === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  if (bytes.length < start + length) return undefined
  const payload = bytes.subarray(start, start + length)
  return {
    opcode: (bytes[0] as number) & 0x0f,
    masked: isMasked,
    payload: isMasked ? masked(payload, bytes.subarray(start - 4, start)) : Buffer.from(payload),
    size: start + length,
  }
}

function masked(content: Uint8Array, key: Uint8Array): Buffer {
  return Buffer.from(content.map((octet, i) => octet ^ (key[i % 4] as number)))
}
