import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../http/index.ts'
import { hex, sample, utf8 } from '../testing/websocket/case.ts'
import { payloadText } from '../testing/websocket/peer-frame.ts'
import { Rig } from '../testing/websocket/rig.ts'
import { encodeFrame } from './index.ts'
import type { PreparedMessage } from './message-handler.ts'

function shown(payload: Uint8Array, isText: boolean): string {
  return `${isText ? 'text' : 'binary'} ${payloadText(payload, isText)}`
}

for (const role of ['client', 'server'] as const) {
  test(`${role}: text of every length class and every kind of character, one frame each`, () => {
    for (const unit of ['a', 'é', '世', '🙂', 'a🙂']) {
      for (const count of [0, 1, 5, 24, 25, 41, 42, 62, 63, 125, 126, 4_100, 21_845, 21_846, 65_536, 100_000]) {
        const rig = new Rig({ role })
        const text = unit.repeat(count)
        rig.connection.sendText(text, false)
        const expected = utf8(text)
        const [frame, ...others] = rig.frames
        assert.equal(others.length, 0)
        assert.ok(frame?.payload.equals(expected), `${count} times ${unit}`)
        assert.equal(frame?.masked, role === 'client')
        assert.equal(rig.connection.bufferedAmount, expected.length)
        rig.tunnel.transmit()
        assert.equal(rig.connection.bufferedAmount, 0)
      }
    }
  })

  test(`${role}: a lone surrogate becomes U+FFFD, in short text and in long`, () => {
    for (const count of [0, 100, 30_000]) {
      const rig = new Rig({ role })
      const around = 'x'.repeat(count)
      rig.connection.sendText(`${around}\ud83d${around}`, false)
      assert.equal(rig.frames[0]?.payload.toString(), `${around}\ufffd${around}`)
    }
  })

  test(`${role}: bytes of every length class, lent or owned, and the caller's are not touched`, () => {
    for (const length of [0, 1, 24, 25, 125, 126, 4_096, 4_097, 65_535, 65_536, 65_537, 200_001]) {
      for (const owned of [true, false]) {
        const rig = new Rig({ role })
        const bytes = sample(length)
        const before = Buffer.from(bytes)
        rig.connection.sendBytes(bytes, true, false, owned)
        assert.ok(bytes.equals(before), 'the bytes are as they were')
        if (!owned) bytes.fill(0)
        assert.deepEqual(rig.sent, [shown(before, false)])
      }
    }
  })

  test(`${role}: a small message is one call of the exchange`, () => {
    const rig = new Rig({ role })
    rig.connection.sendText('hello', false)
    rig.connection.sendText('世界'.repeat(600), false)
    rig.connection.sendBytes(sample(4_096), true, false, false)
    assert.equal(rig.tunnel.sends, 3)
  })
}

test('bytes that are text', () => {
  const rig = new Rig()
  rig.connection.sendBytes(utf8('é'), false, false, false)
  assert.deepEqual(rig.sent, ['text "é"'])
})

test('every frame of a client has a mask of its own', () => {
  let key = 0
  const rig = new Rig({ role: 'client', maskKey: () => ++key })
  rig.connection.sendText('a', false)
  rig.connection.sendPing(utf8('b'))
  rig.connection.close(1000)
  assert.equal(key, 3)
  assert.equal(rig.tunnel.take().toString('hex'), '81810000000161' + '89810000000262' + '88820000000303e8')
})

test('a message in parts, each a frame', () => {
  const rig = new Rig()
  const { connection } = rig
  connection.startMessage(false, false)
  assert.equal(connection.sendPart('Hel', false), true)
  connection.sendPart(utf8('lo'), false)
  connection.sendPing(utf8('between'))
  connection.sendPart('', true)
  connection.sendText('next', false)
  assert.deepEqual(rig.sent, ['text… "Hel"', 'continuation… 2 6c6f', 'ping 7 6265747765656e', 'continuation 0 ', 'text "next"'])
  assert.equal(connection.messagesAccepted, 4)
  rig.tunnel.transmit()
  assert.equal(connection.messagesSent, 4)
})

test('a pair of surrogates may be cut by the parts, a lone one is replaced', () => {
  const rig = new Rig()
  const { connection } = rig
  connection.startMessage(false, false)
  connection.sendPart('a\ud83d', false)
  connection.sendPart('\ude42b\ud83d', false)
  connection.sendPart('\ud83d', true)
  const payload = Buffer.concat(rig.frames.map((frame) => frame.payload))
  assert.equal(payload.toString(), 'a🙂b\ufffd\ufffd')
})

test('a part of one message is no part of the next', () => {
  const rig = new Rig()
  rig.connection.startMessage(false, false)
  rig.connection.sendPart('\ud83d', true)
  rig.connection.startMessage(false, false)
  rig.connection.sendPart('\ude42', true)
  assert.deepEqual(rig.sent, ['text "\ufffd"', 'text "\ufffd"'])
})

