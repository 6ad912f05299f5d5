import { largestWindow } from './frame.ts'
import type { Connection } from './connection.ts'
import { Stage } from './lifetime.ts'
import { Phase } from './state.ts'
import type { Stream } from './stream.ts'

/** RFC 9113 §6.9.2: every window until SETTINGS and WINDOW_UPDATE say otherwise. */
export const firstWindow = 65_535
/** With less than this left the peer may have to wait. */
const scarce = 16_384

/** The two windows of a stream, or of a connection (RFC 9113 §6.9). */
export class Windows {
  /** What we may send. Negative when SETTINGS_INITIAL_WINDOW_SIZE shrank under what was sent already (RFC 9113 §6.9.2). */
  declare sendWindow: number
  /** What the peer's window is filled up to. */
  declare receiveTarget: number
  /** What the peer may still send. */
  declare receiveLeft: number
  /** Consumed and not given back yet. Negative: so much is kept back, to make the window smaller. */
  declare receiveOwed: number
  /** What the target never passes. */
  declare receiveMost: number

  constructor(sendWindow: number, receiveWindow: number) {
    this.sendWindow = sendWindow
    this.receiveTarget = receiveWindow
    this.receiveLeft = receiveWindow
    this.receiveOwed = 0
    this.receiveMost = largestWindow
  }

  /** Takes the peer's credit, or a change of its setting; false: the window would pass 2^31 - 1. */
  growSend(byteCount: number): boolean {
    if (this.sendWindow + byteCount > largestWindow) return false
    this.sendWindow += byteCount
    return true
  }

  /** The peer sent `byteCount`; false: more than the window allowed. What is empty needs no window, be it negative (RFC 9113 §6.9). */
  takeReceived(byteCount: number): boolean {
    this.receiveLeft -= byteCount
    return this.receiveLeft >= 0 || byteCount === 0
  }

  /**
   * `byteCount` was consumed; true: it is time for a WINDOW_UPDATE. Half a window at a time: one frame
   * of credit for many of content, and the sender never waits for it on a short path.
   */
  consumed(byteCount: number): boolean {
    this.receiveOwed += byteCount
    return this.receiveOwed * 2 >= this.receiveTarget
  }

  /** The increment of the WINDOW_UPDATE to send now. */
  refill(): number {
    const { receiveOwed } = this
    if (receiveOwed <= 0) return 0
    this.receiveOwed = 0
    this.receiveLeft += receiveOwed
    return receiveOwed
  }

  /** Widens the peer's window; the difference is given with the next update. */
  widen(target: number): void {
    const most = target < this.receiveMost ? target : this.receiveMost
    if (most <= this.receiveTarget) return
    this.receiveOwed += most - this.receiveTarget
    this.receiveTarget = most
  }

  /** The target never passes `most`, or stays what it is. */
  limitGrowth(most: number): void {
    this.receiveMost = most > this.receiveTarget ? most : this.receiveTarget
  }

  /** The peer has taken a setting that made its window `byteCount` smaller. A target that was chosen meanwhile stays, and it is owed as much. */
  shrinkReceive(byteCount: number): void {
    this.receiveLeft -= byteCount
    if (this.receiveTarget === firstWindow) this.receiveTarget -= byteCount
    else this.receiveOwed += byteCount
  }

  /** The window is `target` from now on: at once if that is more, by giving less credit if it is less. */
  limit(target: number): void {
    this.receiveMost = target
    this.receiveOwed += target - this.receiveTarget
    this.receiveTarget = target
  }
}

/**
 * When the peer gets credit, and how much: half a window at a time, the connection's window large from
 * the start, and both growing while they, and not the path, are what limits the peer.
 */
export class Credit {
  /** When the connection's window was last opened after it had become scarce. */
  openedAt: number
  readonly #owner: Connection
  /** What the streams' windows are widened to, once they turn out to be used. */
  #streamTarget: number
  /** A WINDOW_UPDATE of the connection is due. */
  #due: boolean
  /** Streams that are due. */
  #first: Stream | undefined
  #last: Stream | undefined

  constructor(owner: Connection) {
    this.openedAt = 0
    this.#owner = owner
    this.#streamTarget = owner.limits.streamWindow
    this.#first = undefined
    this.#last = undefined
    owner.windows.widen(owner.limits.connectionWindow)
    this.#due = owner.windows.receiveOwed > 0
  }

