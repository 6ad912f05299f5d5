import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CancelledError, CancelReason, PeerError } from '../http/index.ts'
import { binary, close, deflated, fragments, frame, hex, ping, sample, text, utf8 } from '../testing/websocket/case.ts'
import { encodePeerFrame } from '../testing/websocket/peer-frame.ts'
import { allOfDeflate, Rig } from '../testing/websocket/rig.ts'
import { State } from './index.ts'

test('a message that lies whole in the input is handed on where it lies', () => {
  const rig = new Rig()
  const payload = encodePeerFrame(binary(sample(1_000)), true)
  let seen: Uint8Array | undefined
  rig.program.on.onMessage = (buffer) => void (seen = buffer)
  rig.connection.onData(payload, 0, payload.length, false)
  assert.equal(seen, payload)
  assert.equal(rig.connection.keepMessage(), false)
})

test('a message that came in pieces may be kept, and is not overwritten then', () => {
  for (const keep of [true, false]) {
    const rig = new Rig()
    let kept: Uint8Array = new Uint8Array(0)
    rig.program.on.onMessage = (buffer, start, limit) => {
      assert.equal(rig.connection.keepMessage() || !keep, true)
      if (keep) kept = buffer.subarray(start, limit)
    }
    const octets = encodePeerFrame(binary(sample(60_000)), true)
    rig.tunnel.receive(octets.subarray(0, 30_000))
    rig.tunnel.receive(octets.subarray(30_000))
    rig.program.on = {}
    const others = encodePeerFrame(binary(Buffer.alloc(60_000, 0x58)), true)
    rig.tunnel.receive(others.subarray(0, 30_000))
    rig.tunnel.receive(others.subarray(30_000))
    if (keep) assert.ok(sample(60_000).equals(kept))
  }
})

test('a small message in the memory of a large one is not given away', () => {
  const rig = new Rig()
  const kept: boolean[] = []
  rig.program.on.onMessage = () => void kept.push(rig.connection.keepMessage())
  const octets = encodePeerFrame(binary(sample(100)), true)
  rig.tunnel.receive(octets.subarray(0, 50))
  rig.tunnel.receive(octets.subarray(50))
  assert.deepEqual(kept, [false])
})

test('credit is given for every octet as it is looked at, in one call for each input', () => {
  const rig = new Rig()
  const calls: number[] = []
  const { consume } = rig.tunnel
  rig.tunnel.consume = (byteCount) => {
    calls.push(byteCount)
    consume.call(rig.tunnel, byteCount)
  }
  const octets = Buffer.concat([text('a'), text('b'), ping(), binary(sample(500))].map((each) => encodePeerFrame(each, true)))
  rig.tunnel.receive(octets.subarray(0, 100))
  rig.tunnel.receive(octets.subarray(100))
  assert.deepEqual(calls, [100, octets.length - 100])
})

test('in a pause nothing is delivered or answered, and no credit given', () => {
  const rig = new Rig()
  rig.program.on.onMessage = () => rig.connection.pause()
  rig.receive(text('first'), text('second'), ping(), text('third'))
  assert.deepEqual(rig.told, ['text "first"'])
  const first = encodePeerFrame(text('first'), true).length
  assert.equal(rig.tunnel.consumed, first)
  rig.receive(text('fourth'))
  assert.deepEqual([rig.told, rig.sent], [[], []])
  assert.equal(rig.connection.paused, true)
  rig.connection.resume()
  assert.deepEqual(rig.told, ['text "second"'])
  rig.program.on = {}
  rig.connection.resume()
  assert.deepEqual(rig.told, ['ping 0 ', 'text "third"', 'text "fourth"'])
  assert.deepEqual(rig.sent, ['pong 0 '])
  assert.equal(rig.tunnel.consumed, rig.tunnel.delivered)
  assert.deepEqual(rig.faults, [])
})

