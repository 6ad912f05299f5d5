import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nodeCrypto, type CipherSuite } from '../native/index.ts'

import { readDebugFrames, writeDebugFrame } from './debug-frame.ts'
import { writePing } from './frame-writer.ts'
import { headerKeyOf, initialSecrets, nextSecret } from './key-schedule.ts'
import { ForgeryCount, maskHeader } from './packet-opener.ts'
import { PacketReader, PacketType, version1 } from './packet.ts'
import { PacketWriter } from './packet-writer.ts'
import { LevelKeys } from './protection.ts'
import { TransportError } from './transport-error.ts'

const cryptography = nodeCrypto()
const destinationId = bytesOf('8394c8f03e515708')
const none = new Uint8Array(0)
const suites: readonly CipherSuite[] = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256']

function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'))
}

function hexOf(bytes: Uint8Array, start = 0, limit = bytes.length): string {
  return Buffer.from(bytes.subarray(start, limit)).toString('hex')
}

function initialKeys(isServer: boolean, id = destinationId): LevelKeys {
  const keys = new LevelKeys(cryptography, new ForgeryCount())
  keys.installInitial(id, isServer)
  return keys
}

test('RFC 9001 A.1: the keys of Initial packets', () => {
  const { client, server } = initialSecrets(cryptography, destinationId)
  assert.equal(hexOf(client), 'c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea')
  assert.equal(hexOf(server), '3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b')
  const keyOf = (secret: Uint8Array, label: string, size: number): string =>
    hexOf(cryptography.expandLabel('TLS_AES_128_GCM_SHA256', secret, label, size))
  assert.equal(keyOf(client, 'quic key', 16), '1f369613dd76d5467730efcbe3b1a22d')
  assert.equal(keyOf(client, 'quic iv', 12), 'fa044b2f42a3fd3b46fb255c')
  assert.equal(keyOf(client, 'quic hp', 16), '9f50449e04a0e810283a1e9933adedd2')
  assert.equal(keyOf(server, 'quic key', 16), 'cf3a5331653c364c88f0f379b6067e37')
  assert.equal(keyOf(server, 'quic iv', 12), '0ac1493ca1905853b0bba03e')
  assert.equal(keyOf(server, 'quic hp', 16), 'c206b8d9b9f0f37644430b490eeaa314')
})

/** RFC 9001 A.2: the CRYPTO frame of the client's Initial packet, and the packet. */
const clientHelloFrame = bytesOf(`060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868
  04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a
  00080006001d0017001800100007000504616c706e00050005010000000000330026 0024001d00209370b2c9caa47fba
  baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e0403050306030203080408
  050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff08011001048000
  75300901100f088394c8f03e51570806048000ffff`)
