import type { Linked } from '../bytes/index.ts'
import { TimeoutError, tracedError, UsageError } from '../http/index.ts'
import { Alarm, type Clock } from '../io/index.ts'
import { unwatchAbort, watchAbort, type Abortable } from '../web/index.ts'

let captured: (value: unknown) => void
/** One for all promises: a closure for each, or `withResolvers`, would be a third of what an operation costs. */
const capture = (resolve: (value: unknown) => void): void => {
  captured = resolve
}

/** A `read` or `write` that waits. Without signal and deadline it is this object and its promise, and nothing else. */
export class Operation implements Linked {
  previous: Linked | undefined
  next: Linked | undefined
  readonly promise: Promise<unknown>
  /** A write's message, counted as `WebSocketConnection.messagesAccepted`. */
  number: number
  /** A read for an iterator, which wants its result in a form of its own. */
  iterates: boolean
  cancellation: Cancellation | undefined
  readonly #resolve: (value: unknown) => void

  constructor() {
    this.previous = undefined
    this.next = undefined
    this.number = 0
    this.iterates = false
    this.cancellation = undefined
    this.promise = new Promise(capture)
    this.#resolve = captured
  }

  fulfill(value: unknown): void {
    this.cancellation?.release()
    this.#resolve(this.iterates ? { value, done: value === undefined } : value)
  }

  /** With `error`, which gets the stack of whoever awaits the promise. */
  fail(error: unknown): void {
    this.cancellation?.release()
    this.#resolve(failure(error))
  }

  /** `reason` is a TimeoutError of ours if it `timedOut`, else what a signal was aborted with, which stays as it is. */
  cancel(reason: unknown, timedOut: boolean): void {
    this.cancellation?.release()
    this.#resolve(timedOut ? failure(reason) : Promise.reject(reason))
  }
}

/**
 * A promise that rejects with `error` and the stack of whoever awaits it, or a promise that was resolved with
 * it. Nothing is paid for the stack as long as nothing fails.
 */
export async function failure(error: unknown): Promise<never> {
  // The first turn lets the other promise adopt this one, and the second is a reaction that V8 can follow to who awaits.
  await undefined
  await undefined
  throw tracedError(error, failure)
}

/** Who is told that an operation is to end before its time, and takes it out of its list. */
export interface OperationOwner {
  /** `timedOut`: `reason` is a TimeoutError of ours; else it is what the signal was aborted with. */
  onCancelled(operation: Operation, reason: unknown, timedOut: boolean): void
}

/** What is wrong with a deadline, or undefined. It is for the promise to tell, before anything has begun. */
export function deadlineProblem(deadline: number | undefined): UsageError | undefined {
  if (deadline === undefined || (typeof deadline === 'number' && deadline >= 0)) return undefined
  return new UsageError(`deadline is a number of ms, 0 or more, or Infinity, and this is ${String(deadline)}`)
}

/** What ends an operation before its time: its signal, its deadline, or both. Made for operations that have one. */
export class Cancellation implements Abortable {
  previous: Linked | undefined
  next: Linked | undefined
  readonly #operation: Operation
  readonly #owner: OperationOwner
  readonly #clock: Clock
  #signal: AbortSignal | undefined
  readonly #alarm: Alarm | undefined

  /** `signal` is not aborted. `phase`: of the TimeoutError. */
  constructor(
    operation: Operation,
    owner: OperationOwner,
    clock: Clock,
    signal: AbortSignal | undefined,
    deadline: number,
    phase: 'read' | 'send',
  ) {
    this.previous = undefined
    this.next = undefined
    this.#operation = operation
    this.#owner = owner
    this.#clock = clock
    this.#signal = signal
    this.#alarm = undefined
    if (signal !== undefined) watchAbort(signal, this)
    if (deadline !== Infinity) {
      this.#alarm = new Alarm(() => this.#expire(phase, deadline))
      clock.set(this.#alarm, clock.now() + deadline)
    }
  }

  onAbort(): void {
    const signal = this.#signal as AbortSignal
    this.#signal = undefined
    this.#owner.onCancelled(this.#operation, signal.reason, false)
  }

  /** The operation is over. */
  release(): void {
    if (this.#signal !== undefined) unwatchAbort(this.#signal, this)
    this.#signal = undefined
    if (this.#alarm !== undefined) this.#clock.clear(this.#alarm)
  }

  #expire(phase: 'read' | 'send', deadline: number): void {
    const what = phase === 'read' ? 'no message came' : 'the peer did not take the message'
    this.#owner.onCancelled(this.#operation, new TimeoutError(phase, `${what} within ${deadline} ms`), true)
  }
}
