import assert from 'node:assert/strict'
import { responseHead } from '../http/index.ts'
import {
  clientScript,
  ErrorCode,
  getFields,
  getHead,
  postFields,
  serverScript,
  type Http3Peer,
  type PeerStream,
} from '../testing/h3-peer.ts'
import { recordingHandler } from '../testing/recording.ts'
import { worldTest } from '../testing/seeds.ts'
import type { DebugFrame } from './debug-frame.ts'
import { literalSection } from './debug-fields.ts'
import { longFrameHeader } from './debug-frame.ts'
import { FrameType, reservedNumber, StreamType } from './frame.ts'

const seeds = { seeds: 6 }
const payload = new Uint8Array(3)
const head: DebugFrame = { type: 'HEADERS', block: literalSection(getFields) }
const data: DebugFrame = { type: 'DATA', data: payload }
const answer: DebugFrame = { type: 'HEADERS', block: literalSection([':status', '200']) }

type Case = readonly [why: string, code: number, send: (peer: Http3Peer, stream: PeerStream) => void]

/** What a client may not do. The stream is a request's. */
const clientFaults: readonly Case[] = [
  [
    'ORIGIN on a request stream (RFC 9412 §2)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send({ type: 'UNKNOWN', frameType: FrameType.Origin, payload }),
  ],
  ['DATA before the head (RFC 9114 §4.1)', ErrorCode.FrameUnexpected, (_, stream) => stream.send(data)],
  [
    'HEADERS after trailers (RFC 9114 §4.1)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send(head, { type: 'HEADERS', block: literalSection(['a', 'b']) }, head),
  ],
  [
    'DATA after trailers (RFC 9114 §4.1)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send(head, { type: 'HEADERS', block: literalSection(['a', 'b']) }, data),
  ],
  [
    'PUSH_PROMISE from a client (RFC 9114 §7.2.5)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send({ type: 'PUSH_PROMISE', id: 0, block: payload }),
  ],
  [
    'SETTINGS on a request stream (RFC 9114 §7.2.4)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send({ type: 'SETTINGS', settings: [] }),
  ],
  ['GOAWAY on a request stream (RFC 9114 §7.2.6)', ErrorCode.FrameUnexpected, (_, stream) => stream.send({ type: 'GOAWAY', id: 0 })],
  [
    'MAX_PUSH_ID on a request stream (RFC 9114 §7.2.7)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send({ type: 'MAX_PUSH_ID', id: 0 }),
  ],
  [
    'CANCEL_PUSH on a request stream (RFC 9114 §7.2.3)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send({ type: 'CANCEL_PUSH', id: 0 }),
  ],
  [
    'PRIORITY_UPDATE on a request stream (RFC 9218 §7.2)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send({ type: 'PRIORITY_UPDATE', id: 0, value: 'u=1' }),
  ],
  ...[0x2, 0x6, 0x8, 0x9].map((frameType): Case => [
    `the frame ${frameType} of HTTP/2 on a request stream (RFC 9114 §7.2.8)`,
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send({ type: 'UNKNOWN', frameType, payload }),
  ]),
  ...[0x2, 0x6, 0x8, 0x9].map((frameType): Case => [
    `the frame ${frameType} of HTTP/2 on the control stream (RFC 9114 §7.2.8)`,
    ErrorCode.FrameUnexpected,
    (peer) => peer.control.send({ type: 'UNKNOWN', frameType, payload }),
  ]),
  [
    'a stream that ends within a payload (RFC 9114 §7.1)',
    ErrorCode.FrameError,
    (_, stream) => stream.send(head).sendBytes(Uint8Array.of(0, 5, 1), true),
  ],
  [
    'a stream that ends within a frame header (RFC 9114 §7.1)',
    ErrorCode.FrameError,
    (_, stream) => stream.send(head).sendBytes(Uint8Array.of(0), true),
  ],
  [
    'a stream that ends within a field block (RFC 9114 §7.1)',
    ErrorCode.FrameError,
    (_, stream) => stream.sendBytes(Uint8Array.of(1, 50, 0, 0), true),
  ],
  [
    'a stream that ends within an unknown frame (RFC 9114 §7.1)',
    ErrorCode.FrameError,
    (_, stream) => stream.send(head).sendBytes(Uint8Array.of(0x21, 5, 0), true),
  ],
  [
    'HEADERS that cannot be decoded (RFC 9204 §6)',
    ErrorCode.DecompressionFailed,
    (_, stream) => stream.send({ type: 'HEADERS', block: Uint8Array.of(0, 0, 0xff, 0xff, 0x7f) }),
  ],
  [
    'empty HEADERS (RFC 9204 §4.5.1)',
    ErrorCode.DecompressionFailed,
    (_, stream) => stream.send({ type: 'HEADERS', block: new Uint8Array(0) }),
  ],
  ['DATA on the control stream (RFC 9114 §7.2.1)', ErrorCode.FrameUnexpected, (peer) => peer.control.send(data)],
  ['HEADERS on the control stream (RFC 9114 §7.2.2)', ErrorCode.FrameUnexpected, (peer) => peer.control.send(head)],
  [
    'PUSH_PROMISE on the control stream (RFC 9114 §7.2.5)',
    ErrorCode.FrameUnexpected,
    (peer) => peer.control.send({ type: 'PUSH_PROMISE', id: 0, block: payload }),
  ],
  ['SETTINGS twice (RFC 9114 §7.2.4)', ErrorCode.FrameUnexpected, (peer) => peer.control.send({ type: 'SETTINGS', settings: [] })],
  ['a second control stream (RFC 9114 §6.2.1)', ErrorCode.StreamCreationError, (peer) => peer.openCritical(StreamType.Control)],
  [
    'a second encoder stream (RFC 9204 §4.2)',
    ErrorCode.StreamCreationError,
    (peer) => void [peer.openCritical(StreamType.Encoder), peer.openCritical(StreamType.Encoder)],
  ],
  [
    'a second decoder stream (RFC 9204 §4.2)',
    ErrorCode.StreamCreationError,
    (peer) => void [peer.openCritical(StreamType.Decoder), peer.openCritical(StreamType.Decoder)],
  ],
  ['a push stream from a client (RFC 9114 §6.2.2)', ErrorCode.StreamCreationError, (peer) => peer.openCritical(StreamType.Push)],
  ['the control stream ends (RFC 9114 §6.2.1)', ErrorCode.ClosedCriticalStream, (peer) => peer.control.sendEnd()],
  ['the control stream is reset (RFC 9114 §6.2.1)', ErrorCode.ClosedCriticalStream, (peer) => peer.control.quic?.reset(ErrorCode.NoError)],
  ['the encoder stream ends (RFC 9204 §4.2)', ErrorCode.ClosedCriticalStream, (peer) => peer.openCritical(StreamType.Encoder).sendEnd()],
  [
    'our control stream is not read (RFC 9114 §6.2.1)',
    ErrorCode.ClosedCriticalStream,
    (peer) => peer.theirs(StreamType.Control).quic?.stopSending(ErrorCode.NoError),
  ],
  [
    'GOAWAY with something behind its number (RFC 9114 §7.1)',
    ErrorCode.FrameError,
    (peer) => peer.control.send({ type: 'UNKNOWN', frameType: FrameType.Goaway, payload: Uint8Array.of(0, 0) }),
  ],
  [
    'GOAWAY without its number (RFC 9114 §7.1)',
    ErrorCode.FrameError,
    (peer) => peer.control.send({ type: 'UNKNOWN', frameType: FrameType.Goaway, payload: new Uint8Array(0) }),
  ],
  ['GOAWAY of 2^62 octets', ErrorCode.FrameError, (peer) => peer.control.sendBytes(longFrameHeader(FrameType.Goaway, 2 ** 62 - 512))],
  [
    'GOAWAY that takes back another (RFC 9114 §5.2)',
    ErrorCode.IdError,
    (peer) => peer.control.send({ type: 'GOAWAY', id: 3 }, { type: 'GOAWAY', id: 4 }),
  ],
  [
    'MAX_PUSH_ID that becomes smaller (RFC 9114 §7.2.7)',
    ErrorCode.IdError,
    (peer) => peer.control.send({ type: 'MAX_PUSH_ID', id: 7 }, { type: 'MAX_PUSH_ID', id: 6 }),
  ],
  [
    'CANCEL_PUSH of a push that was never promised (RFC 9114 §7.2.3)',
    ErrorCode.IdError,
    (peer) => peer.control.send({ type: 'CANCEL_PUSH', id: 0 }),
  ],
  [
    'PRIORITY_UPDATE of what is no request (RFC 9218 §7.2)',
    ErrorCode.IdError,
    (peer) => peer.control.send({ type: 'PRIORITY_UPDATE', id: 2, value: 'u=1' }),
  ],
  [
    'PRIORITY_UPDATE of a push (RFC 9218 §7.2)',
    ErrorCode.IdError,
    (peer) => peer.control.send({ type: 'PUSH_PRIORITY_UPDATE', id: 0, value: 'u=1' }),
  ],
  [
    'PRIORITY_UPDATE without its element (RFC 9218 §7.2)',
    ErrorCode.FrameError,
    (peer) => peer.control.send({ type: 'UNKNOWN', frameType: FrameType.PriorityUpdate, payload: new Uint8Array(0) }),
  ],
  [
    'a PRIORITY_UPDATE too long to be meant',
    ErrorCode.ExcessiveLoad,
    (peer) => peer.control.sendBytes(longFrameHeader(FrameType.PriorityUpdate, 100_000)),
  ],
  [
    'an encoder stream that breaks the rules of QPACK (RFC 9204 §6)',
    ErrorCode.EncoderStreamError,
    (peer) => peer.openCritical(StreamType.Encoder).sendBytes(Uint8Array.of(0x3f, 0xe1, 0xff, 0x7f)),
  ],
  [
    'a decoder stream that breaks the rules of QPACK (RFC 9204 §6)',
    ErrorCode.DecoderStreamError,
    (peer) => peer.openCritical(StreamType.Decoder).sendBytes(Uint8Array.of(0)),
  ],
]

