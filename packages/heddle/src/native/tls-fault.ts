import type { OpenSsl } from './openssl.ts'
import { alertText, cryptoError, protocolViolation } from './tls-alert.ts'
import type { TlsFault } from './types.ts'

/** A fault with an alert of its own; `code` where QUIC has another code for it. */
export function tlsFault(alert: number, message: string, code: number = cryptoError(alert)): TlsFault {
  return { alert, code, message: `${message} (${code === cryptoError(alert) ? alertText(alert) : 'PROTOCOL_VIOLATION'})` }
}

/** What OpenSSL calls a chain that is not to be trusted. */
const verifyFailed = 'certificate verify failed'

/** A fault that OpenSSL found: `reasons` are its words, `verified` is what came of the peer's certificate, whom `whose` names. */
export function opensslFault(openssl: OpenSsl, alert: number, reasons: readonly string[], verified: number, whose: string): TlsFault {
  if (verified !== 0 && reasons.includes(verifyFailed)) {
    const text = openssl.text(openssl.f.X509_verify_cert_error_string(openssl.long(verified))) ?? 'unknown'
    return tlsFault(alert, `${whose} is not valid: ${text} (${verified})`)
  }
  // RFC 9001 §4.6.1: a ticket with a limit of early data.
  if (reasons.includes('invalid max early data')) return tlsFault(alert, reasons.join(', '), protocolViolation)
  return tlsFault(alert, reasons.length === 0 ? 'the TLS handshake failed' : reasons.join(', '))
}
