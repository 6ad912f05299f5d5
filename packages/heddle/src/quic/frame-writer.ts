/**
 * One function for each frame (RFC 9000 §19). Each appends its frame to the open packet of `writer`, or
 * returns false and writes nothing if there is no room. Which level takes which frame is the caller's
 * to know ({@link isFrameAllowed}).
 */
import { varintSize, writeVarint, writeVarintOfSize } from '../bytes/index.ts'
import { FrameType } from './frame-type.ts'
import type { PacketWriter } from './packet-writer.ts'

/** Appends `count` octets of PADDING. */
export function writePadding(writer: PacketWriter, count: number): boolean {
  if (count > writer.room) return false
  writer.buffer.fill(0, writer.at, writer.at + count)
  writer.at += count
  if (count > 0) writer.padded = true
  return true
}

/** Appends PING. */
export function writePing(writer: PacketWriter): boolean {
  return writeBare(writer, FrameType.ping)
}

/** Appends HANDSHAKE_DONE. */
export function writeHandshakeDone(writer: PacketWriter): boolean {
  return writeBare(writer, FrameType.handshakeDone)
}

/** Appends RESET_STREAM. */
export function writeResetStream(writer: PacketWriter, streamId: number, errorCode: number, finalSize: number): boolean {
  return writeThree(writer, FrameType.resetStream, streamId, errorCode, finalSize)
}

/** Appends STOP_SENDING. */
export function writeStopSending(writer: PacketWriter, streamId: number, errorCode: number): boolean {
  return writeTwo(writer, FrameType.stopSending, streamId, errorCode)
}

/** Appends NEW_TOKEN; the token is not empty. */
export function writeNewToken(writer: PacketWriter, token: Uint8Array): boolean {
  const { length } = token
  if (1 + varintSize(length) + length > writer.room) return false
  const at = writeVarint(writer.buffer, start(writer, FrameType.newToken), length)
  writer.buffer.set(token, at)
  writer.at = at + length
  return true
}

/** Appends MAX_DATA. */
export function writeMaxData(writer: PacketWriter, maximum: number): boolean {
  return writeOne(writer, FrameType.maxData, maximum)
}

/** Appends MAX_STREAM_DATA. */
export function writeMaxStreamData(writer: PacketWriter, streamId: number, maximum: number): boolean {
  return writeTwo(writer, FrameType.maxStreamData, streamId, maximum)
}

/** Appends MAX_STREAMS: how many streams of a kind the peer may have opened in all. */
export function writeMaxStreams(writer: PacketWriter, bidirectional: boolean, maximum: number): boolean {
  return writeOne(writer, bidirectional ? FrameType.maxStreamsBidirectional : FrameType.maxStreamsUnidirectional, maximum)
}

/** Appends DATA_BLOCKED. */
export function writeDataBlocked(writer: PacketWriter, maximum: number): boolean {
  return writeOne(writer, FrameType.dataBlocked, maximum)
}

/** Appends STREAM_DATA_BLOCKED. */
export function writeStreamDataBlocked(writer: PacketWriter, streamId: number, maximum: number): boolean {
  return writeTwo(writer, FrameType.streamDataBlocked, streamId, maximum)
}

/** Appends STREAMS_BLOCKED. */
export function writeStreamsBlocked(writer: PacketWriter, bidirectional: boolean, maximum: number): boolean {
  return writeOne(writer, bidirectional ? FrameType.streamsBlockedBidirectional : FrameType.streamsBlockedUnidirectional, maximum)
}

/** Appends NEW_CONNECTION_ID; the id has 1–20 octets, the stateless reset token 16. */
export function writeNewConnectionId(
  writer: PacketWriter,
  sequence: number,
  retirePriorTo: number,
  id: Uint8Array,
  resetToken: Uint8Array,
): boolean {
  if (2 + varintSize(sequence) + varintSize(retirePriorTo) + id.length + resetToken.length > writer.room) return false
  const { buffer } = writer
  let at = writeVarint(buffer, start(writer, FrameType.newConnectionId), sequence)
  at = writeVarint(buffer, at, retirePriorTo)
  buffer[at++] = id.length
  buffer.set(id, at)
  at += id.length
  buffer.set(resetToken, at)
  writer.at = at + resetToken.length
  return true
}

