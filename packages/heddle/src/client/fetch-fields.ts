import type { Fields } from '../http/index.ts'
import { acceptEncoding } from './decompress.ts'

/** What `fetch` and `WebSocket` call themselves (`user-agent`) when the program says nothing else. */
export const userAgent = 'heddle/0.1.0'

/** Fields that tell of the content: gone when a redirect drops it (Fetch, request-body-header name). */
export const contentFields: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-type',
  'expect',
])

/** RFC 9110 §7.6.1: these belong to one connection, so the engine writes them and nobody else. */
const connectionFields = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])

/** The whole of a GET's fields when the program gave none: one array, so the engine meets the same one again. */
const plainFields: Fields = Object.freeze(['accept', '*/*', 'accept-encoding', acceptEncoding, 'user-agent', userAgent])

/**
 * The fields of a request: `own` (lower case, checked), then what fetch adds where `own` is silent.
 * Connection-specific fields are dropped, and so is `host`: it is the head's authority. `decompress`
 * false: the program wants the content as it was sent, so no coding is asked for. `contentLength`: -1
 * if not known, undefined if there is no content.
 * Throws TypeError if a content-length given by the program contradicts the content.
 */
export function sentFields(own: Fields, decompress: boolean, contentType: string | undefined, contentLength: number | undefined): Fields {
  if (own.length === 0 && contentLength === undefined && decompress) return plainFields
  const fields: string[] = []
  let accept = false
  let encoding = !decompress
  let agent = false
  let type = contentType === undefined
  let range = false
  let length = -1
  for (let i = 0; i < own.length; i += 2) {
    const name = own[i] as string
    const value = own[i + 1] as string
    switch (name) {
      case 'accept':
        accept = true
        break
      case 'accept-encoding':
        encoding = true
        break
      case 'user-agent':
        agent = true
        break
      case 'content-type':
        type = true
        break
      case 'range':
        range = true
        break
      case 'host':
        continue
      case 'content-length':
        length = statedLength(value, length, contentLength)
        continue
      case 'te':
        if (value.toLowerCase() !== 'trailers') continue
        break
      default:
        if (connectionFields.has(name)) continue
    }
    fields.push(name, value)
  }
  if (!type) fields.push('content-type', contentType as string)
  if (contentLength !== undefined && contentLength >= 0) length = contentLength
  if (length >= 0) fields.push('content-length', String(length))
  if (!accept) fields.push('accept', '*/*')
  // A part of compressed content cannot be decompressed (Fetch, HTTP-network-or-cache fetch).
  if (!encoding) fields.push('accept-encoding', range ? 'identity' : acceptEncoding)
  if (!agent) fields.push('user-agent', userAgent)
  return fields
}

/** Checks a content-length the program gave; -1 if it says nothing new. */
function statedLength(value: string, before: number, actual: number | undefined): number {
  const length = /^\d{1,15}$/.test(value) ? Number(value) : -1
  if (length < 0 || (before >= 0 && before !== length)) throw new TypeError(`invalid content-length: ${value.slice(0, 40)}`)
  if (actual === undefined && length > 0) throw new TypeError('a content-length without content')
  if (actual !== undefined && actual >= 0 && actual !== length)
    throw new TypeError(`the content-length given is ${length}, the content has ${actual} bytes`)
  return actual === undefined ? -1 : length
}

/** True for a method whose request has a content-length even without content (RFC 9110 §8.6). */
export function expectsContent(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH'
}