const clientInitial = bytesOf(`c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11
  d242b123dc9bd8bab936b47d92ec356c0bab7df5976d27cd449f63300099f3991c260ec4c60d17b31f8429157bb35a12
  82a643a8d2262cad67500cadb8e7378c8eb7539ec4d4905fed1bee1fc8aafba17c750e2c7ace01e6005f80fcb7df6212
  30c83711b39343fa028cea7f7fb5ff89eac2308249a02252155e2347b63d58c5457afd84d05dfffdb20392844ae81215
  4682e9cf012f9021a6f0be17ddd0c2084dce25ff9b06cde535d0f920a2db1bf362c23e596d11a4f5a6cf3948838a3aec
  4e15daf8500a6ef69ec4e3feb6b1d98e610ac8b7ec3faf6ad760b7bad1db4ba3485e8a94dc250ae3fdb41ed15fb6a8e5
  eba0fc3dd60bc8e30c5c4287e53805db059ae0648db2f64264ed5e39be2e20d82df566da8dd5998ccabdae053060ae6c
  7b4378e846d29f37ed7b4ea9ec5d82e7961b7f25a9323851f681d582363aa5f89937f5a67258bf63ad6f1a0b1d96dbd4
  faddfcefc5266ba6611722395c906556be52afe3f565636ad1b17d508b73d8743eeb524be22b3dcbc2c7468d54119c74
  68449a13d8e3b95811a198f3491de3e7fe942b330407abf82a4ed7c1b311663ac69890f4157015853d91e923037c227a
  33cdd5ec281ca3f79c44546b9d90ca00f064c99e3dd97911d39fe9c5d0b23a229a234cb36186c4819e8b9c5927726632
  291d6a418211cc2962e20fe47feb3edf330f2c603a9d48c0fcb5699dbfe5896425c5bac4aee82e57a85aaf4e2513e4f0
  5796b07ba2ee47d80506f8d2c25e50fd14de71e6c418559302f939b0e1abd576f279c4b2e0feb85c1f28ff18f58891ff
  ef132eef2fa09346aee33c28eb130ff28f5b766953334113211996d20011a198e3fc433f9f2541010ae17c1bf202580f
  6047472fb36857fe843b19f5984009ddc324044e847a4f4a0ab34f719595de37252d6235365e9b84392b061085349d73
  203a4a13e96f5432ec0fd4a1ee65accdd5e3904df54c1da510b0ff20dcc0c77fcb2c0e0eb605cb0504db87632cf3d8b4
  dae6e705769d1de354270123cb11450efc60ac47683d7b8d0f811365565fd98c4c8eb936bcab8d069fc33bd801b03ade
  a2e1fbc5aa463d08ca19896d2bf59a071b851e6c239052172f296bfb5e72404790a2181014f3b94a4e97d117b4381303
  68cc39dbb2d198065ae3986547926cd2162f40a29f0c3c8745c0f50fba3852e566d44575c29d39a03f0cda721984b6f4
  40591f355e12d439ff150aab7613499dbd49adabc8676eef023b15b65bfc5ca06948109f23f350db82123535eb8a7433
  bdabcb909271a6ecbcb58b936a88cd4e8f2e6ff5800175f113253d8fa9ca8885c2f552e657dc603f252e1a8e308f76f0
  be79e2fb8f5d5fbbe2e30ecadd220723c8c0aea8078cdfcb3868263ff8f0940054da48781893a7e49ad5aff4af300cd8
  04a6b6279ab3ff3afb64491c85194aab760d58a606654f9f4400e8b38591356fbf6425aca26dc85244259ff2b19c41b9
  f96f3ca9ec1dde434da7d2d392b905ddf3d1f9af93d1af5950bd493f5aa731b4056df31bd267b6b90a079831aaf579be
  0a39013137aac6d404f518cfd46840647e78bfe706ca4cf5e9c5453e9f7cfd2b8b4c8d169a44e55c88d4a9a7f9474241
  e221af44860018ab0856972e194cd934`)

test("RFC 9001 A.2: the client's Initial packet is opened", () => {
  const buffer = clientInitial.slice()
  const reader = new PacketReader().start(buffer, 0, buffer.length, 0)
  assert.ok(reader.next())
  const keys = initialKeys(true)
  assert.ok(keys.open(buffer, reader.packetStart, reader.payloadStart, reader.packetLimit, -1))
  assert.equal(keys.packetNumber, 2)
  assert.equal(hexOf(buffer, 0, 22), 'c300000001088394c8f03e5157080000449e00000002')
  assert.equal(keys.payloadLimit - keys.payloadStart, 1162)
  assert.equal(hexOf(buffer, keys.payloadStart, keys.payloadStart + clientHelloFrame.length), hexOf(clientHelloFrame))
  const { frames, fault } = readDebugFrames(buffer.slice(keys.payloadStart, keys.payloadLimit), 0, false)
  assert.equal(fault, undefined)
  assert.deepEqual(
    frames.map((frame) => frame.type),
    ['CRYPTO', 'PADDING'],
  )
})

test("RFC 9001 A.2: the client's Initial packet is sealed", () => {
  // The example's packet number has four octets, which a PacketWriter would not use for number 2.
  const buffer = new Uint8Array(1200)
  buffer.set(bytesOf('c300000001088394c8f03e5157080000449e00000002'))
  buffer.set(clientHelloFrame, 22)
  initialKeys(false).seal(buffer, 0, 18, 22, 1200 - 16, 2)
  assert.equal(hexOf(buffer), hexOf(clientInitial))
})

test("RFC 9001 A.3: the server's Initial packet is written, byte for byte", () => {
  const payload = bytesOf(`02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a12
    00130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00020304`)
  const writer = new PacketWriter()
  writer.startDatagram(new Uint8Array(1200), 0, 1200)
  // What makes a packet number of two octets: 255 numbers and more that are not acknowledged.
  assert.ok(writer.startLong(PacketType.initial, version1, none, bytesOf('f067a5502a4262b5'), none, 1, -1000))
  assert.ok(writeDebugFrame(writer, { type: 'RAW', payload }))
  const size = writer.finish(initialKeys(true))
  const expected = `cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f
    5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7a
    af2f58891850abbdca3d20398c276456cbc42158407dd074ee`
  assert.equal(hexOf(writer.buffer, 0, size), expected.replaceAll(/\s/g, ''))

  const reader = new PacketReader().start(writer.buffer, 0, size, 0)
  assert.ok(reader.next())
  const client = initialKeys(false)
  assert.ok(client.open(writer.buffer, 0, reader.payloadStart, reader.packetLimit, -1))
  assert.equal(client.packetNumber, 1)
  assert.equal(hexOf(writer.buffer, client.payloadStart, client.payloadLimit), hexOf(payload))
})

