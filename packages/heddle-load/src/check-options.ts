import { isAuthority, isFieldName, isFieldValue, isToken, UsageError } from 'heddle/http'
import { acceptedStatuses } from './accept.ts'
import type { LoadHeaders, LoadOptions, RequestOptions } from './options.ts'

/** How an option is called by whoever gave it: `connections`, or `--connections`. */
export type NameOf = (option: string) => string

/** Says what is wrong with an option. */
export function wrong(name: string, expected: string, found: unknown): UsageError {
  return new UsageError(`${name}: expected ${expected}, found ${inWords(found)}`)
}

/** A value as an error shows it: short, on one line. */
export function inWords(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'object') return 'an object'
  if (typeof value !== 'string') return String(value)
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}…` : value)
}

/** A whole number. */
export function wholeNumber(name: string, value: unknown, fallback: number, least: number, most: number): number {
  if (value === undefined) return fallback
  const known = typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
  if (!known) throw wrong(name, `a whole number from ${least} to ${most}`, value)
  return value
}

/** More than `least`, and finite. */
export function numberAbove(name: string, value: unknown, fallback: number, least: number, most: number): number {
  if (value === undefined) return fallback
  if (!(typeof value === 'number' && value > least && value <= most)) throw wrong(name, `a number above ${least}, up to ${most}`, value)
  return value
}

/** ms; what timers can wait. */
export function duration(name: string, value: unknown, fallback: number, least: number): number {
  if (value === undefined) return fallback
  const known = typeof value === 'number' && value >= least && value <= 2 ** 31 - 1
  if (!known) throw wrong(name, `a duration from ${least} ms to 24 days`, value)
  return value
}

/** One of several words. */
export function oneOf<Word extends string>(name: string, value: unknown, words: readonly Word[], fallback: Word): Word {
  if (value === undefined) return fallback
  if (!words.includes(value as Word)) throw wrong(name, words.join(' or '), value)
  return value as Word
}

/** true or false. */
export function flag(name: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback
  if (typeof value !== 'boolean') throw wrong(name, 'true or false', value)
  return value
}

/** What the connection needs of the fields is not the program's to say. */
const reserved = new Set(['connection', 'content-length', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade'])

/** Pairs with names in lower case, and what `host` says apart from them. */
export function readHeaders(name: string, given: LoadHeaders | undefined): { fields: string[]; host: string | undefined } {
  const fields: string[] = []
  let host: string | undefined
  if (given === undefined) return { fields, host }
  if (typeof given !== 'object' || given === null) throw wrong(name, 'an object, or pairs of a name and a value', given)
  const pairs: (readonly [string, unknown])[] = Array.isArray(given)
    ? (given as (readonly [string, string])[]).map((pair) => {
        if (!Array.isArray(pair) || pair.length !== 2) throw wrong(name, 'pairs of a name and a value', pair)
        return pair as [string, unknown]
      })
    : Object.entries(given as Record<string, string | readonly string[]>).flatMap(([key, value]) =>
        Array.isArray(value) ? value.map((one) => [key, one] as const) : [[key, value] as const],
      )
  for (const [key, value] of pairs) {
    const field = String(key).toLowerCase()
    if (!isFieldName(field)) throw wrong(name, 'the name of a header', key)
    if (reserved.has(field)) throw new UsageError(`${name}: ${field} is not to be given: it follows from the request`)
    if (typeof value !== 'string' || !isFieldValue(value)) throw wrong(`${name}: ${field}`, 'a value without control characters', value)
    if (field !== 'host') fields.push(field, value)
    else if (isAuthority(value)) host = value
    else throw wrong(`${name}: host`, 'a host, or host:port', value)
  }
  return { fields, host }
}

/** A method. */
export function readMethod(name: string, method: unknown): string | undefined {
  if (method === undefined) return undefined
  if (typeof method !== 'string' || !isToken(method) || method === 'CONNECT') throw wrong(name, 'a method such as GET or POST', method)
  return method
}

/** The content, if there is any. */
export function readBody({ body, bodySize }: RequestOptions, nameOf: NameOf): Uint8Array | undefined {
  if (body !== undefined && bodySize !== undefined) throw new UsageError(`${nameOf('body')} and ${nameOf('bodySize')} exclude each other`)
  if (bodySize !== undefined) {
    // Letters, so that it can be a text as well.
    return new Uint8Array(wholeNumber(nameOf('bodySize'), bodySize, 0, 0, 2 ** 30)).fill(0x78)
  }
  if (body === undefined) return undefined
  if (typeof body === 'string') return Buffer.from(body)
  if (!(body instanceof Uint8Array)) throw wrong(nameOf('body'), 'a text or bytes', body)
  return body
}

/** The statuses that are a success. */
export function readAccept(name: string, accept: LoadOptions['accept'], fallback: string): Uint8Array {
  const accepted = acceptedStatuses(accept ?? fallback)
  if (accepted === undefined) throw wrong(name, 'statuses such as 200 or 2xx,404', Array.isArray(accept) ? accept.join(',') : accept)
  return accepted
}
