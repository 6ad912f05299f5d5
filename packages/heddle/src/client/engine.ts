import { ClientConnection as Http1Connection, type Http1Options } from '../h1/index.ts'
import { ClientConnection as Http2Connection, type Http2Options } from '../h2/index.ts'
import type { ConnectionHandler, HttpConnection, Instant, StreamEngine } from '../http/index.ts'
import type { Dialled } from '../io/index.ts'
import type { ClientProtocol } from './protocols.ts'

/** An engine as the pool sees it. */
export interface ClientEngine extends HttpConnection, StreamEngine {
  /** HTTP/2: frames sent so far. */
  readonly framesSent?: number
  /** HTTP/2: streams reset from here so far. */
  readonly resetsSent?: number
  /** HTTP/2: the origins the server says it answers for (RFC 8336), or undefined while it has not said. */
  readonly originSet?: ReadonlySet<string> | undefined
}

/** What the engines of one origin's connections are told. */
export interface EngineOptions {
  readonly http1: Http1Options
  readonly http2: Http2Options
}

/** Makes the engine that speaks `protocol` on a new connection. */
export type EngineMaker = (
  protocol: ClientProtocol,
  dialled: Dialled,
  handler: ConnectionHandler,
  options: EngineOptions,
  now: Instant,
) => ClientEngine

/** The engines of the library. */
export const makeEngine: EngineMaker = (protocol, { info }, handler, { http1, http2 }, now) =>
  protocol === 'h2' ? new Http2Connection(info, handler, http2, now) : new Http1Connection(info, handler, http1, now)
