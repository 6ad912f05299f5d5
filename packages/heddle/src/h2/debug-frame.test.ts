import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DebugFields, literalBlock } from './debug-fields.ts'
import { describeDebugFrame, readDebugFrame, writeDebugFrame, type DebugFrame } from './debug-frame.ts'

const streamId = fc.nat({ max: 0x7fff_ffff })
const bytes = fc.uint8Array({ maxLength: 40 })
const uint32 = fc.nat({ max: 0xffff_ffff })
const latin1 = fc.array(fc.nat({ max: 255 }), { maxLength: 20 }).map((codes) => String.fromCharCode(...codes))
const padding = fc.option(fc.nat({ max: 255 }), { nil: undefined }).map((count) => (count === undefined ? {} : { padding: count }))
const dependency = fc.record({ exclusive: fc.boolean(), dependsOn: streamId, weight: fc.integer({ min: 1, max: 256 }) })
const frames: fc.Arbitrary<DebugFrame> = fc.oneof(
  fc
    .tuple(fc.record({ type: fc.constant('DATA' as const), streamId, data: bytes, end: fc.boolean() }), padding)
    .map(([frame, pad]) => ({ ...frame, ...pad })),
  fc
    .tuple(
      fc.record({ type: fc.constant('HEADERS' as const), streamId, block: bytes, end: fc.boolean(), endHeaders: fc.boolean() }),
      padding,
      fc.option(dependency, { nil: undefined }),
    )
    .map(([frame, pad, depends]) => ({ ...frame, ...pad, ...(depends === undefined ? {} : { dependency: depends }) })),
  fc.record({ type: fc.constant('PRIORITY' as const), streamId, dependency }),
  fc.record({ type: fc.constant('RST_STREAM' as const), streamId, code: uint32 }),
  fc.record({
    type: fc.constant('SETTINGS' as const),
    ack: fc.boolean(),
    settings: fc.array(fc.tuple(fc.nat({ max: 0xffff }), uint32), { maxLength: 5 }),
  }),
  fc.record({ type: fc.constant('PING' as const), ack: fc.boolean(), data: fc.uint8Array({ minLength: 8, maxLength: 8 }) }),
  fc.record({ type: fc.constant('GOAWAY' as const), lastStreamId: streamId, code: uint32, debug: latin1 }),
  fc.record({ type: fc.constant('WINDOW_UPDATE' as const), streamId, increment: streamId }),
  fc.record({ type: fc.constant('CONTINUATION' as const), streamId, block: bytes, endHeaders: fc.boolean() }),
  fc.record({ type: fc.constant('ORIGIN' as const), origins: fc.array(latin1, { maxLength: 4 }) }),
  fc.record({ type: fc.constant('PRIORITY_UPDATE' as const), prioritizedId: streamId, value: latin1 }),
  fc.record({
    type: fc.constant('RAW' as const),
    typeCode: fc.integer({ min: 0x20, max: 0xff }),
    flags: fc.nat({ max: 255 }),
    streamId,
    payload: bytes,
  }),
)

test('what is written is read, and no truncation of it is', () => {
  fc.assert(
    fc.property(frames, (frame) => {
      const wire = writeDebugFrame(frame)
      const read = readDebugFrame(wire)
      assert.equal(read?.length, wire.length)
      assert.deepEqual(plain(read?.frame), plain(frame))
      for (let limit = 0; limit < wire.length; limit++) assert.equal(readDebugFrame(wire.subarray(0, limit)), undefined)
      assert.notEqual(describeDebugFrame(frame), '')
    }),
  )
})

/** Buffers and arrays of octets alike. */
function plain(frame: unknown): unknown {
  return JSON.parse(JSON.stringify(frame, (_, value: unknown) => (value instanceof Uint8Array ? [...value] : value)))
}

test('any octets are a frame, and that frame is those octets', () => {
  fc.assert(
    fc.property(fc.nat({ max: 0x11 }), fc.nat({ max: 255 }), streamId, bytes, (typeCode, flags, stream, payload) => {
      const wire = writeDebugFrame({ type: 'RAW', typeCode, flags, streamId: stream, payload })
      const read = readDebugFrame(wire)
      assert.ok(read !== undefined)
      assert.equal(read.length, wire.length)
    }),
  )
})

test('a frame whose payload does not fit its type stays raw', () => {
  for (const [typeCode, length] of [
    [2, 4],
    [3, 5],
    [4, 7],
    [6, 7],
    [7, 7],
    [8, 3],
  ] as const) {
    const wire = writeDebugFrame({ type: 'RAW', typeCode, flags: 0, streamId: 0, payload: new Uint8Array(length) })
    assert.equal(readDebugFrame(wire)?.frame.type, 'RAW')
  }
})

test('a frame tells of itself in a line', () => {
  const lines = [
    ['RST_STREAM 3 REFUSED_STREAM', { type: 'RST_STREAM', streamId: 3, code: 7 }],
    ['GOAWAY 5 error 0x63 (why)', { type: 'GOAWAY', lastStreamId: 5, code: 0x63, debug: 'why' }],
    ['SETTINGS 1=4096 3=100', { type: 'SETTINGS', ack: false, settings: [[1, 4096], [3, 100]] }], // prettier-ignore
    ['PING ack 0102030405060708', { type: 'PING', ack: true, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) }],
    ['DATA 1 end 3 octets padding 4', { type: 'DATA', streamId: 1, data: new Uint8Array(3), end: true, padding: 4 }],
    ['HEADERS 1 to be continued 2 octets', { type: 'HEADERS', streamId: 1, block: new Uint8Array(2), end: false, endHeaders: false }],
  ] as const
  for (const [line, frame] of lines) assert.equal(describeDebugFrame(frame), line)
})

test('literal blocks hold any names and values', () => {
  const fields = [':method', 'GET', ':scheme', 'http', ':path', `/${'x'.repeat(300)}`, ':authority', 'a.test', 'x-long', 'y'.repeat(20_000)]
  assert.deepEqual(new DebugFields().read(literalBlock(fields), 'request'), [
    ':method',
    'GET',
    ':scheme',
    'http',
    ':authority',
    'a.test',
    ':path',
    `/${'x'.repeat(300)}`,
    'x-long',
    'y'.repeat(20_000),
  ])
  assert.match(new DebugFields().read(literalBlock([':status', '200', 'Upper', 'x']), 'response')?.[0] ?? '', /malformed/)
  assert.equal(new DebugFields().read(Uint8Array.of(0xff), 'request'), undefined)
})
