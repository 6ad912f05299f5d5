import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RangeSet } from '../bytes/index.ts'
import { writeAck } from './ack-writer.ts'
import { readDebugFrames, writeDebugFrame, type DebugFrame } from './debug-frame.ts'
import { writeApplicationClose, writeConnectionClose, writePadding, writePing } from './frame-writer.ts'
import { PacketWriter } from './packet-writer.ts'
import { startCrypto, startStream, writeCrypto, writeStream } from './stream-writer.ts'

const some = Uint8Array.from({ length: 20_000 }, (_, i) => i)

/** A writer whose open packet has exactly `room` octets of room. */
function writerWithRoom(room: number): PacketWriter {
  const writer = new PacketWriter()
  const size = 2 + room + 16
  writer.startDatagram(new Uint8Array(size), 0, size)
  // A packet number of one octet, and no id.
  assert.ok(room < 3 || writer.startShort(new Uint8Array(0), 0, -1, 0, false))
  assert.ok(room < 3 || writer.room === room)
  return writer
}

function framesOf(writer: PacketWriter): DebugFrame[] {
  const { frames, fault } = readDebugFrames(writer.buffer.slice(writer.payloadStart, writer.at), 3, true)
  assert.equal(fault, undefined)
  return frames
}

function rangesOf(...pairs: readonly (readonly [start: number, limit: number])[]): RangeSet {
  const ranges = new RangeSet()
  for (const [start, limit] of pairs) ranges.add(start, limit)
  return ranges
}

test('STREAM data that fills the packet has no length', () => {
  const writer = writerWithRoom(100)
  assert.equal(writeStream(writer, 4, 64, some, 0, 500, true), 96)
  assert.equal(writer.room, 0)
  assert.equal(writer.buffer[writer.payloadStart], 0x0c)
  assert.deepEqual(framesOf(writer), [{ type: 'STREAM', streamId: 4, offset: 64, data: some.slice(0, 96), fin: false }])
  assert.equal(writePing(writer), false)
  assert.equal(writeStream(writer, 8, 0, some, 0, 0, true), -1)
})

test('STREAM data that leaves room has a length, so that frames may follow', () => {
  const writer = writerWithRoom(100)
  assert.equal(writeStream(writer, 4, 0, some, 10, 13, true), 3)
  assert.ok(writePing(writer))
  assert.deepEqual(framesOf(writer), [{ type: 'STREAM', streamId: 4, offset: 0, data: some.slice(10, 13), fin: true }, { type: 'PING' }])
})

test('STREAM data that would leave less room than its length takes is moved to the end, so that all of it and FIN go', () => {
  const writer = writerWithRoom(100)
  assert.equal(writeStream(writer, 4, 0, some, 0, 97, true), 97)
  assert.deepEqual(framesOf(writer), [
    { type: 'PADDING', size: 1 },
    { type: 'STREAM', streamId: 4, offset: 0, data: some.slice(0, 97), fin: true },
  ])
  assert.equal(writer.padded, true)
})

test('a STREAM frame may carry nothing but FIN; one without any octet that is wanted is not written', () => {
  const writer = writerWithRoom(4)
  assert.equal(writeStream(writer, 4, 2 ** 20, some, 0, 5, true), -1)
  assert.equal(startStream(writer, 4, 64, 0, true), 0)
  assert.deepEqual(framesOf(writer), [{ type: 'STREAM', streamId: 4, offset: 64, data: new Uint8Array(0), fin: true }])
})

