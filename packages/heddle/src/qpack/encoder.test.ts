import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Outbox } from '../bytes/index.ts'
import { SectionRole, type FieldSection } from '../fieldcode/index.ts'
import { Head, requestHead, responseHead, UsageError, type Fields } from '../http/index.ts'
import { Decoder } from './decoder.ts'
import { Encoder } from './encoder.ts'
import { QpackError } from './fault.ts'
import type { EncoderLimits } from './limits.ts'

/** An encoder and the decoder it writes for. Streams and sections arrive when the test says so. */
class Pair {
  readonly encoder: Encoder
  readonly decoder: Decoder
  readonly told: (readonly string[])[]

  constructor(capacity = 4096, blocked = 0, limits: Partial<EncoderLimits> = {}) {
    this.encoder = new Encoder(limits)
    this.decoder = new Decoder({
      maxFieldLines: 100,
      maxFieldSectionSize: 65_536,
      maxFieldLineSize: 16_384,
      maxTableCapacity: capacity,
      maxBlockedStreams: blocked,
    })
    this.told = []
    assert.equal(this.encoder.allow(capacity, blocked), undefined)
  }

  trailers(streamId: number, fields: Fields): Buffer {
    return written((out) => this.encoder.writeTrailers(streamId, fields, out))
  }

  response(streamId: number, head: Head, date = '', omitLength = false): Buffer {
    return written((out) => this.encoder.writeResponse(streamId, head, date, omitLength, out))
  }

  /** Brings the encoder's instructions to the decoder, and returns them. */
  instruct(): string {
    const { instructions } = this.encoder
    const octets = instructions.buffer.subarray(0, instructions.length)
    assert.equal(this.decoder.receive(octets, 0, octets.length), undefined)
    const hex = octets.toString('hex')
    instructions.length = 0
    return hex
  }

  /** Brings the decoder's instructions to the encoder, and returns them. */
  acknowledge(): string {
    this.decoder.finishInstructions()
    const { instructions } = this.decoder
    const octets = instructions.buffer.subarray(0, instructions.length)
    assert.equal(this.encoder.receive(octets, 0, octets.length), undefined)
    const hex = octets.toString('hex')
    instructions.length = 0
    return hex
  }

  decode(streamId: number, section: Buffer, role: SectionRole = SectionRole.Trailers): FieldSection | undefined {
    const read = this.decoder.decode(streamId, section, 0, section.length, role, {
      onSection: (late) => this.told.push([String(streamId), ...late.fields]),
    })
    assert.equal(this.decoder.fault, undefined)
    return read
  }

  /** Sends a section and everything that belongs to it; returns its fields as the decoder sees them. */
  pass(streamId: number, fields: Fields): Fields | undefined {
    const section = this.trailers(streamId, fields)
    this.instruct()
    const read = this.decode(streamId, section)
    this.acknowledge()
    return read?.fields
  }
}

function written(write: (out: Outbox) => void): Buffer {
  const out = new Outbox(Buffer.alloc(0), 1 << 20)
  // Something stands before the section, as a frame header does.
  out.writeLatin1('head')
  write(out)
  assert.equal(out.buffer.toString('latin1', 0, 4), 'head')
  return Buffer.from(out.buffer.subarray(4, out.length))
}

const hexOf = (section: Buffer): string => section.toString('hex')

test('before the peer has told its settings, and where it allows no table, there is no table', () => {
  for (const encoder of [new Encoder(), new Pair(0).encoder]) {
    const section = written((out) => encoder.writeTrailers(0, ['x-a', 'b', 'accept', '*/*'], out))
    assert.equal(section.subarray(0, 2).toString('hex'), '0000')
    assert.equal(section.at(-1), 0xdd)
    assert.equal(encoder.instructions.length, 0)
  }
})

test('where no stream may be blocked, an entry is referred to when the peer is known to have it', () => {
  const pair = new Pair()
  const first = pair.trailers(0, ['x-a', 'b'])
  assert.equal(hexOf(first).slice(0, 4), '0000')
  assert.match(pair.instruct(), /^3fe11f/)
  assert.equal(hexOf(pair.trailers(4, ['x-a', 'b'])).slice(0, 4), '0000', 'not yet')
  assert.equal(pair.instruct(), '', 'it is inserted once')
  assert.deepEqual(pair.decode(0, first)?.fields, ['x-a', 'b'])
  assert.equal(pair.acknowledge(), '01')
  const later = pair.trailers(8, ['x-a', 'b'])
  assert.equal(hexOf(later), '020080')
  assert.equal(pair.encoder.outstandingSections, 1)
  assert.deepEqual(pair.decode(8, later)?.fields, ['x-a', 'b'])
  assert.equal(pair.acknowledge(), '88')
  assert.equal(pair.encoder.outstandingSections, 0)
})

