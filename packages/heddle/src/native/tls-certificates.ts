import { createPrivateKey, KeyObject } from 'node:crypto'
import { UsageError } from '../http/index.ts'
import type { OpenSsl } from './openssl.ts'
import { listOf, type Pem, type TlsIdentity } from './tls-options.ts'

// Commands of SSL_CTX_ctrl (openssl/ssl.h).
const chainCert = 89
const setCurrentCert = 117
const first = 1
const next = 2

/** Every certificate of a PEM, in its order; the caller frees them. Throws UsageError if there is none, or one is broken. */
export function readCertificates(openssl: OpenSsl, pem: Pem, what: string): bigint[] {
  const bytes = pemBytes(pem)
  const expected = bytes.toString('latin1').split('-----BEGIN CERTIFICATE-----').length - 1
  if (expected === 0) throw new UsageError(`${what} holds no certificate in PEM`)
  const { f } = openssl
  f.ERR_clear_error()
  const certificates: bigint[] = []
  const bio = f.BIO_new_mem_buf(bytes, bytes.length)
  for (let i = 0; i < expected; i++) {
    const certificate = f.PEM_read_bio_X509(bio, null, null, null)
    if (certificate === 0n) break
    certificates.push(certificate)
  }
  f.BIO_free(bio)
  const reasons = openssl.drainErrors()
  if (certificates.length === expected) return certificates
  freeCertificates(openssl, certificates)
  throw new UsageError(`${what} cannot be used: certificate ${certificates.length + 1} of ${expected} is broken: ${reasons.join(', ')}`)
}

export function freeCertificates({ f }: OpenSsl, certificates: readonly bigint[]): void {
  for (const certificate of certificates) f.X509_free(certificate)
}

/** Off the heap, so that its memory stays where it is. */
function pemBytes(pem: Pem): Buffer {
  if (typeof pem === 'string') return Buffer.from(pem)
  if (!(pem instanceof Uint8Array)) throw new UsageError('tls: PEM is text or a Uint8Array')
  return Buffer.from(pem)
}

/** Gives an SSL_CTX the certificates and keys of an identity. Throws UsageError for what cannot be used; `what` names the identity. */
export function useIdentity(openssl: OpenSsl, context: bigint, identity: TlsIdentity, what: string): void {
  const { pfx, passphrase } = identity
  if (pfx !== undefined) return usePkcs12(openssl, context, pfx, passphrase, what)
  const certificates = listOf<Pem>(identity.cert)
  const keys = listOf<Pem | KeyObject>(identity.key)
  if (certificates.length === 0 && keys.length === 0) return
  if (certificates.length !== keys.length) {
    throw new UsageError(`${what} cannot be used: it has ${certificates.length} certificates and ${keys.length} keys`)
  }
  for (const pem of certificates) useChain(openssl, context, readCertificates(openssl, pem, `${what}: cert`), what)
  for (const key of keys) usePrivateKey(openssl, context, readKey(key, passphrase, what), what)
  checkKeys(openssl, context, certificates.length, what)
}

/** Takes the certificates over: the leaf first, then its issuers. */
function useChain(openssl: OpenSsl, context: bigint, chain: readonly bigint[], what: string): void {
  const { f } = openssl
  const [leaf = 0n, ...issuers] = chain
  f.ERR_clear_error()
  const used = f.SSL_CTX_use_certificate(context, leaf) === 1
  f.X509_free(leaf)
  for (const [i, issuer] of issuers.entries()) {
    // Add1: the context has a reference of its own.
    const added = used && openssl.control(context, chainCert, 1, issuer) === 1
    f.X509_free(issuer)
    if (used && !added) {
      freeCertificates(openssl, issuers.slice(i + 1))
      throw unusable(openssl, what)
    }
  }
  if (!used) throw unusable(openssl, what)
}

/** The key as PKCS #8, opened by node:crypto, which asks nobody for a passphrase. */
function readKey(key: Pem | KeyObject, passphrase: string | undefined, what: string): Buffer {
  try {
    const object =
      key instanceof KeyObject ? key : createPrivateKey({ key: pemBytes(key), ...(passphrase === undefined ? {} : { passphrase }) })
    return object.export({ type: 'pkcs8', format: 'der' })
  } catch (cause) {
    throw new UsageError(`${what} cannot be used: the key cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
}

function usePrivateKey(openssl: OpenSsl, context: bigint, der: Buffer, what: string): void {
  const { f, ffi } = openssl
  f.ERR_clear_error()
  openssl.out[0] = ffi.getRawPointer(der)
  const key = f.d2i_AutoPrivateKey(null, openssl.out, openssl.long(der.length))
  der.fill(0)
  if (key === 0n) throw unusable(openssl, what)
  const used = f.SSL_CTX_use_PrivateKey(context, key) === 1
  f.EVP_PKEY_free(key)
  if (!used) throw unusable(openssl, what)
}

/** Every certificate has its key, and no two are of one kind: the later would have replaced the earlier. */
function checkKeys(openssl: OpenSsl, context: bigint, count: number, what: string): void {
  const { f } = openssl
  let found = 0
  for (let step = first; openssl.control(context, setCurrentCert, step, null) === 1; step = next) {
    found++
    if (f.SSL_CTX_check_private_key(context) !== 1) throw unusable(openssl, what)
  }
  f.ERR_clear_error()
  if (found !== count) throw new UsageError(`${what} cannot be used: it has ${count} certificates of ${found} kinds of keys`)
}

function usePkcs12(openssl: OpenSsl, context: bigint, pfx: Uint8Array, passphrase: string | undefined, what: string): void {
  const { f, ffi, out } = openssl
  const bytes = Buffer.from(pfx)
  f.ERR_clear_error()
  out[0] = ffi.getRawPointer(bytes)
  const archive = f.d2i_PKCS12(null, out, openssl.long(bytes.length))
  if (archive === 0n) throw unusable(openssl, what, 'the pfx cannot be read')
  // Key, certificate, stack of issuers.
  const parts = new BigUint64Array(new ArrayBuffer(24))
  const at = ffi.getRawPointer(parts)
  const parsed = f.PKCS12_parse(archive, passphrase ?? '', at, at + 8n, at + 16n) === 1
  f.PKCS12_free(archive)
  const [key = 0n, leaf = 0n, stack = 0n] = parts
  const issuers: bigint[] = []
  if (stack !== 0n) {
    for (let i = 0; i < f.OPENSSL_sk_num(stack); i++) issuers.push(f.OPENSSL_sk_value(stack, i))
    f.OPENSSL_sk_free(stack)
  }
  if (!parsed || key === 0n || leaf === 0n) {
    if (key !== 0n) f.EVP_PKEY_free(key)
    freeCertificates(openssl, leaf === 0n ? issuers : [leaf, ...issuers])
    throw unusable(openssl, what, parsed ? 'the pfx lacks a certificate or its key' : 'the pfx cannot be opened')
  }
  try {
    useChain(openssl, context, [leaf, ...issuers], what)
    if (f.SSL_CTX_use_PrivateKey(context, key) !== 1) throw unusable(openssl, what)
  } finally {
    f.EVP_PKEY_free(key)
  }
  checkKeys(openssl, context, 1, what)
}

function unusable(openssl: OpenSsl, what: string, saying?: string): UsageError {
  const reasons = openssl.drainErrors().join(', ')
  return new UsageError(`${what} cannot be used: ${saying === undefined ? reasons : `${saying}: ${reasons}`}`)
}
