import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, requestHead, responseHead, UsageError, type Exchange } from '../http/index.ts'
import { getFields, postFields, serverScript } from '../testing/h2-peer.ts'
import { connectionInfo, Recording, World, worldTest } from '../testing/index.ts'
import { literalBlock } from './debug-fields.ts'
import { ErrorCode } from './frame.ts'
import { SettingId } from './settings.ts'
import { ServerConnection } from './server-connection.ts'

/** Answers each exchange by `answer` when its request is complete. */
function answering(answer: (exchange: Exchange) => void): (exchange: Exchange) => Recording {
  return (exchange) => {
    const recording = new Recording()
    recording.exchange = exchange
    const maybe = (end: boolean): void => {
      if (end) answer(exchange)
    }
    recording.on = {
      onHead: (_, end) => maybe(end),
      onData: (_buffer, _start, _limit, end) => maybe(end),
      onTrailers: () => maybe(true),
    }
    return recording
  }
}

test("the server's SETTINGS say what it takes", () => {
  const { peer } = serverScript(new World(), {
    handshake: false,
    options: {
      extendedConnect: true,
      origins: ['https://a.test'],
      limits: { maxConcurrentStreams: 7, streamWindow: 70_000, connectionWindow: 100_000 },
    },
  })
  peer.wantFrame('settings', {
    type: 'SETTINGS',
    ack: false,
    settings: [
      [SettingId.InitialWindowSize, 70_000],
      [SettingId.MaxHeaderListSize, 65_536],
      [SettingId.HeaderTableSize, 4_096],
      [SettingId.NoRfc7540Priorities, 1],
      [SettingId.MaxConcurrentStreams, 7],
      [SettingId.EnableConnectProtocol, 1],
    ],
  })
  peer.wantFrame('its origins', { type: 'ORIGIN', origins: ['https://a.test'] })
  peer.wantFrame('the window of the connection', { type: 'WINDOW_UPDATE', streamId: 0, increment: 100_000 - 65_535 })
  peer.wantIdle('that is all')
})

test('what has no limit is not said to have one', () => {
  const { peer } = serverScript(new World(), {
    handshake: false,
    options: { limits: { maxConcurrentStreams: Infinity, maxFieldSectionSize: 2 ** 32 } },
  })
  const { settings } = peer.wantFrame('settings', { type: 'SETTINGS', ack: false })
  assert.deepEqual(settings, [
    [SettingId.InitialWindowSize, 1_048_576],
    [SettingId.HeaderTableSize, 4_096],
    [SettingId.NoRfc7540Priorities, 1],
  ])
})

worldTest('a request in every form of HEADERS arrives the same', { seeds: 10 }, (world) => {
  const { peer, connection } = serverScript(world, { splits: 'random' })
  const fields = [...getFields, 'x-a', 'b', 'cookie', 'a=1', 'cookie', 'b=2']
  const block = literalBlock(fields)
  const cut = world.random.integer(0, block.length)
  const dependency = { exclusive: true, dependsOn: 77, weight: 256 }
  peer.send(
    { type: 'HEADERS', streamId: 1, block, end: true, endHeaders: true },
    { type: 'HEADERS', streamId: 3, block, end: true, endHeaders: true, padding: world.random.integer(0, 255) },
    { type: 'HEADERS', streamId: 5, block, end: true, endHeaders: true, dependency },
    { type: 'HEADERS', streamId: 7, block: block.subarray(0, cut), end: true, endHeaders: false, padding: 3, dependency },
    { type: 'CONTINUATION', streamId: 7, block: block.subarray(cut, cut), endHeaders: false },
    { type: 'CONTINUATION', streamId: 7, block: block.subarray(cut), endHeaders: true },
  )
  peer.wantIdle('nobody answers')
  assert.equal(connection.exchanges.length, 4)
  for (const { lines } of connection.exchanges) {
    assert.deepEqual(lines, ['head GET http://origin.test/ x-a:b cookie:a=1 cookie:b=2 end'])
  }
})

test('padding is credited by the engine, content by the handler', () => {
  const { peer, connection } = serverScript(new World(), {
    options: { limits: { streamWindow: 1000, maxWindow: 1000, connectionWindow: 65_536 } },
  })
  peer.sendHead(1, postFields, false)
  peer.wantIdle('the request begins')
  const upload = connection.exchanges[0] as Recording
  upload.autoConsume = false
  peer.send({ type: 'DATA', streamId: 1, data: Buffer.alloc(300), end: false, padding: 199 })
  peer.wantIdle('200 of 1000 consumed')
  upload.exchange?.consume(299)
  peer.wantIdle('499 of 1000 consumed')
  upload.exchange?.consume(1)
  peer.wantFrame('half of it', { type: 'WINDOW_UPDATE', streamId: 1, increment: 500 })
  peer.wantIdle('and no more')
})

