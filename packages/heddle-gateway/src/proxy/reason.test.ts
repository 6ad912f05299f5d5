import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { contentLength, fieldValue, isFieldName, isFieldValue, NetworkError, ProtocolError, TimeoutError, UsageError } from 'heddle/http'
import { answerFor } from './answer.ts'
import { blamesEndpoint, upstreamReason } from './reason.ts'

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
  equal(blamesEndpoint('queue_full'), false)
  equal(blamesEndpoint('shutdown'), false)
  equal(blamesEndpoint('internal_error'), false)
  equal(blamesEndpoint('connect_timeout'), true)
  equal(blamesEndpoint('upstream_protocol_error'), true)
})
