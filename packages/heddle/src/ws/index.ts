/**
 * The WebSocket protocol (RFC 6455, RFC 7692) on a tunnel of any HTTP version. It reads no clock, no
 * randomness and no zlib: masks and the codec of permessage-deflate are given to it.
 */
export { CloseCode, isCloseCode } from './close-code.ts'
export type { Codec, CodecSink } from './codec.ts'
export { State, WebSocketConnection } from './connection.ts'
export {
  acceptDeflate,
  codecSettings,
  deflateExtension,
  readDeflateAnswer,
  writeDeflateOffer,
  type CodecSettings,
  type DeflateAnswer,
  type DeflateOffer,
  type DeflateParameters,
  type DeflatePolicy,
} from './deflate.ts'
export { parseExtensions, type Extension, type ExtensionParameter } from './extension.ts'
export { encodeFrame, Opcode } from './frame.ts'
export {
  answerFields,
  offerFields,
  readAnswer,
  readOffer,
  webSocketVersion,
  type Agreement,
  type HandshakeOffer,
  type ReceivedOffer,
  type Refusal,
} from './handshake.ts'
export { webSocketLimits, type WebSocketLimits } from './limits.ts'
export type { MessageHandler, PreparedMessage } from './message-handler.ts'
export type { DeflateOptions, WebSocketOptions } from './options.ts'
