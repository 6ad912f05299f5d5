import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SectionRole, type FieldSection } from '../fieldcode/index.ts'
import { Decoder } from './decoder.ts'
import { QpackError } from './fault.ts'
import type { DecoderLimits } from './limits.ts'

const limits: DecoderLimits = {
  maxFieldLines: 100,
  maxFieldSectionSize: 65_536,
  maxFieldLineSize: 16_384,
  maxTableCapacity: 220,
  maxBlockedStreams: 2,
}
const never = (): void => assert.fail('not to be told')
const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')

/** A decoder, and what its handlers were told. */
class Fixture {
  readonly decoder: Decoder
  readonly told: [number, FieldSection][]

  constructor(given: Partial<DecoderLimits> = {}) {
    this.decoder = new Decoder({ ...limits, ...given })
    this.told = []
  }

  /** Octets of the encoder stream that must be in order. */
  feed(hex: string): this {
    const octets = bytes(hex)
    assert.equal(this.decoder.receive(octets, 0, octets.length), undefined)
    return this
  }

  decode(streamId: number, hex: string, role: SectionRole = SectionRole.Trailers): FieldSection | undefined {
    const octets = bytes(hex)
    return this.decoder.decode(streamId, octets, 0, octets.length, role, { onSection: (section) => this.told.push([streamId, section]) })
  }

  /** A request's pseudo-header fields and fields. */
  words(section: FieldSection | undefined): unknown[] {
    assert.ok(section?.head !== undefined, section?.fault ?? this.decoder.fault?.reason ?? 'blocked')
    const { method, scheme, authority, path, fields } = section.head
    return [method, scheme, authority, path, ...fields]
  }

  get faultCode(): number | undefined {
    return this.decoder.fault?.code
  }

  /** What was left for the decoder stream. */
  sent(): string {
    const { instructions } = this.decoder
    const hex = instructions.buffer.toString('hex', 0, instructions.length)
    instructions.length = 0
    return hex
  }
}

// RFC 9204 Appendix B shows sections that are no whole request: with :method GET and :scheme https (d1 d7) they are.
const appendixB = {
  b1Section: '0000 510b 2f69 6e64 6578 2e68 746d 6c',
  b2Stream: '3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468',
  b2Section: '0381 10 11',
  b3Stream: '4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565',
  b4Stream: '02',
  b4Section: '0500 80 c1 81',
  b5Stream: '810d 6375 7374 6f6d 2d76 616c 7565 32',
}

test('RFC 9204 B.1: a literal with a name reference', () => {
  const fixture = new Fixture()
  const section = fixture.decode(0, `${appendixB.b1Section} d1 d7 500161`, SectionRole.Request)
  assert.deepEqual(fixture.words(section), ['GET', 'https', 'a', '/index.html'])
  fixture.decoder.finishInstructions()
  assert.equal(fixture.sent(), '', 'nothing of the table was used')
  assert.equal(fixture.decode(0, appendixB.b1Section, SectionRole.Request)?.fault, 'no :method')
})

test('RFC 9204 B.2 to B.5: insertions, a section that waits for them, a duplicate, a cancellation, an eviction', () => {
  const fixture = new Fixture()
  const { decoder, told } = fixture
  // B.2, where the section overtakes the insertions.
  assert.equal(fixture.decode(4, `${appendixB.b2Section} d1 d7`, SectionRole.Request), undefined)
  assert.equal(decoder.fault, undefined)
  assert.equal(decoder.blockedStreams, 1)
  fixture.feed(appendixB.b2Stream)
  assert.equal(told[0]?.[0], 4)
  assert.deepEqual(fixture.words(told[0]?.[1]), ['GET', 'https', 'www.example.com', '/sample/path'])
  assert.equal(decoder.tableSize, 106)
  decoder.finishInstructions()
  assert.equal(fixture.sent(), '84', 'the acknowledgement tells of both entries')
  // B.3
  fixture.feed(appendixB.b3Stream)
  assert.equal(decoder.tableSize, 160)
  decoder.finishInstructions()
  assert.equal(fixture.sent(), '01')
  // B.4, where the section overtakes the duplicate, and its stream is cancelled.
  assert.equal(fixture.decode(8, appendixB.b4Section), undefined)
  decoder.cancelStream(8)
  assert.equal(decoder.blockedStreams, 0)
  fixture.feed(appendixB.b4Stream)
  assert.equal(decoder.tableSize, 217)
  assert.equal(told.length, 1, 'what was cancelled is not told')
  assert.equal(fixture.sent(), '48')
  const section = fixture.decode(8, `${appendixB.b4Section.replace('80 c1 81', '80 c1 d1 d7 81')}`, SectionRole.Request)
  assert.deepEqual(fixture.words(section), ['GET', 'https', 'www.example.com', '/', 'custom-key', 'custom-value'])
  assert.equal(fixture.sent(), '88')
  // B.5
  fixture.feed(appendixB.b5Stream)
  assert.equal(decoder.tableSize, 215)
  assert.deepEqual(fixture.decode(12, '0600 80 82')?.fields, ['custom-key', 'custom-value2', 'custom-key', 'custom-value'])
  assert.equal(fixture.decode(16, '0600 84'), undefined, 'the first entry was evicted')
  assert.equal(fixture.faultCode, QpackError.decompressionFailed)
})

