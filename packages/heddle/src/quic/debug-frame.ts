import { RangeSet } from '../bytes/index.ts'
import type { Level } from '../native/index.ts'
import { writeAck, type EcnTotals } from './ack-writer.ts'
import { FrameReader, resetTokenSize } from './frame.ts'
import { FrameType } from './frame-type.ts'
import * as frames from './frame-writer.ts'
import type { PacketWriter } from './packet-writer.ts'
import { writeCrypto, writeStream } from './stream-writer.ts'
import type { TransportFault } from './transport-error.ts'

/**
 * One frame as an object, for tests and logs only; the engine reads and writes frames without objects.
 * `RAW` is written only: any octets in the place of a frame.
 */
export type DebugFrame =
  | { readonly type: 'PADDING'; readonly size: number }
  | { readonly type: 'PING' | 'HANDSHAKE_DONE' }
  | {
      readonly type: 'ACK'
      /** The newest first; both ends are acknowledged. */
      readonly ranges: readonly (readonly [smallest: number, largest: number])[]
      readonly delay: number
      readonly ecn?: EcnTotals
    }
  | { readonly type: 'RESET_STREAM'; readonly streamId: number; readonly code: number; readonly finalSize: number }
  | { readonly type: 'STOP_SENDING'; readonly streamId: number; readonly code: number }
  | { readonly type: 'CRYPTO'; readonly offset: number; readonly data: Uint8Array }
  | { readonly type: 'NEW_TOKEN'; readonly token: Uint8Array }
  | { readonly type: 'STREAM'; readonly streamId: number; readonly offset: number; readonly data: Uint8Array; readonly fin: boolean }
  | { readonly type: 'MAX_DATA' | 'DATA_BLOCKED'; readonly maximum: number }
  | { readonly type: 'MAX_STREAM_DATA' | 'STREAM_DATA_BLOCKED'; readonly streamId: number; readonly maximum: number }
  | { readonly type: 'MAX_STREAMS' | 'STREAMS_BLOCKED'; readonly bidirectional: boolean; readonly maximum: number }
  | {
      readonly type: 'NEW_CONNECTION_ID'
      readonly sequence: number
      readonly retirePriorTo: number
      readonly id: Uint8Array
      readonly resetToken: Uint8Array
    }
  | { readonly type: 'RETIRE_CONNECTION_ID'; readonly sequence: number }
  | { readonly type: 'PATH_CHALLENGE' | 'PATH_RESPONSE'; readonly data: Uint8Array }
  | { readonly type: 'CONNECTION_CLOSE'; readonly code: number; readonly frameType: number; readonly reason: string }
  | { readonly type: 'APPLICATION_CLOSE'; readonly code: number; readonly reason: string }
  | { readonly type: 'RAW'; readonly payload: Uint8Array }

/** All frames of a packet's payload, as far as they keep the rules, and what is wrong with the next. */
export function readDebugFrames(
  payload: Uint8Array,
  level: Level,
  fromServer: boolean,
): { readonly frames: DebugFrame[]; readonly fault: TransportFault | undefined } {
  const reader = new FrameReader(fromServer)
  const found: DebugFrame[] = []
  reader.start(payload, 0, payload.length, level)
  while (reader.next()) found.push(debugFrame(reader))
  return { frames: found, fault: reader.fault }
}

/** The frame that `reader` stands on. Its octets are copied. */
export function debugFrame(reader: FrameReader): DebugFrame {
  const { streamId, maximum, errorCode: code, offset, sequence, fin } = reader
  switch (reader.type) {
    case FrameType.padding:
      return { type: 'PADDING', size: reader.frameLimit - reader.frameStart }
    case FrameType.ping:
      return { type: 'PING' }
    case FrameType.ack:
    case FrameType.ackEcn:
      return debugAck(reader)
    case FrameType.resetStream:
      return { type: 'RESET_STREAM', streamId, code, finalSize: reader.finalSize }
    case FrameType.stopSending:
      return { type: 'STOP_SENDING', streamId, code }
    case FrameType.crypto:
      return { type: 'CRYPTO', offset, data: dataOf(reader) }
    case FrameType.newToken:
      return { type: 'NEW_TOKEN', token: octets(reader, reader.tokenStart, reader.tokenLimit) }
    case FrameType.stream:
      return { type: 'STREAM', streamId, offset, data: dataOf(reader), fin }
    case FrameType.maxData:
      return { type: 'MAX_DATA', maximum }
    case FrameType.maxStreamData:
      return { type: 'MAX_STREAM_DATA', streamId, maximum }
    case FrameType.maxStreamsBidirectional:
    case FrameType.maxStreamsUnidirectional:
      return { type: 'MAX_STREAMS', bidirectional: reader.type === FrameType.maxStreamsBidirectional, maximum }
    case FrameType.dataBlocked:
      return { type: 'DATA_BLOCKED', maximum }
    case FrameType.streamDataBlocked:
      return { type: 'STREAM_DATA_BLOCKED', streamId, maximum }
    case FrameType.streamsBlockedBidirectional:
    case FrameType.streamsBlockedUnidirectional:
      return { type: 'STREAMS_BLOCKED', bidirectional: reader.type === FrameType.streamsBlockedBidirectional, maximum }
    case FrameType.newConnectionId:
      return {
        type: 'NEW_CONNECTION_ID',
        sequence,
        retirePriorTo: reader.retirePriorTo,
        id: octets(reader, reader.connectionIdStart, reader.connectionIdLimit),
        resetToken: octets(reader, reader.resetTokenStart, reader.resetTokenStart + resetTokenSize),
      }
    case FrameType.retireConnectionId:
      return { type: 'RETIRE_CONNECTION_ID', sequence }
    case FrameType.pathChallenge:
      return { type: 'PATH_CHALLENGE', data: dataOf(reader) }
    case FrameType.pathResponse:
      return { type: 'PATH_RESPONSE', data: dataOf(reader) }
    case FrameType.connectionClose:
      return { type: 'CONNECTION_CLOSE', code, frameType: reader.closeFrameType, reason: reasonOf(reader) }
    case FrameType.applicationClose:
      return { type: 'APPLICATION_CLOSE', code, reason: reasonOf(reader) }
    default:
      return { type: 'HANDSHAKE_DONE' }
  }
}

