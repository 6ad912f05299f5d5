/**
 * Why an exchange is cancelled. One table gives the codes of RFC 9113 §7 and RFC 9114 §8.1;
 * HTTP/1.1 has none and closes the connection.
 */
export const CancelReason = {
  /** Nothing is wrong; the rest is not wanted. */
  NoError: 0,
  /** The caller lost interest, or the peer it served went away. */
  Cancelled: 1,
  /** Not processed at all: may be tried again. */
  Refused: 2,
  /** A handler failed. */
  InternalError: 3,
  /** A time limit ran out. */
  Timeout: 4,
  /** The message was malformed. */
  MessageError: 5,
  /** The other leg of a tunnel failed. */
  ConnectError: 6,
  /** The peer costs too much. */
  ExcessiveLoad: 7,
} as const
export type CancelReason = (typeof CancelReason)[keyof typeof CancelReason]

/** `CancelReason` → HTTP/2 error code (RFC 9113 §7) and HTTP/3 error code (RFC 9114 §8.1). */
export const wireCodes: readonly { readonly h2: number; readonly h3: number }[] = [
  { h2: 0x0, h3: 0x100 },
  { h2: 0x8, h3: 0x10c },
  { h2: 0x7, h3: 0x10b },
  { h2: 0x2, h3: 0x102 },
  { h2: 0x8, h3: 0x10c },
  { h2: 0x1, h3: 0x10e },
  { h2: 0xa, h3: 0x10f },
  { h2: 0xb, h3: 0x107 },
]

/** The machine-readable part of every error; the gateway shows it as the reason of a 502–504. */
export type ErrorCode =
  | 'PROTOCOL_ERROR'
  | 'MESSAGE_TRUNCATED'
  | 'FIELDS_TOO_LARGE'
  | 'CONTENT_TOO_LARGE'
  | 'PEER_CLOSED'
  | 'PEER_RESET'
  | 'CONNECT_FAILED'
  | 'TLS_FAILED'
  | 'DNS_FAILED'
  | 'PROXY_FAILED'
  | 'NETWORK_ERROR'
  | 'CONNECT_TIMEOUT'
  | 'HEAD_TIMEOUT'
  | 'BODY_TIMEOUT'
  | 'SEND_TIMEOUT'
  | 'READ_TIMEOUT'
  | 'CLOSE_TIMEOUT'
  | 'IDLE_TIMEOUT'
  | 'TOTAL_TIMEOUT'
  | 'QUEUE_TIMEOUT'
  | 'QUEUE_FULL'
  | 'REDIRECT_FAILED'
  | 'HANDSHAKE_FAILED'
  | 'CANCELLED'
  | 'HANDLER_FAILED'
  | 'SHUTDOWN'
  | 'USAGE'

/** What an error tells beside its code and message. */
export interface ErrorFacts {
  /** What led to it: an error of Node's, or what a handler threw. */
  readonly cause?: unknown
  /** True: the request was certainly not acted on, so it may be sent again whatever its method. */
  readonly unprocessed?: boolean
  /** The raw code of the wire, where the version has one. */
  readonly wireCode?: number
  /** What broke: the one exchange, or its connection with all that are on it. */
  readonly scope?: 'stream' | 'connection'
}

/**
 * The base of all of Heddle's errors. `code` is stable and for programs, `message` is for people.
 * Errors that tell of the peer or the network are made without a stack: it would show the driver
 * only, and taking one costs more than the request. Promises that reject with one give it the stack
 * of whoever awaits them ({@link tracedError}).
 */
export class HeddleError extends Error {
  readonly code: ErrorCode
  /** True: never sent, or refused by the peer before it was acted on. */
  readonly unprocessed: boolean
  readonly wireCode: number | undefined
  readonly scope: 'stream' | 'connection' | undefined

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    const { stackTraceLimit } = Error
    if (code !== 'USAGE') Error.stackTraceLimit = 0
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.name = new.target.name
    this.code = code
    this.unprocessed = facts.unprocessed ?? false
    this.wireCode = facts.wireCode
    this.scope = facts.scope
  }
}

