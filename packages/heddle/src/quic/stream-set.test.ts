import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { framesOf, octets, Recorder, StreamEnd } from './stream-end.test.ts'
import { TransportError } from './transport-error.ts'

function assertFault(fault: unknown, code: number): void {
  assert.equal((fault as { code: number } | undefined)?.code, code)
}

describe('ids (RFC 9000 §2.1)', () => {
  test('each end and each kind has its own', () => {
    const client = new StreamEnd(false)
    const server = new StreamEnd(true)
    assert.deepEqual(
      [client.open(true), client.open(true), client.open(false), client.open(false)].map(({ stream }) => stream.id),
      [0, 4, 2, 6],
    )
    assert.deepEqual(
      [server.open(true), server.open(true), server.open(false), server.open(false)].map(({ stream }) => stream.id),
      [1, 5, 3, 7],
    )
  })

  test('a stream that goes one way has one half', () => {
    const client = new StreamEnd(false)
    assert.equal(client.open(false).stream.receiving, undefined)
    client.data(3, 0, 1)
    const { stream } = client.acceptedStream(3)
    assert.equal(stream.send(octets(0, 1), 0, 1, false), false)
    stream.reset(1)
    assert.equal(client.write(), undefined)
  })
})

describe('what the peer allows at first', () => {
  const limits = {
    initialMaxStreamDataBidiLocal: 10,
    initialMaxStreamDataBidiRemote: 20,
    initialMaxStreamDataUni: 30,
  }

  test('is said from its side', () => {
    const end = new StreamEnd(false, { peer: limits })
    end.data(1, 0, 1)
    const streams = [end.open(true).stream, end.open(false).stream, end.acceptedStream(1).stream]
    for (const stream of streams) stream.send(octets(0, 50), 0, 50, false)
    const sizes = new Map(end.frames().flatMap((frame) => (frame.type === 'STREAM' ? [[frame.streamId, frame.data.length] as const] : [])))
    assert.deepEqual(
      [...sizes].toSorted(([a], [b]) => a - b),
      [
        [0, 20],
        [1, 10],
        [2, 30],
      ],
    )
  })
})

describe('how many streams this end may open (RFC 9000 §4.6)', () => {
  test('no more than the peer allows; it is told once, and the owner when there are more', () => {
    const end = new StreamEnd(false, { peer: { initialMaxStreamsBidi: 1, initialMaxStreamsUni: 0 } })
    end.open(true)
    assert.equal(end.set.open(true, new Recorder()), undefined)
    assert.equal(end.set.open(true, new Recorder()), undefined)
    assert.equal(end.set.open(false, new Recorder()), undefined)
    assert.deepEqual(end.frames(), [
      { type: 'STREAMS_BLOCKED', bidirectional: true, maximum: 1 },
      { type: 'STREAMS_BLOCKED', bidirectional: false, maximum: 0 },
    ])
    assert.equal(end.set.receiveMaxStreams(true, 1), undefined)
    assert.equal(end.available, 0)
    end.set.receiveMaxStreams(true, 3)
    assert.equal(end.available, 1)
    assert.equal(end.set.ids.openable(true), 2)
    // Less than before is ignored.
    end.set.receiveMaxStreams(true, 0)
    assert.equal(end.set.ids.openable(true), 2)
    end.open(true)
    end.open(true)
    assert.equal(end.set.open(true, new Recorder()), undefined)
    assert.deepEqual(end.frames(), [{ type: 'STREAMS_BLOCKED', bidirectional: true, maximum: 3 }])
  })

  test('STREAMS_BLOCKED that is lost is sent again, unless more are allowed', () => {
    const end = new StreamEnd(false, { peer: { initialMaxStreamsBidi: 0 } })
    end.set.open(true, new Recorder())
    const [first] = end.writeAll()
    assert.ok(first)
    end.lost(first)
    const [second] = end.writeAll()
    assert.ok(second)
    assert.deepEqual(framesOf(second), framesOf(first))
    end.set.receiveMaxStreams(true, 1)
    end.lost(second)
    assert.equal(end.write(), undefined)
  })
})

