import type { Instant } from '../http/index.ts'
import { ackDelayUnits } from './ack.ts'
import { writeAck } from './ack-writer.ts'
import type { ApplicationKeys } from './application-keys.ts'
import { Carried, carry } from './carried.ts'
import type { CloseReason } from './closing.ts'
import type { QuicConnection } from './connection.ts'
import { Ecn } from './ecn.ts'
import {
  writeApplicationClose,
  writeConnectionClose,
  writeHandshakeDone,
  writeNewToken,
  writePadding,
  writePathChallenge,
  writePathResponse,
  writePing,
} from './frame-writer.ts'
import { smallestDatagram } from './mtu.ts'
import type { PacketSpace } from './packet-space.ts'
import { PacketWriter } from './packet-writer.ts'
import { PacketType, version1 } from './packet.ts'
import type { Path } from './path.ts'
import type { LevelKeys } from './protection.ts'
import type { SentPacket } from './sent-packet.ts'
import { Space } from './space.ts'
import { hasStreamFrames, writeStreamFrames } from './stream-frames.ts'
import { TransportError, transportFault } from './transport-error.ts'

const none = new Uint8Array(0)
/** The exponent of ACK Delay in Initial and Handshake packets, and ours (RFC 9000 §18.2). */
const ackDelayExponent = 3
/** Octets that a datagram to an address has at least that may not be the peer's, after the handshake. */
const smallestToStranger = 64
/** Probe timeouts in a row after which datagrams are of the size that every path carries. */
const timeoutsOfBlackHole = 2
/** Characters of the reason that CONNECTION_CLOSE has at most. */
const mostReason = 200
/** Octets that a datagram must have left to leave a place for another packet. */
const roomForPacket = 80

/**
 * Makes datagrams. Whether there is something to send and what it is, is one question: a packet is
 * started, everybody appends what they have, and it is taken back if nobody had anything.
 */
export class Sender {
  readonly #connection: QuicConnection
  readonly #writer: PacketWriter
  /** The path of the datagram written last. */
  path: Path
  /** How that datagram is to be marked: all its packets count as marked so. */
  ecn: Ecn
  /** The packet at hand tries a path: it shows that it carries 1,200 octets (RFC 9000 §8.2.1, §8.2.2). */
  #mustExpand: boolean

  constructor(connection: QuicConnection, path: Path) {
    this.#connection = connection
    this.#writer = new PacketWriter()
    this.path = path
    this.ecn = Ecn.none
    this.#mustExpand = false
  }

