import { CancelledError, noFields, UsageError, type Exchange, type Fields, type HeddleError } from '../http/index.ts'
import type { Clock } from '../io/index.ts'
import {
  fieldsFrom,
  offeredTunnel,
  Response,
  tunnelsExpected,
  UpgradeError,
  type HeadersInit,
  type Request,
  type TunnelOffer,
  type TunnelTaker,
} from '../web/index.ts'
import { CloseCode } from '../ws/index.ts'
import { agree, notAsked, type Refusal } from './agreement.ts'
import type { SocketCore, SocketWatcher } from './core.ts'
import { checkOptions, headers, type OptionChecks } from './option-checks.ts'
import { coreOf, Socket } from './socket.ts'
import { upgradeChecks, type UpgradeOptions } from './upgrade-options.ts'
import { webSocketOver, type WebSocket } from './web-socket.ts'

/** What `upgrade` can be told. */
export interface FetchUpgradeOptions extends UpgradeOptions {
  /** Fields of the response, such as `set-cookie`. They can be added to `response.headers` as well. */
  readonly headers?: HeadersInit | undefined
}

const checks: OptionChecks<FetchUpgradeOptions> = { ...upgradeChecks, headers }

/** A WebSocket that is accepted, once `response` is returned. */
export interface Upgraded {
  /**
   * To be returned by the fetch handler: it, or a copy with its headers. More headers may be added. Its status is 200, which
   * HTTP/1.1 sends as 101.
   */
  readonly response: Response
  /**
   * Listen to it, or read it, before or after `response` is returned: what comes waits, and what is sent before it is
   * open leaves then. If `response` is not returned it ends with an error.
   */
  readonly socket: WebSocket
}

/** As {@link Upgraded}, with the lean face. */
export interface Accepted {
  readonly response: Response
  readonly socket: Socket
}

/**
 * Accepts the WebSocket that a request asks for, in a fetch handler of `serve({ websocket: true })`, over
 * HTTP/1.1, HTTP/2 and HTTP/3 alike. Throws an {@link UpgradeError} for what is no handshake, or one that is refused
 * (400, 403, 405, 426): leave it alone, and the server answers as it says. Throws UsageError for options that are
 * wrong, and for a request that is not the one the handler was given.
 *
 * ```ts
 * import { Response, serve } from 'heddle/server'
 * import { upgrade } from 'heddle/websocket'
 *
 * await serve({
 *   port: 8080,
 *   websocket: true,
 *   fetch(request) {
 *     if (new URL(request.url).pathname !== '/echo') return new Response('not here', { status: 404 })
 *     const { response, socket } = upgrade(request)
 *     socket.onmessage = ({ data }) => socket.send(data)
 *     return response
 *   },
 * })
 * ```
 */
export function upgrade(request: Request | globalThis.Request, options: FetchUpgradeOptions = {}): Upgraded {
  const { response, socket } = take('upgrade', request, options)
  const { clock } = coreOf(socket)
  const offer = offeredTunnel(request)
  // A message that a listener cannot cope with must not end the server.
  const onThrown = (error: unknown): void => {
    socket.close(CloseCode.InternalError)
    offer?.report(error)
  }
  return { response, socket: webSocketOver(socket, request.url.replace(/^http/, 'ws'), clock, onThrown) }
}

/**
 * As {@link upgrade}, but with a lean {@link Socket}, as `connect` has it for clients: for the fast path of a `handler`, for
 * `SocketGroup` and `Heartbeat`.
 *
 * ```ts
 * const { response, socket } = accept(request)
 * group.add(socket)
 * socket.handler = chat
 * return response
 * ```
 */
export function accept(request: Request | globalThis.Request, options: FetchUpgradeOptions = {}): Accepted {
  return take('accept', request, options)
}

function take(face: string, request: Request | globalThis.Request, options: FetchUpgradeOptions): Accepted {
  checkOptions(face, '', options, checks)
  const offer = offeredTunnel(request)
  if (offer === undefined) throw whyNot(face, request)
  const added = options.headers === undefined ? noFields : checkedHeaders(face, options.headers)
  const agreed = agree(face, offer.head, options, offer.clock as Clock)
  if ('status' in agreed) throw refusedUpgrade(agreed)
  const socket = new Socket(offer.exchange, agreed.options)
  return { response: offer.take(new Taker(offer, socket), agreed.fields, added), socket }
}

/** Opens a socket with the tunnel, and ends the one with the other. */
class Taker implements TunnelTaker, SocketWatcher {
  readonly #offer: TunnelOffer
  readonly #socket: Socket
  #opened: boolean

  constructor(offer: TunnelOffer, socket: Socket) {
    this.#offer = offer
    this.#socket = socket
    this.#opened = false
    coreOf(socket).watch(this)
  }

  onTunnelOpen(_exchange: Exchange): void {
    this.#opened = true
    this.#socket.open()
  }

  onTunnelRefused(error: HeddleError): void {
    this.#socket.abort(error)
  }

  onTunnelShutdown(): void {
    this.#socket.close(CloseCode.GoingAway)
  }

  onSocketClosed({ error }: SocketCore): void {
    this.#offer.release()
    // What a handler of the socket threw. What happens before the tunnel is open the server knows of.
    if (this.#opened && error instanceof CancelledError && error.code === 'HANDLER_FAILED') this.#offer.report(error.cause ?? error)
  }
}

/** What is thrown for a request without a tunnel. */
function whyNot(face: string, request: Request | globalThis.Request): Error {
  if (!tunnelsExpected()) return new UsageError(`${face}: serve() lets no WebSocket in without the option websocket: true`)
  // Engines leave it out of requests that they do not let in as one.
  if (request.headers.has('upgrade')) return new UsageError(`${face}: this is not the request that the fetch handler was given`)
  return refusedUpgrade(notAsked(request.method))
}

function refusedUpgrade({ status, reason, fields }: Refusal): UpgradeError {
  const pairs: [string, string][] = []
  for (let i = 0; i < fields.length; i += 2) pairs.push([fields[i] as string, fields[i + 1] as string])
  return new UpgradeError(reason, new Response(`${reason}\n`, { status, headers: pairs }))
}

function checkedHeaders(face: string, given: HeadersInit): Fields {
  const fields = fieldsFrom(given)
  const own = fields.find((name, i) => i % 2 === 0 && name.startsWith('sec-websocket-'))
  if (own !== undefined) throw new UsageError(`${face}: ${own} is said by the handshake, see the options`)
  return fields
}
