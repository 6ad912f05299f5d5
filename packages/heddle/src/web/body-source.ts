import { ProtocolError, type Fields } from '../http/index.ts'

/**
 * Content that comes chunk by chunk, without a stream object: from a connection, from a decoder
 * in front of one, or from an async iterable. One reader, one `read` at a time.
 */
export interface BodySource {
  /**
   * The next chunk, which is the caller's from then on, or undefined at the end. A promise only when
   * nothing is there yet. Throws or rejects with the error that cut the content, also after `cancel`.
   */
  read(): Uint8Array | undefined | Promise<Uint8Array | undefined>
  /**
   * All content, if it has arrived to the end and none was read yet; else undefined. Counts as
   * reading it: afterwards `read` gives undefined.
   */
  take(): Uint8Array | undefined
  /** The rest is not wanted. Frees what stands behind it; does nothing after the end. */
  cancel(reason: unknown): void
  /** True: codings were undone, so content-encoding and content-length of the message do not tell of this content. */
  readonly decoded?: boolean
  /** Bytes of it that may be collected in memory. Absent: all. */
  readonly maxCollected?: number
  /** Trailer fields; empty before the end. */
  readonly trailers: Fields
}

/** Cancels a source that may be the program's own: if its cleanup throws, nobody is left who could be told. */
export function cancelSource(source: BodySource, reason: unknown): void {
  try {
    source.cancel(reason)
  } catch {}
}

/** Reads `source` to the end into one array. Rejects with ProtocolError, code CONTENT_TOO_LARGE, beyond `limit` bytes. */
export async function collect(source: BodySource, limit: number = source.maxCollected ?? Infinity): Promise<Uint8Array> {
  const taken = source.take()
  if (taken !== undefined) return taken
  const chunks: Uint8Array[] = []
  let length = 0
  for (;;) {
    let chunk = source.read()
    if (chunk instanceof Promise) chunk = await chunk
    if (chunk === undefined) break
    chunks.push(chunk)
    length += chunk.length
    if (length > limit) {
      const error = new ProtocolError(`decoded content of more than ${limit} bytes`, 0, 'CONTENT_TOO_LARGE', { scope: 'stream' })
      cancelSource(source, error)
      throw error
    }
  }
  return concatenated(chunks, length)
}

/** The chunks as one array that shares memory with nothing else. */
export function concatenated(chunks: readonly Uint8Array[], length: number): Uint8Array {
  if (chunks.length === 1) {
    const only = chunks[0] as Uint8Array
    if (only.byteLength === only.buffer.byteLength) return only
  }
  const whole = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}
