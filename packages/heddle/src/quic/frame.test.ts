import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Level } from '../native/index.ts'
import { readDebugFrames, writeDebugFrame, type DebugFrame } from './debug-frame.ts'
import { FrameReader } from './frame.ts'
import { FrameType } from './frame-type.ts'
import { PacketWriter } from './packet-writer.ts'
import { TransportError } from './transport-error.ts'

const [initial, early, handshake, application] = [0, 1, 2, 3] as const
const levels: readonly Level[] = [initial, early, handshake, application]

/** A frame of every type as it lies on the wire, and what it says. */
const samples: readonly (readonly [hex: string, frame: DebugFrame])[] = [
  ['000000', { type: 'PADDING', size: 3 }],
  ['01', { type: 'PING' }],
  ['02 0a 4064 00 03', { type: 'ACK', ranges: [[7, 10]], delay: 100 }],
  [
    '02 0a 00 02 01 00 01 02 00',
    {
      type: 'ACK',
      ranges: [
        [9, 10],
        [6, 7],
        [2, 2],
      ],
      delay: 0,
    },
  ],
  ['03 05 07 00 05 01 02 4100', { type: 'ACK', ranges: [[0, 5]], delay: 7, ecn: { ect0: 1, ect1: 2, ce: 256 } }],
  ['04 08 4111 7fff', { type: 'RESET_STREAM', streamId: 8, code: 0x111, finalSize: 0x3fff }],
  ['05 0b 02', { type: 'STOP_SENDING', streamId: 11, code: 2 }],
  ['06 4400 02 aabb', { type: 'CRYPTO', offset: 1024, data: Uint8Array.of(0xaa, 0xbb) }],
  ['07 03 010203', { type: 'NEW_TOKEN', token: Uint8Array.of(1, 2, 3) }],
  ['08 04 6869', { type: 'STREAM', streamId: 4, offset: 0, data: Uint8Array.of(0x68, 0x69), fin: false }],
  ['09 04', { type: 'STREAM', streamId: 4, offset: 0, data: new Uint8Array(0), fin: true }],
  ['0a 04 01 68', { type: 'STREAM', streamId: 4, offset: 0, data: Uint8Array.of(0x68), fin: false }],
  ['0b 04 00', { type: 'STREAM', streamId: 4, offset: 0, data: new Uint8Array(0), fin: true }],
  ['0c 04 40ff 68', { type: 'STREAM', streamId: 4, offset: 255, data: Uint8Array.of(0x68), fin: false }],
  ['0d 04 05 68', { type: 'STREAM', streamId: 4, offset: 5, data: Uint8Array.of(0x68), fin: true }],
  ['0e 4004 05 02 6869', { type: 'STREAM', streamId: 4, offset: 5, data: Uint8Array.of(0x68, 0x69), fin: false }],
  ['0f 04 80100000 01 68', { type: 'STREAM', streamId: 4, offset: 2 ** 20, data: Uint8Array.of(0x68), fin: true }],
  ['10 c000000100000000', { type: 'MAX_DATA', maximum: 2 ** 32 }],
  ['11 03 4400', { type: 'MAX_STREAM_DATA', streamId: 3, maximum: 1024 }],
  ['12 d000000000000000', { type: 'MAX_STREAMS', bidirectional: true, maximum: 2 ** 60 }],
  ['13 03', { type: 'MAX_STREAMS', bidirectional: false, maximum: 3 }],
  ['14 05', { type: 'DATA_BLOCKED', maximum: 5 }],
  ['15 04 05', { type: 'STREAM_DATA_BLOCKED', streamId: 4, maximum: 5 }],
  ['16 06', { type: 'STREAMS_BLOCKED', bidirectional: true, maximum: 6 }],
  ['17 07', { type: 'STREAMS_BLOCKED', bidirectional: false, maximum: 7 }],
  [
    '18 02 01 04 aabbccdd 000102030405060708090a0b0c0d0e0f',
    {
      type: 'NEW_CONNECTION_ID',
      sequence: 2,
      retirePriorTo: 1,
      id: Uint8Array.of(0xaa, 0xbb, 0xcc, 0xdd),
      resetToken: Uint8Array.from({ length: 16 }, (_, i) => i),
    },
  ],
  ['19 09', { type: 'RETIRE_CONNECTION_ID', sequence: 9 }],
  ['1a 0102030405060708', { type: 'PATH_CHALLENGE', data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) }],
  ['1b 0807060504030201', { type: 'PATH_RESPONSE', data: Uint8Array.of(8, 7, 6, 5, 4, 3, 2, 1) }],
  ['1c 0a 06 03 c3a921', { type: 'CONNECTION_CLOSE', code: 10, frameType: 6, reason: 'é!' }],
  ['1d 4100 00', { type: 'APPLICATION_CLOSE', code: 256, reason: '' }],
  ['1e', { type: 'HANDSHAKE_DONE' }],
]

function octetsOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
}

function faultOf(hex: string, level: Level = application): number | undefined {
  return readDebugFrames(octetsOf(hex), level, true).fault?.code
}

test('a frame of every type is read', () => {
  for (const [hex, frame] of samples) {
    assert.deepEqual(readDebugFrames(octetsOf(hex), application, true), { frames: [frame], fault: undefined }, hex)
  }
})

test('every truncation of every frame is an error, or a shorter frame of the kinds that end with the packet', () => {
  for (const [hex, frame] of samples) {
    const bytes = octetsOf(hex)
    const type = bytes[0] as number
    const takesTheRest = type === FrameType.padding || (frame.type === 'STREAM' && (type & 2) === 0)
    for (let limit = 1; limit < bytes.length; limit++) {
      const { frames, fault } = readDebugFrames(bytes.slice(0, limit), application, true)
      if (takesTheRest && fault === undefined) {
        assert.equal(frames.length, 1)
        assert.equal(frames[0]?.type, frame.type)
      } else {
        assert.deepEqual(frames, [], `${hex} cut at ${limit}`)
        assert.equal(fault?.code, TransportError.frameEncodingError)
        assert.equal(fault.frameType, type)
      }
    }
  }
})

test('the reader keeps to its limit, wherever the payload lies', () => {
  for (const [hex, frame] of samples) {
    const bytes = octetsOf(hex)
    const buffer = new Uint8Array(bytes.length + 20).fill(0xff)
    buffer.set(bytes, 10)
    const reader = new FrameReader(true)
    reader.start(buffer, 10, 10 + bytes.length, application)
    assert.equal(reader.next(), true, hex)
    assert.equal(reader.frameStart, 10)
    assert.equal(reader.frameLimit, 10 + bytes.length)
    assert.equal(reader.next(), false)
    assert.equal(reader.fault, undefined, frame.type)
  }
})

test('RFC 9000 §12.4: which frame may come in which packet', () => {
  const everywhere = [initial, early, handshake, application]
  const expected: Record<number, readonly Level[]> = {}
  for (let type = 0; type <= 0x1e; type++) expected[type] = [early, application]
  for (const type of [0x00, 0x01, 0x1c]) expected[type] = everywhere
  for (const type of [0x02, 0x03, 0x06]) expected[type] = [initial, handshake, application]
  for (const type of [0x07, 0x19, 0x1b, 0x1e]) expected[type] = [application]
  for (const [hex] of samples) {
    const bytes = octetsOf(hex)
    const type = bytes[0] as number
    for (const level of levels) {
      const { fault } = readDebugFrames(bytes, level, true)
      if ((expected[type] as readonly Level[]).includes(level)) assert.equal(fault, undefined, `${hex} at ${level}`)
      else assert.deepEqual([fault?.code, fault?.frameType], [TransportError.protocolViolation, type], `${hex} at ${level}`)
    }
  }
  assert.equal(new Set(samples.map(([hex]) => octetsOf(hex)[0])).size, 0x1f, 'every type was tried')
})

