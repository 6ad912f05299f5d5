/** The receiving half of a stream: RFC 9000 §3.2, transition by transition. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Receiving, type ReceiveHalf } from './receive-stream.ts'
import { octets, StreamEnd, type EndOptions, type Recorder } from './stream-end.test.ts'
import { TransportError } from './transport-error.ts'

/** The client's first unidirectional stream. */
const id = 2

interface Opened {
  readonly end: StreamEnd
  readonly half: ReceiveHalf
  readonly recorder: Recorder
}

/** A server with a stream of the peer's, on which `[0, size)` came. */
function server(size: number, options?: EndOptions): Opened {
  const end = new StreamEnd(true, options)
  assert.equal(end.data(id, 0, size), undefined)
  const half = end.set.table.get(id)?.receiving
  assert.ok(half)
  return { end, half, recorder: end.acceptedStream(id).recorder }
}

function assertFault(fault: unknown, code: number): void {
  assert.equal((fault as { code: number } | undefined)?.code, code)
}

describe('Open', () => {
  test('octets in order are handed on at once, from the buffer they came in', () => {
    const { end, recorder } = server(5)
    assert.equal(end.data(id, 5, 9), undefined)
    assert.deepEqual(recorder.events, ['data 5', 'data 4'])
  })

  test('octets before their turn wait; what they wait for hands all of them on', () => {
    const { end, half, recorder } = server(5)
    end.data(id, 8, 10)
    end.data(id, 12, 14)
    assert.deepEqual(recorder.events, ['data 5'])
    end.data(id, 5, 9)
    assert.deepEqual(recorder.events, ['data 5', 'data 4', 'data 1'])
    end.data(id, 9, 13)
    assert.equal(recorder.came, 14)
    assert.ok(half.pieces.isEmpty)
  })

  test('octets that came before are not handed on again, and an empty frame tells nothing', () => {
    const { end, recorder } = server(5)
    end.data(id, 0, 5)
    end.data(id, 2, 5)
    end.data(id, 5, 5)
    end.data(id, 7, 7)
    end.data(id, 3, 6)
    assert.deepEqual(recorder.events, ['data 5', 'data 1'])
  })

  test('─ FIN with the last octets ─► Ended', () => {
    const { end, half, recorder } = server(5)
    end.data(id, 5, 7, true)
    assert.equal(half.state, Receiving.Ended)
    assert.deepEqual(recorder.events, ['data 5', 'data 2 fin', 'close'])
    end.assertEmpty()
  })

  test('─ FIN alone ─► Ended', () => {
    const { end, recorder } = server(5)
    end.data(id, 5, 5, true)
    assert.deepEqual(recorder.events, ['data 5', 'data 0 fin', 'close'])
  })

  test('─ FIN of an empty stream ─► Ended', () => {
    const end = new StreamEnd(true)
    end.data(id, 0, 0, true)
    assert.deepEqual(end.acceptedStream(id).recorder.events, ['data 0 fin', 'close'])
  })

  test('─ FIN, and something is missing ─► SizeKnown', () => {
    const { end, half, recorder } = server(5)
    end.data(id, 8, 10, true)
    assert.equal(half.state, Receiving.SizeKnown)
    assert.deepEqual(recorder.events, ['data 5'])
  })

  test('─ RESET_STREAM ─► Ended: what waited is let go', () => {
    const { end, half, recorder } = server(5)
    end.data(id, 8, 10)
    assert.equal(end.set.receiveResetStream(id, 66, 20), undefined)
    end.set.settle()
    assert.equal(half.state, Receiving.Ended)
    assert.equal(half.pieces.pinned, 0)
    assert.deepEqual(recorder.events, ['data 5', 'reset 66', 'close'])
    end.assertEmpty()
  })

  test('─ stopSending ─► STOP_SENDING; what comes then is credited, and handed to nobody', () => {
    const { end, half, recorder } = server(5)
    end.data(id, 8, 10)
    end.acceptedStream(id).stream.stopSending(4)
    assert.equal(half.pieces.pinned, 0)
    assert.equal(end.set.receiveWindow.consumed, 10)
    assert.deepEqual(end.frames(), [{ type: 'STOP_SENDING', streamId: id, code: 4 }])
    end.data(id, 5, 30)
    assert.equal(end.set.receiveWindow.consumed, 30)
    assert.deepEqual(recorder.events, ['data 5'])
    assert.equal(half.state, Receiving.Open)
  })

  test('STOP_SENDING that is lost is sent again, until the end is known', () => {
    const { end } = server(5)
    end.acceptedStream(id).stream.stopSending(4)
    const [first] = end.writeAll()
    assert.ok(first)
    end.lost(first)
    const [second] = end.writeAll()
    assert.ok(second)
    end.data(id, 5, 9, true)
    end.lost(second)
    assert.equal(end.write(), undefined)
    end.assertEmpty()
  })

  test('RESET_STREAM that STOP_SENDING asked for is not told', () => {
    const { end, recorder } = server(5)
    end.acceptedStream(id).stream.stopSending(4)
    end.set.receiveResetStream(id, 4, 5)
    end.set.settle()
    assert.deepEqual(recorder.events, ['data 5', 'close'])
    end.frames()
    end.assertEmpty()
  })
})

