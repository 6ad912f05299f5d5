import { UsageError } from '../http/index.ts'
import { largestControl } from './frame.ts'

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

/** A reason has what a control frame has, less the code (RFC 6455 §5.5.1): this many octets of UTF-8 at most. */
export const longestReason: number = largestControl - 2

/** What a Close carries. Throws UsageError for a code that may not be sent, a reason without one, and one that is too long. */
export function closePayload(code: number | undefined, reason: string): Uint8Array {
  if (code === undefined) {
    if (reason !== '') throw new UsageError('a reason needs a code')
    return new Uint8Array(0)
  }
  if (!isCloseCode(code)) throw new UsageError(`close code ${code} cannot be sent`)
  const text = Buffer.from(reason, 'utf8')
  // RFC 6455 §5.5
  if (text.length > longestReason) throw new UsageError(`a reason has ${longestReason} bytes of UTF-8 at most`)
  const payload = new Uint8Array(2 + text.length)
  payload[0] = code >>> 8
  payload[1] = code & 0xff
  payload.set(text, 2)
  return payload
}
