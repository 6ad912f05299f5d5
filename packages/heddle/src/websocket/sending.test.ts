import assert from 'node:assert/strict'
import { UsageError, type Exchange } from '../http/index.ts'
import { Recording, worldTest, type World } from '../testing/index.ts'
import { Socket } from './socket.ts'
import { versions, WebSocketStage, type Version } from './stage.test.ts'

const window = { streamWindow: 65_536, maxWindow: 65_536 }

interface Stalled {
  readonly stage: WebSocketStage
  readonly client: Socket
  readonly peer: Recording
  readonly serverEnd: Exchange
}

/** A client whose peer takes what the window and the socket hold, and then nothing more. */
function stalled(world: World, version: Version, limits = {}): Stalled {
  const stage = new WebSocketStage(world, version, { link: { capacity: 65_536 }, http2: window })
  const [clientEnd, serverEnd] = stage.tunnel()
  const peer = new Recording({ autoConsume: false })
  serverEnd.handler = peer
  return { stage, client: new Socket(clientEnd, { role: 'client', clock: world, limits }), peer, serverEnd }
}

/** What became of a promise, without waiting for it. */
function watched<T>(promise: Promise<T>): { state: 'pending' | 'fulfilled' | 'rejected'; reason: unknown; times: number } {
  const outcome = { state: 'pending' as 'pending' | 'fulfilled' | 'rejected', reason: undefined as unknown, times: 0 }
  promise.then(
    () => {
      outcome.state = 'fulfilled'
      outcome.times++
    },
    (reason: unknown) => {
      outcome.state = 'rejected'
      outcome.reason = reason
      outcome.times++
    },
  )
  return outcome
}

/** The tunnel's end was a reset, as far as the version can tell. */
async function assertReset({ stage, peer, serverEnd }: Stalled): Promise<void> {
  // Over HTTP/1.1 one that does not read does not see it, either.
  peer.exchange = serverEnd
  peer.autoConsume = true
  serverEnd.consume(peer.received)
  await stage.world.settle()
  assert.ok(peer.closed && !peer.ended, 'the peer sees no end of the message')
  assert.ok(peer.error !== undefined)
  if (stage.version === 'h2') assert.equal(peer.error.wireCode, 8)
}

