import type { Instant } from 'heddle/http'
import { Alarm, type Clock } from 'heddle/io'

/** Something that waits in a {@link DeadlineQueue}. */
export interface Waiting {
  /** Owned by the queue. */
  deadlineQueue: DeadlineQueue | undefined
  deadline: Instant
  before: Waiting | undefined
  after: Waiting | undefined
  /** Called once `deadline` has come; it stands in no queue any more. */
  onDeadline(now: Instant): void
}

/**
 * Deadlines that all lie the same time ahead, so that the order of arrival is the order of expiry:
 * one alarm serves them all, and adding and removing cost two links.
 */
export class DeadlineQueue {
  /** ms from `add` to `onDeadline`. */
  readonly timeout: number
  readonly #clock: Clock
  readonly #alarm: Alarm
  #first: Waiting | undefined
  #last: Waiting | undefined
  #length: number

  constructor(timeout: number, clock: Clock) {
    this.timeout = timeout
    this.#clock = clock
    this.#alarm = new Alarm(() => this.#expire())
    this.#first = undefined
    this.#last = undefined
    this.#length = 0
  }

  get length(): number {
    return this.#length
  }

  /** `waiting` must stand in no queue. */
  add(waiting: Waiting): void {
    waiting.deadlineQueue = this
    waiting.deadline = this.#clock.now() + this.timeout
    waiting.before = this.#last
    waiting.after = undefined
    if (this.#last === undefined) {
      this.#first = waiting
      this.#clock.set(this.#alarm, waiting.deadline)
    } else this.#last.after = waiting
    this.#last = waiting
    this.#length++
  }

  /** `waiting` must stand in this queue. The alarm stays as it is: ringing early costs less than moving it each time. */
  remove(waiting: Waiting): void {
    const { before, after } = waiting
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    waiting.before = undefined
    waiting.after = undefined
    waiting.deadlineQueue = undefined
    this.#length--
    if (this.#first === undefined) this.#clock.clear(this.#alarm)
  }

  #expire(): void {
    const now = this.#clock.now()
    for (let first = this.#first; first !== undefined && first.deadline <= now; first = this.#first) {
      this.remove(first)
      first.onDeadline(now)
    }
    if (this.#first !== undefined) this.#clock.set(this.#alarm, this.#first.deadline)
  }
}
