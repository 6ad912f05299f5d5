import type { HeddleError } from '../http/index.ts'
import type { Socket } from './socket.ts'

/**
 * The fast path: what a {@link Socket} tells, without a promise or a copy. One object may serve any number
 * of sockets. A call may use every method of the socket; one that throws ends the connection with 1011.
 */
export interface SocketHandler {
  /**
   * A whole message: `buffer[start, limit)`, valid during the call only. `binary` false: it is valid UTF-8
   * (`textOf` makes a string of it).
   */
  onMessage(socket: Socket, buffer: Uint8Array, start: number, limit: number, binary: boolean): void
  /** `post` had returned false, and may go on. */
  onWritable?(socket: Socket): void
  /** A Ping came. The Pong follows by itself. The bytes are valid during the call only. */
  onPing?(socket: Socket, payload: Uint8Array): void
  /** A Pong came, asked for or not. The bytes are valid during the call only. */
  onPong?(socket: Socket, payload: Uint8Array): void
  /** The peer closes: `code` is 1005 if its Close had none. What was not sent yet may still be during this call. */
  onPeerClose?(socket: Socket, code: number, reason: string): void
  /** The connection is over: exactly once, and last. See {@link Closed}. */
  onClose?(socket: Socket, code: number, reason: string, wasClean: boolean, error: HeddleError | undefined): void
}

/** How a connection ended. */
export interface Closed {
  /** The code of the peer's Close: 1005 if it had none, 1006 if none came. */
  readonly code: number
  readonly reason: string
  /** Both sides sent their Close, and nothing that was accepted was lost. */
  readonly wasClean: boolean
  /** Why it was not clean. */
  readonly error: HeddleError | undefined
}
