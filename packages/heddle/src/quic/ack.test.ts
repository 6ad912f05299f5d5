import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ackDelayTime, ackDelayUnits, ReceivedPackets } from './ack.ts'
import { Ecn } from './ecn.ts'
import { Space } from './space.ts'

const { none, ect0, ce } = Ecn

function rangesOf({ ranges }: ReceivedPackets): [number, number][] {
  return Array.from({ length: ranges.count }, (_, index) => [ranges.start(index), ranges.limit(index)])
}

test('Initial and Handshake packets are acknowledged at once (RFC 9000 §13.2.1)', () => {
  for (const space of [Space.initial, Space.handshake]) {
    const received = new ReceivedPackets(space)
    received.receive(0, true, none, 10)
    assert.ok(received.shouldAckNow)
  }
})

test('1-RTT packets are acknowledged two at a time, or after max_ack_delay (§13.2.1, §13.2.2)', () => {
  const received = new ReceivedPackets(Space.application, { maxAckDelay: 20 })
  received.receive(0, true, none, 10)
  assert.deepEqual([received.shouldAckNow, received.deadline, received.hasNews], [false, 30, true])
  received.receive(1, true, none, 12)
  assert.deepEqual([received.shouldAckNow, received.deadline], [true, 30])
  received.onAckSent()
  assert.deepEqual([received.shouldAckNow, received.deadline, received.hasNews], [false, Infinity, false])

  received.receive(2, true, none, 50)
  received.expire(69)
  assert.ok(!received.shouldAckNow)
  received.expire(70)
  assert.ok(received.shouldAckNow)
})

test('packets that ask for nothing are never answered by themselves (§13.2)', () => {
  const received = new ReceivedPackets(Space.application)
  for (let number = 0; number < 20; number += 2) received.receive(number, false, none, number)
  assert.deepEqual([received.shouldAckNow, received.deadline], [false, Infinity])
  assert.ok(received.hasNews, 'but they are told of with the next packet')
})

test('a packet out of order, or behind a gap, is acknowledged at once (§13.2.1)', () => {
  const received = new ReceivedPackets(Space.application, { threshold: 100 })
  received.receive(0, true, none, 1)
  received.receive(1, true, none, 1)
  assert.ok(!received.shouldAckNow)
  received.receive(3, true, none, 1)
  assert.ok(received.shouldAckNow, 'number 2 is missing')
  received.onAckSent()
  received.receive(4, true, none, 1)
  assert.ok(!received.shouldAckNow, 'the gap is told')
  received.receive(2, true, none, 1)
  assert.ok(received.shouldAckNow, 'it came late')
  assert.deepEqual(rangesOf(received), [[0, 5]])
})

test('a packet that asks for nothing leaves no gap', () => {
  const received = new ReceivedPackets(Space.application, { threshold: 100 })
  received.receive(0, true, none, 1)
  received.receive(1, false, none, 1)
  received.receive(2, true, none, 1)
  assert.ok(!received.shouldAckNow)
})

test('nor is there a gap where numbers need not be told any more', () => {
  const received = new ReceivedPackets(Space.application, { threshold: 100 })
  received.receive(0, true, none, 1)
  for (let number = 1; number < 6; number++) received.receive(number, false, none, 1)
  received.onAckSent()
  received.onAckOfAck(5)
  received.receive(6, true, none, 2)
  assert.ok(!received.shouldAckNow)
})

test('a CE mark is told at once (§13.2.1), and every mark is counted once (§13.4.1)', () => {
  const received = new ReceivedPackets(Space.application, { threshold: 100 })
  received.receive(0, true, none, 1)
  const before = received.ecnTotals
  assert.equal(before, undefined)
  received.receive(1, true, ect0, 1)
  received.receive(1, true, ect0, 1)
  assert.ok(!received.shouldAckNow)
  received.receive(2, true, ce, 1)
  assert.ok(received.shouldAckNow)
  const { ecnTotals } = received
  assert.deepEqual([ecnTotals?.ect0, ecnTotals?.ect1, ecnTotals?.ce], [1, 0, 1])
})

