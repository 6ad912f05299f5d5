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
  path.startValidation(90, 100)
  assert.ok(path.challengeWaits)
  path.onChallengeSent(Buffer.from('12345678'), true, 30, 100)
  assert.equal(path.deadline, 130)
  path.startValidation(90, 110)
  assert.equal(path.challengeWaits, false, 'one is under way')
  assert.ok(path.expire(130))
  assert.ok(path.challengeWaits)
  path.onChallengeSent(Buffer.from('abcdefgh'), true, 30, 130)
  assert.equal(path.receiveResponse(Buffer.from('--12345679'), 2), false)
  assert.equal(path.receiveResponse(Buffer.from('--12345678'), 2), true)
  assert.ok(path.validated)
  assert.equal(path.isValidating, false)
  assert.equal(path.receiveResponse(Buffer.from('12345678'), 0), false, 'once')
})

test('challenges come ever less often, until the time is over and the path has failed, and may be tried again', () => {
  const path = new Path(route, false)
  path.startValidation(100, 0)
  const sent: number[] = []
  let now = 0
  for (;;) {
    sent.push(now)
    path.onChallengeSent(Buffer.from(`challen${sent.length}`), true, 10, now)
    now = path.deadline
    if (!path.expire(now)) break
  }
  assert.deepEqual(sent, [0, 10, 30, 70])
  assert.equal(now, 100)
  assert.equal(path.receiveResponse(Buffer.from('challen1'), 0), false)
  assert.deepEqual([path.validated, path.isValidating, path.challengeWaits], [false, false, false])
  path.startValidation(100, 200)
  assert.ok(path.challengeWaits)
})

test('a challenge that may not leave does not keep the path from failing', () => {
  const path = new Path(route, false)
  path.startValidation(100, 0)
  assert.equal(path.deadline, 100)
  path.onChallengeSent(Buffer.from('12345678'), false, 10, 5)
  assert.ok(path.expire(15))
  assert.ok(path.challengeWaits)
  assert.equal(path.deadline, 100)
  assert.equal(path.expire(100), false)
})

test('a small challenge validates the address, and then a full one has to show that the path carries 1,200 octets', () => {
  const path = new Path(route, false)
  path.startValidation(100, 0)
  path.onChallengeSent(Buffer.from('12345678'), false, 10, 0)
  assert.ok(path.receiveResponse(Buffer.from('12345678'), 0))
  assert.deepEqual([path.validated, path.challengeWaits, path.deadline], [true, true, 200])
  path.onChallengeSent(Buffer.from('abcdefgh'), true, 10, 20)
  assert.ok(path.receiveResponse(Buffer.from('abcdefgh'), 0))
  assert.deepEqual([path.challengeWaits, path.isValidating], [false, false])
})

test('challenges beyond 32 that wait are not answered', () => {
  const path = new Path(route, true)
  const octets = Buffer.alloc(8 * 100, 'x')
  for (let i = 0; i < 100; i++) path.receiveChallenge(octets, i * 8)
  octets.fill(0)
  assert.equal(path.responses.length, mostResponses)
  assert.equal(Buffer.from(path.responses[0] as Uint8Array).toString(), 'xxxxxxxx', 'a copy')
})
