import type { TimerWheel, WheelNode } from '../bytes/index.ts'
import type { Instant } from '../http/index.ts'

/**
 * Time as faces, pool and drivers see it. Two exist: the system's, and the seeded world's of
 * `heddle/testing`, in which hours pass in a moment and always the same way.
 */
export interface Clock {
  /** Milliseconds, monotonic. Read once per turn and kept until the turn ends, so it is cheap. */
  now(): Instant
  /** `Date` of now in the form of RFC 9110 §5.6.7, renewed once a second. */
  httpDate(): string
  /** Milliseconds since 1970, for logs. */
  wallTime(): number
  /** Arms `alarm` for `deadline`; moves it if armed; Infinity disarms. O(1). */
  set(alarm: Alarm, deadline: Instant): void
  /** Disarms `alarm`. O(1). */
  clear(alarm: Alarm): void
  /** Runs `task` once, after the input of this turn was read (setImmediate). Tasks run in order. */
  soon(task: () => void): void
}

/** One pending deadline; make it once and arm it as often as needed. */
export type Alarm = WheelNode
export type { TimerWheel }
