import { varintSize, writeVarint } from '../bytes/index.ts'
import { originsPayload } from '../http/index.ts'
import type { QuicStream, QuicStreamHandler } from '../quic/index.ts'
import type { Connection } from './connection.ts'
import { ControlReader } from './control-frames.ts'
import { ErrorCode, FrameType, frameHeaderSize, PartialVarint, StreamType, writeFrameHeader } from './frame.ts'
import { Stage } from './lifetime.ts'
import { ControlReceiver } from './receive-control.ts'

/** More than this waiting on a critical stream is waiting for a peer that does not read (or acknowledge). */
const mostQueued = 262_144

/**
 * The unidirectional streams of a connection (RFC 9114 §6.2): control and QPACK's two, of each side. What is to be
 * said on one of ours before QUIC lets us open it waits.
 */
export class Streams {
  readonly #owner: Connection
  readonly #control: OwnStream
  readonly #encoder: OwnStream
  readonly #decoder: OwnStream
  readonly #receiver: ControlReceiver
  readonly #reader: ControlReader
  /** Types of the peer's critical streams that have come. */
  #seen: number

  constructor(owner: Connection) {
    this.#owner = owner
    this.#control = new OwnStream(owner, StreamType.Control)
    this.#encoder = new OwnStream(owner, StreamType.Encoder)
    this.#decoder = new OwnStream(owner, StreamType.Decoder)
    this.#receiver = new ControlReceiver(owner)
    this.#reader = new ControlReader(this.#receiver)
    this.#seen = 0
  }

  /** QUIC may open streams now, or more of them than before. The control stream is the first. */
  open(): void {
    if (this.#control.open() && this.#encoder.open()) this.#decoder.open()
    this.#owner.qpack.allowInstructions()
  }

  // ── Ours ────────────────────────────────────────────────────────────────────────────────────────

  sendControl(frame: Uint8Array): void {
    this.#send(this.#control, frame, 0, frame.length)
  }

  sendGoaway(id: number): void {
    const size = varintSize(id)
    const frame = new Uint8Array(frameHeaderSize(FrameType.Goaway, size) + size)
    writeVarint(frame, writeFrameHeader(frame, 0, FrameType.Goaway, size), id)
    this.sendControl(frame)
  }

  /** RFC 9412. Throws UsageError for what is no origin. */
  sendOrigins(origins: readonly string[]): void {
    const payload = originsPayload(origins)
    const frame = new Uint8Array(frameHeaderSize(FrameType.Origin, payload.length) + payload.length)
    frame.set(payload, writeFrameHeader(frame, 0, FrameType.Origin, payload.length))
    this.sendControl(frame)
  }

  /** Instructions of our encoder (RFC 9204 §4.3). */
  sendEncoder(buffer: Uint8Array, start: number, limit: number): void {
    this.#send(this.#encoder, buffer, start, limit)
  }

  /** Of those, the octets that have not left; Infinity: QUIC has no stream for them. */
  get encoderQueued(): number {
    return this.#encoder.isOpen ? this.#encoder.queued : Infinity
  }

  /** Instructions of our decoder (RFC 9204 §4.4). */
  sendDecoder(buffer: Uint8Array, start: number, limit: number): void {
    this.#send(this.#decoder, buffer, start, limit)
  }

  #send(stream: OwnStream, buffer: Uint8Array, start: number, limit: number): void {
    stream.send(buffer, start, limit)
    if (stream.queued <= mostQueued) return
    this.#owner.lifetime.fail(ErrorCode.ExcessiveLoad, 'too much is waiting to be read')
  }

  // ── The peer's ──────────────────────────────────────────────────────────────────────────────────

