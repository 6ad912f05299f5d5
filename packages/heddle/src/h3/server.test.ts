import assert from 'node:assert/strict'
import { CancelReason, responseHead, UsageError, type Exchange } from '../http/index.ts'
import { ErrorCode, getFields, postFields, serverScript } from '../testing/h3-peer.ts'
import { recordingHandler, RecordingConnection, type Recording } from '../testing/recording.ts'
import { worldTest } from '../testing/seeds.ts'
import { FrameType, StreamType } from './frame.ts'
import { ResetCounts } from './reset-counts.ts'
import { SettingId } from './settings.ts'

const seeds = { seeds: 6 }

function exchangeOf(recording: Recording | undefined): Exchange {
  assert.ok(recording?.exchange !== undefined, 'the request arrived')
  return recording.exchange
}

worldTest('SETTINGS are the first frame, on a stream of their own, and QPACK has its two', seeds, (world) => {
  const { peer } = serverScript(world, { options: { extendedConnect: true, limits: { headerTableSize: 100, blockedStreams: 5 } } })
  const { settings } = peer.wantFrame('SETTINGS', peer.theirs(StreamType.Control), { type: 'SETTINGS' })
  const values = new Map(settings)
  assert.equal(values.get(SettingId.QpackMaxTableCapacity), 100)
  assert.equal(values.get(SettingId.QpackBlockedStreams), 5)
  assert.equal(values.get(SettingId.MaxFieldSectionSize), 65_536)
  assert.equal(values.get(SettingId.EnableConnectProtocol), 1)
  // RFC 9114 §7.2.4.1: one that means nothing, so that peers do not forget to ignore it.
  assert.ok([...values.keys()].some((id) => (id - 0x21) % 0x1f === 0))
  peer.theirs(StreamType.Encoder)
  peer.theirs(StreamType.Decoder)
})

worldTest('the origins a server answers for are told behind SETTINGS (RFC 9412); what a client says of such is ignored', seeds, (world) => {
  const { peer } = serverScript(world, { options: { origins: ['https://a.test'] } })
  const control = peer.theirs(StreamType.Control)
  peer.wantFrame('SETTINGS', control, { type: 'SETTINGS' })
  let frame = peer.wantFrame('what means nothing', control, { type: 'UNKNOWN' })
  if (frame.frameType !== FrameType.Origin) frame = peer.wantFrame('ORIGIN', control, { type: 'UNKNOWN', frameType: FrameType.Origin })
  assert.equal(Buffer.from(frame.payload).toString('latin1'), '\0\x0ehttps://a.test')
  peer.control.send({ type: 'UNKNOWN', frameType: FrameType.Origin, payload: frame.payload })
  peer.wantOpen('it is ignored')
  assert.throws(() => serverScript(world, { options: { origins: ['https://a.test/path'] } }), UsageError)
})

worldTest('a response with 1xx, content, trailers and a date', seeds, (world) => {
  const { peer, connection } = serverScript(world, { options: { date: { httpDate: () => 'now' } } })
  const stream = peer.request(getFields)
  world.run()
  const exchange = exchangeOf(connection.exchanges[0])
  exchange.sendHead(responseHead(103, ['link', '</a>']), false)
  exchange.sendHead(responseHead(200, ['x-a', 'b']), false)
  exchange.sendData(Buffer.from('he'), 0, 2, false)
  exchange.sendData(Buffer.from('llo'), 0, 3, false)
  exchange.sendTrailers(['x-sum', '5'])
  peer.wantHead('the interim head has no date', stream, [':status', '103', 'link', '</a>'])
  peer.wantHead('the final one has', stream, [':status', '200', 'x-a', 'b', 'date', 'now'])
  const frame = peer.wantFrame('small pieces of one run become one frame', stream, { type: 'DATA' })
  assert.equal(Buffer.from(frame.data).toString(), 'hello')
  peer.wantTrailers('the trailers', stream, ['x-sum', '5'])
  peer.wantEnd('the stream ends', stream)
  const [recording] = connection.exchanges
  assert.equal(recording?.sent, 5)
  assert.deepEqual(recording.lines, ['head GET http://origin.test/ end', 'close'])
  assert.deepEqual(recording.faults, [])
})

worldTest('a response to HEAD has its length and no content', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  const stream = peer.request([':method', 'HEAD', ...getFields.slice(2)])
  world.run()
  const exchange = exchangeOf(connection.exchanges[0])
  exchange.sendHead(responseHead(200, ['content-length', '5']), false)
  assert.equal(exchange.sendData(Buffer.from('hello'), 0, 5, true), true)
  peer.wantHead('the head', stream, [':status', '200', 'content-length', '5'])
  peer.wantEnd('no content', stream)
})

