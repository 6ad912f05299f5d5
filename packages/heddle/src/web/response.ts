import { isBodiless, noFields, withoutField, type Fields } from '../http/index.ts'
import { Body, cancelBody, cloneSource, Content, findContent, setSource, takeFrom } from './body.ts'
import { sourceOf, typeOf, type BodyInit, type Source } from './body-init.ts'
import { fieldsOf, fieldsFrom, Headers, headersFrom } from './headers.ts'
import type { HeadersInit } from './header-text.ts'
import type { IncomingBody } from './incoming-body.ts'
import { recordFields } from './record-memo.ts'

/** Trailer fields of a response that is sent: known later than its content, or computed when it ends. */
export type TrailersInit = HeadersInit | Promise<HeadersInit> | (() => HeadersInit | Promise<HeadersInit>)

/** What `new Response(body, init)` takes (Fetch §5.5), and trailers. */
export interface ResponseInit {
  /** 200–599. Default 200. */
  status?: number
  /** Kept on the object and not sent: HTTP/1.1 gets the registered phrase, later versions have none. Default ''. */
  statusText?: string
  /** Fields to send. The `content-type` that goes with the body is added where they have none. */
  headers?: HeadersInit
  /**
   * Not in the Fetch standard: trailer fields, sent after the content. HTTP/1.1 can send them only
   * behind content whose length is not stated, so such a response is sent in chunks.
   */
  trailers?: TrailersInit
}

/** What `response.type` may be; here `default`, `error`, and `basic` for what was fetched. */
export type ResponseType = 'basic' | 'cors' | 'default' | 'error' | 'opaque' | 'opaqueredirect'

const plainText: Fields = Object.freeze(['content-type', 'text/plain;charset=UTF-8'])
const jsonText: Fields = Object.freeze(['content-type', 'application/json'])
const none: ResponseInit = Object.freeze({})

/**
 * A received response; `source` is cancelled when the program disposes it. Its headers are immutable.
 * `incoming`: what stands at the bottom of `source` and knows the trailers.
 */
export let responseFrom: (
  status: number,
  statusText: string,
  fields: Fields,
  source: Source,
  url: string,
  redirected: boolean,
  incoming?: IncomingBody,
) => Response
/**
 * The field lines to send `response` with, without making Headers. Not to be changed. Of a received
 * response whose codings were undone they lack what tells of the content as it came.
 */
export let responseFields: (response: Response) => Fields
/** Claims the source of a response that is sent. Throws TypeError if its body is locked or was read. */
export let responseSource: (response: Response) => Source
/** What its maker gave as `trailers`. */
export let responseTrailers: (response: Response) => TrailersInit | undefined

/**
 * The WHATWG Response interface (Fetch §6.6): cheap to make, and complete when it is touched.
 * It is a class of its own: `instanceof globalThis.Response` is false; see `toNative`.
 *
 * A received response holds its connection until its content is read, cancelled or disposed:
 * `using response = await client.fetch(url)` frees it at the end of the block.
 */
export class Response extends Body implements Disposable, AsyncDisposable {
  readonly #state: State

