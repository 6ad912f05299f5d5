import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NetworkError, PeerError, TimeoutError, type HeddleError } from 'heddle/http'
import { Attempt } from './attempt.ts'

/** Whether `error` is the race of a kept-alive connection, on one that was used before. */
function isStale(error: HeddleError, ticket: { reused: boolean; responded: boolean } | undefined): boolean {
  const attempt: Pick<Attempt, 'wasStale'> = Object.assign(Object.create(Attempt.prototype) as Attempt, { ticket })
  return attempt.wasStale(error)
}

test('a connection that was kept and died, by TCP or by QUIC, says nothing about its endpoint', () => {
  const kept = { reused: true, responded: false }
  const deaths = [
    new PeerError('PEER_CLOSED', 'closed'),
    new PeerError('PEER_RESET', 'reset', { scope: 'connection' }),
    new NetworkError('NETWORK_ERROR', 'no answer to PING'),
    new TimeoutError('idle', 'nothing came by QUIC for 30 s'),
  ]
  for (const error of deaths) {
    assert.equal(isStale(error, kept), true, error.message)
    assert.equal(isStale(error, { reused: false, responded: false }), false, 'a new one')
    assert.equal(isStale(error, { reused: true, responded: true }), false, 'one that had answered')
    assert.equal(isStale(error, undefined), false, 'none was had')
  }
  for (const error of [new PeerError('PEER_RESET', 'one stream', { scope: 'stream' }), new TimeoutError('head', 'slow')])
    assert.equal(isStale(error, kept), false, error.message)
})