test('a request with trailers, and the answer with trailers', () => {
  const { peer, connection } = serverScript(new World())
  peer
    .sendHead(1, [...postFields, 'content-length', '5', 'te', 'trailers'], false)
    .sendContent(1, 'hello', false)
    .sendHead(1, ['x-sum', '1'], true)
  peer.wantIdle('the request is complete')
  const { exchange, lines } = connection.exchanges[0] as Recording
  assert.deepEqual(lines, ['head POST http://origin.test/ content-length:5 te:trailers', 'data "hello"', 'trailers x-sum:1'])
  exchange?.sendHead(responseHead(200, ['x', 'y']), false)
  exchange?.sendData(Buffer.from('bye'), 0, 3, false)
  exchange?.sendTrailers(['x-sum', '2'])
  peer.wantHead('the head', 1, false, [':status', '200', 'x', 'y'])
  peer.wantContent('the content', 1, 3, false)
  peer.wantTrailers('the trailers', 1, ['x-sum', '2'])
  peer.wantIdle('that is all')
})

test('trailers-only answers are one HEADERS frame; empty trailers are an END_STREAM', () => {
  const { peer, connection } = serverScript(new World())
  peer.sendHead(1, getFields, true).sendHead(3, getFields, true)
  peer.wantIdle('the requests')
  connection.exchanges[0]?.exchange?.sendHead(responseHead(200, ['grpc-status', '5']), true)
  peer.wantHead('trailers only', 1, true, [':status', '200', 'grpc-status', '5'])
  connection.exchanges[1]?.exchange?.sendHead(responseHead(200), false)
  connection.exchanges[1]?.exchange?.sendTrailers([])
  peer.wantHead('a head', 3, false)
  peer.wantContent('the end', 3, 0, true)
})

test('pieces sent in one turn share a DATA frame', () => {
  const { peer, connection } = serverScript(new World())
  peer.sendHead(1, getFields, true)
  peer.wantIdle('the request')
  const { exchange } = connection.exchanges[0] as Recording
  exchange?.sendHead(responseHead(200), false)
  for (let i = 0; i < 100; i++) exchange?.sendData(Buffer.from('x'), 0, 1, false)
  exchange?.sendData(Buffer.alloc(0), 0, 0, true)
  peer.wantHead('the head', 1, false)
  peer.wantFrame('all content', { type: 'DATA', streamId: 1, data: Buffer.alloc(100, 'x'), end: true })
})

test('an end behind content of the same turn is a flag on its frame', () => {
  const { peer, connection } = serverScript(new World())
  peer.sendHead(1, getFields, true).sendHead(3, getFields, true)
  peer.wantIdle('two requests')
  const [first, second] = connection.exchanges
  first?.exchange?.sendHead(responseHead(200), false)
  first?.exchange?.sendData(Buffer.from('abc'), 0, 3, false)
  first?.exchange?.sendTrailers([])
  second?.exchange?.sendHead(responseHead(200), false)
  second?.exchange?.sendData(Buffer.from('abc'), 0, 3, false)
  peer.wantHead('a head', 1, false)
  peer.wantFrame('content and end', { type: 'DATA', streamId: 1, data: Buffer.from('abc'), end: true })
  peer.wantHead('a head', 3, false)
  peer.wantFrame('content', { type: 'DATA', streamId: 3, data: Buffer.from('abc'), end: false })
  second?.exchange?.sendData(Buffer.alloc(0), 0, 0, true)
  peer.wantFrame('the end of a later turn', { type: 'DATA', streamId: 3, data: Buffer.alloc(0), end: true })
})

test('a large head goes out in CONTINUATION frames, and comes in so', () => {
  const { peer, connection } = serverScript(new World())
  const value = 'v'.repeat(15_000)
  const fields = ['x-1', value, 'x-2', value, 'x-3', value]
  const block = literalBlock([...getFields, ...fields])
  peer.send({ type: 'HEADERS', streamId: 1, block: block.subarray(0, 16_384), end: true, endHeaders: false })
  for (let at = 16_384; at < block.length; at += 16_384) {
    peer.send({ type: 'CONTINUATION', streamId: 1, block: block.subarray(at, at + 16_384), endHeaders: at + 16_384 >= block.length })
  }
  peer.wantIdle('the request')
  const { exchange, head } = connection.exchanges[0] as Recording
  assert.deepEqual(head?.fields, fields)
  exchange?.sendHead(responseHead(200, fields), true)
  assert.deepEqual(peer.wantHead('the answer', 1, true), [':status', '200', ...fields])
})