test('RFC 9001 A.5: ChaCha20-Poly1305 with a short header', () => {
  const suite = 'TLS_CHACHA20_POLY1305_SHA256'
  const secret = bytesOf('9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b')
  const expand = (label: string, size: number): string => hexOf(cryptography.expandLabel(suite, secret, label, size))
  assert.equal(expand('quic key', 32), 'c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8')
  assert.equal(expand('quic iv', 12), 'e0459b3474bdd0e44a41c144')
  assert.equal(expand('quic hp', 32), '25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4')
  assert.equal(hexOf(nextSecret(cryptography, suite, secret)), '1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9')
  const keys = new LevelKeys(cryptography, new ForgeryCount())
  keys.install('write', suite, secret)
  keys.install('read', suite, secret)
  const writer = new PacketWriter()
  writer.startDatagram(new Uint8Array(100), 0, 100)
  // Number 654360564, in three octets; the payload is a PING.
  assert.ok(writer.startShort(none, 654_360_564, 654_360_564 - 0x10_0000, 0, false))
  writePing(writer)
  const size = writer.finish(keys)
  assert.equal(hexOf(writer.buffer, 0, size), '4cfe4189655e5cd55c41f69080575d7999c25a5bfb')
  assert.ok(keys.open(writer.buffer, 0, 1, size, 654_360_563))
  assert.equal(keys.packetNumber, 654_360_564)
  assert.equal(hexOf(writer.buffer, 0, 5), '4200bff401')
})

test('a change of any one octet is noticed, and asks for no fault', () => {
  for (let at = 0; at < 60; at++) {
    const buffer = clientInitial.slice()
    buffer[at] = (buffer[at] as number) ^ 0x01
    const keys = initialKeys(true)
    assert.equal(keys.open(buffer, 0, 18, buffer.length, -1), false, `octet ${at}`)
    assert.equal(keys.fault, undefined)
  }
})

test('a packet without a whole sample is dropped, untouched', () => {
  for (let limit = 18; limit < 38; limit++) {
    const buffer = clientInitial.slice(0, limit)
    assert.equal(initialKeys(true).open(buffer, 0, 18, limit, -1), false)
    assert.equal(hexOf(buffer), hexOf(clientInitial, 0, limit))
  }
})

test('RFC 9000 §17.2, §17.3.1: reserved bits that the peer sealed are PROTOCOL_VIOLATION', () => {
  for (const [first, packetNumberStart, bits] of [
    [0xe0, 18, 0x0c],
    [0x40, 9, 0x18],
  ] as const) {
    for (const bit of [4, 8, 16]) {
      if ((bits & bit) === 0) continue
      const buffer = new Uint8Array(100)
      buffer[0] = first | bit
      buffer[packetNumberStart + 1] = 1
      initialKeys(false).seal(buffer, 0, packetNumberStart, packetNumberStart + 1, 84, 0)
      const keys = initialKeys(true)
      assert.equal(keys.open(buffer, 0, packetNumberStart, 100, -1), false)
      assert.equal(keys.fault?.code, TransportError.protocolViolation)
    }
  }
})

test('RFC 9001 §6.6: packets that cannot be opened are counted for all keys of a connection', () => {
  const forgeries = new ForgeryCount()
  const keys = new LevelKeys(cryptography, forgeries)
  keys.install('read', 'TLS_CHACHA20_POLY1305_SHA256', new Uint8Array(32))
  forgeries.count = 2 ** 36 - 1
  const faults = [1, 2].map(() => {
    assert.equal(keys.open(clientInitial.slice(), 0, 18, 1200, -1), false)
    return keys.fault?.code
  })
  assert.deepEqual(faults, [undefined, TransportError.aeadLimitReached])
})

test('RFC 9001 §6.6: a level stops sealing at the limit of its suite', () => {
  const keys = initialKeys(false)
  assert.equal(keys.confidentialityLimit, 2 ** 23)
  keys.confidentialityLimit = 2
  for (const left of [true, false]) {
    keys.seal(new Uint8Array(100), 0, 18, 19, 84, 0)
    assert.equal(keys.canSeal, left)
  }
  keys.installInitial(bytesOf('f067a5502a4262b5'), false)
  assert.equal(keys.canSeal, true, 'new keys begin anew')
})

