import type { Buffer } from 'node:buffer'

/** A response's fields as undici gives them: lower-case names, a list where a name came more than once. */
export type IncomingFields = Record<string, string | string[]>

/** What undici's `dispatch` is given: one request. */
export interface DispatchOptions {
  /** `https://example.org`; path and query in it are ignored. */
  readonly origin?: string | URL | undefined
  /** Path and query, or an absolute URL, which then names the origin too. */
  readonly path: string
  readonly method: string
  /** Name and value in turn, pairs, or an object of them. */
  readonly headers?: unknown
  /** Bytes, text, a Blob, FormData, URLSearchParams, a stream of either kind, or an iterable of bytes or text. */
  readonly body?: unknown
  /** Appended to `path`, which then must have no query. */
  readonly query?: Readonly<Record<string, unknown>> | undefined
  /** From the last of the request that was sent to the head of the response, ms; 0: no limit but the client's. */
  readonly headersTimeout?: number | null | undefined
  /** Between two pieces of the response's content, ms; 0: no limit but the client's. */
  readonly bodyTimeout?: number | null | undefined
  /** Hold the content back until the server says that it wants it. */
  readonly expectContinue?: boolean | undefined
  /** The origin's own host, or nothing: see `tls.servername` of a client. */
  readonly servername?: string | null | undefined
  /** Not to be had here: use `heddle/websocket`. */
  readonly upgrade?: unknown
}

/** How a handler steers its request. */
export interface DispatchController {
  readonly aborted: boolean
  readonly reason: Error | null
  readonly paused: boolean
  /** Of the last head: name and value in turn. */
  readonly rawHeaders: readonly Buffer[] | null
  /** The same of the trailers. */
  readonly rawTrailers: readonly Buffer[] | null
  /** Ends the request; `onResponseError` gets `reason`. */
  abort(reason?: Error | null): void
  /** No more `onResponseData` until `resume`. */
  pause(): void
  resume(): void
}

/** Who is told of a request, in undici's words since its version 7. */
export interface DispatchHandler {
  onRequestStart?(controller: DispatchController, context: unknown): void
  onResponseStarted?(): void
  onResponseStart?(controller: DispatchController, status: number, headers: IncomingFields, statusText?: string): void
  onResponseData?(controller: DispatchController, chunk: Buffer): void
  onResponseEnd?(controller: DispatchController, trailers: IncomingFields): void
  onResponseError?(controller: DispatchController, error: Error): void
  onBodySent?(chunk: Uint8Array): void
  onRequestSent?(): void
}

/** The same in the words of undici 6 (Node 22). */
export interface LegacyDispatchHandler {
  onConnect?(abort: (reason?: Error) => void, context: unknown): void
  onResponseStarted?(): void
  onHeaders?(status: number, headers: readonly Buffer[], resume: () => void, statusText: string): boolean | void
  onData?(chunk: Buffer): boolean | void
  onComplete?(trailers: readonly Buffer[]): void
  onError?(error: Error): void
  onBodySent?(chunk: Uint8Array): void
  onRequestSent?(): void
}
