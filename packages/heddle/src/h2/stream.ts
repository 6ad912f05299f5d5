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
import type { Connection } from './connection.ts'
import type { ContentQueue } from './content-queue.ts'
import { Windows } from './flow.ts'
import { ErrorCode, largestWindow } from './frame.ts'
import { Phase } from './state.ts'

/**
 * One HTTP/2 stream, as an Exchange: the state of both directions (see `state.ts`), its windows, and its
 * places in the connection's lists. All that is made per request, besides the received head.
 *
 * Its fields are `declare`d, for else each would be defined as undefined first and then set: with as many as
 * these that is a fifth of what a request costs.
 */
export class Stream extends Windows implements Exchange, Linked {
  declare readonly protocol: 'h1' | 'h2' | 'h3'
  declare readonly connection: ConnectionInfo
  declare handler: ExchangeHandler
  declare readonly owner: Connection
  /** 0: a client's stream that has not begun. */
  declare id: number
  declare sending: Phase
  declare receiving: Phase
  /** Over: `onClose` was called or is due. */
  declare closed: boolean
  /** Over and well: both messages ended. `onClose` waits until the last of it has left. */
  declare complete: boolean
  /** What `onClose` will say. */
  declare error: HeddleError | undefined

  // Neighbours in the list it stands in: of those that can send, or of those that have not begun.
  declare previous: Linked | undefined
  declare next: Linked | undefined
  declare isReady: boolean
  // Its places in three queues: due for `onSent`, for `onClose`, for a WINDOW_UPDATE.
  declare nextReport: Stream | undefined
  declare inReports: boolean
  declare nextClosed: Stream | undefined
  declare nextCredit: Stream | undefined
  declare inCredits: boolean

  /** Content waiting to be framed; undefined while there never was any. */
  declare queue: ContentQueue | undefined
  /** What `queue` pins does not count for the connection. */
  declare queueExempt: boolean
  /** Octets in `queue`. */
  declare pending: number
  /** END_STREAM, or `trailers`, follow the pending content. */
  declare endQueued: boolean
  declare trailers: Fields | undefined
  /** Content is held back: the peer's word comes first (100-continue, or the answer to CONNECT). */
  declare held: boolean
  /** … and no longer than until then; 0: as long as it takes. */
  declare heldUntil: Instant
  /** The sender was told to wait. */
  declare senderWaits: boolean
  /** Framed, and not told by `onSent` yet. */
  declare unreported: number
  /** Which flush takes the last of what was staged. */
  declare stagedFlush: number

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
  /** When what is left of the message is given up, which nobody wants; 0: that is not so. */
  declare abandonAt: Instant
  /** … and at which `receivedLength`. */
  declare abandonBeyond: number
  /** content-length of the received message, or `noLength`. */
  declare expectedLength: number
  declare receivedLength: number
  /** content-length of the sent message, or `noLength`. */
  declare declaredLength: number
  declare acceptedLength: number
  /** Given to `onData` and not consumed. */
  declare unconsumed: number
  /** Client: interim responses so far. */
  declare informational: number
  // Last progress of each direction: what the time limits count from.
  declare receivedAt: Instant
  declare sentAt: Instant

  constructor(owner: Connection, id: number, handler: ExchangeHandler, sendWindow: number, receiveWindow: number, now: Instant) {
    super(sendWindow, receiveWindow)
    this.protocol = 'h2'
    this.connection = owner.info
    this.handler = handler
    this.owner = owner
    this.id = id
    this.sending = Phase.Head
    this.receiving = Phase.Head
    this.closed = false
    this.complete = false
    this.error = undefined
    this.previous = undefined
    this.next = undefined
    this.isReady = false
    this.nextReport = undefined
    this.inReports = false
    this.nextClosed = undefined
    this.nextCredit = undefined
    this.inCredits = false
    this.queue = undefined
    this.queueExempt = false
    this.pending = 0
    this.endQueued = false
    this.trailers = undefined
    this.held = false
    this.heldUntil = 0
    this.senderWaits = false
    this.unreported = 0
    this.stagedFlush = 0
    this.urgency = 3
    this.incremental = true
    this.prioritized = false
    this.headRequest = false
    this.tunnel = false
    this.dropsContent = false
    this.discarding = false
    this.expectsContinue = false
    this.abandonAt = 0
    this.abandonBeyond = 0
    this.expectedLength = noLength
    this.receivedLength = 0
    this.declaredLength = noLength
    this.acceptedLength = 0
    this.unconsumed = 0
    this.informational = 0
    this.receivedAt = now
    this.sentAt = now
  }

  sendHead(head: Head, end: boolean): void {
    if (this.closed) return
    if (this.sending !== Phase.Head) throw new UsageError('a head was sent already')
    if (this.owner.isServer) this.sendResponse(head, end)
    else this.sendRequest(head, end)
    this.owner.markDirty()
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
    this.declaredLength = declared
    this.owner.exchanges.start(this, head, end)
    this.sending = end ? Phase.Ended : Phase.Content
  }

  /** RFC 8441 §3: only where the server has offered it, which its SETTINGS say. */
  private awaitOffer(head: Head): void {
    const { peer, exchanges } = this.owner
    if (peer.received) throw new UsageError('the server offers no extended CONNECT')
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
    const ends = end || dropsContent
    owner.sender.sendResponse(this, head, ends, opens)
    this.dropsContent = dropsContent
    this.declaredLength = declared
    if (this.tunnel && !opens) {
      // What the client sends for the tunnel is for nobody.
      this.tunnel = false
      this.discarding = true
    }
    this.sending = ends ? Phase.Ended : Phase.Content
    if (ends) owner.exchanges.sendingEnded(this)
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
    // What was sent to the end but has not left yet is not over for the sender.
    if (this.dropsContent || (this.closed && !(this.complete && this.sending === Phase.Ended))) return false
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
    this.owner.encoder.validate(fields)
    if (this.admits(0, true)) this.owner.sender.sendTrailers(this, fields)
  }

  consume(byteCount: number): void {
    if (this.closed || this.discarding) return
    const counted = byteCount < this.unconsumed ? byteCount : this.unconsumed
    this.unconsumed -= counted
    this.owner.credit.give(this, counted)
  }

  exemptQueue(): void {
    if (!this.closed) this.owner.sender.exempt(this)
  }

  limitWindow(byteCount: number): void {
    if (this.closed) return
    checkWindow(byteCount)
    this.owner.credit.limit(this, byteCount)
  }

  limitWindowGrowth(byteCount: number): void {
    checkWindow(byteCount)
    this.limitGrowth(byteCount)
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
    if (this.id !== 0) sender.stagePriorityUpdate(this.id, priority)
  }

  cancel(reason: CancelReason): void {
    if (this.closed) return
    const code = wireCodes[reason]?.h2 ?? ErrorCode.Cancel
    const facts = { unprocessed: this.id === 0, wireCode: code }
    this.owner.exchanges.reset(this, code, new CancelledError(reason, undefined, facts))
  }
}

function checkWindow(byteCount: number): void {
  if (Number.isInteger(byteCount) && byteCount >= 1 && byteCount <= largestWindow) return
  throw new UsageError(`a window is 1 to ${largestWindow} octets, and this is ${byteCount}`)
}
