/** WebSocket over HTTP/1.1 and HTTP/2: one connection in either role, and what belongs to many. */
export type { CompressionOptions } from './codec.ts'
export { Socket, type Message, type PingCallback, type PostOptions, type ReadOptions, type Sendable, type WriteOptions } from './socket.ts'
export type { Closed, SocketHandler } from './socket-handler.ts'
export type { SocketDeflate, SocketLimits, SocketOptions } from './socket-options.ts'
export { socketLimits } from './socket-settings.ts'
export { textOf } from './text.ts'
