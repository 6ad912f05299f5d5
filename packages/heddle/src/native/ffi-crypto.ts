import { type Evp, bindEvp } from './evp.ts'
import type { NativeLibrary } from './ffi.ts'
import { expandLabel, type Hmac, hkdfExtract } from './hkdf.ts'
import { LastAddress, Memory } from './memory.ts'
import { nodeCrypto } from './node-crypto.ts'
import {
  checkSample,
  checkSize,
  isSpan,
  ivSize,
  maskSize,
  sampleSize,
  type Suite,
  suiteNamed,
  suites,
  tagSize,
  writeNonce,
} from './suites.ts'
import { openToken, random, retryTag, sealToken, statelessResetToken } from './tokens.ts'
import type { CipherSuite, HeaderKey, PacketKey, QuicCrypto } from './types.ts'

/** HMAC's key and content are copied here: labels, secrets and connection ids, all short. */
const hmacRoom = 1024

/**
 * What the keys of a thread share: OpenSSL's functions, its ciphers, and the memory that arguments and results of a
 * call lie in. A call is over before the next one starts, so one piece of each kind is enough.
 */
class Workbench {
  readonly evp: Evp
  readonly ciphers: ReadonlyMap<string, bigint>
  readonly memory: Memory
  /** Where `int` results go that nobody reads. */
  readonly size: bigint
  readonly nonce: number
  readonly nonceAt: bigint
  readonly key: number
  readonly keyAt: bigint
  readonly sample: number
  readonly sampleAt: bigint
  readonly mask: number
  readonly maskAt: bigint
  readonly zeros: bigint
  readonly hmacKeyAt: bigint
  readonly hmacKey: number
  readonly hmacContentAt: bigint
  readonly hmacContent: number
  readonly hmacOut: number
  readonly hmacOutAt: bigint
  /** An OSSL_PARAM array of one: the tag, whose address is written at `tagAddress` before each use. */
  readonly tagParams: bigint
  readonly tagAddress: number
  readonly sealed: LastAddress
  readonly opened: LastAddress

  constructor(native: NativeLibrary, evp: Evp, ciphers: ReadonlyMap<string, bigint>) {
    const memory = new Memory(native.ffi, 4096)
    this.evp = evp
    this.ciphers = ciphers
    this.memory = memory
    this.size = memory.pointerTo(memory.take(16))
    this.nonce = memory.take(ivSize)
    this.nonceAt = memory.pointerTo(this.nonce)
    this.key = memory.take(32)
    this.keyAt = memory.pointerTo(this.key)
    this.sample = memory.take(sampleSize)
    this.sampleAt = memory.pointerTo(this.sample)
    this.mask = memory.take(32)
    this.maskAt = memory.pointerTo(this.mask)
    this.zeros = memory.pointerTo(memory.take(16))
    this.hmacKey = memory.take(hmacRoom)
    this.hmacKeyAt = memory.pointerTo(this.hmacKey)
    this.hmacContent = memory.take(hmacRoom)
    this.hmacContentAt = memory.pointerTo(this.hmacContent)
    this.hmacOut = memory.take(64)
    this.hmacOutAt = memory.pointerTo(this.hmacOut)

    // OSSL_PARAM { const char *key; unsigned type; void *data; size_t data_size; size_t return_size }, 40 octets,
    // and an END of zeros: { "tag", OSSL_PARAM_OCTET_STRING = 5, …, 16, 0 }.
    const name = memory.take(16)
    memory.bytes.set(Buffer.from('tag\0', 'latin1'), name)
    const params = memory.take(80)
    memory.writeAddress(params, memory.base + name)
    memory.words[(params + 8) >> 2] = 5
    memory.words[(params + 24) >> 2] = tagSize
    this.tagParams = memory.pointerTo(params)
    this.tagAddress = params + 16
    this.sealed = new LastAddress(native.ffi)
    this.opened = new LastAddress(native.ffi)
  }

  /** A new cipher context with the key set; the copy of the key is wiped. */
  context(cipherName: string, key: Uint8Array, encrypts: boolean): bigint {
    const { evp, memory } = this
    const cipher = this.ciphers.get(cipherName)!
    const context = evp.EVP_CIPHER_CTX_new()
    if (context === 0n) throw new Error('OpenSSL has no memory for a cipher context')
    memory.bytes.set(key, this.key)
    const init = encrypts ? evp.EVP_EncryptInit_ex2 : evp.EVP_DecryptInit_ex2
    const done = init(context, cipher, this.keyAt, 0n, 0n)
    memory.bytes.fill(0, this.key, this.key + key.length)
    if (done !== 1) {
      evp.EVP_CIPHER_CTX_free(context)
      evp.ERR_clear_error()
      throw new Error(`OpenSSL refuses a key of ${cipherName}`)
    }
    return context
  }
}

