/** What a WebSocket is asked for before it is open, or has to wait for its turn. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { echo, endAfterClose, stage } from './hand-written-peer.test.ts'
import { connect } from './connect.ts'
import { prepare } from './prepared-message.ts'
import { webSocketOver } from './web-socket.ts'

/** A peer that never answers the handshake. */
const silent = { answer: () => undefined }

test('reads that were begun first get the first messages, whoever else reads as it opens', async () => {
  const { world, open, peers } = stage({ onFrame: endAfterClose })
  const webSocket = open()
  const reads: Promise<unknown>[] = [webSocket.read(), webSocket[Symbol.asyncIterator]().next()]
  webSocket.onopen = () => void reads.push(webSocket.read(), webSocket.read())
  await world.settle()
  for (const text of ['1', '2', '3']) peers[0]?.text(text)
  peers[0]?.close(1000)
  assert.deepEqual(await world.complete(Promise.all(reads)), ['1', { value: '2', done: false }, '3', undefined])
})

test('a deadline counts, and a signal is heard, while it is connecting: of reads', async () => {
  const { world, open } = stage(silent)
  const webSocket = open(undefined, { handshakeTimeout: 10_000 })
  const controller = new AbortController()
  const start = world.now()
  const late = assert.rejects(webSocket.read({ deadline: 50 }), { code: 'READ_TIMEOUT', message: 'no message came within 50 ms' })
  const aborted = assert.rejects(webSocket.read({ signal: controller.signal }), (reason) => reason === 'stop')
  const patient = assert.rejects(webSocket.read(), { code: 'HEAD_TIMEOUT' })
  await assert.rejects(webSocket.read({ signal: AbortSignal.abort('before') }), (reason) => reason === 'before')
  await world.complete(late)
  assert.equal(world.now() - start, 50)
  controller.abort('stop')
  await aborted
  assert.equal(webSocket.readyState, webSocket.CONNECTING)
  await world.complete(patient)
})

test('one that ended before the open takes no message, and one that did not keeps its deadline', async () => {
  let answer: (() => void) | undefined
  const { world, open, peers } = stage({
    answer: (peer) => {
      const lines = ['Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${peer.accept}`]
      answer = () => peer.socket.write(Buffer.from(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`))
      return undefined
    },
  })
  const webSocket = open()
  await world.complete(assert.rejects(webSocket.read({ deadline: 50 }), { code: 'READ_TIMEOUT' }))
  const second = webSocket.read({ deadline: 100 })
  const third = assert.rejects(webSocket.read({ deadline: 100 }), { code: 'READ_TIMEOUT', message: 'no message came within 100 ms' })
  await world.settle()
  const start = world.now()
  world.advance(60)
  answer?.()
  await world.settle()
  peers[0]?.text('for the second')
  assert.equal(await world.complete(second), 'for the second')
  await world.complete(third)
  assert.equal(world.now() - start, 100)
  webSocket.abort()
  await world.complete(webSocket.closed)
})

test('a deadline counts, and a signal is heard, while it is connecting: of writes, which are not sent then', async () => {
  const { world, open } = stage(silent)
  const webSocket = open(undefined, { handshakeTimeout: 10_000 })
  const controller = new AbortController()
  const late = assert.rejects(webSocket.write('a', { deadline: 50 }), { code: 'SEND_TIMEOUT' })
  const aborted = assert.rejects(webSocket.write('b', { signal: controller.signal }), (reason) => reason === 'stop')
  const patient = assert.rejects(webSocket.write('c'), { code: 'HEAD_TIMEOUT' })
  await assert.rejects(webSocket.write('d', { signal: AbortSignal.abort('before') }), (reason) => reason === 'before')
  await world.complete(late)
  controller.abort('stop')
  await aborted
  assert.equal(webSocket.readyState, webSocket.CONNECTING)
  await world.complete(patient)
})

test('a write that ends before its turn is not sent, and the others are', async () => {
  const { world, open, peers } = stage()
  const webSocket = open()
  await world.settle()
  const controller = new AbortController()
  webSocket.send(new Blob(['first']))
  const aborted = assert.rejects(webSocket.write('never', { signal: controller.signal }), (reason) => reason === 'stop')
  const last = webSocket.write('last', { deadline: 1_000, signal: new AbortController().signal })
  controller.abort('stop')
  await world.complete(aborted)
  await world.complete(last)
  await world.settle()
  assert.deepEqual(peers[0]?.lines, ['binary 5 6669727374', 'text "last"'])
  assert.equal(webSocket.readyState, webSocket.OPEN)
  world.advance(2_000)
  await world.settle()
  assert.equal(webSocket.readyState, webSocket.OPEN)
})

test('a write behind a Blob that the peer does not take ends the connection at its deadline, or by its signal', async () => {
  for (const how of ['deadline', 'signal'] as const) {
    const { world, open, peers } = stage()
    const webSocket = open()
    await world.settle()
    const reading = peers[0]?.socket as { pause?(): void } | undefined
    reading?.pause?.()
    const controller = new AbortController()
    webSocket.send(new Blob([new Uint8Array(10_000_000)]))
    const written = webSocket.write('x', how === 'deadline' ? { deadline: 500 } : { signal: controller.signal })
    const rejected = assert.rejects(written, how === 'deadline' ? { code: 'SEND_TIMEOUT' } : (reason) => reason === 'stop')
    while (webSocket.socket?.bufferedAmount !== 10_000_001 && webSocket.bufferedAmount > 0) {
      await new Promise((resolve) => setImmediate(() => resolve(world.settle())))
    }
    if (how === 'signal') controller.abort('stop')
    await world.complete(rejected)
    const { code, error } = await world.complete(webSocket.closed)
    assert.deepEqual([code, error?.code], [1006, how === 'deadline' ? 'SEND_TIMEOUT' : 'CANCELLED'])
  }
})

test('what is neither text nor bytes is sent as the text that it comes to', async () => {
  const { world, open, peers } = stage()
  const webSocket = open()
  await world.settle()
  for (const value of [null, undefined, true, {}, [1, 2], new Date(0).getTime(), { toString: () => 'own' }]) webSocket.send(value as never)
  webSocket.send(new Uint8Array(new SharedArrayBuffer(1)))
  webSocket.send(prepare('prepared'))
  assert.throws(() => webSocket.send(Symbol('no text') as never), TypeError)
  await world.settle()
  const texts = ['null', 'undefined', 'true', '[object Object]', '1,2', '0', 'own'].map((text) => `text ${JSON.stringify(text)}`)
  assert.deepEqual(peers[0]?.lines, [...texts, 'binary 1 00', 'text "prepared"'])
  assert.equal(Object.prototype.toString.call(webSocket), '[object WebSocket]')
})

test('one that was closed before it told of being open is closing from then on', async () => {
  const { world, client, peers, log } = stage({ onFrame: echo })
  const socket = await world.complete(connect('ws://peer.test/', { client }))
  const webSocket = webSocketOver(socket, 'ws://peer.test/', world)
  webSocket.onopen = () => log.push(`open ${webSocket.readyState}`)
  webSocket.onclose = ({ code }) => log.push(`closed ${code}`)
  webSocket.send(new Blob(['x']))
  webSocket.close(3000)
  assert.equal(webSocket.readyState, webSocket.CLOSING)
  while (log.length < 2) await new Promise((resolve) => setImmediate(() => resolve(world.settle())))
  assert.deepEqual(log, ['open 2', 'closed 3000'])
  assert.deepEqual(peers[0]?.lines, ['binary 1 78', 'close 3000'])
})
