import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RangeSet } from '../bytes/index.ts'
import { Random } from '../testing/index.ts'
import { ReceivedPackets } from './ack.ts'
import { Carried, carriedWidth, carry } from './carried.ts'
import { Ecn } from './ecn.ts'
import { Recovery, type PacketFate, type RecoveryOptions } from './recovery.ts'
import type { SentPacket } from './sent-packet.ts'
import { Space } from './space.ts'

const { application } = Space
const full = 1200

/** What a packet on the wire says. */
interface Datagram {
  readonly packetNumber: number
  readonly size: number
  readonly ackEliciting: boolean
  readonly chunk: number
  readonly ack: { ranges: Float64Array; delay: number; ecn: { ect0: number; ect1: number; ce: number } | undefined } | undefined
  ecn: number
}

interface LinkOptions {
  /** Octets per ms. */
  readonly rate: number
  /** ms one way. */
  readonly delay: number
  /** Octets that may wait; more are dropped. */
  readonly queue: number
  readonly loss?: number
  /** ms by which a packet may be later than its turn. */
  readonly jitter?: number
  /** Nothing gets through from … to … (ms). */
  readonly outage?: readonly [number, number]
  /** Octets that wait from which on packets are marked CE. */
  readonly marksFrom?: number
}

/** One direction of a path, with a queue in front of its bottleneck. */
class Link {
  dropped = 0
  readonly #options: LinkOptions
  readonly #random: Random
  #freeAt = 0

  constructor(options: LinkOptions, random: Random) {
    this.#options = options
    this.#random = random
  }

  /** When a datagram sent now arrives; undefined if it is dropped. */
  carry(datagram: Datagram, now: number): number | undefined {
    const { rate, delay, queue, loss = 0, jitter = 0, outage = [0, 0], marksFrom = Infinity } = this.#options
    const waiting = Math.max(0, this.#freeAt - now) * rate
    const isDropped = waiting + datagram.size > queue || this.#random.chance(loss) || (now >= outage[0] && now < outage[1])
    if (isDropped) {
      this.dropped++
      return undefined
    }
    if (waiting > marksFrom && datagram.ecn === Ecn.ect0) datagram.ecn = Ecn.ce
    this.#freeAt = Math.max(this.#freeAt, now) + datagram.size / rate
    return this.#freeAt + delay + this.#random.fraction() * jitter
  }
}

/** One end: sends chunks `[0, chunkCount)`, acknowledges what arrives, and does nothing but what recovery says. */
class End implements PacketFate {
  readonly recovery: Recovery
  readonly received: ReceivedPackets
  /** Chunks that wait to be sent, first or again. */
  readonly waiting: RangeSet
  readonly acknowledged: RangeSet
  readonly arrived: RangeSet
  sentCount: number
  spurious: number
  mostWindow: number
  mostRanges: number

  constructor(chunkCount: number, options: Partial<RecoveryOptions>, random: Random) {
    this.recovery = new Recovery(
      { isServer: true, random: (byteCount) => Uint8Array.from({ length: byteCount }, () => random.integer(0, 255)), ...options },
      this,
      0,
    )
    this.recovery.onHandshakeConfirmed()
    this.received = new ReceivedPackets(application)
    this.waiting = new RangeSet()
    this.waiting.add(0, chunkCount)
    this.acknowledged = new RangeSet()
    this.arrived = new RangeSet()
    this.sentCount = 0
    this.spurious = 0
    this.mostWindow = 0
    this.mostRanges = 0
  }

  onAcked(_space: Space, packet: SentPacket): void {
    const { carried } = packet
    for (let at = 0; at < carried.length; at += carriedWidth) {
      const a = carried[at + 1] as number
      if (carried[at] === Carried.ack) this.received.onAckOfAck(a)
      else {
        this.acknowledged.add(a, a + 1)
        this.waiting.remove(a, a + 1)
      }
    }
  }

  onLost(_space: Space, { carried }: SentPacket): void {
    for (let at = 0; at < carried.length; at += carriedWidth) {
      const a = carried[at + 1] as number
      if (carried[at] === Carried.crypto && !this.acknowledged.contains(a)) this.waiting.add(a, a + 1)
    }
  }

  receive(datagram: Datagram, now: number): void {
    if (this.received.isDuplicate(datagram.packetNumber)) return
    const { ack, chunk } = datagram
    if (ack !== undefined) {
      const fault = this.recovery.onAck(application, ack.ranges, ack.ranges.length / 2, ack.delay, ack.ecn, now)
      assert.equal(fault, undefined)
    }
    if (chunk >= 0 && !this.arrived.add(chunk, chunk + 1)) this.spurious++
    this.received.receive(datagram.packetNumber, datagram.ackEliciting, datagram.ecn, now)
    this.mostRanges = Math.max(this.mostRanges, this.received.ranges.count)
    this.mostWindow = Math.max(this.mostWindow, this.recovery.congestion.window)
  }

