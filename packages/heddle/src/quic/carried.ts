/**
 * What a packet carried that its sender must know of when the packet is acknowledged or lost: records of
 * four numbers, `[kind, a, b, c]`, one behind the other in `SentPacket.carried`. No frame is kept, only
 * what it said: what is sent again is made anew from the state of then (RFC 9000 §13.3).
 */
export const Carried = {
  /** a: the largest packet number that the ACK frame acknowledged. */
  ack: 0,
  /** CRYPTO data from octet a to b of the packet's space. */
  crypto: 1,
  /** STREAM data of stream a from octet b to c. */
  stream: 2,
  /** As `stream`, and the stream ends with it. */
  streamFin: 3,
  /** a: the stream. */
  resetStream: 4,
  /** a: the stream. */
  stopSending: 5,
  /** a: the limit that was told. */
  maxData: 6,
  /** a: the stream, b: the limit. */
  maxStreamData: 7,
  /** a: 0 for bidirectional streams, 1 for unidirectional ones, b: the limit. */
  maxStreams: 8,
  /** a: the limit that sending met. */
  dataBlocked: 9,
  /** a: the stream, b: the limit. */
  streamDataBlocked: 10,
  /** a: 0 for bidirectional streams, 1 for unidirectional ones, b: the limit. */
  streamsBlocked: 11,
  /** a: the sequence number. */
  newConnectionId: 12,
  /** a: the sequence number. */
  retireConnectionId: 13,
  /** A PATH_CHALLENGE, which is not sent again (RFC 9000 §13.3). */
  pathChallenge: 14,
  handshakeDone: 15,
  newToken: 16,
  /** a: the size of the datagram that tried the path for it. */
  mtuProbe: 17,
} as const
export type Carried = (typeof Carried)[keyof typeof Carried]

/** Where records go: a packet that is being sent. */
export interface CarriedBy {
  readonly carried: number[]
}

/** Numbers in a record. */
export const carriedWidth = 4

/** Appends a record. */
export function carry(carried: number[], kind: Carried, a = 0, b = 0, c = 0): void {
  carried.push(kind, a, b, c)
}
