import { ByteReader, largestVarint, varintSize } from '../bytes/index.ts'
import type { Level } from '../native/index.ts'
import { FrameType, isAckEliciting, isFrameAllowed, isKnownFrameType, isProbing, StreamFlag } from './frame-type.ts'
import { maxConnectionIdSize } from './packet.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** RFC 9000 §4.6: more streams than this have no id. */
const mostStreams = 2 ** 60
/** Octets of a stateless reset token. */
export const resetTokenSize = 16
/** Ranges of an ACK frame that are kept: no sender of sense has more, and the oldest matter least. */
const mostAckRanges = 1024

const none = new Uint8Array(0)

/**
 * The frames of one packet's payload, one after the other, without an object for any: the fields that a
 * type has are valid after `next` said true, until it is called again. Positions are those of the
 * buffer. A frame that must not be sets `fault` and ends the reading.
 *
 * Numbers above 2^53 are rounded (they are only ever compared with limits far below).
 */
export class FrameReader {
  /** The frames come from a server: it alone sends NEW_TOKEN and HANDSHAKE_DONE. */
  readonly fromServer: boolean
  buffer: Uint8Array
  level: Level
  /** What is wrong with the payload: the connection ends. */
  fault: TransportFault | undefined
  /** A frame so far asks for an acknowledgement. */
  ackEliciting: boolean
  /** A frame so far is none of those that only try a path (RFC 9000 §9.1). */
  nonProbing: boolean

  /** A {@link FrameType}; `stream` for all eight types of STREAM frames. A run of PADDING is one frame. */
  type: FrameType
  /** Where the frame begins. */
  frameStart: number
  streamId: number
  /** Of CRYPTO and STREAM data. */
  offset: number
  /** Data of CRYPTO and STREAM, and the 8 octets of PATH_CHALLENGE and PATH_RESPONSE. */
  dataStart: number
  dataLimit: number
  fin: boolean
  /** Of RESET_STREAM, STOP_SENDING and both types of CONNECTION_CLOSE. */
  errorCode: number
  finalSize: number
  /** Of MAX_* and *_BLOCKED. */
  maximum: number
  /** Of NEW_CONNECTION_ID and RETIRE_CONNECTION_ID. */
  sequence: number
  retirePriorTo: number
  connectionIdStart: number
  connectionIdLimit: number
  /** The 16 octets of NEW_CONNECTION_ID's stateless reset token begin here. */
  resetTokenStart: number
  /** Of NEW_TOKEN. */
  tokenStart: number
  tokenLimit: number
  /** As it came, in units of 2^ack_delay_exponent µs. */
  ackDelay: number
  /** `[smallest, largest]` pairs, the newest first; both are acknowledged. */
  ackRanges: Float64Array
  /** Pairs in `ackRanges`; at least 1. */
  ackRangeCount: number
  /** ECN counts; meaningful for `ackEcn` only. */
  ect0: number
  ect1: number
  ce: number
  /** The type of the frame that a CONNECTION_CLOSE of type 0x1c blames; 0 for none. */
  closeFrameType: number
  /** The reason phrase of CONNECTION_CLOSE: UTF-8, if the peer keeps the rules. */
  reasonStart: number
  reasonLimit: number

  readonly #reader: ByteReader

  constructor(fromServer: boolean) {
    this.fromServer = fromServer
    this.buffer = none
    this.level = 0
    this.fault = undefined
    this.ackEliciting = false
    this.nonProbing = false
    this.type = FrameType.padding
    this.frameStart = 0
    this.streamId = 0
    this.offset = 0
    this.dataStart = 0
    this.dataLimit = 0
    this.fin = false
    this.errorCode = 0
    this.finalSize = 0
    this.maximum = 0
    this.sequence = 0
    this.retirePriorTo = 0
    this.connectionIdStart = 0
    this.connectionIdLimit = 0
    this.resetTokenStart = 0
    this.tokenStart = 0
    this.tokenLimit = 0
    this.ackDelay = 0
    this.ackRanges = new Float64Array(2 * 32)
    this.ackRangeCount = 0
    this.ect0 = 0
    this.ect1 = 0
    this.ce = 0
    this.closeFrameType = 0
    this.reasonStart = 0
    this.reasonLimit = 0
    this.#reader = new ByteReader()
  }

