import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Carried, carry } from './carried.ts'
import { Recovery, type PacketFate, type RecoveryOptions } from './recovery.ts'
import type { SentPacket } from './sent-packet.ts'
import { Space } from './space.ts'
import { TransportError } from './transport-error.ts'

const { initial, handshake, application } = Space
const size = 1200

interface Extras {
  ackEliciting?: boolean
  inFlight?: boolean
  size?: number
  isEarly?: boolean
  isMtuProbe?: boolean
  ecn?: number
}

/** Somebody who sends packets, and a clock. Fates are written down as `space:number`. */
class Sender implements PacketFate {
  readonly recovery: Recovery
  now: number
  acked: string[]
  lost: string[]

  constructor(options: Partial<RecoveryOptions> & { confirmed?: boolean } = {}) {
    this.now = 1000
    this.acked = []
    this.lost = []
    // No number is left out, unless a test wants it: far from the first.
    const random = (byteCount: number): Uint8Array => new Uint8Array(byteCount).fill(255)
    this.recovery = new Recovery({ isServer: true, random, ...options }, this, this.now)
    if (options.confirmed ?? true) this.recovery.onHandshakeConfirmed()
  }

  onAcked(space: Space, packet: SentPacket): void {
    this.acked.push(`${space}:${packet.packetNumber}`)
  }

  onLost(space: Space, packet: SentPacket): void {
    this.lost.push(`${space}:${packet.packetNumber}`)
  }

  /** Sends a packet and returns its number. */
  send(space: Space = application, extras: Extras = {}): number {
    const packet = this.recovery.takePacket(space)
    packet.size = extras.size ?? size
    packet.ackEliciting = extras.ackEliciting ?? true
    packet.inFlight = extras.inFlight ?? packet.ackEliciting
    packet.isEarly = extras.isEarly ?? false
    packet.isMtuProbe = extras.isMtuProbe ?? false
    packet.ecn = extras.ecn ?? 0
    carry(packet.carried, Carried.stream, 0, packet.packetNumber, packet.packetNumber + 1)
    const { packetNumber } = packet
    this.recovery.onPacketSent(space, packet, this.now)
    return packetNumber
  }

  sendMany(count: number, space: Space = application): void {
    for (let i = 0; i < count; i++) this.send(space)
  }

  /** An ACK frame of these ranges, the newest first. */
  ack(space: Space, ranges: readonly (readonly [number, number])[], ackDelay = 0, ecn?: { ect0: number; ect1: number; ce: number }) {
    return this.recovery.onAck(space, new Float64Array(ranges.flat()), ranges.length, ackDelay, ecn, this.now)
  }

  after(ms: number): this {
    this.now += ms
    return this
  }

  /** Goes to the deadline and lets it expire. */
  expire(): boolean {
    assert.ok(this.recovery.deadline < Infinity)
    this.now = Math.max(this.now, this.recovery.deadline)
    return this.recovery.expire(this.now)
  }

  /** Makes a round trip of `rtt` ms known. */
  measure(rtt: number, space: Space = application): void {
    const packetNumber = this.send(space)
    this.after(rtt).ack(space, [[packetNumber, packetNumber]])
    this.acked = []
  }
}

function close(actual: number, expected: number, why?: string): void {
  assert.ok(Math.abs(actual - expected) < 1e-6, `${why ?? ''} ${actual} is not ${expected}`)
}

test('the first sample is the round trip, and half of it its variation (RFC 9002 §5.3)', () => {
  const sender = new Sender()
  sender.send()
  sender.after(80).ack(application, [[0, 0]], 20)
  const { rtt } = sender.recovery
  assert.deepEqual([rtt.latest, rtt.min, rtt.smoothed, rtt.variation], [80, 80, 80, 40])
})

test('the acknowledgement delay is taken off, but not more than max_ack_delay, and not below the minimum (§5.3)', () => {
  const sender = new Sender()
  sender.measure(100)
  sender.recovery.maxAckDelay = 30
  const { rtt } = sender.recovery
  sender.send()
  sender.after(200).ack(application, [[1, 1]], 50)
  // 200 less 30, for the peer promised no more than that.
  close(rtt.smoothed, (7 * 100 + 170) / 8)
  const smoothed = rtt.smoothed
  sender.send()
  sender.after(110).ack(application, [[2, 2]], 20)
  close(rtt.smoothed, (7 * smoothed + 110) / 8, '110 less 20 would be below the minimum, so nothing is taken off')
  assert.equal(rtt.min, 100)
})

