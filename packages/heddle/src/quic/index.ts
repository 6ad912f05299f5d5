/** QUIC version 1 (RFC 9000, 9001, 9002): the engine of both roles. */
export { writeAck, type EcnTotals } from './ack-writer.ts'
export { ackDelayTime, ackDelayUnits, ReceivedPackets, type AckOptions } from './ack.ts'
export { ApplicationKeys } from './application-keys.ts'
export { type Congestion } from './congestion.ts'
export { Cubic } from './cubic.ts'
export { debugFrame, readDebugFrames, writeDebugFrame, type DebugFrame } from './debug-frame.ts'
export { Ecn, EcnCounter, EcnValidation } from './ecn.ts'
export { FrameReader, resetTokenSize } from './frame.ts'
export { FrameType, isAckEliciting, isFrameAllowed, isKnownFrameType, isProbing, StreamFlag } from './frame-type.ts'
export {
  writeApplicationClose,
  writeConnectionClose,
  writeDataBlocked,
  writeHandshakeDone,
  writeMaxData,
  writeMaxStreamData,
  writeMaxStreams,
  writeNewConnectionId,
  writeNewToken,
  writePadding,
  writePathChallenge,
  writePathResponse,
  writePing,
  writeResetStream,
  writeRetireConnectionId,
  writeStopSending,
  writeStreamDataBlocked,
  writeStreamsBlocked,
} from './frame-writer.ts'
export { NewReno } from './new-reno.ts'
export { maxConnectionIdSize, PacketReader, PacketType, retryTagSize, version1 } from './packet.ts'
export { initialSecrets, initialSuite, suiteFacts, type SuiteFacts } from './key-schedule.ts'
export { decodePacketNumber, packetNumberSize, writePacketNumber } from './packet-number.ts'
export { ForgeryCount, PacketOpener } from './packet-opener.ts'
export { PacketWriter, tagSize, type PacketSealer } from './packet-writer.ts'
export { checkConnectionIds, checkRemembered, rememberedParameters } from './parameter-checks.ts'
export { LevelKeys } from './protection.ts'
export { Recovery, type PacketFate, type RecoveryOptions } from './recovery.ts'
export { Rtt } from './rtt.ts'
export { type SentPacket } from './sent-packet.ts'
export { SentValue } from './sent-value.ts'
export { Space, spaceCount, spaceOf } from './space.ts'
export { readVersions, retryPacket, verifyRetry, versionNegotiationPacket } from './retry-packet.ts'
export { startCrypto, startStream, writeCrypto, writeStream } from './stream-writer.ts'
export { TransportError, transportErrorName, transportFault, type TransportFault } from './transport-error.ts'
export { decodeTransportParameters, encodeTransportParameters, TransportParameters, type PreferredAddress } from './transport-parameters.ts'
export type { QuicStream, QuicStreamHandler } from './stream.ts'
export { type QuicApplication } from './application.ts'
export { QuicConnection } from './connection.ts'
export { type QuicStart } from './start.ts'
export { type IdIssuer } from './local-ids.ts'
export { type QuicOptions, quicDefaults } from './options.ts'
export { type Route } from './path.ts'
export { Tokens } from './tokens.ts'
export { Endpoint, type EndpointOptions, type EndpointServer, type LooseDatagram, localIdSize } from './endpoint.ts'
