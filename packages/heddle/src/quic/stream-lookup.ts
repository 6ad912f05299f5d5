/** Which stream a frame is for: one that is there, one that begins with it, or one that it cannot be for. */
import type { FrameType } from './frame-type.ts'
import { Stream } from './quic-stream.ts'
import { ReceiveHalf } from './receive-stream.ts'
import { SendHalf } from './send-stream.ts'
import type { StreamSet } from './stream-set.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** The stream of a frame that a sender sends; undefined: it is over and the frame late; or what is wrong. */
export function receiverOf(set: StreamSet, id: number, frameType: FrameType): Stream | TransportFault | undefined {
  // RFC 9000 §19.4, §19.8, §19.13: the peer sends nothing on a unidirectional stream of ours.
  if ((id & 2) !== 0 && !set.ids.isPeers(id)) return wrongState(frameType, 'data for a stream that only this end sends on')
  return find(set, id, frameType)
}

/** The stream of a frame that a receiver sends; as above. */
export function senderOf(set: StreamSet, id: number, frameType: FrameType): Stream | TransportFault | undefined {
  // RFC 9000 §19.5, §19.10.
  if ((id & 2) !== 0 && set.ids.isPeers(id)) {
    return wrongState(frameType, 'a frame about sending on a stream that only the peer sends on')
  }
  return find(set, id, frameType)
}

function find(set: StreamSet, id: number, frameType: FrameType): Stream | TransportFault | undefined {
  // What is left of the packet that ended the connection opens no streams.
  if (set.isClosed) return undefined
  const known = set.table.get(id)
  if (known !== undefined) return known
  const { ids } = set
  if (!ids.isPeers(id)) {
    // RFC 9000 §19.8: a stream that this end has not opened yet.
    return ids.wasOpened(id) ? undefined : wrongState(frameType, 'a frame for a stream that was not opened yet')
  }
  const arrival = ids.arrive(id)
  if (arrival === 'over') return undefined
  // RFC 9000 §4.6.
  if (arrival === 'beyond') return transportFault(TransportError.streamLimitError, frameType, 'more streams than are allowed')
  const stream = makeStream(set, id)
  stream.handler = set.owner.onStream(stream)
  // What it was told of may have made it end the connection.
  return set.isClosed ? undefined : stream
}

/** A new stream in the table, with what the peer allows it at first. */
export function makeStream(set: StreamSet, id: number): Stream {
  const { ids, peer } = set
  const { initialMaxStreamData, largestWindow } = set.limits
  const isPeers = ids.isPeers(id)
  const isUnidirectional = (id & 2) !== 0
  let limit = 0
  if (peer !== undefined) {
    if (isUnidirectional) limit = peer.initialMaxStreamDataUni
    // "Local" is said from the side of the peer.
    else limit = isPeers ? peer.initialMaxStreamDataBidiLocal : peer.initialMaxStreamDataBidiRemote
  }
  const sending = isUnidirectional && isPeers ? undefined : new SendHalf(limit)
  const receiving = isUnidirectional && !isPeers ? undefined : new ReceiveHalf(initialMaxStreamData, largestWindow)
  const stream = new Stream(id, set, sending, receiving)
  set.table.set(id, stream)
  return stream
}

function wrongState(frameType: FrameType, reason: string): TransportFault {
  return transportFault(TransportError.streamStateError, frameType, reason)
}
