import type { HeddleError } from '../http/index.ts'

/**
 * What a {@link WebSocketConnection} tells. Called while its exchange's handler runs, or inside `resume`
 * and the results of its codec. A call may use every method of the connection; what it causes is told
 * after the call has returned. One that throws ends the connection with 1011.
 */
export interface MessageHandler {
  /**
   * A whole message: `buffer[start, limit)`, valid during the call (but see
   * {@link WebSocketConnection.keepMessage}). `binary` false: it is valid UTF-8.
   */
  onMessage(buffer: Uint8Array, start: number, limit: number, binary: boolean): void
  /** A Ping came. It has been, or will be, answered. */
  onPing(buffer: Uint8Array, start: number, limit: number): void
  onPong(buffer: Uint8Array, start: number, limit: number): void
  /**
   * `messageCount` more of what was sent (messages and parts, in order; see `messagesSent`) were wholly
   * taken by the transport within the peer's window. `writable`: a sender that was told false may go on.
   * `bufferedAmount` is up to date.
   */
  onSent(messageCount: number, writable: boolean): void
  /**
   * The peer's Close: `code` 1005 if it had none. While this is called messages may still be sent, unless
   * this side has closed; the answer follows by itself.
   */
  onPeerClose(code: number, reason: string): void
  /**
   * This side began to end the connection of its own accord: the peer broke a rule, or ended without a Close,
   * or the handler threw. Nothing can be sent any more; `onClose` follows with this error, if the peer lets it.
   */
  onClosing?(error: HeddleError): void
  /**
   * The connection is over: exactly once, and last. `code`, `reason`: of the peer's Close; 1005 if it had
   * none, 1006 if none came. `clean`: both sides sent their Close, and nothing accepted was lost. `error`:
   * why it is not clean; after a fault of the peer's a ProtocolError whose `wireCode` is the close code it was told.
   */
  onClose(code: number, reason: string, clean: boolean, error: HeddleError | undefined): void
}

/**
 * A message encoded once and sent to many connections. Nothing of it may change.
 */
export interface PreparedMessage {
  readonly binary: boolean
  /** What the message carries. Text is UTF-8. */
  readonly payload: Uint8Array
  /** One whole frame without a mask, as a server sends it, uncompressed (see `encodeFrame`). */
  readonly frame: Uint8Array
  /**
   * What the message carries, compressed by itself, with a window of `windowBits` at most (9–15), without
   * 00 00 FF FF; undefined: it is sent uncompressed. Made at the first call for each number, as a rule.
   */
  compressedPayload(windowBits: number): Uint8Array | undefined
  /** The frame of `compressedPayload`, without a mask. */
  compressedFrame(windowBits: number): Uint8Array | undefined
}
