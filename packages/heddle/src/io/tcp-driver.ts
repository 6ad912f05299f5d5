import type { StreamEngine } from '../http/index.ts'
import type { Clock } from './clock.ts'
import type { SocketLike } from './socket.ts'

/** What went over one socket, or over all that share this object. */
export interface DriverCounters {
  /** Calls of `socket.write`. */
  writes: number
  bytesRead: number
  bytesWritten: number
}

export interface DriverOptions {
  /** Counts here instead of in an object of its own: the totals of a server or client. */
  readonly counters?: DriverCounters | undefined
  /** An engine threw, which it never should. Its connection is destroyed; default: a process warning. */
  readonly onBug?: ((error: unknown) => void) | undefined
  /** Bytes of bodies an engine may hand over in one turn. Default 262144. */
  readonly turnLimit?: number | undefined
  /** Unsent bytes from which on the engine is not asked for more. Default 65536. */
  readonly highWater?: number | undefined
  /** How long the last bytes may take once the engine is done with the connection, ms. Default 10000. */
  readonly closeTimeout?: number | undefined
  /** Bytes come through `onRead` (net's `onread`) and not as 'data'. Default false. */
  readonly pushed?: boolean | undefined
}

/** Runs a {@link StreamEngine} on a socket. */
export class StreamDriver {
  readonly socket: SocketLike
  readonly counters: DriverCounters

  constructor(socket: SocketLike, _clock: Clock, options: DriverOptions = {}) {
    this.socket = socket
    this.counters = options.counters ?? { writes: 0, bytesRead: 0, bytesWritten: 0 }
  }

  /** Starts reading and arms the deadline. Once only. */
  attach(_engine: StreamEngine): void {
    throw new Error('under construction')
  }
}
