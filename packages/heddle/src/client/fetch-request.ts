import { fieldValue, isAuthority, noFields, type Fields } from '../http/index.ts'
import { fieldsFrom, givenSignal, methodFrom, Request, requestFields, takeSource, type HeadersInit } from '../web/index.ts'
import { defaultSettings, fetchSettings, type FetchInit, type FetchInput, type FetchSettings } from './fetch-init.ts'
import { fetchTarget, type FetchTarget } from './fetch-target.ts'
import { RequestContent, requestContent } from './request-body.ts'

/** A request to fetch, read and checked: what one hop sends. A redirect makes the next one of it. */
export interface FetchRequest {
  readonly target: FetchTarget
  readonly method: string
  /** Field lines of the program, without what fetch adds. */
  readonly fields: Fields
  readonly content: RequestContent | undefined
  /** The program's `host` field, which overrides the URL's authority in the head. */
  readonly host: string | undefined
}

/** The arguments of `fetch`, read and checked. */
export interface FetchArguments {
  readonly request: FetchRequest
  readonly settings: FetchSettings
}

/** Reads the arguments of `fetch`. Throws TypeError for whatever is wrong with them. */
export function fetchArguments(input: FetchInput, init: FetchInit | undefined): FetchArguments {
  if (init === undefined && typeof input === 'string') {
    return { request: { target: fetchTarget(input), method: 'GET', fields: noFields, content: undefined, host: undefined }, settings: defaultSettings }
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
  return { request: { target, method, fields, content, host: hostField(fields) }, settings: fetchSettings(init, 'follow', undefined) }
}

function fromRequest(input: Request | globalThis.Request, init: FetchInit): FetchArguments {
  // The constructor knows how init and request combine (Fetch §5.4), and marks the other's body as used.
  const request = new Request(input as Request, withoutUndefined(init))
  const source = takeSource(request)
  const content = source === null ? undefined : new RequestContent(source instanceof Uint8Array ? new Uint8Array(source) : source, undefined)
  const settings = fetchSettings(init, request.redirect, givenSignal(request))
  const fields = requestFields(request)
  return { request: { target: fetchTarget(request.url), method: request.method, fields, content, host: hostField(fields) }, settings }
}

/** The members that Request takes: it would read `undefined` as no value, but some are typed not to be there. */
function withoutUndefined(init: FetchInit): Record<string, never> {
  return Object.fromEntries(Object.entries(init).filter(([, value]) => value !== undefined)) as Record<string, never>
}

function checkDuplex(init: FetchInit, content: RequestContent): void {
  if (init.duplex !== undefined && init.duplex !== 'half') throw new TypeError(`fetch: invalid duplex: ${String(init.duplex)}`)
  if (!content.replayable && init.duplex !== 'half') throw new TypeError("fetch: a body that is a stream needs duplex: 'half'")
}

function hostField(fields: Fields): string | undefined {
  const host = fields.length === 0 ? undefined : fieldValue(fields, 'host')
  if (host !== undefined && !isAuthority(host)) throw new TypeError(`fetch: invalid host: ${JSON.stringify(host.slice(0, 100))}`)
  return host
}
