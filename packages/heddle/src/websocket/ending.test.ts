import assert from 'node:assert/strict'
import { CancelReason, HeddleError, type HeddleError as Failure } from '../http/index.ts'
import { Recording, worldTest } from '../testing/index.ts'
import type { SocketHandler } from './socket-handler.ts'
import { Socket } from './socket.ts'
import { versions, WebSocketStage } from './stage.test.ts'
import { openJobs } from './zlib-job.ts'

const ignore: SocketHandler = { onMessage: () => {} }

for (const version of versions) {
  worldTest(`${version}: both close at once`, { seeds: 10 }, async (world) => {
    const stage = new WebSocketStage(world, version, { link: { delay: 5, jitter: 3 } })
    const [client, server] = stage.sockets()
    client.post('from the client')
    server.post('from the server')
    client.close(3001, 'mine')
    server.close(3002, 'yours')
    client.close(1000)
    // What left before the Close arrives, although this side has closed.
    assert.equal(await world.complete(client.read()), 'from the server')
    assert.equal(await world.complete(server.read()), 'from the client')
    assert.deepEqual(await world.complete(client.closed), { code: 3002, reason: 'yours', wasClean: true, error: undefined })
    assert.deepEqual(await world.complete(server.closed), { code: 3001, reason: 'mine', wasClean: true, error: undefined })
    stage.finish()
  })

  worldTest(`${version}: close waits for what was given before, in both directions`, { seeds: 5 }, async (world) => {
    const stage = new WebSocketStage(world, version, { http2: { streamWindow: 65_536, maxWindow: 65_536 } })
    for (const isClient of [true, false]) {
      const [client, server] = stage.sockets()
      const [from, to] = isClient ? [client, server] : [server, client]
      const writes = Array.from({ length: 20 }, (_, i) => from.write(new Uint8Array(20_000).fill(i)))
      from.close(1000, 'all of it')
      const code = Promise.all([from.closed, to.closed])
      for (let i = 0; i < 20; i++) assert.equal(((await world.complete(to.read())) as Uint8Array)[0], i)
      assert.equal(await world.complete(to.read()), undefined)
      await world.complete(Promise.all(writes))
      for (const closed of await world.complete(code)) assert.equal(closed.wasClean, true)
      if (version === 'h1') break
    }
    if (version === 'h2') stage.finish()
  })

  worldTest(`${version}: who closes does not wait for who does not read`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version, { http2: { streamWindow: 65_536, maxWindow: 65_536 } })
    const [client, server] = stage.sockets()
    // Nobody reads on the server's side, and it holds the client back.
    for (let i = 0; i < 10; i++) client.post(new Uint8Array(20_000))
    await world.settle()
    const started = world.now()
    server.close(1001)
    assert.equal((await world.complete(server.closed)).wasClean, true)
    assert.ok(world.now() - started < 1_000, 'long before closeTimeout')
    assert.equal((await world.complete(client.closed)).code, 1001)
    // What had come by then can still be read.
    assert.equal(((await server.read()) as Uint8Array).length, 20_000)
    stage.finish()
  })

  worldTest(`${version}: what was given before the Close may take longer than closeTimeout`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version, { link: { bandwidth: 200, capacity: 20_000 } })
    const [client, server] = stage.sockets({ limits: { closeTimeout: 2_000 } })
    server.handler = ignore
    const started = world.now()
    const write = client.write(new Uint8Array(2_000_000))
    client.close(1000)
    assert.equal((await world.complete(client.closed)).wasClean, true)
    assert.ok(world.now() - started > 9_000)
    await write
    await world.complete(server.closed)
    stage.finish()
  })

  worldTest(`${version}: a peer that does not answer a Close is given closeTimeout`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [clientEnd, serverEnd] = stage.tunnel()
    const peer = new Recording({ autoConsume: true })
    peer.exchange = serverEnd
    serverEnd.handler = peer
    const client = new Socket(clientEnd, { role: 'client', clock: world })
    const started = world.now()
    client.close(1000)
    const closed = await world.complete(client.closed)
    assert.equal(world.now() - started, 5_000)
    assert.deepEqual([closed.code, closed.wasClean, closed.error?.code], [1006, false, 'CLOSE_TIMEOUT'])
    await world.settle()
    assert.ok(peer.closed)
    stage.finish()
  })

  worldTest(`${version}: a server that closes and leaves the tunnel open has closed well`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [clientEnd, serverEnd] = stage.tunnel()
    const peer = new Recording({ autoConsume: true })
    peer.exchange = serverEnd
    serverEnd.handler = peer
    const client = new Socket(clientEnd, { role: 'client', clock: world })
    const started = world.now()
    client.close(1000)
    await world.settle()
    serverEnd.sendData(Uint8Array.of(0x88, 0x02, 0x03, 0xe8), 0, 4, false)
    assert.deepEqual(await world.complete(client.closed), { code: 1000, reason: '', wasClean: true, error: undefined })
    assert.ok(world.now() - started >= 5_000)
    await world.settle()
    assert.ok(peer.closed)
    stage.finish()
  })

  worldTest(`${version}: a peer that breaks the rules and then does nothing is given closeTimeout`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [clientEnd, serverEnd] = stage.tunnel()
    const peer = new Recording({ autoConsume: true })
    peer.exchange = clientEnd
    clientEnd.handler = peer
    const server = new Socket(serverEnd, { role: 'server', clock: world, limits: { closeTimeout: 700 } })
    const read = assert.rejects(server.read(), { code: 'PROTOCOL_ERROR', wireCode: 1002 })
    const started = world.now()
    // A client has to mask.
    clientEnd.sendData(Uint8Array.of(0x81, 0x01, 0x41), 0, 3, false)
    const closed = await world.complete(server.closed)
    assert.ok(world.now() - started < 800)
    assert.deepEqual([closed.wasClean, closed.error?.code], [false, 'PROTOCOL_ERROR'])
    await read
    assert.equal(peer.content.subarray(0, 1).toString('hex'), '88')
    assert.equal(peer.content.readUInt16BE(2), 1002)
    clientEnd.cancel(CancelReason.Cancelled)
    await world.settle()
    stage.finish()
  })

  worldTest(`${version}: a tunnel that ends without a Close is 1006`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [clientEnd, serverEnd] = stage.tunnel()
    const server = new Socket(serverEnd, { role: 'server', clock: world })
    const write = server.write('x')
    clientEnd.sendData(new Uint8Array(0), 0, 0, true)
    const closed = await world.complete(server.closed)
    assert.deepEqual([closed.code, closed.wasClean, closed.error?.code], [1006, false, 'PEER_CLOSED'])
    await world.complete(write.catch(() => {}))
    clientEnd.cancel(CancelReason.Cancelled)
    await world.settle()
    stage.finish()
  })

  worldTest(`${version}: abort, loss and close meet in any order, and the end is told once`, { seeds: 3 }, async (world) => {
    const acts: Record<string, (socket: Socket, stage: WebSocketStage) => void> = {
      abort: (socket) => socket.abort(),
      close: (socket) => socket.close(1000),
      loss: (_socket, stage) => stage.lose('reset'),
      post: (socket) => socket.post('x'),
    }
    const names = Object.keys(acts)
    for (const first of names) {
      for (const second of names) {
        for (const third of names) {
          const stage = new WebSocketStage(world, version)
          const [client, server] = stage.sockets()
          const ends: string[] = []
          client.handler = { ...ignore, onClose: (_socket, code, _reason, wasClean) => void ends.push(`${code} ${wasClean}`) }
          for (const name of [first, second, third]) {
            acts[name]?.(client, stage)
            if (world.random.chance(0.5)) world.step()
          }
          if (![first, second, third].some((name) => name !== 'post')) server.close()
          await world.complete(Promise.all([client.closed, server.closed]))
          await world.settle()
          assert.equal(ends.length, 1, `${first} ${second} ${third}`)
          stage.finish()
        }
      }
    }
  })

  worldTest(`${version}: an abort says why to all who wait, and its error is the one of closed`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    server.post('unread')
    const reads = [client.read(), client.read(), client.read()]
    const write = client.write('x')
    const error = new HeddleError('TOTAL_TIMEOUT', 'enough of this') as Failure
    client.abort(error)
    client.abort(new HeddleError('USAGE', 'a second one does not count'))
    client.close(1000)
    for (const waiting of [...reads, write]) await assert.rejects(waiting, { message: 'enough of this' })
    await assert.rejects(client.read(), { message: 'enough of this' })
    const closed = await world.complete(client.closed)
    assert.equal(closed.error, error)
    await world.complete(server.closed)
    stage.finish()
  })

  worldTest(`${version}: a handler that throws ends its connection with 1011, and no other`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const cause = new Error('of the program')
    const throwing: SocketHandler = {
      onMessage: () => {
        throw cause
      },
    }
    for (const isLate of version === 'h1' ? [world.random.chance(0.5)] : [false, true]) {
      const [client, server] = stage.sockets()
      if (!isLate) server.handler = throwing
      client.post('boom')
      await world.settle()
      // Its messages came before the handler did.
      if (isLate) server.handler = throwing
      const closed = await world.complete(client.closed)
      assert.equal(closed.code, 1011)
      const own = await world.complete(server.closed)
      assert.deepEqual([own.wasClean, own.error?.code, own.error?.cause], [false, 'HANDLER_FAILED', cause])
    }
    stage.finish()
  })

  worldTest(`${version}: whatever else of a program throws does not reach the process`, { seeds: 2 }, async (world) => {
    const fails = (): never => {
      throw new Error('of the program')
    }
    for (const name of ['onWritable', 'onPing', 'onPong', 'onPeerClose', 'onClose', 'ping'] as const) {
      const stage = new WebSocketStage(world, version)
      const [client, server] = stage.sockets()
      server.handler = name === 'ping' ? ignore : { ...ignore, [name]: fails }
      client.handler = ignore
      client.ping()
      server.ping(undefined, name === 'ping' ? fails : undefined)
      while (server.post(new Uint8Array(30_000)));
      await world.settle()
      client.close(1000)
      const closed = await world.complete(server.closed)
      if (name !== 'onClose') assert.equal(closed.error?.code, 'HANDLER_FAILED', name)
      await world.complete(client.closed)
      stage.finish()
    }
  })

  worldTest(`${version}: an end in the middle of compressing or inflating frees all of it`, { seeds: 2 }, async (world) => {
    const parameters = {
      serverNoContextTakeover: false,
      clientNoContextTakeover: true,
      serverMaxWindowBits: 15,
      clientMaxWindowBits: 15,
    }
    for (const way of ['abort', 'loss', 'close'] as const) {
      for (const isInflating of [false, true]) {
        const stage = new WebSocketStage(world, version)
        const [client, server] = stage.sockets({ deflate: { parameters }, limits: { closeTimeout: 500 } })
        const text = Array.from({ length: 20_000 }, (_, i) => `${(i * 7919) % 65_521}`).join(' ')
        const write = client.write(text)
        const read = server.read()
        const settled = Promise.allSettled([write, read])
        assert.equal(openJobs(), 1)
        // Work outside the world goes on in real time, in which nothing times out.
        const whileWorking = async (isAt: () => boolean): Promise<void> => {
          while (isAt()) {
            await new Promise((resolve) => setImmediate(resolve))
            world.run()
          }
        }
        if (isInflating) {
          await whileWorking(() => client.bufferedAmount > 0)
          assert.equal(openJobs(), 1)
        }
        if (way === 'abort') for (const socket of [client, server]) socket.abort()
        else if (way === 'loss') stage.lose('reset')
        else {
          client.close()
          await whileWorking(() => client.state !== 'closed')
        }
        const [closed] = await world.complete(Promise.all([client.closed, server.closed]))
        await settled
        if (way === 'close') assert.deepEqual([closed.wasClean, await read], [true, text])
        assert.equal(openJobs(), 0, `${way}, ${isInflating ? 'inflating' : 'compressing'}`)
        stage.finish()
      }
    }
  })

  worldTest(`${version}: closing codes and reasons are checked`, { seeds: 1 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [clientEnd, serverEnd] = stage.tunnel()
    const client = new Socket(clientEnd, { role: 'client', clock: world })
    const server = new Socket(serverEnd, { role: 'server', clock: world, opened: false })
    for (const socket of [client, server]) {
      for (const code of [0, 999, 1004, 1005, 1006, 1015, 2000, 5000]) assert.throws(() => socket.close(code), { code: 'USAGE' }, `${code}`)
      assert.throws(() => socket.close(undefined, 'why'), { code: 'USAGE' })
      assert.throws(() => socket.close(1000, 'ä'.repeat(62)), { code: 'USAGE' })
    }
    assert.deepEqual([client.state, server.state], ['open', 'connecting'])
    server.close(4999, 'ä'.repeat(61))
    server.open()
    assert.equal((await world.complete(client.closed)).reason, 'ä'.repeat(61))
    await world.complete(server.closed)
    stage.finish()
  })
}