test('resume within a call of the handler goes on behind it', () => {
  const rig = new Rig()
  const order: string[] = []
  rig.program.on.onMessage = () => {
    order.push('begin')
    rig.connection.pause()
    rig.connection.resume()
    order.push('end')
  }
  rig.receive(text('a'), text('b'))
  rig.connection.pause()
  rig.receive(text('c'), text('d'))
  rig.connection.resume()
  assert.deepEqual(
    order,
    Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? 'begin' : 'end')),
  )
})

test('what waits in a pause may be cut anywhere', () => {
  const octets = Buffer.concat([...fragments(1, 'frag', 'ments'), ping('p'), binary(sample(20))].map((each) => encodePeerFrame(each, true)))
  for (let cut = 0; cut <= octets.length; cut++) {
    for (let second = cut; second <= octets.length; second += 3) {
      const rig = new Rig()
      rig.connection.pause()
      rig.tunnel.receive(octets.subarray(0, cut))
      rig.connection.resume()
      rig.connection.pause()
      rig.tunnel.receive(octets.subarray(cut, second))
      rig.tunnel.receive(octets.subarray(second))
      rig.connection.resume()
      assert.deepEqual(rig.told, ['text "fragments"', 'ping 1 70', `binary 20 ${sample(20).toString('hex')}`])
      assert.equal(rig.tunnel.consumed, octets.length)
    }
  }
})

test('the end of the tunnel waits for the end of the pause, a reset does not', () => {
  const ended = new Rig()
  ended.connection.pause()
  ended.receive(text('a'), close(1000))
  ended.tunnel.receiveEnd()
  ended.tunnel.transmit()
  assert.deepEqual(ended.told, [])
  ended.connection.resume()
  ended.tunnel.transmit()
  assert.deepEqual(ended.told, ['text "a"', 'peer closes 1000 ""', 'over 1000 clean'])

  const reset = new Rig()
  reset.connection.pause()
  reset.receive(text('a'))
  reset.tunnel.close(new PeerError('PEER_RESET', 'reset'))
  assert.deepEqual(reset.told, ['over 1006 PEER_RESET'])
  reset.connection.resume()
  assert.deepEqual(reset.told, [])
  assert.deepEqual([...ended.faults, ...reset.faults], [])
})

test('messages are thrown away, the rest goes on', () => {
  const rig = new Rig()
  rig.connection.pause()
  rig.receive(text('a'), frame(0x01, 'b'))
  rig.connection.discardMessages()
  assert.equal(rig.connection.paused, false)
  rig.receive(frame(0x80, hex('ff')), ping(), text('c'), close(1000))
  rig.connection.pause()
  assert.equal(rig.connection.paused, false)
  assert.deepEqual(rig.told, ['ping 0 ', 'peer closes 1000 ""'])
  assert.deepEqual(rig.sent, ['pong 0 ', 'close 1000'])
  assert.equal(rig.tunnel.consumed, rig.tunnel.delivered)
})

test('messages may be thrown away from within one', () => {
  const rig = new Rig()
  rig.program.on.onMessage = () => rig.connection.discardMessages()
  rig.receive(...fragments(1, 'a', 'b'), text('c'), close(1000))
  assert.deepEqual(rig.told, ['text "ab"', 'peer closes 1000 ""'])
})

