import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestHead, responseHead } from '../http/index.ts'
import { clientScript, getFields, getHead, postFields, serverScript } from '../testing/h2-peer.ts'
import { Recording, World } from '../testing/index.ts'
import { literalBlock } from './debug-fields.ts'
import { ErrorCode } from './frame.ts'
import { SettingId } from './settings.ts'

const silent = [[SettingId.InitialWindowSize, 0]] as const

test('a client that says nothing is not waited for longer than 10 s', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, { handshake: false })
  peer.wantFrame('settings', { type: 'SETTINGS' })
  peer.wantFrame('the window', { type: 'WINDOW_UPDATE' })
  world.advance(9_900)
  peer.wantIdle('not yet')
  world.advance(200)
  peer.wantGoaway('enough', ErrorCode.ProtocolError)
  world.advance(1_000)
  assert.equal(connection.error?.code, 'HEAD_TIMEOUT')
})

test('SETTINGS that are not acknowledged in 10 s', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, { handshake: false })
  peer.peer.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  peer.send({ type: 'SETTINGS', ack: false, settings: [] })
  peer.wantFrame('settings', { type: 'SETTINGS' })
  peer.wantFrame('the window', { type: 'WINDOW_UPDATE' })
  peer.wantFrame('taken', { type: 'SETTINGS', ack: true })
  world.advance(10_100)
  peer.wantGoaway('enough', ErrorCode.SettingsTimeout)
  world.advance(1_000)
  assert.equal(connection.error?.code, 'HEAD_TIMEOUT')
})

test('a head in pieces, and a frame in pieces, must be complete in 10 s; other traffic does not help', () => {
  const block = literalBlock(getFields)
  const beginnings: ((peer: ReturnType<typeof serverScript>['peer']) => void)[] = [
    (peer) => peer.send({ type: 'HEADERS', streamId: 1, block, end: true, endHeaders: false }),
    (peer) => peer.peer.send(Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2])),
    (peer) => peer.peer.send(Buffer.from([0, 0])),
    (peer) => peer.peer.send(Buffer.from([0, 0x40, 0, 0x77, 0, 0, 0, 0, 0, 1, 2])),
  ]
  for (const begin of beginnings) {
    const world = new World()
    const { peer, connection } = serverScript(world)
    begin(peer)
    world.advance(9_000)
    peer.wantIdle('not yet')
    world.advance(1_100)
    peer.wantGoaway('enough', ErrorCode.EnhanceYourCalm)
    world.advance(1_000)
    assert.equal(connection.error?.code, 'HEAD_TIMEOUT')
  }
})

test('a field block that trickles on does not get more time', () => {
  const world = new World()
  const { peer } = serverScript(world)
  peer.send({ type: 'HEADERS', streamId: 1, block: literalBlock(getFields), end: true, endHeaders: false })
  for (let i = 0; i < 3; i++) {
    world.advance(3_000)
    peer.send({ type: 'CONTINUATION', streamId: 1, block: literalBlock(['x', 'y']), endHeaders: false })
  }
  peer.wantIdle('9 s')
  world.advance(1_100)
  peer.wantGoaway('enough', ErrorCode.EnhanceYourCalm)
})

test('frames that are cut by chance, again and again, are no reason to close', () => {
  const world = new World()
  const { peer, connection } = serverScript(world)
  const wire = Buffer.from([0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0])
  peer.peer.send(wire.subarray(0, 5))
  for (let i = 0; i < 20; i++) {
    world.advance(2_000)
    peer.peer.send(Buffer.concat([wire.subarray(5), wire.subarray(0, 5)]))
    world.run()
  }
  assert.equal(connection.closed, false)
})

test('an upload that stalls is reset after 30 s, not before, and not while its handler holds it up', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, { options: { limits: { streamWindow: 10_000, maxWindow: 10_000, pingInterval: 1e9 } } })
  peer.sendHead(1, postFields, false).sendHead(3, postFields, false)
  peer.wantIdle('two uploads')
  const [stalled, held] = connection.exchanges as [Recording, Recording]
  held.autoConsume = false
  peer.sendContent(3, Buffer.alloc(10_000), false)
  world.advance(20_000)
  peer.sendContent(1, 'x', false)
  world.advance(29_000)
  assert.equal(stalled.closed, false)
  world.advance(1_100)
  peer.wantReset('too slow', 1, ErrorCode.Cancel)
  assert.equal(stalled.error?.code, 'BODY_TIMEOUT')
  assert.equal(held.closed, false)
  held.exchange?.consume(10_000)
  peer.wantFrame('credit', { type: 'WINDOW_UPDATE', streamId: 3 })
  world.advance(29_900)
  assert.equal(held.closed, false, 'the time counts from the credit')
})

test('a reader that gives no window for 60 s loses its stream, and when all are like that the connection', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, { settings: silent, options: { limits: { pingInterval: 1e9 } } })
  peer.sendHead(1, getFields, true).sendHead(3, getFields, true)
  peer.wantIdle('two requests')
  const [stalled, waiting] = connection.exchanges as [Recording, Recording]
  stalled.exchange?.sendHead(responseHead(200), false)
  stalled.exchange?.sendData(Buffer.alloc(100), 0, 100, true)
  peer.wantHead('a head', 1, false)
  world.advance(59_900)
  peer.wantIdle('not yet')
  world.advance(200)
  peer.wantReset('too slow', 1, ErrorCode.Cancel)
  assert.equal(stalled.error?.code, 'SEND_TIMEOUT')
  peer.wantIdle('the other one waits for its handler')
  waiting.exchange?.sendHead(responseHead(200), false)
  waiting.exchange?.sendData(Buffer.alloc(100), 0, 100, true)
  peer.wantHead('a head', 3, false)
  world.advance(60_100)
  peer.wantReset('too slow', 3, ErrorCode.Cancel)
  peer.wantGoaway('and that was all of them', ErrorCode.EnhanceYourCalm)
})