test("the peer's MAX_FRAME_SIZE counts for HEADERS and DATA", () => {
  const { peer, connection } = serverScript(new World(), {
    settings: [
      [SettingId.MaxFrameSize, 20_000],
      [SettingId.InitialWindowSize, 1_000_000],
    ],
  })
  peer.sendHead(1, getFields, true)
  peer.wantIdle('the request')
  const { exchange } = connection.exchanges[0] as Recording
  exchange?.sendHead(responseHead(200, ['x', '~'.repeat(19_000)]), false)
  const frame = peer.wantFrame('one HEADERS', { type: 'HEADERS', streamId: 1 })
  assert.ok(frame.block.length > 16_384 && frame.endHeaders)
  exchange?.sendOwned(Buffer.alloc(50_000), true)
  for (const length of [20_000, 20_000, 10_000]) assert.equal(peer.wantFrame('content', { type: 'DATA' }).data.length, length)
})

test('limits on fields are answered with 431, on content with 413, and the connection goes on', () => {
  const world = new World()
  const { peer, connection } = serverScript(world, {
    options: { limits: { maxFieldLines: 10, maxFieldSectionSize: 2000, maxFieldLineSize: 500, maxContentLength: 100 } },
  })
  const many = Array.from({ length: 11 }, (_, i) => [`x-${i}`, 'y']).flat()
  peer.sendHead(1, [...getFields, ...many], true)
  peer.wantHead('too many lines', 1, true, [':status', '431', 'content-length', '0'])
  peer.sendHead(3, [...getFields, 'x', 'y'.repeat(501)], true)
  peer.wantHead('a line too long', 3, true, [':status', '431', 'content-length', '0'])
  peer.sendHead(5, [...postFields, 'a', 'y'.repeat(499), 'b', 'y'.repeat(499), 'c', 'y'.repeat(499), 'd', 'y'.repeat(499)], false)
  peer.wantHead('a section too large', 5, true, [':status', '431', 'content-length', '0'])
  peer.sendContent(5, 'whose content is read and thrown away', true)
  peer.sendHead(7, [...postFields, 'content-length', '101'], false)
  peer.wantHead('a declared length too large', 7, true, [':status', '413', 'content-length', '0'])
  world.advance(500)
  peer.wantReset('its content is not waited for long', 7, ErrorCode.NoError)
  assert.equal(connection.exchanges.length, 0, 'no handler hears of these')
  peer.sendHead(9, postFields, false).sendContent(9, 'x'.repeat(60), false).sendContent(9, 'x'.repeat(60), false)
  peer.wantHead('more content than allowed', 9, true, [':status', '413', 'content-length', '0'])
  peer.sendContent(9, 'x'.repeat(160), true)
  peer.wantIdle('the rest is read and thrown away')
  assert.equal(connection.exchanges[0]?.error?.code, 'CONTENT_TOO_LARGE')
  peer.sendHead(11, [...postFields, 'content-length', '100'], false).sendContent(11, 'x'.repeat(100), true)
  peer.wantIdle('just right')
  assert.ok(connection.exchanges[1]?.ended)
  assert.equal(connection.exchanges[1].received, 100)
})

test('a request over the limit of streams is refused, and may come again', () => {
  const { peer, connection } = serverScript(new World(), { options: { limits: { maxConcurrentStreams: 2 } } })
  peer.sendHead(1, getFields, true).sendHead(3, getFields, true).sendHead(5, getFields, true)
  peer.wantReset('one too many', 5, ErrorCode.RefusedStream)
  connection.exchanges[0]?.exchange?.sendHead(responseHead(204), true)
  peer.wantHead('a place is free', 1, true)
  peer.sendHead(7, getFields, true)
  peer.wantIdle('it is taken')
  assert.equal(connection.exchanges.length, 3)
})

