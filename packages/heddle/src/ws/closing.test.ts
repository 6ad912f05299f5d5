import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { CancelledError, CancelReason, NetworkError, PeerError, TimeoutError } from '../http/index.ts'
import { close, frame, sample, text } from '../testing/websocket/case.ts'
import { Rig } from '../testing/websocket/rig.ts'
import { Opcode, State } from './index.ts'

suite('this side closes', () => {
  test('server: it ends as soon as the answer has come', () => {
    const rig = new Rig({ role: 'server' })
    rig.connection.close(1001, 'going')
    assert.equal(rig.connection.state, State.Closing)
    assert.deepEqual(rig.sent, ['close 1001'])
    assert.equal(rig.tunnel.ended, false)
    rig.receive(text('still under way'), close(1001))
    assert.equal(rig.tunnel.ended, true)
    rig.tunnel.receiveEnd()
    rig.tunnel.transmit()
    assert.deepEqual(rig.told, ['text "still under way"', 'peer closes 1001 ""', 'over 1001 clean'])
    assert.equal(rig.connection.state, State.Closed)
  })

  test('client: it waits for the server to end first', () => {
    const rig = new Rig({ role: 'client' })
    rig.connection.close()
    assert.deepEqual(rig.sent, ['close'])
    rig.receive(close())
    assert.equal(rig.tunnel.ended, false)
    rig.tunnel.receiveEnd()
    assert.equal(rig.tunnel.ended, true)
    rig.tunnel.transmit()
    assert.deepEqual(rig.told, ['peer closes 1005 ""', 'over 1005 clean'])
  })

  test('both at once', () => {
    for (const role of ['client', 'server'] as const) {
      const rig = new Rig({ role })
      rig.connection.close(3000)
      rig.receive(close(4000))
      assert.deepEqual(rig.sent, ['close 3000'])
      assert.equal(rig.tunnel.ended, role === 'server')
      rig.tunnel.receiveEnd()
      rig.tunnel.transmit()
      assert.deepEqual(rig.told, ['peer closes 4000 ""', 'over 4000 clean'])
    }
  })
})

suite('the peer closes', () => {
  test('server: the answer and the end leave together', () => {
    const rig = new Rig({ role: 'server' })
    rig.receive(close(1000, 'done'))
    assert.deepEqual(rig.sent, ['close 1000'])
    assert.equal(rig.tunnel.ended, true)
    assert.equal(rig.tunnel.sends, 1)
  })

  test('within a text, even within a character: the reason is a text of its own', () => {
    for (const begun of ['e0', 'ed', 'f0', 'f4']) {
      const rig = new Rig({ role: 'server' })
      rig.receive(frame(Opcode.Text, Buffer.from(begun, 'hex')), close(1000, 'À\u{10ffff}'))
      assert.deepEqual(rig.told, ['peer closes 1000 "À\u{10ffff}"'], begun)
      assert.deepEqual(rig.sent, ['close 1000'])
    }
  })

  test('client: the answer leaves, the end waits', () => {
    const rig = new Rig({ role: 'client' })
    rig.receive(close(1000, 'done'))
    assert.deepEqual(rig.sent, ['close 1000'])
    assert.equal(rig.tunnel.ended, false)
  })

  test('client: with the end right behind it, all is over', () => {
    const rig = new Rig({ role: 'client' })
    rig.tunnel.receive(Buffer.from('880203e8', 'hex'), true)
    assert.equal(rig.tunnel.ended, true)
    rig.tunnel.transmit()
    assert.deepEqual(rig.told, ['peer closes 1000 ""', 'over 1000 clean'])
  })
})

