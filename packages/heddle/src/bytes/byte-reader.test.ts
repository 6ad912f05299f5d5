import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByteReader } from './byte-reader.ts'

test('integers are big-endian and unsigned', () => {
  const bytes = Buffer.from('fffefdfcfbfaf9', 'hex')
  const reader = new ByteReader().start(bytes, 0, bytes.length)
  assert.deepEqual([reader.uint8(), reader.uint16(), reader.uint32()], [0xff, 0xfefd, 0xfcfbfaf9])
  assert.equal(reader.failed, false)
  assert.equal(reader.remaining, 0)
})

test('a failure stays until the reader is started again', () => {
  const bytes = Buffer.from('010203', 'hex')
  const reader = new ByteReader().start(bytes, 0, 3)
  assert.equal(reader.uint32(), 0)
  assert.equal(reader.failed, true)
  assert.equal(reader.uint8(), 0, 'what is left counts no more')
  assert.equal(reader.start(bytes, 0, 3).uint8(), 1)
  assert.equal(reader.failed, false)
})

test('skip says where the octets begin, and steps over nothing past the limit', () => {
  const bytes = new Uint8Array(10)
  const reader = new ByteReader().start(bytes, 2, 8)
  assert.equal(reader.skip(4), 2)
  assert.equal(reader.skip(0), 6)
  assert.equal(reader.skip(2 ** 62), 0)
  assert.equal(reader.failed, true)
})

test('it agrees with DataView on any bytes, and never reads past its limit', () => {
  const operation = fc.constantFrom('uint8' as const, 'uint16' as const, 'uint32' as const, 'varint' as const, 'skip' as const)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(40), fc.array(operation, { maxLength: 20 }), (bytes, cut, operations) => {
      const limit = Math.min(cut, bytes.length)
      const reader = new ByteReader().start(bytes, 0, limit)
      const twin = new SlowReader(bytes.slice(0, limit))
      for (const name of operations) {
        const read = name === 'skip' ? reader.skip(3) : reader[name]()
        assert.equal(read, twin.read(name), name)
        assert.equal(reader.failed, twin.failed)
      }
    }),
  )
})

/** The obvious way. */
class SlowReader {
  readonly bytes: Uint8Array
  at = 0
  failed = false

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  read(name: 'uint8' | 'uint16' | 'uint32' | 'varint' | 'skip'): number {
    const size = { uint8: 1, uint16: 2, uint32: 4, varint: 2 ** ((this.bytes[this.at] ?? 0) >> 6), skip: 3 }[name]
    if (this.failed || this.at + size > this.bytes.length) {
      this.failed = true
      return 0
    }
    const start = this.at
    this.at += size
    if (name === 'skip') return start
    let value = 0n
    for (let i = start; i < this.at; i++) value = (value << 8n) | BigInt(this.bytes[i] as number)
    return Number(name === 'varint' ? BigInt.asUintN(size * 8 - 2, value) : value)
  }
}
