import { stringify } from 'node:querystring'
import { fieldValue, isFieldName, isFieldValue, requestHead, UsageError, type Fields, type Head } from '../http/index.ts'
import { sourceOf, StreamSource, typeOf, type BodySource } from '../web/index.ts'
import type { DispatchOptions } from './types.ts'

/** What a request is made of. */
export interface DispatchedRequest {
  readonly origin: string
  readonly head: Head
  readonly content: Uint8Array | BodySource | undefined
}

/** Fields of one connection, which the engines write themselves (RFC 9110 §7.6.1). */
const dropped = new Set(['connection', 'keep-alive', 'proxy-connection', 'host'])
/** … and those that would change how the message is framed. */
const refused = new Set(['transfer-encoding', 'upgrade'])

/** Reads what undici's `dispatch` was given. Throws UsageError, or TypeError for a body that is locked. */
export function dispatchedRequest(options: DispatchOptions): DispatchedRequest {
  const { method, body = null, upgrade = null, expectContinue = false } = options
  if (typeof method !== 'string') throw new UsageError(`dispatch: method must be a string, and is ${typeof method}`)
  if (upgrade !== null && upgrade !== false) throw new UsageError('dispatch: upgrade is not supported; heddle/websocket opens WebSockets')
  if (method === 'CONNECT') throw new UsageError('dispatch: CONNECT is not supported')
  const { url, path } = targetOf(options)
  const { fields, host } = fieldsOf(options.headers)
  const [content, type] = contentOf(body)
  if (type !== undefined && fieldValue(fields, 'content-type') === undefined) fields.push('content-type', type)
  if (content instanceof Uint8Array && fieldValue(fields, 'content-length') === undefined)
    fields.push('content-length', String(content.length))
  if (expectContinue && content !== undefined && fieldValue(fields, 'expect') === undefined) fields.push('expect', '100-continue')
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  return { origin: url.origin, head: requestHead(method, scheme, host ?? url.host, path, fields), content }
}

function targetOf({ origin, path, query }: DispatchOptions): { url: URL; path: string } {
  if (typeof path !== 'string') throw new UsageError(`dispatch: path must be a string, and is ${typeof path}`)
  const absolute = /^https?:\/\//i.test(path) ? new URL(path) : undefined
  const base = origin ?? absolute
  if (base === undefined) throw new UsageError('dispatch: origin is missing')
  let url: URL
  try {
    url = new URL(base)
  } catch (cause) {
    throw new UsageError(`dispatch: origin is no URL: ${JSON.stringify(String(base).slice(0, 100))}`, { cause })
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new UsageError(`dispatch: origin must be http or https, and is ${url.protocol}`)
  const plain = absolute === undefined ? path : absolute.pathname + absolute.search
  if (!plain.startsWith('/')) throw new UsageError('dispatch: path must begin with a slash')
  if (query === undefined || query === null) return { url, path: plain }
  if (plain.includes('?') || plain.includes('#')) throw new UsageError('dispatch: there is a query in path and in query')
  const text = stringify(query as Record<string, string>)
  return { url, path: text === '' ? plain : `${plain}?${text}` }
}

/** Undici takes fields as one flat array, as pairs (a Map, a Headers), or as an object. */
function fieldsOf(headers: unknown): { fields: string[]; host: string | undefined } {
  const fields: string[] = []
  let host: string | undefined
  const add = (name: unknown, value: unknown): void => {
    if (value === undefined) return
    if (Array.isArray(value)) {
      for (const one of value) add(name, one)
      return
    }
    const lower = textOf(name).toLowerCase()
    const text = value === null ? '' : textOf(value)
    if (!isFieldName(lower)) throw new UsageError(`dispatch: ${JSON.stringify(lower)} is no field name`)
    if (!isFieldValue(text)) throw new UsageError(`dispatch: the value of ${lower} has characters that no field may have`)
    if (refused.has(lower)) throw new UsageError(`dispatch: ${lower} is not the program's to send`)
    if (lower === 'host') host = text
    if (!dropped.has(lower)) fields.push(lower, text)
  }
  if (headers === undefined || headers === null) return { fields, host }
  if (typeof headers !== 'object') throw new UsageError('dispatch: headers must be an object or an array')
  if (Array.isArray(headers) && !Array.isArray(headers[0])) {
    if (headers.length % 2 !== 0) throw new UsageError('dispatch: headers must be names and values in turn')
    for (let i = 0; i < headers.length; i += 2) add(headers[i], headers[i + 1])
  } else if (typeof (headers as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function') {
    for (const pair of headers as Iterable<unknown>) {
      if (!Array.isArray(pair) || pair.length !== 2) throw new UsageError('dispatch: headers must be pairs of name and value')
      add(pair[0], pair[1])
    }
  } else for (const [name, value] of Object.entries(headers)) add(name, value)
  return { fields, host }
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)
}

function contentOf(body: unknown): [content: Uint8Array | BodySource | undefined, type: string | undefined] {
  if (body === null) return [undefined, undefined]
  if (typeof body === 'string') return [Buffer.from(body), undefined]
  if (body instanceof Uint8Array) return [body, undefined]
  const source = sourceOf(isSyncIterable(body) ? asyncOf(body) : body)
  // Of bytes and streams undici says nothing; a form and a Blob have a type of their own.
  const type = body instanceof FormData || body instanceof URLSearchParams || body instanceof Blob ? typeOf(body, source) : undefined
  if (source === null) return [undefined, undefined]
  if (typeof source === 'string') return [Buffer.from(source), type]
  if (source instanceof Uint8Array) return [source, type]
  if (source instanceof Blob) return [new StreamSource(source.stream()), type ?? source.type]
  return [source instanceof ReadableStream ? new StreamSource(source) : source, type]
}

function isSyncIterable(body: unknown): body is Iterable<Uint8Array | string> {
  if (typeof body !== 'object' || body === null || body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return false
  if (body instanceof FormData || body instanceof URLSearchParams) return false
  return Symbol.iterator in body && !(Symbol.asyncIterator in body)
}

async function* asyncOf(body: Iterable<Uint8Array | string>): AsyncGenerator<Uint8Array | string> {
  yield* body
}

/** Fields in undici's form. Names such as `__proto__` are names like any other. */
export function incomingFields(fields: Fields): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {}
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    const value = fields[i + 1] as string
    const before = Object.hasOwn(result, name) ? result[name] : undefined
    const all = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
    Object.defineProperty(result, name, { value: all, enumerable: true, configurable: true, writable: true })
  }
  return result
}

/** The same as bytes, name and value in turn. */
export function rawFields(fields: Fields): Buffer[] {
  return fields.map((text) => Buffer.from(text, 'latin1'))
}
