/** Peers that move, others who pretend that they did, and paths that carry less than it seemed (RFC 9000 §8.2, §9, §14). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Level } from '../native/index.ts'
import { clientAddress, Echo, PlainCrypto, QuicForger, QuicWorld, silent, type Flight, type QuicWorldOptions } from '../testing/index.ts'
import type { QuicConnection } from './connection.ts'
import { Ecn } from './ecn.ts'

interface Ends {
  readonly world: QuicWorld
  readonly client: QuicConnection
  readonly server: QuicConnection
}

function connected(options: QuicWorldOptions = {}): Ends {
  const world = new QuicWorld(options)
  const client = world.connected()
  // Both have given each other ids.
  world.pass(300)
  const [server] = world.accepted as [QuicConnection]
  return { world, client, server }
}

function forgerOf({ client, server }: Ends): QuicForger {
  const crypto = new PlainCrypto((byteCount) => new Uint8Array(byteCount))
  return new QuicForger(crypto, {
    isServer: false,
    original: client.originalDestination,
    destination: server.localId,
    source: client.localId,
  })
}

function completes({ world }: Ends, echo: Echo, size: number): void {
  assert.ok(
    world.run(() => echo.isClosed, 60_000),
    'the stream ends',
  )
  assert.deepEqual([echo.came, echo.isRight], [size, true])
}

describe('a peer that moves', () => {
  test('another port is the same path: it is validated, and the window stays', () => {
    const ends = connected()
    const { world, client, server } = ends
    const echo = new Echo(client, 400_000)
    world.run(() => echo.came > 150_000)
    const { congestion } = server.recovery
    const id = server.remoteIds.current
    world.address = clientAddress(1, 5_001)
    completes(ends, echo, 400_000)
    assert.equal(server.paths.current.route.remote.port, 5_001)
    assert.ok(server.paths.current.validated)
    assert.equal(server.recovery.congestion, congestion)
    assert.notDeepEqual(server.remoteIds.current, id)
  })

  test('another address is another path: nothing is known of it', () => {
    const ends = connected()
    const { world, client, server } = ends
    const echo = new Echo(client, 400_000)
    world.run(() => echo.came > 150_000)
    const { congestion } = server.recovery
    const before = world.log.length
    world.address = clientAddress(2)
    completes(ends, echo, 400_000)
    assert.equal(server.paths.current.route.remote.address, clientAddress(2).address)
    assert.ok(server.paths.current.validated)
    assert.notEqual(server.recovery.congestion, congestion)
    // RFC 9000 §9.3.3: the old address was asked, too, and nobody was there.
    const toOld = world.log.slice(before).filter(({ toServer, to }) => !toServer && to.address === clientAddress(1).address)
    assert.ok(toOld.some(({ bytes }) => bytes.length === 1_200))
    world.pass(5_000)
    assert.equal(server.paths.other, undefined)
  })

  test('thirty moves use up no ids: those given up are replaced', () => {
    const ends = connected()
    const { world, client, server } = ends
    const seen = new Set<string>()
    for (let i = 2; i < 32; i++) {
      world.address = clientAddress(i)
      const echo = new Echo(client, 3_000)
      completes(ends, echo, 3_000)
      world.pass(4_000)
      seen.add(server.remoteIds.current.join())
      assert.ok(server.paths.current.validated)
    }
    assert.equal(seen.size, 30, 'each address has an id of its own')
    assert.deepEqual([server.remoteIds.count, client.localIds.count, server.remoteIds.pendingRetirements], [8, 8, 0])
    // Two of the server, which uses one id, and eight of the client.
    client.close(0, '')
    assert.ok(world.run(() => world.client.connections.size + world.server.connections.size === 0))
    assert.deepEqual([world.client.keys, world.server.keys], [0, 0])
  })

  test('two moves, one right after the other, are one', () => {
    const ends = connected()
    const { world, client, server } = ends
    const echo = new Echo(client, 300_000)
    world.run(() => echo.came > 100_000)
    world.address = clientAddress(2)
    world.pass(5)
    world.address = clientAddress(3)
    completes(ends, echo, 300_000)
    assert.equal(server.paths.current.route.remote.address, clientAddress(3).address)
    assert.ok(server.paths.current.validated)
  })

  test('moves at any time over bad networks lose nothing', () => {
    for (let seed = 1; seed <= 40; seed++) {
      const ends = connected({ seed, loss: (seed % 4) * 0.03, jitter: (seed % 3) * 15, duplicates: 0.05, client: { keepAlive: 500 } })
      const { world, client } = ends
      // Who waits in silence moves unnoticed.
      client.keepAlive(true)
      const echo = new Echo(client, 100_000)
      for (let move = 0; move < 5 && !echo.isClosed; move++) {
        const until = world.random.integer(0, 100_000)
        world.run(() => echo.came >= until, 3_000)
        world.address = clientAddress(world.random.integer(1, 4), 5_000 + world.random.integer(0, 2))
      }
      assert.ok(
        world.run(() => echo.isClosed, 60_000),
        `seed ${seed}`,
      )
      assert.ok(echo.isRight, `seed ${seed}`)
    }
  })

  test('before the handshake is confirmed packets from elsewhere are not read', () => {
    const world = new QuicWorld()
    const client = world.connect()
    world.run(() => world.accepted.length === 1)
    const [server] = world.accepted as [QuicConnection]
    const own = world.address
    world.address = clientAddress(9)
    world.pass(40)
    assert.equal(server.handshake.isComplete, false)
    assert.equal(server.paths.other, undefined)
    world.address = own
    assert.ok(world.run(() => client.handshake.isConfirmed, 10_000))
  })

  test('a client hears nobody but the server’s address', () => {
    const { world, client } = connected()
    const application = silent()
    client.application = application
    const [server] = world.accepted as [QuicConnection]
    server.close(7, 'bye')
    world.flush()
    const [{ bytes }] = world.flights.splice(0) as [Flight]
    world.inject(false, bytes, clientAddress(77))
    assert.equal(client.closing.state, 'open')
    world.inject(false, bytes)
    assert.equal(client.closing.state, 'draining')
  })
})

describe('others who send the peer’s packets from elsewhere', () => {
  /** The next packets of the client arrive from another address first. */
  function steal(world: QuicWorld, count: number): void {
    let left = count
    world.drop = (flight) => {
      if (!flight.toServer || left <= 0) return false
      left--
      world.flights.unshift({ ...flight, at: world.now, from: clientAddress(66) })
      return false
    }
  }

  test('copies that are faster than the path turn nothing for long: the peer answers at its own address', () => {
    const ends = connected()
    const { world, client, server } = ends
    const echo = new Echo(client, 300_000)
    world.run(() => echo.came > 100_000)
    steal(world, 5)
    completes(ends, echo, 300_000)
    assert.equal(server.paths.current.route.remote.address, clientAddress(1).address)
    world.pass(10_000)
    assert.equal(server.paths.other?.route.remote.address, undefined)
    assert.ok(server.paths.current.validated)
  })

  test('an address that never answers is left after a while, and the way back is the old one', () => {
    const ends = connected()
    const { world, server } = ends
    world.inject(true, forgerOf(ends).packet(Level.application, [{ type: 'PING' }], { size: 100 }), clientAddress(66))
    assert.equal(server.paths.current.route.remote.address, clientAddress(66).address)
    world.drop = ({ toServer }) => toServer
    world.pass(2_900)
    assert.equal(server.paths.current.route.remote.address, clientAddress(66).address)
    world.drop = undefined
    world.pass(1_000)
    assert.equal(server.paths.current.route.remote.address, clientAddress(1).address)
    assert.equal(server.closing.state, 'open')
    const spoofed = [...world.sent].find(([key]) => key.startsWith(clientAddress(66).address))
    assert.ok((spoofed?.[1] ?? 0) <= 300, 'three times what came from there')
  })

  test('with nobody at either address it is the old one again, until the idle timeout', () => {
    const ends = connected()
    const { world, server } = ends
    world.inject(true, forgerOf(ends).packet(Level.application, [{ type: 'PING' }]), clientAddress(66))
    world.drop = ({ toServer }) => toServer
    world.pass(5_000)
    assert.deepEqual(server.paths.current.route.remote, clientAddress(1))
    assert.ok(world.run(() => server.closing.state === 'closed', 60_000))
    assert.equal(world.applications[0]?.error?.code, 'IDLE_TIMEOUT')
    assert.equal(world.server.keys, 0)
  })

  test('a flood of packets from a hundred addresses sends no more than three times its octets to any', () => {
    const ends = connected()
    const { world, client, server } = ends
    const forger = forgerOf(ends)
    for (let i = 0; i < 100; i++) {
      world.inject(true, forger.packet(Level.application, [{ type: 'PING' }], { size: 60 + i * 10 }), clientAddress(100 + i))
      world.pass(3)
    }
    const echo = new Echo(client, 20_000)
    world.run(() => echo.isClosed, 20_000)
    // The forger's numbers are ahead of the client's, whose packets are no newest ones: it is heard all the same.
    assert.ok(echo.isRight)
    assert.ok(server.remoteIds.count <= 8)
  })

  test('the challenge to a new address is full if a full datagram came, and as large as it may be otherwise', () => {
    for (const size of [60, 100, 1_200]) {
      const ends = connected()
      const { world } = ends
      const before = world.log.length
      world.inject(true, forgerOf(ends).packet(Level.application, [{ type: 'PING' }], { size }), clientAddress(66))
      const [first] = world.log.slice(before).filter(({ to }) => to.address === clientAddress(66).address)
      assert.equal(first?.bytes.length, Math.min(3 * size, 1_200))
    }
  })

  test('an acknowledgement that is due and may not leave waits without a turn of the clock', () => {
    const ends = connected()
    const { world, server } = ends
    world.drop = ({ toServer }) => toServer
    const late = forgerOf(ends)
    late.packetNumber = 4_000
    world.inject(true, forgerOf(ends).packet(Level.application, [{ type: 'PING' }]), clientAddress(66))
    assert.equal(server.paths.current.allowance, 0)
    world.inject(true, late.packet(Level.application, [{ type: 'PING' }]))
    assert.ok(server.spaces[2].received.shouldAckNow)
    // The world ends a loop without end.
    world.pass(2_000)
    world.pass(2_000)
    assert.equal(server.spaces[2].received.shouldAckNow, false, 'the old path is the way back')
  })

  test('datagrams that cannot be opened make no path', () => {
    const { world, server } = connected()
    for (let i = 0; i < 50; i++) {
      const bytes = new Uint8Array(world.random.bytes(100))
      bytes[0] = 0x40
      bytes.set(server.localId, 1)
      world.inject(true, bytes, clientAddress(i + 10))
    }
    assert.equal(server.paths.other, undefined)
    assert.deepEqual(server.paths.current.route.remote, clientAddress(1))
  })
})

