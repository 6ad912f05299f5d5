import type { CipherSuite } from './types.ts'

/** What a cipher suite is made of (RFC 9001 §5.3, §5.4), by OpenSSL's names. */
export interface Suite {
  readonly hash: 'sha256' | 'sha384'
  readonly hashSize: number
  /** Of the AEAD and of the header protection. */
  readonly keySize: number
  readonly aead: 'aes-128-gcm' | 'aes-256-gcm' | 'chacha20-poly1305'
  /** One block of AES-ECB (RFC 9001 §5.4.3), or ChaCha20 (§5.4.4). */
  readonly header: 'aes-128-ecb' | 'aes-256-ecb' | 'chacha20'
}

export const suites: { readonly [name in CipherSuite]: Suite } = {
  TLS_AES_128_GCM_SHA256: { hash: 'sha256', hashSize: 32, keySize: 16, aead: 'aes-128-gcm', header: 'aes-128-ecb' },
  TLS_AES_256_GCM_SHA384: { hash: 'sha384', hashSize: 48, keySize: 32, aead: 'aes-256-gcm', header: 'aes-256-ecb' },
  TLS_CHACHA20_POLY1305_SHA256: { hash: 'sha256', hashSize: 32, keySize: 32, aead: 'chacha20-poly1305', header: 'chacha20' },
}

export const ivSize = 12
export const tagSize = 16
export const sampleSize = 16
export const maskSize = 5

/** Octets of a size that the protocol fixes: another one is a mistake of the caller's, and native code would read past its end. */
export function checkSize(what: string, bytes: Uint8Array, size: number): void {
  if (bytes.length !== size) throw new RangeError(`${what}: ${size} octets wanted, not ${bytes.length}`)
}

/** The suite of that name, or a RangeError. */
export function suiteNamed(name: CipherSuite): Suite {
  const suite = Object.hasOwn(suites, name) ? suites[name] : undefined
  if (suite === undefined) throw new RangeError(`cipher suite ${String(name)} is unknown`)
  return suite
}

/**
 * Writes the nonce of a packet to `target[at, at + 12)`: the IV, with the packet number, 62 bits and big-endian,
 * XORed into its last octets (RFC 9001 §5.3).
 */
export function writeNonce(target: Uint8Array, at: number, iv: Uint8Array, packetNumber: number): void {
  const low = packetNumber >>> 0
  const high = (packetNumber - low) / 0x1_0000_0000
  target[at] = iv[0]!
  target[at + 1] = iv[1]!
  target[at + 2] = iv[2]!
  target[at + 3] = iv[3]!
  target[at + 4] = iv[4]! ^ (high >>> 24)
  target[at + 5] = iv[5]! ^ (high >>> 16)
  target[at + 6] = iv[6]! ^ (high >>> 8)
  target[at + 7] = iv[7]! ^ high
  target[at + 8] = iv[8]! ^ (low >>> 24)
  target[at + 9] = iv[9]! ^ (low >>> 16)
  target[at + 10] = iv[10]! ^ (low >>> 8)
  target[at + 11] = iv[11]! ^ low
}

/**
 * Whether `0 ≤ start ≤ middle ≤ limit ≤ length`, all whole numbers: native code is given addresses made of these, so
 * nothing else may reach it.
 */
export function isSpan(start: number, middle: number, limit: number, length: number): boolean {
  return (
    start >= 0 &&
    start <= middle &&
    middle <= limit &&
    limit <= length &&
    Number.isInteger(start) &&
    Number.isInteger(middle) &&
    Number.isInteger(limit)
  )
}

/** Sample and mask must be whole; whoever reads packets has seen to that. */
export function checkSample(buffer: Uint8Array, sampleStart: number, mask: Uint8Array): void {
  if (!isSpan(sampleStart, sampleStart, sampleStart + sampleSize, buffer.length) || mask.length < maskSize) {
    throw new RangeError('header protection: sample or mask is outside of its buffer')
  }
}
