import { noFields, type Fields, type Head } from '../http/index.ts'
import { Body, cloneSource, Content, findContent, setSource, takeSource } from './body.ts'
import { sourceOf, typeOf, type Source } from './body-init.ts'
import { fieldsFrom, fieldsOf, Headers, headersFrom } from './headers.ts'
import type { IncomingBody } from './incoming-body.ts'
import {
  defaultOptions,
  methodFrom,
  optionsFrom,
  type ReferrerPolicy,
  type RequestCache,
  type RequestCredentials,
  type RequestDuplex,
  type RequestInit,
  type RequestMode,
  type RequestOptions,
  type RequestRedirect,
} from './request-options.ts'
import { targetUrl } from './target-url.ts'
import { passOffer } from './tunnel.ts'

/** What a Request can be made of: a URL, or another request, Heddle's or Node's. */
export type RequestInfo = string | URL | Request | globalThis.Request

const none: RequestInit = Object.freeze({})
const received = Symbol('received')

/** A received request; `origin` is what {@link originFrom} made of scheme and authority. */
export let requestFrom: (head: Head, origin: string, incoming: IncomingBody | undefined) => Request
/** The field lines of `request`, without making Headers; a received request's lack the host. Not to be changed. */
export let requestFields: (request: Request) => Fields
/** The signal the program gave, itself; undefined if none. */
export let givenSignal: (request: Request) => AbortSignal | undefined
/** Aborts the signal of a received request; costs nothing unless somebody asked for it. */
export let abortRequest: (request: Request, reason: unknown) => void

/**
 * The WHATWG Request interface (Fetch §5.4). For a received request everything is lazy: the URL is
 * composed, Headers, signal and stream are made when asked for.
 * It is a class of its own: `instanceof globalThis.Request` is false; see `toNative`.
 */
export class Request extends Body {
  readonly #state: State