  accept(quic: QuicStream): QuicStreamHandler {
    return new PeerStream(this.#owner, quic)
  }

  /** What a PRIORITY_UPDATE said of a request before it came. */
  takeEarlyPriority(streamId: number): string | undefined {
    return this.#receiver.takeEarlyPriority(streamId)
  }

  /** A stream of the peer says what it is. True: its octets are wanted. */
  identify(type: number): boolean {
    const { lifetime, isServer } = this.#owner
    if (type === StreamType.Push) {
      // RFC 9114 §6.2.2: only servers push, and only where a MAX_PUSH_ID allows it.
      if (isServer) lifetime.fail(ErrorCode.StreamCreationError, 'a push stream from a client')
      else lifetime.fail(ErrorCode.IdError, 'a push stream without a MAX_PUSH_ID')
      return false
    }
    if (type !== StreamType.Control && type !== StreamType.Encoder && type !== StreamType.Decoder) {
      // RFC 9114 §6.2, RFC 9114 §6.2.3: streams of unknown types are not read.
      this.spend()
      return false
    }
    // RFC 9114 §6.2.1, RFC 9204 §4.2: one of each.
    if ((this.#seen & (1 << type)) !== 0) {
      lifetime.fail(ErrorCode.StreamCreationError, 'a critical stream that is there already')
      return false
    }
    this.#seen |= 1 << type
    return true
  }

  /** Counts a stream that says nothing. */
  spend(): void {
    const { lifetime, emptyFrames, now } = this.#owner
    if (!emptyFrames.take(now)) lifetime.fail(ErrorCode.ExcessiveLoad, 'too many streams that say nothing')
  }

  receiveCritical(type: number, buffer: Uint8Array, start: number, limit: number): void {
    const { qpack } = this.#owner
    if (type === StreamType.Control) this.#reader.receive(buffer, start, limit)
    else if (type === StreamType.Encoder) qpack.receiveEncoder(buffer, start, limit)
    else qpack.receiveDecoder(buffer, start, limit)
  }
}

/** A critical stream of ours (RFC 9114 §6.2.1): it never ends. */
class OwnStream implements QuicStreamHandler {
  /** Octets that wait to leave for the first time. */
  queued: number
  readonly #owner: Connection
  readonly #type: number
  #quic: QuicStream | undefined
  /** What was said before QUIC had a stream for it. */
  readonly #early: Uint8Array[]

  constructor(owner: Connection, type: number) {
    this.queued = 0
    this.#owner = owner
    this.#type = type
    this.#quic = undefined
    this.#early = []
  }

  /** True: it is open. */
  open(): boolean {
    if (this.#quic !== undefined) return true
    const quic = this.#owner.transport.open(false, this)
    if (quic === undefined) return false
    this.#quic = quic
    // What the peer waits for goes before every message.
    quic.setPriority(0, true)
    this.queued = 0
    this.send(Uint8Array.of(this.#type), 0, 1)
    for (const bytes of this.#early) this.send(bytes, 0, bytes.length)
    this.#early.length = 0
    return true
  }

  get isOpen(): boolean {
    return this.#quic !== undefined
  }

  send(buffer: Uint8Array, start: number, limit: number): void {
    this.queued += limit - start
    if (this.#quic === undefined) this.#early.push(Uint8Array.prototype.slice.call(buffer, start, limit))
    else this.#quic.send(buffer, start, limit, false)
  }

  onSent(byteCount: number): void {
    this.queued -= byteCount
    if (this.#type === StreamType.Encoder) this.#owner.qpack.allowInstructions()
  }

  // RFC 9114 §6.2.1: a critical stream must not be closed, nor its sender asked to.
  onStopSending(): void {
    this.#owner.lifetime.fail(ErrorCode.ClosedCriticalStream, 'the peer does not read a critical stream')
  }

  // It goes one way only.
  onData(): void {}
  onReset(): void {}
  onClose(): void {}
}

/** A unidirectional stream of the peer, which first says what it is. */
class PeerStream implements QuicStreamHandler {
  readonly #owner: Connection
  readonly #quic: QuicStream
  readonly #type: PartialVarint
  /** Nothing of it is wanted. */
  #skips: boolean

  constructor(owner: Connection, quic: QuicStream) {
    this.#owner = owner
    this.#quic = quic
    this.#type = new PartialVarint()
    this.#skips = false
  }

  onData(buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    const { lifetime, streams } = this.#owner
    if (lifetime.stage !== Stage.Open) return
    let at = start
    if (!this.#type.isComplete) {
      at = this.#type.read(buffer, at, limit)
      if (this.#type.isComplete && !streams.identify(this.#type.value)) {
        this.#skips = true
        // RFC 9114 §6.2.3
        this.#quic.stopSending(ErrorCode.StreamCreationError)
      }
    }
    if (!this.#skips && at < limit) streams.receiveCritical(this.#type.value, buffer, at, limit)
    this.#quic.consume(limit - start)
    if (fin) this.#over()
  }

  onReset(): void {
    this.#over()
  }

  /** RFC 9114 §6.2: a stream may end before it has said what it is, and must not if it is critical. */
  #over(): void {
    const { lifetime, streams } = this.#owner
    if (this.#skips) return
    if (this.#type.isComplete) lifetime.fail(ErrorCode.ClosedCriticalStream, 'a critical stream was closed')
    else streams.spend()
  }

  // It goes one way only.
  onStopSending(): void {}
  onSent(): void {}
  onClose(): void {}
}
