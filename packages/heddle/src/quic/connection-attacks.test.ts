/** Peers that break the rules, and others that send what they like: the right error, and no other harm (RFC 9000 §21). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Level } from '../native/index.ts'
import {
  Echo,
  packetTypes,
  PlainCrypto,
  QuicForger,
  QuicWorld,
  silent,
  type ForgedPacket,
  type QuicWorldOptions,
} from '../testing/index.ts'
import type { QuicConnection } from './connection.ts'
import type { DebugFrame } from './debug-frame.ts'
import { PacketType } from './packet.ts'
import { TransportError } from './transport-error.ts'

interface Scene {
  readonly world: QuicWorld
  readonly client: QuicConnection
  readonly server: QuicConnection
  /** Makes packets of the client's for the server, and of the server's for the client. */
  readonly asClient: QuicForger
  readonly asServer: QuicForger
}

function sceneOf(world: QuicWorld, client: QuicConnection): Scene {
  const [server] = world.accepted as [QuicConnection]
  const crypto = new PlainCrypto((byteCount) => new Uint8Array(byteCount))
  const original = client.originalDestination
  return {
    world,
    client,
    server,
    asClient: new QuicForger(crypto, { isServer: false, original, destination: server.localId, source: client.localId }),
    asServer: new QuicForger(crypto, { isServer: true, original, destination: client.localId, source: server.localId }),
  }
}

/** The handshake is over, and both ends are silent. */
function connected(options: QuicWorldOptions = {}): Scene {
  const world = new QuicWorld(options)
  const client = world.connected()
  world.pass(500)
  return sceneOf(world, client)
}

/** The server has answered the first datagram, and the client knows nothing of it. */
function shaking(): Scene {
  const world = new QuicWorld()
  const client = world.connect()
  world.run(() => world.accepted.length === 1)
  world.flights = []
  return sceneOf(world, client)
}

function raw(...octets: number[]): DebugFrame {
  return { type: 'RAW', payload: Uint8Array.from(octets) }
}

function crypto(offset: number, size: number): DebugFrame {
  return { type: 'CRYPTO', offset, data: new Uint8Array(size).fill(1) }
}

function stream(streamId: number, offset: number, size: number, fin = false): DebugFrame {
  return { type: 'STREAM', streamId, offset, data: new Uint8Array(size), fin }
}

function newId(sequence: number, retirePriorTo = 0, octet = sequence): DebugFrame {
  const id = Uint8Array.of(0xee, octet >> 8, octet, 1, 1, 1, 1, 1)
  return { type: 'NEW_CONNECTION_ID', sequence, retirePriorTo, id, resetToken: new Uint8Array(16).fill(octet) }
}

/** Says `packets` to the server, one after the other, and returns the code that it ends with; −1: it stands. */
function codeOf({ world, server, asClient }: Scene, level: Level, packets: readonly (readonly DebugFrame[])[], how?: ForgedPacket): number {
  for (const frames of packets) world.inject(true, asClient.packet(level, frames, how))
  return server.closing.state === 'open' ? -1 : (server.closing.reason?.code ?? -2)
}

const T = TransportError

