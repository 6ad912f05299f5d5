import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelReason, requestHead, UsageError, type Exchange } from '../http/index.ts'
import { clientScript, type Http2Peer } from '../testing/h2-peer.ts'
import { Recording, World } from '../testing/index.ts'
import { preface } from './frame.ts'
import { SettingId } from './settings.ts'

const head = requestHead('CONNECT', 'http', 'origin.test', '/chat', ['a', 'b'], 'websocket')

/** A client whose server has said nothing yet, with a tunnel asked for. */
function early(): { peer: Http2Peer; exchange: Exchange; recording: Recording } {
  const { engine, peer } = clientScript(new World(), { handshake: false })
  peer.peer.want('the preface', preface)
  peer.wantFrame("the client's SETTINGS", { type: 'SETTINGS', ack: false })
  peer.wantFrame('the connection window raised', { type: 'WINDOW_UPDATE', streamId: 0 })
  const recording = new Recording()
  const exchange = engine.open(recording) as Exchange
  exchange.sendHead(head, false)
  exchange.sendData(Buffer.from('hello'), 0, 5, false)
  peer.wantIdle('RFC 8441 §3: nobody knows yet whether there may be tunnels')
  return { peer, exchange, recording }
}

test("a tunnel asked for before the server's SETTINGS begins when they allow it", () => {
  const { peer, recording } = early()
  peer.send({ type: 'SETTINGS', ack: false, settings: [[SettingId.EnableConnectProtocol, 1]] })
  peer.wantFrame('an acknowledgement', { type: 'SETTINGS', ack: true })
  const lines = [':method', 'CONNECT', ':scheme', 'http', ':authority', 'origin.test', ':path', '/chat', ':protocol', 'websocket', 'a', 'b']
  peer.wantHead('the tunnel', 1, false, lines)
  peer.wantIdle('its bytes wait for the answer')
  peer.sendHead(1, [':status', '200'], false)
  assert.equal(peer.wantContent('and come then', 1, 5, false).toString(), 'hello')
  assert.equal(recording.closed, false)
})

test('it ends with an error when they do not', () => {
  const { peer, recording } = early()
  peer.send({ type: 'SETTINGS', ack: false, settings: [] })
  peer.wantFrame('an acknowledgement', { type: 'SETTINGS', ack: true })
  peer.wantIdle('nothing was sent')
  assert.ok(recording.error instanceof UsageError)
})

test('one that was cancelled meanwhile is not begun', () => {
  const { peer, exchange, recording } = early()
  exchange.cancel(CancelReason.Cancelled)
  peer.send({ type: 'SETTINGS', ack: false, settings: [[SettingId.EnableConnectProtocol, 1]] })
  peer.wantFrame('an acknowledgement', { type: 'SETTINGS', ack: true })
  peer.wantIdle('nothing was sent')
  assert.equal(recording.error?.code, 'CANCELLED')
})
