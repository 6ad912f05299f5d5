import { FrameType } from './frame-type.ts'
import { ReceiveWindow, SendWindow } from './flow.ts'
import { Queue } from './queue.ts'
import { Stream } from './quic-stream.ts'
import { Receiving, type ReceiveHalf } from './receive-stream.ts'
import { Schedule } from './schedule.ts'
import { Sending, type SendHalf } from './send-stream.ts'
import { SentValue } from './sent-value.ts'
import type { QuicStream, QuicStreamHandler } from './stream.ts'
import { StreamIds } from './stream-ids.ts'
import { makeStream, receiverOf, senderOf } from './stream-lookup.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'
import type { TransportParameters } from './transport-parameters.ts'

/** What a connection's streams need of it. */
export interface StreamOwner {
  /** The peer opened `stream`: its handler. */
  onStream(stream: QuicStream): QuicStreamHandler
  /** The peer allows more streams. */
  onStreamsAvailable(): void
  /** Something waits to be sent, or told, that did not before. */
  onDirty(): void
  /** Smoothed, ms. */
  readonly roundTripTime: number
}

/** What the streams of a connection may have of its peer. */
export interface StreamLimits {
  readonly initialMaxData: number
  readonly initialMaxStreamData: number
  readonly largestWindow: number
  readonly maxBidirectionalStreams: number
  readonly maxUnidirectionalStreams: number
}

/**
 * All streams of a connection that are not over. One that is over is in no table any more: frames for it
 * that come late are known by their id, which is below the next one.
 */
export class StreamSet {
  readonly owner: StreamOwner
  readonly isServer: boolean
  readonly limits: StreamLimits
  readonly ids: StreamIds
  readonly table: Map<number, Stream>
  /** What the connection may send and receive in all (RFC 9000 §4.1). */
  readonly sendWindow: SendWindow
  readonly receiveWindow: ReceiveWindow
  /** MAX_DATA. */
  readonly credit: SentValue
  /** DATA_BLOCKED, for the limit that was met last. */
  readonly blocked: SentValue
  blockedAt: number
  /** Streams with octets that need credit, and have their own. */
  readonly schedule: Schedule<Stream>
  /** Streams with something lost, or a bare end. */
  readonly uncredited: Queue<Stream>
  /** Streams with control frames to send. */
  readonly controlled: Queue<Stream>
  /** Streams whose handler is to hear of what was sent. */
  readonly told: Queue<Stream>
  /** Streams whose handler is to hear that they are over. */
  readonly over: Queue<Stream>
  /** The connection is over: nothing is sent, received or told any more. */
  isClosed: boolean
  /** What the peer allows each kind of stream at first. */
  peer: TransportParameters | undefined

  constructor(owner: StreamOwner, isServer: boolean, limits: StreamLimits) {
    this.owner = owner
    this.isServer = isServer
    this.limits = limits
    this.ids = new StreamIds(isServer, limits.maxBidirectionalStreams, limits.maxUnidirectionalStreams)
    this.table = new Map()
    this.sendWindow = new SendWindow(0)
    this.receiveWindow = new ReceiveWindow(limits.initialMaxData, limits.largestWindow)
    this.credit = new SentValue()
    this.blocked = new SentValue()
    this.blockedAt = -1
    this.schedule = new Schedule()
    this.uncredited = new Queue()
    this.controlled = new Queue()
    this.told = new Queue()
    this.over = new Queue()
    this.isClosed = false
    this.peer = undefined
  }

  /** The peer's transport parameters: what may be opened and sent from now on. */
  setPeer(parameters: TransportParameters): void {
    this.peer = parameters
    this.sendWindow.raise(parameters.initialMaxData)
    const more = this.ids.allow(true, parameters.initialMaxStreamsBidi)
    if (this.ids.allow(false, parameters.initialMaxStreamsUni) || more) this.owner.onStreamsAvailable()
  }

  /** Opens a stream; undefined: the peer allows no more now, which it is told (RFC 9000 §4.6). */
  open(bidirectional: boolean, handler: QuicStreamHandler): Stream | undefined {
    if (this.isClosed) return undefined
    const id = this.ids.open(bidirectional)
    if (id < 0) {
      this.owner.onDirty()
      return undefined
    }
    const stream = makeStream(this, id)
    stream.handler = handler
    return stream
  }

  // ── what the peer sends ─────────────────────────────────────────────────────────────────────────

  receiveStream(id: number, offset: number, buffer: Uint8Array, start: number, limit: number, fin: boolean): TransportFault | undefined {
    const stream = receiverOf(this, id, FrameType.stream)
    if (!(stream instanceof Stream)) return stream
    const receiving = stream.receiving as ReceiveHalf
    const more = receiving.extend(offset + limit - start, fin, FrameType.stream)
    if (typeof more !== 'number') return more
    if (more > 0 && !this.receiveWindow.take(more)) {
      return transportFault(TransportError.flowControlError, FrameType.stream, 'more data than the connection may have')
    }
    if (receiving.state === Receiving.Ended) return undefined
    return this.#deliver(stream, receiving, offset, buffer, start, limit)
  }

