import assert from 'node:assert/strict'
import { test } from 'node:test'
import { responseHead } from '../http/index.ts'
import { clientScript, getFields, getHead, serverScript } from '../testing/h2-peer.ts'
import { Recording, World } from '../testing/index.ts'
import { ErrorCode } from './frame.ts'

test('a PING is answered with what it brought', () => {
  const { peer } = serverScript(new World())
  const data = Uint8Array.of(0xff, 0xfe, 0x80, 1, 2, 3, 4, 0xf5)
  peer.send({ type: 'PING', ack: false, data }, { type: 'PING', ack: true, data })
  peer.wantFrame('the same', { type: 'PING', ack: true, data })
  peer.wantIdle('an answer is not answered')
})

test('a server that is silent while a request is open is asked, and dead if it does not answer', () => {
  const world = new World()
  const { peer, engine, connection } = clientScript(world)
  const recording = new Recording()
  engine.open(recording)?.sendHead(getHead(), true)
  peer.wantHead('a request', 1, true)
  world.advance(14_900)
  peer.wantIdle('not yet')
  world.advance(200)
  peer.wantFrame('are you there?', { type: 'PING', ack: false })
  world.advance(9_800)
  peer.wantIdle('patience')
  world.advance(200)
  peer.peer.wantClose('dead', 'reset')
  assert.equal(recording.error?.code, 'NETWORK_ERROR')
  assert.equal(recording.error.unprocessed, false)
  assert.equal(connection.error?.code, 'NETWORK_ERROR')
})

test('anything is a sign of life', () => {
  const world = new World()
  const { peer, engine, connection } = clientScript(world)
  engine.open(new Recording())?.sendHead(getHead(), true)
  peer.wantHead('a request', 1, true)
  world.advance(15_100)
  peer.wantFrame('are you there?', { type: 'PING', ack: false })
  peer.send({ type: 'WINDOW_UPDATE', streamId: 0, increment: 1000 })
  world.advance(14_900)
  peer.wantIdle('yes')
  assert.equal(connection.closed, false)
})

test('a quiet stream is asked about seldom: gRPC servers close on those who ask often', () => {
  const world = new World()
  const { peer, engine } = clientScript(world, { options: { limits: { bodyTimeout: 1e9 } } })
  const recording = new Recording()
  engine.open(recording)?.sendHead(getHead(), true)
  peer.wantHead('a request', 1, true)
  peer.sendHead(1, [':status', '200'], false)
  let pings = 0
  for (let second = 0; second < 3600; second++) {
    world.advance(1000)
    try {
      const ping = peer.wantFrame('are you there?', { type: 'PING', ack: false })
      peer.send({ ...ping, ack: true })
      pings++
    } catch {
      continue
    }
  }
  assert.ok(pings >= 10 && pings <= 13, `${pings} in an hour`)
  peer.sendContent(1, 'news', false)
  world.advance(15_100)
  peer.wantFrame('after news the peer is asked soon again', { type: 'PING', ack: false })
})

test('a connection that was idle is asked when it is used again', () => {
  const world = new World()
  const { peer, engine } = clientScript(world)
  world.advance(20_000)
  const recording = new Recording()
  engine.open(recording)?.sendHead(getHead(), true)
  peer.wantHead('a request', 1, true)
  peer.wantFrame('are you still there?', { type: 'PING', ack: false })
  engine.open(new Recording())?.sendHead(getHead(), true)
  peer.wantHead('another request', 3, true)
  peer.wantIdle('asked once')
  world.advance(10_100)
  peer.peer.wantClose('dead at once, and not after a minute', 'reset')
  assert.equal(recording.error?.code, 'NETWORK_ERROR')
})

test('a connection without exchanges is left in peace', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, { options: { limits: { idleTimeout: 1e9 } } })
  peer.sendHead(1, getFields, true)
  peer.wantIdle('a request')
  connection.exchanges[0]?.exchange?.sendHead(responseHead(204), true)
  peer.wantHead('an answer', 1, true)
  world.advance(3_600_000)
  peer.wantIdle('silence')
})

test('answers nobody asked for change nothing', () => {
  const { peer, connection } = serverScript(new World())
  for (let kind = 0; kind < 5; kind++) peer.send({ type: 'PING', ack: true, data: Uint8Array.of(0x48, 0x64, 0x6c, 0x65, 0, 0, 0, kind) })
  peer.wantIdle('nothing')
  assert.equal(connection.closed, false)
  peer.sendHead(1, getFields, true).send({ type: 'RST_STREAM', streamId: 1, code: ErrorCode.Cancel })
  peer.wantIdle('still nothing')
})
