import assert from 'node:assert/strict'
import { UsageError } from '../http/index.ts'
import { worldTest } from '../testing/index.ts'
import type { SocketHandler } from './socket-handler.ts'
import type { Message, Socket } from './socket.ts'
import { versions, WebSocketStage } from './stage.test.ts'
import { textOf } from './text.ts'

const window = { streamWindow: 65_536, maxWindow: 65_536 }

/** A handler that writes down what it is told. */
class Notes implements SocketHandler {
  readonly told: string[] = []
  onMessage(_socket: Socket, buffer: Uint8Array, start: number, limit: number, binary: boolean): void {
    this.told.push(binary ? `bytes ${limit - start}` : textOf(buffer, start, limit))
  }
  onPeerClose(_socket: Socket, code: number, reason: string): void {
    this.told.push(`peer closes ${code} ${reason}`)
  }
  onClose(_socket: Socket, code: number, _reason: string, wasClean: boolean): void {
    this.told.push(`closed ${code} ${wasClean}`)
  }
}

for (const version of versions) {
  worldTest(`${version}: nothing is lost before there is a handler, the end included`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    for (let i = 0; i < 3; i++) client.post(`early ${i}`)
    await world.settle()
    const notes = new Notes()
    server.handler = notes
    assert.deepEqual(notes.told.slice(), [], 'setting it calls nobody')
    client.post('late')
    await world.settle()
    client.close(1000, 'done')
    await world.settle()
    assert.deepEqual(notes.told, ['early 0', 'early 1', 'early 2', 'late', 'peer closes 1000 done', 'closed 1000 true'])

    // The client had none so far, and the end is told all the same, once.
    const late = new Notes()
    client.handler = late
    client.handler = late
    await world.settle()
    assert.deepEqual(late.told, ['closed 1000 true'])
    stage.finish()
  })

  worldTest(`${version}: what came is told before the end, if both come before the handler`, { seeds: 1 }, async (world) => {
    for (const isAborted of [false, true]) {
      const stage = new WebSocketStage(world, version)
      const [client, server] = stage.sockets()
      for (let i = 0; i < 3; i++) client.post(`${i}`)
      await world.settle()
      if (isAborted) stage.lose('reset')
      else client.close()
      await world.settle()
      assert.equal(server.state, 'closed')
      const notes = new Notes()
      server.handler = notes
      await world.settle()
      assert.deepEqual(notes.told, ['0', '1', '2', isAborted ? 'closed 1006 false' : 'closed 1005 true'])
      stage.finish()
    }
  })

  worldTest(`${version}: reads are answered in order, before and after the messages come`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    const first = [server.read(), server.read()]
    for (let i = 0; i < 5; i++) client.post(`${i}`)
    await world.settle()
    const rest = [server.read(), server.read(), server.read(), server.read(), server.read()]
    client.close(1001)
    assert.deepEqual(await world.complete(Promise.all([...first, ...rest])), ['0', '1', '2', '3', '4', undefined, undefined])
    stage.finish()
  })

  worldTest(`${version}: unread messages hold the peer back, within the limit`, { seeds: 5 }, async (world) => {
    const stage = new WebSocketStage(world, version, { http2: window })
    const [client, server] = stage.sockets({}, { limits: { maxUnreadSize: 20_000 } })
    let sent = 0
    const count = 600
    for (let i = 0; i < count; i++) void client.write(`${i} `.padEnd(5_000)).then(() => sent++)
    await world.settle()
    // 4 × 5,000 and 4 × 64 in the socket, 64 KiB each of window and, over HTTP/1.1, of the link's ends, and a write of up to 1 MiB.
    assert.ok(sent >= 4 && sent < (version === 'h1' ? 300 : 120), `${sent} messages were taken`)
    for (let i = 0; i < count; i++) assert.equal(((await world.complete(server.read())) as string).trim(), `${i}`)
    await world.settle()
    assert.equal(sent, count)
    client.close()
    await world.complete(Promise.all([client.closed, server.closed]))
    stage.finish()
  })

  worldTest(`${version}: one message is taken whatever its size`, { seeds: 2 }, async (world) => {
    const stage = new WebSocketStage(world, version, { http2: window })
    const [client, server] = stage.sockets({ limits: { maxUnreadSize: 0 } })
    const large = new Uint8Array(1_000_000).map((_, i) => (i * i) >> 8)
    const writes = [client.write(large), client.write('next')]
    assert.deepEqual(await world.complete(server.read()), large)
    assert.equal(await world.complete(server.read()), 'next')
    await world.complete(Promise.all(writes))
    client.close()
    await world.complete(Promise.all([client.closed, server.closed]))
    stage.finish()
  })

  worldTest(`${version}: a read ends by its deadline or its signal, and no message is lost`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    const controller = new AbortController()
    const timed = assert.rejects(server.read({ deadline: 50 }), { code: 'READ_TIMEOUT', phase: 'read' })
    const signalled = assert.rejects(server.read({ signal: controller.signal }), (reason) => reason === 'not now')
    const patient = server.read()
    await world.settle({ until: world.now() + 60 })
    await timed
    controller.abort('not now')
    await signalled
    await assert.rejects(server.read({ signal: controller.signal }), (reason) => reason === 'not now')
    client.post('one')
    client.post('two')
    assert.equal(await world.complete(patient), 'one')
    assert.equal(await world.complete(server.read({ deadline: 50, signal: new AbortController().signal })), 'two')
    assert.equal(client.state, 'open')
    client.close()
    await world.complete(Promise.all([client.closed, server.closed]))
    stage.finish()
  })

  worldTest(`${version}: iteration goes to the end, and can be left and taken up again`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    const found: Message[] = []
    const reader = (async () => {
      for await (const message of server) {
        found.push(message)
        if (found.length === 2) break
      }
      assert.equal(server.state, 'open')
      found.push('again')
      for await (const message of server) found.push(message)
      found.push('the end')
    })()
    for (let i = 0; i < 4; i++) client.post(`${i}`)
    await world.settle()
    client.close()
    await world.complete(reader)
    assert.deepEqual(found, ['0', '1', 'again', '2', '3', 'the end'])
    stage.finish()
  })

  worldTest(`${version}: when the connection fails, what came is read first, then the error`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    client.post('whole')
    await world.settle()
    stage.lose('reset')
    await world.settle()
    assert.equal(await server.read(), 'whole')
    await assert.rejects(server.read(), (error: Error & { code: string }) => /PEER_RESET|NETWORK_ERROR/.test(error.code))
    await assert.rejects(async () => {
      for await (const message of server) assert.fail(`${String(message)} came from nowhere`)
    })
    const closed = await server.closed
    assert.deepEqual([closed.code, closed.wasClean], [1006, false])
    await world.complete(client.closed)
    stage.finish()
  })

  worldTest(`${version}: pause holds a handler's messages back, resume lets them come`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version, { http2: window })
    const [client, server] = stage.sockets()
    const notes = new Notes()
    server.handler = {
      onMessage(socket, buffer, start, limit, binary) {
        notes.onMessage(socket, buffer, start, limit, binary)
        if (notes.told.length === 2) socket.pause()
      },
    }
    for (let i = 0; i < 5; i++) client.post(`${i}`)
    const blocked = client.write(new Uint8Array(1_500_000))
    let taken = false
    void blocked.then(() => (taken = true))
    await world.settle()
    assert.deepEqual(notes.told.slice(), ['0', '1'])
    assert.equal(taken, false)
    server.resume()
    await world.complete(blocked)
    await world.settle()
    assert.deepEqual(notes.told, ['0', '1', '2', '3', '4', 'bytes 1500000'])

    // Over messages that came before the handler, too.
    server.handler = undefined
    client.post('x')
    client.post('y')
    await world.settle()
    server.pause()
    const second = new Notes()
    server.handler = second
    await world.settle()
    assert.deepEqual(second.told.slice(), [])
    server.resume()
    await world.settle()
    assert.deepEqual(second.told, ['x', 'y'])
    client.close()
    await world.complete(Promise.all([client.closed, server.closed]))
    stage.finish()
  })

  worldTest(`${version}: handler and read exclude each other`, { seeds: 1 }, async (world) => {
    const stage = new WebSocketStage(world, version)
    const [client, server] = stage.sockets()
    const pending = server.read()
    assert.throws(() => (server.handler = new Notes()), UsageError)
    client.post('x')
    assert.equal(await world.complete(pending), 'x')
    server.handler = new Notes()
    await assert.rejects(server.read(), UsageError)
    server.handler = undefined
    client.post('y')
    assert.equal(await world.complete(server.read()), 'y')
    client.close()
    await world.complete(Promise.all([client.closed, server.closed]))
    stage.finish()
  })

  worldTest(`${version}: readable and writable carry messages with back pressure, and the end`, { seeds: 3 }, async (world) => {
    const stage = new WebSocketStage(world, version, { http2: window })
    const [client, server] = stage.sockets({ limits: { maxUnreadSize: 0 } })
    assert.equal(client.writable, client.writable)
    assert.equal(server.readable, server.readable)
    const writer = client.writable.getWriter()
    const reader = server.readable.getReader()
    let taken = 0
    for (let i = 0; i < 30; i++) void writer.write(new Uint8Array(50_000).fill(i)).then(() => taken++)
    await world.settle()
    assert.ok(taken < 20, `${taken}`)
    for (let i = 0; i < 30; i++) assert.equal(((await world.complete(reader.read())).value as Uint8Array)[0], i)
    const closing = writer.close()
    assert.deepEqual(await world.complete(reader.read()), { value: undefined, done: true })
    await world.complete(closing)
    assert.equal((await server.closed).wasClean, true)
    stage.finish()
  })

  worldTest(
    `${version}: cancelling readable closes, aborting writable aborts, and a failure is told to both`,
    { seeds: 2 },
    async (world) => {
      const stage = new WebSocketStage(world, version)
      const [client, server] = stage.sockets()
      const cancelled = server.readable.cancel()
      assert.deepEqual(await world.complete(client.closed), { code: 1005, reason: '', wasClean: true, error: undefined })
      await world.complete(cancelled)
      await world.complete(server.closed)
      stage.finish()

      const other = new WebSocketStage(world, version)
      const [left, right] = other.sockets()
      const reader = right.readable.getReader()
      const reading = assert.rejects(reader.read())
      const writer = left.writable.getWriter()
      await world.complete(writer.abort('why'))
      assert.equal((await world.complete(left.closed)).error?.cause, 'why')
      await world.complete(right.closed)
      await reading
      await assert.rejects(right.writable.getWriter().write('x'))
      other.finish()
    },
  )
}
