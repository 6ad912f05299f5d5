/** What an endpoint does with datagrams of no connection: Version Negotiation, Retry, refusals, stateless resets (RFC 9000 §5, §6, §8.1, §10.3). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Level } from '../native/index.ts'
import {
  clientAddress,
  Echo,
  packetTypes,
  PlainCrypto,
  QuicForger,
  QuicWorld,
  silent,
  type Flight,
  type QuicWorldOptions,
} from '../testing/index.ts'
import type { QuicConnection } from './connection.ts'
import { localIdSize } from './endpoint.ts'
import { PacketReader, PacketType } from './packet.ts'
import { retryPacket, versionNegotiationPacket } from './retry-packet.ts'

const none = new Uint8Array(0)

/** The first datagram of a new client, which does not arrive by itself. */
function firstOf(world: QuicWorld, application = silent()): { connection: QuicConnection; hello: Uint8Array } {
  const connection = world.connect(application)
  world.flush()
  world.flights = []
  return { connection, hello: (world.log.at(-1) as Flight).bytes }
}

/** The token of the Initial packet at the start of `bytes`. */
function tokenOf(bytes: Uint8Array): Uint8Array {
  const reader = new PacketReader().start(bytes, 0, bytes.length, localIdSize)
  reader.next()
  return bytes.slice(reader.tokenStart, reader.tokenLimit)
}

/** A forger for the client that sends to `destination`. */
function forgerOf(world: QuicWorld, destination: Uint8Array, source = new Uint8Array(8).fill(9)): QuicForger {
  return new QuicForger(new PlainCrypto((byteCount) => world.crypto.random(byteCount)), {
    isServer: false,
    original: destination,
    destination,
    source,
  })
}

function nothingIsLeft(world: QuicWorld): void {
  assert.deepEqual(
    [world.server.connections.size, world.server.handshakes, world.server.keys, world.server.loose.length],
    [0, 0, 0, 0],
    'connections, handshakes, keys of maps, datagrams',
  )
}

describe('Version Negotiation (RFC 9000 §6)', () => {
  test('a server answers full datagrams of unknown versions, ids crossed, and keeps nothing', () => {
    const world = new QuicWorld()
    const unknown = new Uint8Array(1_200)
    unknown.set([0xc0, 0xfa, 0xce, 0xb0, 0x0c, 20, ...new Uint8Array(20).fill(1), 3, 7, 8, 9])
    world.inject(true, unknown)
    const [answer] = world.log as [Flight]
    const reader = new PacketReader().start(answer.bytes, 0, answer.bytes.length, localIdSize)
    assert.ok(reader.next())
    assert.equal(reader.type, PacketType.versionNegotiation)
    assert.deepEqual([...answer.bytes.subarray(reader.destinationStart, reader.destinationLimit)], [7, 8, 9])
    assert.deepEqual([...answer.bytes.subarray(reader.sourceStart, reader.sourceLimit)], [...new Uint8Array(20).fill(1)])
    assert.deepEqual([...answer.bytes.subarray(reader.payloadStart)], [0, 0, 0, 1])
    world.inject(true, unknown.subarray(0, 1_199))
    assert.equal(world.log.length, 1, 'not of a small one')
    world.inject(
      true,
      versionNegotiationPacket(
        new Uint8Array(8),
        new Uint8Array(8),
        Array.from({ length: 400 }, () => 2),
        0,
      ),
    )
    assert.equal(world.log.length, 1, 'and not of itself')
    nothingIsLeft(world)
  })

  test('a client believes one that answers it and does not name version 1, and only before anything else', () => {
    const cases = [
      ['version 1 is named', (c: QuicConnection) => versionNegotiationPacket(c.localId, c.originalDestination, [2, 1], 0), false],
      [
        'another source',
        (c: QuicConnection) =>
          versionNegotiationPacket(
            c.localId,
            c.originalDestination.map((o) => o ^ 1),
            [2],
            0,
          ),
        false,
      ],
      ['another destination', (c: QuicConnection) => versionNegotiationPacket(new Uint8Array(8), c.originalDestination, [2], 0), false],
      ['cut off', (c: QuicConnection) => versionNegotiationPacket(c.localId, c.originalDestination, [2], 0).subarray(0, 20), false],
      ['a good one', (c: QuicConnection) => versionNegotiationPacket(c.localId, c.originalDestination, [2, 0xfaceb00c], 0), true],
    ] as const
    for (const [name, make, isBelieved] of cases) {
      const application = silent()
      const world = new QuicWorld()
      const { connection, hello } = firstOf(world, application)
      world.inject(false, make(connection))
      assert.equal(application.error !== undefined, isBelieved, name)
      if (isBelieved) {
        assert.match(application.error?.message ?? '', /0x2, 0xfaceb00c/)
        assert.equal(world.client.keys, 0)
        continue
      }
      world.inject(true, hello)
      assert.ok(
        world.run(() => connection.handshake.isConfirmed, 5_000),
        name,
      )
      world.inject(false, versionNegotiationPacket(connection.localId, connection.originalDestination, [2], 0))
      assert.equal(application.error, undefined, 'too late')
    }
  })
})

