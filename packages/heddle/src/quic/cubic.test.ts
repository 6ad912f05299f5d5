import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Cubic } from './cubic.ts'
import { Rtt } from './rtt.ts'

const size = 1200

/** CUBIC by the letter of RFC 9438 §4, in segments and seconds, without slow start: the slow, obvious twin. */
class Twin {
  cwnd: number
  wMax = 0
  cwndPrior = 0
  cwndEpoch = 0
  wEst = 0
  epochStart: number | undefined

  constructor(cwnd: number) {
    this.cwnd = cwnd
  }

  loss(): void {
    this.cwndPrior = this.cwnd
    this.wMax = this.cwnd < this.wMax ? (this.cwnd * (1 + 0.7)) / 2 : this.cwnd
    this.cwnd = Math.max(this.cwnd * 0.7, 2)
    this.epochStart = undefined
  }

  wCubic(t: number): number {
    const k = Math.cbrt((this.wMax - this.cwndEpoch) / 0.4)
    return 0.4 * (t - k) ** 3 + this.wMax
  }

  ack(segments: number, rttSeconds: number, nowSeconds: number): void {
    if (this.epochStart === undefined) {
      this.epochStart = nowSeconds
      this.cwndEpoch = this.cwnd
      this.wEst = this.cwnd
      if (this.wMax < this.cwnd) {
        this.wMax = this.cwnd
        this.cwndPrior = Math.max(this.cwndPrior, this.cwnd)
      }
    }
    const t = nowSeconds - this.epochStart
    const alpha = this.wEst >= this.cwndPrior ? 1 : (3 * (1 - 0.7)) / (1 + 0.7)
    this.wEst += (alpha * segments) / this.cwnd
    if (this.wCubic(t) < this.wEst) {
      this.cwnd = Math.max(this.cwnd, this.wEst)
      return
    }
    let target = this.wCubic(t + rttSeconds)
    if (target < this.cwnd) target = this.cwnd
    if (target > 1.5 * this.cwnd) target = 1.5 * this.cwnd
    this.cwnd += ((target - this.cwnd) / this.cwnd) * segments
  }
}

function rttOf(ms: number): Rtt {
  const rtt = new Rtt()
  rtt.update(ms, 0, 0)
  return rtt
}

test('the window is that of the RFC, computed in the plainest way', () => {
  const step = fc.record({ loss: fc.boolean(), rounds: fc.nat({ max: 60 }), pause: fc.constantFrom(0, 0, 0, 3000, 30_000) })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 8, size: 'max' }), fc.integer({ min: 2, max: 400 }), (steps, rttMs) => {
      const cubic = new Cubic(size)
      const rtt = rttOf(rttMs)
      let now = 1000
      // Slow start up to some window, then a loss.
      cubic.onAcked(100 * size, rtt, now)
      const twin = new Twin(cubic.window / size)
      cubic.onCongestionEvent()
      twin.loss()
      for (const { loss, rounds, pause } of steps) {
        // Acknowledgements may be late: the curve is far ahead then.
        now += pause
        for (let round = 0; round < rounds; round++) {
          now += rttMs
          for (let left = Math.min(60, Math.floor(twin.cwnd / 2)); left > 0; left--) {
            cubic.onAcked(2 * size, rtt, now)
            twin.ack(2, rttMs / 1000, now / 1000)
          }
          const ratio = cubic.window / size / twin.cwnd
          assert.ok(Math.abs(ratio - 1) < 1e-6, `${cubic.window / size} is not ${twin.cwnd}`)
        }
        if (loss) {
          cubic.onCongestionEvent()
          twin.loss()
        }
      }
    }),
    { numRuns: 60 },
  )
})

test('a loss leaves seven tenths, and never less than two datagrams', () => {
  const cubic = new Cubic(size)
  assert.equal(cubic.window, 10 * size)
  cubic.onCongestionEvent()
  assert.equal(cubic.window, 7 * size)
  assert.ok(!cubic.isSlowStart)
  for (let i = 0; i < 20; i++) cubic.onCongestionEvent()
  assert.equal(cubic.window, 2 * size)
})

test('the window goes back to where the loss was, rests there, and goes on', () => {
  const cubic = new Cubic(size)
  const rtt = rttOf(50)
  cubic.onAcked(990 * size, rtt, 0)
  assert.equal(cubic.window, 1000 * size)
  cubic.onCongestionEvent()
  // K: the cube root of 300 / 0.4 s.
  const plateau = Math.cbrt(300 / 0.4) * 1000
  const windowAt = new Map<number, number>()
  for (let now = 0; now <= 2 * plateau; now += 10) {
    cubic.onAcked(cubic.window / 5, rtt, now)
    windowAt.set(now, cubic.window / size)
  }
  const [half, at, later, end] = [0.5, 1, 1.5, 2].map((part) => windowAt.get(Math.floor((part * plateau) / 10) * 10) as number) as [
    number,
    number,
    number,
    number,
  ]
  assert.ok(half > 955 && half < 970, `${half}`)
  assert.ok(at > 995 && at < 1005, `${at}`)
  assert.ok(later > 1030 && later < 1045, `${later}`)
  assert.ok(end > 1270, `${end}`)
})

test('on short round trips it is no slower than Reno (RFC 9438 §4.3)', () => {
  const cubic = new Cubic(size)
  const rtt = rttOf(5)
  cubic.onAcked(10 * size, rtt, 0)
  cubic.onCongestionEvent()
  const before = cubic.window / size
  for (let now = 0; now < 500; now += 5) cubic.onAcked(cubic.window, rtt, now)
  // A hundred round trips of 0.53 datagrams, then of 1 once the old window is reached.
  assert.ok(cubic.window / size > before + 53, `${cubic.window / size}`)
})

test('time in which the window was not used does not count (RFC 9438 §5.8)', () => {
  const run = (pause: boolean): number => {
    const cubic = new Cubic(size)
    const rtt = rttOf(50)
    cubic.onAcked(500 * size, rtt, 0)
    cubic.onCongestionEvent()
    let now = 0
    for (let round = 0; round < 20; round++) cubic.onAcked(cubic.window, rtt, (now += 50))
    if (pause) for (let round = 0; round < 1000; round++) cubic.onUnused((now += 50))
    for (let round = 0; round < 20; round++) cubic.onAcked(cubic.window, rtt, (now += 50))
    return cubic.window
  }
  assert.ok(Math.abs(run(true) / run(false) - 1) < 0.02)
})

test('after persistent congestion it starts slowly, up to where it was safe', () => {
  const cubic = new Cubic(size)
  const rtt = rttOf(50)
  cubic.onAcked(90 * size, rtt, 0)
  cubic.onCongestionEvent()
  cubic.onPersistentCongestion()
  assert.equal(cubic.window, 2 * size)
  assert.ok(cubic.isSlowStart)
  for (let round = 0; round < 6; round++) cubic.onAcked(cubic.window, rtt, round * 50)
  assert.ok(!cubic.isSlowStart)
  assert.ok(cubic.window >= 70 * size)
})

test('larger datagrams make the least window larger', () => {
  const cubic = new Cubic(size)
  cubic.onPersistentCongestion()
  cubic.resize(1452)
  assert.equal(cubic.window, 2904)
})
