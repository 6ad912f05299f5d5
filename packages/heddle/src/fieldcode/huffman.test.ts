import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { codeLengths, codes } from './huffman-table.ts'
import { huffmanLength, maxDecodedLength, readHuffman, writeHuffman } from './huffman.ts'

function decode(bytes: Uint8Array): string | undefined {
  const target = new Uint8Array(maxDecodedLength(bytes.length))
  const length = readHuffman(bytes, 0, bytes.length, target)
  return length < 0 ? undefined : Buffer.from(target.subarray(0, length)).toString('latin1')
}

function encode(text: string): Buffer {
  const target = Buffer.alloc(huffmanLength(text))
  assert.equal(writeHuffman(text, target, 0), target.length)
  return target
}

/** The obvious decoder: bit by bit through a map of codes. */
function slowDecode(bytes: Uint8Array): string | undefined {
  const symbols = new Map(codeLengths.map((length, symbol) => [(codes[symbol] as number).toString(2).padStart(length, '0'), symbol]))
  let text = ''
  let bits = ''
  for (const octet of bytes) {
    for (const bit of octet.toString(2).padStart(8, '0')) {
      bits += bit
      const symbol = symbols.get(bits)
      if (symbol === undefined) continue
      if (symbol === 256) return undefined
      text += String.fromCharCode(symbol)
      bits = ''
    }
  }
  return bits.length < 8 && /^1*$/.test(bits) ? text : undefined
}

test('the examples of RFC 7541 Appendix C.4 and C.6', () => {
  for (const [text, hex] of [
    ['www.example.com', 'f1e3c2e5f23a6ba0ab90f4ff'],
    ['no-cache', 'a8eb10649cbf'],
    ['custom-key', '25a849e95ba97d7f'],
    ['custom-value', '25a849e95bb8e8b4bf'],
    ['302', '6402'],
    ['private', 'aec3771a4b'],
    ['Mon, 21 Oct 2013 20:13:21 GMT', 'd07abe941054d444a8200595040b8166e082a62d1bff'],
    ['https://www.example.com', '9d29ad171863c78f0b97c8e9ae82ae43d3'],
    [
      'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
      '94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007',
    ],
  ] as const) {
    assert.equal(encode(text).toString('hex'), hex)
    assert.equal(decode(Buffer.from(hex, 'hex')), text)
  }
})

test('every octet survives, also at every bit offset', () => {
  for (let octet = 0; octet < 256; octet++) {
    for (let before = 0; before < 8; before++) {
      const text = '0'.repeat(before) + String.fromCharCode(octet)
      assert.equal(decode(encode(text)), text)
    }
  }
})

test('padding longer than seven bits, with a zero, or EOS is an error', () => {
  for (const hex of ['ff', 'ffff', 'ffffffff', '00', '1c64fe', 'a8eb10649cbe', 'fffffffc', 'f1e3c2e5f23a6ba0ab90f4ffff']) {
    assert.equal(decode(Buffer.from(hex, 'hex')), slowDecode(Buffer.from(hex, 'hex')), hex)
  }
  assert.equal(decode(Buffer.from('ff', 'hex')), undefined)
  assert.equal(decode(Buffer.from('fffffffc', 'hex')), undefined)
  assert.equal(decode(Buffer.alloc(0)), '')
})

test('any bytes decode as the slow twin decodes them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => assert.equal(decode(bytes), slowDecode(bytes))),
    { numRuns: 3000 },
  )
})

test('any latin1 text survives', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const text = Buffer.from(bytes).toString('latin1')
      assert.equal(decode(encode(text)), text)
    }),
    { numRuns: 1000 },
  )
})