/** The AEAD of one direction: one OpenSSL context, made for the direction of its first use. */
class FfiPacketKey implements PacketKey {
  readonly bench: Workbench
  readonly aead: string
  readonly key: Uint8Array
  readonly iv: Uint8Array
  sealing: bigint
  opening: bigint
  closed: boolean

  constructor(bench: Workbench, suite: Suite, key: Uint8Array, iv: Uint8Array) {
    checkSize('packet key', key, suite.keySize)
    checkSize('packet IV', iv, ivSize)
    this.bench = bench
    this.aead = suite.aead
    this.key = key.slice()
    this.iv = iv.slice()
    this.sealing = 0n
    this.opening = 0n
    this.closed = false
  }

  seal(buffer: Uint8Array, headerStart: number, payloadStart: number, payloadLimit: number, packetNumber: number): void {
    if (this.closed) return
    if (!isSpan(headerStart, payloadStart, payloadLimit, buffer.length - tagSize)) throw new RangeError('seal: outside of the buffer')
    const { bench } = this
    const { evp, memory } = bench
    if (this.sealing === 0n) this.sealing = bench.context(this.aead, this.key, true)
    const context = this.sealing
    const base = bench.sealed.of(buffer)
    const payload = BigInt(base + payloadStart)
    writeNonce(memory.bytes, bench.nonce, this.iv, packetNumber)
    memory.writeAddress(bench.tagAddress, base + payloadLimit)
    if (
      evp.EVP_EncryptInit_ex2(context, 0n, 0n, bench.nonceAt, 0n) !== 1 ||
      evp.EVP_EncryptUpdate(context, 0n, bench.size, BigInt(base + headerStart), payloadStart - headerStart) !== 1 ||
      evp.EVP_EncryptUpdate(context, payload, bench.size, payload, payloadLimit - payloadStart) !== 1 ||
      evp.EVP_EncryptFinal_ex(context, bench.maskAt, bench.size) !== 1 ||
      evp.EVP_CIPHER_CTX_get_params(context, bench.tagParams) !== 1
    ) {
      evp.ERR_clear_error()
      throw new Error('OpenSSL does not seal')
    }
  }

  open(buffer: Uint8Array, headerStart: number, payloadStart: number, limit: number, packetNumber: number): boolean {
    // Without a ciphertext there is nothing to open, and OpenSSL before 3.5.8 had a way to take it for good (CVE-2026-75803).
    const payloadLimit = limit - tagSize
    if (this.closed || !isSpan(headerStart, payloadStart, payloadLimit - 1, buffer.length - tagSize - 1)) return false
    const { bench } = this
    const { evp, memory } = bench
    if (this.opening === 0n) this.opening = bench.context(this.aead, this.key, false)
    const context = this.opening
    const base = bench.opened.of(buffer)
    const payload = BigInt(base + payloadStart)
    writeNonce(memory.bytes, bench.nonce, this.iv, packetNumber)
    memory.writeAddress(bench.tagAddress, base + payloadLimit)
    if (
      evp.EVP_DecryptInit_ex2(context, 0n, 0n, bench.nonceAt, bench.tagParams) === 1 &&
      evp.EVP_DecryptUpdate(context, 0n, bench.size, BigInt(base + headerStart), payloadStart - headerStart) === 1 &&
      evp.EVP_DecryptUpdate(context, payload, bench.size, payload, payloadLimit - payloadStart) === 1 &&
      evp.EVP_DecryptFinal_ex(context, bench.maskAt, bench.size) === 1
    ) {
      return true
    }
    // The queue of errors belongs to the thread: what stays in it would be taken for an error of some TLS connection.
    evp.ERR_clear_error()
    return false
  }

  close(): void {
    if (this.closed) return
    this.closed = true
    this.key.fill(0)
    this.iv.fill(0)
    const { sealing, opening } = this
    this.sealing = 0n
    this.opening = 0n
    if (sealing !== 0n) this.bench.evp.EVP_CIPHER_CTX_free(sealing)
    if (opening !== 0n) this.bench.evp.EVP_CIPHER_CTX_free(opening)
  }
}

/** Header protection: one context, with the sample copied to where OpenSSL reads it. */
class FfiHeaderKey implements HeaderKey {
  readonly bench: Workbench
  readonly isChaCha: boolean
  context: bigint

  constructor(bench: Workbench, suite: Suite, key: Uint8Array) {
    checkSize('header key', key, suite.keySize)
    this.bench = bench
    this.isChaCha = suite.header === 'chacha20'
    this.context = bench.context(suite.header, key, true)
    if (!this.isChaCha) bench.evp.EVP_CIPHER_CTX_set_padding(this.context, 0)
  }

