import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { List } from '../bytes/index.ts'
import { SentPacket } from './sent-packet.ts'
import { SentSpace } from './sent-space.ts'

const lossDelay = 50

interface Sent {
  readonly packetNumber: number
  readonly timeSent: number
  readonly kind: 'eliciting' | 'padded' | 'quiet'
  fate: 'unknown' | 'acked' | 'lost'
}

/** The rules of RFC 9002 §6.1 and §7.6.2 over everything that was ever sent: the slow, obvious twin. */
class Twin {
  readonly packets: Sent[] = []
  largestAcknowledged = -1
  lossTime = Infinity

  ack(ranges: readonly (readonly [number, number])[]): number[] {
    this.largestAcknowledged = Math.max(this.largestAcknowledged, ranges[0]?.[1] ?? -1)
    return this.#settle('acked', ({ packetNumber }) =>
      ranges.some(([smallest, largest]) => smallest <= packetNumber && packetNumber <= largest),
    )
  }

  lose(now: number): number[] {
    const largest = this.largestAcknowledged
    const lost = this.#settle(
      'lost',
      ({ packetNumber, timeSent }) => packetNumber < largest && (packetNumber <= largest - 3 || timeSent + lossDelay <= now),
    )
    const waiting = this.packets.filter(({ fate, kind, packetNumber }) => fate === 'unknown' && kind !== 'quiet' && packetNumber < largest)
    this.lossTime = Math.min(...waiting.map(({ timeSent }) => timeSent + lossDelay))
    return lost
  }

  /** The longest time between two packets that ask for acknowledgements, with nothing acknowledged between them, the later one of `lost`. */
  longestLoss(lost: readonly number[]): number {
    let longest = 0
    for (const [place, last] of this.packets.entries()) {
      if (!lost.includes(last.packetNumber) || last.kind !== 'eliciting') continue
      for (let before = place; before >= 0 && (this.packets[before] as Sent).fate !== 'acked'; before--) {
        const first = this.packets[before] as Sent
        if (first.kind === 'eliciting') longest = Math.max(longest, last.timeSent - first.timeSent)
      }
    }
    return longest
  }

  #settle(fate: 'acked' | 'lost', applies: (packet: Sent) => boolean): number[] {
    const settled = this.packets.filter((packet) => packet.fate === 'unknown' && applies(packet))
    for (const packet of settled) packet.fate = fate
    return settled.map(({ packetNumber }) => packetNumber)
  }
}

function drain(packets: List<SentPacket>): number[] {
  const numbers: number[] = []
  for (let packet = packets.shift(); packet !== undefined; packet = packets.shift()) numbers.push(packet.packetNumber)
  return numbers
}

test('what is acknowledged, lost and waited for is what the rules say of everything that was sent', () => {
  const range = fc.tuple(fc.nat({ max: 12 }), fc.nat({ max: 6 }))
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ send: fc.constantFrom('eliciting', 'eliciting', 'padded', 'quiet'), skip: fc.nat({ max: 12 }) }) },
    { weight: 2, arbitrary: fc.record({ ack: fc.array(range, { minLength: 1, maxLength: 4 }) }) },
    { weight: 2, arbitrary: fc.record({ wait: fc.nat({ max: 60 }) }) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
      const space = new SentSpace()
      const twin = new Twin()
      const moved = new List<SentPacket>()
      let now = 1000
      for (const action of steps) {
        if ('send' in action) {
          const kind = action.send as Sent['kind']
          const packet = new SentPacket()
          // Now and then a number is left out.
          if (action.skip === 0) space.nextNumber++
          packet.packetNumber = space.nextNumber++
          packet.timeSent = now
          packet.ackEliciting = kind === 'eliciting'
          packet.inFlight = kind !== 'quiet'
          twin.packets.push({ packetNumber: packet.packetNumber, timeSent: now, kind, fate: 'unknown' })
          space.append(packet)
          continue
        }
        if ('wait' in action) now += action.wait
        else {
          const ranges: [number, number][] = []
          let top = space.nextNumber - 1
          for (const [gap, length] of action.ack) {
            const largest = top - gap
            const smallest = Math.max(0, largest - length)
            if (largest < 0) break
            ranges.push([smallest, largest])
            top = smallest - 2
          }
          if (ranges.length === 0) continue
          space.largestAcknowledged = Math.max(space.largestAcknowledged, (ranges[0] as [number, number])[1])
          space.takeAcked(new Float64Array(ranges.flat()), ranges.length, moved)
          assert.deepEqual(drain(moved), twin.ack(ranges))
        }
        const duration = space.takeLost(lossDelay, 0, now, moved)
        const lost = twin.lose(now)
        assert.deepEqual(drain(moved), lost)
        assert.equal(space.lossTime, twin.lossTime)
        assert.equal(duration, twin.longestLoss(lost))
        const left = twin.packets.filter(({ fate }) => fate === 'unknown')
        assert.equal(space.packets.length, left.length)
        assert.equal(space.elicitingCount, left.filter(({ kind }) => kind === 'eliciting').length)
        // Nothing is walked over twice.
        assert.ok(left.filter(({ packetNumber }) => packetNumber < space.largestAcknowledged).length <= 2)
      }
    }),
    { numRuns: 1000 },
  )
})