for (const version of versions) {
  worldTest(`${version}: writes are fulfilled in order, as the peer makes room`, { seeds: 5 }, async (world) => {
    const stage = new WebSocketStage(world, version, { link: { capacity: 65_536 }, http2: window })
    const [client, server] = stage.sockets({ limits: { maxUnreadSize: 1 } })
    const order: number[] = []
    const writes = Array.from({ length: 40 }, (_, i) => client.write(new Uint8Array(20_000).fill(i)).then(() => order.push(i)))
    await world.settle()
    assert.ok(order.length > 0 && order.length < 30, `${order.length} of 40 were taken by a peer that reads nothing`)
    assert.ok(client.bufferedAmount >= 10 * 20_000 && client.bufferedAmount % 20_000 === 0, `${client.bufferedAmount}`)
    assert.equal(client.bufferedAmount, (40 - order.length) * 20_000)
    for (let i = 0; i < 40; i++) assert.equal(((await world.complete(server.read())) as Uint8Array)[0], i)
    await world.complete(Promise.all(writes))
    assert.deepEqual(
      order,
      writes.map((_, i) => i),
    )
    assert.equal(client.bufferedAmount, 0)
    client.close(1000)
    await world.complete(Promise.all([client.closed, server.closed]))
    stage.finish()
  })

  worldTest(`${version}: post says when to wait, and onWritable when to go on`, { seeds: 5 }, async (world) => {
    const stage = new WebSocketStage(world, version, { link: { capacity: 65_536 }, http2: window })
    const [client, server] = stage.sockets({ limits: { maxUnreadSize: 1 } })
    let posted = 0
    let told = 0
    const pump = (): void => {
      while (posted < 100) {
        posted++
        if (!client.post(new Uint8Array(10_000))) break
      }
    }
    client.handler = {
      onMessage: () => {},
      onWritable(socket) {
        assert.equal(socket, client)
        assert.ok(client.canPost)
        told++
        pump()
      },
    }
    pump()
    assert.ok(posted < 100)
    assert.equal(client.canPost, false)
    await world.settle()
    const before = posted
    assert.ok(before < 60, `${before} posted to a peer that reads nothing`)
    for (let i = 0; i < 100; i++) await world.complete(server.read())
    assert.equal(posted, 100)
    assert.ok(told > 1)
    client.close()
    await world.complete(Promise.all([client.closed, server.closed]))
    stage.finish()
  })

  worldTest(
    `${version}: a writer the peer does not read is released by its deadline, and the tunnel is reset`,
    { seeds: 3 },
    async (world) => {
      const all = stalled(world, version)
      const { stage, client } = all
      const first = watched(client.write(new Uint8Array(500_000), { deadline: 1_000 }))
      const second = watched(client.write('behind it'))
      const read = watched(client.read())
      await world.settle({ until: world.now() + 999 })
      assert.deepEqual([first.state, second.state, read.state], ['pending', 'pending', 'pending'])
      await world.settle({ until: world.now() + 100 })
      for (const outcome of [first, second, read]) {
        assert.equal(outcome.state, 'rejected')
        assert.equal((outcome.reason as { code: string }).code, 'SEND_TIMEOUT')
      }
      assert.deepEqual([first.times, second.times, read.times], [1, 1, 1])
      await assertReset(all)
      assert.equal((await world.complete(client.closed)).code, 1006)
      stage.finish()
    },
  )

  worldTest(`${version}: a signal ends its write with its reason, and the connection`, { seeds: 3 }, async (world) => {
    const all = stalled(world, version)
    const { stage, client } = all
    const controller = new AbortController()
    const first = watched(client.write(new Uint8Array(500_000), { signal: controller.signal }))
    const second = watched(client.write('behind it', { signal: controller.signal, deadline: 5_000 }))
    const third = watched(client.write('with no signal'))
    await world.settle()
    controller.abort('enough')
    await world.settle()
    // One reason for those that were aborted by it, whichever is told first; the cause for the rest.
    assert.equal(first.reason, 'enough')
    assert.equal((third.reason as { code: string; cause: unknown }).code, 'CANCELLED')
    assert.equal((third.reason as { code: string; cause: unknown }).cause, 'enough')
    assert.deepEqual([first.times, second.times, third.times], [1, 1, 1])
    await assertReset(all)
    await world.complete(client.closed)
    stage.finish()
    // A signal that was aborted before has nothing sent.
    await assert.rejects(client.write('x', { signal: controller.signal }), (reason) => reason === 'enough')
  })

  worldTest(`${version}: a writer the peer does not read is released by close, within closeTimeout`, { seeds: 3 }, async (world) => {
    const all = stalled(world, version, { closeTimeout: 2_000 })
    const { stage, client } = all
    const write = watched(client.write(new Uint8Array(500_000)))
    const read = watched(client.read())
    client.close(1000)
    // What the socket and the window hold leaves in the first quarter.
    await world.settle({ until: world.now() + 2_499 })
    assert.deepEqual([write.state, read.state, client.state], ['pending', 'pending', 'closing'])
    await world.settle({ until: world.now() + 100 })
    for (const outcome of [write, read]) assert.equal((outcome.reason as { code: string }).code, 'CLOSE_TIMEOUT')
    await assertReset(all)
    assert.equal((await world.complete(client.closed)).wasClean, false)
    stage.finish()
  })

  worldTest(`${version}: a writer the peer does not read is released by abort, at once`, { seeds: 3 }, async (world) => {
    const all = stalled(world, version)
    const { stage, client } = all
    const write = watched(client.write(new Uint8Array(500_000)))
    await world.settle()
    client.abort()
    await Promise.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal((write.reason as { code: string }).code, 'CANCELLED')
    await world.settle()
    await assertReset(all)
    assert.equal((await world.complete(client.closed)).error?.code, 'CANCELLED')
    assert.equal(client.post('late'), false)
    await assert.rejects(client.write('late'), { code: 'CANCELLED' })
    stage.finish()
  })

  worldTest(`${version}: a deadline and a signal that were not needed leave nothing behind`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    const armed = world.armed
    const controller = new AbortController()
    for (let i = 0; i < 20; i++) await world.complete(client.write('x', { deadline: 5_000, signal: controller.signal }))
    for (let i = 0; i < 20; i++) await world.complete(server.read({ deadline: 5_000, signal: controller.signal }))
    assert.equal(world.armed, armed)
    controller.abort()
    await world.settle()
    assert.equal(client.state, 'open')
    client.close()
    await world.complete(Promise.all([client.closed, server.closed]))
    stage.finish()
  })

  worldTest(`${version}: a Ping is answered with the time it took; one that is left is told so`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version, { link: { delay: 20 } })
    const [client, server] = stage.sockets()
    const told: unknown[] = []
    const seen: string[] = []
    server.handler = {
      onMessage: () => {},
      onPing: (_socket, payload) => seen.push(`ping ${Buffer.from(payload).toString('latin1')}`),
      onPong: (_socket, payload) => seen.push(`pong ${payload.length}`),
    }
    client.ping('one', (ms) => void told.push(ms))
    client.ping('two')
    await world.settle()
    assert.deepEqual(told.slice(), [40])
    assert.deepEqual(seen, ['ping one', 'ping two'])
    // Without a payload of the program each has one of its own, and several may be under way.
    for (let i = 0; i < 3; i++) client.ping(undefined, (ms) => void told.push(ms))
    await world.settle()
    assert.deepEqual(told.slice(), [40, 40, 40, 40])
    assert.throws(() => client.ping('x'.repeat(126)), UsageError)
    client.ping(undefined, (ms) => void told.push(ms))
    client.abort()
    await world.settle()
    client.ping(undefined, (ms) => void told.push(ms))
    await world.settle()
    assert.deepEqual(told.slice(4), [undefined, undefined])
    stage.finish()
  })

  worldTest(`${version}: what is no message is refused`, { seeds: 1 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    assert.throws(() => client.post(5 as never), UsageError)
    assert.throws(() => client.post(null as never), UsageError)
    await assert.rejects(client.write({} as never), UsageError)
    const words = Uint16Array.of(1, 2)
    client.post(words)
    client.post(words.buffer)
    client.post(new DataView(words.buffer, 2))
    client.post(Buffer.from('text'), { text: true, owned: true })
    const bytes = new Uint8Array(words.buffer)
    assert.deepEqual(await world.complete(server.read()), Uint8Array.from(bytes))
    assert.deepEqual(await world.complete(server.read()), Uint8Array.from(bytes))
    assert.deepEqual(await world.complete(server.read()), Uint8Array.from(bytes.subarray(2)))
    assert.equal(await world.complete(server.read()), 'text')
    await world.complete(server[Symbol.asyncDispose]())
    await world.complete(client.closed)
    stage.finish()
  })

  worldTest(`${version}: an error tells who awaited`, { seeds: 1 }, async (world) => {
    const all = stalled(world, version)
    const { stage, client } = all
    const program = async function programThatWrites(): Promise<void> {
      await client.write(new Uint8Array(500_000), { deadline: 10 })
    }
    const reader = async function programThatReads(): Promise<void> {
      await client.read()
    }
    const reading = reader().then(
      () => undefined,
      (error: unknown) => error as Error,
    )
    const error = await world.complete(
      program().then(
        () => undefined,
        (thrown: unknown) => thrown as Error,
      ),
    )
    assert.match(error?.stack ?? '', /at async programThatWrites/)
    assert.match((await reading)?.stack ?? '', /at async programThatReads/)
    await world.complete(client.closed)
    await assertReset(all)
    stage.finish()
  })
}
