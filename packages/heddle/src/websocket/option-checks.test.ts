/** Every option of every face, with a value that it cannot have: the error says who was asked, which it is, what was expected and what was found. */
import assert from 'node:assert/strict'
import { createServer as createNodeServer } from 'node:http'
import { test } from 'node:test'
import { Client } from '../client/index.ts'
import { requestHead, UsageError } from '../http/index.ts'
import { World } from '../testing/index.ts'
import { acceptWebSocket } from './accept-websocket.ts'
import { agree } from './agreement.ts'
import { connect } from './connect.ts'
import { SocketGroup } from './group.ts'
import { Heartbeat } from './heartbeat.ts'
import { shown } from './option-checks.ts'
import { prepare } from './prepared-message.ts'
import { Socket } from './socket.ts'
import { WebSocketStage } from './stage.test.ts'
import { upgrade } from './upgrade.ts'
import { WebSocket } from './web-socket.ts'
import { WebSocketServer } from './ws-server.ts'

const handshake = requestHead('CONNECT', 'http', 'h', '/', ['sec-websocket-version', '13', 'origin', 'https://h'], 'websocket')
const ofServers: [object, string][] = [
  [{ protocol: 5 }, 'protocol must be a subprotocol (a token), a list of them, or a function that chooses one, not 5'],
  [{ protocol: ['chat', 'a b'] }, 'protocol must be .* not a list of 2'],
  [{ protocol: new Set(['chat']) }, 'protocol must be .* not a Set'],
  [{ protocol: null }, 'protocol must be .* not null'],
  [{ origin: 5 }, 'origin must be an origin such as .* not 5'],
  [{ origin: ['*', 5] }, 'origin must be .* not a list of 2'],
  [{ origin: 'h' }, 'origin "h" is no origin'],
  [{ origin: () => Promise.resolve(false) }, 'what the function origin returns must be true or false, not a Promise'],
  [{ origin: () => undefined }, 'what the function origin returns must be true or false, not undefined'],
  [{ protocol: () => Promise.resolve('x') }, 'what the function protocol returns must be a subprotocol or undefined, not a Promise'],
  [{ protocol: () => 'unasked' }, 'subprotocol "unasked" was not offered'],
  [{ deflate: 'yes' }, 'deflate must be true, false or an object, not "yes"'],
  [{ deflate: { serverNoContextTakeover: 1 } }, 'deflate.serverNoContextTakeover must be true or false, not 1'],
  [{ deflate: { clientNoContextTakeover: null } }, 'deflate.clientNoContextTakeover must be true or false, not null'],
  [{ deflate: { serverMaxWindowBits: '9' } }, 'deflate.serverMaxWindowBits must be an integer, 9 to 15, not "9"'],
  [{ deflate: { clientMaxWindowBits: 8 } }, 'deflate.clientMaxWindowBits must be an integer, 9 to 15, not 8'],
  [{ deflate: { threshold: -1 } }, 'deflate.threshold must be an integer, 0 or more, not -1'],
  [{ deflate: { level: 10 } }, 'deflate.level must be an integer, -1 to 9, not 10'],
  [{ deflate: { memoryLevel: 0 } }, 'deflate.memoryLevel must be an integer, 1 to 9, not 0'],
  [{ deflate: { contextSize: 1.5 } }, 'deflate.contextSize must be an integer, 0 to 32768, not 1.5'],
  [{ limits: 16 }, 'limits must be an object, not 16'],
  [{ limits: null }, 'limits must be an object, not null'],
  [{ limits: { maxMessageSize: '1MB' } }, 'limits.maxMessageSize must be a number, 0 or more'],
  [{ limits: { closeTimeout: Number.NaN } }, 'limits.closeTimeout must be a number, 0 or more'],
  [{ fragmentSize: '1000' }, 'fragmentSize must be an integer, 1 or more, or Infinity, not "1000"'],
  [{ fragmentSize: Number.NaN }, 'fragmentSize must be .* not NaN'],
]
const ofSockets = ofServers.filter(([options]) => !('protocol' in options || 'origin' in options || 'deflate' in options))
const ofClients = ofServers.filter(([options]) => !('protocol' in options || 'origin' in options))

/** Seen once there is a handshake to answer. */
const needsHandshake = ([, expected]: [object, string]): boolean => /returns|is no origin|not offered|deflate\.|limits\./.test(expected)

const badHeaders: [object, string] = [{ headers: 'x-a: b' }, 'headers must be an object, a list of pairs, or Headers, not "x-a: b"']
const badClock: [object, string] = [{ clock: Date }, 'clock must be a clock, with now, set, clear and soon, not a function']

