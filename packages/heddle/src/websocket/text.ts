// With offsets, and without a view on the way.
const { utf8Slice } = Buffer.prototype as unknown as { utf8Slice(this: Uint8Array, start: number, limit: number): string }

/** The text of a message: `buffer[start, limit)`, valid UTF-8, as a string. For `SocketHandler.onMessage`. */
export function textOf(buffer: Uint8Array, start: number, limit: number): string {
  return utf8Slice.call(buffer, start, limit)
}

/** A copy with an ArrayBuffer of its own, also of a Buffer, whose `slice` makes none. */
export function bytesOf(buffer: Uint8Array, start: number, limit: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(limit - start)
  // Of 64 bytes and less, a loop takes a third of the time.
  if (limit - start <= 64) for (let i = 0; i < bytes.length; i++) bytes[i] = buffer[start + i] as number
  else bytes.set(start === 0 && limit === buffer.length ? buffer : buffer.subarray(start, limit))
  return bytes
}
