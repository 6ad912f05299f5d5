import { deepEqual, notEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Arrivals } from './arrivals.ts'
import { SeededRandom } from './random.ts'

function take(arrivals: Arrivals, count: number): number[] {
  return Array.from({ length: count }, () => {
    const { next } = arrivals
    arrivals.advance()
    return next
  })
}

test('uniform: at equal distances from the beginning, without drift', () => {
  const arrivals = new Arrivals('uniform', 3, 1_000, new SeededRandom(1))
  deepEqual(take(arrivals, 4), [1_000, 1_000 + 1_000 / 3, 1_000 + 2 * (1_000 / 3), 2_000])
  take(arrivals, 2_999_996)
  // A million seconds later the plan is where it should be to the microsecond.
  ok(Math.abs(arrivals.next - 1_000_001_000) < 1e-3, String(arrivals.next))
})

test('threads that share a rate stand between each other', () => {
  const all = [0, 1, 2].flatMap((thread) => take(new Arrivals('uniform', 10, 0, new SeededRandom(1), thread / 3), 4))
  const distances = all.toSorted((a, b) => a - b).map((due, i, sorted) => due - (sorted[i - 1] ?? -100 / 3))
  for (const distance of distances) ok(Math.abs(distance - 100 / 3) < 1e-6, String(distance))
})

test('poisson: as many as the rate says, with the variance of chance, and never back', () => {
  const due = take(new Arrivals('poisson', 1_000, 0, new SeededRandom(7)), 100_000)
  // Each second has 1,000 on average, with a standard deviation of 32.
  const seconds = Array.from({ length: 90 }, () => 0)
  for (const at of due) if (at < 90_000) seconds[Math.floor(at / 1_000)]!++
  const mean = seconds.reduce((a, b) => a + b, 0) / 90
  const variance = seconds.reduce((sum, count) => sum + (count - mean) ** 2, 0) / 90
  ok(Math.abs(mean - 1_000) < 15, `mean ${mean}`)
  ok(variance > 600 && variance < 1_500, `variance ${variance}`)
  for (let i = 1; i < due.length; i++) ok((due[i] as number) >= (due[i - 1] as number))
})

test('one seed, one plan; another seed, another', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (seed) => {
      const plan = (from: number): number[] => take(new Arrivals('poisson', 50, 0, new SeededRandom(from)), 20)
      deepEqual(plan(seed), plan(seed))
      ok(String(plan(seed)) !== String(plan(seed === 0 ? 1 : seed - 1)))
    }),
    { numRuns: 50 },
  )
})

test('threads with one seed have plans of their own', () => {
  const [first, second] = [0, 2].map((stream) => new Arrivals('poisson', 50, 0, new SeededRandom(1, stream)).next)
  notEqual(first, second)
})
