/** Close codes with a meaning (RFC 6455 §7.4.1 and its registry). */
export const CloseCode = {
  Normal: 1000,
  GoingAway: 1001,
  ProtocolError: 1002,
  UnsupportedData: 1003,
  /** Never on the wire: the peer's Close had no code. */
  NoStatus: 1005,
  /** Never on the wire: no Close came. */
  Abnormal: 1006,
  InvalidPayload: 1007,
  PolicyViolation: 1008,
  MessageTooBig: 1009,
  MandatoryExtension: 1010,
  InternalError: 1011,
  ServiceRestart: 1012,
  TryAgainLater: 1013,
  BadGateway: 1014,
} as const
export type CloseCode = (typeof CloseCode)[keyof typeof CloseCode]

/** True for a code that may stand in a Close frame: RFC 6455 §7.4.1 and §7.4.2, and the registry's 1012–1014. */
export function isCloseCode(code: number): boolean {
  return Number.isInteger(code) && ((code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999))
}
