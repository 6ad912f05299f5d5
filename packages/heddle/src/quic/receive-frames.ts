import type { Instant } from '../http/index.ts'
import type { ApplicationKeys } from './application-keys.ts'
import { FrameReader } from './frame.ts'
import { FrameType } from './frame-type.ts'
import type { QuicConnection } from './connection.ts'
import type { PacketSpace } from './packet-space.ts'
import type { Path } from './path.ts'
import { Space } from './space.ts'
import type { TransportFault } from './transport-error.ts'

const text = new TextDecoder()

/** Hands the frames of opened packets to whom they concern. */
export class FrameReceiver {
  readonly #connection: QuicConnection
  readonly #reader: FrameReader

  constructor(connection: QuicConnection) {
    this.#connection = connection
    this.#reader = new FrameReader(!connection.isServer)
  }

  /** The packet read last asks for an acknowledgement. */
  get ackEliciting(): boolean {
    return this.#reader.ackEliciting
  }

  /** The packet read last does more than try a path. */
  get nonProbing(): boolean {
    return this.#reader.nonProbing
  }

  /** Reads the frames of one packet. What is returned ends the connection. */
  receive(space: PacketSpace, buffer: Uint8Array, start: number, limit: number, path: Path, now: Instant): TransportFault | undefined {
    const connection = this.#connection
    const reader = this.#reader
    reader.start(buffer, start, limit, space.level)
    while (reader.next()) {
      const fault = this.#receiveFrame(space, path, now)
      if (fault !== undefined) return fault
      if (connection.closing.state !== 'open') return undefined
    }
    return reader.fault
  }

  #receiveFrame(space: PacketSpace, path: Path, now: Instant): TransportFault | undefined {
    const connection = this.#connection
    const { streams } = connection
    const frame = this.#reader
    const { buffer } = frame
    switch (frame.type) {
      case FrameType.stream:
        return streams.receiveStream(frame.streamId, frame.offset, buffer, frame.dataStart, frame.dataLimit, frame.fin)
      case FrameType.ack:
      case FrameType.ackEcn:
        return this.#receiveAck(space, now)
      case FrameType.crypto:
        return this.#receiveCrypto(space)
      case FrameType.maxData:
        return streams.receiveMaxData(frame.maximum)
      case FrameType.maxStreamData:
        return streams.receiveMaxStreamData(frame.streamId, frame.maximum)
      case FrameType.maxStreamsBidirectional:
        return streams.receiveMaxStreams(true, frame.maximum)
      case FrameType.maxStreamsUnidirectional:
        return streams.receiveMaxStreams(false, frame.maximum)
      case FrameType.resetStream:
        return streams.receiveResetStream(frame.streamId, frame.errorCode, frame.finalSize)
      case FrameType.stopSending:
        return streams.receiveStopSending(frame.streamId, frame.errorCode)
      case FrameType.streamDataBlocked:
        return streams.receiveStreamDataBlocked(frame.streamId)
      case FrameType.newConnectionId:
        return connection.remoteIds.receiveNew(
          frame.sequence,
          frame.retirePriorTo,
          new Uint8Array(buffer.subarray(frame.connectionIdStart, frame.connectionIdLimit)),
          new Uint8Array(buffer.subarray(frame.resetTokenStart, frame.resetTokenStart + 16)),
        )
      case FrameType.retireConnectionId:
        return connection.localIds.receiveRetire(
          frame.sequence,
          buffer,
          connection.receiver.destinationStart,
          connection.receiver.destinationLimit,
        )
      case FrameType.pathChallenge:
        path.receiveChallenge(buffer, frame.dataStart)
        // RFC 9000 §9.3.3: the peer may ask because others forward packets; something else than a response tells where this end is.
        if (path === connection.paths.current) connection.pingWanted = true
        return undefined
      case FrameType.pathResponse:
        connection.paths.receiveResponse(buffer, frame.dataStart)
        return undefined
      case FrameType.newToken:
        connection.application.onToken?.(new Uint8Array(buffer.subarray(frame.tokenStart, frame.tokenLimit)))
        return undefined
      case FrameType.handshakeDone:
        connection.onConfirmed()
        return undefined
      case FrameType.connectionClose:
      case FrameType.applicationClose:
        connection.receiveClose(
          frame.errorCode,
          frame.type === FrameType.applicationClose,
          // The text is for people: what is not UTF-8 shows as such.
          text.decode(buffer.subarray(frame.reasonStart, frame.reasonLimit)),
        )
        return undefined
      default:
        // PADDING, PING, and DATA_BLOCKED and STREAMS_BLOCKED, which tell what is known.
        return undefined
    }
  }

  #receiveAck(space: PacketSpace, now: Instant): TransportFault | undefined {
    const connection = this.#connection
    const frame = this.#reader
    const largest = frame.ackRanges[1] as number
    // RFC 9000 §21.4: a number that was left out on purpose shows who acknowledges what did not come.
    const exponent = space.space === Space.application ? (connection.handshake.peer?.ackDelayExponent ?? 3) : 3
    const delay = (frame.ackDelay * 2 ** exponent) / 1000
    if (space.space === Space.application) {
      const fault = (space.keys as ApplicationKeys).onAcked(largest)
      if (fault !== undefined) return fault
    }
    const counts = frame.type === FrameType.ackEcn ? frame : undefined
    const fault = connection.recovery.onAck(space.space, frame.ackRanges, frame.ackRangeCount, delay, counts, now)
    connection.mtu.settle()
    return fault
  }

  #receiveCrypto(space: PacketSpace): TransportFault | undefined {
    const { handshake } = this.#connection
    const { buffer, offset, dataStart, dataLimit } = this.#reader
    const fault = space.crypto.receive(offset, buffer, dataStart, dataLimit)
    if (fault !== undefined) return fault
    for (let bytes = space.crypto.read(); bytes !== undefined; bytes = space.crypto.read()) {
      const failed = handshake.receive(space.level, bytes)
      if (failed !== undefined) return failed
    }
    return undefined
  }
}
