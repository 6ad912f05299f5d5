import type { Instant } from 'heddle/http'
import { Alarm, type Clock } from 'heddle/io'

/** Notices that nothing moves: in a tunnel, or in a response. Movement costs one store; the alarm is moved when it rings. */
export class IdleWatch {
  /** When the last byte moved. */
  lastActivity: Instant
  readonly #clock: Clock
  readonly #timeout: number
  readonly #onIdle: (now: Instant) => void
  readonly #alarm: Alarm

  /** `onIdle` is called once no byte has moved for `timeout` ms; the watch goes on if it sets `lastActivity`. */
  constructor(clock: Clock, timeout: number, onIdle: (now: Instant) => void) {
    this.lastActivity = clock.now()
    this.#clock = clock
    this.#timeout = timeout
    this.#onIdle = onIdle
    this.#alarm = new Alarm(() => this.#check())
    clock.set(this.#alarm, this.lastActivity + timeout)
  }

  stop(): void {
    this.#clock.clear(this.#alarm)
  }

  #check(): void {
    const now = this.#clock.now()
    if (this.lastActivity + this.#timeout <= now) this.#onIdle(now)
    const due = this.lastActivity + this.#timeout
    if (due > now) this.#clock.set(this.#alarm, due)
  }
}