suite('it does not end well', () => {
  test('the peer ends without a Close', () => {
    for (const role of ['client', 'server'] as const) {
      const rig = new Rig({ role })
      rig.receive(text('a'))
      rig.tunnel.receiveEnd()
      assert.equal(rig.tunnel.ended, true)
      assert.equal(rig.connection.sendText('b', false), false)
      rig.tunnel.transmit()
      assert.deepEqual(rig.told, ['text "a"', 'failing', 'over 1006 PEER_CLOSED'])
      assert.deepEqual(rig.sent, [])
    }
  })

  test('the peer ends within a frame', () => {
    const rig = new Rig()
    rig.tunnel.receive(Buffer.from('8185', 'hex'), true)
    rig.tunnel.transmit()
    assert.deepEqual(rig.told, ['failing', 'over 1006 PEER_CLOSED'])
  })

  test('the peer ends behind our Close, without its own', () => {
    const rig = new Rig()
    rig.connection.close(1000)
    rig.tunnel.receiveEnd()
    rig.tunnel.transmit()
    assert.deepEqual(rig.sent, ['close 1000'])
    assert.deepEqual(rig.told, ['failing', 'over 1006 PEER_CLOSED'])
  })

  test('trailers end a tunnel, too', () => {
    const rig = new Rig()
    rig.connection.onTrailers(['x', 'y'])
    assert.equal(rig.tunnel.ended, true)
    assert.deepEqual(rig.told, ['failing'])
  })

  test('the exchange is reset: its error is kept', () => {
    const rig = new Rig()
    const error = new PeerError('PEER_RESET', 'reset', { wireCode: 8 })
    rig.tunnel.close(error)
    assert.equal(rig.program.error, error)
    assert.deepEqual(rig.told, ['over 1006 8'])
  })

  test('the first error is the one that is kept', () => {
    const rig = new Rig()
    rig.receive(frame(0x83))
    rig.tunnel.close(new PeerError('PEER_RESET', 'reset'))
    assert.deepEqual(rig.told, ['failing', 'over 1006 1002'])
    assert.equal(rig.program.error?.message, 'unknown opcode 3')
  })

  test('messages that were accepted do not leave: it was not clean', () => {
    const rig = new Rig()
    rig.connection.sendBytes(sample(100), true, false, false)
    rig.receive(close(1000))
    rig.tunnel.transmit(50)
    rig.tunnel.close(new NetworkError('NETWORK_ERROR', 'cable'))
    assert.deepEqual(rig.told, ['peer closes 1000 ""', 'over 1000 NETWORK_ERROR'])
    assert.equal(rig.connection.bufferedAmount, 100)
  })

  test('what the transport says behind a closing handshake is no matter', () => {
    const rig = new Rig({ role: 'client' })
    rig.connection.sendBytes(sample(100), true, false, false)
    rig.receive(close(1000))
    rig.tunnel.transmit()
    rig.tunnel.close(new PeerError('PEER_RESET', 'reset'))
    assert.deepEqual(rig.told, ['peer closes 1000 ""', 'over 1000 clean'])
  })

  test('a server that does not end after the handshake is dropped, and it was clean all the same', () => {
    const rig = new Rig({ role: 'client' })
    rig.connection.close(1000)
    rig.receive(close(1000))
    rig.tunnel.transmit()
    rig.connection.abort(new TimeoutError('idle', 'the server does not end'))
    rig.tunnel.transmit()
    assert.deepEqual(rig.told, ['peer closes 1000 ""', 'over 1000 clean'])
  })

  test('a peer that does not answer is dropped', () => {
    const rig = new Rig()
    rig.connection.close(1000)
    const error = new TimeoutError('idle', 'no Close came')
    rig.connection.abort(error, CancelReason.Timeout)
    rig.tunnel.transmit()
    assert.deepEqual(rig.told, ['over 1006 IDLE_TIMEOUT'])
    assert.equal(rig.program.error, error)
  })
})

suite('behind the end', () => {
  test('what comes behind a Close is thrown away, and no longer credited when it is much', () => {
    const rig = new Rig({ limits: { drainSize: 10_000 } })
    rig.receive(close(1000), text('behind'))
    const before = rig.tunnel.delivered
    assert.equal(rig.tunnel.consumed, before)
    rig.tunnel.receive(sample(9_000))
    assert.equal(rig.tunnel.consumed, before + 9_000)
    rig.tunnel.receive(sample(9_000))
    assert.equal(rig.tunnel.consumed, before + 9_000)
    assert.deepEqual(rig.told, ['peer closes 1000 ""'])
  })

  test('what comes behind a fault, also', () => {
    const rig = new Rig()
    rig.receive(frame(0x83))
    for (let i = 0; i < 40; i++) rig.tunnel.receive(sample(10_000))
    assert.ok(rig.tunnel.consumed <= 262_144 + 10, `${rig.tunnel.consumed}`)
    assert.deepEqual(rig.told, ['failing'])
    rig.tunnel.receiveEnd()
    rig.tunnel.transmit()
    assert.deepEqual(rig.told, ['over 1006 1002'])
  })

  test('every method may be called, and none does anything', () => {
    const rig = new Rig()
    rig.tunnel.close(new PeerError('PEER_RESET', 'reset'))
    const { connection } = rig
    void rig.told
    connection.sendText('a', true)
    connection.sendBytes(sample(3), true, true, true)
    connection.sendPing(new Uint8Array(0))
    connection.startMessage(true, true)
    connection.sendPart(sample(3), true)
    connection.close(1000)
    connection.pause()
    connection.resume()
    connection.discardMessages()
    connection.abort(new CancelledError(CancelReason.Cancelled))
    connection.deflated(sample(3), 0, 3, false)
    connection.inflated(sample(3), 0, 3, false)
    connection.inflatedTooMuch()
    connection.codecFailed('inflate', undefined)
    connection.codecFailed('deflate', undefined)
    connection.onClose(undefined)
    assert.deepEqual([rig.told, rig.sent, rig.faults, rig.tunnel.cancelled], [[], [], [], undefined])
    assert.equal(connection.state, State.Closed)
  })
})
