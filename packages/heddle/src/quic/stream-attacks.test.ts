/** What peers do to streams that mean no good, or cannot do better. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { DebugFrame } from './debug-frame.ts'
import { writeDebugFrame } from './debug-frame.ts'
import { PacketWriter } from './packet-writer.ts'
import { mostGaps } from './reassembly.ts'
import { SentPacket } from './sent-packet.ts'
import { octets, StreamEnd, type Sent } from './stream-end.test.ts'
import { TransportError, type TransportFault } from './transport-error.ts'

function assertFault(fault: TransportFault | undefined, code: number): void {
  assert.equal(fault?.code, code)
}

/** The octets that streams keep before their turn. */
function pinned(end: StreamEnd): number {
  let count = 0
  for (const { receiving } of end.set.table.values()) count += receiving?.pieces.pinned ?? 0
  return count
}

test('one-octet gaps: the connection ends at the thousandth, and what they pinned is no more than the window', () => {
  const end = new StreamEnd(true)
  let fault: TransportFault | undefined
  let gaps = 0
  for (; fault === undefined; gaps++) fault = end.data(0, 1 + 2 * gaps, 2 + 2 * gaps)
  assertFault(fault, TransportError.internalError)
  assert.equal(gaps, mostGaps + 1)
  assert.ok(pinned(end) <= 16_384)
})

test('one octet in each block of each window: what is pinned is the connection’s window, and a block for each stream', () => {
  const end = new StreamEnd(true)
  end.consumes = false
  let fault: TransportFault | undefined
  for (let id = 0; fault === undefined && id < 400; id += 4) {
    for (let offset = 1; fault === undefined && offset < 1 << 18; offset += 8_192) fault = end.data(id, offset, offset + 1)
  }
  assertFault(fault, TransportError.flowControlError)
  assert.ok(pinned(end) <= (1 << 20) + 8_192 * end.set.size, `${pinned(end)} octets`)
})

test('a window in pieces of one packet behind a packet that is lost is no attack, however large it is', () => {
  const end = new StreamEnd(true, { initialMaxStreamData: 1 << 24, initialMaxData: 1 << 24 })
  const packet = 1_200
  const bytes = new Uint8Array(packet)
  const size = (1 << 24) - packet
  let came = 0
  end.data(0, 0, 0)
  end.set.table.get(0)!.handler = {
    onData: (_buffer, start, limit) => void (came += limit - start),
    onReset() {},
    onStopSending() {},
    onSent() {},
    onClose() {},
  }
  for (let offset = packet; offset < size; offset += packet) assert.equal(end.bytes(0, offset, bytes), undefined)
  assert.equal(came, 0)
  end.bytes(0, 0, bytes)
  assert.equal(came, end.set.receiveWindow.received)
  assert.equal(pinned(end), 0)
})

test('overlapping octets that differ: what was handed on, or kept first, is what counts', () => {
  const end = new StreamEnd(true)
  const wrong = new Uint8Array(100)
  end.data(0, 0, 5)
  end.data(0, 10, 20)
  assert.equal(end.bytes(0, 0, wrong.subarray(0, 5)), undefined)
  assert.equal(end.bytes(0, 12, wrong.subarray(0, 5)), undefined)
  end.data(0, 5, 10)
  assert.equal(end.acceptedStream(0).recorder.came, 20)
})

test('offsets and sizes past all bounds are faults, and cost nothing', () => {
  for (const offset of [2 ** 31, 2 ** 32, 2 ** 53 - 2, 2 ** 62 - 2]) {
    const end = new StreamEnd(true)
    assertFault(end.data(0, offset, offset + 1), TransportError.flowControlError)
    assert.equal(pinned(end), 0)
    assertFault(new StreamEnd(true).set.receiveResetStream(0, 0, offset), TransportError.flowControlError)
  }
})

test('credit past all bounds is taken as it is, and less than before is ignored', () => {
  const end = new StreamEnd(true, { peer: { initialMaxData: 0, initialMaxStreamDataBidiLocal: 0 } })
  end.data(0, 0, 1)
  const { stream } = end.acceptedStream(0)
  stream.send(octets(0, 10), 0, 10, false)
  for (const maximum of [2 ** 62 - 1, 5, 0]) {
    assert.equal(end.set.receiveMaxData(maximum), undefined)
    assert.equal(end.set.receiveMaxStreamData(0, maximum), undefined)
  }
  assert.deepEqual(
    end.frames().flatMap((frame) => (frame.type === 'STREAM' ? [frame.data.length] : [])),
    [10],
  )
})

/** A packet of the peer's. */
function packetOf(frames: readonly DebugFrame[]): Sent {
  const writer = new PacketWriter()
  writer.startDatagram(new Uint8Array(2_000), 0, 2_000)
  assert.ok(writer.startShort(new Uint8Array(0), 0, -1, 0, false))
  for (const frame of frames) assert.ok(writeDebugFrame(writer, frame))
  return { packet: new SentPacket(), payload: writer.buffer.slice(writer.payloadStart, writer.at) }
}

test('MAX_STREAMS beyond 2^60 is a fault, 2^60 is not (RFC 9000 §19.11)', () => {
  const end = new StreamEnd(false)
  assert.equal(end.read(packetOf([{ type: 'MAX_STREAMS', bidirectional: true, maximum: 2 ** 60 }])), undefined)
  end.open(true)
  assertFault(end.read(packetOf([{ type: 'MAX_STREAMS', bidirectional: true, maximum: 2 ** 61 }])), TransportError.frameEncodingError)
})

