import { List, type Linked } from '../bytes/index.ts'
import {
  CancelledError,
  CancelReason,
  fieldValue,
  noFields,
  requestHead,
  responseHead,
  UsageError,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
} from '../http/index.ts'
import type { Clock } from '../io/index.ts'
import {
  fieldsFrom,
  offerTunnel,
  requestFrom,
  Response,
  responseFields,
  type Request,
  type TunnelOffer,
  type TunnelTaker,
} from '../web/index.ts'
import type { ResponseLike } from './options.ts'

/** The open tunnels of a server's fetch handler: those that shall hear when it closes. */
export class Tunnels {
  readonly list: List<FetchTunnel>
  #closing: boolean

  constructor() {
    this.list = new List()
    this.#closing = false
  }

  /** `tunnel` has been opened. */
  add(tunnel: FetchTunnel): void {
    this.list.append(tunnel)
    if (this.#closing) tunnel.shutdown()
  }

  /** Tells all, and those that open after this. */
  shutdown(): void {
    this.#closing = true
    // They may leave the list while they are told.
    const all: FetchTunnel[] = []
    for (let tunnel = this.list.first; tunnel !== undefined; tunnel = tunnel.next) all.push(tunnel)
    for (const tunnel of all) tunnel.shutdown()
  }
}

/**
 * The tunnel a request asks for, on its way between engine and fetch handler. The handler sees an
 * ordinary GET; whoever takes the tunnel (`upgrade` of heddle/websocket) makes the response that opens it. Its
 * status is 200, for one of 101 could not be copied.
 *
 *               another response, failure, client gone
 *          ┌──────────────────────────────────────────▶ refused
 *    offered ──take──▶ taken ──its response──▶ open ──▶ released
 */
export class FetchTunnel implements TunnelOffer, ExchangeHandler, Linked {
  previous: FetchTunnel | undefined
  next: FetchTunnel | undefined
  readonly exchange: Exchange
  readonly head: Head
  readonly clock: Clock
  readonly report: (error: unknown) => void
  readonly #tunnels: Tunnels
  #state: 'offered' | 'opening' | 'open' | 'released' | 'refused'
  #taker: TunnelTaker | undefined
  /** What its response is known by, in a field: middleware copies responses. */
  #mark: string
  /** Sent whatever becomes of the response's headers. */
  #handshake: Fields
  /** Why it was refused. */
  #reason: HeddleError | undefined

  constructor(exchange: Exchange, head: Head, clock: Clock, tunnels: Tunnels, report: (error: unknown) => void) {
    this.previous = undefined
    this.next = undefined
    this.exchange = exchange
    this.head = head
    this.clock = clock
    this.report = report
    this.#tunnels = tunnels
    this.#state = 'offered'
    this.#taker = undefined
    this.#mark = ''
    this.#handshake = noFields
    this.#reason = undefined
  }

  /** The request as handlers know it, the same over every version of HTTP. */
  request(origin: string): Request {
    const { scheme, authority, path, protocol, fields } = this.head
    const head = requestHead('GET', scheme, authority, path, [...fields, 'connection', 'upgrade', 'upgrade', protocol])
    const request = requestFrom(head, origin, undefined)
    offerTunnel(request, this)
    return request
  }

