import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeInsertCount, encodeInsertCount, maxEntries } from './insert-count.ts'

test('the example of RFC 9204 §4.5.1.1: a table of 100 octets, 10 insertions, and 4 stands for 9', () => {
  const entries = maxEntries(100)
  assert.equal(entries, 3)
  assert.equal(encodeInsertCount(9, entries), 4)
  assert.equal(decodeInsertCount(4, entries, 10), 9)
})

test('what an encoder can write is read back, however far the decoder is behind or ahead', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), fc.nat(1e9), fc.nat(), (entries, required, offset) => {
      // The decoder has the entries a section needs and at most as many more as fit, or lacks at most all of them.
      const inserted = Math.max(0, required - entries + (offset % (2 * entries)))
      assert.equal(decodeInsertCount(encodeInsertCount(required, entries), entries, inserted), required)
    }),
  )
})

test('what no encoder can write is refused', () => {
  assert.equal(decodeInsertCount(1, 0, 0), -1, 'there is no table')
  assert.equal(decodeInsertCount(7, 3, 10), -1, 'more than the full range')
  assert.equal(decodeInsertCount(1, 3, 0), -1, 'a count of 0 is written as 0')
  assert.equal(decodeInsertCount(6, 3, 0), -1, 'more entries than fit')
  assert.equal(decodeInsertCount(4, 3, 0), 3)
  for (let entries = 0; entries < 6; entries++) {
    for (let inserted = 0; inserted < 30; inserted++) {
      for (let encoded = 1; encoded < 14; encoded++) {
        const required = decodeInsertCount(encoded, entries, inserted)
        if (required === -1) continue
        assert.ok(required > 0 && required > inserted - entries && required <= inserted + entries)
        assert.equal(encodeInsertCount(required, entries), encoded)
      }
    }
  }
})
