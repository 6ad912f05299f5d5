/** The end of a drain: what those are told whose requests are not over. */
import { deepEqual, equal } from 'node:assert/strict'
import { worldTest } from 'heddle/testing'
import { Code, pick, request } from './http2-peer.ts'
import { get, wantHead } from './messages.ts'
import { clusterConfig, Rig } from './rig.ts'

const few = { seeds: 3 }
const call = request('POST', '/a.B/C', 'content-type', 'application/grpc', 'te', 'trailers')
const begun = [':status', '200', 'content-type', 'application/grpc']
const unavailable = ['grpc-status', '14', 'grpc-message', 'gateway: shutdown', 'heddle-reason', 'shutdown']
const message = Buffer.from('\0\0\0\0\x02hi', 'latin1')

worldTest('who waits for a response gets one', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ protocol: 'h2c' })] })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, request('GET'), true).sendHead(3, call, false)
  const other = rig.client().send(get('/'))
  world.run()
  const upstream = host.http2Peer()
  for (const streamId of [1, 3, 5]) upstream.want('a request', (frame) => frame.type === 'HEADERS' && frame.streamId === streamId)
  rig.proxy.end(1_000)
  world.advance(900)
  client.wantIdle('there is time')
  world.advance(200)
  deepEqual(pick(client.wantHead('an answer', 1, false), ':status', 'heddle-reason'), { ':status': '503', 'heddle-reason': 'shutdown' })
  client.wantFrame('its text', { type: 'DATA', streamId: 1, end: true })
  const fields = pick(client.wantHead('in the words of gRPC', 3, true), ':status', 'grpc-status', 'heddle-reason')
  deepEqual(fields, { ':status': '200', 'grpc-status': '14', 'heddle-reason': 'shutdown' })
  const { line, field } = wantHead(other, 'an answer')
  deepEqual([line.split(' ')[1], field('heddle-reason')], ['503', 'shutdown'])
  for (const streamId of [1, 3, 5]) upstream.wantReset('nobody waits any more', streamId, Code.Cancel)
  world.advance(1_000)
  deepEqual(rig.records.map(({ reason, grpcStatus, status }) => [reason, grpcStatus, status]).sort(), [
    ['shutdown', -1, 503],
    ['shutdown', -1, 503],
    ['shutdown', 14, 200],
  ])
  equal(rig.cluster.stats().endpoints[0]?.failures, 0)
  deepEqual(rig.leftovers(), [])
})

worldTest('a call in the middle of its response ends between two messages, and is left alone within one', few, async (world) => {
  const rig = await Rig.make(world, { clusters: [clusterConfig({ protocol: 'h2c' })] })
  const host = rig.upstream()
  const client = rig.http2Client()
  client.sendHead(1, call, false).sendHead(3, call, true).sendHead(5, call, true).sendHead(7, request('GET'), true)
  world.run()
  const upstream = host.http2Peer()
  for (const streamId of [1, 3, 5, 7]) {
    upstream.want('a call', (frame) => frame.type === 'HEADERS' && frame.streamId === streamId)
    upstream.sendHead(streamId, begun, false)
    client.wantHead('its head', streamId, false)
  }
  upstream.sendContent(3, Buffer.concat([message, message]), false)
  client.wantContent('two messages', 3, 14, false)
  upstream.sendContent(5, message.subarray(0, 6), false)
  client.wantContent('some of a message', 5, 6, false)
  rig.proxy.end(0)
  client.wantTrailers('the first, without a message', 1, unavailable)
  client.wantTrailers('the second', 3, unavailable)
  for (const streamId of [1, 3]) upstream.wantReset('cancelled', streamId, Code.Cancel)
  world.advance(1_000)
  client.wantReset('no more of the request', 1, Code.NoError)
  client.wantIdle('the others are cut with their connection')
  deepEqual(
    rig.records.map(({ reason, grpcStatus, status }) => [reason, grpcStatus, status]),
    [
      ['shutdown', 14, 200],
      ['shutdown', 14, 200],
    ],
  )
  equal(rig.proxy.active, 2)
  upstream.sendContent(5, message.subarray(6), false)
  client.wantContent('it may still end', 5, 1, false)
})
