import { openCrypto } from './ffi-crypto.ts'
import { nativeLibrary } from './ffi.ts'
import { loadOpenSsl, makeTls } from './load.ts'
import type { TlsContextOptions } from './tls-options.ts'
import type { QuicCrypto, TlsContext, Udp, Unavailable } from './types.ts'
import { openUdp } from './udp-ffi.ts'

/** Everything below QUIC. */
export interface Native {
  /** TLS 1.3 for QUIC. Throws UsageError for options that cannot be used. */
  tls(options: TlsContextOptions): TlsContext
  readonly crypto: QuicCrypto
  readonly udp: Udp
}

let own: Native | Unavailable | undefined

/** What this thread has for QUIC, or in plain words why it has nothing; found out once. */
export function loadNative(): Native | Unavailable {
  own ??= open()
  return own
}

function open(): Native | Unavailable {
  const openssl = loadOpenSsl()
  if ('unavailable' in openssl) return openssl
  const library = nativeLibrary()
  const usable = 'unavailable' in library ? undefined : library
  return { tls: (options) => makeTls(openssl, options), crypto: openCrypto(usable), udp: openUdp(usable) }
}