describe('SizeKnown', () => {
  test('─ what was missing comes ─► Ended', () => {
    const { end, half, recorder } = server(5)
    end.data(id, 10, 10, true)
    end.data(id, 8, 10)
    end.data(id, 5, 8)
    assert.equal(half.state, Receiving.Ended)
    assert.deepEqual(recorder.events, ['data 5', 'data 3', 'data 2 fin', 'close'])
  })

  test('the end is told once, with the last octets', () => {
    const { end, recorder } = server(5)
    end.data(id, 8, 10, true)
    end.data(id, 5, 10, true)
    assert.deepEqual(recorder.events, ['data 5', 'data 5 fin', 'close'])
  })

  test('─ RESET_STREAM ─► Ended', () => {
    const { end, recorder } = server(5)
    end.data(id, 8, 10, true)
    assert.equal(end.set.receiveResetStream(id, 1, 10), undefined)
    end.set.settle()
    assert.deepEqual(recorder.events, ['data 5', 'reset 1', 'close'])
  })

  test('─ stopSending ─► Ended: there is nothing to be stopped', () => {
    const { end, recorder } = server(5)
    end.data(id, 8, 10, true)
    end.acceptedStream(id).stream.stopSending(1)
    end.set.settle()
    assert.equal(end.write(), undefined)
    assert.deepEqual(recorder.events, ['data 5', 'close'])
    assert.equal(end.set.receiveWindow.consumed, 10)
    end.assertEmpty()
  })

  test('no more credit is given (RFC 9000 §3.2)', () => {
    const { end, half } = server(60, { initialMaxStreamData: 100 })
    assert.ok(half.credit.isDue)
    end.data(id, 61, 62, true)
    assert.equal(half.credit.isDue, false)
    assert.equal(end.write(), undefined)
  })
})

describe('Ended', () => {
  test('late frames are no fault, and tell nothing', () => {
    const { end, recorder } = server(5)
    end.data(id, 5, 5, true)
    const { length } = recorder.events
    assert.equal(end.data(id, 0, 5, true), undefined)
    assert.equal(end.set.receiveResetStream(id, 1, 5), undefined)
    assert.equal(end.set.receiveStreamDataBlocked(id), undefined)
    assert.equal(recorder.events.length, length)
    assert.equal(end.accepted.size, 1)
    end.assertEmpty()
  })

  test('while the other half goes on, nothing is handed on, and the final size stays', () => {
    const end = new StreamEnd(true)
    end.data(0, 0, 5, true)
    const { recorder } = end.acceptedStream(0)
    assert.equal(end.data(0, 0, 5, true), undefined)
    assert.equal(end.set.receiveResetStream(0, 1, 5), undefined)
    assert.deepEqual(recorder.events, ['data 5 fin'])
    assertFault(end.data(0, 5, 6), TransportError.finalSizeError)
    assertFault(end.data(0, 0, 4, true), TransportError.finalSizeError)
    assertFault(end.set.receiveResetStream(0, 1, 4), TransportError.finalSizeError)
  })
})

