import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UsageError } from '../http/index.ts'
import { describeDebugFrame, longFrameHeader, readDebugFrame, writeDebugFrame, type DebugFrame } from './debug-frame.ts'
import { ErrorCode, errorName, FrameHeader, PartialVarint, reservedNumber, writeFrameHeader } from './frame.ts'
import { HeldContent } from './held-content.ts'
import { checkedLimits, serverLimitsWith } from './limits.ts'
import { SentLayout } from './sent-layout.ts'
import { SettingId, Settings, settingsFrame } from './settings.ts'

test('a frame header is read at any split, and one after the other', () => {
  for (const [type, length] of [
    [0, 0],
    [1, 63],
    [0x21, 64],
    [0xf0700, 16_384],
    [2 ** 40, 2 ** 30],
    [2 ** 53, 2 ** 62 - 512],
  ] as const) {
    const bytes = new Uint8Array(32)
    const once = writeFrameHeader(bytes, 0, type, length)
    const twice = writeFrameHeader(bytes, once, 7, 1)
    for (let cut = 0; cut <= once; cut++) {
      const header = new FrameHeader()
      const at = header.read(bytes, 0, cut)
      assert.equal(header.isComplete, cut === once)
      assert.equal(header.isOpen, cut > 0 && cut < once)
      const behind = cut === once ? at : header.read(bytes, at, twice)
      assert.deepEqual([header.type, header.length, header.isComplete, header.isOpen], [type, length, true, false])
      assert.equal(behind, once)
      assert.equal(header.read(bytes, behind, twice), twice)
      assert.deepEqual([header.type, header.length], [7, 1])
    }
  }
})

test('a varint is read octet by octet, in codings longer than needed too', () => {
  for (const [bytes, value] of [
    [[0x25], 37],
    [[0x40, 0x25], 37],
    [[0x7b, 0xbd], 15_293],
    [[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333],
    [[0xc0, 0, 0, 0, 0, 0, 0, 1], 1],
  ] as const) {
    const varint = new PartialVarint()
    for (const [i, octet] of bytes.entries()) {
      assert.equal(varint.isComplete, false)
      assert.equal(varint.read(Uint8Array.of(octet), 0, 1), 1)
      assert.equal(varint.isComplete, i === bytes.length - 1)
    }
    assert.equal(varint.value, value)
  }
})

test('what is content of the octets that left, and what was given away of those that wait, against a slow twin', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.record({ add: fc.constantFrom('overhead', 'content', 'owned'), count: fc.integer({ min: 1, max: 50 }) }),
          fc.record({ take: fc.integer({ min: 0, max: 120 }) }),
        ),
        {
          maxLength: 200,
        },
      ),
      (steps) => {
        const layout = new SentLayout()
        const twin: string[] = []
        for (const step of steps) {
          if ('take' in step) {
            const expected = twin.splice(0, step.take).filter((kind) => kind !== 'overhead').length
            assert.equal(layout.take(step.take), expected)
          } else {
            for (let i = 0; i < step.count; i++) twin.push(step.add)
            if (step.add === 'overhead') layout.addOverhead(step.count)
            else layout.addContent(step.count, step.add === 'owned')
          }
          assert.equal(layout.unsent, twin.length)
          assert.equal(layout.pinned, twin.filter((kind) => kind !== 'owned').length)
        }
      },
    ),
  )
})

test('a layout of many frames gives its memory back as they leave', () => {
  const layout = new SentLayout()
  let content = 0
  for (let i = 0; i < 10_000; i++) {
    layout.addOverhead(2)
    layout.addContent(3, i % 3 === 0)
    if (i % 2 === 1) content += layout.take(7)
  }
  while (layout.unsent > 0) content += layout.take(11)
  assert.equal(content, 30_000)
  assert.equal(layout.take(5), 0)
  assert.equal(layout.pinned, 0)
  assert.equal(layout.hasSent, true)
})

test('held content is packed where it is small, copied where it is lent, kept where it was given', () => {
  const held = new HeldContent()
  const lent = Buffer.from('abc')
  held.add(lent, 0, 3, false)
  held.add(lent, 1, 2, false)
  lent.fill(0)
  held.add(lent, 0, 0, false)
  const given = new Uint8Array(5_000).fill(7)
  held.add(given, 0, 5_000, true)
  const large = new Uint8Array(3_000).fill(8)
  held.add(large, 0, 3_000, false)
  large.fill(0)
  for (let i = 0; i < 5_000; i++) held.add(Uint8Array.of(9), 0, 1, true)
  assert.equal(held.length, 4 + 5_000 + 3_000 + 5_000)
  assert.equal(Buffer.from(held.chunks[0] as Uint8Array).toString(), 'abcb')
  assert.equal(held.chunks[1], given)
  assert.ok((held.chunks[2] as Uint8Array).every((octet) => octet === 8))
  assert.equal(held.chunks.length, 5)
  assert.equal(
    held.chunks.slice(3).reduce((sum, chunk) => sum + chunk.length, 0),
    5_000,
  )
})

