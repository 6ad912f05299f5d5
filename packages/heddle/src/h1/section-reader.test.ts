import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { hashStep, LineCache, startHash } from './line-cache.ts'
import { serverLimits } from './limits.ts'
import { requestSyntax } from './request-syntax.ts'
import { RunMemo } from './run-memo.ts'
import { SectionReader, type StartLineSyntax } from './section-reader.ts'
import type { FieldSection } from './section.ts'
import type { RequestLine } from './start-line.ts'

/** A reader whose caches know nothing yet: those of the process may have grown impatient with tests. */
function syntax(): StartLineSyntax<RequestLine, object> {
  return { ...requestSyntax, cache: new LineCache<RequestLine>(256), memo: new RunMemo<object>() }
}

let shared = syntax()
const newReader = (): SectionReader<RequestLine, object> => new SectionReader<RequestLine, object>(shared, serverLimits)

beforeEach(() => {
  shared = syntax()
})

/*
 * The reader has three fast paths: lines from a cache, runs of lines from a memo, and whole sections. This twin has none: it splits, matches and collects.
 */
interface Twin {
  readonly fields: string[]
  readonly host: string[]
  readonly length: string[]
  readonly coding: string[]
}

function slowly(head: string): Twin | 'refused' {
  const end = head.indexOf('\r\n\r\n')
  const lines = head.slice(0, end).split('\r\n').slice(1)
  const twin: Twin = { fields: [], host: [], length: [], coding: [] }
  const named: string[] = []
  for (const line of lines) {
    const match = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/.exec(line)
    if (match === null) return 'refused'
    const name = (match[1] as string).toLowerCase()
    const value = match[2] as string
    if (name === 'host') twin.host.push(value)
    else if (name === 'transfer-encoding') twin.coding.push(value)
    else if (name === 'connection') named.push(...value.toLowerCase().split(/[ \t]*,[ \t]*/))
    else if (!['keep-alive', 'upgrade', 'proxy-connection', 'te'].includes(name)) twin.fields.push(name, value)
    if (name === 'content-length') twin.length.push(value)
  }
  const kept: string[] = []
  for (let i = 0; i < twin.fields.length; i += 2) {
    const name = twin.fields[i] as string
    if (!named.includes(name) || ['cookie', 'authorization', 'content-length', 'via'].includes(name))
      kept.push(name, twin.fields[i + 1] as string)
  }
  return { ...twin, fields: kept }
}

function quickly(reader: SectionReader<RequestLine, object>, head: string, cuts: readonly number[]): Twin | 'refused' {
  const bytes = Buffer.from(head, 'latin1')
  let start = 0
  for (const cut of [...cuts, bytes.length]) {
    const buffer = Buffer.alloc(cut - start + 2, 0x0a)
    bytes.copy(buffer, 1, start, cut)
    const at = reader.read(buffer, 1, 1 + cut - start)
    buffer.fill(0xdb)
    if (reader.fault !== undefined) return 'refused'
    if (reader.section !== undefined) {
      assert.equal(at - 1 + start, bytes.length, 'read to the end of the head and no further')
      const { fields, host, hostCount, contentLength, transferEncoding } = reader.section as FieldSection
      reader.next()
      return {
        fields: [...fields],
        host: hostCount > 0 ? [host] : [],
        length: contentLength === -1 ? [] : [String(contentLength)],
        coding: transferEncoding === '' ? [] : [transferEncoding],
      }
    }
    start = cut
  }
  assert.fail('the head did not end')
}

const comparable = (twin: Twin | 'refused'): unknown =>
  twin === 'refused'
    ? twin
    : {
        fields: twin.fields,
        host: twin.host.slice(-1),
        length: twin.length.length === 0 ? [] : [/^\d{1,15}$/.test(twin.length.join()) ? String(Number(twin.length[0])) : '-2'],
        coding: twin.coding.length === 0 ? [] : [twin.coding.join(', ') || ','],
      }

const names = [
  'Accept',
  'X-A',
  'x-a',
  'Cookie',
  'Authorization',
  'User-Agent',
  'X-Token',
  'Connection',
  'Keep-Alive',
  'Content-Length',
  'Via',
  'Referer',
]
const values = [
  '',
  'a',
  'close',
  'x-a',
  'x-a, via, cookie',
  'timeout=5',
  '5',
  '5, 5',
  '\t b \t',
  'caf\xe9',
  'https://a/?token=1',
  'v'.repeat(300),
]
const broken = ['x', ': a', 'X Y: 1', 'X : 1', ' X: 1', 'X: a\x00', 'X: a\rb', 'X\xe9: 1', '\t']
const line = fc.oneof(
  {
    weight: 30,
    arbitrary: fc
      .tuple(fc.constantFrom(...names), fc.constantFrom(': ', ':', ':  ', ':\t'), fc.constantFrom(...values))
      .map((parts) => parts.join('')),
  },
  { weight: 1, arbitrary: fc.constantFrom(...broken) },
)
const heads = fc.array(
  fc
    .tuple(fc.constantFrom('/', '/other', '/q?x'), fc.array(line, { maxLength: 8 }))
    .map(([path, lines]) => [`GET ${path} HTTP/1.1`, 'Host: a', ...lines, '', ''].join('\r\n')),
  { minLength: 1, maxLength: 4 },
)

