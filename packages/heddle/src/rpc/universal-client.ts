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
    try {
      const response = await client.fetch(url, {
        method,
        headers: header,
        // Connect-ES does its own codings, message by message.
        decompress: false,
        redirect: 'manual',
        ...(body === undefined ? {} : { body, duplex: 'half' as const }),
        ...(signal === undefined ? {} : { signal }),
      })
      const trailer = new globalThis.Headers()
      return {
        status: response.status,
        header: copyOf(response.headers),
        body: contentOf(response.body, () => response.trailers, trailer, signal),
        trailer,
      }
    } catch (error) {
      throw failure(error, signal)
    }
  }
}

type Fields = Iterable<[name: string, value: string]>

async function* contentOf(
  body: ReadableStream<Uint8Array> | null,
  trailers: () => Promise<Fields>,
  trailer: globalThis.Headers,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    if (body !== null) yield* body
    for (const [name, value] of await trailers()) trailer.append(name, value)
  } catch (error) {
    throw failure(error, signal)
  }
}

function copyOf(fields: Fields): globalThis.Headers {
  const copy = new globalThis.Headers()
  for (const [name, value] of fields) copy.append(name, value)
  return copy
}

/** What the program is told: its own reason where it ended the call, else an error with a code of gRPC's. */
function failure(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true && error === signal.reason) return error
  return error instanceof HeddleError ? rpcError(error) : rpcError(error, RpcCode.Unknown)
}
