/** The WebSocket against a peer written by hand, in the seeded world. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, CancelledError, HeddleError, UsageError } from '../http/index.ts'
import { encodePeerFrame } from '../testing/websocket/peer-frame.ts'
import { Opcode } from '../ws/index.ts'
import type { ConnectOptions } from './connect-options.ts'
import type { WebSocketCloseEvent, WebSocketErrorEvent } from './events.ts'
import { closeFrame, echo, endAfterClose, stage, textFrame, watch, type HandWrittenPeer, type Stage } from './hand-written-peer.test.ts'
import { WebSocket } from './web-socket.ts'

/** Nothing of it is left in the client and the clock. */
function assertGone({ world, client }: Stage): void {
  world.advance(10_000)
  const { connections, streams, waiting } = client.stats()
  assert.deepEqual({ connections, streams, waiting }, { connections: 0, streams: 0, waiting: 0 })
  // The client remembers origins for a while, by one alarm.
  assert.ok(world.armed <= 1, `${world.armed} alarms`)
}

test('the handshake of RFC 6455 §4.1 and what the standard adds to it', async () => {
  const { world, open, peers } = stage()
  const headers = { authorization: 'Bearer x', cookie: 'a=b' }
  open(['v2.chat', 'v1.chat'], { headers, origin: 'https://app.test' })
  await world.settle()
  const [peer] = peers as [HandWrittenPeer]
  assert.match(peer.head, /^GET \/ HTTP\/1\.1\r\n/)
  const names = ['host', 'upgrade', 'connection', 'sec-websocket-version', 'sec-websocket-protocol', 'sec-websocket-extensions']
  assert.deepEqual(
    [...names, 'origin', 'authorization', 'cookie', 'user-agent'].map((name) => peer.field(name)),
    [
      'peer.test',
      'websocket',
      'upgrade',
      '13',
      'v2.chat, v1.chat',
      'permessage-deflate; client_max_window_bits',
      'https://app.test',
      'Bearer x',
      'a=b',
      'heddle/0.1.0',
    ],
  )
  assert.equal(Buffer.from(peer.field('sec-websocket-key') ?? '', 'base64').length, 16)
})

test('user information of the URL is sent, unless the program says who it is; deflate can be left out', async () => {
  const { world, client, peers } = stage()
  new WebSocket('ws://me:pass@peer.test/x?y', { client, deflate: false })
  new WebSocket('ws://me:pass@peer.test/', { client, headers: [['Authorization', 'Bearer x']] })
  await world.settle()
  assert.match(peers[0]?.head ?? '', /^GET \/x\?y HTTP/)
  assert.deepEqual(
    peers.map((peer) => peer.field('authorization')),
    [`Basic ${Buffer.from('me:pass').toString('base64')}`, 'Bearer x'],
  )
  assert.equal(peers[0]?.field('sec-websocket-extensions'), undefined)
})

test('from connecting to closed: events, attributes, ready states', async () => {
  const script = stage({ fields: ['Sec-WebSocket-Protocol: chat'], onFrame: echo })
  const { world, open, peers, log } = script
  const webSocket = open('chat')
  assert.deepEqual(
    [webSocket.url, webSocket.readyState, webSocket.protocol, webSocket.extensions, webSocket.version, webSocket.info],
    ['ws://peer.test/', WebSocket.CONNECTING, '', '', undefined, undefined],
  )
  await world.settle()
  assert.deepEqual([webSocket.readyState, webSocket.protocol, webSocket.version], [webSocket.OPEN, 'chat', 'h1'])
  assert.equal(webSocket.info?.remote.port, 80)
  webSocket.send('hello')
  webSocket.close(3000, 'done')
  assert.equal(webSocket.readyState, WebSocket.CLOSING)
  webSocket.close(4000, 'again')
  await world.settle()
  assert.deepEqual(log, ['open (1)', 'message hello (2)', 'close 3000 "done" clean (3)'])
  assert.deepEqual(peers[0]?.lines, ['text "hello"', 'close 3000'])
  assert.equal(webSocket.readyState, webSocket.CLOSED)
  assert.deepEqual(await webSocket.closed, { code: 3000, reason: 'done', wasClean: true, error: undefined })
  assertGone(script)
})

