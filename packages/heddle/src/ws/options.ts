import type { Codec } from './codec.ts'
import type { DeflateParameters } from './deflate.ts'
import type { WebSocketLimits } from './limits.ts'

/** How a {@link WebSocketConnection} behaves. */
export interface WebSocketOptions {
  /** A client masks what it sends and refuses what is masked; a server the other way round (RFC 6455 §5.1). */
  readonly role: 'client' | 'server'
  readonly limits?: Partial<WebSocketLimits> | undefined
  /** A new mask: 32 unpredictable bits, as a signed or unsigned integer (RFC 6455 §5.3). Required of a client. */
  readonly maskKey?: (() => number) | undefined
  /** permessage-deflate was agreed on. */
  readonly deflate?: DeflateOptions | undefined
  /** Messages leave in frames of at most this many bytes. Default Infinity: one message, one frame. */
  readonly fragmentSize?: number | undefined
  /**
   * True if all of `bytes` is valid UTF-8, as `isUtf8` of `node:buffer`: asked for long runs of bytes that
   * are not ASCII. Default: the engine's own loop.
   */
  readonly isUtf8?: ((bytes: Uint8Array) => boolean) | undefined
}

/** permessage-deflate as agreed on in the handshake, and who does the work. */
export interface DeflateOptions {
  readonly parameters: DeflateParameters
  readonly codec: Codec
  /** Messages under this many bytes are sent uncompressed. Default 128 with context takeover, else 1,024. */
  readonly threshold?: number | undefined
}