test('before the handshake is confirmed max_ack_delay binds nobody, and Initial packets are not delayed (§5.3)', () => {
  const sender = new Sender({ confirmed: false })
  sender.measure(100, initial)
  const { rtt } = sender.recovery
  sender.send(handshake)
  sender.after(300).ack(handshake, [[0, 0]], 150)
  close(rtt.smoothed, (7 * 100 + 150) / 8)
  const smoothed = rtt.smoothed
  sender.send(initial)
  sender.after(300).ack(initial, [[1, 1]], 150)
  close(rtt.smoothed, (7 * smoothed + 300) / 8)
})

test('a sample needs the largest number newly acknowledged, and something that asked for it (§5.1)', () => {
  const sender = new Sender()
  sender.sendMany(2)
  sender.send(application, { ackEliciting: false })
  sender.after(50).ack(application, [[2, 2]])
  assert.ok(!sender.recovery.rtt.hasSample, 'the packet asked for nothing')
  sender.after(50).ack(application, [[1, 2]])
  assert.ok(!sender.recovery.rtt.hasSample, 'the largest was acknowledged before')
  sender.send()
  sender.after(70).ack(application, [[0, 3]])
  assert.equal(sender.recovery.rtt.latest, 70)
})

test('a packet is lost when one sent three later is acknowledged (§6.1.1)', () => {
  const sender = new Sender()
  sender.sendMany(5)
  sender.after(50).ack(application, [[2, 2]])
  assert.deepEqual(sender.lost, [])
  sender.ack(application, [[2, 3]])
  assert.deepEqual(sender.lost, ['2:0'])
  sender.ack(application, [[2, 4]])
  assert.deepEqual(sender.lost, ['2:0', '2:1'])
  assert.deepEqual(sender.acked, ['2:2', '2:3', '2:4'])
  assert.equal(sender.recovery.bytesInFlight, 0)
  assert.equal(sender.recovery.deadline, Infinity)
})

test('a packet is lost when it is 9/8 of a round trip older than what is acknowledged (§6.1.2)', () => {
  const sender = new Sender()
  sender.measure(80)
  const lateNumber = sender.send()
  const sentAt = sender.now
  const nextNumber = sender.after(4).send()
  sender.after(80).ack(application, [[nextNumber, nextNumber]])
  const { recovery } = sender
  const lossDelay = (9 / 8) * Math.max(80, recovery.rtt.smoothed)
  close(recovery.deadline, sentAt + lossDelay)
  assert.equal(recovery.expire(recovery.deadline - 0.001), false)
  assert.deepEqual(sender.lost, [])
  assert.equal(sender.expire(), false, 'no probes: a loss timer is no probe timeout')
  assert.deepEqual(sender.lost, [`2:${lateNumber}`])
  assert.equal(recovery.probeCount, 0)
  assert.equal(recovery.deadline, Infinity)
})

test('the time threshold is never finer than a timer (§6.1.2)', () => {
  const sender = new Sender()
  sender.measure(0)
  sender.send()
  sender.send()
  sender.ack(application, [[2, 2]])
  close(sender.recovery.deadline, sender.now + 1)
})

test('a probe timeout is the round trip, four variations and max_ack_delay, and doubles (§6.2.1)', () => {
  const sender = new Sender()
  sender.measure(100)
  const { recovery } = sender
  sender.send()
  const sentAt = sender.now
  const timeout = 100 + 4 * 50 + 25
  close(recovery.deadline, sentAt + timeout)
  assert.equal(sender.expire(), true)
  assert.equal(recovery.probesDue(application), 2)
  close(recovery.deadline, sentAt + 2 * timeout, 'counted from the last packet')
  sender.send()
  sender.send()
  assert.equal(recovery.probesDue(application), 0)
  close(recovery.deadline, sender.now + 2 * timeout)
  assert.equal(sender.expire(), true)
  close(recovery.deadline, sentAt + timeout + 4 * timeout)
  assert.deepEqual(sender.lost, [], 'a timeout means no loss (§6.2)')
  sender.ack(application, [[3, 3]])
  assert.equal(recovery.probeCount, 0)
  assert.equal(recovery.probesDue(application), 0, 'an answer makes probes that were not sent needless')
})

