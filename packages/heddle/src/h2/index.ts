/** HTTP/2 (RFC 9113): the engine of both roles. */
export { ClientConnection, ServerConnection, type Http2Options } from './connection.ts'
export { preface } from './frame.ts'
export { clientLimits, serverLimits, type Http2Limits } from './limits.ts'
