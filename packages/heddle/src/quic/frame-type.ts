import type { Level } from '../native/index.ts'

/** RFC 9000 §19. The types of pairs and families stand by their first member. */
export const FrameType = {
  padding: 0x00,
  ping: 0x01,
  ack: 0x02,
  ackEcn: 0x03,
  resetStream: 0x04,
  stopSending: 0x05,
  crypto: 0x06,
  newToken: 0x07,
  /** And seven more: the low bits say OFF, LEN and FIN ({@link StreamFlag}). */
  stream: 0x08,
  maxData: 0x10,
  maxStreamData: 0x11,
  maxStreamsBidirectional: 0x12,
  maxStreamsUnidirectional: 0x13,
  dataBlocked: 0x14,
  streamDataBlocked: 0x15,
  streamsBlockedBidirectional: 0x16,
  streamsBlockedUnidirectional: 0x17,
  newConnectionId: 0x18,
  retireConnectionId: 0x19,
  pathChallenge: 0x1a,
  pathResponse: 0x1b,
  connectionClose: 0x1c,
  applicationClose: 0x1d,
  handshakeDone: 0x1e,
} as const
export type FrameType = number

/** The low bits of a STREAM frame's type (RFC 9000 §19.8). */
export const StreamFlag = { fin: 0x01, length: 0x02, offset: 0x04 } as const

const I = 1 << 0
const E = 1 << 1
const H = 1 << 2
const A = 1 << 3
/** A frame that asks for no acknowledgement (RFC 9000 §13.2). */
const notEliciting = 1 << 4
/** A frame that may be sent on a path that is being tried (RFC 9000 §9.1). */
const probing = 1 << 5
/** A frame that only a server sends. */
const serverOnly = 1 << 6

/**
 * Where each type of frame may come, at the index of its type: RFC 9000 §12.4, Table 3. I: Initial,
 * E: 0-RTT, H: Handshake, A: 1-RTT packets. RETIRE_CONNECTION_ID differs from that table: it cannot
 * come in a 0-RTT packet, as no connection id was issued before (§12.5).
 */
const table: readonly number[] = [
  /* 00 PADDING              */ I | E | H | A | notEliciting | probing,
  /* 01 PING                 */ I | E | H | A,
  /* 02 ACK                  */ I | H | A | notEliciting,
  /* 03 ACK with ECN         */ I | H | A | notEliciting,
  /* 04 RESET_STREAM         */ E | A,
  /* 05 STOP_SENDING         */ E | A,
  /* 06 CRYPTO               */ I | H | A,
  /* 07 NEW_TOKEN            */ A | serverOnly,
  /* 08 STREAM               */ E | A,
  /* 09 STREAM FIN           */ E | A,
  /* 0a STREAM LEN           */ E | A,
  /* 0b STREAM LEN FIN       */ E | A,
  /* 0c STREAM OFF           */ E | A,
  /* 0d STREAM OFF FIN       */ E | A,
  /* 0e STREAM OFF LEN       */ E | A,
  /* 0f STREAM OFF LEN FIN   */ E | A,
  /* 10 MAX_DATA             */ E | A,
  /* 11 MAX_STREAM_DATA      */ E | A,
  /* 12 MAX_STREAMS bidi     */ E | A,
  /* 13 MAX_STREAMS uni      */ E | A,
  /* 14 DATA_BLOCKED         */ E | A,
  /* 15 STREAM_DATA_BLOCKED  */ E | A,
  /* 16 STREAMS_BLOCKED bidi */ E | A,
  /* 17 STREAMS_BLOCKED uni  */ E | A,
  /* 18 NEW_CONNECTION_ID    */ E | A | probing,
  /* 19 RETIRE_CONNECTION_ID */ A,
  /* 1a PATH_CHALLENGE       */ E | A | probing,
  /* 1b PATH_RESPONSE        */ A | probing,
  /* 1c CONNECTION_CLOSE     */ I | E | H | A | notEliciting,
  /* 1d CONNECTION_CLOSE app */ E | A | notEliciting,
  /* 1e HANDSHAKE_DONE       */ A | serverOnly,
]

/** The type is one of RFC 9000's. */
export function isKnownFrameType(type: FrameType): boolean {
  return type < table.length
}

/** A packet of this level may have a frame of this known type, from a peer of this role. */
export function isFrameAllowed(type: FrameType, level: Level, fromServer: boolean): boolean {
  const entry = table[type] as number
  return (entry & (1 << level)) !== 0 && (fromServer || (entry & serverOnly) === 0)
}

/** A packet with a frame of this known type must be acknowledged (RFC 9000 §13.2.1). */
export function isAckEliciting(type: FrameType): boolean {
  return ((table[type] as number) & notEliciting) === 0
}

/** A frame of this known type does not mean that the peer moved to the path (RFC 9000 §9.1). */
export function isProbing(type: FrameType): boolean {
  return ((table[type] as number) & probing) !== 0
}
