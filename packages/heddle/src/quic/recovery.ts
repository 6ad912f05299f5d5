import { List } from '../bytes/index.ts'
import type { Instant } from '../http/index.ts'
import type { EcnTotals } from './ack-writer.ts'
import type { Congestion } from './congestion.ts'
import { Cubic } from './cubic.ts'
import { Ecn, EcnValidation } from './ecn.ts'
import { FrameType } from './frame-type.ts'
import { NewReno } from './new-reno.ts'
import { Pacer } from './pacer.ts'
import { ProbeTimer } from './probe-timer.ts'
import { defaultInitialRtt, Rtt } from './rtt.ts'
import { countMarked, giveBackSentPacket, hasContent, hasEliciting, takeSentPacket, type SentPacket } from './sent-packet.ts'
import { SentSpace } from './sent-space.ts'
import { SkippedNumbers } from './skipped-numbers.ts'
import { Space } from './space.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** RFC 9002 §7.6.1: losses in a row for so many probe timeouts are persistent congestion. */
const defaultPersistentThreshold = 3
/** RFC 9002 §6.2.4: packets that a probe timeout sends. */
const probesPerTimeout = 2
/** Times that a handshake is sped up: once is adequate (RFC 9002 §6.2.3), and more than a few would be a lever for attackers. */
const mostSpeedUps = 3
/** How much faster than the window's own pace packets leave (RFC 9002 §7.7). */
const pace = 1.25
const slowStartPace = 2
/** No round trip counts as shorter for pacing (ms): clocks are not finer. */
const leastRtt = 0.1

/** What is told of every packet, once. The packet is valid during the call only; the call must not use recovery. */
export interface PacketFate {
  onAcked(space: Space, packet: SentPacket): void
  /** What the packet carried has to be sent again, if it still matters. */
  onLost(space: Space, packet: SentPacket): void
}

/** What recovery has to know in advance. */
export interface RecoveryOptions {
  readonly isServer: boolean
  /** The congestion control. Default `cubic`. */
  readonly congestion?: 'cubic' | 'newReno'
  /** Octets of a full datagram. Default 1,200. */
  readonly maxDatagramSize?: number
  /** Octets in flight at most: what left is kept until it is acknowledged, and who acknowledges late makes the window grow. Default: no limit. */
  readonly mostInFlight?: number
  /** The round trip until it is measured (ms). Default 333. */
  readonly initialRtt?: number
  /** Probe timeouts that losses in a row span when they are persistent congestion. Default 3. */
  readonly persistentCongestionThreshold?: number
  /** Mark datagrams, if the path carries marks. Default false. */
  readonly ecn?: boolean
  /** Unforeseeable octets: where packet numbers are skipped (RFC 9000 §21.4). */
  random(byteCount: number): Uint8Array
}

/**
 * Loss detection and congestion control of one connection (RFC 9002): it numbers packets, learns which
 * arrived and which are lost, says how much may be sent, and when probes are due. It sends nothing.
 *
 *     takePacket ─► onPacketSent ─► onAck ──► fate.onAcked
 *                        │            └─────► fate.onLost
 *                        └─► deadline ─► expire ─► fate.onLost, or probes wanted
 */
export class Recovery {
  readonly rtt: Rtt
  congestion: Congestion
  readonly pacer: Pacer
  readonly ecn: EcnValidation
  bytesInFlight: number
  /** Packets that were lost so far. */
  lostCount: number
  readonly #fate: PacketFate
  readonly #isCubic: boolean
  readonly #persistentThreshold: number
  readonly #mostInFlight: number
  readonly #spaces: readonly [SentSpace, SentSpace, SentSpace]
  readonly #skipped: SkippedNumbers
  readonly #timer: ProbeTimer
  readonly #acked: List<SentPacket>
  readonly #lost: List<SentPacket>
  #maxDatagramSize: number
  #speedUps: number
  /** Packets sent up to then do not move the window any more: it was reduced then, or is that of another path. */
  #recoveryStart: Instant
  /** Packets sent before it say nothing of the round trip: they took another path. */
  #pathStart: Instant