test('Initial and Handshake probe timeouts know no max_ack_delay; 1-RTT has none before the handshake is confirmed (§6.2.1)', () => {
  const sender = new Sender({ confirmed: false })
  const { recovery } = sender
  const probes = (): number[] => [initial, handshake, application].map((space) => recovery.probesDue(space))
  sender.send(application)
  sender.after(10).send(handshake)
  close(recovery.deadline, sender.now + 333 + 4 * 166.5)
  assert.ok(sender.expire())
  assert.deepEqual(probes(), [0, 2, 0])
  sender.ack(handshake, [[0, 0]])
  assert.ok(sender.expire())
  assert.deepEqual(probes(), [0, 1, 0], 'not in 1-RTT')
  recovery.onHandshakeConfirmed()
  assert.ok(sender.expire())
  assert.deepEqual(probes(), [0, 1, 2])
})

test('the first timeout makes everything probe that is under way (§6.2.4), in 1-RTT once the handshake is confirmed', () => {
  const sender = new Sender({ confirmed: false })
  const { recovery } = sender
  const probes = (): number[] => [initial, handshake, application].map((space) => recovery.probesDue(space))
  sender.send(handshake)
  sender.after(5).send(initial)
  sender.send(application)
  close(recovery.deadline, sender.now - 5 + 999)
  sender.expire()
  assert.deepEqual(probes(), [2, 2, 0])
  recovery.discardSpace(initial, sender.now)
  recovery.discardSpace(handshake, sender.now)
  recovery.onHandshakeConfirmed()
  sender.expire()
  assert.deepEqual(probes(), [0, 0, 2])
})

test('a client with nothing in flight probes until it knows that the server knows its address (§6.2.2.1)', () => {
  const sender = new Sender({ isServer: false, confirmed: false })
  const { recovery } = sender
  sender.send(initial)
  sender.after(100).ack(initial, [[0, 0]])
  close(recovery.deadline, sender.now + 300)
  assert.ok(sender.expire())
  assert.equal(recovery.probesDue(initial), 1)
  close(recovery.deadline, sender.now + 600)
  sender.send(initial)
  sender.ack(initial, [[1, 1]])
  assert.equal(recovery.probeCount, 1, 'an acknowledgement of an Initial packet does not end the back-off')

  recovery.onHandshakeKeys()
  assert.ok(sender.expire())
  assert.equal(recovery.probesDue(handshake), 1)
  sender.send(handshake)
  sender.ack(handshake, [[0, 0]])
  assert.equal(recovery.probeCount, 0)
  assert.equal(recovery.deadline, Infinity)
})

test('a client with nothing but 0-RTT in flight probes, too', () => {
  const sender = new Sender({ isServer: false, confirmed: false })
  sender.send(initial)
  sender.send(application, { isEarly: true })
  sender.after(100).ack(initial, [[0, 0]])
  assert.ok(sender.recovery.deadline < Infinity)
  sender.expire()
  assert.equal(sender.recovery.probesDue(initial), 1)
})

test('whoever fills the window with what the peer cannot read yet still probes for the handshake', () => {
  for (const isServer of [false, true]) {
    const sender = new Sender({ isServer, confirmed: false })
    const { recovery } = sender
    recovery.onHandshakeKeys()
    const first = sender.send(handshake)
    sender.after(10).sendMany(10, application)
    const last = sender.send(handshake)
    for (let i = 0; i < 2; i++) sender.send(handshake)
    sender.after(10).ack(handshake, [[last, last + 2]])
    sender.after(30)
    if (recovery.deadline <= sender.now) recovery.expire(sender.now)
    assert.deepEqual(sender.lost, [`1:${first}`])
    assert.ok(!recovery.hasWindow)
    assert.ok(sender.expire())
    assert.deepEqual(
      [initial, handshake, application].map((space) => recovery.probesDue(space)),
      [0, 1, 0],
    )
    recovery.onHandshakeConfirmed()
    assert.ok(sender.expire())
    assert.equal(recovery.probesDue(application), 2)
  }
})

