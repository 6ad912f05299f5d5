import assert from 'node:assert/strict'
import { CancelReason, originsPayload, requestHead, UsageError } from '../http/index.ts'
import { clientScript, ErrorCode, getHead } from '../testing/h3-peer.ts'
import { recordingHandler } from '../testing/recording.ts'
import { worldTest } from '../testing/seeds.ts'
import { FrameType } from './frame.ts'
import { SettingId } from './settings.ts'

const seeds = { seeds: 6 }
const post = requestHead('POST', 'http', 'origin.test', '/')

worldTest('a request and its response', seeds, (world) => {
  const { peer, engine, connection } = clientScript(world)
  const handler = recordingHandler()
  const exchange = engine.open(handler)
  handler.exchange = exchange
  exchange?.sendHead(getHead('/a', ['accept', '*/*']), true)
  const stream = peer.wantStream('the request', 0)
  peer.wantHead('its head', stream, [':method', 'GET', ':scheme', 'http', ':authority', 'origin.test', ':path', '/a', 'accept', '*/*'])
  peer.wantEnd('its end', stream)
  stream.sendHead([':status', '103']).sendHead([':status', '200']).sendContent('ok').sendHead(['x-end', 'y'], true)
  world.run()
  assert.deepEqual(handler.lines, ['head 103', 'head 200', 'data "ok"', 'trailers x-end:y', 'close'])
  assert.deepEqual(handler.faults, [])
  assert.deepEqual(connection.lines.slice(0, 2), ['ready', 'capacity 100'])
})

worldTest('what a window may grow to is told QUIC, before the request has a stream and after', seeds, (world) => {
  const { engine } = clientScript(world)
  const growth = (exchange: unknown): unknown => (exchange as { quic: { windowGrowth: number } }).quic.windowGrowth
  const [early, late] = [engine.open(recordingHandler()), engine.open(recordingHandler())]
  early?.limitWindowGrowth?.(5_000_000)
  early?.sendHead(getHead(), true)
  late?.sendHead(getHead(), true)
  assert.deepEqual([growth(early), growth(late)], [5_000_000, Infinity])
  late?.limitWindowGrowth?.(6_000_000)
  assert.equal(growth(late), 6_000_000)
  assert.throws(() => late?.limitWindowGrowth?.(0), UsageError)
  late?.cancel(CancelReason.Cancelled)
  late?.limitWindowGrowth?.(7_000_000)
})

worldTest('the fields of HTTP/1.1 connections do not leave (RFC 9114 §4.2)', seeds, (world) => {
  const { peer, engine } = clientScript(world)
  engine.open(recordingHandler())?.sendHead(getHead('/', ['connection', 'close', 'te', 'gzip', 'keep-alive', '1', 'a', 'b']), true)
  const stream = peer.wantStream('the request', 0)
  peer.wantHead('its head', stream, [':method', 'GET', ':scheme', 'http', ':authority', 'origin.test', ':path', '/', 'a', 'b'])
})

worldTest('cancel before the head costs no stream; after it both directions end', seeds, (world) => {
  const { peer, engine } = clientScript(world)
  const first = recordingHandler()
  engine.open(first)?.cancel(CancelReason.Cancelled)
  world.run()
  assert.equal(first.error?.unprocessed, true)
  assert.equal(peer.accepted.has(0), false)
  const second = recordingHandler()
  const exchange = engine.open(second)
  exchange?.sendHead(post, false)
  const stream = peer.wantStream('the request', 0)
  // RFC 9114 §4.1.1: H3_REQUEST_REJECTED is a server's word.
  exchange?.cancel(CancelReason.Refused)
  peer.wantReset('the request', stream, ErrorCode.RequestCancelled)
  peer.wantStopSending('the response', stream, ErrorCode.RequestCancelled)
  assert.equal(second.error?.code, 'CANCELLED')
  assert.equal(second.error.unprocessed, false)
})

worldTest('H3_REQUEST_REJECTED may be tried again, another code may not', seeds, (world) => {
  const { peer, engine } = clientScript(world)
  const handlers = [recordingHandler(), recordingHandler()]
  for (const handler of handlers) engine.open(handler)?.sendHead(getHead(), true)
  peer.wantStream('the first', 0).quic?.reset(ErrorCode.RequestRejected)
  peer.wantStream('the second', 4).quic?.reset(ErrorCode.InternalError)
  world.run()
  assert.deepEqual(
    handlers.map(({ error }) => [error?.code, error?.wireCode, error?.unprocessed]),
    [
      ['PEER_RESET', ErrorCode.RequestRejected, true],
      ['PEER_RESET', ErrorCode.InternalError, false],
    ],
  )
})

worldTest('a server that needs no more of the request is answered in peace (RFC 9114 §4.1)', seeds, (world) => {
  const { peer, engine } = clientScript(world)
  const handler = recordingHandler()
  const exchange = engine.open(handler)
  handler.exchange = exchange
  exchange?.sendHead(post, false)
  exchange?.sendData(Buffer.alloc(2_000), 0, 2_000, false)
  const stream = peer.wantStream('the request', 0)
  stream.quic?.stopSending(ErrorCode.NoError)
  world.run()
  assert.equal(handler.closed, false)
  assert.equal(exchange?.sendData(Buffer.alloc(10), 0, 10, true), false, 'it goes nowhere')
  stream.sendHead([':status', '413'], true)
  world.run()
  assert.deepEqual(handler.lines, ['head 413 end', 'close'])
  assert.equal(stream.closed, true, 'both directions are over')
})