/** The peer broke the rules of the protocol. */
export class ProtocolError extends HeddleError {
  /** The status a server answers with before it closes; 0 where no answer fits. */
  readonly status: number
  constructor(message: string, status = 400, code: ErrorCode = 'PROTOCOL_ERROR', facts: ErrorFacts = {}) {
    super(code, message, facts)
    this.status = status
  }
}

/** The peer ended the exchange: it closed, reset or refused. */
export class PeerError extends HeddleError {}

/** The network, the name service or TLS failed. */
export class NetworkError extends HeddleError {}

/** A time limit ran out; `phase` names it. */
export class TimeoutError extends HeddleError {
  readonly phase: 'connect' | 'queue' | 'head' | 'body' | 'send' | 'read' | 'close' | 'idle' | 'total'
  constructor(
    phase: 'connect' | 'queue' | 'head' | 'body' | 'send' | 'read' | 'close' | 'idle' | 'total',
    message: string,
    facts: ErrorFacts = {},
  ) {
    super(`${phase.toUpperCase()}_TIMEOUT` as ErrorCode, message, facts)
    this.phase = phase
  }
}

/** The program used the API wrongly. Thrown at the call, with a stack. */
export class UsageError extends HeddleError {
  constructor(message: string, facts: ErrorFacts = {}) {
    super('USAGE', message, facts)
  }
}

/** The exchange was cancelled on this side. */
export class CancelledError extends HeddleError {
  readonly reason: CancelReason
  constructor(reason: CancelReason, message = 'cancelled by this side', facts: ErrorFacts = {}) {
    super(reason === CancelReason.InternalError ? 'HANDLER_FAILED' : 'CANCELLED', message, facts)
    this.reason = reason
  }
}

/** Errors that have the stack of a reader. */
const traced = new WeakSet<HeddleError>()

/**
 * `error` with a stack for who awaits the promise that is going to be rejected with it. To be called
 * in the reaction of a promise that does so: from there V8 finds the functions that await (`at async …`),
 * which costs nothing as long as nothing fails. `above` and what it called are left out. An error may be
 * told to many, such as all who waited for one connection: each one but the first gets a copy. What is no
 * HeddleError, or has a stack from where it was made, is given back as it is.
 */
export function tracedError(error: unknown, above: (...parameters: never[]) => unknown): unknown {
  if (!(error instanceof HeddleError)) return error
  const told = traced.has(error)
  if (!told && error.stack?.includes('\n    at ') === true) return error
  const own = told ? copyOf(error) : error
  Error.captureStackTrace(own, above)
  traced.add(own)
  return own
}

/**
 * `error` with the name of the server it is about, for whoever talks to several: engines know a connection, not what
 * for. A copy, since an error of a connection is told to all that are on it. What is this side's own doing, or names the
 * server, is given back as it is.
 */
export function errorAbout(server: string, error: HeddleError): HeddleError {
  if (error instanceof CancelledError || error instanceof UsageError || error.message.includes(server)) return error
  return copyOf(error, `${error.message} (${server})`)
}

function copyOf(error: HeddleError, message = error.message): HeddleError {
  const copy = new HeddleError(error.code, message, error.cause === undefined ? {} : { cause: error.cause })
  Object.setPrototypeOf(copy, Object.getPrototypeOf(error) as object)
  return Object.assign(copy, error)
}

/** The same error, with the certainty that the peer has seen nothing of the request. */
export function asUnprocessed(error: HeddleError): HeddleError {
  const facts = { cause: error, unprocessed: true, ...(error.wireCode === undefined ? {} : { wireCode: error.wireCode }) }
  return error instanceof NetworkError
    ? new NetworkError(error.code, error.message, facts)
    : new PeerError(error.code, error.message, facts)
}
