import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestHead, responseHead } from '../http/index.ts'
import { Entry } from './entry.ts'
import { SectionReader, SectionRole, type FieldSection, type SectionLimits } from './section.ts'

const limits: SectionLimits = { maxFieldLines: 8, maxFieldSectionSize: 1000, maxFieldLineSize: 100 }

function read(role: SectionRole, ...lines: readonly string[]): FieldSection {
  const reader = new SectionReader(limits)
  reader.start(role)
  for (let i = 0; i < lines.length; i += 2) reader.add(new Entry(lines[i] as string, lines[i + 1] as string))
  return reader.finish()
}

const get = [':method', 'GET', ':scheme', 'https', ':path', '/a?b', ':authority', 'a.test']

test('a request, a response and trailers', () => {
  const request = read(SectionRole.Request, ...get, 'x', 'y', 'priority', 'u=1', 'content-length', '5', 'expect', '100-Continue')
  assert.deepEqual(
    request.head,
    requestHead('GET', 'https', 'a.test', '/a?b', ['x', 'y', 'priority', 'u=1', 'content-length', '5', 'expect', '100-Continue']),
  )
  assert.deepEqual([request.contentLength, request.priority, request.expectContinue], [5, 'u=1', true])
  assert.deepEqual(read(SectionRole.Response, ':status', '204', 'x', 'y').head, responseHead(204, ['x', 'y']))
  assert.deepEqual(read(SectionRole.Trailers, 'x', 'y').fields, ['x', 'y'])
  assert.equal(read(SectionRole.Trailers, 'x', 'y').fault, '')
})

test('host is the authority, and no field', () => {
  const alone = read(SectionRole.Request, ...get.slice(0, 6), 'host', 'b.test', 'x', 'y')
  assert.deepEqual(alone.head, requestHead('GET', 'https', 'b.test', '/a?b', ['x', 'y']))
  assert.deepEqual(read(SectionRole.Request, ...get, 'host', 'A.test').head, requestHead('GET', 'https', 'a.test', '/a?b'))
  assert.match(read(SectionRole.Request, ...get, 'host', 'b.test').fault, /host differs/)
})

test('tunnels: CONNECT, and CONNECT with a protocol', () => {
  assert.deepEqual(
    read(SectionRole.Request, ':method', 'CONNECT', ':authority', 'a.test:443').head,
    requestHead('CONNECT', '', 'a.test:443', ''),
  )
  assert.deepEqual(
    read(SectionRole.Request, ':method', 'CONNECT', ':protocol', 'websocket', ...get.slice(2)).head,
    requestHead('CONNECT', 'https', 'a.test', '/a?b', [], 'websocket'),
  )
})

test('OPTIONS asks for * or a path; nothing else asks for *', () => {
  assert.equal(read(SectionRole.Request, ':method', 'OPTIONS', ':scheme', 'http', ':path', '*', ':authority', 'a.test').fault, '')
  assert.match(read(SectionRole.Request, ':method', 'GET', ':scheme', 'http', ':path', '*', ':authority', 'a.test').fault, /:path/)
})

test('each limit makes a section too large, whatever it is; what is malformed stays malformed', () => {
  const many = Array.from({ length: 5 }, (_, i) => [`x-${i}`, 'y']).flat()
  const cases: (readonly string[])[] = [
    [...get, ...many],
    [...get, 'x', 'y'.repeat(100)],
    [...get, 'a', 'y'.repeat(99), 'b', 'y'.repeat(99), 'c', 'y'.repeat(99), 'd', 'y'.repeat(99), 'e', 'y'.repeat(99)],
  ]
  for (const lines of cases) {
    const section = read(SectionRole.Request, ...lines)
    assert.deepEqual([section.tooLarge, section.head, section.fault], [true, undefined, ''])
  }
  const both = read(SectionRole.Request, 'x', 'y', ...get, ...many)
  assert.match(both.fault, /after a regular field/)
  const bomb = read(SectionRole.Request, ...get, ...Array.from({ length: 10_000 }, () => ['x', 'y']).flat())
  assert.ok(bomb.tooLarge)
  assert.ok(bomb.fields.length <= 16, 'what is too much is not kept')
})

test('a reader begins anew with every section', () => {
  const reader = new SectionReader(limits)
  reader.start(SectionRole.Request)
  reader.add(new Entry('Bad Name', 'x'))
  for (let i = 0; i < 20; i++) reader.add(new Entry('priority', 'u=1'))
  assert.notEqual(reader.finish().fault, '')
  reader.start(SectionRole.Response)
  reader.add(new Entry(':status', '200'))
  const section = reader.finish()
  assert.deepEqual([section.fault, section.tooLarge, section.priority, section.head?.status], ['', false, '', 200])
})
