import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { responseHead } from '../http/index.ts'
import { clientScript, getFields, getHead, Http2Peer, postFields, serverScript } from '../testing/h2-peer.ts'
import { Recording, RecordingConnection, World } from '../testing/index.ts'
import { literalBlock } from './debug-fields.ts'
import type { DebugFrame } from './debug-frame.ts'
import { ErrorCode } from './frame.ts'

/*
 * The rules of RFC 9113 that a peer can break, frame by frame, with the error each is answered with. Every
 * rule is tried with the frames whole and octet by octet.
 */

/** What comes of the frames: an error of the connection, an error of a stream, or nothing. */
type Outcome = { readonly goaway: number } | { readonly reset: number; readonly stream?: number } | 'nothing'

interface Rule {
  readonly title: string
  /** A server's stream 1 before: an upload that goes on, a request that waits for its answer, or one that was answered. Default `upload`. */
  readonly scene?: 'upload' | 'waiting' | 'answered' | 'none'
  readonly send: readonly DebugFrame[]
  readonly outcome: Outcome
}

const raw = (typeCode: number, flags: number, streamId: number, payload: Uint8Array | string = ''): DebugFrame => ({
  type: 'RAW',
  typeCode,
  flags,
  streamId,
  payload: Buffer.from(payload as string, 'latin1'),
})
const octets = (length: number): Uint8Array => new Uint8Array(length)
const head = (streamId: number, fields: readonly string[] = getFields, end = true): DebugFrame => ({
  type: 'HEADERS',
  streamId,
  block: literalBlock(fields),
  end,
  endHeaders: true,
})
const data = (streamId: number, length: number, end = false): DebugFrame => ({ type: 'DATA', streamId, data: octets(length), end })
const without = (name: string): string[] => getFields.filter((_, i) => getFields[i - (i % 2)] !== name)
const withField = (name: string, value: string, fields: readonly string[] = getFields): string[] => [...fields, name, value]
const malformed = (title: string, fields: readonly string[], end = true): Rule => ({
  title: `malformed request: ${title}`,
  scene: 'none',
  send: [head(1, fields, end)],
  outcome: { reset: ErrorCode.ProtocolError },
})
const { ProtocolError, FrameSizeError, FlowControlError, StreamClosed, CompressionError, EnhanceYourCalm } = ErrorCode