  get deadline(): number {
    return Math.min(this.recovery.deadline, this.received.deadline)
  }

  sendDeadline(now: number): number {
    return this.waiting.isEmpty ? Infinity : this.recovery.sendDeadline(now)
  }

  expire(now: number): void {
    if (this.recovery.deadline <= now) this.recovery.expire(now)
    this.received.expire(now)
  }

  /** The next datagram to be sent now. */
  transmit(now: number): Datagram | undefined {
    const { recovery, received, waiting } = this
    const isProbe = recovery.probesDue(application) > 0
    const hasData = !waiting.isEmpty && recovery.canSend(now)
    if (!isProbe && !hasData && !received.shouldAckNow) return undefined
    const packet = recovery.takePacket(application)
    let chunk = -1
    if (isProbe || hasData) {
      const oldest = recovery.oldestEliciting(application)?.carried
      chunk = waiting.isEmpty ? (oldest?.[oldest.length - 3] ?? -1) : waiting.min
      if (chunk >= 0) {
        carry(packet.carried, Carried.crypto, chunk)
        waiting.remove(chunk, chunk + 1)
      }
    }
    packet.ackEliciting = isProbe || hasData || recovery.wantsPing(application)
    packet.inFlight = packet.ackEliciting
    packet.size = chunk >= 0 ? full : 50
    packet.ecn = recovery.ecn.mark
    const { packetNumber, size, ackEliciting, ecn } = packet
    const ack = received.hasNews && !received.ranges.isEmpty ? this.#ack(now) : undefined
    if (ack !== undefined) packet.carried.unshift(Carried.ack, received.largest, 0, 0)
    recovery.onPacketSent(application, packet, now)
    this.sentCount++
    return { packetNumber, size, ackEliciting, chunk, ack, ecn }
  }

  #ack(now: number): Datagram['ack'] {
    const { ranges, ecnTotals } = this.received
    const flat = new Float64Array(2 * ranges.count)
    for (let index = 0; index < ranges.count; index++) {
      const at = flat.length - 2 * index - 2
      flat[at] = ranges.start(index)
      flat[at + 1] = ranges.limit(index) - 1
    }
    this.received.onAckSent()
    return { ranges: flat, delay: this.received.ackDelay(now), ecn: ecnTotals === undefined ? undefined : { ...ecnTotals } }
  }
}

interface Run {
  readonly sender: End
  readonly receiver: End
  readonly link: Link
  /** When the last chunk was acknowledged (ms). */
  readonly took: number
  /** The part of the link's rate that was of use. */
  readonly use: number
}

/** Sends `chunkCount` full packets over a path and goes on until everything is quiet. */
function run(seed: number, chunkCount: number, forth: LinkOptions, options: Partial<RecoveryOptions> = {}, back: LinkOptions = forth): Run {
  const random = new Random(seed)
  const sender = new End(chunkCount, options, random)
  const receiver = new End(0, options, random)
  const link = new Link(forth, random)
  const backLink = new Link(back, random)
  const onWire: { at: number; to: End; datagram: Datagram }[] = []
  let now = 0
  let took = Infinity

  const transmit = (from: End, to: End, by: Link): void => {
    for (let datagram = from.transmit(now); datagram !== undefined; datagram = from.transmit(now)) {
      const at = by.carry(datagram, now)
      if (at === undefined) continue
      let place = onWire.length
      while (place > 0 && (onWire[place - 1] as { at: number }).at > at) place--
      onWire.splice(place, 0, { at, to, datagram })
    }
  }
  for (let steps = 0; ; steps++) {
    assert.ok(steps < 100 * chunkCount + 1000, `seed ${seed}: no end`)
    transmit(sender, receiver, link)
    transmit(receiver, sender, backLink)
    if (sender.acknowledged.containsRange(0, chunkCount)) took = Math.min(took, now)
    const next = Math.min(onWire[0]?.at ?? Infinity, sender.deadline, receiver.deadline, sender.sendDeadline(now))
    if (next === Infinity) break
    now = Math.max(now, next)
    sender.expire(now)
    receiver.expire(now)
    while (onWire.length > 0 && (onWire[0] as { at: number }).at <= now) {
      const { to, datagram } = onWire.shift() as { to: End; datagram: Datagram }
      to.receive(datagram, now)
    }
  }
  assert.ok(took < Infinity, `seed ${seed}: not everything was acknowledged`)
  assert.ok(receiver.arrived.containsRange(0, chunkCount), `seed ${seed}: not everything arrived`)
  for (const end of [sender, receiver]) {
    assert.equal(end.recovery.bytesInFlight, 0)
    assert.equal(end.recovery.oldestEliciting(application), undefined)
    assert.equal(end.recovery.deadline, Infinity)
    assert.ok(end.waiting.isEmpty)
    assert.ok(end.mostRanges <= 64)
  }
  return { sender, receiver, link, took, use: (chunkCount * full) / forth.rate / took }
}

