import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Outbox } from '../bytes/index.ts'
import { SendQueue } from './send-queue.ts'

type Step = { readonly kind: 'copy' | 'owned' | 'line' | 'take' | 'clear' | 'hold' | 'release'; readonly size: number }

const step = fc.record<Step>({
  kind: fc.constantFrom('copy', 'copy', 'owned', 'line', 'take', 'take', 'take', 'clear', 'hold', 'release'),
  size: fc.oneof(fc.nat(20), fc.nat(3000), fc.nat(200_000)),
})

test('what goes in comes out, in order, whatever the pieces', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const queue = new SendQueue()
      // Another queue uses the same pools: its bytes must not appear in this one's.
      const other = new SendQueue()
      const out = new Outbox(Buffer.alloc(16), 0)
      let model = Buffer.alloc(0)
      let taken = 0
      let fill = 0
      let hold = Infinity
      const piece = (size: number): Buffer => Buffer.alloc(size, fill++ % 251)
      for (const { kind, size } of steps) {
        other.append(Buffer.alloc(100, 0xff), 0, 100)
        if (kind === 'copy') {
          const bytes = piece(size)
          queue.append(bytes, 0, size)
          model = Buffer.concat([model, bytes])
          bytes.fill(0xee)
        } else if (kind === 'owned') {
          const bytes = piece(size)
          queue.appendOwned(bytes)
          model = Buffer.concat([model, bytes])
        } else if (kind === 'line') {
          const bytes = piece(Math.min(size, 5000))
          queue.reserve(bytes.length)
          bytes.copy(queue.buffer, queue.limit)
          queue.commit(queue.limit + bytes.length)
          model = Buffer.concat([model, bytes])
        } else if (kind === 'take') {
          out.length = 0
          out.limit = size
          const count = queue.take(out)
          const expected = Math.min(size, model.length, Math.max(0, hold - taken))
          assert.equal(count, expected)
          assert.ok(out.buffer.subarray(0, out.length).equals(model.subarray(0, count)))
          model = model.subarray(count)
          taken += count
        } else if (kind === 'clear') {
          queue.clear()
          taken += model.length
          model = Buffer.alloc(0)
        } else {
          hold = kind === 'hold' ? queue.queued : Infinity
          queue.holdAt = hold
        }
        assert.equal(queue.length, model.length)
        assert.equal(queue.taken, taken)
        assert.equal(queue.ready, model.length > 0 && taken < hold)
        out.length = 0
        out.limit = 1000
        other.take(out)
        assert.ok(out.buffer.subarray(0, out.length).every((octet) => octet === 0xff))
      }
    }),
    { numRuns: 300 },
  )
})

test('an empty queue holds no buffer', () => {
  const queue = new SendQueue()
  queue.append(Buffer.alloc(100_000), 0, 100_000)
  queue.appendOwned(Buffer.alloc(10))
  const out = new Outbox(Buffer.alloc(16), 1_000_000)
  queue.take(out)
  assert.equal(queue.buffer.length, 0)
  queue.append(Buffer.alloc(10), 0, 10)
  queue.clear()
  assert.equal(queue.buffer.length, 0)
})

test('an owned chunk is not copied until it is taken', () => {
  const queue = new SendQueue()
  const chunk = Buffer.alloc(10, 1)
  queue.appendOwned(chunk)
  chunk.fill(2)
  const out = new Outbox(Buffer.alloc(16), 100)
  queue.take(out)
  assert.equal(out.buffer[0], 2)
})