describe('streams that the peer opens', () => {
  test('are told when something comes, with all before them of their kind open, and costing nothing (RFC 9000 §3.2)', () => {
    const end = new StreamEnd(true)
    end.data(20, 0, 1)
    assert.deepEqual([...end.accepted.keys()], [20])
    assert.equal(end.set.size, 1)
    end.data(8, 0, 1)
    end.data(8, 1, 2)
    end.data(24, 0, 1)
    assert.deepEqual([...end.accepted.keys()], [20, 8, 24])
    // Of the other kind none is open.
    end.data(2, 0, 1)
    assert.equal(end.set.size, 4)
  })

  test('begin with any frame that may come first (RFC 9000 §3.1, §3.2)', () => {
    const starts = [
      (end: StreamEnd): unknown => end.set.receiveStopSending(0, 1),
      (end: StreamEnd): unknown => end.set.receiveMaxStreamData(0, 1 << 30),
      (end: StreamEnd): unknown => end.set.receiveResetStream(0, 1, 0),
      (end: StreamEnd): unknown => end.set.receiveStreamDataBlocked(0),
    ]
    for (const start of starts) {
      const end = new StreamEnd(true)
      assert.equal(start(end), undefined)
      assert.deepEqual([...end.accepted.keys()], [0])
    }
  })

  test('are as many as are allowed, and not one more', () => {
    const end = new StreamEnd(true, { maxBidirectionalStreams: 3, maxUnidirectionalStreams: 0 })
    assert.equal(end.data(8, 0, 1), undefined)
    assertFault(end.data(12, 0, 1), TransportError.streamLimitError)
    assertFault(end.data(2, 0, 1), TransportError.streamLimitError)
    assertFault(end.set.receiveStopSending(12, 1), TransportError.streamLimitError)
    assertFault(end.data(2 ** 53 - 4, 0, 1), TransportError.streamLimitError)
    assertFault(end.data(2 ** 62, 0, 1), TransportError.streamLimitError)
  })

  test('are allowed anew when some are over, a quarter at a time', () => {
    const end = new StreamEnd(true, { maxUnidirectionalStreams: 8 })
    end.data(2, 0, 1, true)
    assert.equal(end.write(), undefined)
    end.data(6, 0, 1, true)
    const sent = end.writeAll()
    assert.deepEqual(framesOf(sent[0] as (typeof sent)[0]), [{ type: 'MAX_STREAMS', bidirectional: false, maximum: 10 }])
    end.data(10, 0, 1, true)
    end.lost(sent[0] as (typeof sent)[0])
    assert.deepEqual(end.frames(), [{ type: 'MAX_STREAMS', bidirectional: false, maximum: 11 }])
  })

  test('are allowed anew one by one, if one at a time is all', () => {
    const end = new StreamEnd(true, { maxUnidirectionalStreams: 1, maxBidirectionalStreams: 0 })
    for (let number = 0; number < 5; number++) {
      assert.equal(end.data(2 + 4 * number, 0, 1), undefined)
      assertFault(new StreamEnd(true, { maxBidirectionalStreams: 0 }).data(0, 0, 1), TransportError.streamLimitError)
      assert.equal(end.write(), undefined)
      end.data(2 + 4 * number, 1, 1, true)
      assert.deepEqual(end.frames(), [{ type: 'MAX_STREAMS', bidirectional: false, maximum: number + 2 }])
    }
    assertFault(end.data(2 + 4 * 6, 0, 1), TransportError.streamLimitError)
  })

  test('are known when they are over: late frames do not open them again', () => {
    const end = new StreamEnd(true)
    end.data(6, 0, 1, true)
    assert.equal(end.data(6, 0, 1, true), undefined)
    assert.equal(end.set.receiveResetStream(6, 1, 1), undefined)
    assert.deepEqual([...end.accepted.keys()], [6])
    assert.equal(end.set.size, 0)
    // The one before it was never used, and may be.
    end.data(2, 0, 1, true)
    assert.deepEqual([...end.accepted.keys()], [6, 2])
  })
})

describe('frames for streams that they cannot be for', () => {
  test('a stream of ours that was not opened (RFC 9000 §19.8)', () => {
    const end = new StreamEnd(false)
    end.open(true)
    assertFault(end.data(4, 0, 1), TransportError.streamStateError)
    assertFault(end.set.receiveResetStream(4, 0, 0), TransportError.streamStateError)
    assertFault(end.set.receiveStopSending(4, 0), TransportError.streamStateError)
    assertFault(end.set.receiveMaxStreamData(4, 0), TransportError.streamStateError)
    assertFault(end.set.receiveStreamDataBlocked(4), TransportError.streamStateError)
    assertFault(end.set.receiveStopSending(2, 0), TransportError.streamStateError)
    assertFault(end.set.receiveMaxStreamData(2, 0), TransportError.streamStateError)
  })

  test('a stream that only we send on (RFC 9000 §19.4, §19.8, §19.13)', () => {
    const end = new StreamEnd(false)
    end.open(false)
    assertFault(end.data(2, 0, 1), TransportError.streamStateError)
    assertFault(end.set.receiveResetStream(2, 0, 0), TransportError.streamStateError)
    assertFault(end.set.receiveStreamDataBlocked(2), TransportError.streamStateError)
  })

  test('a stream that only the peer sends on (RFC 9000 §19.5, §19.10)', () => {
    const end = new StreamEnd(false)
    end.data(3, 0, 1)
    assertFault(end.set.receiveStopSending(3, 0), TransportError.streamStateError)
    assertFault(end.set.receiveMaxStreamData(3, 1), TransportError.streamStateError)
    assertFault(end.set.receiveMaxStreamData(7, 1), TransportError.streamStateError)
  })
})