for (const [why, code, send] of clientFaults) {
  worldTest(`server: ${why}`, seeds, (world) => {
    const { peer, connection, engine } = serverScript(world)
    send(peer, peer.open())
    peer.wantClose(why, code)
    assert.equal(connection.closed, true)
    assert.equal(connection.error?.wireCode, code)
    assert.equal(connection.error.scope, 'connection')
    assert.equal(engine.openExchanges, 0)
    assert.deepEqual(connection.faults, [])
  })
}

/** What a server may not do. The stream is that of a request that waits for its answer. */
const serverFaults: readonly Case[] = [
  ['a stream of requests that a server begins (RFC 9114 §6.1)', ErrorCode.StreamCreationError, (peer) => peer.open().send(head)],
  [
    'PUSH_PROMISE, where no push was allowed (RFC 9114 §7.2.5)',
    ErrorCode.IdError,
    (_, stream) => stream.send({ type: 'PUSH_PROMISE', id: 0, block: payload }),
  ],
  ['a push stream, where no push was allowed (RFC 9114 §4.6)', ErrorCode.IdError, (peer) => peer.openCritical(StreamType.Push)],
  [
    'CANCEL_PUSH, where no push was allowed (RFC 9114 §7.2.3)',
    ErrorCode.IdError,
    (peer) => peer.control.send({ type: 'CANCEL_PUSH', id: 0 }),
  ],
  ['MAX_PUSH_ID from a server (RFC 9114 §7.2.7)', ErrorCode.FrameUnexpected, (peer) => peer.control.send({ type: 'MAX_PUSH_ID', id: 0 })],
  [
    'PRIORITY_UPDATE from a server (RFC 9218 §7.2)',
    ErrorCode.FrameUnexpected,
    (peer) => peer.control.send({ type: 'PRIORITY_UPDATE', id: 0, value: 'u=1' }),
  ],
  ['GOAWAY that names no request (RFC 9114 §7.2.6)', ErrorCode.IdError, (peer) => peer.control.send({ type: 'GOAWAY', id: 1 })],
  [
    'GOAWAY that takes back another (RFC 9114 §5.2)',
    ErrorCode.IdError,
    (peer) => peer.control.send({ type: 'GOAWAY', id: 400 }, { type: 'GOAWAY', id: 404 }),
  ],
  ['DATA before the head (RFC 9114 §4.1)', ErrorCode.FrameUnexpected, (_, stream) => stream.send(data)],
  [
    'DATA behind nothing but an interim head (RFC 9114 §4.1)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.sendHead([':status', '103']).send(data),
  ],
  [
    'DATA after trailers (RFC 9114 §4.1)',
    ErrorCode.FrameUnexpected,
    (_, stream) => stream.send(answer, { type: 'HEADERS', block: literalSection(['a', 'b']) }, data),
  ],
]

