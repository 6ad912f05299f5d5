import type { Linked } from '../bytes/index.ts'
import {
  CancelledError,
  contentLength,
  isBodiless,
  noLength,
  UsageError,
  wireCodes,
  type CancelReason,
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
import { ReceiveWindow, SendWindow } from './flow.ts'
import { ErrorCode } from './frame.ts'

/** One direction of a stream: before its head, in its content, ended. */
export const Phase = { Head: 0, Content: 1, Ended: 2 } as const
export type Phase = (typeof Phase)[keyof typeof Phase]

/**
 * One HTTP/2 stream, as an Exchange. Its two directions move on their own (RFC 9113 §5.1):
 *
 *               sending: Head ──HEADERS──▶ Content ──END_STREAM──▶ Ended
 *             receiving: Head ──HEADERS──▶ Content ──END_STREAM──▶ Ended
 *
 *   idle               sending and receiving in Head (a client's stream has no id yet)
 *   open               neither has ended
 *   half-closed        one has ended
 *   closed             both have ended, or RST_STREAM went or came: `closed` is set, the stream is out
 *                      of the table at once, and `onClose` comes in this or the next run of the engine
 */
export class Stream implements Exchange, Linked {
  readonly protocol: 'h1' | 'h2' | 'h3'
  readonly connection: ConnectionInfo
  handler: ExchangeHandler
  // Links in the sender's list of streams that have something to send.
  previous: Linked | undefined
  next: Linked | undefined

  readonly owner: Connection
  id: number
  sending: Phase
  receiving: Phase
  closed: boolean
  /** What `onClose` will say. */
  error: HeddleError | undefined

  readonly sendWindow: SendWindow
  readonly receiveWindow: ReceiveWindow
  /** Given to `onData` and not consumed. */
  unconsumed: number

  /** Content waiting to be framed: `chunks` from `firstChunk` on, the first from `chunkOffset` on. */
  readonly chunks: Uint8Array[]
  firstChunk: number
  chunkOffset: number
  pending: number
  /** Octets of `pending` that are our own copies. */
  copied: number
  /** END_STREAM, or trailers, follow the pending content. */
  endQueued: boolean
  trailers: Fields | undefined
  /** The sender was told to wait. */
  senderWaits: boolean
  /** Framed, and not told by `onSent` yet. */
  unreported: number
  inReady: boolean
  inReports: boolean
  inCredits: boolean

  urgency: number
  /** Shares the connection with others of its urgency (RFC 9218 §4.2); so does a stream of which nothing was said. */
  incremental: boolean

  /** Requests: the method was HEAD. */
  headRequest: boolean
  tunnel: boolean
  /** The message being sent has no content: what is sent is dropped. */
  dropsContent: boolean
  discarding: boolean
  /** content-length of the received message, or `noLength`. */
  expectedLength: number
  receivedLength: number
  /** content-length of the sent message, or `noLength`. */
  declaredLength: number
  acceptedLength: number
  informational: number
  /** Content is held back until then, unless a 100 comes first; 0: it is not. */
  heldUntil: Instant
  /** Last progress of each direction: what the time limits count from. */
  receivedAt: Instant
  sentAt: Instant

  constructor(owner: Connection, id: number, handler: ExchangeHandler, sendWindow: number, receiveWindow: number, now: Instant) {
    this.protocol = 'h2'
    this.connection = owner.info
    this.handler = handler
    this.previous = undefined
    this.next = undefined
    this.owner = owner
    this.id = id
    this.sending = Phase.Head
    this.receiving = Phase.Head
    this.closed = false
    this.error = undefined
    this.sendWindow = new SendWindow(sendWindow)
    this.receiveWindow = new ReceiveWindow(receiveWindow)
    this.unconsumed = 0
    this.chunks = []
    this.firstChunk = 0
    this.chunkOffset = 0
    this.pending = 0
    this.copied = 0
    this.endQueued = false
    this.trailers = undefined
    this.senderWaits = false
    this.unreported = 0
    this.inReady = false
    this.inReports = false
    this.inCredits = false
    this.urgency = 3
    this.incremental = true
    this.headRequest = false
    this.tunnel = false
    this.dropsContent = false
    this.discarding = false
    this.expectedLength = noLength
    this.receivedLength = 0
    this.declaredLength = noLength
    this.acceptedLength = 0
    this.informational = 0
    this.heldUntil = 0
    this.receivedAt = now
    this.sentAt = now
  }

  sendHead(head: Head, end: boolean): void {
    if (this.closed) return
    if (this.sending !== Phase.Head) throw new UsageError('a head was sent already')
    const { owner } = this
    owner.encoder.validate(head.fields)
    if (owner.isServer) this.#sendResponse(head, end)
    else this.#sendRequest(head, end)
    owner.markDirty()
  }

  #sendRequest(head: Head, end: boolean): void {
    if (head.method === '') throw new UsageError('a client sends requests: the head has no method')
    this.headRequest = head.method === 'HEAD'
    this.tunnel = head.method === 'CONNECT'
    this.declaredLength = this.tunnel ? noLength : contentLength(head.fields)
    this.sending = end ? Phase.Ended : Phase.Content
    this.owner.startRequest(this, head, end)
  }

  #sendResponse(head: Head, end: boolean): void {
    const { status } = head
    if (status < 100 || status > 599 || status === 101)
      throw new UsageError(`a response's status is 100–599 and not 101, and this is ${status}`)
    if (status < 200) {
      if (end) throw new UsageError(`a ${status} is followed by the final response, it cannot end`)
      this.owner.sender.stageResponse(this, head, false)
      return
    }
    if (this.tunnel && status > 299) this.tunnel = false
    if (!this.tunnel) {
      // RFC 9110 §6.4.1: these have no content, whatever the handler sends.
      this.dropsContent = this.headRequest || isBodiless(status)
      this.declaredLength = this.dropsContent ? noLength : contentLength(head.fields)
    }
    const ends = end || this.dropsContent
    if (ends && this.declaredLength > 0) throw new UsageError(`content-length is ${this.declaredLength}, and no content follows`)
    this.sending = ends ? Phase.Ended : Phase.Content
    this.owner.sender.stageResponse(this, head, ends)
    if (ends) this.owner.sendingEnded(this)
  }

  sendData(buffer: Uint8Array, start: number, limit: number, end: boolean): boolean {
    if (!this.#accept(limit - start, end)) return this.dropsContent && !this.closed
    return this.owner.sender.sendData(this, buffer, start, limit, end, false)
  }

  sendOwned(chunk: Uint8Array, end: boolean): boolean {
    if (!this.#accept(chunk.length, end)) return this.dropsContent && !this.closed
    return this.owner.sender.sendData(this, chunk, 0, chunk.length, end, true)
  }

  /** True: the content is to be sent. */
  #accept(byteCount: number, end: boolean): boolean {
    if (this.closed) return false
    if (this.dropsContent) return false
    if (this.sending === Phase.Head) throw new UsageError('content before the head')
    if (this.sending === Phase.Ended || this.endQueued) throw new UsageError('content after the end')
    this.acceptedLength += byteCount
    if (this.declaredLength !== noLength) {
      if (this.acceptedLength > this.declaredLength) {
        throw new UsageError(`content-length is ${this.declaredLength}, and this is octet ${this.acceptedLength}`)
      }
      if (end && this.acceptedLength < this.declaredLength) {
        // The peer must see that something is missing.
        this.owner.resetStream(
          this,
          ErrorCode.InternalError,
          new UsageError(`content-length is ${this.declaredLength}, and the content ended after ${this.acceptedLength}`),
        )
        return false
      }
    }
    return true
  }

  sendTrailers(fields: Fields): void {
    if (this.closed || this.dropsContent) return
    if (this.sending === Phase.Head) throw new UsageError('trailers before the head')
    if (this.sending === Phase.Ended || this.endQueued) throw new UsageError('trailers after the end')
    if (this.tunnel) throw new UsageError('a tunnel has no trailers')
    this.owner.encoder.validate(fields)
    if (!this.#accept(0, true)) return
    this.owner.sender.sendTrailers(this, fields)
  }

  consume(byteCount: number): void {
    if (this.closed) return
    const counted = byteCount < this.unconsumed ? byteCount : this.unconsumed
    this.unconsumed -= counted
    this.owner.credit(this, counted)
  }

  discard(): void {
    if (this.closed || this.discarding) return
    this.discarding = true
    this.owner.discard(this)
  }

  setPriority(priority: Priority): void {
    if (this.closed) return
    this.owner.sender.prioritize(this, priority.urgency, priority.incremental)
    if (!this.owner.isServer && this.id !== 0) this.owner.sender.stagePriorityUpdate(this, priority)
  }

  cancel(reason: CancelReason): void {
    if (this.closed) return
    const code = wireCodes[reason]?.h2 ?? ErrorCode.Cancel
    this.owner.resetStream(this, code, new CancelledError(reason, 'cancelled by this side', { unprocessed: this.id === 0, wireCode: code }))
  }
}
