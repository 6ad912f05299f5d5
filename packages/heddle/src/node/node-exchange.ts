import type { EventEmitter } from 'node:events'
import {
  CancelledError,
  CancelReason,
  checkOptionNames,
  expectationOf,
  noFields,
  reasonPhrase,
  requestHead,
  responseHead,
  UsageError,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type OptionNames,
} from '../http/index.ts'
import { aborted } from './errors.ts'
import { completeMessage, dumpMessage, IncomingMessage, isRead } from './incoming-message.ts'
import { MessageSocket, type SocketOwner } from './message-socket.ts'
import { UpgradeSocket } from './upgrade-socket.ts'
import { responseClosed, responseSent, ServerResponse, type ResponseOwner } from './server-response.ts'

/** What answers requests in Node's way: a function, an Express app, `koa.callback()`. What it returns is ignored, unless it is a promise that rejects. */
export type RequestListener = (request: IncomingMessage, response: ServerResponse) => unknown

/**
 * What answers requests for a tunnel, as listeners of Node's 'upgrade' event do. Returning false: it does not.
 * `head` is what the client sent behind its request, and always empty here.
 */
export type UpgradeListener = (request: IncomingMessage, socket: UpgradeSocket, head: Buffer) => unknown

/** What `nodeListener` can be told. */
export interface NodeListenerOptions {
  /**
   * Told of requests for a tunnel, which `serve` lets through with `websocket` or `upgrades`. Default: over HTTP/1.1
   * the Upgrade is ignored, as Node's server does without a listener, and over HTTP/2 and HTTP/3 they are answered with 501.
   */
  readonly onUpgrade?: UpgradeListener | undefined
  /** What the sockets of upgrades have as their `server`. Default: nothing. */
  readonly server?: EventEmitter | undefined
  /** Told what a listener threw or rejected with, and other failures of answering. Default: `console.error`. */
  readonly onError?: (error: unknown, request: IncomingMessage | undefined) => void
}

const optionNames: OptionNames<NodeListenerOptions> = { onUpgrade: true, server: true, onError: true }

/**
 * Lets a listener of `(request, response)` answer exchanges of any version: give what it returns to
 * `serve` as `onExchange`. Throws UsageError for a listener that is no function, and for options that do not exist.
 *
 * ```ts
 * const app = express()
 * await using server = await serve({ port: 8080, onExchange: nodeListener(app) })
 * ```
 */
export function nodeListener(listener: RequestListener, options: NodeListenerOptions = {}): (exchange: Exchange) => ExchangeHandler {
  if (typeof listener !== 'function') {
    throw new UsageError('nodeListener: the listener must be a function (request, response), such as an Express app or koa.callback()')
  }
  checkOptionNames('nodeListener', '', options, optionNames)
  const report = options.onError ?? ((error: unknown): void => console.error(error))
  return (exchange) => new NodeExchange(exchange, listener, report, options)
}

/** One request and its response between the engine and a listener. */
class NodeExchange implements ExchangeHandler, SocketOwner, ResponseOwner {
  readonly #exchange: Exchange
  readonly #listener: RequestListener
  readonly #report: (error: unknown, request: IncomingMessage | undefined) => void
  readonly #options: NodeListenerOptions
  #socket: MessageSocket | undefined
  #request: IncomingMessage | undefined
  #response: ServerResponse | undefined
  /** Bytes of the request that its stream holds, and which are not credited to the client yet. */
  #held: number
  /** The client waits for 100 (Continue). */
  #expects: boolean
  /** All of the request came. */
  #received: boolean
  /** What is left of the request goes nowhere. */
  #discarded: boolean
  #closed: boolean
  /** Cancelled from here. */
  #cut: boolean

