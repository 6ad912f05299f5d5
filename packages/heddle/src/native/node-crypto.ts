import { type Cipheriv, createCipheriv, createDecipheriv, createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { CipherGCMTypes } from 'node:crypto'
import { expandLabel, type Hmac, hkdfExtract } from './hkdf.ts'
import { checkSample, checkSize, isSpan, ivSize, maskSize, sampleSize, type Suite, suiteNamed, tagSize, writeNonce } from './suites.ts'
import { openToken, random, retryTag, sealToken, statelessResetToken } from './tokens.ts'
import type { CipherSuite, HeaderKey, PacketKey, QuicCrypto } from './types.ts'

const hmac: Hmac = (hash, key, content) => new Uint8Array(createHmac(hash, key).update(content).digest())
const options = { authTagLength: tagSize }
const zeros = new Uint8Array(maskSize)

/** An AEAD by `node:crypto`: a cipher object a packet, for packets need nonces of their own. */
class NodePacketKey implements PacketKey {
  // All suites are asked for like GCM; ChaCha20-Poly1305 takes the same calls.
  readonly name: CipherGCMTypes
  readonly iv: Uint8Array
  readonly nonce: Uint8Array
  key: KeyObject | undefined

  constructor(suite: Suite, key: Uint8Array, iv: Uint8Array) {
    checkSize('packet key', key, suite.keySize)
    checkSize('packet IV', iv, ivSize)
    this.name = suite.aead as CipherGCMTypes
    this.iv = iv.slice()
    this.nonce = new Uint8Array(ivSize)
    this.key = createSecretKey(key)
  }

  seal(buffer: Uint8Array, headerStart: number, payloadStart: number, payloadLimit: number, packetNumber: number): void {
    if (this.key === undefined) return
    if (!isSpan(headerStart, payloadStart, payloadLimit, buffer.length - tagSize)) throw new RangeError('seal: outside of the buffer')
    writeNonce(this.nonce, 0, this.iv, packetNumber)
    const cipher = createCipheriv(this.name, this.key, this.nonce, options)
    cipher.setAAD(buffer.subarray(headerStart, payloadStart))
    buffer.set(cipher.update(buffer.subarray(payloadStart, payloadLimit)), payloadStart)
    cipher.final()
    buffer.set(cipher.getAuthTag(), payloadLimit)
  }

  open(buffer: Uint8Array, headerStart: number, payloadStart: number, limit: number, packetNumber: number): boolean {
    const payloadLimit = limit - tagSize
    if (this.key === undefined || !isSpan(headerStart, payloadStart, payloadLimit - 1, buffer.length - tagSize - 1)) return false
    writeNonce(this.nonce, 0, this.iv, packetNumber)
    const decipher = createDecipheriv(this.name, this.key, this.nonce, options)
    decipher.setAuthTag(buffer.subarray(payloadLimit, limit))
    decipher.setAAD(buffer.subarray(headerStart, payloadStart))
    const payload = decipher.update(buffer.subarray(payloadStart, payloadLimit))
    try {
      decipher.final()
    } catch {
      return false
    }
    buffer.set(payload, payloadStart)
    return true
  }

  close(): void {
    this.key = undefined
    this.iv.fill(0)
  }
}

/** Header protection by AES (RFC 9001 §5.4.3): ECB keeps nothing from block to block, so one cipher object lasts. */
class NodeAesHeaderKey implements HeaderKey {
  cipher: Cipheriv | undefined

  constructor(suite: Suite, key: Uint8Array) {
    checkSize('header key', key, suite.keySize)
    this.cipher = createCipheriv(suite.header, key, null).setAutoPadding(false)
  }

  mask(buffer: Uint8Array, sampleStart: number, mask: Uint8Array): void {
    checkSample(buffer, sampleStart, mask)
    if (this.cipher === undefined) return
    const block = this.cipher.update(buffer.subarray(sampleStart, sampleStart + sampleSize))
    for (let i = 0; i < maskSize; i++) mask[i] = block[i]!
  }

  close(): void {
    this.cipher = undefined
  }
}

/** Header protection by ChaCha20 (RFC 9001 §5.4.4): the sample is counter and nonce, as OpenSSL takes them. */
class NodeChaChaHeaderKey implements HeaderKey {
  readonly sample: Uint8Array
  key: KeyObject | undefined

  constructor(suite: Suite, key: Uint8Array) {
    checkSize('header key', key, suite.keySize)
    this.sample = new Uint8Array(sampleSize)
    this.key = createSecretKey(key)
  }

  mask(buffer: Uint8Array, sampleStart: number, mask: Uint8Array): void {
    checkSample(buffer, sampleStart, mask)
    if (this.key === undefined) return
    this.sample.set(buffer.subarray(sampleStart, sampleStart + sampleSize))
    const stream = createCipheriv('chacha20', this.key, this.sample).update(zeros)
    for (let i = 0; i < maskSize; i++) mask[i] = stream[i]!
  }

  close(): void {
    this.key = undefined
  }
}

class NodeCrypto implements QuicCrypto {
  hkdfExtract(suite: CipherSuite, salt: Uint8Array, secret: Uint8Array): Uint8Array {
    return hkdfExtract(hmac, suite, salt, secret)
  }

  expandLabel(suite: CipherSuite, secret: Uint8Array, label: string, length: number): Uint8Array {
    return expandLabel(hmac, suite, secret, label, length)
  }

  packetKey(suite: CipherSuite, key: Uint8Array, iv: Uint8Array): PacketKey {
    return new NodePacketKey(suiteNamed(suite), key, iv)
  }

  headerKey(suite: CipherSuite, key: Uint8Array): HeaderKey {
    const known = suiteNamed(suite)
    return known.header === 'chacha20' ? new NodeChaChaHeaderKey(known, key) : new NodeAesHeaderKey(known, key)
  }

  retryTag(pseudoPacket: Uint8Array): Uint8Array {
    return retryTag(pseudoPacket)
  }

  sealToken(key: Uint8Array, content: Uint8Array): Uint8Array {
    return sealToken(key, content)
  }

  openToken(key: Uint8Array, token: Uint8Array): Uint8Array | undefined {
    return openToken(key, token)
  }

  statelessResetToken(key: Uint8Array, connectionId: Uint8Array): Uint8Array {
    return statelessResetToken(key, connectionId)
  }

  random(byteCount: number): Uint8Array {
    return random(byteCount)
  }
}

const shared: QuicCrypto = new NodeCrypto()

/** The cryptography of QUIC by `node:crypto`: always there, and 3 to 4 times as costly a packet as OpenSSL called directly. */
export function nodeCrypto(): QuicCrypto {
  return shared
}
