/** Reading and writing a WebSocket with back pressure, and what connect() gives. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from '../client/index.ts'
import { UsageError } from '../http/index.ts'
import { worldTest } from '../testing/index.ts'
import { connect } from './connect.ts'
import { echo, endAfterClose, peerIn, stage, textFrame } from './hand-written-peer.test.ts'
import { Socket } from './socket.ts'
import { prepare } from './prepared-message.ts'
import { WebSocket, webSocketOver } from './web-socket.ts'

test('read: messages in order, before it is open too; undefined is a good end, a bad one rejects', async () => {
  const { world, open, peers } = stage({ onFrame: endAfterClose })
  const webSocket = open()
  webSocket.onmessage = () => assert.fail('messages go to who reads')
  const first = webSocket.read()
  const second = webSocket.read()
  await world.settle()
  peers[0]?.text('one')
  peers[0]?.binary(Buffer.from([1]))
  peers[0]?.close(1000)
  assert.equal(await world.complete(first), 'one')
  assert.deepEqual(await world.complete(second), new Uint8Array([1]))
  assert.equal(await world.complete(webSocket.read()), undefined)
  assert.equal((await webSocket.closed).code, 1000)

  const cut = stage()
  const broken = cut.open()
  const pending = assert.rejects(broken.read(), { code: 'PEER_RESET' })
  await cut.world.settle()
  cut.peers[0]?.socket.resetAndDestroy?.()
  await cut.world.complete(pending)
  await assert.rejects(broken.read(), { code: 'PEER_RESET' })
  assert.equal(cut.log.at(-1), 'close 1006 "" not clean (3)')
})

test('read with a deadline or a signal ends that read alone', async () => {
  const { world, open, peers } = stage()
  const webSocket = open()
  await world.settle()
  await world.complete(assert.rejects(webSocket.read({ deadline: 50 }), { code: 'READ_TIMEOUT' }))
  const controller = new AbortController()
  const aborted = assert.rejects(webSocket.read({ signal: controller.signal }), (reason) => reason === 'stop')
  controller.abort('stop')
  await world.complete(aborted)
  peers[0]?.text('still there')
  assert.equal(await world.complete(webSocket.read()), 'still there')
})

test('what fails to open rejects whoever reads, writes and iterates', async () => {
  const { world, open } = stage({ answer: () => 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n' })
  const webSocket = open()
  const rejected = [webSocket.read(), webSocket.write('x'), webSocket[Symbol.asyncIterator]().next()].map((promise) =>
    assert.rejects(promise, { code: 'HANDSHAKE_FAILED', status: 503 }),
  )
  await world.complete(Promise.all(rejected))
  await world.complete(assert.rejects(webSocket.read(), { code: 'HANDSHAKE_FAILED' }))
  await world.complete(assert.rejects(webSocket.write('x'), { code: 'HANDSHAKE_FAILED' }))
})

test('iteration goes on after the loop was left', async () => {
  const { world, open, peers } = stage({ behind: Buffer.concat(['a', 'b', 'c', 'd'].map(textFrame)), onFrame: endAfterClose })
  const webSocket = open()
  const got: unknown[] = []
  const loop = async (): Promise<void> => {
    for await (const message of webSocket) if (got.push(message) === 2) break
    for await (const message of webSocket) {
      got.push(message)
      if (message === 'd') peers[0]?.close(1000)
    }
  }
  await world.complete(loop())
  assert.deepEqual(got, ['a', 'b', 'c', 'd'])
})

test('who begins to read after listening gets what comes from then on', async () => {
  const { world, open, peers, log } = stage({ onFrame: endAfterClose })
  const webSocket = open()
  await world.settle()
  peers[0]?.text('heard')
  await world.settle()
  const read = webSocket.read()
  peers[0]?.text('read')
  peers[0]?.text('read, too')
  assert.equal(await world.complete(read), 'read')
  assert.equal(await world.complete(webSocket.read()), 'read, too')
  peers[0]?.close(1000)
  await world.settle()
  assert.deepEqual(log, ['open (1)', 'message heard (1)', 'close 1000 "" clean (3)'])
})

test('a reader that begins when the end is already there hears of it, and the close event comes all the same', async () => {
  const { world, open, log } = stage({ behind: textFrame('last'), onFrame: endAfterClose })
  const webSocket = open()
  webSocket.onmessage = null
  await world.settle()
  webSocket.close(1000)
  world.advance(10_000)
  const read = webSocket.read()
  await world.complete(read.catch(() => {}))
  await world.settle()
  assert.equal(log.filter((line) => line.startsWith('close')).length, 1)
})

test('a peer that sends what nobody reads is held back', async () => {
  const { world, open, peers } = stage()
  const webSocket = open()
  const first = webSocket.read()
  await world.settle()
  const socket = peers[0]?.socket as unknown as { writableLength: number }
  for (let i = 0; i < 1000; i++) peers[0]?.text('x'.repeat(10_000))
  assert.equal(((await world.complete(first)) as string).length, 10_000)
  await world.settle()
  assert.ok(socket.writableLength > 8_000_000, `${socket.writableLength} bytes are still with the peer`)
  for (let i = 1; i < 1000; i++) await world.complete(webSocket.read())
  assert.equal(socket.writableLength, 0)
})

test('write waits for the open, keeps the order with send and Blobs, and tells when it was taken', async () => {
  const { world, open, peers } = stage()
  const webSocket = open()
  const done: string[] = []
  const writes = [webSocket.write('1'), webSocket.write(new Blob(['2'])), webSocket.write(new Uint8Array([3]))]
  writes.forEach((write, i) => void write.then(() => done.push(String(i + 1))))
  assert.ok(webSocket.bufferedAmount === 3)
  await world.complete(Promise.all(writes))
  webSocket.send('4')
  webSocket.send(new Blob(['5']))
  const last = webSocket.write(prepare('6'))
  await world.complete(last)
  await world.settle()
  assert.deepEqual(done, ['1', '2', '3'])
  assert.deepEqual(peers[0]?.lines, ['text "1"', 'binary 1 32', 'binary 1 03', 'text "4"', 'binary 1 35', 'text "6"'])
  assert.equal(webSocket.bufferedAmount, 0)
  webSocket.close()
  await assert.rejects(webSocket.write('late'), { code: 'CANCELLED' })
})

test('readable and writable are those of the connection', async () => {
  const { world, open, peers } = stage({ onFrame: echo })
  const webSocket = open()
  await world.settle()
  assert.equal(webSocket.readable, webSocket.readable)
  const writer = webSocket.writable.getWriter()
  const reader = webSocket.readable.getReader()
  await world.complete(writer.write('there and back'))
  assert.deepEqual(await world.complete(reader.read()), { value: 'there and back', done: false })
  await world.complete(writer.close())
  assert.deepEqual(peers[0]?.lines, ['text "there and back"', 'close'])
  assert.deepEqual(await world.complete(reader.read()), { value: undefined, done: true })
})

test('ping tells the time to its Pong', async () => {
  const { world, open } = stage({
    onFrame: (peer, line) => {
      if (line.startsWith('ping')) peer.socket.write(Buffer.from([0x8a, 0x02, 0x68, 0x69]))
    },
  })
  const webSocket = open()
  await world.settle()
  const trip = new Promise<number | undefined>((resolve) => webSocket.ping('hi', resolve))
  assert.ok(((await world.complete(trip)) as number) > 0)
  assert.throws(() => webSocket.ping('x'.repeat(126)), UsageError)
})

test('await using closes with 1000 and waits', async () => {
  const { world, open, peers, log } = stage({ onFrame: echo })
  const webSocket = open()
  await world.settle()
  await world.complete(webSocket[Symbol.asyncDispose]())
  assert.deepEqual([peers[0]?.lines, log.at(-1)], [['close 1000'], 'close 1000 "" clean (3)'])
})

// ── connect ─────────────────────────────────────────────────────────────────────────────────────────

test('connect gives the socket, and what came with the handshake waits in it', async () => {
  const { world, client } = stage({ behind: textFrame('early'), fields: ['Sec-WebSocket-Protocol: chat'], onFrame: echo })
  const socket = await world.complete(connect('ws://peer.test/', { client, protocols: 'chat' }))
  assert.ok(socket instanceof Socket)
  assert.deepEqual([socket.protocol, socket.version, socket.state], ['chat', 'h1', 'open'])
  world.advance(1000)
  assert.equal(await world.complete(socket.read()), 'early')
  await world.complete(socket[Symbol.asyncDispose]())
  world.advance(1000)
  assert.equal(client.stats().streams, 0)
})

test('connect rejects with what went wrong, and the stack of who awaits', async () => {
  const { world, client } = stage({ answer: () => 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n' })
  const asks = async (): Promise<void> => void (await connect('ws://peer.test/', { client }))
  await world.complete(
    assert.rejects(asks(), (error: Error) => {
      assert.match(
        error.message,
        /^ws:\/\/peer\.test\/: the server answered the WebSocket handshake with 403 \(Forbidden\); 101 was expected$/,
      )
      assert.match(error.stack ?? '', /at async asks/)
      return true
    }),
  )
  await assert.rejects(connect('ftp://peer.test/', { client }), { name: 'SyntaxError' })
  await assert.rejects(connect('ws://peer.test/', { client, protocol: 'x' } as never), { message: /connect: there is no option protocol/ })
  await world.complete(assert.rejects(connect('ws://peer.test/', { client, signal: AbortSignal.abort('no') }), (reason) => reason === 'no'))
})

// ── Around a socket ─────────────────────────────────────────────────────────────────────────────────

test('a WebSocket around a socket that is there: opened in a later turn, with every code that can be sent', async () => {
  const { world, client, peers, log } = stage({ behind: textFrame('early'), onFrame: echo })
  const socket = await world.complete(connect('ws://peer.test/', { client }))
  const webSocket = webSocketOver(socket, 'ws://peer.test/', world)
  assert.deepEqual([webSocket.url, webSocket.readyState, webSocket.socket === socket], ['ws://peer.test/', WebSocket.OPEN, true])
  webSocket.onopen = () => log.push('open')
  webSocket.onmessage = ({ data, origin }) => log.push(`${data} of ${origin}`)
  webSocket.onclose = ({ code }) => log.push(`closed ${code}`)
  webSocket.send('at once')
  await world.settle()
  assert.deepEqual(log, ['open', 'early of ws://peer.test', 'at once of ws://peer.test'])
  webSocket.close(1011, 'why')
  await world.settle()
  assert.deepEqual([log.at(-1), peers[0]?.lines.at(-1)], ['closed 1011', 'close 1011'])
  assert.equal(webSocketOver(socket).url, '')
})

worldTest('closes, ends and breaks at any moment: one close event, every promise settled, nothing left', { seeds: 150 }, async (world) => {
  const { random } = world
  const client = new Client({ clock: world, connect: world.network.dial })
  const peers = peerIn(world, 'peer.test', {
    onFrame: (peer, line) => {
      if (line.startsWith('close')) endAfterClose(peer, line)
      else if (random.chance(0.5)) peer.text('answer')
    },
  })
  const closes: number[] = []
  const settled: Promise<unknown>[] = []
  let opens = 0
  const count = random.integer(1, 4)
  const all = Array.from({ length: count }, (_, i) => {
    const webSocket = new WebSocket('ws://peer.test/', { client, limits: { closeTimeout: 300 }, handshakeTimeout: 1000 })
    webSocket.onopen = () => void opens++
    webSocket.onclose = () => void closes.push(i)
    if (random.chance(0.5)) webSocket.onmessage = () => {}
    return webSocket
  })
  for (let step = 0; step < 60; step++) {
    const webSocket = random.pick(all)
    const peer = peers.length > 0 ? random.pick(peers) : undefined
    switch (random.integer(0, 11)) {
      case 0:
        settled.push(webSocket.write(random.chance(0.3) ? new Blob(['blob']) : 'written').catch(() => {}))
        break
      case 1:
        if (webSocket.readyState !== WebSocket.CONNECTING) webSocket.send(random.chance(0.3) ? new Blob(['blob']) : 'sent')
        break
      case 2:
        settled.push(webSocket.read().catch(() => {}))
        break
      case 3:
        if (random.chance(0.2)) webSocket.close(random.chance(0.5) ? 1000 : undefined)
        break
      case 4:
        if (random.chance(0.1)) webSocket.abort()
        break
      case 5:
        peer?.text('told')
        break
      case 6:
        if (random.chance(0.2)) peer?.close(1000)
        break
      case 7:
        if (random.chance(0.1)) peer?.socket.destroy()
        break
      case 8:
        if (random.chance(0.1)) peer?.socket.resetAndDestroy?.()
        break
      case 9:
        settled.push(
          webSocket.opened.catch(() => {}),
          webSocket.closed,
        )
        break
      default:
        world.advance(random.integer(0, 20))
        await new Promise((resolve) => setImmediate(resolve))
    }
  }
  for (const webSocket of all) settled.push(webSocket.closed)
  const end = random.integer(0, 2)
  if (end === 0) for (const webSocket of all) webSocket.close()
  if (end === 2) client.destroy()
  await world.complete(Promise.all([...settled, client.close()]))
  await world.settle()
  assert.deepEqual(
    closes.toSorted(),
    Array.from({ length: count }, (_, i) => i),
  )
  assert.ok(opens <= count && all.every(({ readyState }) => readyState === WebSocket.CLOSED))
  assert.deepEqual([client.stats().streams, client.stats().connections, world.armed], [0, 0, 0])
})
