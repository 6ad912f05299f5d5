import { nativeLibrary, openLibrary, type NativeLibrary, type Surroundings } from './ffi.ts'
import { OpenSsl, openOpenSsl } from './openssl.ts'
import { OpenSslContext } from './tls-context.ts'
import type { TlsContextOptions } from './tls-options.ts'
import type { TlsContext, Unavailable } from './types.ts'

let own: OpenSsl | Unavailable | undefined

/** OpenSSL with TLS for QUIC, or why this thread has none; found out once. */
export function loadOpenSsl(): OpenSsl | Unavailable {
  own ??= openIn(nativeLibrary(), process.versions.openssl)
  return own
}

/** As {@link loadOpenSsl}, in other surroundings. */
export function openSslIn(surroundings: Surroundings): OpenSsl | Unavailable {
  return openIn(openLibrary(surroundings), surroundings.versions['openssl'])
}

function openIn(library: NativeLibrary | Unavailable, version: string | undefined): OpenSsl | Unavailable {
  return 'unavailable' in library ? library : openOpenSsl(library, version)
}

/** TLS for QUIC by `openssl`. Throws UsageError for options that cannot be used. */
export function makeTls(openssl: OpenSsl, options: TlsContextOptions): TlsContext {
  return new OpenSslContext(openssl, options)
}
