import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SendBuffer } from './send-buffer.ts'
import { octets } from './stream-end.test.ts'

function write(buffer: SendBuffer, size: number, owned: boolean): void {
  const bytes = octets(buffer.end, buffer.end + size)
  if (owned) return buffer.writeOwned(bytes)
  buffer.write(bytes, 0, size)
  // It was copied.
  bytes.fill(0)
}

function read(buffer: SendBuffer, offset: number, count: number): Uint8Array {
  const target = new Uint8Array(count + 2)
  buffer.copy(offset, count, target, 1)
  assert.equal(target[0], 0)
  assert.equal(target[count + 1], 0)
  return target.subarray(1, count + 1)
}

test('whatever is written, lost and acknowledged: what is held is right, and what is lost is neither held back nor sent for nothing', () => {
  const step = fc.record({
    does: fc.constantFrom('write', 'write', 'own', 'send', 'send', 'lose', 'ack', 'ack'),
    size: fc.oneof(fc.nat(70), fc.integer({ min: 500, max: 530 }), fc.nat(20_000)),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const buffer = new SendBuffer()
      /** By offset: sent, lost or arrived. */
      const states: ('sent' | 'lost' | 'arrived')[] = []
      const pieces: [start: number, limit: number][] = []
      for (const { does, size, at } of steps) {
        if (does === 'write' || does === 'own') write(buffer, size, does === 'own')
        else if (does === 'send') {
          const count = Math.min(size, buffer.unsent)
          assert.deepEqual(read(buffer, buffer.next, count), octets(buffer.next, buffer.next + count))
          pieces.push([buffer.next, buffer.next + count])
          for (let i = 0; i < count; i++) states.push('sent')
          buffer.next += count
        } else if (pieces.length > 0) {
          const [start, limit] = pieces[Math.floor(at * (pieces.length - 1))] as [number, number]
          if (does === 'ack') states.fill('arrived', start, limit)
          else for (let i = start; i < limit; i++) if (states[i] === 'sent') states[i] = 'lost'
          if (does === 'ack') buffer.onAcked(start, limit)
          else buffer.onLost(start, limit)
        }
        const firstMissing = states.findIndex((state) => state !== 'arrived')
        assert.equal(buffer.base, firstMissing < 0 ? states.length : firstMissing)
        assert.equal(buffer.held, buffer.end - buffer.base)
        if (buffer.held === 0) assert.equal(buffer.pinned, 0)
        for (let i = 0; i < buffer.lost.count; i++) {
          const from = buffer.lost.start(i)
          assert.deepEqual(read(buffer, from, buffer.lost.limit(i) - from), octets(from, buffer.lost.limit(i)))
        }
      }
      states.forEach((state, offset) => {
        if (buffer.lost.contains(offset) !== (state === 'lost')) assert.fail(`octet ${offset} is ${state}`)
      })
    }),
    { numRuns: 100 },
  )
})

test('a chunk that is given away is not copied, unless it is small', () => {
  const buffer = new SendBuffer()
  const large = octets(0, 1_000)
  buffer.writeOwned(large)
  large[0] = 200
  assert.equal(read(buffer, 0, 1)[0], 200)
  const small = octets(1_000, 1_100)
  buffer.writeOwned(small)
  small[0] = 200
  assert.deepEqual(read(buffer, 1_000, 100), octets(1_000, 1_100))
})

test('a header between two chunks is a copy, be it lent in a Buffer', () => {
  const buffer = new SendBuffer()
  buffer.writeOwned(octets(0, 1_000))
  const header = Buffer.from(octets(1_000, 1_004))
  buffer.write(header, 0, 4)
  header.fill(0)
  buffer.writeOwned(octets(1_004, 3_000))
  assert.deepEqual(read(buffer, 0, 3_000), octets(0, 3_000))
})

test('memory is given back once, and what is written next to it meanwhile stays what it is', () => {
  const one = new SendBuffer()
  const two = new SendBuffer()
  write(one, 3_000, false)
  one.next = 3_000
  one.onAcked(0, 3_000)
  // Acknowledged again, and let go: nothing is there to be given back.
  one.onAcked(0, 3_000)
  one.clear()
  write(one, 3_000, false)
  write(two, 3_000, false)
  assert.deepEqual(read(one, 3_000, 3_000), octets(3_000, 6_000))
  assert.deepEqual(read(two, 0, 3_000), octets(0, 3_000))
})

