import { fieldValue, isAuthority, noFields, type Fields } from '../http/index.ts'
import { fieldsFrom, givenSignal, methodFrom, Request, requestFields, takeSource, type HeadersInit } from '../web/index.ts'
import { expectsContent, sentFields } from './fetch-fields.ts'
import { defaultSettings, fetchSettings, type FetchInit, type FetchInput, type FetchSettings } from './fetch-init.ts'
import { fetchTarget, type FetchTarget } from './fetch-target.ts'
import { RequestContent, requestContent } from './request-body.ts'

/** A request to fetch, checked: what one hop sends. A redirect makes the next one of it. */
export class FetchRequest {
  readonly target: FetchTarget
  readonly method: string
  /** Field lines of the program. */
  readonly own: Fields
  /** Field lines as they are sent. */
  readonly fields: Fields
  readonly content: RequestContent | undefined
  /** The program's `host` field, which overrides the URL's authority in the head. */
  readonly host: string | undefined

  /** Throws TypeError if a field of the program contradicts the content, or its host is none. */
  constructor(target: FetchTarget, method: string, own: Fields, content: RequestContent | undefined, decompress: boolean) {
    const host = own.length === 0 ? undefined : fieldValue(own, 'host')
    if (host !== undefined && !isAuthority(host)) throw new TypeError(`fetch: invalid host: ${JSON.stringify(host.slice(0, 100))}`)
    const length = content !== undefined ? content.length : expectsContent(method) ? 0 : undefined
    this.target = target
    this.method = method
    this.own = own
    this.fields = sentFields(own, decompress, content?.type, length)
    this.content = content
    this.host = host
  }
}

/** The arguments of `fetch`, read and checked. */
export interface FetchArguments {
  readonly request: FetchRequest
  readonly settings: FetchSettings
}

/** Reads the arguments of `fetch`. Throws TypeError for whatever is wrong with them. */
export function fetchArguments(input: FetchInput, init: FetchInit | undefined): FetchArguments {
  if (init === undefined && typeof input === 'string') {
    return { request: new FetchRequest(fetchTarget(input), 'GET', noFields, undefined, true), settings: defaultSettings }
  }
  if (init !== undefined && init !== null && typeof init !== 'object') throw new TypeError('fetch: init is not an object')
  return isRequest(input) ? fromRequest(input, init ?? none) : fromInit(input, init ?? none)
}

const none: FetchInit = Object.freeze({})

// By its shape, so that a Request of another copy of Heddle, or of another library, does as well.
function isRequest(input: FetchInput): input is Request | globalThis.Request {
  return typeof input === 'object' && input !== null && 'url' in input && 'method' in input && 'headers' in input
}

function fromInit(input: string | URL, init: FetchInit): FetchArguments {
  const target = fetchTarget(typeof input === 'string' ? input : String(input))
  const method = init.method === undefined ? 'GET' : methodFrom(init.method)
  const fields = init.headers === undefined ? noFields : fieldsFrom(init.headers as HeadersInit)
  const { body } = init
  let content: RequestContent | undefined
  if (body !== undefined && body !== null) {
    if (method === 'GET' || method === 'HEAD') throw new TypeError(`fetch: a ${method} request cannot have a body`)
    content = requestContent(body)
    checkDuplex(init, content)
  }
  const settings = fetchSettings(init, 'follow', undefined)
  return { request: new FetchRequest(target, method, fields, content, settings.decompress), settings }
}

function fromRequest(input: Request | globalThis.Request, init: FetchInit): FetchArguments {
  // The constructor knows how init and request combine (Fetch §5.4), and marks the other's body as used.
  const request = new Request(input as Request, withoutUndefined(init))
  const source = takeSource(request)
  const content =
    source === null ? undefined : new RequestContent(source instanceof Uint8Array ? new Uint8Array(source) : source, undefined)
  const settings = fetchSettings(init, request.redirect, givenSignal(request))
  return {
    request: new FetchRequest(fetchTarget(request.url), request.method, requestFields(request), content, settings.decompress),
    settings,
  }
}

/** The members that Request takes: it would read `undefined` as no value, but some are typed not to be there. */
function withoutUndefined(init: FetchInit): Record<string, never> {
  return Object.fromEntries(Object.entries(init).filter(([, value]) => value !== undefined)) as Record<string, never>
}

function checkDuplex(init: FetchInit, content: RequestContent): void {
  if (init.duplex !== undefined && init.duplex !== 'half') throw new TypeError(`fetch: invalid duplex: ${String(init.duplex)}`)
  if (!content.replayable && init.duplex !== 'half') throw new TypeError("fetch: a body that is a stream needs duplex: 'half'")
}
