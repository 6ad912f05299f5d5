import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import {
  CancelReason,
  contentLength,
  fieldValue,
  HeddleError,
  isFieldName,
  isFieldValue,
  NetworkError,
  PeerError,
  ProtocolError,
  TimeoutError,
  UsageError,
} from 'heddle/http'
import { answerFor } from './answer.ts'
import { blamesEndpoint, clientCancelReason, isRefusal, upstreamReason } from './reason.ts'

test('an answer tells its reason to programs and to people, with its length, and is not cached', () => {
  const { status, fields, content } = answerFor('connect_failed')
  equal(status, 502)
  equal(fieldValue(fields, 'heddle-reason'), 'connect_failed')
  equal(fieldValue(fields, 'cache-control'), 'no-store')
  equal(contentLength(fields), content.length)
  equal(Buffer.from(content).toString(), '502 Bad Gateway: connect_failed\n')
  for (let i = 0; i < fields.length; i += 2) equal(isFieldName(fields[i] as string) && isFieldValue(fields[i + 1] as string), true)
  equal(answerFor('connect_failed'), answerFor('connect_failed'))
})

test('RFC 9110 §15.5.6: a 405 says what is allowed', () => {
  equal(fieldValue(answerFor('method_refused').fields, 'allow')?.includes('TRACE'), false)
  equal(fieldValue(answerFor('no_route').fields, 'allow'), undefined)
})

test('reasons that only cut are no answers', () => {
  for (const reason of ['tunnel_idle', 'client_closed', 'client_error', 'client_timeout'] as const)
    throws(() => answerFor(reason), TypeError)
})

test('upstream failures are 502, 503 or 504 by what failed', () => {
  const told = (error: Parameters<typeof upstreamReason>[0]): [string, number] => {
    const reason = upstreamReason(error)
    return [reason, answerFor(reason).status]
  }
  deepEqual(told(new NetworkError('CONNECT_FAILED', '')), ['connect_failed', 502])
  deepEqual(told(new NetworkError('DNS_FAILED', '')), ['dns_failed', 502])
  deepEqual(told(new NetworkError('TLS_FAILED', '')), ['tls_failed', 502])
  deepEqual(told(new ProtocolError('')), ['upstream_protocol_error', 502])
  deepEqual(told(new ProtocolError('', 0, 'FIELDS_TOO_LARGE')), ['upstream_protocol_error', 502])
  deepEqual(told(new TimeoutError('connect', '')), ['connect_timeout', 504])
  deepEqual(told(new TimeoutError('head', '')), ['head_timeout', 504])
  deepEqual(told(new TimeoutError('queue', '')), ['queue_timeout', 503])
  deepEqual(told(new UsageError('')), ['internal_error', 500])
})

test("our own limits are not an endpoint's fault", () => {
  equal(blamesEndpoint(new HeddleError('QUEUE_FULL', '')), false)
  equal(blamesEndpoint(new HeddleError('SHUTDOWN', '')), false)
  equal(blamesEndpoint(new UsageError('')), false)
  equal(blamesEndpoint(new TimeoutError('connect', '')), true)
  equal(blamesEndpoint(new ProtocolError('')), true)
})

const reset = (wireCode: number): PeerError => new PeerError('PEER_RESET', '', { wireCode, scope: 'stream', unprocessed: wireCode === 0x7 })
const goaway = new PeerError('PEER_CLOSED', '', { wireCode: 0, scope: 'connection', unprocessed: true })

test("what an upstream has not acted on in HTTP/2's words is no failure of its own", () => {
  for (const error of [reset(0x7), goaway]) {
    deepEqual([isRefusal(error), blamesEndpoint(error), upstreamReason(error)], [true, false, 'upstream_refused'])
  }
  equal(answerFor('upstream_refused').status, 503)
  // A connection that was lost before the request was written is another matter.
  const lost = new PeerError('PEER_CLOSED', '', { unprocessed: true })
  deepEqual([isRefusal(lost), blamesEndpoint(lost), upstreamReason(lost)], [false, true, 'upstream_closed'])
})

test('RST_STREAM from an upstream: CANCEL is about the request, all else about the endpoint', () => {
  equal(blamesEndpoint(reset(0x8)), false)
  for (const wireCode of [0x0, 0x1, 0x2, 0xb]) equal(blamesEndpoint(reset(wireCode)), true)
  equal(upstreamReason(reset(0x8)), 'upstream_reset')
})

test('the client is told what the upstream meant for it, and not what is between the two of us', () => {
  equal(clientCancelReason(reset(0x8)), CancelReason.Cancelled)
  equal(clientCancelReason(reset(0xb)), CancelReason.ExcessiveLoad)
  // NO_ERROR would make a response that was broken off look complete, REFUSED_STREAM one that was acted on safe to repeat.
  for (const wireCode of [0x0, 0x1, 0x2, 0x3, 0x7, 0xd, 0xff]) equal(clientCancelReason(reset(wireCode)), CancelReason.InternalError)
  equal(clientCancelReason(new NetworkError('NETWORK_ERROR', '')), CancelReason.InternalError)
})
