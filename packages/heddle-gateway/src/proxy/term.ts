import { Alarm, type Clock } from 'heddle/io'

/** An instant that can only be brought forward, and what happens then. */
export class Term {
  isOver: boolean
  readonly #clock: Clock
  readonly #alarm: Alarm
  readonly #task: () => void

  constructor(clock: Clock, task: () => void) {
    this.isOver = false
    this.#clock = clock
    this.#alarm = new Alarm(() => this.#expire())
    this.#task = task
  }

  /** It comes `ms` from now, unless it comes before. */
  set(ms: number): void {
    if (this.isOver) return
    const at = this.#clock.now() + ms
    if (ms <= 0) this.#expire()
    else if (this.#alarm.list === undefined || at < this.#alarm.deadline) this.#clock.set(this.#alarm, at)
  }

  #expire(): void {
    this.#clock.clear(this.#alarm)
    this.isOver = true
    this.#task()
  }
}