describe('frames of a client that a server ends the connection for', () => {
  const cases: readonly (readonly [string, number, readonly (readonly DebugFrame[])[]])[] = [
    ['HANDSHAKE_DONE', T.protocolViolation, [[{ type: 'HANDSHAKE_DONE' }]]],
    ['NEW_TOKEN', T.protocolViolation, [[{ type: 'NEW_TOKEN', token: new Uint8Array(5) }]]],
    ['an acknowledgement of what was never sent', T.protocolViolation, [[{ type: 'ACK', ranges: [[4_000, 4_000]], delay: 0 }]]],
    ['an acknowledgement of 2^62 − 1', T.protocolViolation, [[raw(2, 0xff, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0)]]],
    ['an acknowledged number below 0', T.frameEncodingError, [[raw(2, 1, 0, 0, 5)]]],
    ['data on a stream that only the server sends on', T.streamStateError, [[stream(3, 0, 1)]]],
    ['data on a stream that the server has not opened', T.streamStateError, [[stream(1, 0, 1)]]],
    ['a stream beyond the limit', T.streamLimitError, [[stream(4 * 100, 0, 1)]]],
    ['more than a stream may have', T.flowControlError, [[stream(0, (1 << 20) + 1, 1)]]],
    ['the end of a stream beyond its limit', T.flowControlError, [[stream(0, (1 << 20) + 1, 0, true)]]],
    ['another final size', T.finalSizeError, [[stream(2, 10, 1, true)], [stream(2, 5, 1, true)]]],
    ['data behind the end', T.finalSizeError, [[stream(2, 9, 1, true)], [stream(2, 10, 1)]]],
    ['a reset with less than came', T.finalSizeError, [[stream(2, 10, 1)], [{ type: 'RESET_STREAM', streamId: 2, code: 0, finalSize: 3 }]]],
    ['RESET_STREAM of a stream of the server', T.streamStateError, [[{ type: 'RESET_STREAM', streamId: 3, code: 0, finalSize: 0 }]]],
    ['STOP_SENDING of what the client sends itself', T.streamStateError, [[{ type: 'STOP_SENDING', streamId: 2, code: 0 }]]],
    ['credit for a stream that the client sends itself', T.streamStateError, [[{ type: 'MAX_STREAM_DATA', streamId: 2, maximum: 9 }]]],
    ['credit for a stream not opened', T.streamStateError, [[{ type: 'MAX_STREAM_DATA', streamId: 1, maximum: 9 }]]],
    ['2^60 + 1 streams', T.frameEncodingError, [[raw(0x12, 0xd0, 0, 0, 0, 0, 0, 0, 1)]]],
    ['an id retired that was never issued', T.protocolViolation, [[{ type: 'RETIRE_CONNECTION_ID', sequence: 99 }]]],
    ['an id retired by a packet to it', T.protocolViolation, [[{ type: 'RETIRE_CONNECTION_ID', sequence: 0 }]]],
    ['nine ids', T.connectionIdLimitError, [Array.from({ length: 9 }, (_, i) => newId(100 + i))]],
    ['one id for two sequence numbers', T.protocolViolation, [[newId(50, 50, 1), newId(51, 50, 1)]]],
    ['two ids for one sequence number', T.protocolViolation, [[newId(50, 50, 1), newId(50, 50, 2)]]],
    ['an id that retires itself', T.frameEncodingError, [[newId(50, 51)]]],
    [
      'ids retired without end',
      T.connectionIdLimitError,
      Array.from({ length: 20 }, (_, p) => Array.from({ length: 6 }, (__, i) => newId(100 + p * 6 + i, 100 + p * 6 + i))),
    ],
    ['messages of TLS that are not due', T.cryptoError + 10, [[crypto(0, 8)]]],
    ['CRYPTO far ahead', T.cryptoBufferExceeded, [[crypto(65_536, 1)]]],
    ['CRYPTO at the largest offset', T.frameEncodingError, [[raw(6, 0xff, 255, 255, 255, 255, 255, 255, 255, 1, 0)]]],
    ['an unknown frame', T.frameEncodingError, [[raw(0x1f)]]],
    ['a frame type that is coded too long', T.protocolViolation, [[raw(0x40, 1)]]],
    ['a frame that is cut off', T.frameEncodingError, [[raw(4, 0)]]],
    ['a token that is cut off', T.frameEncodingError, [[raw(0x1a, 1, 2, 3)]]],
  ]
  for (const [name, code, packets] of cases) {
    test(name, () => {
      const scene = connected({ seed: 3 })
      assert.equal(codeOf(scene, Level.application, packets), code)
      const { world, client, server } = scene
      assert.equal(world.applications[0]?.error?.wireCode, code, 'the application hears of it')
      const isKnown = client.localId.every((octet, i) => octet === server.remoteIds.current[i])
      assert.equal(
        world.run(() => client.closing.state !== 'open', 1_000),
        isKnown,
        'and the peer, unless its ids were retired',
      )
      assert.ok(world.run(() => world.server.connections.size === 0, 30_000))
      assert.equal(world.server.keys, 0)
    })
  }

  const early: readonly (readonly [string, Level, DebugFrame, number])[] = [
    ['STREAM in Initial', Level.initial, stream(0, 0, 1), T.protocolViolation],
    ['STREAM in Handshake', Level.handshake, stream(0, 0, 1), T.protocolViolation],
    ['HANDSHAKE_DONE in Handshake', Level.handshake, { type: 'HANDSHAKE_DONE' }, T.protocolViolation],
    [
      'an application’s CONNECTION_CLOSE in Initial',
      Level.initial,
      { type: 'APPLICATION_CLOSE', code: 1, reason: '' },
      T.protocolViolation,
    ],
    ['PATH_CHALLENGE in Handshake', Level.handshake, { type: 'PATH_CHALLENGE', data: new Uint8Array(8) }, T.protocolViolation],
    ['NEW_CONNECTION_ID in Initial', Level.initial, newId(1), T.protocolViolation],
    [
      'an acknowledgement in Initial of what was never sent',
      Level.initial,
      { type: 'ACK', ranges: [[90, 90]], delay: 0 },
      T.protocolViolation,
    ],
    ['CRYPTO of TLS that is not due', Level.handshake, crypto(0, 20), T.cryptoError + 10],
    ['CRYPTO far ahead in Initial', Level.initial, crypto(80_000, 20), T.cryptoBufferExceeded],
  ]
  for (const [name, level, frame, code] of early) {
    test(`in the handshake: ${name}`, () => {
      const scene = shaking()
      assert.equal(codeOf(scene, level, [[frame]]), code)
      assert.ok(scene.world.run(() => scene.world.server.connections.size === 0, 30_000))
    })
  }

  test('CRYPTO behind the end of its level (RFC 9001 §4.1.3)', () => {
    const world = new QuicWorld()
    const client = world.connect()
    world.flush()
    const hello = world.flights.splice(0)
    const crypto0 = new PlainCrypto((byteCount) => new Uint8Array(byteCount))
    const { originalDestination: original, localId: source } = client
    const forger = new QuicForger(crypto0, { isServer: false, original, destination: original, source })
    forger.packetNumber = 1
    world.inject(true, forger.packet(Level.initial, [crypto(2_000, 30)]))
    for (const { bytes } of hello) world.inject(true, bytes)
    const [server] = world.server.connections
    assert.equal(server?.closing.reason?.code, T.protocolViolation)
  })
})

