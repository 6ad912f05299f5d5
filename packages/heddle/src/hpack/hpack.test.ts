import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Outbox } from '../bytes/index.ts'
import { SectionRole, type FieldSection, type SectionLimits } from '../fieldcode/index.ts'
import { noFields, requestHead, responseHead, type Fields } from '../http/index.ts'
import { Decoder } from './decoder.ts'
import { Encoder } from './encoder.ts'

const limits: SectionLimits = { maxFieldLines: 100, maxFieldSectionSize: 65_536, maxFieldLineSize: 16_384 }

function decode(decoder: Decoder, hex: string, role: SectionRole = SectionRole.Request): FieldSection | undefined {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
  return decoder.decode(bytes, 0, bytes.length, role)
}

function words(section: FieldSection | undefined): unknown[] {
  assert.ok(section !== undefined && section.fault === '', section?.fault ?? 'not decodable')
  const { head, fields } = section
  if (head === undefined) return [...fields]
  return head.status === 0 ? [head.method, head.scheme, head.path, head.authority, ...fields] : [head.status, ...fields]
}

function encoded(write: (out: Outbox) => void): Buffer {
  const out = new Outbox(Buffer.alloc(0), 1 << 20)
  write(out)
  return Buffer.from(out.buffer.subarray(0, out.length))
}

for (const [title, blocks] of [
  [
    'C.3, without Huffman coding',
    [
      '828684410f7777772e6578616d706c652e636f6d',
      '828684be58086e6f2d6361636865',
      '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
    ],
  ],
  [
    'C.4, with Huffman coding',
    ['828684418cf1e3c2e5f23a6ba0ab90f4ff', '828684be5886a8eb10649cbf', '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf'],
  ],
] as const) {
  test(`RFC 7541 ${title}: requests on one connection`, () => {
    const decoder = new Decoder(limits)
    assert.deepEqual(words(decode(decoder, blocks[0])), ['GET', 'http', '/', 'www.example.com'])
    assert.equal(decoder.tableSize, 57)
    assert.deepEqual(words(decode(decoder, blocks[1])), ['GET', 'http', '/', 'www.example.com', 'cache-control', 'no-cache'])
    assert.equal(decoder.tableSize, 110)
    assert.deepEqual(words(decode(decoder, blocks[2])), ['GET', 'https', '/index.html', 'www.example.com', 'custom-key', 'custom-value'])
    assert.equal(decoder.tableSize, 164)
  })
}

test('RFC 7541 C.6: responses with eviction from a table of 256 octets', () => {
  const decoder = new Decoder(limits)
  decoder.allowTableSize(256)
  const response = (hex: string): unknown[] => words(decode(decoder, hex, SectionRole.Response))
  const first =
    '3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3'
  const date = ['cache-control', 'private', 'date', 'Mon, 21 Oct 2013 20:13:21 GMT', 'location', 'https://www.example.com']
  assert.deepEqual(response(first), [302, ...date])
  assert.equal(decoder.tableSize, 222)
  assert.deepEqual(response('4883 640e ffc1 c0bf'), [307, ...date])
  assert.equal(decoder.tableSize, 222)
  const last =
    '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07'
  assert.deepEqual(response(last), [
    200,
    'cache-control',
    'private',
    'date',
    'Mon, 21 Oct 2013 20:13:22 GMT',
    'location',
    'https://www.example.com',
    'content-encoding',
    'gzip',
    'set-cookie',
    'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
  ])
  assert.equal(decoder.tableSize, 215)
})

test('blocks that cannot be decoded say why', () => {
  const cases: [string, RegExp][] = [
    ['80', /index 0/],
    ['be', /index 62/],
    ['ff80808080808000', /index/],
    ['00', /broken string length/],
    ['0003', /longer than its block/],
    ['400361', /longer than its block/],
    ['00036161610b', /longer than its block/],
    ['0081ff0161', /not Huffman/],
    ['8220', /size update after/],
    ['3fe21f', /4096 are allowed/],
    ['3f', /broken table size/],
    ['7f', /broken name index/],
  ]
  for (const [hex, fault] of cases) {
    const decoder = new Decoder(limits)
    assert.equal(decode(decoder, hex), undefined, hex)
    assert.match(decoder.fault, fault, hex)
  }
})

test('every truncation of a block is undecodable or a section that lacks something, never a crash', () => {
  const block = Buffer.from('828684418cf1e3c2e5f23a6ba0ab90f4ff408825a849e95ba97d7f8925a849e95bb8e8b4bf', 'hex')
  for (let limit = 0; limit < block.length; limit++) {
    const decoder = new Decoder(limits)
    decoder.decode(block, 0, limit, SectionRole.Request)
  }
})

test('size updates: to 0 and back, two in a row, and the one that is owed', () => {
  const decoder = new Decoder(limits)
  decode(decoder, '828684410f7777772e6578616d706c652e636f6d')
  assert.equal(decoder.tableSize, 57)
  assert.ok(decode(decoder, '20 3fe11f 828684 410161') !== undefined)
  assert.equal(decoder.tableSize, 43)
  decoder.allowTableSize(0)
  assert.equal(decode(decoder, '828684be'), undefined)
  assert.match(decoder.fault, /no table size update/)
  const other = new Decoder(limits)
  other.allowTableSize(100)
  other.allowTableSize(4096)
  assert.ok(decode(other, '3f45 3fe11f 828684 410161') !== undefined, 'the smaller one was said first')
})

