import type { CancelReason, Exchange, ExchangeHandler } from '../http/index.ts'

/** What a request needs of its handler: to be told of its exchange, then of what happens on it. */
export interface ClientExchangeHandler extends ExchangeHandler {
  /**
   * Read when a kept-alive connection turned out to be dead before any byte of the request was put
   * on the wire. True: the request moves on to another connection, and `onOpen` is called again
   * with another exchange, from which everything is sent anew. Otherwise the exchange ends with an
   * `unprocessed` error. Set it while whatever was sent so far can be sent again. Default false.
   */
  readonly replayable?: boolean
  /**
   * A connection is there: send the head on `exchange`. Possibly called before `exchange()` has
   * returned. If no connection is to be had, only `onClose` is called, with the error.
   */
  onOpen(exchange: Exchange): void
}

/** One request, from `exchange()` to `onClose`. */
export interface Ticket {
  /** Ends the request, whether it waits or runs; `onClose` follows in a later turn. O(1). Does nothing once it is over. */
  cancel(reason: CancelReason): void
  /** True when the request went to a connection that had served another one before. */
  readonly reused: boolean
  /** True once the head of a response, an informational one included, has arrived. */
  readonly responded: boolean
}