describe('what a peer may do', () => {
  test('frames that tell nothing new, or are late, end nothing', () => {
    const scene = connected()
    const { server } = scene
    const harmless: readonly (readonly DebugFrame[])[] = [
      [{ type: 'PING' }, { type: 'PADDING', size: 100 }],
      [
        { type: 'DATA_BLOCKED', maximum: 0 },
        { type: 'STREAMS_BLOCKED', bidirectional: true, maximum: 3 },
      ],
      [
        { type: 'MAX_DATA', maximum: 1 },
        { type: 'MAX_STREAMS', bidirectional: false, maximum: 1 },
      ],
      [newId(40, 40), newId(40, 40)],
      [newId(41), newId(42, 40), newId(3), newId(39, 7)],
      [{ type: 'PATH_RESPONSE', data: new Uint8Array(8) }],
      [stream(0, 0, 5), stream(0, 0, 5), stream(0, 2, 3, true), stream(0, 0, 5, true)],
      [
        { type: 'RETIRE_CONNECTION_ID', sequence: 1 },
        { type: 'RETIRE_CONNECTION_ID', sequence: 1 },
      ],
    ]
    assert.equal(codeOf(scene, Level.application, harmless), -1)
    assert.equal(server.closing.state, 'open')
  })

  test('a flood of PING, of acknowledgements and of challenges is answered sparsely, and nothing piles up', () => {
    const { world, server, asClient } = connected()
    const before = world.log.length
    const largest = server.recovery.largestAcknowledged(2)
    const ack: DebugFrame = { type: 'ACK', ranges: [[largest, largest]], delay: 0 }
    const challenges: DebugFrame[] = Array.from({ length: 100 }, (_, i) => ({ type: 'PATH_CHALLENGE', data: new Uint8Array(8).fill(i) }))
    for (let i = 0; i < 2_000; i++) {
      world.inject(true, asClient.packet(Level.application, i % 3 === 0 ? [{ type: 'PING' }] : i % 3 === 1 ? [ack] : challenges))
      world.flights = []
      // Packets with gaps between them: a range each.
      if (i % 10 === 0) asClient.packetNumber += 2
      assert.ok(server.paths.current.responses.length <= 32)
    }
    assert.equal(server.closing.state, 'open')
    assert.ok(world.log.length - before <= 2_000)
    assert.ok(server.spaces[2].received.ranges.count <= 64)
    // Nothing that it sent was acknowledged: the window holds it back.
    assert.ok(server.recovery.bytesInFlight <= server.recovery.congestion.window + 1_452)
  })

  test('packets of the past come twice without effect', () => {
    const { world, server, client } = connected()
    const echo = new Echo(client, 20_000)
    assert.ok(world.run(() => echo.isClosed, 5_000))
    for (const { bytes, toServer } of world.log.slice()) world.inject(toServer, bytes)
    world.pass(1_000)
    assert.deepEqual([server.closing.state, client.closing.state, world.server.connections.size], ['open', 'open', 1])
    assert.ok(echo.isRight && echo.came === 20_000)
  })

  test('an acknowledgement of a number that was left out on purpose ends the connection (RFC 9000 §21.4)', () => {
    const { world, client, server, asClient } = connected({ server: { maxDatagramSize: 1_200 } })
    const echo = new Echo(client, 900_000)
    world.run(() => echo.came > 600_000, 20_000)
    const sent = server.recovery.largestAcknowledged(2)
    assert.ok(sent > 200)
    world.inject(true, asClient.packet(Level.application, [{ type: 'ACK', ranges: [[0, sent]], delay: 0 }]))
    assert.equal(server.closing.reason?.code, T.protocolViolation)
  })
})