test('the delay is that of the largest number (§13.2.5)', () => {
  const received = new ReceivedPackets(Space.application)
  received.receive(5, true, none, 100)
  received.receive(3, true, none, 110)
  assert.equal(received.ackDelay(115), 15)
  received.receive(6, true, none, 114)
  assert.equal(received.ackDelay(115), 1)
})

test('duplicates are known, and change nothing', () => {
  const received = new ReceivedPackets(Space.application)
  received.receive(7, true, none, 1)
  received.onAckSent()
  assert.ok(received.isDuplicate(7))
  assert.ok(!received.isDuplicate(6))
  assert.ok(!received.isDuplicate(8))
  received.receive(7, true, none, 5)
  assert.deepEqual([received.hasNews, received.deadline, received.ackDelay(5)], [false, Infinity, 4])
})

test('at most 64 ranges are kept, and what is below them counts as seen (§13.2.3)', () => {
  const received = new ReceivedPackets(Space.application)
  for (let number = 0; number < 100_000; number += 2) received.receive(number, true, none, 1)
  assert.equal(received.ranges.count, 64)
  assert.equal(received.largest, 99_998)
  assert.ok(received.isDuplicate(1))
  assert.ok(received.isDuplicate(received.ranges.min - 2))
  assert.ok(!received.isDuplicate(received.ranges.min + 1))
})

test('what the peer knows to be acknowledged is said no more (§13.2.4)', () => {
  const received = new ReceivedPackets(Space.application)
  for (const number of [0, 1, 3, 4, 8, 9]) received.receive(number, true, none, 1)
  received.onAckSent()
  received.onAckOfAck(4)
  assert.deepEqual(rangesOf(received), [[8, 10]])
  assert.ok(received.isDuplicate(2), 'the peer took it for lost')
  assert.ok(!received.isDuplicate(5))
  received.onAckOfAck(3)
  received.onAckOfAck(9)
  assert.deepEqual(rangesOf(received), [])
  assert.ok(received.isDuplicate(9))
  received.receive(10, true, none, 1)
  received.receive(11, true, none, 1)
  assert.deepEqual(rangesOf(received), [[10, 12]])
})

test('what came late and was never acknowledged stays, although a later acknowledgement got through', () => {
  const received = new ReceivedPackets(Space.application)
  for (const number of [0, 1, 3]) received.receive(number, true, none, 1)
  received.onAckSent()
  received.receive(2, true, none, 1)
  received.onAckOfAck(3)
  assert.deepEqual(rangesOf(received), [[2, 4]])
  assert.ok(received.shouldAckNow)
})

test('whatever arrives: no number twice, never more than 64 ranges, and what asks is answered in time', () => {
  const packet = fc.record({ number: fc.nat({ max: 400 }), asks: fc.boolean(), ack: fc.nat({ max: 9 }) })
  fc.assert(
    fc.property(fc.array(packet, { maxLength: 200, size: 'max' }), (packets) => {
      const received = new ReceivedPackets(Space.application, { maxAckDelay: 25 })
      const seen = new Set<number>()
      let now = 0
      let asked = Infinity
      let told = -1
      for (const { number, asks, ack } of packets) {
        now++
        if (seen.has(number)) assert.ok(received.isDuplicate(number))
        const isNew = !received.isDuplicate(number)
        if (isNew) {
          seen.add(number)
          if (asks) asked = Math.min(asked, now)
        }
        received.receive(number, asks, none, now)
        if (isNew && number > received.ranges.min) assert.ok(received.ranges.contains(number))
        if (asked !== Infinity) assert.ok(received.deadline <= asked + 25)
        if (ack === 0) {
          told = received.largest
          received.onAckSent()
          asked = Infinity
        } else if (ack === 1 && told >= 0) received.onAckOfAck(told)
        assert.ok(received.ranges.count <= 64)
        assert.equal(received.largest, Math.max(...seen))
        for (let index = 0; index < received.ranges.count; index++) assert.ok(seen.has(received.ranges.start(index)))
      }
    }),
  )
})

test('the delay goes on the wire in units of 2^exponent µs (RFC 9000 §19.3)', () => {
  assert.equal(ackDelayUnits(25, 3), 3125)
  assert.equal(ackDelayTime(3125, 3), 25)
  assert.equal(ackDelayUnits(0.0075, 3), 0)
  assert.equal(ackDelayTime(1, 20), 1048.576)
})