function matches(face: string, expected: string): (error: unknown) => boolean {
  const parts = expected.split('.*')
  return (error) => {
    assert.ok(error instanceof UsageError, String(error))
    assert.ok(error.message.startsWith(`${face}: ${parts[0]}`) && error.message.includes(parts[1] ?? ''), error.message)
    return true
  }
}

function refuses(face: string, rows: readonly [object, string][], use: (options: never) => unknown): void {
  for (const [options, expected] of rows) assert.throws(() => use(options as never), matches(face, expected), JSON.stringify(options))
}

test('acceptWebSocket, and what all servers agree to', () => {
  const stage = new WebSocketStage(new World(), 'h2')
  const [, exchange] = stage.tunnel()
  refuses('acceptWebSocket', [...ofServers, badHeaders, badClock], (options) => acceptWebSocket(exchange, handshake, options))
  refuses('upgrade', ofServers.filter(needsHandshake), (options) => agree('upgrade', handshake, options, undefined))
  for (const options of [5, null, 'chat']) {
    assert.throws(() => acceptWebSocket(exchange, handshake, options as never), {
      message: 'acceptWebSocket: the options must be an object',
    })
  }
})

test('upgrade', () => {
  const request = new Request('http://h/')
  const rows = [...ofServers.filter((row) => !needsHandshake(row)), badHeaders]
  refuses('upgrade', rows, (options) => upgrade(request, options))
})

test('WebSocket and connect', async () => {
  const client = new Client()
  const rows: [object, string][] = [
    ...ofClients,
    badHeaders,
    [{ client: {} }, 'client must be a Client of heddle, not an object'],
    [{ protocols: 5 }, 'protocols must be a subprotocol or a list of them, not 5'],
    [{ protocols: { a: 1 } }, 'protocols must be a subprotocol or a list of them, not an object'],
    [{ origin: 5 }, 'origin must be a string, not 5'],
    [{ signal: {} }, 'signal must be an AbortSignal or null, not an object'],
    [{ signal: new AbortController() }, 'signal must be an AbortSignal or null, not an AbortController'],
    [{ handshakeTimeout: '1s' }, 'handshakeTimeout must be a number of ms above 0, or Infinity, not "1s"'],
    [{ handshakeTimeout: 0 }, 'handshakeTimeout must be a number of ms above 0, or Infinity, not 0'],
  ]
  const with_ = (options: object): never => ({ client, ...options }) as never
  refuses('WebSocket', rows, (options) => new WebSocket('ws://127.0.0.1:1/', with_(options)))
  for (const [options, expected] of rows) await assert.rejects(connect('ws://127.0.0.1:1/', with_(options)), matches('connect', expected))
  for (const options of [5, null, true, () => {}]) {
    assert.throws(() => new WebSocket('ws://127.0.0.1:1/', options as never), { message: 'WebSocket: the options must be an object' })
    await assert.rejects(connect('ws://127.0.0.1:1/', options as never), { message: 'connect: the options must be an object' })
  }
  await client.close()
})

test('Socket, SocketGroup, Heartbeat and prepare', () => {
  const stage = new WebSocketStage(new World(), 'h2')
  const [exchange] = stage.tunnel()
  const parameters = { serverNoContextTakeover: false, clientNoContextTakeover: false, serverMaxWindowBits: 15, clientMaxWindowBits: 15 }
  refuses(
    'Socket',
    [
      ...ofSockets,
      badClock,
      [{ role: undefined }, "role must be 'client' or 'server', not undefined"],
      [{ role: 'peer' }, `role must be 'client' or 'server', not "peer"`],
      [{ protocol: 5 }, 'protocol must be a string, not 5'],
      [{ extensions: 5 }, 'extensions must be a string, not 5'],
      [{ deflate: true }, 'deflate must be an object, not true'],
      [{ deflate: {} }, 'deflate.parameters must be an object'],
      [{ deflate: { parameters: { ...parameters, serverMaxWindowBits: 7 } } }, 'deflate.parameters.serverMaxWindowBits must be .* not 7'],
      [{ deflate: { parameters, level: 'best' } }, 'deflate.level must be an integer, -1 to 9, not "best"'],
      [{ maskKey: 5 }, 'maskKey must be a function, not 5'],
      [{ opened: 0 }, 'opened must be true or false, not 0'],
    ],
    (options: object) => new Socket(exchange, { role: 'client', ...options } as never),
  )
  refuses(
    'SocketGroup',
    [badClock, [{ heartbeat: 5 }, 'heartbeat must be true, false or an object, not 5']],
    (options) => new SocketGroup(options),
  )
  const heartbeat: [object, string][] = [
    [{ interval: '1s' }, 'interval must be a number of ms above 0, or Infinity, not "1s"'],
    [{ timeout: -1 }, 'timeout must be a number of ms above 0, or Infinity, not -1'],
  ]
  refuses('Heartbeat', [...heartbeat, badClock], (options) => new Heartbeat(options))
  refuses('Heartbeat', heartbeat, (options) => new SocketGroup({ heartbeat: options, clock: new World() }))
  const group = new SocketGroup({ clock: new World() })
  refuses(
    'SocketGroup.broadcast',
    [
      [{ excep: 1 }, 'there is no option excep; did you mean except?'],
      [{ except: {} }, 'except must be a Socket, not an object'],
      [{ maxBufferedAmount: '1' }, 'maxBufferedAmount must be a number, 0 or more, not "1"'],
      [{ compress: 1 }, 'compress must be true or false, not 1'],
      [{ text: 1 }, 'text must be true or false, not 1'],
    ],
    (options) => group.broadcast('x', options),
  )
  refuses(
    'SocketGroup.close',
    [
      [{ reason: 5 }, 'reason must be a string, not 5'],
      [{ deadline: '1s' }, 'deadline must be a number of ms, 0 or more, not "1s"'],
    ],
    (options) => group.close(options),
  )
  assert.throws(() => group.close({ code: '1000' as never }), { code: 'USAGE' })
  refuses(
    'prepare',
    [
      [{ level: 12 }, 'level must be an integer, -1 to 9, not 12'],
      [{ text: 'yes' }, 'text must be true or false, not "yes"'],
    ],
    (options) => prepare('x', options),
  )
})

