import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseExtensions } from './extension.ts'

const none = undefined

test('what follows the grammar of RFC 6455 §9.1', () => {
  assert.deepEqual(parseExtensions('foo'), [{ name: 'foo', parameters: [] }])
  assert.deepEqual(parseExtensions('foo; bar; baz=2'), [
    {
      name: 'foo',
      parameters: [
        { name: 'bar', value: none },
        { name: 'baz', value: '2' },
      ],
    },
  ])
  assert.deepEqual(parseExtensions(' foo ;\tbar = "baz" , foo ;bar="b\\az"'), [
    { name: 'foo', parameters: [{ name: 'bar', value: 'baz' }] },
    { name: 'foo', parameters: [{ name: 'bar', value: 'baz' }] },
  ])
  // RFC 9110 §5.6.1.2: empty elements.
  assert.deepEqual(parseExtensions(', ,foo,, bar,'), [
    { name: 'foo', parameters: [] },
    { name: 'bar', parameters: [] },
  ])
  assert.deepEqual(parseExtensions('foo; a; a'), [
    {
      name: 'foo',
      parameters: [
        { name: 'a', value: none },
        { name: 'a', value: none },
      ],
    },
  ])
  assert.deepEqual(parseExtensions('__proto__; constructor=__proto__'), [
    { name: '__proto__', parameters: [{ name: 'constructor', value: '__proto__' }] },
  ])
})

test('what does not', () => {
  for (const text of [
    '',
    ' ',
    ',',
    'foo;',
    'foo; ;bar',
    'foo;bar=',
    'foo;=baz',
    'foo bar',
    'foo;bar baz',
    'foo;bar="',
    'foo;bar="baz',
    'foo;bar=""',
    'foo;bar="a b"',
    'foo;bar="a,b"',
    'foo;bar="a\\',
    'foo;bar="a"b',
    'foo;bar=a=b',
    '"foo"',
    'f\u00f6\u00f6',
    'foo\r\n',
    'foo;bar=b\u0000',
  ]) {
    assert.equal(parseExtensions(text), undefined, JSON.stringify(text))
  }
})

test('it never throws, and what it reads can be written and read again', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', 'b', ';', ',', '=', '"', '\\', ' ', '\t', 'é'), maxLength: 30 }), (text) => {
      const read = parseExtensions(text)
      if (read === undefined) return
      const written = read
        .map(({ name, parameters }) =>
          [name, ...parameters.map((each) => (each.value === undefined ? each.name : `${each.name}="${each.value}"`))].join('; '),
        )
        .join(', ')
      assert.deepEqual(parseExtensions(written), read)
    }),
    { numRuns: 2_000 },
  )
})
