import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { fieldValue, isFieldName, isFieldValue, requestHead } from 'heddle/http'
import { answerFor } from './answer.ts'
import { grpcCall, grpcStatusOf, grpcTimeout, statusOfHttp, statusOfReset } from './grpc.ts'

const call = { service: 'a.B', method: 'C' }

test('a call is a POST of application/grpc to /service/method', () => {
  const made = (method: string, path: string, type?: string): unknown =>
    grpcCall(requestHead(method, 'http', 'h', path, type === undefined ? [] : ['te', 'trailers', 'content-type', type]))
  deepEqual(made('POST', '/a.B/C', 'application/grpc'), call)
  deepEqual(made('POST', '/a.B/C?x=/y', 'application/grpc+proto'), call)
  deepEqual(made('POST', '/a/b.B/C', 'application/grpc;v=1'), { service: 'a/b.B', method: 'C' })
  deepEqual(made('POST', '/C', 'application/grpc'), { service: '', method: 'C' })
  equal(made('POST', '/a.B/C', 'application/grpc-web+proto'), undefined)
  equal(made('POST', '/a.B/C', 'application/json'), undefined)
  equal(made('POST', '/a.B/C'), undefined)
  equal(made('GET', '/a.B/C', 'application/grpc'), undefined)
})

test('grpc-timeout is at most eight digits and a unit', () => {
  const read = (value: string): number => grpcTimeout(['grpc-timeout', value])
  deepEqual(
    ['2H', '3M', '4S', '5m', '6000u', '7000000n', '99999999S', '0m'].map(read),
    [7_200_000, 180_000, 4_000, 5, 6, 7, 99_999_999_000, 0],
  )
  for (const value of ['', '5', 'S', '1s', '123456789S', '-1S', '1.5S', ' 1S', '1SS']) equal(read(value), Infinity, value)
  equal(grpcTimeout(['te', 'trailers']), Infinity)
})

test('grpc-status is a number; what is none counts as UNKNOWN', () => {
  equal(grpcStatusOf(['a', 'b', 'grpc-status', '14']), 14)
  equal(grpcStatusOf(['grpc-status', '']), 2)
  equal(grpcStatusOf(['grpc-status', 'OK']), 2)
  equal(grpcStatusOf(['grpc-message', 'x']), -1)
  // grpc-go's last word.
  equal(grpcStatusOf(['grpc-status', '0', 'a', 'b', 'grpc-status', '14']), 14)
  equal(grpcStatusOf(['grpc-status', 'OK', 'grpc-status', '14']), 2)
})

test('answers and resets without a status mean what clients make of them', () => {
  deepEqual([200, 400, 401, 403, 404, 429, 500, 502, 503, 504].map(statusOfHttp), [2, 13, 16, 7, 12, 14, 2, 14, 14, 14])
  deepEqual([0x0, 0x1, 0x2, 0x3, 0x7, 0x8, 0xb, 0xc].map(statusOfReset), [13, 13, 13, 13, 14, 1, 8, 7])
})

test('a gRPC client is told in trailers-only answers', () => {
  const { status, fields, content, grpcStatus } = answerFor('connect_failed', call)
  deepEqual([status, content.length, grpcStatus], [200, 0, 14])
  equal(fieldValue(fields, 'content-type'), 'application/grpc')
  equal(fieldValue(fields, 'grpc-status'), '14')
  equal(fieldValue(fields, 'grpc-message'), 'gateway: connect_failed')
  equal(fieldValue(fields, 'heddle-reason'), 'connect_failed')
  for (let i = 0; i < fields.length; i += 2) equal(isFieldName(fields[i] as string) && isFieldValue(fields[i + 1] as string), true)
  equal(answerFor('connect_failed', call), answerFor('connect_failed', { service: 'x', method: 'y' }))
  const told = (reason: Parameters<typeof answerFor>[0], wireCode?: number): number => answerFor(reason, call, wireCode).grpcStatus
  deepEqual([told('no_route'), told('route_timeout'), told('grpc_timeout'), told('head_timeout'), told('queue_full')], [12, 4, 4, 4, 14])
  deepEqual([told('upstream_reset'), told('upstream_reset', 0x8), told('upstream_reset', 0xb), told('upstream_reset', 0x2)], [14, 1, 8, 13])
  deepEqual([told('upstream_refused', 0x7), told('upstream_closed', 0x0)], [14, 14])
})