test('once a smaller setting is acknowledged, the encoder must say so first', () => {
  const decoder = new Decoder(limits)
  assert.ok(decode(decoder, '828684410161') !== undefined)
  decoder.allowTableSize(0)
  assert.ok(decode(decoder, '20828684010161') !== undefined)
  assert.equal(decoder.tableSize, 0)
})

test('a repeated block comes from the memo, and is decoded anew when the table changed', () => {
  const decoder = new Decoder(limits)
  decode(decoder, '828684410f7777772e6578616d706c652e636f6d')
  const block = '828684be'
  const sections = [0, 1, 2].map(() => decode(decoder, block))
  assert.equal(sections[1], sections[2])
  decode(decoder, '828684 4103622e63')
  assert.deepEqual(words(decode(decoder, block)), ['GET', 'http', '/', 'b.c'])
  assert.deepEqual(words(decode(decoder, '828684bf')), ['GET', 'http', '/', 'www.example.com'])
})

test('a size update in a repeated block is not swallowed by the memo', () => {
  const decoder = new Decoder(limits)
  for (let i = 0; i < 4; i++) decode(decoder, '20 828684 010161')
  decode(decoder, '3fe11f 828684 410161')
  assert.equal(decoder.tableSize, 43)
  decode(decoder, '20 828684 010161')
  assert.equal(decoder.tableSize, 0)
})

const name = fc.constantFrom('accept', 'x-a', 'x-b', 'cookie', 'authorization', 'content-type', 'etag', 'x-long-name-of-a-field', 'te')
const value = fc.oneof(fc.constantFrom('', 'a', 'gzip, deflate', 'trailers', 'x'.repeat(200)), fc.string({ maxLength: 30 }))
const fieldLines: fc.Arbitrary<Fields> = fc
  .array(fc.tuple(name, value), { maxLength: 12 })
  .map((lines) => lines.flatMap(([key, text]) => [key, key === 'te' ? 'trailers' : text.trim().replaceAll('\u007f', '')]))

test('what the encoder writes the decoder reads, through changing table sizes', () => {
  const steps = fc.array(fc.tuple(fieldLines, fc.option(fc.constantFrom(0, 50, 100, 300, 4096, 8192))), { maxLength: 30 })
  fc.assert(
    fc.property(steps, (all) => {
      const encoder = new Encoder()
      const decoder = new Decoder(limits)
      for (const [fields, size] of all) {
        if (size !== null) {
          // The order of a SETTINGS exchange: the decoder's owner says it, the encoder takes it up.
          decoder.allowTableSize(size)
          encoder.allowTableSize(size)
        }
        encoder.validate(fields)
        const request = encoded((out) => encoder.writeRequest(requestHead('POST', 'https', 'a.example', '/p?q', fields), out))
        const section = decoder.decode(request, 0, request.length, SectionRole.Request)
        assert.ok(section !== undefined, decoder.fault)
        assert.equal(section.fault, '')
        assert.deepEqual(words(section), ['POST', 'https', '/p?q', 'a.example', ...fields])
        for (let times = 0; times < 3; times++) {
          const response = encoded((out) => encoder.writeResponse(responseHead(200, fields), 'Mon, 21 Oct 2013 20:13:21 GMT', false, out))
          const read = decoder.decode(response, 0, response.length, SectionRole.Response)
          assert.ok(read !== undefined, decoder.fault)
          assert.deepEqual(words(read), [200, ...fields, 'date', 'Mon, 21 Oct 2013 20:13:21 GMT'])
        }
      }
    }),
    { numRuns: 300 },
  )
})

test('any bytes are judged without a crash', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 6 }), (blocks) => {
      const decoder = new Decoder(limits)
      for (const block of blocks) {
        if (decoder.decode(block, 0, block.length, SectionRole.Request) === undefined) {
          assert.notEqual(decoder.fault, '')
          break
        }
      }
    }),
    { numRuns: 3000 },
  )
})

test('secrets are never indexed', () => {
  const encoder = new Encoder()
  const secret: Fields = ['authorization', 'Bearer abc', 'cookie', 'short=1', 'proxy-authorization', 'Basic eA==']
  const blocks = [0, 1].map(() => encoded((out) => encoder.writeTrailers(secret, out)))
  assert.deepEqual(blocks[0], blocks[1])
  // The pattern 0001xxxx: never indexed (RFC 7541 §6.2.3).
  assert.equal((blocks[0]?.[0] as number) & 0xf0, 0x10)
  const long: Fields = ['cookie', 'session=0123456789abcdef0123456789']
  assert.ok(encoded((out) => encoder.writeTrailers(long, out)).length > encoded((out) => encoder.writeTrailers(long, out)).length)
})

test('a field that cannot be sent is refused by name', () => {
  const encoder = new Encoder()
  assert.throws(() => encoder.validate(['X-Upper', 'a']), /field name "X-Upper"/)
  assert.throws(() => encoder.validate([':path', '/x']), /field name ":path"/)
  encoded((out) => encoder.writeRequest(requestHead('GET', 'http', 'a.test', '/'), out))
  assert.throws(() => encoder.validate([':authority', 'b.test']), /field name ":authority"/)
  assert.throws(() => encoder.validate(['x', 'a\r\nb']), /value of x/)
  assert.throws(() => encoder.validate(['x', '\u010a']), /value of x/)
  encoder.validate(noFields)
})