test('host stands for a missing :authority, and is not a field', () => {
  const { peer, connection } = serverScript(new World())
  peer.sendHead(1, [':method', 'GET', ':scheme', 'http', ':path', '/', 'host', 'a.test'], true)
  peer.sendHead(3, [...getFields, 'host', 'ORIGIN.test'], true)
  peer.wantIdle('both are fine')
  assert.deepEqual(
    connection.exchanges.map(({ lines }) => lines[0]),
    ['head GET http://a.test/ end', 'head GET http://origin.test/ end'],
  )
})

test('the scheme is what the connection is', () => {
  const { peer, connection } = serverScript(new World())
  peer.sendHead(1, [':method', 'GET', ':scheme', 'https', ':path', '/', ':authority', 'a.test'], true)
  peer.wantIdle('the request')
  assert.equal(connection.exchanges[0]?.head?.scheme, 'http')
})

test('fields of an HTTP/1.1 connection are left out, and so is the length of what has no content', () => {
  const { peer } = serverScript(new World(), {})
  const world = new World()
  const script = serverScript(world)
  void peer
  script.peer.sendHead(1, getFields, true).sendHead(3, getFields, true)
  script.peer.wantIdle('the requests')
  const [first, second] = script.connection.exchanges
  first?.exchange?.sendHead(
    responseHead(200, [
      'connection',
      'close',
      'keep-alive',
      'x',
      'transfer-encoding',
      'chunked',
      'upgrade',
      'h2c',
      'te',
      'gzip',
      'host',
      'a',
      'x',
      'y',
    ]),
    true,
  )
  script.peer.wantHead('what is left', 1, true, [':status', '200', 'x', 'y'])
  second?.exchange?.sendHead(responseHead(103, ['content-length', '3', 'x', 'y']), false)
  second?.exchange?.sendHead(responseHead(204, ['content-length', '0', 'x', 'y']), true)
  script.peer.wantHead('the interim one', 3, false, [':status', '103', 'x', 'y'])
  script.peer.wantHead('the final one', 3, true, [':status', '204', 'x', 'y'])
})

test('a date is added to final responses that have none', () => {
  const date = { httpDate: () => 'Mon, 21 Oct 2013 20:13:21 GMT' }
  const { peer, connection } = serverScript(new World(), { options: { date } })
  for (let id = 1; id <= 9; id += 2) peer.sendHead(id, getFields, true)
  peer.wantIdle('the requests')
  const fields = ['x', 'y']
  for (const { exchange } of connection.exchanges.slice(0, 4)) exchange?.sendHead(responseHead(200, fields), true)
  connection.exchanges[4]?.exchange?.sendHead(responseHead(200, ['date', 'mine']), true)
  for (let id = 1; id <= 7; id += 2) peer.wantHead('dated', id, true, [':status', '200', 'x', 'y', 'date', date.httpDate()])
  peer.wantHead('as it was', 9, true, [':status', '200', 'date', 'mine'])
})

test('an array of fields that is reused with other contents is not mistaken for what it was', () => {
  const { peer, connection } = serverScript(new World())
  const fields = ['content-length', '1', 'x', 'a']
  for (let i = 0; i < 6; i++) {
    peer.sendHead(1 + 2 * i, [':method', 'HEAD', ...getFields.slice(2)], true)
    peer.wantIdle('a request')
    fields[1] = String(i % 2)
    fields[3] = `v${i >> 1}`
    connection.exchanges[i]?.exchange?.sendHead(responseHead(200, fields), true)
    peer.wantHead('what it is now', 1 + 2 * i, true, [':status', '200', ...fields])
  }
})

test('after an invalid field nothing was sent, and the table of the peer is as ours', () => {
  const { peer, connection } = serverScript(new World())
  peer.sendHead(1, getFields, true)
  peer.wantIdle('a request')
  const { exchange } = connection.exchanges[0] as Recording
  for (const bad of [['x-b', 'c\n'], ['Bad', 'x'], ['x-b'], ['x-b', 'ĊĊ']]) {
    assert.throws(() => exchange?.sendHead(responseHead(200, ['x-new', 'value', ...bad]), true), UsageError)
  }
  exchange?.sendHead(responseHead(200, ['x-new', 'value']), false)
  assert.throws(() => exchange?.sendTrailers(['x', ' y']), UsageError)
  exchange?.sendTrailers(['x-new', 'value'])
  peer.wantHead('the answer', 1, false, [':status', '200', 'x-new', 'value'])
  peer.wantTrailers('the trailers', 1, ['x-new', 'value'])
})