/** 10 Mbit/s, a round trip of 40 ms, and a queue as long as that. */
const line: LinkOptions = { rate: 1250, delay: 20, queue: 50_000 }

for (const congestion of ['cubic', 'newReno'] as const) {
  test(`${congestion} fills a line, and finds its end without losing much`, () => {
    const { sender, link, use } = run(1, 4000, line, { congestion })
    assert.ok(use > 0.85, `${use}`)
    // Slow start goes beyond the queue by as much as one round trip brings.
    assert.ok(link.dropped < 160, `${link.dropped} dropped`)
    assert.ok(sender.sentCount < 4300, `${sender.sentCount} packets`)
  })

  test(`${congestion} gets everything through lines that lose, at a sane speed`, () => {
    for (const [loss, least] of [
      [0.001, 0.4],
      [0.01, 0.15],
      [0.1, 0.02],
      [0.3, 0.001],
    ] as const) {
      const { use, sender } = run(7, 1000, { ...line, loss }, { congestion })
      assert.ok(use > least, `${loss}: ${use}`)
      assert.ok(sender.sentCount < 1000 / (1 - loss) ** 2 + 200, `${loss}: ${sender.sentCount} packets`)
    }
  })

  test(`${congestion}: marks instead of losses fill the line, too`, () => {
    const { link, use, sender } = run(3, 3000, { ...line, queue: 150_000, marksFrom: 25_000 }, { congestion, ecn: true })
    assert.equal(link.dropped, 0)
    assert.equal(sender.recovery.lostCount, 0)
    assert.equal(sender.recovery.ecn.state, 'capable')
    assert.ok(use > 0.8, `${use}`)
  })
}

test('a long fat line is filled', () => {
  // 100 Mbit/s and 100 ms: a thousand packets are on their way.
  const fat: LinkOptions = { rate: 12_500, delay: 50, queue: 1_250_000 }
  const { use, sender } = run(5, 20_000, fat)
  assert.ok(use > 0.6, `${use}`)
  assert.ok(sender.mostWindow > 800_000)
})

test('packets in disorder arrive, and few of them are taken for lost in vain', () => {
  const { sender, receiver, use } = run(11, 1000, { ...line, rate: 300, jitter: 6 })
  assert.ok(use > 0.5, `${use}`)
  assert.ok(receiver.spurious < 50, `${receiver.spurious}`)
  assert.ok(sender.sentCount < 1100)
})

test('after an outage everything goes on', () => {
  const { took, sender } = run(13, 2000, { ...line, outage: [500, 4500] })
  assert.ok(took < 12_000, `${took}`)
  assert.ok(sender.sentCount < 2300, `${sender.sentCount}`)
})

test('acknowledgements that get lost do no harm', () => {
  const { use } = run(17, 2000, line, {}, { ...line, loss: 0.3 })
  assert.ok(use > 0.6, `${use}`)
})

test('whatever the network does: everything arrives, and nothing is left behind', () => {
  for (let seed = 100; seed < 250; seed++) {
    const random = new Random(seed)
    const rate = 10 ** random.integer(1, 4)
    const options: LinkOptions = {
      rate,
      delay: random.pick([0, 0.2, 5, 60, 300]),
      queue: random.pick([3000, 20_000, 200_000]),
      loss: random.pick([0, 0.01, 0.2, 0.5]),
      jitter: random.pick([0, 0, 1, 50]),
    }
    run(seed, random.integer(1, 300), options, { congestion: random.pick(['cubic', 'newReno'] as const), ecn: random.chance(0.5) })
  }
})

test('a connection that only receives remembers no more with every packet', () => {
  const { receiver, sender } = run(19, 5000, { ...line, loss: 0.02 })
  assert.ok(receiver.received.ranges.count < 30, `${receiver.received.ranges.count} ranges`)
  assert.ok(sender.received.ranges.count < 40, `${sender.received.ranges.count} ranges`)
})
