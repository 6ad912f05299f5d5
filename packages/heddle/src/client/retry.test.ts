import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelledError, CancelReason, HeddleError, NetworkError, PeerError, ProtocolError, TimeoutError } from '../http/index.ts'
import { mayRetry } from './retry.ts'
import type { Ticket } from './ticket.ts'

const ticket = (reused: boolean, responded = false, moves = 0): Ticket => ({ reused, responded, moves, cancel() {}, handedBack() {} })
const closed = new PeerError('PEER_CLOSED', 'closed')
const reset = new PeerError('PEER_RESET', 'reset')
const refused = new PeerError('PEER_RESET', 'refused', { unprocessed: true })

test('what was not acted on is sent again, whatever the method and the connection', () => {
  assert.ok(mayRetry(refused, 'POST', ticket(false)))
  assert.ok(mayRetry(refused, 'GET', ticket(true)))
  assert.ok(mayRetry(refused, 'GET', ticket(true, false, 2)))
  assert.ok(!mayRetry(refused, 'GET', ticket(true, false, 3)), 'the pool has tried three other connections')
})

test('a stream that the server reset was seen by it, and its connection lives', () => {
  const aborted = new PeerError('PEER_RESET', 'INTERNAL_ERROR', { scope: 'stream', wireCode: 2 })
  assert.ok(!mayRetry(aborted, 'GET', ticket(true)))
})

test('a dead kept-alive connection is tried again for what is idempotent only', () => {
  for (const error of [closed, reset, new NetworkError('NETWORK_ERROR', 'EPIPE')]) {
    assert.ok(mayRetry(error, 'GET', ticket(true)))
    assert.ok(mayRetry(error, 'DELETE', ticket(true)))
    assert.ok(!mayRetry(error, 'POST', ticket(true)))
    assert.ok(!mayRetry(error, 'PATCH', ticket(true)))
    assert.ok(!mayRetry(error, 'GET', ticket(false)), 'a fresh connection')
    assert.ok(!mayRetry(error, 'GET', ticket(true, true)), 'a response had begun')
  }
})

test('nothing else is sent again', () => {
  const others = [
    new TimeoutError('head', 'slow'),
    new TimeoutError('total', 'slow'),
    new ProtocolError('garbage'),
    new PeerError('MESSAGE_TRUNCATED', 'half a head'),
    new CancelledError(CancelReason.Cancelled, 'cancelled', { unprocessed: true }),
    new HeddleError('SHUTDOWN', 'destroyed', { unprocessed: true }),
  ]
  for (const error of others) assert.ok(!mayRetry(error, 'GET', ticket(true)), error.code)
})