describe('the order of sending', () => {
  test('is that of RFC 9218, and changes with setPriority while octets wait', () => {
    const end = new StreamEnd(false)
    const streams = [0, 1, 2].map(() => end.open(true).stream)
    const [first, second, third] = streams
    assert.ok(first && second && third)
    for (const stream of streams) stream.send(octets(0, 3_000), 0, 3_000, true)
    third.setPriority(1, false)
    first.setPriority(5, false)
    const ids = end.frames().flatMap((frame) => (frame.type === 'STREAM' ? [frame.streamId] : []))
    assert.deepEqual([...new Set(ids)], [third.id, second.id, first.id])
  })

  test('those that share take turns, packet by packet', () => {
    const end = new StreamEnd(false)
    for (let i = 0; i < 3; i++) {
      const { stream } = end.open(true)
      stream.setPriority(3, true)
      stream.send(octets(0, 3_000), 0, 3_000, true)
    }
    const ids = end.writeAll().map((sent) => framesOf(sent).flatMap((frame) => (frame.type === 'STREAM' ? [frame.streamId] : []))[0])
    assert.deepEqual(ids.slice(0, 6), [0, 4, 8, 0, 4, 8])
  })

  test('what was lost, control frames and credit go before new octets', () => {
    const end = new StreamEnd(false, { initialMaxData: 100 })
    const { stream } = end.open(true)
    stream.send(octets(0, 10), 0, 10, false)
    const [lost] = end.writeAll()
    assert.ok(lost)
    end.lost(lost)
    const urgent = end.open(true).stream
    urgent.setPriority(0, false)
    urgent.send(octets(0, 10), 0, 10, false)
    end.open(true).stream.reset(1)
    end.data(3, 0, 60)
    assert.deepEqual(
      end.frames().map(({ type }) => type),
      ['MAX_DATA', 'RESET_STREAM', 'STREAM', 'STREAM'],
    )
  })
})

describe('rooms', () => {
  test('whatever room packets have, all frames come once, in some packet', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 60 }), (rooms) => {
        const end = new StreamEnd(false, { initialMaxData: 100, initialMaxStreamData: 60, peer: { initialMaxStreamsUni: 2 } })
        const { stream } = end.open(false)
        stream.send(octets(0, 100), 0, 100, true)
        end.open(false).stream.reset(70)
        end.set.open(false, new Recorder())
        end.data(1, 0, 40)
        end.data(5, 0, 20)
        end.acceptedStream(5).stream.stopSending(9)
        const all = rooms.flatMap((room) => {
          const sent = end.write(room)
          if (sent !== undefined) assert.ok(sent.payload.length <= room)
          return sent === undefined ? [] : framesOf(sent)
        })
        all.push(...end.frames())
        const control = all.filter(({ type }) => type !== 'STREAM' && type !== 'PADDING')
        assert.deepEqual(control.map(({ type }) => type).toSorted(), [
          'MAX_DATA',
          'MAX_STREAM_DATA',
          'RESET_STREAM',
          'STOP_SENDING',
          'STREAMS_BLOCKED',
        ])
        let at = 0
        for (const frame of all) {
          if (frame.type !== 'STREAM') continue
          assert.equal(frame.offset, at)
          at += frame.data.length
          assert.equal(frame.fin, at === 100)
        }
        assert.equal(at, 100)
        assert.equal(end.hasFrames, false)
      }),
      { numRuns: 100 },
    )
  })
})

describe('the end of the connection', () => {
  test('nothing is told, sent or opened any more', () => {
    const end = new StreamEnd(false)
    const { stream, recorder } = end.open(true)
    end.data(0, 0, 5)
    stream.send(octets(0, 5), 0, 5, false)
    const events = recorder.events.length
    end.set.close()
    end.assertEmpty()
    assert.equal(stream.send(octets(0, 5), 0, 5, true), false)
    assert.equal(stream.sendOwned(octets(0, 5), true), false)
    stream.consume(5)
    stream.reset(1)
    stream.stopSending(1)
    stream.setPriority(1, true)
    stream.limitWindow(1)
    end.set.settle()
    end.assertEmpty()
    assert.equal(end.hasFrames, false)
    assert.equal(recorder.events.length, events)
    assert.equal(end.set.open(true, new Recorder()), undefined)
  })

  test('by a handler that is told something: it is told nothing more, and what waits is let go', () => {
    const end = new StreamEnd(true)
    end.data(0, 10, 20_000)
    end.data(4, 0, 5)
    const { recorder, stream } = end.acceptedStream(0)
    stream.send(octets(0, 5), 0, 5, false)
    const { pieces } = end.set.table.get(0)?.receiving ?? assert.fail()
    recorder.react = (): void => end.set.close()
    end.data(0, 0, 10)
    assert.deepEqual(recorder.events, ['data 10'])
    assert.equal(pieces.pinned, 0)
    end.assertEmpty()
  })

  test('by the owner when it hears of a stream: the stream is told nothing', () => {
    for (const receive of [
      (end: StreamEnd): unknown => end.data(0, 0, 5, true),
      (end: StreamEnd): unknown => end.set.receiveResetStream(0, 1, 5),
      (end: StreamEnd): unknown => end.set.receiveStopSending(0, 1),
    ]) {
      const end = new StreamEnd(true)
      const accept = end.onStream.bind(end)
      end.onStream = (stream) => {
        end.set.close()
        return accept(stream)
      }
      assert.equal(receive(end), undefined)
      end.set.settle()
      assert.deepEqual(end.acceptedStream(0).recorder.events, [])
      end.assertEmpty()
    }
  })
})
