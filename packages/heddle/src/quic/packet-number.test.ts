import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodePacketNumber, packetNumberSize, writePacketNumber } from './packet-number.ts'

test('RFC 9000 A.2: as many octets as tell the number apart', () => {
  assert.equal(packetNumberSize(0xac5c02, 0xabe8b3), 2)
  assert.equal(packetNumberSize(0xace8fe, 0xabe8b3), 3)
  assert.equal(packetNumberSize(0, -1), 1)
  assert.equal(packetNumberSize(127, -1), 1)
  assert.equal(packetNumberSize(128, -1), 2)
})

test('RFC 9000 A.3: the number nearest to the next one', () => {
  assert.equal(decodePacketNumber(0x9b32, 2, 0xa82f30ea), 0xa82f9b32)
})

test('half a window ahead is still ahead, half a window behind is not behind', () => {
  assert.equal(decodePacketNumber(128, 1, 255), 384)
  assert.equal(decodePacketNumber(129, 1, 255), 129)
  assert.equal(decodePacketNumber(0, 1, 383), 512)
  assert.equal(decodePacketNumber(1, 1, 383), 257)
})

test('the first numbers are themselves, whatever their size', () => {
  for (const size of [1, 2, 3, 4]) {
    assert.equal(decodePacketNumber(0, size, -1), 0)
    assert.equal(decodePacketNumber(2, size, -1), 2)
  }
  assert.equal(decodePacketNumber(0xff, 1, -1), 0xff, 'never below 0')
})

test('what is written is read again by a peer that has received anything from the acknowledged number on', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -1, max: 2 ** 50 }),
      fc.nat(2 ** 30),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (acknowledged, ahead, part) => {
        const packetNumber = acknowledged + 1 + ahead
        const size = packetNumberSize(packetNumber, acknowledged)
        const bytes = new Uint8Array(6).fill(0xee)
        writePacketNumber(bytes, 1, packetNumber, size)
        let truncated = 0
        for (let i = 1; i <= size; i++) truncated = truncated * 256 + (bytes[i] as number)
        // Its peer has received the acknowledged number at least, and nothing above the one before this.
        const largestReceived = acknowledged + Math.floor(ahead * part)
        assert.equal(decodePacketNumber(truncated, size, largestReceived), packetNumber)
        assert.equal(bytes[0], 0xee)
        assert.equal(bytes[size + 1], 0xee)
      },
    ),
  )
})

test('it agrees with the pseudocode of RFC 9000 A.3', () => {
  fc.assert(
    fc.property(fc.integer({ min: -1, max: 2 ** 40 }), fc.integer({ min: 1, max: 4 }), fc.nat(2 ** 32 - 1), (largest, size, any) => {
      const truncated = any % 2 ** (8 * size)
      const [window, expected] = [1n << BigInt(8 * size), BigInt(largest) + 1n]
      const half = window / 2n
      const candidate = (expected & ~(window - 1n)) | BigInt(truncated)
      let wanted = candidate
      if (candidate <= expected - half && candidate < (1n << 62n) - window) wanted = candidate + window
      else if (candidate > expected + half && candidate >= window) wanted = candidate - window
      assert.equal(decodePacketNumber(truncated, size, largest), Number(wanted))
    }),
  )
})
