import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { RestartDelay } from './restart-delay.ts'

test('100 ms at first, doubled up to 10 s while workers keep dying, and 100 ms again after one that lived', () => {
  const delay = new RestartDelay()
  const lives = [9_999, 0, 5_000, 0, 0, 0, 0, 0, 0, 10_000, 0, 3_600_000]
  deepEqual(
    lives.map((lived) => delay.after(lived)),
    [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 100, 200, 100],
  )
})
