import { Alarm, type Clock } from './clock.ts'
import type { IpAddress } from './addresses.ts'

/**
 * Begins one attempt. `done` is called once, later, with an error or the connection; not after
 * `cancel`, which leaves nothing behind.
 */
export type Attempt<T> = (address: IpAddress, done: (error: Error | undefined, connection: T | undefined) => void) => { cancel(): void }

interface Runner {
  readonly address: IpAddress
  cancel: () => void
}

/** Why no address could be reached, in the order the attempts failed. */
export interface AttemptFailure {
  readonly address: IpAddress
  readonly error: Error
}

/**
 * Connects to the first of several addresses that answers (RFC 8305 §5): attempts run side by side,
 * a new one starts `delay` ms after the last or at once when one fails, and the first connection
 * ends all others. Pure: connecting and time come from outside.
 */
export class Race<T> {
  readonly #addresses: readonly IpAddress[]
  readonly #clock: Clock
  readonly #delay: number
  readonly #attempt: Attempt<T>
  readonly #done: (failures: readonly AttemptFailure[], connection: T | undefined) => void
  readonly #alarm: Alarm
  readonly #running: Set<Runner>
  readonly #failures: AttemptFailure[]
  #next: number
  #over: boolean

  /** `addresses` in the order they shall be tried. `done` gets the connection, or undefined and every failure. */
  constructor(
    addresses: readonly IpAddress[],
    clock: Clock,
    delay: number,
    attempt: Attempt<T>,
    done: (failures: readonly AttemptFailure[], connection: T | undefined) => void,
  ) {
    this.#addresses = addresses
    this.#clock = clock
    this.#delay = delay
    this.#attempt = attempt
    this.#done = done
    this.#alarm = new Alarm(() => this.#startNext())
    this.#running = new Set()
    this.#failures = []
    this.#next = 0
    this.#over = false
  }

  start(): void {
    this.#startNext()
  }

  /** Ends all attempts; `done` is not called. */
  cancel(): void {
    this.#over = true
    this.#clock.clear(this.#alarm)
    for (const runner of this.#running) runner.cancel()
    this.#running.clear()
  }

  #startNext(): void {
    if (this.#over) return
    const address = this.#addresses[this.#next++]
    if (address === undefined) {
      if (this.#running.size > 0) return
      this.#over = true
      this.#done(this.#failures, undefined)
      return
    }
    const runner: Runner = { address, cancel: nothing }
    this.#running.add(runner)
    if (this.#next < this.#addresses.length) this.#clock.set(this.#alarm, this.#clock.now() + this.#delay)
    try {
      runner.cancel = this.#attempt(address, (error, connection) => this.#finished(runner, error, connection)).cancel
    } catch (error) {
      this.#finished(runner, error as Error, undefined)
    }
  }

  #finished(runner: Runner, error: Error | undefined, connection: T | undefined): void {
    if (this.#over || !this.#running.delete(runner)) return
    if (connection !== undefined) {
      this.cancel()
      this.#done(this.#failures, connection)
      return
    }
    this.#failures.push({ address: runner.address, error: error ?? new Error('no connection') })
    // RFC 8305 §5: a failure starts the next attempt without waiting.
    this.#clock.clear(this.#alarm)
    this.#startNext()
  }
}

function nothing(): void {}
