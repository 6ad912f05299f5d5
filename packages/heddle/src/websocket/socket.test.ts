import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../http/index.ts'
import { World, worldTest } from '../testing/index.ts'
import { socketLimits } from './socket-settings.ts'
import { Socket } from './socket.ts'
import { versions, WebSocketStage } from './stage.test.ts'

for (const version of versions) {
  worldTest(`${version}: messages go both ways and the end is agreed on`, { seeds: 5 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets({ protocol: 'chat', extensions: 'none' })
    assert.equal(client.version, version)
    assert.equal(client.protocol, 'chat')
    assert.equal(client.extensions, 'none')
    assert.equal(server.info.local.family, 'IPv4')
    assert.equal(client.state, 'open')
    client.post('hello')
    assert.equal(await world.complete(server.read()), 'hello')
    await world.complete(server.write(Uint8Array.of(1, 2, 3)))
    assert.deepEqual(await world.complete(client.read()), Uint8Array.of(1, 2, 3))
    client.close(1000, 'bye')
    assert.equal(client.state, 'closing')
    assert.deepEqual(await world.complete(server.closed), { code: 1000, reason: 'bye', wasClean: true, error: undefined })
    assert.deepEqual(await world.complete(client.closed), { code: 1000, reason: '', wasClean: true, error: undefined })
    assert.equal(client.state, 'closed')
    assert.equal(await client.read(), undefined)
    stage.finish()
  })

  worldTest(`${version}: with permessage-deflate, messages of all sizes and kinds arrive as they were`, { seeds: 3 }, async (world) => {
    for (const [client, server] of [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ]) {
      const stage = new WebSocketStage(world, version)
      const parameters = {
        serverNoContextTakeover: server === true,
        clientNoContextTakeover: client === true,
        serverMaxWindowBits: 12,
        clientMaxWindowBits: 15,
      }
      const ends = stage.sockets({ deflate: { parameters, threshold: 0 } })
      const sizes = [0, 1, 125, 126, 5_000, 70_000, 200_000]
      for (const [from, to] of [ends, [ends[1], ends[0]]] as const) {
        const messages = sizes.flatMap((size) => ['ä'.repeat(size / 2), new Uint8Array(size).fill(size)])
        const writes = messages.map((message) => from.write(message))
        for (const message of messages) assert.deepEqual(await world.complete(to.read()), message)
        await world.complete(Promise.all(writes))
      }
      ends[1].close(1000)
      assert.equal((await world.complete(ends[0].closed)).wasClean, true)
      await world.complete(ends[1].closed)
      stage.finish()
    }
  })
}

test('options that are unknown or wrong are refused by name', () => {
  const stage = new WebSocketStage(new World(), 'h2')
  const [exchange] = stage.tunnel()
  const parameters = { serverNoContextTakeover: false, clientNoContextTakeover: false, serverMaxWindowBits: 15, clientMaxWindowBits: 15 }
  for (const [options, message] of [
    [{ role: 'server', limit: {} }, /no option limit; did you mean limits\?/],
    [{ role: 'peer' }, /role must be 'client' or 'server', not "peer"/],
    [{ role: 'server', limits: { closeTimout: 1 } }, /no option limits\.closeTimout; did you mean limits\.closeTimeout\?/],
    [{ role: 'server', limits: { closeTimeout: -1 } }, /closeTimeout must be a number/],
    [{ role: 'server', fragmentSize: 0 }, /fragmentSize must be an integer, 1 or more, or Infinity, not 0/],
    [{ role: 'server', deflate: { parameters, level: 10 } }, /deflate\.level must be an integer, -1 to 9, not 10/],
    [{ role: 'server', deflate: { parameters, memoryLevel: 0 } }, /deflate\.memoryLevel/],
    [{ role: 'server', deflate: { parameters, contextSize: 1.5 } }, /deflate\.contextSize/],
    [{ role: 'server', deflate: { parameters, treshold: 1 } }, /no option deflate\.treshold; did you mean deflate\.threshold\?/],
  ] as [never, RegExp][]) {
    assert.throws(
      () => new Socket(exchange, options),
      (error) => error instanceof UsageError && message.test(error.message),
    )
  }
})