  static {
    findContent((body) => (#state in body ? body.#state : undefined))
    responseFrom = (status, statusText, fields, source, url, redirected, incoming) => {
      const response = new Response()
      const state = response.#state
      state.status = status
      state.fields = fields
      state.rare = new Rare(statusText, 'basic', url, redirected, undefined, incoming)
      setSource(response, source)
      return response
    }
    responseFields = (response) => {
      const state = response.#state
      const fields = linesOf(state)
      const source = state.rare?.incoming === undefined ? null : state.source
      if (source === null || typeof source !== 'object' || !('decoded' in source)) return fields
      return withoutField(withoutField(fields, 'content-encoding'), 'content-length')
    }
    responseSource = (response) => takeFrom(response.#state)
    responseTrailers = (response) => response.#state.rare?.trailers
  }

  /**
   * Throws RangeError for a status outside 200–599; TypeError for an invalid statusText or header,
   * for content with a status that has none (204, 205, 304), for a stream that is locked.
   */
  constructor(body: BodyInit | null = null, init: ResponseInit = none) {
    super()
    this.#state = stateOf(body, init ?? none)
  }

  /** `data` as JSON. Throws TypeError if it has no JSON form. */
  static json(data: unknown, init: ResponseInit = none): Response {
    const text = JSON.stringify(data)
    if (text === undefined) throw new TypeError('Response.json: the value is not JSON serializable.')
    const response = new Response(null, init)
    const state = response.#state
    if (isBodiless(state.status) || state.status === 205) {
      throw new TypeError(`Response.json: a response of status ${state.status} has no body.`)
    }
    setSource(response, text)
    if (state.fields.length === 0) state.fields = jsonText
    else if (!hasField(state.fields, 'content-type')) state.fields = [...state.fields, 'content-type', 'application/json']
    return response
  }

  /** A redirect to `url`, which must be absolute. Throws TypeError for another url, RangeError for a status that is no redirect. */
  static redirect(url: string | URL, status = 302): Response {
    const parsed = URL.parse(`${url}`)
    if (parsed === null) throw new TypeError(`Failed to parse URL from ${url}`)
    if (status !== 301 && status !== 302 && status !== 303 && status !== 307 && status !== 308) {
      throw new RangeError(`Invalid status code ${status}`)
    }
    const response = new Response(null, { status })
    response.#state.headers = headersFrom(['location', parsed.href], true)
    return response
  }

  /** A network error: type `error`, status 0. A server cannot send it. */
  static error(): Response {
    const response = responseFrom(0, '', noFields, null, '', false)
    response.#state.rare = new Rare('', 'error', '', false, undefined, undefined)
    response.#state.headers = headersFrom(noFields, true)
    return response
  }

  get type(): ResponseType {
    return this.#state.rare === undefined ? 'default' : this.#state.rare.type
  }

  /** The last URL asked, without fragment; empty for a response made here. */
  get url(): string {
    return this.#state.rare === undefined ? '' : this.#state.rare.url
  }

  get redirected(): boolean {
    return this.#state.rare !== undefined && this.#state.rare.redirected
  }

  get status(): number {
    return this.#state.status
  }

  get ok(): boolean {
    return this.#state.status >= 200 && this.#state.status <= 299
  }

  get statusText(): string {
    return this.#state.rare === undefined ? '' : this.#state.rare.statusText
  }

  /** Immutable on a received response, as the standard says. */
  override get headers(): Headers {
    return (this.#state.headers ??= headersFrom(this.#state.fields, this.type === 'basic'))
  }

  /**
   * Not in the Fetch standard: the trailer fields, often none. Of a received response once its content
   * has arrived, for which it must be read unless it is small; rejects with what cut the content.
   */
  get trailers(): Promise<Headers> {
    const incoming = this.#state.rare?.incoming
    if (incoming !== undefined) {
      const trailers = incoming.arrived().then((fields) => headersFrom(fields, true))
      trailers.catch(() => {})
      return trailers
    }
    const init = this.#state.rare?.trailers
    return Promise.resolve(typeof init === 'function' ? init() : init).then((given) => new Headers(given))
  }

  /**
   * A second response with the same content. Throws TypeError if the content was read or is locked.
   * Content that is still coming is held for the slower of the two readers.
   */
  clone(): Response {
    const clone = new Response()
    setSource(clone, cloneSource(this))
    clone.#state.status = this.#state.status
    clone.#state.fields = linesOf(this.#state)
    // It is never changed.
    clone.#state.rare = this.#state.rare
    return clone
  }

  /**
   * Node's own Response with the same status, headers and body; the body is shared, not copied:
   * it can be read here or there. Throws TypeError if it was read already.
   */
  toNative(): globalThis.Response {
    if (this.type === 'error') return globalThis.Response.error()
    if (this.bodyUsed) throw new TypeError('Response.toNative: the body was read already.')
    return new globalThis.Response(this.body as never, {
      status: this.#state.status,
      statusText: this.statusText,
      headers: [...this.headers],
    })
  }

  /** Frees what stands behind content that is not wanted any more: the connection. */
  [Symbol.dispose](): void {
    cancelBody(this, undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    cancelBody(this, undefined)
  }

  get [Symbol.toStringTag](): string {
    return 'Response'
  }
}

/** What a response is, besides its content. */
class State extends Content {
  declare status: number
  /** The truth until `headers` is made. */
  declare fields: Fields
  declare headers: Headers | undefined
  /** What few responses that programs make have; undefined: all of it is as at first. */
  declare rare: Rare | undefined

  constructor(source: Source) {
    super(source)
    this.status = 200
    this.fields = noFields
    this.headers = undefined
    this.rare = undefined
  }
}

/** Apart from the constructor, which stays small so that it is compiled into whoever makes responses. */
function stateOf(body: BodyInit | null, init: ResponseInit): State {
  const { status = 200, statusText = '', headers, trailers } = init
  const state = new State(typeof body === 'string' || body === null ? body : sourceOf(body))
  if (status !== 200) state.status = checkedStatus(status)
  if (statusText !== '' || trailers !== undefined) {
    state.rare = new Rare(checkedPhrase(statusText), 'default', '', false, trailers, undefined)
    // The content may never come to its end, and trailers nobody waits for are no reason to end the process.
    if (trailers instanceof Promise) trailers.catch(() => {})
  }
  if (headers !== undefined) state.fields = isRecord(headers) ? recordFields(headers) : fieldsFrom(headers)
  if (body === null) return state
  if (state.status !== 200 && (isBodiless(state.status) || state.status === 205)) {
    throw new TypeError(`Response constructor: a response of status ${state.status} has no body.`)
  }
  if (typeof body === 'string' && headers === undefined) {
    state.fields = plainText
    return state
  }
  if (hasField(state.fields, 'content-type')) return state
  const type = typeOf(body, state.source)
  if (type !== undefined) state.fields = [...state.fields, 'content-type', type]
  return state
}

function linesOf({ headers, fields }: State): Fields {
  return headers === undefined ? fields : fieldsOf(headers)
}

/** What a received response is told with it, and what a program rarely says. */
class Rare {
  readonly statusText: string
  readonly type: ResponseType
  readonly url: string
  readonly redirected: boolean
  readonly trailers: TrailersInit | undefined
  readonly incoming: IncomingBody | undefined

  constructor(
    statusText: string,
    type: ResponseType,
    url: string,
    redirected: boolean,
    trailers: TrailersInit | undefined,
    incoming: IncomingBody | undefined,
  ) {
    this.statusText = statusText
    this.type = type
    this.url = url
    this.redirected = redirected
    this.trailers = trailers
    this.incoming = incoming
  }
}

function hasField(fields: Fields, name: string): boolean {
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) return true
  return false
}

function checkedStatus(status: number): number {
  const value = Math.trunc(Number(status))
  if (!(value >= 200 && value <= 599)) throw new RangeError('init["status"] must be in the range of 200 to 599, inclusive.')
  return value
}

/** RFC 9112 §4: reason-phrase = 1*( HTAB / SP / VCHAR / obs-text ). */
function checkedPhrase(text: string): string {
  const phrase = `${text}`
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(phrase)) throw new TypeError('Invalid statusText')
  return phrase
}

/** Names and values as properties: neither pairs nor Headers. */
function isRecord(headers: HeadersInit): headers is Readonly<Record<string, string>> {
  return typeof headers === 'object' && headers !== null && !(Symbol.iterator in headers)
}
