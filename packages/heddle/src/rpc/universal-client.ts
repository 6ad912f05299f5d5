import { Client } from '../client/index.ts'
import { HeddleError } from '../http/index.ts'
import { RpcCode, rpcError } from './rpc-error.ts'

/** What Connect-ES asks its HTTP client for (its type of that name). */
export interface UniversalClientRequest {
  readonly url: string
  readonly method: string
  readonly header: globalThis.Headers
  readonly body?: AsyncIterable<Uint8Array>
  readonly signal?: AbortSignal
}

/** What it gets. `trailer` is filled when `body` was read to its end. */
export interface UniversalClientResponse {
  readonly status: number
  readonly header: globalThis.Headers
  readonly body: AsyncIterable<Uint8Array>
  readonly trailer: globalThis.Headers
}

/** Connect-ES's `UniversalClientFn`. */
export type UniversalClientFn = (request: UniversalClientRequest) => Promise<UniversalClientResponse>

let shared: Client | undefined

/**
 * A call may last for as long as its program likes, and be silent for as long: deadlines are its own. HTTP/2 without
 * TLS, too, since gRPC has no other.
 */
function rpcClient(): Client {
  const timeless = { responseTimeout: Infinity, bodyTimeout: Infinity, sendTimeout: Infinity }
  shared ??= new Client({ h2c: true, limits: timeless, http2: timeless })
  return shared
}

/**
 * The `httpClient` of a Connect-ES transport (gRPC, gRPC-Web or Connect) over the connections of `client`:
 *
 * ```ts
 * const transport = createTransport({ httpClient: universalClient(client), baseUrl: 'https://example.org', … })
 * ```
 *
 * Default for `client`: one that all such transports share, which speaks HTTP/2 with prior knowledge to `http:` URLs and
 * sets no time limits on responses. Errors are what Connect-ES takes for its `ConnectError`, with the code that gRPC
 * gives to what happened; the reason of a signal passes untouched.
 */
export function universalClient(client: Client = rpcClient()): UniversalClientFn {
  return async ({ url, method, header, body, signal }) => {
    // A server may answer before it was told all: then nobody wants the rest.
    const over = body === undefined ? undefined : new AbortController()
    const ends = [signal, over?.signal].filter((end) => end !== undefined)
    try {
      const response = await client.fetch(url, {
        method,
        headers: header,
        // Connect-ES does its own codings, message by message.
        decompress: false,
        redirect: 'manual',
        ...(body === undefined ? {} : { body, duplex: 'half' as const }),
        ...(ends.length === 0 ? {} : { signal: ends.length === 1 ? (ends[0] as AbortSignal) : AbortSignal.any(ends) }),
      })
      const trailer = new globalThis.Headers()
      return {
        status: response.status,
        header: copyOf(response.headers),
        body: new Content(response, trailer, signal, over),
        trailer,
      }
    } catch (error) {
      throw failure(error, signal)
    }
  }
}

type Fields = Iterable<[name: string, value: string]>

interface Answer {
  readonly body: ReadableStream<Uint8Array> | null
  readonly trailers: Promise<Fields>
}

/** The content of a response. No generator: one that was never asked for anything does not hear that nobody wants it. */
class Content implements AsyncIterableIterator<Uint8Array> {
  readonly #response: Answer
  readonly #trailer: globalThis.Headers
  readonly #signal: AbortSignal | undefined
  readonly #over: AbortController | undefined
  #chunks: AsyncIterator<Uint8Array> | undefined

  constructor(response: Answer, trailer: globalThis.Headers, signal: AbortSignal | undefined, over: AbortController | undefined) {
    this.#response = response
    this.#trailer = trailer
    this.#signal = signal
    this.#over = over
    this.#chunks = undefined
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    this.#chunks ??= this.#read()
    return this.#chunks.next()
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    if (this.#chunks === undefined) {
      // Whatever it ends with, nobody wants to know.
      await this.#response.body?.cancel().catch(() => {})
      this.#over?.abort(ended)
      this.#chunks = nothing()
    } else await this.#chunks.return?.()
    return { done: true, value: undefined }
  }

  /** Connect-ES asks that of what it wants to be able to abort. */
  async throw(error: unknown): Promise<never> {
    await this.return()
    throw error
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    const { body } = this.#response
    try {
      if (body !== null) yield* body
      for (const [name, value] of await this.#response.trailers) this.#trailer.append(name, value)
    } catch (error) {
      throw failure(error, this.#signal)
    } finally {
      this.#over?.abort(ended)
    }
  }
}

/** Why a request that was answered goes no further; nobody is told. */
const ended = new Error('the call is over')

async function* nothing(): AsyncGenerator<Uint8Array> {}

function copyOf(fields: Fields): globalThis.Headers {
  const copy = new globalThis.Headers()
  for (const [name, value] of fields) copy.append(name, value)
  return copy
}

/** What the program is told: its own reason where it ended the call, else an error with a code of gRPC's. */
function failure(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true && error === signal.reason) return error
  if (error instanceof HeddleError) return rpcError(error)
  // What Connect-ES itself throws where it makes the request's content.
  return isConnectError(error) ? error : rpcError(error, RpcCode.Unknown)
}

function isConnectError(error: unknown): boolean {
  return error instanceof Error && error.name === 'ConnectError' && typeof (error as { code?: unknown }).code === 'number'
}