  constructor(options: RecoveryOptions, fate: PacketFate, now: Instant) {
    const maxDatagramSize = options.maxDatagramSize ?? 1200
    this.rtt = new Rtt(options.initialRtt ?? defaultInitialRtt)
    this.#isCubic = options.congestion !== 'newReno'
    this.congestion = this.#isCubic ? new Cubic(maxDatagramSize) : new NewReno(maxDatagramSize)
    this.pacer = new Pacer(maxDatagramSize, now)
    this.ecn = new EcnValidation(options.ecn ?? false)
    this.bytesInFlight = 0
    this.lostCount = 0
    this.#fate = fate
    this.#persistentThreshold = options.persistentCongestionThreshold ?? defaultPersistentThreshold
    this.#mostInFlight = options.mostInFlight ?? Infinity
    this.#spaces = [new SentSpace(), new SentSpace(), new SentSpace()]
    this.#skipped = new SkippedNumbers((byteCount) => options.random(byteCount))
    this.#timer = new ProbeTimer(options.isServer, now)
    this.#acked = new List()
    this.#lost = new List()
    this.#maxDatagramSize = maxDatagramSize
    this.#speedUps = 0
    this.#recoveryStart = -Infinity
    this.#pathStart = -Infinity
  }

  /** A packet with the next number of `space`, to be filled, and given to `onPacketSent` or `releasePacket`. */
  takePacket(space: Space): SentPacket {
    const packet = takeSentPacket()
    packet.packetNumber = this.#spaces[space].nextNumber
    return packet
  }

  /** Nothing was sent after all; the number goes to the next packet. */
  releasePacket(packet: SentPacket): void {
    giveBackSentPacket(packet)
  }

  /** The largest number of ours that the peer has acknowledged; −1 for none. */
  largestAcknowledged(space: Space): number {
    return this.#spaces[space].largestAcknowledged
  }

  /** The next packet of `space` should have a PING if it has nothing else that asks for an acknowledgement. */
  wantsPing(space: Space): boolean {
    return this.#spaces[space].wantsPing
  }

  /** Probes due in `space`: each a packet that asks for an acknowledgement, whatever window and pace say. */
  probesDue(space: Space): number {
    return this.#spaces[space].probes
  }

  /**
   * The oldest packet of `space` that carries more than a PING and acknowledgements: the best content for a
   * probe (RFC 9002 §6.2.4). It stays where it is. `after`: the next one behind that packet.
   */
  oldestEliciting(space: Space, after?: SentPacket): SentPacket | undefined {
    let packet = after === undefined ? this.#spaces[space].packets.first : (after.next as SentPacket | undefined)
    while (packet !== undefined && !hasContent(packet)) packet = packet.next as SentPacket | undefined
    return packet
  }

  /** A packet asks for an acknowledgement and has none. */
  get hasElicitingInFlight(): boolean {
    const [initial, handshake, application] = this.#spaces
    return initial.elicitingCount + handshake.elicitingCount + application.elicitingCount > 0
  }