describe('Retry (RFC 9000 §8.1.2, §17.2.5)', () => {
  const always: QuicWorldOptions = { limits: { retryAbove: 0 } }

  test('the server keeps nothing until the client comes back with the token', () => {
    const world = new QuicWorld(always)
    const { hello, connection } = firstOf(world)
    world.inject(true, hello)
    assert.deepEqual(packetTypes((world.log.at(-1) as Flight).bytes), [PacketType.retry])
    nothingIsLeft(world)
    assert.ok(world.run(() => connection.handshake.isConfirmed, 5_000))
    const [server] = world.accepted as [QuicConnection]
    assert.ok(server.paths.current.validated)
    assert.deepEqual(server.retrySource, connection.retrySource)
    const echo = new Echo(connection, 3_000)
    assert.ok(world.run(() => echo.isClosed, 5_000) && echo.isRight)
  })

  test('a client takes a token once, whatever is lost', () => {
    for (let n = 0; n < 12; n++) {
      const world = new QuicWorld(always)
      world.drop = ({ toServer }, index) => index === n >> 1 && toServer === (n & 1) > 0
      const connection = world.connect()
      assert.ok(
        world.run(() => connection.handshake.isConfirmed, 20_000),
        `${n}`,
      )
      assert.equal(world.accepted.length, 1)
    }
  })

  test('forged, changed and late Retry packets are not taken', () => {
    const world = new QuicWorld()
    const { connection, hello } = firstOf(world)
    const { crypto } = world
    const id = new Uint8Array(8).fill(3)
    const wrong = [
      retryPacket(crypto, connection.localId, id, id, new Uint8Array(30), 0),
      retryPacket(crypto, connection.localId, connection.originalDestination, connection.originalDestination, new Uint8Array(30), 0),
      retryPacket(crypto, connection.localId, id, connection.originalDestination, none, 0),
    ]
    const good = retryPacket(crypto, connection.localId, id, connection.originalDestination, new Uint8Array(30), 0)
    for (let at = 0; at < good.length; at++) {
      const changed = new Uint8Array(good)
      changed[at] = (changed[at] as number) ^ 0x10
      wrong.push(changed)
    }
    for (const bytes of wrong) world.inject(false, bytes)
    assert.equal(connection.retrySource, undefined)
    world.inject(true, hello)
    assert.ok(world.run(() => connection.handshake.isConfirmed, 5_000))
    world.inject(false, good)
    assert.equal(connection.retrySource, undefined, 'after anything else')
  })

  test('a token that is stolen, changed or old is of no use', () => {
    const world = new QuicWorld(always)
    const { hello } = firstOf(world)
    world.inject(true, hello)
    // The client's second hello, with the token, is kept back.
    world.run(() => world.flights.some(({ toServer }) => toServer), 1_000)
    const { bytes: second } = world.flights.splice(0).find(({ toServer }) => toServer) as Flight
    const answers = (from: number, bytes: Uint8Array, port = 5_000): number[][] => {
      const before = world.log.length
      world.inject(true, bytes, clientAddress(from, port))
      const types = world.log.slice(before).map((flight) => packetTypes(flight.bytes))
      world.flights = []
      return types
    }
    assert.deepEqual(answers(66, second), [[PacketType.initial]], 'another address is told INVALID_TOKEN')
    assert.deepEqual(answers(1, second, 5_001), [[PacketType.initial]], 'another port')
    const reader = new PacketReader().start(second, 0, second.length, localIdSize)
    reader.next()
    const changed = new Uint8Array(second)
    changed[reader.tokenStart + 12] = (changed[reader.tokenStart + 12] as number) ^ 1
    assert.deepEqual(answers(1, changed), [[PacketType.retry]], 'what is none of the server’s is as none')
    const otherId = forgerOf(world, new Uint8Array(8).fill(4)).packet(Level.initial, [{ type: 'PING' }], { token: tokenOf(second) })
    assert.deepEqual(answers(1, otherId), [[PacketType.initial]], 'another id')
    assert.deepEqual(world.accepted, [])
    nothingIsLeft(world)
    world.wallTime += 11_000
    assert.deepEqual(answers(1, second), [[PacketType.initial]], 'eleven seconds later')
    world.wallTime -= 11_000
    answers(1, second)
    assert.equal(world.accepted.length, 1, 'and as it is, it is good')
  })

  test('a client that is told INVALID_TOKEN knows why', () => {
    const world = new QuicWorld(always)
    const application = silent()
    const { hello } = firstOf(world, application)
    world.inject(true, hello)
    world.wallTime += 60_000
    assert.ok(world.run(() => application.error !== undefined, 5_000))
    assert.match(application.error?.message ?? '', /INVALID_TOKEN/)
  })

  test('a token of an earlier connection spares the Retry, from the same address and for a day', () => {
    const world = new QuicWorld(always)
    const application = silent()
    world.connected(application)
    assert.ok(world.run(() => application.tokens.length > 0, 1_000))
    const [token] = application.tokens as [Uint8Array]
    const retries = (what: Uint8Array): number => {
      const before = world.log.length
      const again = world.connect(silent(), what)
      assert.ok(world.run(() => again.handshake.isConfirmed, 5_000))
      return world.log.slice(before).filter(({ bytes }) => packetTypes(bytes)[0] === PacketType.retry).length
    }
    assert.equal(retries(token), 0)
    world.address = clientAddress(1, 6_000)
    assert.equal(retries(token), 0, 'another port')
    world.address = clientAddress(2)
    assert.equal(retries(token), 1, 'another address')
    world.address = clientAddress(1)
    world.wallTime += 90_000_000
    assert.equal(retries(token), 1, 'another day')
    assert.equal(retries(new Uint8Array(40)), 1, 'no token at all')
  })
})

