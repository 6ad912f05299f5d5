/**
 * Compresses and inflates what the messages of a connection carry (RFC 7692). It lives outside the
 * engine, since zlib does; one codec may serve many connections where neither side keeps a context.
 *
 * Each request gets exactly one result at its {@link CodecSink}: during the call, or later from the
 * event loop. For one sink there is never more than one `deflate` and one `inflate` under way. No method
 * throws. Results for a sink that was released are ignored.
 */
export interface Codec {
  /**
   * Compresses `buffer[start, limit)`: a whole message, or one part of it. The bytes are valid during
   * the call only. Everything given so far must be in the result (a sync flush). `end`: the message ends
   * here, so the four octets 00 00 FF FF of the flush are left off (RFC 7692 §7.2.1), and without
   * context takeover the next message starts afresh. Result: `deflated`, or `codecFailed`.
   */
  deflate(sink: CodecSink, buffer: Uint8Array, start: number, limit: number, end: boolean): void
  /**
   * The next `deflate` refers to nothing that was sent before: a message compressed elsewhere (a prepared
   * one) was sent in between. Never called while a `deflate` is under way.
   */
  resetDeflate(sink: CodecSink): void
  /**
   * Inflates `buffer[start, limit)`: all a message carried, without the four octets 00 00 FF FF that the
   * codec appends itself (RFC 7692 §7.2.2). `kept`: the bytes stay as they are until the result; else
   * they are valid during the call only. As soon as there is more than `most` octets of output: no more is
   * inflated or kept, and the result is `inflatedTooMuch`. Otherwise `inflated`, or `codecFailed`.
   */
  inflate(sink: CodecSink, buffer: Uint8Array, start: number, limit: number, kept: boolean, most: number): void
  /** The connection is over: nothing is asked any more, and no result is wanted. Called once. */
  release(sink: CodecSink): void
}

/** Where a {@link Codec} puts its results: inputs of the connection. They may call its handler. */
export interface CodecSink {
  /** `owned`: the bytes are the connection's from now on (no one writes to them); else they are valid during the call. */
  deflated(buffer: Uint8Array, start: number, limit: number, owned: boolean): void
  /** As for `deflated`; `owned`: whoever gets the message may keep the bytes. */
  inflated(buffer: Uint8Array, start: number, limit: number, owned: boolean): void
  /** The message is larger than it may be. The connection ends with 1009. */
  inflatedTooMuch(): void
  /** What was received is no deflate stream (1007), or compressing failed (1011); `cause` goes into the error. */
  codecFailed(direction: 'deflate' | 'inflate', cause: unknown): void
}
