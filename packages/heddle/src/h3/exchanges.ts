import { List } from '../bytes/index.ts'
import {
  asUnprocessed,
  CancelledError,
  CancelReason,
  fieldValue,
  PeerError,
  ProtocolError,
  UsageError,
  type Exchange,
  type ExchangeHandler,
  type Head,
  type HeddleError,
} from '../http/index.ts'
import type { QuicStream } from '../quic/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, errorName } from './frame.ts'
import { Phase } from './state.ts'
import { Stream } from './stream.ts'
import { untimed } from './time-limits.ts'
import { Unwanted } from './unwanted.ts'

/** The exchanges of one connection: how they begin, and every way they end. */
export class Exchanges {
  /** Exchanges that have begun and are not over. */
  readonly list: List<Stream>
  /** Client: exchanges that were opened and have not begun. */
  readonly reserved: List<Stream>
  /** Server: the exchanges by stream, for PRIORITY_UPDATE. */
  readonly #byId: Map<number, Stream>
  /** Request streams QUIC still has to do with, whether their exchange is over or not. */
  streams: number
  /** Server: behind the highest stream the client began: what a GOAWAY of now would say. */
  nextPeerStreamId: number
  /** Octets given to handlers and not consumed, of all exchanges. */
  unconsumed: number
  /** Streams reset from here so far. */
  resetsSent: number
  readonly unwanted: Unwanted
  readonly #owner: Connection
  /** Tunnels asked for before SETTINGS came; undefined: none. */
  #earlyTunnels: Map<Stream, Head> | undefined

  constructor(owner: Connection) {
    this.list = new List()
    this.reserved = new List()
    this.#byId = new Map()
    this.streams = 0
    this.nextPeerStreamId = 0
    this.unconsumed = 0
    this.resetsSent = 0
    this.unwanted = new Unwanted(owner)
    this.#owner = owner
    this.#earlyTunnels = undefined
  }

  get open(): number {
    return this.list.length + this.reserved.length
  }

  /** All that have begun, as they are now: a copy, so that streams may go meanwhile. */
  all(): Stream[] {
    const all: Stream[] = []
    for (let stream = this.list.first; stream !== undefined; stream = stream.next as Stream | undefined) all.push(stream)
    return all
  }

  byId(streamId: number): Stream | undefined {
    return this.#byId.get(streamId)
  }

  // ── Beginning ───────────────────────────────────────────────────────────────────────────────────

