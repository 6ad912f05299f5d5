/** HTTP/1.1 (RFC 9112) without I/O: bytes in, calls out, for both roles. */
export { ClientConnection } from './client-connection.ts'
export { clientLimits, serverLimits, type Http1Limits } from './limits.ts'
export type { Http1Options } from './options.ts'
export { ServerConnection } from './server-connection.ts'
