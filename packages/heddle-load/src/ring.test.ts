import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Ring } from './ring.ts'

test('first in, first out, as an array is', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(), fc.constant('shift' as const)), { maxLength: 300 }), (steps) => {
      const ring = new Ring<number>()
      const twin: number[] = []
      for (const step of steps) {
        if (step === 'shift') equal(ring.shift(), twin.shift())
        else {
          ring.push(step)
          twin.push(step)
        }
        equal(ring.length, twin.length)
      }
      ring.clear()
      equal(ring.length, 0)
      equal(ring.shift(), undefined)
    }),
  )
})
