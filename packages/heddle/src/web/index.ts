/** Heddle's own Headers, Request and Response: the WHATWG interfaces, lazily. */
export { unwatchAbort, watchAbort, type Abortable } from './abort-watch.ts'
export { Headers, fieldsFrom, fieldsOf, headersFrom, type HeadersEntries, type HeadersNames } from './headers.ts'
export type { HeadersInit } from './header-text.ts'
export { Body, cancelBody, cloneSource, peekSource, setSource, sourceReader, takeSource } from './body.ts'
export { encoded, sourceOf, typeOf, type BodyInit, type Source } from './body-init.ts'
export { cancelSource, collect, type BodySource } from './body-source.ts'
export { ContentSender } from './content-sender.ts'
export { StreamSource, streamFrom } from './body-stream.ts'
export { IncomingBody, type IncomingOwner } from './incoming-body.ts'
export { abortRequest, givenSignal, Request, requestFields, requestFrom, type RequestInfo } from './request.ts'
export { methodFrom } from './request-options.ts'
export type {
  ReferrerPolicy,
  RequestCache,
  RequestCredentials,
  RequestDuplex,
  RequestInit,
  RequestMode,
  RequestRedirect,
} from './request-options.ts'
export {
  Response,
  responseFields,
  responseFrom,
  responseSource,
  responseTrailers,
  type ResponseInit,
  type ResponseType,
  type TrailersInit,
} from './response.ts'
export { originFrom, targetUrl } from './target-url.ts'
export { expectTunnels, offeredTunnel, offerTunnel, tunnelsExpected, UpgradeError, type TunnelOffer, type TunnelTaker } from './tunnel.ts'
