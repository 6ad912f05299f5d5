import { UsageError } from '../http/index.ts'
import { isCloseCode, type PreparedMessage, type WebSocketConnection } from '../ws/index.ts'
import type { PostOptions, Sendable } from './socket.ts'

/** Gives `data` to `connection`; what its methods that send return. Throws UsageError for what is no message. */
export function send(connection: WebSocketConnection, data: Sendable, options: PostOptions | undefined): boolean {
  const compress = options === undefined || options.compress !== false
  if (typeof data === 'string') return connection.sendText(data, compress)
  if (isPrepared(data)) return connection.sendPrepared(data, compress)
  return connection.sendBytes(bytesFrom(data), options?.text !== true, compress, options?.owned === true)
}

/** Something that can wait: `data` itself if nobody can write to it. */
export function lasting(data: Sendable, options: PostOptions | undefined): Sendable {
  if (typeof data === 'string' || isPrepared(data)) return data
  const bytes = bytesFrom(data)
  return options?.owned === true ? bytes : Uint8Array.from(bytes)
}

/** Bytes that `data` carries. */
export function sizeOf(data: Sendable): number {
  if (typeof data === 'string') return Buffer.byteLength(data)
  return isPrepared(data) ? data.payload.length : data.byteLength
}

/** What `prepare` made. */
export function isPrepared(data: Sendable): data is PreparedMessage {
  return typeof data === 'object' && data !== null && 'compressedPayload' in data
}

/** The bytes of `data`, not copied. Throws UsageError for what has none. */
export function bytesFrom(data: ArrayBufferView | ArrayBufferLike): Uint8Array {
  if (data instanceof Uint8Array) return data
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) return new Uint8Array(data)
  throw new UsageError('a message is a string, an ArrayBuffer, a view of one, or what prepare() made')
}

/** Throws UsageError for what a Close cannot carry, as the engine does once there is one. */
export function checkClose(code: number | undefined, reason: string): void {
  if (code === undefined && reason !== '') throw new UsageError('a reason needs a code')
  if (code !== undefined && !isCloseCode(code)) throw new UsageError(`close code ${code} cannot be sent`)
  // RFC 6455 §5.5: 125 bytes with the code.
  if (Buffer.byteLength(reason) > 123) throw new UsageError('a reason has 123 bytes of UTF-8 at most')
}
