import { fieldValue, type Fields, type Head } from '../http/index.ts'
import { contentFields } from './fetch-fields.ts'

/** Hops followed at most (Fetch, HTTP-redirect fetch). */
export const maxRedirects = 20

/** RFC 9110 §15.4: the statuses that send a client elsewhere by themselves. */
export function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308
}

/** The `location` of a redirect, as text that a URL parser takes, or undefined if there is none. */
export function redirectLocation(head: Head): string | undefined {
  const value = fieldValue(head.fields, 'location')
  if (value === undefined) return undefined
  // Many servers send UTF-8 here, though a field is latin1 (Fetch: isomorphic-decode, then parse; Node and browsers read UTF-8).
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) > 0x7f) return Buffer.from(value, 'latin1').toString('utf8')
  return value
}

/** The method of the next hop (Fetch, HTTP-redirect fetch; RFC 9110 §15.4.2–§15.4.4). */
export function redirectMethod(status: number, method: string): string {
  if ((status === 301 || status === 302) && method === 'POST') return 'GET'
  if (status === 303 && method !== 'GET' && method !== 'HEAD') return 'GET'
  return method
}

/** Credentials and what names the old host: never shown to another origin (RFC 9110 §15.4, Fetch). */
const originBound = new Set(['authorization', 'cookie', 'host', 'proxy-authorization'])

/**
 * The fields of the next hop: without those that tell of content if the content was dropped, and
 * without credentials if the origin changed. They stay away even if a later hop leads back.
 */
export function redirectFields(fields: Fields, contentDropped: boolean, originChanged: boolean): Fields {
  if (!contentDropped && !originChanged) return fields
  const left: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (contentDropped && contentFields.has(name)) continue
    if (originChanged && originBound.has(name)) continue
    left.push(name, fields[i + 1] as string)
  }
  return left
}