test('WebSocketServer', () => {
  const rows: [object, string][] = [
    [{ port: '8080' }, 'port must be an integer, 0 to 65535, not "8080"'],
    [{ host: 5 }, 'host must be a string, not 5'],
    [{ backlog: -1 }, 'backlog must be an integer, 0 to .* not -1'],
    [{ server: createNodeServer() }, 'server must be a server of heddle/node, not a Server'],
    [{ noServer: 1 }, 'noServer must be true or false, not 1'],
    [{ path: /a/ }, 'path must be a string, not a RegExp'],
    [{ clientTracking: 'no' }, 'clientTracking must be true or false, not "no"'],
    [{ handleProtocols: ['chat'] }, 'handleProtocols must be a function, not a list of 1'],
    [{ verifyClient: true }, 'verifyClient must be a function, not true'],
    [{ perMessageDeflate: 1 }, 'perMessageDeflate must be true, false or an object, not 1'],
    [{ perMessageDeflate: { clientMaxWindowBits: 7 } }, 'perMessageDeflate.clientMaxWindowBits must be .* not 7'],
    [{ perMessageDeflate: { threshold: '1k' } }, 'perMessageDeflate.threshold must be an integer, 0 or more, not "1k"'],
    [
      { perMessageDeflate: { zlibDeflateOptions: { level: 11 } } },
      'perMessageDeflate.zlibDeflateOptions.level must be an integer, -1 to 9, not 11',
    ],
    [{ maxPayload: '1mb' }, 'maxPayload must be a number, 0 or more, not "1mb"'],
    [{ maxFragments: -1 }, 'maxFragments must be a number, 0 or more, not -1'],
    [{ closeTimeout: 'x' }, 'closeTimeout must be a number of ms, 0 or more, not "x"'],
    [{ WebSocket: class {} }, 'WebSocket must be a class that extends NodeWebSocket, not a function'],
    [{ origin: 5 }, 'origin must be .* not 5'],
    [{ limits: { maxMesageSize: 1 } }, 'there is no option limits.maxMesageSize; did you mean limits.maxMessageSize?'],
    [{ onError: 5 }, 'onError must be a function, not 5'],
    [{ allowSynchronousEvents: 5 }, 'allowSynchronousEvents must be true or false, not 5'],
    [{ autoPong: 1 }, 'autoPong must be true or false, not 1'],
    [{ skipUTF8Validation: 1 }, 'skipUTF8Validation must be true or false, not 1'],
    [{ maxBufferedChunks: '1' }, 'maxBufferedChunks must be a number, 0 or more, not "1"'],
    [{ maxPendingAutoPongs: '1' }, 'maxPendingAutoPongs must be a number, 0 or more, not "1"'],
  ]
  refuses('WebSocketServer', rows, (options: object) => new WebSocketServer({ noServer: true, ...options }))
})

test('what was found is told in few words, whatever it is', () => {
  const rows: [unknown, string][] = [
    ['x'.repeat(100), `"${'x'.repeat(60)}"…`],
    [5n, '5n'],
    [Symbol('s'), 'Symbol(s)'],
    [Object.create(null), 'an object'],
    [{ constructor: 5 }, 'an object'],
    [new Date(), 'a Date'],
    [[], 'a list of 0'],
  ]
  for (const [value, expected] of rows) assert.equal(shown(value), expected)
})