test('a flood of frames for a stream that is over, or of empty ones, leaves nothing behind', () => {
  const end = new StreamEnd(true)
  end.data(2, 0, 1, true)
  end.data(6, 0, 1)
  for (let i = 0; i < 10_000; i++) {
    assert.equal(end.data(2, 0, 1, true), undefined)
    assert.equal(end.data(6, 1, 1), undefined)
    assert.equal(end.set.receiveStreamDataBlocked(6), undefined)
    assert.equal(end.set.receiveResetStream(2, 0, 1), undefined)
  }
  assert.equal(end.set.size, 1)
  assert.equal(end.write(), undefined)
  assert.deepEqual(end.acceptedStream(6).recorder.events, ['data 1'])
})

test('opened and reset at once, over and over: no more streams than are allowed stand in any table', () => {
  const end = new StreamEnd(true, { maxBidirectionalStreams: 10 })
  let packets = 0
  for (let number = 0; number < 5_000; number++) {
    const id = number * 4
    assert.equal(end.set.receiveResetStream(id, 0, 0), undefined)
    assert.equal(end.set.receiveStopSending(id, 0), undefined)
    assert.ok(end.set.size <= 10)
    // The streams end with the acknowledgement of what answers STOP_SENDING.
    const sent = end.writeAll()
    packets += sent.length
    end.ackAll(sent)
    end.accepted.clear()
  }
  assert.ok(packets < 10_000)
  end.ackAll(end.writeAll())
  end.assertEmpty()
})

test('a peer that acknowledges nothing gets no more streams, and the connection keeps no more than those', () => {
  const end = new StreamEnd(true, { maxBidirectionalStreams: 10 })
  let fault: TransportFault | undefined
  let number = 0
  for (; fault === undefined; number++) {
    fault = end.set.receiveStopSending(number * 4, 0) ?? end.set.receiveResetStream(number * 4, 0, 0)
    end.writeAll()
  }
  assertFault(fault, TransportError.streamLimitError)
  assert.equal(number, 11)
  assert.equal(end.set.size, 10)
})

test('a peer that acknowledges every second packet makes no work that grows with all that is under way', () => {
  const end = new StreamEnd(false, { peer: { initialMaxData: 1 << 24, initialMaxStreamDataBidiRemote: 1 << 24 } })
  const { stream, recorder } = end.open(true)
  const size = 4_000_000
  stream.sendOwned(octets(0, size), true)
  const sent = end.writeAll()
  sent.forEach((each, index) => void (index % 2 === 1 && end.acked(each)))
  sent.forEach((each, index) => void (index % 2 === 0 && end.lost(each)))
  assert.equal(stream.sending?.buffer.lost.count, Math.ceil(sent.length / 2))
  end.ackAll(end.writeAll())
  assert.equal(recorder.sent, size)
  assert.equal(stream.sending?.buffer.held, 0)
})

test('any frames in any order: a fault or none, never a throw, and never more than the windows in memory', () => {
  const streamId = fc.oneof(fc.nat(30), fc.constantFrom(400, 2 ** 31, 2 ** 40 + 1, 2 ** 53 - 1))
  const number = fc.oneof(fc.nat(50), fc.integer({ min: 0, max: 1 << 19 }), fc.constantFrom(2 ** 32, 2 ** 53 - 1))
  const frame: fc.Arbitrary<DebugFrame> = fc.oneof(
    fc.record({
      type: fc.constant('STREAM' as const),
      streamId,
      offset: number,
      data: fc.nat(300).map((size) => new Uint8Array(size)),
      fin: fc.boolean(),
    }),
    fc.record({ type: fc.constant('RESET_STREAM' as const), streamId, code: number, finalSize: number }),
    fc.record({ type: fc.constant('STOP_SENDING' as const), streamId, code: number }),
    fc.record({ type: fc.constantFrom('MAX_DATA' as const, 'DATA_BLOCKED' as const), maximum: number }),
    fc.record({ type: fc.constantFrom('MAX_STREAM_DATA' as const, 'STREAM_DATA_BLOCKED' as const), streamId, maximum: number }),
    fc.record({ type: fc.constantFrom('MAX_STREAMS' as const, 'STREAMS_BLOCKED' as const), bidirectional: fc.boolean(), maximum: number }),
  )
  fc.assert(
    fc.property(fc.boolean(), fc.array(frame, { maxLength: 60 }), fc.array(fc.nat(6)), (isServer, frames, acts) => {
      const end = new StreamEnd(isServer)
      let closes = 0
      const accept = end.onStream.bind(end)
      end.onStream = (stream) => {
        const handler = accept(stream)
        // The octets are not those that a Recorder checks.
        handler.onData = (_buffer, start, limit): void => stream.consume(limit - start)
        handler.onClose = (): void => void closes++
        return handler
      }
      const own = [end.open(true), end.open(false)]
      for (const { stream, recorder } of own) recorder.onData = (_buffer, start, limit): void => stream.consume(limit - start)
      frames.forEach((each, index) => {
        if (end.set.isClosed) return
        const fault = end.read(packetOf([each]))
        if (fault !== undefined) end.set.close()
        const act = acts[index % Math.max(1, acts.length)]
        for (const stream of [own[0]?.stream, ...[...end.accepted.values()].map((recorder) => recorder.stream)]) {
          if (act === 1) stream?.send(octets(0, 100), 0, 100, false)
          if (act === 2) stream?.reset(1)
          if (act === 3) stream?.stopSending(1)
        }
        const sent = end.writeAll()
        if (act === 4) end.ackAll(sent)
        if (act === 5) for (const one of sent) end.lost(one)
        assert.ok(pinned(end) <= (1 << 20) + 8_192 * end.set.size)
      })
      const live = [...end.accepted.keys()].filter((id) => end.set.table.has(id)).length
      if (!end.set.isClosed) assert.equal(closes + live, end.accepted.size)
    }),
    { numRuns: 300 },
  )
})