test('the encoder stream in any two or three pieces builds the same table', () => {
  const stream = bytes(appendixB.b2Stream + appendixB.b3Stream + appendixB.b4Stream + appendixB.b5Stream)
  const check = (...cuts: readonly number[]): void => {
    const fixture = new Fixture()
    let at = 0
    for (const cut of [...cuts, stream.length]) {
      // A buffer of its own for each piece, overwritten behind: nothing of it may be kept.
      const piece = Buffer.from(stream.subarray(at, cut))
      assert.equal(fixture.decoder.receive(piece, 0, piece.length), undefined, `cut at ${cuts.join()}`)
      piece.fill(0xff)
      at = cut
    }
    assert.equal(fixture.decoder.tableSize, 215)
    assert.deepEqual(fixture.decode(12, '0600 80 82')?.fields, ['custom-key', 'custom-value2', 'custom-key', 'custom-value'])
  }
  for (let first = 0; first <= stream.length; first++) {
    check(first)
    for (let second = first; second <= stream.length; second++) check(first, second)
  }
  check(...Array.from(stream, (_, at) => at))
})

test('every truncation of a section is a fault, or a section of fewer lines', () => {
  // Every kind of line there is, strings with and without Huffman code, names by each kind of reference.
  const lines: [string, string, string][] = [
    ['dd', 'accept', '*/*'],
    ['80', 'y', 'c'],
    ['10', 'z', 'd'],
    ['5f0e 0161', 'accept', 'a'],
    ['7f45 86a8eb10649cbf', 'authorization', 'no-cache'],
    ['41 86a8eb10649cbf', 'x', 'no-cache'],
    ['60 00', 'y', ''],
    ['00 0161', 'z', 'a'],
    ['08 0162', 'z', 'b'],
    ['2f01 25a849e95ba97d7f 8925a849e95bb8e8b4bf', 'custom-key', 'custom-value'],
    ['37 02 782d6c6f6e6765722d 0178', 'x-longer-', 'x'],
  ]
  const section = bytes(`0480 ${lines.map(([hex]) => hex).join('')}`)
  const fields = lines.flatMap(([, name, value]) => [name, value])
  const ends = new Set([2, section.length])
  let end = 2
  for (const [hex] of lines) ends.add((end += bytes(hex).length))
  for (let limit = 0; limit <= section.length; limit++) {
    const fixture = new Fixture()
    fixture.feed('3fbd01 4178 0162 4179 0163 417a 0164')
    const octets = Buffer.from(section.subarray(0, limit))
    const read = fixture.decode(0, octets.toString('hex'))
    assert.equal(read === undefined, !ends.has(limit), `at ${limit}`)
    if (read === undefined) assert.equal(fixture.faultCode, QpackError.decompressionFailed)
    else assert.deepEqual([read.fault, ...read.fields], ['', ...fields.slice(0, read.fields.length)])
    if (limit === section.length) assert.deepEqual(read?.fields, fields)
  }
})

