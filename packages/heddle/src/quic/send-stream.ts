import { SendWindow } from './flow.ts'
import { SendBuffer } from './send-buffer.ts'
import { SentValue } from './sent-value.ts'

/** RFC 9000 §3.1; `Ended` is "Data Recvd" and "Reset Recvd". */
export const Sending = { Open: 0, Finished: 1, Reset: 2, Ended: 3 } as const
export type Sending = (typeof Sending)[keyof typeof Sending]

/** With so many octets waiting a sender is asked to wait. */
export const highWater = 65_536
const lowWater = 32_768

/**
 * The sending half of a stream (RFC 9000 §3.1).
 *
 *     Open ── the last octet was written ──► Finished ── all has arrived ──► Ended
 *       └──────────── reset ─────────────────────┴────► Reset ── arrived ──────▲
 */
export class SendHalf {
  state: Sending
  readonly buffer: SendBuffer
  /** What the peer allows (RFC 9000 §4.1). */
  readonly window: SendWindow
  /** The end of the stream: to be told with the last octets, or by itself. */
  readonly fin: SentValue
  /** RESET_STREAM. */
  readonly resetting: SentValue
  errorCode: number
  /** The limit that was last told in STREAM_DATA_BLOCKED; −1: none. */
  blockedAt: number
  readonly blocked: SentValue
  /** A sender was told to wait. */
  waits: boolean
  /** Octets that left for the first time, of which nobody was told. */
  untold: number

  constructor(limit: number) {
    this.state = Sending.Open
    this.buffer = new SendBuffer()
    this.window = new SendWindow(limit)
    this.fin = new SentValue()
    this.resetting = new SentValue()
    this.errorCode = 0
    this.blockedAt = -1
    this.blocked = new SentValue()
    this.waits = false
    this.untold = 0
  }

  /** Something may leave that needs no credit: what was lost, or a bare end. */
  get hasUncredited(): boolean {
    if (this.state >= Sending.Reset) return false
    const { buffer } = this
    return !buffer.lost.isEmpty || (this.fin.isDue && buffer.unsent === 0)
  }

  /** Octets wait that the stream's window takes. */
  get hasCredited(): boolean {
    return this.state < Sending.Reset && this.buffer.unsent > 0 && this.buffer.next < this.window.limit
  }

  /** Octets wait that the stream's window does not take. */
  get isBlocked(): boolean {
    return this.state < Sending.Reset && this.buffer.unsent > 0 && this.buffer.next >= this.window.limit
  }

  /** Takes octets; true: there may be more. */
  get isWritable(): boolean {
    const isWritable = this.buffer.unsent < highWater
    if (!isWritable) this.waits = true
    return isWritable
  }

  /** Those who were told to wait may go on. */
  get hasDrained(): boolean {
    if (!this.waits || this.buffer.unsent > lowWater) return false
    this.waits = false
    return true
  }

  /** RESET_STREAM is to be sent. False: there is nothing to reset any more. */
  reset(errorCode: number): boolean {
    if (this.state >= Sending.Reset) return false
    this.state = Sending.Reset
    this.errorCode = errorCode
    this.resetting.set()
    this.fin.clear()
    this.blocked.clear()
    // RFC 9000 §3.1: what did not arrive is not sent again.
    this.buffer.clear()
    return true
  }

  /** The final size that RESET_STREAM tells: the octets that were sent. */
  get finalSize(): number {
    return this.buffer.next
  }

  /** All has arrived, the end included. */
  maybeEnd(): boolean {
    const isOver = this.state === Sending.Finished && this.fin.isReceived && this.buffer.base === this.buffer.end
    if (isOver) this.state = Sending.Ended
    return isOver
  }
}
