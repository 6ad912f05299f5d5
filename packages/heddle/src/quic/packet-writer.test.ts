import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { writePadding, writePing, writeStopSending } from './frame-writer.ts'
import { PacketReader, PacketType, version1 } from './packet.ts'
import { PacketWriter, tagSize, type PacketSealer } from './packet-writer.ts'
import { startStream } from './stream-writer.ts'

const none = new Uint8Array(0)
const destination = Buffer.from('0102030405060708', 'hex')
const source = Buffer.from('a1a2a3', 'hex')

/** Writes a tag of 0xaa, hides nothing and remembers what it was asked. */
class ClearSealer implements PacketSealer {
  calls: { headerStart: number; packetNumberStart: number; payloadStart: number; payloadLimit: number; packetNumber: number }[] = []

  seal(
    buffer: Uint8Array,
    headerStart: number,
    packetNumberStart: number,
    payloadStart: number,
    payloadLimit: number,
    packetNumber: number,
  ): void {
    assert.ok(payloadLimit + tagSize <= buffer.length, 'the tag has its room')
    buffer.fill(0xaa, payloadLimit, payloadLimit + tagSize)
    this.calls.push({ headerStart, packetNumberStart, payloadStart, payloadLimit, packetNumber })
  }
}

function writerOf(size: number, start = 0): PacketWriter {
  const writer = new PacketWriter()
  writer.startDatagram(new Uint8Array(start + size), start, start + size)
  return writer
}

test('a short header: spin, key phase, the id, a number of one octet', () => {
  const writer = writerOf(1200)
  const keys = new ClearSealer()
  assert.ok(writer.startShort(destination, 5, 3, 1, true))
  assert.ok(writePing(writer))
  assert.equal(writer.ackEliciting, true)
  const size = writer.finish(keys)
  // 0x64: short, fixed bit, spin, key phase. PADDING makes the sample possible.
  assert.equal(Buffer.from(writer.buffer).toString('hex', 0, size), `640102030405060708050100${'00'}${'aa'.repeat(16)}`)
  assert.deepEqual(keys.calls, [{ headerStart: 0, packetNumberStart: 9, payloadStart: 10, payloadLimit: 13, packetNumber: 5 }])
  assert.equal(writer.padded, true)
  assert.equal(writer.room, 0, 'no frame after the end')
})

test('a long header: version, ids, token and a length of two octets', () => {
  const writer = writerOf(1200)
  assert.ok(writer.startLong(PacketType.initial, version1, destination, source, Uint8Array.of(9, 8), 0x1234, 0x1100))
  assert.ok(writePadding(writer, 4))
  const size = writer.finish(new ClearSealer())
  const header = 'c1' + '00000001' + '080102030405060708' + '03a1a2a3' + '020908' + '4016' + '1234'
  assert.equal(Buffer.from(writer.buffer).toString('hex', 0, size), header + '00'.repeat(4) + 'aa'.repeat(16))
  assert.equal(writer.ackEliciting, false)
})

test('only an Initial packet has a token', () => {
  const writer = writerOf(1200)
  assert.ok(writer.startLong(PacketType.handshake, version1, none, none, Uint8Array.of(1), 0, -1))
  writePing(writer)
  writer.finish(new ClearSealer())
  assert.equal(Buffer.from(writer.buffer).toString('hex', 0, 10), 'e0' + '00000001' + '00' + '00' + '4014' + '00')
})

test('packets are coalesced, and the last one is padded to the size of the datagram', () => {
  const writer = writerOf(1250, 50)
  const keys = new ClearSealer()
  assert.ok(writer.startLong(PacketType.initial, version1, destination, source, none, 0, -1))
  writePing(writer)
  const first = writer.finish(keys)
  assert.ok(writer.startLong(PacketType.handshake, version1, destination, source, none, 0, -1))
  writePing(writer)
  const second = writer.finish(keys, 1200)
  assert.equal(first + second, 1200)
  assert.equal(writer.datagramSize, 1200)
  assert.equal(writer.at, 1250)
  const reader = new PacketReader().start(writer.buffer, 50, 1250, 8)
  assert.ok(reader.next())
  assert.deepEqual([reader.type, reader.packetStart, reader.packetLimit], [PacketType.initial, 50, 50 + first])
  assert.ok(reader.next())
  assert.deepEqual([reader.type, reader.packetStart, reader.packetLimit], [PacketType.handshake, 50 + first, 1250])
  assert.equal(reader.next(), false)
})

