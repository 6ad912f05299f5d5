import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { applyMask, rotateKey } from './mask.ts'

/** RFC 6455 §5.3, word for word. */
function masked(payload: Uint8Array, key: number): number[] {
  return Array.from(payload, (octet, i) => octet ^ ((key >>> (24 - 8 * (i % 4))) & 0xff))
}

const anyKey = fc.integer({ min: -0x8000_0000, max: 0x7fff_ffff })

test('any run of octets at any place of any buffer, and nothing around it', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), anyKey, fc.nat(9), fc.nat(9), (payload, key, before, behind) => {
      const memory = new Uint8Array(before + 8 + payload.length + behind).fill(0xaa)
      const buffer = memory.subarray(before)
      buffer.set(payload, 5)
      applyMask(buffer, 5, 5 + payload.length, key)
      assert.deepEqual([...buffer.subarray(5, 5 + payload.length)], masked(payload, key))
      const around = [...memory.subarray(0, before + 5), ...buffer.subarray(5 + payload.length)]
      assert.ok(
        around.every((octet) => octet === 0xaa),
        'octets around it stay',
      )
    }),
    { numRuns: 500 },
  )
})

test('in pieces, with the key turned', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), anyKey, fc.array(fc.nat(400), { maxLength: 6 }), (payload, key, cuts) => {
      const buffer = Uint8Array.from(payload)
      let at = 0
      let turned = key
      for (const cut of [...cuts.map((each) => Math.min(each, payload.length)).toSorted((a, b) => a - b), payload.length]) {
        applyMask(buffer, at, cut, turned)
        turned = rotateKey(turned, cut - at)
        at = cut
      }
      assert.deepEqual([...buffer], masked(payload, key))
    }),
  )
})

test('memory of every size is seen through the right view', () => {
  // One after the other, large ones between: the view that is kept must not be used for another.
  for (const size of [64, 200_000, 64, 131_072, 131_076, 50, 65]) {
    const buffer = new Uint8Array(size).fill(1)
    applyMask(buffer, 0, size, 0x0102_0304)
    assert.deepEqual([...buffer], masked(new Uint8Array(size).fill(1), 0x0102_0304))
  }
})
