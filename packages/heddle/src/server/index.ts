/** `serve`: HTTP servers with a fetch handler, or with the engine's own exchanges. */
export { serve } from './serve.ts'
export type { Server } from './server.ts'
export type {
  CloseOptions,
  FetchApp,
  FetchHandler,
  Http2Stats,
  Http3Stats,
  ProtocolStats,
  ResponseLike,
  ServedProtocol,
  ServeOptions,
  ServerStats,
} from './options.ts'
export type { RequestContext } from './request-context.ts'
export { serverLimits, type Http1Limits } from '../h1/index.ts'
export { serverLimits as http2Limits, type Http2Limits } from '../h2/index.ts'
export { serverLimits as http3Limits, type Http3Limits } from '../h3/index.ts'
export type { TlsIdentity, TlsServerOptions } from '../io/index.ts'
export { Headers, Request, Response, type HeadersInit, type ResponseInit } from '../web/index.ts'