worldTest('an answer whose request is not wanted to its end: STOP_SENDING with H3_NO_ERROR (RFC 9114 §4.1)', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  const stream = peer.request(postFields, false).sendContent('abc')
  world.run()
  const [recording] = connection.exchanges
  const exchange = exchangeOf(recording)
  exchange.discard()
  peer.wantStopSending('before the answer the client may go on', stream, undefined)
  exchange.sendHead(responseHead(413), true)
  peer.wantHead('the answer', stream, [':status', '413'])
  peer.wantEnd('it is whole', stream)
  peer.wantStopSending('the rest is for nobody', stream, ErrorCode.NoError)
  assert.equal(recording?.closed, true)
  assert.equal(recording.error, undefined)
})

worldTest('a request that is answered unread in the run in which it ends needs no STOP_SENDING', { seeds: 3 }, (world) => {
  const handler = new RecordingConnection({
    onExchange: (exchange) =>
      recordingHandler({
        on: {
          onHead() {
            exchange.discard()
            exchange.sendHead(responseHead(413), true)
          },
        },
      }),
  })
  const { peer } = serverScript(world, { handler, quic: { pieces: 1_200 } })
  const stream = peer.open()
  // One piece, so that all of it comes in one run.
  const body = Buffer.concat([headersFrame(), Buffer.from([0, 1, 0x61])])
  stream.sendBytes(body, true)
  peer.wantHead('the answer', stream, [':status', '413'])
  peer.wantStopSending('there is nothing to stop', stream, undefined)
})

worldTest('cancel says both ways that it is over, with the code of its reason', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  for (const [reason, code] of [
    [CancelReason.Cancelled, ErrorCode.RequestCancelled],
    [CancelReason.Refused, ErrorCode.RequestRejected],
    [CancelReason.InternalError, ErrorCode.InternalError],
    [CancelReason.ExcessiveLoad, ErrorCode.ExcessiveLoad],
    [CancelReason.ConnectError, ErrorCode.ConnectError],
    [CancelReason.MessageError, ErrorCode.MessageError],
  ] as const) {
    const stream = peer.request(postFields, false)
    world.run()
    exchangeOf(connection.exchanges.at(-1)).cancel(reason)
    peer.wantReset('the response', stream, code)
    peer.wantStopSending('the request', stream, code)
    assert.equal(connection.exchanges.at(-1)?.closed, true)
  }
})

worldTest('a client that resets, or stops its answer, ends the exchange', seeds, (world) => {
  const resets = new ResetCounts()
  const { peer, connection, engine } = serverScript(world, { options: { resets } })
  const reset = peer.request(postFields, false)
  const stopped = peer.request(getFields)
  world.run()
  reset.quic?.reset(ErrorCode.RequestCancelled)
  stopped.quic?.stopSending(0x1234)
  world.run()
  assert.deepEqual(
    connection.exchanges.map(({ error }) => [error?.code, error?.wireCode]),
    [
      ['PEER_RESET', ErrorCode.RequestCancelled],
      ['PEER_RESET', 0x1234],
    ],
  )
  assert.equal(engine.openExchanges, 0)
  assert.deepEqual(resets.received, { H3_REQUEST_CANCELLED: 1, unknown: 1 })
  peer.wantReset('the response to nobody', reset, ErrorCode.RequestCancelled)
  peer.wantReset('a malformed one', peer.request([...getFields, 'Bad', '1']), ErrorCode.MessageError)
  assert.deepEqual(resets.sent, { H3_MESSAGE_ERROR: 1 })
  assert.equal(exchangeOf(connection.exchanges[0]).sendData(Buffer.from('x'), 0, 1, true), false)
})

worldTest('a request that came whole is not harmed by a reset behind its trailers', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  const stream = peer.request(postFields, false).sendContent('abc').sendHead(['x-end', 'y'])
  world.run()
  stream.quic?.reset(ErrorCode.RequestCancelled)
  world.run()
  const [recording] = connection.exchanges
  assert.deepEqual(recording?.lines, ['head POST http://origin.test/', 'data "abc"', 'trailers x-end:y'])
  exchangeOf(recording).sendHead(responseHead(204), true)
  peer.wantHead('the answer', stream, [':status', '204'])
  assert.equal(recording?.error, undefined)
})

worldTest('too many fields are answered with 431, too much content with 413', seeds, (world) => {
  const { peer, connection } = serverScript(world, { options: { limits: { maxFieldLines: 5, maxContentLength: 10 } } })
  const fields = peer.request([...getFields, 'a', '1', 'b', '2'], false)
  const announced = peer.request([...postFields, 'content-length', '11'], false)
  const more = peer.request(postFields, false).sendContent('0123456789a')
  for (const [stream, status] of [
    [fields, '431'],
    [announced, '413'],
    [more, '413'],
  ] as const) {
    peer.wantHead('the answer', stream, [':status', status, 'content-length', '0'])
    peer.wantEnd('is all', stream)
    peer.wantStopSending('the rest is not read', stream, ErrorCode.NoError)
  }
  assert.deepEqual(
    connection.exchanges.map(({ error }) => error?.code),
    ['CONTENT_TOO_LARGE'],
  )
  peer.wantOpen('the connection stands')
})