const serverRules: readonly Rule[] = [
  // §4.2, §5.5
  { title: 'a frame of more than 16,384 octets', send: [raw(0, 0, 1, octets(16_385))], outcome: { goaway: FrameSizeError } },
  { title: 'a frame of an unknown type', send: [raw(0x77, 0xff, 1, octets(100)), raw(0x78, 0, 0)], outcome: 'nothing' },
  { title: 'unknown flags', send: [raw(6, 0xfe, 0, octets(8)), raw(8, 0xff, 1, '\0\0\x10\0')], outcome: 'nothing' },
  { title: 'the reserved bit of a stream number', send: [raw(8, 0, 0x8000_0001, '\0\0\x10\0')], outcome: 'nothing' },

  // §6.1 DATA
  { title: 'DATA on stream 0', send: [data(0, 1)], outcome: { goaway: ProtocolError } },
  { title: 'DATA on an idle stream', send: [data(5, 1)], outcome: { goaway: ProtocolError } },
  { title: 'DATA on an idle stream of ours', send: [data(2, 1)], outcome: { goaway: ProtocolError } },
  { title: 'DATA after END_STREAM', scene: 'waiting', send: [data(1, 9)], outcome: { reset: StreamClosed } },
  { title: 'DATA on a closed stream', scene: 'answered', send: [data(1, 9)], outcome: { reset: StreamClosed } },
  { title: 'DATA with padding as long as itself', send: [raw(0, 8, 1, '\x05.....')], outcome: 'nothing' },
  { title: 'DATA with more padding than itself', send: [raw(0, 8, 1, '\x06.....')], outcome: { goaway: ProtocolError } },
  { title: 'padded DATA without the length', send: [raw(0, 8, 1)], outcome: { goaway: FrameSizeError } },

  // §6.2 HEADERS, §6.10 CONTINUATION
  { title: 'HEADERS on stream 0', send: [head(0)], outcome: { goaway: ProtocolError } },
  { title: 'HEADERS on an even stream', send: [head(2)], outcome: { goaway: ProtocolError } },
  { title: 'HEADERS on a lower stream than before', scene: 'none', send: [head(5), head(3)], outcome: { goaway: StreamClosed } },
  { title: 'HEADERS on a closed stream', scene: 'answered', send: [head(1)], outcome: { goaway: StreamClosed } },
  { title: 'HEADERS after END_STREAM', scene: 'waiting', send: [head(1)], outcome: { reset: StreamClosed } },
  { title: 'a second head that does not end the stream', send: [head(1, ['x', 'y'], false)], outcome: { reset: ProtocolError } },
  { title: 'HEADERS with more padding than itself', send: [raw(1, 0xd, 3, '\x07......')], outcome: { goaway: ProtocolError } },
  { title: 'padded HEADERS without the length', send: [raw(1, 0xd, 3)], outcome: { goaway: FrameSizeError } },
  { title: 'HEADERS too short for its priority', send: [raw(1, 0x25, 3, 'abcd')], outcome: { goaway: FrameSizeError } },
  { title: 'HEADERS that depends on itself', send: [{ ...head(3), dependency: { exclusive: false, dependsOn: 3, weight: 1 } } as DebugFrame], outcome: { reset: ProtocolError, stream: 3 } }, // prettier-ignore
  { title: 'a block that cannot be decoded', send: [raw(1, 5, 3, '\x80')], outcome: { goaway: CompressionError } },
  { title: 'a block that cannot be decoded, on a closed stream', scene: 'answered', send: [raw(1, 5, 1, '\xff\xff\xff\xff\xff\xff')], outcome: { goaway: CompressionError } }, // prettier-ignore
  { title: 'CONTINUATION without HEADERS', send: [raw(9, 4, 1)], outcome: { goaway: ProtocolError } },
  { title: 'CONTINUATION after END_HEADERS', send: [head(3), raw(9, 4, 3)], outcome: { goaway: ProtocolError } },
  { title: 'CONTINUATION of another stream', send: [raw(1, 1, 3), raw(9, 4, 5)], outcome: { goaway: ProtocolError } },
  { title: 'DATA inside a field block', send: [raw(1, 1, 3), data(1, 1)], outcome: { goaway: ProtocolError } },
  { title: 'an unknown frame inside a field block', send: [raw(1, 1, 3), raw(0x77, 0, 3)], outcome: { goaway: ProtocolError } },

  // §6.3 PRIORITY
  { title: 'PRIORITY', send: [raw(2, 0, 1, octets(5)), raw(2, 0, 99, octets(5))], outcome: 'nothing' },
  { title: 'PRIORITY on stream 0', send: [raw(2, 0, 0, octets(5))], outcome: { goaway: ProtocolError } },
  { title: 'PRIORITY of 4 octets', send: [raw(2, 0, 1, octets(4))], outcome: { reset: FrameSizeError } },
  {
    title: 'PRIORITY of 6 octets on a closed stream',
    scene: 'answered',
    send: [raw(2, 0, 1, octets(6))],
    outcome: { reset: FrameSizeError },
  },
  { title: 'PRIORITY of 6 octets on an idle stream', send: [raw(2, 0, 99, octets(6))], outcome: { goaway: FrameSizeError } },
  { title: 'PRIORITY that depends on itself', send: [raw(2, 0, 1, '\0\0\0\x01\0')], outcome: { reset: ProtocolError } },

  // §6.4 RST_STREAM
  { title: 'RST_STREAM on stream 0', send: [raw(3, 0, 0, octets(4))], outcome: { goaway: ProtocolError } },
  { title: 'RST_STREAM on an idle stream', send: [raw(3, 0, 99, octets(4))], outcome: { goaway: ProtocolError } },
  { title: 'RST_STREAM of 3 octets', send: [raw(3, 0, 1, octets(3))], outcome: { goaway: FrameSizeError } },
  { title: 'RST_STREAM on a closed stream', scene: 'answered', send: [raw(3, 0, 1, octets(4))], outcome: 'nothing' },

  // §6.5 SETTINGS
  { title: 'SETTINGS on a stream', send: [raw(4, 0, 1)], outcome: { goaway: ProtocolError } },
  { title: 'SETTINGS of 5 octets', send: [raw(4, 0, 0, octets(5))], outcome: { goaway: FrameSizeError } },
  { title: 'an acknowledgement with settings', send: [raw(4, 1, 0, octets(6))], outcome: { goaway: FrameSizeError } },
  { title: 'an acknowledgement of nothing', send: [raw(4, 1, 0)], outcome: 'nothing' },
  { title: 'ENABLE_PUSH 2', send: [raw(4, 0, 0, '\0\x02\0\0\0\x02')], outcome: { goaway: ProtocolError } },
  { title: 'INITIAL_WINDOW_SIZE 2^31', send: [raw(4, 0, 0, '\0\x04\x80\0\0\0')], outcome: { goaway: FlowControlError } },
  { title: 'MAX_FRAME_SIZE 16,383', send: [raw(4, 0, 0, '\0\x05\0\0\x3f\xff')], outcome: { goaway: ProtocolError } },
  {
    title: 'INITIAL_WINDOW_SIZE that lifts a stream above 2^31 - 1',
    send: [raw(8, 0, 1, '\x7f\xff\0\0'), raw(4, 0, 0, '\0\x04\0\x02\0\0')],
    outcome: { goaway: FlowControlError },
  },

  // §6.6, §8.4
  { title: 'PUSH_PROMISE from a client', send: [raw(5, 4, 1, octets(8))], outcome: { goaway: ProtocolError } },

  // §6.7 PING
  { title: 'PING on a stream', send: [raw(6, 0, 1, octets(8))], outcome: { goaway: ProtocolError } },
  { title: 'PING of 7 octets', send: [raw(6, 0, 0, octets(7))], outcome: { goaway: FrameSizeError } },
  { title: 'an answer to no PING', send: [raw(6, 1, 0, octets(8))], outcome: 'nothing' },

  // §6.8 GOAWAY
  { title: 'GOAWAY on a stream', send: [raw(7, 0, 1, octets(8))], outcome: { goaway: ProtocolError } },
  { title: 'GOAWAY of 7 octets', send: [raw(7, 0, 0, octets(7))], outcome: { goaway: FrameSizeError } },

  // §6.9 WINDOW_UPDATE
  { title: 'WINDOW_UPDATE by 0 on the connection', send: [raw(8, 0, 0, octets(4))], outcome: { goaway: ProtocolError } },
  { title: 'WINDOW_UPDATE by 0 on a stream', send: [raw(8, 0, 1, octets(4))], outcome: { reset: ProtocolError } },
  { title: 'WINDOW_UPDATE of 3 octets', send: [raw(8, 0, 1, octets(3))], outcome: { goaway: FrameSizeError } },
  { title: 'WINDOW_UPDATE on an idle stream', send: [raw(8, 0, 99, '\0\0\x10\0')], outcome: { goaway: ProtocolError } },
  { title: 'WINDOW_UPDATE on a closed stream', scene: 'answered', send: [raw(8, 0, 1, '\0\0\x10\0')], outcome: 'nothing' },
  { title: "the connection's window above 2^31 - 1", send: [raw(8, 0, 0, '\x7f\xff\xff\xff')], outcome: { goaway: FlowControlError } },
  { title: "a stream's window above 2^31 - 1", send: [raw(8, 0, 1, '\x7f\xff\xff\xff')], outcome: { reset: FlowControlError } },

  // RFC 9218 §7.1, RFC 8336 §2.1
  { title: 'PRIORITY_UPDATE on a stream', send: [raw(0x10, 0, 1, '\0\0\0\x01u=1')], outcome: { goaway: ProtocolError } },
  { title: 'PRIORITY_UPDATE of 3 octets', send: [raw(0x10, 0, 0, octets(3))], outcome: { goaway: FrameSizeError } },
  { title: 'PRIORITY_UPDATE for stream 0', send: [raw(0x10, 0, 0, octets(4))], outcome: { goaway: ProtocolError } },
  { title: 'PRIORITY_UPDATE for a stream that is gone', scene: 'answered', send: [raw(0x10, 0, 0, '\0\0\0\x01u=1')], outcome: 'nothing' },
  { title: 'ORIGIN from a client', send: [raw(0xc, 0, 0, '\0\x0ehttps://a.test')], outcome: 'nothing' },

  // §8.1, §8.2, §8.3
  malformed('no :method', without(':method')),
  malformed('no :scheme', without(':scheme')),
  malformed('no :path', without(':path')),
  malformed('no :authority and no host', without(':authority')),
  malformed('an empty :path', [...without(':path'), ':path', '']),
  malformed('a :path that is none', [...without(':path'), ':path', 'no-slash']),
  malformed('a :path with a space', [...without(':path'), ':path', '/a b']),
  malformed(':method twice', [':method', 'GET', ...getFields]),
  malformed(':path twice, once empty', [':path', '', ...getFields]),
  malformed('a method that is no token', [...without(':method'), ':method', 'G T']),
  malformed('user information in :authority', [...without(':authority'), ':authority', 'me@origin.test']),
  malformed('a pseudo-header field after a regular one', ['accept', '*', ...getFields]),
  malformed('an unknown pseudo-header field', [':foo', 'x', ...getFields]),
  malformed(':status in a request', [':status', '200', ...getFields]),
  malformed('an upper-case name', withField('Upper', 'x')),
  malformed('an empty name', withField('', 'x')),
  malformed('a name with a colon', withField('a:b', 'x')),
  malformed('a line feed in a value', withField('x', 'a\nb')),
  malformed('a NUL in a value', withField('x', 'a\0b')),
  malformed('white space around a value', withField('x', ' a')),
  malformed('connection', withField('connection', 'close')),
  malformed('keep-alive', withField('keep-alive', 'timeout=1')),
  malformed('proxy-connection', withField('proxy-connection', 'close')),
  malformed('transfer-encoding', withField('transfer-encoding', 'chunked')),
  malformed('upgrade', withField('upgrade', 'h2c')),
  malformed('te other than trailers', withField('te', 'gzip')),
  malformed('host that differs from :authority', withField('host', 'other.test')),
  malformed('host twice', withField('host', 'origin.test', withField('host', 'origin.test'))),
  malformed('content-length twice', withField('content-length', '1', withField('content-length', '1', postFields)), false),
  malformed('a content-length that is none', withField('content-length', '+1', postFields), false),
  malformed('content-length without content', withField('content-length', '1', postFields)),
  malformed('CONNECT with :path', [':method', 'CONNECT', ':authority', 'a.test:443', ':path', '/'], false),
  malformed('CONNECT with :scheme', [':method', 'CONNECT', ':authority', 'a.test:443', ':scheme', 'http'], false),
  malformed('CONNECT without :authority', [':method', 'CONNECT'], false),
  malformed(':protocol without CONNECT', [':protocol', 'websocket', ...getFields]),
  malformed(':protocol where it was not offered', [':method', 'CONNECT', ':protocol', 'websocket', ...without(':method')], false),
  { title: 'a pseudo-header field in trailers', send: [head(1, [':path', '/'])], outcome: { reset: ProtocolError } },
  { title: 'a connection field in trailers', send: [head(1, ['connection', 'close'])], outcome: { reset: ProtocolError } },
  {
    title: 'more content than content-length',
    scene: 'none',
    send: [head(1, withField('content-length', '10', postFields), false), data(1, 11)],
    outcome: { reset: ProtocolError },
  },
  {
    title: 'less content than content-length',
    scene: 'none',
    send: [head(1, withField('content-length', '10', postFields), false), data(1, 9, true)],
    outcome: { reset: ProtocolError },
  },
  {
    title: 'less content than content-length, before trailers',
    scene: 'none',
    send: [head(1, withField('content-length', '10', postFields), false), data(1, 9), head(1, ['x', 'y'])],
    outcome: { reset: ProtocolError },
  },

  // limits.md
  {
    title: 'a field block of more than 8 CONTINUATION frames',
    send: [raw(1, 1, 3, '\x82'), ...Array.from({ length: 9 }, () => raw(9, 0, 3, '\x84'))],
    outcome: { goaway: EnhanceYourCalm },
  },
]

