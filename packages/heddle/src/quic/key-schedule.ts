/** From secrets to keys (RFC 9001 §5.1, §5.2, §6.1). */
import type { CipherSuite, HeaderKey, PacketKey, QuicCrypto } from '../native/index.ts'

/** Sizes and limits of a cipher suite. */
export interface SuiteFacts {
  readonly keySize: number
  /** Of the hash, and so of every secret. */
  readonly secretSize: number
  /** Packets that one key may seal (RFC 9001 §6.6). */
  readonly confidentialityLimit: number
  /** Packets that may fail to open, in a connection's life (RFC 9001 §6.6). */
  readonly integrityLimit: number
}

/** For packets of any size, up to 2^16 octets (RFC 9001 §B.1, §B.2). */
export const suiteFacts: Readonly<Record<CipherSuite, SuiteFacts>> = {
  TLS_AES_128_GCM_SHA256: { keySize: 16, secretSize: 32, confidentialityLimit: 2 ** 23, integrityLimit: 2 ** 52 },
  TLS_AES_256_GCM_SHA384: { keySize: 32, secretSize: 48, confidentialityLimit: 2 ** 23, integrityLimit: 2 ** 52 },
  // More packets than a connection can have.
  TLS_CHACHA20_POLY1305_SHA256: { keySize: 32, secretSize: 32, confidentialityLimit: Infinity, integrityLimit: 2 ** 36 },
}

/** RFC 9001 §5.2: of version 1. */
const initialSalt = Uint8Array.of(
  0x38,
  0x76,
  0x2c,
  0xf7,
  0xf5,
  0x59,
  0x34,
  0xb3,
  0x4d,
  0x17,
  0x9a,
  0xe6,
  0xa4,
  0xc8,
  0x0c,
  0xad,
  0xcc,
  0xbb,
  0x7f,
  0x0a,
)
/** RFC 9001 §5.2: Initial packets are protected with this suite, whatever TLS agrees on. */
export const initialSuite = 'TLS_AES_128_GCM_SHA256'

/** The secrets of Initial packets, which anybody can make of the Destination Connection ID of the client's first one. */
export function initialSecrets(
  cryptography: QuicCrypto,
  destinationId: Uint8Array,
): { readonly client: Uint8Array; readonly server: Uint8Array } {
  const suite = suiteFacts[initialSuite]
  const secret = cryptography.hkdfExtract(initialSuite, initialSalt, destinationId)
  return {
    client: cryptography.expandLabel(initialSuite, secret, 'client in', suite.secretSize),
    server: cryptography.expandLabel(initialSuite, secret, 'server in', suite.secretSize),
  }
}

/** The AEAD of a secret. */
export function packetKeyOf(cryptography: QuicCrypto, suite: CipherSuite, secret: Uint8Array): PacketKey {
  const key = cryptography.expandLabel(suite, secret, 'quic key', suiteFacts[suite].keySize)
  return cryptography.packetKey(suite, key, cryptography.expandLabel(suite, secret, 'quic iv', 12))
}

/** The header protection of a secret. */
export function headerKeyOf(cryptography: QuicCrypto, suite: CipherSuite, secret: Uint8Array): HeaderKey {
  return cryptography.headerKey(suite, cryptography.expandLabel(suite, secret, 'quic hp', suiteFacts[suite].keySize))
}

/** The secret of the next key phase; its header protection stays that of the first one. */
export function nextSecret(cryptography: QuicCrypto, suite: CipherSuite, secret: Uint8Array): Uint8Array {
  return cryptography.expandLabel(suite, secret, 'quic ku', suiteFacts[suite].secretSize)
}
