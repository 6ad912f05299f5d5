import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Outbox } from '../bytes/index.ts'
import { SectionRole, type FieldSection } from '../fieldcode/index.ts'
import { requestHead, responseHead, type Fields } from '../http/index.ts'
import { Decoder } from './decoder.ts'
import { Encoder } from './encoder.ts'
import type { DecoderLimits } from './limits.ts'

const sectionLimits = { maxFieldLines: 100, maxFieldSectionSize: 65_536, maxFieldLineSize: 16_384 }

interface Sent {
  readonly octets: Buffer
  readonly role: SectionRole
  readonly expected: readonly unknown[]
}

/**
 * An encoder and a decoder with three kinds of streams between them, each ordered in itself and as late as the
 * test says: the encoder's instructions, the decoder's instructions, and the sections of each request.
 */
class Network {
  readonly encoder: Encoder
  readonly decoder: Decoder
  readonly limits: DecoderLimits
  /** Instructions under way: to the decoder, to the encoder. */
  toDecoder: Buffer
  toEncoder: Buffer
  readonly streams: Map<number, Sent[]>
  /** Streams the decoder's side reads no further, whatever is still sent. */
  readonly dead: Set<number>
  /** Streams whose first section waits. */
  readonly waiting: Map<number, Sent>
  decoded: number

  constructor(capacity: number, blocked: number, most: number, outstanding: number) {
    this.limits = { ...sectionLimits, maxTableCapacity: capacity, maxBlockedStreams: blocked }
    this.encoder = new Encoder({ maxTableCapacity: most, maxOutstandingSections: outstanding })
    this.decoder = new Decoder(this.limits)
    this.toDecoder = Buffer.alloc(0)
    this.toEncoder = Buffer.alloc(0)
    this.streams = new Map()
    this.dead = new Set()
    this.waiting = new Map()
    this.decoded = 0
  }

  send(streamId: number, role: SectionRole, fields: Fields): void {
    const out = new Outbox(Buffer.alloc(0), 1 << 20)
    let expected: readonly unknown[] = fields
    if (role === SectionRole.Request) {
      const path = `/${fields.length}?q`
      this.encoder.writeRequest(streamId, requestHead('POST', 'https', 'a.example', path, fields), out)
      expected = ['POST', 'https', 'a.example', path, ...fields]
    } else if (role === SectionRole.Response) {
      this.encoder.writeResponse(streamId, responseHead(200, fields), 'a date', false, out)
      expected = [200, ...fields, 'date', 'a date']
    } else this.encoder.writeTrailers(streamId, fields, out)
    const queue = this.dead.has(streamId) ? [] : (this.streams.get(streamId) ?? [])
    if (!this.dead.has(streamId)) this.streams.set(streamId, queue)
    queue.push({ octets: Buffer.from(out.buffer.subarray(0, out.length)), role, expected })
  }

  /** Brings `count` octets of the encoder stream. */
  instruct(count: number): void {
    const { instructions } = this.encoder
    this.toDecoder = Buffer.concat([this.toDecoder, instructions.buffer.subarray(0, instructions.length)])
    instructions.length = 0
    const fault = this.decoder.receive(this.toDecoder, 0, Math.min(count, this.toDecoder.length))
    assert.equal(fault, undefined)
    this.toDecoder = this.toDecoder.subarray(count)
  }

  /** Brings `count` octets of the decoder stream. */
  acknowledge(count: number, increments: boolean): void {
    if (increments) this.decoder.finishInstructions()
    const { instructions } = this.decoder
    this.toEncoder = Buffer.concat([this.toEncoder, instructions.buffer.subarray(0, instructions.length)])
    instructions.length = 0
    const fault = this.encoder.receive(this.toEncoder, 0, Math.min(count, this.toEncoder.length))
    assert.equal(fault, undefined)
    this.toEncoder = this.toEncoder.subarray(count)
  }

  /** Brings the next section of a stream, unless one of it waits. */
  deliver(streamId: number): void {
    const queue = this.streams.get(streamId)
    if (queue === undefined || this.waiting.has(streamId)) return
    const sent = queue.shift()
    if (queue.length === 0) this.streams.delete(streamId)
    if (sent === undefined) return
    const octets = Buffer.from(sent.octets)
    const section = this.decoder.decode(streamId, octets, 0, octets.length, sent.role, {
      onSection: (late) => {
        assert.equal(this.waiting.get(streamId), sent)
        this.waiting.delete(streamId)
        this.#check(late, sent)
      },
    })
    octets.fill(0xff)
    assert.equal(this.decoder.fault, undefined)
    if (section !== undefined) this.#check(section, sent)
    else this.waiting.set(streamId, sent)
    assert.equal(this.decoder.blockedStreams, this.waiting.size)
    assert.ok(this.waiting.size <= this.limits.maxBlockedStreams)
  }

