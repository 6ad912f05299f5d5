import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RangeSet } from './index.ts'

function rangesOf(set: RangeSet): number[][] {
  return Array.from({ length: set.count }, (_, i) => [set.start(i), set.limit(i)])
}

test('ranges that touch become one', () => {
  const set = new RangeSet()
  assert.deepEqual([set.isEmpty, set.min, set.max], [true, -1, -1])
  assert.ok(set.add(5, 7))
  assert.ok(set.add(7, 9))
  assert.ok(set.add(1, 2))
  assert.deepEqual(rangesOf(set), [
    [1, 2],
    [5, 9],
  ])
  assert.equal(set.add(6, 8), false)
  assert.equal(set.add(3, 3), false)
  assert.ok(set.add(2, 5))
  assert.deepEqual(rangesOf(set), [[1, 9]])
  set.remove(3, 4)
  assert.deepEqual(rangesOf(set), [
    [1, 3],
    [4, 9],
  ])
  set.dropLowest()
  assert.deepEqual([set.min, set.max, set.count], [4, 8, 1])
  set.clear()
  assert.ok(set.isEmpty)
})

test('it is a set of numbers', () => {
  const step = fc.record({ add: fc.boolean(), start: fc.nat(60), length: fc.nat(12) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const set = new RangeSet()
      const twin = new Set<number>()
      for (const { add, start, length } of steps) {
        const numbers = Array.from({ length }, (_, i) => start + i)
        if (add) {
          const isNew = numbers.some((number) => !twin.has(number))
          for (const number of numbers) twin.add(number)
          assert.equal(set.add(start, start + length), isNew)
        } else {
          for (const number of numbers) twin.delete(number)
          set.remove(start, start + length)
        }
        const expected: number[][] = []
        for (let number = 0; number < 80; number++) {
          assert.equal(set.contains(number), twin.has(number))
          const last = expected.at(-1)
          if (!twin.has(number)) continue
          if (last?.[1] === number) last[1] = number + 1
          else expected.push([number, number + 1])
        }
        assert.deepEqual(rangesOf(set), expected)
        assert.equal(set.min, expected[0]?.[0] ?? -1)
        assert.equal(set.max, (expected.at(-1)?.[1] ?? 0) - 1)
        assert.equal(
          set.containsRange(start, start + length),
          numbers.every((number) => twin.has(number)),
        )
      }
    }),
    { numRuns: 500 },
  )
})