for (const [why, code, send] of serverFaults) {
  worldTest(`client: ${why}`, seeds, (world) => {
    const { peer, connection, engine } = clientScript(world)
    const handler = recordingHandler()
    const exchange = engine.open(handler)
    // Its own message goes on, so that the exchange is there whatever comes.
    exchange?.sendHead(getHead(), false)
    const stream = peer.wantStream('the request', 0)
    send(peer, stream)
    peer.wantClose(why, code)
    assert.equal(connection.error?.wireCode, code)
    assert.equal(handler.error?.wireCode, code)
    assert.deepEqual([...handler.faults, ...connection.faults], [])
  })
}

/** Malformed requests (RFC 9114 §4.1.2): an error of the stream. */
const malformedRequests: readonly (readonly [why: string, lines: readonly string[]])[] = [
  ['no :method', getFields.slice(2)],
  ['no :path', getFields.slice(0, 6)],
  [':path twice', [...getFields, ':path', '/']],
  ['an empty :path', [...getFields.slice(0, 7), '']],
  ['a pseudo-header field behind a field', [...getFields.slice(0, 6), 'a', 'b', ':path', '/']],
  ['an unknown pseudo-header field', [...getFields, ':unknown', '1']],
  [':status', [...getFields, ':status', '200']],
  ['an upper-case name', [...getFields, 'Upper', '1']],
  ['a line feed in a value', [...getFields, 'a', 'b\nc']],
  ['connection', [...getFields, 'connection', 'close']],
  ['transfer-encoding', [...getFields, 'transfer-encoding', 'chunked']],
  ['te other than trailers', [...getFields, 'te', 'gzip']],
  ['a malformed content-length', [...getFields, 'content-length', 'x']],
  ['two content-lengths', [...getFields, 'content-length', '0', 'content-length', '0']],
  ['host that differs from :authority', [...getFields, 'host', 'other.test']],
  ['neither host nor :authority', [':method', 'GET', ':scheme', 'https', ':path', '/']],
  ['user information in :authority', [':method', 'GET', ':scheme', 'https', ':authority', 'u@origin.test', ':path', '/']],
  ['CONNECT with :path', [':method', 'CONNECT', ':authority', 'origin.test:1', ':path', '/']],
  [':protocol without CONNECT', [...getFields, ':protocol', 'websocket']],
  ['content-length without content', [...getFields, 'content-length', '1']],
  [
    'extended CONNECT that was not offered (RFC 9220 §3)',
    [':method', 'CONNECT', ':scheme', 'https', ':authority', 'a.test', ':path', '/', ':protocol', 'websocket'],
  ],
]