test('where streams may be blocked, an entry is referred to at once, by as many streams as allowed', () => {
  const pair = new Pair(4096, 2)
  const sections = [0, 4, 8].map((streamId) => pair.trailers(streamId, ['x-a', 'b']))
  // Post-base for the first: the Base was before the insertion.
  assert.equal(hexOf(sections[0] as Buffer), '028010')
  assert.equal(hexOf(sections[1] as Buffer), '020080')
  assert.equal(hexOf(sections[2] as Buffer).slice(0, 4), '0000', 'the third goes without')
  assert.equal(hexOf(pair.trailers(0, ['x-a', 'b'])), '020080', 'a stream that may be blocked already may have more')
  for (const [i, section] of sections.entries()) pair.decode(4 * i, section)
  assert.equal(pair.decoder.blockedStreams, 2)
  pair.instruct()
  assert.deepEqual(pair.told, [
    ['0', 'x-a', 'b'],
    ['4', 'x-a', 'b'],
  ])
  assert.equal(pair.acknowledge(), '8084')
  assert.equal(hexOf(pair.trailers(12, ['x-a', 'b'])), '020080')
})

test('an acknowledged section, a cancelled stream and an increment make room for other streams to be blocked', () => {
  const lines: Fields = ['x-a', 'b']
  for (const [what, instruction] of [
    ['an acknowledgement', [0x80]],
    ['a cancellation', [0x40]],
    ['an increment', [0x01]],
  ] as const) {
    const pair = new Pair(4096, 1)
    pair.trailers(0, lines)
    assert.equal(hexOf(pair.trailers(4, ['x-c', 'd'])).slice(0, 4), '0000', what)
    assert.equal(pair.encoder.receive(Uint8Array.from(instruction), 0, 1), undefined)
    const section = hexOf(pair.trailers(8, ['x-c', 'd']))
    assert.notEqual(section.slice(0, 4), '0000', what)
  }
})

test('a name is referred to where the line cannot be', () => {
  const pair = new Pair(4096, 4)
  pair.pass(0, ['x-long-name', 'b'])
  const secret = 'x'.repeat(1100)
  const section = pair.trailers(4, ['x-long-name', secret])
  assert.equal(hexOf(section).slice(0, 6), '020040', 'too long for the table')
  assert.equal(pair.instruct(), '')
  assert.deepEqual(pair.decode(4, section)?.fields, ['x-long-name', secret])
  // A value that comes new is inserted with the name of the other.
  const next = pair.trailers(8, ['x-long-name', 'c', 'x-long-name', secret])
  assert.match(pair.instruct(), /^80/)
  assert.match(hexOf(next), /^03801000/, 'post-base twice: the entry, then its name')
  assert.deepEqual(pair.decode(8, next)?.fields, ['x-long-name', 'c', 'x-long-name', secret])
})

test('secrets are never indexed, and enter no table', () => {
  const pair = new Pair(4096, 16)
  const secrets: Fields = ['authorization', 'Bearer abc', 'cookie', 'short=1', 'proxy-authorization', 'Basic eA==', 'set-cookie', 'a=b']
  const sections = [0, 4].map((streamId) => pair.trailers(streamId, secrets))
  assert.deepEqual(sections[0], sections[1])
  assert.equal(pair.instruct(), '3fe11f')
  const [section] = sections as [Buffer]
  assert.equal((section[2] as number) & 0xf0, 0x70, 'never indexed, static name: 0111')
  const name = section.indexOf(Buffer.from('3f', 'hex'))
  assert.ok(name > 0, 'never indexed, literal name: 0011')
  assert.deepEqual(pair.decode(0, section)?.fields, secrets)
  const head = requestHead('GET', 'https', 'a.test', '/', secrets)
  const heads = [8, 12, 16, 20].map((streamId) => written((out) => pair.encoder.writeRequest(streamId, head, out)))
  pair.instruct()
  for (const [i, coded] of heads.entries()) {
    assert.deepEqual(pair.decode(8 + 4 * i, coded, SectionRole.Request)?.fields, secrets)
  }
})