test('a packet that is long enough for the sample is not padded', () => {
  const writer = writerOf(1200)
  assert.ok(writer.startShort(destination, 0, -1, 0, false))
  assert.ok(writeStopSending(writer, 0, 0))
  assert.equal(writer.finish(new ClearSealer()), 10 + 3 + 16)
  assert.equal(writer.padded, false)
})

test('padding stops at the limit of the datagram', () => {
  const writer = writerOf(100)
  assert.ok(writer.startShort(destination, 0, -1, 0, false))
  writePing(writer)
  assert.equal(writer.finish(new ClearSealer(), 1200), 100)
})

test('an empty packet is abandoned, and the next one takes its place', () => {
  const writer = writerOf(1200)
  const keys = new ClearSealer()
  assert.ok(writer.startLong(PacketType.initial, version1, destination, source, none, 0, -1))
  assert.equal(writer.isEmpty, true)
  assert.equal(writer.finish(keys, 1200), 0)
  assert.equal(writer.datagramSize, 0)
  assert.ok(writer.startShort(destination, 0, -1, 0, false))
  writePing(writer)
  writer.abandon()
  assert.equal(writer.datagramSize, 0)
  assert.equal(writer.ackEliciting, false)
  assert.equal(writePing(writer), false, 'no packet is open')
  assert.deepEqual(keys.calls, [])
})

test('a header that does not fit leaves no trace', () => {
  for (let size = 0; size < 64; size++) {
    const writer = writerOf(size)
    const long = writer.startLong(PacketType.initial, version1, destination, source, Uint8Array.of(9, 8), 0, -1)
    // 24 octets of header, 3 for the sample beside the number, 16 of tag.
    assert.equal(long, size >= 24 + 3 + 16, `${size}`)
    writer.abandon()
    const short = writer.startShort(destination, 0, -1, 0, false)
    assert.equal(short, size >= 10 + 3 + 16, `${size}`)
    if (!long && !short) assert.ok(writer.buffer.every((octet) => octet === 0))
  }
})

test('a long packet ends where its length can say no more', () => {
  const writer = writerOf(40_000)
  assert.ok(writer.startLong(PacketType.zeroRtt, version1, destination, source, none, 0, -1))
  assert.ok(startStream(writer, 0, 0, 100_000, false) > 16_000)
  const size = writer.finish(new ClearSealer())
  const reader = new PacketReader().start(writer.buffer, 0, size, 8)
  assert.ok(reader.next())
  assert.equal(reader.packetLimit, size)
  assert.equal(reader.packetLimit - reader.payloadStart, 0x3fff)
})

test('what is written is read again', () => {
  const id = fc.uint8Array({ maxLength: 20 })
  const type = fc.constantFrom(PacketType.initial, PacketType.zeroRtt, PacketType.handshake)
  fc.assert(
    fc.property(type, id, id, fc.uint8Array({ maxLength: 80 }), fc.nat(), fc.nat(200), (kind, to, from, token, packetNumber, payload) => {
      const writer = writerOf(500)
      assert.ok(writer.startLong(kind, version1, to, from, token, packetNumber, packetNumber - 1))
      assert.ok(writePadding(writer, payload + 1))
      const size = writer.finish(new ClearSealer())
      const reader = new PacketReader().start(writer.buffer, 0, size, 0)
      assert.ok(reader.next())
      const part = (start: number, limit: number): Uint8Array => writer.buffer.slice(start, limit)
      assert.equal(reader.type, kind)
      assert.equal(reader.version, version1)
      assert.deepEqual(part(reader.destinationStart, reader.destinationLimit), to)
      assert.deepEqual(part(reader.sourceStart, reader.sourceLimit), from)
      assert.deepEqual(part(reader.tokenStart, reader.tokenLimit), kind === PacketType.initial ? token : none)
      assert.equal(reader.payloadStart, writer.packetNumberStart)
      assert.equal(reader.packetLimit, size)
      assert.equal(reader.next(), false)
    }),
  )
})