test('RFC 9000 §19.7, §19.20: only a server sends NEW_TOKEN and HANDSHAKE_DONE', () => {
  for (const [hex] of samples) {
    const type = octetsOf(hex)[0] as number
    const { fault } = readDebugFrames(octetsOf(hex), application, false)
    const isServers = type === FrameType.newToken || type === FrameType.handshakeDone
    assert.equal(fault?.code, isServers ? TransportError.protocolViolation : undefined, hex)
  }
})

test('RFC 9000 §13.2, §9.1: which frames elicit an acknowledgement, and which only probe a path', () => {
  for (const [hex] of samples) {
    const bytes = octetsOf(hex)
    const type = bytes[0] as number
    const reader = new FrameReader(true)
    reader.start(bytes, 0, bytes.length, application)
    reader.next()
    assert.equal(reader.ackEliciting, ![0x00, 0x02, 0x03, 0x1c, 0x1d].includes(type), hex)
    assert.equal(reader.nonProbing, ![0x00, 0x18, 0x1a, 0x1b].includes(type), hex)
  }
})

test('RFC 9000 §12.4: a packet without a frame, an unknown type and a long coding of a type are errors', () => {
  assert.equal(faultOf(''), TransportError.protocolViolation)
  assert.deepEqual(readDebugFrames(octetsOf('01 7fff'), application, true), {
    frames: [{ type: 'PING' }],
    fault: { code: TransportError.frameEncodingError, frameType: 0x3fff, reason: 'a frame of unknown type' },
  })
  assert.equal(faultOf('1f'), TransportError.frameEncodingError)
  assert.equal(faultOf('21'), TransportError.frameEncodingError)
  assert.equal(faultOf('4001'), TransportError.protocolViolation)
  assert.equal(faultOf('80000000'), TransportError.protocolViolation)
  assert.equal(faultOf('c000000000000001'), TransportError.protocolViolation)
  assert.equal(faultOf('40'), TransportError.frameEncodingError)
  assert.equal(faultOf('ffffffffffffffff'), TransportError.frameEncodingError)
})

test('values that a frame must not have are FRAME_ENCODING_ERROR', () => {
  for (const [what, hex] of [
    ['§19.3.1: a first range below 0', '02 03 00 00 04'],
    ['§19.3.1: a gap below 0', '02 0a 00 01 00 09 00'],
    ['§19.3.1: a range below 0', '02 0a 00 01 00 00 09'],
    ['§19.3: more ranges than there are octets', '02 bfffffff 00 ffffffffffffffff 00 00 00 00 00'],
    ['§19.7: an empty token', '07 00'],
    ['§19.6: CRYPTO past 2^62 - 1', '06 ffffffffffffffff 01 00'],
    ['§19.8: STREAM past 2^62 - 1', '0e 00 ffffffffffffffff 01 00'],
    ['§19.11: 2^60 + 1 bidirectional streams', '12 d000000000000001'],
    ['§19.11: 2^62 - 1 unidirectional streams', '13 ffffffffffffffff'],
    ['§19.14: 2^60 + 1 bidirectional streams', '16 d000000000000001'],
    ['§19.14: 2^60 + 1 unidirectional streams', '17 d000000000000001'],
    ['§19.15: an empty id', `18 00 00 00 ${'00'.repeat(16)}`],
    ['§19.15: an id of 21 octets', `18 00 00 15 ${'00'.repeat(21 + 16)}`],
    ['§19.15: retires more than there is', `18 01 02 01 00 ${'00'.repeat(16)}`],
  ] as const) {
    assert.equal(faultOf(hex), TransportError.frameEncodingError, what)
  }
  assert.equal(faultOf(`18 01 01 14 ${'00'.repeat(20 + 16)}`), undefined, 'an id of 20 octets that retires all others')
  assert.equal(faultOf('12 cfffffffffffffff'), undefined, '2^60 - 1 streams, which are rounded up')
})

