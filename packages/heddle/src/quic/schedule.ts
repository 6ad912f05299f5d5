import { List, type Linked } from '../bytes/index.ts'
import { IdHeap, type Placed } from './id-heap.ts'

/** What stands in a {@link Schedule}. */
export interface Scheduled extends Linked, Placed {
  /** 0 (first) to 7 (RFC 9218 §4.1). */
  urgency: number
  incremental: boolean
  /** It stands in the schedule. */
  isReady: boolean
}

/**
 * Streams with octets to send and a window to send them into, in the order that RFC 9218 §10 recommends:
 * by urgency; of one urgency first those that want to be served one by one, in the order of their ids,
 * then those that share, in turns.
 */
export class Schedule<T extends Scheduled> {
  /** By urgency: those that are served one by one. */
  readonly #ordered: readonly IdHeap<T>[]
  /** By urgency: those that take turns. */
  readonly #shared: readonly List<T>[]
  /** Bit 2n: somebody of urgency n is served one by one; bit 2n + 1: somebody takes turns. */
  #occupied: number

  constructor() {
    this.#ordered = Array.from({ length: 8 }, () => new IdHeap<T>())
    this.#shared = Array.from({ length: 8 }, () => new List<T>())
    this.#occupied = 0
  }

  /** The stream to serve next. */
  get first(): T | undefined {
    const occupied = this.#occupied
    if (occupied === 0) return undefined
    const lowest = 31 - Math.clz32(occupied & -occupied)
    return ((lowest & 1) === 0 ? this.#ordered : this.#shared)[lowest >> 1]?.first
  }

  /** Adds a stream that may stand in it already. */
  add(stream: T): void {
    if (stream.isReady) return
    const { urgency, incremental } = stream
    stream.isReady = true
    this.#occupied |= bitOf(stream)
    if (incremental) (this.#shared[urgency] as List<T>).append(stream)
    else (this.#ordered[urgency] as IdHeap<T>).add(stream)
  }

  /** Takes a stream out that need not stand in it, and is as urgent as when it was added. */
  remove(stream: T): void {
    if (!stream.isReady) return
    const { urgency, incremental } = stream
    const streams = incremental ? (this.#shared[urgency] as List<T>) : (this.#ordered[urgency] as IdHeap<T>)
    stream.isReady = false
    streams.remove(stream)
    if (streams.length === 0) this.#occupied &= ~bitOf(stream)
  }

  /** A frame of `stream` was sent: if it shares, it is the others' turn. */
  rotate(stream: T): void {
    if (!stream.incremental || !stream.isReady || stream.next === undefined) return
    const list = this.#shared[stream.urgency] as List<T>
    list.remove(stream)
    list.append(stream)
  }
}

function bitOf({ urgency, incremental }: Scheduled): number {
  return 1 << (urgency * 2 + (incremental ? 1 : 0))
}
