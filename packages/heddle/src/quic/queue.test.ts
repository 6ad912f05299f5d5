import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Queue } from './queue.ts'

test('whatever comes and goes: the order is that of an array', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('push', 'shift'), fc.nat(80))), (steps) => {
      const queue = new Queue<number>()
      const twin: number[] = []
      let number = 0
      for (const [does, count] of steps) {
        for (let i = 0; i < count; i++) {
          if (does === 'shift') assert.equal(queue.shift(), twin.shift())
          else {
            queue.push(number)
            twin.push(number++)
          }
          assert.equal(queue.length, twin.length)
          assert.equal(queue.first, twin[0])
        }
      }
      queue.clear()
      assert.equal(queue.length, 0)
      assert.equal(queue.first, undefined)
    }),
  )
})

test('a hundred thousand wait and leave in their order', () => {
  const queue = new Queue<number>()
  for (let i = 0; i < 100_000; i++) queue.push(i)
  for (let i = 0; i < 100_000; i++) if (queue.shift() !== i) assert.fail(`${i} is out of order`)
  assert.equal(queue.shift(), undefined)
})
