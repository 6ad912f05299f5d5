import type { HeddleError, Instant } from '../http/index.ts'
import type { QuicStream, QuicStreamHandler } from './stream.ts'

/**
 * What a QUIC connection tells its application, inside `receive`, `transmit` and `expire` only. Each of
 * them begins with `startRun` and ends with `finishRun`; `transmit` calls `finishRun` before it writes a
 * packet, too: what handlers say when they are told leaves in the same run.
 */
export interface QuicApplication {
  startRun(now: Instant): void
  finishRun(): void
  /** Streams can be opened and sent on: once. */
  onReady(): void
  /** The peer opened `stream`. */
  onStream(stream: QuicStream): QuicStreamHandler
  /** `open` failed, or `openableBidirectional` was 0, and may do otherwise now. */
  onStreamsAvailable(): void
  /** The connection is over, and no stream is told anything after this: once. */
  onClose(error: HeddleError): void
  /** Client: something to resume the session with (RFC 8446 §4.6.1). */
  onTicket?(ticket: Uint8Array): void
  /** Client: something to show at the next connection from this address (RFC 9000 §8.1.3). */
  onToken?(token: Uint8Array): void
  /** When `expire` must be called next; Infinity: never. Read after each run. */
  readonly deadline: Instant
  expire(now: Instant): void
}
