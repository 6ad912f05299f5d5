import type { Instant } from '../http/index.ts'

/**
 * What the peer may send, on a stream or on the connection (RFC 9000 §4.1): an offset that it must stay
 * below, which rises as what came is consumed: half a window at a time, so that one frame of credit goes
 * for many of data. The window doubles while the peer uses it up faster than credit can come back: then
 * it, and not the path, is what holds the peer.
 */
export class ReceiveWindow {
  /** What the peer was told, or is about to be: it stays below this offset. */
  limit: number
  /** Octets that the limit is ahead of what was consumed. */
  size: number
  /** `size` does not grow past this. */
  most: number
  /** The highest offset that came; of a connection the sum over its streams. */
  received: number
  consumed: number
  #openedAt: Instant

  constructor(size: number, most: number) {
    this.limit = size
    this.size = size
    this.most = Math.max(size, most)
    this.received = 0
    this.consumed = 0
    this.#openedAt = -Infinity
  }

  /** `byteCount` more octets came. False: the peer had no credit for them. */
  take(byteCount: number): boolean {
    this.received += byteCount
    return this.received <= this.limit
  }

  /** `byteCount` octets are held no more. True: it is time to tell a new limit. */
  consume(byteCount: number): boolean {
    this.consumed += byteCount
    return this.isDue
  }

  /** Half of the window is used up. */
  get isDue(): boolean {
    const left = this.limit - this.consumed
    return left * 2 <= this.size && left < this.size
  }

  /** The limit to tell now; raises it if that is due, and not if it is told once more. `roundTrip`: ms. */
  refill(roundTrip: number, now: Instant): number {
    if (!this.isDue) return this.limit
    // Half a window in less than two round trips: the peer waited for credit, or nearly so.
    if (now - this.#openedAt < 2 * roundTrip && this.size < this.most) this.size = Math.min(this.most, this.size * 2)
    this.#openedAt = now
    this.limit = this.consumed + this.size
    return this.limit
  }

  /** The window is `size` from now on, and does not grow. */
  fix(size: number): void {
    this.size = size
    this.most = size
  }
}

/** What may be sent, on a stream or on the connection: the peer's limit, and how far it is used. */
export class SendWindow {
  limit: number
  /** The highest offset sent; of a connection the sum over its streams. */
  used: number

  constructor(limit: number) {
    this.limit = limit
    this.used = 0
  }

  get left(): number {
    return this.limit - this.used
  }

  /** MAX_DATA or MAX_STREAM_DATA. True if it is more than before; less is ignored (RFC 9000 §4.1). */
  raise(limit: number): boolean {
    if (limit <= this.limit) return false
    this.limit = limit
    return true
  }
}
