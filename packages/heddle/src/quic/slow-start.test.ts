import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NewReno } from './new-reno.ts'
import { Rtt } from './rtt.ts'
import { SlowStart } from './slow-start.ts'

/** Rounds of ten samples each; a packet of a round is acknowledged `rtt` ms after it was sent. Returns the round in which slow start was over, or −1. */
function play(slowStart: { onRttSample(timeSent: number, rtt: Rtt, now: number): unknown }, rtts: readonly number[]): number {
  let now = 0
  for (const [round, ms] of rtts.entries()) {
    const sentAt = now
    now += ms
    for (let sample = 0; sample < 10; sample++) {
      const rtt = new Rtt()
      rtt.update(ms, 0, now)
      if (slowStart.onRttSample(sentAt, rtt, now) === true) return round
    }
  }
  return -1
}

test('a round trip that stays what it is keeps slow start going', () => {
  const slowStart = new SlowStart()
  assert.equal(play(slowStart, Array<number>(50).fill(40)), -1)
  assert.ok(!slowStart.isCautious)
  assert.equal(slowStart.growth(1000), 1000)
})

test('one that grows by an eighth makes it cautious, and five rounds later it is over (RFC 9406 §4.2)', () => {
  const slowStart = new SlowStart()
  assert.equal(play(slowStart, [40, 40]), -1)
  const grown = new SlowStart()
  assert.equal(play(grown, [40, 40, 46]), -1)
  assert.ok(grown.isCautious)
  assert.equal(grown.growth(1000), 250)
  assert.equal(play(new SlowStart(), [40, 40, 46, 46, 46, 46, 46, 46, 46]), 7)
})

test('less than 4 ms are noise, and 16 ms always are too much', () => {
  const calm = new SlowStart()
  play(calm, [8, 11.5])
  assert.ok(!calm.isCautious)
  const long = new SlowStart()
  play(long, [400, 416])
  assert.ok(long.isCautious)
})

test('it goes on if the round trip shrinks again', () => {
  const slowStart = new SlowStart()
  assert.equal(play(slowStart, [40, 40, 50, 40, 40, 40, 40, 40, 40, 40]), -1)
  assert.ok(!slowStart.isCautious)
})

test('few samples say nothing', () => {
  const slowStart = new SlowStart()
  let now = 0
  for (let round = 1; round < 20; round++) {
    const rtt = new Rtt()
    rtt.update(10 * round, 0, now)
    slowStart.onRttSample(now, rtt, (now += 10 * round))
  }
  assert.ok(!slowStart.isCautious)
})

test('the end of slow start is the window of then', () => {
  const reno = new NewReno(1200)
  reno.onAcked(100_000)
  play(reno, [40, 40, 46, 46, 46, 46, 46, 46, 46])
  assert.deepEqual([reno.threshold, reno.isSlowStart], [112_000, false])
})
