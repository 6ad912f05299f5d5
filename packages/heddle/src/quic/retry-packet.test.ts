import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'

import { nodeCrypto } from '../native/index.ts'
import { PacketReader, PacketType } from './packet.ts'
import { readVersions, retryPacket, verifyRetry, versionNegotiationPacket } from './retry-packet.ts'

const cryptography = nodeCrypto()
const originalDestination = bytesOf('8394c8f03e515708')
const none = new Uint8Array(0)

function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'))
}

/** RFC 9001 A.4: the answer to the Initial packet of A.2. */
const example = 'ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba'

test('RFC 9001 A.4: a Retry packet is written', () => {
  const token = new TextEncoder().encode('token')
  const packet = retryPacket(cryptography, none, bytesOf('f067a5502a4262b5'), originalDestination, token, 0x0f)
  assert.equal(Buffer.from(packet).toString('hex'), example)
})

test('RFC 9001 A.4: a Retry packet is read and verified', () => {
  const packet = bytesOf(example)
  const reader = new PacketReader().start(packet, 0, packet.length, 0)
  assert.ok(reader.next())
  assert.equal(reader.type, PacketType.retry)
  assert.equal(Buffer.from(packet.subarray(reader.tokenStart, reader.tokenLimit)).toString(), 'token')
  assert.equal(Buffer.from(packet.subarray(reader.sourceStart, reader.sourceLimit)).toString('hex'), 'f067a5502a4262b5')
  assert.ok(verifyRetry(cryptography, packet, 0, packet.length, originalDestination))
  assert.equal(reader.next(), false)
})

test('a Retry packet that was changed, or answers another Initial packet, is not verified', () => {
  const packet = bytesOf(example)
  for (let at = 0; at < packet.length; at++) {
    const changed = packet.slice()
    changed[at] = (changed[at] as number) ^ 0x10
    assert.equal(verifyRetry(cryptography, changed, 0, changed.length, originalDestination), false, `octet ${at}`)
  }
  assert.equal(verifyRetry(cryptography, packet, 0, packet.length, bytesOf('8394c8f03e515709')), false)
  assert.equal(verifyRetry(cryptography, packet, 0, packet.length, none), false)
  for (let limit = 0; limit < packet.length; limit++) {
    assert.equal(verifyRetry(cryptography, packet, 0, limit, originalDestination), false)
  }
})

test('what is written is read again: Retry', () => {
  const id = fc.uint8Array({ maxLength: 20 })
  fc.assert(
    fc.property(id, id, id, fc.uint8Array({ minLength: 1, maxLength: 100 }), fc.nat(15), (to, from, original, token, unused) => {
      const packet = retryPacket(cryptography, to, from, original, token, unused)
      const reader = new PacketReader().start(packet, 0, packet.length, 0)
      assert.ok(reader.next())
      assert.deepEqual(packet.slice(reader.destinationStart, reader.destinationLimit), to)
      assert.deepEqual(packet.slice(reader.sourceStart, reader.sourceLimit), from)
      assert.deepEqual(packet.slice(reader.tokenStart, reader.tokenLimit), token)
      assert.ok(verifyRetry(cryptography, packet, reader.packetStart, reader.packetLimit, original))
    }),
    { numRuns: 50 },
  )
})

test('what is written is read again: Version Negotiation, with ids of any version', () => {
  const id = fc.uint8Array({ maxLength: 255 })
  fc.assert(
    fc.property(id, id, fc.array(fc.nat(0xffff_ffff), { minLength: 1, maxLength: 10 }), fc.nat(63), (to, from, versions, unused) => {
      const packet = versionNegotiationPacket(to, from, versions, unused)
      const reader = new PacketReader().start(packet, 0, packet.length, 0)
      assert.ok(reader.next())
      assert.equal(reader.type, PacketType.versionNegotiation)
      assert.equal((packet[0] as number) & 0xc0, 0xc0)
      assert.deepEqual(packet.slice(reader.destinationStart, reader.destinationLimit), to)
      assert.deepEqual(packet.slice(reader.sourceStart, reader.sourceLimit), from)
      assert.deepEqual(readVersions(packet, reader.payloadStart, reader.packetLimit), versions)
      assert.deepEqual(readVersions(packet, reader.payloadStart, reader.packetLimit - 1), versions.slice(0, -1))
    }),
    { numRuns: 100 },
  )
})
