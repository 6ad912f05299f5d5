import assert from 'node:assert/strict'
import { carriedWidth } from './carried.ts'
import { readDebugFrames, type DebugFrame } from './debug-frame.ts'
import { FrameReader } from './frame.ts'
import { FrameType } from './frame-type.ts'
import { PacketWriter } from './packet-writer.ts'
import type { Stream } from './quic-stream.ts'
import { SentPacket } from './sent-packet.ts'
import type { QuicStream, QuicStreamHandler } from './stream.ts'
import { hasStreamFrames, onStreamAcked, onStreamLost, writeStreamFrames } from './stream-frames.ts'
import { StreamSet, type StreamLimits, type StreamOwner } from './stream-set.ts'
import type { TransportFault } from './transport-error.ts'
import { TransportParameters } from './transport-parameters.ts'

const none = new Uint8Array(0)
const tagSize = 16

/** The octet at `offset` of every stream of the tests. */
export function octetAt(offset: number): number {
  return (offset * 31 + (offset >> 8)) & 0xff
}

/** The octets `[start, limit)` of every stream of the tests. */
export function octets(start: number, limit: number): Uint8Array {
  return Uint8Array.from({ length: limit - start }, (_, index) => octetAt(start + index))
}

/** A handler that takes note of what it is told; `data` is checked against {@link octetAt}. */
export class Recorder implements QuicStreamHandler {
  readonly events: string[]
  /** Octets that came. */
  came: number
  sent: number
  stream: QuicStream | undefined
  consumes: boolean
  /** Done in the call, after the note. */
  react: (event: string) => void

  constructor(consumes = true) {
    this.events = []
    this.came = 0
    this.sent = 0
    this.stream = undefined
    this.consumes = consumes
    this.react = (): void => {}
  }

  onData(buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    for (let i = start; i < limit; i++) {
      if (buffer[i] !== octetAt(this.came + i - start)) assert.fail(`octet ${this.came + i - start} is wrong`)
    }
    this.came += limit - start
    if (this.consumes) this.stream?.consume(limit - start)
    this.#note(`data ${limit - start}${fin ? ' fin' : ''}`)
  }
  onReset(errorCode: number): void {
    this.#note(`reset ${errorCode}`)
  }
  onStopSending(errorCode: number): void {
    this.#note(`stop ${errorCode}`)
  }
  onSent(byteCount: number, writable: boolean): void {
    this.sent += byteCount
    this.#note(`sent ${byteCount}${writable ? ' writable' : ''}`)
  }
  onClose(): void {
    this.#note('close')
  }

  #note(event: string): void {
    this.events.push(event)
    this.react(event)
  }
}

/** A packet of the tests: what it carried, and the octets of its frames. */
export interface Sent {
  readonly packet: SentPacket
  readonly payload: Uint8Array
}

export interface EndOptions extends Partial<StreamLimits> {
  /** What the peer allows; everything by default. */
  readonly peer?: Partial<TransportParameters>
}

/** The streams of one end, with packets that nobody protects. */
export class StreamEnd implements StreamOwner {
  readonly set: StreamSet
  readonly isServer: boolean
  roundTripTime: number
  now: number
  available: number
  /** The handlers of streams that the peer opened, by id. */
  readonly accepted: Map<number, Recorder>
  consumes: boolean
  nextNumber: number
  readonly #writer: PacketWriter
  readonly #reader: FrameReader

  constructor(isServer: boolean, { peer, ...limits }: EndOptions = {}) {
    this.isServer = isServer
    this.roundTripTime = 50
    this.now = 0
    this.available = 0
    this.accepted = new Map()
    this.consumes = true
    this.nextNumber = 0
    this.#writer = new PacketWriter()
    this.#reader = new FrameReader(!isServer)
    this.set = new StreamSet(this, isServer, {
      initialMaxData: 1 << 20,
      initialMaxStreamData: 1 << 18,
      largestWindow: 1 << 24,
      maxBidirectionalStreams: 100,
      maxUnidirectionalStreams: 16,
      ...limits,
    })
    this.set.setPeer(parametersOf(peer))
    this.available = 0
  }

  onStream(stream: QuicStream): QuicStreamHandler {
    const recorder = new Recorder(this.consumes)
    recorder.stream = stream
    this.accepted.set(stream.id, recorder)
    return recorder
  }
  onStreamsAvailable(): void {
    this.available++
  }
  onDirty(): void {}

  open(bidirectional = true): { stream: Stream; recorder: Recorder } {
    const recorder = new Recorder(this.consumes)
    const stream = this.set.open(bidirectional, recorder)
    assert.ok(stream)
    recorder.stream = stream
    return { stream, recorder }
  }

  /** A stream that the peer opened. */
  acceptedStream(id: number): { stream: QuicStream; recorder: Recorder } {
    const recorder = this.accepted.get(id)
    assert.ok(recorder?.stream)
    return { stream: recorder.stream, recorder }
  }