describe('more than the server takes', () => {
  test('beyond maxConnections a client is refused, in one datagram no larger than its own', () => {
    const world = new QuicWorld({ limits: { maxConnections: 1 } })
    world.connected()
    const application = silent()
    const second = world.connect(application)
    assert.ok(world.run(() => application.error !== undefined, 1_000))
    assert.match(application.error?.message ?? '', /CONNECTION_REFUSED/)
    assert.deepEqual([world.server.connections.size, world.server.refused], [1, 1])
    assert.ok(world.run(() => !world.client.connections.has(second), 10_000))
  })

  test('a flood of hellos leaves no more than maxHandshakes, and that for handshakeTimeout only', () => {
    const world = new QuicWorld({ limits: { maxHandshakes: 20, retryAbove: 10 }, server: { handshakeTimeout: 1_000 } })
    world.drop = () => true
    for (let i = 0; i < 500; i++) {
      world.address = clientAddress(i % 250, 10_000 + i)
      const { hello, connection } = firstOf(world)
      world.inject(true, hello)
      connection.forget()
    }
    assert.deepEqual([world.server.connections.size, world.server.handshakes], [10, 10])
    world.pass(20_000)
    nothingIsLeft(world)
    const before = world.sessions.length
    for (let i = 0; i < 500; i++) {
      world.address = clientAddress(i % 250, 20_000 + i)
      // Spoofed: nothing comes back, so no token either.
      const id = new Uint8Array(8)
      new DataView(id.buffer).setUint32(0, i)
      world.inject(true, forgerOf(world, id).packet(Level.initial, [{ type: 'PING' }]))
    }
    assert.deepEqual([world.server.connections.size, world.server.handshakes], [10, 10])
    assert.equal(world.sessions.length, before, 'none of them came to TLS')
    world.pass(20_000)
    nothingIsLeft(world)
    assert.equal(world.crypto.openKeys, 0)
  })

  test('handshakes that fail at once count as well, while their connections say so', () => {
    const world = new QuicWorld({ limits: { retryAbove: 10 } })
    // A frame that Initial packets must not have (RFC 9000 §12.4), and a client that goes at once.
    for (const frame of [
      { type: 'MAX_DATA', maximum: 1 },
      { type: 'CONNECTION_CLOSE', code: 0, frameType: 0, reason: '' },
    ] as const) {
      for (let i = 0; i < 100; i++) {
        const id = world.crypto.random(8)
        world.inject(true, forgerOf(world, id).packet(Level.initial, [frame]))
      }
      assert.deepEqual([world.server.connections.size, world.server.handshakes, world.server.standing], [10, 0, 0])
      const client = world.connected()
      assert.notEqual(client.retrySource, undefined, 'it shows its address')
      client.close(0, '')
      world.pass(20_000)
      nothingIsLeft(world)
    }
  })

  test('forged hellos and rubbish end no handshake that goes on', () => {
    const world = new QuicWorld({ limits: { retryAbove: 1, maxHandshakes: 1 } })
    firstOf(world)
    const { hello } = firstOf(world)
    world.inject(true, hello)
    // It takes longer than others would have to wait for.
    world.drop = () => true
    world.pass(2_000)
    const count = world.log.length
    for (let i = 0; i < 100; i++) world.inject(true, forgerOf(world, world.crypto.random(8)).packet(Level.initial, [{ type: 'PING' }]))
    assert.deepEqual([world.server.handshakes, world.server.accepted, world.server.refused], [1, 1, 0])
    assert.ok(
      world.log.slice(count).every(({ bytes }) => packetTypes(bytes)[0] === PacketType.retry),
      'each is asked for its address',
    )
  })

  test('of handshakes that failed no more is left than may go on at once, and they make room for others', () => {
    const world = new QuicWorld({ limits: { retryAbove: 0, maxHandshakes: 20 } })
    for (let i = 0; i < 100; i++) {
      world.inject(true, forgerOf(world, world.crypto.random(8)).packet(Level.initial, [{ type: 'PING' }]))
      const { bytes } = world.log.at(-1) as Flight
      const retry = new PacketReader().start(bytes, 0, bytes.length, localIdSize)
      assert.ok(retry.next() && retry.type === PacketType.retry)
      const source = bytes.slice(retry.sourceStart, retry.sourceLimit)
      world.inject(true, forgerOf(world, source).packet(Level.initial, [{ type: 'MAX_DATA', maximum: 1 }], { token: tokenOf(bytes) }))
    }
    assert.deepEqual([world.server.connections.size, world.server.accepted, world.server.refused], [20, 100, 0])
    world.connected()
    world.pass(20_000)
    assert.equal(world.server.connections.size, 1)
  })

  test('Initial packets that cannot be opened cost nothing that stays, and no connection is made for them', (t) => {
    const world = new QuicWorld()
    const { hello, connection } = firstOf(world)
    connection.forget()
    // Every connection chooses an id for itself.
    const random = t.mock.method(world.crypto, 'random')
    for (let at = 60; at < 1_200; at += 7) {
      const broken = new Uint8Array(hello)
      broken[at] = (broken[at] as number) ^ 0xff
      world.inject(true, broken)
    }
    nothingIsLeft(world)
    assert.deepEqual([world.log.filter(({ toServer }) => !toServer).length, world.server.accepted, world.crypto.openKeys], [0, 0, 0])
    assert.equal(world.sessions.length, 1, 'of the client')
    assert.equal(random.mock.callCount(), 0)
    world.inject(true, hello)
    assert.deepEqual([world.server.accepted, random.mock.callCount() > 0], [1, true])
  })

  test('short ids get no answer, and closed servers refuse', () => {
    const world = new QuicWorld()
    world.inject(true, forgerOf(world, new Uint8Array(7)).packet(Level.initial, [{ type: 'PING' }]))
    assert.equal(world.log.length, 0)
    world.server.closed = true
    world.inject(true, forgerOf(world, new Uint8Array(8)).packet(Level.initial, [{ type: 'PING' }]))
    assert.deepEqual(
      world.log.map(({ bytes }) => packetTypes(bytes)),
      [[PacketType.initial]],
    )
    nothingIsLeft(world)
  })
})

