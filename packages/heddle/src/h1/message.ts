import { badLength, Head, isBodiless, noLength, ProtocolError, responseHead, trimBlanks } from '../http/index.ts'
import { ConnectionToken, listItems } from './field-line.ts'
import type { FieldSection } from './section.ts'
import { TargetForm, type RequestLine, type StatusLine } from './start-line.ts'

/** How the content of a message is delimited (RFC 9112 §6.3). */
export const Framing = {
  /** There is none. */
  None: 0,
  /** By a length in octets. */
  Length: 1,
  Chunked: 2,
  /** By the end of the connection. */
  Close: 3,
  /** It is not content but a tunnel. */
  Tunnel: 4,
} as const
export type Framing = (typeof Framing)[keyof typeof Framing]

/** A received request head with everything decided that can be decided from it. Immutable, may be shared. */
export class RequestMessage {
  readonly head: Head
  readonly line: RequestLine
  readonly secure: boolean
  /** `None`, `Length`, `Chunked`; `Tunnel` for CONNECT and an accepted Upgrade. */
  readonly framing: Framing
  /** Octets of content; 0 unless `framing` is `Length`. */
  readonly length: number
  /** The client lets the connection live on. */
  readonly keepAlive: boolean
  readonly expectContinue: boolean
  /** Of a WebSocket upgrade, else empty. */
  readonly websocketKey: string

  constructor(
    head: Head,
    line: RequestLine,
    secure: boolean,
    framing: Framing,
    length: number,
    keepAlive: boolean,
    expectContinue: boolean,
    websocketKey: string,
  ) {
    this.head = head
    this.line = line
    this.secure = secure
    this.framing = framing
    this.length = length
    this.keepAlive = keepAlive
    this.expectContinue = expectContinue
    this.websocketKey = websocketKey
  }
}

/** A received response head. The framing depends on the request too: see {@link responseFraming}. */
export class ResponseMessage {
  readonly head: Head
  readonly line: StatusLine
  readonly section: FieldSection
  /** The server lets the connection live on. */
  readonly keepAlive: boolean

  constructor(head: Head, line: StatusLine, section: FieldSection, keepAlive: boolean) {
    this.head = head
    this.line = line
    this.section = section
    this.keepAlive = keepAlive
  }
}

/** What a server's owner lets clients upgrade to. */
export interface UpgradePolicy {
  readonly protocols: readonly string[]
  readonly websocket: boolean
}

/** Joins a request line and its fields to a message, or says why the request is refused. `secure`: it came over TLS. */
export function requestMessage(
  line: RequestLine,
  section: FieldSection,
  secure: boolean,
  upgrades: UpgradePolicy,
): RequestMessage | ProtocolError {
  // RFC 9112 §3.2: exactly one valid Host, or 400; only HTTP/1.0 may do without.
  if (section.hostCount === 0 ? line.minor !== 0 : section.hostCount > 1 || !section.hostValid) {
    return new ProtocolError('missing, repeated or malformed Host')
  }
  const framing = requestFraming(line, section)
  if (typeof framing !== 'number') return framing
  const length = framing === Framing.Length ? section.contentLength : 0
  const keepAlive = livesOn(line.minor, section.connection)
  // RFC 9110 §10.1.1: an expectation in an HTTP/1.0 request is ignored, and so is one without content.
  const expectContinue = section.expectContinue && line.minor !== 0 && (framing === Framing.Chunked || length > 0)
  // RFC 9112 §3.2.2: absolute-form overrules Host. The scheme is what the connection is, whatever the
  // target claims: nobody becomes https by saying so.
  const authority = line.form === TargetForm.Origin || line.form === TargetForm.Asterisk ? section.host : line.authority
  const scheme = secure ? 'https' : 'http'

  if (line.form === TargetForm.Authority) {
    // RFC 9110 §9.3.6: the request has no content; whoever says otherwise wants us to disagree with somebody.
    if (framing === Framing.Chunked || length > 0) return new ProtocolError('CONNECT with content')
    const head = new Head('CONNECT', '', authority, '', '', 0, section.fields)
    return new RequestMessage(head, line, secure, Framing.Tunnel, 0, keepAlive, false, '')
  }
  if (section.upgrade !== '' && framing === Framing.None && line.minor !== 0) {
    const upgraded = upgradeMessage(line, section, secure, authority, scheme, upgrades, keepAlive)
    if (upgraded !== undefined) return upgraded
  }
  const head = new Head(line.method, scheme, authority, line.path, '', 0, section.fields)
  return new RequestMessage(head, line, secure, framing, length, keepAlive, expectContinue, '')
}

