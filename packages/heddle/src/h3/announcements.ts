import { CancelledError, CancelReason } from '../http/index.ts'
import type { Connection } from './connection.ts'

/** What the connection's owner is told. An owner that throws harms no exchange. */
export class Announcements {
  /** The owner was told that the connection is over: nothing comes after that. */
  isFinished: boolean
  readonly #owner: Connection
  // What it was told last.
  #openable: number
  #mostExchanges: number
  #extendedConnect: boolean

  constructor(owner: Connection) {
    this.isFinished = false
    this.#owner = owner
    this.#openable = 0
    this.#mostExchanges = -1
    this.#extendedConnect = false
  }

  /** What the peer allows, if it is not what it was. */
  tellReady(): void {
    const { handler, peer, lifetime, isServer, exchanges, limits } = this.#owner
    // Streams QUIC is not done with yet are open for it, and will not be for long.
    const mostExchanges = isServer ? limits.maxConcurrentStreams : Math.max(this.#mostExchanges, exchanges.openable + exchanges.open)
    const { enableConnectProtocol } = peer
    if (this.#mostExchanges >= 0 && enableConnectProtocol === this.#extendedConnect) return
    this.#mostExchanges = mostExchanges
    this.#extendedConnect = enableConnectProtocol
    try {
      handler.onReady({ protocol: 'h3', maxExchanges: mostExchanges, extendedConnect: enableConnectProtocol })
    } catch (cause) {
      lifetime.abort(new CancelledError(CancelReason.InternalError, 'onReady failed', { cause }), false)
    }
  }

  /** Client: how many exchanges can be opened, if it is more than before. */
  tellOpenable(): void {
    const owner = this.#owner
    const { openable } = owner
    if (openable > this.#openable) {
      this.#openable = openable
      try {
        owner.handler.onCapacity(openable)
      } catch {
        // It only tells what `openable` says.
      }
    }
    this.#openable = owner.openable
  }

  tellDraining(): void {
    try {
      this.#owner.handler.onDraining()
    } catch {
      // It only tells what will be seen anyway: nothing can be opened here.
    }
  }

  /** The end, and the last word of all: after every exchange. */
  maybeTellClosed(): void {
    const { notices, lifetime, handler } = this.#owner
    if (this.isFinished || notices.hasClosed) return
    this.isFinished = true
    try {
      handler.onClose(lifetime.error)
    } catch {
      // The connection is over; there is nothing left that this could end.
    }
  }
}
