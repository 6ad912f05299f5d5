import type { Instant } from '../http/index.ts'
import { Carried, carry } from './carried.ts'
import {
  writeDataBlocked,
  writeMaxData,
  writeMaxStreamData,
  writeMaxStreams,
  writeResetStream,
  writeStopSending,
  writeStreamDataBlocked,
  writeStreamsBlocked,
} from './frame-writer.ts'
import type { PacketWriter } from './packet-writer.ts'
import type { Stream } from './quic-stream.ts'
import { Sending, type SendHalf } from './send-stream.ts'
import type { SentPacket } from './sent-packet.ts'
import type { StreamSet } from './stream-set.ts'
import { startStream } from './stream-writer.ts'

/** A stream has something to send now: whoever asks writes a packet for it. */
export function hasStreamFrames(set: StreamSet): boolean {
  return (
    set.uncredited.length > 0 ||
    set.controlled.length > 0 ||
    (set.schedule.first !== undefined && (set.sendWindow.left > 0 || set.blockedAt !== set.sendWindow.limit)) ||
    hasSetFrames(set)
  )
}

function hasSetFrames({ credit, blocked, ids: { peer, own } }: StreamSet): boolean {
  return credit.isDue || blocked.isDue || peer[0].credit.isDue || peer[1].credit.isDue || own[0].blocked.isDue || own[1].blocked.isDue
}

/** Appends the streams' frames to a packet: credit first, then what the streams themselves have to say. False: there was no room for all. */
export function writeStreamFrames(set: StreamSet, writer: PacketWriter, packet: SentPacket, now: Instant): boolean {
  return (
    writeSetFrames(set, writer, packet, now) &&
    writeControl(set, writer, packet, now) &&
    writeUncredited(set, writer, packet) &&
    writeCredited(set, writer, packet)
  )
}

// ── writing ───────────────────────────────────────────────────────────────────────────────────────

function writeSetFrames(set: StreamSet, writer: PacketWriter, packet: SentPacket, now: Instant): boolean {
  const { packetNumber, carried } = packet
  if (set.credit.isDue) {
    const limit = set.receiveWindow.refill(set.owner.roundTripTime, now)
    if (!writeMaxData(writer, limit)) return false
    set.credit.onSent(packetNumber)
    carry(carried, Carried.maxData, limit)
  }
  if (set.blocked.isDue && !writeBlocked(set, writer, packet)) return false
  return writeIdFrames(set, 0, writer, packet) && writeIdFrames(set, 1, writer, packet)
}

function writeBlocked({ blocked, blockedAt }: StreamSet, writer: PacketWriter, { packetNumber, carried }: SentPacket): boolean {
  if (!writeDataBlocked(writer, blockedAt)) return false
  blocked.onSent(packetNumber)
  carry(carried, Carried.dataBlocked, blockedAt)
  return true
}

function writeIdFrames({ ids }: StreamSet, kind: 0 | 1, writer: PacketWriter, { packetNumber, carried }: SentPacket): boolean {
  const peer = ids.peer[kind]
  if (peer.credit.isDue) {
    const limit = peer.refill()
    if (!writeMaxStreams(writer, kind === 0, limit)) return false
    peer.credit.onSent(packetNumber)
    carry(carried, Carried.maxStreams, kind, limit)
  }
  const { blocked, blockedAt } = ids.own[kind]
  if (!blocked.isDue) return true
  if (!writeStreamsBlocked(writer, kind === 0, blockedAt)) return false
  blocked.onSent(packetNumber)
  carry(carried, Carried.streamsBlocked, kind, blockedAt)
  return true
}

function writeControl(set: StreamSet, writer: PacketWriter, packet: SentPacket, now: Instant): boolean {
  const { controlled } = set
  for (let { first: stream } = controlled; stream !== undefined; { first: stream } = controlled) {
    if (!stream.isClosed && !writeControlOf(set, stream, writer, packet, now)) return false
    controlled.shift()
    stream.isControlled = false
  }
  return true
}

