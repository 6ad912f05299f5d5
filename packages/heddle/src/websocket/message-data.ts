import type { MessageData } from './events.ts'
import { bytesOf } from './text.ts'

/** What message events carry bytes as. */
export type BinaryType = 'blob' | 'arraybuffer' | 'uint8array'

/** `buffer[start, limit)`, valid for the moment, as `type` says. */
export function bytesAs(type: BinaryType, buffer: Uint8Array, start: number, limit: number): MessageData {
  if (type === 'blob') return new Blob([buffer.subarray(start, limit) as Uint8Array<ArrayBuffer>])
  const bytes = bytesOf(buffer, start, limit)
  return type === 'uint8array' ? bytes : bytes.buffer
}