test('a handshake is sped up when the peer seems to miss something, a few times (§6.2.3)', () => {
  const sender = new Sender({ confirmed: false })
  const { recovery } = sender
  assert.equal(recovery.speedUpHandshake(), false, 'nothing is under way')
  sender.send(initial)
  sender.send(handshake)
  for (let i = 0; i < 3; i++) {
    assert.ok(recovery.speedUpHandshake())
    assert.deepEqual([recovery.probesDue(initial), recovery.probesDue(handshake)], [1, 1])
    assert.equal(recovery.probeCount, 0, 'it is no timeout')
    sender.send(initial)
    sender.send(handshake)
  }
  assert.equal(recovery.speedUpHandshake(), false)
})

test('what the window holds back in another space can be made a probe', () => {
  const sender = new Sender({ confirmed: false })
  const { recovery } = sender
  sender.send(handshake)
  sender.expire()
  recovery.addProbe(initial)
  recovery.addProbe(handshake)
  assert.deepEqual([recovery.probesDue(initial), recovery.probesDue(handshake)], [1, 2])
})

test('a server at the limit of amplification has no probe timeout, and a late one as soon as it may send (§6.2.2.1)', () => {
  const sender = new Sender({ confirmed: false })
  const { recovery } = sender
  sender.send(initial)
  assert.ok(recovery.deadline < Infinity)
  recovery.isAmplificationLimited = true
  assert.equal(recovery.deadline, Infinity)
  sender.after(5000)
  recovery.isAmplificationLimited = false
  assert.ok(recovery.deadline < sender.now)
  assert.ok(recovery.expire(sender.now))
})

test('what a packet that asks for an acknowledgement carried is at hand for a probe', () => {
  const sender = new Sender()
  const { recovery } = sender
  sender.send(application, { ackEliciting: false })
  sender.send()
  sender.send(application, { ackEliciting: false })
  sender.send()
  const oldest = recovery.oldestEliciting(application)
  assert.deepEqual(oldest?.carried, [Carried.stream, 0, 1, 2])
  const second = recovery.oldestEliciting(application, oldest)
  assert.equal(second?.packetNumber, 3)
  assert.equal(recovery.oldestEliciting(application, second), undefined)
  assert.equal(recovery.oldestEliciting(initial), undefined)
})

test('a space whose keys are gone forgets its packets and the back-off (§6.4)', () => {
  const sender = new Sender({ confirmed: false })
  const { recovery } = sender
  sender.send(initial)
  sender.send(handshake)
  sender.expire()
  assert.equal(recovery.probeCount, 1)
  recovery.discardSpace(initial, sender.now)
  assert.equal(recovery.bytesInFlight, size)
  assert.equal(recovery.probeCount, 0)
  assert.deepEqual([sender.acked, sender.lost], [[], []])
  assert.ok(recovery.deadline < Infinity, 'the other space has its timer')
  recovery.discardSpace(handshake, sender.now)
  assert.equal(recovery.bytesInFlight, 0)
  assert.equal(recovery.deadline, Infinity)
})

test('a Retry makes Initial and 0-RTT packets be sent again under new numbers, and is no congestion (RFC 9000 §17.2.5.3)', () => {
  const sender = new Sender({ isServer: false, confirmed: false })
  const { recovery } = sender
  const { window } = recovery.congestion
  sender.send(initial)
  sender.send(application, { isEarly: true })
  recovery.onRetry(sender.now)
  assert.deepEqual(sender.lost, ['0:0', '2:0'])
  assert.equal(recovery.bytesInFlight, 0)
  assert.equal(recovery.congestion.window, window)
  assert.equal(sender.send(initial), 1)
})

test('0-RTT that is refused is sent again; what went in 1-RTT stays (RFC 9001 §4.6.2)', () => {
  const sender = new Sender({ isServer: false, confirmed: false })
  sender.send(application, { isEarly: true })
  sender.send(application)
  sender.recovery.onEarlyRejected(sender.now)
  assert.deepEqual(sender.lost, ['2:0'])
  assert.equal(sender.recovery.bytesInFlight, size)
})

