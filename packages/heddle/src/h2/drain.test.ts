/** What is left of a request when its response is complete and nobody wants it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { responseHead } from '../http/index.ts'
import { postFields, serverScript, type Http2Peer } from '../testing/h2-peer.ts'
import { World, type Recording } from '../testing/index.ts'
import { ErrorCode } from './frame.ts'
import type { Http2Limits } from './limits.ts'

/** Answers the upload on stream 1 unread. */
function answered(
  limits: Partial<Http2Limits> = {},
  fields: readonly string[] = [],
): { world: World; recording: Recording; peer: Http2Peer } {
  const world = new World()
  const { peer, connection } = serverScript(world, { options: { limits } })
  peer.sendHead(1, [...postFields, ...fields], false)
  peer.wantIdle('an upload begins')
  const recording = connection.exchanges[0] as Recording
  recording.discarded = true
  recording.exchange?.sendHead(responseHead(200), true)
  recording.exchange?.discard()
  peer.wantHead('the answer', 1, true)
  return { world, recording, peer }
}

test('an upload that ends soon after its answer is not reset', () => {
  const { world, recording, peer } = answered()
  peer.sendContent(1, 'the rest', false)
  world.advance(400)
  assert.equal(recording.closed, false)
  peer.sendContent(1, 'and the end', true)
  peer.wantIdle('both messages are complete')
  assert.deepEqual([recording.closed, recording.error, recording.received], [true, undefined, 0])
  world.advance(1000)
  peer.wantIdle('and nothing is left to say')
})

test('one that does not is reset without an error, and what is under way is ignored', () => {
  const { world, recording, peer } = answered({ drainTimeout: 200 })
  world.advance(100)
  assert.equal(recording.closed, false)
  world.advance(150)
  peer.wantReset('enough', 1, ErrorCode.NoError)
  assert.deepEqual([recording.closed, recording.error], [true, undefined])
  peer.sendContent(1, 'late', true)
  peer.wantIdle('ignored')
})

test('a client that stops its upload ends the exchange well', () => {
  const { recording, peer } = answered()
  peer.send({ type: 'RST_STREAM', streamId: 1, code: ErrorCode.Cancel })
  peer.wantIdle('there is nothing to say to that')
  assert.deepEqual([recording.closed, recording.error], [true, undefined])
})

test('a drainTimeout of 0 waits for nothing but what has come already', () => {
  const { recording, peer } = answered({ drainTimeout: 0 })
  peer.wantReset('at once', 1, ErrorCode.NoError)
  assert.equal(recording.closed, true)
})

test('an upload that announces more than is drained is reset at once', () => {
  answered({}, ['content-length', '262145']).peer.wantReset('too long', 1, ErrorCode.NoError)
  answered({ drainSize: 0 }).peer.wantReset('nothing is drained', 1, ErrorCode.NoError)
  const { world, recording, peer } = answered({}, ['content-length', '262144'])
  peer.wantIdle('just right')
  world.advance(499)
  assert.equal(recording.closed, false)
})

test('one that does not announce it is reset when it has come', () => {
  const { recording, peer } = answered({ drainSize: 10_000 })
  peer.sendContent(1, 'x'.repeat(10_000), false)
  peer.wantIdle('just right')
  peer.sendContent(1, 'x', false)
  peer.wantReset('too long', 1, ErrorCode.NoError)
  assert.deepEqual([recording.closed, recording.error], [true, undefined])
})

test('what is drained is given back to the connection, and not to the stream', () => {
  const { world, peer } = answered({ streamWindow: 100_000, connectionWindow: 100_000 })
  for (let i = 0; i < 6; i++) peer.sendContent(1, 'x'.repeat(16_000), false)
  world.advance(500)
  const given = [0, 0]
  for (;;) {
    const frame = peer.wantFrame('frames up to the reset', {} as { type: 'WINDOW_UPDATE' | 'RST_STREAM' })
    if (frame.type === 'RST_STREAM') break
    if (frame.type === 'WINDOW_UPDATE') given[frame.streamId] = (given[frame.streamId] as number) + frame.increment
  }
  assert.ok((given[0] as number) >= 48_000, `${given[0]}`)
  assert.equal(given[1], 0)
})
