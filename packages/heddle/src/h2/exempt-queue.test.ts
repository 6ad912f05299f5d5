import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestHead, responseHead, type Exchange } from '../http/index.ts'
import { ErrorCode } from './frame.ts'
import { clientScript, getFields, serverScript } from '../testing/h2-peer.ts'
import { recordingHandler, World, type Recording } from '../testing/index.ts'

/** A server whose connection may hold 100,000 octets, with requests on streams 1 and 3 that gave a window of 0. */
function unread() {
  const { peer, engine, connection } = serverScript(new World(), { settings: [[4, 0]], options: { limits: { maxPinned: 100_000 } } })
  const exchanges = [1, 3].map((id, i) => {
    peer.sendHead(id, getFields, true)
    peer.wantIdle('the request')
    const { exchange } = connection.exchanges[i] as Recording & { exchange: Exchange }
    exchange.sendHead(responseHead(200), false)
    peer.wantHead('the response', id, false)
    return exchange
  })
  return { peer, engine, connection, exchanges: exchanges as [Exchange, Exchange] }
}

function queue(exchange: Exchange, byteCount: number): void {
  for (let sent = 0; sent < byteCount; sent += 10_000) exchange.sendData(Buffer.alloc(10_000), 0, 10_000, false)
}

test('what waits on exempt exchanges does not end the connection, what waits on others does', () => {
  const { peer, engine, exchanges } = unread()
  const [exempt, other] = exchanges
  exempt.exemptQueue?.()
  queue(exempt, 500_000)
  queue(other, 50_000)
  peer.send({ type: 'PING', ack: false, data: new Uint8Array(8) })
  peer.want('the connection goes on', ({ type }) => type === 'PING')
  assert.ok(engine.sender.pinned < 100_000)
  queue(other, 60_000)
  peer.send({ type: 'PING', ack: false, data: new Uint8Array(8) })
  peer.want('it is seen with the next input', ({ type }) => type === 'PING')
  peer.wantGoaway('it holds too much', ErrorCode.EnhanceYourCalm)
})

test('an exchange that becomes exempt while something waits counts no more, whatever becomes of it', () => {
  for (const end of ['sent', 'reset'] as const) {
    const { peer, engine, exchanges } = unread()
    const [exempt, other] = exchanges
    queue(exempt, 90_000)
    assert.ok(engine.sender.pinned >= 90_000)
    exempt.exemptQueue?.()
    exempt.exemptQueue?.()
    assert.equal(engine.sender.pinned, 0)
    queue(exempt, 20_000)
    queue(other, 20_000)
    const others = engine.sender.pinned
    assert.ok(others >= 20_000 && others < 40_000, `${others} octets`)
    if (end === 'sent') {
      peer.send({ type: 'WINDOW_UPDATE', streamId: 1, increment: 60_000 })
      assert.equal(peer.wantContent('what the connection lets through', 1, 60_000, false).length, 60_000)
    } else peer.send({ type: 'RST_STREAM', streamId: 1, code: ErrorCode.Cancel })
    peer.wantIdle('nothing more')
    assert.equal(engine.sender.pinned, others)
    exempt.exemptQueue?.()
    assert.equal(engine.sender.pinned, others)
  }
})

test('uploads that wait for a server are no reason to leave it, however many', () => {
  const { peer, engine } = clientScript(new World(), {
    settings: [
      [3, 1_000],
      [4, 0],
    ],
  })
  const piece = Buffer.alloc(65_536)
  for (let i = 0; i < 400; i++) {
    const exchange = engine.open(recordingHandler()) as Exchange
    exchange.sendHead(requestHead('POST', 'https', 'example.org', '/'), false)
    assert.equal(exchange.sendData(piece, 0, piece.length, false), false, 'it is asked to wait, and does')
  }
  for (let i = 0; i < 400; i++) peer.wantHead('an upload', 2 * i + 1, false)
  peer.send({ type: 'PING', ack: false, data: new Uint8Array(8) })
  peer.want('the connection goes on', ({ type }) => type === 'PING')
  peer.wantIdle('nothing else')
})

test('a server that allows more streams may have more waiting for its client, unless it says otherwise', () => {
  for (const [given, goesOn] of [
    [{ maxConcurrentStreams: 500 }, true],
    [{ maxConcurrentStreams: 500, maxPinned: 16_777_216 }, false],
  ] as const) {
    const { peer, connection } = serverScript(new World(), { settings: [[4, 0]], options: { limits: given } })
    const piece = Buffer.alloc(65_536)
    for (let i = 0; i < (goesOn ? 400 : 257); i++) {
      peer.sendHead(2 * i + 1, getFields, true)
      peer.wantIdle('the request')
      const { exchange } = connection.exchanges[i] as Recording & { exchange: Exchange }
      exchange.sendHead(responseHead(200), false)
      exchange.sendData(piece, 0, piece.length, false)
      peer.wantHead('the response', 2 * i + 1, false)
    }
    peer.send({ type: 'PING', ack: false, data: new Uint8Array(8) })
    peer.want('it is answered', ({ type }) => type === 'PING')
    if (goesOn) peer.wantIdle('the connection goes on')
    else peer.wantGoaway('it holds too much', ErrorCode.EnhanceYourCalm)
  }
})
