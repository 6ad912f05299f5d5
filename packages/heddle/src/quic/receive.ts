import type { Instant } from '../http/index.ts'
import type { QuicConnection } from './connection.ts'
import { FrameReceiver } from './receive-frames.ts'
import { isSame } from './local-ids.ts'
import type { PacketSpace } from './packet-space.ts'
import { smallestDatagram } from './mtu.ts'
import { PacketReader, PacketType } from './packet.ts'
import type { Path, Route } from './path.ts'
import { readVersions, verifyRetry } from './retry-packet.ts'
import { Space } from './space.ts'

/** Packets whose keys are not there yet, kept until they are: they overtook the handshake. */
const mostEarlyPackets = 10

interface EarlyPacket {
  readonly bytes: Uint8Array
  readonly route: Route
  readonly ecn: number
}

/**
 * Takes datagrams apart: packets are opened, checked and read. What cannot be opened is dropped without a
 * word (RFC 9000 §5.2), and may have been a stateless reset.
 */
export class Receiver {
  readonly #connection: QuicConnection
  readonly #packets: PacketReader
  readonly frames: FrameReceiver
  /** Keys have come, and may be those that kept packets wait for. */
  wantsEarly: boolean
  #early: EarlyPacket[]

  constructor(connection: QuicConnection) {
    this.#connection = connection
    this.#packets = new PacketReader()
    this.frames = new FrameReceiver(connection)
    this.wantsEarly = false
    this.#early = []
  }

  /** A datagram came by `route`, with the two ECN bits of its IP header. */
  receive(buffer: Uint8Array, start: number, limit: number, route: Route, ecn: number, now: Instant): void {
    const connection = this.#connection
    if (connection.closing.state !== 'open') {
      // What is said again goes to where the peer was, and only as often as comes from there.
      const { current } = connection.paths
      if (route.key !== current.route.key) return
      current.bytesReceived += limit - start
      connection.closing.receiveDatagram()
      return
    }
    const path = connection.paths.of(route)
    if (path === undefined) return
    path.bytesReceived += limit - start
    const isOurs = this.#receivePackets(buffer, start, limit, path, ecn, now)
    if (!isOurs && connection.closing.state === 'open' && this.#isReset(buffer, start, limit)) connection.receiveReset()
    this.receiveEarly(now)
  }

  /** Once keys have come: reads what waited for them. Not to be called while a datagram is read. */
  receiveEarly(now: Instant): void {
    const connection = this.#connection
    while (this.wantsEarly) {
      this.wantsEarly = false
      const early = this.#early
      this.#early = []
      for (const { bytes, route, ecn } of early) {
        const path = connection.paths.of(route)
        if (path !== undefined && connection.closing.state === 'open') this.#receivePackets(bytes, 0, bytes.length, path, ecn, now)
      }
    }
  }

  /** Where the Destination Connection ID of the packet at hand is. */
  get destinationStart(): number {
    return this.#packets.destinationStart
  }

  get destinationLimit(): number {
    return this.#packets.destinationLimit
  }

  discardEarly(): void {
    this.#early = []
  }

  /** True if a packet of the datagram was opened, or is kept. */
  #receivePackets(buffer: Uint8Array, start: number, limit: number, path: Path, ecn: number, now: Instant): boolean {
    const connection = this.#connection
    const packets = this.#packets.start(buffer, start, limit, connection.localIdSize)
    const isSmall = limit - start < smallestDatagram
    let isOurs = false
    while (packets.next() && connection.closing.state === 'open') {
      // RFC 9000 §14.1, §17.2.2: a client fills datagrams with Initial packets, and a server's have no token.
      if (packets.type === PacketType.initial && (connection.isServer ? isSmall : packets.tokenLimit > packets.tokenStart)) continue
      if (this.#receivePacket(path, ecn, now)) isOurs = true
    }
    return isOurs
  }

  #receivePacket(path: Path, ecn: number, now: Instant): boolean {
    const connection = this.#connection
    switch (this.#packets.type) {
      case PacketType.initial:
        return this.#receiveNumbered(connection.spaces[Space.initial], path, ecn, now)
      case PacketType.handshake:
        return this.#receiveNumbered(connection.spaces[Space.handshake], path, ecn, now)
      case PacketType.oneRtt:
        return this.#receiveNumbered(connection.spaces[Space.application], path, ecn, now)
      case PacketType.retry:
        return this.#receiveRetry(now)
      case PacketType.versionNegotiation:
        return this.#receiveVersions()
      default:
        // 0-RTT is not taken here: the client sends it again when the handshake is done.
        return false
    }
  }

