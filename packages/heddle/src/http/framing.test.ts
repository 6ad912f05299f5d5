import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from './errors.ts'
import { badLength, contentLength, declaredLength, heldLength, lengthFault, noLength, parseLength } from './framing.ts'

test('content-length is 1*DIGIT below 2^53', () => {
  assert.equal(parseLength('0'), 0)
  assert.equal(parseLength('007'), 7)
  assert.equal(parseLength('9007199254740991'), Number.MAX_SAFE_INTEGER)
  for (const value of ['', ' 1', '1 ', '+1', '-1', '1.0', '0x1', '1e3', '1,1', '1, 1', '9007199254740992', '99999999999999999999', '１']) {
    assert.equal(parseLength(value), badLength, value)
  }
})

test('no content-length, one, and two', () => {
  assert.equal(contentLength(['a', 'b']), noLength)
  assert.equal(contentLength(['a', 'b', 'content-length', '5']), 5)
  assert.equal(contentLength(['content-length', '5', 'content-length', '5']), badLength)
  assert.equal(contentLength(['content-length', 'x']), badLength)
})

test('the length of a message to send: malformed, repeated, and one that no content follows', () => {
  assert.equal(declaredLength(['content-length', '5'], false), 5)
  assert.equal(declaredLength(['content-length', '0'], true), 0)
  assert.equal(declaredLength([], true), noLength)
  assert.throws(() => declaredLength(['content-length', 'x'], false), UsageError)
  assert.throws(() => declaredLength(['content-length', '1'], true), UsageError)
})

test('content is held to its length: never more, and not less at the end', () => {
  assert.equal(lengthFault(noLength, 5, true), '')
  assert.equal(lengthFault(5, 4, false), '')
  assert.equal(lengthFault(5, 5, true), '')
  assert.match(lengthFault(5, 4, true), /4 octets came/)
  assert.match(lengthFault(5, 6, false), /more came/)
})

test('the length of a response without content describes something else', () => {
  assert.equal(heldLength(false, 200, 7), 7)
  assert.equal(heldLength(true, 200, 7), 0)
  assert.equal(heldLength(false, 304, 7), 0)
})