describe('probing (RFC 9000 §9.1)', () => {
  test('a challenge from another address is answered there, in a full datagram if a full one came, and nobody moves', () => {
    for (const size of [100, 1_200]) {
      const ends = connected()
      const { world, server } = ends
      const before = world.log.length
      world.inject(
        true,
        forgerOf(ends).packet(Level.application, [{ type: 'PATH_CHALLENGE', data: new Uint8Array(8).fill(5) }], { size }),
        clientAddress(8),
      )
      const answers = world.log.slice(before).filter(({ to }) => to.address === clientAddress(8).address)
      assert.deepEqual(
        answers.map(({ bytes }) => bytes.length),
        [Math.min(3 * size, 1_200)],
      )
      assert.deepEqual(server.paths.current.route.remote, clientAddress(1))
      assert.equal(server.paths.other?.validated, false)
    }
  })

  test('challenges on the path itself are answered in full datagrams, many in one', () => {
    const ends = connected()
    const { world } = ends
    const before = world.log.length
    const challenges = Array.from({ length: 60 }, (_, i) => ({ type: 'PATH_CHALLENGE', data: new Uint8Array(8).fill(i) }) as const)
    world.inject(true, forgerOf(ends).packet(Level.application, challenges))
    const answers = world.log.slice(before).filter(({ toServer }) => !toServer)
    assert.deepEqual(
      answers.map(({ bytes }) => bytes.length),
      [1_200],
    )
  })
})