test('the constants are where the standard has them', () => {
  const expected = { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 }
  for (const [name, value] of Object.entries(expected)) {
    assert.equal((WebSocket as unknown as Record<string, number>)[name], value)
    assert.equal((WebSocket.prototype as unknown as Record<string, number>)[name], value)
  }
})

// ── How it opens ────────────────────────────────────────────────────────────────────────────────────

const accepting = (peer: HandWrittenPeer, ...lines: string[]): string =>
  [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    ...lines,
    `Sec-WebSocket-Accept: ${peer.accept}`,
    '',
    '',
  ].join('\r\n')

const failures: [name: string, answer: (peer: HandWrittenPeer) => string, status: number, message: RegExp][] = [
  [
    '404',
    () => 'HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n',
    404,
    /answered the WebSocket handshake with 404 \(Not Found\); 101 was expected$/,
  ],
  ['401 with a challenge', () => 'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n', 401, /401/],
  [
    'a redirect, which is not followed',
    () => 'HTTP/1.1 302 Found\r\nLocation: wss://else.test/\r\nContent-Length: 0\r\n\r\n',
    302,
    /with 302 \(Found\), and redirects are not followed \(to "wss:\/\/else\.test\/"\); 101 was expected$/,
  ],
  [
    'a page, as from a server that knows no WebSockets',
    () => 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi',
    200,
    /with 200 \(OK\); 101 was expected$/,
  ],
  ['426 to another version', () => 'HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 8\r\nContent-Length: 0\r\n\r\n', 426, /426/],
  [
    'a subprotocol that was not offered',
    (peer) => accepting(peer, 'Sec-WebSocket-Protocol: other'),
    101,
    /subprotocol "other" was not offered/,
  ],
  ['none of the subprotocols', (peer) => accepting(peer), 101, /chose none of the subprotocols chat/],
  [
    'an extension that was not offered',
    (peer) => accepting(peer, 'Sec-WebSocket-Protocol: chat', 'Sec-WebSocket-Extensions: foo'),
    101,
    /extension "foo" was not offered/,
  ],
  [
    'parameters of deflate that nobody knows',
    (peer) => accepting(peer, 'Sec-WebSocket-Protocol: chat', 'Sec-WebSocket-Extensions: permessage-deflate; x=1'),
    101,
    /permessage-deflate: unknown parameter x/,
  ],
]

for (const [name, answer, status, message] of failures) {
  test(`a handshake that fails: ${name}`, async () => {
    const set = stage({ answer })
    const { world, open, log, peers } = set
    const webSocket = open('chat')
    let error: WebSocketErrorEvent | undefined
    webSocket.addEventListener('error', (event) => void (error = event))
    const opened = assert.rejects(webSocket.opened, (reason) => reason === error?.error)
    await world.settle()
    await opened
    assert.deepEqual(log.length, 2)
    assert.match(log[0] ?? '', /^error ws:\/\/peer\.test\/: .* \(3\)$/)
    assert.equal(log[1], 'close 1006 "" not clean (3)')
    assert.match(error?.message ?? '', message)
    const reason = error?.error as HeddleError & { status: number; url: string; headers: Headers }
    assert.deepEqual([reason.code, reason.status, reason.url], ['HANDSHAKE_FAILED', status, 'ws://peer.test/'])
    if (status === 401) assert.equal(reason.headers.get('www-authenticate'), 'Basic realm="x"')
    assert.equal(peers.length, 1, 'it is not tried again')
    await assert.rejects(webSocket.opened, { code: 'HANDSHAKE_FAILED' })
    assertGone(set)
  })
}

test('a wrong Sec-WebSocket-Accept, an answer that is none, a connection that ends, one that is refused', async () => {
  const told: string[] = []
  const answers: ((peer: HandWrittenPeer) => string | undefined)[] = [
    () => 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: no\r\n\r\n',
    () => 'SSH-2.0-OpenSSH_9.6\r\n\r\n',
    (peer) => void peer.socket.end(),
  ]
  for (const answer of answers) {
    const { world, open, log } = stage({ answer })
    open()
    await world.settle()
    told.push(...log)
  }
  const { world, client, log } = stage()
  watch(new WebSocket('ws://peer.test:81/', { client }), log)
  await world.settle()
  told.push(...log)
  const errors = told.filter((line) => line.startsWith('error'))
  assert.equal(told.filter((line) => line === 'close 1006 "" not clean (3)').length, 4)
  assert.match(errors[0] ?? '', /ws:\/\/peer\.test\/: wrong or missing Sec-WebSocket-Accept/)
  assert.match(errors[1] ?? '', /ws:\/\/peer\.test\/: /)
  assert.match(errors[2] ?? '', /closed the connection without an answer/)
  assert.match(errors[3] ?? '', /ws:\/\/peer\.test:81\/: /)
})

