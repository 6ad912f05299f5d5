/** The handshake of two connections, over networks that lose, double and reorder datagrams (RFC 9000 §7, §8.1, §14.1). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Echo, packetTypes, QuicWorld, silent, type Flight, type QuicWorldOptions } from '../testing/index.ts'
import type { QuicConnection } from './connection.ts'
import { PacketType } from './packet.ts'

/** The handshake is confirmed at both ends, and a stream carries what it should. */
function completes(world: QuicWorld, connection: QuicConnection, what: string): void {
  assert.ok(
    world.run(() => connection.handshake.isConfirmed, 30_000),
    `${what}: the handshake`,
  )
  const echo = new Echo(connection, 5_000)
  assert.ok(
    world.run(() => echo.isClosed, 30_000),
    `${what}: the stream`,
  )
  assert.ok(echo.isRight && echo.came === 5_000, what)
  assert.equal(world.accepted.length, 1, `${what}: one connection`)
}

/** A client's hello has two datagrams, a server's flight three: all that may come apart does. */
const large: QuicWorldOptions = { tls: { clientHello: 1_800, certificate: 3_000 } }

describe('datagrams', () => {
  test('a client fills its datagrams with Initial packets, and packets share datagrams', () => {
    const world = new QuicWorld()
    world.connected()
    const flights = world.log.map(({ toServer, bytes }) => `${toServer ? '>' : '<'} ${packetTypes(bytes).join('+')}`)
    assert.deepEqual(flights.slice(0, 4), ['> 0', '< 0+2', '< 2', '> 0+2+4'])
    for (const { toServer, bytes } of world.log) {
      if (packetTypes(bytes).includes(PacketType.initial)) assert.ok(bytes.length >= 1_200, toServer ? 'of the client' : 'of the server')
    }
  })

  test('a server does not read Initial packets in small datagrams', () => {
    const world = new QuicWorld()
    const connection = world.connect()
    world.drop = ({ toServer }) => toServer
    world.flush()
    const [first] = world.log as [Flight]
    // RFC 9000 §14.1: the packet is whole, but the datagram is cut behind it; so it cannot be, and never becomes a connection.
    world.inject(true, first.bytes.subarray(0, 1_199))
    assert.equal(world.server.connections.size, 0)
    world.inject(true, first.bytes)
    assert.equal(world.server.connections.size, 1)
    world.drop = undefined
    completes(world, connection, 'later')
  })

  test('a hello of two datagrams is read in either order, and each alone leaves no handshake behind', () => {
    for (const isReversed of [false, true]) {
      const world = new QuicWorld(large)
      const connection = world.connect()
      world.flush()
      const hello = world.flights.splice(0)
      assert.ok(hello.length >= 2)
      if (isReversed) hello.reverse()
      for (const { bytes } of hello) world.inject(true, bytes)
      assert.equal(world.server.connections.size, 1)
      completes(world, connection, isReversed ? 'reversed' : 'in order')
    }
  })
})

describe('loss', () => {
  const flightsOf = (options: QuicWorldOptions): number => {
    const world = new QuicWorld(options)
    world.connected()
    return world.log.length
  }

  for (const [name, options] of [
    ['small flights', {}],
    ['large flights', large],
  ] as const) {
    test(`any one datagram may be lost, of ${name}`, () => {
      const count = flightsOf(options)
      assert.ok(count >= 6)
      for (const toServer of [true, false]) {
        for (let n = 0; n < count; n++) {
          const world = new QuicWorld(options)
          world.drop = (flight, index) => flight.toServer === toServer && index === n
          completes(world, world.connect(), `${toServer ? 'to the server' : 'to the client'} ${n}`)
        }
      }
    })

    test(`any two datagrams may be lost, of ${name}`, () => {
      for (let pair = 0; pair < 64; pair++) {
        const world = new QuicWorld(options)
        world.drop = ({ toServer }, index) => index === (toServer ? pair & 7 : pair >> 3)
        completes(world, world.connect(), `${pair}`)
      }
    })

    test(`any one datagram may come twice, or late, of ${name}`, () => {
      for (const [late, stays] of [
        [0, true],
        [35, false],
        [400, false],
        [1_500, true],
      ] as const) {
        for (let n = 0; n < 16; n++) {
          const world = new QuicWorld(options)
          world.drop = (flight, index) => {
            if (index !== n >> 1 || flight.toServer !== (n & 1) > 0) return false
            world.flights.push({ ...flight, bytes: flight.bytes.slice(), at: flight.at + late })
            world.flights.sort((a, b) => a.at - b.at)
            return !stays
          }
          completes(world, world.connect(), `${n} ${late}`)
          // What was late comes to nobody, or changes nothing.
          world.pass(3_000)
          assert.equal(world.server.connections.size, 1)
        }
      }
    })
  }

  test('any network that lets half of the datagrams through is enough', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const world = new QuicWorld({
        seed,
        loss: (seed % 6) / 10,
        jitter: seed % 3 === 0 ? 0 : 40,
        duplicates: 0.2,
        client: { handshakeTimeout: 60_000 },
        server: { handshakeTimeout: 60_000 },
        tls: { clientHello: 300 + (seed % 4) * 700, certificate: (seed % 5) * 1_300 },
      })
      const connection = world.connect()
      assert.ok(
        world.run(() => connection.handshake.isConfirmed, 60_000),
        `seed ${seed}`,
      )
      const echo = new Echo(connection, 3_000)
      assert.ok(
        world.run(() => echo.isClosed, 60_000),
        `seed ${seed}: stream`,
      )
      assert.ok(echo.isRight)
    }
  })
})

