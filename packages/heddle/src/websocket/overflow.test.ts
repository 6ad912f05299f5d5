/** A peer that takes nothing, and a program that goes on sending. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { worldTest } from '../testing/index.ts'
import { prepare } from './prepared-message.ts'
import { Socket } from './socket.ts'
import { limitsOf } from './socket-settings.ts'
import { versions, WebSocketStage } from './stage.test.ts'
import { webSocketOver } from './web-socket.ts'

const http2 = { streamWindow: 65_536, maxWindow: 65_536 }
const limits = { maxBufferedAmount: 200_000 }

for (const version of versions) {
  worldTest(`${version}: with too much waiting, another message ends the connection, and no other`, { seeds: 3 }, async (world) => {
    for (const how of ['post', 'write', 'prepared'] as const) {
      const stage = new WebSocketStage(world, version, { link: { capacity: 65_536 }, http2 })
      const [client, server] = stage.sockets({ limits: { maxUnreadSize: 1 } }, { limits })
      const others = version === 'h2' ? stage.sockets() : undefined
      server.post('what the peer has and does not read')
      await world.settle()
      const pending = assert.rejects(server.write(new Uint8Array(1_000_000)), { code: 'QUEUE_FULL' })
      await world.settle()
      // One message may be larger, and it is no fault to be slow.
      assert.equal(server.state, 'open')
      assert.ok(server.bufferedAmount >= 1_000_000)
      if (how === 'post') assert.equal(server.post('x'), false)
      else if (how === 'prepared') assert.equal(server.post(prepare('x')), false)
      else {
        const message = '1000000 bytes of messages wait for the peer, which is more than limits.maxBufferedAmount allows'
        await world.complete(assert.rejects(server.write('x'), { code: 'QUEUE_FULL', message }))
      }
      assert.equal(server.state, 'closing')
      assert.equal(server.bufferedAmount, 1_000_000)
      await world.complete(pending)
      const { code, wasClean, error } = await world.complete(server.closed)
      assert.deepEqual([code, wasClean, error?.code], [1006, false, 'QUEUE_FULL'])
      assert.equal(server.post('late'), false)
      if (others !== undefined) {
        const [sender, receiver] = others
        sender.post('here')
        assert.equal(await world.complete(receiver.read()), 'here')
        sender.close(1000)
        await world.complete(Promise.all([sender.closed, receiver.closed]))
      }
      client.abort()
      await world.complete(client.closed)
      stage.finish()
    }
  })

  worldTest(`${version}: once it closes, what comes too late does not keep what was given from leaving`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version, { link: { capacity: 65_536 }, http2 })
    const [client, server] = stage.sockets({ limits: { maxUnreadSize: 1 } }, { limits })
    const written = server.write(new Uint8Array(1_000_000))
    server.close(1000)
    assert.equal(server.post('late'), false)
    await world.complete(assert.rejects(server.write('late'), { code: 'CANCELLED' }))
    assert.equal(((await world.complete(client.read())) as Uint8Array).length, 1_000_000)
    await world.complete(written)
    assert.equal((await world.complete(server.closed)).wasClean, true)
    assert.equal(await world.complete(client.read()), undefined)
    stage.finish()
  })

  worldTest(`${version}: empty messages count as well`, { seeds: 1 }, async (world) => {
    const stage = new WebSocketStage(world, version, { link: { capacity: 65_536 }, http2 })
    const [client, server] = stage.sockets({ limits: { maxUnreadSize: 1 } }, { limits })
    let count = 0
    for (; server.state === 'open'; count++) {
      server.post('')
      if (count % 1_000 === 0) await world.settle()
      assert.ok(count < 200_000, 'there is an end to it')
    }
    // What the peer's window and the link hold, and 32 bytes for each of the others.
    assert.ok(count > 200_000 / 32, `${count} messages`)
    assert.equal((await world.complete(server.closed)).error?.code, 'QUEUE_FULL')
    client.abort()
    await world.complete(client.closed)
    stage.finish()
  })

  worldTest(`${version}: what waits for the tunnel to open counts, too`, { seeds: 1 }, async (world) => {
    const stage = new WebSocketStage(world, version, { http2 })
    const [clientEnd, serverEnd] = stage.tunnel()
    const server = new Socket(serverEnd, { role: 'server', clock: world, opened: false, limits })
    for (let i = 0; i < 201; i++) server.post(new Uint8Array(1_000))
    assert.equal(server.state, 'connecting')
    assert.equal(server.post('x'), false)
    assert.equal(server.state, 'closing')
    assert.equal((await world.complete(server.closed)).error?.code, 'QUEUE_FULL')
    server.open()
    clientEnd.consume(0)
    stage.finish()
  })

  worldTest(
    `${version}: a client that echoes to a server that reads nothing ends, and its program is told`,
    { seeds: 1 },
    async (world) => {
      const stage = new WebSocketStage(world, version, { link: { capacity: 65_536 }, http2 })
      const [client, server] = stage.sockets({ limits }, { limits: { maxUnreadSize: 1 } })
      const webSocket = webSocketOver(client, 'ws://h/', world)
      const told: string[] = []
      webSocket.addEventListener('error', ({ error }) => told.push(`error ${(error as { code: string }).code}`))
      webSocket.addEventListener('close', ({ code, wasClean }) => told.push(`close ${code} ${wasClean}`))
      webSocket.addEventListener('message', ({ data }) => webSocket.send(data))
      for (let i = 0; i < 1_000 && server.state === 'open'; i++) {
        server.post(new Uint8Array(10_000))
        await world.settle()
      }
      await world.complete(webSocket.closed)
      await world.settle()
      assert.deepEqual(told, ['error QUEUE_FULL', 'close 1006 false'])
      server.abort()
      await world.complete(server.closed)
      stage.finish()
    },
  )

  worldTest(`${version}: by default a client may have more waiting than a server, in messages of any size`, { seeds: 1 }, async (world) => {
    const stage = new WebSocketStage(world, version, { link: { capacity: 65_536 }, http2 })
    const [client, server] = stage.sockets({}, { limits: { maxMessageSize: 20_000_000 } })
    for (const size of [20_000_000, ...Array.from({ length: 200 }, () => 10_000)]) client.post(new Uint8Array(size))
    client.close(1000)
    let received = 0
    server.handler = { onMessage: (_socket, _buffer, start, limit) => void (received += limit - start) }
    await world.complete(client.closed)
    assert.equal(received, 22_000_000)
    stage.finish()
  })
}

test('the defaults of both roles, and none if the program says so', () => {
  assert.deepEqual(
    [limitsOf(undefined, 'server').maxBufferedAmount, limitsOf(undefined, 'client').maxBufferedAmount],
    [16_777_216, 268_435_456],
  )
  assert.equal(limitsOf({ maxBufferedAmount: Infinity }, 'client').maxBufferedAmount, Infinity)
  assert.equal(limitsOf({ closeTimeout: 1 }, 'client').maxBufferedAmount, 268_435_456)
})