function requestFraming(line: RequestLine, section: FieldSection): Framing | ProtocolError {
  if (section.transferEncoding !== '') {
    // RFC 9112 §6.3: both at once is how requests are smuggled. RFC 9112 §6.1: HTTP/1.0 knows no codings.
    if (section.contentLength !== noLength) return new ProtocolError('Transfer-Encoding and Content-Length')
    if (line.minor === 0) return new ProtocolError('Transfer-Encoding in an HTTP/1.0 request')
    const problem = codingsProblem(section.transferEncoding)
    return problem === '' ? Framing.Chunked : new ProtocolError(problem, problem === unknownCoding ? 501 : 400)
  }
  if (section.contentLength === badLength) return new ProtocolError('malformed or repeated Content-Length')
  // RFC 9112 §6.3: a request without either has no content.
  return section.contentLength > 0 ? Framing.Length : Framing.None
}

const unknownCoding = 'unknown transfer coding'

/** Empty if the codings are `chunked` alone. RFC 9112 §6.1: chunked comes last and once. */
function codingsProblem(transferEncoding: string): string {
  if (transferEncoding === 'chunked') return ''
  const codings = transferEncoding.split(',').map((coding) => trimBlanks(coding).toLowerCase())
  const last = codings.length - 1
  if (codings.indexOf('chunked') !== last) return 'chunked is not the final transfer coding, or is repeated'
  return last === 0 ? '' : unknownCoding
}

/** RFC 9110 §7.8: Upgrade counts only if Connection names it. */
function isUpgradeNamed(section: FieldSection): boolean {
  return section.upgrade !== '' && (section.connection & ConnectionToken.Upgrade) !== 0
}

function upgradeMessage(
  line: RequestLine,
  section: FieldSection,
  secure: boolean,
  authority: string,
  scheme: string,
  upgrades: UpgradePolicy,
  keepAlive: boolean,
): RequestMessage | ProtocolError | undefined {
  // RFC 9110 §7.8: a server may ignore it.
  if (line.method !== 'GET' || !isUpgradeNamed(section)) return undefined
  const protocol = listItems(section.upgrade).find((name) => upgrades.protocols.includes(name))
  if (protocol === undefined) return undefined
  let { fields } = section
  if (protocol === 'websocket') {
    if (!upgrades.websocket) return undefined
    // RFC 6455 §4.2.1: 16 octets in base64; without them the handshake is refused.
    if (!/^[A-Za-z0-9+/]{22}==$/.test(section.websocketKey)) return new ProtocolError('malformed or missing Sec-WebSocket-Key')
    fields = fields.filter((_, i) => fields[i - (i % 2)] !== 'sec-websocket-key')
  }
  const head = new Head('CONNECT', scheme, authority, line.path, protocol, 0, fields)
  return new RequestMessage(head, line, secure, Framing.Tunnel, 0, keepAlive, false, section.websocketKey)
}

/** Joins a status line and its fields to a message, or says why the response is refused. */
export function responseMessage(line: StatusLine, section: FieldSection): ResponseMessage | ProtocolError {
  if (section.transferEncoding !== '') {
    if (section.contentLength !== noLength) return new ProtocolError('Transfer-Encoding and Content-Length', 0)
    if (line.minor === 0) return new ProtocolError('Transfer-Encoding in an HTTP/1.0 response', 0)
    // RFC 9112 §6.1: never in 1xx and 204.
    if (line.status < 200 || line.status === 204) return new ProtocolError('Transfer-Encoding in a response without content', 0)
    const problem = codingsProblem(section.transferEncoding)
    if (problem !== '') return new ProtocolError(problem, 0)
  } else if (section.contentLength === badLength) {
    return new ProtocolError('malformed or repeated Content-Length', 0)
  }
  // RFC 9110 §15.5.22: what a 426 names is for whoever made the request, not only for this hop.
  const fields = line.status === 426 && isUpgradeNamed(section) ? [...section.fields, 'upgrade', section.upgrade] : section.fields
  return new ResponseMessage(responseHead(line.status, fields), line, section, livesOn(line.minor, section.connection))
}

/** How the content of a final response is delimited (RFC 9112 §6.3); `toHead`: the request was HEAD. Tunnels are the caller's. */
export function responseFraming(message: ResponseMessage, toHead: boolean): Framing {
  const { section, line } = message
  if (toHead || isBodiless(line.status)) return Framing.None
  if (section.transferEncoding !== '') return Framing.Chunked
  if (section.contentLength === noLength) return Framing.Close
  return section.contentLength === 0 ? Framing.None : Framing.Length
}

/** RFC 9112 §9.3: HTTP/1.1 persists unless told otherwise, HTTP/1.0 only if asked to. */
function livesOn(minor: number, connection: number): boolean {
  if ((connection & ConnectionToken.Close) !== 0) return false
  return minor !== 0 || (connection & ConnectionToken.KeepAlive) !== 0
}
