/** STREAM and CRYPTO frames: those whose data is cut to the room that a packet has. */
import { varintSize, writeVarint } from '../bytes/index.ts'
import { FrameType, StreamFlag } from './frame-type.ts'
import type { PacketWriter } from './packet-writer.ts'

/**
 * Starts a STREAM frame for `wanted` octets at `offset`, and returns how many of them it takes, or −1
 * if there is no room for the frame (or only for one without any of the octets wanted). The caller then
 * copies that many octets to `writer.buffer` at `writer.at - taken`. `fin` is set only if all are taken:
 * a frame with FIN may have no octets.
 */
export function startStream(writer: PacketWriter, streamId: number, offset: number, wanted: number, fin: boolean): number {
  const headerSize = 1 + varintSize(streamId) + (offset === 0 ? 0 : varintSize(offset))
  const room = writer.room - headerSize
  if (room < 0 || (room === 0 && wanted > 0)) return -1
  // RFC 9000 §19.8: without a length the data goes to the end of the packet, so it must fill the packet.
  let taken = room
  let type = FrameType.stream | (offset === 0 ? 0 : StreamFlag.offset)
  if (wanted < room) {
    if (room - wanted < varintSize(wanted)) {
      // Not enough room for the length: PADDING in front moves the data to the end of the packet.
      pad(writer, room - wanted)
      taken = wanted
    } else {
      type |= StreamFlag.length
      taken = wanted
    }
  }
  if (fin && taken === wanted) type |= StreamFlag.fin

  const { buffer } = writer
  writer.ackEliciting = true
  buffer[writer.at] = type
  let at = writeVarint(buffer, writer.at + 1, streamId)
  if (offset !== 0) at = writeVarint(buffer, at, offset)
  if ((type & StreamFlag.length) !== 0) at = writeVarint(buffer, at, taken)
  writer.at = at + taken
  return taken
}

/**
 * Starts a CRYPTO frame for `wanted` octets at `offset`, and returns how many of them it takes, or −1 if
 * there is no room for any. The caller then copies that many octets to `writer.buffer` at
 * `writer.at - taken`.
 */
export function startCrypto(writer: PacketWriter, offset: number, wanted: number): number {
  const room = writer.room - 1 - varintSize(offset)
  let taken = Math.min(wanted, room - 1)
  if (taken > 0x3f) taken = Math.min(wanted, room - 2)
  if (taken > 0x3fff) taken = Math.min(wanted, room - 4)
  if (taken <= 0) return -1

  const { buffer } = writer
  writer.ackEliciting = true
  buffer[writer.at] = FrameType.crypto
  const at = writeVarint(buffer, writeVarint(buffer, writer.at + 1, offset), taken)
  writer.at = at + taken
  return taken
}

/** Appends a STREAM frame with as much of `source` from `start` to `limit` as fits: see {@link startStream}. */
export function writeStream(
  writer: PacketWriter,
  streamId: number,
  offset: number,
  source: Uint8Array,
  start: number,
  limit: number,
  fin: boolean,
): number {
  const taken = startStream(writer, streamId, offset, limit - start, fin)
  if (taken > 0) writer.buffer.set(source.subarray(start, start + taken), writer.at - taken)
  return taken
}

/** Appends a CRYPTO frame with as much of `source` from `start` to `limit` as fits: see {@link startCrypto}. */
export function writeCrypto(writer: PacketWriter, offset: number, source: Uint8Array, start: number, limit: number): number {
  const taken = startCrypto(writer, offset, limit - start)
  if (taken > 0) writer.buffer.set(source.subarray(start, start + taken), writer.at - taken)
  return taken
}

function pad(writer: PacketWriter, count: number): void {
  writer.buffer.fill(0, writer.at, writer.at + count)
  writer.at += count
  writer.padded = true
}
