import { EventEmitter } from 'node:events'
import { UsageError, type Address } from '../http/index.ts'
import { serve, type CloseOptions, type Server, type ServeOptions, type ServerStats, type TlsServerOptions } from '../server/index.ts'
import { nodeError } from './errors.ts'
import { nodeListener, type NodeListenerOptions, type RequestListener } from './node-exchange.ts'

/** Options of `serve` that a {@link NodeServer} takes; where to listen is said to `listen`. */
export type NodeServerOptions = Omit<
  ServeOptions,
  'fetch' | 'onExchange' | 'port' | 'hostname' | 'path' | 'backlog' | 'exclusive' | 'onError'
> &
  Pick<NodeListenerOptions, 'onError'>

/** Where to listen, as `net.Server.listen` takes it. */
export interface NodeListenOptions {
  readonly port?: number | string | undefined
  readonly host?: string | undefined
  readonly path?: string | undefined
  readonly backlog?: number | undefined
  readonly exclusive?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

type Callback = (error?: Error) => void

/**
 * A server with the face of `http.Server`, for programs that want one: `listen`, `close`, `address`, the
 * events 'listening', 'request', 'upgrade', 'close' and 'error'. It speaks what `serve` does.
 * 'upgrade' comes for WebSockets, if anybody listens for it when the server starts or `websocket` is set, and for the
 * protocols in `upgrades`; over HTTP/2 and HTTP/3 too. 'closing', which Node has not, comes when `close` is called.
 */
export class NodeServer extends EventEmitter implements AsyncDisposable {
  readonly #options: NodeServerOptions
  readonly #listener: RequestListener | undefined
  #state: 'idle' | 'starting' | 'listening' | 'closing'
  #server: Server | undefined
  /** `unref` was called. */
  #unreferenced: boolean

  constructor(options: NodeServerOptions = {}, listener?: RequestListener) {
    super()
    if (typeof options !== 'object' || options === null) throw new UsageError('createServer: the options must be an object')
    if (listener !== undefined && typeof listener !== 'function') {
      throw new UsageError('createServer: the listener must be a function (request, response)')
    }
    this.#options = options
    this.#listener = listener
    this.#state = 'idle'
    this.#server = undefined
    this.#unreferenced = false
  }

  /** True from 'listening' to `close`. */
  get listening(): boolean {
    return this.#state === 'listening'
  }

  /** Counts; undefined before 'listening'. */
  stats(): ServerStats | undefined {
    return this.#server?.stats()
  }

  /** See `Server.updateTls`. Throws UsageError before 'listening'. */
  updateTls(tls: TlsServerOptions): void {
    if (this.#server === undefined) throw new UsageError('the server does not listen yet')
    this.#server.updateTls(tls)
  }

  /**
   * `listen(port, host, backlog, callback)`, `listen(path, callback)`, `listen(options, callback)`. 'listening' or
   * 'error' follows. Throws ERR_SERVER_ALREADY_LISTEN.
   */
  listen(...parameters: readonly unknown[]): this {
    if (this.#state !== 'idle')
      throw nodeError('ERR_SERVER_ALREADY_LISTEN', 'Listen method has been called more than once without closing.')
    const { options, callback } = listenParameters(parameters)
    if (callback !== undefined) this.once('listening', callback)
    this.#state = 'starting'
    // What is attached in the same tick counts: a listener of 'upgrade'.
    process.nextTick(() => this.#start(options))
    return this
  }

  #start({ port, host, path, backlog, exclusive, signal }: NodeListenOptions): void {
    const { onError, websocket = this.listenerCount('upgrade') > 0, ...rest } = this.#options
    serve({
      ...rest,
      websocket,
      ...(path === undefined ? { port: Number(port ?? 0) } : { path }),
      ...(host === undefined ? undefined : { hostname: host }),
      ...(backlog === undefined ? undefined : { backlog }),
      ...(exclusive === undefined ? undefined : { exclusive }),
      onExchange: nodeListener((request, response) => this.#answer(request, response), {
        ...(onError === undefined ? undefined : { onError }),
        onUpgrade: (request, socket, head) => this.emit('upgrade', request, socket, head),
        server: this,
      }),
      onError: (error) => (onError === undefined ? undefined : onError(error, undefined)),
    }).then(
      (server) => this.#started(server, signal),
      (error: unknown) => {
        this.#state = 'idle'
        this.emit('error', error)
      },
    )
  }

  #answer(...[request, response]: Parameters<RequestListener>): unknown {
    const result = this.#listener?.(request, response)
    this.emit('request', request, response)
    return result
  }

