import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Rtt } from './rtt.ts'

test('the estimates follow the samples as RFC 9002 §A.7 has it', () => {
  const sample = fc.record({ rtt: fc.double({ min: 0, max: 5000, noNaN: true }), delay: fc.double({ min: 0, max: 1e9, noNaN: true }) })
  fc.assert(
    fc.property(fc.array(sample, { minLength: 1, maxLength: 50, size: 'max' }), (samples) => {
      const rtt = new Rtt()
      let smoothed = 0
      let variation = 0
      const seen: number[] = []
      for (const { rtt: latest, delay } of samples) {
        rtt.update(latest, delay, 1)
        seen.push(latest)
        if (seen.length === 1) {
          smoothed = latest
          variation = latest / 2
        } else {
          const adjusted = latest >= Math.min(...seen) + delay ? latest - delay : latest
          variation = 0.75 * variation + 0.25 * Math.abs(smoothed - adjusted)
          smoothed = 0.875 * smoothed + 0.125 * adjusted
        }
        assert.equal(rtt.min, Math.min(...seen))
        assert.ok(Math.abs(rtt.smoothed - smoothed) < 1e-3, `${rtt.smoothed} ${smoothed}`)
        assert.ok(Math.abs(rtt.variation - variation) < 1e-3)
        assert.ok(rtt.probeTimeout >= rtt.smoothed + 1)
        assert.ok(rtt.lossDelay >= 1)
      }
    }),
  )
})

test('before a sample the round trip is 333 ms, and the probe timeout 999 (RFC 9002 §6.2.2)', () => {
  const rtt = new Rtt()
  assert.ok(!rtt.hasSample)
  assert.equal(rtt.smoothed, 333)
  assert.equal(rtt.probeTimeout, 999)
})

test('a clock that stands still, or goes back, gives a round trip of 0', () => {
  const rtt = new Rtt()
  rtt.update(-5, 0, 1)
  assert.deepEqual([rtt.latest, rtt.min, rtt.smoothed, rtt.probeTimeout], [0, 0, 0, 1])
})

test('the minimum can begin anew (RFC 9002 §5.2), and so can everything on another path', () => {
  const rtt = new Rtt()
  rtt.update(10, 0, 1)
  rtt.update(100, 0, 2)
  assert.equal(rtt.min, 10)
  rtt.restartMin()
  rtt.update(90, 0, 3)
  assert.equal(rtt.min, 90)
  rtt.reset(250)
  assert.deepEqual([rtt.hasSample, rtt.smoothed, rtt.variation], [false, 250, 125])
  rtt.update(40, 0, 9)
  assert.deepEqual([rtt.min, rtt.smoothed, rtt.firstSampleAt], [40, 40, 9])
})