test('a level has keys from install to discard, each direction for itself', () => {
  const keys = new LevelKeys(cryptography, new ForgeryCount())
  assert.deepEqual([keys.canOpen, keys.canSeal, keys.isDiscarded], [false, false, false])
  assert.equal(keys.open(clientInitial.slice(), 0, 18, 1200, -1), false)
  keys.install('write', 'TLS_AES_128_GCM_SHA256', new Uint8Array(32))
  assert.deepEqual([keys.canOpen, keys.canSeal], [false, true])
  keys.install('read', 'TLS_AES_128_GCM_SHA256', new Uint8Array(32))
  assert.deepEqual([keys.canOpen, keys.canSeal], [true, true])
  keys.discard()
  assert.deepEqual([keys.canOpen, keys.canSeal, keys.isDiscarded], [false, false, true])
  keys.install('read', 'TLS_AES_128_GCM_SHA256', new Uint8Array(32))
  assert.equal(keys.canOpen, false, 'discarded for good')
})

test('RFC 9001 §5.2: a Retry packet changes the keys of Initial packets', () => {
  const [client, server] = [initialKeys(false), initialKeys(true)]
  const id = bytesOf('f067a5502a4262b5')
  client.installInitial(id, false)
  const sealed = (): Uint8Array => {
    const buffer = new Uint8Array(60)
    buffer[0] = 0xc0
    buffer[10] = 7
    client.seal(buffer, 0, 10, 11, 44, 7)
    return buffer
  }
  assert.equal(server.open(sealed(), 0, 10, 60, -1), false)
  server.installInitial(id, true)
  assert.ok(server.open(sealed(), 0, 10, 60, -1))
  assert.equal(server.packetNumber, 7)
})

test('what is sealed is opened, for every suite, size and packet number', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...suites),
      fc.uint8Array({ minLength: 1, maxLength: 1_000 }),
      fc.nat(2 ** 48),
      fc.nat(2 ** 23),
      fc.uint8Array({ minLength: 0, maxLength: 20 }),
      (suite, payload, packetNumber, distance, id) => {
        const secret = new Uint8Array(suite === 'TLS_AES_256_GCM_SHA384' ? 48 : 32).fill(7)
        const keys = new LevelKeys(cryptography, new ForgeryCount())
        keys.install('read', suite, secret)
        keys.install('write', suite, secret)
        const acknowledged = Math.max(-1, packetNumber - 1 - distance)
        const writer = new PacketWriter()
        writer.startDatagram(new Uint8Array(1_200), 0, 1_200)
        assert.ok(writer.startShort(id, packetNumber, acknowledged, 0, true))
        assert.ok(writeDebugFrame(writer, { type: 'RAW', payload }))
        const size = writer.finish(keys)
        assert.ok(keys.open(writer.buffer, 0, 1 + id.length, size, acknowledged))
        assert.equal(keys.packetNumber, packetNumber)
        const opened = writer.buffer.subarray(keys.payloadStart, keys.payloadLimit)
        assert.deepEqual(new Uint8Array(opened.subarray(0, payload.length)), payload)
        assert.ok(opened.subarray(payload.length).every((octet) => octet === 0))
      },
    ),
    { numRuns: 60 },
  )
})

test('a mask hides the size of the packet number and leaves form, fixed bit and type to be seen', () => {
  const { client } = initialSecrets(cryptography, destinationId)
  const key = headerKeyOf(cryptography, 'TLS_AES_128_GCM_SHA256', client)
  for (const [first, seen] of [
    [0xc3, 0xf0],
    [0x43, 0xe0],
  ] as const) {
    const buffer = clientInitial.slice()
    buffer[0] = first
    maskHeader(key, buffer, 0, 18, 4)
    assert.equal((buffer[0] as number) & seen, first & seen)
  }
})

test('random datagrams never throw', () => {
  const server = initialKeys(true)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(255), (bytes, first) => {
      if (bytes.length > 5) bytes.set([first, 0, 0, 0, 1])
      const reader = new PacketReader().start(bytes, 0, bytes.length, 8)
      while (reader.next()) {
        if (reader.type === PacketType.versionNegotiation || reader.type === PacketType.retry) continue
        assert.equal(server.open(bytes, reader.packetStart, reader.payloadStart, reader.packetLimit, -1), false)
      }
    }),
    { numRuns: 500 },
  )
})
