import { createCipheriv, createDecipheriv, createHmac, randomFillSync } from 'node:crypto'
import { checkSize, ivSize, tagSize } from './suites.ts'

const none = new Uint8Array(0)

// RFC 9001 §5.8: the key and nonce of the Retry integrity tag, version 1.
const retryKey = Buffer.from('be0c690b9f66575a1d766b54e368c84e', 'hex')
const retryNonce = Buffer.from('461599d35d632bf2239825bb', 'hex')

/** The Retry integrity tag (RFC 9001 §5.8): AES-128-GCM of nothing, with the pseudo-packet as associated data. */
export function retryTag(pseudoPacket: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-128-gcm', retryKey, retryNonce)
  cipher.setAAD(pseudoPacket)
  cipher.final()
  return cipher.getAuthTag()
}

/** Nonce, ciphertext and tag: AES-256-GCM under `key`. */
export function sealToken(key: Uint8Array, content: Uint8Array): Uint8Array {
  checkSize('token key', key, 32)
  const token = new Uint8Array(ivSize + content.length + tagSize)
  const nonce = token.subarray(0, ivSize)
  fillRandom(nonce)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  token.set(cipher.update(content), ivSize)
  cipher.final()
  token.set(cipher.getAuthTag(), ivSize + content.length)
  return token
}

/** What {@link sealToken} sealed under the same key; undefined for everything else. */
export function openToken(key: Uint8Array, token: Uint8Array): Uint8Array | undefined {
  checkSize('token key', key, 32)
  if (token.length < ivSize + tagSize) return undefined
  const contentLimit = token.length - tagSize
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, token.subarray(0, ivSize), { authTagLength: tagSize })
    decipher.setAuthTag(token.subarray(contentLimit))
    const content = decipher.update(token.subarray(ivSize, contentLimit))
    decipher.final()
    return new Uint8Array(content)
  } catch {
    return undefined
  }
}

/** HMAC-SHA-256 of the connection id, cut to 16 octets (RFC 9000 §10.3.2). */
export function statelessResetToken(key: Uint8Array, connectionId: Uint8Array): Uint8Array {
  return new Uint8Array(createHmac('sha256', key).update(connectionId).digest().subarray(0, 16))
}

const pool = new Uint8Array(4096)
let poolAt = pool.length

/** Fills with unpredictable octets: small requests from a pool, because a call for each costs more than the octets. */
function fillRandom(target: Uint8Array): void {
  const size = target.length
  if (size > 256) {
    randomFillSync(target)
    return
  }
  if (poolAt + size > pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  const limit = poolAt + size
  for (let at = poolAt, to = 0; at < limit; at++, to++) {
    target[to] = pool[at]!
    // Given out once, and no copy stays.
    pool[at] = 0
  }
  poolAt = limit
}

export function random(byteCount: number): Uint8Array {
  if (byteCount === 0) return none
  const bytes = new Uint8Array(byteCount)
  fillRandom(bytes)
  return bytes
}