worldTest('a field block larger than is worth decoding is answered with 431', seeds, (world) => {
  const { peer, connection } = serverScript(world, { options: { limits: { maxFieldSectionSize: 1_000 } } })
  const stream = peer.open().sendBytes(Buffer.from([1, 0x80, 1, 0, 0]))
  peer.wantHead('the answer', stream, [':status', '431', 'content-length', '0'])
  assert.equal(connection.exchanges.length, 0)
})

worldTest('more requests at once than allowed are rejected, so that they may be tried again', seeds, (world) => {
  const { peer, connection } = serverScript(world, { options: { limits: { maxConcurrentStreams: 2 } } })
  peer.request(getFields)
  peer.request(getFields)
  const third = peer.request(getFields)
  peer.wantReset('the third', third, ErrorCode.RequestRejected)
  assert.equal(connection.exchanges.length, 2)
})

worldTest('the priority field, and PRIORITY_UPDATE before and after the request (RFC 9218 §7)', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  peer.control.send({ type: 'PRIORITY_UPDATE', id: 4, value: 'u=6' })
  world.run()
  peer.request([...getFields, 'priority', 'u=1, i'])
  peer.request([...getFields, 'priority', 'u=1, i'])
  world.run()
  const streams = connection.exchanges.map((recording) => exchangeOf(recording) as unknown as { urgency: number; incremental: boolean })
  assert.deepEqual(
    streams.map(({ urgency, incremental }) => [urgency, incremental]),
    [
      [1, true],
      [6, false],
    ],
  )
  peer.control.send({ type: 'PRIORITY_UPDATE', id: 0, value: 'u=7, i' })
  world.run()
  assert.deepEqual(connection.exchanges[0]?.calls.at(-1), { call: 'priority', priority: { urgency: 7, incremental: true } })
  peer.control.send({ type: 'PRIORITY_UPDATE', id: 0, value: '!!' })
  peer.wantOpen('what is malformed counts for the default')
})

worldTest('an owner that answers 100 lets the content come; one that answers else stops it', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  const first = peer.request([...postFields, 'expect', '100-continue'], false)
  const second = peer.request([...postFields, 'expect', '100-continue'], false)
  world.run()
  exchangeOf(connection.exchanges[0]).sendHead(responseHead(100), false)
  peer.wantHead('go on', first, [':status', '100'])
  exchangeOf(connection.exchanges[1]).sendHead(responseHead(417), true)
  peer.wantHead('no', second, [':status', '417'])
  peer.wantStopSending('the content is not waited for', second, ErrorCode.NoError)
  peer.wantStopSending('this one is', first, undefined)
})

worldTest('a request is whole however its fields say its authority, and its scheme is that of the connection', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  peer.request([':method', 'GET', ':scheme', 'https', ':path', '/', 'host', 'origin.test'])
  world.run()
  assert.equal(connection.exchanges[0]?.head?.authority, 'origin.test')
  assert.equal(connection.exchanges[0].head.scheme, 'http')
})

worldTest('extended CONNECT, where it was offered (RFC 9220)', seeds, (world) => {
  const { peer, connection } = serverScript(world, { options: { extendedConnect: true } })
  const stream = peer.request(
    [':method', 'CONNECT', ':scheme', 'https', ':authority', 'a.test', ':path', '/chat', ':protocol', 'websocket'],
    false,
  )
  world.run()
  const [recording] = connection.exchanges
  assert.equal(recording?.head?.protocol, 'websocket')
  exchangeOf(recording).sendHead(responseHead(200, ['content-length', '0']), false)
  peer.wantHead('the tunnel is open, and has no length', stream, [':status', '200'])
  stream.sendContent('ping')
  exchangeOf(recording).sendData(Buffer.from('pong'), 0, 4, false)
  peer.wantContent('octets', stream, 'pong', false)
  assert.equal(recording?.content.toString(), 'ping')
  // A proxy that lost the other leg says so (RFC 9114 §4.4).
  exchangeOf(recording).cancel(CancelReason.ConnectError)
  peer.wantReset('the tunnel', stream, ErrorCode.ConnectError)
})

function headersFrame(): Buffer {
  const block = Buffer.from([0, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, 0x61])
  return Buffer.concat([Buffer.from([1, block.length]), block])
}
