/** WebSocket over HTTP/1.1, HTTP/2 and HTTP/3: one connection in either role, and what belongs to many. */
export type { CompressionOptions } from './codec.ts'
export { connect } from './connect.ts'
export type { ConnectDeflate, ConnectOptions } from './connect-options.ts'
export { WebSocketCloseEvent, WebSocketErrorEvent, type MessageData, type WebSocketEventMap } from './events.ts'
export { SocketGroup, type BroadcastOptions, type GroupCloseOptions, type GroupClosed, type GroupOptions } from './group.ts'
export { HandshakeError } from './handshake-error.ts'
export { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
export type { BinaryType } from './message-data.ts'
export { prepare, type PrepareOptions } from './prepared-message.ts'
export { Socket, type Message, type PingCallback, type PostOptions, type ReadOptions, type Sendable, type WriteOptions } from './socket.ts'
export type { Closed, SocketHandler } from './socket-handler.ts'
export type { SocketDeflate, SocketLimits, SocketOptions } from './socket-options.ts'
export { socketLimits } from './socket-settings.ts'
export { textOf } from './text.ts'
export type { SendableData } from './send-queue.ts'
export { WebSocket, webSocketOver } from './web-socket.ts'
export { CloseCode, type DeflateOffer, type DeflateParameters, type PreparedMessage, type WebSocketLimits } from '../ws/index.ts'

export { acceptWebSocket, type AcceptOptions } from './accept-websocket.ts'
export { accept, upgrade, type Accepted, type FetchUpgradeOptions, type Upgraded } from './upgrade.ts'
export type { OriginCheck, ProtocolChoice, UpgradeDeflate, UpgradeOptions } from './upgrade-options.ts'
export { UpgradeError } from '../web/index.ts'
export { WebSocketServer, type UpgradeDone, type WebSocketServerEvents } from './ws-server.ts'
export type { PerMessageDeflate, VerifyClient, VerifyInfo, WebSocketServerOptions } from './ws-options.ts'
export {
  NodeWebSocket,
  type NodeBinaryType,
  type NodeMessage,
  type NodeSendable,
  type NodeSendOptions,
  type NodeWebSocketEvents,
} from './node-web-socket.ts'
export type { EmitterEvent, EmitterListener, ListenerOptions } from './emitter-events.ts'
