import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProtocolError, UsageError } from '../http/index.ts'
import {
  answerFields,
  offerFields,
  readAnswer,
  readOffer,
  type Agreement,
  type HandshakeOffer,
  type ReceivedOffer,
  type Refusal,
} from './handshake.ts'

test('what a client sends', () => {
  assert.deepEqual(offerFields({}), ['sec-websocket-version', '13'])
  assert.deepEqual(offerFields({ protocols: ['chat', 'superchat'], deflate: {} }), [
    'sec-websocket-version',
    '13',
    'sec-websocket-protocol',
    'chat, superchat',
    'sec-websocket-extensions',
    'permessage-deflate; client_max_window_bits',
  ])
  for (const protocols of [[''], ['a b'], ['a,b'], ['é'], ['a', 'a']])
    assert.throws(() => offerFields({ protocols }), UsageError, protocols.join())
})

function agreement(fields: readonly string[], offer: HandshakeOffer): Agreement {
  const read = readAnswer(fields, offer)
  assert.ok(!(read instanceof ProtocolError), read instanceof ProtocolError ? read.message : '')
  return read
}

function fault(fields: readonly string[], offer: HandshakeOffer): string {
  const read = readAnswer(fields, offer)
  assert.ok(read instanceof ProtocolError, `agreed: ${JSON.stringify(read)}`)
  return read.message.replace('WebSocket handshake: ', '')
}

test('what a client makes of the answer', () => {
  const protocols = ['chat', 'superchat']
  assert.deepEqual(agreement([], { protocols, deflate: {} }), { protocol: '', extensions: '', deflate: undefined })
  assert.equal(agreement(['sec-websocket-protocol', 'superchat'], { protocols }).protocol, 'superchat')
  assert.equal(fault(['sec-websocket-protocol', 'other'], { protocols }), 'subprotocol "other" was not offered')
  assert.equal(fault(['sec-websocket-protocol', 'Chat'], { protocols }), 'subprotocol "Chat" was not offered')
  assert.equal(fault(['sec-websocket-protocol', 'chat'], {}), 'subprotocol "chat" was not offered')
  assert.equal(fault(['sec-websocket-protocol', ''], {}), 'subprotocol "" was not offered')
  assert.equal(fault(['sec-websocket-protocol', 'chat, superchat'], { protocols }), 'subprotocol "chat, superchat" was not offered')
  assert.equal(
    fault(['sec-websocket-protocol', 'chat', 'sec-websocket-protocol', 'chat'], { protocols }),
    'more than one Sec-WebSocket-Protocol',
  )
})

test('what a client makes of the extensions in the answer', () => {
  const extension = (value: string): string[] => ['sec-websocket-extensions', value]
  const deflate = {}
  const { extensions, deflate: agreed } = agreement(extension('permessage-deflate; server_no_context_takeover'), { deflate })
  assert.equal(extensions, 'permessage-deflate; server_no_context_takeover')
  assert.equal(agreed?.serverNoContextTakeover, true)
  assert.equal(fault(extension('permessage-deflate'), {}), 'extension "permessage-deflate" was not offered')
  assert.equal(fault(extension('x-webkit-deflate-frame'), { deflate }), 'extension "x-webkit-deflate-frame" was not offered')
  assert.equal(fault(extension('permessage-deflate, mux'), { deflate }), 'extension "mux" was not offered')
  assert.equal(fault(extension('permessage-deflate, permessage-deflate'), { deflate }), 'permessage-deflate was accepted twice')
  assert.equal(
    fault([...extension('permessage-deflate'), ...extension('permessage-deflate')], { deflate }),
    'permessage-deflate was accepted twice',
  )
  assert.equal(fault(extension('permessage-deflate; mode=fast'), { deflate }), 'permessage-deflate: unknown parameter mode')
  assert.equal(fault(extension('permessage-deflate;'), { deflate }), 'malformed Sec-WebSocket-Extensions')
  assert.equal(fault(extension(','), { deflate }), 'malformed Sec-WebSocket-Extensions')
})

function offer(...fields: string[]): ReceivedOffer {
  const read = readOffer(['sec-websocket-version', '13', ...fields])
  assert.ok(!('status' in read), JSON.stringify(read))
  return read
}

function refusal(...fields: string[]): Refusal {
  const read = readOffer(fields)
  assert.ok('status' in read, JSON.stringify(read))
  assert.deepEqual(read.fields, ['sec-websocket-version', '13'])
  return read
}

test('what a server reads', () => {
  assert.deepEqual(offer(), { protocols: [], extensions: [] })
  assert.deepEqual(offer('sec-websocket-protocol', 'chat, superchat').protocols, ['chat', 'superchat'])
  assert.deepEqual(offer('sec-websocket-protocol', ' chat ,,superchat,').protocols, ['chat', 'superchat'])
  assert.deepEqual(offer('sec-websocket-protocol', 'a', 'sec-websocket-protocol', 'b').protocols, ['a', 'b'])
  assert.deepEqual(offer('sec-websocket-extensions', 'a; b=c', 'sec-websocket-extensions', 'd').extensions, [
    { name: 'a', parameters: [{ name: 'b', value: 'c' }] },
    { name: 'd', parameters: [] },
  ])
})

test('what a server refuses, and how', () => {
  assert.equal(refusal('sec-websocket-version', '8').status, 426)
  assert.equal(refusal('sec-websocket-version', '13, 8').status, 426)
  assert.equal(refusal('sec-websocket-version', '013').status, 426)
  assert.equal(refusal().status, 400)
  assert.equal(refusal('sec-websocket-version', '13', 'sec-websocket-version', '13').status, 400)
  for (const protocols of ['', ',', 'a b', 'a, a', '"chat"', 'a;b', 'é']) {
    assert.equal(refusal('sec-websocket-version', '13', 'sec-websocket-protocol', protocols).status, 400, JSON.stringify(protocols))
  }
  for (const extensions of ['a;', '=b', 'a; b=', 'a b']) {
    assert.equal(refusal('sec-websocket-version', '13', 'sec-websocket-extensions', extensions).status, 400, JSON.stringify(extensions))
  }
})

test('what a server answers', () => {
  assert.deepEqual(answerFields('', ''), [])
  assert.deepEqual(answerFields('chat', 'permessage-deflate'), [
    'sec-websocket-protocol',
    'chat',
    'sec-websocket-extensions',
    'permessage-deflate',
  ])
  assert.throws(() => answerFields('a\r\nb: c', ''), UsageError)
})
