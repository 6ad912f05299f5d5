import { isFieldName, isFieldValue, isToken, type Fields } from '../http/index.ts'

/** What `new Headers(init)` takes: another Headers (of any origin), pairs, or a record. */
export type HeadersInit = Iterable<readonly [string, string]> | Iterable<readonly string[]> | Readonly<Record<string, string>>

// Programs use few names and write them in their own case; checking one costs more than finding it here.
const known = new Map<string, string>()
const knownMost = 1024

/** `name` in lower case. Throws TypeError unless it is a token (RFC 9110 §5.1). */
export function fieldName(name: string, method: string): string {
  const found = known.get(name)
  if (found !== undefined) return found
  const text = `${name}`
  const lower = text.toLowerCase()
  // Checked before lower-casing too: U+212A (Kelvin) becomes an innocent k.
  if (!isToken(text) || !isFieldName(lower)) throw new TypeError(`Headers.${method}: ${quoted(text)} is an invalid header name.`)
  if (known.size < knownMost && text.length <= 64) known.set(text, lower)
  return lower
}

/**
 * `value`, of the header `name`, without white space around it. Throws TypeError for what cannot stand in a field line: NUL, CR, LF and
 * code units above 0xFF (Fetch §2.2.2), and the other controls too, which RFC 9110 §5.5 forbids.
 */
export function fieldText(value: string, name: string, method: string): string {
  if (typeof value === 'string' && isFieldValue(value)) return value
  const text = trimmed(`${value}`)
  if (!isFieldValue(text)) throw new TypeError(`Headers.${method}: ${quoted(text)} is an invalid value of the header ${quoted(`${name}`)}.`)
  return text
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}

/** Without HTTP whitespace (Fetch §2.2: HTAB, LF, CR, SP) at the ends. */
function trimmed(text: string): string {
  let start = 0
  let limit = text.length
  while (start < limit && isWhitespace(text.charCodeAt(start))) start++
  while (limit > start && isWhitespace(text.charCodeAt(limit - 1))) limit--
  return text.slice(start, limit)
}

function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/** The flat array that `init` says (Fetch §5.1 "fill"); the caller owns it. */
export function fieldsFromInit(init: HeadersInit, method: string): string[] {
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- callers without types
  if (typeof init !== 'object' && typeof init !== 'function')
    throw new TypeError(`Headers.${method}: init is neither an iterable of pairs nor a record.`)
  const fields: string[] = []
  if (typeof (init as Iterable<unknown>)[Symbol.iterator] === 'function') {
    for (const pair of init as Iterable<Iterable<string>>) {
      const [name, value, ...rest] = pair as unknown as [string?, string?, ...string[]]
      if (name === undefined || value === undefined || rest.length > 0)
        throw new TypeError(`Headers.${method}: a pair must have a name and a value.`)
      fields.push(fieldName(name, method), fieldText(value, name, method))
    }
    return fields
  }
  const record = init as Readonly<Record<string, string>>
  for (const name in record)
    if (Object.hasOwn(record, name)) fields.push(fieldName(name, method), fieldText(record[name] as string, name, method))
  return fields
}

/** All values of `name` as `Headers.get` gives them: joined with ", ", cookies with "; ". Null if there is none. */
export function combined(fields: Fields, name: string): string | null {
  let value: string | null = null
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] !== name) continue
    value = value === null ? (fields[i + 1] as string) : value + (name === 'cookie' ? '; ' : ', ') + (fields[i + 1] as string)
  }
  return value
}

/** Fetch §2.2.2 "sort and combine": by name, one entry for each, but one for every set-cookie. */
export function sortedAndCombined(fields: Fields): [string, string][] {
  const names: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (!names.includes(name)) names.push(name)
  }
  names.sort()
  const entries: [string, string][] = []
  for (const name of names) {
    if (name !== 'set-cookie') entries.push([name, combined(fields, name) as string])
    else for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) entries.push([name, fields[i + 1] as string])
  }
  return entries
}
