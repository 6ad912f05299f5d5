import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Outbox } from './outbox.ts'

test('whatever is appended comes out in order, however small the first buffer', () => {
  const latin1 = fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 80 }).map((codes) => String.fromCharCode(...codes))
  const part = fc.oneof(
    latin1,
    fc.record({
      bytes: fc.uint8Array({ maxLength: 3000 }),
      from: fc.double({ min: 0, max: 1, noNaN: true }),
      to: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  )
  fc.assert(
    fc.property(fc.nat({ max: 2000 }), fc.array(part, { maxLength: 30 }), (size, parts) => {
      const out = new Outbox(Buffer.alloc(size), 10_000)
      const expected: Buffer[] = []
      for (const piece of parts) {
        if (typeof piece === 'string') {
          out.writeLatin1(piece)
          expected.push(Buffer.from(piece, 'latin1'))
        } else {
          const start = Math.floor(piece.bytes.length * Math.min(piece.from, piece.to))
          const limit = Math.floor(piece.bytes.length * Math.max(piece.from, piece.to))
          out.writeBytes(piece.bytes, start, limit)
          expected.push(Buffer.from(piece.bytes.subarray(start, limit)))
        }
      }
      const all = Buffer.concat(expected)
      assert.equal(out.length, all.length)
      assert.deepEqual(Buffer.from(out.buffer.subarray(0, out.length)), all)
      assert.equal(out.room, Math.max(0, 10_000 - all.length))
    }),
  )
})

test('reserve makes room and keeps what is there', () => {
  const out = new Outbox(Buffer.alloc(4), 100)
  out.writeLatin1('abc')
  out.reserve(100_000)
  assert.ok(out.buffer.length >= 100_003)
  assert.equal(out.length, 3)
  assert.equal(out.buffer.toString('latin1', 0, 3), 'abc')
  const { buffer } = out
  out.reserve(10)
  assert.equal(out.buffer, buffer)
})

test('room is never negative', () => {
  const out = new Outbox(Buffer.alloc(0), 5)
  out.writeLatin1('more than five')
  assert.equal(out.room, 0)
})
