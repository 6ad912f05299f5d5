import assert from 'node:assert/strict'
import { test } from 'node:test'
import { responseHead, type Exchange } from '../http/index.ts'
import { clientScript, getFields, getHead, postFields, serverScript, type Http2Peer } from '../testing/h2-peer.ts'
import { Recording, recordingHandler, World, worldTest } from '../testing/index.ts'
import { ErrorCode } from './frame.ts'
import { SettingId } from './settings.ts'

/** A server whose client asked for stream 1; the answer's head is out. */
function answered(settings: readonly (readonly [number, number])[] = []): { peer: Http2Peer; exchange: Exchange; recording: Recording } {
  const { peer, connection } = serverScript(new World(), { settings })
  peer.sendHead(1, getFields, true)
  peer.wantIdle('the request')
  const recording = connection.exchanges[0] as Recording & { exchange: Exchange }
  recording.exchange.sendHead(responseHead(200), false)
  peer.wantHead('the head', 1, false)
  return { peer, exchange: recording.exchange, recording }
}

test('no more is sent than the stream allows, and the rest when it allows more', () => {
  const { peer, exchange, recording } = answered([[SettingId.InitialWindowSize, 10]])
  assert.equal(exchange.sendData(Buffer.alloc(100, 'x'), 0, 100, true), true, 'little enough to take')
  peer.wantContent('the window', 1, 10, false)
  peer.wantIdle('and no more')
  assert.equal(recording.sent, 10)
  peer.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 64 })
  peer.wantContent('what it allows', 1, 64, false)
  peer.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 1000 })
  peer.wantContent('the rest', 1, 26, true)
  assert.equal(recording.sent, 100)
  assert.ok(recording.closed)
})

test('no more is sent than the connection allows, whatever the streams do', () => {
  const { peer, connection } = serverScript(new World(), { settings: [[SettingId.InitialWindowSize, 60_000]] })
  for (const id of [1, 3]) peer.sendHead(id, getFields, true)
  peer.wantIdle('two requests')
  for (const { exchange } of connection.exchanges) {
    exchange?.sendHead(responseHead(200), false)
    exchange?.sendOwned(Buffer.alloc(50_000), true)
  }
  peer.wantHead('one', 1, false)
  peer.wantHead('two', 3, false)
  let received = 0
  while (received < 65_535) received += peer.wantFrame('content', { type: 'DATA' }).data.length
  assert.equal(received, 65_535)
  peer.wantIdle('the window is used up')
  peer.send({ type: 'WINDOW_UPDATE', streamId: 0, increment: 100_000 })
  while (received < 100_000) received += peer.wantFrame('content', { type: 'DATA' }).data.length
  peer.wantIdle('all is sent')
})

test('an end needs no window', () => {
  const { peer, exchange } = answered([[SettingId.InitialWindowSize, 0]])
  exchange.sendData(Buffer.alloc(0), 0, 0, true)
  peer.wantContent('the end', 1, 0, true)
})

test('trailers follow their content, and need no window of their own', () => {
  const { peer, exchange } = answered([[SettingId.InitialWindowSize, 0]])
  exchange.sendData(Buffer.from('abc'), 0, 3, false)
  exchange.sendTrailers(['x', 'y'])
  peer.wantIdle('they wait for it')
  peer.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 3 })
  peer.wantContent('content', 1, 3, false)
  peer.wantTrailers('trailers', 1, ['x', 'y'])
})

test('a window that shrinks below what was sent is negative until it is filled up', () => {
  const { peer, exchange } = answered([[SettingId.InitialWindowSize, 1000]])
  exchange.sendData(Buffer.alloc(3000), 0, 3000, true)
  peer.wantContent('the window', 1, 1000, false)
  peer.send({ type: 'SETTINGS', ack: false, settings: [[SettingId.InitialWindowSize, 200]] })
  peer.wantFrame('taken', { type: 'SETTINGS', ack: true })
  peer.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 800 })
  peer.wantIdle('at zero')
  peer.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 100 })
  peer.wantContent('above it', 1, 100, false)
  peer.send({ type: 'SETTINGS', ack: false, settings: [[SettingId.InitialWindowSize, 5000]] })
  peer.wantFrame('taken', { type: 'SETTINGS', ack: true })
  peer.wantContent('a larger setting lets all go', 1, 1900, true)
})

test('a stream whose window a setting takes away is not served', () => {
  const { peer, exchange } = answered()
  // More than the staged window of the connection, so the rest waits.
  exchange.sendOwned(Buffer.alloc(200_000), true)
  let received = 0
  while (received < 65_535) received += peer.wantFrame('content', { type: 'DATA' }).data.length
  peer.send(
    { type: 'SETTINGS', ack: false, settings: [[SettingId.InitialWindowSize, 0]] },
    { type: 'WINDOW_UPDATE', streamId: 0, increment: 1_000_000 },
  )
  peer.wantFrame('taken', { type: 'SETTINGS', ack: true })
  peer.wantIdle('the stream has no window')
  peer.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 65_535 + 1000 })
  peer.wantContent('what it allows', 1, 1000, false)
})