for (const [why, lines] of malformedRequests) {
  worldTest(`server: a malformed request: ${why}`, seeds, (world) => {
    const { peer, connection } = serverScript(world)
    const stream = peer.request(lines)
    peer.wantReset(why, stream, ErrorCode.MessageError)
    assert.equal(connection.exchanges.length, 0)
    const next = peer.request(getFields)
    peer.wantOpen('the connection stands')
    connection.exchanges[0]?.exchange?.sendHead(responseHead(204), true)
    peer.wantHead('the next is answered', next, [':status', '204'])
  })
}

worldTest('server: more content than content-length, and less (RFC 9114 §4.1.2)', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  const more = peer.request([...postFields, 'content-length', '3'], false).sendContent('abcd', true)
  const less = peer.request([...postFields, 'content-length', '3'], false).sendContent('ab', true)
  const trailers = peer
    .request([...postFields, 'content-length', '3'], false)
    .sendContent('ab')
    .sendHead(['a', 'b'], true)
  const announced = peer.request([...postFields, 'content-length', '3'], false).sendBytes(longFrameHeader(0, 2 ** 61))
  for (const stream of [more, less, trailers, announced]) {
    peer.wantReset('a length that is wrong', stream, ErrorCode.MessageError)
  }
  const [first, second, third, fourth] = connection.exchanges
  assert.deepEqual([first?.ended, second?.ended, third?.ended, fourth?.ended], [false, false, false, false])
  assert.equal(fourth?.received, 0)
  peer.wantOpen('the connection stands')
})

worldTest('server: a request that ends before its head (RFC 9114 §4.1)', seeds, (world) => {
  const { peer } = serverScript(world)
  const empty = peer.open().sendEnd()
  const unknown = peer.open().send({ type: 'UNKNOWN', frameType: 0x21, payload }).sendEnd()
  peer.wantReset('an empty stream', empty, ErrorCode.RequestIncomplete)
  peer.wantReset('one of nothing', unknown, ErrorCode.RequestIncomplete)
})