test('mistakes of the program', () => {
  const { connection } = new Rig()
  const mistake = (call: () => unknown): void => assert.throws(call, UsageError)
  mistake(() => connection.sendPart('no message', true))
  mistake(() => connection.sendPing(new Uint8Array(126)))
  mistake(() => connection.sendPong(new Uint8Array(126)))
  mistake(() => connection.close(undefined, 'a reason'))
  mistake(() => connection.close(1000, 'é'.repeat(62)))
  for (const code of [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 1000.5, Number.NaN]) mistake(() => connection.close(code))
  connection.startMessage(true, false)
  mistake(() => connection.sendPart('text in binary', true))
  connection.sendPart(new Uint8Array(1), false)
  mistake(() => connection.sendPart('text in binary', true))
  mistake(() => connection.startMessage(true, false))
  mistake(() => connection.sendText('within', false))
  mistake(() => connection.sendBytes(new Uint8Array(1), true, false, false))
  mistake(() => new Rig({ fragmentSize: 0 }))
  mistake(() => new Rig({ role: 'client', maskKey: undefined }))
})

test('frames of a size, whatever the message', () => {
  const rig = new Rig({ fragmentSize: 4 })
  rig.connection.sendText('0123456789', false)
  rig.connection.sendText('é'.repeat(3), false)
  rig.connection.sendBytes(hex('00 01 02 03'), true, false, true)
  rig.connection.startMessage(true, false)
  rig.connection.sendPart(hex('00 01 02 03 04'), false)
  rig.connection.sendPart(hex('05'), true)
  assert.deepEqual(rig.sent, [
    'text… "0123"',
    'continuation… 4 34353637',
    'continuation 2 3839',
    'text… "éé"',
    'continuation 2 c3a9',
    'binary 4 00010203',
    'binary… 4 00010203',
    'continuation… 1 04',
    'continuation 1 05',
  ])
  assert.equal(rig.connection.messagesAccepted, 5)
  rig.tunnel.transmit()
  assert.equal(rig.connection.messagesSent, 5)
})

test('a prepared message is the same octets for all servers, and masked by a client', () => {
  const payload = sample(5_000)
  const prepared: PreparedMessage = {
    binary: true,
    payload,
    frame: encodeFrame(payload, true, false),
    compressedPayload: () => undefined,
    compressedFrame: () => undefined,
  }
  for (const role of ['client', 'server'] as const) {
    const rig = new Rig({ role })
    rig.connection.sendPrepared(prepared, true)
    const [sent] = rig.tunnel.sent
    if (role === 'server') assert.equal(sent?.buffer, prepared.frame.buffer, 'it is not copied here')
    assert.deepEqual(rig.sent, [shown(payload, false)])
    assert.equal(rig.connection.bufferedAmount, 5_000)
    rig.tunnel.transmit()
    assert.equal(rig.connection.messagesSent, 1)
  }
})

test('a prepared message keeps to the size of frames', () => {
  const payload = sample(10)
  const rig = new Rig({ fragmentSize: 6 })
  rig.connection.sendPrepared(
    {
      binary: false,
      payload,
      frame: encodeFrame(payload, false, false),
      compressedPayload: () => undefined,
      compressedFrame: () => undefined,
    },
    false,
  )
  assert.equal(rig.frames.length, 2)
})

test('what waits is counted message by message, and told when it has left', () => {
  const rig = new Rig({ mark: 100 })
  const { connection } = rig
  const told: string[] = []
  rig.program.on.onSent = (count, writable) => void told.push(`${count} ${writable}`)
  assert.equal(connection.sendBytes(sample(50), true, false, false), true)
  assert.equal(connection.sendBytes(sample(60), true, false, false), false)
  assert.equal(connection.sendText('three', false), false)
  assert.equal(connection.writable, false)
  assert.equal(connection.bufferedAmount, 115)
  rig.tunnel.transmit(51)
  assert.equal(connection.bufferedAmount, 115)
  rig.tunnel.transmit(1)
  assert.equal(connection.bufferedAmount, 65)
  rig.tunnel.transmit(62 + 6)
  assert.equal(connection.bufferedAmount, 5)
  rig.tunnel.transmit()
  assert.equal(connection.bufferedAmount, 0)
  // 121 octets wait at first; there is room again when 51 of them have left.
  assert.deepEqual(told, ['0 true', '1 true', '1 true', '1 true'])
  assert.equal(connection.writable, true)
})

test('nobody is told of room who was not told to wait', () => {
  const rig = new Rig({ mark: 1_000 })
  const told: string[] = []
  rig.program.on.onSent = (count, writable) => void told.push(`${count} ${writable}`)
  rig.connection.sendPing(new Uint8Array(0))
  rig.tunnel.transmit()
  assert.deepEqual(told, [])
  rig.connection.sendText('a', false)
  rig.tunnel.transmit()
  assert.deepEqual(told, ['1 true'])
})

test('once it closes, nothing can be sent, and nothing is thrown', () => {
  const rig = new Rig()
  const { connection } = rig
  connection.sendText('before', false)
  connection.close(1000)
  assert.equal(connection.sendText('behind', false), false)
  assert.equal(connection.sendBytes(sample(3), true, false, false), false)
  assert.equal(connection.sendPing(new Uint8Array(0)), false)
  connection.startMessage(false, false)
  assert.equal(connection.sendPart('part', true), false)
  connection.close(1001)
  assert.deepEqual(rig.sent, ['text "before"', 'close 1000'])
  assert.equal(connection.messagesAccepted, 1)
})