test('an acknowledgement of a packet never sent ends the connection (RFC 9000 §13.1)', () => {
  const sender = new Sender()
  sender.sendMany(2)
  assert.equal(sender.ack(application, [[0, 2]])?.code, TransportError.protocolViolation)
  assert.equal(sender.ack(initial, [[0, 0]])?.code, TransportError.protocolViolation)
  assert.equal(sender.ack(application, [[0, 2 ** 62]])?.code, TransportError.protocolViolation)
  assert.deepEqual(sender.acked, [])
  assert.equal(sender.ack(application, [[0, 1]]), undefined)
})

test('a peer that acknowledges numbers that were left out is found out (RFC 9000 §21.4)', () => {
  const sender = new Sender({ random: (byteCount) => new Uint8Array(byteCount) })
  const numbers = Array.from({ length: 10 }, () => sender.send())
  const newest = numbers.at(-1) as number
  const missing = Array.from({ length: newest }, (_, number) => number).filter((number) => !numbers.includes(number))
  assert.ok(missing.length > 0)
  const honest = numbers.map((number): [number, number] => [number, number]).reverse()
  assert.equal(sender.ack(application, honest), undefined)
  for (const number of missing.slice(-3)) {
    assert.equal(sender.ack(application, [[number, number]])?.code, TransportError.protocolViolation)
  }
  assert.equal(sender.ack(application, [[0, newest]])?.code, TransportError.protocolViolation)
  assert.equal(
    sender.ack(application, [
      [newest, newest],
      [newest - 2, newest - 1],
    ])?.code,
    TransportError.protocolViolation,
  )
})

test('persistent congestion: everything in three probe timeouts is lost, and the window is the least (§7.6)', () => {
  const sender = new Sender()
  sender.measure(100)
  const { recovery } = sender
  const duration = (recovery.rtt.probeTimeout + 25) * 3
  sender.after(1).send()
  sender.after(duration / 2).send()
  sender.after(duration / 2 + 1).send()
  sender.after(10).sendMany(3)
  const newest = sender.send()
  sender.after(100).ack(application, [[newest, newest]])
  assert.equal(sender.lost.length, 4)
  // The least window, and the packet that got through has made it grow already.
  assert.equal(recovery.congestion.window, 3 * size)
})

for (const congestion of ['cubic', 'newReno'] as const) {
  test(`${congestion}: no more is in flight than may be kept, however late acknowledgements come`, () => {
    const mostInFlight = 100 * size
    const sender = new Sender({ congestion, mostInFlight })
    const { recovery } = sender
    let most = 0
    for (let round = 0; round < 20; round++) {
      const sent: [number, number][] = []
      for (let number = sender.send(); ; number = sender.send()) {
        sent.unshift([number, number])
        if (!recovery.hasWindow || sent.length > 1_000) break
      }
      most = Math.max(most, recovery.bytesInFlight)
      assert.equal(sender.after(400).ack(application, sent), undefined)
    }
    assert.deepEqual([most, recovery.bytesInFlight, sender.lost], [mostInFlight, 0, []])
    assert.ok(recovery.congestion.window < 2 * mostInFlight, 'nor does the window grow beyond')
  })
}

test('the minimum of the round trip begins anew with persistent congestion (§5.2)', () => {
  const sender = new Sender()
  sender.measure(10)
  const { recovery } = sender
  sender.after(1).send()
  sender.after(1000).send()
  sender.after(10).sendMany(3)
  sender.after(200).ack(application, [[5, 5]])
  assert.ok(recovery.congestion.window < 4 * size)
  assert.equal(recovery.rtt.min, 10)
  sender.measure(150)
  assert.equal(recovery.rtt.min, 150)
})

/** Packets 1, 2 and 3 half a second apart, and three more that get through. */
function lossesFarApart(): Sender {
  const sender = new Sender()
  sender.measure(10)
  sender.after(1).send()
  sender.after(500).send()
  sender.after(500).send()
  sender.after(10).sendMany(3)
  sender.after(10)
  return sender
}

test('losses are no persistent congestion if one packet between them got through (§7.6.2)', () => {
  const without = lossesFarApart()
  without.ack(application, [[6, 6]])
  assert.deepEqual(without.lost, ['2:1', '2:2', '2:3'])
  assert.ok(without.recovery.congestion.window < 4 * size)

  const sender = lossesFarApart()
  sender.ack(application, [
    [6, 6],
    [2, 2],
  ])
  assert.deepEqual(sender.lost, ['2:1', '2:3'])
  assert.ok(sender.recovery.congestion.window > 4 * size)
})

