import type { TlsFacts } from '../http/index.ts'
import type { OpenSsl } from './openssl.ts'
import type { CipherSuite } from './types.ts'

/** What a handshake agreed on, as it is asked for. Nothing of it needs the session afterwards. */
export class SessionFacts implements TlsFacts {
  readonly version: string
  readonly cipher: string
  readonly alpn: string | undefined
  readonly serverName: string | undefined
  readonly authorized: boolean
  readonly peerCertificate: Uint8Array | undefined
  /** The session is an earlier one's, so no certificate was sent. */
  readonly resumed: boolean
  /** The key exchange: `X25519MLKEM768`, … */
  readonly group: string | undefined

  constructor(openssl: OpenSsl, ssl: bigint, serverName: string | undefined) {
    const { f } = openssl
    this.version = 'TLSv1.3'
    this.cipher = cipherOf(openssl, f.SSL_get_current_cipher(ssl)) ?? ''
    this.alpn = alpnOf(openssl, ssl)
    this.serverName = serverName
    this.peerCertificate = peerCertificate(openssl, ssl)
    this.authorized = this.peerCertificate !== undefined && verifyResult(openssl, ssl) === 0
    this.resumed = f.SSL_session_reused(ssl) === 1
    this.group = openssl.text(f.SSL_get0_group_name(ssl))
  }
}

const suites: Readonly<Record<number, CipherSuite>> = {
  0x1301: 'TLS_AES_128_GCM_SHA256',
  0x1302: 'TLS_AES_256_GCM_SHA384',
  0x1303: 'TLS_CHACHA20_POLY1305_SHA256',
}

/** The name of an SSL_CIPHER; undefined for none, and for those that are not offered. */
export function cipherOf({ f }: OpenSsl, cipher: bigint): CipherSuite | undefined {
  return cipher === 0n ? undefined : suites[f.SSL_CIPHER_get_protocol_id(cipher)]
}

/** What ALPN chose. */
export function alpnOf(openssl: OpenSsl, ssl: bigint): string | undefined {
  const { f, ffi, out } = openssl
  const at = ffi.getRawPointer(out)
  out[1] = 0n
  f.SSL_get0_alpn_selected(ssl, at, at + 8n)
  const length = Number((out[1] as bigint) & 0xffff_ffffn)
  return length === 0 ? undefined : Buffer.from(openssl.bytes(out[0] as bigint, length)).toString('latin1')
}

/** X509_V_*: 0 is verified, or nothing was there to verify. */
export function verifyResult({ f }: OpenSsl, ssl: bigint): number {
  return Number(f.SSL_get_verify_result(ssl))
}

function peerCertificate(openssl: OpenSsl, ssl: bigint): Uint8Array | undefined {
  const { f, ffi, out } = openssl
  const certificate = f.SSL_get1_peer_certificate(ssl)
  if (certificate === 0n) return undefined
  const length = f.i2d_X509(certificate, null)
  let der: Uint8Array | undefined
  if (length > 0) {
    der = new Uint8Array(new ArrayBuffer(length))
    out[0] = ffi.getRawPointer(der)
    f.i2d_X509(certificate, out)
  }
  f.X509_free(certificate)
  return der
}