/** Appends `frame` to the open packet; false, and nothing written, if it does not fit as a whole. */
export function writeDebugFrame(writer: PacketWriter, frame: DebugFrame): boolean {
  switch (frame.type) {
    case 'PADDING':
      return frames.writePadding(writer, frame.size)
    case 'PING':
      return frames.writePing(writer)
    case 'HANDSHAKE_DONE':
      return frames.writeHandshakeDone(writer)
    case 'ACK':
      return writeAck(writer, rangeSetOf(frame.ranges), frame.delay, frame.ecn)
    case 'RESET_STREAM':
      return frames.writeResetStream(writer, frame.streamId, frame.code, frame.finalSize)
    case 'STOP_SENDING':
      return frames.writeStopSending(writer, frame.streamId, frame.code)
    case 'CRYPTO':
      return whole(writer, frame.data, () => writeCrypto(writer, frame.offset, frame.data, 0, frame.data.length))
    case 'NEW_TOKEN':
      return frames.writeNewToken(writer, frame.token)
    case 'STREAM':
      return whole(writer, frame.data, () => writeStream(writer, frame.streamId, frame.offset, frame.data, 0, frame.data.length, frame.fin))
    case 'MAX_DATA':
      return frames.writeMaxData(writer, frame.maximum)
    case 'DATA_BLOCKED':
      return frames.writeDataBlocked(writer, frame.maximum)
    case 'MAX_STREAM_DATA':
      return frames.writeMaxStreamData(writer, frame.streamId, frame.maximum)
    case 'STREAM_DATA_BLOCKED':
      return frames.writeStreamDataBlocked(writer, frame.streamId, frame.maximum)
    case 'MAX_STREAMS':
      return frames.writeMaxStreams(writer, frame.bidirectional, frame.maximum)
    case 'STREAMS_BLOCKED':
      return frames.writeStreamsBlocked(writer, frame.bidirectional, frame.maximum)
    case 'NEW_CONNECTION_ID':
      return frames.writeNewConnectionId(writer, frame.sequence, frame.retirePriorTo, frame.id, frame.resetToken)
    case 'RETIRE_CONNECTION_ID':
      return frames.writeRetireConnectionId(writer, frame.sequence)
    case 'PATH_CHALLENGE':
      return frames.writePathChallenge(writer, frame.data)
    case 'PATH_RESPONSE':
      return frames.writePathResponse(writer, frame.data)
    case 'CONNECTION_CLOSE':
      return frames.writeConnectionClose(writer, frame.code, frame.frameType, frame.reason)
    case 'APPLICATION_CLOSE':
      return frames.writeApplicationClose(writer, frame.code, frame.reason)
    case 'RAW':
      if (frame.payload.length > writer.room) return false
      writer.buffer.set(frame.payload, writer.at)
      writer.at += frame.payload.length
      return true
  }
}

/** Takes the frame back if only a part of `data` found room. */
function whole(writer: PacketWriter, data: Uint8Array, write: () => number): boolean {
  const { at, ackEliciting } = writer
  if (write() === data.length) return true
  writer.at = at
  writer.ackEliciting = ackEliciting
  return false
}

function rangeSetOf(ranges: readonly (readonly [smallest: number, largest: number])[]): RangeSet {
  const set = new RangeSet()
  for (const [smallest, largest] of ranges) set.add(smallest, largest + 1)
  return set
}

function debugAck(reader: FrameReader): DebugFrame {
  const { ackRanges, ackRangeCount, ackDelay: delay, ect0, ect1, ce } = reader
  const ranges = Array.from({ length: ackRangeCount }, (_, i) => [ackRanges[2 * i] as number, ackRanges[2 * i + 1] as number] as const)
  return reader.type === FrameType.ack ? { type: 'ACK', ranges, delay } : { type: 'ACK', ranges, delay, ecn: { ect0, ect1, ce } }
}

function dataOf(reader: FrameReader): Uint8Array {
  return octets(reader, reader.dataStart, reader.dataLimit)
}

function reasonOf(reader: FrameReader): string {
  return new TextDecoder().decode(octets(reader, reader.reasonStart, reader.reasonLimit))
}

/** A copy, and never a Buffer. */
function octets(reader: FrameReader, start: number, limit: number): Uint8Array {
  return new Uint8Array(reader.buffer.subarray(start, limit))
}
