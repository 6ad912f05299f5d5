import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isAuthority, isFieldName, isFieldValue, isPath, isToken } from './validation.ts'

test('a field name is a token without upper case', () => {
  for (const name of ['a', 'content-type', 'x_y', '!#$%&*+-.^_`|~09']) assert.ok(isFieldName(name), name)
  for (const name of ['', 'A', 'a b', 'a:', ':path', 'a\r\nb', 'ä', 'a\u0100', 'a\0', '(a)', 'a"']) assert.ok(!isFieldName(name), name)
  assert.ok(isToken('GET') && !isToken('') && !isToken('G T') && !isToken('GÉT'))
})

test('a field value that would break the line, or be truncated into one that does, is refused', () => {
  for (const value of ['', 'a', 'a b\tc', 'é\xff', '"quoted"']) assert.ok(isFieldValue(value), value)
  for (const value of ['a\r\nb', 'a\nb', 'a\rb', 'a\0b', '\u010a', 'a\u010d', '\x7f', ' a', 'a ', '\ta', '\x01', '😀']) {
    assert.ok(!isFieldValue(value), JSON.stringify(value))
  }
})

test('what isFieldValue accepts survives latin1 unchanged and holds no line break', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 20 }), (value) => {
      if (!isFieldValue(value)) return
      const bytes = Buffer.from(value, 'latin1')
      assert.equal(bytes.toString('latin1'), value)
      assert.ok(!/[\0\r\n]/.test(value))
    }),
    { numRuns: 2000 },
  )
})

test('a path begins with a slash and holds no space, control, fragment or byte above ASCII', () => {
  for (const path of ['/', '/a/b?c=d&e', '//x', '/%00', "/a;b=c,(d)'*!"]) assert.ok(isPath(path), path)
  for (const path of ['', 'a', '*', '/a b', '/a#b', '/a\r\n', '/\0', '/é', 'http://x/']) assert.ok(!isPath(path), path)
})

test('an authority is a host with an optional port, without user information', () => {
  for (const authority of [
    'a',
    'example.org',
    'example.org:8080',
    '127.0.0.1:1',
    '[::1]',
    '[::1]:443',
    'a_b.c',
    'xn--bcher-kva.de',
    'a:',
    'a%20b',
  ]) {
    assert.ok(isAuthority(authority), authority)
  }
  for (const authority of [
    '',
    ':80',
    'u@h',
    'u:p@h',
    'a b',
    'a/b',
    'a?b',
    'a#b',
    '[::1',
    '::1',
    'a:b',
    'a:123456',
    'a\r\nb',
    'é',
    '%zz',
    'a,b\0',
  ]) {
    assert.ok(!isAuthority(authority), authority)
  }
})

test('a long hostile authority is judged in linear time', () => {
  assert.ok(!isAuthority('%'.repeat(1024)))
  assert.ok(!isAuthority('a%20'.repeat(255) + '/'))
  assert.ok(!isAuthority('a'.repeat(2000)))
})