test('sections that cannot be decoded say why', () => {
  const cases: [string, RegExp][] = [
    ['', /Required Insert Count/],
    ['00', /Base/],
    ['0080', /negative Base/],
    ['0183', /Required Insert Count/],
    ['0e00', /Required Insert Count/],
    ['ff80808080808000', /Required Insert Count/],
    ['04ff', /broken Base/],
    ['0484', /negative Base/],
    ['0000 80', /refer to entry/],
    ['0400 82', /entry 0/],
    ['0300 80 10', /entry 2/],
    ['0382 10 12', /Base/],
    ['0381 12', /entry 2/],
    ['0000 ff24', /no static entry has the index 99/],
    ['0000 5f54 0161', /no static entry has the index 99/],
    ['0000 ff', /broken index/],
    ['0000 ffffffffffff7f', /broken index/],
    ['0000 1f', /broken index/],
    ['0000 07', /broken index/],
    ['0000 51', /broken string length/],
    ['0000 5103 61', /longer than its block/],
    ['0000 27', /broken string length/],
    ['0000 2161', /broken string length/],
    ['0000 2261', /longer than its block/],
    ['0000 2981 0161', /not Huffman/],
    ['0000 5181 ff', /not Huffman/],
  ]
  for (const [hex, reason] of cases) {
    const fixture = new Fixture()
    // Three entries; the first is evicted by a smaller table.
    fixture.feed('3fbd01 4178 0162 4179 0163 417a 0164 3f28')
    assert.equal(fixture.decode(0, hex), undefined, hex)
    assert.equal(fixture.decoder.fault?.code, QpackError.decompressionFailed, hex)
    assert.match(fixture.decoder.fault.reason, reason, hex)
  }
})

test('encoder instructions that cannot be obeyed say why', () => {
  const cases: [string, RegExp][] = [
    ['3fbe01', /221 octets where 220 are allowed/],
    ['3fffffffffff7f', /too large/],
    ['00', /no entry has the index 0/],
    ['1f00', /no entry has the index 31/],
    ['1fffffffffff7f', /too large/],
    ['80 0161', /no entry has the index 0/],
    ['ff24 0161', /no entry has the index 99/],
    ['3fbd01 c0 7f80808080808000', /broken string length/],
    ['3fbd01 c0 81ff', /not Huffman/],
    ['3fbd01 61ff 0161', /not Huffman/],
    ['3fbd01 c0 7fff7f', /larger than the table/],
    ['3fbd01 5fff7f', /larger than the table/],
    ['21 c0 0161', /an entry of 43 octets in a table of 1/],
    ['c0 00', /an entry of 42 octets in a table of 0/],
    ['3fbd01 4178 0161 20 00', /no entry has the index 0/],
  ]
  for (const [hex, reason] of cases) {
    const { decoder } = new Fixture()
    const octets = bytes(hex)
    const fault = decoder.receive(octets, 0, octets.length)
    assert.equal(fault?.code, QpackError.encoderStreamError, hex)
    assert.equal(fault, decoder.fault)
    assert.match(fault.reason, reason, hex)
  }
})

test('duplicates and names by reference outlive the entry they refer to', () => {
  const fixture = new Fixture()
  // One entry of 82 octets; its duplicate takes its place, and then an entry with its name does.
  fixture.feed(`3f33 4a ${'61'.repeat(10)} 28 ${'62'.repeat(40)} 00`)
  assert.equal(fixture.decoder.tableSize, 82)
  assert.deepEqual(fixture.decode(0, '0300 80')?.fields, ['a'.repeat(10), 'b'.repeat(40)])
  fixture.feed('80 0163')
  assert.equal(fixture.decoder.tableSize, 43)
  assert.deepEqual(fixture.decode(4, '0400 80')?.fields, ['a'.repeat(10), 'c'])
})

test('blocked sections: each in its time, no more than allowed, with their faults', () => {
  const fixture = new Fixture()
  const { decoder, told } = fixture
  fixture.feed('3fbd01')
  assert.equal(fixture.decode(0, '0300 80'), undefined)
  assert.equal(fixture.decode(4, '0200 80'), undefined)
  assert.equal(decoder.blockedStreams, 2)
  assert.ok(decoder.pinned >= 6)
  fixture.feed('4178 0162')
  assert.deepEqual(
    told.map(([id, { fields }]) => [id, fields]),
    [[4, ['x', 'b']]],
  )
  assert.equal(fixture.sent(), '84')
  // The room is free again, and what needs no entry is never blocked.
  assert.equal(fixture.decode(8, '0400 80'), undefined)
  assert.deepEqual(fixture.decode(12, '0000 d9', SectionRole.Response)?.head?.status, 200)
  assert.deepEqual(fixture.decode(12, '0200 80')?.fields, ['x', 'b'])
  assert.equal(fixture.decode(16, '0300 80'), undefined)
  assert.match(decoder.fault?.reason ?? '', /more blocked streams/)

  const other = new Fixture()
  other.feed('3fbd01')
  assert.equal(other.decode(0, '0200 81'), undefined)
  const insertion = bytes('4178 0162')
  assert.equal(other.decoder.receive(insertion, 0, insertion.length)?.code, QpackError.decompressionFailed)
  assert.equal(other.told.length, 0)

  const none = new Fixture({ maxBlockedStreams: 0 })
  none.feed('3fbd01')
  assert.equal(none.decode(0, '0200 80'), undefined)
  assert.match(none.decoder.fault?.reason ?? '', /more blocked streams/)
})

