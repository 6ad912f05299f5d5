import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IntegerReader, tooLarge, truncated, writeInteger } from './integer.ts'

const reader = new IntegerReader()

test('the examples of RFC 7541 Appendix C.1', () => {
  assert.equal(reader.read(Uint8Array.of(0b11101010), 0, 1, 5), 10)
  assert.equal(reader.read(Uint8Array.of(0b00011111, 0b10011010, 0b00001010), 0, 3, 5), 1337)
  assert.equal(reader.at, 3)
  assert.equal(reader.read(Uint8Array.of(42), 0, 1, 8), 42)
  const target = new Uint8Array(6)
  assert.equal(writeInteger(1337, 5, 0xe0, target, 0), 3)
  assert.deepEqual([...target.subarray(0, 3)], [0xff, 0b10011010, 0b00001010])
})

test('what was written is read, at every truncation nothing is', () => {
  const bytes = new Uint8Array(8)
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), fc.integer({ min: 1, max: 8 }), (value, prefixBits) => {
      const limit = writeInteger(value, prefixBits, 0, bytes, 0)
      assert.ok(limit <= 6)
      assert.equal(reader.read(bytes, 0, limit, prefixBits), value)
      assert.equal(reader.at, limit)
      for (let end = 0; end < limit; end++) assert.equal(reader.read(bytes, 0, end, prefixBits), truncated)
    }),
  )
})

test('larger than 2^32 - 1, or endless zeros, is too large', () => {
  assert.equal(reader.read(Uint8Array.of(0x1f, 0xff, 0xff, 0xff, 0xff, 0x7f), 0, 6, 5), tooLarge)
  assert.equal(reader.read(Uint8Array.of(0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00), 0, 7, 5), tooLarge)
})

test('62 bits are read where stream ids, counts and a Base stand, and no more', () => {
  const bytes = new Uint8Array(16)
  const numbers = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.maxSafeInteger().map(Math.abs), fc.constant(2 ** 62 - 1024))
  fc.assert(
    fc.property(numbers, fc.integer({ min: 3, max: 8 }), (value, prefixBits) => {
      const limit = writeInteger(value, prefixBits, 0, bytes, 0)
      assert.ok(limit <= 10)
      assert.equal(reader.readLarge(bytes, 0, limit, prefixBits), value)
      assert.equal(reader.at, limit)
      for (let end = 0; end < limit; end++) assert.equal(reader.readLarge(bytes, 0, end, prefixBits), truncated)
    }),
  )
  const ones = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)
  assert.equal(reader.readLarge(ones, 0, 10, 7), tooLarge)
  assert.equal(reader.readLarge(Uint8Array.of(0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00), 0, 11, 7), tooLarge)
})