  cancel(streamId: number): void {
    if (this.dead.has(streamId)) return
    this.dead.add(streamId)
    this.streams.delete(streamId)
    this.waiting.delete(streamId)
    this.decoder.cancelStream(streamId)
  }

  #check(section: FieldSection, { expected }: Sent): void {
    const { head, fields, fault } = section
    assert.equal(fault, '')
    const words = head === undefined ? [] : head.status > 0 ? [head.status] : [head.method, head.scheme, head.authority, head.path]
    assert.deepEqual([...words, ...fields], expected)
    this.decoded++
  }
}

const name = fc.constantFrom(
  'accept',
  'x-a',
  'x-b',
  'x-c',
  'cookie',
  'authorization',
  'content-type',
  'etag',
  'x-long-name-of-a-field',
  'te',
)
const value = fc.oneof(
  fc.constantFrom('', 'a', '*/*', 'gzip, deflate', 'trailers', 'x'.repeat(200)),
  fc.integer({ min: 0, max: 30 }).map((n) => `value ${n}`),
  fc.string({ maxLength: 30 }),
)
const fieldLines: fc.Arbitrary<Fields> = fc
  .array(fc.tuple(name, value), { maxLength: 8 })
  .map((lines) => lines.flatMap(([key, text]) => [key, key === 'te' ? 'trailers' : text.trim().replaceAll('\u007f', '')]))

const slot = fc.nat(5)
const step = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constant('send' as const), slot, fc.constantFrom(0, 1, 2), fieldLines) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('instruct' as const), fc.constantFrom(1, 2, 7, 30, 1000)) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('acknowledge' as const), fc.constantFrom(1, 2, 10), fc.boolean()) },
  { weight: 5, arbitrary: fc.tuple(fc.constant('deliver' as const), slot) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('cancel' as const), slot) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('heard' as const), slot) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('capacity' as const), fc.constantFrom(0, 40, 100, 220, 4096)) },
)

test('whatever is late, lost to a reset, or out of order, what was sent is what is read', () => {
  const capacity = fc.constantFrom(0, 32, 64, 100, 220, 500, 4096)
  let references = 0
  let waited = 0
  fc.assert(
    fc.property(
      capacity,
      capacity,
      fc.constantFrom(0, 1, 2, 100),
      fc.constantFrom(2, 5, 1000),
      fc.array(step, { maxLength: 120, size: 'max' }),
      (allowed, most, blocked, outstanding, steps) => {
        const network = new Network(allowed, blocked, most, outstanding)
        const { encoder, decoder, waiting, streams } = network
        const settingsAt = steps.length % 7
        // A cancelled stream is written to until its writer hears of it, and then another takes its place.
        const ids = [0, 4, 8, 12, 16, 20]
        const idOf = (slot: number): number => ids[slot] as number
        for (const [at, action] of steps.entries()) {
          if (at === settingsAt) encoder.allow(allowed, blocked)
          if (action[0] === 'send') network.send(idOf(action[1]), action[2] as SectionRole, action[3])
          else if (action[0] === 'instruct') network.instruct(action[1])
          else if (action[0] === 'acknowledge') network.acknowledge(action[1], action[2])
          else if (action[0] === 'deliver') network.deliver(idOf(action[1]))
          else if (action[0] === 'cancel') network.cancel(idOf(action[1]))
          else if (action[0] === 'heard') ids[action[1]] = idOf(action[1]) + (network.dead.has(idOf(action[1])) ? 24 : 0)
          else encoder.setCapacity(action[1])
          assert.ok(encoder.tableSize <= Math.min(allowed, most) && decoder.tableSize <= allowed)
          assert.ok(encoder.outstandingSections <= outstanding)
          references += encoder.outstandingSections
          waited += waiting.size
        }
        // In the end everything arrives.
        network.instruct(Infinity)
        while (streams.size > 0) for (const id of streams.keys()) network.deliver(id)
        assert.equal(waiting.size, 0)
        assert.equal(decoder.blockedStreams, 0)
        assert.ok(decoder.pinned < 20_000)
        network.acknowledge(Infinity, true)
        assert.equal(encoder.outstandingSections, 0)
        assert.equal(encoder.tableSize, decoder.tableSize)
      },
    ),
    { numRuns: 1000 },
  )
  assert.ok(references > 1000 && waited > 100, `${references} ${waited}: the property was put to the test`)
})

const hex = (...texts: readonly string[]): fc.Arbitrary<Buffer> => fc.constantFrom(...texts.map((text) => Buffer.from(text, 'hex')))
/** Octets of which the first may begin anything, and the others are a number and a string that may fit. */
const likely = fc
  .tuple(fc.nat(255), fc.nat(6))
  .map(([octet, length]) => Buffer.from([octet, length, ...Array.from({ length }, () => 0x61)]))
