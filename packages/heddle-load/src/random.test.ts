import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SeededRandom, WeightedChoice } from './random.ts'

test('numbers from 0 to below 1, spread evenly', () => {
  const random = new SeededRandom(42)
  const tenths = Array.from({ length: 10 }, () => 0)
  for (let i = 0; i < 100_000; i++) {
    const next = random.next()
    ok(next >= 0 && next < 1)
    tenths[Math.floor(next * 10)]!++
  }
  for (const count of tenths) ok(Math.abs(count - 10_000) < 500, String(tenths))
})

test('a choice by weight is what a search from the left would be', () => {
  const weights = fc.array(fc.double({ min: 0.001, max: 1_000, noNaN: true }), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(weights, fc.nat(), (given, seed) => {
      const choice = new WeightedChoice(given, new SeededRandom(seed))
      const twin = new SeededRandom(seed)
      const total = given.reduce((sum, weight) => sum + weight, 0)
      for (let i = 0; i < 20; i++) {
        const point = given.length === 1 ? 0 : twin.next() * total
        let expected = 0
        let sum = given[0] as number
        while (point >= sum && expected < given.length - 1) sum += given[++expected] as number
        equal(choice.next(), expected)
      }
    }),
  )
})

test('often and seldom', () => {
  const choice = new WeightedChoice([9, 0.5, 0.5], new SeededRandom(3))
  const counts = [0, 0, 0]
  for (let i = 0; i < 100_000; i++) counts[choice.next()]!++
  deepEqual(
    counts.map((count) => Math.round(count / 1_000)),
    [90, 5, 5],
  )
})
