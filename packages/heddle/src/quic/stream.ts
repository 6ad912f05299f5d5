/**
 * What a stream tells. Called inside the run-loop calls of the connection only (`receive`, `transmit`,
 * `expire`); the methods of {@link QuicStream} may be called in it.
 */
export interface QuicStreamHandler {
  /** Octets `buffer[start, limit)` in order, valid during the call; `fin`: the peer sends nothing more. */
  onData(buffer: Uint8Array, start: number, limit: number, fin: boolean): void
  /** RESET_STREAM: the peer sends nothing more, and what did not come is lost. No `onData` follows. */
  onReset(errorCode: number): void
  /** STOP_SENDING: the peer reads nothing more. The stream has been reset with the code by then (RFC 9000 §3.5). */
  onStopSending(errorCode: number): void
  /**
   * `byteCount` more octets left for the first time, within both windows: what a proxy credits to its
   * source. `writable`: a sender that was told false may go on.
   */
  onSent(byteCount: number, writable: boolean): void
  /** Both directions are over, and what was sent has arrived or was reset: exactly once, and last. Nothing holds the stream any more. */
  onClose(): void
}

/** One stream of a connection (RFC 9000 §2). After `onClose`, and after the end of the connection, its methods do nothing. */
export interface QuicStream {
  /** The two low bits tell who opened it (1: the server) and whether it goes one way only (2) (RFC 9000 §2.1). */
  readonly id: number
  /** Replaceable at any time. */
  handler: QuicStreamHandler
  /**
   * Sends `buffer[start, limit)`; what cannot leave at once is copied. Takes everything; false asks the
   * caller to wait for `onSent(…, true)`, or says that nothing is sent any more. `fin`: nothing follows.
   */
  send(buffer: Uint8Array, start: number, limit: number, fin: boolean): boolean
  /** As `send`, but keeps the reference until all has arrived: nobody may write to `chunk` again. */
  sendOwned(chunk: Uint8Array, fin: boolean): boolean
  /** Gives receive credit back: counts the octets of `onData`. */
  consume(byteCount: number): void
  /** Ends sending at once with RESET_STREAM; what did not arrive is not sent again. */
  reset(errorCode: number): void
  /** Nothing more is read: STOP_SENDING. `onData` is not called again, and what still comes is credited. */
  stopSending(errorCode: number): void
  /** RFC 9218: how urgent what waits to be sent is, 0 (first) to 7, and whether it shares with others of its urgency. */
  setPriority(urgency: number, incremental: boolean): void
  /** What the peer may send ahead of `consume`, octets, from now on, without growing. */
  limitWindow(byteCount: number): void
  /** What the peer may send ahead of `consume` grows to so many octets at most, or not at all if it is more by now. */
  limitWindowGrowth(byteCount: number): void
  /** Octets that wait to leave for the first time. */
  readonly queued: number
}