  #receiveNumbered(space: PacketSpace, path: Path, ecn: number, now: Instant): boolean {
    const connection = this.#connection
    const { buffer, packetStart, packetLimit, payloadStart, sourceStart, sourceLimit, type } = this.#packets
    const { keys } = space
    if (space.isDiscarded) return false
    if (!keys.canOpen) return this.#keep(buffer, packetStart, packetLimit, path, ecn)
    // RFC 9001 §5.7: no 1-RTT packet is read before the handshake is complete.
    if (space.space === Space.application && !connection.handshake.isComplete) {
      return this.#keep(buffer, packetStart, packetLimit, path, ecn)
    }
    const isLong = type !== PacketType.oneRtt
    // RFC 9000 §7.2: the id that the peer chose for itself does not change in the handshake.
    if (isLong && connection.peerIdIsKnown && !isSame(connection.peerInitialSource, buffer, sourceStart, sourceLimit)) return false

    const { received } = space
    if (!keys.open(buffer, packetStart, payloadStart, packetLimit, received.largest, now)) {
      if (keys.fault !== undefined) connection.fail(keys.fault)
      return false
    }
    const { packetNumber } = keys
    // It was ours, and came before (RFC 9000 §12.3).
    if (received.isDuplicate(packetNumber)) return true
    connection.paths.onOpened(path)
    if (isLong) {
      // RFC 9000 §8.1: an id of 64 random bits that only this end's packets told.
      if (connection.isServer && isSame(connection.localId, buffer, this.destinationStart, this.destinationLimit)) path.validated = true
      connection.onPeerSource(buffer, sourceStart, sourceLimit)
      if (space.space === Space.handshake) connection.onHandshakePacket(path)
    }
    connection.hasReceived = true
    connection.idle.onReceived(now)
    const isNewest = packetNumber > received.largest
    const hasAnswered = connection.recovery.hasElicitingInFlight
    const fault = this.frames.receive(space, buffer, keys.payloadStart, keys.payloadLimit, path, now)
    if (fault !== undefined) connection.fail(fault)
    if (connection.closing.state !== 'open' || space.isDiscarded) return true
    received.receive(packetNumber, this.frames.ackEliciting, ecn, now)
    // RFC 9002 §6.2.3: the client had its answer, and asks again.
    if (connection.isServer && space.space === Space.initial && hasAnswered && this.frames.ackEliciting) connection.onHandshakeProbe()
    // RFC 9000 §9.3: the newest packet that does more than try a path tells where the peer is now.
    if (!isLong && isNewest && this.frames.nonProbing) connection.paths.onPeerAt(path, now)
    return true
  }

  #keep(buffer: Uint8Array, start: number, limit: number, { route }: Path, ecn: number): boolean {
    if (this.#connection.handshake.isConfirmed || this.#early.length >= mostEarlyPackets) return false
    this.#early.push({ bytes: new Uint8Array(buffer.subarray(start, limit)), route, ecn })
    // RFC 9002 §6.2.3: the server is further, so what it sent before is late or lost.
    if (!this.#connection.isServer) this.#connection.onHandshakeProbe()
    return true
  }

  #receiveRetry(now: Instant): boolean {
    const connection = this.#connection
    const { buffer, packetStart, packetLimit, sourceStart, sourceLimit, tokenStart, tokenLimit } = this.#packets
    // RFC 9000 §17.2.5.2: a client takes one, before any other packet, and not one that names the id of before.
    if (connection.isServer || connection.hasReceived || connection.retrySource !== undefined) return false
    if (isSame(connection.originalDestination, buffer, sourceStart, sourceLimit)) return false
    if (!verifyRetry(connection.crypto, buffer, packetStart, packetLimit, connection.originalDestination)) return false
    connection.onRetry(
      new Uint8Array(buffer.subarray(sourceStart, sourceLimit)),
      new Uint8Array(buffer.subarray(tokenStart, tokenLimit)),
      now,
    )
    return true
  }

  #receiveVersions(): boolean {
    const connection = this.#connection
    const { buffer, destinationStart, destinationLimit, sourceStart, sourceLimit, payloadStart, packetLimit } = this.#packets
    // RFC 9000 §6.2: only before anything else came, and only as the answer to what was sent.
    if (connection.isServer || connection.hasReceived || connection.retrySource !== undefined) return false
    if (!isSame(connection.localId, buffer, destinationStart, destinationLimit)) return false
    if (!isSame(connection.originalDestination, buffer, sourceStart, sourceLimit)) return false
    connection.onVersions(readVersions(buffer, payloadStart, packetLimit))
    return true
  }

  /** RFC 9000 §10.3.1: it looks like a packet of 1-RTT, and ends with a reset token of the peer's. */
  #isReset(buffer: Uint8Array, start: number, limit: number): boolean {
    return limit - start >= 21 && (buffer[start] as number) < 0x80 && this.#connection.remoteIds.isReset(buffer, limit - 16)
  }
}