describe('the size of datagrams (RFC 9000 §14.3)', () => {
  for (const mtu of [1_200, 1_230, 1_300, 1_440, 1_500]) {
    test(`a path of ${mtu} octets`, () => {
      const ends = connected({ mtu })
      const { world, client, server } = ends
      completes(ends, new Echo(client, 300_000), 300_000)
      world.pass(5_000)
      const most = Math.min(mtu, 1_452)
      for (const { mtu: found } of [client, server]) assert.ok(found.size <= most && found.size > most - 40, `${found.size}`)
    })
  }

  test('a path that becomes narrower later is noticed, and all arrives', () => {
    const ends = connected()
    const { world, client, server } = ends
    const echo = new Echo(client, 600_000)
    world.run(() => echo.came > 100_000)
    assert.deepEqual([client.mtu.size, server.mtu.size], [1_452, 1_452])
    world.options = { ...world.options, mtu: 1_250 }
    completes(ends, echo, 600_000)
    assert.ok(client.mtu.size <= 1_250 && server.mtu.size <= 1_250, `${client.mtu.size} ${server.mtu.size}`)
  })

  test('losses of a full queue do not make datagrams smaller', () => {
    const ends = connected()
    const { world, client } = ends
    const echo = new Echo(client, 600_000)
    let count = 0
    // Twelve in a row are lost, now and then.
    world.drop = ({ toServer }) => toServer && count++ % 150 > 137
    completes(ends, echo, 600_000)
    assert.equal(client.mtu.size, 1_452)
  })
})

describe('ECN (RFC 9000 §13.4)', () => {
  function markedBy(mark: (ecn: number) => number): Ends {
    const ends = connected()
    const { world, client } = ends
    world.drop = (flight) => {
      ;(flight as { ecn: number }).ecn = mark(flight.ecn)
      return false
    }
    completes(ends, new Echo(client, 200_000), 200_000)
    return ends
  }

  test('a path that carries marks is used with them', () => {
    const { client, server } = markedBy((ecn) => ecn)
    assert.deepEqual([client.recovery.ecn.mark, server.recovery.ecn.mark], [Ecn.ect0, Ecn.ect0])
    assert.ok((server.spaces[2].received.ecnTotals?.ect0 ?? 0) > 100)
  })

  test('a path that takes marks away is used without', () => {
    const { client, server } = markedBy(() => 0)
    assert.deepEqual([client.recovery.ecn.mark, server.recovery.ecn.mark], [Ecn.none, Ecn.none])
  })

  test('marks of congestion make the window smaller, and nothing is sent again', () => {
    let count = 0
    const { client } = markedBy((ecn) => (ecn === Ecn.ect0 && count++ % 20 === 0 ? Ecn.ce : ecn))
    assert.equal(client.recovery.lostCount, 0)
    assert.ok(!client.recovery.congestion.isSlowStart)
  })
})
