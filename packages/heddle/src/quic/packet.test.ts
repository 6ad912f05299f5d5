import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PacketReader, PacketType, version1 } from './packet.ts'

function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
}

/** Protected octets, as many as a packet has at least. */
const sealed = '55'.repeat(20)
const initial = `c0 00000001 04 d1d2d3d4 02 5152 03 746f6b 14 ${sealed}`
const handshake = `e0 00000001 04 d1d2d3d4 02 5152 14 ${sealed}`
const zeroRtt = `d0 00000001 04 d1d2d3d4 02 5152 14 ${sealed}`
const short = `40 d1d2d3d4 ${sealed}`

function typesOf(hex: string, localIdSize = 4): PacketType[] {
  const bytes = bytesOf(hex)
  const reader = new PacketReader().start(bytes, 0, bytes.length, localIdSize)
  const types: PacketType[] = []
  while (reader.next()) types.push(reader.type)
  return types
}

test('coalesced packets come one after the other, each with its parts', () => {
  const bytes = bytesOf(`ffff ${initial} ${zeroRtt} ${handshake} ${short} ffff`)
  const reader = new PacketReader().start(bytes, 2, bytes.length - 2, 4)
  const hex = (start: number, limit: number): string => Buffer.from(bytes.subarray(start, limit)).toString('hex')
  const found: unknown[] = []
  while (reader.next()) {
    found.push([
      reader.type,
      reader.version,
      hex(reader.destinationStart, reader.destinationLimit),
      hex(reader.sourceStart, reader.sourceLimit),
      hex(reader.tokenStart, reader.tokenLimit),
      hex(reader.payloadStart, reader.packetLimit),
    ])
  }
  assert.deepEqual(found, [
    [PacketType.initial, version1, 'd1d2d3d4', '5152', '746f6b', sealed],
    [PacketType.zeroRtt, version1, 'd1d2d3d4', '5152', '', sealed],
    [PacketType.handshake, version1, 'd1d2d3d4', '5152', '', sealed],
    [PacketType.oneRtt, 0, 'd1d2d3d4', '', '', sealed],
  ])
})

test('every truncation of a packet is no packet', () => {
  for (const hex of [initial, handshake, zeroRtt, short]) {
    const bytes = bytesOf(hex)
    for (let limit = 0; limit < bytes.length; limit++) {
      assert.equal(new PacketReader().start(bytes, 0, limit, 4).next(), false, `${hex} cut at ${limit}`)
    }
  }
})

test('a packet that is cut off ends the datagram; the packets before it stand', () => {
  const bytes = bytesOf(initial + handshake)
  for (let cut = 1; cut < bytesOf(handshake).length; cut++) {
    const reader = new PacketReader().start(bytes, 0, bytes.length - cut, 4)
    assert.equal(reader.next(), true)
    assert.equal(reader.next(), false)
  }
})

test('RFC 9000 §12.2: packets for another connection id than the first are left out', () => {
  const other = handshake.replace('d1d2d3d4', 'd1d2d3d5')
  const longer = `e0 00000001 05 d1d2d3d4d5 02 5152 14 ${sealed}`
  assert.deepEqual(typesOf(initial + other + longer + handshake), [PacketType.initial, PacketType.handshake])
  assert.deepEqual(typesOf(`${initial} 40 d1d2d3d5 ${sealed}`), [PacketType.initial])
})

test('RFC 9001 §5.4.2: a packet too short for a sample is left out, and its successor is found', () => {
  const tiny = `e0 00000001 04 d1d2d3d4 02 5152 13 ${'55'.repeat(19)}`
  assert.deepEqual(typesOf(tiny + handshake), [PacketType.handshake])
  assert.deepEqual(typesOf(`40 d1d2d3d4 ${'55'.repeat(19)}`), [])
})

