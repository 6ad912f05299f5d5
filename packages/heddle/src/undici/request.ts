import { stringify } from 'node:querystring'
import { fieldValue, isFieldName, isFieldValue, requestHead, UsageError, type Fields, type Head } from '../http/index.ts'
import { PassThrough, type Readable } from 'node:stream'
import { sourceOf, StreamSource, typeOf, type BodySource } from '../web/index.ts'
import type { DispatchOptions } from './types.ts'

/** What a request is made of. */
export interface DispatchedRequest {
  readonly origin: string
  readonly head: Head
  /** Undefined: none, not even an empty one. */
  readonly content: Uint8Array | Blob | BodySource | undefined
  /** Where `content` comes from, if that is a stream of Node's. */
  readonly stream: Readable | undefined
}

/** Fields of one connection, which the engines write themselves (RFC 9110 §7.6.1). */
const dropped = new Set(['connection', 'keep-alive', 'proxy-connection', 'host'])
/** … and those that would change how the message is framed. */
const refused = new Set(['transfer-encoding', 'upgrade'])

/** RFC 9110 §8.6: without content they say so. */
const expectsContent = new Set(['POST', 'PUT', 'PATCH', 'QUERY', 'PROPFIND', 'PROPPATCH'])

/** Reads what undici's `dispatch` was given. Throws UsageError, or TypeError for a body that is locked. */
export function dispatchedRequest(options: DispatchOptions): DispatchedRequest {
  const { method, servername, body = null, upgrade = null, expectContinue = false } = options
  if (typeof method !== 'string') throw new UsageError(`dispatch: method must be a string, and is ${typeof method}`)
  if (upgrade !== null && upgrade !== false) throw new UsageError('dispatch: upgrade is not supported; heddle/websocket opens WebSockets')
  if (method === 'CONNECT') throw new UsageError('dispatch: CONNECT is not supported')
  const { url, path } = targetOf(options)
  if (url.protocol === 'https:' && typeof servername === 'string' && servername !== '' && servername.toLowerCase() !== url.hostname)
    throw new UsageError(`dispatch: servername is that of the origin, ${url.hostname}, and cannot be ${servername}`)
  const { fields, host } = fieldsOf(options.headers)
  const stream = streamOf(body)
  const [content, type] = contentOf(stream ?? body)
  if (type !== undefined && fieldValue(fields, 'content-type') === undefined) fields.push('content-type', type)
  const length = content instanceof Uint8Array ? content.length : content instanceof Blob ? content.size : undefined
  const stated = fieldValue(fields, 'content-length')
  if (stated === undefined) {
    if (length !== undefined && (length > 0 || expectsContent.has(method))) fields.push('content-length', String(length))
  } else if (length !== undefined && stated !== String(length))
    throw new UsageError(`dispatch: content-length is ${stated}, and the body has ${length} bytes`)
  const empty = length === 0
  if (expectContinue && !empty && fieldValue(fields, 'expect') === undefined) fields.push('expect', '100-continue')
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  return {
    origin: url.origin,
    head: requestHead(method, scheme, host ?? url.host, path, fields),
    content: empty ? undefined : content,
    stream,
  }
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

/** A stream of Node's, also one of the kind from before they could be iterated. */
function streamOf(body: unknown): Readable | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const { pipe, on } = body as Partial<Readable>
  if (typeof pipe !== 'function' || typeof on !== 'function') return undefined
  if (Symbol.asyncIterator in body) return body as Readable
  const old = body as Readable
  const through = new PassThrough()
  old.on('error', (error) => through.destroy(error))
  through.on('close', () => old.destroy?.())
  old.pipe(through)
  // Some begin when they are piped, others do not.
  old.resume?.()
  return through
}

function contentOf(body: unknown): [content: Uint8Array | Blob | BodySource, type: string | undefined] {
  if (body === null) return [new Uint8Array(0), undefined]
  if (typeof body === 'string') return [Buffer.from(body), undefined]
  if (typeof body !== 'object') throw wrongBody(typeof body)
  if (body instanceof Uint8Array) return [body, undefined]
  const form = formOf(body)
  // Of bytes and streams undici says nothing; a form and a Blob have a type of their own.
  if (form !== undefined || body instanceof Blob || body instanceof URLSearchParams) {
    const source = sourceOf(form ?? body)
    return [typeof source === 'string' ? Buffer.from(source) : (source as Blob), typeOf(form ?? body, source)]
  }
  const known = ArrayBuffer.isView(body) || body instanceof ArrayBuffer || Symbol.asyncIterator in body
  if (!known && !(Symbol.iterator in body)) throw wrongBody(Object.prototype.toString.call(body))
  const source = sourceOf(known ? body : asyncOf(body as Iterable<Uint8Array | string>)) as Uint8Array | ReadableStream | BodySource
  return [source instanceof ReadableStream ? new StreamSource(source) : source, undefined]
}

/** A form, also one of the class that undici has of its own. */
function formOf(body: object): FormData | undefined {
  if (body instanceof FormData) return body
  if ((body as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag] !== 'FormData' || !(Symbol.iterator in body)) return undefined
  return formFrom(body as Iterable<[name: string, value: string | File]>)
}

function formFrom(entries: Iterable<[name: string, value: string | File]>): FormData {
  const form = new FormData()
  for (const [name, value] of entries) {
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, value, value.name)
  }
  return form
}

function wrongBody(what: string): UsageError {
  return new UsageError(`dispatch: body must be bytes, text, a Blob, a form, a stream or an iterable, and is ${what}`)
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
