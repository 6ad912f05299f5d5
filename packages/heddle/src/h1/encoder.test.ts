import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { isFieldName, isFieldValue } from '../http/index.ts'
import { FieldEncoder, fieldsSize } from './encoder.ts'

/** What `encoder` makes of `fields`. */
function encode(encoder: FieldEncoder, fields: readonly string[], omitLength = false): string | 'refused' {
  const buffer = Buffer.alloc(fieldsSize(fields) + 20, 0x58)
  try {
    const end = encoder.write(fields, buffer, 10, omitLength)
    assert.equal(buffer.toString('latin1', 0, 10), 'X'.repeat(10))
    assert.equal(buffer.toString('latin1', end, end + 10), 'X'.repeat(10))
    return buffer.toString('latin1', 10, end)
  } catch (error) {
    assert.equal((error as { code: string }).code, 'USAGE')
    return 'refused'
  }
}

const drops = new Set(['connection', 'transfer-encoding', 'keep-alive', 'upgrade', 'host', 'proxy-connection', 'http2-settings'])

/** The same without a memo. */
function slowly(fields: readonly string[], omitLength: boolean): string {
  let text = ''
  let lengths = 0
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    const value = fields[i + 1] as string
    if (name === 'content-length' && (++lengths > 1 || !/^\d{1,15}$/.test(value))) return 'refused'
    if (drops.has(name) || (name === 'te' && value !== 'trailers') || (omitLength && name === 'content-length')) continue
    if (!isFieldName(name) || !isFieldValue(value)) return 'refused'
    text += `${name}: ${value}\r\n`
  }
  return text
}

describe('FieldEncoder', () => {
  const name = fc.constantFrom(
    'x',
    'accept',
    'content-type',
    'content-length',
    'connection',
    'te',
    'set-cookie',
    'X',
    'a b',
    'date',
    'transfer-encoding',
    '\u0161',
    'etag',
  )
  const value = fc.oneof(
    fc.constantFrom('', 'a', 'text/plain', '5', 'trailers', 'close'),
    fc.string({ maxLength: 5, unit: fc.constantFrom('a', ' ', '\n', '\r', '\0', '\xe9', '\u010a', '\t') }),
  )
  const fields = fc.array(fc.tuple(name, value), { maxLength: 5 }).map((pairs) => pairs.flat())

  test('agrees with its slow twin, the first, second and third time', () => {
    const encoder = new FieldEncoder()
    fc.assert(
      fc.property(fields, fc.boolean(), (list, omit) => {
        const expected = slowly(list, omit)
        for (let i = 0; i < 4; i++) assert.equal(encode(encoder, [...list], omit), expected)
      }),
      { numRuns: 1000 },
    )
  })

  test('an array that changes is not taken for what it was', () => {
    const encoder = new FieldEncoder()
    const list = ['x-a', '1', 'x-b', '2']
    for (let i = 0; i < 4; i++) assert.equal(encode(encoder, list), 'x-a: 1\r\nx-b: 2\r\n')
    list[1] = '9'
    assert.equal(encode(encoder, list), 'x-a: 9\r\nx-b: 2\r\n')
    list[1] = '1'
    list[3] = '\n'
    assert.equal(encode(encoder, list), 'refused')
  })

  test('facts about the section are those of the section, from the memo too', () => {
    const encoder = new FieldEncoder()
    for (let i = 0; i < 4; i++) {
      encode(encoder, ['content-length', '17', 'date', 'now'])
      assert.deepEqual([encoder.contentLength, encoder.hasDate, encoder.close], [17, true, false])
      encode(encoder, ['connection', 'Foo, Close'])
      assert.deepEqual([encoder.contentLength, encoder.hasDate, encoder.close], [-1, false, true])
      encode(encoder, ['expect', '100-Continue', 'te', 'trailers'])
      assert.deepEqual([encoder.expectContinue, encoder.te, encoder.close], [true, true, false])
      encode(encoder, [])
      assert.deepEqual([encoder.expectContinue, encoder.te, encoder.contentLength], [false, false, -1])
    }
  })
})
