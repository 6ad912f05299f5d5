import { noFields, type Fields, type Head } from '../http/index.ts'
import { Body, cloneSource, peekSource, setSource, takeSource } from './body.ts'
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
  #method: string
  /** Empty until composed from `#origin` and `#path`. */
  #url: string
  #origin: string
  #path: string
  /** The host field of a received request, which Fields leave out. */
  #host: string
  /** The truth until `#headers` is made. */
  #fields: Fields
  #headers: Headers | undefined
  #options: RequestOptions
  /** The signal given by the program that made the request. */
  #given: AbortSignal | undefined
  #signal: AbortSignal | undefined
  #controller: AbortController | undefined
  #aborted: boolean
  #reason: unknown
  #incoming: IncomingBody | undefined

  static {
    requestFrom = (head, origin, incoming) => {
      const request = new Request(received as never)
      request.#method = head.method
      request.#origin = origin
      request.#path = head.path
      request.#host = head.authority
      request.#fields = head.fields
      request.#incoming = incoming
      setSource(request, incoming ?? null)
      return request
    }
    requestFields = (request) => (request.#headers === undefined ? request.#fields : fieldsOf(request.#headers))
    givenSignal = (request) => request.#given
    abortRequest = (request, reason) => {
      if (request.#aborted) return
      request.#aborted = true
      request.#reason = reason
      request.#controller?.abort(reason)
    }
  }

  /**
   * Throws TypeError for a URL that is not absolute or has credentials, an invalid method, header or
   * option, content with GET or HEAD, a stream without `duplex: 'half'`, a request whose body was read.
   */
  constructor(input: RequestInfo, init: RequestInit = none) {
    super(null)
    this.#method = 'GET'
    this.#url = ''
    this.#origin = ''
    this.#path = ''
    this.#host = ''
    this.#fields = noFields
    this.#headers = undefined
    this.#options = defaultOptions
    this.#given = undefined
    this.#signal = undefined
    this.#controller = undefined
    this.#aborted = false
    this.#reason = undefined
    this.#incoming = undefined
    if ((input as unknown) === received) return
    this.#make(input, init ?? none)
  }

  get method(): string {
    return this.#method
  }

  /** Absolute and normalized. Of a received request: the scheme of the connection, the Host, path and query. */
  get url(): string {
    if (this.#url === '') this.#url = targetUrl(this.#origin, this.#path)
    return this.#url
  }

  /** A received request's headers can be changed: the copy is the program's. */
  override get headers(): Headers {
    if (this.#headers === undefined) {
      // RFC 9110 §7.2: Fields leave the host to the head, programs expect it here.
      this.#headers = headersFrom(this.#host === '' ? this.#fields : ['host', this.#host, ...this.#fields], false)
    }
    return this.#headers
  }

  /**
   * Aborts when the client goes away before its response is complete, with the error that told so;
   * for a request made by the program: when the signal it gave does. Made at the first call.
   */
  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      if (this.#given !== undefined) {
        this.#signal = AbortSignal.any([this.#given])
      } else {
        this.#controller = new AbortController()
        if (this.#aborted) this.#controller.abort(this.#reason)
        this.#signal = this.#controller.signal
      }
    }
    return this.#signal
  }

  get cache(): RequestCache {
    return this.#options.cache
  }

  get credentials(): RequestCredentials {
    return this.#options.credentials
  }

  get destination(): '' {
    return ''
  }

  get duplex(): RequestDuplex {
    return 'half'
  }

  get integrity(): string {
    return this.#options.integrity
  }

  get keepalive(): boolean {
    return this.#options.keepalive
  }

  get mode(): RequestMode {
    return this.#options.mode
  }

  get redirect(): RequestRedirect {
    return this.#options.redirect
  }

  get referrer(): string {
    return this.#options.referrer
  }

  get referrerPolicy(): ReferrerPolicy {
    return this.#options.referrerPolicy
  }

  /**
   * Not in the Fetch standard: the trailer fields of a received request, often none. Fulfilled once its
   * content has arrived, for which it must be read unless it is small; rejects with what cut the content.
   */
  get trailers(): Promise<Headers> {
    const incoming = this.#incoming
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
    setSource(clone, cloneSource(this))
    clone.#method = this.#method
    clone.#url = this.url
    clone.#fields = fieldsOf(this.headers)
    clone.#options = this.#options
    clone.#given = this.signal
    clone.#incoming = this.#incoming
    return clone
  }

  /**
   * Node's own Request, for an API that insists on its class. Body and signal are shared, not
   * copied: the body can be read here or there. Node's class takes no content with GET and HEAD, and
   * no CONNECT or TRACE (TypeError). Throws TypeError if the body was read already.
   */
  toNative(): globalThis.Request {
    if (this.bodyUsed) throw new TypeError('Request.toNative: the body was read already.')
    const { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy } = this.#options
    const init: Record<string, unknown> = {
      method: this.#method,
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
    if (this.#method !== 'GET' && this.#method !== 'HEAD' && peekSource(this) !== null) {
      init['body'] = this.body
      init['duplex'] = 'half'
    }
    return new globalThis.Request(this.url, init)
  }

  get [Symbol.toStringTag](): string {
    return 'Request'
  }

  #make(input: RequestInfo, init: RequestInit): void {
    let inherited: Request | globalThis.Request | undefined
    if (input instanceof Request || input instanceof globalThis.Request) {
      inherited = input
      this.#url = input.url
      this.#method = input.method
      this.#fields = input instanceof Request ? fieldsOf(input.headers) : fieldsFrom(input.headers)
      this.#options = input instanceof Request ? input.#options : optionsFrom(input as RequestInit, defaultOptions)
      this.#given = input instanceof Request ? (input.#given ?? (input.#origin === '' ? undefined : input.signal)) : input.signal
    } else {
      this.#url = absolute(input)
    }
    this.#options = optionsFrom(init, this.#options)
    if (init.method !== undefined) this.#method = methodFrom(init.method)
    if (init.headers !== undefined) this.#fields = fieldsFrom(init.headers)
    if (init.signal !== undefined) {
      if (init.signal !== null && !(init.signal instanceof AbortSignal))
        throw new TypeError('Request constructor: signal is no AbortSignal.')
      this.#given = init.signal ?? undefined
    }
    const { body } = init
    const hasContent = body !== undefined && body !== null
    if ((this.#method === 'GET' || this.#method === 'HEAD') && (hasContent || (inherited?.body ?? null) !== null)) {
      throw new TypeError('Request with GET/HEAD method cannot have body.')
    }
    if (hasContent) {
      const source = sourceOf(body)
      if (isStreamed(source) && init.duplex !== 'half') throw new TypeError('RequestInit: duplex option is required when sending a body.')
      const type = typeOf(body, source)
      if (type !== undefined && !hasField(this.#fields, 'content-type')) this.#fields = [...this.#fields, 'content-type', type]
      setSource(this, source)
    } else if (inherited !== undefined && body !== null) {
      setSource(this, inheritedSource(inherited))
    }
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
