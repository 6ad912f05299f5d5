import { combinedFieldValue, isFieldValue, noLength, UsageError, type Fields, type Head } from '../http/index.ts'
import { dateLine, FieldEncoder, fieldsSize, statusLine, writeText } from './encoder.ts'
import { Framing } from './message.ts'
import type { SendQueue } from './send-queue.ts'

/** Encodes the fields of all responses; holds the facts about the section written last. */
export const responseFields: FieldEncoder = new FieldEncoder()

const noContent = 'content-length: 0\r\n'
const chunkedLine = 'transfer-encoding: chunked\r\n'
const closeLine = 'connection: close\r\n'
const keepAliveLine = 'connection: keep-alive\r\n'
/** All of the lines above and the final CRLF. */
const extras = 128

/** Throws UsageError unless `status` can be written. */
export function checkStatus(status: number): void {
  if (!(Number.isInteger(status) && status >= 100 && status <= 599)) throw new UsageError(`invalid status ${status}`)
}

/**
 * Queues the head of a final response and returns the framing it announces; the declared length is
 * then in `responseFields.contentLength`, a wish to close in `responseFields.close`. Throws UsageError,
 * having queued nothing, for invalid fields.
 */
export function writeFinalHead(
  queue: SendQueue,
  head: Head,
  minor: number,
  bodiless: boolean,
  end: boolean,
  close: boolean,
  date: string,
): Framing {
  const line = statusLine(head.status)
  queue.reserve(line.length + fieldsSize(head.fields) + extras)
  const { buffer } = queue
  let at = queue.limit
  line.copy(buffer, at)
  at += line.length
  // RFC 9110 §8.6: no content-length in a 204.
  at = responseFields.write(head.fields, buffer, at, head.status === 204)
  const length = responseFields.contentLength
  let framing: Framing = Framing.None
  if (!bodiless) {
    if (length !== noLength) {
      if (end && length > 0) throw new UsageError('content-length without content')
      framing = Framing.Length
    } else if (end) {
      at = writeText(buffer, at, noContent)
    } else if (minor !== 0) {
      framing = Framing.Chunked
      at = writeText(buffer, at, chunkedLine)
    } else {
      // RFC 9112 §6.1: HTTP/1.0 does not know chunked; the end of the connection ends the content.
      framing = Framing.Close
    }
  }
  const closes = close || responseFields.close || framing === Framing.Close
  const upgrade = head.status === 426 ? (combinedFieldValue(head.fields, 'upgrade') ?? '') : ''
  if (upgrade !== '') at = writeUpgradeRequired(buffer, at, upgrade, closes)
  else if (closes) at = writeText(buffer, at, closeLine)
  else if (minor === 0) at = writeText(buffer, at, keepAliveLine)
  queue.commit(finishHead(buffer, at, responseFields.hasDate ? '' : date))
  return framing
}

/** RFC 9110 §15.5.22: a 426 names the protocols wanted. RFC 9110 §7.8: Connection names Upgrade. */
function writeUpgradeRequired(buffer: Buffer, at: number, upgrade: string, closes: boolean): number {
  if (!isFieldValue(upgrade)) throw new UsageError('invalid value of field upgrade')
  return writeText(buffer, at, `connection: upgrade${closes ? ', close' : ''}\r\nupgrade: ${upgrade}\r\n`)
}

/** Queues a 1xx head. */
export function writeInformationalHead(queue: SendQueue, head: Head): void {
  const line = statusLine(head.status)
  queue.reserve(line.length + fieldsSize(head.fields) + extras)
  const { buffer } = queue
  line.copy(buffer, queue.limit)
  // RFC 9112 §6.1, RFC 9110 §8.6: it has no content to frame.
  const at = responseFields.write(head.fields, buffer, queue.limit + line.length, true)
  queue.commit(finishHead(buffer, at, ''))
}

/**
 * Queues the head that opens a tunnel: the 2xx of CONNECT, or the 101 of an Upgrade to `protocol`.
 * `accept` is Sec-WebSocket-Accept, or empty.
 */
export function writeTunnelHead(queue: SendQueue, status: number, fields: Fields, protocol: string, accept: string, date: string): void {
  const line = statusLine(protocol === '' ? status : 101)
  queue.reserve(line.length + fieldsSize(fields) + extras + 2 * protocol.length + accept.length)
  const { buffer } = queue
  let at = queue.limit
  line.copy(buffer, at)
  at += line.length
  // RFC 9110 §9.3.6: neither Content-Length nor Transfer-Encoding.
  at = responseFields.write(fields, buffer, at, true)
  if (protocol !== '') at = writeText(buffer, at, `connection: upgrade\r\nupgrade: ${protocol}\r\n`)
  if (accept !== '') at = writeText(buffer, at, `sec-websocket-accept: ${accept}\r\n`)
  queue.commit(finishHead(buffer, at, responseFields.hasDate ? '' : date))
}

/** Queues a whole response of the engine's own, after which the connection closes. */
export function writeRefusal(queue: SendQueue, status: number, text: string, date: string): void {
  const line = statusLine(status)
  queue.reserve(line.length + text.length + 256)
  const { buffer } = queue
  let at = queue.limit
  line.copy(buffer, at)
  at += line.length
  if (text !== '') at = writeText(buffer, at, 'content-type: text/plain\r\n')
  at = writeText(buffer, at, `content-length: ${text.length}\r\n${closeLine}`)
  at = finishHead(buffer, at, date)
  queue.commit(writeText(buffer, at, text))
}

function finishHead(buffer: Buffer, at: number, date: string): number {
  if (date !== '') {
    const line = dateLine(date)
    line.copy(buffer, at)
    at += line.length
  }
  buffer[at] = 0x0d
  buffer[at + 1] = 0x0a
  return at + 2
}
