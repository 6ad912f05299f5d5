import { reasonPhrase, type Exchange, type Fields } from 'heddle/http'
import type { GrpcCall, RequestRecord } from '../record.ts'
import { statusOfReason } from './grpc.ts'
import { statuses, type Reason } from './reason.ts'

/** One of the gateway's own answers, ready to send. */
export interface Answer {
  readonly status: number
  readonly fields: Fields
  readonly content: Uint8Array
  /** What a gRPC client is told; -1: it is told nothing in gRPC's words. */
  readonly grpcStatus: number
}

const noContent = new Uint8Array(0)
const answers = new Map<Reason, Answer>()
/** By reason and status. */
const grpcAnswers = new Map<string, Answer>()

/**
 * The answer that tells `reason`, to a gRPC client in its own words. `wireCode`: of the upstream's
 * RST_STREAM, if that is the reason. Throws TypeError for reasons that only cut.
 */
export function answerFor(reason: Reason, grpc?: GrpcCall, wireCode?: number): Answer {
  if (grpc !== undefined) return grpcAnswerFor(reason, wireCode)
  let answer = answers.get(reason)
  if (answer === undefined) {
    const status = statusOf(reason)
    const content = Buffer.from(`${status} ${reasonPhrase(status)}: ${reason}\n`)
    const fields = ['content-type', 'text/plain; charset=utf-8', 'content-length', String(content.length), 'heddle-reason', reason]
    // The state of a moment must not outlive it in a cache; 404 and 405 are cacheable by default (RFC 9110 §15.1).
    fields.push('cache-control', 'no-store')
    // RFC 9110 §15.5.6: a 405 names what is allowed. TRACE and CONNECT are not, whatever the resource.
    if (status === 405) fields.push('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
    answer = { status, fields, content, grpcStatus: -1 }
    answers.set(reason, answer)
  }
  return answer
}

/**
 * Trailers-only: a head that ends the response, with 200 and the status of gRPC. Clients that get an
 * HTTP status instead guess, and throw the reason away.
 */
function grpcAnswerFor(reason: Reason, wireCode: number | undefined): Answer {
  const grpcStatus = statusOfReason(reason, wireCode)
  const key = `${reason} ${grpcStatus}`
  let answer = grpcAnswers.get(key)
  if (answer === undefined) {
    statusOf(reason)
    const fields = ['content-type', 'application/grpc', 'grpc-status', String(grpcStatus)]
    // Nothing in it needs the percent-encoding of grpc-message.
    fields.push('grpc-message', `gateway: ${reason}`, 'heddle-reason', reason)
    answer = { status: 200, fields, content: noContent, grpcStatus }
    grpcAnswers.set(key, answer)
  }
  return answer
}

/**
 * Ends the response to a call of gRPC between two of its messages, for `reason`: trailers tell more than a reset, which
 * has no code that means UNAVAILABLE for a call that was begun (RFC 9113 §8.7).
 */
export function endCall(exchange: Exchange, record: RequestRecord, reason: Reason): void {
  record.reason ||= reason
  record.grpcStatus = statusOfReason(reason)
  exchange.sendTrailers(['grpc-status', String(record.grpcStatus), 'grpc-message', `gateway: ${reason}`, 'heddle-reason', reason])
}

function statusOf(reason: Reason): number {
  const status = statuses[reason]
  if (status === undefined) throw new TypeError(`${reason} is no answer`)
  return status
}