  /** One packet with `room` octets for frames; undefined: there is nothing to send, or no room for it. */
  write(room = 1_200): Sent | undefined {
    const writer = this.#writer
    const size = 2 + Math.max(3, room) + tagSize
    writer.startDatagram(new Uint8Array(size), 0, size)
    assert.ok(writer.startShort(none, 0, -1, 0, false))
    writer.limit = writer.at + room
    const packet = new SentPacket()
    packet.packetNumber = this.nextNumber
    writeStreamFrames(this.set, writer, packet, this.now)
    const payload = writer.buffer.slice(writer.payloadStart, writer.at)
    if (payload.length === 0) return undefined
    this.nextNumber++
    return { packet, payload }
  }

  /** Everything there is to send; handlers are told. */
  writeAll(room = 1_200): Sent[] {
    const all: Sent[] = []
    for (let sent = this.write(room); sent !== undefined; sent = this.write(room)) all.push(sent)
    this.set.settle()
    return all
  }

  /** The frames of everything there is to send. */
  frames(room = 1_200): DebugFrame[] {
    return this.writeAll(room).flatMap((sent) => framesOf(sent, this.isServer))
  }

  get hasFrames(): boolean {
    return hasStreamFrames(this.set)
  }

  acked({ packet: { packetNumber, carried } }: Sent): void {
    eachRecord(carried, (kind, a, b, c) => onStreamAcked(this.set, packetNumber, kind, a, b, c))
    this.set.settle()
  }

  lost({ packet: { packetNumber, carried } }: Sent): void {
    eachRecord(carried, (kind, a, b, c) => onStreamLost(this.set, packetNumber, kind, a, b, c))
    this.set.settle()
  }

  ackAll(all: readonly Sent[]): void {
    for (const sent of all) this.acked(sent)
  }

  /** Takes a packet of the other end. */
  read({ payload }: Sent): TransportFault | undefined {
    const reader = this.#reader
    const { set } = this
    reader.start(payload, 0, payload.length, 3)
    let fault: TransportFault | undefined
    while (fault === undefined && reader.next()) fault = receive(set, reader)
    set.settle()
    return fault ?? reader.fault
  }

  /** A STREAM frame of the peer's with the octets `[offset, limit)`. */
  data(id: number, offset: number, limit: number, fin = false): TransportFault | undefined {
    return this.bytes(id, offset, octets(offset, limit), fin)
  }

  bytes(id: number, offset: number, bytes: Uint8Array, fin = false): TransportFault | undefined {
    const fault = this.set.receiveStream(id, offset, bytes, 0, bytes.length, fin)
    this.set.settle()
    return fault
  }

  /** Nothing is left of any stream. */
  assertEmpty(): void {
    const { set } = this
    assert.equal(set.size, 0)
    for (const list of [set.uncredited, set.controlled, set.told, set.over]) assert.equal(list.length, 0)
    assert.equal(set.schedule.first, undefined)
  }
}

function receive(set: StreamSet, frame: FrameReader): TransportFault | undefined {
  const { streamId, maximum } = frame
  switch (frame.type) {
    case FrameType.stream:
      return set.receiveStream(streamId, frame.offset, frame.buffer, frame.dataStart, frame.dataLimit, frame.fin)
    case FrameType.resetStream:
      return set.receiveResetStream(streamId, frame.errorCode, frame.finalSize)
    case FrameType.stopSending:
      return set.receiveStopSending(streamId, frame.errorCode)
    case FrameType.maxData:
      return set.receiveMaxData(maximum)
    case FrameType.maxStreamData:
      return set.receiveMaxStreamData(streamId, maximum)
    case FrameType.maxStreamsBidirectional:
    case FrameType.maxStreamsUnidirectional:
      return set.receiveMaxStreams(frame.type === FrameType.maxStreamsBidirectional, maximum)
    case FrameType.streamDataBlocked:
      return set.receiveStreamDataBlocked(streamId)
    default:
      return undefined
  }
}

function eachRecord(carried: readonly number[], tell: (kind: number, a: number, b: number, c: number) => void): void {
  for (let i = 0; i < carried.length; i += carriedWidth) {
    tell(carried[i] as number, carried[i + 1] as number, carried[i + 2] as number, carried[i + 3] as number)
  }
}

function parametersOf(changes: Partial<TransportParameters> = {}): TransportParameters {
  const parameters = new TransportParameters()
  parameters.initialMaxData = 1 << 20
  parameters.initialMaxStreamDataBidiLocal = 1 << 18
  parameters.initialMaxStreamDataBidiRemote = 1 << 18
  parameters.initialMaxStreamDataUni = 1 << 18
  parameters.initialMaxStreamsBidi = 100
  parameters.initialMaxStreamsUni = 100
  return Object.assign(parameters, changes)
}

/** The frames of a packet, as objects. */
export function framesOf({ payload }: Sent, fromServer = false): DebugFrame[] {
  const { frames, fault } = readDebugFrames(payload, 3, fromServer)
  assert.equal(fault, undefined)
  return frames
}
