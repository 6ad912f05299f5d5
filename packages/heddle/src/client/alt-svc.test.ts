import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readAltSvc } from './alt-svc.ts'

const day = 86_400_000

test('services over HTTP/3, best first; others are left out', () => {
  const read: [string, ReturnType<typeof readAltSvc>][] = [
    ['h3=":443"', [{ host: undefined, port: 443, maxAge: day }]],
    ['h3=":443"; ma=3600', [{ host: undefined, port: 443, maxAge: 3_600_000 }]],
    ['h3="alt.example.com:8000"; ma=60; persist=1', [{ host: 'alt.example.com', port: 8000, maxAge: 60_000 }]],
    ['h2="alt.example.com:8000", h2=":443"; ma=2592000; persist=1', []],
    [
      'h2=":443",h3="Two.Example:1" ; MA="5"\t,, h3=":2",',
      [
        { host: 'two.example', port: 1, maxAge: 5_000 },
        { host: undefined, port: 2, maxAge: day },
      ],
    ],
    ['h3="[2001:db8::1]:4433"; ma=0', [{ host: '2001:db8::1', port: 4433, maxAge: 0 }]],
    ['w=":80"; v="a\\"b;,", h3=":\\443"', [{ host: undefined, port: 443, maxAge: day }]],
    ['h3=":443"; ma=99999999999999999999', [{ host: undefined, port: 443, maxAge: 31_536_000_000 }]],
    ['clear', []],
    [' clear ', []],
    // RFC 7838 §3: octets that a token can hold are not encoded.
    ['h%33=":443"', []],
    ['h3-29=":443"; ma=5', []],
  ]
  for (const [value, services] of read) assert.deepEqual(readAltSvc(value), services, value)
})

test('an authority or an age that is none takes its service with it, and no other', () => {
  const bad = [
    '',
    ':',
    '443',
    'host',
    ':0',
    ':65536',
    ':-1',
    ':4 43',
    'a b:443',
    'user@host:443',
    '[::1]',
    '[::g]:443',
    '[fe80::1%25lo]:443',
    'a/b:1',
  ]
  for (const authority of bad) {
    assert.deepEqual(readAltSvc(`h3="${authority}", h3=":7"`), [{ host: undefined, port: 7, maxAge: day }], authority)
  }
  for (const age of ['-1', '1.5', 'x', '"1 "', '1e3']) {
    assert.deepEqual(readAltSvc(`h3=":1"; ma=${age}, h3=":7"`), [{ host: undefined, port: 7, maxAge: day }], age)
  }
})

test('what is malformed says nothing', () => {
  const bad = [
    '',
    ' , ',
    'Clear',
    'clear, h3=":443"',
    'h3',
    'h3=',
    'h3=:443',
    'h3=":443',
    'h3=":443";',
    'h3=":443"; ma',
    'h3=":443" h2=":443"',
    'h3 =":443"',
    '=":443"',
    'h3=":443"; ma=5 x',
  ]
  for (const value of bad) assert.equal(readAltSvc(value), undefined, value)
})

test('anything can come: it ends, in time that grows with the length', () => {
  const piece = fc.constantFrom('h3', '=', '"', ':443', ';', ' ma=', ',', ' ', '\t', '\\', 'clear', '60', '[', ']', '%')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      for (const { port, maxAge } of readAltSvc(pieces.join('')) ?? []) assert.ok(port > 0 && maxAge >= 0)
    }),
  )
  for (const long of [
    '"\\'.repeat(8_000),
    `h3=":443"${' '.repeat(16_000)}x`,
    `h3="${'\\a'.repeat(8_000)}`,
    `h3=":1"${';a=b'.repeat(4_000)}`,
  ]) {
    const begin = process.cpuUsage().user
    readAltSvc(long)
    // Backtracking over these would take minutes.
    assert.ok(process.cpuUsage().user - begin < 2_000_000, long.slice(0, 20))
  }
})