  constructor(
    exchange: Exchange,
    listener: RequestListener,
    report: (error: unknown, request: IncomingMessage | undefined) => void,
    options: NodeListenerOptions,
  ) {
    this.#exchange = exchange
    this.#listener = listener
    this.#report = report
    this.#options = options
    this.#socket = undefined
    this.#request = undefined
    this.#response = undefined
    this.#held = 0
    this.#expects = false
    this.#received = false
    this.#discarded = false
    this.#closed = false
    this.#cut = false
  }

  get connection(): ConnectionInfo {
    return this.#exchange.connection
  }

  // ── From the engine ─────────────────────────────────────────────────────────────────────────────

  onHead(head: Head, end: boolean): void {
    const expectation = expectationOf(head.fields)
    // RFC 9110 §10.1.1, and Node's server without a listener of 'checkExpectation'.
    if (expectation === 'unknown') return this.#refuse(417)
    this.#expects = !end && expectation === 'continue'
    if (head.method !== 'CONNECT') {
      this.#begin(head, end)
      return
    }
    if (head.protocol !== '' && !end) {
      const asked = askedBy(head)
      if (this.#upgrade(head, asked)) return
      if (this.#exchange.ignoreUpgrade !== undefined) {
        // RFC 9110 §7.8: an ordinary GET, with an Upgrade that is ignored.
        this.#exchange.ignoreUpgrade()
        this.#begin(asked, true)
        return
      }
    }
    // RFC 9110 §9.3.6: an origin server that makes no tunnels.
    this.#refuse(501)
  }

  /** Answers without the listener. */
  #refuse(status: number): void {
    this.#exchange.sendHead(responseHead(status), true)
    this.#exchange.discard()
    this.#discarded = true
  }