  receiveResetStream(id: number, errorCode: number, finalSize: number): TransportFault | undefined {
    const stream = receiverOf(this, id, FrameType.resetStream)
    if (!(stream instanceof Stream)) return stream
    const receiving = stream.receiving as ReceiveHalf
    const more = receiving.extend(finalSize, true, FrameType.resetStream)
    if (typeof more !== 'number') return more
    if (more > 0 && !this.receiveWindow.take(more)) {
      return transportFault(TransportError.flowControlError, FrameType.resetStream, 'more data than the connection may have')
    }
    if (receiving.state === Receiving.Ended) return undefined
    const wasStopped = receiving.isStopped
    // What is lost, or was not consumed, is the connection's again.
    this.#creditRest(receiving)
    this.#endReceiving(stream, receiving)
    if (!wasStopped) stream.handler.onReset(errorCode)
    return undefined
  }

  receiveStopSending(id: number, errorCode: number): TransportFault | undefined {
    const stream = senderOf(this, id, FrameType.stopSending)
    if (!(stream instanceof Stream)) return stream
    const sending = stream.sending as SendHalf
    if (sending.state === Sending.Ended || sending.state === Sending.Reset) return undefined
    // RFC 9000 §3.5.
    stream.reset(errorCode)
    stream.handler.onStopSending(errorCode)
    return undefined
  }

  receiveMaxData(maximum: number): TransportFault | undefined {
    if (this.sendWindow.raise(maximum)) this.blocked.clear()
    return undefined
  }

  receiveMaxStreamData(id: number, maximum: number): TransportFault | undefined {
    const stream = senderOf(this, id, FrameType.maxStreamData)
    if (!(stream instanceof Stream)) return stream
    const sending = stream.sending as SendHalf
    if (!sending.window.raise(maximum)) return undefined
    sending.blocked.clear()
    if (sending.hasCredited) this.schedule.add(stream)
    return undefined
  }

  receiveMaxStreams(bidirectional: boolean, maximum: number): TransportFault | undefined {
    if (this.ids.allow(bidirectional, maximum)) this.owner.onStreamsAvailable()
    return undefined
  }

  receiveStreamDataBlocked(id: number): TransportFault | undefined {
    const stream = receiverOf(this, id, FrameType.streamDataBlocked)
    return stream instanceof Stream ? undefined : stream
  }

  // ── what the streams themselves say ─────────────────────────────────────────────────────────────

  onWritten(stream: Stream, sending: SendHalf): void {
    this.#queue(stream, sending)
    this.owner.onDirty()
  }

  onReset(stream: Stream): void {
    if (this.isClosed) return
    this.schedule.remove(stream)
    this.#control(stream)
    this.owner.onDirty()
  }

  onStopped(stream: Stream, receiving: ReceiveHalf): void {
    if (this.isClosed) return
    receiving.pieces.clear()
    this.#creditRest(receiving)
    if (receiving.state === Receiving.SizeKnown) {
      // RFC 9000 §3.5: all of it is known to have been sent, so there is nothing to stop.
      receiving.state = Receiving.Ended
      this.#maybeClose(stream)
    } else {
      receiving.stopping.set()
      receiving.credit.clear()
      this.#control(stream)
    }
    this.owner.onDirty()
  }

  consume(stream: Stream, byteCount: number): void {
    const { receiving } = stream
    if (receiving === undefined || receiving.isStopped || this.isClosed) return
    // Of a stream that was reset more may have been credited than was handed on.
    const count = Math.max(0, Math.min(byteCount, receiving.pieces.base - receiving.window.consumed))
    this.#consumeConnection(count)
    if (receiving.window.consume(count) && receiving.state === Receiving.Open && !receiving.credit.isDue) {
      receiving.credit.set()
      this.#control(stream)
      this.owner.onDirty()
    }
  }

  /** Something was lost, or wants to be sent: the stream waits where it belongs. */
  queueAgain(stream: Stream): void {
    if (stream.sending !== undefined) this.#queue(stream, stream.sending)
  }

  /** Octets wait that the stream's window does not take: the peer is told, once for each limit (RFC 9000 §4.1). */
  noteBlocked(stream: Stream, sending: SendHalf): void {
    const { limit } = sending.window
    if (sending.blockedAt === limit) return
    sending.blockedAt = limit
    sending.blocked.set()
    this.#control(stream)
  }

  controlAgain(stream: Stream): void {
    this.#control(stream)
  }