const clientRules: readonly Rule[] = [
  { title: 'PUSH_PROMISE', send: [raw(5, 4, 1, '\0\0\0\x02\x82\x84')], outcome: { goaway: ProtocolError } },
  { title: 'ENABLE_PUSH 1', send: [raw(4, 0, 0, '\0\x02\0\0\0\x01')], outcome: { goaway: ProtocolError } },
  { title: 'HEADERS on a stream that was never begun', send: [head(3, [':status', '200'])], outcome: { goaway: ProtocolError } },
  { title: 'HEADERS on an even stream', send: [head(2, [':status', '200'])], outcome: { goaway: ProtocolError } },
  { title: 'DATA before the head', send: [data(1, 10)], outcome: { reset: ProtocolError } },
  { title: 'DATA on a stream that was never begun', send: [data(3, 10)], outcome: { goaway: ProtocolError } },
  { title: 'RST_STREAM on a stream that was never begun', send: [raw(3, 0, 3, octets(4))], outcome: { goaway: ProtocolError } },
  { title: 'WINDOW_UPDATE on a stream that was never begun', send: [raw(8, 0, 3, '\0\0\x10\0')], outcome: { goaway: ProtocolError } },
  { title: 'PRIORITY_UPDATE from a server', send: [raw(0x10, 0, 0, '\0\0\0\x01u=1')], outcome: { goaway: ProtocolError } },
  { title: 'ORIGIN', send: [raw(0xc, 0, 0, '\0\x0ehttps://a.test')], outcome: 'nothing' },
  { title: 'ORIGIN on a stream', send: [raw(0xc, 0, 1, '\0\x0ehttps://a.test')], outcome: 'nothing' },
  { title: 'ORIGIN cut off', send: [raw(0xc, 0, 0, '\0\x0ehttps://')], outcome: 'nothing' },
  { title: 'no :status', send: [head(1, ['x', 'y'])], outcome: { reset: ProtocolError } },
  { title: ':status twice', send: [head(1, [':status', '200', ':status', '200'])], outcome: { reset: ProtocolError } },
  { title: ':status 101', send: [head(1, [':status', '101'], false)], outcome: { reset: ProtocolError } },
  { title: ':status 99', send: [head(1, [':status', '99'])], outcome: { reset: ProtocolError } },
  { title: ':status 2000', send: [head(1, [':status', '2000'])], outcome: { reset: ProtocolError } },
  { title: ':status and :path', send: [head(1, [':status', '200', ':path', '/'])], outcome: { reset: ProtocolError } },
  { title: 'an interim response with END_STREAM', send: [head(1, [':status', '103'])], outcome: { reset: ProtocolError } },
  { title: 'transfer-encoding', send: [head(1, [':status', '200', 'transfer-encoding', 'chunked'])], outcome: { reset: ProtocolError } },
  {
    title: 'a second final head',
    send: [head(1, [':status', '200'], false), head(1, [':status', '200'])],
    outcome: { reset: ProtocolError },
  },
  {
    title: 'content-length without content',
    send: [head(1, [':status', '200', 'content-length', '1'])],
    outcome: { reset: ProtocolError },
  },
  { title: 'more content than content-length', send: [head(1, [':status', '200', 'content-length', '9'], false), data(1, 10)], outcome: { reset: ProtocolError } }, // prettier-ignore
  { title: 'DATA after the end', send: [head(1, [':status', '200']), data(1, 10)], outcome: { goaway: StreamClosed } },
  { title: 'HEADERS after the end', send: [head(1, [':status', '200']), head(1, ['x', 'y'])], outcome: { goaway: StreamClosed } },
  { title: 'DATA after RST_STREAM', send: [raw(3, 0, 1, octets(4)), data(1, 10)], outcome: { goaway: StreamClosed } },
  { title: 'content in a 204', send: [head(1, [':status', '204'], false), data(1, 10)], outcome: { reset: ProtocolError } },
]

