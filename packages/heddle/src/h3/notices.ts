import { tellFault } from '../http/index.ts'
import type { Connection } from './connection.ts'
import type { Stream } from './stream.ts'

/** Exchanges that are over and whose handler does not know. The queue runs through the streams themselves. */
export class Notices {
  readonly #owner: Connection
  #firstClosed: Stream | undefined
  #lastClosed: Stream | undefined

  constructor(owner: Connection) {
    this.#owner = owner
    this.#firstClosed = undefined
    this.#lastClosed = undefined
  }

  get hasClosed(): boolean {
    return this.#firstClosed !== undefined
  }

  /** `stream` is told that it is over at the end of this run of the engine, or in the next. */
  closedLater(stream: Stream): void {
    if (this.#lastClosed === undefined) this.#firstClosed = stream
    else this.#lastClosed.nextClosed = stream
    this.#lastClosed = stream
    this.#owner.wake()
  }

  tellAllClosed(): void {
    for (let stream = this.#firstClosed; stream !== undefined; stream = this.#firstClosed) {
      this.#firstClosed = stream.nextClosed
      if (this.#firstClosed === undefined) this.#lastClosed = undefined
      stream.nextClosed = undefined
      stream.endsWell = false
      try {
        stream.handler.onClose(stream.error)
      } catch (cause) {
        // The exchange is over; there is nothing left that this could end.
        tellFault(this.#owner.handler, cause)
      }
    }
  }
}
