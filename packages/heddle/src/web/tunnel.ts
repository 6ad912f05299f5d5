import { ProtocolError, type Exchange, type Fields, type Head, type HeddleError } from '../http/index.ts'
import type { Request } from './request.ts'
import type { Response } from './response.ts'

/** Who takes a tunnel over, once the response that opens it is sent. */
export interface TunnelTaker {
  /** The tunnel is open, and `exchange` the taker's: it has to set the handler within the call. */
  onTunnelOpen(exchange: Exchange): void
  /** It will never be: another response was returned, the handler failed, the client or the server went. */
  onTunnelRefused(error: HeddleError): void
  /** The server is about to close. Only while the tunnel is open. */
  onTunnelShutdown(): void
}

/** The tunnel that a received request asks for. */
export interface TunnelOffer {
  readonly exchange: Exchange
  /** The request as the engine has it: `CONNECT` with a protocol. */
  readonly head: Head
  /** The server's clock: what that is this layer does not know. */
  readonly clock: unknown
  /**
   * A response that opens the tunnel for `taker` when the handler returns it, or a copy of it, for this
   * request. Its headers, `fields`, may be changed meanwhile; those of the `handshake` are sent in any case.
   * Throws UsageError if the tunnel was taken already, TypeError for fields that cannot be sent. `taker` is told
   * what comes of it, never during the call.
   */
  take(taker: TunnelTaker, handshake: Fields, fields: Fields): Response
  /** Tells the server's `onError` of a failure of the program's. */
  report(error: unknown): void
  /** A tunnel that was opened is over. */
  release(): void
}

/**
 * A handshake that is refused. A server whose fetch handler throws one sends its response, and tells
 * nobody: it is the client that is at fault.
 */
export class UpgradeError extends ProtocolError {
  /** What the client is told: 400, 403 for a foreign origin, 426 for a request that is no handshake of this version. */
  readonly response: Response

  constructor(message: string, response: Response) {
    super(message, response.status)
    this.response = response
  }

  /** The response, by the name under which frameworks look for it. */
  getResponse(): Response {
    return this.response
  }
}

const offers = new WeakMap<object, TunnelOffer>()
let expected = false

/** The tunnel that `request`, or the one it was made of, asks for. */
export function offeredTunnel(request: Request | globalThis.Request): TunnelOffer | undefined {
  return offers.get(request)
}

/** Leaves `offer` with `request`. */
export function offerTunnel(request: Request, offer: TunnelOffer): void {
  offers.set(request, offer)
}

/** `copy` was made of `request`. */
export function passOffer(request: Request, copy: Request | globalThis.Request): void {
  if (!expected) return
  const offer = offers.get(request)
  if (offer !== undefined) offers.set(copy, offer)
}

/** A server of this process lets clients ask for tunnels. */
export function expectTunnels(): void {
  expected = true
}

/** False: no server of this process ever did, so no request can have an offer. */
export function tunnelsExpected(): boolean {
  return expected
}
