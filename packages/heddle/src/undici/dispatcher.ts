import { defaultClient, type Client } from '../client/index.ts'
import { CancelledError, CancelReason, HeddleError, UsageError } from '../http/index.ts'
import { DispatchedExchange } from './dispatched-exchange.ts'
import { modernHandler } from './legacy-handler.ts'
import { dispatchedRequest } from './request.ts'
import type { DispatchHandler, DispatchOptions, LegacyDispatchHandler } from './types.ts'

type Dispatch = (options: DispatchOptions, handler: DispatchHandler | LegacyDispatchHandler) => boolean

/** Between `dispatch` and its caller: undici's own (`retry`, `redirect`, `cache` …), or the program's. */
export type DispatchInterceptor = (dispatch: Dispatch) => Dispatch

/** What undici needs of a dispatcher: see {@link dispatcher}. */
export class HeddleDispatcher {
  readonly #client: Client
  #closed: boolean

  /** Not to be called: use {@link dispatcher}. */
  constructor(client: Client) {
    this.#client = client
    this.#closed = false
  }

  get closed(): boolean {
    return this.#closed
  }

  get destroyed(): boolean {
    return this.#closed
  }

  /** Sends one request. True, always: more may follow at once, since the client queues. What is wrong with `options` goes to the handler. */
  dispatch(options: DispatchOptions, handler: DispatchHandler | LegacyDispatchHandler): boolean {
    if (typeof handler !== 'object' || handler === null) throw new UsageError('dispatch: the handler must be an object')
    const modern = modernHandler(handler)
    const { clock } = this.#client
    let exchange: DispatchedExchange
    let origin: string
    try {
      const request = dispatchedRequest(options)
      origin = request.origin
      exchange = new DispatchedExchange(request, modern, clock, {
        headersTimeout: timeOf(options.headersTimeout, 'headersTimeout'),
        bodyTimeout: timeOf(options.bodyTimeout, 'bodyTimeout'),
      })
    } catch (error) {
      if (modern.onResponseError === undefined) throw error
      modern.onResponseError(new DeadController(error as Error), error as Error)
      return true
    }
    // At once, and not when there is a connection: who waits for one may be aborted, too.
    if (!exchange.start()) return true
    try {
      exchange.ticket = this.#client.exchange(origin, exchange)
    } catch (error) {
      exchange.refuse(error as Error)
      return true
    }
    if (exchange.stopped) exchange.ticket.cancel(CancelReason.Cancelled)
    return true
  }

  /** The same connections behind `interceptors`, of which the last is called first. */
  compose(...interceptors: readonly (DispatchInterceptor | readonly DispatchInterceptor[])[]): HeddleDispatcher {
    let dispatch: Dispatch = (options, handler) => this.dispatch(options, handler)
    for (const interceptor of interceptors.flat()) dispatch = interceptor(dispatch)
    return new ComposedDispatcher(this.#client, dispatch)
  }

  /** Closes the client: what runs may finish. */
  async close(done?: () => void): Promise<void> {
    this.#closed = true
    await this.#client.close()
    done?.()
  }

  /** Ends every request of the client with `error`, and drops its connections. */
  async destroy(error?: Error | null | (() => void), done?: () => void): Promise<void> {
    this.#closed = true
    const reason = error instanceof HeddleError ? error : undefined
    if (reason !== undefined) this.#client.destroy(reason)
    else if (error instanceof Error) this.#client.destroy(new CancelledError(CancelReason.Cancelled, error.message, { cause: error }))
    else this.#client.destroy()
    await this.#client.close()
    if (typeof error === 'function') error()
    else done?.()
  }
}

class ComposedDispatcher extends HeddleDispatcher {
  readonly #dispatch: Dispatch

  constructor(client: Client, dispatch: Dispatch) {
    super(client)
    this.#dispatch = dispatch
  }

  override dispatch(options: DispatchOptions, handler: DispatchHandler | LegacyDispatchHandler): boolean {
    return this.#dispatch(options, handler)
  }
}

/** Of a request that never began. */
class DeadController {
  readonly aborted = true
  readonly paused = false
  readonly rawHeaders = null
  readonly rawTrailers = null
  readonly reason: Error

  constructor(reason: Error) {
    this.reason = reason
  }

  abort(): void {}
  pause(): void {}
  resume(): void {}
}

/** Milliseconds, or Infinity. Undici means by 0 that there is no limit, and by null the default, which is the client's. */
function timeOf(value: unknown, name: string): number {
  if (value === undefined || value === null || value === 0) return Infinity
  if (typeof value === 'number' && value > 0) return value
  throw new UsageError(`dispatch: ${name} must be a number of ms, 0 or more`)
}

/** A class such as undici's `Dispatcher`. */
type DispatcherClass<Base> = abstract new () => Base

/**
 * A dispatcher of undici's kind over the connections of `client`, so that Node's own `fetch` and everything else that
 * takes one gets Heddle's pool and protocols:
 *
 * ```ts
 * const response = await fetch('https://example.org/', { dispatcher: dispatcher(client) })
 * ```
 *
 * Its type is what is asked for where it is used. `base`: undici's class `Dispatcher`, for what wants an instance of
 * that (`dispatcher.request()`, `stream()`, `pipeline()`). Default for `client`: the one that Heddle's `fetch` uses.
 * Closing the dispatcher closes the client.
 */
export function dispatcher<Wanted = HeddleDispatcher>(client: Client = defaultClient(), base?: DispatcherClass<Wanted>): Wanted {
  const own = new HeddleDispatcher(client)
  if (base === undefined) return own as Wanted
  const made = new (base as unknown as new () => object)()
  // Undici's class has methods of these names that only throw.
  const bound = {
    dispatch: own.dispatch.bind(own),
    close: own.close.bind(own),
    destroy: own.destroy.bind(own),
  }
  return Object.assign(made, bound) as unknown as Wanted
}