describe('stateless reset (RFC 9000 §10.3)', () => {
  test('a server that lost its state says so to a client, whose connection ends', () => {
    const world = new QuicWorld()
    const application = silent()
    const connection = world.connected(application)
    world.pass(200)
    for (const each of world.server.connections) each.forget()
    const echo = new Echo(connection, 100)
    assert.ok(world.run(() => application.error !== undefined, 1_000))
    assert.equal(application.error?.code, 'PEER_RESET')
    assert.equal(echo.isClosed, false)
    assert.deepEqual([world.client.connections.size, world.client.keys], [0, 0], 'at once, without a word')
  })

  test('a reset with another token, or from another address, or hidden in a long packet, ends nothing', () => {
    const world = new QuicWorld()
    const application = silent()
    const connection = world.connected(application)
    const [server] = world.accepted as [QuicConnection]
    const reset = new Uint8Array(43)
    reset[0] = 0x41
    reset.set(world.server.resetToken(server.localId), 27)
    const wrong = new Uint8Array(reset)
    wrong[42] = (wrong[42] as number) ^ 1
    world.inject(false, wrong)
    world.inject(false, reset.subarray(0, 42))
    const long = new Uint8Array(reset)
    long[0] = 0xc1
    world.inject(false, long)
    world.inject(false, reset, clientAddress(99))
    assert.deepEqual([application.error], [undefined])
    const unused = world.server.resetToken(new Uint8Array(8))
    reset.set(unused, 27)
    world.inject(false, reset)
    assert.deepEqual([application.error], [undefined])
    reset.set(world.server.resetToken(server.localId), 27)
    world.inject(false, reset)
    assert.equal(application.error?.code, 'PEER_RESET')
    assert.equal(connection.closing.state, 'closed')
  })

  test('resets are smaller than what they answer, few in a second, and none answers the smallest: no two servers go on for ever', () => {
    const world = new QuicWorld()
    let packet: Uint8Array = new Uint8Array(1_200).fill(0x55)
    let answers = 0
    for (;;) {
      const before = world.log.length
      world.inject(true, packet)
      const answer = world.log[before]
      if (answer === undefined) break
      assert.ok(answer.bytes.length < packet.length)
      packet = answer.bytes
      answers++
    }
    assert.ok(answers > 0 && answers < 30)
    const flood = world.log.length
    for (let i = 0; i < 2_000; i++) world.inject(true, new Uint8Array(100).fill(0x55))
    assert.ok(world.log.length - flood <= 100)
    world.pass(500)
    const later = world.log.length
    for (let i = 0; i < 2_000; i++) world.inject(true, new Uint8Array(100).fill(0x55))
    assert.ok(world.log.length - later >= 40 && world.log.length - later <= 51)
  })
})