describe('the handler', () => {
  test('may stop the stream while it is handed octets', () => {
    const end = new StreamEnd(true)
    end.data(id, 10, 20)
    const { recorder, stream } = end.acceptedStream(id)
    recorder.react = (event) => event.startsWith('data') && stream.stopSending(1)
    end.data(id, 0, 10)
    assert.deepEqual(recorder.events, ['data 10'])
    assert.equal(end.set.receiveWindow.consumed, 20)
  })

  test('may send while it is handed octets that waited, and they stay what they are', () => {
    const end = new StreamEnd(true)
    end.data(0, 10, 20_000)
    const { recorder, stream } = end.acceptedStream(0)
    stream.handler = {
      onReset() {},
      onStopSending() {},
      onSent() {},
      onClose() {},
      onData(buffer, start, limit, fin): void {
        stream.send(new Uint8Array(4_096).fill(255), 0, 4_096, false)
        stream.send(new Uint8Array(8_192).fill(255), 0, 8_192, false)
        recorder.onData(buffer, start, limit, fin)
      },
    }
    end.data(0, 0, 10)
    assert.equal(recorder.came, 20_000)
  })

  test('is told of the reset before the close, and of nothing behind it', () => {
    const end = new StreamEnd(true)
    end.data(0, 0, 5)
    const { recorder, stream } = end.acceptedStream(0)
    stream.send(octets(0, 5), 0, 5, true)
    end.ackAll(end.writeAll())
    end.set.receiveResetStream(0, 3, 5)
    end.set.settle()
    end.data(0, 5, 9)
    assert.deepEqual(recorder.events, ['data 5', 'sent 5', 'reset 3', 'close'])
  })
})

describe('final size (RFC 9000 §4.5)', () => {
  test('it does not change: by FIN, by RESET_STREAM', () => {
    const faults = [
      (end: StreamEnd): unknown => end.data(id, 5, 11, true),
      (end: StreamEnd): unknown => end.data(id, 5, 9, true),
      (end: StreamEnd): unknown => end.data(id, 8, 11),
      (end: StreamEnd): unknown => end.set.receiveResetStream(id, 0, 11),
      (end: StreamEnd): unknown => end.set.receiveResetStream(id, 0, 9),
    ]
    for (const fault of faults) {
      const { end } = server(5)
      assert.equal(end.data(id, 9, 10, true), undefined)
      assertFault(fault(end), TransportError.finalSizeError)
    }
  })

  test('it is not below what came', () => {
    for (const fault of [
      (end: StreamEnd): unknown => end.data(id, 4, 4, true),
      (end: StreamEnd): unknown => end.data(id, 5, 19, true),
      (end: StreamEnd): unknown => end.set.receiveResetStream(id, 0, 19),
    ]) {
      const { end } = server(5)
      end.data(id, 19, 20)
      assertFault(fault(end), TransportError.finalSizeError)
    }
  })

  test('it holds for a stream that nobody reads', () => {
    const { end } = server(5)
    end.acceptedStream(id).stream.stopSending(1)
    assertFault(end.set.receiveResetStream(id, 0, 4), TransportError.finalSizeError)
  })
})

