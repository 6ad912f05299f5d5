import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { Kind } from '../fieldcode/index.ts'
import { staticTable } from './static-table.ts'

test('the 99 entries of RFC 9204 Appendix A', () => {
  assert.equal(staticTable.length, 99)
  const line = (index: number): string => `${staticTable[index]?.name}: ${staticTable[index]?.value}`
  assert.equal(line(0), ':authority: ')
  assert.equal(line(1), ':path: /')
  assert.equal(line(31), 'accept-encoding: gzip, deflate, br')
  assert.equal(line(54), 'content-type: text/plain;charset=utf-8')
  assert.equal(line(58), 'strict-transport-security: max-age=31536000; includesubdomains; preload')
  assert.equal(line(85), "content-security-policy: script-src 'none'; object-src 'none'; base-uri 'none'")
  assert.equal(line(98), 'x-frame-options: sameorigin')
  // Of all names and values, a line each: taken from a copy of the appendix that is not this one.
  const text = staticTable.map(({ name, value }) => `${name}\n${value}`).join('\n')
  assert.equal(createHash('sha256').update(text).digest('hex'), 'd2e60f087a243a4503129d71de989df85675de5b8dbe4fa010b6942063176853')
})

test('no entry makes a message malformed', () => {
  // A value is wanted where the table has none: an empty :authority or content-disposition is judged by the message.
  for (const entry of staticTable) assert.notEqual(entry.kind, Kind.Malformed, entry.name)
})
