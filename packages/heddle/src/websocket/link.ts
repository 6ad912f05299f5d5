import type { HeddleError } from '../http/index.ts'
import type { SocketCore, SocketWatcher } from './core.ts'
import type { OpeningOwner } from './opening.ts'
import type { Closed, SocketHandler } from './socket-handler.ts'
import type { Socket } from './socket.ts'

/** What a face does about what happens below it; its own methods for that are private. */
export interface LinkHooks<Face> {
  /** The socket is there, and open. */
  opened(face: Face, socket: Socket): void
  /** The socket, which was there, has become open. */
  opens(face: Face, socket: Socket): void
  failed(face: Face, error: unknown): void
  /** The socket is over; what it has not delivered may be to come. */
  over(face: Face, closed: Closed): void
  /** The same, when all was delivered to the link. */
  closed(face: Face, closed: Closed): void
  /** Somebody listens for messages. */
  listened(face: Face): void
  /** Nobody listens, and more is unread than may be. */
  full(face: Face): void
  message(face: Face, buffer: Uint8Array, start: number, limit: number, binary: boolean): void
}

/** Stands between a face and what happens below it, so that the face has no methods but its users'. */
export class Link<Face> implements OpeningOwner, SocketHandler, SocketWatcher {
  readonly #face: Face
  readonly #hooks: LinkHooks<Face>

  constructor(face: Face, hooks: LinkHooks<Face>) {
    this.#face = face
    this.#hooks = hooks
  }

  onOpened(socket: Socket): void {
    this.#hooks.opened(this.#face, socket)
  }
  onSocketOpened({ socket }: SocketCore): void {
    this.#hooks.opens(this.#face, socket)
  }
  onSocketFull(): void {
    this.#hooks.full(this.#face)
  }
  onSocketClosed(): void {}
  onFailed(error: unknown): void {
    this.#hooks.failed(this.#face, error)
  }
  onOver(closed: Closed): void {
    this.#hooks.over(this.#face, closed)
  }
  onMessage(_socket: Socket, buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    this.#hooks.message(this.#face, buffer, start, limit, binary)
  }
  onClose(_socket: Socket, code: number, reason: string, wasClean: boolean, error: HeddleError | undefined): void {
    this.#hooks.closed(this.#face, { code, reason, wasClean, error })
  }
}