  /** Behind the last octet of the frame. */
  get frameLimit(): number {
    return this.#reader.at
  }

  /** Begins with the payload of a packet of `level`. */
  start(buffer: Uint8Array, start: number, limit: number, level: Level): void {
    this.buffer = buffer
    this.level = level
    this.ackEliciting = false
    this.nonProbing = false
    this.frameStart = start
    this.#reader.start(buffer, start, limit)
    // RFC 9000 §12.4: a packet has at least one frame.
    this.fault = start < limit ? undefined : transportFault(TransportError.protocolViolation, 0, 'a packet without a frame')
  }

  /** Goes to the next frame; false at the end and after a fault. */
  next(): boolean {
    const reader = this.#reader
    if (reader.remaining <= 0 || this.fault !== undefined) return false
    const start = reader.at
    this.frameStart = start
    const type = reader.varint()
    if (reader.failed) return this.#fail(TransportError.frameEncodingError, 0, 'a frame type is cut off')
    // RFC 9000 §12.4: unknown types are an error, and a type has its shortest coding.
    if (!isKnownFrameType(type)) return this.#fail(TransportError.frameEncodingError, type, 'a frame of unknown type')
    if (reader.at - start !== varintSize(type)) return this.#fail(TransportError.protocolViolation, type, 'a long coding of a frame type')
    if (!isFrameAllowed(type, this.level, this.fromServer)) {
      return this.#fail(TransportError.protocolViolation, type, 'a frame where its type must not be')
    }
    if (isAckEliciting(type)) this.ackEliciting = true
    if (!isProbing(type)) this.nonProbing = true

    const isStream = type >= FrameType.stream && type < FrameType.maxData
    this.type = isStream ? FrameType.stream : type
    const reason = isStream ? this.#readStream(type) : this.#readFields(type)
    if (reader.failed) return this.#fail(TransportError.frameEncodingError, type, 'a frame is cut off')
    return reason === '' || this.#fail(TransportError.frameEncodingError, type, reason)
  }

