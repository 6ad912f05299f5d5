/** The sending half of a stream: RFC 9000 §3.1, transition by transition. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { DebugFrame } from './debug-frame.ts'
import { highWater, Sending, type SendHalf } from './send-stream.ts'
import { framesOf, octets, StreamEnd, type EndOptions, type Recorder } from './stream-end.test.ts'
import type { Stream } from './quic-stream.ts'

const client = (options?: EndOptions): { end: StreamEnd; stream: Stream; recorder: Recorder; half: SendHalf } => {
  const end = new StreamEnd(false, options)
  const { stream, recorder } = end.open(false)
  return { end, stream, recorder, half: stream.sending as SendHalf }
}

describe('Open', () => {
  test('octets leave in order and are told to the handler, behind the packet', () => {
    const { end, stream, recorder, half } = client()
    assert.ok(stream.send(octets(0, 10), 2, 7, false))
    assert.equal(stream.queued, 5)
    assert.deepEqual(end.frames(), [{ type: 'STREAM', streamId: 2, offset: 0, data: octets(2, 7), fin: false }])
    assert.deepEqual(recorder.events, ['sent 5'])
    assert.equal(half.state, Sending.Open)
    assert.equal(stream.queued, 0)
    assert.equal(end.hasFrames, false)
  })

  test('─ the last octet is written ─► Finished: FIN goes with it', () => {
    const { end, stream, half } = client()
    stream.send(octets(0, 3), 0, 3, true)
    assert.equal(half.state, Sending.Finished)
    assert.deepEqual(end.frames(), [{ type: 'STREAM', streamId: 2, offset: 0, data: octets(0, 3), fin: true }])
  })

  test('─ the end is written behind the last octet ─► Finished: FIN goes alone', () => {
    const { end, stream, recorder, half } = client()
    stream.send(octets(0, 3), 0, 3, false)
    end.frames()
    stream.send(octets(0, 0), 0, 0, true)
    assert.equal(half.state, Sending.Finished)
    assert.deepEqual(end.frames(), [{ type: 'STREAM', streamId: 2, offset: 3, data: octets(0, 0), fin: true }])
    assert.deepEqual(recorder.events, ['sent 3'])
  })

  test('─ the end of an empty stream ─► Finished', () => {
    const { end, stream } = client()
    stream.sendOwned(new Uint8Array(0), true)
    assert.deepEqual(end.frames(), [{ type: 'STREAM', streamId: 2, offset: 0, data: octets(0, 0), fin: true }])
  })

  test('─ reset ─► Reset: the final size is what was sent, and nothing that waits is', () => {
    const { end, stream, recorder, half } = client()
    stream.send(octets(0, 5), 0, 5, false)
    end.frames()
    stream.send(octets(5, 9), 0, 4, false)
    stream.reset(77)
    assert.equal(half.state, Sending.Reset)
    assert.equal(stream.queued, 0)
    assert.deepEqual(end.frames(), [{ type: 'RESET_STREAM', streamId: 2, code: 77, finalSize: 5 }])
    assert.deepEqual(recorder.events, ['sent 5'])
  })

  test('─ STOP_SENDING ─► Reset, with the same code (RFC 9000 §3.5)', () => {
    const { end, stream, recorder } = client()
    stream.send(octets(0, 5), 0, 5, false)
    assert.equal(end.set.receiveStopSending(2, 9), undefined)
    assert.deepEqual(recorder.events, ['stop 9'])
    assert.deepEqual(end.frames(), [{ type: 'RESET_STREAM', streamId: 2, code: 9, finalSize: 0 }])
    // It is told once.
    end.set.receiveStopSending(2, 9)
    assert.deepEqual(recorder.events, ['stop 9'])
  })
})

describe('Finished', () => {
  test('nothing can be sent any more', () => {
    const { end, stream } = client()
    stream.send(octets(0, 3), 0, 3, true)
    assert.equal(stream.send(octets(3, 4), 0, 1, false), false)
    assert.equal(stream.sendOwned(octets(3, 4), true), false)
    assert.equal(stream.queued, 3)
    end.frames()
  })

  test('─ all has arrived ─► Ended, whatever arrives last', () => {
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 2, 0],
    ]) {
      const { end, stream, recorder, half } = client()
      stream.send(octets(0, 30), 0, 30, true)
      const sent = end.writeAll(16)
      assert.equal(sent.length, 3)
      for (const index of order.slice(0, 2)) end.acked(sent[index] as (typeof sent)[0])
      assert.equal(half.state, Sending.Finished)
      assert.ok(!recorder.events.includes('close'))
      end.acked(sent[order[2] as number] as (typeof sent)[0])
      assert.equal(half.state, Sending.Ended)
      assert.equal(recorder.events.at(-1), 'close')
      end.assertEmpty()
    }
  })

  test('octets that are lost are sent again, with the end if it was theirs', () => {
    const { end, stream, half } = client()
    stream.send(octets(0, 30), 0, 30, true)
    const [first, second, third] = end.writeAll(16)
    assert.ok(first && second && third)
    end.lost(third)
    end.lost(first)
    const again = end.writeAll()
    assert.deepEqual(
      again.flatMap((sent) => framesOf(sent)),
      [...framesOf(first), ...framesOf(third)],
    )
    end.ackAll([second, ...again])
    assert.equal(half.state, Sending.Ended)
  })

  test('a bare end that is lost is sent again, and no octet with it', () => {
    const { end, stream } = client()
    stream.send(octets(0, 3), 0, 3, false)
    const [data] = end.writeAll()
    stream.send(octets(0, 0), 0, 0, true)
    const [fin] = end.writeAll()
    assert.ok(data && fin)
    end.lost(fin)
    assert.deepEqual(end.frames(), framesOf(fin))
    end.acked(data)
    assert.ok(end.set.size > 0)
    // The first one arrived after all.
    end.acked(fin)
    end.assertEmpty()
  })

  test('what was called lost and arrives is not sent again, nor is the end', () => {
    const { end, stream } = client()
    stream.send(octets(0, 3), 0, 3, true)
    const [sent] = end.writeAll()
    assert.ok(sent)
    end.lost(sent)
    end.acked(sent)
    assert.equal(end.write(), undefined)
    end.assertEmpty()
  })

  test('an end that has arrived need not arrive again with octets that are sent again', () => {
    const { end, stream, half } = client()
    stream.send(octets(0, 3), 0, 3, false)
    const [data] = end.writeAll()
    stream.send(octets(0, 0), 0, 0, true)
    const [fin] = end.writeAll()
    assert.ok(data && fin)
    end.acked(fin)
    end.lost(data)
    assert.deepEqual(end.frames(), [{ type: 'STREAM', streamId: 2, offset: 0, data: octets(0, 3), fin: true }])
    // The first ones arrived after all.
    end.acked(data)
    assert.equal(half.state, Sending.Ended)
    end.assertEmpty()
  })

  test('─ reset ─► Reset', () => {
    const { end, stream } = client()
    stream.send(octets(0, 3), 0, 3, true)
    const [sent] = end.writeAll()
    stream.reset(1)
    assert.deepEqual(end.frames(), [{ type: 'RESET_STREAM', streamId: 2, code: 1, finalSize: 3 }])
    assert.ok(sent)
    end.lost(sent)
    assert.equal(end.write(), undefined, 'what is lost of a stream that was reset is not sent again')
  })
})

describe('Reset', () => {
  test('─ it has arrived ─► Ended', () => {
    const { end, stream, recorder, half } = client()
    stream.reset(5)
    const [sent] = end.writeAll()
    assert.ok(sent)
    assert.deepEqual(recorder.events, [])
    end.acked(sent)
    assert.equal(half.state, Sending.Ended)
    assert.deepEqual(recorder.events, ['close'])
    end.assertEmpty()
  })

  test('RESET_STREAM that is lost is sent again, with the code of the first call', () => {
    const { end, stream } = client()
    stream.reset(5)
    stream.reset(6)
    const [sent] = end.writeAll()
    assert.ok(sent)
    end.lost(sent)
    assert.deepEqual(end.frames(), [{ type: 'RESET_STREAM', streamId: 2, code: 5, finalSize: 0 }])
  })

  test('nothing is taken, and the acknowledgement of octets ends nothing', () => {
    const { end, stream, half } = client()
    stream.send(octets(0, 3), 0, 3, true)
    const [data] = end.writeAll()
    stream.reset(5)
    assert.equal(stream.send(octets(0, 1), 0, 1, false), false)
    assert.ok(data)
    end.lost(data)
    assert.ok(half.buffer.lost.isEmpty, 'nothing is remembered of what will not be sent')
    end.acked(data)
    assert.equal(half.state, Sending.Reset)
    assert.equal(half.buffer.pinned, 0)
  })

  test('STOP_SENDING and credit change nothing', () => {
    const { end, stream, recorder } = client()
    stream.reset(5)
    end.set.receiveStopSending(2, 9)
    end.set.receiveMaxStreamData(2, 1 << 30)
    assert.deepEqual(recorder.events, [])
    assert.deepEqual(end.frames(), [{ type: 'RESET_STREAM', streamId: 2, code: 5, finalSize: 0 }])
  })
})

describe('Ended', () => {
  test('nothing is sent, and late frames are no fault', () => {
    const { end, stream, recorder } = client()
    stream.send(octets(0, 3), 0, 3, true)
    end.ackAll(end.writeAll())
    const events = recorder.events.length
    stream.reset(1)
    stream.stopSending(1)
    stream.consume(5)
    stream.setPriority(0, true)
    stream.limitWindow(5)
    assert.equal(stream.send(octets(0, 3), 0, 3, true), false)
    assert.equal(end.set.receiveStopSending(2, 9), undefined)
    assert.equal(end.set.receiveMaxStreamData(2, 9), undefined)
    assert.equal(end.write(), undefined)
    assert.equal(recorder.events.length, events)
    end.assertEmpty()
  })
})

describe('flow control (RFC 9000 §4.1)', () => {
  test('the stream stops at its limit, says so once, and goes on with more', () => {
    const { end, stream, recorder, half } = client({ peer: { initialMaxStreamDataUni: 10 } })
    stream.send(octets(0, 25), 0, 25, true)
    assert.deepEqual(end.frames(), [
      { type: 'STREAM', streamId: 2, offset: 0, data: octets(0, 10), fin: false },
      { type: 'STREAM_DATA_BLOCKED', streamId: 2, maximum: 10 },
    ])
    assert.equal(half.window.left, 0)
    end.set.receiveMaxStreamData(2, 10)
    assert.equal(end.write(), undefined)
    end.set.receiveMaxStreamData(2, 20)
    assert.deepEqual(end.frames(), [
      { type: 'STREAM', streamId: 2, offset: 10, data: octets(10, 20), fin: false },
      { type: 'STREAM_DATA_BLOCKED', streamId: 2, maximum: 20 },
    ])
    end.set.receiveMaxStreamData(2, 25)
    assert.deepEqual(end.frames(), [{ type: 'STREAM', streamId: 2, offset: 20, data: octets(20, 25), fin: true }])
    assert.deepEqual(recorder.events, ['sent 10', 'sent 10', 'sent 5'])
  })

  test('an end without octets needs no credit', () => {
    const { end, stream } = client({ peer: { initialMaxStreamDataUni: 0, initialMaxData: 0 } })
    stream.send(octets(0, 0), 0, 0, true)
    assert.deepEqual(end.frames(), [{ type: 'STREAM', streamId: 2, offset: 0, data: octets(0, 0), fin: true }])
  })

  test('the connection stops at its limit; what is lost is sent again all the same', () => {
    const { end, stream } = client({ peer: { initialMaxData: 10 } })
    stream.send(octets(0, 15), 0, 15, false)
    const [sent] = end.writeAll()
    assert.ok(sent)
    const blocked = { type: 'DATA_BLOCKED', maximum: 10 }
    const first = { type: 'STREAM', streamId: 2, offset: 0, data: octets(0, 10), fin: false }
    assert.deepEqual(framesOf(sent), [first, blocked])
    end.lost(sent)
    assert.deepEqual(end.frames(), [blocked, first])
    end.set.receiveMaxData(12)
    assert.deepEqual(end.frames().slice(0, 1), [{ type: 'STREAM', streamId: 2, offset: 10, data: octets(10, 12), fin: false }])
    assert.equal(end.set.sendWindow.used, 12)
  })

  test('frames that tell of being blocked are sent again when lost, unless there is credit meanwhile', () => {
    const { end, stream } = client({ peer: { initialMaxData: 10, initialMaxStreamDataUni: 10 } })
    const { stream: other } = end.open(false)
    stream.send(octets(0, 15), 0, 15, false)
    other.send(octets(0, 1), 0, 1, false)
    const blockedIn = (frames: readonly DebugFrame[]): unknown => frames.filter(({ type }) => type.endsWith('BLOCKED'))
    const first = end.writeAll()
    const blocked = [
      { type: 'DATA_BLOCKED', maximum: 10 },
      { type: 'STREAM_DATA_BLOCKED', streamId: 2, maximum: 10 },
    ]
    assert.deepEqual(blockedIn(first.flatMap((sent) => framesOf(sent))), blocked)
    for (const sent of first) end.lost(sent)
    const again = end.writeAll()
    assert.deepEqual(blockedIn(again.flatMap((sent) => framesOf(sent))), blocked)
    end.set.receiveMaxData(11)
    end.set.receiveMaxStreamData(2, 20)
    assert.deepEqual(blockedIn(end.frames()), [{ type: 'DATA_BLOCKED', maximum: 11 }])
    for (const sent of again) end.lost(sent)
    assert.deepEqual(blockedIn(end.frames()), [])
  })
})

describe('back pressure', () => {
  test('with enough waiting a sender is told to wait, and may go on when most of it has left', () => {
    const { end, stream, recorder } = client({ peer: { initialMaxStreamDataUni: highWater } })
    assert.equal(stream.send(new Uint8Array(highWater - 1), 0, highWater - 1, false), true)
    assert.equal(stream.send(new Uint8Array(1), 0, 1, false), false)
    let left = 0
    while (stream.queued > highWater / 2) {
      left += 1
      assert.ok(end.write())
      end.set.settle()
    }
    assert.ok(left > 10)
    assert.equal(recorder.events.filter((event) => event.includes('writable')).length, 1)
    assert.equal(recorder.events.at(-1)?.includes('writable'), true)
    end.writeAll()
    assert.equal(recorder.sent, highWater)
  })

  test('octets are told once, however often they are sent', () => {
    const { end, stream, recorder } = client()
    stream.send(octets(0, 100), 0, 100, false)
    for (let i = 0; i < 3; i++) for (const sent of end.writeAll()) end.lost(sent)
    assert.deepEqual(recorder.events, ['sent 100'])
  })
})
