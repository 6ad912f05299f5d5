import { tellFault, type HeddleError } from '../http/index.ts'
import type { Connection } from './connection.ts'
import type { Stream } from './stream.ts'

/**
 * What handlers are to be told of their own messages, and when: `onSent` once what was framed has left,
 * `onClose` once the exchange is over, and after a message that ended well not before it has left too.
 * Both queues run through the streams themselves.
 */
export class Notices {
  readonly #owner: Connection
  /** Streams that are told when what is staged now has left. */
  #firstReport: Stream | undefined
  #lastReport: Stream | undefined
  /** Streams that are over and whose handler does not know. */
  #firstClosed: Stream | undefined
  #lastClosed: Stream | undefined

  constructor(owner: Connection) {
    this.#owner = owner
    this.#firstReport = undefined
    this.#lastReport = undefined
    this.#firstClosed = undefined
    this.#lastClosed = undefined
  }

  // ── When it has left ────────────────────────────────────────────────────────────────────────────

  get hasReports(): boolean {
    return this.#firstReport !== undefined
  }

  /** `stream` is told what was framed, or that it is over, when what is staged now has left. */
  reportLater(stream: Stream): void {
    if (stream.inReports) return
    stream.inReports = true
    stream.nextReport = undefined
    if (this.#lastReport === undefined) this.#firstReport = stream
    else this.#lastReport.nextReport = stream
    this.#lastReport = stream
  }

  /** All that was staged has left. What handlers send now is told after the next flush. */
  tellReports(): void {
    const { limits } = this.#owner
    const last = this.#lastReport
    let stream = this.#takeReport()
    for (; stream !== undefined; stream = stream === last ? undefined : this.#takeReport()) {
      const { unreported } = stream
      const writable = stream.senderWaits && stream.pending * 2 <= limits.sendBuffer
      stream.unreported = 0
      if (writable) stream.senderWaits = false
      if (unreported > 0 || writable) this.#tellSent(stream, unreported, writable)
      // Unless it was completed just now, by what its handler sent.
      if (stream.complete && !stream.inReports) this.#tellClosed(stream)
    }
  }

  /** What was staged leaves no more: who waits for it ends with `error`. */
  failReports(error: HeddleError | undefined): void {
    for (let stream = this.#takeReport(); stream !== undefined; stream = this.#takeReport()) {
      stream.unreported = 0
      if (!stream.complete) continue
      stream.error = error
      this.closedLater(stream)
    }
  }

  #takeReport(): Stream | undefined {
    const stream = this.#firstReport
    if (stream === undefined) return undefined
    this.#firstReport = stream.nextReport
    if (this.#firstReport === undefined) this.#lastReport = undefined
    stream.nextReport = undefined
    stream.inReports = false
    return stream
  }

  #tellSent(stream: Stream, byteCount: number, writable: boolean): void {
    try {
      stream.handler.onSent(byteCount, writable)
    } catch (error) {
      this.#owner.exchanges.handlerFailed(stream, error)
    }
  }

  // ── When it is over ─────────────────────────────────────────────────────────────────────────────

  get hasClosed(): boolean {
    return this.#firstClosed !== undefined
  }

  /** `stream` is told that it is over in the next `transmit` or `expire`. */
  closedLater(stream: Stream): void {
    if (this.#lastClosed === undefined) this.#firstClosed = stream
    else this.#lastClosed.nextClosed = stream
    this.#lastClosed = stream
  }

  tellAllClosed(): void {
    for (let stream = this.#firstClosed; stream !== undefined; stream = this.#firstClosed) {
      this.#firstClosed = stream.nextClosed
      if (this.#firstClosed === undefined) this.#lastClosed = undefined
      stream.nextClosed = undefined
      this.#tellClosed(stream)
    }
  }

  #tellClosed(stream: Stream): void {
    stream.complete = false
    try {
      stream.handler.onClose(stream.error)
    } catch (cause) {
      // The exchange is over; there is nothing left that this could end.
      tellFault(this.#owner.handler, cause)
    }
  }
}
