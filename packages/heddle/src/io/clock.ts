import { WheelNode } from '../bytes/index.ts'
import type { Instant } from '../http/index.ts'

/**
 * Time as faces, pool and drivers see it. Two exist: the system's, and the seeded world's of
 * `heddle/testing`, in which hours pass in a moment and always the same way.
 */
export interface Clock {
  /** Milliseconds, monotonic. Within a turn of a driver it is read once and kept, so it is cheap there. */
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
  /**
   * A driver begins to run its engine: the time is read once and `now` stands still until `endTurn`.
   * Clocks whose time moves by itself have this pair; the world's does not need it.
   */
  startTurn?(): Instant
  /** Ends what `startTurn` began. */
  endTurn?(): void
}

/** One pending deadline: `new Alarm(expire)`. Make it once and arm it with `Clock.set` as often as needed. */
export type Alarm = WheelNode
/** See the type of that name. */
export const Alarm: typeof WheelNode = WheelNode