  /** A full datagram may be sent now, as far as window and pace are concerned. */
  canSend(now: Instant): boolean {
    return this.hasWindow && this.pacer.canSend(this.#rate, this.#maxDatagramSize, now)
  }

  /** The window has room for a full datagram. */
  get hasWindow(): boolean {
    return this.bytesInFlight + this.#maxDatagramSize <= Math.min(this.congestion.window, this.#mostInFlight)
  }

  /** When the pace lets the next datagram leave; Infinity if it is not the pace that one would wait for: it may leave now, or the window is full. */
  sendDeadline(now: Instant): Instant {
    if (!this.hasWindow || this.canSend(now)) return Infinity
    return this.pacer.deadline(this.#rate, this.#maxDatagramSize)
  }

  /** `packet`, from `takePacket`, was sent. Its other fields are set by now. */
  onPacketSent(space: Space, packet: SentPacket, now: Instant): void {
    const sent = this.#spaces[space]
    packet.timeSent = now
    sent.nextNumber = packet.packetNumber + 1
    if (space === Space.application) sent.nextNumber = this.#skipped.next(sent.nextNumber)
    else this.#timer.idleSince = now
    if (packet.inFlight) {
      this.bytesInFlight += packet.size
      this.pacer.onSent(packet.size, this.#rate, this.#maxDatagramSize, now)
    }
    if (packet.ecn === Ecn.ect0) this.ecn.onSent(space)
    sent.append(packet)
    if (packet.ackEliciting) this.#timer.isStale = true
  }

  /**
   * An ACK frame came: `ranges` are `[smallest, largest]` pairs, the newest first. `ackDelay` in ms.
   * `counts`: its ECN counts, if it has any.
   */
  onAck(
    space: Space,
    ranges: Float64Array,
    count: number,
    ackDelay: number,
    counts: EcnTotals | undefined,
    now: Instant,
  ): TransportFault | undefined {
    const sent = this.#spaces[space]
    const largest = ranges[1] as number
    // RFC 9000 §13.1: nothing was sent with this number. §21.4: nor with one that was left out.
    if (largest >= sent.nextNumber || (space === Space.application && this.#skipped.isAcknowledged(ranges, count))) {
      return transportFault(TransportError.protocolViolation, FrameType.ack, 'an acknowledgement of a packet that was never sent')
    }
    const isNewest = largest > sent.largestAcknowledged
    if (isNewest) sent.largestAcknowledged = largest
    if (space === Space.handshake) this.#timer.isAddressValidated = true

    const acked = this.#acked
    sent.takeAcked(ranges, count, acked)
    const newest = acked.last
    // What was told before tells nothing new.
    if (newest === undefined && !isNewest) return undefined
    const windowUsed = this.#isWindowUsed()
    if (newest !== undefined) {
      if (newest.packetNumber === largest) this.#maybeSampleRtt(space, newest, ackDelay, now)
      const isCongested = this.ecn.onAcked(space, countMarked(acked), counts, isNewest)
      if (isCongested) this.#onCongestionEvent(newest.timeSent, now)
      // RFC 9002 §6.2.1: not reset while the server may not know the client's address.
      if (this.#timer.isAddressValidated) this.#timer.count = 0
      sent.probes = 0
    }
    this.#detectLosses(space, now)
    this.#creditAcked(windowUsed, now)
    this.#timer.idleSince = now
    this.#timer.isStale = true
    this.#tellLost(space)
    this.#tellAcked(space)
    return undefined
  }

  /** When `expire` has something to do: packets count as lost then, or probes are due. */
  get deadline(): Instant {
    const timer = this.#timer
    if (timer.isStale) timer.arm(this.#spaces, this.rtt)
    return timer.deadline
  }

  /** Time has come to `now`. True: probes are due (see `probesDue`). */
  expire(now: Instant): boolean {
    if (now < this.deadline) return false
    this.#timer.isStale = true
    let isLossTime = false
    for (let space: Space = 0; space < 3; space++) {
      if (this.#spaces[space as Space].lossTime > now) continue
      isLossTime = true
      this.#detectLosses(space as Space, now)
      this.#tellLost(space as Space)
    }
    if (isLossTime) return false

    // RFC 9002 §6.2: a timeout says nothing of what was lost; only an answer to a probe does.
    this.#timer.count++
    this.#timer.expiredAt = now
    this.#timer.idleSince = now
    this.ecn.onProbeTimeout(this.#timer.count)
    this.#spaces[this.#timer.space].probes = 1
    const [initial, handshake, application] = this.#spaces
    // RFC 9002 §6.2.4: what is under way in the other spaces is probed, too; the packets share datagrams.
    if (initial.elicitingCount > 0) initial.probes = probesPerTimeout
    if (handshake.elicitingCount > 0) handshake.probes = probesPerTimeout
    if (application.elicitingCount > 0 && this.#timer.handshakeConfirmed) application.probes = probesPerTimeout
    return true
  }

  /** When probes are due: what waits in `space`, held back by the window, may leave as one, too. */
  addProbe(space: Space): void {
    const sent = this.#spaces[space]
    if (sent.probes === 0) sent.probes = 1
  }

  /**
   * The peer probes in the handshake, or sends again what came already: perhaps what was sent to it is lost
   * (RFC 9002 §6.2.3). True: probes are due, before their time.
   */
  speedUpHandshake(): boolean {
    const [initial, handshake] = this.#spaces
    if (this.#speedUps >= mostSpeedUps || initial.elicitingCount + handshake.elicitingCount === 0) return false
    this.#speedUps++
    if (initial.elicitingCount > 0) initial.probes = Math.max(initial.probes, 1)
    if (handshake.elicitingCount > 0) handshake.probes = Math.max(handshake.probes, 1)
    return true
  }

  /** The keys of `space` are gone (RFC 9002 §6.4): its packets are forgotten, neither acknowledged nor lost. */
  discardSpace(space: Space, now: Instant): void {
    const sent = this.#spaces[space]
    sent.takeAll(false, this.#lost)
    this.#forgetLost()
    sent.lastElicitingAt = -Infinity
    sent.probes = 0
    this.#timer.count = 0
    this.#timer.idleSince = now
    this.#timer.isStale = true
  }

  /** A Retry came: what was sent is to be sent again, with the next numbers, and the window does not mind (RFC 9000 §17.2.5.3). */
  onRetry(now: Instant): void {
    this.#spaces[Space.initial].takeAll(false, this.#lost)
    this.#requeue(Space.initial, now)
    this.onEarlyRejected(now)
    this.#timer.count = 0
  }

  /** The server refused 0-RTT: what was sent in it is to be sent again (RFC 9001 §4.6.2). */
  onEarlyRejected(now: Instant): void {
    this.#spaces[Space.application].takeAll(true, this.#lost)
    this.#requeue(Space.application, now)
  }

  /** RFC 9001 §4.1.2. From now on there are probe timeouts for 1-RTT packets, and the peer's max_ack_delay counts. */
  onHandshakeConfirmed(): void {
    this.#timer.handshakeConfirmed = true
    this.#timer.isAddressValidated = true
    this.#timer.isStale = true
  }

  /** Server: three times what the client sent was sent; no probe could leave (RFC 9002 §6.2.2.1). */
  get isAmplificationLimited(): boolean {
    return this.#timer.isAmplificationLimited
  }

  set isAmplificationLimited(value: boolean) {
    if (this.#timer.isAmplificationLimited === value) return
    this.#timer.isAmplificationLimited = value
    this.#timer.isStale = true
  }

  /** The peer's max_ack_delay (ms): what its transport parameters say. 25 until then. */
  get maxAckDelay(): number {
    return this.#timer.maxAckDelay
  }

  set maxAckDelay(value: number) {
    this.#timer.maxAckDelay = value
    this.#timer.isStale = true
  }

  /** A client has keys for Handshake packets: if it has nothing in flight, it probes with one (RFC 9002 §6.2.2.1). */
  onHandshakeKeys(): void {
    this.#timer.hasHandshakeKeys = true
    this.#timer.isStale = true
  }

  /** Probe timeouts in a row. */
  get probeCount(): number {
    return this.#timer.count
  }

  /** Full datagrams have `byteCount` octets from now on. */
  set maxDatagramSize(byteCount: number) {
    if (byteCount === this.#maxDatagramSize) return
    this.#maxDatagramSize = byteCount
    this.congestion.resize(byteCount)
  }

  get maxDatagramSize(): number {
    return this.#maxDatagramSize
  }

  /** Packets take another path from now on, of which nothing is known (RFC 9000 §9.4). */
  resetPath(maxDatagramSize: number, initialRtt: number, now: Instant): void {
    this.#maxDatagramSize = maxDatagramSize
    this.rtt.reset(initialRtt)
    this.congestion = this.#isCubic ? new Cubic(maxDatagramSize) : new NewReno(maxDatagramSize)
    this.ecn.restart()
    // What is on its way fills the old path, and its loss is none of the new one's.
    for (const sent of this.#spaces) {
      for (let packet = sent.packets.first; packet !== undefined; packet = packet.next as SentPacket | undefined) {
        packet.size = 0
        packet.ecn = Ecn.none
      }
      sent.restartLosses()
    }
    this.bytesInFlight = 0
    this.#recoveryStart = now
    this.#pathStart = now
    this.#timer.count = 0
    this.#timer.isStale = true
  }

  /** Octets per ms. */
  get #rate(): number {
    const { congestion, rtt } = this
    return ((congestion.isSlowStart ? slowStartPace : pace) * congestion.window) / Math.max(rtt.smoothed, leastRtt)
  }

  /** RFC 9002 §5.1: the largest number is acknowledged anew, with something that asks for an acknowledgement. */
  #maybeSampleRtt(space: Space, newest: SentPacket, ackDelay: number, now: Instant): void {
    if (newest.timeSent < this.#pathStart || !hasEliciting(this.#acked)) return
    // RFC 9002 §5.3: Initial packets are not delayed; max_ack_delay binds once the handshake is confirmed.
    let delay = space === Space.initial ? 0 : ackDelay
    if (this.#timer.handshakeConfirmed) delay = Math.min(delay, this.maxAckDelay)
    this.rtt.update(now - newest.timeSent, delay, now)
    this.congestion.onRttSample(newest.timeSent, this.rtt, now)
  }

  /**
   * RFC 9002 §7.8: a window that is not used does not grow. In slow start half of it is enough, since it
   * doubles; later it has to be full but for a burst that a pause of the sender may explain.
   */
  #isWindowUsed(): boolean {
    const { window, isSlowStart } = this.congestion
    if (window >= this.#mostInFlight) return false
    if (isSlowStart) return 2 * this.bytesInFlight >= window
    return this.bytesInFlight + Math.max(3 * this.#maxDatagramSize, window / 8) >= window
  }

  /** Takes acknowledged packets out of flight; those of the window as it is let it grow. */
  #creditAcked(windowUsed: boolean, now: Instant): void {
    let byteCount = 0
    for (let packet = this.#acked.first; packet !== undefined; packet = packet.next as SentPacket | undefined) {
      if (!packet.inFlight) continue
      this.bytesInFlight -= packet.size
      // RFC 9002 §7.3.2: packets sent before the window was reduced do not make it grow.
      if (packet.timeSent > this.#recoveryStart) byteCount += packet.size
    }
    if (byteCount === 0) return
    if (windowUsed) this.congestion.onAcked(byteCount, this.rtt, now)
    else this.congestion.onUnused(now)
  }

  /** Puts what is lost into `#lost`, out of flight, and lets the window know. */
  #detectLosses(space: Space, now: Instant): void {
    const sent = this.#spaces[space]
    const { rtt } = this
    const lossTime = sent.takeLost(rtt.lossDelay, rtt.firstSampleAt, now, this.#lost)
    if (this.#lost.length === 0) return
    const newestSentAt = this.#leaveFlight()
    if (newestSentAt === -Infinity) return
    this.#onCongestionEvent(newestSentAt, now)
    // RFC 9002 §7.6.1: max_ack_delay counts in every space.
    if (lossTime > (rtt.probeTimeout + this.maxAckDelay) * this.#persistentThreshold) this.#maybePersistent(sent)
  }

  /** RFC 9002 §7.6: nothing of `sent` got through for long; perhaps something of another space did. */
  #maybePersistent(sent: SentSpace): void {
    for (const other of this.#spaces) {
      if (other !== sent && other.newestAckedSentAt >= sent.longestLossSince) return
    }
    sent.restartLosses()
    this.congestion.onPersistentCongestion()
    this.#recoveryStart = -Infinity
    this.rtt.restartMin()
  }

  /** Takes lost packets out of flight; returns when the newest was sent whose loss means congestion. */
  #leaveFlight(): Instant {
    let newestSentAt = -Infinity
    let marked = 0
    for (let packet = this.#lost.first; packet !== undefined; packet = packet.next as SentPacket | undefined) {
      if (packet.ecn === Ecn.ect0) marked++
      if (!packet.inFlight) continue
      this.bytesInFlight -= packet.size
      this.lostCount++
      if (!packet.isMtuProbe) newestSentAt = packet.timeSent
    }
    if (marked > 0) this.ecn.onLost(marked)
    return newestSentAt
  }

  #onCongestionEvent(sentAt: Instant, now: Instant): void {
    // RFC 9002 §7.3.2: once per round trip.
    if (sentAt <= this.#recoveryStart) return
    this.#recoveryStart = now
    this.congestion.onCongestionEvent(now)
  }

  #tellAcked(space: Space): void {
    for (let packet = this.#acked.shift(); packet !== undefined; packet = this.#acked.shift()) {
      this.#fate.onAcked(space, packet)
      giveBackSentPacket(packet)
    }
  }

  #tellLost(space: Space): void {
    for (let packet = this.#lost.shift(); packet !== undefined; packet = this.#lost.shift()) {
      this.#fate.onLost(space, packet)
      giveBackSentPacket(packet)
    }
  }

  #forgetLost(): void {
    for (let packet = this.#lost.shift(); packet !== undefined; packet = this.#lost.shift()) {
      if (packet.inFlight) this.bytesInFlight -= packet.size
      giveBackSentPacket(packet)
    }
  }

  #requeue(space: Space, now: Instant): void {
    for (let packet = this.#lost.first; packet !== undefined; packet = packet.next as SentPacket | undefined) {
      if (packet.inFlight) this.bytesInFlight -= packet.size
    }
    this.#timer.idleSince = now
    this.#timer.isStale = true
    this.#tellLost(space)
  }
}
