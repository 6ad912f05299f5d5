/** RFC 9000 §20.1, RFC 9001 §4.8 and §6.6. */
export const TransportError = {
  noError: 0x0,
  internalError: 0x1,
  connectionRefused: 0x2,
  flowControlError: 0x3,
  streamLimitError: 0x4,
  streamStateError: 0x5,
  finalSizeError: 0x6,
  frameEncodingError: 0x7,
  transportParameterError: 0x8,
  connectionIdLimitError: 0x9,
  protocolViolation: 0xa,
  invalidToken: 0xb,
  applicationError: 0xc,
  cryptoBufferExceeded: 0xd,
  keyUpdateError: 0xe,
  aeadLimitReached: 0xf,
  noViablePath: 0x10,
  /** And 255 more: the TLS alert is added (RFC 9001 §4.8). */
  cryptoError: 0x100,
} as const
/** Any number the wire may carry; a peer may use codes that are not known here. */
export type TransportError = number

/** Why the connection must end: what CONNECTION_CLOSE of type 0x1c will say. A value, never thrown. */
export interface TransportFault {
  /** A {@link TransportError}. */
  readonly code: number
  /** The type of the frame that was at fault; 0 if none was, or if it is not known (RFC 9000 §19.19). */
  readonly frameType: number
  /** For people who read logs; ASCII. */
  readonly reason: string
}

/** A fault; only ever made when a connection is about to end. */
export function transportFault(code: TransportError, frameType: number, reason: string): TransportFault {
  return { code, frameType, reason }
}

const names: readonly string[] = [
  'NO_ERROR',
  'INTERNAL_ERROR',
  'CONNECTION_REFUSED',
  'FLOW_CONTROL_ERROR',
  'STREAM_LIMIT_ERROR',
  'STREAM_STATE_ERROR',
  'FINAL_SIZE_ERROR',
  'FRAME_ENCODING_ERROR',
  'TRANSPORT_PARAMETER_ERROR',
  'CONNECTION_ID_LIMIT_ERROR',
  'PROTOCOL_VIOLATION',
  'INVALID_TOKEN',
  'APPLICATION_ERROR',
  'CRYPTO_BUFFER_EXCEEDED',
  'KEY_UPDATE_ERROR',
  'AEAD_LIMIT_REACHED',
  'NO_VIABLE_PATH',
]

/** The RFC's word for an error code, with the TLS alert for a CRYPTO_ERROR. */
export function transportErrorName(code: TransportError): string {
  const name = names[code]
  if (name !== undefined) return name
  if (code >= TransportError.cryptoError && code < TransportError.cryptoError + 0x100) {
    return `CRYPTO_ERROR (TLS alert ${code - TransportError.cryptoError})`
  }
  return `error 0x${code.toString(16)}`
}
