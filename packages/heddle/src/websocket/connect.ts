import { Handshake, type ConnectOptions } from './connect-options.ts'
import { Opening, type OpeningOwner } from './opening.ts'
import { failure } from './operation.ts'
import type { Socket } from './socket.ts'

/**
 * Opens a WebSocket and resolves with its {@link Socket}, without events: the leanest client there is. What
 * arrives before a handler is set or something is read waits in the socket.
 *
 * Rejects with a SyntaxError (DOMException) for a URL or a subprotocol that is none, with a UsageError or TypeError
 * for wrong options, with the signal's reason, with a {@link HandshakeError} if the server answers anything
 * else, or with a HeddleError that says what failed on the way to it.
 *
 * ```ts
 * import { connect } from 'heddle/websocket'
 *
 * await using socket = await connect('wss://example.org/prices')
 * for await (const message of socket) console.log(message)
 * ```
 */
export async function connect(url: string | URL, options: ConnectOptions = {}): Promise<Socket> {
  const owner = new Awaited()
  new Opening(new Handshake('connect', url, options), owner).start()
  return owner.socket
}

/** Whoever awaits a socket. */
class Awaited implements OpeningOwner {
  readonly socket: Promise<Socket>
  readonly #resolve: (socket: Socket | Promise<never>) => void

  constructor() {
    const { promise, resolve } = Promise.withResolvers<Socket>()
    this.socket = promise
    this.#resolve = resolve
  }

  onOpened(socket: Socket): void {
    this.#resolve(socket)
  }
  onFailed(error: unknown): void {
    this.#resolve(failure(error))
  }
  onOver(): void {}
}
