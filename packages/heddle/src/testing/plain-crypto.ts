import type { CipherSuite, HeaderKey, PacketKey, QuicCrypto } from '../native/index.ts'

const tagSize = 16
const utf8 = new TextEncoder()

/** Mixes octets into a hash of 32 bits. */
function mix(hash: number, buffer: Uint8Array, start: number, limit: number): number {
  let value = hash
  for (let i = start; i < limit; i++) value = Math.imul(value ^ (buffer[i] as number), 0x01000193)
  return value ^ (value >>> 15)
}

/** Spreads a hash over `length` octets. */
function spread(hash: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  let state = hash
  for (let i = 0; i < length; i++) {
    state = Math.imul(state ^ (state >>> 13), 0x5bd1e995) + 0x2f
    bytes[i] = state >>> 24
  }
  return bytes
}

function hashOf(...parts: Uint8Array[]): number {
  let hash = 0x811c9dc5
  for (const part of parts) hash = mix(hash ^ part.length, part, 0, part.length)
  return hash
}

class PlainPacketKey implements PacketKey {
  readonly #seed: number
  readonly #onClose: () => void
  #isClosed: boolean

  constructor(seed: number, onClose: () => void) {
    this.#seed = seed
    this.#onClose = onClose
    this.#isClosed = false
  }

  seal(buffer: Uint8Array, headerStart: number, payloadStart: number, payloadLimit: number, packetNumber: number): void {
    if (this.#isClosed) throw new Error('a closed key seals')
    const tag = spread(mix(this.#seed ^ packetNumber, buffer, headerStart, payloadLimit), tagSize)
    this.#cover(buffer, payloadStart, payloadLimit, packetNumber)
    buffer.set(tag, payloadLimit)
  }

  open(buffer: Uint8Array, headerStart: number, payloadStart: number, limit: number, packetNumber: number): boolean {
    if (this.#isClosed) return false
    const payloadLimit = limit - tagSize
    this.#cover(buffer, payloadStart, payloadLimit, packetNumber)
    const tag = spread(mix(this.#seed ^ packetNumber, buffer, headerStart, payloadLimit), tagSize)
    return tag.every((octet, i) => octet === buffer[payloadLimit + i])
  }

  close(): void {
    if (!this.#isClosed) this.#onClose()
    this.#isClosed = true
  }

  /** Both ways. */
  #cover(buffer: Uint8Array, start: number, limit: number, packetNumber: number): void {
    const cover = (this.#seed ^ packetNumber) & 0xff
    for (let i = start; i < limit; i++) buffer[i] = (buffer[i] as number) ^ cover
  }
}

/**
 * Cryptography that keeps no secret and costs nothing: all it does is to notice what was changed, or
 * sealed with another key. It counts the keys that are open.
 */
export class PlainCrypto implements QuicCrypto {
  /** Keys that were made and not closed. */
  openKeys: number
  readonly #random: (byteCount: number) => Uint8Array

  constructor(random: (byteCount: number) => Uint8Array) {
    this.openKeys = 0
    this.#random = random
  }

  hkdfExtract(_suite: CipherSuite, salt: Uint8Array, secret: Uint8Array): Uint8Array {
    return spread(hashOf(salt, secret), 32)
  }

  expandLabel(_suite: CipherSuite, secret: Uint8Array, label: string, length: number): Uint8Array {
    return spread(hashOf(secret, utf8.encode(label)), length)
  }

  packetKey(_suite: CipherSuite, key: Uint8Array, iv: Uint8Array): PacketKey {
    this.openKeys++
    return new PlainPacketKey(hashOf(key, iv), () => this.openKeys--)
  }

  headerKey(_suite: CipherSuite, key: Uint8Array): HeaderKey {
    this.openKeys++
    const seed = hashOf(key)
    let isClosed = false
    return {
      mask: (buffer, sampleStart, mask) => mask.set(spread(mix(seed, buffer, sampleStart, sampleStart + 16), 5)),
      close: () => {
        if (!isClosed) this.openKeys--
        isClosed = true
      },
    }
  }

  retryTag(pseudoPacket: Uint8Array): Uint8Array {
    return spread(hashOf(pseudoPacket), tagSize)
  }

  sealToken(key: Uint8Array, content: Uint8Array): Uint8Array {
    const token = new Uint8Array(content.length + tagSize)
    token.set(content)
    token.set(spread(hashOf(key, content), tagSize), content.length)
    return token
  }

  openToken(key: Uint8Array, token: Uint8Array): Uint8Array | undefined {
    if (token.length < tagSize) return undefined
    const content = token.slice(0, -tagSize)
    const tag = spread(hashOf(key, content), tagSize)
    return tag.every((octet, i) => octet === token[content.length + i]) ? content : undefined
  }

  statelessResetToken(key: Uint8Array, connectionId: Uint8Array): Uint8Array {
    return spread(hashOf(key, connectionId), 16)
  }

  random(byteCount: number): Uint8Array {
    return this.#random(byteCount)
  }
}
