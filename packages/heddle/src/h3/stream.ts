import type { Linked } from '../bytes/index.ts'
import {
  CancelledError,
  checkRequest,
  declaredLength,
  isBodiless,
  noLength,
  UsageError,
  wireCodes,
  CancelReason,
  type ConnectionInfo,
  type Exchange,
  type ExchangeHandler,
  type Fields,
  type Head,
  type HeddleError,
  type Instant,
  type Priority,
} from '../http/index.ts'
import type { QuicStream, QuicStreamHandler } from '../quic/index.ts'
import type { SectionHandler } from '../qpack/index.ts'
import type { FieldSection } from '../fieldcode/index.ts'
import type { Connection } from './connection.ts'
import { ErrorCode, FrameHeader } from './frame.ts'
import type { HeldContent } from './held-content.ts'
import type { Inbound } from './inbound.ts'
import { SentLayout } from './sent-layout.ts'
import { Phase } from './state.ts'

/**
 * One request stream, as an Exchange above and as the handler of its QUIC stream below: the state of both
 * directions (see `state.ts`), and its places in the connection's lists.
 *
 * Its fields are `declare`d, for else each would be defined as undefined first and then set.
 */
export class Stream implements Exchange, QuicStreamHandler, SectionHandler, Linked {
  declare readonly protocol: 'h1' | 'h2' | 'h3'
  declare readonly connection: ConnectionInfo
  declare handler: ExchangeHandler
  declare readonly owner: Connection
  /** Undefined: a client's stream that has not begun. */
  declare quic: QuicStream | undefined
  /** -1: a client's stream that has not begun. */
  declare id: number
  declare sending: Phase
  declare receiving: Phase
  /** Over: `onClose` was called or is due. */
  declare closed: boolean
  /** Over and well: both messages ended. */
  declare endsWell: boolean
  /** What `onClose` will say. */
  declare error: HeddleError | undefined

  // Neighbours in the list it stands in: of those that are open, or of those that have not begun.
  declare previous: Linked | undefined
  declare next: Linked | undefined
  declare nextClosed: Stream | undefined

  // ── Receiving ──
  /** The header of the frame that is being read. */
  declare readonly header: FrameHeader
  /** Octets of its payload still to come. */
  declare frameLeft: number
  /** A frame has begun whose payload is not complete. */
  declare inFrame: boolean
  /** A field block that comes in pieces, or what waits behind one that QPACK cannot decode yet; undefined: neither. */
  declare inbound: Inbound | undefined
  /** The peer's FIN was seen, or its RESET_STREAM, or it was told to stop. */
  declare receiveOver: boolean

  // ── Sending ──
  /** How frame headers and content follow each other in what was queued. */
  declare readonly layout: SentLayout
  /** Small pieces of content that become one frame; undefined: there are none. */
  declare staged: Buffer | undefined
  /** Where they end in it. */
  declare stagedLimit: number
  /** FIN was queued. */
  declare endQueued: boolean
  /** Content is held back: the peer's word comes first (100-continue, or the answer to CONNECT). */
  declare held: boolean
  /** … and no longer than until then; 0: as long as it takes. */
  declare heldUntil: Instant
  declare heldContent: HeldContent | undefined
  /** The sender was told to wait. */
  declare senderWaits: boolean
  /** QUIC said that it takes no more for now. */
  declare quicWaits: boolean
  /** What waits to be sent does not count for the connection. */
  declare queueExempt: boolean

  declare urgency: number
  /** Shares the connection with others of its urgency (RFC 9218 §4.2); so does a stream of which nothing was said. */
  declare incremental: boolean
  /** Client: the server is to be told of urgency and incremental. */
  declare prioritized: boolean

  /** The request's method was HEAD. */
  declare headRequest: boolean
  declare tunnel: boolean
  /** What is sent is dropped: the message has no content, or the peer will not take it. */
  declare dropsContent: boolean
  /** What is received is dropped. */
  declare discarding: boolean
  /** Server: the client waits for a 100. */
  declare expectsContinue: boolean
  /** content-length of the received message, or `noLength`. */
  declare expectedLength: number
  declare receivedLength: number
  /** content-length of the sent message, or `noLength`. */
  declare declaredLength: number
  declare acceptedLength: number
  /** What the peer may send ahead of `consume`. */
  declare window: number
  /** What that may grow to; Infinity: to what its connection allows. */
  declare windowGrowth: number
  /** Given to `onData` and not consumed. */
  declare unconsumed: number
  /** Client: interim responses so far. */
  declare informational: number
  // Last progress of each direction: what the time limits count from.
  declare receivedAt: Instant
  declare sentAt: Instant