test('handshakeTimeout covers the way and the answer; afterwards it means nothing', async () => {
  const silent = stage({ answer: () => undefined })
  silent.open(undefined, { handshakeTimeout: 500 })
  silent.world.advance(499)
  assert.deepEqual(silent.log, [])
  silent.world.advance(1)
  await silent.world.settle()
  assert.deepEqual(silent.log, ['error ws://peer.test/: the server gave no answer within 500 ms (3)', 'close 1006 "" not clean (3)'])
  assertGone(silent)

  const { world, client, log } = stage()
  world.network.blackHole('hole.test', 80)
  watch(new WebSocket('ws://hole.test/', { client, handshakeTimeout: 500 }), log)
  world.advance(500)
  await world.settle()
  assert.equal(log[0], 'error ws://hole.test/: no connection was to be had within 500 ms (3)')

  const open = stage()
  const webSocket = open.open(undefined, { handshakeTimeout: 500 })
  open.world.advance(100_000)
  assert.deepEqual([open.log, webSocket.readyState, open.world.armed], [['open (1)'], 1, 0])
})

test('close and abort while it is connecting: the attempt fails', async () => {
  for (const end of ['close', 'abort'] as const) {
    const set = stage({ answer: () => undefined })
    const webSocket = set.open()
    set.world.advance(end === 'close' ? 0 : 50)
    webSocket[end]()
    assert.deepEqual([webSocket.readyState, set.log], [WebSocket.CLOSING, []])
    webSocket.close()
    await set.world.settle()
    assert.match(set.log[0] ?? '', /^error ws:\/\/peer\.test\/: (closed|aborted) before it was open \(3\)$/)
    assert.equal(set.log[1], 'close 1006 "" not clean (3)')
    assertGone(set)
  }
})

test('a signal ends the attempt, with its reason as it is; nothing that is open', async () => {
  const reason = { why: 'enough' }
  const set = stage({ answer: () => undefined })
  const controller = new AbortController()
  const webSocket = set.open(undefined, { signal: controller.signal })
  let error: unknown
  webSocket.addEventListener('error', (event) => void (error = event.error))
  const opened = assert.rejects(webSocket.opened, (thrown) => thrown === reason)
  set.world.advance(50)
  controller.abort(reason)
  await set.world.settle()
  await opened
  assert.equal(error, reason)
  assert.equal((await webSocket.closed).error?.cause, reason)
  assertGone(set)

  const aborted = stage()
  aborted.open(undefined, { signal: AbortSignal.abort('no') })
  assert.deepEqual(aborted.log, [])
  await aborted.world.settle()
  assert.deepEqual([aborted.log, aborted.peers.length], [['error ws://peer.test/: no (3)', 'close 1006 "" not clean (3)'], 0])

  const late = stage()
  const lateController = new AbortController()
  const opens = late.open(undefined, { signal: lateController.signal })
  await late.world.settle()
  lateController.abort()
  await late.world.settle()
  assert.equal(opens.readyState, WebSocket.OPEN)
})