describe('SectionReader and its slow twin', () => {
  test('agree on heads of all kinds, cut anywhere, seen before or not', () => {
    fc.assert(
      fc.property(heads, fc.array(fc.nat(400), { maxLength: 4 }), (list, places) => {
        const reader = newReader()
        // At once again, for what a connection remembers of its own; and later, for what all share.
        for (const head of [...list.flatMap((one) => [one, one, one]), ...list]) {
          const cuts = [...new Set(places.filter((place) => place > 0 && place < head.length))].sort((a, b) => a - b)
          const expected = slowly(head)
          assert.deepEqual(quickly(reader, head, cuts), comparable(expected))
          if (expected === 'refused') return
        }
      }),
      { numRuns: 500 },
    )
  })

  test('two sections that share beginning, end and length are told apart', () => {
    const reader = newReader()
    for (const value of ['one', 'two', 'one', 'two']) {
      const head = `GET / HTTP/1.1\r\nHost: a\r\nX-Middle: ${value}\r\nX-End: same\r\n\r\n`
      assert.deepEqual(quickly(reader, head, []), comparable(slowly(head)))
    }
  })

  test('what is secret is in no shared cache', () => {
    for (const secret of [
      'Authorization: Basic c2VjcmV0',
      'Cookie: sid=secret',
      'X-Api-Key: secret',
      'X-Auth-Token: secret',
      'Proxy-Authorization: secret',
    ]) {
      const head = `GET / HTTP/1.1\r\nHost: a\r\n${secret}\r\n\r\n`
      const read = (): FieldSection => {
        const reader = newReader()
        reader.read(Buffer.from(head, 'latin1'), 0, head.length)
        const { section } = reader
        reader.next()
        reader.read(Buffer.from(head, 'latin1'), 0, head.length)
        assert.equal(reader.section, section, 'known again on its own connection')
        return section as FieldSection
      }
      assert.notEqual(read(), read(), 'and on no other')
    }
    // A target with a query may hold one too.
    const line = (target: string): object | undefined => {
      const reader = newReader()
      const head = `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`
      reader.read(Buffer.from(head, 'latin1'), 0, head.length)
      return reader.line
    }
    assert.notEqual(line('/?token=x'), line('/?token=x'))
    assert.equal(line('/plain'), line('/plain'))
  })

  test('secrets that change with every request are read, and seldom kept', () => {
    const reader = newReader()
    let kept = 0
    for (let i = 0; i < 600; i++) {
      const head = `GET / HTTP/1.1\r\nHost: a\r\nCookie: sid=${1000 + i}\r\nX-End: same\r\n\r\n`
      reader.read(Buffer.from(head, 'latin1'), 0, head.length)
      assert.deepEqual(reader.section?.fields, ['cookie', `sid=${1000 + i}`, 'x-end', 'same'])
      if (reader.whole !== undefined) kept++
      reader.next()
    }
    assert.ok(kept < 12, `${kept} of 600 kept`)
  })

  test('a section seen before is one object', () => {
    const head = 'GET / HTTP/1.1\r\nHost: a\r\nX-Same: yes\r\n\r\n'
    const read = (): FieldSection | undefined => {
      const reader = newReader()
      reader.read(Buffer.from(head, 'latin1'), 0, head.length)
      return reader.section
    }
    assert.equal(read(), read())
  })

  test('nothing is kept between lines, and never more than a line', () => {
    const reader = newReader()
    const carry = (reader as unknown as { carry: { bytes: Buffer } }).carry
    const feed = (text: string): void => {
      reader.read(Buffer.from(text, 'latin1'), 0, text.length)
    }
    feed('GET / HTTP/1.1\r\nHo')
    assert.ok(carry.bytes.length > 0)
    feed('st: a\r\n')
    assert.equal(carry.bytes.length, 0)
    feed(`x: ${'v'.repeat(16_000)}`)
    assert.ok(carry.bytes.length < 2 * serverLimits.maxFieldLineSize)
  })
})

describe('LineCache', () => {
  const hash = (text: string): number => [...Buffer.from(text, 'latin1')].reduce(hashStep, startHash)

  test('finds what was inserted last in a slot, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ minLength: 1, maxLength: 6, unit: fc.constantFrom('a', 'b', '\xff') }), { maxLength: 60 }),
        (lines) => {
          // Few slots, so lines push each other out.
          const cache = new LineCache<{ text: string }>(4)
          for (const text of lines) {
            const bytes = Buffer.from(`..${text}..`, 'latin1')
            const slot = cache.slotOf(hash(text))
            const found = cache.find(bytes, 2, 2 + text.length, slot)
            if (found !== undefined) assert.equal(found.text, text)
            cache.insert(bytes, 2, 2 + text.length, slot, { text })
            bytes.fill(0)
            const again = Buffer.from(text, 'latin1')
            assert.equal(cache.find(again, 0, again.length, slot)?.text, text)
          }
        },
      ),
    )
  })

  test('long lines stay out', () => {
    const cache = new LineCache<object>(4)
    const bytes = Buffer.alloc(300, 0x61)
    cache.insert(bytes, 0, 257, 0, {})
    assert.equal(cache.find(bytes, 0, 257, 0), undefined)
    cache.insert(bytes, 0, 256, 0, {})
    assert.notEqual(cache.find(bytes, 0, 256, 0), undefined)
  })
})