  #started(server: Server, signal: AbortSignal | undefined): void {
    this.#server = server
    if (this.#unreferenced) server.unref()
    if (this.#state === 'closing' || signal?.aborted === true) {
      void this.#finish(server, {})
      return
    }
    this.#state = 'listening'
    signal?.addEventListener('abort', () => this.close(), { once: true })
    this.emit('listening')
  }

  /**
   * Stops gracefully (see `Server.close`). `callback` is called when no connection is left, with
   * ERR_SERVER_NOT_RUNNING if it did not listen; 'close' is emitted then.
   */
  close(options?: CloseOptions | Callback, callback?: Callback): this {
    const done = typeof options === 'function' ? options : callback
    const state = this.#state
    if (state === 'idle') {
      if (done !== undefined) process.nextTick(done, nodeError('ERR_SERVER_NOT_RUNNING', 'Server is not running.'))
      return this
    }
    if (done !== undefined) this.once('close', () => done())
    this.#state = 'closing'
    if (state === 'listening') void this.#finish(this.#server as Server, typeof options === 'object' ? options : {})
    return this
  }

  async #finish(server: Server, options: CloseOptions): Promise<void> {
    this.#state = 'closing'
    this.emit('closing')
    await server.close(options)
    this.#state = 'idle'
    this.emit('close')
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => this.close(() => resolve()))
  }

  /** As `net.Server.address`: null before 'listening', a string for a Unix socket. */
  address(): Address | string | null {
    const { address } = this.#server ?? {}
    if (address === undefined || this.#state !== 'listening') return null
    return address.family === 'unix' ? address.address : address
  }

  /** See `Server.closeIdleConnections`. */
  closeIdleConnections(): void {
    this.#server?.closeIdleConnections()
  }

  /** See `Server.closeAllConnections`. */
  closeAllConnections(): void {
    this.#server?.closeAllConnections()
  }

  getConnections(callback: (error: Error | null, count: number) => void): this {
    process.nextTick(callback, null, this.#server?.stats().connections ?? 0)
    return this
  }

  ref(): this {
    this.#unreferenced = false
    this.#server?.ref()
    return this
  }

  unref(): this {
    this.#unreferenced = true
    this.#server?.unref()
    return this
  }
}

/**
 * Node's `createServer`, over heddle: for Fastify's `serverFactory`, or in place of `http.createServer`.
 *
 * ```ts
 * const app = fastify({ serverFactory: (handler) => createServer({}, handler) })
 * ```
 */
export function createServer(options?: NodeServerOptions | RequestListener, listener?: RequestListener): NodeServer {
  return typeof options === 'function' ? new NodeServer({}, options) : new NodeServer(options, listener)
}

function listenParameters(parameters: readonly unknown[]): { options: NodeListenOptions; callback: (() => void) | undefined } {
  const callback = parameters.find((one): one is () => void => typeof one === 'function')
  const [first, ...others] = parameters.filter((one) => typeof one !== 'function')
  if (typeof first === 'object' && first !== null) return { options: first, callback }
  const backlog = others.find((one): one is number => typeof one === 'number')
  const host = others.find((one): one is string => typeof one === 'string')
  if (typeof first === 'string' && !/^\d+$/.test(first)) return { options: { path: first, backlog }, callback }
  return { options: { port: (first as number | string | undefined) ?? 0, host, backlog }, callback }
}
