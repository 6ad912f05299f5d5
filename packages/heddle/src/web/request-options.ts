import type { BodyInit } from './body-init.ts'
import type { HeadersInit } from './header-text.ts'

/** Values of `request.cache`. */
export type RequestCache = 'default' | 'no-store' | 'reload' | 'no-cache' | 'force-cache' | 'only-if-cached'
/** Values of `request.credentials`. */
export type RequestCredentials = 'omit' | 'same-origin' | 'include'
/** Values of `request.mode`. */
export type RequestMode = 'navigate' | 'same-origin' | 'no-cors' | 'cors'
/** Values of `request.redirect`: what fetch does with a 3xx response. */
export type RequestRedirect = 'follow' | 'error' | 'manual'
/** Values of `duplex`: a response may come before the request's content has ended. */
export type RequestDuplex = 'half'
/** Values of `request.referrerPolicy`. */
export type ReferrerPolicy =
  | ''
  | 'no-referrer'
  | 'no-referrer-when-downgrade'
  | 'same-origin'
  | 'origin'
  | 'strict-origin'
  | 'origin-when-cross-origin'
  | 'strict-origin-when-cross-origin'
  | 'unsafe-url'

/** What `new Request(input, init)` takes (Fetch §5.4). */
export interface RequestInit {
  method?: string
  headers?: HeadersInit
  body?: BodyInit | null
  /** Must be given with content that is a stream or an async iterable. */
  duplex?: RequestDuplex
  signal?: AbortSignal | null
  redirect?: RequestRedirect
  /** Kept for the interface: there is no cache, no cookie store and no page behind a request. So are the next six. */
  cache?: RequestCache
  credentials?: RequestCredentials
  integrity?: string
  keepalive?: boolean
  mode?: RequestMode
  referrer?: string
  referrerPolicy?: ReferrerPolicy
  window?: null
}

/** The members few programs use, in one object that most requests share. */
export interface RequestOptions {
  readonly cache: RequestCache
  readonly credentials: RequestCredentials
  readonly integrity: string
  readonly keepalive: boolean
  readonly mode: RequestMode
  readonly redirect: RequestRedirect
  readonly referrer: string
  readonly referrerPolicy: ReferrerPolicy
}

export const defaultOptions: RequestOptions = Object.freeze({
  cache: 'default',
  credentials: 'same-origin',
  integrity: '',
  keepalive: false,
  mode: 'cors',
  redirect: 'follow',
  referrer: 'about:client',
  referrerPolicy: '',
})

const choices = {
  cache: ['default', 'no-store', 'reload', 'no-cache', 'force-cache', 'only-if-cached'],
  credentials: ['omit', 'same-origin', 'include'],
  mode: ['navigate', 'same-origin', 'no-cors', 'cors'],
  redirect: ['follow', 'error', 'manual'],
  referrerPolicy: [
    '',
    'no-referrer',
    'no-referrer-when-downgrade',
    'same-origin',
    'origin',
    'strict-origin',
    'origin-when-cross-origin',
    'strict-origin-when-cross-origin',
    'unsafe-url',
  ],
} as const

/** `base` with what `init` says. Throws TypeError for a value that is not one of the standard's. */
export function optionsFrom(init: RequestInit, base: RequestOptions): RequestOptions {
  const { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy } = init
  if (init.window !== undefined && init.window !== null) throw new TypeError('Request constructor: window must be null.')
  if (init.duplex !== undefined && init.duplex !== 'half')
    throw new TypeError(`Request constructor: '${init.duplex as string}' is not a duplex.`)
  if (
    cache === undefined &&
    credentials === undefined &&
    integrity === undefined &&
    keepalive === undefined &&
    mode === undefined &&
    redirect === undefined &&
    referrer === undefined &&
    referrerPolicy === undefined
  ) {
    return base
  }
  const options = {
    cache: chosen('cache', cache, base.cache),
    credentials: chosen('credentials', credentials, base.credentials),
    integrity: integrity === undefined ? base.integrity : `${integrity}`,
    keepalive: keepalive === undefined ? base.keepalive : Boolean(keepalive),
    mode: chosen('mode', mode, base.mode),
    redirect: chosen('redirect', redirect, base.redirect),
    referrer: referrer === undefined ? base.referrer : referrerFrom(referrer),
    referrerPolicy: chosen('referrerPolicy', referrerPolicy, base.referrerPolicy),
  }
  if (mode === 'navigate') throw new TypeError("Request constructor: mode 'navigate' is for browsers.")
  if (options.cache === 'only-if-cached' && options.mode !== 'same-origin') {
    throw new TypeError("'only-if-cached' can be set only with 'same-origin' mode")
  }
  return options
}

function chosen<T extends string>(name: keyof typeof choices, value: T | undefined, base: T): T {
  if (value === undefined) return base
  if (!(choices[name] as readonly string[]).includes(value)) throw new TypeError(`Request constructor: '${value}' is not a ${name}.`)
  return value
}

/** Fetch §5.4 step 14: empty means no referrer; about:client, the default, is kept as it is. */
function referrerFrom(referrer: string): string {
  if (referrer === '') return ''
  const parsed = URL.parse(`${referrer}`)
  if (parsed === null) throw new TypeError(`Referrer ${JSON.stringify(referrer)} is not a valid URL.`)
  return parsed.protocol === 'about:' && parsed.pathname === 'client' ? 'about:client' : parsed.href
}

/** Fetch §2.2.1: these are upper-cased when given in another case; others are kept. */
const normal: Readonly<Record<string, string>> = {
  get: 'GET',
  delete: 'DELETE',
  head: 'HEAD',
  options: 'OPTIONS',
  post: 'POST',
  put: 'PUT',
  query: 'QUERY',
}

/** Throws TypeError for what is no method, or one no program may send itself (CONNECT, TRACE, TRACK). */
export function methodFrom(method: string): string {
  const text = `${method}`
  if (text === 'GET' || text === 'POST') return text
  const lower = text.toLowerCase()
  if (!isMethod(text) || lower === 'connect' || lower === 'trace' || lower === 'track') {
    throw new TypeError(`'${text}' is not a valid HTTP method.`)
  }
  return Object.hasOwn(normal, lower) ? (normal[lower] as string) : text
}

function isMethod(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text)
}
