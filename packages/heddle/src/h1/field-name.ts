import { latin1Slice } from '../bytes/index.ts'
import { LineCache } from './line-cache.ts'

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

/** A field name and what it means. Immutable; shared by all lines that have it. */
export class FieldName {
  /** Lower case. Well-known names are one string each, so comparing them is comparing pointers. */
  readonly text: string
  readonly kind: FieldKind
  /** Lines with it are not to be kept in caches; see {@link isIndividual}. */
  readonly individual: boolean

  constructor(text: string) {
    this.text = text
    this.kind = kinds.get(text) ?? FieldKind.Ordinary
    this.individual = individual.test(text)
  }
}

const seen = new LineCache<FieldName>(256)

/** The name `buffer[start, limit)`, which is a token; `hash` is the hash of these bytes. */
export function fieldName(buffer: Uint8Array, start: number, limit: number, hash: number): FieldName {
  const slot = seen.slotOf(hash)
  const found = seen.find(buffer, start, limit, slot)
  if (found !== undefined) return found
  const text = latin1Slice(buffer, start, limit).toLowerCase()
  const name = known.get(text) ?? new FieldName(text)
  seen.insert(buffer, start, limit, slot, name)
  return name
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

/**
 * True for a field whose line must not outlive its message: equal lines are found faster, so a shared
 * cache would tell one user whether another has sent the same secret, and would keep it in memory.
 * Also lines that hardly ever come twice.
 */
export function isIndividual(name: string, value: string): boolean {
  return individual.test(name) || holdsQuery(name, value)
}

/** True for a field whose value is a URI with a query, where secrets travel too. */
export function holdsQuery(name: string, value: string): boolean {
  return (name === 'referer' || name === 'location') && value.includes('?')
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
  return known.get(name)?.kind
}

const known: ReadonlyMap<string, FieldName> = new Map([...common.split(' '), ...kinds.keys()].map((text) => [text, new FieldName(text)]))

/** True for a field that a Connection field can have removed: not one HTTP/1.1 handles by itself, nor one it may not name. */
export function isRemovable(name: string): boolean {
  return !kinds.has(name) && !endToEnd.has(name)
}