  /** Something waits that window and pace may hold back. */
  get hasToSend(): boolean {
    for (const space of this.#connection.spaces) {
      if (!this.#isUsable(space)) continue
      if (space.crypto.hasToSend || (space.space === Space.application && this.#hasApplicationFrames())) return true
    }
    return false
  }

  /** Writes one datagram to `buffer[start, …)`, not behind `limit`; returns its octets, 0 for none. */
  transmit(buffer: Uint8Array, start: number, limit: number, now: Instant): number {
    const { closing, paths, recovery, mtu } = this.#connection
    this.path = paths.current
    this.#mustExpand = false
    this.ecn = recovery.ecn.mark
    recovery.maxDatagramSize = mtu.size
    if (closing.state !== 'open') return closing.mustSend ? this.#close(buffer, start, limit) : 0
    return (
      this.#tryOtherPath(buffer, start, limit, now) ||
      this.#probeSize(buffer, start, limit, now) ||
      this.#datagram(buffer, start, limit, now)
    )
  }

  #datagram(buffer: Uint8Array, start: number, limit: number, now: Instant): number {
    const connection = this.#connection
    const { recovery, spaces } = connection
    const { path } = this
    const { allowance } = path
    const writer = this.#writer
    // RFC 9000 §8.1, §9.3: to an address that may not be the client's go datagrams of full size in the handshake, and what
    // is allowed later: the challenge that validates it has to leave.
    recovery.isAmplificationLimited = allowance < (connection.handshake.isConfirmed ? smallestToStranger : smallestDatagram)
    if (recovery.isAmplificationLimited) return 0
    // RFC 8899 §4.3: nothing comes through; perhaps less does.
    const size = recovery.probeCount >= timeoutsOfBlackHole ? smallestDatagram : connection.mtu.size
    writer.startDatagram(buffer, start, Math.min(limit, start + size, start + allowance))
    const maySend = recovery.canSend(now)
    let mustFill = false
    for (const space of spaces) {
      if (!this.#isUsable(space)) continue
      const isLast = !this.#isFollowed(space, maySend)
      const size = this.#packet(space, maySend, mustFill, isLast, now)
      // RFC 9000 §14.1: a client's datagrams with Initial packets, and a server's with those that want an answer, are full.
      if (size > 0 && space.space === Space.initial && (!connection.isServer || writer.ackEliciting)) mustFill = true
    }
    if (mustFill && writer.datagramSize < smallestDatagram) this.#fill(now)
    return this.#left()
  }

  /** The space has keys to send with, and is not over. */
  #isUsable(space: PacketSpace): boolean {
    return !space.isDiscarded && space.keys.canSeal
  }

  /** A later space is likely to add a packet to the datagram. */
  #isFollowed(space: PacketSpace, maySend: boolean): boolean {
    for (const later of this.#connection.spaces) {
      if (later.space > space.space && this.#isUsable(later) && this.#hasSomething(later, maySend)) return true
    }
    return false
  }

  #hasSomething(space: PacketSpace, maySend: boolean): boolean {
    const connection = this.#connection
    if (space.received.shouldAckNow || connection.recovery.probesDue(space.space) > 0) return true
    // RFC 9000 §9.4: what is in flight may be lost with the path it took, and until the new one is validated nothing tells.
    if (space.space === Space.application && connection.paths.current.challengeWaits) return true
    if (!maySend) return false
    if (space.crypto.hasToSend) return true
    return space.space === Space.application && this.#hasApplicationFrames()
  }

  #hasApplicationFrames(): boolean {
    const { handshakeDone, newToken, localIds, remoteIds, paths, streams, handshake, pingWanted } = this.#connection
    const { current } = paths
    return (
      hasStreamFrames(streams) ||
      handshakeDone.isDue ||
      newToken.isDue ||
      pingWanted ||
      current.challengeWaits ||
      current.responses.length > 0 ||
      (handshake.isComplete && (localIds.hasToSend || remoteIds.hasToSend))
    )
  }

  /** Appends one packet of `space` to the datagram; returns its octets. */
  #packet(space: PacketSpace, maySend: boolean, mustFill: boolean, isLast: boolean, now: Instant): number {
    const connection = this.#connection
    const { recovery } = connection
    const writer = this.#writer
    const probes = recovery.probesDue(space.space)
    const mayAdd = maySend || probes > 0
    if (!this.#hasSomething(space, maySend)) return 0
    const packet = recovery.takePacket(space.space)
    if (!this.#start(space, packet)) {
      recovery.releasePacket(packet)
      return 0
    }
    const { received } = space
    if (received.hasNews) this.#acknowledge(space, packet, now)
    const behindAck = writer.at
    if (mayAdd) {
      const all = space.crypto.maybeWriteFrames(writer, packet)
      if (all && space.space === Space.application) this.#applicationFrames(packet, now)
      if ((probes > 0 || recovery.wantsPing(space.space)) && !writer.ackEliciting) writePing(writer)
    } else if (space.space === Space.application && this.path.challengeWaits) this.#pathFrames(this.path, packet, now)
    // An acknowledgement alone leaves when it is due, and not before.
    if (writer.isEmpty || (writer.at === behindAck && !received.shouldAckNow)) {
      writer.abandon()
      recovery.releasePacket(packet)
      return 0
    }
    if (behindAck > writer.payloadStart) received.onAckSent()
    // RFC 9000 §14.1: the Initial packet itself fills the datagram if nothing is going to follow.
    const fillsItself = space.space === Space.initial && (!connection.isServer || writer.ackEliciting)
    const isFull = this.#mustExpand || ((mustFill || fillsItself) && (isLast || writer.room < roomForPacket))
    return this.#finish(space, packet, isFull ? smallestDatagram : 0, now)
  }

