/** What handlers do while they are told: end, stop, send, open, throw. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { framesOf, octets, Recorder, StreamEnd } from './stream-end.test.ts'

describe('credit is given once', () => {
  test('a stream that was reset has no more to consume, though one half goes on', () => {
    const end = new StreamEnd(true)
    end.consumes = false
    end.data(0, 0, 5)
    end.data(0, 9, 10)
    assert.equal(end.set.receiveResetStream(0, 1, 20), undefined)
    assert.equal(end.set.receiveWindow.consumed, 20)
    const { stream } = end.acceptedStream(0)
    stream.consume(5)
    stream.consume(100)
    assert.equal(end.set.receiveWindow.consumed, 20)
    assert.equal(end.set.size, 1)
  })

  test('nor has one that was stopped, or ends, or both', () => {
    const acts = [
      (end: StreamEnd): unknown => end.acceptedStream(0).stream.stopSending(1),
      (end: StreamEnd): unknown => end.data(0, 0, 10, true),
      (end: StreamEnd): unknown => end.set.receiveResetStream(0, 1, 10),
      (end: StreamEnd): unknown => end.acceptedStream(0).stream.consume(10),
      (end: StreamEnd): unknown => end.acceptedStream(0).stream.reset(1),
    ]
    for (let order = 0; order < acts.length ** 3; order++) {
      const end = new StreamEnd(true)
      end.consumes = false
      end.data(0, 0, 5)
      for (let rest = order, i = 0; i < 3; i++, rest = Math.floor(rest / acts.length)) {
        acts[rest % acts.length]?.(end)
        const { received, consumed } = end.set.receiveWindow
        assert.ok(consumed <= received, `${consumed} of ${received}, order ${order}`)
      }
      end.ackAll(end.writeAll())
      assert.equal(end.data(0, 0, 10, true), undefined)
      end.acceptedStream(0).stream.consume(10)
      end.acceptedStream(0).stream.reset(1)
      end.ackAll(end.writeAll())
      end.assertEmpty()
      assert.equal(end.set.receiveWindow.received, 10)
      assert.equal(end.set.receiveWindow.consumed, 10)
    }
  })
})

describe('a sender that is held back (RFC 9000 §4.1)', () => {
  test('by a window of nothing says so', () => {
    const end = new StreamEnd(false, { peer: { initialMaxStreamDataUni: 0 } })
    const { stream } = end.open(false)
    stream.send(octets(0, 0), 0, 0, false)
    assert.equal(end.write(), undefined)
    stream.send(octets(0, 5), 0, 5, false)
    assert.deepEqual(end.frames(), [{ type: 'STREAM_DATA_BLOCKED', streamId: 2, maximum: 0 }])
    stream.send(octets(0, 5), 0, 5, true)
    assert.equal(end.write(), undefined)
    end.set.receiveMaxStreamData(2, 4)
    assert.deepEqual(
      end.frames().map(({ type }) => type),
      ['STREAM', 'STREAM_DATA_BLOCKED'],
    )
  })

  test('says so when it has more to send, not when it has used its window up', () => {
    const end = new StreamEnd(false, { peer: { initialMaxStreamDataUni: 5, initialMaxData: 5 } })
    const { stream } = end.open(false)
    stream.send(octets(0, 5), 0, 5, false)
    assert.deepEqual(
      end.frames().map(({ type }) => type),
      ['STREAM'],
    )
    stream.send(octets(5, 6), 0, 1, false)
    assert.deepEqual(end.frames(), [{ type: 'STREAM_DATA_BLOCKED', streamId: 2, maximum: 5 }])
    end.set.receiveMaxStreamData(2, 6)
    assert.deepEqual(end.frames(), [{ type: 'DATA_BLOCKED', maximum: 5 }])
    assert.equal(end.hasFrames, false, 'what is held back is not asked for again and again')
    end.set.receiveMaxData(6)
    assert.deepEqual(end.frames(), [{ type: 'STREAM', streamId: 2, offset: 5, data: octets(5, 6), fin: false }])
    assert.equal(end.hasFrames, false)
  })

  test('and is given credit has nothing to say of the limit of before, though that was lost', () => {
    const end = new StreamEnd(false, { peer: { initialMaxStreamDataUni: 100, initialMaxData: 5 } })
    const { stream } = end.open(false)
    stream.send(octets(0, 10), 0, 10, false)
    const [sent] = end.writeAll()
    assert.ok(sent)
    end.set.receiveMaxData(50)
    end.frames()
    end.lost(sent)
    assert.deepEqual(end.frames(), [{ type: 'STREAM', streamId: 2, offset: 0, data: octets(0, 5), fin: false }])
    // Nor was it waiting to be said.
    stream.send(octets(10, 60), 0, 50, false)
    assert.ok(end.write())
    assert.ok(end.set.blocked.isInFlight)
    end.set.receiveMaxData(100)
    assert.deepEqual(
      end.frames().map(({ type }) => type),
      ['STREAM'],
    )
  })

  test('and resets the stream has nothing to be held back any more', () => {
    const end = new StreamEnd(false, { peer: { initialMaxStreamDataUni: 0 } })
    const { stream } = end.open(false)
    stream.send(octets(0, 5), 0, 5, false)
    stream.reset(1)
    assert.deepEqual(end.frames(), [{ type: 'RESET_STREAM', streamId: 2, code: 1, finalSize: 0 }])
    end.set.receiveMaxStreamData(2, 3)
    assert.equal(end.write(), undefined)
  })
})

describe('what matters no more is not said (RFC 9000 §13.3)', () => {
  const small = { initialMaxStreamData: 100 }

  test('STREAMS_BLOCKED is said once for a limit, however often no stream is to be had', () => {
    const end = new StreamEnd(false, { peer: { initialMaxStreamsUni: 0 } })
    for (let i = 0; i < 3; i++) {
      assert.equal(end.set.open(false, new Recorder()), undefined)
      assert.equal(end.frames().length, i === 0 ? 1 : 0)
    }
  })

  test('STOP_SENDING that arrived after all, though it was called lost, is not said again', () => {
    const end = new StreamEnd(true)
    end.data(0, 0, 5)
    const { stream } = end.acceptedStream(0)
    stream.stopSending(1)
    stream.reset(2)
    assert.equal(end.set.controlled.length, 1, 'a stream waits once, whatever it has to say')
    const [sent] = end.writeAll()
    assert.ok(sent)
    assert.equal(framesOf(sent).length, 2)
    end.lost(sent)
    end.acked(sent)
    assert.equal(end.write(), undefined)
    assert.equal(end.set.controlled.length, 0)
  })

  test('credit that was told arrives, and what was given since is told all the same', () => {
    const end = new StreamEnd(true, { initialMaxData: 100, largestWindow: 100, maxUnidirectionalStreams: 1 })
    end.data(2, 0, 50, true)
    const [first] = end.writeAll()
    assert.ok(first)
    end.data(6, 0, 50, true)
    end.acked(first)
    const [second] = end.writeAll()
    assert.ok(second)
    assert.deepEqual(framesOf(second), [
      { type: 'MAX_DATA', maximum: 200 },
      { type: 'MAX_STREAMS', bidirectional: false, maximum: 3 },
    ])
    end.lost(second)
    assert.deepEqual(end.frames(), framesOf(second))
  })

  test('a stream that is stopped gets no credit', () => {
    const end = new StreamEnd(true, small)
    end.data(0, 0, 60)
    const { stream } = end.acceptedStream(0)
    assert.ok(end.hasFrames)
    stream.stopSending(1)
    assert.deepEqual(end.frames(), [{ type: 'STOP_SENDING', streamId: 0, code: 1 }])
    end.data(0, 60, 100)
    stream.consume(100)
    assert.equal(end.write(), undefined)
  })

  test('a stream that has ended is not asked to stop, though it was not asked before', () => {
    const end = new StreamEnd(true)
    end.data(0, 0, 5, true)
    end.acceptedStream(0).stream.stopSending(2)
    assert.equal(end.write(), undefined)
    assert.equal(end.set.size, 1)
  })

  test('a window that is made larger is told at once, one that is made smaller is not', () => {
    const end = new StreamEnd(true, small)
    end.data(0, 0, 1)
    const { stream } = end.acceptedStream(0)
    stream.limitWindow(10)
    assert.equal(end.write(), undefined)
    stream.limitWindow(1_000)
    assert.deepEqual(end.frames(), [{ type: 'MAX_STREAM_DATA', streamId: 0, maximum: 1_001 }])
  })

  test('a stream of which the size is known gets no credit', () => {
    const end = new StreamEnd(true, small)
    end.consumes = false
    end.data(0, 0, 60)
    end.data(0, 70, 80, true)
    end.acceptedStream(0).stream.consume(60)
    assert.equal(end.hasFrames, false)
    assert.equal(end.write(), undefined)
  })

  test('what has ended is not asked to stop', () => {
    const ends = [
      (end: StreamEnd): unknown => end.data(0, 5, 9, true),
      (end: StreamEnd): unknown => end.data(0, 7, 9, true),
      (end: StreamEnd): unknown => end.set.receiveResetStream(0, 1, 9),
    ]
    for (const isLost of [false, true]) {
      for (const finish of ends) {
        const end = new StreamEnd(true)
        end.data(0, 0, 5)
        const { stream } = end.acceptedStream(0)
        stream.stopSending(1)
        const sent = isLost ? end.writeAll() : []
        assert.equal(finish(end), undefined)
        for (const each of sent) end.lost(each)
        assert.equal(end.write(), undefined)
        assert.equal(end.set.size, 1, 'the other half goes on')
        stream.stopSending(2)
        assert.equal(end.write(), undefined)
        assert.equal(end.set.receiveWindow.consumed, 9)
      }
    }
  })
})

describe('in a call', () => {
  test('the connection may end: what waits is handed to nobody, and no frame opens a stream', () => {
    const end = new StreamEnd(true)
    end.data(0, 0, 1)
    end.data(0, 5, 20_000, true)
    const { recorder } = end.acceptedStream(0)
    recorder.react = (): void => end.set.close()
    end.data(0, 1, 5)
    assert.deepEqual(recorder.events, ['data 1', 'data 4'])
    assert.equal(end.data(4, 0, 5), undefined)
    assert.equal(end.set.receiveResetStream(8, 1, 1), undefined)
    assert.equal(end.set.receiveStopSending(12, 1), undefined)
    assert.equal(end.set.receiveMaxStreamData(16, 1), undefined)
    end.set.settle()
    assert.deepEqual([...end.accepted.keys()], [0])
    assert.deepEqual(recorder.events, ['data 1', 'data 4'])
    end.assertEmpty()
  })

  test('the connection may end when a stream is told that it was reset, stopped, sent or is over', () => {
    const reasons = {
      reset: (end: StreamEnd): unknown => end.set.receiveResetStream(0, 1, 1),
      stop: (end: StreamEnd): unknown => end.set.receiveStopSending(0, 1),
      sent: (end: StreamEnd): unknown => end.writeAll(),
      close: (end: StreamEnd): void => {
        end.data(0, 1, 1, true)
        end.ackAll(end.writeAll())
      },
    }
    for (const [reason, cause] of Object.entries(reasons)) {
      const end = new StreamEnd(true)
      end.data(0, 0, 1)
      end.data(4, 0, 1)
      for (const id of [0, 4]) end.acceptedStream(id).stream.send(octets(0, 10), 0, 10, true)
      const { recorder } = end.acceptedStream(0)
      recorder.react = (event): void => {
        if (event.startsWith(reason)) end.set.close()
      }
      cause(end)
      end.set.settle()
      assert.ok(recorder.events.at(-1)?.startsWith(reason), `${recorder.events}`)
      const others = end.acceptedStream(4).recorder.events.length
      end.set.settle()
      assert.equal(end.acceptedStream(4).recorder.events.length, others)
      end.assertEmpty()
    }
  })

  test('other streams may be opened, reset, stopped and sent on', () => {
    const end = new StreamEnd(false)
    const { stream, recorder } = end.open(true)
    const { stream: other, recorder: otherRecorder } = end.open(true)
    end.data(4, 0, 5)
    const opened: Recorder[] = []
    recorder.react = (event): void => {
      const next = end.open(true)
      opened.push(next.recorder)
      next.stream.send(octets(0, 10), 0, 10, true)
      other.send(octets(0, 1), 0, 1, false)
      if (event !== 'close') return
      other.stopSending(1)
      other.reset(2)
    }
    end.data(0, 0, 5, true)
    stream.send(octets(0, 5), 0, 5, true)
    end.ackAll(end.writeAll())
    assert.deepEqual(recorder.events, ['data 5 fin', 'sent 5', 'close'])
    assert.equal(opened.length, 3)
    for (const id of [8, 12, 16]) end.data(id, 0, 3, true)
    end.ackAll(end.writeAll())
    end.data(4, 5, 5, true)
    end.ackAll(end.writeAll())
    for (const { events } of opened) assert.equal(events.at(-1), 'close')
    assert.equal(otherRecorder.events.at(-1), 'close')
    end.assertEmpty()
  })

  test('a stream may end another that is over in the same run: each is told once', () => {
    const end = new StreamEnd(true)
    for (const id of [2, 6, 10]) end.data(id, 0, 5)
    const streams = [2, 6, 10].map((id) => end.acceptedStream(id))
    for (const { recorder } of streams) {
      recorder.react = (event): void => {
        if (event === 'close') for (const { stream } of streams) stream.stopSending(1)
      }
    }
    // The sizes are known; the last octets are not there.
    for (const id of [6, 10]) end.data(id, 8, 9, true)
    end.data(2, 5, 6, true)
    assert.deepEqual(
      streams.map(({ recorder }) => recorder.events),
      [
        ['data 5', 'data 1 fin', 'close'],
        ['data 5', 'close'],
        ['data 5', 'close'],
      ],
    )
    assert.equal(end.write(), undefined)
    end.assertEmpty()
  })

  test('a stream that is stopped and reset as it is accepted is told nothing but its close', () => {
    const end = new StreamEnd(true)
    const accept = end.onStream.bind(end)
    end.onStream = (stream): Recorder => {
      const recorder = accept(stream) as Recorder
      stream.stopSending(3)
      stream.reset(4)
      return recorder
    }
    end.data(0, 0, 5)
    end.data(0, 5, 9, true)
    end.ackAll(end.writeAll())
    assert.deepEqual(end.acceptedStream(0).recorder.events, ['close'])
    assert.equal(end.set.receiveWindow.consumed, 9)
    end.assertEmpty()
  })
})

describe('a handler that throws', () => {
  /** Calls what is said to throw; the others are told after all. */
  function assertThrows(call: () => unknown): void {
    assert.throws(call, /as it likes/)
  }
  const throwAt =
    (what: string) =>
    (event: string): void => {
      if (event.startsWith(what)) throw new Error('as it likes')
    }

  test('in onData leaves a stream that goes on, or is over', () => {
    const end = new StreamEnd(true)
    end.data(2, 0, 1)
    const { recorder } = end.acceptedStream(2)
    recorder.react = throwAt('data')
    assertThrows(() => end.data(2, 1, 5))
    assertThrows(() => end.data(2, 5, 9, true))
    end.set.settle()
    assert.deepEqual(recorder.events, ['data 1', 'data 4', 'data 4 fin', 'close'])
    assert.equal(end.set.receiveWindow.consumed, 9)
    end.assertEmpty()
  })

  test('in onReset and onStopSending leaves a stream that ends', () => {
    const end = new StreamEnd(true)
    end.data(0, 0, 1)
    const { recorder } = end.acceptedStream(0)
    recorder.react = (event): void => {
      throwAt('reset')(event)
      throwAt('stop')(event)
    }
    assertThrows(() => end.set.receiveResetStream(0, 1, 1))
    assertThrows(() => end.set.receiveStopSending(0, 1))
    end.ackAll(end.writeAll())
    assert.deepEqual(recorder.events, ['data 1', 'reset 1', 'stop 1', 'close'])
    end.assertEmpty()
  })

  test('in onSent and onClose does not keep the others from being told', () => {
    const end = new StreamEnd(false)
    const all = [0, 1, 2].map(() => end.open(false))
    for (const { stream, recorder } of all) {
      recorder.react = (event): void => {
        throwAt('sent')(event)
        throwAt('close')(event)
      }
      stream.send(octets(0, 5), 0, 5, true)
    }
    const sent = end.write()
    assert.ok(sent)
    for (const _ of all) assertThrows(() => end.set.settle())
    end.set.settle()
    assertThrows(() => end.acked(sent))
    for (const _ of all.slice(1)) assertThrows(() => end.set.settle())
    end.set.settle()
    for (const { recorder } of all) assert.deepEqual(recorder.events, ['sent 5', 'close'])
    end.assertEmpty()
  })
})
