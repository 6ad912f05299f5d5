import type { Instant } from '../http/index.ts'
import type { Rtt } from './rtt.ts'

/**
 * How much may be in flight on a path: the window, and how it moves (RFC 9002 §7). Who is told what, and
 * how often, is recovery's: an implementation hears of at most one loss per round trip, and of
 * acknowledged octets only if the window was used and its last reduction lies behind them.
 */
export interface Congestion {
  /** Octets that may be in flight. */
  readonly window: number
  readonly isSlowStart: boolean
  /** `byteCount` octets were acknowledged that used the window. */
  onAcked(byteCount: number, rtt: Rtt, now: Instant): void
  /** Octets were acknowledged while the application did not use the window, which does not grow then (RFC 9002 §7.8). */
  onUnused(now: Instant): void
  /** The round trip of a packet that left at `timeSent` was measured. */
  onRttSample(timeSent: Instant, rtt: Rtt, now: Instant): void
  /** A packet was lost, or marked by the network (RFC 9002 §7.3.2). */
  onCongestionEvent(now: Instant): void
  /** RFC 9002 §7.6. */
  onPersistentCongestion(): void
  /** The size of a full datagram is `byteCount` from now on. */
  resize(maxDatagramSize: number): void
}

/** RFC 9002 §7.2: the window a path begins with. */
export function initialWindow(maxDatagramSize: number): number {
  return Math.min(10 * maxDatagramSize, Math.max(14_720, 2 * maxDatagramSize))
}

/** RFC 9002 §7.2: the least window. */
export function minimumWindow(maxDatagramSize: number): number {
  return 2 * maxDatagramSize
}