test('nor if one got through earlier', () => {
  const sender = lossesFarApart()
  sender.ack(application, [[2, 2]])
  sender.ack(application, [[6, 6]])
  assert.deepEqual(sender.lost, ['2:1', '2:3'])
  assert.ok(sender.recovery.congestion.window > 4 * size)
})

test('nor if a packet of another space did', () => {
  for (const otherGotThrough of [false, true]) {
    const sender = new Sender()
    sender.measure(10)
    sender.after(1).send()
    const other = sender.after(500).send(handshake)
    sender.after(10)
    if (otherGotThrough) sender.ack(handshake, [[other, other]])
    sender.after(500).send()
    sender.after(10).sendMany(3)
    sender.after(10).ack(application, [[5, 5]])
    assert.deepEqual(sender.lost, ['2:1', '2:2'])
    assert.equal(sender.recovery.congestion.window < 4 * size, !otherGotThrough)
  }
})

test('nor if they were sent before there was a round trip to measure time by (§7.6.2)', () => {
  const sender = new Sender()
  sender.sendMany(1)
  sender.after(20_000).sendMany(5)
  sender.after(10).ack(application, [[5, 5]])
  assert.ok(sender.lost.length >= 2)
  assert.ok(sender.recovery.congestion.window > 4 * size)
})

test('losses found one after the other are one row (§7.6)', () => {
  const sender = new Sender()
  sender.measure(100)
  const { recovery } = sender
  sender.after(1).send()
  const last = sender.after(1400).send()
  const newest = sender.after(1).send()
  sender.after(100).ack(application, [[newest, newest]])
  assert.deepEqual(sender.lost, ['2:1'], 'the first is old enough')
  assert.ok(recovery.congestion.window > 2 * size)
  sender.expire()
  assert.deepEqual(sender.lost, ['2:1', `2:${last}`])
  assert.equal(recovery.congestion.window, 2 * size)
})

test('the window is reduced once in a round trip (§7.3.2)', () => {
  const sender = new Sender({ congestion: 'newReno' })
  sender.measure(100)
  const { recovery } = sender
  const { window } = recovery.congestion
  sender.sendMany(8)
  sender.after(100).ack(application, [[5, 5]])
  assert.equal(sender.lost.length, 2)
  assert.equal(recovery.congestion.window, window / 2)
  sender.after(1).ack(application, [
    [8, 8],
    [5, 5],
  ])
  assert.ok(sender.lost.length > 2)
  assert.equal(recovery.congestion.window, window / 2, 'these were sent before the window was reduced')
  sender.after(1).sendMany(5)
  sender.after(100).ack(application, [[13, 13]])
  assert.equal(recovery.congestion.window, window / 4, 'these after it')
})

test('packets sent before the window was reduced do not make it grow (§7.3.2)', () => {
  const sender = new Sender({ congestion: 'newReno' })
  sender.sendMany(10)
  sender.after(100).ack(application, [[3, 3]])
  const { window } = sender.recovery.congestion
  sender.after(1).ack(application, [[1, 9]])
  assert.equal(sender.recovery.congestion.window, window)
})

test('a window that is not used does not grow (§7.8)', () => {
  const sender = new Sender()
  const { window } = sender.recovery.congestion
  for (let round = 0; round < 20; round++) sender.measure(50)
  assert.equal(sender.recovery.congestion.window, window)
  sender.sendMany(10)
  sender.after(50).ack(application, [[20, 29]])
  assert.equal(sender.recovery.congestion.window, window + 10 * size)
})

test('the loss of a datagram that tried its size is no congestion (RFC 9000 §14.4)', () => {
  const sender = new Sender()
  sender.measure(50)
  const { window } = sender.recovery.congestion
  sender.send(application, { isMtuProbe: true, size: 1452 })
  sender.sendMany(3)
  sender.after(50).ack(application, [[2, 4]])
  assert.deepEqual(sender.lost, ['2:1'])
  assert.equal(sender.recovery.bytesInFlight, 0)
  assert.ok(sender.recovery.congestion.window >= window)
})

