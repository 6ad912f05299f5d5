import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RangeSet } from './range-set.ts'

const space = 60

/** The slow, obvious twin. */
function rangesOf(numbers: Set<number>): [number, number][] {
  const ranges: [number, number][] = []
  for (let value = 0; value <= space; value++) {
    if (!numbers.has(value)) continue
    const last = ranges.at(-1)
    if (last !== undefined && last[1] === value) last[1] = value + 1
    else ranges.push([value, value + 1])
  }
  return ranges
}

function rangesIn(set: RangeSet): [number, number][] {
  return Array.from({ length: set.count }, (_, index) => [set.start(index), set.limit(index)])
}

test('ranges that touch become one', () => {
  const set = new RangeSet()
  assert.deepEqual([set.isEmpty, set.min, set.max], [true, -1, -1])
  assert.ok(set.add(5, 7))
  assert.ok(set.add(7, 9))
  assert.ok(set.add(1, 2))
  assert.deepEqual(rangesIn(set), [
    [1, 2],
    [5, 9],
  ])
  assert.equal(set.add(6, 8), false)
  assert.ok(set.add(2, 5))
  assert.deepEqual(rangesIn(set), [[1, 9]])
  assert.ok(set.remove(3, 4))
  assert.deepEqual(rangesIn(set), [
    [1, 3],
    [4, 9],
  ])
  set.dropLowest()
  assert.deepEqual([set.min, set.max, set.count], [4, 8, 1])
})

test('a range set behaves as a Set of its numbers does', () => {
  const bound = fc.nat({ max: space })
  const action = fc.record({
    kind: fc.constantFrom('add', 'add', 'add', 'remove', 'dropLowest', 'clear'),
    start: bound,
    size: fc.oneof(fc.constant(1), fc.nat({ max: 12 })),
  })
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60, size: 'max' }), (actions) => {
      const set = new RangeSet()
      const model = new Set<number>()
      for (const { kind, start, size } of actions) {
        const limit = Math.min(space, start + size)
        const before = model.size
        if (kind === 'add') {
          for (let value = start; value < limit; value++) model.add(value)
          assert.equal(set.add(start, limit), model.size > before)
        } else if (kind === 'remove') {
          for (let value = start; value < limit; value++) model.delete(value)
          assert.equal(set.remove(start, limit), model.size < before)
        } else if (kind === 'dropLowest') {
          const [lowest] = rangesOf(model)
          if (lowest !== undefined) for (let value = lowest[0]; value < lowest[1]; value++) model.delete(value)
          set.dropLowest()
        } else if (start % 8 === 0) {
          model.clear()
          set.clear()
        }
        assert.deepEqual(rangesIn(set), rangesOf(model))
        assert.equal(set.isEmpty, model.size === 0)
        assert.equal(set.min, model.size === 0 ? -1 : Math.min(...model))
        assert.equal(set.max, model.size === 0 ? -1 : Math.max(...model))
        const inside = Array.from({ length: limit - start }, (_, index) => start + index)
        assert.equal(
          set.containsRange(start, limit),
          inside.every((value) => model.has(value)),
        )
        for (let value = 0; value < space; value++) {
          assert.equal(set.contains(value), model.has(value))
          let missing = value
          while (model.has(missing)) missing++
          assert.equal(set.firstMissing(value), missing)
          assert.equal(set.firstPresent(value), Math.min(...[...model].filter((present) => present >= value)))
        }
      }
    }),
    { numRuns: 300 },
  )
})

test('numbers up to 2^53 are told apart', () => {
  const set = new RangeSet()
  const top = Number.MAX_SAFE_INTEGER
  set.add(0, 1)
  set.add(top - 1, top)
  assert.ok(set.contains(top - 1))
  assert.ok(!set.contains(top - 2))
  assert.equal(set.max, top - 1)
  assert.ok(set.remove(top - 1, top))
  assert.equal(set.max, 0)
})

test('an empty range adds, removes and lacks nothing', () => {
  const set = new RangeSet()
  assert.equal(set.add(5, 5), false)
  assert.equal(set.add(5, 4), false)
  assert.equal(set.count, 0)
  set.add(0, 10)
  assert.equal(set.remove(5, 5), false)
  assert.deepEqual(rangesIn(set), [[0, 10]])
  assert.ok(set.containsRange(20, 20))
})
