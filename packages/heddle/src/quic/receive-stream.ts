import { FrameType } from './frame-type.ts'
import { ReceiveWindow } from './flow.ts'
import { Reassembly } from './reassembly.ts'
import { SentValue } from './sent-value.ts'
import { TransportError, transportFault, type TransportFault } from './transport-error.ts'

/** RFC 9000 §3.2; `Ended` is "Data Read" and "Reset Read". */
export const Receiving = { Open: 0, SizeKnown: 1, Ended: 2 } as const
export type Receiving = (typeof Receiving)[keyof typeof Receiving]

/**
 * The receiving half of a stream (RFC 9000 §3.2).
 *
 *     Open ── FIN ──► SizeKnown ── all was handed on ──► Ended
 *       └──────────────── RESET_STREAM ────────────────────▲
 */
export class ReceiveHalf {
  state: Receiving
  readonly pieces: Reassembly
  readonly window: ReceiveWindow
  /** Octets of the whole stream; −1: not known yet. */
  finalSize: number
  /** MAX_STREAM_DATA. */
  readonly credit: SentValue
  /** STOP_SENDING. */
  readonly stopping: SentValue
  stopCode: number
  /** Nobody wants what comes: it is credited at once. */
  isStopped: boolean

  constructor(size: number, most: number) {
    this.state = Receiving.Open
    this.pieces = new Reassembly()
    this.window = new ReceiveWindow(size, most)
    this.finalSize = -1
    this.credit = new SentValue()
    this.stopping = new SentValue()
    this.stopCode = 0
    this.isStopped = false
  }

  /**
   * Takes note that octets up to `end` exist, and that it is the end. Returns how many are new to flow
   * control, or what is wrong.
   */
  extend(end: number, isEnd: boolean, frameType: FrameType): number | TransportFault {
    const { window, finalSize } = this
    // RFC 9000 §4.5: the final size does not change, and nothing lies behind it.
    if (finalSize >= 0 && (end > finalSize || (isEnd && end !== finalSize))) {
      return transportFault(TransportError.finalSizeError, frameType, 'the final size of a stream changed')
    }
    if (isEnd && end < window.received)
      return transportFault(TransportError.finalSizeError, frameType, 'a stream ends before what came of it')
    const more = Math.max(0, end - window.received)
    // RFC 9000 §4.1.
    if (more > 0 && !window.take(more))
      return transportFault(TransportError.flowControlError, frameType, 'more data than the stream may have')
    if (isEnd && finalSize < 0) {
      this.finalSize = end
      this.state = Receiving.SizeKnown
      // RFC 9000 §3.2: no more credit is needed.
      this.credit.clear()
    }
    return more
  }

  /** All octets were handed on, and it is known that they are all. */
  get isComplete(): boolean {
    return this.pieces.base === this.finalSize
  }
}
