import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByteReader } from './byte-reader.ts'
import { varintSize, writeVarint, writeVarintOfSize } from './varint.ts'

/** RFC 9000 §A.1; the last two show a coding that is longer than needed, and a value that a double rounds. */
const vectors = [
  ['25', 37],
  ['7bbd', 15_293],
  ['9d7f3e7d', 494_878_333],
  ['4025', 37],
  ['c2197c5eff14e88c', Number(151_288_809_941_952_652n)],
] as const

const value = fc.oneof(
  fc.constantFrom(0, 63, 64, 16_383, 16_384, 2 ** 30 - 1, 2 ** 30, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1),
  fc.maxSafeNat(),
  fc.nat(),
  fc.nat(20_000),
)
const sizes = [1, 2, 4, 8] as const

test('RFC 9000 A.1: the examples are read', () => {
  for (const [hex, expected] of vectors) {
    const bytes = Buffer.from(hex, 'hex')
    const reader = new ByteReader().start(bytes, 0, bytes.length)
    assert.equal(reader.varint(), expected, hex)
    assert.equal(reader.failed, false)
    assert.equal(reader.remaining, 0)
  }
})

test('RFC 9000 A.1: the examples that are shortest are written', () => {
  for (const [hex, number] of vectors.slice(0, 3)) {
    const bytes = Buffer.alloc(8)
    const behind = writeVarint(bytes, 0, number)
    assert.equal(bytes.toString('hex', 0, behind), hex)
    assert.equal(varintSize(number), behind)
  }
})

test('what is written is read again, at any position, and nothing beside it is touched', () => {
  fc.assert(
    fc.property(value, fc.nat(5), (number, start) => {
      const bytes = new Uint8Array(16).fill(0xee)
      const behind = writeVarint(bytes, start, number)
      assert.equal(behind - start, varintSize(number))
      const reader = new ByteReader().start(bytes, start, behind)
      assert.equal(reader.varint(), number)
      assert.equal(reader.at, behind)
      assert.ok(bytes.every((octet, at) => (at >= start && at < behind) || octet === 0xee))
    }),
  )
})

test('a value is the same in every size that holds it', () => {
  fc.assert(
    fc.property(value, (number) => {
      for (const size of sizes.slice(sizes.indexOf(varintSize(number)))) {
        const bytes = new Uint8Array(8)
        assert.equal(writeVarintOfSize(bytes, 0, number, size), size)
        assert.equal(new ByteReader().start(bytes, 0, size).varint(), number)
      }
    }),
  )
})

test('every truncation fails, says 0 and leaves nothing', () => {
  for (const [hex] of vectors) {
    const bytes = Buffer.from(hex, 'hex')
    for (let limit = 0; limit < bytes.length; limit++) {
      const reader = new ByteReader().start(bytes, 0, limit)
      assert.equal(reader.varint(), 0)
      assert.equal(reader.failed, true)
      assert.equal(reader.remaining, 0)
    }
  }
})