test('an ACK with very many ranges is read to its end, and costs no more than its newest 1,024', () => {
  const count = 5_000
  const largest = 3 * count
  const bytes = octetsOf(`02 ${(0x8000_0000 + largest).toString(16)} 00 ${(0x4000 + count).toString(16)} 00 ${'0100'.repeat(count)} 01`)
  const reader = new FrameReader(true)
  reader.start(bytes, 0, bytes.length, application)
  assert.ok(reader.next())
  assert.equal(reader.ackRangeCount, 1024)
  assert.deepEqual([...reader.ackRanges.subarray(0, 4)], [largest, largest, largest - 3, largest - 3])
  assert.ok(reader.ackRanges.length <= 2 * 1024)
  assert.ok(reader.next(), 'what follows is still found')
  assert.equal(reader.type, FrameType.ping)
})

test('a fault is the last thing, and start forgets it', () => {
  const reader = new FrameReader(true)
  reader.start(octetsOf('1f01'), 0, 2, application)
  assert.equal(reader.next(), false)
  assert.equal(reader.next(), false)
  reader.start(octetsOf('01'), 0, 1, application)
  assert.equal(reader.fault, undefined)
  assert.equal(reader.next(), true)
})

test('random octets never throw, and every frame moves on', () => {
  const likely = fc.array(fc.oneof(fc.integer({ min: 0, max: 0x1f }), fc.nat(255)), { maxLength: 80 }).map((list) => Uint8Array.from(list))
  fc.assert(
    fc.property(
      fc.oneof(likely, fc.uint8Array({ maxLength: 200 })),
      fc.constantFrom(...levels),
      fc.boolean(),
      (bytes, level, fromServer) => {
        const reader = new FrameReader(fromServer)
        reader.start(bytes, 0, bytes.length, level)
        let at = 0
        while (reader.next()) {
          assert.equal(reader.frameStart, at)
          assert.ok(reader.frameLimit > at)
          at = reader.frameLimit
        }
        if (reader.fault === undefined) assert.equal(at, bytes.length)
      },
    ),
    { numRuns: 2_000 },
  )
})