  take(taker: TunnelTaker, handshake: Fields, fields: Fields): Response {
    if (this.#taker !== undefined) throw new UsageError('this request was upgraded already')
    const mark = `${markStart}${++taken}`
    const response = new Response(null, { headers: pairsOf([...fields, ...handshake, markName, mark]) })
    this.#taker = taker
    this.#mark = mark
    this.#handshake = handshake
    const reason = this.#reason
    // The client has gone meanwhile, or was answered.
    if (reason !== undefined) this.clock.soon(() => taker.onTunnelRefused(reason))
    return response
  }

  /**
   * What is to be sent for the handler's `response`, if it has not opened the tunnel. Throws for fields that
   * cannot be sent; then nothing was.
   */
  answer(response: ResponseLike): ResponseLike | 'opened' {
    const { exchange } = this
    const fields = fieldsOf(response)
    const mark = fieldValue(fields, markName)
    if (mark === undefined || mark !== this.#mark) {
      if (mark?.startsWith(markStart) === true) throw new UsageError('the response of another upgrade was returned')
      this.refuse(new CancelledError(CancelReason.Refused, 'the handler returned another response than that of the upgrade'))
      const status = (response as Partial<ResponseLike> | undefined)?.status ?? 0
      if (status < 200 || status > 299) return response
      // In HTTP/2 a 2xx opens the tunnel, whatever was meant by it. In HTTP/1.1 an Upgrade can be ignored.
      if (exchange.ignoreUpgrade === undefined) return noTunnelHere()
      exchange.ignoreUpgrade()
      return response
    }
    if (this.#state !== 'offered') throw new UsageError('the response of the upgrade came too late')
    exchange.sendHead(responseHead(200, this.#answerFields(fields)), false)
    this.#state = 'opening'
    // Until the taker makes another the handler, which it does not if it has no use for the tunnel any more.
    exchange.handler = this
    this.#taker?.onTunnelOpen(exchange)
    if (!this.#released) {
      this.#state = 'open'
      this.#tunnels.add(this)
    }
    return 'opened'
  }

  /** There will be no tunnel. */
  refuse(reason: HeddleError): void {
    if (this.#state !== 'offered') return
    this.#state = 'refused'
    this.#reason = reason
    const taker = this.#taker
    if (taker !== undefined) this.clock.soon(() => taker.onTunnelRefused(reason))
  }

  shutdown(): void {
    this.#taker?.onTunnelShutdown()
  }

  release(): void {
    if (this.#state === 'open') this.#tunnels.list.remove(this)
    if (this.#state === 'open' || this.#state === 'opening') this.#state = 'released'
  }

  onHead(): void {}
  onData(_buffer: Uint8Array, start: number, limit: number): void {
    this.exchange.consume(limit - start)
  }
  onTrailers(): void {}
  onSent(): void {}
  onPriority(): void {}
  onClose(): void {
    this.release()
  }

  get #released(): boolean {
    return this.#state === 'released'
  }

  /** What was not agreed on is not said, either: the client would have to fail the connection (RFC 6455 §4.1). */
  #answerFields(returned: Fields): Fields {
    const fields: string[] = []
    for (let i = 0; i < returned.length; i += 2) {
      const name = returned[i] as string
      if (!name.startsWith('sec-websocket-')) fields.push(name, returned[i + 1] as string)
    }
    return [...fields, ...this.#handshake]
  }
}

/** Throws UsageError if `response`, to a request for no tunnel, is that of an upgrade: nobody would be there. */
export function checkOrdinary(response: ResponseLike): void {
  const mark = fieldValue(fieldsOf(response), markName)
  if (mark?.startsWith(markStart) === true) throw new UsageError('the response of an upgrade was returned to another request')
}

/** The engine of HTTP/1.1 writes this field itself, and HTTP/2 has none, so it is free for this. */
const markName = 'sec-websocket-accept'
const markStart = 'tunnel '
let taken = 0

/** The fields of a response, or of whatever was returned. */
function fieldsOf(response: ResponseLike): Fields {
  if (response instanceof Response) return responseFields(response)
  return typeof response?.headers?.[Symbol.iterator] === 'function' ? fieldsFrom(response.headers) : noFields
}

function pairsOf(fields: Fields): [string, string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i < fields.length; i += 2) pairs.push([fields[i] as string, fields[i + 1] as string])
  return pairs
}

/** The handler answered as if the request were an ordinary GET. */
function noTunnelHere(): Response {
  return new Response('This resource speaks no WebSocket.\n', { status: 501 })
}
