import { reasonPhrase, type ErrorCode, type Fields, type HeddleError } from 'heddle/http'

/** Why the gateway answered by itself or cut an exchange: the word in `heddle-reason`, access log and metrics. */
export type Reason =
  | 'no_route'
  | 'unsafe_path'
  | 'method_refused'
  | 'loop_detected'
  | 'no_endpoint'
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
  | 'upstream_closed'
  | 'upstream_reset'
  | 'upstream_truncated'
  | 'upstream_protocol_error'
  | 'tunnel_idle'
  | 'client_closed'
  | 'client_error'
  | 'client_timeout'
  | 'shutdown'
  | 'internal_error'

/** The gateway's own answers before the response head: their status. Reasons that only cut have none. */
const statuses: Readonly<Partial<Record<Reason, number>>> = {
  no_route: 404,
  unsafe_path: 400,
  method_refused: 405,
  loop_detected: 508,
  no_endpoint: 503,
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
  upstream_closed: 502,
  upstream_reset: 502,
  upstream_truncated: 502,
  upstream_protocol_error: 502,
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

export function upstreamReason(error: HeddleError): Reason {
  return upstreamReasons[error.code] ?? 'internal_error'
}

/** True for failures the endpoint is to blame for: they count towards its ejection. */
export function blamesEndpoint(reason: Reason): boolean {
  return reason !== 'queue_full' && reason !== 'queue_timeout' && reason !== 'shutdown' && reason !== 'internal_error'
}

/** One of the gateway's own answers, ready to send. */
export interface Answer {
  readonly status: number
  readonly fields: Fields
  readonly content: Uint8Array
}

const answers = new Map<Reason, Answer>()

/** The answer that tells `reason`: text for people, `heddle-reason` for programs. Throws TypeError for reasons that only cut. */
export function answerFor(reason: Reason): Answer {
  let answer = answers.get(reason)
  if (answer === undefined) {
    const status = statuses[reason]
    if (status === undefined) throw new TypeError(`${reason} is no answer`)
    const content = Buffer.from(`${status} ${reasonPhrase(status)}: ${reason}\n`)
    const fields = ['content-type', 'text/plain; charset=utf-8', 'content-length', String(content.length), 'heddle-reason', reason]
    // The state of a moment must not outlive it in a cache; 404 and 405 are cacheable by default (RFC 9110 §15.1).
    fields.push('cache-control', 'no-store')
    // RFC 9110 §15.5.6: a 405 names what is allowed. TRACE and CONNECT are not, whatever the resource.
    if (status === 405) fields.push('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
    answer = { status, fields, content }
    answers.set(reason, answer)
  }
  return answer
}
