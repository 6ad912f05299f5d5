import { suiteNamed } from './suites.ts'
import type { CipherSuite } from './types.ts'

/** HMAC with a hash: what HKDF is made of. The result is the caller's. */
export type Hmac = (hash: 'sha256' | 'sha384', key: Uint8Array, content: Uint8Array) => Uint8Array

/** HKDF-Extract (RFC 5869 §2.2). */
export function hkdfExtract(hmac: Hmac, name: CipherSuite, salt: Uint8Array, secret: Uint8Array): Uint8Array {
  return hmac(suiteNamed(name).hash, salt, secret)
}

/** HKDF-Expand-Label (RFC 8446 §7.1) with an empty context. */
export function expandLabel(hmac: Hmac, name: CipherSuite, secret: Uint8Array, label: string, length: number): Uint8Array {
  const { hash, hashSize } = suiteNamed(name)
  if (!Number.isInteger(length) || length < 1 || length > 255 * hashSize) throw new RangeError(`HKDF: ${length} octets cannot be had`)
  const full = Buffer.from(`tls13 ${label}`, 'latin1')
  if (full.length > 255) throw new RangeError('HKDF: the label is too long')
  // struct HkdfLabel, and behind it HKDF-Expand's counter.
  const content = new Uint8Array(2 + 1 + full.length + 1 + 1)
  content[0] = length >> 8
  content[1] = length
  content[2] = full.length
  content.set(full, 3)
  const last = content.length - 1
  content[last] = 1
  let block = hmac(hash, secret, content)
  if (length === hashSize) return block
  if (length < hashSize) return block.slice(0, length)
  // RFC 5869 §2.3: T(n) = HMAC(PRK, T(n − 1) | info | n)
  const result = new Uint8Array(length)
  result.set(block)
  const chained = new Uint8Array(hashSize + content.length)
  for (let at = hashSize, count = 2; at < length; at += hashSize, count++) {
    chained.set(block)
    chained.set(content, hashSize)
    chained[chained.length - 1] = count
    block = hmac(hash, secret, chained)
    result.set(at + hashSize <= length ? block : block.subarray(0, length - at), at)
  }
  return result
}
