import type { FieldSection } from '../fieldcode/index.ts'
import { Head, heldLength, lengthFault, noLength, parsePriority, ProtocolError, responseHead } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode } from './frame.ts'
import { contentTooLarge } from './receive-data.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'

const fieldsTooLarge = responseHead(431, ['content-length', '0'])

/** Server: a request begins. `early`: what PRIORITY_UPDATE said before it, or empty. */
export function receiveRequest(owner: Connection, streamId: number, section: FieldSection, end: boolean, early: string): void {
  const { exchanges, limits, lifetime } = owner
  if (lifetime.sentGoaway !== Infinity) {
    // RFC 9113 §6.8: what came after our last GOAWAY is not processed.
    exchanges.lastPeerStreamId = streamId
    return
  }
  const { head } = section
  // Whoever was reset in this input knows it before another comes in its place: a client that does nothing else (CVE-2023-44487)
  // has no more of them at once than it may, and what is counted behind the handlers (a gateway's upstream) is counted in time.
  if (owner.notices.hasClosed) owner.notices.tellAllClosed()
  // RFC 9113 §8.1.1
  if (section.fault !== '' || (end && section.contentLength > 0)) return refuseRequest(owner, streamId, ErrorCode.ProtocolError)
  // RFC 9113 §5.1.2
  if (exchanges.table.size >= limits.maxConcurrentStreams) return refuseRequest(owner, streamId, ErrorCode.RefusedStream)
  if (head === undefined) return answerRequest(owner, streamId, fieldsTooLarge, end, noLength)
  const isConnect = head.method === 'CONNECT'
  // RFC 8441 §3: only where it was offered.
  if (isConnect && head.protocol !== '' && !owner.extendedConnect) return refuseRequest(owner, streamId, ErrorCode.ProtocolError)
  const contentLength = isConnect ? noLength : section.contentLength
  if (contentLength > limits.maxContentLength) return answerRequest(owner, streamId, contentTooLarge, end, contentLength)

  exchanges.lastPeerStreamId = streamId
  const stream = exchanges.accept(streamId)
  stream.receiving = end ? Phase.Ended : Phase.Content
  stream.headRequest = head.method === 'HEAD'
  stream.tunnel = isConnect
  stream.expectedLength = contentLength
  stream.expectsContinue = !end && section.expectContinue
  const priority = early !== '' ? early : section.priority
  if (priority !== '') owner.sender.prioritize(stream, parsePriority(priority))
  try {
    stream.handler = owner.handler.onExchange(stream)
    stream.handler.onHead(asReceived(owner, head), end)
  } catch (error) {
    exchanges.handlerFailed(stream, error)
  }
}

/** The scheme is what the connection is, whatever the request claims: nobody becomes https by saying so. */
function asReceived(owner: Connection, head: Head): Head {
  const scheme = owner.info.tls === undefined ? 'http' : 'https'
  if (head.scheme === scheme || head.scheme === '') return head
  return new Head(head.method, scheme, head.authority, head.path, head.protocol, 0, head.fields)
}

/** Server: resets a request that becomes no exchange. */
export function refuseRequest(owner: Connection, streamId: number, code: number): void {
  const { exchanges } = owner
  exchanges.lastPeerStreamId = streamId
  // A client that does not know our limit yet is not to blame.
  if (code === ErrorCode.RefusedStream && !owner.settingsAcknowledged) exchanges.sayReset(streamId, code)
  else exchanges.refuse(streamId, code)
}

/** Server: answers a request that becomes no exchange. */
function answerRequest(owner: Connection, streamId: number, answer: Head, end: boolean, contentLength: number): void {
  const { exchanges, sender } = owner
  exchanges.lastPeerStreamId = streamId
  sender.stageResponse(streamId, answer, true, false)
  exchanges.provoked()
  // RFC 9113 §8.1: the answer is complete, and the content is not wanted.
  if (!end) exchanges.unwanted.drainUnanswered(streamId, contentLength)
}

