import { largestWindow } from './frame.ts'

/**
 * A window we send into (RFC 9113 §6.9). It can be negative: SETTINGS_INITIAL_WINDOW_SIZE may shrink
 * under what was sent already (RFC 9113 §6.9.2).
 */
export class SendWindow {
  size: number

  constructor(size: number) {
    this.size = size
  }

  /** Takes the peer's credit, or a change of its setting; false: the window would pass 2^31 - 1. */
  grow(byteCount: number): boolean {
    if (this.size + byteCount > largestWindow) return false
    this.size += byteCount
    return true
  }
}

/**
 * A window we receive into. Credit goes back when half of it is used up: one WINDOW_UPDATE for many
 * frames, and the sender never waits for it on a short path.
 */
export class ReceiveWindow {
  /** What the window is filled up to. */
  target: number
  /** What the peer may still send. */
  left: number
  /** Consumed and not given back yet. */
  owed: number

  constructor(size: number) {
    this.target = size
    this.left = size
    this.owed = 0
  }

  /** The peer sent `byteCount`; false: more than the window allowed. */
  take(byteCount: number): boolean {
    this.left -= byteCount
    return this.left >= 0
  }

  /** `byteCount` was consumed; true: it is time for a WINDOW_UPDATE. */
  consume(byteCount: number): boolean {
    this.owed += byteCount
    return this.owed * 2 >= this.target
  }

  /** The increment of the WINDOW_UPDATE to send now. */
  refill(): number {
    const { owed } = this
    this.owed = 0
    this.left += owed
    return owed
  }

  /** Widens the window; the difference goes to the peer with the next update. */
  widen(target: number): void {
    if (target <= this.target) return
    this.owed += target - this.target
    this.target = target
  }
}
