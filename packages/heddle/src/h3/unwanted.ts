import type { Connection } from './connection.ts'
import { ErrorCode } from './frame.ts'
import { isUnwanted } from './exchanges.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'

/**
 * Content that nobody wants: its sender is told to stop (RFC 9114 §4.1), which costs it no response. Within a run of
 * the engine that waits for its end: a small request that is answered unread has its end right behind its head.
 */
export class Unwanted {
  readonly #owner: Connection
  readonly #deferred: Stream[]

  constructor(owner: Connection) {
    this.#owner = owner
    this.#deferred = []
  }

  /** Stops content that is left of `stream`, if there is any that nobody wants. */
  maybeStop(stream: Stream): void {
    if (stream.closed || !this.#mayStop(stream)) return
    if (this.#owner.isRunning) this.#deferred.push(stream)
    else this.#stop(stream)
  }

  /**
   * A server's answer may say no more than its head, and a client learns nothing from the content either way. A
   * client's word would end what the server does, so it waits until its request is complete. In a tunnel the two
   * directions have nothing to do with each other, and what nobody wants is read and thrown away.
   */
  #mayStop(stream: Stream): boolean {
    if (stream.receiving !== Phase.Content || stream.tunnel || !isUnwanted(stream)) return false
    return this.#owner.isServer ? stream.sending !== Phase.Head : stream.sending === Phase.Ended
  }

  #stop(stream: Stream): void {
    const { exchanges, isServer, resets } = this.#owner
    // RFC 9114 §4.1: H3_NO_ERROR, where the response is complete without it.
    const code = isServer ? ErrorCode.NoError : ErrorCode.RequestCancelled
    resets?.countSent(code)
    exchanges.stopReading(stream, code)
    exchanges.receivingEnded(stream)
  }

  /** A run of the engine ends. */
  settle(): void {
    if (this.#deferred.length === 0) return
    for (const stream of this.#deferred) if (!stream.closed && this.#mayStop(stream)) this.#stop(stream)
    this.#deferred.length = 0
  }
}