describe('an address that is not validated (RFC 9000 §8.1)', () => {
  test('a server with a large certificate waits for the client at three times what came', () => {
    const patient = { handshakeTimeout: 60_000 }
    const world = new QuicWorld({ tls: { certificate: 20_000 }, client: patient, server: patient })
    const connection = world.connect()
    world.drop = ({ toServer }, index) => toServer && index > 0
    world.pass(9_000)
    const [received] = world.received.values()
    const [sent] = world.sent.values()
    assert.deepEqual([received, sent], [1_200, 3_600])
    const [server] = world.accepted as [QuicConnection]
    // Nothing it could do would help, so it waits for nothing but the end of the handshake's time.
    assert.ok(server.deadline >= world.now + 10_000, `${server.deadline}`)
    world.drop = undefined
    completes(world, connection, 'at last')
  })

  test('a client that has nothing to send probes, so that the server may go on', () => {
    const world = new QuicWorld({ tls: { certificate: 12_000 } })
    const connection = world.connect()
    let lost = 0
    // All acknowledgements are lost: only probes come through.
    world.drop = ({ toServer, bytes }, index) => toServer && index > 0 && bytes.length > 0 && lost++ < 3
    completes(world, connection, 'probes')
    assert.equal(lost > 3, true)
  })

  test('the end of a handshake that failed is told within the same limit', () => {
    const world = new QuicWorld({ tls: { certificate: 20_000 }, server: { handshakeTimeout: 500 } })
    world.connect()
    world.drop = ({ toServer }, index) => toServer && index > 0
    world.pass(5_000)
    const [received = 0] = world.received.values()
    const [sent = 0] = world.sent.values()
    assert.ok(sent <= 3 * received)
    assert.equal(world.server.connections.size, 0)
  })
})

describe('time', () => {
  test('a handshake that nobody answers is given up, with nothing left', () => {
    const application = silent()
    const world = new QuicWorld({ client: { handshakeTimeout: 2_000 } })
    world.drop = () => true
    world.connect(application)
    assert.ok(world.run(() => world.client.connections.size === 0, 20_000))
    assert.equal(application.error?.code, 'CONNECT_TIMEOUT')
    assert.deepEqual([world.client.keys, world.client.handshakes, world.crypto.openKeys], [0, 0, 0])
    // It backs off: few datagrams in two seconds.
    assert.ok(world.log.length < 12, `${world.log.length}`)
  })

  test('a client that falls silent leaves nothing at the server', () => {
    const world = new QuicWorld({ server: { handshakeTimeout: 2_000 } })
    const connection = world.connect()
    world.drop = ({ toServer }, index) => toServer && index > 0
    assert.ok(world.run(() => world.server.connections.size === 1, 1_000))
    assert.ok(world.run(() => world.server.connections.size === 0, 20_000))
    assert.equal(world.applications[0]?.error?.code, 'CONNECT_TIMEOUT')
    assert.deepEqual([world.server.keys, world.server.handshakes], [0, 0])
    connection.close(0, '')
  })
})

test('1-RTT packets that overtake the end of the handshake wait for it, and are read then', () => {
  const world = new QuicWorld({ accept: (application) => application })
  const application = silent()
  const connection = world.connect(application)
  assert.ok(world.run(() => connection.handshake.isComplete, 1_000))
  const echo = new Echo(connection, 2_000)
  // The datagram with the client's last flight is late by 300 ms, what follows is not.
  const isFinished = ({ bytes }: Flight): boolean => packetTypes(bytes).includes(PacketType.handshake)
  world.drop = (flight) => {
    if (!flight.toServer || !isFinished(flight)) return false
    world.flights.push({ ...flight, bytes: flight.bytes.slice(), at: flight.at + 100 })
    world.flights.sort((a, b) => a.at - b.at)
    return true
  }
  world.run(() => world.flights.length === 0, 15)
  assert.ok(world.run(() => echo.isClosed, 5_000))
  assert.ok(echo.isRight)
})

test('Handshake packets that overtake the ServerHello wait for it, and are read then', () => {
  const world = new QuicWorld({ tls: { certificate: 2_000 } })
  const connection = world.connect()
  let isFirst = true
  world.drop = (flight) => {
    if (flight.toServer || !isFirst) return false
    isFirst = false
    world.flights.push({ ...flight, bytes: flight.bytes.slice(), at: flight.at + 5 })
    world.flights.sort((a, b) => a.at - b.at)
    return true
  }
  assert.ok(world.run(() => connection.handshake.isComplete, 5_000))
  // One round trip and what was late: nothing was sent twice for it.
  assert.equal(world.now, 1_025)
})
