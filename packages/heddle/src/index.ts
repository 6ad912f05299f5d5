/**
 * Heddle's main door: `fetch` and `Client`, `serve`, the WHATWG classes, heads and errors. The rooms
 * behind it have doors of their own: `heddle/client`, `heddle/server`, `heddle/http`, `heddle/io`.
 */
export {
  Client,
  fetch,
  type ClientExchangeHandler,
  type ClientOptions,
  type ClientProtocol,
  type ClientStats,
  type ClientTlsOptions,
  type ExchangeOptions,
  type FetchInit,
  type FetchInput,
  type InformationalResponse,
  type Origin,
  type OriginStats,
  type PoolCounts,
  type ProxyOption,
  type Ticket,
} from './client/index.ts'
export {
  serve,
  type CloseOptions,
  type FetchApp,
  type FetchHandler,
  type RequestContext,
  type ResponseLike,
  type Server,
  type ServeOptions,
  type ServerStats,
  type TlsIdentity,
  type TlsServerOptions,
} from './server/index.ts'
export { Headers, Request, Response, type BodyInit, type HeadersInit, type RequestInit, type ResponseInit } from './web/index.ts'
export {
  CancelledError,
  CancelReason,
  HeddleError,
  NetworkError,
  noFields,
  PeerError,
  ProtocolError,
  requestHead,
  responseHead,
  TimeoutError,
  UsageError,
  type Address,
  type ConnectionInfo,
  type ErrorCode,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type Priority,
  type TlsFacts,
} from './http/index.ts'
