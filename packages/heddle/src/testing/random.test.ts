import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from './random.ts'

test('the same seed gives the same sequence, another seed another one', () => {
  const draw = (seed: number): number[] => {
    const random = new Random(seed)
    return Array.from({ length: 50 }, () => random.next())
  }
  assert.deepEqual(draw(7), draw(7))
  for (let seed = 0; seed < 100; seed++) assert.notDeepEqual(draw(seed), draw(seed + 1))
})

test('the sequence is fixed: a seed in a bug report keeps its meaning', () => {
  const random = new Random(1)
  assert.deepEqual([random.next(), random.next(), random.next()], [2_864_718_319, 382_396_905, 3_862_504_874])
})

test('integer covers its whole range evenly, both ends included', () => {
  const random = new Random(3)
  const counts = Array.from({ length: 10 }, () => 0)
  for (let i = 0; i < 10_000; i++) {
    const drawn = random.integer(5, 14)
    counts[drawn - 5] = (counts[drawn - 5] as number) + 1
  }
  for (const count of counts) assert.ok(count > 800 && count < 1200, String(counts))
})

test('length stays in bounds and gives small and large values alike', () => {
  const random = new Random(4)
  let small = 0
  let large = 0
  for (let i = 0; i < 2000; i++) {
    const length = random.length(100_000)
    assert.ok(length >= 0 && length <= 100_000)
    if (length < 100) small++
    if (length > 10_000) large++
  }
  assert.ok(small > 300 && large > 300, `${small} ${large}`)
  assert.equal(new Random(1).length(0), 0)
})

test('shuffle keeps every item and leaves the original alone', () => {
  const items = [1, 2, 3, 4, 5, 6, 7, 8]
  const shuffled = new Random(9).shuffle(items)
  assert.deepEqual(items, [1, 2, 3, 4, 5, 6, 7, 8])
  assert.notDeepEqual(shuffled, items)
  assert.deepEqual(
    shuffled.toSorted((a, b) => a - b),
    items,
  )
})

test('bytes has the length asked for, and every octet occurs', () => {
  for (let length = 0; length < 10; length++) assert.equal(new Random(2).bytes(length).length, length)
  assert.equal(new Set(new Random(2).bytes(10_000)).size, 256)
})

test('a fork does not shift its parent beyond the one draw', () => {
  const a = new Random(5)
  const b = new Random(5)
  a.fork().bytes(100)
  b.next()
  assert.equal(a.next(), b.next())
})
