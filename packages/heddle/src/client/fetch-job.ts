import type { Linked } from '../bytes/index.ts'
import { isBodiless, PeerError, reasonPhrase, TimeoutError, type Head, type HeddleError } from '../http/index.ts'
import {
  headersFrom,
  responseFrom,
  unwatchAbort,
  watchAbort,
  type Abortable,
  type BodySource,
  type IncomingBody,
  type Response,
} from '../web/index.ts'
import type { Client } from './client.ts'
import { FetchExchange } from './fetch-exchange.ts'
import type { FetchSettings } from './fetch-init.ts'
import { FetchRequest } from './fetch-request.ts'
import { fetchTarget } from './fetch-target.ts'
import { isRedirect, maxRedirects, redirectFields, redirectLocation, redirectMethod } from './redirect.ts'
import { responseContent } from './response-body.ts'
import { mayRetry } from './retry.ts'

/**
 * One call of fetch: a chain of attempts, of which the last one's response is the result. Between
 * them stand redirects and retries; around them the signal and the total time.
 *
 *     start ──▶ attempt ──final head──▶ responded ──content ends──▶ finished
 *                 │  ▲                                                ▲
 *                 │  └─ redirect, retry                               │
 *                 └────── error, abort ───────────────────────────────┘
 */
export class FetchJob implements Abortable {
  // Neighbours among the jobs that watch the same signal.
  previous: Linked | undefined
  next: Linked | undefined
  readonly client: Client
  readonly settings: FetchSettings
  /** Fulfilled with this job at the final head; the Response is made in the microtask after it. */
  readonly settled: Promise<FetchJob>
  attempt: FetchExchange | undefined
  head: Head | undefined
  incoming: IncomingBody | undefined
  href: string
  method: string
  hops: number
  #retries: number
  /** When the total time is over, on the client's clock. */
  #deadline: number
  #watching: boolean
  #resolve: ((job: FetchJob) => void) | undefined
  #reject: ((error: unknown) => void) | undefined

  constructor(client: Client, settings: FetchSettings) {
    this.previous = undefined
    this.next = undefined
    this.client = client
    this.settings = settings
    this.attempt = undefined
    this.head = undefined
    this.incoming = undefined
    this.href = ''
    this.method = ''
    this.hops = 0
    this.#retries = settings.retries
    this.#deadline = settings.timeout === Infinity ? Infinity : client.clock.now() + settings.timeout
    this.#watching = false
    this.#resolve = undefined
    this.#reject = undefined
    this.settled = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Begins. The signal is watched until the job is over. */
  start(request: FetchRequest): void {
    const { signal } = this.settings
    if (signal !== undefined) {
      if (signal.aborted) {
        request.content?.discard(signal.reason)
        this.fail(signal.reason)
        return
      }
      watchAbort(signal, this)
      this.#watching = true
    }
    this.#send(request)
  }

  onAbort(): void {
    this.#watching = false
    this.fail(this.settings.signal?.reason)
  }

  informational(head: Head): void {
    const { onInformational } = this.settings
    if (onInformational === undefined) return
    try {
      onInformational({ status: head.status, headers: headersFrom(head.fields, true) })
    } catch (error) {
      this.fail(error)
    }
  }

  /** The final head is there; content may follow. */
  responded(head: Head, incoming: IncomingBody): void {
    const { request } = this.attempt as FetchExchange
    this.head = head
    this.incoming = incoming
    this.href = request.target.href
    this.method = request.method
    const resolve = this.#resolve
    this.#resolve = undefined
    this.#reject = undefined
    resolve?.(this)
  }

  /** Follows `head` if it is a redirect to follow, and returns true. */
  redirected(attempt: FetchExchange, head: Head): boolean {
    const { redirect } = this.settings
    if (redirect === 'manual' || !isRedirect(head.status)) return false
    if (redirect === 'error') {
      this.fail(redirectFailed(`a redirect (${head.status}) came, and redirect is 'error'`))
      return true
    }
    const location = redirectLocation(head)
    if (location === undefined) return false
    let request: FetchRequest
    try {
      request = this.#next(attempt.request, head.status, location)
    } catch (error) {
      this.fail(error)
      return true
    }
    this.hops++
    attempt.leave(undefined)
    this.#send(request)
    return true
  }

  /** `attempt` is over without a response. */
  closed(attempt: FetchExchange, error: HeddleError): void {
    const { request, ticket } = attempt
    if (this.#retries > 0 && attempt.opened && attempt.replayable && ticket !== undefined && mayRetry(error, request.method, ticket)) {
      this.#retries--
      this.#send(request, true)
      return
    }
    attempt.left = true
    request.content?.discard(error)
    this.fail(error)
  }

  /** Ends the job with `error`, untouched: the promise before the response, its content after it. */
  fail(error: unknown): void {
    const reject = this.#reject
    this.#resolve = undefined
    this.#reject = undefined
    this.attempt?.abort(error)
    this.finish()
    reject?.(error)
  }

  /** The exchange is over, or no longer of interest. */
  finish(): void {
    this.attempt = undefined
    if (this.#watching) {
      this.#watching = false
      unwatchAbort(this.settings.signal as AbortSignal, this)
    }
  }

  #send(request: FetchRequest, retry = false): void {
    const attempt = new FetchExchange(this, request)
    this.attempt = attempt
    const { client } = this
    try {
      if (this.#deadline === Infinity) {
        attempt.ticket = client.exchange(client.origin(request.target.site.origin), attempt, retry ? { retry } : undefined)
        return
      }
      const left = this.#deadline - client.clock.now()
      if (left <= 0) throw new TimeoutError('total', `the fetch of ${request.target.site.origin} took too long`, { unprocessed: true })
      attempt.ticket = client.exchange(client.origin(request.target.site.origin), attempt, { totalTimeout: left, retry })
    } catch (error) {
      request.content?.discard(error)
      this.fail(error)
    }
  }