test('more than the window of a stream is an error of the stream', () => {
  const { peer } = serverScript(new World(), { options: { limits: { streamWindow: 1000, maxWindow: 1000 } } })
  peer.sendHead(1, postFields, false).sendHead(3, postFields, false)
  peer.wantIdle('two uploads')
  peer.sendContent(1, Buffer.alloc(1000), true)
  peer.wantIdle('just right')
  peer.sendContent(3, Buffer.alloc(1001), true)
  peer.wantReset('too much', 3, ErrorCode.FlowControlError)
  peer.wantIdle('of this stream only')
})

test('more than the window of the connection is an error of the connection, padding included', () => {
  const { peer, connection } = serverScript(new World(), { options: { limits: { connectionWindow: 65_536 } } })
  peer.sendHead(1, postFields, false)
  peer.wantIdle('an upload')
  ;(connection.exchanges[0] as Recording).autoConsume = false
  for (let i = 0; i < 4; i++) peer.sendContent(1, Buffer.alloc(16_384 - (i === 0 ? 1 : 0)), false)
  peer.wantIdle('all but one octet of it')
  peer.send({ type: 'DATA', streamId: 1, data: Buffer.alloc(0), end: true, padding: 1 })
  peer.wantGoaway('an octet too much', ErrorCode.FlowControlError)
})

test('a client that does not know our windows yet is held to those of the RFC', () => {
  const { peer, connection } = serverScript(new World(), { handshake: false, options: { limits: { streamWindow: 1000, maxWindow: 1000 } } })
  peer.peer.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  peer.send({ type: 'SETTINGS', ack: false, settings: [] })
  peer.sendHead(1, postFields, false)
  for (let i = 0; i < 4; i++) peer.sendContent(1, Buffer.alloc(i < 3 ? 16_384 : 16_383), i === 3)
  peer.peer.world.run()
  assert.equal(connection.exchanges[0]?.received, 65_535)
  assert.ok(connection.exchanges[0].ended)
})

const small = { limits: { streamWindow: 1000, maxWindow: 1000 } }

test('streams that began before our SETTINGS were taken get their credit by the small window', () => {
  const { peer } = serverScript(new World(), { handshake: false, options: small })
  peer.peer.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  peer.send({ type: 'SETTINGS', ack: false, settings: [] })
  peer.sendHead(1, postFields, false)
  // This client has read our SETTINGS since, and sends what they allow.
  peer.send({ type: 'SETTINGS', ack: true, settings: [] })
  peer.wantFrame('SETTINGS', { type: 'SETTINGS', ack: false })
  peer.wantFrame('the connection window raised', { type: 'WINDOW_UPDATE', streamId: 0 })
  peer.wantFrame('theirs are taken', { type: 'SETTINGS', ack: true })
  for (let i = 0; i < 3; i++) {
    peer.sendContent(1, Buffer.alloc(1000), false)
    assert.equal(peer.wantFrame('the window again', { type: 'WINDOW_UPDATE', streamId: 1 }).increment, 1000)
  }
  peer.sendContent(1, Buffer.alloc(1001), false)
  peer.wantReset('too much', 1, ErrorCode.FlowControlError)
})

test('a window that our SETTINGS make negative is filled up, and an end needs none of it', () => {
  const { peer, connection } = serverScript(new World(), { handshake: false, options: small })
  peer.peer.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  peer.send({ type: 'SETTINGS', ack: false, settings: [] })
  peer.sendHead(1, postFields, false).sendHead(3, postFields, false)
  peer.wantFrame('SETTINGS', { type: 'SETTINGS', ack: false })
  peer.wantFrame('the connection window raised', { type: 'WINDOW_UPDATE', streamId: 0 })
  peer.wantFrame('theirs are taken', { type: 'SETTINGS', ack: true })
  for (const recording of connection.exchanges) recording.autoConsume = false
  peer.sendContent(1, Buffer.alloc(3000), false).sendContent(3, Buffer.alloc(3000), false)
  peer.wantIdle('more than a small window, less than the first one')
  peer.send({ type: 'SETTINGS', ack: true, settings: [] })
  peer.wantIdle('their windows are at -2,000')
  const [first, second] = connection.exchanges as (Recording & { exchange: Exchange })[]
  first?.exchange.consume(3000)
  assert.equal(peer.wantFrame('up to 1,000', { type: 'WINDOW_UPDATE', streamId: 1 }).increment, 3000)
  peer.sendContent(3, Buffer.alloc(0), true)
  peer.wantIdle('an end')
  assert.ok(second?.ended)
})