worldTest('a response whose rest is not wanted is stopped once the request is whole', seeds, (world) => {
  const { peer, engine } = clientScript(world)
  const handler = recordingHandler()
  const exchange = engine.open(handler)
  handler.exchange = exchange
  exchange?.sendHead(post, false)
  const stream = peer.wantStream('the request', 0)
  stream.sendHead([':status', '200']).sendContent('abc')
  world.run()
  handler.discarded = true
  exchange?.discard()
  stream.sendContent('def')
  peer.wantStopSending('sending goes on', stream, undefined)
  exchange?.sendData(Buffer.from('x'), 0, 1, true)
  peer.wantStopSending('now nothing is left', stream, ErrorCode.RequestCancelled)
  assert.deepEqual(handler.lines, ['head 200', 'data "abc"', 'close'])
})

worldTest('priorities are said on the control stream, before and after the request (RFC 9218 §7.2)', seeds, (world) => {
  const { peer, engine } = clientScript(world)
  const exchange = engine.open(recordingHandler())
  exchange?.setPriority({ urgency: 1, incremental: true })
  exchange?.sendHead(post, false)
  const control = peer.theirs(0)
  peer.wantFrame('SETTINGS', control, { type: 'SETTINGS' })
  peer.wantFrame('what was said before', control, { type: 'PRIORITY_UPDATE', id: 0, value: 'u=1, i' })
  exchange?.setPriority({ urgency: 7, incremental: false })
  peer.wantFrame('what is said after', control, { type: 'PRIORITY_UPDATE', id: 0, value: 'u=7' })
})

worldTest('extended CONNECT waits for SETTINGS, and goes by them (RFC 9220 §3)', seeds, (world) => {
  const head = requestHead('CONNECT', 'http', 'origin.test', '/chat', [], 'websocket')
  for (const offered of [1, 0]) {
    const { peer, engine, connection } = clientScript(world, { handshake: false })
    const handler = recordingHandler()
    const exchange = engine.open(handler)
    handler.exchange = exchange
    exchange?.sendHead(head, false)
    exchange?.sendData(Buffer.from('early'), 0, 5, false)
    world.run()
    assert.equal(peer.accepted.has(0), false, 'nothing was sent')
    peer.handshake(offered === 1 ? [[SettingId.EnableConnectProtocol, 1]] : [])
    world.run()
    if (offered === 0) {
      assert.ok(handler.error instanceof UsageError)
      assert.throws(() => engine.open(recordingHandler())?.sendHead(head, false), UsageError)
      continue
    }
    assert.deepEqual(connection.capabilities?.extendedConnect, true)
    const stream = peer.wantStream('the tunnel', 0)
    const lines = peer.wantHead('its head', stream)
    assert.deepEqual(lines.slice(-2), [':protocol', 'websocket'])
    peer.wantContent('nothing before the answer', stream, '', false)
    stream.sendHead([':status', '200'])
    peer.wantContent('then what was said before', stream, 'early', false)
  }
})

worldTest('as many requests as QUIC allows, and more when it allows more', seeds, (world) => {
  const { peer, engine, connection } = clientScript(world, { quic: { maxStreams: 3 } })
  assert.equal(engine.openable, 3)
  const exchanges = Array.from({ length: 3 }, () => engine.open(recordingHandler()))
  assert.equal(engine.open(recordingHandler()), undefined)
  for (const exchange of exchanges) exchange?.sendHead(getHead(), true)
  peer.wantStream('the first', 0).sendHead([':status', '204'], true)
  world.run()
  assert.equal(engine.openable, 1)
  assert.deepEqual(connection.lines.filter((line) => line.startsWith('capacity')).at(-1), 'capacity 1')
})

worldTest('a server that answers without end is stopped: 1xx, fields, field blocks', seeds, (world) => {
  const { peer, engine } = clientScript(world, { options: { limits: { maxInformational: 2, maxFieldLines: 3, maxFieldSectionSize: 500 } } })
  const handlers = [recordingHandler(), recordingHandler(), recordingHandler()]
  for (const handler of handlers) engine.open(handler)?.sendHead(getHead(), true)
  const interim = peer.wantStream('the first', 0)
  for (let i = 0; i < 3; i++) interim.sendHead([':status', '103'])
  peer.wantStream('the second', 4).sendHead([':status', '200', 'a', '1', 'b', '2', 'c', '3'])
  peer.wantStream('the third', 8).sendBytes(Buffer.from([1, 0x80, 1, 0, 0]))
  world.run()
  assert.deepEqual(
    handlers.map(({ error }) => error?.code),
    ['PROTOCOL_ERROR', 'FIELDS_TOO_LARGE', 'FIELDS_TOO_LARGE'],
  )
  for (const id of [0, 4, 8]) peer.wantStopSending('it is told', peer.wantStream('it', id), ErrorCode.ExcessiveLoad)
  peer.wantOpen('the connection stands')
})

worldTest('a server says which origins it answers for (RFC 9412)', seeds, (world) => {
  const { peer, engine } = clientScript(world)
  assert.equal(engine.originSet, undefined)
  const payload = originsPayload(['https://a.test', 'https://b.test:8443'])
  peer.control.send({ type: 'UNKNOWN', frameType: FrameType.Origin, payload })
  peer.wantOpen('it may')
  assert.deepEqual([...(engine.originSet ?? [])], ['https://a.test', 'https://b.test:8443'])
})
