import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fieldsOf, Headers, headersFrom } from './index.ts'

const name = fc.constantFrom('a', 'A', 'b', 'accept', 'Accept', 'cookie', 'Cookie', 'set-cookie', 'Set-Cookie', 'x-Z')
const badName = fc.constantFrom('', 'a b', 'a:', 'é', '\u212a', 'a\n', '(', '\u0100')
const value = fc.oneof(
  fc.constantFrom('', '1', ' 2 ', '\t3', 'a, b', 'é', '\n4\r\n', 'x y'),
  fc.string({ unit: fc.constantFrom('a', ' ', ',', 'ÿ'), maxLength: 6 }),
)
const badValue = fc.constantFrom('a\nb', 'a\0', 'Ā', 'a\r', '\ud83d').filter((text) => text !== 'a\r')
const anyName = fc.oneof({ weight: 9, arbitrary: name }, { weight: 1, arbitrary: badName })
const anyValue = fc.oneof({ weight: 9, arbitrary: value }, { weight: 1, arbitrary: badValue })
type Step = [method: 'append' | 'set' | 'delete' | 'get' | 'has', name: string, value: string]
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.tuple(fc.constantFrom('append', 'append', 'set', 'delete', 'get', 'has'), anyName, anyValue),
)

function run(headers: Headers | globalThis.Headers, [method, key, text]: Step): unknown {
  try {
    if (method === 'append' || method === 'set') return headers[method](key, text)
    return headers[method](key)
  } catch (error) {
    return (error as Error).constructor
  }
}

test('any sequence of calls does what it does in Node', () => {
  fc.assert(
    fc.property(steps, (calls) => {
      const ours = new Headers()
      const theirs = new globalThis.Headers()
      for (const call of calls) {
        assert.equal(run(ours, call), run(theirs, call))
        assert.deepEqual([...ours], [...theirs])
        assert.deepEqual(ours.getSetCookie(), theirs.getSetCookie())
      }
      assert.deepEqual([...ours.keys()], [...theirs.keys()])
      assert.deepEqual([...ours.values()], [...theirs.values()])
    }),
  )
})

test('the same inits are taken and refused as in Node', () => {
  const inits: unknown[] = [
    undefined,
    {},
    [],
    { a: '1', B: '2' },
    [
      ['a', '1'],
      ['a', '2'],
    ],
    new Map([['a', '1']]),
    new globalThis.Headers([
      ['set-cookie', '1'],
      ['set-cookie', '2'],
    ]),
    { a: 1 },
    [['a']],
    [['a', 'b', 'c']],
    { 'a b': '1' },
    { a: 'b\nc' },
    null,
    5,
    'text',
  ]
  for (const init of inits) {
    const [ours, theirs] = [Headers, globalThis.Headers].map((Class) => {
      try {
        return [...new Class(init as never)]
      } catch (error) {
        return (error as Error).constructor
      }
    })
    assert.deepEqual(ours, theirs, `init ${JSON.stringify(init)}`)
  }
})

test('controls in a value are refused at once, beyond what Node does', () => {
  assert.throws(() => new Headers({ a: 'b\u0001' }), TypeError)
  assert.throws(() => new Headers().set('a', '\u007f'), TypeError)
})

test('received fields are shared until something changes', () => {
  const fields = ['a', '1', 'b', '2'] as const
  const headers = headersFrom(fields, false)
  assert.equal(fieldsOf(headers), fields)
  headers.append('c', '3')
  assert.deepEqual(fields, ['a', '1', 'b', '2'])
  assert.deepEqual(fieldsOf(headers), ['a', '1', 'b', '2', 'c', '3'])
})

test('an array that was handed out is not changed afterwards', () => {
  const headers = new Headers({ a: '1' })
  const given = fieldsOf(headers)
  headers.set('a', '2')
  assert.deepEqual(given, ['a', '1'])
  const copy = new Headers(headers)
  headers.set('a', '3')
  assert.equal(copy.get('a'), '2')
  copy.set('a', '4')
  assert.equal(headers.get('a'), '3')
})

test('immutable headers refuse every change', () => {
  const headers = headersFrom(['a', '1'], true)
  assert.throws(() => headers.append('b', '2'), TypeError)
  assert.throws(() => headers.set('a', '2'), TypeError)
  assert.throws(() => headers.delete('a'), TypeError)
  assert.equal(headers.get('a'), '1')
})

test('an iterator sees what changes while it runs', () => {
  for (const Class of [Headers, globalThis.Headers]) {
    const headers = new Class({ a: '1', c: '3' })
    const seen: string[] = []
    for (const [key] of headers) {
      seen.push(key)
      if (key === 'a') headers.set('b', '2')
    }
    assert.deepEqual(seen, ['a', 'b', 'c'], Class === Headers ? 'ours' : 'Node')
  }
})

test('forEach gives value, name, headers, and this', () => {
  const headers = new Headers({ b: '2', a: '1' })
  const seen: unknown[] = []
  headers.forEach(function (this: unknown, text, key, all) {
    seen.push(this, text, key, all === headers)
  }, 'this')
  assert.deepEqual(seen, ['this', '1', 'a', true, 'this', '2', 'b', true])
  assert.throws(() => headers.forEach(undefined as never), TypeError)
})

test('Node takes our headers, and the types agree', () => {
  const native: globalThis.Headers = new Headers({ a: '1' })
  assert.equal(new globalThis.Headers(native).get('a'), '1')
  assert.equal(String(native), '[object Headers]')
})

test('an invalid value is refused in words that name its header', () => {
  const message = 'Headers.constructor: "a\\nb" is an invalid value of the header "X-Tag".'
  assert.throws(() => new Headers({ ok: 'a', 'X-Tag': 'a\nb' }), { name: 'TypeError', message })
  assert.throws(() => new Headers([['X-Tag', 'a\nb']]), { name: 'TypeError', message })
  assert.throws(() => new Headers().set('X-Tag', '\u010A'), /^TypeError: Headers\.set: "Ċ" is an invalid value of the header "X-Tag"\.$/)
  assert.throws(() => new Headers().append('X-Tag', '\u010A'), /^TypeError: Headers\.append: .* of the header "X-Tag"\.$/)
})