test('nothing goes that the peer may need, and what is in the way is duplicated when it is used', () => {
  // Four entries of 35 octets fit.
  const pair = new Pair(140, 16)
  const line = (i: number): Fields => ['x', `v${i}`]
  for (let i = 0; i < 4; i++) pair.pass(4 * i, line(i))
  const held = pair.trailers(100, line(0))
  assert.equal(hexOf(held), '020383', 'the oldest: Required 1, Base 4')
  assert.equal(hexOf(pair.trailers(104, line(9))).slice(0, 2), '05', 'no room, for the oldest is needed: a literal with a name')
  assert.equal(pair.instruct(), '')
  // Acknowledged, it may go; but it is in use, so it is made again at the other end.
  pair.decode(100, held)
  pair.acknowledge()
  const again = pair.trailers(108, line(0))
  assert.equal(pair.instruct(), '03')
  assert.deepEqual(pair.decode(108, again)?.fields, line(0))
  pair.acknowledge()
  assert.deepEqual(pair.pass(112, line(9)), line(9))
  // An indexed line behind the prefix, for each that is there; the one that went is a literal with a name.
  for (const i of [0, 2, 3, 9]) assert.equal((pair.trailers(120 + 4 * i, line(i))[2] as number) & 0xc0, 0x80, `${i} is there`)
  assert.equal((pair.trailers(200, line(1))[2] as number) & 0xc0, 0x40)
})

test('entries the peer is not known to have are not evicted either, though nothing refers to them', () => {
  for (const blocked of [0, 16]) {
    const pair = new Pair(140, blocked)
    for (let i = 0; i < 10; i++) pair.trailers(4 * i, ['x', `v${i}`])
    assert.equal(pair.encoder.tableSize, 140)
    pair.instruct()
    assert.equal(pair.decoder.tableSize, 140)
    assert.equal(pair.acknowledge(), '04', 'four, and no more, came')
  }
})

test('a name is not referred to where its entry is in the way', () => {
  const pair = new Pair(140, 16)
  for (let i = 0; i < 4; i++) pair.pass(4 * i, [`x-${i}`, ''])
  const long = 'z'.repeat(1100)
  const name = (i: number): Buffer => pair.trailers(1000, [`x-${i}`, long])
  assert.equal((name(0)[2] as number) & 0xc0, 0x40, 'a reference')
  pair.trailers(1004, ['y', 'new'])
  assert.equal((name(0)[2] as number) & 0xe0, 0x20, 'no reference to the oldest now, for it was needed when a line came')
  assert.equal((name(3)[2] as number) & 0xc0, 0x40)
})

test('a remembered head is not used once what it refers to is gone', () => {
  const pair = new Pair(140, 16)
  const head = responseHead(200, ['x', 'a'])
  for (let i = 0; i < 30; i++) {
    for (let times = 0; times < 4; times++) {
      const streamId = 100 * i + 4 * times
      const section = pair.response(streamId, head)
      pair.instruct()
      assert.deepEqual(pair.decode(streamId, section, SectionRole.Response)?.fields, ['x', 'a'])
      pair.acknowledge()
    }
    // Enough lines to push out everything, and nothing is new to the peer when the head comes again.
    for (let k = 0; k < 5; k++) assert.deepEqual(pair.pass(100 * i + 40 + 4 * k, ['y', `${i} ${k}`]), ['y', `${i} ${k}`])
  }
})

test('a smaller and a larger table, as far as what is needed allows', () => {
  const pair = new Pair(4096, 16, { maxTableCapacity: 1000 })
  assert.equal(pair.instruct(), '3fc907')
  const section = pair.trailers(0, ['x-a', 'b'])
  assert.equal(pair.encoder.setCapacity(0), false, 'the peer may need the entry')
  assert.match(pair.instruct(), /^4/)
  pair.decode(0, section)
  pair.acknowledge()
  assert.equal(pair.encoder.setCapacity(0), true)
  assert.equal(pair.instruct(), '20')
  assert.equal(pair.decoder.tableSize, 0)
  assert.equal(pair.encoder.setCapacity(9999), true)
  assert.equal(pair.instruct(), '3fc907')
  assert.deepEqual(pair.pass(4, ['x-a', 'b']), ['x-a', 'b'])
})

test('a table as large as both allow is still one of 1 MiB', () => {
  const { encoder } = new Pair(2 ** 53, 16, { maxTableCapacity: Number.MAX_SAFE_INTEGER })
  const out = Buffer.from(encoder.instructions.buffer.subarray(0, encoder.instructions.length))
  assert.equal(out.toString('hex'), '3fe1ff3f')
  assert.notEqual(hexOf(written((to) => encoder.writeTrailers(0, ['x-a', 'b'], to))).slice(0, 4), '0000')
})

