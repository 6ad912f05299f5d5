import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Closing, faultReason } from './closing.ts'

const reason = faultReason({ code: 7, frameType: 6, reason: 'why' })

test('the end that closes tells why, and tells it again ever less often', () => {
  const closing = new Closing()
  closing.receiveDatagram()
  assert.equal(closing.mustSend, false, 'an open connection has nothing to tell')
  assert.ok(closing.close(reason))
  assert.deepEqual(closing.reason, { code: 7, application: false, frameType: 6, reason: 'why' })
  const told: number[] = []
  for (let datagram = 0; datagram <= 64; datagram++) {
    if (datagram > 0) closing.receiveDatagram()
    if (closing.mustSend) told.push(datagram)
    closing.mustSend = false
  }
  assert.deepEqual(told, [0, 1, 3, 7, 15, 31, 63])
  assert.equal(closing.close({ ...reason, code: 8 }), false, 'the first reason stays')
  assert.equal(closing.reason?.code, 7)
})

test('when the peer closes nothing is sent any more, also by an end that was closing', () => {
  const closing = new Closing()
  assert.ok(closing.receiveClose())
  assert.equal(closing.state, 'draining')
  assert.equal(closing.close(reason), false)
  closing.receiveDatagram()
  assert.equal(closing.mustSend, false)
  const both = new Closing()
  both.close(reason)
  assert.equal(both.receiveClose(), false)
  assert.deepEqual([both.state, both.mustSend], ['draining', false])
})

test('it lasts three probe timeouts, and then it is over for good', () => {
  const closing = new Closing()
  closing.close(reason)
  assert.equal(closing.deadline(50, 1_000), 1_150)
  closing.finish()
  closing.receiveClose()
  closing.receiveDatagram()
  assert.deepEqual([closing.state, closing.mustSend], ['closed', false])
})