test('octets given one at a time are no progress', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, { settings: silent })
  peer.sendHead(1, getFields, true)
  peer.wantIdle('a request')
  const { exchange } = connection.exchanges[0] as Recording
  exchange?.sendHead(responseHead(200), false)
  exchange?.sendData(Buffer.alloc(10_000), 0, 10_000, true)
  peer.wantHead('a head', 1, false)
  for (let i = 0; i < 6; i++) {
    world.advance(10_000)
    if (peer.peer.closedBy !== 'no' || connection.exchanges[0]?.closed === true) break
    peer.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 1 })
    peer.wantContent('an octet', 1, 1, false)
  }
  world.advance(10_000)
  assert.equal(connection.exchanges[0]?.error?.code, 'SEND_TIMEOUT')
})

test('a stream that waits for its turn behind others is not late', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, {
    settings: [[SettingId.InitialWindowSize, 10_000_000]],
    options: { limits: { pingInterval: 1e9 } },
  })
  peer.sendHead(1, [...getFields, 'priority', 'u=0'], true).sendHead(3, [...getFields, 'priority', 'u=7'], true)
  peer.wantIdle('two requests')
  for (const { exchange } of connection.exchanges) {
    exchange?.sendHead(responseHead(200), false)
    exchange?.sendOwned(Buffer.alloc(1_000_000), true)
  }
  for (let i = 0; i < 30; i++) {
    world.advance(5_000)
    peer.send({ type: 'WINDOW_UPDATE', streamId: 0, increment: 1000 })
  }
  world.run()
  assert.deepEqual(
    connection.exchanges.map(({ closed }) => closed),
    [false, false],
  )
})

test('no response in 60 s; an interim one gives more time', () => {
  const world = new World()
  const { peer, engine } = clientScript(world, { options: { limits: { pingInterval: 1e9 } } })
  const recording = new Recording()
  engine.open(recording)?.sendHead(getHead(), true)
  peer.wantHead('a request', 1, true)
  world.advance(50_000)
  peer.sendHead(1, [':status', '103'], false)
  world.advance(59_900)
  peer.wantIdle('not yet')
  world.advance(200)
  peer.wantReset('enough', 1, ErrorCode.Cancel)
  assert.equal(recording.error?.code, 'HEAD_TIMEOUT')
})

test('an upload has as long as it takes: the time for the response counts from its end', () => {
  const world = new World()
  const { peer, engine } = clientScript(world, { options: { limits: { pingInterval: 1e9 } } })
  const recording = new Recording()
  const exchange = engine.open(recording)
  exchange?.sendHead(requestHead('POST', 'http', 'origin.test', '/'), false)
  peer.wantHead('a request', 1, false)
  world.advance(300_000)
  exchange?.sendData(Buffer.from('x'), 0, 1, true)
  peer.wantContent('content', 1, 1, true)
  world.advance(59_900)
  assert.equal(recording.closed, false)
  world.advance(200)
  assert.equal(recording.error?.code, 'HEAD_TIMEOUT')
})

test('a tunnel that is not answered is not waited for for ever', () => {
  const world = new World()
  const { peer, engine } = clientScript(world, { options: { limits: { pingInterval: 1e9 } } })
  const recording = new Recording()
  const exchange = engine.open(recording)
  exchange?.sendHead(requestHead('CONNECT', '', 'a.test:443', ''), false)
  exchange?.sendData(Buffer.from('early'), 0, 5, false)
  peer.wantHead('a request', 1, false)
  world.advance(59_900)
  peer.wantIdle('not yet')
  world.advance(200)
  peer.wantReset('enough', 1, ErrorCode.Cancel)
  assert.equal(recording.error?.code, 'HEAD_TIMEOUT')
})

test('an idle connection says goodbye after its time, on either side', () => {
  for (const make of [serverScript, clientScript]) {
    const world = new World()
    const { peer, connection } = make(world)
    world.advance(59_000)
    peer.wantIdle('not yet')
    world.advance(1_100)
    peer.wantGoaway('goodbye', ErrorCode.NoError)
    world.advance(2_000)
    assert.equal(connection.error, undefined)
    assert.ok(connection.closed)
  }
})

test('a transport that takes nothing for 60 s is given up', () => {
  const world = new World()
  const { engine, connection, peer } = serverScript(world, { options: { limits: { pingInterval: 1e9 } } })
  peer.sendHead(1, getFields, true)
  peer.wantIdle('a request')
  const full = { buffer: Buffer.alloc(1), length: 0, room: 0, reserve() {}, writeBytes() {}, writeLatin1() {} }
  connection.exchanges[0]?.exchange?.sendHead(responseHead(200), true)
  assert.equal(engine.transmit(full, world.now()), true)
  assert.equal(engine.deadline, world.now() + 60_000)
  engine.expire(world.now() + 60_000)
  assert.equal(engine.closing, 'reset')
  assert.equal(connection.exchanges[0]?.error?.code, 'SEND_TIMEOUT')
})
