import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BucketHistogram, LogHistogram } from './histogram.ts'

const value = fc.oneof(fc.nat(300), fc.nat(100_000), fc.nat(2 ** 31 - 1), fc.double({ min: 0, max: 1e6, noNaN: true }))

test('a percentile is at most 0.8 % from the exact one, and half a unit', () => {
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 200 }), fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
      const histogram = new LogHistogram()
      for (const each of values) histogram.record(each)
      const sorted = [...values].sort((a, b) => a - b)
      const exact = sorted[Math.max(1, Math.ceil(share * sorted.length)) - 1] as number
      assert.ok(Math.abs(histogram.percentile(share) - exact) <= exact * 0.008 + 0.5, `${histogram.percentile(share)} for ${exact}`)
    }),
  )
})

test('count, sum, minimum and maximum are exact', () => {
  const histogram = new LogHistogram()
  for (const each of [5, 1_000_000, 12.25]) histogram.record(each)
  assert.deepEqual([histogram.count, histogram.sum, histogram.min, histogram.max], [3, 1_000_017.25, 5, 1_000_000])
  assert.equal(histogram.percentile(1), 1_000_000)
})

test('nothing recorded is all zero', () => {
  assert.equal(new LogHistogram().percentile(0.5), 0)
})

test('values beyond the scale are counted at its end', () => {
  const histogram = new LogHistogram()
  histogram.record(1e15)
  histogram.record(-1)
  assert.equal(histogram.count, 2)
  assert.equal(histogram.percentile(1), 1e15)
  assert.equal(histogram.percentile(0.5), 0)
})

test('merging is the same as recording into one', () => {
  fc.assert(
    fc.property(fc.array(value, { maxLength: 50 }), fc.array(value, { maxLength: 50 }), (a, b) => {
      const one = new LogHistogram()
      const [first, second, merged] = [new LogHistogram(), new LogHistogram(), new LogHistogram()]
      for (const each of a) first.record(each)
      for (const each of b) second.record(each)
      for (const each of [...a, ...b]) one.record(each)
      merged.merge(first.snapshot())
      merged.merge(second.snapshot())
      assert.equal(merged.count, one.count)
      assert.equal(merged.min, one.min)
      assert.equal(merged.max, one.max)
      for (const share of [0, 0.25, 0.5, 0.9, 0.99, 1]) assert.equal(merged.percentile(share), one.percentile(share))
    }),
  )
})

test('a value on a bound belongs to that bucket', () => {
  const histogram = new BucketHistogram([1, 2])
  for (const each of [0.5, 1, 1.5, 2, 2.5]) histogram.record(each)
  assert.deepEqual(Array.from(histogram.counts), [2, 2, 1])
  assert.equal(histogram.sum, 7.5)
})