test('ten thousand connections, one after the other, leave nothing behind', () => {
  const world = new QuicWorld({ tls: { certificate: 400 }, client: { maxDatagramSize: 1_200 }, server: { maxDatagramSize: 1_200 } })
  for (let i = 0; i < 10_000; i++) {
    const connection = world.connected()
    connection.close(0, '')
    assert.ok(world.run(() => world.client.connections.size + world.server.connections.size === 0, 10_000))
    world.log.length = 0
    world.accepted.length = 0
    world.applications.length = 0
    assert.ok(world.sessions.splice(0).every(({ isClosed }) => isClosed))
    assert.equal(world.crypto.openKeys, 0)
  }
  assert.equal(world.server.accepted, 10_000)
  nothingIsLeft(world)
  assert.deepEqual([world.client.keys, world.client.handshakes], [0, 0])
})

describe('TLS that cannot begin', () => {
  const throws = (): never => {
    throw new Error('no TLS')
  }

  test('at a server ends that handshake, and the client hears of it', () => {
    const world = new QuicWorld({ openTls: throws })
    const application = silent()
    world.connect(application)
    assert.ok(world.run(() => application.error !== undefined, 5_000))
    assert.equal(application.error?.wireCode, 1)
    assert.ok(world.run(() => world.server.connections.size + world.client.connections.size === 0, 20_000))
    nothingIsLeft(world)
  })

  test('at a client is the error of who wants to connect, and leaves nothing', () => {
    const { client, crypto } = new QuicWorld()
    const route = { key: 'x', remote: clientAddress(1), local: clientAddress(2) }
    assert.throws(() => client.connect(route, silent(), undefined, throws, 0), /no TLS/)
    assert.deepEqual([client.connections.size, client.handshakes, client.standing, client.keys, crypto.openKeys], [0, 0, 0, 0, 0])
  })
})

