import type { FieldSection } from '../fieldcode/index.ts'
import { Head, heldLength, lengthFault, noLength, parsePriority, ProtocolError, responseHead } from '../http/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode } from './frame.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'

export const fieldsTooLarge: Head = responseHead(431, ['content-length', '0'])
export const contentTooLarge: Head = responseHead(413, ['content-length', '0'])

/** Server: a request's head is here. */
export function receiveRequest(owner: Connection, stream: Stream, section: FieldSection, end: boolean): void {
  const { exchanges, limits, streams, sender } = owner
  const { head } = section
  // Whoever was reset in this input knows it before another comes in its place: a client that does nothing else (CVE-2023-44487)
  // has no more of them at once than it may, and what is counted behind the handlers (a gateway's upstream) is counted in time.
  if (owner.notices.hasClosed) owner.notices.tellAllClosed()
  // RFC 9114 §4.1.2
  if (section.fault !== '') return drop(owner, stream, ErrorCode.MessageError, section.fault)
  if (end && section.contentLength > 0) return drop(owner, stream, ErrorCode.MessageError, 'content-length without content')
  if (exchanges.list.length > limits.maxConcurrentStreams)
    return drop(owner, stream, ErrorCode.RequestRejected, 'too many requests at once')
  if (head === undefined) return refuse(owner, stream, fieldsTooLarge, 'FIELDS_TOO_LARGE')
  const isConnect = head.method === 'CONNECT'
  // RFC 9220 §3, RFC 8441 §3: only where it was offered.
  if (isConnect && head.protocol !== '' && !owner.extendedConnect) return drop(owner, stream, ErrorCode.MessageError, 'no extended CONNECT')
  const contentLength = isConnect ? noLength : section.contentLength
  if (contentLength > limits.maxContentLength) return refuse(owner, stream, contentTooLarge, 'CONTENT_TOO_LARGE')

  stream.receiving = end ? Phase.Ended : Phase.Content
  stream.receivedAt = owner.now
  stream.headRequest = head.method === 'HEAD'
  stream.tunnel = isConnect
  stream.expectedLength = contentLength
  stream.expectsContinue = !end && section.expectContinue
  // RFC 9218 §7: what PRIORITY_UPDATE said before counts for more than the field.
  const priority = streams.takeEarlyPriority(stream.id) ?? section.priority
  if (priority !== '') sender.prioritize(stream, parsePriority(priority))
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
function drop(owner: Connection, stream: Stream, code: number, message: string): void {
  owner.exchanges.fault(stream, code, message)
}

/** Server: answers a request that becomes no exchange. */
function refuse(owner: Connection, stream: Stream, answer: Head, code: 'FIELDS_TOO_LARGE' | 'CONTENT_TOO_LARGE'): void {
  answerRequest(owner, stream, answer)
  owner.exchanges.close(stream, new ProtocolError('the request is refused', answer.status, code, { scope: 'stream' }))
  owner.exchanges.provoked()
}

/** Server: answers a request of which nothing more is read (RFC 9114 §4.1). The caller closes the exchange. */
export function answerRequest(owner: Connection, stream: Stream, answer: Head): void {
  owner.sender.sendResponse(stream, answer, true, false)
  owner.exchanges.stopReading(stream, ErrorCode.NoError)
}

/** Client: an interim or final response's head. */
export function receiveResponse(owner: Connection, stream: Stream, section: FieldSection, end: boolean): void {
  const { exchanges, limits } = owner
  const { head } = section
  if (head === undefined) {
    if (section.fault !== '') return exchanges.fault(stream, ErrorCode.MessageError, section.fault)
    const error = new ProtocolError('the response has too many or too large fields', 0, 'FIELDS_TOO_LARGE', { scope: 'stream' })
    return exchanges.reset(stream, ErrorCode.ExcessiveLoad, error)
  }
  stream.receivedAt = owner.now
  if (head.status < 200) {
    // RFC 9114 §4.1: an interim response does not end the stream.
    if (end) return exchanges.fault(stream, ErrorCode.MessageError, 'an interim response that ends the stream')
    if (++stream.informational > limits.maxInformational) {
      return exchanges.fault(stream, ErrorCode.ExcessiveLoad, 'too many interim responses')
    }
    if (head.status === 100 && !stream.tunnel) owner.sender.release(stream)
  } else {
    const fault = beginResponse(owner, stream, head.status, section.contentLength, end)
    if (fault !== '') return exchanges.fault(stream, ErrorCode.MessageError, fault)
  }
  try {
    stream.handler.onHead(head, end)
  } catch (error) {
    exchanges.handlerFailed(stream, error)
  }
  if (stream.closed) return
  if (end) exchanges.receivingEnded(stream)
  else exchanges.unwanted.maybeStop(stream)
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
    stream.endQueued = false
    sender.forget(stream)
    sender.endAtOnce(stream)
  } else if (refused) {
    // RFC 9110 §10.1.1: a final status instead of the 100: the content is not sent.
    stream.dropsContent = true
    stream.endQueued = false
    sender.forget(stream)
  }
  return stream.headRequest || !end ? '' : lengthFault(stream.expectedLength, stream.receivedLength, true)
}

export function receiveTrailers(owner: Connection, stream: Stream, section: FieldSection): void {
  const { exchanges } = owner
  // RFC 9114 §4.1: no DATA follows trailers.
  const fault = section.fault !== '' ? section.fault : lengthFault(stream.expectedLength, stream.receivedLength, true)
  if (fault !== '') return exchanges.fault(stream, ErrorCode.MessageError, fault)
  if (section.tooLarge) {
    const error = new ProtocolError('too many or too large trailer fields', owner.isServer ? 431 : 0, 'FIELDS_TOO_LARGE', {
      scope: 'stream',
    })
    exchanges.reset(stream, ErrorCode.ExcessiveLoad, error)
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
