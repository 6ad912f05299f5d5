import { List, type Linked } from '../bytes/index.ts'

/** What ends when a signal is aborted. */
export interface Abortable extends Linked {
  /** The signal was aborted; it is not watched any more. */
  onAbort(): void
}

/**
 * Everything that is under way with one signal, behind one listener. A program may give the same signal,
 * that of its own end perhaps, to any number of requests, and an EventTarget looks through all of its
 * listeners to add or remove one: the hundred thousandth would cost milliseconds.
 */
class AbortWatch {
  readonly #watched: List<Abortable>

  constructor() {
    this.#watched = new List()
  }

  get isEmpty(): boolean {
    return this.#watched.length === 0
  }

  add(job: Abortable): void {
    this.#watched.append(job)
  }

  remove(job: Abortable): void {
    this.#watched.remove(job)
  }

  /** DOM §2.7: the watch itself is the listener. */
  handleEvent(): void {
    for (let job = this.#watched.shift(); job !== undefined; job = this.#watched.shift()) job.onAbort()
  }
}

const once = { once: true }
const watches = new WeakMap<AbortSignal, AbortWatch>()

/** `job` is told when `signal`, which is not aborted, is. */
export function watchAbort(signal: AbortSignal, job: Abortable): void {
  let watch = watches.get(signal)
  if (watch === undefined) {
    watch = new AbortWatch()
    watches.set(signal, watch)
  }
  if (watch.isEmpty) signal.addEventListener('abort', watch, once)
  watch.add(job)
}

/** `job`, which watches `signal` and was not told, does not any more. Nothing is left of the last one that goes. */
export function unwatchAbort(signal: AbortSignal, job: Abortable): void {
  const watch = watches.get(signal)
  if (watch === undefined) return
  watch.remove(job)
  if (watch.isEmpty) signal.removeEventListener('abort', watch)
}