function writeControlOf(set: StreamSet, stream: Stream, writer: PacketWriter, packet: SentPacket, now: Instant): boolean {
  const { id, sending, receiving } = stream
  const { packetNumber, carried } = packet
  if (sending?.resetting.isDue === true) {
    if (!writeResetStream(writer, id, sending.errorCode, sending.finalSize)) return false
    sending.resetting.onSent(packetNumber)
    carry(carried, Carried.resetStream, id)
  }
  if (sending?.blocked.isDue === true) {
    if (!writeStreamDataBlocked(writer, id, sending.blockedAt)) return false
    sending.blocked.onSent(packetNumber)
    carry(carried, Carried.streamDataBlocked, id, sending.blockedAt)
  }
  if (receiving?.stopping.isDue === true) {
    if (!writeStopSending(writer, id, receiving.stopCode)) return false
    receiving.stopping.onSent(packetNumber)
    carry(carried, Carried.stopSending, id)
  }
  if (receiving?.credit.isDue === true) {
    const limit = receiving.window.refill(set.owner.roundTripTime, now)
    if (!writeMaxStreamData(writer, id, limit)) return false
    receiving.credit.onSent(packetNumber)
    carry(carried, Carried.maxStreamData, id, limit)
  }
  return true
}

/** What was lost, and bare ends: they were credited before, or need no credit. */
function writeUncredited(set: StreamSet, writer: PacketWriter, packet: SentPacket): boolean {
  const { uncredited } = set
  for (let { first: stream } = uncredited; stream !== undefined; { first: stream } = uncredited) {
    const sending = stream.sending as SendHalf
    while (sending.hasUncredited) {
      const { lost, next } = sending.buffer
      const offset = lost.isEmpty ? next : lost.min
      const wanted = lost.isEmpty ? 0 : lost.limit(0) - offset
      const taken = writeData(stream, sending, offset, wanted, writer, packet)
      if (taken < 0) return false
      lost.remove(offset, offset + taken)
    }
    uncredited.shift()
    stream.isUncredited = false
  }
  return true
}

/** Octets that are sent for the first time, in the order of the streams' priorities. */
function writeCredited(set: StreamSet, writer: PacketWriter, packet: SentPacket): boolean {
  const { schedule, sendWindow } = set
  for (let { first: stream } = schedule; stream !== undefined; { first: stream } = schedule) {
    const sending = stream.sending as SendHalf
    const { buffer, window } = sending
    const allowed = Math.min(buffer.end, window.limit) - buffer.next
    const wanted = Math.min(allowed, sendWindow.left)
    if (wanted <= 0) return writeBlockedOnce(set, writer, packet)
    const offset = buffer.next
    const taken = writeData(stream, sending, offset, wanted, writer, packet)
    if (taken < 0) return false
    buffer.next += taken
    window.used = buffer.next
    sendWindow.used += taken
    sending.untold += taken
    set.tell(stream)
    if (sending.hasCredited) schedule.rotate(stream)
    else {
      schedule.remove(stream)
      if (sending.isBlocked) set.noteBlocked(stream, sending)
    }
  }
  return true
}

/** Writes a STREAM frame of at most `wanted` octets, with the end if they are the last. Returns how many, or −1. */
function writeData(stream: Stream, sending: SendHalf, offset: number, wanted: number, writer: PacketWriter, packet: SentPacket): number {
  const { buffer, fin } = sending
  const isLast = sending.state === Sending.Finished && offset + wanted === buffer.end
  const taken = startStream(writer, stream.id, offset, wanted, isLast)
  if (taken < 0) return -1
  if (taken > 0) buffer.copy(offset, taken, writer.buffer, writer.at - taken)
  const withFin = isLast && taken === wanted
  // The end may have arrived with octets that are sent again now.
  if (withFin && !fin.isReceived) fin.onSent(packet.packetNumber)
  carry(packet.carried, withFin ? Carried.streamFin : Carried.stream, stream.id, offset, offset + taken)
  return taken
}

