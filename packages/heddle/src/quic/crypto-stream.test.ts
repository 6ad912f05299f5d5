import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { carriedWidth } from './carried.ts'
import { CryptoStream, mostCryptoAhead } from './crypto-stream.ts'
import { readDebugFrames, type DebugFrame } from './debug-frame.ts'
import { PacketWriter } from './packet-writer.ts'
import { octets } from './stream-end.test.ts'
import { TransportError } from './transport-error.ts'

interface Written {
  readonly carried: number[]
  readonly frames: DebugFrame[]
}

function write(stream: CryptoStream, room: number): Written {
  const writer = new PacketWriter()
  writer.startDatagram(new Uint8Array(room + 60), 0, room + 60)
  assert.ok(writer.startShort(new Uint8Array(0), 0, -1, 0, false))
  writer.limit = writer.at + room
  const carried: number[] = []
  const hadAll = stream.maybeWriteFrames(writer, { carried })
  assert.equal(hadAll, !stream.hasToSend)
  return { carried, frames: writer.isEmpty ? [] : readDebugFrames(writer.buffer.slice(writer.payloadStart, writer.at), 2, true).frames }
}

function each({ carried }: Written, tell: (start: number, limit: number) => void): void {
  for (let i = 0; i < carried.length; i += carriedWidth) tell(carried[i + 1] as number, carried[i + 2] as number)
}

function receive(stream: CryptoStream, frames: readonly DebugFrame[]): void {
  for (const frame of frames) {
    if (frame.type === 'CRYPTO') assert.equal(stream.receive(frame.offset, frame.data, 0, frame.data.length), undefined)
  }
}

function readAll(stream: CryptoStream): Uint8Array {
  const read: number[] = []
  for (let bytes = stream.read(); bytes !== undefined; bytes = stream.read()) read.push(...bytes)
  return Uint8Array.from(read)
}

test('a flight is cut to packets, and comes in order whatever is lost and overtaken', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6_000 }),
      fc.integer({ min: 8, max: 1_200 }),
      fc.array(fc.nat(9), { minLength: 1, maxLength: 40 }),
      (size, room, dice) => {
        const sender = new CryptoStream()
        const receiver = new CryptoStream()
        const half = size >> 1
        sender.write(octets(0, half))
        sender.write(octets(half, size))
        let read = new Uint8Array(0)
        for (let round = 0; sender.outstanding > 0; round++) {
          assert.ok(round < 200)
          const flight: Written[] = []
          while (sender.hasToSend) flight.push(write(sender, room))
          if (round % 2 === 1) flight.reverse()
          flight.forEach((packet, index) => {
            const die = round > 100 ? 9 : (dice[(round + index) % dice.length] as number)
            // Lost; or it arrives, and its acknowledgement is lost; or all is well.
            if (die >= 3) receive(receiver, packet.frames)
            if (die >= 6) each(packet, (start, limit) => sender.onAcked(start, limit))
          })
          for (const packet of flight) {
            if (sender.outstanding === 0) break
            each(packet, (start, limit) => sender.onLost(start, limit))
          }
          read = Uint8Array.from([...read, ...readAll(receiver)])
        }
        assert.deepEqual(read, octets(0, size))
        assert.equal(sender.hasToSend, false)
        assert.equal(receiver.hasGap, false)
      },
    ),
    { numRuns: 25 },
  )
})

test('without room nothing is written, and it still waits', () => {
  const stream = new CryptoStream()
  stream.write(octets(0, 100))
  assert.deepEqual(write(stream, 2), { carried: [], frames: [] })
  assert.ok(stream.hasToSend)
  assert.equal(write(stream, 200).frames.length, 1)
  assert.equal(stream.hasToSend, false)
})

test('what is read is a copy of what came', () => {
  const stream = new CryptoStream()
  const buffer = octets(0, 10)
  stream.receive(0, buffer, 0, 10)
  buffer.fill(0)
  assert.deepEqual(readAll(stream), octets(0, 10))
})

test('everything under way is sent again when a Retry came', () => {
  const stream = new CryptoStream()
  stream.write(octets(0, 100))
  write(stream, 1_200)
  assert.equal(stream.hasToSend, false)
  stream.resend()
  assert.deepEqual(write(stream, 1_200).frames, [{ type: 'CRYPTO', offset: 0, data: octets(0, 100) }])
})

test('64 KiB may come before their turn, and not one octet more (RFC 9000 §7.5)', () => {
  const stream = new CryptoStream()
  stream.receive(0, octets(0, 10), 0, 10)
  assert.equal(stream.receive(10 + mostCryptoAhead - 1, octets(0, 1), 0, 1), undefined)
  assert.ok(stream.hasGap)
  assert.equal(stream.receive(10 + mostCryptoAhead, octets(0, 1), 0, 1)?.code, TransportError.cryptoBufferExceeded)
  assert.equal(stream.receive(2 ** 62, octets(0, 1), 0, 1)?.code, TransportError.cryptoBufferExceeded)
})

test('a thousand gaps are too many', () => {
  const stream = new CryptoStream()
  let gaps = 0
  let code: number | undefined
  while (code === undefined) code = stream.receive(1 + 2 * gaps++, octets(0, 1), 0, 1)?.code
  assert.equal(code, TransportError.cryptoBufferExceeded)
  assert.equal(gaps, 1_001)
})

test('what came before is ignored, be it other octets', () => {
  const stream = new CryptoStream()
  stream.receive(0, octets(0, 10), 0, 10)
  assert.equal(stream.receive(0, new Uint8Array(10), 0, 10), undefined)
  assert.equal(stream.receive(5, octets(5, 15), 0, 10), undefined)
  assert.deepEqual(readAll(stream), octets(0, 15))
})

test('a space that is discarded holds nothing, and sends nothing', () => {
  const stream = new CryptoStream()
  stream.write(octets(0, 100))
  write(stream, 50)
  stream.receive(5, octets(5, 15), 0, 10)
  stream.discard()
  assert.equal(stream.hasToSend, false)
  assert.equal(stream.outstanding, 0)
  assert.equal(stream.hasGap, false)
  stream.onLost(0, 40)
  stream.onAcked(0, 40)
  assert.equal(stream.hasToSend, false)
  assert.equal(stream.read(), undefined)
})
