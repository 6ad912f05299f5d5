import { CancelReason, ProtocolError, type ErrorCode, type HeddleError } from 'heddle/http'

/** Why the gateway answered by itself or cut an exchange: the word in `heddle-reason`, access log and metrics. */
export type Reason =
  | 'no_route'
  | 'unsafe_path'
  | 'method_refused'
  | 'loop_detected'
  | 'no_endpoint'
  | 'route_full'
  | 'connect_failed'
  | 'connect_timeout'
  | 'dns_failed'
  | 'tls_failed'
  | 'queue_full'
  | 'queue_timeout'
  | 'head_timeout'
  | 'body_timeout'
  | 'send_timeout'
  | 'route_timeout'
  | 'grpc_timeout'
  | 'upstream_closed'
  | 'upstream_refused'
  | 'upstream_reset'
  | 'upstream_truncated'
  | 'upstream_protocol_error'
  | 'tunnel_unsupported'
  | 'upgrade_refused'
  | 'tunnel_idle'
  | 'client_closed'
  | 'client_error'
  | 'client_timeout'
  | 'shutdown'
  | 'internal_error'

/** The gateway's own answers before the response head: their status. Reasons that only cut have none. */
export const statuses: Readonly<Partial<Record<Reason, number>>> = {
  no_route: 404,
  unsafe_path: 400,
  method_refused: 405,
  loop_detected: 508,
  no_endpoint: 503,
  route_full: 503,
  connect_failed: 502,
  connect_timeout: 504,
  dns_failed: 502,
  tls_failed: 502,
  queue_full: 503,
  queue_timeout: 503,
  head_timeout: 504,
  body_timeout: 504,
  send_timeout: 504,
  route_timeout: 504,
  grpc_timeout: 504,
  upstream_closed: 502,
  upstream_refused: 503,
  upstream_reset: 502,
  upstream_truncated: 502,
  upstream_protocol_error: 502,
  tunnel_unsupported: 502,
  upgrade_refused: 502,
  shutdown: 503,
  internal_error: 500,
}

/** What an error of the upstream leg means; codes that only a program's own calls can cause are missing. */
const upstreamReasons: Readonly<Partial<Record<ErrorCode, Reason>>> = {
  PROTOCOL_ERROR: 'upstream_protocol_error',
  MESSAGE_TRUNCATED: 'upstream_truncated',
  FIELDS_TOO_LARGE: 'upstream_protocol_error',
  CONTENT_TOO_LARGE: 'upstream_protocol_error',
  PEER_CLOSED: 'upstream_closed',
  PEER_RESET: 'upstream_reset',
  CONNECT_FAILED: 'connect_failed',
  TLS_FAILED: 'tls_failed',
  DNS_FAILED: 'dns_failed',
  PROXY_FAILED: 'connect_failed',
  NETWORK_ERROR: 'upstream_reset',
  CONNECT_TIMEOUT: 'connect_timeout',
  HEAD_TIMEOUT: 'head_timeout',
  BODY_TIMEOUT: 'body_timeout',
  SEND_TIMEOUT: 'send_timeout',
  IDLE_TIMEOUT: 'upstream_closed',
  TOTAL_TIMEOUT: 'route_timeout',
  QUEUE_TIMEOUT: 'queue_timeout',
  QUEUE_FULL: 'queue_full',
  SHUTDOWN: 'shutdown',
}

/**
 * `responded`: the response's head had come, so the request was acted on whatever the error says.
 * `tunnelRequest`: it was asked for a tunnel; what it said then was neither that nor a refusal.
 */
export function upstreamReason(error: HeddleError, responded = false, tunnelRequest = false): Reason {
  if (responded) return upstreamReasons[error.code] ?? 'internal_error'
  if (isRefusal(error)) return 'upstream_refused'
  if (tunnelRequest && error.code === 'PROTOCOL_ERROR') return 'upgrade_refused'
  return upstreamReasons[error.code] ?? 'internal_error'
}

/**
 * True if the upstream said in the words of HTTP/2 or HTTP/3 that it did not act on the request: REFUSED_STREAM,
 * H3_REQUEST_REJECTED, or a GOAWAY before its stream (RFC 9113 §8.7, RFC 9114 §4.1.1). That is flow control between the two of us, no failure.
 */
export function isRefusal({ unprocessed, wireCode, code }: HeddleError): boolean {
  return unprocessed && wireCode !== undefined && (code === 'PEER_RESET' || code === 'PEER_CLOSED')
}

/** True for failures the endpoint is to blame for: they count towards its ejection. See {@link upstreamReason}. */
export function blamesEndpoint(error: HeddleError, responded = false, tunnelRequest = false): boolean {
  // A reset with CANCEL is about this one request: somebody behind the endpoint lost interest in it.
  if (error.code === 'PEER_RESET' && isCancel(error.wireCode)) return false
  switch (upstreamReason(error, responded, tunnelRequest)) {
    case 'queue_full':
    case 'queue_timeout':
    case 'shutdown':
    case 'internal_error':
    case 'upstream_refused':
    // Any client can ask for an Upgrade, and an upstream may ignore it (RFC 9110 §7.8).
    case 'upgrade_refused':
      return false
    default:
      return true
  }
}

/**
 * How the client's exchange is cancelled when its response cannot be completed because of `error` on the
 * upstream's side. What the upstream meant for whoever reads the response is passed on; what concerns
 * the two of us only (a protocol error between us, a refusal that comes too late to be one) is ours.
 */
export function clientCancelReason(error: HeddleError): CancelReason {
  if (error.code !== 'PEER_RESET') return CancelReason.InternalError
  if (isCancel(error.wireCode)) return CancelReason.Cancelled
  return isTooMuch(error.wireCode) ? CancelReason.ExcessiveLoad : CancelReason.InternalError
}

/** Client gone: nobody wants the answer. A faulty message must not look complete upstream. */
export function upstreamCancelReason(error: HeddleError): CancelReason {
  return error instanceof ProtocolError ? CancelReason.MessageError : CancelReason.Cancelled
}

/** CANCEL of HTTP/2, H3_REQUEST_CANCELLED of HTTP/3: nobody wants the answer any more. */
function isCancel(wireCode: number | undefined): boolean {
  return wireCode === 0x8 || wireCode === 0x10c
}

/** ENHANCE_YOUR_CALM, H3_EXCESSIVE_LOAD. */
function isTooMuch(wireCode: number | undefined): boolean {
  return wireCode === 0xb || wireCode === 0x107
}
