import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { nativeLibrary } from './ffi.ts'
import { ffiCrypto, openCrypto } from './ffi-crypto.ts'
import { nodeCrypto } from './node-crypto.ts'
import { ivSize, suites, tagSize, writeNonce } from './suites.ts'
import type { CipherSuite, QuicCrypto } from './types.ts'

const native = nativeLibrary()
const unavailable = 'unavailable' in native ? native.unavailable : undefined
const aes128 = 'TLS_AES_128_GCM_SHA256'
const aes256 = 'TLS_AES_256_GCM_SHA384'
const chaCha = 'TLS_CHACHA20_POLY1305_SHA256'
const suiteNames = Object.keys(suites) as CipherSuite[]

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text.replaceAll(/\s/g, ''), 'hex'))
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** RFC 9001 A.2: the header and CRYPTO frame of the client's Initial, padded to 1162 octets. */
const clientHello = `060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868
  04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578
  616d706c652e636f6dff01000100000a00080006001d0017001800100007000504616c706e
  000500050100000000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748
  002b0003020304000d0010000e0403050306030203080408050806002d00020101001c00024001
  003900320408ffffffffffffffff05048000ffff07048000ffff0801100104800075300901100f088394c8f03e51570806048000ffff`

/** `octets of random length`, from a fixed pattern. */
function pattern(size: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(size)
  for (let i = 0, x = seed; i < size; i++) bytes[i] = x = (x * 73 + 41) & 0xff
  return bytes
}

test('on Linux x64 with a Node that has node:ffi, OpenSSL is called directly', () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const must = process.platform === 'linux' && process.arch === 'x64' && (major > 26 || (major === 26 && minor >= 9))
  if (must) assert.equal(unavailable, undefined)
  assert.equal(openCrypto(undefined), nodeCrypto())
  if (!('unavailable' in native)) assert.notEqual(openCrypto(native), nodeCrypto())
})

for (const [name, open, skip] of [
  ['node:crypto', nodeCrypto, undefined],
  ['OpenSSL by node:ffi', () => ffiCrypto(native as Exclude<typeof native, { unavailable: string }>), unavailable],
] as const) {
  describe(name, { skip: skip ?? false }, () => suite(skip === undefined ? open() : nodeCrypto()))
}