test('tiny writes lie next to each other: what they pin is what they are, and one buffer', () => {
  const buffer = new SendBuffer()
  for (let i = 0; i < 100_000; i++) write(buffer, 1, i % 2 === 0)
  assert.ok(buffer.pinned < 100_000 + 16_384, `${buffer.pinned} octets`)
  assert.deepEqual(read(buffer, 0, 100_000), octets(0, 100_000))
  buffer.next = 100_000
  for (let i = 0; i < 100_000; i++) buffer.onAcked(i, i + 1)
  assert.equal(buffer.pinned, 0)
})

test('a peer that never acknowledges the first octet pins no more than the chunk that it lies in, and what is under way', () => {
  for (const owned of [false, true]) {
    const buffer = new SendBuffer()
    let most = 0
    for (let i = 0; i < 2_000; i++) {
      write(buffer, 1_500, owned)
      const start = Math.max(1, buffer.next)
      buffer.next = buffer.end
      buffer.onLost(0, 1)
      buffer.onAcked(start, buffer.end)
      most = Math.max(most, buffer.pinned)
    }
    assert.ok(most <= 2 * 16_384, `${most} octets`)
    assert.equal(buffer.held, 3_000_000)
    assert.deepEqual(read(buffer, 0, 1), octets(0, 1))
    buffer.onAcked(0, 1)
    assert.equal(buffer.held, 0)
    assert.equal(buffer.pinned, 0)
  }
})

test('what has arrived in the middle is let go, and what lies beside it is read as before', () => {
  const buffer = new SendBuffer()
  for (let i = 0; i < 10; i++) write(buffer, 1_000, true)
  buffer.next = 10_000
  // The chunk from 3,000 on arrives in pieces, and parts of its neighbours with them.
  buffer.onAcked(3_500, 4_200)
  assert.equal(buffer.pinned, 10_000)
  buffer.onAcked(2_900, 3_500)
  assert.equal(buffer.pinned, 9_000)
  buffer.onLost(0, 10_000)
  assert.deepEqual([buffer.lost.limit(0), buffer.lost.start(1)], [2_900, 4_200])
  assert.deepEqual(read(buffer, 0, 2_900), octets(0, 2_900))
  assert.deepEqual(read(buffer, 4_200, 5_800), octets(4_200, 10_000))
  // The last one, too: what is written then stands behind it.
  buffer.onAcked(9_000, 10_000)
  assert.equal(buffer.pinned, 8_000)
  write(buffer, 10, false)
  write(buffer, 600, true)
  assert.deepEqual(read(buffer, 10_000, 610), octets(10_000, 10_610))
})

test('what was lost and arrives after all is not sent again', () => {
  const buffer = new SendBuffer()
  write(buffer, 100, false)
  buffer.next = 100
  buffer.onLost(0, 100)
  buffer.onAcked(20, 40)
  assert.deepEqual([buffer.lost.count, buffer.lost.limit(0), buffer.lost.start(1)], [2, 20, 40])
  buffer.onLost(10, 60)
  assert.deepEqual([buffer.lost.count, buffer.lost.limit(0), buffer.lost.start(1)], [2, 20, 40])
  buffer.onAcked(0, 100)
  assert.ok(buffer.lost.isEmpty)
  buffer.onLost(0, 100)
  assert.ok(buffer.lost.isEmpty)
})

test('ten thousand chunks are found at once, wherever the octet is', () => {
  const buffer = new SendBuffer()
  for (let i = 0; i < 10_000; i++) write(buffer, 600, true)
  for (const offset of [0, 5_999_999, 3_000_000, 2_999_999, 600, 599, 4_000_000]) {
    assert.deepEqual(read(buffer, offset, 1), octets(offset, offset + 1))
  }
  assert.deepEqual(read(buffer, 1_000_000, 100_000), octets(1_000_000, 1_100_000))
})