  /** Client: how many exchanges can be opened now. */
  get openable(): number {
    return Math.max(0, this.#owner.transport.openableBidirectional - this.reserved.length)
  }

  reserve(handler: ExchangeHandler): Exchange {
    const stream = new Stream(this.#owner, undefined, handler, this.#owner.now)
    this.reserved.append(stream)
    this.#owner.timeLimits.busy()
    return stream
  }

  /** Client: the stream is opened with its head. Throws UsageError, having changed nothing, for fields that cannot be sent. */
  start(stream: Stream, head: Head, end: boolean): void {
    const { transport, qpack, sender, timeLimits, limits } = this.#owner
    qpack.encoder.validate(head.fields)
    const quic = transport.open(true, stream)
    if (quic === undefined) {
      // `openable` was asked before, so the connection has come to its end meanwhile.
      return this.close(stream, new PeerError('PEER_CLOSED', 'the connection takes no more requests', { unprocessed: true }))
    }
    this.reserved.remove(stream)
    stream.quic = quic
    stream.id = quic.id
    this.streams++
    this.list.append(stream)
    timeLimits.watch()
    stream.sending = Phase.Content
    quic.setPriority(stream.urgency, stream.incremental)
    // A window of its own may have been asked for before it had a number.
    if (stream.window !== limits.streamWindow) quic.limitWindow(stream.window)
    else if (stream.windowGrowth !== Infinity) quic.limitWindowGrowth(stream.windowGrowth)
    sender.sendRequest(stream, head, end)
    if (stream.prioritized) sender.sendPriorityUpdate(stream)
    if (stream.tunnel) stream.held = true
    else if (!end && fieldValue(head.fields, 'expect')?.toLowerCase() === '100-continue') {
      // RFC 9110 §10.1.1
      stream.held = true
      stream.heldUntil = untimed
      timeLimits.limitStream(stream)
    }
  }

  /** Client: `stream` is to become a tunnel as soon as the server has said that there may be any. */
  awaitOffer(stream: Stream, head: Head): void {
    this.#earlyTunnels ??= new Map()
    this.#earlyTunnels.set(stream, head)
  }

  /** Client: SETTINGS came. */
  settingsCame(): void {
    const early = this.#earlyTunnels
    if (early === undefined) return
    this.#earlyTunnels = undefined
    for (const [stream, head] of early) {
      if (stream.closed) continue
      if (this.#owner.peer.enableConnectProtocol) this.start(stream, head, false)
      else this.close(stream, new UsageError('the server offers no extended CONNECT'))
    }
  }

  /** Server: the client began a stream. */
  accept(quic: QuicStream): Stream {
    const owner = this.#owner
    const stream = new Stream(owner, quic, noHandler, owner.now)
    this.streams++
    if (quic.id >= this.nextPeerStreamId) this.nextPeerStreamId = quic.id + 4
    this.list.append(stream)
    this.#byId.set(quic.id, stream)
    owner.timeLimits.busy()
    owner.timeLimits.watch()
    quic.setPriority(stream.urgency, stream.incremental)
    return stream
  }

  // ── Ending ──────────────────────────────────────────────────────────────────────────────────────

  /** The last of our message has left. */
  sendingEnded(stream: Stream): void {
    stream.sending = Phase.Ended
    if (stream.receiving === Phase.Ended) this.#completed(stream)
    else this.unwanted.maybeStop(stream)
  }

  /** The peer's message ended, or nothing more of it is awaited. */
  receivingEnded(stream: Stream): void {
    stream.receiving = Phase.Ended
    if (stream.sending === Phase.Ended) return this.#completed(stream)
    if (!stream.dropsContent || stream.endQueued) return
    // A final answer came instead of the 100: the content stays here, and the peer is told not to wait for it.
    this.sayReset(stream, ErrorCode.RequestCancelled)
    this.#completed(stream)
  }

  /** Nothing more is wanted of the peer's message. */
  discard(stream: Stream): void {
    stream.discarding = true
    this.#giveBack(stream, stream.unconsumed)
    this.unwanted.maybeStop(stream)
  }

  /** Reading is over before the peer's end: it is told so. */
  stopReading(stream: Stream, code: number): void {
    if (stream.receiveOver) return
    stream.receiveOver = true
    // RFC 9204 §2.2.2.2
    this.#owner.qpack.cancelStream(stream.id)
    stream.quic?.stopSending(code)
  }

  #completed(stream: Stream): void {
    this.#leave(stream)
    stream.endsWell = true
    this.#owner.notices.closedLater(stream)
  }

  /** RESET_STREAM and STOP_SENDING go out, and the exchange is over: nothing but `onClose` is called after this. */
  reset(stream: Stream, code: number, error: HeddleError): void {
    if (stream.closed) return
    if (stream.quic !== undefined) this.#owner.resets?.countSent(code)
    this.sayReset(stream, code)
    this.stopReading(stream, code)
    this.close(stream, error)
  }

  /** RESET_STREAM goes out, unless all was sent. */
  sayReset(stream: Stream, code: number): void {
    if (stream.quic === undefined || stream.sending === Phase.Ended) return
    this.resetsSent++
    stream.quic.reset(code)
  }

  /** The peer's fault ends the exchange: counted, since it costs the peer next to nothing (CVE-2025-8671). */
  fault(stream: Stream, code: number, message: string): void {
    this.reset(stream, code, new ProtocolError(message, 400, 'PROTOCOL_ERROR', { wireCode: code, scope: 'stream' }))
    this.provoked()
  }

  /** Counts a reset that the peer provoked. */
  provoked(): void {
    const owner = this.#owner
    if (!owner.provokedResets.take(owner.now)) owner.lifetime.fail(ErrorCode.ExcessiveLoad, 'too many resets provoked')
  }

  /** The exchange is over without another word of ours. */
  close(stream: Stream, error: HeddleError): void {
    if (stream.closed) return
    this.#leave(stream)
    stream.error = error
    this.#owner.notices.closedLater(stream)
  }

  /** Out of every list but those of what is to be told. */
  #leave(stream: Stream): void {
    const owner = this.#owner
    stream.closed = true
    if (stream.quic === undefined) this.reserved.remove(stream)
    else {
      this.list.remove(stream)
      if (owner.isServer) this.#byId.delete(stream.id)
    }
    owner.sender.forget(stream)
    owner.receiver.forget(stream)
    // What the handler had not consumed is the connection's window, not lost.
    this.#giveBack(stream, stream.unconsumed)
    if (this.open === 0) owner.timeLimits.idles()
  }

  /** Every exchange ends with `error`, or with what makes of it that the peer has seen nothing of the request. */
  closeAll(error: HeddleError, isLocal: boolean): void {
    const { isServer } = this.#owner
    for (const stream of this.all()) {
      const isSent = isServer || isLocal || stream.layout.hasSent
      this.close(stream, isSent ? error : asUnprocessed(error))
    }
    for (let stream = this.reserved.first; stream !== undefined; stream = this.reserved.first) {
      this.close(stream, isLocal ? error : asUnprocessed(error))
    }
  }

  /** Client: the server does not process streams from `streamId` on, nor new ones. */
  closeFrom(streamId: number, error: HeddleError): void {
    for (const stream of this.all()) if (stream.id >= streamId) this.reset(stream, ErrorCode.RequestCancelled, error)
    for (let stream = this.reserved.first; stream !== undefined; stream = this.reserved.first) this.close(stream, error)
  }

  /** A handler that throws loses its exchange, nothing else. */
  handlerFailed(stream: Stream, cause: unknown): void {
    const error = new CancelledError(CancelReason.InternalError, 'the handler failed', { cause })
    if (stream.endsWell && stream.error === undefined) stream.error = error
    else this.reset(stream, ErrorCode.InternalError, error)
  }

  // ── Credit ──────────────────────────────────────────────────────────────────────────────────────

  /** The handler consumed `byteCount` octets of content. */
  give(stream: Stream, byteCount: number): void {
    if (byteCount <= 0) return
    this.#giveBack(stream, byteCount)
    this.#owner.timeLimits.consumed()
  }

  #giveBack(stream: Stream, byteCount: number): void {
    if (byteCount === 0) return
    stream.unconsumed -= byteCount
    this.unconsumed -= byteCount
    stream.quic?.consume(byteCount)
  }