function checkOutcome(peer: Http2Peer, connection: RecordingConnection, outcome: Outcome): void {
  // What the frames before the last one lead to (answers to PING and SETTINGS) is not the point.
  const skipAnswers = (): void => {
    for (;;) {
      try {
        peer.want('an answer', (frame) => ('ack' in frame && frame.ack) || frame.type === 'WINDOW_UPDATE')
      } catch {
        return
      }
    }
  }
  skipAnswers()
  if (outcome === 'nothing') peer.wantIdle('the frames change nothing')
  else if ('goaway' in outcome) {
    peer.wantGoaway('an error of the connection', outcome.goaway)
    peer.peer.end()
    peer.peer.world.run()
    assert.equal(connection.error?.code, 'PROTOCOL_ERROR')
    assert.equal(connection.error.wireCode, outcome.goaway)
    assert.equal(connection.error.scope, 'connection')
  } else {
    peer.wantReset('an error of the stream', outcome.stream ?? 1, outcome.reset)
    peer.wantIdle('of the stream only')
  }
  assert.deepEqual(connection.faults, [])
  for (const exchange of connection.exchanges) assert.deepEqual(exchange.faults, [])
}

for (const splits of ['none', 'bytewise'] as const) {
  void describe(`what a client must not do (splits: ${splits})`, () => {
    for (const { title, scene = 'upload', send, outcome } of serverRules) {
      void test(title, () => {
        const { peer, connection } = serverScript(new World(), { splits })
        if (scene !== 'none') peer.sendHead(1, scene === 'upload' ? postFields : getFields, scene !== 'upload')
        peer.wantIdle('the request is with its handler')
        if (scene === 'answered') {
          connection.exchanges[0]?.exchange?.sendHead(responseHead(204), true)
          peer.wantHead('the answer', 1, true)
        }
        peer.send(...send)
        checkOutcome(peer, connection, outcome)
        if (outcome !== 'nothing' && 'goaway' in outcome) return
        peer.sendHead(101, getFields, true)
        peer.wantIdle('the connection works on')
        connection.exchanges.at(-1)?.exchange?.sendHead(responseHead(204), true)
        peer.wantHead('another answer', 101, true)
      })
    }
  })

  void describe(`what a server must not do (splits: ${splits})`, () => {
    for (const { title, send, outcome } of clientRules) {
      void test(title, () => {
        const { peer, connection, engine } = clientScript(new World(), { splits })
        const recording = new Recording()
        const exchange = engine.open(recording)
        recording.exchange = exchange
        exchange?.sendHead(getHead(), true)
        peer.wantHead('the request', 1, true)
        peer.send(...send)
        checkOutcome(peer, connection, outcome)
        assert.deepEqual(recording.faults, [])
        if (outcome !== 'nothing' && 'reset' in outcome && !recording.ended) assert.equal(recording.error?.wireCode, outcome.reset)
        if (outcome !== 'nothing' && 'goaway' in outcome) assert.ok(recording.closed)
        else {
          engine.open(new Recording())?.sendHead(getHead('/next'), true)
          peer.wantHead('the connection works on', 3, true)
        }
      })
    }
  })
}