  /** A half of the stream may be over. */
  maybeClose(stream: Stream): void {
    this.#maybeClose(stream)
  }

  /** Octets left for the first time: the handler is told at the end of the run. */
  tell(stream: Stream): void {
    if (stream.isTold) return
    stream.isTold = true
    this.told.push(stream)
  }

  /** Tells handlers what there is to tell, and what follows from what they do then. */
  settle(): void {
    const { told, over } = this
    for (let stream = told.shift(); stream !== undefined; stream = told.shift()) {
      stream.isTold = false
      const sending = stream.sending as SendHalf
      const { untold } = sending
      sending.untold = 0
      const { hasDrained } = sending
      if (!this.isClosed && sending.state < Sending.Reset && (untold > 0 || hasDrained)) stream.handler.onSent(untold, hasDrained)
    }
    for (let stream = over.shift(); stream !== undefined; stream = over.shift()) stream.handler.onClose()
  }

  /** The connection is over: no stream is told anything any more. */
  close(): void {
    this.isClosed = true
    for (const { sending, receiving } of this.table.values()) {
      sending?.buffer.clear()
      receiving?.pieces.clear()
    }
    this.table.clear()
    this.told.clear()
    this.over.clear()
    this.uncredited.clear()
    this.controlled.clear()
    for (let { first } = this.schedule; first !== undefined; { first } = this.schedule) this.schedule.remove(first)
  }

  // ── inside ──────────────────────────────────────────────────────────────────────────────────────

  #deliver(
    stream: Stream,
    receiving: ReceiveHalf,
    offset: number,
    buffer: Uint8Array,
    start: number,
    limit: number,
  ): TransportFault | undefined {
    const { pieces } = receiving
    const end = offset + limit - start
    if (receiving.isStopped) {
      this.#creditRest(receiving)
      if (receiving.state === Receiving.SizeKnown) {
        receiving.state = Receiving.Ended
        receiving.stopping.clear()
        this.#maybeClose(stream)
      }
      return undefined
    }
    if (offset > pieces.base) {
      if (pieces.insert(offset, buffer, start, limit)) return undefined
      return transportFault(TransportError.internalError, FrameType.stream, 'a stream with too many gaps')
    }
    const isEmptyEnd = receiving.isComplete && end === pieces.base
    if (end > pieces.base || isEmptyEnd) {
      const from = start + pieces.base - offset
      pieces.skipTo(end)
      this.#hand(stream, receiving, buffer, from, limit)
    }
    // The handler may stop the stream, or end the connection: nothing waits any more then.
    while (!pieces.isEmpty) {
      const bytes = pieces.take()
      if (bytes === undefined) break
      this.#hand(stream, receiving, bytes, 0, bytes.length)
    }
    return undefined
  }

  #hand(stream: Stream, receiving: ReceiveHalf, buffer: Uint8Array, start: number, limit: number): void {
    const fin = receiving.isComplete
    if (fin) this.#endReceiving(stream, receiving)
    stream.handler.onData(buffer, start, limit, fin)
  }

  /** Nothing more comes. */
  #endReceiving(stream: Stream, receiving: ReceiveHalf): void {
    receiving.state = Receiving.Ended
    receiving.pieces.clear()
    receiving.stopping.clear()
    this.#maybeClose(stream)
  }

  /** Nobody consumes any more what came on a stream: the connection gets the credit back. */
  #creditRest({ window }: ReceiveHalf): void {
    const rest = window.received - window.consumed
    window.consumed = window.received
    this.#consumeConnection(rest)
  }

  #consumeConnection(byteCount: number): void {
    if (byteCount === 0 || !this.receiveWindow.consume(byteCount) || this.credit.isDue) return
    this.credit.set()
    this.owner.onDirty()
  }

  #queue(stream: Stream, sending: SendHalf): void {
    if (sending.hasCredited) this.schedule.add(stream)
    else if (sending.isBlocked) this.noteBlocked(stream, sending)
    if (!stream.isUncredited && sending.hasUncredited) {
      stream.isUncredited = true
      this.uncredited.push(stream)
    }
  }

  #control(stream: Stream): void {
    if (stream.isControlled) return
    stream.isControlled = true
    this.controlled.push(stream)
  }

  #maybeClose(stream: Stream): void {
    if (stream.isClosed || !stream.isOver) return
    stream.isClosed = true
    if (stream.receiving !== undefined) this.#creditRest(stream.receiving)
    this.schedule.remove(stream)
    this.table.delete(stream.id)
    this.over.push(stream)
    if (this.ids.isPeers(stream.id)) this.ids.close(stream.id)
    this.owner.onDirty()
  }

  /** For tests and counts: how many streams are not over. */
  get size(): number {
    return this.table.size
  }
}