function suite(crypto: QuicCrypto): void {
  test('RFC 9001 A.1: the keys of Initial packets', () => {
    const initial = crypto.hkdfExtract(aes128, hex('38762cf7f55934b34d179ae6a4c80cadccbb7f0a'), hex('8394c8f03e515708'))
    assert.equal(text(initial), '7db5df06e7a69e432496adedb00851923595221596ae2ae9fb8115c1e9ed0a44')
    const client = crypto.expandLabel(aes128, initial, 'client in', 32)
    assert.equal(text(client), 'c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea')
    assert.equal(text(crypto.expandLabel(aes128, client, 'quic key', 16)), '1f369613dd76d5467730efcbe3b1a22d')
    assert.equal(text(crypto.expandLabel(aes128, client, 'quic iv', 12)), 'fa044b2f42a3fd3b46fb255c')
    assert.equal(text(crypto.expandLabel(aes128, client, 'quic hp', 16)), '9f50449e04a0e810283a1e9933adedd2')
    const server = crypto.expandLabel(aes128, initial, 'server in', 32)
    assert.equal(text(server), '3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b')
    assert.equal(text(crypto.expandLabel(aes128, server, 'quic key', 16)), 'cf3a5331653c364c88f0f379b6067e37')
    assert.equal(text(crypto.expandLabel(aes128, server, 'quic iv', 12)), '0ac1493ca1905853b0bba03e')
    assert.equal(text(crypto.expandLabel(aes128, server, 'quic hp', 16)), 'c206b8d9b9f0f37644430b490eeaa314')
  })

  test("RFC 9001 A.2: the client's Initial is sealed, sampled and masked", () => {
    const header = hex('c300000001088394c8f03e5157080000449e00000002')
    const buffer = new Uint8Array(1200)
    buffer.set(header)
    buffer.set(hex(clientHello), header.length)
    const key = crypto.packetKey(aes128, hex('1f369613dd76d5467730efcbe3b1a22d'), hex('fa044b2f42a3fd3b46fb255c'))
    key.seal(buffer, 0, 22, 1184, 2)
    assert.equal(text(buffer.subarray(22, 38)), 'd1b1c98dd7689fb8ec11d242b123dc9b')
    assert.equal(text(buffer.subarray(1184)), 'e221af44860018ab0856972e194cd934')
    const header5 = new Uint8Array(5)
    const headerKey = crypto.headerKey(aes128, hex('9f50449e04a0e810283a1e9933adedd2'))
    headerKey.mask(buffer, 22, header5)
    assert.equal(text(header5), '437b9aec36')
    assert.equal(key.open(buffer, 0, 22, 1200, 2), true)
    assert.equal(text(buffer.subarray(22, 22 + 245)), text(hex(clientHello)))
    key.close()
    headerKey.close()
  })

  test("RFC 9001 A.3: the server's Initial opens", () => {
    const packet = hex(`c1000000010008f067a5502a4262b50040750001
      5a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73
      cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee`)
    const key = crypto.packetKey(aes128, hex('cf3a5331653c364c88f0f379b6067e37'), hex('0ac1493ca1905853b0bba03e'))
    assert.equal(key.open(packet, 0, 20, packet.length, 1), true)
    assert.equal(text(packet.subarray(20, 25)), '0200000000')
    key.close()
  })

  test('RFC 9001 A.4: the integrity tag of a Retry', () => {
    const pseudoPacket = hex('088394c8f03e515708 ff000000010008f067a5502a4262b5746f6b656e')
    assert.equal(text(crypto.retryTag(pseudoPacket)), '04a265ba2eff4d829058fb3f0f2496ba')
  })

  test('RFC 9001 A.5: a short packet with ChaCha20-Poly1305', () => {
    const secret = hex('9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b')
    const packetKey = crypto.expandLabel(chaCha, secret, 'quic key', 32)
    assert.equal(text(packetKey), 'c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8')
    const iv = crypto.expandLabel(chaCha, secret, 'quic iv', 12)
    assert.equal(text(iv), 'e0459b3474bdd0e44a41c144')
    const header = crypto.expandLabel(chaCha, secret, 'quic hp', 32)
    assert.equal(text(header), '25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4')
    assert.equal(
      text(crypto.expandLabel(chaCha, secret, 'quic ku', 32)),
      '1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9',
    )
    const buffer = new Uint8Array(21)
    buffer.set(hex('4200bff401'))
    const key = crypto.packetKey(chaCha, packetKey, iv)
    key.seal(buffer, 0, 4, 5, 654_360_564)
    assert.equal(text(buffer.subarray(4)), '655e5cd55c41f69080575d7999c25a5bfb')
    const mask = new Uint8Array(5)
    const headerKey = crypto.headerKey(chaCha, header)
    headerKey.mask(buffer, 5, mask)
    assert.equal(text(mask), 'aefefe7d03')
    key.close()
    headerKey.close()
  })

  test('RFC 8439 §2.8.2: ChaCha20-Poly1305', () => {
    const aad = hex('50515253c0c1c2c3c4c5c6c7')
    const plaintext = Buffer.from(
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
      'latin1',
    )
    const buffer = new Uint8Array(aad.length + plaintext.length + tagSize)
    buffer.set(aad)
    buffer.set(plaintext, aad.length)
    const key = crypto.packetKey(
      chaCha,
      hex('808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f'),
      hex('070000004041424344454647'),
    )
    key.seal(buffer, 0, aad.length, aad.length + plaintext.length, 0)
    assert.equal(text(buffer.subarray(12, 28)), 'd31a8d34648e60db7b86afbc53ef7ec2')
    assert.equal(text(buffer.subarray(-16)), '1ae10b594f09e26a7e902ecbd0600691')
    key.close()
  })

  test("the GCM specification's test cases 4 (AES-128) and 16 (AES-256)", () => {
    const aad = hex('feedfacedeadbeeffeedfacedeadbeefabaddad2')
    const plaintext = hex(`d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
      1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39`)
    const iv = hex('cafebabefacedbaddecaf888')
    for (const [name, keyText, first, tag] of [
      [aes128, 'feffe9928665731c6d6a8f9467308308', '42831ec2217774244b7221b784d0d49c', '5bc94fbc3221a5db94fae95ae7121a47'],
      [
        aes256,
        'feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308',
        '522dc1f099567d07f47f37a32a84427d',
        '76fc6ece0f4e1768cddf8853bb2d551b',
      ],
    ] as const) {
      const buffer = new Uint8Array(20 + 60 + 16)
      buffer.set(aad)
      buffer.set(plaintext, 20)
      const key = crypto.packetKey(name, hex(keyText), iv)
      key.seal(buffer, 0, 20, 80, 0)
      assert.equal(text(buffer.subarray(20, 36)), first)
      assert.equal(text(buffer.subarray(80)), tag)
      key.close()
    }
  })

  test('the packet number is part of the nonce, all its 62 bits', () => {
    const nonce = new Uint8Array(ivSize)
    writeNonce(nonce, 0, hex('000000000000000000000000'), 2 ** 52 + 0x1234_5678)
    assert.equal(text(nonce), '000000000010000012345678')
    writeNonce(nonce, 0, hex('ffffffffffffffffffffffff'), 0xffff_ffff)
    assert.equal(text(nonce), 'ffffffffffffffff00000000')
    const key = crypto.packetKey(aes128, pattern(16, 1), pattern(12, 2))
    for (const wrong of [0, 2 ** 32 + 7, 2 ** 52 + 7]) {
      const buffer = new Uint8Array(100)
      key.seal(buffer, 0, 4, 84, 7)
      assert.equal(key.open(buffer, 0, 4, 100, wrong), false)
    }
    key.close()
  })

  for (const name of suiteNames) {
    test(`${name}: every octet that changes, and every truncation, is refused`, () => {
      const key = crypto.packetKey(name, pattern(suites[name].keySize, 3), pattern(12, 4))
      const sealed = pattern(64, 5)
      key.seal(sealed, 8, 20, 48, 99)
      for (let at = 8; at < 64; at++) {
        const copy = sealed.slice()
        copy[at]! ^= 1 << (at & 7)
        assert.equal(key.open(copy, 8, 20, 64, 99), false, `octet ${at}`)
      }
      for (let limit = -1; limit < 64; limit++) assert.equal(key.open(sealed.slice(), 8, 20, limit, 99), false, `limit ${limit}`)
      assert.equal(key.open(sealed.slice(), 9, 20, 64, 99), false)
      const copy = sealed.slice()
      assert.equal(key.open(copy, 8, 20, 64, 99), true)
      assert.deepEqual(copy.subarray(0, 48), pattern(64, 5).subarray(0, 48))
      key.close()
    })

    test(`${name}: a tag alone is refused, even a right one`, () => {
      const key = crypto.packetKey(name, pattern(suites[name].keySize, 6), pattern(12, 7))
      const buffer = new Uint8Array(40)
      key.seal(buffer, 0, 24, 24, 1)
      assert.notEqual(text(buffer.subarray(24)), '00'.repeat(16))
      assert.equal(key.open(buffer, 0, 24, 40, 1), false)
      key.close()
    })

    test(`${name}: what lies outside of the buffer is never touched`, () => {
      const key = crypto.packetKey(name, pattern(suites[name].keySize, 8), pattern(12, 9))
      const whole = pattern(200, 10)
      const buffer = whole.subarray(50, 150)
      for (const [header, payload, limit] of [
        [0, 10, 85],
        [-1, 10, 50],
        [11, 10, 50],
        [0, 50, 10],
        [0, 0.5, 50],
        [NaN, 10, 50],
        [0, 10, NaN],
        [0, 10, Infinity],
        [0, 10, 2 ** 40],
      ] as const) {
        assert.throws(() => key.seal(buffer, header, payload, limit, 0), RangeError)
        assert.equal(key.open(buffer, header, payload, limit + tagSize, 0), false)
      }
      assert.deepEqual(whole, pattern(200, 10))
      key.seal(buffer, 0, 10, 84, 0)
      assert.deepEqual(whole.subarray(0, 60), pattern(200, 10).subarray(0, 60))
      assert.deepEqual(whole.subarray(150), pattern(200, 10).subarray(150))
      assert.equal(key.open(buffer, 0, 10, 100, 0), true)
      key.close()
    })

    test(`${name}: a closed key seals and opens nothing, and closes again`, () => {
      const key = crypto.packetKey(name, pattern(suites[name].keySize, 1), pattern(12, 1))
      const sealed = pattern(100, 1)
      key.seal(sealed, 0, 10, 84, 5)
      key.close()
      key.close()
      const again = pattern(100, 1)
      key.seal(again, 0, 10, 84, 5)
      assert.deepEqual(again, pattern(100, 1))
      assert.equal(key.open(sealed, 0, 10, 100, 5), false)
      crypto.packetKey(name, pattern(suites[name].keySize, 1), pattern(12, 1)).close()
      const header = crypto.headerKey(name, pattern(suites[name].keySize, 1))
      header.close()
      header.close()
      const mask = new Uint8Array(5)
      header.mask(sealed, 0, mask)
      assert.deepEqual(mask, new Uint8Array(5))
    })
  }

  test('keys of the wrong size and unknown suites are refused', () => {
    assert.throws(() => crypto.packetKey(aes128, new Uint8Array(15), new Uint8Array(12)), RangeError)
    assert.throws(() => crypto.packetKey(aes256, new Uint8Array(16), new Uint8Array(12)), RangeError)
    assert.throws(() => crypto.packetKey(chaCha, new Uint8Array(32), new Uint8Array(11)), RangeError)
    assert.throws(() => crypto.headerKey(aes256, new Uint8Array(16)), RangeError)
    assert.throws(() => crypto.headerKey('toString' as CipherSuite, new Uint8Array(16)), RangeError)
    assert.throws(() => crypto.expandLabel(aes128, new Uint8Array(32), 'x', 0), RangeError)
    assert.throws(() => crypto.expandLabel(aes128, new Uint8Array(32), 'x', 255 * 32 + 1), RangeError)
    const header = crypto.headerKey(aes128, new Uint8Array(16))
    assert.throws(() => header.mask(new Uint8Array(20), 5, new Uint8Array(5)), RangeError)
    assert.throws(() => header.mask(new Uint8Array(20), -1, new Uint8Array(5)), RangeError)
    assert.throws(() => header.mask(new Uint8Array(20), 0, new Uint8Array(4)), RangeError)
    header.close()
  })

  test('keys and buffers of any kind: small arrays, detached and resized blocks', () => {
    const key = crypto.packetKey(aes128, pattern(16, 3), pattern(12, 4))
    const small = new Uint8Array(24)
    key.seal(small, 0, 1, 8, 1)
    assert.equal(key.open(small, 0, 1, 24, 1), true)
    const detached = new Uint8Array(64)
    key.seal(detached, 0, 4, 48, 1)
    structuredClone(detached.buffer, { transfer: [detached.buffer] })
    assert.equal(key.open(detached, 0, 4, 64, 1), false)
    assert.throws(() => key.seal(detached, 0, 4, 48, 1), RangeError)
    const block = new ArrayBuffer(64, { maxByteLength: 128 })
    const resized = new Uint8Array(block)
    key.seal(resized, 0, 4, 48, 1)
    block.resize(40)
    assert.equal(key.open(resized, 0, 4, 64, 1), false)
    block.resize(128)
    key.seal(resized, 0, 4, 112, 1)
    assert.equal(key.open(resized, 0, 4, 128, 1), true)
    key.close()
  })

  test('tokens: only what was sealed under the same key opens', () => {
    const tokenKey = pattern(32, 1)
    for (const size of [0, 1, 100]) {
      const content = pattern(size, 2)
      const token = crypto.sealToken(tokenKey, content)
      assert.equal(token.length, 12 + size + 16)
      assert.notDeepEqual(crypto.sealToken(tokenKey, content), token)
      assert.deepEqual(crypto.openToken(tokenKey, token), content)
      assert.equal(crypto.openToken(pattern(32, 3), token), undefined)
      for (let limit = 0; limit < token.length; limit++) assert.equal(crypto.openToken(tokenKey, token.subarray(0, limit)), undefined)
      for (let at = 0; at < token.length; at++) {
        const copy = token.slice()
        copy[at]! ^= 0x80
        assert.equal(crypto.openToken(tokenKey, copy), undefined)
      }
    }
    assert.throws(() => crypto.sealToken(new Uint8Array(16), tokenKey), RangeError)
  })

  test('stateless reset tokens depend on the key and the whole id', () => {
    const token = crypto.statelessResetToken(pattern(32, 1), pattern(8, 1))
    assert.equal(token.length, 16)
    assert.deepEqual(crypto.statelessResetToken(pattern(32, 1), pattern(8, 1)), token)
    assert.notDeepEqual(crypto.statelessResetToken(pattern(32, 2), pattern(8, 1)), token)
    assert.notDeepEqual(crypto.statelessResetToken(pattern(32, 1), pattern(9, 1)), token)
  })

  test('random octets: of every size, and not twice the same', () => {
    const seen = new Set<string>()
    for (const size of [0, 1, 8, 256, 257, 5000]) assert.equal(crypto.random(size).length, size)
    for (let i = 0; i < 1000; i++) seen.add(text(crypto.random(8)))
    assert.equal(seen.size, 1000)
  })

  test('many keys leave nothing behind', () => {
    const buffer = new Uint8Array(1200)
    const mask = new Uint8Array(5)
    const round = (count: number): void => {
      for (let i = 0; i < count; i++) {
        const name = suiteNames[i % 3]!
        const { keySize } = suites[name]
        const key = crypto.packetKey(name, pattern(keySize, i), pattern(12, i))
        key.seal(buffer, 0, 20, 100, i)
        assert.equal(key.open(buffer, 0, 20, 116, i), true)
        key.close()
        const header = crypto.headerKey(name, pattern(keySize, i))
        header.mask(buffer, 30, mask)
        header.close()
      }
    }
    round(1000)
    const before = process.memoryUsage.rss()
    round(6000)
    // 12,000 AES contexts of about 1 KiB, if they stayed, and 6,000 of header protection.
    assert.ok(process.memoryUsage.rss() - before < 8 * 2 ** 20, `${(process.memoryUsage.rss() - before) / 2 ** 20} MiB more`)
  })
}

