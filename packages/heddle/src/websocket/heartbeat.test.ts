import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, UsageError } from '../http/index.ts'
import { Recording, worldTest } from '../testing/index.ts'
import { Heartbeat } from './heartbeat.ts'
import { Socket } from './socket.ts'
import { versions, WebSocketStage } from './stage.test.ts'

const second = 1_000

test('options that are unknown or wrong are refused', () => {
  assert.throws(() => new Heartbeat({ intervall: 1 } as never), UsageError)
  assert.throws(() => new Heartbeat({ interval: 0 }), UsageError)
  assert.throws(() => new Heartbeat({ timeout: Number.NaN }), UsageError)
})

for (const version of versions) {
  worldTest(`${version}: peers that answer live on; those that talk are not asked`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version, { http2: { pingInterval: Infinity } })
    const [client, server] = stage.sockets()
    const heartbeat = new Heartbeat({ interval: 30 * second, timeout: 10 * second, clock: world })
    let pings = 0
    client.handler = { onMessage: () => {}, onPing: () => pings++ }
    heartbeat.watch(server)
    heartbeat.watch(server)
    assert.equal(heartbeat.size, 1)
    world.advance(120 * second)
    assert.equal(server.state, 'open')
    assert.ok(pings >= 2 && pings <= 4, `${pings} Pings in two minutes of silence`)
    const before = pings
    for (let i = 0; i < 12; i++) {
      client.post('here I am')
      world.advance(10 * second)
    }
    assert.ok(pings - before <= 1, `${pings - before} Pings to one that talks`)
    client.close()
    await world.complete(Promise.all([client.closed, server.closed]))
    assert.equal(heartbeat.size, 0)
    stage.finish()
  })

  worldTest(`${version}: a peer that is gone without a word is found, in time`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version, { http2: { pingInterval: Infinity } })
    const [clientEnd, serverEnd] = stage.tunnel()
    clientEnd.handler = new Recording({ autoConsume: false })
    const server = new Socket(serverEnd, { role: 'server', clock: world })
    const heartbeat = new Heartbeat({ interval: 5 * second, timeout: 2 * second, clock: world })
    heartbeat.watch(server)
    const read = server.read()
    read.catch(() => {})
    world.advance(6_900)
    assert.equal(server.state, 'open')
    world.advance(200)
    await assert.rejects(read, { code: 'IDLE_TIMEOUT' })
    assert.equal((await world.complete(server.closed)).error?.code, 'IDLE_TIMEOUT')
    assert.equal(heartbeat.size, 0)
    clientEnd.cancel(CancelReason.Cancelled)
    stage.finish()
  })

  worldTest(`${version}: a slow download and a program that does not read are no silence`, { seeds: 2 }, async (world) => {
    const link = { bandwidth: 20_000, capacity: 20_000 }
    const stage = new WebSocketStage(world, version, { link, http2: { streamWindow: 65_536, maxWindow: 65_536, pingInterval: Infinity } })
    const [client, server] = stage.sockets({ limits: { maxUnreadSize: 0 } })
    const heartbeat = new Heartbeat({ interval: second, timeout: second, clock: world })
    heartbeat.watch(server)
    heartbeat.watch(client)
    // 20 s of one message, during which neither Pings nor Pongs get through.
    const large = server.write(new Uint8Array(400_000))
    assert.equal(((await world.complete(client.read())) as Uint8Array).length, 400_000)
    await world.complete(large)
    // The program on the client's side leaves messages lie: there no Ping is answered, and no Pong is expected.
    heartbeat.unwatch(server)
    server.post('one')
    server.post('two')
    world.advance(60 * second)
    assert.equal(client.state, 'open')
    heartbeat.stop()
    assert.equal(heartbeat.size, 0)
    client.abort()
    await world.complete(Promise.all([client.closed, server.closed]))
    stage.finish()
  })

  worldTest(`${version}: one timer for all, and each is asked in its turn`, { seeds: 1 }, async (world) => {
    const stage = new WebSocketStage(world, 'h2', { http2: { pingInterval: Infinity } })
    const heartbeat = new Heartbeat({ interval: 10 * second, timeout: second, clock: world })
    const armed = world.armed
    const pairs = Array.from({ length: 20 }, () => {
      const pair = stage.sockets()
      heartbeat.watch(pair[1])
      world.advance(100)
      return pair
    })
    assert.equal(world.armed, armed + 1)
    world.advance(60 * second)
    assert.ok(pairs.every(([, server]) => server.state === 'open'))
    for (const [, server] of pairs.slice(0, 10)) heartbeat.unwatch(server)
    assert.equal(heartbeat.size, 10)
    for (const [client] of pairs) client.close()
    await world.complete(Promise.all(pairs.flat().map((socket) => socket.closed)))
    assert.equal(heartbeat.size, 0)
    stage.finish()
  })
}