  mask(buffer: Uint8Array, sampleStart: number, mask: Uint8Array): void {
    checkSample(buffer, sampleStart, mask)
    const { bench, context } = this
    if (context === 0n) return
    const { evp } = bench
    const { bytes } = bench.memory
    for (let i = 0, to = bench.sample; i < sampleSize; i++) bytes[to + i] = buffer[sampleStart + i]!
    const done = this.isChaCha
      ? // RFC 9001 §5.4.4: counter (little-endian) and nonce are the sample, in the order in which OpenSSL's IV has them.
        evp.EVP_EncryptInit_ex2(context, 0n, 0n, bench.sampleAt, 0n) === 1 &&
        evp.EVP_EncryptUpdate(context, bench.maskAt, bench.size, bench.zeros, maskSize)
      : evp.EVP_EncryptUpdate(context, bench.maskAt, bench.size, bench.sampleAt, sampleSize) === 1
    if (!done) {
      evp.ERR_clear_error()
      throw new Error('OpenSSL makes no header protection mask')
    }
    for (let i = 0, from = bench.mask; i < maskSize; i++) mask[i] = bytes[from + i]!
  }

  close(): void {
    const { context } = this
    if (context === 0n) return
    this.context = 0n
    this.bench.evp.EVP_CIPHER_CTX_free(context)
  }
}

class FfiCrypto implements QuicCrypto {
  readonly #bench: Workbench
  readonly #hmac: Hmac

  constructor(bench: Workbench) {
    this.#bench = bench
    const { evp, memory } = bench
    const hashes = { sha256: evp.EVP_sha256(), sha384: evp.EVP_sha384() }
    const sizes = { sha256: 32, sha384: 48 }
    this.#hmac = (hash, key, content) => {
      if (key.length > hmacRoom || content.length > hmacRoom) throw new RangeError('HMAC: key or content is too long')
      const { bytes } = memory
      bytes.set(key, bench.hmacKey)
      bytes.set(content, bench.hmacContent)
      const out = evp.HMAC(
        hashes[hash],
        bench.hmacKeyAt,
        key.length,
        bench.hmacContentAt,
        BigInt(content.length),
        bench.hmacOutAt,
        bench.size,
      )
      const result = bytes.slice(bench.hmacOut, bench.hmacOut + sizes[hash])
      bytes.fill(0, bench.hmacKey, bench.hmacKey + key.length)
      bytes.fill(0, bench.hmacContent, bench.hmacContent + content.length)
      bytes.fill(0, bench.hmacOut, bench.hmacOut + 64)
      if (out === 0n) {
        evp.ERR_clear_error()
        throw new Error('OpenSSL makes no HMAC')
      }
      return result
    }
  }

  hkdfExtract(suite: CipherSuite, salt: Uint8Array, secret: Uint8Array): Uint8Array {
    return hkdfExtract(this.#hmac, suite, salt, secret)
  }

  expandLabel(suite: CipherSuite, secret: Uint8Array, label: string, length: number): Uint8Array {
    return expandLabel(this.#hmac, suite, secret, label, length)
  }

  packetKey(suite: CipherSuite, key: Uint8Array, iv: Uint8Array): PacketKey {
    return new FfiPacketKey(this.#bench, suiteNamed(suite), key, iv)
  }

  headerKey(suite: CipherSuite, key: Uint8Array): HeaderKey {
    return new FfiHeaderKey(this.#bench, suiteNamed(suite), key)
  }

  // Once a connection at most, and not worth contexts that stay.
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

/** The fastest cryptography of QUIC that is to be had. */
export function openCrypto(native: NativeLibrary | undefined): QuicCrypto {
  if (native === undefined) return nodeCrypto()
  try {
    return ffiCrypto(native)
  } catch {
    // A build of OpenSSL without one of the ciphers: node:crypto then says so for that suite alone.
    return nodeCrypto()
  }
}

/** The cryptography of QUIC by OpenSSL, called directly. Throws if this OpenSSL lacks a function or a cipher. */
export function ffiCrypto(native: NativeLibrary): QuicCrypto {
  const evp = bindEvp(native, process.versions.node)
  const ciphers = new Map<string, bigint>()
  // Fetched once a thread and never let go of: they live in OpenSSL's own table anyway.
  for (const { aead, header } of Object.values(suites)) {
    for (const name of [aead, header]) {
      if (ciphers.has(name)) continue
      const cipher = evp.EVP_CIPHER_fetch(0n, name, 0n)
      if (cipher === 0n) {
        evp.ERR_clear_error()
        throw new Error(`OpenSSL has no ${name}`)
      }
      ciphers.set(name, cipher)
    }
  }
  return new FfiCrypto(new Workbench(native, evp, ciphers))
}