test('both agree on random input', { skip: unavailable ?? false }, () => {
  const one = nodeCrypto()
  const other = openCrypto(native as Exclude<typeof native, { unavailable: string }>)
  fc.assert(
    fc.property(
      fc.constantFrom(...suiteNames),
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uint8Array({ minLength: 12, maxLength: 12 }),
      fc.uint8Array({ minLength: 0, maxLength: 80 }),
      fc.uint8Array({ minLength: 1, maxLength: 1500 }),
      fc.maxSafeNat(),
      fc.nat(40),
      (name, material, iv, header, payload, packetNumber, start) => {
        const keyOctets = material.subarray(0, suites[name].keySize)
        const payloadStart = start + header.length
        const limit = payloadStart + payload.length
        const [a, b] = [one, other].map((crypto) => {
          const buffer = new Uint8Array(limit + tagSize + 3)
          buffer.set(header, start)
          buffer.set(payload, payloadStart)
          const key = crypto.packetKey(name, keyOctets, iv)
          key.seal(buffer, start, payloadStart, limit, packetNumber)
          const mask = new Uint8Array(5)
          const headerKey = crypto.headerKey(name, keyOctets)
          headerKey.mask(buffer, limit, mask)
          headerKey.close()
          return { buffer, mask, key }
        }) as [
          { buffer: Uint8Array; mask: Uint8Array; key: ReturnType<QuicCrypto['packetKey']> },
          { buffer: Uint8Array; mask: Uint8Array; key: ReturnType<QuicCrypto['packetKey']> },
        ]
        assert.deepEqual(a.buffer, b.buffer)
        assert.deepEqual(a.mask, b.mask)
        assert.equal(a.key.open(b.buffer, start, payloadStart, limit + tagSize, packetNumber), true)
        assert.equal(b.key.open(a.buffer, start, payloadStart, limit + tagSize, packetNumber), true)
        assert.deepEqual(a.buffer.subarray(payloadStart, limit), payload)
        assert.deepEqual(b.buffer.subarray(payloadStart, limit), payload)
        a.key.close()
        b.key.close()
        for (const size of [1, suites[name].hashSize, 3 * suites[name].hashSize + 5]) {
          assert.deepEqual(one.expandLabel(name, material, 'quic x', size), other.expandLabel(name, material, 'quic x', size))
        }
        assert.deepEqual(one.hkdfExtract(name, iv, header), other.hkdfExtract(name, iv, header))
      },
    ),
    { numRuns: 200 },
  )
})