  /** Reads what follows the type; returns what is wrong with it, or ''. */
  #readFields(type: FrameType): string {
    const reader = this.#reader
    switch (type) {
      case FrameType.padding:
        return this.#readPadding()
      case FrameType.ack:
      case FrameType.ackEcn:
        return this.#readAck(type)
      case FrameType.resetStream:
        this.streamId = reader.varint()
        this.errorCode = reader.varint()
        this.finalSize = reader.varint()
        return ''
      case FrameType.stopSending:
        this.streamId = reader.varint()
        this.errorCode = reader.varint()
        return ''
      case FrameType.crypto:
        this.offset = reader.varint()
        return this.#readData(reader.varint())
      case FrameType.newToken: {
        const size = reader.varint()
        this.tokenStart = reader.skip(size)
        this.tokenLimit = reader.at
        // RFC 9000 §19.7.
        return size === 0 ? 'an empty token' : ''
      }
      case FrameType.maxStreamData:
      case FrameType.streamDataBlocked:
        this.streamId = reader.varint()
        this.maximum = reader.varint()
        return ''
      case FrameType.maxData:
      case FrameType.dataBlocked:
        this.maximum = reader.varint()
        return ''
      case FrameType.maxStreamsBidirectional:
      case FrameType.maxStreamsUnidirectional:
      case FrameType.streamsBlockedBidirectional:
      case FrameType.streamsBlockedUnidirectional:
        return this.#readStreamCount()
      case FrameType.newConnectionId:
        return this.#readNewConnectionId()
      case FrameType.retireConnectionId:
        this.sequence = reader.varint()
        return ''
      case FrameType.pathChallenge:
      case FrameType.pathResponse:
        return this.#readData(8)
      case FrameType.connectionClose:
      case FrameType.applicationClose:
        this.errorCode = reader.varint()
        this.closeFrameType = type === FrameType.connectionClose ? reader.varint() : 0
        this.reasonStart = reader.skip(reader.varint())
        this.reasonLimit = reader.at
        return ''
      default:
        // PING and HANDSHAKE_DONE have nothing but their type.
        return ''
    }
  }

  #readPadding(): string {
    const reader = this.#reader
    const { buffer, limit } = reader
    let at = reader.at
    while (at < limit && buffer[at] === 0) at++
    reader.at = at
    return ''
  }

  #readStream(type: FrameType): string {
    const reader = this.#reader
    this.streamId = reader.varint()
    this.offset = (type & StreamFlag.offset) === 0 ? 0 : reader.varint()
    this.fin = (type & StreamFlag.fin) !== 0
    return this.#readData((type & StreamFlag.length) === 0 ? reader.remaining : reader.varint())
  }

  #readData(size: number): string {
    const reader = this.#reader
    this.dataStart = reader.skip(size)
    this.dataLimit = reader.at
    // RFC 9000 §19.6, §19.8: no octet lies past 2^62 − 1.
    return this.offset + size >= largestVarint && isOffsetType(this.type) ? 'data past the largest offset' : ''
  }

  #readStreamCount(): string {
    const reader = this.#reader
    const start = reader.at
    this.maximum = reader.varint()
    // RFC 9000 §19.11, §19.14: at most 2^60. The last octet tells 2^60 from a number that was rounded to it.
    const rounded = this.maximum === mostStreams && this.buffer[start] === 0xd0 && this.buffer[reader.at - 1] !== 0
    return this.maximum > mostStreams || rounded ? 'more streams than there are ids' : ''
  }

  #readNewConnectionId(): string {
    const reader = this.#reader
    this.sequence = reader.varint()
    this.retirePriorTo = reader.varint()
    const size = reader.uint8()
    this.connectionIdStart = reader.skip(size)
    this.connectionIdLimit = reader.at
    this.resetTokenStart = reader.skip(resetTokenSize)
    // RFC 9000 §19.15.
    if (size === 0 || size > maxConnectionIdSize) return 'a connection id of a size that must not be'
    return this.retirePriorTo > this.sequence ? 'a connection id that retires itself' : ''
  }

  #readAck(type: FrameType): string {
    const reader = this.#reader
    let largest = reader.varint()
    this.ackDelay = reader.varint()
    const more = reader.varint()
    let smallest = largest - reader.varint()
    this.ackRangeCount = 0
    this.#keepRange(smallest, largest)
    // A count may be up to 2^62: the end of the payload ends the loop.
    for (let i = 0; i < more && smallest >= 0 && !reader.failed; i++) {
      // RFC 9000 §19.3.1.
      largest = smallest - reader.varint() - 2
      smallest = largest - reader.varint()
      this.#keepRange(smallest, largest)
    }
    if (smallest < 0) return 'an acknowledged packet number below 0'
    const withEcn = type === FrameType.ackEcn
    this.ect0 = withEcn ? reader.varint() : 0
    this.ect1 = withEcn ? reader.varint() : 0
    this.ce = withEcn ? reader.varint() : 0
    return ''
  }

  #keepRange(smallest: number, largest: number): void {
    const at = this.ackRangeCount * 2
    if (at === mostAckRanges * 2) return
    if (at === this.ackRanges.length) {
      const longer = new Float64Array(at * 2)
      longer.set(this.ackRanges)
      this.ackRanges = longer
    }
    this.ackRanges[at] = smallest
    this.ackRanges[at + 1] = largest
    this.ackRangeCount++
  }

  #fail(code: TransportError, type: FrameType, reason: string): false {
    this.fault = transportFault(code, type, reason)
    return false
  }
}

function isOffsetType(type: FrameType): boolean {
  return type === FrameType.crypto || type === FrameType.stream
}