/** The connection's window is raised in the first turn, which may come before the peer's first word or after it. */
function skipWindow(peer: Http2Peer): void {
  try {
    peer.wantFrame('the window', { type: 'WINDOW_UPDATE' })
  } catch {
    // It was too late for that.
  }
}

test('the preface: anything else ends the connection, at every octet', () => {
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  for (let at = 0; at < preface.length; at++) {
    const { peer, connection } = serverScript(new World(), { handshake: false })
    const wrong = Buffer.from(preface)
    wrong[at] = (wrong[at] as number) ^ 0x20
    peer.peer.send(wrong)
    peer.wantFrame('SETTINGS go first', { type: 'SETTINGS' })
    skipWindow(peer)
    peer.wantGoaway('no preface', ErrorCode.ProtocolError)
    assert.equal(connection.exchanges.length, 0)
  }
})

test('the first frame must be SETTINGS, from either side', () => {
  for (const first of [raw(6, 0, 0, octets(8)), raw(4, 1, 0), raw(0x77, 0, 0), head(1)]) {
    const server = serverScript(new World(), { handshake: false })
    server.peer.peer.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    server.peer.send(first)
    server.peer.wantFrame('SETTINGS go first', { type: 'SETTINGS' })
    skipWindow(server.peer)
    server.peer.wantGoaway('no SETTINGS', ErrorCode.ProtocolError)
    const client = clientScript(new World(), { handshake: false })
    client.peer.peer.want('the preface', /PRI \* HTTP\/2\.0\r\n\r\nSM\r\n\r\n/)
    client.peer.send(first)
    client.peer.wantFrame('SETTINGS go first', { type: 'SETTINGS' })
    skipWindow(client.peer)
    client.peer.wantGoaway('no SETTINGS', ErrorCode.ProtocolError)
  }
})