const number = fc.oneof(fc.nat(70), fc.nat(20_000), fc.maxSafeNat())
const octets = fc.uint8Array({ maxLength: 100 })
const ascending = fc.uniqueArray(fc.nat(300), { minLength: 1, maxLength: 60 }).map((list) => {
  const ranges: [number, number][] = []
  for (const at of list.toSorted((a, b) => b - a)) {
    const last = ranges.at(-1)
    if (last !== undefined && last[0] === at + 1) last[0] = at
    else ranges.push([at, at])
  }
  return ranges
})
const streamCount = number.map((value) => Math.min(value, 2 ** 60))
const arbitraryFrame: fc.Arbitrary<DebugFrame> = fc.oneof(
  fc.record({ type: fc.constantFrom('PING' as const, 'HANDSHAKE_DONE' as const) }),
  fc.record({ type: fc.constant('ACK' as const), ranges: ascending, delay: number }),
  fc.record({
    type: fc.constant('ACK' as const),
    ranges: ascending,
    delay: number,
    ecn: fc.record({ ect0: number, ect1: number, ce: number }),
  }),
  fc.record({ type: fc.constant('RESET_STREAM' as const), streamId: number, code: number, finalSize: number }),
  fc.record({ type: fc.constant('STOP_SENDING' as const), streamId: number, code: number }),
  fc.record({ type: fc.constant('CRYPTO' as const), offset: number, data: fc.uint8Array({ minLength: 1, maxLength: 100 }) }),
  fc.record({ type: fc.constant('NEW_TOKEN' as const), token: fc.uint8Array({ minLength: 1, maxLength: 100 }) }),
  fc.record({ type: fc.constant('STREAM' as const), streamId: number, offset: number, data: octets, fin: fc.boolean() }),
  fc.record({ type: fc.constantFrom('MAX_DATA' as const, 'DATA_BLOCKED' as const), maximum: number }),
  fc.record({ type: fc.constantFrom('MAX_STREAM_DATA' as const, 'STREAM_DATA_BLOCKED' as const), streamId: number, maximum: number }),
  fc.record({
    type: fc.constantFrom('MAX_STREAMS' as const, 'STREAMS_BLOCKED' as const),
    bidirectional: fc.boolean(),
    maximum: streamCount,
  }),
  fc.record({
    type: fc.constant('NEW_CONNECTION_ID' as const),
    sequence: fc.integer({ min: 100, max: 2 ** 40 }),
    retirePriorTo: fc.nat(100),
    id: fc.uint8Array({ minLength: 1, maxLength: 20 }),
    resetToken: fc.uint8Array({ minLength: 16, maxLength: 16 }),
  }),
  fc.record({ type: fc.constant('RETIRE_CONNECTION_ID' as const), sequence: number }),
  fc.record({
    type: fc.constantFrom('PATH_CHALLENGE' as const, 'PATH_RESPONSE' as const),
    data: fc.uint8Array({ minLength: 8, maxLength: 8 }),
  }),
  fc.record({ type: fc.constant('CONNECTION_CLOSE' as const), code: number, frameType: number, reason: fc.string() }),
  fc.record({ type: fc.constant('APPLICATION_CLOSE' as const), code: number, reason: fc.string({ unit: 'grapheme' }) }),
)

/** With the prototypes that frames read have. */
const anyFrame = arbitraryFrame.map((frame): DebugFrame => structuredClone(frame))

test('what is written is read again; what does not fit leaves no trace', () => {
  fc.assert(
    fc.property(fc.array(anyFrame, { minLength: 1, maxLength: 12 }), fc.integer({ min: 40, max: 1200 }), (frames, size) => {
      const writer = new PacketWriter()
      writer.startDatagram(new Uint8Array(size + 8).fill(0xee), 0, size)
      assert.ok(writer.startShort(new Uint8Array(0), 0, -1, 0, false))
      const written: DebugFrame[] = []
      for (const frame of frames) {
        const { at, ackEliciting, padded } = writer
        if (writeDebugFrame(writer, frame)) written.push(frame)
        else assert.deepEqual([writer.at, writer.ackEliciting, writer.padded], [at, ackEliciting, padded])
        assert.ok(writer.at <= size - 16, 'the tag keeps its room')
      }
      const payload = writer.buffer.slice(writer.payloadStart, writer.at)
      const { frames: read, fault } = readDebugFrames(payload, application, true)
      if (written.length === 0) return
      assert.equal(fault, undefined)
      const withoutPadding = read.filter((frame) => frame.type !== 'PADDING')
      assert.equal(withoutPadding.length, written.length)
      for (const [at, frame] of withoutPadding.entries()) assert.deepEqual(shortened(frame), shortened(written[at] as DebugFrame, frame))
      assert.ok(writer.buffer.subarray(size).every((octet) => octet === 0xee))
    }),
    { numRuns: 500 },
  )
})

/** Frames that are cut to the room they find are compared in what is left of them. */
function shortened(frame: DebugFrame, like: DebugFrame = frame): DebugFrame {
  if (frame.type === 'ACK' && like.type === 'ACK') return { ...frame, ranges: frame.ranges.slice(0, like.ranges.length) }
  if ((frame.type === 'CONNECTION_CLOSE' || frame.type === 'APPLICATION_CLOSE') && frame.type === like.type) {
    return { ...frame, reason: frame.reason.slice(0, like.reason.length) }
  }
  return frame
}