  /** `byteCount` octets of `stream` need not be held any more. */
  give(stream: Stream, byteCount: number): void {
    if (byteCount === 0) return
    this.giveConnection(byteCount)
    if (stream.receiving === Phase.Ended || !stream.consumed(byteCount) || stream.inCredits) return
    this.#append(stream)
    this.#owner.liveness.probeBandwidth()
  }

  /** The window of `stream` is `byteCount` from now on. */
  limit(stream: Stream, byteCount: number): void {
    stream.limit(byteCount)
    if (stream.id !== 0) this.maybeUpdate(stream)
  }

  /**
   * RFC 9113 §6.9.2: the peer goes by our SETTINGS now, and a small window of theirs holds for streams
   * that began before as well: credit that waits for half of the first window would never come.
   */
  settle(): void {
    const { limits, exchanges } = this.#owner
    const taken = firstWindow - limits.streamWindow
    if (taken <= 0) return
    for (let stream = exchanges.reserved.first; stream !== undefined; stream = stream.next as Stream | undefined)
      stream.shrinkReceive(taken)
    for (const stream of exchanges.table.all()) {
      stream.shrinkReceive(taken)
      this.maybeUpdate(stream)
    }
  }

  /** Gives `stream` what it is owed if it is time, although nothing was consumed. */
  maybeUpdate(stream: Stream): void {
    if (stream.receiving !== Phase.Ended && stream.consumed(0) && !stream.inCredits) this.#append(stream)
  }

  /** `stream` is due for an update. */
  #append(stream: Stream): void {
    stream.inCredits = true
    stream.nextCredit = undefined
    if (this.#last === undefined) this.#first = stream
    else this.#last.nextCredit = stream
    this.#last = stream
    this.#owner.markDirty()
  }

  /** As `give`, for octets of a stream that is gone or shall not be sent more. */
  giveConnection(byteCount: number): void {
    const owner = this.#owner
    if (byteCount === 0) return
    const isTime = owner.windows.consumed(byteCount)
    if (this.#due || owner.lifetime.stage !== Stage.Open) return
    if (isTime) {
      this.#due = true
      owner.liveness.probeBandwidth()
    } else if (owner.windows.receiveLeft >= scarce) return
    owner.markDirty()
  }

  /**
   * Client: the connection's window is used up by content that waits for its readers. Whoever has read all
   * there was must not wait for them: a program may ask for twenty things and read one after the other. So
   * the window grows as long as somebody starves; what can lie unread is bounded by the streams' windows.
   */
  #maybeRelieve(): void {
    const { isServer, exchanges, windows, limits } = this.#owner
    if (isServer || !exchanges.someStarves) return
    windows.widen(windows.receiveTarget + limits.streamWindow)
    this.#due = true
  }

  /**
   * `byteCount` octets of content came within one round trip. Credit comes back half a window at a time,
   * so a window that is the limit brings about half of itself in the round trip behind the question.
   */
  measured(byteCount: number): void {
    const { limits, windows } = this.#owner
    if (byteCount * 5 >= this.#streamTarget * 2) this.#streamTarget = Math.min(limits.maxWindow, this.#streamTarget * 2)
    if (byteCount * 5 >= windows.receiveTarget * 2) windows.widen(Math.min(limits.maxWindow, windows.receiveTarget * 2))
    windows.widen(Math.min(limits.maxWindow, this.#streamTarget))
  }

  /** True: no window can grow any more. */
  get isWidest(): boolean {
    const { limits, windows } = this.#owner
    return this.#streamTarget >= limits.maxWindow && windows.receiveTarget >= limits.maxWindow
  }

  /** Stages the updates that are due. */
  stage(): void {
    const { windows, sender, now, lifetime } = this.#owner
    if (lifetime.stage !== Stage.Open) return
    let stream = this.#first
    this.#first = undefined
    this.#last = undefined
    while (stream !== undefined) {
      const next = stream.nextCredit
      stream.nextCredit = undefined
      stream.inCredits = false
      // RFC 9113 §5.1: a stream whose peer has ended needs no window.
      if (!stream.closed && stream.receiving !== Phase.Ended) {
        stream.widen(this.#streamTarget)
        stream.receivedAt = now
        sender.stageWindowUpdate(stream.id, stream.refill())
      }
      stream = next
    }
    if (!this.#due && windows.receiveLeft < scarce) this.#maybeRelieve()
    if (!this.#due) return
    this.#due = false
    if (windows.receiveLeft < scarce) this.openedAt = now
    sender.stageWindowUpdate(0, windows.refill())
  }
}
