/** Key updates of 1-RTT packets, while streams go both ways (RFC 9001 §6). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Level } from '../native/index.ts'
import { Echo, PlainCrypto, QuicForger, QuicWorld, type QuicWorldOptions } from '../testing/index.ts'
import type { QuicConnection } from './connection.ts'

/** Both ends update whenever they may while `size` octets go there and back, six times; returns how often each did. */
function updates(options: QuicWorldOptions, size: number): { client: number; server: number } {
  const world = new QuicWorld(options)
  const client = world.connected()
  const [server] = world.accepted as [QuicConnection]
  for (let round = 0, turn = 0; round < 6; round++) {
    const echo = new Echo(client, size)
    const isDone = world.run(() => {
      const end = turn++ % 2 === 0 ? client : server
      if (world.random.chance(0.1)) end.applicationKeys.update()
      return echo.isClosed
    }, 120_000)
    assert.ok(isDone, `seed ${options.seed}`)
    assert.ok(echo.isRight && echo.came === size)
    // The keys of the phase before are kept for a while, in which there is no other update.
    world.pass(300)
  }
  assert.deepEqual([client.closing.state, server.closing.state], ['open', 'open'])
  const phases = { client: client.applicationKeys.writePhase, server: server.applicationKeys.writePhase }
  client.close(0, '')
  assert.ok(world.run(() => world.client.connections.size + world.server.connections.size === 0))
  assert.equal(world.crypto.openKeys, 0, 'keys of phases that are over are let go')
  return phases
}

test('both ends update again and again, and every packet is read', () => {
  const { client, server } = updates({ seed: 1 }, 300_000)
  assert.ok(client >= 3, `${client} phases`)
  assert.ok(Math.abs(client - server) <= 1)
})

test('updates over networks that lose, double and reorder', () => {
  let phases = 0
  for (let seed = 1; seed <= 25; seed++) {
    const options = { seed, loss: (seed % 5) * 0.02, jitter: (seed % 4) * 10, duplicates: 0.1 }
    phases += updates(options, 30_000).client
  }
  assert.ok(phases > 40, `${phases}`)
})

test('an update is due before the keys have sealed all they may, and goes unnoticed', () => {
  const world = new QuicWorld()
  const client = world.connected()
  client.applicationKeys.confidentialityLimit = 600
  const echo = new Echo(client, 600_000)
  assert.ok(world.run(() => echo.isClosed, 60_000))
  assert.ok(echo.isRight)
  assert.ok(client.applicationKeys.writePhase >= 1)
})

test('keys that may seal no more end the connection without a packet', () => {
  const world = new QuicWorld()
  const client = world.connected()
  world.pass(500)
  client.applicationKeys.confidentialityLimit = 50
  // The peer acknowledges nothing, so there is no update.
  world.drop = ({ toServer }) => !toServer
  const before = world.log.length
  new Echo(client, 1_000_000)
  for (let i = 0; i < 40 && client.closing.state === 'open'; i++) world.pass(500)
  assert.ok(world.log.slice(before).filter(({ toServer }) => toServer).length <= 60)
  assert.ok(world.run(() => world.client.connections.size === 0, 60_000))
})

test('the first packet of a new phase may come from far ahead, and those of the old one after it', () => {
  const world = new QuicWorld()
  const client = world.connected()
  world.pass(500)
  const [server] = world.accepted as [QuicConnection]
  const crypto = new PlainCrypto((byteCount) => new Uint8Array(byteCount))
  const end = { isServer: false, original: client.originalDestination, destination: server.localId, source: client.localId }
  const forger = new QuicForger(crypto, end)
  const old = forger.packet(Level.application, [{ type: 'STREAM', streamId: 0, offset: 0, data: new Uint8Array(5), fin: false }])
  world.inject(true, forger.packet(Level.application, [{ type: 'PING' }], { updates: true }))
  assert.equal(server.applicationKeys.readPhase, 1)
  assert.equal(server.applicationKeys.writePhase, 1)
  world.inject(true, old)
  assert.equal(world.applications[0]?.streams.length, 1)
  // RFC 9001 §6.5: after three probe timeouts the old keys are gone.
  const late = new QuicForger(crypto, end)
  late.packetNumber = 4_900
  const tooLate = late.packet(Level.application, [{ type: 'STREAM', streamId: 4, offset: 0, data: new Uint8Array(5), fin: false }])
  world.pass(3 * server.probeTimeout + 1)
  world.inject(true, tooLate)
  assert.equal(world.applications[0]?.streams.length, 1)
  assert.equal(server.closing.state, 'open')
})