/** Octets wait that the connection's window does not take: the peer is told, once for each limit (RFC 9000 §4.1). */
function writeBlockedOnce(set: StreamSet, writer: PacketWriter, packet: SentPacket): boolean {
  const { limit } = set.sendWindow
  if (set.blockedAt === limit) return true
  set.blockedAt = limit
  set.blocked.set()
  return writeBlocked(set, writer, packet)
}

// ── what became of it ─────────────────────────────────────────────────────────────────────────────

/** A packet with the record `[kind, a, b, c]` was acknowledged. */
export function onStreamAcked(set: StreamSet, packetNumber: number, kind: number, a: number, b: number, c: number): void {
  switch (kind) {
    case Carried.stream:
    case Carried.streamFin: {
      const stream = set.table.get(a)
      const sending = stream?.sending
      if (stream === undefined || sending === undefined || sending.state >= Sending.Reset) return
      sending.buffer.onAcked(b, c)
      if (kind === Carried.streamFin) sending.fin.onAcked()
      if (sending.maybeEnd()) set.maybeClose(stream)
      return
    }
    case Carried.resetStream: {
      const stream = set.table.get(a)
      const sending = stream?.sending
      if (stream === undefined || sending === undefined) return
      sending.resetting.onAcked()
      sending.state = Sending.Ended
      set.maybeClose(stream)
      return
    }
    case Carried.stopSending:
      set.table.get(a)?.receiving?.stopping.onAcked()
      return
    case Carried.maxData:
      set.credit.onAckedLatest(packetNumber)
      return
    case Carried.maxStreamData:
      set.table.get(a)?.receiving?.credit.onAckedLatest(packetNumber)
      return
    case Carried.maxStreams:
      set.ids.peer[a as 0 | 1].credit.onAckedLatest(packetNumber)
      return
    case Carried.dataBlocked:
      set.blocked.onAckedLatest(packetNumber)
      return
    case Carried.streamsBlocked:
      set.ids.own[a as 0 | 1].blocked.onAckedLatest(packetNumber)
      return
    case Carried.streamDataBlocked:
      set.table.get(a)?.sending?.blocked.onAckedLatest(packetNumber)
  }
}

/** A packet with the record `[kind, a, b, c]` was lost: what still matters is sent again (RFC 9000 §13.3). */
export function onStreamLost(set: StreamSet, packetNumber: number, kind: number, a: number, b: number, c: number): void {
  switch (kind) {
    case Carried.stream:
    case Carried.streamFin: {
      const stream = set.table.get(a)
      const sending = stream?.sending
      if (stream === undefined || sending === undefined || sending.state >= Sending.Reset) return
      sending.buffer.onLost(b, c)
      if (kind === Carried.streamFin) sending.fin.onLost(packetNumber)
      set.queueAgain(stream)
      return
    }
    case Carried.resetStream:
      return lostControl(set, a, set.table.get(a)?.sending?.resetting, packetNumber)
    case Carried.stopSending:
      return lostControl(set, a, set.table.get(a)?.receiving?.stopping, packetNumber)
    case Carried.maxStreamData:
      return lostControl(set, a, set.table.get(a)?.receiving?.credit, packetNumber)
    case Carried.streamDataBlocked:
      return lostControl(set, a, set.table.get(a)?.sending?.blocked, packetNumber)
    case Carried.maxData:
      set.credit.onLost(packetNumber)
      return
    case Carried.maxStreams:
      set.ids.peer[a as 0 | 1].credit.onLost(packetNumber)
      return
    case Carried.dataBlocked:
      set.blocked.onLost(packetNumber)
      return
    case Carried.streamsBlocked:
      set.ids.own[a as 0 | 1].blocked.onLost(packetNumber)
  }
}

function lostControl(
  set: StreamSet,
  id: number,
  value: { readonly isDue: boolean; onLost(packetNumber: number): void } | undefined,
  packetNumber: number,
): void {
  const stream = set.table.get(id)
  if (stream === undefined || value === undefined) return
  value.onLost(packetNumber)
  if (value.isDue) set.controlAgain(stream)
}