test('instructions keep to the credit there is', () => {
  const pair = new Pair(4096, 16)
  pair.instruct()
  pair.encoder.instructionCredit = 40
  for (let i = 0; i < 20; i++) {
    pair.trailers(4 * i, [`x-${i}`, 'value'])
    assert.ok(pair.encoder.instructions.length <= 40)
  }
  pair.encoder.instructionCredit = Infinity
  const before = pair.encoder.instructions.length
  pair.trailers(100, ['x-19', 'value'])
  assert.ok(pair.encoder.instructions.length > before)
})

test('a peer that never acknowledges costs no more than so many sections', () => {
  const pair = new Pair(4096, 0, { maxOutstandingSections: 10 })
  pair.pass(0, ['x-a', 'b'])
  for (let i = 1; i <= 100; i++) pair.trailers(4 * i, ['x-a', 'b'])
  assert.equal(pair.encoder.outstandingSections, 10)
  assert.equal(hexOf(pair.trailers(404, ['x-a', 'b'])).slice(0, 4), '0000')
  pair.encoder.abandon(4)
  assert.equal(pair.encoder.outstandingSections, 9)
  assert.equal(hexOf(pair.trailers(408, ['x-a', 'b'])), '020080')
  for (let i = 1; i <= 5; i++) pair.trailers(408, ['x-a', 'b'])
  assert.equal(pair.encoder.outstandingSections, 10)
})

test('what is written to a stream after its cancellation refers to nothing: nobody will acknowledge it', () => {
  const pair = new Pair(4096, 16)
  const head = responseHead(200, ['x-a', 'b'])
  for (let i = 0; i < 4; i++) pair.response(4 * i, head)
  pair.instruct()
  for (let i = 0; i < 1000; i++) {
    pair.decoder.cancelStream(4 * i)
    pair.acknowledge()
    assert.equal(hexOf(pair.response(4 * i, head)).slice(0, 4), '0000')
    assert.equal(hexOf(pair.trailers(4 * i, ['x-a', 'b'])).slice(0, 4), '0000')
  }
  assert.equal(pair.encoder.outstandingSections, 0)
  assert.equal(hexOf(pair.response(4000, head)).slice(0, 4), '0200')
})

test('decoder instructions that cannot be obeyed say why', () => {
  const cases: [string, RegExp][] = [
    ['84', /stream 4/],
    ['8080', /stream 0/],
    ['00', /Increment of 0/],
    ['02', /Increment of 2/],
    ['0101', /Increment of 1/],
    ['8001', /Increment of 1/],
    ['4080', /stream 0/],
    ['ffffffffffffffffff7f', /too large/],
    ['3f8080808080808080808000', /too large/],
  ]
  for (const [hex, reason] of cases) {
    for (const size of [100, 1]) {
      const { encoder } = new Pair(4096, 16)
      written((out) => encoder.writeTrailers(0, ['x-a', 'b'], out))
      const octets = Buffer.from(hex, 'hex')
      for (let at = 0; at < octets.length; at += size) {
        if (encoder.receive(octets, at, Math.min(at + size, octets.length)) !== undefined) break
      }
      assert.equal(encoder.fault?.code, QpackError.decoderStreamError, hex)
      assert.match(encoder.fault.reason, reason, hex)
    }
  }
  const { encoder } = new Pair(4096, 16)
  const fine = Buffer.from('7fffffffffffffffff3f 44 01'.replaceAll(' ', ''), 'hex')
  written((out) => encoder.writeTrailers(0, ['x-a', 'b'], out))
  assert.equal(encoder.receive(fine, 0, fine.length), undefined, 'streams that had nothing may be cancelled')
})

test('early data relies on the capacity that was remembered', () => {
  const { encoder } = new Pair(220, 0)
  assert.equal(encoder.allow(220, 16), undefined)
  assert.equal(encoder.allow(4096, 16)?.code, QpackError.decoderStreamError)
  const later = new Encoder()
  assert.equal(later.allow(0, 0), undefined)
  assert.equal(later.allow(4096, 16), undefined)
  assert.ok(later.instructions.length > 0)
})

test('a head that comes again is a copy, on each stream acknowledged by itself', () => {
  const pair = new Pair(4096, 16)
  const head = responseHead(200, ['server', 'heddle', 'x-a', 'b'])
  const sections = Array.from({ length: 6 }, (_, i) => pair.response(4 * i, head))
  assert.match(hexOf(sections[0] as Buffer), /^0381d91011$/)
  for (const section of sections.slice(1)) assert.equal(hexOf(section), '0300d98180')
  pair.instruct()
  for (const [i, section] of sections.entries())
    assert.deepEqual(pair.decode(4 * i, section, SectionRole.Response)?.fields, [...head.fields])
  assert.equal(pair.acknowledge(), '8084888c9094')
  assert.equal(pair.encoder.outstandingSections, 0)
})

