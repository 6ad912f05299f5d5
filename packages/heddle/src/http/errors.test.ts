import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CancelledError,
  CancelReason,
  errorAbout,
  HeddleError,
  NetworkError,
  PeerError,
  ProtocolError,
  TimeoutError,
  tracedError,
  UsageError,
  wireCodes,
} from './errors.ts'
import { isIdempotent, isSafe } from './method.ts'
import { isBodiless, reasonPhrase } from './status.ts'

test('errors of peer and network carry no stack, those of the program do', () => {
  const limit = Error.stackTraceLimit
  assert.equal(new NetworkError('NETWORK_ERROR', 'cut').stack?.includes('\n    at '), false)
  assert.equal(new UsageError('data before the head').stack?.includes('\n    at '), true)
  assert.equal(Error.stackTraceLimit, limit)
})

test('name, code, phase, cause and unprocessed say what happened', () => {
  const cause = new Error('ECONNRESET')
  const error = new PeerError('PEER_RESET', 'the peer reset the connection', { cause, unprocessed: true, wireCode: 7 })
  assert.deepEqual([error.name, error.code, error.cause, error.unprocessed, error.wireCode], ['PeerError', 'PEER_RESET', cause, true, 7])
  assert.deepEqual([new TimeoutError('head', 'late').code, new TimeoutError('head', 'late').phase], ['HEAD_TIMEOUT', 'head'])
  assert.equal(new ProtocolError('bad').status, 400)
  assert.equal(new CancelledError(CancelReason.InternalError).code, 'HANDLER_FAILED')
  assert.equal(new CancelledError(CancelReason.Cancelled).code, 'CANCELLED')
  assert.ok(new UsageError('x') instanceof HeddleError && new UsageError('x') instanceof Error)
  assert.equal('cause' in new PeerError('PEER_CLOSED', 'closed'), false)
})

test('an error that rejects a promise has the stack of who awaits it', async () => {
  const error = new TimeoutError('head', 'late', { unprocessed: true, cause: 'the cause' })
  function fail(): never {
    throw tracedError(error, fail)
  }
  async function firstReader(): Promise<void> {
    await Promise.reject(error).catch(fail)
  }
  async function secondReader(): Promise<void> {
    await Promise.reject(error).then(undefined, fail)
  }
  const [first, second] = (await Promise.allSettled([firstReader(), secondReader()])).map(
    (outcome) => (outcome as PromiseRejectedResult).reason,
  )
  assert.equal(first, error, 'the first reader gets the error itself')
  assert.match(first.stack ?? '', /^TimeoutError: late\n +at async firstReader /)
  assert.notEqual(second, error, 'whoever comes later gets a copy')
  assert.match(second.stack, /^TimeoutError: late\n +at async secondReader /)
  assert.ok(second instanceof TimeoutError)
  assert.deepEqual({ ...second }, { ...error })
  assert.deepEqual([second.code, second.phase, second.unprocessed, second.cause], ['HEAD_TIMEOUT', 'head', true, 'the cause'])
  assert.equal('cause' in (tracedTwice(new PeerError('PEER_CLOSED', 'closed')) as Error), false)
})

function tracedTwice(error: HeddleError): unknown {
  return tracedError(tracedError(error, tracedTwice), tracedTwice)
}

test('what has a stack of its own, or is none of our errors, stays as it is', () => {
  for (const error of [new UsageError('wrong'), new TypeError('other'), 'a reason', undefined]) {
    const { stack } = (error ?? {}) as Error
    assert.equal(tracedError(error, tracedTwice), error)
    assert.equal(tracedError(error, tracedTwice), error)
    assert.equal(((error ?? {}) as Error).stack, stack)
  }
})

test('an error about a server is a copy that names it, once; what is our own doing does not', () => {
  const server = 'https://example.org'
  const original = new PeerError('PEER_RESET', 'reset', { cause: new Error('why'), unprocessed: true, wireCode: 7, scope: 'stream' })
  const named = errorAbout(server, original)
  assert.equal(named.message, 'reset (https://example.org)')
  assert.equal(original.message, 'reset', 'others are told the same one')
  assert.ok(named instanceof PeerError && !(named instanceof TimeoutError))
  assert.deepEqual({ ...named }, { ...original })
  assert.deepEqual([named.cause, named.name, named.stack], [original.cause, 'PeerError', 'PeerError: reset (https://example.org)'])
  assert.equal((errorAbout(server, new TimeoutError('head', 'late')) as TimeoutError).phase, 'head')
  for (const as of [named, new CancelledError(CancelReason.Timeout), new UsageError('wrong')]) assert.equal(errorAbout(server, as), as)
})

test('every cancel reason has a code on the wire of HTTP/2 and HTTP/3', () => {
  for (const reason of Object.values(CancelReason)) assert.ok(wireCodes[reason] !== undefined, String(reason))
  assert.deepEqual(wireCodes[CancelReason.Refused], { h2: 0x7, h3: 0x10b })
})

test('methods and statuses', () => {
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) assert.ok(isIdempotent(method), method)
  for (const method of ['POST', 'PATCH', 'get', 'CONNECT', 'X']) assert.ok(!isIdempotent(method), method)
  assert.ok(isSafe('GET') && !isSafe('PUT'))
  assert.ok(isBodiless(100) && isBodiless(204) && isBodiless(304) && !isBodiless(200) && !isBodiless(205))
  assert.equal(reasonPhrase(404), 'Not Found')
  assert.equal(reasonPhrase(599), '')
})
