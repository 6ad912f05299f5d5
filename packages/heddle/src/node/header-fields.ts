import { validateHeaderName, validateHeaderValue } from 'node:http'
import { nodeError } from './errors.ts'

/** Header values as Node's methods take them. */
export type HeaderValue = string | number | readonly string[]
/** Headers as Node's methods take them: a record, pairs, or names and values in turn. */
export type HeaderInput =
  | Readonly<Record<string, HeaderValue | undefined>>
  | readonly (readonly [string, HeaderValue])[]
  | readonly HeaderValue[]

/** Field lines of headers that Node's class has validated already; names in lower case. */
export function fieldsOf(headers: Readonly<Record<string, HeaderValue | undefined>>): string[] {
  const fields: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (Array.isArray(value)) for (const one of value as readonly string[]) fields.push(name, fieldText(one))
    else if (value !== undefined) fields.push(name, fieldText(value as string | number))
  }
  return fields
}

/** Field lines of headers that come as they are. Throws Node's errors for invalid names and values. */
export function checkedFields(headers: HeaderInput): string[] {
  const fields: string[] = []
  for (const [name, value] of pairsOf(headers)) {
    validateHeaderName(name)
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value as string | number]) {
      validateHeaderValue(name, one as string)
      fields.push(name.toLowerCase(), fieldText(one))
    }
  }
  return fields
}

/** Field lines of `res.writeEarlyHints`: the links in one line (RFC 8297). Empty: there is nothing to hint at. */
export function hintFields(hints: Readonly<Record<string, HeaderValue>>): string[] {
  const { link, ...others } = hints
  if (link === undefined || link === null || (Array.isArray(link) && link.length === 0)) return []
  return checkedFields({ link: Array.isArray(link) ? link.join(', ') : (link as string), ...others })
}

/** Pairs of name and value, whatever form `headers` has. Throws Node's error for a list with a name left over. */
export function pairsOf(headers: HeaderInput): (readonly [string, HeaderValue])[] {
  if (!Array.isArray(headers)) {
    const record = headers as Readonly<Record<string, HeaderValue | undefined>>
    return Object.entries(record).filter((pair): pair is [string, HeaderValue] => pair[1] !== undefined)
  }
  if (Array.isArray(headers[0])) return headers as (readonly [string, HeaderValue])[]
  if (headers.length % 2 !== 0) throw nodeError('ERR_INVALID_ARG_VALUE', "The argument 'headers' is invalid", TypeError)
  const pairs: (readonly [string, HeaderValue])[] = []
  for (let i = 0; i < headers.length; i += 2) pairs.push([`${headers[i] as string}`, headers[i + 1] as HeaderValue])
  return pairs
}

/** A field value has no white space around it (RFC 9110 §5.5); Node's class lets it pass. */
function fieldText(value: string | number): string {
  if (typeof value !== 'string') return `${value}`
  const [first, last] = [value.charCodeAt(0), value.charCodeAt(value.length - 1)]
  return isBlank(first) || isBlank(last) ? value.trim() : value
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}
