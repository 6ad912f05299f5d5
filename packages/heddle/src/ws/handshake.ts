import { combinedFieldValue, fieldValues, isToken, ProtocolError, trimBlanks, UsageError, type Fields } from '../http/index.ts'
import { deflateExtension, readDeflateAnswer, writeDeflateOffer, type DeflateOffer, type DeflateParameters } from './deflate.ts'
import { parseExtensions, type Extension } from './extension.ts'

/**
 * The parts of the handshake (RFC 6455 §4) that are the same on every version of HTTP. The key and its
 * accept value concern HTTP/1.1 alone, which checks them itself.
 */

/** The protocol's version, RFC 6455 §4.1. */
export const webSocketVersion = '13'

/** What a client asks for. */
export interface HandshakeOffer {
  /** Subprotocols, the preferred one first. Default: none. */
  readonly protocols?: readonly string[] | undefined
  /** Offers permessage-deflate. Default: not offered. */
  readonly deflate?: DeflateOffer | undefined
}

/** What client and server agreed on. */
export interface Agreement {
  /** The subprotocol, or ''. */
  readonly protocol: string
  /** The server's Sec-WebSocket-Extensions, or ''. */
  readonly extensions: string
  /** permessage-deflate, if it was agreed on. */
  readonly deflate: DeflateParameters | undefined
}

/**
 * Client: the fields of the request that belong to the handshake. Throws UsageError for a subprotocol that
 * is no token or comes twice.
 */
export function offerFields(offer: HandshakeOffer): string[] {
  const { protocols = [], deflate } = offer
  const fields = ['sec-websocket-version', webSocketVersion]
  if (protocols.length > 0) {
    for (const protocol of protocols) if (!isToken(protocol)) throw new UsageError(`subprotocol ${JSON.stringify(protocol)} is no token`)
    // RFC 6455 §4.1
    if (new Set(protocols).size < protocols.length) throw new UsageError('a subprotocol is given twice')
    fields.push('sec-websocket-protocol', protocols.join(', '))
  }
  if (deflate !== undefined) fields.push('sec-websocket-extensions', writeDeflateOffer(deflate))
  return fields
}

/** Client: what the server's answer that opened the tunnel comes to; a ProtocolError: the handshake has failed (RFC 6455 §4.1). */
export function readAnswer(fields: Fields, offer: HandshakeOffer): Agreement | ProtocolError {
  const { protocols = [], deflate: deflateOffer } = offer
  const answered = fieldValues(fields, 'sec-websocket-protocol')
  if (answered.length > 1) return fault('more than one Sec-WebSocket-Protocol')
  const protocol = answered[0] ?? ''
  if (answered.length > 0 && !protocols.includes(protocol)) return fault(`subprotocol ${JSON.stringify(protocol)} was not offered`)
  const extensions = combinedFieldValue(fields, 'sec-websocket-extensions') ?? ''
  if (extensions === '') return { protocol, extensions, deflate: undefined }
  const parsed = parseExtensions(extensions)
  if (parsed === undefined) return fault('malformed Sec-WebSocket-Extensions')
  let deflate: DeflateParameters | undefined
  for (const extension of parsed) {
    if (extension.name !== deflateExtension || deflateOffer === undefined) {
      return fault(`extension ${JSON.stringify(extension.name)} was not offered`)
    }
    if (deflate !== undefined) return fault(`${deflateExtension} was accepted twice`)
    const read = readDeflateAnswer(extension, deflateOffer)
    if (typeof read === 'string') return fault(`${deflateExtension}: ${read}`)
    deflate = read
  }
  return { protocol, extensions, deflate }
}

function fault(message: string): ProtocolError {
  return new ProtocolError(`WebSocket handshake: ${message}`, 0)
}

/** What a server read of a client's handshake. */
export interface ReceivedOffer {
  /** The subprotocols, the client's preferred one first. */
  readonly protocols: readonly string[]
  /** See `acceptDeflate`. */
  readonly extensions: readonly Extension[]
}

/** How a server answers a handshake it cannot accept (RFC 6455 §4.2.2). */
export interface Refusal {
  readonly status: 400 | 426
  readonly reason: string
  readonly fields: Fields
}

/** Server: reads the handshake in a request's fields. What has a `status` is the answer to a bad one. */
export function readOffer(fields: Fields): ReceivedOffer | Refusal {
  const versions = fieldValues(fields, 'sec-websocket-version')
  if (versions.length !== 1) return refusal(400, versions.length === 0 ? 'no Sec-WebSocket-Version' : 'more than one Sec-WebSocket-Version')
  if (versions[0] !== webSocketVersion) return refusal(426, `Sec-WebSocket-Version is not ${webSocketVersion}`)
  const protocols = readProtocols(combinedFieldValue(fields, 'sec-websocket-protocol'))
  if (protocols === undefined) return refusal(400, 'malformed Sec-WebSocket-Protocol')
  const text = combinedFieldValue(fields, 'sec-websocket-extensions') ?? ''
  const extensions = text === '' ? [] : parseExtensions(text)
  if (extensions === undefined) return refusal(400, 'malformed Sec-WebSocket-Extensions')
  return { protocols, extensions }
}

/** RFC 6455 §4.3: tokens, each of them once; undefined: they are not. */
function readProtocols(text: string | undefined): string[] | undefined {
  if (text === undefined) return []
  const protocols = text
    .split(',')
    .map(trimBlanks)
    .filter((element) => element !== '')
  return protocols.length > 0 && protocols.every(isToken) && new Set(protocols).size === protocols.length ? protocols : undefined
}

function refusal(status: 400 | 426, reason: string): Refusal {
  // RFC 6455 §4.4: the client may try a version of ours.
  return { status, reason, fields: ['sec-websocket-version', webSocketVersion] }
}

/** Server: the fields of the answer that belong to the handshake. Throws UsageError for a subprotocol that is no token. */
export function answerFields(protocol: string, extensions: string): string[] {
  const fields: string[] = []
  if (protocol !== '') {
    if (!isToken(protocol)) throw new UsageError(`subprotocol ${JSON.stringify(protocol)} is no token`)
    fields.push('sec-websocket-protocol', protocol)
  }
  if (extensions !== '') fields.push('sec-websocket-extensions', extensions)
  return fields
}
