/** HTTP/3 (RFC 9114): the engine of both roles, over a QUIC connection. */
export { ClientConnection } from './client-connection.ts'
export { ErrorCode, errorName } from './frame.ts'
export { checkedLimits, clientLimits, serverLimits, type Http3Limits } from './limits.ts'
export type { Http3Options } from './options.ts'
export { ServerConnection } from './server-connection.ts'
export { SettingId } from './settings.ts'
export type { QuicTransport } from './transport.ts'
