import type { Fields, Head } from 'heddle/http'
import { isGrpcType } from '../grpc-type.ts'
import type { GrpcCall } from '../record.ts'
import type { Reason } from './reason.ts'

/** Status codes of gRPC that the gateway itself has a use for. */
export const GrpcStatus = {
  Ok: 0,
  Cancelled: 1,
  Unknown: 2,
  DeadlineExceeded: 4,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
  Unauthenticated: 16,
} as const

/** The call that a request makes, or undefined if it is none of gRPC: a POST of that type to `/service/method`. */
export function grpcCall(head: Head): GrpcCall | undefined {
  if (head.method !== 'POST') return undefined
  const { fields, path } = head
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== 'content-type') continue
    if (!isGrpcType(fields[i + 1] as string)) return undefined
    const query = path.indexOf('?')
    const limit = query < 0 ? path.length : query
    const slash = path.lastIndexOf('/', limit - 1)
    return slash < 1
      ? { service: '', method: path.slice(1, limit) }
      : { service: path.slice(1, slash), method: path.slice(slash + 1, limit) }
  }
  return undefined
}

const timeoutUnits: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 }

/** What `grpc-timeout` allows for the whole call, ms; Infinity if there is none that can be read: at most 8 digits and a unit. */
export function grpcTimeout(fields: Fields): number {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== 'grpc-timeout') continue
    const match = /^(\d{1,8})([HMSmun])$/.exec(fields[i + 1] as string)
    return match === null ? Infinity : Number(match[1]) * (timeoutUnits[match[2] as string] as number)
  }
  return Infinity
}

/**
 * The `grpc-status` in trailers, or in the head of a trailers-only answer; -1 if there is none, `Unknown` if it is no
 * number. Of several the last counts, as for the clients of Go, Java and C++, and one that is no number spoils them all.
 */
export function grpcStatusOf(fields: Fields): number {
  let status = -1
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== 'grpc-status') continue
    const value = fields[i + 1] as string
    if (!/^\d{1,3}$/.test(value)) return GrpcStatus.Unknown
    status = Number(value)
  }
  return status
}

/** What a client makes of an answer without `grpc-status`, by the HTTP status. */
export function statusOfHttp(status: number): number {
  switch (status) {
    case 400:
      return GrpcStatus.Internal
    case 401:
      return GrpcStatus.Unauthenticated
    case 403:
      return GrpcStatus.PermissionDenied
    case 404:
      return GrpcStatus.Unimplemented
    case 429:
    case 502:
    case 503:
    case 504:
      return GrpcStatus.Unavailable
    default:
      return GrpcStatus.Unknown
  }
}

/** What a client makes of RST_STREAM with this code, or of the one of HTTP/3 that means the same. */
export function statusOfReset(wireCode: number): number {
  switch (wireCode) {
    case 0x7:
    case 0x10b:
      return GrpcStatus.Unavailable
    case 0x8:
    case 0x10c:
      return GrpcStatus.Cancelled
    case 0xb:
    case 0x107:
      return GrpcStatus.ResourceExhausted
    case 0xc:
      return GrpcStatus.PermissionDenied
    default:
      return GrpcStatus.Internal
  }
}

const statuses: Readonly<Record<Reason, number>> = {
  no_route: GrpcStatus.Unimplemented,
  unsafe_path: GrpcStatus.Internal,
  method_refused: GrpcStatus.Unimplemented,
  loop_detected: GrpcStatus.Internal,
  no_endpoint: GrpcStatus.Unavailable,
  route_full: GrpcStatus.Unavailable,
  connect_failed: GrpcStatus.Unavailable,
  connect_timeout: GrpcStatus.Unavailable,
  dns_failed: GrpcStatus.Unavailable,
  tls_failed: GrpcStatus.Unavailable,
  queue_full: GrpcStatus.Unavailable,
  queue_timeout: GrpcStatus.Unavailable,
  // It may have been acted on: that is what this status says, and "unavailable" does not.
  head_timeout: GrpcStatus.DeadlineExceeded,
  body_timeout: GrpcStatus.DeadlineExceeded,
  send_timeout: GrpcStatus.DeadlineExceeded,
  route_timeout: GrpcStatus.DeadlineExceeded,
  grpc_timeout: GrpcStatus.DeadlineExceeded,
  upstream_closed: GrpcStatus.Unavailable,
  upstream_refused: GrpcStatus.Unavailable,
  upstream_reset: GrpcStatus.Unavailable,
  upstream_truncated: GrpcStatus.Internal,
  upstream_protocol_error: GrpcStatus.Internal,
  tunnel_unsupported: GrpcStatus.Unimplemented,
  upgrade_refused: GrpcStatus.Unimplemented,
  tunnel_idle: GrpcStatus.Cancelled,
  client_closed: GrpcStatus.Cancelled,
  client_error: GrpcStatus.Internal,
  client_timeout: GrpcStatus.Cancelled,
  shutdown: GrpcStatus.Unavailable,
  internal_error: GrpcStatus.Internal,
}

/** The status of a call that ended for `reason`; `wireCode`: of the upstream's RST_STREAM, if that was it. */
export function statusOfReason(reason: Reason, wireCode?: number): number {
  return reason === 'upstream_reset' && wireCode !== undefined ? statusOfReset(wireCode) : statuses[reason]
}
