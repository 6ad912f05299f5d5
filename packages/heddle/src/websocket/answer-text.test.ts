/** What a server that opens no WebSocket says, in the error of the client. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from '../client/index.ts'
import { TimeoutError } from '../http/index.ts'
import { Response, serve } from '../server/index.ts'
import { answerTextOf } from './answer-text.ts'
import { connect } from './connect.ts'
import { HandshakeError } from './handshake-error.ts'
import { stage, type HandWrittenPeer } from './hand-written-peer.test.ts'

function textOf(content: string | Uint8Array, type = 'text/plain', piece = Infinity, fields: string[] = []): string | undefined {
  const text = answerTextOf(['content-type', type, ...fields])
  if (text === undefined) return undefined
  const bytes = Buffer.from(content as string)
  for (let at = 0; at < bytes.length; at += piece) text.receive(bytes, at, Math.min(at + piece, bytes.length))
  return text.text
}

test('the first line, without what leads terminals and logs astray, 200 characters at most', () => {
  const rows: [string | Uint8Array, string][] = [
    ['', ''],
    ['  \r\n\n who are you?\r\nand more', 'who are you?'],
    ['a\tb \u001B[31mred\u001B[0m \u0007', 'a b [31mred [0m'],
    ['left\u202Eright\u2066x\u200Fy', 'left right x y'],
    ['\uFEFFmark', 'mark'],
    ['x'.repeat(200), 'x'.repeat(200)],
    ['x'.repeat(5_000), `${'x'.repeat(199)}…`],
    ['😀'.repeat(300), `${'😀'.repeat(199)}…`],
    [Buffer.from([0x61, 0xff, 0xfe, 0x62]), 'ab'],
    [' '.repeat(5_000) + 'late', ''],
  ]
  for (const [content, expected] of rows) for (const piece of [1, 7, Infinity]) assert.equal(textOf(content, undefined, piece), expected)
  assert.equal(textOf(Buffer.from([0xfc]), 'text/plain; charset=ISO-8859-1'), 'ü')
  assert.equal(textOf('{"error":"no"}', 'application/problem+json'), '{"error":"no"}')
  for (const type of ['text/html', 'image/png', '']) assert.equal(textOf('x', type), undefined, type)
  assert.equal(textOf('x', 'text/plain', 1, ['content-encoding', 'gzip']), undefined)
})

const refusal = (length: number, ...text: string[]): string =>
  ['HTTP/1.1 403 Forbidden', 'Content-Type: text/plain', `Content-Length: ${length}`, '', ''].join('\r\n') + text.join('')

test('text that is slow, stops, or never ends is not waited for without limit', async () => {
  const rows: [name: string, answer: (peer: HandWrittenPeer) => string, most: number, text: string][] = [
    ['with the head', () => refusal(7, 'not you'), 0, 'not you'],
    ['its first line', () => refusal(1_000_000, 'not you\nbut'), 0, 'not you'],
    ['much of it', () => refusal(1_000_000, 'x'.repeat(1_024)), 0, `${'x'.repeat(199)}…`],
    ['a part, and silence', () => refusal(7, 'not'), 150, 'not'],
    ['silence', () => refusal(7), 150, ''],
    [
      'a part, and the end',
      (peer) => {
        setImmediate(() => peer.socket.end())
        return refusal(7, 'not')
      },
      150,
      'not',
    ],
  ]
  for (const [name, answer, most, text] of rows) {
    const { world, client } = stage({ answer })
    const started = world.now()
    let failure: unknown
    void connect('ws://peer.test/', { client }).catch((error: unknown) => (failure = error))
    await world.settle({ until: started + most + 50 })
    assert.ok(failure instanceof HandshakeError, `${name}: ${String(failure)}`)
    assert.deepEqual([failure.status, failure.text], [403, text], name)
    assert.equal(
      failure.message.endsWith(text === '' ? '101 was expected' : `101 was expected; the server says ${JSON.stringify(text)}`),
      true,
    )
    world.advance(10_000)
    assert.equal(client.stats().streams, 0)
  }
})

test('whoever gives up while the text is waited for is told his own reason; the time of the handshake ends with the answer', async () => {
  const { world, client } = stage({ answer: () => refusal(7, 'not') })
  const controller = new AbortController()
  const aborted = connect('ws://peer.test/', { client, signal: controller.signal })
  const timed = connect('ws://peer.test/', { client, handshakeTimeout: 30 })
  const results = Promise.allSettled([aborted, timed])
  await world.settle({ until: world.now() + 20 })
  controller.abort('enough')
  const [one, two] = await world.complete(results)
  assert.equal((one as PromiseRejectedResult).reason, 'enough')
  const { reason } = two as PromiseRejectedResult
  assert.ok(reason instanceof HandshakeError && !(reason instanceof TimeoutError))
  assert.equal(reason.text, 'not')
})

for (const version of ['h1', 'h2'] as const) {
  test(`${version}: what a fetch handler answers reaches the client as the text of its error`, { timeout: 20_000 }, async () => {
    await using server = await serve({
      hostname: '127.0.0.1',
      websocket: true,
      fetch: () => new Response('only members\nand more\n', { status: 403 }),
    })
    await using client = new Client({ protocols: [version], h2c: version === 'h2' })
    await assert.rejects(connect(server.url, { client }), { code: 'HANDSHAKE_FAILED', status: 403, text: 'only members' })
  })
}