  #start({ space, keys }: PacketSpace, packet: SentPacket): boolean {
    const connection = this.#connection
    const writer = this.#writer
    const { packetNumber } = packet
    const largest = connection.recovery.largestAcknowledged(space)
    const destination = connection.remoteIds.current
    if (space !== Space.application) {
      const type = space === Space.initial ? PacketType.initial : PacketType.handshake
      return writer.startLong(
        type,
        version1,
        destination,
        connection.localId,
        connection.isServer ? none : connection.token,
        packetNumber,
        largest,
      )
    }
    const application = keys as ApplicationKeys
    if (application.isUpdateDue) application.update()
    if (application.isExhausted) {
      // RFC 9001 §6.6: reached only if the peer never lets an update happen.
      connection.fail(transportFault(TransportError.aeadLimitReached, 0, 'the keys have sealed all they may'))
      return false
    }
    return writer.startShort(destination, packetNumber, largest, application.keyPhase, false)
  }

  #finish({ space, keys }: PacketSpace, packet: SentPacket, padTo: number, now: Instant): number {
    const connection = this.#connection
    const writer = this.#writer
    const { ackEliciting } = writer
    const size = writer.finish(keys as LevelKeys, padTo)
    packet.size = size
    packet.ackEliciting = ackEliciting
    packet.inFlight = ackEliciting || writer.padded
    packet.ecn = this.ecn
    connection.recovery.onPacketSent(space, packet, now)
    connection.idle.onSent(ackEliciting, now)
    writer.ackEliciting = ackEliciting
    if (space === Space.handshake) connection.onHandshakeSent()
    return size
  }

  #acknowledge({ space, received }: PacketSpace, packet: SentPacket, now: Instant): void {
    const delay = space === Space.application ? ackDelayUnits(received.ackDelay(now), ackDelayExponent) : 0
    if (writeAck(this.#writer, received.ranges, delay, received.ecnTotals)) carry(packet.carried, Carried.ack, received.largest)
  }

  #applicationFrames(packet: SentPacket, now: Instant): void {
    const connection = this.#connection
    const writer = this.#writer
    const { handshakeDone, newToken, localIds, remoteIds, streams, handshake } = connection
    const { packetNumber, carried } = packet
    if (handshakeDone.isDue && writeHandshakeDone(writer)) {
      handshakeDone.onSent(packetNumber)
      carry(carried, Carried.handshakeDone)
    }
    this.#pathFrames(this.path, packet, now)
    if (handshake.isComplete) {
      if (!localIds.maybeWriteFrames(writer, packet) || !remoteIds.maybeWriteFrames(writer, packet)) return
    }
    if (newToken.isDue && connection.tokenToSend !== undefined && writeNewToken(writer, connection.tokenToSend)) {
      newToken.onSent(packetNumber)
      carry(carried, Carried.newToken)
    }
    if (connection.pingWanted && writePing(writer)) connection.pingWanted = false
    if (handshake.isComplete) writeStreamFrames(streams, writer, packet, now)
  }

  #pathFrames(path: Path, packet: SentPacket, now: Instant): void {
    const connection = this.#connection
    const writer = this.#writer
    for (let response = path.responses[0]; response !== undefined && writePathResponse(writer, response); response = path.responses[0]) {
      path.responses.shift()
      this.#mustExpand = true
    }
    if (!path.challengeWaits) return
    const challenge = connection.crypto.random(8)
    if (!writePathChallenge(writer, challenge)) return
    carry(packet.carried, Carried.pathChallenge)
    const isFull = writer.datagramLimit - writer.datagramStart >= smallestDatagram
    path.onChallengeSent(challenge, isFull, connection.probeTimeout, now)
    this.#mustExpand = true
  }

  /** A path beside the current one has something to say: a datagram of its own. */
  #tryOtherPath(buffer: Uint8Array, start: number, limit: number, now: Instant): number {
    const connection = this.#connection
    const { recovery, paths, remoteIds } = connection
    const { other } = paths
    const space = connection.spaces[Space.application]
    if (other === undefined || (!other.challengeWaits && other.responses.length === 0) || !this.#isUsable(space)) return 0
    const most = Math.min(limit - start, smallestDatagram, other.allowance)
    if (most < smallestToStranger || !(other.challengeWaits || recovery.canSend(now))) return 0
    const writer = this.#writer
    const packet = recovery.takePacket(Space.application)
    writer.startDatagram(buffer, start, start + most)
    const keys = space.keys as ApplicationKeys
    const largest = recovery.largestAcknowledged(Space.application)
    if (keys.isExhausted || !writer.startShort(remoteIds.takeBeside(), packet.packetNumber, largest, keys.keyPhase, false)) {
      recovery.releasePacket(packet)
      return 0
    }
    this.path = other
    // Which marks this path lets through is not asked.
    this.ecn = Ecn.none
    this.#pathFrames(other, packet, now)
    // RFC 9000 §8.2.1, §8.2.2: full, as far as three times what came allows.
    this.#finish(space, packet, most, now)
    return this.#left()
  }

  /** A packet that tries a larger datagram. It goes first: who has much to send gains most by it. */
  #probeSize(buffer: Uint8Array, start: number, limit: number, now: Instant): number {
    const connection = this.#connection
    const { mtu, recovery, handshake } = connection
    const space = connection.spaces[Space.application]
    const size = mtu.probeSize
    if (size === 0 || size > limit - start || !handshake.isConfirmed || !this.path.validated || !this.#isUsable(space)) return 0
    if (!recovery.canSend(now) || recovery.bytesInFlight + size > recovery.congestion.window) return 0
    this.#writer.startDatagram(buffer, start, start + size)
    const packet = recovery.takePacket(Space.application)
    if (!this.#start(space, packet)) {
      recovery.releasePacket(packet)
      return 0
    }
    writePing(this.#writer)
    carry(packet.carried, Carried.mtuProbe, size)
    packet.isMtuProbe = true
    mtu.onProbeSent()
    this.#finish(space, packet, size, now)
    return this.#left()
  }

  /** The datagram must be full and nothing came that could fill it: a packet of PADDING does. */
  #fill(now: Instant): void {
    const { spaces, recovery } = this.#connection
    for (const space of spaces) {
      if (!this.#isUsable(space)) continue
      const packet = recovery.takePacket(space.space)
      if (this.#start(space, packet)) {
        writePadding(this.#writer, 1)
        this.#finish(space, packet, smallestDatagram, now)
      } else recovery.releasePacket(packet)
      return
    }
  }

  /** CONNECTION_CLOSE, in every level that the peer may be able to read (RFC 9000 §10.2.3). */
  #close(buffer: Uint8Array, start: number, limit: number): number {
    const connection = this.#connection
    const { closing, handshake, spaces, now } = connection
    closing.mustSend = false
    if (closing.reason === undefined) return 0
    const most = Math.min(limit - start, smallestDatagram, this.path.allowance)
    if (most < smallestToStranger) return 0
    const writer = this.#writer
    writer.startDatagram(buffer, start, start + most)
    let mustFill = false
    for (const space of spaces) {
      if (!this.#isUsable(space) || (handshake.isConfirmed && space.space !== Space.application)) continue
      const isLast = !spaces.some((later) => later.space > space.space && this.#isUsable(later))
      // RFC 9000 §14.1.
      if (space.space === Space.initial && !connection.isServer) mustFill = true
      this.#closePacket(space, closing.reason, mustFill && isLast ? smallestDatagram : 0, now)
    }
    return this.#left()
  }

  #closePacket(space: PacketSpace, reason: CloseReason, padTo: number, now: Instant): void {
    const { recovery } = this.#connection
    const writer = this.#writer
    const packet = recovery.takePacket(space.space)
    if (!this.#start(space, packet)) {
      recovery.releasePacket(packet)
      return
    }
    // The other levels say it, too, and need room for it.
    const text = reason.reason.slice(0, mostReason)
    // RFC 9000 §10.2.3: before 1-RTT nothing is told of the application.
    if (!reason.application) writeConnectionClose(writer, reason.code, reason.frameType, text)
    else if (space.space === Space.application) writeApplicationClose(writer, reason.code, text)
    else writeConnectionClose(writer, TransportError.applicationError, 0, '')
    if (writer.isEmpty) {
      writer.abandon()
      recovery.releasePacket(packet)
    } else this.#finish(space, packet, padTo, now)
  }

  #left(): number {
    const size = this.#writer.datagramSize
    this.path.bytesSent += size
    return size
  }
}