test('a handler that throws ends its connection with 1011, and nothing else', () => {
  const cases: readonly ((rig: Rig, fail: () => never) => void)[] = [
    (rig, fail) => {
      rig.program.on.onMessage = fail
      rig.receive(text('a'), text('b'))
    },
    (rig, fail) => {
      rig.program.on.onMessage = fail
      rig.receive(...fragments(1, 'a', 'b'), text('c'))
    },
    (rig, fail) => {
      rig.program.on.onPong = fail
      rig.receive(frame(0x8a), text('b'))
    },
    (rig, fail) => {
      rig.program.on.onPeerClose = fail
      rig.receive(close(1000))
    },
    (rig, fail) => {
      rig.program.on.onSent = fail
      rig.connection.sendText('a', false)
      rig.tunnel.transmit()
      assert.deepEqual(rig.frames.map(({ opcode }) => opcode).slice(0, 1), [1])
    },
    (rig, fail) => {
      rig.connection.pause()
      rig.receive(text('a'), text('b'))
      rig.program.on.onMessage = fail
      rig.connection.resume()
    },
    (rig, fail) => {
      rig.program.on.onMessage = fail
      rig.receive(frame(0xc1, deflated('a')), text('b'))
    },
  ]
  for (const [index, run] of cases.entries()) {
    const rig = new Rig({ deflate: allOfDeflate })
    run(rig, () => {
      throw new TypeError('of the program')
    })
    rig.tunnel.transmit()
    const last = rig.sent.at(-1)
    if (index !== 4) assert.equal(last, 'close 1011', `case ${index}`)
    assert.equal(rig.connection.state, State.Closing)
    rig.tunnel.receiveEnd()
    rig.tunnel.transmit()
    const code = index === 3 ? 1000 : 1006
    assert.deepEqual(rig.told.slice(-1), [`over ${code} HANDLER_FAILED`], `case ${index}`)
    assert.ok(rig.program.error?.cause instanceof TypeError)
    assert.equal(rig.tunnel.closed, true)
    assert.deepEqual(rig.tunnel.faults, [])
  }
})

test('what a handler throws when it is over is left to the engine below to tell of', () => {
  const rig = new Rig()
  rig.program.on.onClose = () => {
    throw new TypeError('of the program')
  }
  assert.throws(() => rig.tunnel.close(undefined), { name: 'TypeError', message: 'of the program' })
  assert.deepEqual(rig.told, ['over 1006 NETWORK_ERROR'])
})

test('a connection aborted from within a message tells nothing more but its end', () => {
  const rig = new Rig()
  const error = new CancelledError(CancelReason.Timeout, 'enough')
  rig.program.on.onMessage = () => rig.connection.abort(error, CancelReason.Timeout)
  rig.receive(text('a'), text('b'), ping(), close(1000))
  assert.equal(rig.tunnel.cancelled, CancelReason.Timeout)
  assert.deepEqual(rig.told, ['text "a"'])
  rig.tunnel.transmit()
  assert.deepEqual(rig.told, ['over 1006 CANCELLED'])
  assert.equal(rig.program.error, error)
  assert.deepEqual(rig.sent, [])
  rig.connection.abort(new CancelledError(CancelReason.Cancelled))
  rig.connection.resume()
  rig.connection.close(1000)
  assert.deepEqual([rig.told, rig.sent, rig.faults], [[], [], []])
})

test('messages can be sent from within a Close, and the answer comes behind them', () => {
  const rig = new Rig()
  rig.program.on.onPeerClose = () => {
    assert.equal(rig.connection.state, State.Open)
    rig.connection.sendText('last words', false)
  }
  rig.receive(close(4000, 'why'))
  assert.deepEqual(rig.sent, ['text "last words"', 'close 4000'])
  assert.equal(rig.tunnel.ended, true)
})

test('within a Close this side may close with a code of its own', () => {
  const rig = new Rig()
  rig.program.on.onPeerClose = () => rig.connection.close(1011, 'mine')
  rig.receive(close(1000))
  assert.deepEqual(rig.sent, ['close 1011'])
  assert.equal(rig.tunnel.ended, true)
  rig.tunnel.receiveEnd()
  rig.tunnel.transmit()
  assert.deepEqual(rig.told, ['peer closes 1000 ""', 'over 1000 clean'])
})

test('a Ping with long payload is answered with the same octets, though the input is used again', () => {
  const rig = new Rig({ limits: { maxQueuedPongs: 1 } })
  rig.receive(ping('a'), ping('b'), ping('c'))
  assert.deepEqual(rig.sent, ['pong 1 61'])
  rig.tunnel.transmit()
  assert.deepEqual(rig.sent, ['pong 1 63'])
})

test('text is checked in long messages, too, by the function that is given', () => {
  const asked: number[] = []
  const rig = new Rig({
    isUtf8: (bytes) => {
      asked.push(bytes.length)
      return false
    },
  })
  rig.receive(text(utf8('a'.repeat(1_000))))
  assert.deepEqual(asked, [1_000])
  assert.deepEqual(rig.sent, ['close 1007'])
})