describe('what others send', () => {
  /** Bits of every datagram of a connection are turned, and datagrams cut: before, and as well as, the real ones. */
  test('changed and cut datagrams of every kind end nothing', () => {
    for (const options of [{}, { limits: { retryAbove: 0 } }] as QuicWorldOptions[]) {
      const world = new QuicWorld({ ...options, tls: { clientHello: 1_500 } })
      const application = silent()
      const client = world.connect(application)
      let count = 0
      world.drop = ({ bytes, toServer, from }) => {
        // Whoever sees and changes Version Negotiation can end a connection that begins (RFC 9000 §21.12), so this is none of it.
        if (packetTypes(bytes)[0] === PacketType.versionNegotiation) return false
        const step = Math.max(7, bytes.length >> 5)
        for (let at = 0; at < bytes.length; at += at < 40 ? 1 : step) {
          const changed = new Uint8Array(bytes)
          changed[at] = (changed[at] as number) ^ (1 << world.random.integer(at === 4 ? 1 : 0, 7))
          world.flights.push({
            at: world.now,
            bytes: changed,
            ecn: 0,
            from,
            to: toServer ? { address: '', port: 443, family: 'IPv4' } : world.address,
            toServer,
          })
          world.flights.push({ at: world.now, bytes: bytes.slice(0, at), ecn: 0, from, to: world.address, toServer })
          count += 2
        }
        world.flights.sort((a, b) => a.at - b.at)
        return false
      }
      assert.ok(world.run(() => client.handshake.isConfirmed, 30_000))
      const echo = new Echo(client, 3_000)
      assert.ok(world.run(() => echo.isClosed, 30_000))
      world.drop = undefined
      assert.ok(echo.isRight && count > 1_000, `${count}`)
      world.pass(1_000)
      assert.equal(application.error, undefined)
      assert.equal(world.applications[0]?.error, undefined)
    }
  })

  test('packets that nobody can open are counted, and cost nothing else', () => {
    const { world, server, client } = connected()
    const before = world.log.length
    for (let i = 0; i < 3_000; i++) {
      const bytes = new Uint8Array(world.random.bytes(world.random.integer(30, 200)))
      bytes[0] = 0x40 | ((bytes[0] as number) & 0x3f)
      bytes.set(server.localId, 1)
      world.inject(true, bytes)
    }
    assert.equal(world.log.length, before)
    assert.deepEqual([server.closing.state, client.closing.state], ['open', 'open'])
    // Nobody is kept alive by them.
    assert.ok(server.deadline < world.now + 30_000)
  })
})
