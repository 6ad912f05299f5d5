import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import fc from 'fast-check'
import { Durations, type DurationsRecord } from './durations.ts'

/** ms from a fraction of a microsecond to hours. */
const duration = fc.double({ min: Math.log(1e-4), max: Math.log(3.6e6), noNaN: true }).map(Math.exp)
const someDurations = fc.array(duration, { minLength: 1, maxLength: 500 })
const percents = [0.01, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100]

function recorded(values: readonly number[]): Durations {
  const durations = new Durations()
  for (const value of values) durations.record(value)
  return durations
}

/** The slow, obvious twin: the smallest value that at least so many are not above. */
function percentileOf(values: readonly number[], percent: number, missing = 0): number | undefined {
  const sorted = [...values, ...Array.from({ length: missing }, () => Infinity)].toSorted((a, b) => a - b)
  const found = sorted.find((_, i) => (i + 1) / sorted.length >= percent / 100 - 1e-9) as number
  return found === Infinity ? undefined : found
}

function isNear(found: number | undefined, expected: number | undefined): boolean {
  if (found === undefined || expected === undefined) return found === expected
  return Math.abs(found - expected) <= Math.max(expected * 0.001, 65e-6)
}

test('every percentile is that of the sorted values, within a thousandth or 64 ns', () => {
  fc.assert(
    fc.property(someDurations, fc.nat(300), (values, missing) => {
      const durations = recorded(values)
      for (const percent of percents) {
        const found = durations.percentile(percent, missing)
        const expected = percentileOf(values, percent, missing)
        ok(isNear(found, expected), `p${percent} of ${values.length}, ${missing} missing: ${found}, not ${expected}`)
      }
    }),
  )
})

test('count, mean, minimum and maximum are exact', () => {
  fc.assert(
    fc.property(someDurations, (values) => {
      const { count, sum, mean, min, max } = recorded(values)
      const total = values.reduce((a, b) => a + b, 0)
      deepEqual([count, sum, mean, min, max], [values.length, total, total / values.length, Math.min(...values), Math.max(...values)])
    }),
  )
})

test('two taken together are as one that saw everything', () => {
  fc.assert(
    fc.property(someDurations, someDurations, (first, second) => {
      const merged = recorded(first)
      merged.add(recorded(second).toRecord())
      merged.add(new Durations().toRecord())
      const whole = recorded([...first, ...second])
      for (const percent of percents) equal(merged.percentile(percent), whole.percentile(percent))
      deepEqual([merged.count, merged.min, merged.max], [whole.count, whole.min, whole.max])
    }),
  )
})

test('it goes from one thread to another', async () => {
  const { port1, port2 } = new MessageChannel()
  const arrived = new Promise<DurationsRecord>((resolve) => port2.once('message', resolve))
  port1.postMessage(recorded([1, 2, 3]).toRecord())
  const durations = new Durations()
  durations.add(await arrived)
  port1.close()
  ok(isNear(durations.percentile(50), 2))
  deepEqual([durations.count, durations.mean, durations.max], [3, 2, 3])
})

test('nothing recorded: no percentile, whatever is missing', () => {
  const none = new Durations()
  deepEqual([none.percentile(50), none.percentile(50, 10), none.mean, none.curve()], [undefined, undefined, 0, []])
})

test('what is out of range is counted at its end, and the maximum says what it was', () => {
  const durations = recorded([-5, 0, 1e9])
  ok((durations.percentile(50) as number) < 0.000_2)
  equal(durations.min, 0)
  equal(durations.max, 1e9)
})

test('of a hundred of which one is missing, 99 % is known and 99.1 % is not', () => {
  const durations = recorded(Array.from({ length: 99 }, (_, i) => i + 1))
  ok(isNear(durations.percentile(99, 1), 99))
  equal(durations.percentile(99.1, 1), undefined)
})

test('the curve goes up, and ends with the maximum', () => {
  const curve = recorded(Array.from({ length: 1_000 }, (_, i) => i + 1)).curve()
  const [percent, ms] = curve.at(-1) as [number, number]
  deepEqual([percent, ms], [100, 1_000])
  for (let i = 1; i < curve.length; i++) ok((curve[i] as number[])[1]! >= (curve[i - 1] as number[])[1]!)
  ok(curve.length > 10)
})
