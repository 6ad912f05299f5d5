import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Response } from './response.ts'
import { urlencodedPairs } from './urlencoded.ts'

// A question mark in front is what URLSearchParams takes away, once.
const expected = (text: string): [string, string][] => [...new URLSearchParams(`?${text}`)]

test('reads what URLSearchParams reads', () => {
  const common = ['a', 'b', '=', '&', '+', '%41', '%e4%bd%a0', '?', '%00', ' ', '%26', '%EF%BB%BF']
  // Node cuts characters to octets where malformed escapes stand beside them, so there the two do not meet.
  for (const rest of [
    ['%', '%E4', '%zz', '%4', '%f'],
    ['ü', '你', '\ufeff', '\ud83d\ude00'],
  ]) {
    const text = fc.array(fc.constantFrom(...common, ...rest)).map((pieces) => pieces.join(''))
    fc.assert(
      fc.property(text, (given) => assert.deepEqual(urlencodedPairs(Buffer.from(given)), expected(given))),
      { numRuns: 2_000 },
    )
  }
})

test('malformed UTF-8 is replaced, whatever stands beside it', () => {
  assert.deepEqual(urlencodedPairs(Buffer.from('ü%E4=%bd\ufeff')), [['ü\ufffd', '\ufffd\ufeff']])
  assert.deepEqual(urlencodedPairs(Buffer.from([0xe4, 0x25, 0x62, 0x64, 0x25, 0x61, 0x30])), [['你', '']])
})

test('formData takes it, with any spelling of the type', async () => {
  for (const type of ['application/x-www-form-urlencoded', 'Application/X-WWW-Form-URLEncoded ;charset=UTF-8']) {
    const form = await new Response('a=1&b=%20+&a=%C3%BC&&c', { headers: { 'content-type': type } }).formData()
    assert.deepEqual(
      [...form],
      [
        ['a', '1'],
        ['b', '  '],
        ['a', 'ü'],
        ['c', ''],
      ],
    )
  }
})

test('time grows with the content, not with its square', async () => {
  const response = new Response('a&'.repeat(500_000), { headers: { 'content-type': 'application/x-www-form-urlencoded' } })
  const begin = performance.now()
  assert.equal([...(await response.formData()).keys()].length, 500_000)
  // A square takes minutes.
  assert.ok(performance.now() - begin < 10_000)
})
