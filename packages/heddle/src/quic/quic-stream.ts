import type { Linked } from '../bytes/index.ts'
import { Receiving, type ReceiveHalf } from './receive-stream.ts'
import type { Scheduled } from './schedule.ts'
import { Sending, type SendHalf } from './send-stream.ts'
import type { QuicStream, QuicStreamHandler } from './stream.ts'
import type { StreamSet } from './stream-set.ts'

const nobody: QuicStreamHandler = {
  onData() {},
  onReset() {},
  onStopSending() {},
  onSent() {},
  onClose() {},
}

/** A stream and its place in the connection: one of its halves, or both. */
export class Stream implements QuicStream, Scheduled {
  previous: Linked | undefined
  next: Linked | undefined
  place: number
  readonly id: number
  handler: QuicStreamHandler
  readonly set: StreamSet
  readonly sending: SendHalf | undefined
  readonly receiving: ReceiveHalf | undefined
  urgency: number
  incremental: boolean
  /** It stands in the schedule of those with octets and a window. */
  isReady: boolean
  /** It waits among those with something to send that needs no credit. */
  isUncredited: boolean
  /** It waits among those with control frames to send. */
  isControlled: boolean
  /** It waits for its handler to be told of what was sent. */
  isTold: boolean
  /** Both halves are over; the handler is told soon, or was. */
  isClosed: boolean

  constructor(id: number, set: StreamSet, sending: SendHalf | undefined, receiving: ReceiveHalf | undefined) {
    this.previous = undefined
    this.next = undefined
    this.place = -1
    this.id = id
    this.handler = nobody
    this.set = set
    this.sending = sending
    this.receiving = receiving
    this.urgency = 3
    this.incremental = false
    this.isReady = false
    this.isUncredited = false
    this.isControlled = false
    this.isTold = false
    this.isClosed = false
  }

  get queued(): number {
    const { sending, set } = this
    return sending === undefined || sending.state >= Sending.Reset || set.isClosed ? 0 : sending.buffer.unsent
  }

  send(buffer: Uint8Array, start: number, limit: number, fin: boolean): boolean {
    const { sending } = this
    if (sending === undefined || sending.state !== Sending.Open || this.set.isClosed) return false
    sending.buffer.write(buffer, start, limit)
    return this.#written(sending, fin)
  }

  sendOwned(chunk: Uint8Array, fin: boolean): boolean {
    const { sending } = this
    if (sending === undefined || sending.state !== Sending.Open || this.set.isClosed) return false
    sending.buffer.writeOwned(chunk)
    return this.#written(sending, fin)
  }

  consume(byteCount: number): void {
    if (!this.isClosed) this.set.consume(this, byteCount)
  }

  reset(errorCode: number): void {
    if (this.sending?.reset(errorCode) === true) this.set.onReset(this)
  }

  stopSending(errorCode: number): void {
    const { receiving } = this
    if (receiving === undefined || receiving.isStopped || receiving.state === Receiving.Ended) return
    receiving.isStopped = true
    receiving.stopCode = errorCode
    this.set.onStopped(this, receiving)
  }

  setPriority(urgency: number, incremental: boolean): void {
    if (urgency === this.urgency && incremental === this.incremental) return
    const { isReady } = this
    const { schedule } = this.set
    schedule.remove(this)
    this.urgency = urgency
    this.incremental = incremental
    if (isReady) schedule.add(this)
  }

  limitWindow(byteCount: number): void {
    const { receiving } = this
    if (receiving === undefined || receiving.state !== Receiving.Open) return
    receiving.window.fix(byteCount)
    this.set.consume(this, 0)
  }

  limitWindowGrowth(byteCount: number): void {
    const { receiving } = this
    if (receiving !== undefined) receiving.window.most = Math.max(receiving.window.size, byteCount)
  }

  /** Both halves are over. */
  get isOver(): boolean {
    const { sending, receiving } = this
    return (sending === undefined || sending.state === Sending.Ended) && (receiving === undefined || receiving.state === Receiving.Ended)
  }

  #written(sending: SendHalf, fin: boolean): boolean {
    if (fin) {
      sending.state = Sending.Finished
      sending.fin.set()
    }
    this.set.onWritten(this, sending)
    return sending.isWritable
  }
}
