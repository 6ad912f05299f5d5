import { HeddleError, type ErrorCode } from '../http/index.ts'

/** The codes of gRPC that are given here (grpc, doc/statuscodes.md), which are Connect-ES's `Code`. */
export const RpcCode = {
  Canceled: 1,
  Unknown: 2,
  DeadlineExceeded: 4,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  Internal: 13,
  Unavailable: 14,
} as const
export type RpcCode = (typeof RpcCode)[keyof typeof RpcCode]

/**
 * Error code of a reset stream → code (grpc, doc/PROTOCOL-HTTP2.md, Errors); HTTP/3's mean the same (RFC 9114 §8.1), and
 * have other numbers. Any other: Internal.
 */
const ofReset: Readonly<Record<number, RpcCode>> = {
  // REFUSED_STREAM
  0x7: RpcCode.Unavailable,
  // CANCEL
  0x8: RpcCode.Canceled,
  // ENHANCE_YOUR_CALM
  0xb: RpcCode.ResourceExhausted,
  // INADEQUATE_SECURITY
  0xc: RpcCode.PermissionDenied,
  // H3_REQUEST_REJECTED
  0x10b: RpcCode.Unavailable,
  // H3_REQUEST_CANCELLED
  0x10c: RpcCode.Canceled,
  // H3_EXCESSIVE_LOAD
  0x107: RpcCode.ResourceExhausted,
}

const ofError: Readonly<Partial<Record<ErrorCode, RpcCode>>> = {
  PEER_CLOSED: RpcCode.Unavailable,
  // HTTP/1.1: the connection was lost within the response.
  MESSAGE_TRUNCATED: RpcCode.Unavailable,
  CONNECT_FAILED: RpcCode.Unavailable,
  CONNECT_TIMEOUT: RpcCode.Unavailable,
  TLS_FAILED: RpcCode.Unavailable,
  DNS_FAILED: RpcCode.Unavailable,
  PROXY_FAILED: RpcCode.Unavailable,
  NETWORK_ERROR: RpcCode.Unavailable,
  QUEUE_TIMEOUT: RpcCode.Unavailable,
  SHUTDOWN: RpcCode.Unavailable,
  QUEUE_FULL: RpcCode.ResourceExhausted,
  HEAD_TIMEOUT: RpcCode.DeadlineExceeded,
  BODY_TIMEOUT: RpcCode.DeadlineExceeded,
  SEND_TIMEOUT: RpcCode.DeadlineExceeded,
  TOTAL_TIMEOUT: RpcCode.DeadlineExceeded,
  CANCELLED: RpcCode.Canceled,
}

function codeOf({ code, wireCode, unprocessed }: HeddleError): RpcCode {
  // Nothing was done, so all may be done again: what UNAVAILABLE means to a client.
  if (unprocessed) return ofError[code] ?? RpcCode.Unavailable
  if (code !== 'PEER_RESET') return ofError[code] ?? RpcCode.Internal
  // HTTP/1.1 has no code: the connection was lost.
  return wireCode === undefined ? RpcCode.Unavailable : (ofReset[wireCode] ?? RpcCode.Internal)
}

/**
 * `cause` as Connect-ES's `ConnectError`, which goes by the members of an error and not by its class. `code`: in place
 * of what a {@link HeddleError} comes to.
 */
export function rpcError(cause: unknown, code: RpcCode = cause instanceof HeddleError ? codeOf(cause) : RpcCode.Unknown): Error {
  const message = cause instanceof Error ? cause.message : String(cause)
  const error = new Error(message, { cause })
  return Object.assign(error, { name: 'ConnectError', code, rawMessage: message, metadata: new globalThis.Headers(), details: [] })
}
