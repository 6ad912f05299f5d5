import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { originFrom, targetUrl } from './index.ts'

const piece = fc.constantFrom(
  '/',
  '.',
  '..',
  '%2e',
  '%2E',
  '%20',
  '%',
  '\\',
  '?',
  "'",
  '"',
  '<',
  '`',
  '{',
  '|',
  '^',
  '[',
  '~',
  'a',
  'B',
  '1',
  ':',
  '@',
  ';',
  '&',
  '=',
  '+',
  '//',
)

test('the quick form of a URL is the one the URL standard gives', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const path = `/${pieces.join('')}`
      assert.equal(targetUrl('http://example.org', path), new URL(`http://example.org${path}`).href)
    }),
    { numRuns: 2000 },
  )
})

test('every visible octet alone, in path and query', () => {
  for (let code = 0x21; code < 0x7f; code++) {
    const char = String.fromCharCode(code)
    if (char === '#') continue
    for (const path of [`/${char}`, `/a${char}b`, `/?${char}`, `/a?b${char}c`]) {
      assert.equal(targetUrl('https://h', path), new URL(`https://h${path}`).href, path)
    }
  }
})

test('asterisk-form and authority-form have an empty path', () => {
  assert.equal(targetUrl('http://h', '*'), 'http://h/')
  assert.equal(targetUrl('http://h', ''), 'http://h/')
})

test('an authority is normalized, or refused', () => {
  assert.equal(originFrom('http', 'EXAMPLE.org:80'), 'http://example.org')
  assert.equal(originFrom('https', 'example.org:80'), 'https://example.org:80')
  assert.equal(originFrom('http', '[::1]:8080'), 'http://[::1]:8080')
  assert.equal(originFrom('http', 'example.org:'), 'http://example.org')
  for (const authority of ['', 'a b', 'user@host', 'a/b', 'a?b', 'a#b', 'h:99999', 'a\\b', '%zz', '[::1']) {
    assert.equal(originFrom('http', authority), undefined, authority)
  }
})

test('names that clients make up do not fill the memory', () => {
  for (let i = 0; i < 5000; i++) assert.equal(originFrom('http', `h${i}`), `http://h${i}`)
})
