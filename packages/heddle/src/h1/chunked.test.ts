import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ChunkedDecoder } from './chunked.ts'
import { serverLimits } from './limits.ts'

/** Decodes `bytes` in pieces; the content, how many octets were read, and whether it ended or was refused. */
function decode(
  bytes: Buffer,
  cuts: readonly number[],
): { content: string; read: number; state: 'more' | 'ended' | 'refused'; trailers: readonly string[] } {
  const decoder = new ChunkedDecoder(serverLimits)
  let content = ''
  let read = 0
  for (const cut of [...cuts, bytes.length]) {
    while (read < cut) {
      const at = decoder.read(bytes, read, cut)
      content += bytes.toString('latin1', decoder.contentStart, decoder.contentLimit)
      if (decoder.fault !== undefined) return { content, read: -1, state: 'refused', trailers: [] }
      assert.ok(at > read, 'every read gets on')
      read = at
      if (decoder.ended) return { content, read, state: 'ended', trailers: decoder.trailers }
    }
  }
  return { content, read, state: 'more', trailers: [] }
}

/** The grammar of RFC 9112 §7.1 as a regular expression, applied step by step. */
function decodeSlowly(text: string): { content: string; state: 'more' | 'ended' | 'refused' } {
  let rest = text
  let content = ''
  for (;;) {
    const head = /^([0-9A-Fa-f]{1,13})(;[\t\x20-\xff]*)?\r\n/.exec(rest)
    if (head === null)
      return { content, state: /^(?:[0-9A-Fa-f]{0,13}|[0-9A-Fa-f]{1,13}(?:;[\t\x20-\xff]*)?\r?)$/.test(rest) ? 'more' : 'refused' }
    rest = rest.slice(head[0].length)
    const size = parseInt(head[1] as string, 16)
    if (size === 0) break
    content += rest.slice(0, size)
    if (rest.length < size) return { content, state: 'more' }
    rest = rest.slice(size)
    if (!'\r\n'.startsWith(rest.slice(0, 2))) return { content, state: 'refused' }
    if (rest.length < 2) return { content, state: 'more' }
    rest = rest.slice(2)
  }
  if (rest.startsWith('\r\n')) return { content, state: 'ended' }
  return { content, state: '\r\n'.startsWith(rest) ? 'more' : 'refused' }
}

test('agrees with the grammar, on sound and on broken codings, cut anywhere', () => {
  const soundPiece = fc.constantFrom('1\r\na\r\n', '3\r\nabc\r\n', 'a\r\n0123456789\r\n', 'A;x=y\r\n0123456789\r\n', '003\r\n\r\n0\r\n')
  const brokenPiece = fc.constantFrom('\r', '\n', ' ', '-', '1', 'g', ';', '\0', '0x', '\r\n', 'ffffffffffffff\r\n', '\x7f')
  const coding = fc
    .tuple(
      fc.array(fc.oneof({ weight: 12, arbitrary: soundPiece }, { weight: 1, arbitrary: brokenPiece }), { maxLength: 8 }),
      fc.constantFrom('0\r\n\r\n', '0\r\n', '', '00;e\r\n\r\n'),
    )
    .map(([pieces, end]) => pieces.join('') + end)
  fc.assert(
    fc.property(coding, fc.array(fc.nat(80)), (text, places) => {
      const bytes = Buffer.from(text, 'latin1')
      const cuts = [...new Set(places.filter((place) => place < bytes.length))].sort((a, b) => a - b)
      const expected = decodeSlowly(text)
      // The grammar sees trailers where something else follows the last chunk; those are tested elsewhere.
      const whole = decode(bytes, [])
      const cut = decode(bytes, cuts)
      assert.deepEqual(cut, whole)
      if (expected.state !== 'refused' || whole.state !== 'more') assert.equal(whole.state, expected.state)
      if (expected.state !== 'refused') assert.equal(whole.content, expected.content)
    }),
    { numRuns: 1000 },
  )
})

test('stops behind the message', () => {
  const bytes = Buffer.from('1\r\na\r\n0\r\n\r\nGET /', 'latin1')
  for (let cut = 0; cut <= 11; cut++) assert.deepEqual(decode(bytes, [cut]), { content: 'a', read: 11, state: 'ended', trailers: [] })
})

test('a decoder is ready for the next message', () => {
  const decoder = new ChunkedDecoder(serverLimits)
  for (const trailer of ['', 'x: 1\r\n', '']) {
    const bytes = Buffer.from(`1;${'e'.repeat(4000)}\r\na\r\n0\r\n${trailer}\r\n`, 'latin1')
    let at = 0
    while (!decoder.ended) {
      at = decoder.read(bytes, at, bytes.length)
      assert.equal(decoder.fault, undefined)
    }
    assert.deepEqual(decoder.trailers, trailer === '' ? [] : ['x', '1'])
    decoder.reset()
  }
})
