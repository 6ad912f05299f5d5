import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, HeddleError, NetworkError, requestHead, UsageError, type Exchange, type Head } from '../http/index.ts'
import { clientScript, getHead } from '../testing/h2-peer.ts'
import { Recording, RecordingConnection, World } from '../testing/index.ts'
import { ErrorCode } from './frame.ts'
import { SettingId } from './settings.ts'
import type { ClientConnection } from './client-connection.ts'

const post = requestHead('POST', 'http', 'origin.test', '/')

function open(engine: ClientConnection, head?: Head, end = true): Recording & { exchange: Exchange } {
  const recording = new Recording()
  const exchange = engine.open(recording)
  assert.ok(exchange !== undefined, 'the connection has room')
  recording.exchange = exchange
  if (head !== undefined) exchange.sendHead(head, end)
  return recording as Recording & { exchange: Exchange }
}

test("the client's first words: preface, SETTINGS, the window, and the request behind them", () => {
  const { peer, engine, connection } = clientScript(new World(), { handshake: false })
  const exchange = open(engine, getHead('/x', ['accept', '*/*']))
  peer.peer.want('the preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  peer.wantFrame('settings', {
    type: 'SETTINGS',
    settings: [
      [SettingId.InitialWindowSize, 1_048_576],
      [SettingId.MaxHeaderListSize, 65_536],
      [SettingId.HeaderTableSize, 4_096],
      [SettingId.NoRfc7540Priorities, 1],
      [SettingId.EnablePush, 0],
    ],
  })
  peer.wantHead('the request', 1, true, [':method', 'GET', ':scheme', 'http', ':authority', 'origin.test', ':path', '/x', 'accept', '*/*'])
  peer.wantFrame('the window', { type: 'WINDOW_UPDATE', streamId: 0, increment: 4_194_304 - 65_535 })
  peer.wantIdle('nobody waits for SETTINGS')
  assert.deepEqual(connection.capabilities, { protocol: 'h2', maxExchanges: 100, extendedConnect: false })
  peer.send({
    type: 'SETTINGS',
    ack: false,
    settings: [
      [SettingId.MaxConcurrentStreams, 3],
      [SettingId.EnableConnectProtocol, 1],
    ],
  })
  peer.wantFrame('taken', { type: 'SETTINGS', ack: true })
  assert.deepEqual(connection.capabilities, { protocol: 'h2', maxExchanges: 3, extendedConnect: true })
  assert.equal(engine.openable, 2)
  assert.equal(exchange.closed, false)
})