function settingsOf(...numbers: number[]): { settings: Settings; code: number } {
  const frame = settingsFrame(numbers)
  const settings = new Settings()
  const header = new FrameHeader()
  const start = header.read(frame, 0, frame.length)
  return { settings, code: settings.read(frame, start, frame.length) }
}

test('settings: those that are known, those that mean nothing, those that must not be', () => {
  const { settings, code } = settingsOf(
    SettingId.QpackMaxTableCapacity,
    100,
    SettingId.MaxFieldSectionSize,
    200,
    SettingId.QpackBlockedStreams,
    3,
    SettingId.EnableConnectProtocol,
    1,
    reservedNumber(9),
    2 ** 40,
    0x33,
    1,
  )
  assert.equal(code, ErrorCode.NoError)
  assert.deepEqual(
    { ...settings },
    { qpackMaxTableCapacity: 100, maxFieldSectionSize: 200, qpackBlockedStreams: 3, enableConnectProtocol: true, received: true },
  )
  for (const id of [0x0, 0x2, 0x3, 0x4, 0x5]) assert.equal(settingsOf(id, 0).code, ErrorCode.SettingsError, `RFC 9114 §7.2.4.1: ${id}`)
  assert.equal(settingsOf(SettingId.EnableConnectProtocol, 2).code, ErrorCode.SettingsError)
  assert.equal(settingsOf(SettingId.MaxFieldSectionSize, 1, SettingId.MaxFieldSectionSize, 1).code, ErrorCode.SettingsError)
  assert.equal(settingsOf().settings.received, true)
  assert.equal(new Settings().read(Uint8Array.of(6), 0, 1), ErrorCode.FrameError)
  assert.equal(new Settings().read(Uint8Array.of(6, 0x40), 0, 2), ErrorCode.FrameError)
})

test('debug frames are read as they are written, whole only', () => {
  const frames: DebugFrame[] = [
    { type: 'DATA', data: new Uint8Array(70) },
    { type: 'HEADERS', block: Uint8Array.of(0, 0, 0xd1) },
    { type: 'CANCEL_PUSH', id: 5 },
    {
      type: 'SETTINGS',
      settings: [
        [1, 100],
        [0x21, 2 ** 40],
      ],
    },
    { type: 'PUSH_PROMISE', id: 300, block: Uint8Array.of(1) },
    { type: 'GOAWAY', id: 2 ** 62 - 512 },
    { type: 'MAX_PUSH_ID', id: 7 },
    { type: 'PRIORITY_UPDATE', id: 4, value: 'u=1' },
    { type: 'PUSH_PRIORITY_UPDATE', id: 1, value: '' },
    { type: 'UNKNOWN', frameType: 0x40, payload: new Uint8Array(3) },
  ]
  for (const frame of frames) {
    const bytes = writeDebugFrame(frame)
    const read = readDebugFrame(bytes)
    assert.equal(read?.length, bytes.length)
    assert.deepEqual(JSON.parse(JSON.stringify(read.frame)), JSON.parse(JSON.stringify(frame)))
    for (let cut = 0; cut < bytes.length; cut++) assert.equal(readDebugFrame(bytes.subarray(0, cut)), undefined)
    assert.ok(describeDebugFrame(frame).length > 3)
  }
  assert.equal(readDebugFrame(longFrameHeader(0, 2 ** 62 - 512)), undefined)
  assert.equal(readDebugFrame(Uint8Array.of(7, 2, 0, 0))?.frame.type, 'UNKNOWN')
})

test('errors have the names of the RFCs', () => {
  assert.equal(errorName(ErrorCode.NoError), 'H3_NO_ERROR')
  assert.equal(errorName(ErrorCode.VersionFallback), 'H3_VERSION_FALLBACK')
  assert.equal(errorName(ErrorCode.DecoderStreamError), 'QPACK_DECODER_STREAM_ERROR')
  assert.equal(errorName(0x21), 'error 0x21')
})

test('limits are checked, and what may be pinned grows with what may be open', () => {
  assert.deepEqual(checkedLimits('serve', { streamWindow: 10, blockedStreams: 0 }), { streamWindow: 10, blockedStreams: 0 })
  for (const wrong of [
    { streamWindow: 0 },
    { maxConcurrentStreams: 1.5 },
    { headerTableSize: Infinity },
    { idleTimeout: -1 },
    { noSuch: 1 },
  ]) {
    assert.throws(() => checkedLimits('serve', wrong as object), UsageError)
  }
  assert.equal(serverLimitsWith({ maxConcurrentStreams: 1_000 }).maxPinned, 163_840_000)
  assert.equal(serverLimitsWith({ maxConcurrentStreams: 1_000, maxPinned: 5 }).maxPinned, 5)
})
