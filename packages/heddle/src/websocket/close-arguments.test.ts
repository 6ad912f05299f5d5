import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closeArguments } from './close-arguments.ts'

test('codes: 1000 and 3000 to 4999; a server may send all that can be sent', () => {
  for (const code of [1000, 3000, 4999]) assert.deepEqual(closeArguments(code, undefined, false), [code, undefined])
  for (const code of [0, 999, 1001, 1005, 1006, 1011, 2999, 5000, 65_535]) {
    assert.throws(() => closeArguments(code, undefined, false), { name: 'InvalidAccessError', constructor: DOMException }, String(code))
  }
  for (const code of [1001, 1008, 1011, 1012, 4000]) assert.deepEqual(closeArguments(code, 'x', true), [code, 'x'])
  for (const code of [1004, 1005, 1006, 1015, 2000]) assert.throws(() => closeArguments(code, '', true), { name: 'InvalidAccessError' })
})

test('a code is clamped and rounded as Web IDL says', () => {
  assert.deepEqual(closeArguments('3000', undefined, false), [3000, undefined])
  assert.deepEqual(closeArguments(2999.5, undefined, false), [3000, undefined])
  assert.deepEqual(closeArguments(3000.5, undefined, false), [3000, undefined])
  assert.deepEqual(closeArguments(999.5, undefined, false), [1000, undefined])
  for (const code of [NaN, null, 'x', -1, 1e9, Infinity, {}])
    assert.throws(() => closeArguments(code, undefined, false), { name: 'InvalidAccessError' })
})

test('a reason has 123 bytes of UTF-8 at most, and no lone surrogates', () => {
  assert.deepEqual(closeArguments(1000, 'é'.repeat(61), false), [1000, 'é'.repeat(61)])
  for (const reason of ['x'.repeat(124), 'é'.repeat(62)]) assert.throws(() => closeArguments(1000, reason, false), { name: 'SyntaxError' })
  assert.deepEqual(closeArguments(3000, 'a\ud800', false), [3000, 'a\ufffd'])
  assert.deepEqual(closeArguments(3000, null, false), [3000, 'null'])
  // The code is looked at first.
  assert.throws(() => closeArguments(1, 'x'.repeat(124), false), { name: 'InvalidAccessError' })
})

test('without a code a Close has neither; with a reason alone the code is 1000', () => {
  assert.deepEqual(closeArguments(undefined, undefined, false), [undefined, undefined])
  assert.deepEqual(closeArguments(undefined, '', false), [undefined, ''])
  assert.deepEqual(closeArguments(undefined, 'bye', false), [1000, 'bye'])
})
