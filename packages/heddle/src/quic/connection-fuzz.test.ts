/** Frames that make no sense, sealed with the right keys: either the connection goes on, or both ends end it and nothing is left. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Level } from '../native/index.ts'
import { Echo, PlainCrypto, QuicForger, QuicWorld, type Random } from '../testing/index.ts'
import type { QuicConnection } from './connection.ts'
import type { DebugFrame } from './debug-frame.ts'
import { TransportError } from './transport-error.ts'

function forgerOf(world: QuicWorld, client: QuicConnection, isServer: boolean): QuicForger {
  const [server] = world.accepted as [QuicConnection]
  const crypto = new PlainCrypto((byteCount) => new Uint8Array(byteCount))
  const [from, to] = isServer ? [server, client] : [client, server]
  return new QuicForger(crypto, { isServer, original: client.originalDestination, destination: to.localId, source: from.localId })
}

/** A frame type, and what may look like its fields: small numbers, the largest ones, and noise. */
function nonsense(random: Random): DebugFrame {
  const octets: number[] = [random.integer(0, 0x20)]
  for (let fields = random.integer(0, 8); fields > 0; fields--) {
    const kind = random.integer(0, 4)
    if (kind === 0) octets.push(random.integer(0, 63))
    else if (kind === 1) octets.push(0x40 | random.integer(0, 63), random.integer(0, 255))
    else if (kind === 2) octets.push(0xff, 255, 255, 255, 255, 255, 255, random.integer(0, 255))
    else octets.push(...random.bytes(random.integer(1, 12)))
  }
  return { type: 'RAW', payload: Uint8Array.from(octets) }
}

test('random frames after the handshake, to either end', () => {
  let ended = 0
  for (let seed = 1; seed <= 400; seed++) {
    const world = new QuicWorld({ seed })
    const client = world.connected()
    const [server] = world.accepted as [QuicConnection]
    const toClient = seed % 2 === 0
    const forger = forgerOf(world, client, toClient)
    new Echo(client, 2_000)
    for (let i = 0; i < 12; i++) {
      world.inject(!toClient, forger.packet(Level.application, [nonsense(world.random), nonsense(world.random)]))
      world.pass(world.random.integer(0, 20))
    }
    const victim = toClient ? client : server
    if (victim.closing.state !== 'open') ended++
    client.close(0, '')
    server.close(0, '')
    assert.ok(
      world.run(() => world.client.connections.size + world.server.connections.size === 0, 60_000),
      `seed ${seed}`,
    )
    assert.deepEqual([world.client.keys, world.server.keys, world.crypto.openKeys], [0, 0, 0], `seed ${seed}`)
  }
  assert.ok(ended > 200, `${ended}`)
})

test('random frames in the handshake, to a server', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const world = new QuicWorld({ seed, server: { handshakeTimeout: 3_000 }, client: { handshakeTimeout: 3_000 } })
    const client = world.connect()
    world.run(() => world.accepted.length === 1)
    const forger = forgerOf(world, client, false)
    for (let i = 0; i < 4; i++) {
      const level = world.random.chance(0.5) ? Level.initial : Level.handshake
      world.inject(true, forger.packet(level, [nonsense(world.random)]))
      world.pass(world.random.integer(0, 8))
    }
    world.pass(5_000)
    client.close(0, '')
    assert.ok(
      world.run(() => world.client.connections.size + world.server.connections.size === 0, 60_000),
      `seed ${seed}`,
    )
    assert.deepEqual([world.client.keys, world.server.keys, world.server.handshakes, world.crypto.openKeys], [0, 0, 0, 0], `seed ${seed}`)
  }
})

test('Initial packets in small datagrams are not read by a connection that there is (RFC 9000 §14.1)', () => {
  const world = new QuicWorld()
  const client = world.connect()
  world.run(() => world.accepted.length === 1)
  const [server] = world.accepted as [QuicConnection]
  const forger = forgerOf(world, client, false)
  const close: DebugFrame = { type: 'CONNECTION_CLOSE', code: 1, frameType: 0, reason: '' }
  world.inject(true, forger.packet(Level.initial, [close], { size: 1_199 }))
  assert.equal(server.closing.state, 'open')
  world.inject(true, forger.packet(Level.initial, [close], { size: 1_200 }))
  assert.equal(server.closing.state, 'draining')
})

describe('frames of a server that a client ends the connection for', () => {
  const T = TransportError
  const cases: readonly (readonly [string, number, DebugFrame])[] = [
    [
      'data on a stream that only the client sends on',
      T.streamStateError,
      { type: 'STREAM', streamId: 2, offset: 0, data: new Uint8Array(1), fin: false },
    ],
    [
      'data on a stream that the client has not opened',
      T.streamStateError,
      { type: 'STREAM', streamId: 0, offset: 0, data: new Uint8Array(1), fin: false },
    ],
    [
      'a stream beyond the limit',
      T.streamLimitError,
      { type: 'STREAM', streamId: 4 * 100 + 1, offset: 0, data: new Uint8Array(1), fin: false },
    ],
    ['an empty token', T.frameEncodingError, { type: 'RAW', payload: Uint8Array.of(7, 0) }],
    ['CRYPTO far ahead', T.cryptoBufferExceeded, { type: 'CRYPTO', offset: 90_000, data: new Uint8Array(1) }],
    ['an id retired by a packet to it', T.protocolViolation, { type: 'RETIRE_CONNECTION_ID', sequence: 0 }],
  ]
  for (const [name, code, frame] of cases) {
    test(name, () => {
      const world = new QuicWorld()
      const client = world.connected()
      world.pass(500)
      world.inject(false, forgerOf(world, client, true).packet(Level.application, [frame]))
      assert.equal(client.closing.reason?.code, code)
    })
  }

  test('Initial packets of a server have no token, and one that has is not read (RFC 9000 §17.2.2)', () => {
    const world = new QuicWorld()
    const client = world.connect()
    world.run(() => world.accepted.length === 1)
    const close: DebugFrame = { type: 'CONNECTION_CLOSE', code: 1, frameType: 0, reason: '' }
    const forger = forgerOf(world, client, true)
    world.inject(false, forger.packet(Level.initial, [close], { token: new Uint8Array(4) }))
    assert.equal(client.closing.state, 'open')
    world.inject(false, forger.packet(Level.initial, [close]))
    assert.equal(client.closing.state, 'draining')
  })
})