test('the table size of the peer is kept to, also when it changes', () => {
  const { peer, connection } = serverScript(new World(), { settings: [[SettingId.HeaderTableSize, 0]] })
  const fields = ['x-one', 'a value', 'x-two', 'another value']
  const ask = (id: number): void => {
    peer.sendHead(id, getFields, true)
    peer.wantIdle('a request')
    connection.exchanges.at(-1)?.exchange?.sendHead(responseHead(200, fields), true)
    peer.wantHead('an answer', id, true, [':status', '200', ...fields])
  }
  for (let id = 1; id < 9; id += 2) ask(id)
  for (const [at, size] of [4096, 100, 0, 65_536].entries()) {
    peer.send({ type: 'SETTINGS', ack: false, settings: [[SettingId.HeaderTableSize, size]] })
    peer.wantFrame('taken', { type: 'SETTINGS', ack: true })
    for (let i = 0; i < 4; i++) ask(11 + at * 8 + i * 2)
  }
})

test('RST_STREAM from the client ends the exchange with its code', () => {
  const { peer, connection } = serverScript(new World())
  peer.sendHead(1, getFields, true).sendHead(3, getFields, true).sendHead(5, postFields, false)
  peer.wantIdle('the requests')
  for (const [at, code] of [ErrorCode.Cancel, ErrorCode.RefusedStream, ErrorCode.NoError].entries()) {
    peer.send({ type: 'RST_STREAM', streamId: 1 + 2 * at, code })
    peer.wantIdle('nothing to say')
    const { error, closed } = connection.exchanges[at] as Recording
    assert.ok(closed)
    assert.deepEqual([error?.code, error?.wireCode, error?.scope], ['PEER_RESET', code, 'stream'])
  }
})

test('cancel sends the code of its reason, and what comes late is nobody’s fault', () => {
  const { peer, connection } = serverScript(new World())
  const codes: [CancelReason, number][] = [
    [CancelReason.NoError, ErrorCode.NoError],
    [CancelReason.Cancelled, ErrorCode.Cancel],
    [CancelReason.Refused, ErrorCode.RefusedStream],
    [CancelReason.InternalError, ErrorCode.InternalError],
    [CancelReason.Timeout, ErrorCode.Cancel],
    [CancelReason.MessageError, ErrorCode.ProtocolError],
    [CancelReason.ConnectError, ErrorCode.ConnectError],
    [CancelReason.ExcessiveLoad, ErrorCode.EnhanceYourCalm],
  ]
  for (const [at, [reason, code]] of codes.entries()) {
    const id = 1 + 2 * at
    peer.sendHead(id, postFields, false)
    peer.wantIdle('an upload begins')
    connection.exchanges[at]?.exchange?.cancel(reason)
    peer.wantReset('it is cancelled', id, code)
    peer.sendContent(id, 'under way', false).send({ type: 'WINDOW_UPDATE', streamId: id, increment: 1000 }).sendHead(id, ['x', 'y'], true)
    peer.wantIdle('late, and ignored')
  }
})

test('an answer that is complete lets go of an upload that is discarded', () => {
  const world = new World()
  const { peer, connection } = serverScript(world)
  peer.sendHead(1, postFields, false)
  peer.wantIdle('an upload begins')
  const { exchange, calls } = connection.exchanges[0] as Recording
  exchange?.discard()
  peer.sendContent(1, 'x'.repeat(1000), false)
  peer.wantIdle('read and thrown away')
  exchange?.sendHead(responseHead(200), false)
  exchange?.sendData(Buffer.from('enough'), 0, 6, true)
  peer.wantHead('the answer', 1, false)
  peer.wantContent('whole', 1, 6, true)
  peer.sendContent(1, 'x'.repeat(1000), false)
  peer.wantIdle('it may still come to its end')
  world.advance(500)
  peer.wantReset('and no more of the upload', 1, ErrorCode.NoError)
  assert.deepEqual(calls.at(-1), { call: 'close', error: undefined })
})

test('Expect: 100-continue is for the handler to answer', () => {
  const world = new World()
  const { peer, connection } = serverScript(world)
  peer.sendHead(1, [...postFields, 'expect', '100-continue'], false).sendHead(3, [...postFields, 'expect', '100-continue'], false)
  peer.wantIdle('nobody says 100 by himself')
  const [first, second] = connection.exchanges
  first?.exchange?.sendHead(responseHead(100), false)
  peer.wantHead('go on', 1, false, [':status', '100'])
  first?.exchange?.sendHead(responseHead(200), true)
  peer.wantHead('an early answer', 1, true)
  peer.sendContent(1, 'content', true)
  peer.wantIdle('the upload is read to its end')
  assert.equal(first?.error, undefined)
  assert.equal(first?.received, 7)
  if (second !== undefined) second.discarded = true
  second?.exchange?.sendHead(responseHead(417), true)
  peer.wantHead('a refusal', 3, true)
  world.advance(500)
  peer.wantReset('whose content is not waited for long', 3, ErrorCode.NoError)
  assert.ok(second?.closed && second.error === undefined)
})

