import type { Response } from '../web/index.ts'
import { Client } from './client.ts'
import { clientFetch } from './fetch.ts'
import type { FetchInit, FetchInput } from './fetch-init.ts'

let shared: Client | undefined

/**
 * The client, with default options, that `fetch` and `WebSocket` use where none is given. It is made at
 * the first call, and keeps no program running that has nothing under way. Who closes it closes it for all.
 */
export function defaultClient(): Client {
  shared ??= new Client()
  return shared
}

/**
 * Asks `input` and resolves with the response as soon as its head has arrived; its content is read
 * from there. A drop-in for the `fetch` of Node and browsers. All calls share one {@link Client}
 * with default options, unless `init.client` names another.
 *
 * A response holds its connection until its content was read, cancelled or disposed:
 * `using response = await fetch(url)` frees it at the end of the block.
 *
 * Rejects with TypeError for wrong arguments, with the signal's reason, or with a HeddleError whose
 * `code` says what went wrong on the way.
 *
 * ```ts
 * import { fetch } from 'heddle'
 *
 * const response = await fetch('https://example.org/things', { method: 'POST', body: JSON.stringify({ a: 1 }) })
 * console.log(response.status, await response.json())
 * ```
 */
export function fetch(input: FetchInput, init?: FetchInit): Promise<Response> {
  return clientFetch(init?.client ?? defaultClient(), input, init)
}
