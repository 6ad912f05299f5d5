import type { Instant } from 'heddle/http'
import { Alarm, type Clock } from 'heddle/io'

/** Ends a tunnel in which nothing moves. Movement costs one store; the alarm is moved when it rings. */
export class TunnelWatch {
  /** When the last byte moved, either way. */
  lastActivity: Instant
  readonly #clock: Clock
  readonly #timeout: number
  readonly #onIdle: () => void
  readonly #alarm: Alarm

  /** `onIdle` is called once no byte has moved for `timeout` ms. */
  constructor(clock: Clock, timeout: number, onIdle: () => void) {
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
    const due = this.lastActivity + this.#timeout
    if (due > this.#clock.now()) this.#clock.set(this.#alarm, due)
    else this.#onIdle()
  }
}