  /** The request of the next hop (Fetch, HTTP-redirect fetch). Throws what the fetch fails with. */
  #next(request: FetchRequest, status: number, location: string): FetchRequest {
    if (this.hops >= maxRedirects) throw redirectFailed(`more than ${maxRedirects} redirects`)
    let url: URL
    try {
      url = new URL(location, request.target.href)
    } catch (cause) {
      throw redirectFailed(`a redirect to ${JSON.stringify(location.slice(0, 100))}, which is no URL`, cause)
    }
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw redirectFailed(`a redirect to ${url.protocol}, which is not followed`)
    const originChanged = url.origin !== request.target.site.origin
    if (url.username !== '' || url.password !== '') {
      if (originChanged) throw redirectFailed('a redirect to another origin with user information in the URL')
      url.username = ''
      url.password = ''
    }
    const method = redirectMethod(status, request.method)
    const dropped = method !== request.method
    const content = dropped ? undefined : request.content
    if (dropped) request.content?.discard(undefined)
    else if (content !== undefined && !content.replayable)
      throw redirectFailed(`a redirect (${status}) of a request whose body is a stream`)
    return new FetchRequest(
      fetchTarget(url.href),
      method,
      redirectFields(request.own, dropped, originChanged),
      content,
      this.settings.decompress,
    )
  }
}

function redirectFailed(what: string, cause?: unknown): PeerError {
  return new PeerError('REDIRECT_FAILED', `fetch: ${what}`, { cause })
}

/** The Response of a job that has responded; made when it is known whether its content has arrived as well. */
export function fetchedResponse(job: FetchJob): Response {
  const head = job.head as Head
  const incoming = job.incoming as IncomingBody
  const { status, fields } = head
  let content: BodySource | null
  // Fetch, main fetch step 20: such a response has no body at all, not an empty one.
  if (job.method === 'HEAD' || isBodiless(status) || status === 205) {
    incoming.cancel(undefined)
    content = null
  } else {
    content = responseContent(incoming, fields, job.settings.decompress, job.settings.maxDecodedLength)
  }
  // HTTP/2 and HTTP/3 have no reason phrase, so the registered one is given for every version.
  return responseFrom(status, reasonPhrase(status), fields, content, job.href, job.hops > 0, incoming)
}
