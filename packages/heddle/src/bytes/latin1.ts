interface Latin1Buffer {
  latin1Slice(this: Uint8Array, start: number, limit: number): string
  latin1Write(this: Uint8Array, text: string, at: number, byteCount: number): number
}

// The methods behind toString('latin1') and write(…, 'latin1'): without their argument checks.
const native = Buffer.prototype as unknown as Latin1Buffer

/** `buffer[start, limit)` as a string, one code unit per octet. */
export function latin1Slice(buffer: Uint8Array, start: number, limit: number): string {
  return native.latin1Slice.call(buffer, start, limit)
}

/** Writes `text` (all code units ≤ 0xFF) to `buffer` at `at`, which must have room. Returns the bytes written. */
export function latin1Write(buffer: Uint8Array, text: string, at: number): number {
  return native.latin1Write.call(buffer, text, at, text.length)
}
