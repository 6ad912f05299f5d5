import { latin1Slice } from '../bytes/index.ts'
import { isAuthority, parseLength, tokenTable, valueTable } from '../http/index.ts'

/** What a field line means to HTTP/1.1 itself; everything else is `Ordinary`. */
export const FieldKind = {
  Ordinary: 0,
  Host: 1,
  ContentLength: 2,
  TransferEncoding: 3,
  Connection: 4,
  KeepAlive: 5,
  Upgrade: 6,
  Te: 7,
  Expect: 8,
  WebSocketKey: 9,
  WebSocketAccept: 10,
  /** Belongs to the connection and means nothing here: Proxy-Connection, HTTP2-Settings. */
  Hop: 11,
} as const
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind]

/** What the tokens of one Connection field say, as bits of {@link FieldLine.number}. */
export const ConnectionToken = {
  Close: 1,
  KeepAlive: 2,
  Upgrade: 4,
  /** Names fields that have to be removed. */
  Names: 8,
} as const

const kinds: ReadonlyMap<string, FieldKind> = new Map([
  ['host', FieldKind.Host],
  ['content-length', FieldKind.ContentLength],
  ['transfer-encoding', FieldKind.TransferEncoding],
  ['connection', FieldKind.Connection],
  ['keep-alive', FieldKind.KeepAlive],
  ['upgrade', FieldKind.Upgrade],
  ['te', FieldKind.Te],
  ['expect', FieldKind.Expect],
  ['sec-websocket-key', FieldKind.WebSocketKey],
  ['sec-websocket-accept', FieldKind.WebSocketAccept],
  ['proxy-connection', FieldKind.Hop],
  ['http2-settings', FieldKind.Hop],
])

/**
 * One parsed and validated field line. Immutable: the line cache shares it between messages and
 * connections.
 */
export class FieldLine {
  /** Lower case. */
  readonly name: string
  /** Without surrounding white space, one code unit per octet. */
  readonly value: string
  readonly kind: FieldKind
  /** What the kind's value comes to: a length, {@link ConnectionToken} bits, 1 for a valid host, `te: trailers` and `expect: 100-continue`, else 0. */
  readonly number: number
  /** False: the line holds a secret, or is too individual to be worth a place in a cache. */
  readonly cacheable: boolean
  /** What the line counts for in the limit of a field section: name + value + 32. */
  readonly size: number

  constructor(name: string, value: string, kind: FieldKind, number: number, cacheable: boolean) {
    this.name = name
    this.value = value
    this.kind = kind
    this.number = number
    this.cacheable = cacheable
    this.size = name.length + value.length + 32
  }
}

/** Why a field line was refused; the message of the error that follows. */
export type LineFault = string

const colon = 0x3a

/**
 * Reads the field line `buffer[start, limit)`, its CRLF not included (RFC 9112 §5). Returns what is
 * wrong with it instead, if something is.
 */
export function readFieldLine(buffer: Uint8Array, start: number, limit: number): FieldLine | LineFault {
  let at = start
  let upper = false
  for (; at < limit; at++) {
    const octet = buffer[at] as number
    const kind = tokenTable[octet] as number
    if (kind === 1) continue
    if (kind === 2) {
      upper = true
      continue
    }
    if (octet === colon) break
    // RFC 9112 §5.1: no white space between name and colon. RFC 9112 §5.2: no line folding.
    if (at === start && isBlank(octet)) return 'line folding or leading white space'
    return isBlank(octet) ? 'white space in a field name' : 'forbidden octet in a field name'
  }
  if (at === limit) return 'field line without a colon'
  if (at === start) return 'empty field name'
  const written = latin1Slice(buffer, start, at)
  const name = canonical(upper ? written.toLowerCase() : written)

  let from = at + 1
  let to = limit
  while (from < to && isBlank(buffer[from] as number)) from++
  while (to > from && isBlank(buffer[to - 1] as number)) to--
  // RFC 9110 §5.5: CR, LF, NUL and other controls are refused, not replaced.
  for (let i = from; i < to; i++) if (valueTable[buffer[i] as number] === 0) return 'forbidden octet in a field value'
  const value = from === to ? '' : latin1Slice(buffer, from, to)
  const kind = kinds.get(name) ?? FieldKind.Ordinary
  return new FieldLine(name, value, kind, valueNumber(kind, value), !isIndividual(name, value))
}

function isBlank(octet: number): boolean {
  return octet === 0x20 || octet === 0x09
}

