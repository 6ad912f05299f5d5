import type { QuicStream, QuicStreamHandler } from '../quic/index.ts'

/** What HTTP/3 needs of the QUIC connection below it. */
export interface QuicTransport {
  /** Opens a stream of ours; undefined: the peer allows no more of its kind now. Its id is known at once. */
  open(bidirectional: boolean, handler: QuicStreamHandler): QuicStream | undefined
  /** How many bidirectional streams `open` would open now. */
  readonly openableBidirectional: number
  /** CONNECTION_CLOSE of the application, at once: nothing that still waits is sent. */
  close(applicationError: number, reason: string): void
  /** Exchanges are open, so the path is to be kept alive and watched (PING after a silence); false: it may fall silent. */
  keepAlive(wanted: boolean): void
  /** Smoothed, ms; what is assumed at first while nothing was measured. */
  readonly roundTripTime: number
  /** Something waits for a run of the engine. Does nothing in a run. */
  wake(): void
}