test('STREAM and CRYPTO take as much as fits, at every room and for every wish', () => {
  const wish = fc.oneof(fc.nat(130), fc.nat(1300), fc.nat(20_000))
  const room = fc.oneof(fc.integer({ min: 3, max: 140 }), fc.integer({ min: 3, max: 1300 }), fc.integer({ min: 16_300, max: 16_500 }))
  fc.assert(
    fc.property(room, wish, fc.nat(2 ** 16), fc.boolean(), (size, wanted, offset, fin) => {
      const stream = writerWithRoom(size)
      const taken = writeStream(stream, 4, offset, some, 0, wanted, fin)
      const header = 2 + (offset === 0 ? 0 : offset < 64 ? 1 : offset < 16_384 ? 2 : 4)
      const most = size - header
      assert.equal(taken, most < 0 || (most === 0 && wanted > 0) ? -1 : Math.min(wanted, most))
      if (taken < 0) assert.equal(stream.isEmpty, true)
      else {
        const expected = { type: 'STREAM', streamId: 4, offset, data: some.slice(0, taken), fin: fin && taken === wanted }
        assert.deepEqual(
          framesOf(stream).filter((frame) => frame.type !== 'PADDING'),
          [expected],
        )
      }

      const crypto = writerWithRoom(size)
      const part = writeCrypto(crypto, offset, some, 0, wanted)
      if (part < 0) {
        assert.equal(crypto.isEmpty, true)
        assert.ok(wanted === 0 || size < 8)
      } else {
        assert.deepEqual(framesOf(crypto), [{ type: 'CRYPTO', offset, data: some.slice(0, part) }])
        // Another octet would not fit: the room is used but for what the length of a length may waste.
        assert.ok(part === wanted || crypto.room <= 2, `${crypto.room}`)
      }
    }),
    { numRuns: 1_000 },
  )
})

test('STREAM and CRYPTO keep to their room where the size of a length changes', () => {
  for (const [from, to] of [
    [60, 72],
    [16_380, 16_396],
  ] as const) {
    for (let room = from; room <= to; room++) {
      for (let wanted = room - 10; wanted <= room; wanted++) {
        for (const write of [
          (writer: PacketWriter): number => writeCrypto(writer, 0, some, 0, wanted),
          (writer: PacketWriter): number => writeStream(writer, 0, 0, some, 0, wanted, true),
        ]) {
          const writer = writerWithRoom(room)
          const taken = write(writer)
          assert.ok(taken > 0 && writer.room >= 0, `${wanted} octets in a room of ${room}`)
          const last = framesOf(writer).at(-1)
          assert.ok(last !== undefined && 'data' in last)
          assert.deepEqual(last.data, some.slice(0, taken))
        }
      }
    }
  }
})

test('STREAM data whose length just fits has one', () => {
  const writer = writerWithRoom(100)
  assert.equal(writeStream(writer, 4, 0, some, 0, 96, true), 96)
  assert.deepEqual(
    framesOf(writer).map((frame) => frame.type),
    ['STREAM'],
  )
  assert.equal(writer.buffer[writer.payloadStart], 0x0b)
})

test('every frame is written where it just fits, and in no smaller room', () => {
  const frames: DebugFrame[] = [
    { type: 'PADDING', size: 9 },
    { type: 'RESET_STREAM', streamId: 100, code: 1, finalSize: 2 ** 20 },
    { type: 'STOP_SENDING', streamId: 100, code: 2 ** 31 },
    { type: 'NEW_TOKEN', token: some.slice(0, 100) },
    { type: 'MAX_DATA', maximum: 2 ** 40 },
    { type: 'MAX_STREAM_DATA', streamId: 4, maximum: 2 ** 20 },
    { type: 'MAX_STREAMS', bidirectional: true, maximum: 1000 },
    { type: 'MAX_STREAMS', bidirectional: false, maximum: 2 ** 20 },
    { type: 'DATA_BLOCKED', maximum: 2 ** 20 },
    { type: 'STREAM_DATA_BLOCKED', streamId: 1000, maximum: 1000 },
    { type: 'STREAMS_BLOCKED', bidirectional: true, maximum: 1000 },
    { type: 'STREAMS_BLOCKED', bidirectional: false, maximum: 2 ** 40 },
    { type: 'NEW_CONNECTION_ID', sequence: 100, retirePriorTo: 99, id: some.slice(0, 8), resetToken: some.slice(0, 16) },
    { type: 'RETIRE_CONNECTION_ID', sequence: 2 ** 20 },
    { type: 'PATH_CHALLENGE', data: some.slice(0, 8) },
    { type: 'PATH_RESPONSE', data: some.slice(8, 16) },
  ]
  for (const frame of frames) {
    const wide = writerWithRoom(1000)
    assert.ok(writeDebugFrame(wide, frame))
    const size = wide.at - wide.payloadStart
    for (let room = 3; room <= size; room++) {
      const writer = writerWithRoom(room)
      assert.equal(writeDebugFrame(writer, frame), room === size, `${frame.type} of ${size} in ${room}`)
      assert.equal(writer.isEmpty, room < size)
      if (room === size) assert.deepEqual(framesOf(writer), [frame])
      else assert.ok(writer.buffer.subarray(writer.payloadStart).every((octet) => octet === 0))
      assert.equal(writer.ackEliciting, room === size && frame.type !== 'PADDING')
    }
  }
})

