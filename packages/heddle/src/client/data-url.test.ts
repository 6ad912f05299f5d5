import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDataUrl } from './data-url.ts'

const cases: readonly string[] = [
  'data:,hello',
  'data:text/html,<p>%20%C3%A4</p>',
  'data:text/plain;charset=utf-8;base64,aGVsbG8=',
  'data:;base64,aGVsbG8',
  'data: ; base64 ,aGVs bG8=',
  'data:;charset=x,a',
  'data:nonsense,a',
  'data:application/json,{"a":1}#fragment',
  'data:,%zz%4',
  'data:image/png;base64,iVBORw0KGgo=',
  'DATA:,x',
]

test('content and type are what Node reads', async () => {
  for (const text of cases) {
    const expected = await globalThis.fetch(text)
    const { contentType, bytes } = readDataUrl(text)
    assert.deepEqual(Buffer.from(bytes), Buffer.from(await expected.arrayBuffer()), text)
    assert.equal(contentType, expected.headers.get('content-type'), text)
  }
})

test('without a comma, or with base64 that is none, it is a TypeError', () => {
  assert.throws(() => readDataUrl('data:text/plain'), TypeError)
  assert.throws(() => readDataUrl('data:;base64,a'), TypeError)
  assert.throws(() => readDataUrl('data:;base64,$$$$'), TypeError)
})
