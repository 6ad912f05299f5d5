import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MessageTracker } from './message-tracker.ts'

function message(size: number, compressed: boolean): Buffer {
  const whole = Buffer.alloc(5 + size, 7)
  whole[0] = compressed ? 1 : 0
  whole.writeUInt32BE(size, 1)
  return whole
}

test('messages end where their lengths say, however the octets come', () => {
  const pieces = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 })
  const messages = fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.boolean()), { maxLength: 8 })
  fc.assert(
    fc.property(messages, pieces, (shapes, sizes) => {
      const all = shapes.map(([size, compressed]) => message(size, compressed))
      const content = Buffer.concat(all)
      const boundaries = new Set(all.map((_, index) => all.slice(0, index).reduce((sum, one) => sum + one.length, 0)))
      boundaries.add(content.length)
      const tracker = new MessageTracker()
      for (let at = 0, i = 0; at < content.length; i++) {
        const limit = Math.min(content.length, at + (sizes[i % sizes.length] as number))
        tracker.pass(content, at, limit)
        at = limit
        equal(tracker.atBoundary, boundaries.has(at), `at ${at} of ${content.length}`)
      }
      equal(tracker.atBoundary, true)
    }),
  )
})

test('a message may have 4 GiB', () => {
  const tracker = new MessageTracker()
  tracker.pass(Buffer.from([1, 0xff, 0xff, 0xff, 0xff]), 0, 5)
  const piece = Buffer.alloc(65_536)
  for (let i = 0; i < 65_536; i++) {
    equal(tracker.atBoundary, false)
    tracker.pass(piece, 0, i === 65_535 ? 65_535 : 65_536)
  }
  equal(tracker.atBoundary, true)
})
