/** HTTP/2 (RFC 9113): the engine of both roles. */
export { ClientConnection } from './client-connection.ts'
export { preface } from './frame.ts'
export { clientLimits, serverLimits, type Http2Limits } from './limits.ts'
export type { Http2Options } from './options.ts'
export { ResetCounts } from './reset-counts.ts'
export { ServerConnection } from './server-connection.ts'
