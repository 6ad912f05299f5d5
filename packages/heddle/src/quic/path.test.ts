import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mostResponses, Path, type Route } from './path.ts'

const route: Route = {
  key: 'one',
  remote: { address: '192.0.2.1', port: 1, family: 'IPv4' },
  local: { address: '192.0.2.2', port: 2, family: 'IPv4' },
}

test('three times what came may go to an address that is not validated', () => {
  const path = new Path(route, false)
  assert.equal(path.allowance, 0)
  path.bytesReceived = 1200
  assert.equal(path.allowance, 3600)
  path.bytesSent = 3700
  assert.equal(path.allowance, 0)
  path.validated = true
  assert.equal(path.allowance, Infinity)
})

test('the answer to any of the challenges validates the path, and no other', () => {
  const path = new Path(route, false)
  path.startValidation()
  assert.ok(path.challengeWaits)
  const first = Buffer.from('12345678')
  path.onChallengeSent(first, 30, 100)
  assert.equal(path.deadline, 130)
  path.startValidation()
  assert.equal(path.challengeWaits, false, 'one is under way')
  assert.ok(path.expire())
  assert.ok(path.challengeWaits)
  path.onChallengeSent(Buffer.from('abcdefgh'), 30, 130)
  assert.equal(path.receiveResponse(Buffer.from('--12345679'), 2), false)
  assert.equal(path.receiveResponse(Buffer.from('--12345678'), 2), true)
  assert.ok(path.validated)
  assert.equal(path.deadline, Infinity)
  assert.equal(path.receiveResponse(Buffer.from('12345678'), 0), false, 'once')
  path.startValidation()
  assert.equal(path.challengeWaits, false)
})

test('after three challenges without an answer the path has failed, and may be tried again', () => {
  const path = new Path(route, false)
  path.startValidation()
  for (let i = 0; i < 3; i++) {
    path.onChallengeSent(Buffer.from(`challen${i}`), 10, i * 10)
    assert.equal(path.expire(), i < 2)
  }
  assert.equal(path.receiveResponse(Buffer.from('challen0'), 0), false)
  path.startValidation()
  assert.ok(path.challengeWaits)
})

test('challenges beyond 32 that wait are not answered', () => {
  const path = new Path(route, true)
  const octets = Buffer.alloc(8 * 100, 'x')
  for (let i = 0; i < 100; i++) path.receiveChallenge(octets, i * 8)
  octets.fill(0)
  assert.equal(path.responses.length, mostResponses)
  assert.equal(Buffer.from(path.responses[0] as Uint8Array).toString(), 'xxxxxxxx', 'a copy')
})