test('RFC 9000 §17.2, §17.3.1: a fixed bit of 0 and long ids are not of version 1', () => {
  assert.deepEqual(typesOf(initial.replace('c0', '80')), [])
  assert.deepEqual(typesOf(short.replace('40', '00')), [])
  assert.deepEqual(typesOf(`e0 00000001 14 ${'d1'.repeat(20)} 14 ${'51'.repeat(20)} 14 ${sealed}`), [PacketType.handshake])
  assert.deepEqual(typesOf(`e0 00000001 15 ${'d1'.repeat(21)} 00 14 ${sealed}`), [])
  assert.deepEqual(typesOf(`e0 00000001 00 15 ${'d1'.repeat(21)} 14 ${sealed}`), [])
})

test('padding behind the last packet is no packet', () => {
  assert.deepEqual(typesOf(initial + '00'.repeat(1000)), [PacketType.initial])
})

test('RFC 8999: an unknown version is told with ids of up to 255 octets, and takes the whole datagram', () => {
  const bytes = bytesOf(`8a 0a1a2a3a ff ${'d1'.repeat(255)} fe ${'51'.repeat(254)} 01020304 ${initial}`)
  const reader = new PacketReader().start(bytes, 0, bytes.length, 4)
  assert.ok(reader.next())
  assert.equal(reader.type, PacketType.unknownVersion)
  assert.equal(reader.version, 0x0a1a2a3a)
  assert.equal(reader.destinationLimit - reader.destinationStart, 255)
  assert.equal(reader.sourceLimit - reader.sourceStart, 254)
  assert.equal(reader.packetLimit, bytes.length)
  assert.equal(reader.next(), false)
  for (let limit = 0; limit < 6 + 255 + 1 + 254; limit++) assert.equal(new PacketReader().start(bytes, 0, limit, 4).next(), false)
})

test('RFC 9000 §17.2.5: a Retry packet has a token, and takes the whole datagram', () => {
  const retry = `f0 00000001 04 d1d2d3d4 02 5152 01 ${'77'.repeat(16)}`
  assert.deepEqual(typesOf(retry), [PacketType.retry])
  assert.deepEqual(typesOf(retry.replace(' 01 ', ' ')), [])
  assert.deepEqual(typesOf(retry + handshake), [PacketType.retry])
})

test('a length of up to 2^62 - 1 reads nothing past the datagram', () => {
  assert.deepEqual(typesOf(`e0 00000001 00 00 ffffffffffffffff ${sealed}`), [])
  assert.deepEqual(typesOf(`c0 00000001 00 00 ffffffffffffffff ${sealed}`), [])
  assert.deepEqual(typesOf(`c0 00000001 00 00 00 bfffffff ${sealed}`), [])
})

test('random datagrams never throw, and no packet lies outside of its datagram', () => {
  const likely = fc
    .tuple(fc.nat(255), fc.constantFrom(0, 1, 0x0a0a0a0a), fc.array(fc.nat(24), { maxLength: 120 }))
    .map(([first, version, rest]) => Uint8Array.from([first, version >>> 24, version >>> 16, version >>> 8, version, ...rest]))
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), likely), fc.nat(20), (bytes, localIdSize) => {
      const reader = new PacketReader().start(bytes, 0, bytes.length, localIdSize)
      let behind = 0
      while (reader.next()) {
        assert.ok(reader.packetStart >= behind)
        const { destinationStart, destinationLimit, sourceStart, sourceLimit, tokenStart, tokenLimit, payloadStart, packetLimit } = reader
        const positions = [reader.packetStart, destinationStart, destinationLimit, sourceStart, sourceLimit, tokenStart, tokenLimit]
        assert.deepEqual(
          positions.toSorted((a, b) => a - b),
          positions,
        )
        assert.ok(tokenLimit <= payloadStart && payloadStart <= packetLimit && packetLimit <= bytes.length)
        behind = packetLimit
      }
    }),
    { numRuns: 1_000 },
  )
})