  // ── What the peer does to a stream ──────────────────────────────────────────────────────────────

  /** RESET_STREAM: the peer's message is not completed. */
  receiveReset(stream: Stream, code: number): void {
    const owner = this.#owner
    if (!stream.receiveOver) {
      stream.receiveOver = true
      owner.receiver.forget(stream)
      owner.qpack.cancelStream(stream.id)
    }
    // RFC 9114 §4.1.1: a message that came whole is not affected.
    if (stream.closed || stream.receiving === Phase.Ended) return
    // The rest was wanted by nobody, or held back by a client that took our answer for its 100.
    if (owner.isServer && !stream.tunnel && stream.sending !== Phase.Head && isUnwanted(stream)) return this.receivingEnded(stream)
    this.#endedByPeer(stream, code)
  }

  /** STOP_SENDING: the peer takes no more of our message. */
  receiveStopSending(stream: Stream, code: number): void {
    if (stream.closed || stream.sending === Phase.Ended) return
    // RFC 9114 §4.1: a server that needs no more of the request says so, and its response comes all the same. An end of
    // a tunnel that reads no more may still have something to say.
    if (stream.tunnel ? code === ErrorCode.NoError : !this.#owner.isServer) {
      this.#owner.sender.forget(stream)
      stream.dropsContent = true
      stream.endQueued = true
      return this.sendingEnded(stream)
    }
    this.#endedByPeer(stream, code)
  }

  #endedByPeer(stream: Stream, code: number): void {
    const owner = this.#owner
    owner.resets?.countReceived(code)
    const facts = { wireCode: code, scope: 'stream', unprocessed: !owner.isServer && code === ErrorCode.RequestRejected } as const
    this.sayReset(stream, ErrorCode.RequestCancelled)
    this.stopReading(stream, ErrorCode.RequestCancelled)
    this.close(stream, new PeerError('PEER_RESET', `the peer reset the stream: ${errorName(code)}`, facts))
    // CVE-2023-44487: requests that are reset at once cost the client nothing.
    if (owner.isServer && !owner.peerResets.take(owner.now)) owner.lifetime.fail(ErrorCode.ExcessiveLoad, 'too many resets')
  }

  /** QUIC has nothing to do with the stream any more. */
  streamGone(stream: Stream): void {
    this.streams--
    // What waits for a table entry of QPACK came whole, and will be read.
    if (!stream.closed && stream.inbound?.blocked !== true)
      this.close(stream, new PeerError('PEER_RESET', 'the stream is gone', { scope: 'stream' }))
  }
}

/** Nobody waits for the content of the peer's message: not we, and not the peer for our word that it may send it. */
export function isUnwanted(stream: Stream): boolean {
  return stream.discarding || (stream.expectsContinue && stream.receivedLength === 0)
}

/** Stands in until the owner has named the handler of a new exchange. */
const noHandler: ExchangeHandler = {
  onHead() {},
  onData() {},
  onTrailers() {},
  onSent() {},
  onPriority() {},
  onClose() {},
}