  static {
    findContent((body) => (#state in body ? body.#state : undefined))
    requestFrom = (head, origin, incoming) => {
      const request = new Request(received as never)
      const state = request.#state
      state.method = head.method
      state.head = head
      state.origin = origin
      state.fields = head.fields
      if (incoming !== undefined) {
        state.incoming = incoming
        state.source = incoming
      }
      return request
    }
    requestFields = (request) => {
      const { headers, fields } = request.#state
      return headers === undefined ? fields : fieldsOf(headers)
    }
    givenSignal = (request) => request.#state.rare?.given
    abortRequest = (request, reason) => {
      const rare = (request.#state.rare ??= new Rare())
      if (rare.aborted) return
      rare.aborted = true
      rare.reason = reason
      rare.controller?.abort(reason)
    }
  }

  /**
   * Throws TypeError for a URL that is not absolute or has credentials, an invalid method, header or
   * option, content with GET or HEAD, a stream without `duplex: 'half'`, a request whose body was read.
   */
  constructor(input: RequestInfo, init: RequestInit = none) {
    super()
    this.#state = new State()
    if ((input as unknown) === received) return
    this.#make(input, init ?? none)
  }

  get method(): string {
    return this.#state.method
  }

  /** Absolute and normalized. Of a received request: the scheme of the connection, the Host, path and query. */
  get url(): string {
    const state = this.#state
    if (state.url === '' && state.head !== undefined) state.url = targetUrl(state.origin, state.head.path)
    return state.url
  }

  /** A received request's headers can be changed: the copy is the program's. */
  override get headers(): Headers {
    const state = this.#state
    if (state.headers === undefined) {
      const host = state.head === undefined ? '' : state.head.authority
      // RFC 9110 §7.2: Fields leave the host to the head, programs expect it here.
      state.headers = headersFrom(host === '' ? state.fields : ['host', host, ...state.fields], false)
    }
    return state.headers
  }

  /**
   * Aborts when the client goes away before its response is complete, with the error that told so;
   * for a request made by the program: when the signal it gave does. Made at the first call.
   */
  get signal(): AbortSignal {
    const rare = (this.#state.rare ??= new Rare())
    if (rare.signal === undefined) {
      if (rare.given !== undefined) {
        rare.signal = AbortSignal.any([rare.given])
      } else {
        rare.controller = new AbortController()
        if (rare.aborted) rare.controller.abort(rare.reason)
        rare.signal = rare.controller.signal
      }
    }
    return rare.signal
  }

  get cache(): RequestCache {
    return optionsOf(this.#state).cache
  }

  get credentials(): RequestCredentials {
    return optionsOf(this.#state).credentials
  }

  get destination(): '' {
    return ''
  }

  get duplex(): RequestDuplex {
    return 'half'
  }

  get integrity(): string {
    return optionsOf(this.#state).integrity
  }

  get keepalive(): boolean {
    return optionsOf(this.#state).keepalive
  }

  get mode(): RequestMode {
    return optionsOf(this.#state).mode
  }

  get redirect(): RequestRedirect {
    return optionsOf(this.#state).redirect
  }

  get referrer(): string {
    return optionsOf(this.#state).referrer
  }

  get referrerPolicy(): ReferrerPolicy {
    return optionsOf(this.#state).referrerPolicy
  }

  /**
   * Not in the Fetch standard: the trailer fields of a received request, often none. Fulfilled once its
   * content has arrived, for which it must be read unless it is small; rejects with what cut the content.
   */
  get trailers(): Promise<Headers> {
    const { incoming } = this.#state
    if (incoming === undefined) return Promise.resolve(new Headers())
    const trailers = incoming.arrived().then((fields) => headersFrom(fields, true))
    // To be asked and not awaited is no reason to end the process.
    trailers.catch(() => {})
    return trailers
  }

  get isReloadNavigation(): boolean {
    return false
  }

  get isHistoryNavigation(): boolean {
    return false
  }

  /** A second request with the same content. Throws TypeError if the content was read or is locked. */
  clone(): Request {
    const clone = new Request(received as never)
    const state = clone.#state
    setSource(clone, cloneSource(this))
    state.method = this.#state.method
    state.url = this.url
    state.fields = fieldsOf(this.headers)
    state.rare = new Rare()
    state.rare.options = optionsOf(this.#state)
    state.rare.given = this.signal
    state.incoming = this.#state.incoming
    passOffer(this, clone)
    return clone
  }

  /**
   * Node's own Request, for an API that insists on its class. Body and signal are shared, not
   * copied: the body can be read here or there. Node's class takes no content with GET and HEAD, and
   * no CONNECT or TRACE (TypeError). Throws TypeError if the body was read already.
   */
  toNative(): globalThis.Request {
    if (this.bodyUsed) throw new TypeError('Request.toNative: the body was read already.')
    const { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy } = optionsOf(this.#state)
    const init: Record<string, unknown> = {
      method: this.method,
      headers: [...this.headers],
      signal: this.signal,
      cache,
      credentials,
      integrity,
      keepalive,
      mode,
      redirect,
      referrer,
      referrerPolicy,
    }
    if (this.method !== 'GET' && this.method !== 'HEAD' && this.#state.source !== null) {
      init['body'] = this.body
      init['duplex'] = 'half'
    }
    const native = new globalThis.Request(this.url, init)
    passOffer(this, native)
    return native
  }

  get [Symbol.toStringTag](): string {
    return 'Request'
  }

  #make(input: RequestInfo, init: RequestInit): void {
    const state = this.#state
    const rare = (state.rare = new Rare())
    let inherited: Request | globalThis.Request | undefined
    if (input instanceof Request || input instanceof globalThis.Request) {
      inherited = input
      state.url = input.url
      state.method = input.method
      state.fields = input instanceof Request ? fieldsOf(input.headers) : fieldsFrom(input.headers)
      rare.options = input instanceof Request ? optionsOf(input.#state) : optionsFrom(input as RequestInit, defaultOptions)
      rare.given =
        input instanceof Request ? (input.#state.rare?.given ?? (input.#state.head === undefined ? undefined : input.signal)) : input.signal
      if (input instanceof Request) passOffer(input, this)
    } else {
      state.url = absolute(input)
      // `new Request(otherUrl, request)`
      if (init instanceof Request) passOffer(init, this)
    }
    rare.options = optionsFrom(init, rare.options)
    if (init.method !== undefined) state.method = methodFrom(init.method)
    if (init.headers !== undefined) state.fields = fieldsFrom(init.headers)
    if (init.signal !== undefined) {
      if (init.signal !== null && !(init.signal instanceof AbortSignal))
        throw new TypeError('Request constructor: signal is no AbortSignal.')
      rare.given = init.signal ?? undefined
    }
    const { body } = init
    const hasContent = body !== undefined && body !== null
    if ((state.method === 'GET' || state.method === 'HEAD') && (hasContent || (inherited?.body ?? null) !== null)) {
      throw new TypeError('Request with GET/HEAD method cannot have body.')
    }
    if (hasContent) {
      const source = sourceOf(body)
      if (isStreamed(source) && init.duplex !== 'half') throw new TypeError('RequestInit: duplex option is required when sending a body.')
      const type = typeOf(body, source)
      if (type !== undefined && !hasField(state.fields, 'content-type')) state.fields = [...state.fields, 'content-type', type]
      setSource(this, source)
    } else if (inherited !== undefined && body !== null) {
      setSource(this, inheritedSource(inherited))
    }
  }
}

/** What a request is, besides its content. */
class State extends Content {
  declare method: string
  /** Empty until composed from `origin` and the head's path. */
  declare url: string
  /** A received request's; undefined for one the program made. */
  declare head: Head | undefined
  declare origin: string
  /** The truth until `headers` is made. */
  declare fields: Fields
  declare headers: Headers | undefined
  /** What few requests have; undefined: all of it is as at first. */
  declare rare: Rare | undefined
  declare incoming: IncomingBody | undefined

  constructor() {
    super(null)
    this.method = 'GET'
    this.url = ''
    this.head = undefined
    this.origin = ''
    this.fields = noFields
    this.headers = undefined
    this.rare = undefined
    this.incoming = undefined
  }
}

function optionsOf({ rare }: State): RequestOptions {
  return rare === undefined ? defaultOptions : rare.options
}

/** Options and signals of a request: most that are received have neither. */
class Rare {
  options: RequestOptions
  /** The signal given by the program that made the request. */
  given: AbortSignal | undefined
  signal: AbortSignal | undefined
  controller: AbortController | undefined
  aborted: boolean
  reason: unknown

  constructor() {
    this.options = defaultOptions
    this.given = undefined
    this.signal = undefined
    this.controller = undefined
    this.aborted = false
    this.reason = undefined
  }
}

function absolute(input: string | URL): string {
  const url = URL.parse(`${input}`)
  if (url === null) throw new TypeError(`Failed to parse URL from ${input}`)
  if (url.username !== '' || url.password !== '') {
    throw new TypeError(`Request cannot be constructed from a URL that includes credentials: ${input}`)
  }
  return url.href
}

function isStreamed(source: Source): boolean {
  return typeof source === 'object' && source !== null && !(source instanceof Uint8Array || source instanceof Blob)
}

function inheritedSource(from: Request | globalThis.Request): Source {
  if (from instanceof Request) return takeSource(from)
  if (from.body === null) return null
  if (from.bodyUsed || from.body.locked) throw new TypeError('Cannot construct a Request with a Request object that has already been used.')
  // Through a pipe, so that the other request's body counts as used from now on (Fetch §5.4 step 43).
  return (from.body as ReadableStream<Uint8Array>).pipeThrough(new TransformStream())
}

function hasField(fields: Fields, name: string): boolean {
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) return true
  return false
}
