import assert from 'node:assert/strict'
import { test } from 'node:test'
import { latin1Slice, latin1Write } from './latin1.ts'

test('every octet survives the way to a string and back', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
  const text = latin1Slice(bytes, 0, 256)
  assert.equal(text, String.fromCharCode(...bytes))
  const target = new Uint8Array(300)
  assert.equal(latin1Write(target, text, 20), 256)
  assert.deepEqual(target.subarray(20, 276), bytes)
  assert.equal(target[19], 0)
  assert.equal(target[276], 0)
})

test('a slice takes start and limit', () => {
  assert.equal(latin1Slice(Buffer.from('hello world'), 6, 9), 'wor')
  assert.equal(latin1Slice(Buffer.from('hello'), 2, 2), '')
})