test('the limits are those of the documentation', () => {
  assert.deepEqual(socketLimits, {
    maxMessageSize: 16_777_216,
    maxFragments: 16_384,
    maxQueuedPongs: 64,
    maxUnansweredPings: 1_000,
    maxQueuedBytes: 65_536,
    drainSize: 262_144,
    closeTimeout: 5_000,
    maxUnreadSize: 65_536,
    maxBufferedAmount: 16_777_216,
  })
})

for (const version of versions) {
  worldTest(`${version}: what a socket is told before its tunnel is open waits for it, in order`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [clientEnd, serverEnd] = stage.tunnel()
    const server = new Socket(serverEnd, { role: 'server', clock: world, opened: false })
    assert.equal(server.state, 'connecting')
    const bytes = Uint8Array.of(1, 2, 3)
    assert.equal(server.post(bytes), true)
    bytes.fill(9)
    const written = server.write('zwölf')
    let roundTrip: number | undefined
    server.ping('?', (ms) => (roundTrip = ms))
    assert.equal(server.bufferedAmount, 9)
    const controller = new AbortController()
    const withdrawn = assert.rejects(server.write('withdrawn', { signal: controller.signal }), /not after all/)
    const late = assert.rejects(server.write('too late', { deadline: 10 }), { code: 'SEND_TIMEOUT' })
    controller.abort(new Error('not after all'))
    world.advance(20)
    await withdrawn
    await late
    assert.equal(server.bufferedAmount, 9)
    // Full: what comes next is still taken.
    assert.equal(server.post(new Uint8Array(100_000)), false)
    assert.equal(server.canPost, false)
    server.close(1001, 'short')
    assert.equal(server.state, 'closing')
    assert.equal(server.post('no more'), false)
    await assert.rejects(server.write('no more'), { code: 'CANCELLED' })

    const client = new Socket(clientEnd, { role: 'client', clock: world })
    server.open()
    assert.throws(() => server.open(), UsageError)
    assert.deepEqual(await world.complete(client.read()), Uint8Array.of(1, 2, 3))
    assert.equal(await world.complete(client.read()), 'zwölf')
    assert.equal(((await world.complete(client.read())) as Uint8Array).length, 100_000)
    assert.equal(await world.complete(client.read()), undefined)
    await world.complete(written)
    assert.deepEqual(await world.complete(client.closed), { code: 1001, reason: 'short', wasClean: true, error: undefined })
    assert.equal((await world.complete(server.closed)).wasClean, true)
    assert.equal(typeof roundTrip, 'number')
    stage.finish()
  })

  worldTest(`${version}: one that is aborted before its tunnel is open takes the exchange with it`, { seeds: 1 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [clientEnd, serverEnd] = stage.tunnel()
    const client = new Socket(clientEnd, { role: 'client', clock: world })
    const server = new Socket(serverEnd, { role: 'server', clock: world, opened: false })
    const written = assert.rejects(server.write('never'), { code: 'CANCELLED' })
    const read = assert.rejects(server.read(), { code: 'CANCELLED' })
    let told = 0
    server.ping(undefined, (ms) => (told += ms === undefined ? 1 : 100))
    server.abort()
    await written
    await read
    const closed = await world.complete(server.closed)
    assert.equal(closed.code, 1006)
    assert.equal(closed.wasClean, false)
    assert.equal(closed.error?.code, 'CANCELLED')
    assert.equal(server.state, 'closed')
    server.open()
    assert.equal((await world.complete(client.closed)).wasClean, false)
    assert.equal(told, 1)
    stage.finish()
  })
}
