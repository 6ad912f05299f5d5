import type { OpenSsl } from './openssl.ts'

// RFC 8446 §4.2, RFC 9001 §8.2
const serverNameExtension = 0
const alpnExtension = 16
const transportParametersExtension = 57

/** What a server looks at before OpenSSL does. */
export interface ClientHello {
  /** In lower case; undefined if there is none, or none that can be a host's name. */
  readonly serverName: string | undefined
  readonly hasAlpn: boolean
  readonly hasTransportParameters: boolean
  /** `legacy_session_id` is not empty: the compatibility mode of TLS 1.3, which QUIC has not (RFC 9001 §8.4). */
  readonly compatible: boolean
}

/** Reads the ClientHello of `ssl`, from within its callback. */
export function readClientHello(openssl: OpenSsl, ssl: bigint): ClientHello {
  const name = extension(openssl, ssl, serverNameExtension)
  return {
    serverName: name === undefined ? undefined : serverNameIn(name),
    hasAlpn: extension(openssl, ssl, alpnExtension) !== undefined,
    hasTransportParameters: extension(openssl, ssl, transportParametersExtension) !== undefined,
    compatible: openssl.f.SSL_client_hello_get0_session_id(ssl, openssl.out) !== 0n,
  }
}

function extension(openssl: OpenSsl, ssl: bigint, type: number): Uint8Array | undefined {
  const { f, ffi, out } = openssl
  const at = ffi.getRawPointer(out)
  if (f.SSL_client_hello_get0_ext(ssl, type, at, at + 8n) !== 1) return undefined
  return openssl.bytes(out[0] as bigint, Number(out[1]))
}

/** RFC 6066 §3: a list of names by type, of which 0, the host's, is the only one there is. OpenSSL refuses what is malformed. */
export function serverNameIn(bytes: Uint8Array): string | undefined {
  if (bytes.length < 5 || bytes[2] !== 0) return undefined
  const length = ((bytes[3] as number) << 8) | (bytes[4] as number)
  if (length === 0 || length > 255 || length + 5 !== bytes.length) return undefined
  const name = Buffer.from(bytes.buffer, bytes.byteOffset + 5, length)
    .toString('latin1')
    .toLowerCase()
  return /^[\x21-\x7e]+$/.test(name) ? name : undefined
}
