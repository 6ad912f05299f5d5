import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Outbox } from '../bytes/index.ts'
import { ContentQueue } from './content-queue.ts'

const action = fc.oneof(
  fc.record({ copy: fc.uint8Array({ maxLength: 3000 }) }),
  fc.record({ owned: fc.uint8Array({ minLength: 1, maxLength: 3000 }) }),
  fc.record({ take: fc.nat({ max: 4000 }) }),
)

test('a content queue gives what it got, in order, and pins nothing once it is empty', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
      const queue = new ContentQueue()
      const given: Uint8Array[] = []
      const out = new Outbox(Buffer.alloc(0), Infinity)
      let waiting = 0
      for (const act of actions) {
        if ('copy' in act) {
          if (act.copy.length === 0) continue
          // From the midst of a buffer that is overwritten.
          const buffer = Buffer.alloc(act.copy.length + 2, 0x58)
          buffer.set(act.copy, 1)
          queue.pushCopy(buffer, 1, 1 + act.copy.length)
          buffer.fill(0xdb)
          given.push(act.copy)
          waiting += act.copy.length
        } else if ('owned' in act) {
          queue.pushOwned(act.owned)
          given.push(act.owned)
          waiting += act.owned.length
        } else {
          const count = Math.min(waiting, act.take)
          queue.take(out, count)
          waiting -= count
        }
      }
      queue.take(out, waiting)
      assert.ok(Buffer.from(out.buffer.subarray(0, out.length)).equals(Buffer.concat(given)))
      assert.equal(queue.pinned, 0)
    }),
  )
})

test('many small pieces do not cost an object each', () => {
  const queue = new ContentQueue()
  for (let i = 0; i < 65_536; i++) queue.pushCopy(Buffer.from('x'), 0, 1)
  assert.ok(queue.pinned <= 65_536 + 4_096, `${queue.pinned} octets`)
})

test('queues share buffers and never content, whatever is dropped in between', () => {
  const step = fc.record({
    queue: fc.nat({ max: 3 }),
    size: fc.nat({ max: 20_000 }),
    take: fc.nat({ max: 30_000 }),
    clear: fc.nat({ max: 9 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queues = Array.from({ length: 4 }, () => ({ queue: new ContentQueue(), letter: 0, waiting: [] as number[] }))
      for (const { queue: index, size, take, clear } of steps) {
        const entry = queues[index] as (typeof queues)[0]
        if (clear === 0) {
          entry.queue.clear()
          entry.waiting = []
          assert.equal(entry.queue.pinned, 0)
        }
        if (size > 0) {
          // Each piece has an octet of its own.
          entry.letter = (entry.letter + 4) % 252
          const octet = entry.letter + index
          entry.queue.pushCopy(Buffer.alloc(size, octet), 0, size)
          for (let i = 0; i < size; i++) entry.waiting.push(octet)
        }
        const count = Math.min(take, entry.waiting.length)
        const out = new Outbox(Buffer.alloc(0), Infinity)
        entry.queue.take(out, count)
        assert.ok(Buffer.from(entry.waiting.splice(0, count)).equals(out.buffer.subarray(0, out.length)))
      }
    }),
    { numRuns: 50 },
  )
})