/** Appends RETIRE_CONNECTION_ID. */
export function writeRetireConnectionId(writer: PacketWriter, sequence: number): boolean {
  return writeOne(writer, FrameType.retireConnectionId, sequence)
}

/** Appends PATH_CHALLENGE with the 8 octets of `challenge`. */
export function writePathChallenge(writer: PacketWriter, challenge: Uint8Array): boolean {
  return writeEight(writer, FrameType.pathChallenge, challenge)
}

/** Appends PATH_RESPONSE with the 8 octets of `challenge`. */
export function writePathResponse(writer: PacketWriter, challenge: Uint8Array): boolean {
  return writeEight(writer, FrameType.pathResponse, challenge)
}

/** Appends CONNECTION_CLOSE of type 0x1c: a transport error. As much of `reason` as fits is written, whole characters only. */
export function writeConnectionClose(writer: PacketWriter, errorCode: number, frameType: number, reason: string): boolean {
  const needed = 1 + varintSize(errorCode) + varintSize(frameType) + 1
  if (needed > writer.room) return false
  let at = putType(writer, FrameType.connectionClose)
  at = writeVarint(writer.buffer, at, errorCode)
  putReason(writer, writeVarint(writer.buffer, at, frameType), reason)
  return true
}

/** Appends CONNECTION_CLOSE of type 0x1d: the application's error. As much of `reason` as fits is written, whole characters only. */
export function writeApplicationClose(writer: PacketWriter, errorCode: number, reason: string): boolean {
  if (1 + varintSize(errorCode) + 1 > writer.room) return false
  putReason(writer, writeVarint(writer.buffer, putType(writer, FrameType.applicationClose), errorCode), reason)
  return true
}

const utf8 = new TextEncoder()

function putReason(writer: PacketWriter, at: number, reason: string): void {
  const { buffer, limit } = writer
  // The size of the length is fixed before the text is coded: two octets are enough for a datagram's room.
  const size = limit - at < 2 || reason === '' ? 1 : 2
  const behind = at + size
  const most = Math.min(limit - behind, size === 1 ? 0 : 0x3fff)
  const { written } = utf8.encodeInto(reason, buffer.subarray(behind, behind + most))
  writeVarintOfSize(buffer, at, written, size)
  writer.at = behind + written
}

/** Writes the type and marks the packet: the frame asks for an acknowledgement. Returns the position behind it. */
function start(writer: PacketWriter, type: number): number {
  writer.ackEliciting = true
  return putType(writer, type)
}

function putType(writer: PacketWriter, type: number): number {
  writer.buffer[writer.at] = type
  return writer.at + 1
}

function writeBare(writer: PacketWriter, type: number): boolean {
  if (writer.room < 1) return false
  writer.at = start(writer, type)
  return true
}

function writeOne(writer: PacketWriter, type: number, value: number): boolean {
  if (1 + varintSize(value) > writer.room) return false
  writer.at = writeVarint(writer.buffer, start(writer, type), value)
  return true
}

function writeTwo(writer: PacketWriter, type: number, first: number, second: number): boolean {
  if (1 + varintSize(first) + varintSize(second) > writer.room) return false
  const at = writeVarint(writer.buffer, start(writer, type), first)
  writer.at = writeVarint(writer.buffer, at, second)
  return true
}

function writeThree(writer: PacketWriter, type: number, first: number, second: number, third: number): boolean {
  if (1 + varintSize(first) + varintSize(second) + varintSize(third) > writer.room) return false
  let at = writeVarint(writer.buffer, start(writer, type), first)
  at = writeVarint(writer.buffer, at, second)
  writer.at = writeVarint(writer.buffer, at, third)
  return true
}

function writeEight(writer: PacketWriter, type: number, octets: Uint8Array): boolean {
  if (9 > writer.room) return false
  const at = start(writer, type)
  for (let i = 0; i < 8; i++) writer.buffer[at + i] = octets[i] as number
  writer.at = at + 8
  return true
}
