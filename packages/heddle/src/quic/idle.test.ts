import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdleTimer } from './idle.ts'

test('the lesser of both ends’ limits counts, and none of 0', () => {
  const idle = new IdleTimer(30_000, 0)
  assert.equal(idle.deadline(100), 30_000)
  idle.setPeer(0)
  assert.equal(idle.deadline(100), 30_000)
  idle.setPeer(10_000)
  assert.equal(idle.deadline(100), 10_000)
  const endless = new IdleTimer(0, 0)
  assert.equal(endless.deadline(100), Infinity)
  endless.setPeer(5_000)
  assert.equal(endless.deadline(100), 5_000)
})

test('what comes begins the time anew, and so does the first question after it', () => {
  const idle = new IdleTimer(1_000, 0)
  idle.onReceived(500)
  assert.equal(idle.deadline(10), 1_500)
  idle.onSent(false, 600)
  assert.equal(idle.deadline(10), 1_500, 'an acknowledgement wants no answer')
  idle.onSent(true, 700)
  assert.equal(idle.deadline(10), 1_700)
  idle.onSent(true, 800)
  assert.equal(idle.deadline(10), 1_700, 'a peer that answers nothing is not kept')
  idle.onReceived(900)
  idle.onSent(true, 1_000)
  assert.equal(idle.deadline(10), 2_000)
  assert.equal(idle.keepAliveAt(300), 1_300)
})

test('three probe timeouts are the least', () => {
  assert.equal(new IdleTimer(100, 0).deadline(400), 1_200)
})