test('a client whose SETTINGS were not taken yet gives credit by its small window', () => {
  const { engine, peer } = clientScript(new World(), { handshake: false, options: small })
  const early = engine.open(recordingHandler()) as Exchange
  const late = engine.open(recordingHandler()) as Exchange
  early.sendHead(getHead(), true)
  peer.peer.want('the preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  peer.wantFrame('SETTINGS', { type: 'SETTINGS', ack: false })
  peer.wantHead('the request', 1, true)
  peer.wantFrame('the connection window raised', { type: 'WINDOW_UPDATE', streamId: 0 })
  peer.send({ type: 'SETTINGS', ack: false, settings: [] }, { type: 'SETTINGS', ack: true, settings: [] })
  peer.wantFrame('theirs are taken', { type: 'SETTINGS', ack: true })
  late.sendHead(getHead(), true)
  peer.wantHead('another, asked for before', 3, true)
  for (const [streamId, exchange] of [[1, early] as const, [3, late] as const]) {
    peer.sendHead(streamId, [':status', '200'], false).sendContent(streamId, Buffer.alloc(1000), false)
    peer.wantIdle('a window of content')
    exchange.consume(1000)
    assert.equal(peer.wantFrame('the window again', { type: 'WINDOW_UPDATE', streamId }).increment, 1000)
  }
})

test("the connection's credit comes back for content nobody consumed, when its stream is over", () => {
  const { peer, connection } = serverScript(new World(), {
    options: { limits: { streamWindow: 40_000, connectionWindow: 70_000, maxWindow: 40_000 } },
  })
  peer.sendHead(1, postFields, false)
  peer.wantIdle('a request')
  const recording = connection.exchanges[0] as Recording
  recording.autoConsume = false
  for (let i = 0; i < 4; i++) peer.sendContent(1, Buffer.alloc(10_000), false)
  peer.wantIdle('not consumed')
  recording.exchange?.cancel(1)
  peer.wantReset('cancelled', 1, ErrorCode.Cancel)
  peer.wantFrame('the credit', { type: 'WINDOW_UPDATE', streamId: 0, increment: 40_000 })
})

/**
 * A server that fills the windows at once, on a path of 50 ms, sixty times. Gives the most that was on the way, and
 * the windows in the end. `most`: the stream's growth is limited to it.
 */
function growWindows(world: World, most?: number): { largest: number; stream: number; connection: number } {
  const limits = { streamWindow: 65_536, connectionWindow: 65_536, maxWindow: 1_000_000 }
  const { peer, engine } = clientScript(world, { options: { limits } })
  const recording = new Recording()
  recording.exchange = engine.open(recording)
  recording.exchange?.sendHead(getHead(), true)
  if (most !== undefined) recording.exchange?.limitWindowGrowth?.(most)
  peer.wantHead('a request', 1, true)
  peer.sendHead(1, [':status', '200'], false)
  let [stream, connection, largest] = [65_536, 65_536, 0]
  for (let rounds = 0; rounds < 60; rounds++) {
    const inFlight = Math.min(stream, connection)
    largest = Math.max(largest, inFlight)
    for (let left = inFlight; left > 0; left -= 16_384) peer.sendContent(1, Buffer.alloc(Math.min(16_384, left)), false)
    stream -= inFlight
    connection -= inFlight
    world.run()
    world.advance(50)
    for (;;) {
      try {
        const frame = peer.want('credit', (seen) => seen.type === 'WINDOW_UPDATE' || seen.type === 'PING')
        if (frame.type === 'PING') peer.send({ ...frame, ack: true })
        else if (frame.type === 'WINDOW_UPDATE' && frame.streamId === 0) connection += frame.increment
        else if (frame.type === 'WINDOW_UPDATE') stream += frame.increment
      } catch {
        break
      }
    }
  }
  return { largest, stream, connection }
}

worldTest('windows grow with the bandwidth-delay product, up to their limit', { seeds: 3 }, (world) => {
  const { largest, stream, connection } = growWindows(world)
  assert.ok(largest > 500_000, `the windows grew to ${largest}`)
  assert.ok(Math.max(stream, connection) <= 1_000_000, 'and not beyond their limit')
})

worldTest("a stream's window grows as far as its user lets it, or not at all when it is larger already", { seeds: 3 }, (world) => {
  const { largest, stream } = growWindows(world, 150_000)
  assert.ok(largest > 65_536 && Math.max(largest, stream) <= 150_000, `the window grew to ${largest}`)
  assert.equal(growWindows(world, 1).largest, 65_536, 'not at all')
})

test('windows do not grow on a path that does not fill them', () => {
  const world = new World()
  const limits = { streamWindow: 65_536, connectionWindow: 65_536, maxWindow: 1_000_000 }
  const { peer, engine } = clientScript(world, { options: { limits } })
  const recording = new Recording()
  recording.exchange = engine.open(recording)
  recording.exchange?.sendHead(getHead(), true)
  peer.wantHead('a request', 1, true)
  peer.sendHead(1, [':status', '200'], false)
  let credit = 0
  for (let i = 0; i < 200; i++) {
    peer.sendContent(1, Buffer.alloc(10_000), false)
    world.run()
    world.advance(10)
    for (;;) {
      try {
        const frame = peer.want('credit', (seen) => seen.type === 'WINDOW_UPDATE' || seen.type === 'PING')
        if (frame.type === 'PING') peer.send({ ...frame, ack: true })
        else if (frame.type === 'WINDOW_UPDATE' && frame.streamId === 1) credit += frame.increment
      } catch {
        break
      }
    }
  }
  assert.ok(credit <= 2_000_000 && credit > 1_900_000, `credit ${credit} for 2,000,000 octets`)
})
