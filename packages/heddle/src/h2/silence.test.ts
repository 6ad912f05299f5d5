/** Time limits of what a program does after a silence: between two runs the engine does not know the time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, responseHead } from '../http/index.ts'
import { clientScript, getFields, getHead, postFields, serverScript } from '../testing/h2-peer.ts'
import { Recording, World } from '../testing/index.ts'
import { ErrorCode } from './frame.ts'

const patient = { limits: { idleTimeout: 1e9, pingInterval: 1e9, responseTimeout: 2_000, sendTimeout: 2_000 } }

test('a request on a connection that was silent has all of its time', () => {
  const world = new World()
  const { peer, engine } = clientScript(world, { options: patient })
  world.advance(51_000)
  const recording = new Recording()
  engine.open(recording)?.sendHead(getHead(), true)
  peer.wantHead('a request', 1, true)
  world.advance(1_900)
  assert.equal(recording.closed, false)
  world.advance(200)
  assert.equal(recording.error?.code, 'HEAD_TIMEOUT')
})

test('an upload that ends after a silence: from there on the answer has all of its time', () => {
  const world = new World()
  const { peer, engine } = clientScript(world, { options: patient })
  const recording = new Recording()
  const exchange = engine.open(recording)
  exchange?.sendHead(getHead(), false)
  world.advance(51_000)
  exchange?.sendData(new Uint8Array(0), 0, 0, true)
  peer.wantHead('a request', 1, false)
  peer.wantContent('its end', 1, 0, true)
  world.advance(1_900)
  assert.equal(recording.closed, false)
  world.advance(200)
  assert.equal(recording.error?.code, 'HEAD_TIMEOUT')
})

test('content that is held back for a 100, after a silence, is held back as long as ever', () => {
  const world = new World()
  const { peer, engine } = clientScript(world, { options: patient })
  world.advance(51_000)
  const exchange = engine.open(new Recording())
  exchange?.sendHead(getHead('/', ['expect', '100-continue']), false)
  exchange?.sendData(Buffer.from('content'), 0, 7, true)
  peer.wantHead('a request', 1, false)
  world.advance(900)
  peer.wantIdle('not yet')
  world.advance(200)
  peer.wantContent('no 100 came', 1, 7, true)
})

test('a response that goes on after a silence has all of the time for a window', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, { options: patient, settings: [[4, 0]] })
  peer.sendHead(1, getFields, true)
  peer.wantIdle('a request')
  const recording = connection.exchanges[0] as Recording
  recording.exchange?.sendHead(responseHead(200), false)
  world.advance(51_000)
  recording.exchange?.sendData(Buffer.from('news'), 0, 4, false)
  world.advance(1_900)
  assert.equal(recording.closed, false)
  world.advance(200)
  assert.equal(recording.error?.code, 'SEND_TIMEOUT')
})

test('an answer that took its time: what is left of the request is read on for half a second all the same', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, { options: patient })
  peer.sendHead(1, postFields, false).sendContent(1, 'the beginning', false)
  peer.wantIdle('a request')
  world.advance(21_000)
  const { exchange } = connection.exchanges[0] as Recording
  exchange?.discard()
  exchange?.sendHead(responseHead(204), true)
  peer.wantHead('an answer', 1, true)
  world.advance(400)
  peer.wantIdle('it may be about to end')
  world.advance(200)
  peer.wantFrame('it is not', { type: 'RST_STREAM', streamId: 1, code: ErrorCode.NoError })
})

test('a shutdown after a silence waits a round trip before it refuses anything', () => {
  const world = new World()
  const { peer, engine } = serverScript(world, { options: patient })
  world.advance(51_000)
  engine.shutdown()
  peer.wantFrame('one', { type: 'GOAWAY', lastStreamId: 0x7fff_ffff })
  peer.wantFrame('ping', { type: 'PING' })
  world.advance(900)
  peer.wantIdle('not yet')
  world.advance(200)
  peer.wantFrame('two', { type: 'GOAWAY', lastStreamId: 0 })
})

test('a connection whose last exchange is cancelled after a silence is idle from then on', () => {
  const world = new World()
  const { peer, engine, connection } = clientScript(world, {
    options: { limits: { ...patient.limits, idleTimeout: 10_000, responseTimeout: 1e9, sendTimeout: 1e9, bodyTimeout: 1e9 } },
  })
  const exchange = engine.open(new Recording())
  exchange?.sendHead(getHead(), true)
  peer.wantHead('a request', 1, true)
  world.advance(51_000)
  exchange?.cancel(CancelReason.Cancelled)
  peer.wantFrame('never mind', { type: 'RST_STREAM', streamId: 1, code: ErrorCode.Cancel })
  world.advance(9_900)
  assert.equal(connection.closed, false)
  world.advance(200)
  assert.equal(connection.closed, true)
})