function valueNumber(kind: FieldKind, value: string): number {
  switch (kind) {
    case FieldKind.ContentLength:
      return parseLength(value)
    case FieldKind.Connection:
      return connectionTokens(value)
    case FieldKind.Host:
      return isAuthority(value) ? 1 : 0
    case FieldKind.Te:
      return listItems(value).includes('trailers') ? 1 : 0
    case FieldKind.Expect:
      return value.toLowerCase() === '100-continue' ? 1 : 0
    default:
      return 0
  }
}

function connectionTokens(value: string): number {
  let tokens = 0
  for (const item of listItems(value)) {
    if (item === 'close') tokens |= ConnectionToken.Close
    else if (item === 'keep-alive') tokens |= ConnectionToken.KeepAlive
    else if (item === 'upgrade') tokens |= ConnectionToken.Upgrade
    else tokens |= ConnectionToken.Names
  }
  return tokens
}

/** The items of a comma-separated list of tokens in lower case, parameters cut off, empty items left out (RFC 9110 §5.6.1). */
export function listItems(value: string): string[] {
  const items: string[] = []
  for (const part of value.toLowerCase().split(',')) {
    const end = part.indexOf(';')
    const item = (end < 0 ? part : part.slice(0, end)).trim()
    if (item !== '') items.push(item)
  }
  return items
}

// RFC 9110 §7.6.1 wants named fields removed, and "a sender MUST NOT send a connection option
// corresponding to a field that is intended for all recipients of the content". Removing one of
// these would change who is asked, as whom, or what the content is.
const endToEnd = new Set([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'content-range',
  'transfer-encoding',
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'cache-control',
  'date',
  'expect',
  'forwarded',
  'location',
  'max-forwards',
  'range',
  'trailer',
  'vary',
  'via',
  'www-authenticate',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
])

/** The fields that a Connection value wants removed; those that HTTP/1.1 handles by itself, and those it may not name, left out. */
export function namedFields(value: string): string[] {
  return listItems(value).filter((name) => !kinds.has(name) && !endToEnd.has(name))
}

/**
 * True for a field whose line must not outlive its message: equal lines are found faster, so a shared
 * cache would tell one user whether another has sent the same secret, and would keep it in memory.
 * Also lines that hardly ever come twice.
 */
export function isIndividual(name: string, value: string): boolean {
  if (name === 'referer' || name === 'location') return value.includes('?')
  return individual.test(name)
}

const individual =
  /auth|cookie|token|secret|session|password|passwd|signature|credential|key|csrf|xsrf|jwt|nonce|request-id|trace|correlation|x-real-ip|forwarded/

// RFC 9110 §6.5.1: fields of framing, routing, authentication, request modifiers, response control and content format.
const notInTrailers = new Set([
  ...endToEnd,
  ...kinds.keys(),
  'accept-ranges',
  'age',
  'expires',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'pragma',
  'proxy-authenticate',
  'retry-after',
])

/** True for a trailer field that is dropped because a recipient that merges trailers could be misled. */
export function isDroppedTrailer(name: string): boolean {
  return notInTrailers.has(name)
}

/** True for a trailer field that makes the message faulty: it tries to frame or route a message that is under way. */
export function isForbiddenTrailer(kind: FieldKind): boolean {
  return kind === FieldKind.ContentLength || kind === FieldKind.TransferEncoding || kind === FieldKind.Host
}

const common =
  'accept accept-charset accept-encoding accept-language accept-ranges access-control-allow-origin age allow alt-svc authorization ' +
  'cache-control content-disposition content-encoding content-language content-location content-range content-security-policy ' +
  'content-type cookie date dnt etag expires forwarded from grpc-message grpc-status if-match if-modified-since if-none-match if-range ' +
  'if-unmodified-since last-modified link location origin pragma priority proxy-authenticate proxy-authorization range referer ' +
  'referrer-policy retry-after sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user ' +
  'sec-websocket-extensions sec-websocket-protocol sec-websocket-version server server-timing set-cookie strict-transport-security ' +
  'trailer traceparent tracestate upgrade-insecure-requests user-agent vary via www-authenticate x-content-type-options ' +
  'x-forwarded-for x-forwarded-host x-forwarded-proto x-frame-options x-powered-by x-real-ip x-request-id x-requested-with'

/**
 * What a field name in lower case means, for names that are well known and so need no validation;
 * undefined for all others.
 */
export function knownKind(name: string): FieldKind | undefined {
  return knownKinds.get(name)
}

const knownKinds: ReadonlyMap<string, FieldKind> = new Map([
  ...common.split(' ').map((name): [string, FieldKind] => [name, FieldKind.Ordinary]),
  ...kinds,
])

const names: ReadonlyMap<string, string> = new Map([...common.split(' '), ...kinds.keys()].map((name) => [name, name]))

/** One string per well-known name, so that comparing names is comparing pointers. */
function canonical(name: string): string {
  return names.get(name) ?? name
}
