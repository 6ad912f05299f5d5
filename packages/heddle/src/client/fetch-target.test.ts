import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fetchTarget, parsedTarget } from './fetch-target.ts'

const spellings = [
  'http://example.org',
  'http://example.org/',
  'http://example.org?x=1',
  'http://example.org#fragment',
  'http://example.org:80/a',
  'https://example.org:443/a?b#c',
  'https://example.org:8443/a?b=c&d=%20#c',
  'http://EXAMPLE.org/Case',
  'HTTP://example.org/',
  'http://münchen.example/ä?ö#ü',
  'http://example.org/a b',
  'http://example.org/a/../b/./c',
  'http://example.org/a/%2e%2E/b',
  'http://example.org/a/..',
  'http://example.org/.hidden',
  'http://example.org/a..b/c.html',
  'http://example.org\\a\\b',
  'http://example.org/a\\b',
  'http://example.org/\ttab\nline',
  'http://exa\tmple.org/',
  '  http://example.org/trimmed  ',
  'http://example.org/a#b c ',
  'http:/example.org/one-slash',
  'http:example.org/no-slash',
  'http:///example.org/three',
  "http://example.org/it's?it's",
  'http://example.org/a^b`c{d}e|f?a^b`c{d}e|f',
  'http://example.org/"<>?"<>',
  'http://example.org/%zz?%zz',
  'http://127.1/',
  'http://0x7f.1:8080/',
  'http://[::1]:3000/v6',
  'http://[0:0::1]/v6',
  'http://example.org//double//slash',
  'http://example.org/?',
  'http://example.org/?#',
  'http://example.org/a?b?c',
  'http://example.org/\u0000',
  'http://example.org/\ud800',
]

test('every spelling means what the URL parser says, met for the first time and again', () => {
  for (const text of spellings) {
    const url = new URL(text)
    for (let round = 0; round < 3; round++) {
      const target = fetchTarget(text)
      assert.equal(target.site.origin, url.origin, text)
      assert.equal(target.site.authority, url.host, text)
      assert.equal(`${target.site.scheme}:`, url.protocol, text)
      assert.equal(target.href, url.href.replace(/#.*$/s, ''), text)
      assert.equal(url.origin + target.path, target.href, text)
    }
  }
})

test('the fast way and the parser never disagree', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: 'binary-ascii' }),
    fc.constantFrom('/', '.', '..', '/./', '/../', '%2e', '%2E', '?', '#', '\\', "'", '^', '|', ' ', '\t', '%'),
  )
  fc.assert(
    fc.property(fc.constantFrom('http://a.example', 'https://a.example:8443', 'http://a.example:80'), fc.array(piece), (prefix, pieces) => {
      const text = `${prefix}/${pieces.join('')}`
      fetchTarget(prefix)
      const fast = fetchTarget(text)
      const slow = parsedTarget(text)
      assert.deepEqual(
        { path: fast.path, href: fast.href, origin: fast.site.origin },
        { path: slow.path, href: slow.href, origin: slow.site.origin },
      )
    }),
    { numRuns: 2_000 },
  )
})

test('what is no URL, another scheme and user information are TypeErrors, also when the origin is known', () => {
  fetchTarget('http://example.org/')
  for (const text of [
    '',
    '/path',
    'example.org',
    'http://',
    'ftp://example.org/',
    'file:///etc/passwd',
    'http://user@example.org/',
    'http://user:pass@example.org/',
    'http://a:b@example.org/',
    'http://example.org:99999/',
    'http://exa mple.org/',
  ]) {
    assert.throws(() => fetchTarget(text), TypeError, text)
    assert.throws(() => fetchTarget(text), TypeError, text)
  }
})

test('a million hosts do not fill the memory: the spellings kept are bounded', () => {
  for (let i = 0; i < 5_000; i++) assert.equal(fetchTarget(`http://host-${i}.example/x`).site.authority, `host-${i}.example`)
  assert.equal(fetchTarget('http://host-0.example/y').href, 'http://host-0.example/y')
})
