import assert from 'node:assert/strict'
import { test } from 'node:test'
import { combinedFieldValue, fieldValue, fieldValues, noFields, withoutField } from './fields.ts'

const fields = ['accept', 'a', 'x', '1', 'accept', 'b', 'value', 'x']

test('looking up by name finds names, never values', () => {
  assert.equal(fieldValue(fields, 'x'), '1')
  assert.equal(fieldValue(fields, 'a'), undefined)
  assert.deepEqual(fieldValues(fields, 'accept'), ['a', 'b'])
  assert.deepEqual(fieldValues(fields, 'b'), [])
})

test('several lines of a name are combined in order', () => {
  assert.equal(combinedFieldValue(fields, 'accept'), 'a, b')
  assert.equal(combinedFieldValue(fields, 'x'), '1')
  assert.equal(combinedFieldValue(fields, 'none'), undefined)
  assert.equal(combinedFieldValue(['a', '', 'a', 'b'], 'a'), ', b')
})

test('withoutField leaves the others and the original alone', () => {
  assert.deepEqual(withoutField(fields, 'accept'), ['x', '1', 'value', 'x'])
  assert.equal(fields.length, 8)
  assert.throws(() => (noFields as string[]).push('a'), TypeError)
})