test('packets that ask for nothing are in no window, start no timer, and are forgotten if nobody acknowledges them', () => {
  const sender = new Sender()
  const { recovery } = sender
  for (let i = 0; i < 1000; i++) sender.send(handshake, { ackEliciting: false })
  assert.equal(recovery.bytesInFlight, 0)
  assert.equal(recovery.deadline, Infinity)
  assert.ok(recovery.wantsPing(handshake), 'a PING would let old ranges be forgotten (RFC 9000 §13.2.4)')
  sender.send(handshake)
  assert.ok(!recovery.wantsPing(handshake))
  sender.after(50).ack(handshake, [[0, 1000]])
  assert.ok(sender.acked.length <= 129, `${sender.acked.length} packets were remembered`)
  assert.ok(sender.acked.includes('1:999'))
})

test('ranges that were told before, and those of nothing, change nothing', () => {
  const sender = new Sender()
  sender.sendMany(6)
  sender.after(50).ack(application, [
    [4, 5],
    [1, 1],
  ])
  const { acked, lost } = sender
  sender.acked = []
  sender.lost = []
  const { smoothed } = sender.recovery.rtt
  sender.after(500).ack(application, [
    [4, 5],
    [1, 1],
  ])
  sender.ack(application, [[5, 5]])
  assert.deepEqual([sender.acked, sender.lost], [[], []])
  assert.equal(sender.recovery.rtt.smoothed, smoothed)
  assert.deepEqual(acked, ['2:1', '2:4', '2:5'])
  assert.deepEqual(lost, ['2:0', '2:2'])
})

test('CE marks reduce the window as a loss does, once in a round trip (§7.1)', () => {
  const sender = new Sender({ ecn: true, congestion: 'newReno' })
  const { recovery } = sender
  const { window } = recovery.congestion
  for (let i = 0; i < 4; i++) sender.send(application, { ecn: recovery.ecn.mark })
  sender.after(50).ack(application, [[0, 1]], 0, { ect0: 1, ect1: 0, ce: 1 })
  assert.equal(recovery.congestion.window, window / 2)
  sender.ack(application, [[0, 3]], 0, { ect0: 2, ect1: 0, ce: 2 })
  assert.equal(recovery.congestion.window, window / 2)
  assert.equal(recovery.ecn.state, 'capable')
})

test('another path begins with its own window and round trip; what is on the old one counts for neither (RFC 9000 §9.4)', () => {
  const sender = new Sender()
  sender.measure(20)
  const { recovery } = sender
  sender.sendMany(5)
  sender.after(5)
  recovery.resetPath(1300, 333, sender.now)
  assert.equal(recovery.bytesInFlight, 0)
  assert.equal(recovery.congestion.window, 13_000)
  assert.equal(recovery.rtt.smoothed, 333)
  sender.after(200).send()
  sender.ack(application, [[5, 5]])
  assert.ok(!recovery.rtt.hasSample)
  assert.ok(sender.lost.length > 0)
  assert.equal(recovery.congestion.window, 13_000)
  sender.after(60).ack(application, [[5, 6]])
  assert.equal(recovery.rtt.latest, 60)
  assert.equal(recovery.bytesInFlight, 0)
})

test('sending stops when the window is full, and when the pace says so', () => {
  const sender = new Sender()
  const { recovery } = sender
  sender.measure(100)
  sender.after(100)
  let sent = 0
  while (recovery.canSend(sender.now)) {
    sender.send()
    sent++
  }
  assert.equal(sent, 10, 'a burst is the initial window')
  assert.equal(recovery.sendDeadline(sender.now), Infinity, 'the window is full')
  sender.after(100).ack(application, [[1, 10]])
  sent = 0
  while (recovery.canSend(sender.now)) {
    sender.send()
    sent++
  }
  assert.equal(sent, 10)
  const at = recovery.sendDeadline(sender.now)
  assert.ok(at > sender.now && at < sender.now + 10, 'the window has room, the pace has not')
  sender.now = at
  assert.ok(recovery.canSend(at))
})

test('a packet that was not sent after all gives its number to the next', () => {
  const sender = new Sender()
  const packet = sender.recovery.takePacket(application)
  assert.equal(packet.packetNumber, 0)
  sender.recovery.releasePacket(packet)
  assert.equal(sender.send(), 0)
})