test('arguments that make no sense are refused at once, by name', () => {
  const { client } = stage()
  const make =
    (options: unknown, url = 'ws://peer.test/') =>
    () =>
      new WebSocket(url, options as ConnectOptions)
  assert.throws(make(undefined, 'ftp://a/'), { name: 'SyntaxError' })
  for (const protocols of ['', 'a b', 'a,b', ['a', 'a'], ['a', 'A'], ['a', 'ä']]) {
    assert.throws(make(protocols), { name: 'SyntaxError', constructor: DOMException }, String(protocols))
    assert.throws(make({ client, protocols }), { name: 'SyntaxError' })
  }
  const options: [unknown, RegExp][] = [
    [{ protocol: 'chat' }, /WebSocket: there is no option protocol; did you mean protocols\?/],
    [{ limits: { maxMesageSize: 1 } }, /there is no option limits\.maxMesageSize; did you mean limits\.maxMessageSize\?/],
    [{ deflate: { windowBits: 9 } }, /there is no option deflate\.windowBits/],
    [{ deflate: { clientMaxWindowBits: 8 } }, /clientMaxWindowBits/],
    [{ deflate: { level: 10 } }, /deflate\.level/],
    [{ fragmentSize: 0 }, /fragmentSize/],
    [{ handshakeTimeout: 0 }, /handshakeTimeout/],
    [{ headers: { Upgrade: 'x' } }, /the header upgrade is not the program's to give/],
    [{ headers: { 'Sec-WebSocket-Key': 'x' } }, /sec-websocket-key/],
    [{ headers: { host: 'x' } }, /host/],
    [{ headers: { origin: 'a' }, origin: 'b' }, /origin is given twice/],
  ]
  for (const [given, message] of options) {
    assert.throws(
      make({ client, ...(given as object) }),
      (error) => error instanceof UsageError && message.test(error.message),
      JSON.stringify(given),
    )
  }
  assert.throws(make({ client, headers: { 'bad name': 'x' } }), TypeError)
  assert.throws(make({ client, origin: 'a\nb' }), TypeError)
  void client.close()
  assert.throws(make({ client }), UsageError)
})

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────

test('bytes come as a Blob, an ArrayBuffer or a Uint8Array, text as a string', async () => {
  const { world, open, peers } = stage()
  const webSocket = open()
  const data: unknown[] = []
  webSocket.onmessage = (event) => data.push(event.data)
  await world.settle()
  assert.equal(webSocket.binaryType, 'blob')
  peers[0]?.binary(Buffer.from('ab'))
  await world.settle()
  for (const type of ['arraybuffer', 'uint8array', 'nonsense'] as const) {
    webSocket.binaryType = type as 'arraybuffer'
    peers[0]?.binary(Buffer.from('ab'))
    peers[0]?.text('ab')
    await world.settle()
  }
  assert.equal(webSocket.binaryType, 'uint8array')
  const [blob, buffer, text, array] = data as [Blob, ArrayBuffer, string, Uint8Array]
  assert.equal(await blob.text(), 'ab')
  assert.ok(buffer instanceof ArrayBuffer && buffer.byteLength === 2)
  assert.deepEqual([text, array], ['ab', new Uint8Array([0x61, 0x62])])
  assert.equal(array.buffer.byteLength, 2, 'with memory of its own')
})

test('what can be sent, in the order of the calls, also behind a Blob', async () => {
  const { world, open, peers } = stage()
  const webSocket = open()
  await world.settle()
  const bytes = new Uint8Array([1, 2, 3])
  webSocket.send('a')
  webSocket.send(new Blob(['blob']))
  webSocket.send(bytes)
  webSocket.send(bytes.buffer)
  webSocket.send(new DataView(bytes.buffer, 1, 1))
  webSocket.send('z')
  webSocket.send(7 as never)
  bytes.fill(9)
  assert.equal(webSocket.bufferedAmount, 1 + 4 + 3 + 3 + 1 + 1 + 1)
  webSocket.close(1000)
  webSocket.send('lost')
  assert.equal(webSocket.bufferedAmount, 14 + 4)
  await world.settle()
  while ((peers[0]?.lines.length ?? 0) < 8) await new Promise((resolve) => setImmediate(() => resolve(world.settle())))
  assert.deepEqual(peers[0]?.lines, [
    'text "a"',
    'binary 4 626c6f62',
    'binary 3 010203',
    'binary 3 010203',
    'binary 1 02',
    'text "z"',
    'text "7"',
    'close 1000',
  ])
  assert.equal(webSocket.bufferedAmount, 4, 'what was given too late stays counted')
})

test('a Blob that cannot be read ends it', async () => {
  const { world, open, log } = stage()
  const webSocket = open()
  await world.settle()
  const blob = new Blob(['x'])
  blob.arrayBuffer = () => Promise.reject(new Error('unreadable'))
  webSocket.send(blob)
  webSocket.send('behind')
  await world.settle()
  assert.match(log[1] ?? '', /^error ws:\/\/peer\.test\/: a Blob that was to be sent cannot be read \(3\)$/)
  assert.equal(log[2], 'close 1006 "" not clean (3)')
})

test('send, ping, readable and writable before it is open: InvalidStateError', () => {
  const webSocket = stage().open()
  for (const use of [() => webSocket.send('x'), () => webSocket.ping(), () => webSocket.readable, () => webSocket.writable]) {
    assert.throws(use, { name: 'InvalidStateError', constructor: DOMException })
  }
})

test('an onmessage and listeners are called in the order they were set; so is one that was set when there were none', async () => {
  const { world, open, peers } = stage()
  const webSocket = open()
  const calls: string[] = []
  webSocket.onmessage = () => calls.push('attribute')
  await world.settle()
  peers[0]?.text('x')
  await world.settle()
  assert.deepEqual(calls.splice(0), ['attribute'])
  webSocket.addEventListener('message', { handleEvent: () => calls.push('listener') })
  peers[0]?.text('x')
  await world.settle()
  assert.deepEqual(calls.splice(0), ['attribute', 'listener'])
  const replaced = (): void => void calls.push('replaced')
  webSocket.onmessage = replaced
  assert.equal(webSocket.onmessage, replaced)
  peers[0]?.text('x')
  await world.settle()
  assert.deepEqual(calls.splice(0), ['replaced', 'listener'])
  webSocket.onmessage = null
  webSocket.onmessage = () => calls.push('last')
  peers[0]?.text('x')
  await world.settle()
  assert.deepEqual(calls.splice(0), ['listener', 'last'])
  webSocket.onmessage = 'no function' as never
  assert.equal(webSocket.onmessage, null)
})

test('an event a program dispatches reaches onmessage as well', () => {
  const webSocket = stage().open()
  const data: unknown[] = []
  const handler = (event: MessageEvent): unknown => data.push(event.data)
  webSocket.onmessage = handler
  assert.equal(webSocket.onmessage, handler)
  webSocket.dispatchEvent(new MessageEvent('message', { data: 'made up' }))
  assert.deepEqual([data, webSocket.onmessage === handler], [['made up'], true])
})

test('messages wait for somebody who listens, up to maxUnreadSize; then they are dropped, and hold nothing up', async () => {
  const { world, client, peers } = stage({ onFrame: endAfterClose })
  const heard: unknown[] = []
  for (const count of [3, 2000]) {
    const webSocket = new WebSocket('ws://peer.test/', { client, deflate: false })
    await world.settle()
    const peer = peers.at(-1) as HandWrittenPeer
    for (let i = 0; i < count; i++) peer.text('x'.repeat(100))
    await world.settle()
    world.advance(1000)
    const data: unknown[] = []
    webSocket.addEventListener('message', (event) => data.push(event.data))
    peer.text('last')
    peer.close(1000)
    let late: number | undefined
    webSocket.onclose = ({ code }) => void (late = code)
    await world.settle()
    heard.push([data.length, data.at(-1), late])
  }
  assert.deepEqual(heard, [
    [4, 'last', 1000],
    [1, 'last', 1000],
  ])
})

// ── What comes with the handshake ───────────────────────────────────────────────────────────────────

const atOnce = Buffer.concat([textFrame('one'), textFrame('two'), closeFrame(1001, 'going')])

test('messages and a Close in the same write as the 101: all of them, in order', async () => {
  const { world, open, log } = stage({ behind: atOnce, onFrame: endAfterClose })
  open()
  await world.settle()
  assert.deepEqual(log, ['open (1)', 'message one (1)', 'message two (1)', 'close 1001 "going" clean (3)'])
})

test('they wait for who awaits `opened`: for a listener, and for a reader', async () => {
  const { world, client } = stage({ behind: atOnce, onFrame: endAfterClose })
  const heard: unknown[] = []
  const listen = async (): Promise<void> => {
    const webSocket = await new WebSocket('ws://peer.test/', { client }).opened
    webSocket.onmessage = ({ data }) => heard.push(data)
    heard.push((await webSocket.closed).code)
  }
  await world.complete(listen())
  assert.deepEqual(heard, ['one', 'two', 1001])
  const read: unknown[] = []
  const loop = async (): Promise<void> => {
    const webSocket = new WebSocket('ws://peer.test/', { client })
    await webSocket.opened
    for await (const message of webSocket) read.push(message)
    read.push((await webSocket.closed).code)
  }
  await world.complete(loop())
  assert.deepEqual(read, ['one', 'two', 1001])
})

test('a connection that ends with the handshake, without a Close', async () => {
  const { world, open, log, peers } = stage({ behind: textFrame('one') })
  open()
  world.after(10, () => peers[0]?.socket.end())
  await world.settle()
  assert.deepEqual([log[0], log[1], log.at(-1)], ['open (1)', 'message one (1)', 'close 1006 "" not clean (3)'])
  assert.match(log[2] ?? '', /^error /)
})

// ── Ends ────────────────────────────────────────────────────────────────────────────────────────────

test('the peer closes: code and reason are its own, and what was given is sent before the answer', async () => {
  const set = stage()
  const { world, open, peers, log } = set
  const webSocket = open()
  webSocket.onmessage = () => webSocket.send('answer')
  await world.settle()
  peers[0]?.text('question')
  peers[0]?.close(4001, 'so long')
  await world.settle()
  peers[0]?.socket.end()
  await world.settle()
  assert.deepEqual(peers[0]?.lines, ['text "answer"', 'close 4001'])
  assert.deepEqual(log, ['open (1)', 'close 4001 "so long" clean (3)'])
  webSocket.close(1000)
  assertGone(set)
})

test('a Close without a code is 1005; a peer that breaks the rules, or is gone, is 1006 with an error', async () => {
  const ends: [(peer: HandWrittenPeer) => void, RegExp[]][] = [
    [(peer) => peer.close(undefined), [/^close 1005 "" clean/]],
    [
      (peer) => peer.socket.write(encodePeerFrame({ first: 0x83, payload: Buffer.alloc(0) }, false)),
      [/^error /, /^close 1006 "" not clean/],
    ],
    [
      (peer) => peer.socket.write(encodePeerFrame({ first: 0x80 | Opcode.Text, payload: Buffer.from([0xff]) }, false)),
      [/^error /, /^close 1006/],
    ],
    [(peer) => peer.socket.resetAndDestroy?.(), [/^error /, /^close 1006 "" not clean/]],
  ]
  for (const [end, expected] of ends) {
    const set = stage({ onFrame: endAfterClose })
    set.open()
    await set.world.settle()
    end(set.peers[0] as HandWrittenPeer)
    await set.world.settle()
    set.world.advance(6_000)
    await set.world.settle()
    const [opened, ...rest] = set.log
    assert.equal(opened, 'open (1)')
    assert.equal(rest.length, expected.length, rest.join())
    expected.forEach((pattern, i) => assert.match(rest[i] ?? '', pattern))
    assertGone(set)
  }
})

test('a peer that never answers the Close is left after closeTimeout', async () => {
  const set = stage()
  const webSocket = set.open(undefined, { limits: { closeTimeout: 200 } })
  await set.world.settle()
  webSocket.close(1000)
  set.world.advance(199)
  await set.world.settle()
  assert.equal(set.log.length, 1)
  set.world.advance(2)
  await set.world.settle()
  assert.equal(set.log.at(-1), 'close 1006 "" not clean (3)')
  assertGone(set)
})

test('abort ends it at once, with the error it is given', async () => {
  const set = stage()
  const webSocket = set.open()
  await set.world.settle()
  webSocket.abort(new CancelledError(CancelReason.Cancelled, 'not wanted'))
  await set.world.settle()
  assert.deepEqual(set.log, ['open (1)', 'error ws://peer.test/: not wanted (3)', 'close 1006 "" not clean (3)'])
  await assert.rejects(webSocket.write('x'), { message: 'not wanted' })
  assertGone(set)
})

test('the client is closed: what is open closes with 1001, what is not fails; destroy ends it at once', async () => {
  const set = stage({ onFrame: echo })
  const webSocket = set.open()
  await set.world.settle()
  const late = watch(new WebSocket('ws://peer.test/', { client: set.client }), [])
  let lateEnd: WebSocketCloseEvent | undefined
  late.onclose = (event) => void (lateEnd = event)
  await set.world.complete(set.client.close())
  assert.deepEqual(set.peers[0]?.lines, ['close 1001'])
  assert.deepEqual(set.log, ['open (1)', 'close 1001 "" clean (3)'])
  assert.deepEqual([lateEnd?.code, webSocket.readyState], [1006, 3])

  const cut = stage()
  cut.open()
  await cut.world.settle()
  cut.client.destroy()
  await cut.world.settle()
  assert.deepEqual(cut.log, ['open (1)', 'error ws://peer.test/: the client was destroyed (3)', 'close 1006 "" not clean (3)'])
  await cut.world.complete(cut.client.close())
})
