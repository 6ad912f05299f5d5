import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { test } from 'node:test'
import fc from 'fast-check'
import { Utf8Reader } from './utf8.ts'

/** How many octets of `bytes` can be the beginning of a text: a decoder that fails says so, whatever could follow. */
function goodLength(bytes: Uint8Array): number {
  const endings = ['', '80', 'bf', '8080', 'bfbf', '808080', 'bfbfbf', '9080', '908080', 'a080', '9f80']
  const canBecomeText = (start: Uint8Array): boolean => endings.some((ending) => isUtf8(Buffer.concat([start, Buffer.from(ending, 'hex')])))
  for (let length = 1; length <= bytes.length; length++) if (!canBecomeText(bytes.subarray(0, length))) return length - 1
  return bytes.length
}

/** Octets that are text, nearly text, or anything. */
const nearlyText = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }).map((text) => Buffer.from(text)) },
      { weight: 3, arbitrary: fc.string({ maxLength: 300 }).map((text) => Buffer.from(text)) },
      { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 2 }).map((bytes) => Buffer.from(bytes)) },
    ),
    { maxLength: 8 },
  )
  .map((parts) => Buffer.concat(parts))

for (const [name, native] of [
  ['by the loop', undefined],
  ['with the native function', isUtf8],
] as const) {
  test(`a whole text, ${name}`, () => {
    fc.assert(
      fc.property(nearlyText, fc.nat(5), (bytes, before) => {
        const buffer = Buffer.concat([Buffer.alloc(before, 0xff), bytes, Buffer.from([0x80])])
        assert.equal(new Utf8Reader(native).isText(buffer, before, before + bytes.length), isUtf8(bytes))
      }),
      { numRuns: 500 },
    )
  })

  test(`in pieces, a fault is seen in the piece that has it, ${name}`, () => {
    fc.assert(
      fc.property(nearlyText, fc.array(fc.nat(1_500), { maxLength: 5 }), (bytes, cuts) => {
        const reader = new Utf8Reader(native)
        reader.reset()
        const good = goodLength(bytes)
        let at = 0
        let faultIn = -1
        for (const cut of [...cuts.map((each) => Math.min(each, bytes.length)).toSorted((a, b) => a - b), bytes.length]) {
          if (!reader.read(bytes, at, cut)) {
            faultIn = cut
            assert.ok(good < cut && good >= at, `the fault is at ${good}, it was seen in ${at}–${cut}`)
            break
          }
          assert.ok(good >= cut, `the fault at ${good} was not seen in ${at}–${cut}`)
          at = cut
        }
        if (faultIn < 0) assert.equal(reader.complete, isUtf8(bytes))
      }),
      { numRuns: 500 },
    )
  })
}

test('nothing of a text that breaks off in a sequence, or is none, is left for the next', () => {
  // Each of these says within which bounds the next octet is, and none of the second texts begins there.
  for (const start of ['e0', 'ed', 'f0', 'f4', 'e281', 'e000', 'c2c2']) {
    for (const text of ['\u0080', 'À', 'ﾀ', '\u{10ffff}', '\u{10000}', '\ud7ff', '\u0800']) {
      const bytes = Buffer.from(text)
      for (const isWhole of [true, false]) {
        const reader = new Utf8Reader(undefined)
        reader.read(Buffer.from(start, 'hex'), 0, start.length / 2)
        if (isWhole) assert.equal(reader.isText(bytes, 0, bytes.length), true, `${start}, then ${text}`)
        else {
          reader.reset()
          assert.equal(reader.read(bytes, 0, bytes.length) && reader.complete, true, `${start}, then ${text} in pieces`)
        }
      }
    }
  }
})

test('a long text is given to the native function, but for what is at its ends when it comes in pieces', () => {
  const asked: number[] = []
  const reader = new Utf8Reader((bytes) => {
    asked.push(bytes.length)
    return isUtf8(bytes)
  })
  const words = Buffer.from('世界'.repeat(1_000))
  assert.equal(reader.isText(words, 0, words.length), true)
  reader.reset()
  assert.equal(reader.read(words, 0, 2_999), true)
  assert.equal(reader.read(words, 2_999, words.length), true)
  assert.equal(reader.complete, true)
  assert.deepEqual(asked, [6_000, 2_997, 2_997])
})
