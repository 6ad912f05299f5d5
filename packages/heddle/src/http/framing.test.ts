import assert from 'node:assert/strict'
import { test } from 'node:test'
import { badLength, contentLength, noLength, parseLength } from './framing.ts'

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
