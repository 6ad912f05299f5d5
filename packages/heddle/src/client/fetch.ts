import { tracedError } from '../http/index.ts'
import { responseFrom, type Response } from '../web/index.ts'
import type { Client } from './client.ts'
import { readDataUrl } from './data-url.ts'
import type { FetchInit, FetchInput } from './fetch-init.ts'
import { FetchJob, fetchedResponse } from './fetch-job.ts'
import { fetchArguments } from './fetch-request.ts'

/**
 * `fetch` over the connections of `client` (WHATWG Fetch, as far as it means something outside a
 * browser; see `docs/fetch.md`). Rejects with TypeError for wrong arguments, with the signal's
 * reason, with what a body stream threw, and with a HeddleError for everything that went wrong on
 * the way: its `code` says what, and its stack who awaited.
 */
export function clientFetch(client: Client, input: FetchInput, init?: FetchInit): Promise<Response> {
  let job: FetchJob
  try {
    const text = typeof input === 'string' ? input : input instanceof URL ? input.href : ''
    if (/^data:/i.test(text)) return Promise.resolve(dataResponse(text, init))
    const { request, settings } = fetchArguments(input, init)
    job = new FetchJob(client, settings)
    job.start(request)
  } catch (error) {
    return Promise.reject(error)
  }
  return job.settled.then(fetchedResponse, fetchFailed)
}

function fetchFailed(error: unknown): never {
  throw tracedError(error, fetchFailed)
}

/** Fetch, scheme fetch: a `data:` URL is its own response. */
function dataResponse(text: string, init: FetchInit | undefined): Response {
  init?.signal?.throwIfAborted()
  const { contentType, bytes, href } = readDataUrl(text)
  return responseFrom(200, 'OK', ['content-type', contentType], bytes, href, false)
}
