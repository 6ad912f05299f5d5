import { ClientConnection as Http1Connection, type Http1Options } from '../h1/index.ts'
import { ClientConnection as Http2Connection, type Http2Options } from '../h2/index.ts'
import { ClientConnection as Http3Connection, clientLimits, type Http3Limits, type Http3Options } from '../h3/index.ts'
import type { ConnectionHandler, HttpConnection, Instant, StreamEngine } from '../http/index.ts'
import type { Dialled, DialledQuic, DriverCounters } from '../io/index.ts'
import type { ClientProtocol } from './protocols.ts'

/** An engine as the pool sees it. */
export interface ClientEngine extends HttpConnection {
  /** HTTP/2: frames sent so far. */
  readonly framesSent?: number
  /** HTTP/2 and HTTP/3: streams reset from here so far. */
  readonly resetsSent?: number
  /** HTTP/2: the origins the server says it answers for (RFC 8336), or undefined while it has not said. */
  readonly originSet?: ReadonlySet<string> | undefined
}

/** What the engines of one origin's connections are told. */
export interface EngineOptions {
  readonly http1: Http1Options
  readonly http2: Http2Options
  readonly http3: Http3Options
}

/** A new connection, by TCP or QUIC. */
export type AnyDialled = Dialled | DialledQuic

/** Makes the engine that speaks `protocol` on a new connection. */
export type EngineMaker = (
  protocol: ClientProtocol,
  dialled: AnyDialled,
  handler: ConnectionHandler,
  options: EngineOptions,
  now: Instant,
) => ClientEngine

/** The engines of the library. */
export const makeEngine: EngineMaker = (protocol, dialled, handler, { http1, http2, http3 }, now) => {
  if ('quic' in dialled) return new QuicEngine(dialled, handler, http3, now)
  const { info } = dialled
  return protocol === 'h2' ? new Http2Connection(info, handler, http2, now) : new Http1Connection(info, handler, http1, now)
}

/** HTTP/3 that keeps what servers give for the next connection. */
class QuicEngine extends Http3Connection {
  readonly #dialled: DialledQuic

  constructor(dialled: DialledQuic, handler: ConnectionHandler, options: Http3Options, now: Instant) {
    super(dialled.info, handler, dialled.quic, { ...options, limits: limitsOn(dialled, options) }, now)
    this.#dialled = dialled
  }

  onTicket(ticket: Uint8Array): void {
    this.#dialled.keepTicket(ticket)
  }

  onToken(token: Uint8Array): void {
    this.#dialled.keepToken(token)
  }
}

/** ms by which an idle connection is closed before QUIC would let it go without a word: a request must not meet that. */
const margin = 1_000

function limitsOn({ quic }: DialledQuic, { limits = {} }: Http3Options): Partial<Http3Limits> {
  const { idleTimeout = clientLimits.idleTimeout } = limits
  return { ...limits, idleTimeout: Math.min(idleTimeout, Math.max(margin, quic.idle.timeout - margin)) }
}

/** Puts `engine`, which was made for it, on `dialled`. `unref`: it does not keep the process running. */
export function attach(dialled: AnyDialled, engine: ClientEngine, counters: DriverCounters, unref: boolean): void {
  if ('quic' in dialled) {
    if (unref) dialled.unref()
    dialled.attach(engine as QuicEngine)
    return
  }
  if (unref) dialled.socket.unref?.()
  dialled.attach(engine as ClientEngine & StreamEngine, { counters })
}

/** Drops `dialled`, which nobody wants. */
export function drop(dialled: AnyDialled): void {
  if ('quic' in dialled) dialled.destroy()
  else dialled.socket.destroy()
}