test('CONNECT opens a tunnel with 2xx; anything else refuses it', () => {
  const world = new World()
  const { peer, connection } = serverScript(world)
  const connect = [':method', 'CONNECT', ':authority', 'a.test:443']
  peer.sendHead(1, connect, false).sendHead(3, connect, false)
  peer.wantIdle('two requests')
  const [opened, refused] = connection.exchanges as [Recording, Recording]
  opened.exchange?.sendHead(responseHead(200, ['content-length', '5', 'x', 'y']), false)
  peer.wantHead('a tunnel has no length', 1, false, [':status', '200', 'x', 'y'])
  peer.sendContent(1, 'up', false)
  opened.exchange?.sendData(Buffer.from('down'), 0, 4, false)
  peer.wantContent('down', 1, 4, false)
  peer.sendHead(1, ['x', 'y'], true)
  peer.wantReset('a tunnel has no trailers', 1, ErrorCode.ProtocolError)
  refused.discarded = true
  refused.exchange?.sendHead(responseHead(403, ['content-length', '2']), false)
  refused.exchange?.sendData(Buffer.from('no'), 0, 2, true)
  peer.wantHead('a refusal', 3, false, [':status', '403', 'content-length', '2'])
  peer.wantContent('with content', 3, 2, true)
  world.advance(500)
  peer.wantReset('the tunnel is not waited for long', 3, ErrorCode.NoError)
})

test('extended CONNECT, where it is offered', () => {
  const { peer, connection } = serverScript(new World(), { options: { extendedConnect: true } })
  peer.sendHead(1, [':method', 'CONNECT', ':protocol', 'websocket', ':scheme', 'http', ':path', '/chat', ':authority', 'a.test'], false)
  peer.wantIdle('a request')
  const { head } = connection.exchanges[0] as Recording
  assert.deepEqual(head, requestHead('CONNECT', 'http', 'a.test', '/chat', [], 'websocket'))
})

test('the run loop cannot be entered from a handler', () => {
  const world = new World()
  const seen: unknown[] = []
  const { peer, engine } = serverScript(world, {
    handler: {
      onReady() {},
      onExchange: answering((exchange) => {
        for (const call of [() => engine.shutdown(), () => engine.receiveEnd(0), () => engine.expire(0)]) {
          try {
            call()
          } catch (error) {
            seen.push(error)
          }
        }
        exchange.sendHead(responseHead(204), true)
      }),
      onCapacity() {},
      onDraining() {},
      onDrained() {},
      onClose() {},
    },
  })
  peer.sendHead(1, getFields, true)
  peer.wantHead('answered all the same', 1, true)
  assert.equal(seen.length, 3)
  assert.ok(seen.every((error) => error instanceof UsageError))
})

test('an owner that throws loses that exchange, and nothing else', () => {
  let broken = true
  const { peer } = serverScript(new World(), {
    handler: {
      onReady() {},
      onExchange(exchange) {
        if (broken) throw new Error('not now')
        return answering((one) => one.sendHead(responseHead(204), true))(exchange)
      },
      onCapacity() {},
      onDraining() {},
      onDrained() {},
      onClose() {},
    },
  })
  peer.sendHead(1, getFields, true)
  peer.wantReset('it failed', 1, ErrorCode.InternalError)
  broken = false
  peer.sendHead(3, getFields, true)
  peer.wantHead('the next one does not', 3, true)
})

test('room of the transport is kept to, and nothing is written without any', () => {
  const handler = { onReady() {}, onExchange: () => new Recording(), onCapacity() {}, onDraining() {}, onDrained() {}, onClose() {} }
  const engine = new ServerConnection(connectionInfo('server'), handler, {}, 1000)
  const out = { buffer: Buffer.alloc(0), length: 0, room: 0, reserve() {}, writeBytes() {}, writeLatin1() {} }
  assert.equal(engine.transmit(out, 1000), true, 'SETTINGS wait')
  assert.equal(out.length, 0)
  assert.ok(engine.deadline <= 61_000, 'not for ever')
})