test('a handler may decode and cancel from within', () => {
  const { decoder } = new Fixture({ maxBlockedStreams: 3 })
  const capacity = bytes('3fbd01')
  decoder.receive(capacity, 0, capacity.length)
  const section = bytes('0200 80')
  const log: string[] = []
  const decode = (streamId: number, onSection: (read: FieldSection) => void): FieldSection | undefined =>
    decoder.decode(streamId, section, 0, section.length, SectionRole.Trailers, { onSection })
  decode(0, (first) => {
    log.push(`0 ${first.fields.join()}`)
    decoder.cancelStream(4)
    log.push(`again ${decode(0, never)?.fields.join()}`)
  })
  decode(4, never)
  decode(8, (read) => log.push(`8 ${read.fields.join()}`))
  const insertion = bytes('4178 0162')
  assert.equal(decoder.receive(insertion, 0, insertion.length), undefined)
  assert.deepEqual(log, ['0 x,b', 'again x,b', '8 x,b'])
  assert.equal(decoder.instructions.buffer.toString('hex', 0, decoder.instructions.length), '80448088')
})

test('one increment tells of all entries that no acknowledgement told of', () => {
  const fixture = new Fixture({ maxTableCapacity: 65_536 })
  const { decoder } = fixture
  fixture.feed(`3fe1ff03 4178 0162 ${'00'.repeat(200)}`)
  assert.deepEqual(fixture.decode(0, '0400 80')?.fields, ['x', 'b'])
  decoder.finishInstructions()
  decoder.finishInstructions()
  assert.equal(fixture.sent(), `80 3f8701`.replaceAll(' ', ''))
  const silent = new Fixture({ maxTableCapacity: 0 })
  silent.decoder.cancelStream(4)
  silent.decoder.finishInstructions()
  assert.equal(silent.sent(), '', 'without a table nobody waits')
})

test('a section over the limits is told as such, is acknowledged, and the table stays in step', () => {
  const fixture = new Fixture({ maxTableCapacity: 4096 })
  fixture.feed(`3fe11f 4178 7f11 ${'62'.repeat(144)}`)
  // 100,000 references to an entry of 177 octets: an expansion bomb.
  const bomb = fixture.decode(0, `0200 ${'80'.repeat(100_000)}`)
  assert.ok(bomb?.tooLarge)
  assert.equal(bomb.head, undefined)
  assert.ok(bomb.fields.length <= 200, 'what is too much is not kept')
  assert.equal(fixture.sent(), '80')
  assert.deepEqual(fixture.decode(4, '0200 80')?.fields, ['x', 'b'.repeat(144)])
})

test('a section that comes again is found, whatever the table does to those without references', () => {
  const fixture = new Fixture()
  fixture.feed('3fbd01 4178 0162')
  const plain = [0, 4, 8].map((streamId) => fixture.decode(streamId, '0000 d9 2178 0179', SectionRole.Response))
  const referring = [12, 16, 20].map((streamId) => fixture.decode(streamId, '0200 80'))
  assert.equal(plain[1], plain[2])
  assert.equal(referring[1], referring[2])
  assert.equal(fixture.sent(), '8c9094', 'each is acknowledged')
  fixture.feed('4179 0163')
  assert.equal(fixture.decode(24, '0000 d9 2178 0179', SectionRole.Response), plain[1])
  const anew = fixture.decode(28, '0200 80')
  assert.deepEqual(anew?.fields, ['x', 'b'])
  // When the entry is gone, the same octets are a fault.
  fixture.feed('20')
  assert.equal(fixture.decode(32, '0200 80'), undefined)
})

test('an instruction that dribbles in is bounded, and read once', () => {
  const { decoder } = new Fixture()
  const capacity = bytes('3fbd01')
  decoder.receive(capacity, 0, capacity.length)
  // A value of 800 octets in Huffman code may still fit a table of 220.
  const insertion = bytes(`4178 ffa105 ${'ff'.repeat(799)}`)
  for (let at = 0; at < insertion.length; at++) assert.equal(decoder.receive(insertion, at, at + 1), undefined)
  assert.ok(decoder.pinned <= 2048)
  const last = bytes('ff')
  assert.match(decoder.receive(last, 0, 1)?.reason ?? '', /not Huffman/)
})