  constructor(owner: Connection, quic: QuicStream | undefined, handler: ExchangeHandler, now: Instant) {
    this.protocol = 'h3'
    this.connection = owner.info
    this.handler = handler
    this.owner = owner
    this.quic = quic
    this.id = quic === undefined ? -1 : quic.id
    this.sending = Phase.Head
    this.receiving = Phase.Head
    this.closed = false
    this.endsWell = false
    this.error = undefined
    this.previous = undefined
    this.next = undefined
    this.nextClosed = undefined
    this.header = new FrameHeader()
    this.frameLeft = 0
    this.inFrame = false
    this.inbound = undefined
    this.receiveOver = false
    this.layout = new SentLayout()
    this.staged = undefined
    this.stagedLimit = 0
    this.endQueued = false
    this.held = false
    this.heldUntil = 0
    this.heldContent = undefined
    this.senderWaits = false
    this.quicWaits = false
    this.queueExempt = false
    this.urgency = 3
    this.incremental = true
    this.prioritized = false
    this.headRequest = false
    this.tunnel = false
    this.dropsContent = false
    this.discarding = false
    this.expectsContinue = false
    this.expectedLength = noLength
    this.receivedLength = 0
    this.declaredLength = noLength
    this.acceptedLength = 0
    this.window = owner.limits.streamWindow
    this.windowGrowth = Infinity
    this.unconsumed = 0
    this.informational = 0
    this.receivedAt = now
    this.sentAt = now
  }

  // ── Exchange ────────────────────────────────────────────────────────────────────────────────────

  sendHead(head: Head, end: boolean): void {
    if (this.closed) return
    if (this.sending !== Phase.Head) throw new UsageError('a head was sent already')
    if (this.owner.isServer) this.sendResponse(head, end)
    else this.sendRequest(head, end)
    this.owner.wake()
  }

  private sendRequest(head: Head, end: boolean): void {
    if (head.status !== 0) throw new UsageError('a client sends request heads')
    checkRequest(head)
    const tunnel = head.method === 'CONNECT'
    if (tunnel && end) throw new UsageError('CONNECT opens a tunnel: it cannot end with its head')
    if (head.protocol !== '' && !this.owner.peer.enableConnectProtocol) return this.awaitOffer(head)
    const declared = tunnel ? noLength : declaredLength(head.fields, end)
    this.headRequest = head.method === 'HEAD'
    this.tunnel = tunnel
    this.owner.exchanges.start(this, head, end)
    this.declaredLength = declared
  }

  /** RFC 9220 §3: only where the server has offered it, which its SETTINGS say. */
  private awaitOffer(head: Head): void {
    const { peer, exchanges } = this.owner
    if (peer.received) throw new UsageError('the server offers no extended CONNECT')
    this.owner.qpack.encoder.validate(head.fields)
    this.tunnel = true
    this.held = true
    this.sending = Phase.Content
    exchanges.awaitOffer(this, head)
  }

  private sendResponse(head: Head, end: boolean): void {
    const { owner } = this
    const { status } = head
    if (!(Number.isInteger(status) && status >= 100 && status <= 599 && status !== 101)) {
      throw new UsageError(`a response's status is 100–599 and not 101, and this is ${status}`)
    }
    if (status < 200) {
      if (end) throw new UsageError(`a ${status} is followed by the final response, it cannot end`)
      owner.sender.sendResponse(this, head, false, false)
      if (status === 100) this.expectsContinue = false
      return
    }
    const opens = this.tunnel && status < 300
    const dropsContent = !opens && (this.headRequest || isBodiless(status))
    const declared = opens || dropsContent ? noLength : declaredLength(head.fields, end)
    owner.sender.sendResponse(this, head, end || dropsContent, opens)
    this.dropsContent = dropsContent
    this.declaredLength = declared
    this.sending = Phase.Content
    if (this.tunnel && !opens) {
      // What the client sends for the tunnel is for nobody.
      this.tunnel = false
      this.discarding = true
    }
    owner.exchanges.unwanted.maybeStop(this)
  }

  sendData(buffer: Uint8Array, start: number, limit: number, end: boolean): boolean {
    if (!this.admits(limit - start, end)) return this.isMute
    return this.owner.sender.sendContent(this, buffer, start, limit, end, false)
  }

