import { latin1Slice } from '../bytes/index.ts'
import { isAuthority, parseLength, tokenTable, trimBlanks, valueTable } from '../http/index.ts'
import { FieldKind, fieldName, holdsQuery, isRemovable } from './field-name.ts'
import { hashStep, startHash } from './line-cache.ts'

/** What the tokens of one Connection field say, as bits of {@link FieldLine.number}. */
export const ConnectionToken = {
  Close: 1,
  KeepAlive: 2,
  Upgrade: 4,
  /** Names fields that have to be removed. */
  Names: 8,
} as const

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
  let hash = startHash
  for (; at < limit; at++) {
    const octet = buffer[at] as number
    if (tokenTable[octet] !== 0) {
      hash = hashStep(hash, octet)
      continue
    }
    if (octet === colon) break
    // RFC 9112 §5.1: no white space between name and colon. RFC 9112 §5.2: no line folding.
    if (at === start && isBlank(octet)) return 'line folding or leading white space'
    return isBlank(octet) ? 'white space in a field name' : 'forbidden octet in a field name'
  }
  if (at === limit) return 'field line without a colon'
  if (at === start) return 'empty field name'
  const name = fieldName(buffer, start, at, hash)

  let from = at + 1
  let to = limit
  while (from < to && isBlank(buffer[from] as number)) from++
  while (to > from && isBlank(buffer[to - 1] as number)) to--
  // RFC 9110 §5.5: CR, LF, NUL and other controls are refused, not replaced.
  for (let i = from; i < to; i++) if (valueTable[buffer[i] as number] === 0) return 'forbidden octet in a field value'
  const value = from === to ? '' : latin1Slice(buffer, from, to)
  const { text, kind } = name
  return new FieldLine(
    text,
    value,
    kind,
    kind === FieldKind.Ordinary ? 0 : valueNumber(kind, value),
    !(name.individual || holdsQuery(text, value)),
  )
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
    const item = trimBlanks(end < 0 ? part : part.slice(0, end))
    if (item !== '') items.push(item)
  }
  return items
}

/** The fields that a Connection value wants removed, and may. */
export function namedFields(value: string): string[] {
  return listItems(value).filter(isRemovable)
}
