import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pacer } from './pacer.ts'

const size = 1200

/** Sends full datagrams as long as the pace allows it, and returns how many. */
function sendAll(pacer: Pacer, rate: number, now: number): number {
  let count = 0
  while (pacer.canSend(rate, size, now)) {
    pacer.onSent(size, rate, size, now)
    if (++count > 100_000) assert.fail('no end')
  }
  return count
}

test('a burst is ten datagrams, after an idle time of any length too (RFC 9002 §7.7)', () => {
  const pacer = new Pacer(size, 0)
  assert.equal(sendAll(pacer, 12, 0), 10)
  assert.equal(sendAll(pacer, 12, 0), 0)
  assert.equal(sendAll(pacer, 12, 1_000_000), 10)
})

test('the rate is kept, with timers that are late by up to a millisecond', () => {
  for (const rate of [1, 12, 120, 1200, 12_000, 125_000]) {
    const pacer = new Pacer(size, 0)
    sendAll(pacer, rate, 0)
    let now = 0
    let sent = 0
    const end = 200_000 / Math.min(rate, 200)
    while (now < end) {
      now = Math.floor(pacer.deadline(rate, size)) + 1
      sent += sendAll(pacer, rate, now)
    }
    const ratio = (sent * size) / (now * rate)
    assert.ok(ratio > 0.9 && ratio < 1.1, `${rate} octets per ms: ${ratio}`)
  }
})

test('at its deadline it allows something, so nobody spins', () => {
  for (const rate of [0.3, 7, 1234.567, 99_999.9]) {
    const pacer = new Pacer(size, 0.1)
    let now = 0.1
    for (let i = 0; i < 200; i++) {
      sendAll(pacer, rate, now)
      const next = pacer.deadline(rate, size)
      assert.ok(next > now)
      now = next
      assert.ok(pacer.canSend(rate, size, now))
    }
  }
})

test('where the round trip is as short as a timer, a whole window leaves at once', () => {
  const pacer = new Pacer(size, 0)
  sendAll(pacer, 1, 0)
  const window = 200 * size
  const rate = (1.25 * window) / 1
  assert.ok(sendAll(pacer, rate, 10) >= 200)
})

test('probes do not wait; what they took is missing later, but not for long', () => {
  const pacer = new Pacer(size, 0)
  for (let i = 0; i < 1000; i++) pacer.onSent(size, 12, size, 0)
  assert.ok(!pacer.canSend(12, size, 100))
  assert.ok(pacer.canSend(12, size, 1100))
})