  sendOwned(chunk: Uint8Array, end: boolean): boolean {
    if (!this.admits(chunk.length, end)) return this.isMute
    return this.owner.sender.sendContent(this, chunk, 0, chunk.length, end, true)
  }

  /** A message without content: whatever is sent is gone at once, so nobody has to wait. */
  private get isMute(): boolean {
    return this.dropsContent && this.owner.isServer && !this.closed
  }

  /** Checks that content may be sent now. False: it goes nowhere. */
  private admits(byteCount: number, end: boolean): boolean {
    // What was sent to the end but is not told yet is not over for the sender.
    if (this.dropsContent || (this.closed && !this.endsWell)) return false
    if (this.sending === Phase.Head) throw new UsageError('content before the head')
    if (this.sending === Phase.Ended || this.endQueued) throw new UsageError('content after the end')
    if (this.declaredLength === noLength) return true
    const accepted = this.acceptedLength + byteCount
    if (accepted > this.declaredLength) {
      throw new UsageError(`content-length is ${this.declaredLength}, and this is octet ${accepted}`)
    }
    this.acceptedLength = accepted
    if (!end || accepted === this.declaredLength) return true
    // The peer must see that something is missing.
    const message = `content-length is ${this.declaredLength}, and the content ended after ${accepted}`
    this.owner.exchanges.reset(this, ErrorCode.InternalError, new CancelledError(CancelReason.MessageError, message))
    return false
  }

  sendTrailers(fields: Fields): void {
    if (this.closed || this.dropsContent) return
    if (this.tunnel) throw new UsageError('a tunnel has no trailers')
    this.owner.qpack.encoder.validate(fields)
    if (this.admits(0, true)) this.owner.sender.sendTrailers(this, fields)
  }

  consume(byteCount: number): void {
    if (this.closed || this.discarding) return
    const counted = byteCount < this.unconsumed ? byteCount : this.unconsumed
    this.owner.exchanges.give(this, counted)
  }

  exemptQueue(): void {
    if (this.closed || this.queueExempt) return
    this.queueExempt = true
    this.owner.sender.queued -= this.layout.pinned
  }

  limitWindow(byteCount: number): void {
    if (this.closed) return
    checkWindow(byteCount)
    this.window = byteCount
    this.quic?.limitWindow(byteCount)
  }

  limitWindowGrowth(byteCount: number): void {
    checkWindow(byteCount)
    this.windowGrowth = byteCount
    if (!this.closed) this.quic?.limitWindowGrowth(byteCount)
  }

  discard(): void {
    if (!this.closed && !this.discarding) this.owner.exchanges.discard(this)
  }

  setPriority(priority: Priority): void {
    if (this.closed) return
    const { sender, isServer } = this.owner
    sender.prioritize(this, priority)
    if (isServer) return
    this.prioritized = true
    if (this.quic !== undefined) sender.sendPriorityUpdate(this)
  }

  cancel(reason: CancelReason): void {
    if (this.closed) return
    const { isServer, exchanges } = this.owner
    // RFC 9114 §4.1.1: H3_REQUEST_REJECTED is a server's word.
    const code =
      reason === CancelReason.Refused && !isServer ? ErrorCode.RequestCancelled : (wireCodes[reason]?.h3 ?? ErrorCode.RequestCancelled)
    const facts = { unprocessed: this.quic === undefined, wireCode: code }
    exchanges.reset(this, code, new CancelledError(reason, undefined, facts))
  }

  // ── QuicStreamHandler ───────────────────────────────────────────────────────────────────────────

  onData(buffer: Uint8Array, start: number, limit: number, fin: boolean): void {
    this.owner.receiver.receive(this, buffer, start, limit, fin)
  }

  onReset(errorCode: number): void {
    this.owner.exchanges.receiveReset(this, errorCode)
  }

  onStopSending(errorCode: number): void {
    this.owner.exchanges.receiveStopSending(this, errorCode)
  }

  onSent(byteCount: number, writable: boolean): void {
    this.owner.sender.sent(this, byteCount, writable)
  }

  /** The QUIC stream is gone; the exchange was over before, unless QUIC knows better. */
  onClose(): void {
    this.owner.exchanges.streamGone(this)
  }

  // ── SectionHandler ──────────────────────────────────────────────────────────────────────────────

  onSection(section: FieldSection): void {
    this.owner.qpack.unblock(this, section)
  }
}

function checkWindow(byteCount: number): void {
  if (!(Number.isSafeInteger(byteCount) && byteCount >= 1)) throw new UsageError(`a window is at least 1 octet, and this is ${byteCount}`)
}