const anything = fc.uint8Array({ maxLength: 12 })
const mostly = (...texts: readonly string[]): fc.Arbitrary<Buffer> =>
  fc
    .array(fc.oneof({ weight: 12, arbitrary: hex(...texts) }, { weight: 2, arbitrary: likely }, { weight: 1, arbitrary: anything }), {
      maxLength: 4,
    })
    .map((pieces) => Buffer.concat(pieces))
const hostileStream = mostly('3fe11f', '3f80', '20', '00', '01', '800161', 'c10162', '41780162', '61a800')
const hostileLines = mostly('dd', '80', '81', '10', '11', '5d0161', '4000', '000161', '0900', '21610162', '2961a800')
const hostileSection = fc
  .tuple(hex('0000', '0200', '0280', '0300', '0381', '0482', '0500', '0501', '0502', '0581', '0600', '0682', '0a7f', ''), hostileLines)
  .map((pieces) => Buffer.concat(pieces))

test('hostile instructions and sections are judged without a throw, and within bounds', () => {
  const limits: DecoderLimits = { ...sectionLimits, maxTableCapacity: 4096, maxBlockedStreams: 4 }
  const opening = Buffer.from('3fe11f417801624179016301', 'hex')
  const sections = fc.tuple(fc.constant(true), hostileSection, fc.nat(9))
  const streams = fc.tuple(fc.constant(false), hostileStream, fc.nat(9))
  let read = 0
  let waited = 0
  let inserted = 0
  fc.assert(
    fc.property(fc.boolean(), fc.array(fc.oneof(sections, streams), { maxLength: 20, size: 'max' }), (opened, all) => {
      const decoder = new Decoder(limits)
      const handler = { onSection: () => waited++ }
      if (opened) decoder.receive(opening, 0, opening.length)
      for (const [isSection, octets, id] of all) {
        const size = decoder.tableSize
        if (!isSection) decoder.receive(octets, 0, octets.length)
        else if (decoder.decode(id * 4, octets, 0, octets.length, SectionRole.Trailers, handler) !== undefined) read++
        if (decoder.tableSize > size) inserted++
        assert.ok(decoder.tableSize <= 4096)
        assert.ok(decoder.blockedStreams <= 4)
        assert.ok(decoder.pinned <= 4 * 200 + 17_000 + 2048)
        if (decoder.fault !== undefined) return assert.notEqual(decoder.fault.reason, '')
        if (id === 9) decoder.cancelStream(0)
        decoder.finishInstructions()
      }
    }),
    { numRuns: 5000 },
  )
  assert.ok(read > 100 && inserted > 100 && waited > 0, `${read} ${inserted} ${waited}: some of it was in order`)
})

test('a hostile decoder stream is judged without a throw, and never makes the encoder evict what is in use', () => {
  const acks = fc.oneof(
    { weight: 1, arbitrary: fc.array(fc.nat(255), { maxLength: 6 }) },
    { weight: 9, arbitrary: fc.subarray([0x40, 0x44, 0x48, 0x4c, 0x01], { maxLength: 2 }) },
  )
  let alive = 0
  fc.assert(
    fc.property(fc.array(fc.tuple(slot, fieldLines, acks), { maxLength: 30, size: 'max' }), (all) => {
      const network = new Network(100, 4, 100, 8)
      const { encoder } = network
      encoder.allow(100, 4)
      for (const [id, fields, octets] of all) {
        network.send(id * 4, SectionRole.Trailers, fields)
        assert.ok(encoder.tableSize <= 100 && encoder.outstandingSections <= 8)
        if (encoder.receive(Uint8Array.from(octets), 0, octets.length) !== undefined) return assert.equal(encoder.fault?.code, 0x202)
        alive++
      }
      // The instructions themselves are in order, whatever was acknowledged.
      network.instruct(Infinity)
      assert.equal(network.decoder.tableSize, encoder.tableSize)
    }),
    { numRuns: 1000 },
  )
  assert.ok(alive > 1000)
})

test('the octets of any stream in any pieces come to the same table and the same fault', () => {
  fc.assert(
    fc.property(hostileStream, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 }), (octets, sizes) => {
      const whole = new Decoder({ ...sectionLimits, maxTableCapacity: 4096, maxBlockedStreams: 4 })
      const cut = new Decoder({ ...sectionLimits, maxTableCapacity: 4096, maxBlockedStreams: 4 })
      const stream = Buffer.concat([Buffer.from('3fe11f', 'hex'), octets])
      whole.receive(stream, 0, stream.length)
      for (let at = 0, i = 0; at < stream.length && cut.fault === undefined; i++) {
        const size = sizes[i % sizes.length] as number
        cut.receive(stream, at, Math.min(at + size, stream.length))
        at += size
      }
      // The reason may be another: what is too long is told before it has come.
      assert.equal(cut.fault?.code, whole.fault?.code)
      assert.equal(cut.tableSize, whole.tableSize)
    }),
    { numRuns: 2000 },
  )
})
