import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fieldsFrom, Response, responseFields } from './index.ts'
import { recordFields } from './record-memo.ts'

test('a record that comes again has the same array, any other its own lines', () => {
  const again = (): Record<string, string> => ({ 'Content-Type': 'text/x-again', 'x-a': '1' })
  assert.deepEqual(recordFields(again()), ['content-type', 'text/x-again', 'x-a', '1'])
  const known = recordFields(again())
  assert.equal(recordFields(again()), known)
  for (const other of [
    { 'Content-Type': 'text/x-again', 'x-a': '2' },
    { 'Content-Type': 'text/x-again' },
    { 'Content-Type': 'text/x-again', 'x-a': '1', 'x-b': '2' },
    { 'x-a': '1', 'Content-Type': 'text/x-again' },
    Object.create({ 'x-a': '1' }, { 'Content-Type': { value: 'text/x-again', enumerable: true } }) as Record<string, string>,
  ]) {
    assert.deepEqual(recordFields(other), fieldsFrom(other))
  }
  assert.deepEqual(recordFields({}), [])
})

test('what belongs to one client is not kept', () => {
  for (const name of ['set-cookie', 'Set-Cookie', 'authorization', 'x-auth-token']) {
    const make = (): Record<string, string> => ({ [name]: 'a secret' })
    const fields = [recordFields(make()), recordFields(make()), recordFields(make())]
    assert.equal(new Set(fields).size, 3)
    assert.deepEqual(fields[2], [name.toLowerCase(), 'a secret'])
  }
})

test('whatever the record and however often it comes, the lines are those of Headers', () => {
  const name = fc.constantFrom('a', 'A', 'content-type', 'x-ab', 'x-ba', 'X-Ab')
  const value = fc.constantFrom('', '1', 'v', 'a much longer value', ' padded ', 'x'.repeat(200))
  fc.assert(
    fc.property(fc.array(fc.dictionary(name, value, { noNullPrototype: true }), { minLength: 1, maxLength: 20 }), (records) => {
      for (const record of [...records, ...records]) assert.deepEqual(recordFields(record), fieldsFrom(record))
    }),
  )
})

test('invalid names and values are refused each time, and values that are no strings are taken', () => {
  for (let i = 0; i < 3; i++) {
    assert.throws(() => recordFields({ 'bad name': 'x' }), TypeError)
    assert.throws(() => recordFields({ x: 'a\nb' }), TypeError)
    assert.deepEqual(recordFields({ 'x-number': 5 as never }), ['x-number', '5'])
  }
})

test('changing the headers of one response changes no other', () => {
  const make = (): Response => new Response('x', { headers: { 'content-type': 'text/x-shared' } })
  for (let i = 0; i < 3; i++) {
    const changed = make()
    changed.headers.set('x-mine', `${i}`)
    changed.headers.delete('content-type')
    assert.deepEqual(responseFields(make()), ['content-type', 'text/x-shared'])
    assert.deepEqual(responseFields(changed), ['x-mine', `${i}`])
  }
})
