import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { labelOf, webSocketTarget } from './url.ts'

test('a URL is normalised: http becomes ws, the usual port goes, the host is lower case', () => {
  const urls: [string | URL, string][] = [
    ['ws://Example.org', 'ws://example.org/'],
    ['http://example.org:80/a?b', 'ws://example.org/a?b'],
    ['https://example.org:443/', 'wss://example.org/'],
    ['WSS://example.org:80/x/../y', 'wss://example.org:80/y'],
    [new URL('https://[::1]:8443/%7e?'), 'wss://[::1]:8443/%7e?'],
    ['ws://bücher.test/ä', 'ws://xn--bcher-kva.test/%C3%A4'],
  ]
  for (const [given, href] of urls) assert.equal(webSocketTarget(given).href, href)
})

test('what the handshake needs of it', () => {
  const { scheme, authority, path, origin, authorization } = webSocketTarget('wss://u%20ser:p%C3%A4ss@example.org:8443/chat?x=1&y')
  assert.deepEqual([scheme, authority, path, origin], ['https', 'example.org:8443', '/chat?x=1&y', 'wss://example.org:8443'])
  assert.equal(Buffer.from(authorization?.slice('Basic '.length) ?? '', 'base64').toString(), 'u ser:päss')
  assert.deepEqual([webSocketTarget('ws://a').scheme, webSocketTarget('ws://a').authorization], ['http', undefined])
  assert.equal(webSocketTarget('ws://a%zz:b@c').authorization, `Basic ${Buffer.from('a%zz:b').toString('base64')}`)
})

test('everything else is a SyntaxError, a fragment too', () => {
  for (const url of ['', 'example.org', '/chat', 'ftp://a/', 'ws:', 'ws://a b/', 'mailto:a@b', 'ws://a/#', 'ws://a/#b', 'http://a/x#']) {
    assert.throws(() => webSocketTarget(url), { name: 'SyntaxError', constructor: DOMException }, url)
  }
})

test('messages show neither passwords nor queries', () => {
  assert.equal(labelOf('wss://user:secret@example.org/chat?token=secret'), 'wss://example.org/chat')
  assert.equal(labelOf(''), '')
})

test('whatever URL there is: a target with a path, or a SyntaxError', () => {
  fc.assert(
    fc.property(fc.oneof(fc.webUrl({ withQueryParameters: true, withFragments: true }), fc.string()), (text) => {
      let target
      try {
        target = webSocketTarget(text)
      } catch (error) {
        assert.equal((error as Error).name, 'SyntaxError')
        return
      }
      assert.ok(target.path.startsWith('/') && !target.href.includes('#'))
      assert.equal(webSocketTarget(target.href).href, target.href)
    }),
  )
})
