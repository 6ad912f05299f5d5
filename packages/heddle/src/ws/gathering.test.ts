import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Gathering } from './gathering.ts'

test('bytes come out as they went in, with some taken from the front', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.uint8Array({ maxLength: 2_000 }), fc.nat(3_000)), { maxLength: 20 }), (steps) => {
      const gathering = new Gathering()
      let model = Buffer.alloc(0)
      for (const [piece, taken] of steps) {
        gathering.append(piece, 0, piece.length, Infinity)
        model = Buffer.concat([model, piece])
        const count = Math.min(taken, gathering.length)
        gathering.start += count
        model = model.subarray(count)
        assert.ok(gathering.buffer.subarray(gathering.start, gathering.limit).equals(model))
      }
      gathering.clear()
      assert.equal(gathering.length, 0)
    }),
  )
})

test('it grows with what arrives, not with what is announced', () => {
  const gathering = new Gathering()
  const announced = 16 * 1024 * 1024
  let arrived = 0
  for (const size of [1, 100, 5_000, 60_000, 100_000, 1_000_000, 3_000_000]) {
    gathering.append(Buffer.alloc(size), 0, size, announced)
    arrived += size
    assert.ok(gathering.buffer.length <= Math.max(1_024, arrived * 16), `${gathering.buffer.length} bytes for ${arrived}`)
    if (arrived > 65_536) assert.ok(gathering.buffer.length <= arrived * 2, `${gathering.buffer.length} bytes for ${arrived}`)
  }
})

test('what is announced is not exceeded, so a message of two pieces takes the memory of one', () => {
  const gathering = new Gathering()
  gathering.append(Buffer.alloc(150_000), 0, 150_000, 200_000)
  assert.equal(gathering.buffer.length, 200_000)
})

test('what was let go is used again, what was forgotten is not', () => {
  const first = new Gathering()
  first.append(Buffer.from('a'), 0, 1, 1)
  const { buffer } = first
  first.clear()
  const second = new Gathering()
  second.append(Buffer.from('b'), 0, 1, 1)
  assert.equal(second.buffer, buffer)
  second.forget()
  const third = new Gathering()
  third.append(Buffer.from('c'), 0, 1, 1)
  assert.notEqual(third.buffer, buffer)
  assert.equal(buffer[0], 0x62)
})