describe('flow control (RFC 9000 §4.1)', () => {
  const small = { initialMaxStreamData: 100, initialMaxData: 150, largestWindow: 200 }

  test('a stream takes as much as its window, wherever it lies', () => {
    const { end } = server(5, small)
    assert.equal(end.data(id, 99, 100), undefined)
    assertFault(end.data(id, 100, 101), TransportError.flowControlError)
  })

  test('RESET_STREAM uses the window up, too', () => {
    const { end } = server(5, small)
    assertFault(end.set.receiveResetStream(id, 0, 101), TransportError.flowControlError)
  })

  test('the connection takes as much as its window, over all streams', () => {
    const { end } = server(5, { ...small, initialMaxData: 150 })
    end.consumes = false
    assert.equal(end.data(id, 99, 100), undefined)
    assert.equal(end.data(6, 49, 50), undefined)
    assertFault(end.data(10, 0, 1), TransportError.flowControlError)
  })

  test('RESET_STREAM counts for the connection, and is credited at once', () => {
    const end = new StreamEnd(true, small)
    end.data(id, 0, 1)
    end.data(6, 0, 1)
    assert.equal(end.set.receiveResetStream(id, 0, 100), undefined)
    assert.equal(end.set.receiveWindow.received, 101)
    assert.equal(end.set.receiveWindow.consumed, 101)
    assertFault(end.set.receiveResetStream(6, 0, 101), TransportError.flowControlError)
  })

  test('octets that come twice count once', () => {
    const { end } = server(100, small)
    assert.equal(end.data(id, 0, 100), undefined)
    assert.equal(end.set.receiveWindow.received, 100)
  })

  test('credit comes half a window at a time, for the stream and for the connection', () => {
    const end = new StreamEnd(true, { ...small, initialMaxData: 100 })
    end.data(id, 0, 49)
    assert.equal(end.write(), undefined)
    end.data(id, 49, 50)
    assert.deepEqual(end.frames(), [
      { type: 'MAX_DATA', maximum: 150 },
      { type: 'MAX_STREAM_DATA', streamId: id, maximum: 150 },
    ])
  })

  test('credit that is lost is told again, as it is then', () => {
    const end = new StreamEnd(true, { ...small, initialMaxData: 1_000 })
    end.data(id, 0, 50)
    const [first] = end.writeAll()
    assert.ok(first)
    end.data(id, 50, 80)
    end.now = 1_000
    end.data(id, 80, 100)
    const [second] = end.writeAll()
    assert.ok(second)
    end.lost(first)
    assert.equal(end.write(), undefined, 'a newer one is under way')
    end.lost(second)
    assert.deepEqual(end.frames(), [{ type: 'MAX_STREAM_DATA', streamId: id, maximum: 200 }])
  })

  test('what is not consumed is not credited; what is consumed beyond what came is neither', () => {
    const end = new StreamEnd(true, { ...small, initialMaxData: 100 })
    end.consumes = false
    end.data(id, 0, 100)
    assert.equal(end.write(), undefined)
    const { stream } = end.acceptedStream(id)
    stream.consume(1_000)
    assert.deepEqual(end.frames(), [
      { type: 'MAX_DATA', maximum: 200 },
      { type: 'MAX_STREAM_DATA', streamId: id, maximum: 200 },
    ])
    stream.consume(1_000)
    assert.equal(end.write(), undefined)
  })

  test('what waits for its turn cannot be consumed', () => {
    const end = new StreamEnd(true, { ...small, initialMaxData: 100 })
    end.consumes = false
    end.data(id, 1, 100)
    end.acceptedStream(id).stream.consume(99)
    assert.equal(end.write(), undefined)
  })

  test('the credit of a stream that is over is the connection’s, consumed or not', () => {
    const end = new StreamEnd(true, { ...small, initialMaxData: 100 })
    end.consumes = false
    end.data(id, 0, 60, true)
    assert.deepEqual(end.frames(), [{ type: 'MAX_DATA', maximum: 160 }])
    end.acceptedStream(id).stream.consume(60)
    assert.equal(end.set.receiveWindow.consumed, 60)
  })

  test('a window grows to what it is limited to, and is not made smaller', () => {
    const end = new StreamEnd(true, { ...small, initialMaxData: 100_000, largestWindow: 100_000 })
    const grown = (most: number | undefined, from: number): number => {
      if (most !== undefined) end.acceptedStream(id).stream.limitWindowGrowth(most)
      let ahead = 0
      for (let at = from; at < from + 3_000; at += 10) {
        assert.equal(end.data(id, at, at + 10), undefined)
        for (const frame of end.frames()) if (frame.type === 'MAX_STREAM_DATA') ahead = Math.max(ahead, frame.maximum - at - 10)
      }
      return ahead
    }
    end.data(id, 0, 1)
    assert.equal(grown(250, 1), 250)
    assert.equal(grown(20, 3_001), 250)
    assert.equal(grown(600, 6_001), 600)
  })

  test('a window that is limited does not grow', () => {
    const end = new StreamEnd(true, { ...small, initialMaxData: 10_000 })
    end.data(id, 0, 1)
    end.acceptedStream(id).stream.limitWindow(60)
    for (let at = 1; at < 300; at += 10) {
      assert.equal(end.data(id, at, at + 10), undefined)
      for (const frame of end.frames()) if (frame.type === 'MAX_STREAM_DATA') assert.equal(frame.maximum, at + 10 + 60)
    }
  })
})
