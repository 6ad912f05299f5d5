import type { Clock } from '../io/index.ts'
import type { DeflateParameters, WebSocketLimits } from '../ws/index.ts'
import type { CompressionOptions } from './codec.ts'

/** What one {@link Socket} may cost, and how long it waits; every member is an option. */
export interface SocketLimits extends WebSocketLimits {
  /**
   * From the moment this side or the peer closes, or the peer breaks the rules, to the end of the connection: ms.
   * Default 5 s. While the peer takes what was given to be sent before, it begins anew. On excess: the
   * connection is aborted, CLOSE_TIMEOUT, which ends whatever waits for it.
   */
  readonly closeTimeout: number
  /**
   * Messages that came and were not read, in bytes (64 are added for each): above it nothing more is taken
   * from the peer. Default 64 KiB. One message is always taken, whatever its size.
   */
  readonly maxUnreadSize: number
  /**
   * Bytes of messages that wait to be taken by the peer (`bufferedAmount`, and 32 for each), with which another is one
   * too many. Default 16 MiB for a server, 256 MiB for a client. A single message may be larger. On excess: the
   * connection is aborted, QUEUE_FULL, which is told as every failure is. So a peer that sends, and reads no answers,
   * costs no more. Infinity: whatever the program sends waits.
   */
  readonly maxBufferedAmount: number
}

/** permessage-deflate of a {@link Socket}: what was agreed on, and how hard to compress. */
export interface SocketDeflate extends CompressionOptions {
  readonly parameters: DeflateParameters
  /** Messages under this many bytes are sent uncompressed. Default 128 with context takeover, else 1,024. */
  readonly threshold?: number | undefined
}

/** How a {@link Socket} behaves. Times are in ms, sizes in bytes. */
export interface SocketOptions {
  readonly role: 'client' | 'server'
  /** The subprotocol that was agreed on. Default ''. */
  readonly protocol?: string | undefined
  /** The extensions that were agreed on, as Sec-WebSocket-Extensions says it. Default ''. */
  readonly extensions?: string | undefined
  readonly deflate?: SocketDeflate | undefined
  readonly limits?: Partial<SocketLimits> | undefined
  /** Messages leave in frames of at most this many bytes. Default Infinity: one message, one frame. */
  readonly fragmentSize?: number | undefined
  /** Default: the system's. */
  readonly clock?: Clock | undefined
  /** A client's masks: 32 unpredictable bits for each frame. Default: from `node:crypto`. */
  readonly maskKey?: (() => number) | undefined
  /**
   * False: the head that opens the tunnel has not been sent. What is sent meanwhile waits for `open()`, and
   * the exchange is left alone. Default true.
   */
  readonly opened?: boolean | undefined
}
