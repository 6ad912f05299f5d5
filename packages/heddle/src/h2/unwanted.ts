import type { Connection } from './connection.ts'
import { ErrorCode } from './frame.ts'
import { Stage } from './lifetime.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'
import { untimed } from './time-limits.ts'

/** Content that nobody wants, of exchanges that are over but for it: read on for a while, or stopped by a reset. */
export class Unwanted {
  readonly #owner: Connection
  /** Input is being read. */
  #defers: boolean
  /** Streams of which only content is left that nobody wants, as far as this input goes. */
  readonly #deferred: Stream[]

  constructor(owner: Connection) {
    this.#owner = owner
    this.#defers = false
    this.#deferred = []
  }

  /** Ends an exchange of which only content is left that nobody wants. */
  maybeAbandon(stream: Stream): void {
    // Before a response's head its content is not in question yet.
    if (stream.sending !== Phase.Ended || stream.receiving !== Phase.Content || !isUnwanted(stream)) return
    if (this.#defers) this.#deferred.push(stream)
    else this.#drain(stream)
  }

  /** A server reads on for a while: an upload that is about to end needs no reset. */
  #drain(stream: Stream): void {
    const { isServer, limits, timeLimits } = this.#owner
    if (!isServer) return this.#owner.exchanges.abandon(stream, ErrorCode.Cancel)
    if (stream.abandonAt !== 0) return
    const { expectedLength, receivedLength } = stream
    // Nothing is gained by waiting for more than will be read.
    const isTooLong = expectedLength - receivedLength > limits.drainSize
    if (isTooLong || limits.drainSize === 0 || limits.drainTimeout === 0) return this.abandonUpload(stream)
    stream.abandonAt = untimed
    stream.abandonBeyond = receivedLength + limits.drainSize
    timeLimits.limitStream(stream)
  }

  /**
   * Server: `streamId` is no exchange, or no longer, and has its answer; its content is read and thrown away.
   * `expectedLength`: what is announced of it, or `noLength`.
   */
  drainUnanswered(streamId: number, expectedLength: number): void {
    if (this.#owner.lifetime.stage !== Stage.Open) return
    const stream = this.#owner.exchanges.accept(streamId)
    stream.expectedLength = expectedLength
    stream.receiving = Phase.Content
    stream.sending = Phase.Ended
    stream.discarding = true
    this.maybeAbandon(stream)
  }

  /** Server: the response is complete, and the rest of the request is not waited for. */
  abandonUpload(stream: Stream): void {
    this.#owner.exchanges.abandon(stream, ErrorCode.NoError)
  }

  /**
   * Input begins: whether unwanted content is worth a reset is seen at its end. A small request that is
   * answered unread has its END_STREAM right behind its head, as a rule.
   */
  startInput(): void {
    this.#defers = true
  }

  finishInput(): void {
    this.#defers = false
    if (this.#deferred.length === 0) return
    for (const stream of this.#deferred) if (!stream.closed) this.maybeAbandon(stream)
    this.#deferred.length = 0
  }
}

/** Nobody waits for the content of the peer's message: not we, and not the peer for our word that it may send it. */
function isUnwanted(stream: Stream): boolean {
  return stream.discarding || (stream.expectsContinue && stream.receivedLength === 0)
}
