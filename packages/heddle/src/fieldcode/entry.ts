import { badLength, isFieldName, isFieldValue, parseLength } from '../http/index.ts'

/** What a field line means to the message it stands in: decided once, when the line enters a table. */
export const Kind = {
  Regular: 0,
  Authority: 1,
  Method: 2,
  Path: 3,
  Scheme: 4,
  Protocol: 5,
  Status: 6,
  ContentLength: 7,
  Host: 8,
  Cookie: 9,
  Priority: 10,
  Expect: 11,
  /** Makes its message malformed: a bad name or value, an unknown pseudo-header field, a connection-specific field. */
  Malformed: 12,
} as const
export type Kind = (typeof Kind)[keyof typeof Kind]

const kinds: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  [':authority', Kind.Authority],
  [':method', Kind.Method],
  [':path', Kind.Path],
  [':scheme', Kind.Scheme],
  [':protocol', Kind.Protocol],
  [':status', Kind.Status],
  ['content-length', Kind.ContentLength],
  ['host', Kind.Host],
  ['cookie', Kind.Cookie],
  ['priority', Kind.Priority],
  ['expect', Kind.Expect],
  // RFC 9113 §8.2.2, RFC 9114 §4.2: connection-specific fields make a message malformed.
  ['connection', Kind.Malformed],
  ['keep-alive', Kind.Malformed],
  ['proxy-connection', Kind.Malformed],
  ['transfer-encoding', Kind.Malformed],
  ['upgrade', Kind.Malformed],
])

/** What `name` makes of a line whose value is in order. */
export function kindOfName(name: string): Kind {
  return kinds.get(name) ?? (isFieldName(name) ? Kind.Regular : Kind.Malformed)
}

/** What a line is, given what its name says: a value that is not in order makes it malformed. */
export function kindOfLine(kind: Kind, name: string, value: string): Kind {
  // RFC 9113 §8.2.1: what would break an HTTP/1.1 line is malformed here.
  if (!isFieldValue(value)) return Kind.Malformed
  if (kind === Kind.Status) return /^[1-5]\d\d$/.test(value) ? kind : Kind.Malformed
  if (kind === Kind.ContentLength) return parseLength(value) === badLength ? Kind.Malformed : kind
  // RFC 9113 §8.2.2: TE holds nothing but "trailers".
  if (kind === Kind.Regular && name === 'te' && value !== 'trailers') return Kind.Malformed
  return kind
}

/** One field line of a table, or one being read. */
export class Entry {
  name: string
  value: string
  kind: Kind

  constructor(name: string, value: string, kind: Kind = kindOfLine(kindOfName(name), name, value)) {
    this.name = name
    this.value = value
    this.kind = kind
  }

  /** RFC 7541 §4.1, RFC 9204 §3.2.1: octets of name and value, and 32. */
  get size(): number {
    return this.name.length + this.value.length + 32
  }
}

/**
 * True for a field whose value must enter no table and no cache (RFC 7541 §7.1.3): it could be guessed
 * there. Short cookies can; long ones have the entropy, and repeat too often to be sent again and again.
 */
export function isSensitive(name: string, value: string): boolean {
  switch (name) {
    case 'authorization':
    case 'proxy-authorization':
    case 'set-cookie':
      return true
    case 'cookie':
      return value.length < 20
    default:
      return false
  }
}