test('CRYPTO is not written without an octet', () => {
  assert.equal(startCrypto(writerWithRoom(100), 0, 0), -1)
  assert.equal(startCrypto(writerWithRoom(3), 0, 10), -1)
  assert.equal(startCrypto(writerWithRoom(4), 0, 10), 1)
})

test('ACK leaves the oldest ranges out when there is no room for them, but never the newest', () => {
  const ranges = rangesOf([0, 1], [100, 110], [1_000, 1_001], [100_000, 100_010])
  const all: [number, number][] = [
    [100_000, 100_009],
    [1_000, 1_000],
    [100, 109],
    [0, 0],
  ]
  const seen = new Set<number>()
  for (let room = 3; room < 40; room++) {
    const writer = writerWithRoom(room)
    if (!writeAck(writer, ranges, 5, undefined)) {
      assert.equal(writer.isEmpty, true)
      assert.ok(room < 8)
      continue
    }
    const [frame] = framesOf(writer)
    assert.ok(frame?.type === 'ACK')
    assert.deepEqual(frame.ranges, all.slice(0, frame.ranges.length))
    seen.add(frame.ranges.length)
  }
  assert.deepEqual([...seen], [1, 2, 3, 4])
})

test('ACK with ECN counts keeps room for them', () => {
  for (let room = 3; room < 40; room++) {
    const writer = writerWithRoom(room)
    if (!writeAck(writer, rangesOf([0, 1], [5, 6], [9, 12]), 5, { ect0: 100, ect1: 0, ce: 20_000 })) {
      assert.ok(room < 12)
      continue
    }
    const [frame] = framesOf(writer)
    assert.ok(frame?.type === 'ACK')
    assert.deepEqual(frame.ecn, { ect0: 100, ect1: 0, ce: 20_000 })
  }
})

test('ACK has at most 64 ranges, and none for no packet', () => {
  const many = Array.from({ length: 200 }, (_, i) => [3 * i, 3 * i + 1] as const)
  const writer = writerWithRoom(1200)
  assert.ok(writeAck(writer, rangesOf(...many), 0, undefined))
  const [frame] = framesOf(writer)
  assert.ok(frame?.type === 'ACK')
  assert.equal(frame.ranges.length, 64)
  assert.deepEqual(frame.ranges[0], [597, 597])
  assert.equal(writer.ackEliciting, false)
  assert.equal(writeAck(writer, rangesOf(), 0, undefined), false)
})

test('a reason phrase is cut at the end of a character, and left out before the frame is', () => {
  for (let room = 3; room < 20; room++) {
    const writer = writerWithRoom(room)
    const written = writeConnectionClose(writer, 10, 0, 'äöü€')
    assert.equal(written, room >= 4)
    if (!written) continue
    const [frame] = framesOf(writer)
    assert.ok(frame?.type === 'CONNECTION_CLOSE')
    assert.ok('äöü€'.startsWith(frame.reason), frame.reason)
    assert.equal(frame.reason === 'äöü€', room >= 4 + 1 + 9)
  }
  const writer = writerWithRoom(100)
  assert.ok(writeApplicationClose(writer, 256, ''))
  assert.equal(writer.at - writer.payloadStart, 4)
  assert.equal(writer.ackEliciting, false)
})

test('PADDING is as long as asked for', () => {
  const writer = writerWithRoom(10)
  assert.equal(writePadding(writer, 11), false)
  assert.equal(writer.isEmpty, true)
  assert.ok(writePadding(writer, 10))
  assert.equal(writer.room, 0)
  assert.equal(writer.ackEliciting, false)
})