test('a remembered head is not used where it would block one stream too many, nor once the table has changed', () => {
  const pair = new Pair(4096, 3)
  const head = responseHead(200, ['x-a', 'b'])
  const sections = Array.from({ length: 5 }, (_, i) => hexOf(pair.response(4 * i, head)))
  assert.deepEqual(
    sections.map((section) => section.slice(0, 4)),
    ['0280', '0200', '0200', '0000', '0000'],
  )
  pair.instruct()
  pair.acknowledge()
  for (let i = 5; i < 40; i++) {
    assert.equal(hexOf(pair.response(4 * i, head)).slice(0, 2), '02')
    if (i % 7 === 6) pair.pass(1000 + 4 * i, ['x-other', String(i)])
    assert.deepEqual(pair.decode(4 * i, pair.response(4 * i, head), SectionRole.Response)?.fields, ['x-a', 'b'])
  }
})

test('heads that differ in one word, or in their date, are told apart; a length can be left out', () => {
  const pair = new Pair(4096, 16)
  const heads = [
    requestHead('GET', 'http', 'a.test', '/'),
    requestHead('GET', 'http', 'a.test', '/x'),
    requestHead('GET', 'http', 'b.test', '/'),
    requestHead('HEAD', 'https', 'a.test', '/', ['x', 'y']),
    requestHead('CONNECT', 'https', 'a.test', '/', [], 'websocket'),
    requestHead('CONNECT', '', 'a.test:443', ''),
  ]
  let streamId = 0
  const pass = (section: Buffer, role: SectionRole): FieldSection | undefined => {
    pair.instruct()
    const read = pair.decode(streamId, section, role)
    pair.acknowledge()
    return read
  }
  for (let round = 0; round < 12; round++, streamId += 4) {
    for (const head of heads) {
      const section = written((out) => pair.encoder.writeRequest(streamId, head, out))
      assert.deepEqual(pass(section, SectionRole.Request)?.head, head)
    }
    const head = responseHead(204, ['content-length', '0', 'x', 'y'])
    for (const date of ['one', 'one', 'two']) {
      const read = pass(pair.response(streamId, head, date), SectionRole.Response)
      assert.deepEqual(read?.fields, ['content-length', '0', 'x', 'y', 'date', date])
    }
    assert.deepEqual(pass(pair.response(streamId, head, '', true), SectionRole.Response)?.fields, ['x', 'y'])
  }
})

test('fields of the connection are left out, and te but for trailers', () => {
  const pair = new Pair()
  const fields = ['connection', 'x', 'te', 'gzip', 'host', 'a', 'upgrade', 'h2c', 'te', 'trailers', 'x', 'y']
  assert.deepEqual(pair.pass(0, fields), ['te', 'trailers', 'x', 'y'])
})

test('what cannot be sent is refused before anything of it is written, and the table stays as it was', () => {
  const { encoder } = new Pair()
  encoder.instructions.length = 0
  for (const bad of [
    ['x', 'y', 'Bad', 'z'],
    ['x-new', 'value', 'x', 'a\r\nb'],
    ['x-new', 'value', 'odd'],
    ['', 'x'],
    [':path', '/'],
  ]) {
    const out = new Outbox(Buffer.alloc(0), 1 << 20)
    assert.throws(() => encoder.writeResponse(0, responseHead(200, bad), '', false, out), UsageError)
    assert.throws(() => encoder.writeTrailers(0, bad, out), UsageError)
    assert.throws(() => encoder.writeRequest(0, requestHead('GET', 'http', 'a', '/', bad), out), UsageError)
    assert.equal(out.length + encoder.instructions.length + encoder.tableSize, 0)
  }
})

test('a prefix that needs more than two octets moves the lines behind it', () => {
  const pair = new Pair(65_536, 16, { maxTableCapacity: 65_536 })
  pair.instruct()
  const lines = (i: number): Fields => ['x', `value-${i}`]
  for (let i = 0; i < 400; i++) assert.deepEqual(pair.pass(4 * i, lines(i)), lines(i))
  const section = pair.trailers(4000, lines(3))
  // Required 4, and a Base 396 entries further.
  assert.match(hexOf(section), /^057f8d02/)
  assert.deepEqual(pair.decode(4000, section)?.fields, lines(3))
  const late = pair.trailers(4004, lines(399))
  assert.match(hexOf(late), /^ff920100/)
  assert.deepEqual(pair.decode(4004, late)?.fields, lines(399))
})
