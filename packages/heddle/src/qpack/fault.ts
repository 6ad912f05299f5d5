/** Why compression cannot go on (RFC 9204 §6): each is an error of the connection. */
export const QpackError = { decompressionFailed: 0x200, encoderStreamError: 0x201, decoderStreamError: 0x202 } as const

/** What the peer did wrong: the connection is to be closed with `code`. */
export interface QpackFault {
  /** One of `QpackError`. */
  readonly code: number
  readonly reason: string
}