/** Malformed responses (RFC 9114 §4.1.2). */
const malformedResponses: readonly (readonly [why: string, lines: readonly string[]])[] = [
  ['no :status', ['a', 'b']],
  [':status 101', [':status', '101']],
  [':status of two digits', [':status', '20']],
  [':path', [':status', '200', ':path', '/']],
  ['an interim head that ends the stream', [':status', '103']],
  ['content-length without content', [':status', '200', 'content-length', '5']],
  ['connection', [':status', '200', 'connection', 'close']],
]

for (const [why, lines] of malformedResponses) {
  worldTest(`client: a malformed response: ${why}`, seeds, (world) => {
    const { peer, engine } = clientScript(world)
    const handler = recordingHandler()
    engine.open(handler)?.sendHead(getHead(), true)
    peer.wantStream('the request', 0).sendHead(lines, true)
    peer.wantOpen('the connection stands')
    assert.equal(handler.error?.code, 'PROTOCOL_ERROR')
    assert.equal(handler.error.wireCode, ErrorCode.MessageError)
    assert.equal(handler.error.scope, 'stream')
    assert.equal(engine.openExchanges, 0)
  })
}

worldTest('client: a stream that ends without a response', seeds, (world) => {
  const { peer, engine } = clientScript(world)
  const handler = recordingHandler()
  engine.open(handler)?.sendHead(getHead(), true)
  peer.wantStream('the request', 0).sendEnd()
  world.run()
  assert.equal(handler.error?.wireCode, ErrorCode.MessageError)
})

worldTest('what nobody knows is skipped: frames, settings, streams, however long (RFC 9114 §9)', seeds, (world) => {
  const { peer, connection } = serverScript(world, {
    settings: [
      [reservedNumber(7), 2 ** 61],
      [0x33, 0],
    ],
  })
  peer.control.send({ type: 'UNKNOWN', frameType: reservedNumber(1), payload: new Uint8Array(20_000) })
  peer.control.send({ type: 'UNKNOWN', frameType: reservedNumber(2), payload: new Uint8Array(0) })
  const unknown = peer.openCritical(0x21).sendBytes(new Uint8Array(100))
  const grease = { type: 'UNKNOWN', frameType: reservedNumber(3), payload: new Uint8Array(5_000) } as const
  const stream = peer.open().send(grease, head, grease, { type: 'DATA', data: Buffer.from('ab') }, grease)
  stream
    .sendContent('c')
    .send({ type: 'HEADERS', block: literalSection(['x-end', 'y']) }, grease)
    .sendEnd()
  peer.wantOpen('nothing of it is wrong')
  peer.wantStopSending('an unknown stream is not read', unknown, ErrorCode.StreamCreationError)
  const [request] = connection.exchanges
  assert.deepEqual(
    request?.lines,
    ['head GET http://origin.test/ ', 'data "abc"', 'trailers x-end:y'].map((line) => line.trimEnd()),
  )
  // A frame that never ends takes no memory, and the stream may be reset in it.
  const endless = peer
    .request(getFields, false)
    .sendBytes(longFrameHeader(reservedNumber(4), 2 ** 62 - 512))
    .sendBytes(new Uint8Array(300_000))
  peer.control.sendBytes(longFrameHeader(reservedNumber(5), 2 ** 62 - 512)).sendBytes(new Uint8Array(300_000))
  peer.wantOpen('it is read on')
  endless.quic?.reset(ErrorCode.RequestCancelled)
  world.run()
  assert.equal(connection.exchanges[1]?.error?.code, 'PEER_RESET')
})

worldTest('streams that end before they say what they are harm nobody (RFC 9114 §6.2)', seeds, (world) => {
  const { peer } = serverScript(world)
  peer.open(false).sendEnd()
  peer.open(false).sendBytes(Uint8Array.of(0x40), true)
  peer.open(false).quic?.reset(1)
  peer.wantOpen('none of them was critical')
})

worldTest('a tunnel has DATA and nothing else (RFC 9114 §4.4)', seeds, (world) => {
  const { peer, connection } = serverScript(world)
  const stream = peer.request([':method', 'CONNECT', ':authority', 'target.test:443'], false)
  world.run()
  connection.exchanges[0]?.exchange?.sendHead(responseHead(200), false)
  stream.send({ type: 'UNKNOWN', frameType: reservedNumber(1), payload })
  peer.wantOpen('extensions are allowed')
  stream.send({ type: 'HEADERS', block: literalSection(['a', 'b']) })
  peer.wantClose('trailers are not', ErrorCode.FrameUnexpected)
})