test('the id that a client addressed first is known for a while after the handshake, and then no more', () => {
  const world = new QuicWorld()
  world.connected()
  const [server] = world.accepted as [QuicConnection]
  assert.equal(world.server.keys, 1 + server.localIds.count)
  world.pass(10_000)
  assert.equal(server.alias, undefined)
  assert.equal(world.server.keys, server.localIds.count)
})

test('a token that leaves no room for the hello is not shown', () => {
  const world = new QuicWorld()
  const connection = world.connect(silent(), new Uint8Array(1_150))
  assert.ok(world.run(() => connection.handshake.isConfirmed, 5_000))
})

test('whatever comes, nothing throws, and nothing of it stays', () => {
  const world = new QuicWorld({ seed: 7 })
  const { random } = world
  const { hello } = firstOf(world)
  world.pass(100_000)
  for (let i = 0; i < 5_000; i++) {
    const bytes = random.chance(0.3) ? new Uint8Array(random.bytes(random.integer(0, 1_300))) : new Uint8Array(hello)
    for (let flips = random.integer(1, 4); flips > 0 && bytes.length > 0; flips--)
      bytes[random.integer(0, Math.min(bytes.length, 60) - 1)] = random.integer(0, 255)
    const cut = random.chance(0.3) ? random.integer(0, bytes.length) : bytes.length
    world.inject(true, bytes.subarray(0, cut), clientAddress(random.integer(1, 200)))
    world.inject(false, bytes.subarray(0, cut))
    world.log.length = 0
    world.flights = []
    // Time goes on, so that the server may speak again.
    world.now += 20
  }
  world.pass(60_000)
  nothingIsLeft(world)
})