  /** A request for a tunnel. False: nobody wants it. */
  #upgrade(head: Head, asked: Head): boolean {
    const { onUpgrade, server } = this.#options
    if (onUpgrade === undefined) return false
    const exchange = this.#exchange
    const socket = new UpgradeSocket(exchange, head, server)
    const request = new IncomingMessage(socket, asked, true, exchange.protocol)
    completeMessage(request, noFields)
    try {
      if (onUpgrade(request, socket, Buffer.alloc(0)) !== false) return true
    } catch (error) {
      this.#report(error, request)
      socket.destroy()
      return true
    }
    exchange.handler = this
    return false
  }

  #begin(head: Head, end: boolean): void {
    const exchange = this.#exchange
    this.#received = end
    if (end) this.#expects = false
    const socket = new MessageSocket(this)
    const request = new IncomingMessage(socket, head, end, exchange.protocol)
    const response = new ServerResponse(request, socket, exchange, this)
    this.#socket = socket
    this.#request = request
    this.#response = response
    try {
      const result = this.#listener.call(undefined, request, response)
      if (isThenable(result)) result.then(undefined, (error: unknown) => this.#failed(error))
    } catch (error) {
      this.#failed(error)
    }
    if (end) this.#complete(noFields)
  }

  onData(buffer: Uint8Array, start: number, limit: number, end: boolean): void {
    const request = this.#request
    const count = limit - start
    this.#expects = false
    if (request === undefined || this.#discarded || request.destroyed) {
      this.#exchange.consume(count)
      return
    }
    this.#socket?.touch()
    if (count > 0) {
      this.#held += count
      // Copied, because it is kept; credited once the stream has room for more.
      if (request.push(Buffer.from(buffer.subarray(start, limit)))) this.#credit()
    }
    if (end) this.#complete(noFields)
  }

  onTrailers(fields: Fields): void {
    this.#complete(fields)
  }

  onSent(byteCount: number, writable: boolean): void {
    this.#socket?.touch()
    if (this.#response !== undefined) responseSent(this.#response, byteCount, writable)
  }

  onPriority(): void {}

  onClose(error: HeddleError | undefined): void {
    this.#closed = true
    const request = this.#request
    if (request === undefined) return
    // Nobody but this side cancels: something here threw, or the response was shorter than it said.
    if (error instanceof CancelledError && !this.#cut) this.#report(error.cause ?? error, request)
    const socket = this.#socket as MessageSocket
    // So that the request does not try to take its exchange along.
    socket.destroyed = true
    if (error !== undefined && !request.destroyed) this.#tell(() => request.destroy(aborted(error)))
    this.#tell(() => responseClosed(this.#response as ServerResponse, error))
    this.#tell(() => socket.close(error !== undefined))
  }

  /** Listeners that throw keep nobody else from hearing of the end. */
  #tell(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#report(error, this.#request)
    }
  }

  // ── From the program ────────────────────────────────────────────────────────────────────────────

  onReadWanted(): void {
    if (this.#expects && this.#response?.headersSent === false && !this.#closed) {
      this.#expects = false
      this.#exchange.sendHead(responseHead(100), false)
    }
    this.#credit()
  }

  onSocketDestroyed(error: Error | undefined): void {
    this.#cancel(error)
  }

  onSocketTimeout(): void {
    // As Node's server: whoever listens decides, and without a listener it is the end.
    const emitters: (EventEmitter | undefined)[] = [this.#request, this.#response, this.#socket]
    const told = emitters.filter((emitter) => emitter?.emit('timeout') === true)
    if (told.length === 0) this.#socket?.destroy()
  }

  onResponseEnded(): void {
    const request = this.#request as IncomingMessage
    if (this.#received || isRead(request)) return
    // RFC 9112 §9.3: the rest of the request has to be read, or the connection cannot go on.
    this.#discarded = true
    this.#exchange.discard()
    this.#complete(noFields)
  }

  onResponseFinished(): void {
    const request = this.#request as IncomingMessage
    if (!isRead(request)) dumpMessage(request)
  }

  onResponseDestroyed(error: Error | undefined): void {
    this.#cancel(error)
    this.#socket?.destroy(error)
  }

  /** The request has come to its end, as far as the program is concerned. */
  #complete(trailers: Fields): void {
    const request = this.#request
    this.#received = true
    if (request !== undefined && !request.complete && !request.destroyed) completeMessage(request, trailers)
  }

  // ── Both ────────────────────────────────────────────────────────────────────────────────────────

  #credit(): void {
    const held = this.#held
    if (held === 0) return
    this.#held = 0
    this.#exchange.consume(held)
  }

  #cancel(error: Error | undefined): void {
    if (this.#closed || this.#cut) return
    this.#cut = true
    // Before there is a head HTTP/1.1 would answer InternalError with a 500. To destroy means to send nothing.
    const failed = error !== undefined && this.#response?.headersSent === true
    this.#exchange.cancel(failed ? CancelReason.InternalError : CancelReason.Cancelled)
  }

  /** The listener threw. */
  #failed(error: unknown): void {
    this.#report(error, this.#request)
    const response = this.#response as ServerResponse
    if (response.headersSent || response.destroyed) {
      response.destroy(error instanceof Error ? error : new Error(String(error)))
      return
    }
    for (const name of response.getHeaderNames()) response.removeHeader(name)
    response.writeHead(500, { 'content-type': 'text/plain;charset=UTF-8' })
    response.end(`${reasonPhrase(500)}\n`)
  }
}

/** Programs compute the accept value from it, which is then left to the engine. */
const placeholderKey: string = Buffer.alloc(16).toString('base64')

/** A request for a tunnel as Node's programs know it, the same over every version of HTTP. */
function askedBy({ scheme, authority, path, protocol, fields }: Head): Head {
  const asked = [...fields, 'connection', 'Upgrade', 'upgrade', protocol]
  if (protocol === 'websocket') asked.push('sec-websocket-key', placeholderKey)
  return requestHead('GET', scheme, authority, path, asked)
}

function isThenable(result: unknown): result is PromiseLike<unknown> {
  return typeof result === 'object' && result !== null && typeof (result as Partial<PromiseLike<unknown>>).then === 'function'
}
