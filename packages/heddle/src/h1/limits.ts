/** Limits and time limits of one HTTP/1.1 connection. Every one is an option; times are in ms, sizes in bytes. */
export interface Http1Limits {
  /** Field lines per section (head or trailers). Default 100. On excess: 431. */
  readonly maxFieldLines: number
  /** Decoded field section: name + value + 32 each. Default 64 KiB. On excess: 431. */
  readonly maxFieldSectionSize: number
  /** One field line, and the request line or status line. Default 16 KiB. On excess: 431, or 414 for the request line. */
  readonly maxFieldLineSize: number
  /** Chunk extensions of one message. Default 4 KiB. On excess: 400 and close. */
  readonly maxChunkExtensionSize: number
  /** Server: declared or received request content. Default Infinity. On excess: 413. */
  readonly maxContentLength: number
  /** Server: from the first byte (or from accept) to a complete request head. Default 10 s. On excess: 408 and close. */
  readonly headTimeout: number
  /** No byte of content arrives although it is wanted. Default 30 s. On excess: server 408 and close, client an error. */
  readonly bodyTimeout: number
  /** The peer takes no byte while we hold some. Default 60 s. On excess: reset. */
  readonly sendTimeout: number
  /** Keep-alive idle. Default: server 60 s, client 4 s without a `Keep-Alive: timeout` hint. */
  readonly idleTimeout: number
  /** Client: from the request sent to the final response's head. Default 60 s. */
  readonly responseTimeout: number
  /** Client: how long content is held back after `Expect: 100-continue`. Default 1 s. */
  readonly continueTimeout: number
  /** Unwanted received content is drained up to this. Default 256 KiB; 0 turns draining off. */
  readonly drainSize: number
  /** … and for this long. Default: client 50 ms, server 500 ms. */
  readonly drainTimeout: number
  /** Content handed to `onData` and not yet consumed, at which reading pauses. Default 64 KiB. */
  readonly receiveWindow: number
  /** Content queued to send, at which `sendData` returns false. Default 64 KiB. */
  readonly sendBuffer: number
  /** Client: 1xx responses to one request. Default 100. On excess: the connection is closed. */
  readonly maxInformational: number
}

const common = {
  maxFieldLines: 100,
  maxFieldSectionSize: 65_536,
  maxFieldLineSize: 16_384,
  maxChunkExtensionSize: 4_096,
  maxContentLength: Infinity,
  headTimeout: 10_000,
  sendTimeout: 60_000,
  responseTimeout: 60_000,
  continueTimeout: 1_000,
  drainSize: 262_144,
  receiveWindow: 65_536,
  sendBuffer: 65_536,
  maxInformational: 100,
}

/** A server's limits when nothing is said. */
export const serverLimits: Http1Limits = Object.freeze({ ...common, bodyTimeout: 30_000, idleTimeout: 60_000, drainTimeout: 500 })
/** A client's limits when nothing is said. */
export const clientLimits: Http1Limits = Object.freeze({ ...common, bodyTimeout: 60_000, idleTimeout: 4_000, drainTimeout: 50 })