test('a server that answers in HTTP/1.1 is called that', () => {
  const { engine, peer } = clientScript(new World(), { handshake: false })
  const recording = open(engine, getHead())
  peer.peer.want('the preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  peer.peer.send('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')
  peer.peer.world.run()
  assert.equal(recording.error?.message, 'PROTOCOL_ERROR: the peer speaks HTTP/1.1, not HTTP/2')
})

test('numbers are given with the head, so they go out in order whatever the order of opening', () => {
  const { peer, engine } = clientScript(new World())
  const [a, b, c] = [open(engine), open(engine), open(engine)]
  assert.equal(engine.openExchanges, 3)
  c.exchange.sendHead(getHead('/c'), true)
  a.exchange.sendHead(getHead('/a'), true)
  b.exchange.cancel(CancelReason.Cancelled)
  peer.wantHead('c is first', 1, true)
  peer.wantHead('a is second', 3, true)
  peer.wantIdle('b was never begun')
  assert.ok(b.error?.unprocessed)
  assert.equal(engine.openExchanges, 2)
})

test('capacity is told when it rises, and one end makes one place', () => {
  const { peer, engine, connection } = clientScript(new World(), { settings: [[SettingId.MaxConcurrentStreams, 2]] })
  open(engine, getHead())
  open(engine, getHead())
  assert.equal(engine.open(new Recording()), undefined)
  peer.wantHead('one', 1, true)
  peer.wantHead('two', 3, true)
  const before = connection.lines.length
  peer.sendHead(1, [':status', '204'], true)
  peer.wantIdle('one is over')
  assert.deepEqual(connection.lines.slice(before), ['capacity 1'])
  peer.send({ type: 'SETTINGS', ack: false, settings: [[SettingId.MaxConcurrentStreams, 0]] })
  peer.wantFrame('taken', { type: 'SETTINGS', ack: true })
  assert.equal(engine.openable, 0)
  peer.send({ type: 'SETTINGS', ack: false, settings: [[SettingId.MaxConcurrentStreams, 50]] })
  peer.wantFrame('taken', { type: 'SETTINGS', ack: true })
  assert.equal(connection.lines.at(-1), 'capacity 49')
})

test('responses of every form', () => {
  const { peer, engine } = clientScript(new World())
  const recording = open(engine, getHead())
  peer.wantHead('the request', 1, true)
  peer.sendHead(1, [':status', '103', 'link', '</a>'], false)
  peer
    .sendHead(1, [':status', '200', 'content-length', '4'], false)
    .sendContent(1, 'ab', false)
    .sendContent(1, 'cd', false)
    .sendHead(1, ['x', 'y'], true)
  peer.wantIdle('the response')
  assert.deepEqual(recording.lines, ['head 103 link:</a>', 'head 200 content-length:4', 'data "abcd"', 'trailers x:y', 'close'])
  const only = open(engine, getHead())
  peer.wantHead('another request', 3, true)
  peer.sendHead(3, [':status', '200', 'grpc-status', '0'], true)
  peer.wantIdle('trailers only')
  assert.deepEqual(only.lines, ['head 200 grpc-status:0 end', 'close'])
})

test('the length of a response to HEAD, and of a 304, is not held against it', () => {
  const { peer, engine } = clientScript(new World())
  const head = open(engine, requestHead('HEAD', 'http', 'origin.test', '/'))
  const notModified = open(engine, getHead())
  peer.wantHead('HEAD', 1, true)
  peer.wantHead('GET', 3, true)
  peer.sendHead(1, [':status', '200', 'content-length', '1000'], true)
  peer.sendHead(3, [':status', '304', 'content-length', '1000'], false).sendContent(3, '', true)
  peer.wantIdle('both are complete')
  assert.deepEqual(head.lines, ['head 200 content-length:1000 end', 'close'])
  assert.deepEqual(notModified.lines, ['head 304 content-length:1000', 'end', 'close'])
})

test('REFUSED_STREAM leaves the request unprocessed, other codes do not', () => {
  const { peer, engine } = clientScript(new World())
  const [refused, failed] = [open(engine, getHead()), open(engine, getHead())]
  peer.wantHead('one', 1, true)
  peer.wantHead('two', 3, true)
  peer.send(
    { type: 'RST_STREAM', streamId: 1, code: ErrorCode.RefusedStream },
    { type: 'RST_STREAM', streamId: 3, code: ErrorCode.InternalError },
  )
  peer.wantIdle('both are over')
  assert.deepEqual(
    [refused.error?.code, refused.error?.unprocessed, refused.error?.wireCode],
    ['PEER_RESET', true, ErrorCode.RefusedStream],
  )
  assert.deepEqual([failed.error?.code, failed.error?.unprocessed, failed.error?.wireCode], ['PEER_RESET', false, ErrorCode.InternalError])
})

test('NO_ERROR behind a complete response ends an upload well; before it, it does not', () => {
  const { peer, engine } = clientScript(new World())
  const [early, cut] = [open(engine, post, false), open(engine, post, false)]
  peer.wantHead('one', 1, false)
  peer.wantHead('two', 3, false)
  peer.sendHead(1, [':status', '200'], true).send({ type: 'RST_STREAM', streamId: 1, code: ErrorCode.NoError })
  peer.sendHead(3, [':status', '200'], false).send({ type: 'RST_STREAM', streamId: 3, code: ErrorCode.NoError })
  peer.wantIdle('both are over')
  assert.deepEqual(early.lines, ['head 200 end', 'close'])
  assert.equal(early.exchange.sendData(Buffer.from('x'), 0, 1, true), false)
  assert.equal(cut.error?.code, 'PEER_RESET')
})

test('GOAWAY: what was beyond it moves on, what was not finishes, and nothing new begins', () => {
  const { peer, engine, connection } = clientScript(new World())
  const [first, second] = [open(engine, getHead()), open(engine, getHead())]
  const waiting = open(engine)
  peer.wantHead('one', 1, true)
  peer.wantHead('two', 3, true)
  peer.send({ type: 'GOAWAY', lastStreamId: 1, code: ErrorCode.NoError, debug: '' })
  peer.wantIdle('the first goes on')
  assert.ok(connection.lines.includes('draining'))
  assert.equal(engine.openable, 0)
  assert.equal(first.closed, false)
  for (const { error } of [second, waiting]) assert.deepEqual([error?.code, error?.unprocessed], ['PEER_CLOSED', true])
  waiting.exchange.sendHead(getHead(), true)
  peer.sendHead(1, [':status', '204'], true)
  assert.equal(peer.wantFrame('goodbye', { type: 'GOAWAY' }).code, ErrorCode.NoError)
  peer.peer.wantClose('and away', 'end')
  assert.equal(first.error, undefined)
  assert.equal(connection.error, undefined)
  assert.ok(connection.closed)
})

test('GOAWAY in two steps, and one that says why', () => {
  const { peer, engine, connection } = clientScript(new World())
  const [first, second] = [open(engine, getHead()), open(engine, getHead())]
  peer.wantHead('one', 1, true)
  peer.wantHead('two', 3, true)
  peer.send({ type: 'GOAWAY', lastStreamId: 0x7fff_ffff, code: ErrorCode.NoError, debug: '' })
  peer.wantIdle('both go on')
  assert.deepEqual([first.closed, second.closed], [false, false])
  // RFC 9113 §6.8: the number never grows again.
  peer.send({ type: 'GOAWAY', lastStreamId: 1, code: ErrorCode.EnhanceYourCalm, debug: 'too_many_pings' })
  peer.wantIdle('the second is over')
  assert.match(second.error?.message ?? '', /ENHANCE_YOUR_CALM \(too_many_pings\)/)
  assert.ok(second.error?.unprocessed)
  peer.send({ type: 'GOAWAY', lastStreamId: 3, code: ErrorCode.NoError, debug: '' }).sendHead(1, [':status', '204'], true)
  peer.wantFrame('goodbye', { type: 'GOAWAY' })
  peer.peer.wantClose('and away', 'end')
  assert.equal(connection.error?.wireCode, ErrorCode.EnhanceYourCalm)
  assert.equal(connection.lines.filter((line) => line === 'draining').length, 1)
})

test('a connection that is lost: what had not left is unprocessed', () => {
  const world = new World()
  const { peer, engine } = clientScript(world)
  const sent = open(engine, getHead())
  peer.wantHead('one', 1, true)
  const unsent = open(engine, getHead())
  const unopened = open(engine)
  engine.receiveError(new NetworkError('NETWORK_ERROR', 'gone'), world.now())
  assert.deepEqual([sent.error?.code, sent.error?.unprocessed], ['NETWORK_ERROR', false])
  for (const { error } of [unsent, unopened]) assert.deepEqual([error?.code, error?.unprocessed], ['NETWORK_ERROR', true])
})

test('abort ends all with its error, at once', () => {
  const { peer, engine, connection } = clientScript(new World())
  const [sent, unopened] = [open(engine, getHead()), open(engine)]
  peer.wantHead('one', 1, true)
  const error = new HeddleError('SHUTDOWN', 'enough')
  engine.abort(error)
  peer.peer.wantClose('cut off', 'reset')
  for (const one of [sent, unopened]) assert.equal(one.error, error)
  assert.equal(connection.error, error)
})

test('a discarded response is cancelled once the request is sent, and ends well', () => {
  const { peer, engine } = clientScript(new World())
  const recording = open(engine, post, false)
  peer.wantHead('the request', 1, false)
  recording.exchange.discard()
  recording.discarded = true
  peer.sendHead(1, [':status', '200'], false).sendContent(1, 'unwanted', false)
  peer.wantIdle('the upload goes on')
  recording.exchange.sendData(Buffer.from('up'), 0, 2, true)
  peer.wantContent('the upload', 1, 2, true)
  peer.wantReset('and no more', 1, ErrorCode.Cancel)
  assert.deepEqual(recording.lines, ['head 200', 'close'])
  peer.sendContent(1, 'late', false).sendHead(1, ['x', 'y'], true)
  peer.wantIdle('late, and ignored')
})

test('priority is said in a frame, before and after the request', () => {
  const { peer, engine } = clientScript(new World())
  const recording = open(engine)
  recording.exchange.setPriority({ urgency: 1, incremental: false })
  recording.exchange.sendHead(getHead(), true)
  peer.wantHead('the request', 1, true)
  peer.wantFrame('its priority', { type: 'PRIORITY_UPDATE', prioritizedId: 1, value: 'u=1' })
  recording.exchange.setPriority({ urgency: 7, incremental: true })
  peer.wantFrame('another', { type: 'PRIORITY_UPDATE', prioritizedId: 1, value: 'u=7, i' })
})

test('the origin set is what the server said', () => {
  const { peer, engine } = clientScript(new World())
  assert.equal(engine.originSet, undefined)
  peer.send({ type: 'ORIGIN', origins: ['https://a.test', 'not one'] }, { type: 'ORIGIN', origins: ['https://b.test'] })
  peer.wantIdle('noted')
  assert.deepEqual([...(engine.originSet ?? [])], ['https://a.test', 'https://b.test'])
  // A frame that says nothing more costs nothing more: the set is not made anew for each.
  const { originSet } = engine
  peer.send({ type: 'ORIGIN', origins: [] })
  peer.wantIdle('noted')
  assert.equal(engine.originSet, originSet)
})

test('content that waits for a 100 is not sent after a final answer, and the writer is let go', () => {
  const { peer, engine } = clientScript(new World())
  const recording = open(engine, requestHead('POST', 'http', 'origin.test', '/', ['expect', '100-continue']), false)
  assert.equal(recording.exchange.sendData(Buffer.alloc(100_000), 0, 100_000, false), false)
  peer.wantHead('the request', 1, false)
  peer.sendHead(1, [':status', '417', 'content-length', '2'], false)
  peer.wantIdle('a final head')
  assert.equal(recording.exchange.sendData(Buffer.alloc(1), 0, 1, true), false)
  peer.sendContent(1, 'no', true)
  peer.wantReset('the content will not come', 1, ErrorCode.Cancel)
  assert.deepEqual(recording.lines, ['head 417 content-length:2', 'data "no"', 'end', 'close'])
})

test('a tunnel that is refused ends its request, and takes no more bytes', () => {
  const { peer, engine } = clientScript(new World())
  const recording = open(engine, requestHead('CONNECT', '', 'a.test:443', ''), false)
  recording.exchange.sendData(Buffer.from('too early'), 0, 9, false)
  peer.wantHead('the request', 1, false, [':method', 'CONNECT', ':authority', 'a.test:443'])
  peer.sendHead(1, [':status', '403'], false)
  peer.wantContent('no bytes for the tunnel', 1, 0, true)
  assert.equal(recording.exchange.sendData(Buffer.from('x'), 0, 1, true), false)
  peer.sendContent(1, 'no', true)
  peer.wantIdle('over')
  assert.deepEqual(recording.lines, ['head 403', 'data "no"', 'end', 'close'])
})

test('extended CONNECT only where the server offers it', () => {
  const chat = requestHead('CONNECT', 'http', 'a.test', '/chat', [], 'websocket')
  const without = clientScript(new World())
  assert.throws(() => without.engine.open(new Recording())?.sendHead(chat, false), UsageError)
  const { peer, engine } = clientScript(new World(), { settings: [[SettingId.EnableConnectProtocol, 1]] })
  engine.open(new Recording())?.sendHead(chat, false)
  peer.wantHead('a request', 1, false, [
    ':method',
    'CONNECT',
    ':scheme',
    'http',
    ':authority',
    'a.test',
    ':path',
    '/chat',
    ':protocol',
    'websocket',
  ])
})

test('a client takes no requests and forgives its server’s late frames', () => {
  const { peer, engine, connection } = clientScript(new World())
  for (let i = 0; i < 100; i++) {
    const recording = open(engine, getHead())
    peer.wantHead('a request', 1 + 2 * i, true)
    recording.exchange.cancel(CancelReason.Cancelled)
    peer.wantReset('cancelled', 1 + 2 * i, ErrorCode.Cancel)
  }
  for (let i = 0; i < 100; i++) peer.sendHead(1 + 2 * i, [':status', '200'], false).sendContent(1 + 2 * i, 'late', true)
  peer.wantIdle('nobody is to blame')
  assert.equal(connection.closed, false)
})

test('more cancelled requests than are remembered are no reason to close', () => {
  const { peer, engine, connection } = clientScript(new World())
  const count = 4_200
  for (let i = 0; i < count; i++) {
    const recording = open(engine, getHead())
    recording.exchange.cancel(CancelReason.Cancelled)
  }
  for (let i = 0; i < count; i++) {
    peer.wantHead('a request', 1 + 2 * i, true)
    peer.wantReset('cancelled', 1 + 2 * i, ErrorCode.Cancel)
  }
  for (let i = 0; i < count; i++) peer.sendHead(1 + 2 * i, [':status', '200'], true)
  peer.wantIdle('forgotten, and forgiven')
  assert.equal(connection.closed, false)
})

test('a connection out of numbers opens nothing more', () => {
  const { engine, peer } = clientScript(new World())
  engine.exchanges.nextStreamId = 0x7fff_fffd
  assert.equal(engine.openable, 2)
  open(engine, getHead())
  open(engine, getHead())
  assert.equal(engine.open(new Recording()), undefined)
  peer.wantHead('the last but one', 0x7fff_fffd, true)
  peer.wantHead('the last', 0x7fff_ffff, true)
  assert.equal(engine.openable, 0)
})

test('an owner that throws is not the end of the engine', () => {
  const broken = (): never => {
    throw new Error('broken')
  }
  const { peer, engine } = clientScript(new World(), {
    handler: new RecordingConnection({ on: { onCapacity: broken, onDraining: broken, onClose: broken } }),
  })
  const recording = open(engine, getHead())
  peer.wantHead('a request', 1, true)
  peer.send({ type: 'GOAWAY', lastStreamId: 1, code: 0, debug: '' }).sendHead(1, [':status', '204'], true)
  peer.wantFrame('goodbye', { type: 'GOAWAY' })
  peer.peer.wantClose('and away', 'end')
  assert.equal(recording.error, undefined)
})
