import type { BodyInit, Headers, HeadersInit, Request } from '../web/index.ts'
import type { Client } from './client.ts'
import { defaultMaxDecodedLength } from './decompress.ts'

/** What `fetch` goes to: an absolute URL, or a Request of Heddle's or of Node's making. */
export type FetchInput = string | URL | Request | globalThis.Request

/** An interim response (RFC 9110 §15.2) such as 100 (Continue) or 103 (Early Hints). */
export interface InformationalResponse {
  /** 100–199. */
  readonly status: number
  readonly headers: Headers
}

/**
 * The options of `fetch`: those of the Fetch standard that mean something outside a browser, and
 * Heddle's own, below. `mode`, `credentials`, `cache`, `referrer`, `keepalive` and `priority` are
 * accepted and change nothing.
 */
export interface FetchInit {
  /** Default GET. */
  readonly method?: string | undefined
  readonly headers?: HeadersInit | globalThis.RequestInit['headers'] | undefined
  /**
   * The content. Strings, bytes, Blob, FormData and URLSearchParams can be sent again (redirects,
   * retries); a ReadableStream or an async iterable (of bytes or strings) cannot, and needs `duplex: 'half'`.
   */
  readonly body?: BodyInit | globalThis.RequestInit['body'] | null | undefined
  /** `half`: the program knows that a response may come before its stream has ended. */
  readonly duplex?: 'half' | undefined
  /** Default `follow`, at most 20 hops. `manual` resolves with the 3xx response itself. */
  readonly redirect?: 'follow' | 'error' | 'manual' | undefined
  /** Aborts the request, whatever it does, and later the reading of the body. The reason is passed on untouched. */
  readonly signal?: AbortSignal | null | undefined
  readonly keepalive?: boolean | undefined
  readonly mode?: string | undefined
  readonly credentials?: string | undefined
  readonly cache?: string | undefined
  readonly referrer?: string | undefined
  readonly referrerPolicy?: string | undefined
  readonly priority?: string | undefined
  /** Not supported: anything but the empty string is a TypeError, since ignoring it would be unsafe. */
  readonly integrity?: string | undefined

  /** The client whose connections are used. Default: one that all calls of `fetch` share. */
  readonly client?: Client | undefined
  /** From the call to the end of the body, over all redirects and retries, ms. Default: the client's `totalTimeout`. On excess: TimeoutError, phase `total`. */
  readonly timeout?: number | undefined
  /** False: no coding is asked for, and the body is given as it was sent. Default true. */
  readonly decompress?: boolean | undefined
  /**
   * Bytes of decompressed content that `text()`, `bytes()` and the like hold at most; on excess they reject
   * with ProtocolError, code CONTENT_TOO_LARGE. Default 256 MiB; Infinity: no limit. `body` as a stream has none.
   */
  readonly maxDecodedLength?: number | undefined
  /** How often a request may be sent again that was certainly not acted on, or is idempotent and met a dead kept-alive connection. Default 2. */
  readonly retries?: number | undefined
  /** Hears every 1xx response. What it throws rejects the fetch. */
  readonly onInformational?: ((response: InformationalResponse) => void) | undefined
}

/** The options that stay the same from hop to hop. */
export interface FetchSettings {
  readonly redirect: 'follow' | 'error' | 'manual'
  readonly signal: AbortSignal | undefined
  readonly timeout: number
  readonly decompress: boolean
  readonly maxDecodedLength: number
  readonly retries: number
  readonly onInformational: ((response: InformationalResponse) => void) | undefined
}

/** When nothing is said. */
export const defaultSettings: FetchSettings = Object.freeze({
  redirect: 'follow',
  signal: undefined,
  timeout: Infinity,
  decompress: true,
  maxDecodedLength: defaultMaxDecodedLength,
  retries: 2,
  onInformational: undefined,
})

/** Reads and checks the settings. `redirect` and `signal` are those of a Request given, used where `init` has none. */
export function fetchSettings(init: FetchInit, redirect: string, signal: AbortSignal | undefined): FetchSettings {
  const mode = init.redirect ?? redirect
  if (mode !== 'follow' && mode !== 'error' && mode !== 'manual') throw new TypeError(`fetch: invalid redirect: ${String(mode)}`)
  const own = init.signal === undefined ? signal : (init.signal ?? undefined)
  if (own !== undefined && !isSignal(own)) throw new TypeError('fetch: signal is not an AbortSignal')
  const { timeout = Infinity, retries = 2, onInformational, maxDecodedLength = defaultMaxDecodedLength } = init
  if (!(typeof timeout === 'number' && timeout > 0)) throw new TypeError('fetch: timeout must be a positive number of milliseconds')
  if (!(typeof maxDecodedLength === 'number' && maxDecodedLength > 0))
    throw new TypeError('fetch: maxDecodedLength must be a positive number of bytes')
  if (!(Number.isInteger(retries) && retries >= 0)) throw new TypeError('fetch: retries must be a whole number, 0 or more')
  if (onInformational !== undefined && typeof onInformational !== 'function')
    throw new TypeError('fetch: onInformational is not a function')
  if ((init as { dispatcher?: unknown }).dispatcher !== undefined) throw new TypeError('fetch: a dispatcher is undici’s; give a client')
  if (init.integrity !== undefined && init.integrity !== '') throw new TypeError('fetch: integrity is not supported')
  return { redirect: mode, signal: own, timeout, decompress: init.decompress !== false, maxDecodedLength, retries, onInformational }
}

// By its shape: a signal of another realm, or of a polyfill, does as well.
function isSignal(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'aborted' in value && typeof (value as AbortSignal).addEventListener === 'function'
}
