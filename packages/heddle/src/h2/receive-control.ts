import { latin1Slice } from '../bytes/index.ts'
import { parsePriority, PeerError, readOrigins } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, errorName, Flag, readUint31, readUint32 } from './frame.ts'
import { Phase } from './state.ts'

/** Credit of less than this, given when it is needed, makes us send tiny frames. */
const smallUpdate = 64
/** The most of a GOAWAY's debug data that goes into an error. */
const longestDebug = 128

// Each of these takes the payload `buffer[start, limit)` of a frame that is complete.

export function receivePriority(owner: Connection, buffer: Uint8Array, start: number, limit: number, streamId: number): void {
  const { exchanges, lifetime } = owner
  if (streamId === 0) return lifetime.fail(ErrorCode.ProtocolError, 'PRIORITY on stream 0')
  // RFC 9113 §6.3: the priorities themselves are obsolete; what is malformed is an error of the stream.
  const length = limit - start
  const fault = length !== 5 ? ErrorCode.FrameSizeError : readUint31(buffer, start) === streamId ? ErrorCode.ProtocolError : 0
  if (fault === 0) return
  const stream = exchanges.table.get(streamId)
  if (stream !== undefined) exchanges.fault(stream, fault, 'a malformed PRIORITY')
  // RFC 9113 §5.1: RST_STREAM cannot be sent for an idle stream.
  else if (exchanges.isIdle(streamId)) lifetime.fail(fault, 'a malformed PRIORITY on an idle stream')
  else exchanges.refuse(streamId, fault)
}

export function receivePriorityUpdate(
  owner: Connection,
  buffer: Uint8Array,
  start: number,
  limit: number,
  streamId: number,
  early: Map<number, string>,
): void {
  const { exchanges, sender, lifetime, emptyFrames } = owner
  // RFC 9218 §7.1
  if (streamId !== 0) return lifetime.fail(ErrorCode.ProtocolError, 'PRIORITY_UPDATE on a stream')
  if (!owner.isServer) return lifetime.fail(ErrorCode.ProtocolError, 'PRIORITY_UPDATE from a server')
  if (limit - start < 4) return lifetime.fail(ErrorCode.FrameSizeError, `PRIORITY_UPDATE of ${limit - start} octets`)
  const prioritized = readUint31(buffer, start)
  if (prioritized === 0) return lifetime.fail(ErrorCode.ProtocolError, 'PRIORITY_UPDATE for stream 0')
  if (!emptyFrames.take(owner.now)) return lifetime.fail(ErrorCode.EnhanceYourCalm, 'too many changes of priority')
  const value = latin1Slice(buffer, start + 4, limit)
  const stream = exchanges.table.get(prioritized)
  if (stream === undefined) {
    // RFC 9218 §7.1: it may come before its request. Few do, so few are kept.
    if (exchanges.isIdle(prioritized) && (early.size < mostEarly || early.has(prioritized))) early.set(prioritized, value)
    return
  }
  const priority = parsePriority(value)
  sender.prioritize(stream, priority)
  try {
    stream.handler.onPriority(priority)
  } catch (error) {
    exchanges.handlerFailed(stream, error)
  }
}

const mostEarly = 32

export function receiveReset(owner: Connection, buffer: Uint8Array, start: number, limit: number, streamId: number): void {
  const { exchanges, lifetime } = owner
  if (limit - start !== 4) return lifetime.fail(ErrorCode.FrameSizeError, `RST_STREAM of ${limit - start} octets`)
  // RFC 9113 §6.4
  if (streamId === 0 || exchanges.isIdle(streamId)) return lifetime.fail(ErrorCode.ProtocolError, 'RST_STREAM on an idle stream')
  const code = readUint32(buffer, start)
  const stream = exchanges.table.get(streamId)
  owner.resets?.countReceived(code)
  if (stream === undefined) {
    exchanges.isRemembered(streamId, true)
    if (!owner.emptyFrames.take(owner.now)) lifetime.fail(ErrorCode.EnhanceYourCalm, 'too many resets of nothing')
    return
  }
  // RFC 9113 §8.1: a server that needs no more of the request says NO_ERROR behind its response.
  if (code === ErrorCode.NoError && stream.receiving === Phase.Ended && !owner.isServer) exchanges.finishedByPeer(stream)
  // A client that has its response and stops an upload does as it should; it cost what any request costs.
  else if (stream.abandonAt > 0) return exchanges.finishedByPeer(stream)
  else {
    const facts = { wireCode: code, scope: 'stream', unprocessed: code === ErrorCode.RefusedStream } as const
    exchanges.close(stream, new PeerError('PEER_RESET', `the peer reset the stream: ${errorName(code)}`, facts))
  }
  // CVE-2023-44487: requests that are reset at once cost the client nothing.
  if (owner.isServer && !owner.peerResets.take(owner.now)) lifetime.fail(ErrorCode.EnhanceYourCalm, 'too many resets')
}

