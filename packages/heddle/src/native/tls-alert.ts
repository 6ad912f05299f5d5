/** Alerts of TLS 1.3 (RFC 8446 §6) that are named here. */
export const Alert = {
  unexpectedMessage: 10,
  illegalParameter: 47,
  internalError: 80,
  missingExtension: 109,
  unrecognizedName: 112,
  noApplicationProtocol: 120,
} as const

const names: Readonly<Record<number, string>> = {
  0: 'close_notify',
  10: 'unexpected_message',
  20: 'bad_record_mac',
  22: 'record_overflow',
  40: 'handshake_failure',
  42: 'bad_certificate',
  43: 'unsupported_certificate',
  44: 'certificate_revoked',
  45: 'certificate_expired',
  46: 'certificate_unknown',
  47: 'illegal_parameter',
  48: 'unknown_ca',
  49: 'access_denied',
  50: 'decode_error',
  51: 'decrypt_error',
  70: 'protocol_version',
  71: 'insufficient_security',
  80: 'internal_error',
  86: 'inappropriate_fallback',
  90: 'user_canceled',
  109: 'missing_extension',
  110: 'unsupported_extension',
  112: 'unrecognized_name',
  113: 'bad_certificate_status_response',
  115: 'unknown_psk_identity',
  116: 'certificate_required',
  120: 'no_application_protocol',
}

/** An alert by number and name, as errors show it: `alert 120, no_application_protocol`. */
export function alertText(alert: number): string {
  const name = names[alert]
  return name === undefined ? `alert ${alert}` : `alert ${alert}, ${name}`
}

/** RFC 9001 §4.8: the error code of QUIC for an alert. */
export function cryptoError(alert: number): number {
  return 0x100 + alert
}

/** RFC 9000 §20.1. */
export const protocolViolation = 0x0a
