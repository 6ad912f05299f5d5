import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, UsageError } from '../http/index.ts'
import { Recording, worldTest, World } from '../testing/index.ts'
import { SocketGroup } from './group.ts'
import { prepare } from './prepared-message.ts'
import { Socket } from './socket.ts'
import { versions, WebSocketStage } from './stage.test.ts'

test('options that are unknown or wrong are refused', async () => {
  assert.throws(() => new SocketGroup({ hartbeat: true } as never), UsageError)
  assert.throws(() => new SocketGroup({ heartbeat: { intervall: 1 } as never }), UsageError)
  assert.throws(() => new SocketGroup().close({ code: 1005 }), UsageError)
  assert.throws(() => new SocketGroup().close({ deadline: -1 }), UsageError)
  assert.throws(() => new SocketGroup().close({ deadlin: 1 } as never), UsageError)
  // Empty, it is closed at once.
  assert.deepEqual(await new SocketGroup().close(), { clean: 0, failed: 0 })
  assert.throws(() => new SocketGroup({ clock: new World() }).broadcast(7 as never), UsageError)
})

worldTest('a broadcast reaches all but the one it came from, and those that are too slow', { seeds: 3 }, async (world) => {
  const stage = new WebSocketStage(world, 'h2', { http2: { streamWindow: 65_536, maxWindow: 65_536 } })
  const group = new SocketGroup({ clock: world })
  const pairs = Array.from({ length: 6 }, () => stage.sockets())
  for (const [, server] of pairs) group.add(server).add(server)
  assert.equal(group.size, 6)
  const [, speaker] = pairs[0] as [Socket, Socket]
  const [, slow] = pairs[1] as [Socket, Socket]
  for (let i = 0; i < 20; i++) slow.post(new Uint8Array(20_000))
  await world.settle()
  assert.ok(slow.bufferedAmount > 0)
  assert.equal(group.broadcast('hello', { except: speaker, maxBufferedAmount: 100_000 }), 4)
  for (const [client] of pairs.slice(2)) assert.equal(await world.complete(client.read()), 'hello')
  assert.equal(group.broadcast(prepare(Uint8Array.of(1))), 6)
  assert.equal(group.broadcast(Uint8Array.of(0x41), { text: true }), 6)
  for (const [client] of pairs.slice(2)) {
    assert.deepEqual(await world.complete(client.read()), Uint8Array.of(1))
    assert.equal(await world.complete(client.read()), 'A')
  }
  assert.equal(group.delete(speaker), true)
  assert.equal(group.delete(speaker), false)
  assert.equal(group.has(speaker), false)
  assert.deepEqual([...group].length, 5)
  // Who closes leaves.
  for (const [client] of pairs.slice(2)) client.close(1000)
  await world.complete(Promise.all(pairs.slice(2).map(([, server]) => server.closed)))
  assert.equal(group.size, 1)
  slow.abort()
  assert.equal(group.broadcast('nobody is there'), 0)
  await world.complete(slow.closed)
  assert.equal(group.size, 0)
  assert.equal(group.add(slow).size, 0)
  speaker.close()
  await world.complete(Promise.all(pairs.flat().map((socket) => socket.closed)))
  stage.finish()
})

for (const version of versions) {
  worldTest(`${version}: close says 1001 to all, lets what was sent arrive, and waits`, { seeds: 3 }, async (world) => {
    const group = new SocketGroup({ clock: world, heartbeat: true })
    const stages = Array.from({ length: 3 }, () => new WebSocketStage(world, version, { link: { delay: 30 } }))
    const pairs = stages.map((stage) => stage.sockets())
    for (const [, server] of pairs) group.add(server)
    group.broadcast('the last words')
    const stage = new WebSocketStage(world, version)
    const [late, lateServer] = stage.sockets()
    const closing = group.close({ reason: 'restart' })
    assert.equal(group.close(), closing)
    // One that comes now is not let in for long.
    group.add(lateServer)
    assert.deepEqual(await world.complete(closing), { clean: 4, failed: 0 })
    for (const [client] of pairs) {
      assert.equal(await world.complete(client.read()), 'the last words')
      assert.deepEqual(await world.complete(client.closed), { code: 1001, reason: 'restart', wasClean: true, error: undefined })
    }
    assert.equal((await world.complete(late.closed)).code, 1001)
    for (const each of [...stages, stage]) each.finish()
  })

  worldTest(`${version}: at the deadline those that are left are aborted`, { seeds: 3 }, async (world) => {
    const group = new SocketGroup({ clock: world })
    const stage = new WebSocketStage(world, version)
    const other = new WebSocketStage(world, version)
    const [, good] = other.sockets()
    group.add(good)
    const [clientEnd, serverEnd] = stage.tunnel()
    clientEnd.handler = new Recording({ autoConsume: false })
    const deaf = new Socket(serverEnd, { role: 'server', clock: world, limits: { closeTimeout: 60_000 } })
    group.add(deaf)
    const started = world.now()
    assert.deepEqual(await world.complete(group.close({ deadline: 3_000 })), { clean: 1, failed: 1 })
    assert.ok(world.now() - started >= 3_000 && world.now() - started < 3_100, `${world.now() - started}`)
    assert.equal((await world.complete(deaf.closed)).error?.code, 'CLOSE_TIMEOUT')
    clientEnd.cancel(CancelReason.Cancelled)
    await group[Symbol.asyncDispose]()
    stage.finish()
    other.finish()
  })
}
