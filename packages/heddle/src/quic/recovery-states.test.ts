import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Random } from '../testing/index.ts'
import { Ecn } from './ecn.ts'
import { Recovery, type PacketFate } from './recovery.ts'
import type { SentPacket } from './sent-packet.ts'
import { Space } from './space.ts'

interface Known {
  size: number
  readonly inFlight: boolean
  readonly ackEliciting: boolean
  readonly isEarly: boolean
}

/** Does whatever comes, and keeps count of what must be true. */
class Account implements PacketFate {
  readonly recovery: Recovery
  /** Packets without a fate, by `space:number`. */
  readonly open: Map<string, Known>
  readonly #random: Random
  readonly #numbers: [number[], number[], number[]]
  readonly #gone: Set<Space>
  #confirmed: boolean
  now: number

  constructor(seed: number) {
    this.#random = new Random(seed)
    this.open = new Map()
    this.#numbers = [[], [], []]
    this.#gone = new Set()
    this.#confirmed = false
    this.now = 0
    this.recovery = new Recovery(
      {
        isServer: this.#random.chance(0.5),
        congestion: this.#random.pick(['cubic', 'newReno']),
        ecn: this.#random.chance(0.5),
        random: (byteCount) => Uint8Array.from({ length: byteCount }, () => this.#random.integer(0, 255)),
      },
      this,
      0,
    )
  }

  onAcked(space: Space, packet: SentPacket): void {
    this.#settle(space, packet)
  }

  onLost(space: Space, packet: SentPacket): void {
    this.#settle(space, packet)
  }

  #settle(space: Space, packet: SentPacket): void {
    const key = `${space}:${packet.packetNumber}`
    const known = this.open.get(key)
    assert.ok(known !== undefined || !packet.inFlight, `${key} has a fate already`)
    assert.equal(known?.ackEliciting ?? false, packet.ackEliciting)
    this.open.delete(key)
  }

  #space(): Space | undefined {
    const space = this.#random.pick([Space.initial, Space.handshake, Space.application, Space.application])
    return this.#gone.has(space) ? undefined : space
  }

  act(): void {
    const random = this.#random
    const { recovery } = this
    const space = this.#space()
    const kind = random.integer(0, 99)
    if (kind < 45 && space !== undefined) this.#send(space)
    else if (kind < 70 && space !== undefined) this.#ack(space)
    else if (kind < 80) this.now += random.pick([0, 0.3, 1, 20, 500, 10_000])
    else if (kind < 90) this.#expire()
    else if (kind < 91) recovery.isAmplificationLimited = !recovery.isAmplificationLimited
    else if (kind < 92) recovery.onHandshakeKeys()
    else if (kind < 93) {
      recovery.onHandshakeConfirmed()
      this.#confirmed = true
    } else if (kind < 94 && space !== undefined && space !== Space.application) {
      recovery.discardSpace(space, this.now)
      this.#gone.add(space)
      for (const key of this.open.keys()) if (key.startsWith(`${space}:`)) this.open.delete(key)
    } else if (kind < 95) recovery.onRetry(this.now)
    else if (kind < 96) recovery.onEarlyRejected(this.now)
    else if (kind < 97) {
      recovery.resetPath(random.pick([1200, 1452]), 100, this.now)
      for (const known of this.open.values()) known.size = 0
    } else if (kind < 98) recovery.maxDatagramSize = random.pick([1200, 1452])
    else if (kind < 99) recovery.speedUpHandshake()
    else recovery.maxAckDelay = random.pick([0, 25, 16_383])
    this.check()
  }

  #send(space: Space): void {
    const random = this.#random
    const packet = this.recovery.takePacket(space)
    if (random.chance(0.05)) return this.recovery.releasePacket(packet)
    packet.ackEliciting = random.chance(0.8)
    packet.inFlight = packet.ackEliciting || random.chance(0.2)
    packet.size = random.integer(30, 1452)
    packet.isEarly = space === Space.application && random.chance(0.1)
    packet.isMtuProbe = random.chance(0.02)
    packet.ecn = this.recovery.ecn.mark === Ecn.ect0 ? Ecn.ect0 : Ecn.none
    const { packetNumber, size, inFlight, ackEliciting, isEarly } = packet
    this.open.set(`${space}:${packetNumber}`, { size, inFlight, ackEliciting, isEarly })
    this.#numbers[space].push(packetNumber)
    this.recovery.onPacketSent(space, packet, this.now)
  }

  /** Acknowledges some of what was sent; only what was. */
  #ack(space: Space): void {
    const numbers = this.#numbers[space]
    if (numbers.length === 0) return
    const random = this.#random
    const ranges: number[] = []
    let at = numbers.length - 1 - random.length(Math.min(numbers.length - 1, 8))
    while (at >= 0 && ranges.length < 2 * random.integer(1, 8)) {
      let first = at
      const wanted = random.integer(0, 6)
      while (first > 0 && at - first < wanted && numbers[first - 1] === (numbers[first] as number) - 1) first--
      ranges.push(numbers[first] as number, numbers[at] as number)
      at = first - 2
    }
    const counts = random.chance(0.5) ? { ect0: random.integer(0, 20), ect1: 0, ce: random.integer(0, 3) } : undefined
    const fault = this.recovery.onAck(space, Float64Array.from(ranges), ranges.length / 2, random.pick([0, 5, 1e9]), counts, this.now)
    assert.equal(fault, undefined)
  }

  #expire(): void {
    const { recovery } = this
    // Nobody waits for hours.
    if (recovery.deadline > this.now + 10_000_000) return
    this.now = Math.max(this.now, recovery.deadline)
    // Whoever is called again and again at one instant comes to an end, or to a probe.
    for (let turns = 0; recovery.deadline <= this.now; turns++) {
      assert.ok(turns < 100, 'no end')
      if (recovery.expire(this.now)) {
        assert.ok([Space.initial, Space.handshake, Space.application].some((space) => recovery.probesDue(space) > 0))
      }
    }
  }

  check(): void {
    const { recovery } = this
    let bytesInFlight = 0
    let eliciting = false
    for (const { size, inFlight, ackEliciting } of this.open.values()) {
      if (inFlight) bytesInFlight += size
      if (ackEliciting) eliciting = true
    }
    assert.equal(recovery.bytesInFlight, bytesInFlight)
    assert.equal(recovery.hasElicitingInFlight, eliciting)
    assert.ok(recovery.congestion.window >= 2 * 1200 && recovery.congestion.window < 1e9)
    const { deadline } = recovery
    assert.ok(!Number.isNaN(deadline))
    if (eliciting && this.#confirmed && !recovery.isAmplificationLimited) assert.ok(deadline < Infinity, 'nothing would ever happen')
    const sendAt = recovery.sendDeadline(this.now)
    assert.ok(sendAt > this.now)
    if (sendAt < Infinity) assert.ok(recovery.canSend(sendAt) || !recovery.hasWindow)
  }
}

test('whatever is sent, acknowledged, forgotten and waited for: every packet has one fate, and the account is right', () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const account = new Account(seed)
      for (let step = 0; step < 300; step++) account.act()
    }),
    { numRuns: 500 },
  )
})
