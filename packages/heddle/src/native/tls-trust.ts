import { createHash } from 'node:crypto'
import { getCACertificates, rootCertificates } from 'node:tls'
import type { OpenSsl } from './openssl.ts'
import { freeCertificates, readCertificates } from './tls-certificates.ts'
import { listOf, type Pem, type TlsIdentity } from './tls-options.ts'

/** Stores of public authorities, by their list: made once a thread (22 ms for Node's own), shared by all contexts, and kept. */
const publicStores = new Map<string, { readonly list: readonly string[]; readonly store: bigint }>()

/** Gives an SSL_CTX whom it trusts. `server`: it tells clients, too (RFC 8446 §4.2.4). Throws UsageError for what is no PEM. */
export function useTrust(openssl: OpenSsl, context: bigint, ca: TlsIdentity['ca'], server: boolean, what: string): void {
  const { f } = openssl
  const list = publicList(ca)
  if (list !== undefined) return f.SSL_CTX_set1_cert_store(context, publicStore(openssl, String(ca ?? 'default'), list))
  const store = f.X509_STORE_new()
  try {
    for (const pem of listOf(ca as Pem | readonly Pem[])) addAuthorities(openssl, store, pem, what, server ? context : 0n)
    f.SSL_CTX_set1_cert_store(context, store)
  } finally {
    f.X509_STORE_free(store)
  }
}

/** What Node lists for a name of {@link TlsIdentity.ca}; undefined for PEM. Node gives the same list until it is changed (`tls.setDefaultCACertificates`). */
function publicList(ca: TlsIdentity['ca']): readonly string[] | undefined {
  if (ca === undefined || ca === 'default') return getCACertificates('default')
  if (ca === 'bundled') return rootCertificates
  return ca === 'system' ? getCACertificates('system') : undefined
}

function publicStore(openssl: OpenSsl, name: string, list: readonly string[]): bigint {
  const known = publicStores.get(name)
  if (known?.list === list) return known.store
  const store = openssl.f.X509_STORE_new()
  for (const pem of list) {
    try {
      addAuthorities(openssl, store, pem, name, 0n)
    } catch {
      // One that OpenSSL cannot read is not worth all others: a system's store may hold anything.
    }
  }
  // Contexts have references of their own.
  if (known !== undefined) openssl.f.X509_STORE_free(known.store)
  publicStores.set(name, { list, store })
  return store
}

function addAuthorities(openssl: OpenSsl, store: bigint, pem: Pem, what: string, context: bigint): void {
  const { f } = openssl
  const certificates = readCertificates(openssl, pem, `${what}: ca`)
  for (const certificate of certificates) {
    f.X509_STORE_add_cert(store, certificate)
    if (context !== 0n) f.SSL_CTX_add_client_CA(context, certificate)
  }
  freeCertificates(openssl, certificates)
}

/** Tells one choice of {@link TlsIdentity.ca} from another. */
export function trustFingerprint(ca: TlsIdentity['ca']): string {
  const hash = createHash('sha256')
  for (const pem of publicList(ca) ?? listOf(ca as Pem | readonly Pem[])) hash.update(pem).update('\0')
  return hash.digest('hex')
}
