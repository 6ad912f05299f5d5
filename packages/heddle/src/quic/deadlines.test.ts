import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Deadline, Deadlines } from './deadlines.ts'

test('the earliest of all kinds is the deadline', () => {
  const deadlines = new Deadlines()
  assert.equal(deadlines.earliest, Infinity)
  for (const kind of Object.values(Deadline)) deadlines.set(kind, 100 + kind)
  assert.equal(deadlines.earliest, 100)
  deadlines.clear(Deadline.recovery)
  assert.equal(deadlines.earliest, 101)
  assert.equal(deadlines.at(Deadline.closed), 108)
  deadlines.set(Deadline.closed, 5)
  assert.equal(deadlines.earliest, 5)
  assert.ok(deadlines.isDue(Deadline.closed, 5) && !deadlines.isDue(Deadline.closed, 4))
  deadlines.clearAll()
  assert.equal(deadlines.earliest, Infinity)
})
