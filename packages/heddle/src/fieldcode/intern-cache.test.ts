import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { huffmanLength, writeHuffman } from './huffman.ts'
import { Kind } from './entry.ts'
import { InternCache, uncached, undecodable } from './intern-cache.ts'

function coded(text: string, huffman: boolean): Buffer {
  if (!huffman) return Buffer.from(text, 'latin1')
  const bytes = Buffer.alloc(huffmanLength(text))
  writeHuffman(text, bytes, 0)
  return bytes
}

test('what is read is what was written, from the cache or not, however small it is', () => {
  const texts = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'accept', 'x'.repeat(128), 'y'.repeat(200), '', 'ÿ\u0001'), fc.boolean()), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(texts, fc.constantFrom(1, 2, 64), (all, slots) => {
      const cache = new InternCache(slots, false)
      for (const [text, huffman] of all) {
        const bytes = Buffer.concat([Buffer.from([1]), coded(text, huffman), Buffer.from([2])])
        const slot = cache.read(bytes, 1, bytes.length - 1, huffman)
        assert.notEqual(slot, undecodable)
        assert.equal(cache.text, text)
        // A second reading comes from where the first one put it.
        if (slot >= 0) assert.equal(cache.read(bytes, 1, bytes.length - 1, huffman), slot)
        assert.equal(cache.text, text)
      }
    }),
  )
})

test('names and values are judged when they enter', () => {
  const names = new InternCache(64, true)
  for (const [name, kind] of [
    [':path', Kind.Path],
    ['x-anything', Kind.Regular],
    ['connection', Kind.Malformed],
    ['Upper', Kind.Malformed],
  ] as const) {
    for (let times = 0; times < 2; times++) {
      const bytes = Buffer.from(name)
      assert.equal(names.kinds[names.read(bytes, 0, bytes.length, false)], kind)
    }
  }
  const values = new InternCache(64, false)
  const bad = Buffer.from('a\nb')
  assert.equal(values.kinds[values.read(bad, 0, 3, false)], Kind.Malformed)
})

test('secrets leave no trace', () => {
  const cache = new InternCache(64, false)
  const secret = Buffer.from('Bearer abc')
  assert.equal(cache.readSecret(secret, 0, secret.length, false), uncached)
  assert.equal(cache.text, 'Bearer abc')
  assert.ok(cache.texts.every((text) => text === ''))
})

test('what is not Huffman code is not decoded', () => {
  const cache = new InternCache(64, false)
  assert.equal(cache.read(Buffer.from([0xff, 0xff, 0xff, 0xff]), 0, 4, true), undecodable)
  assert.equal(cache.readSecret(Buffer.from([0x00]), 0, 1, true), undecodable)
})
