import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError, type Exchange } from '../http/index.ts'
import { clientScript, getHead, postFields, serverScript } from '../testing/h2-peer.ts'
import { recordingHandler, World, type Recording } from '../testing/index.ts'

/** A server with windows of 100,000 octets, and a client that uploads on stream 1. */
function uploading() {
  const { peer, connection } = serverScript(new World(), { options: { limits: { streamWindow: 100_000, maxWindow: 100_000 } } })
  peer.sendHead(1, postFields, false)
  peer.wantIdle('the request')
  const recording = connection.exchanges[0] as Recording & { exchange: Exchange }
  recording.autoConsume = false
  return { peer, exchange: recording.exchange }
}

test('a smaller window is kept back from the credit: what was given first counts, then it is small', () => {
  const { peer, exchange } = uploading()
  exchange.limitWindow?.(20_000)
  for (let i = 0; i < 6; i++) peer.sendContent(1, Buffer.alloc(15_000), false)
  peer.wantIdle('content')
  exchange.consume(85_000)
  peer.wantIdle('80,000 of it make the window small')
  exchange.consume(5_000)
  const { increment } = peer.wantFrame('half of the new window', { type: 'WINDOW_UPDATE', streamId: 1 })
  assert.equal(increment, 10_000)
  peer.sendContent(1, Buffer.alloc(9_999), false)
  peer.wantIdle('content')
  exchange.consume(9_999)
  peer.wantIdle('less than half')
  peer.sendContent(1, Buffer.alloc(1), false)
  peer.wantIdle('content')
  exchange.consume(1)
  assert.equal(peer.wantFrame('half', { type: 'WINDOW_UPDATE', streamId: 1 }).increment, 10_000)
})

test('a larger window is given at once, and grows no further', () => {
  const { peer, exchange } = uploading()
  exchange.limitWindow?.(1_000_000)
  assert.equal(peer.wantFrame('the difference', { type: 'WINDOW_UPDATE', streamId: 1 }).increment, 900_000)
  exchange.limitWindow?.(50_000)
  peer.wantIdle('a window cannot be taken back')
})

test('what is no window is no limit of growth either', () => {
  const { exchange } = uploading()
  for (const bytes of [0, -1, 1.5, 2 ** 31, Number.NaN]) assert.throws(() => exchange.limitWindowGrowth?.(bytes), UsageError)
  exchange.limitWindowGrowth?.(2 ** 31 - 1)
})

test('a client says it before or after the head; what is no window is refused', () => {
  const { engine, peer } = clientScript(new World())
  const exchange = engine.open(recordingHandler()) as Exchange
  exchange.limitWindow?.(3_145_728)
  exchange.sendHead(getHead(), true)
  for (const bytes of [0, -1, 1.5, 2 ** 31, Number.NaN]) assert.throws(() => exchange.limitWindow?.(bytes), UsageError)
  exchange.limitWindow?.(4_194_304)
  peer.wantHead('the request', 1, true)
  assert.equal(peer.wantFrame('the difference', { type: 'WINDOW_UPDATE', streamId: 1 }).increment, 3_145_728)
  const later = engine.open(recordingHandler()) as Exchange
  later.sendHead(getHead(), true)
  later.limitWindow?.(2_097_152)
  peer.wantHead('another request', 3, true)
  assert.equal(peer.wantFrame('the difference', { type: 'WINDOW_UPDATE', streamId: 3 }).increment, 1_048_576)
})