/** Client: an interim or final response's head. */
export function receiveResponse(owner: Connection, stream: Stream, section: FieldSection, end: boolean): void {
  const { exchanges, limits } = owner
  const { head } = section
  if (head === undefined) {
    if (section.fault !== '') return exchanges.fault(stream, ErrorCode.ProtocolError, section.fault)
    const error = new ProtocolError('the response has too many or too large fields', 0, 'FIELDS_TOO_LARGE', { scope: 'stream' })
    return exchanges.reset(stream, ErrorCode.Cancel, error)
  }
  stream.receivedAt = owner.now
  if (head.status < 200) {
    // RFC 9113 §8.1: an interim response does not end the stream.
    if (end) return exchanges.fault(stream, ErrorCode.ProtocolError, 'an interim response with END_STREAM')
    if (++stream.informational > limits.maxInformational) {
      return exchanges.fault(stream, ErrorCode.EnhanceYourCalm, 'too many interim responses')
    }
    if (head.status === 100 && !stream.tunnel) owner.sender.release(stream)
  } else {
    const fault = beginResponse(owner, stream, head.status, section.contentLength, end)
    if (fault !== '') return exchanges.fault(stream, ErrorCode.ProtocolError, fault)
  }
  try {
    stream.handler.onHead(head, end)
  } catch (error) {
    exchanges.handlerFailed(stream, error)
  }
  if (stream.closed) return
  if (end) exchanges.receivingEnded(stream)
  else if (stream.discarding) exchanges.unwanted.maybeAbandon(stream)
}

/** Client: what the final response's head decides. Returns what is wrong with it, or nothing. */
function beginResponse(owner: Connection, stream: Stream, status: number, contentLength: number, end: boolean): string {
  const { sender } = owner
  stream.receiving = Phase.Content
  if (stream.tunnel && status < 300) {
    // RFC 9110 §9.3.6: a length in it means nothing.
    sender.release(stream)
    return ''
  }
  const refused = stream.held
  stream.expectedLength = heldLength(stream.headRequest, status, contentLength)
  if (stream.tunnel) {
    // The tunnel's bytes have nowhere to go; the request was complete without them.
    stream.tunnel = false
    stream.dropsContent = true
    sender.forget(stream)
    sender.endAtOnce(stream)
  } else if (refused) {
    // RFC 9110 §10.1.1: a final status instead of the 100: the content is not sent.
    stream.dropsContent = true
    sender.forget(stream)
  }
  return stream.headRequest || !end ? '' : lengthFault(stream.expectedLength, stream.receivedLength, true)
}

export function receiveTrailers(owner: Connection, stream: Stream, section: FieldSection, end: boolean): void {
  const { exchanges } = owner
  // RFC 9113 §8.1: trailers end the stream.
  const fault =
    section.fault !== '' ? section.fault : end ? lengthFault(stream.expectedLength, stream.receivedLength, true) : 'a second head'
  if (fault !== '') return exchanges.fault(stream, ErrorCode.ProtocolError, fault)
  // RFC 9113 §8.5: a tunnel has content only.
  if (stream.tunnel) return exchanges.fault(stream, ErrorCode.ProtocolError, 'trailers in a tunnel')
  if (section.tooLarge) {
    const error = new ProtocolError('too many or too large trailer fields', owner.isServer ? 431 : 0, 'FIELDS_TOO_LARGE', {
      scope: 'stream',
    })
    exchanges.reset(stream, ErrorCode.EnhanceYourCalm, error)
    return exchanges.provoked()
  }
  stream.receivedAt = owner.now
  if (!stream.discarding) {
    try {
      stream.handler.onTrailers(section.fields)
    } catch (error) {
      exchanges.handlerFailed(stream, error)
    }
  }
  if (!stream.closed) exchanges.receivingEnded(stream)
}