export function receiveSettings(
  owner: Connection,
  buffer: Uint8Array,
  start: number,
  limit: number,
  flags: number,
  streamId: number,
): void {
  const { peer, exchanges, sender, lifetime, encoder } = owner
  const length = limit - start
  // RFC 9113 §6.5
  if (streamId !== 0) return lifetime.fail(ErrorCode.ProtocolError, 'SETTINGS on a stream')
  if ((flags & Flag.Ack) !== 0) {
    if (length !== 0) return lifetime.fail(ErrorCode.FrameSizeError, 'an acknowledgement with settings')
    return owner.receiveSettingsAck()
  }
  if (length % 6 !== 0) return lifetime.fail(ErrorCode.FrameSizeError, `SETTINGS of ${length} octets`)
  const windowBefore = peer.initialWindowSize
  const code = peer.read(buffer, start, limit, !owner.isServer)
  if (code !== ErrorCode.NoError) return lifetime.fail(code, 'a setting that must not be')
  // RFC 9113 §6.9.2: a change of the initial window counts for the streams there are.
  const change = peer.initialWindowSize - windowBefore
  if (change !== 0) {
    for (const stream of exchanges.table.all()) {
      if (!stream.growSend(change)) return lifetime.fail(ErrorCode.FlowControlError, 'a window above 2^31 - 1')
      if (stream.sendWindow > 0) sender.maybeReady(stream)
      else sender.schedule.remove(stream)
    }
  }
  encoder.allowTableSize(peer.headerTableSize)
  sender.staging.settingsAck()
  owner.settingsChanged()
  exchanges.settingsCame()
}

export function receivePing(owner: Connection, buffer: Uint8Array, start: number, limit: number, flags: number, streamId: number): void {
  const { lifetime, liveness, sender } = owner
  // RFC 9113 §6.7
  if (limit - start !== 8) return lifetime.fail(ErrorCode.FrameSizeError, `PING of ${limit - start} octets`)
  if (streamId !== 0) return lifetime.fail(ErrorCode.ProtocolError, 'PING on a stream')
  const first = readUint32(buffer, start)
  const second = readUint32(buffer, start + 4)
  if ((flags & Flag.Ack) !== 0) liveness.answered(first, second)
  else sender.staging.ping(Flag.Ack, first, second)
}

export function receiveGoaway(owner: Connection, buffer: Uint8Array, start: number, limit: number, streamId: number): void {
  const { lifetime } = owner
  // RFC 9113 §6.8
  if (streamId !== 0) return lifetime.fail(ErrorCode.ProtocolError, 'GOAWAY on a stream')
  if (limit - start < 8) return lifetime.fail(ErrorCode.FrameSizeError, `GOAWAY of ${limit - start} octets`)
  const debug = latin1Slice(buffer, start + 8, Math.min(limit, start + 8 + longestDebug))
  lifetime.receiveGoaway(readUint31(buffer, start), readUint32(buffer, start + 4), debug)
}

export function receiveWindowUpdate(owner: Connection, buffer: Uint8Array, start: number, limit: number, streamId: number): void {
  const { exchanges, sender, lifetime, windows } = owner
  // RFC 9113 §6.9
  if (limit - start !== 4) return lifetime.fail(ErrorCode.FrameSizeError, `WINDOW_UPDATE of ${limit - start} octets`)
  const increment = readUint31(buffer, start)
  if (streamId === 0) {
    if (increment === 0) return lifetime.fail(ErrorCode.ProtocolError, 'WINDOW_UPDATE by 0')
    if (!windows.growSend(increment)) return lifetime.fail(ErrorCode.FlowControlError, 'a window above 2^31 - 1')
    judgeIncrement(owner, increment, windows.sendWindow)
    return
  }
  const stream = exchanges.table.get(streamId)
  if (stream === undefined) {
    if (exchanges.isIdle(streamId)) lifetime.fail(ErrorCode.ProtocolError, 'WINDOW_UPDATE on an idle stream')
    return
  }
  if (increment === 0) return exchanges.fault(stream, ErrorCode.ProtocolError, 'WINDOW_UPDATE by 0')
  if (!stream.growSend(increment)) return exchanges.fault(stream, ErrorCode.FlowControlError, 'a window above 2^31 - 1')
  if (judgeIncrement(owner, increment, stream.sendWindow)) sender.maybeReady(stream)
}

/** A window given by the spoonful makes us send tiny frames; false: it was done too often. */
function judgeIncrement(owner: Connection, increment: number, window: number): boolean {
  if (increment >= smallUpdate || window >= smallUpdate * 16 || owner.emptyFrames.take(owner.now)) return true
  owner.lifetime.fail(ErrorCode.EnhanceYourCalm, 'too many small window updates')
  return false
}

export function receiveOrigin(owner: Connection, buffer: Uint8Array, start: number, limit: number, streamId: number): void {
  // RFC 8336 §2.1: ignored on a stream, and by servers.
  if (streamId !== 0 || owner.isServer) return
  owner.originSet ??= new Set()
  readOrigins(buffer, start, limit, owner.originSet)
}
