import { List, type Linked } from '../bytes/index.ts'

/** What stands in a {@link Schedule}. */
export interface Scheduled extends Linked {
  readonly id: number
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
  /** Two lists for each urgency: one by one, in turns. */
  readonly #lists: readonly List<T>[]
  /** Bit n: list n is not empty. */
  #occupied: number

  constructor() {
    this.#lists = Array.from({ length: 16 }, () => new List<T>())
    this.#occupied = 0
  }

  /** The stream to serve next. */
  get first(): T | undefined {
    const occupied = this.#occupied
    if (occupied === 0) return undefined
    return (this.#lists[31 - Math.clz32(occupied & -occupied)] as List<T>).first
  }

  /** Adds a stream that may stand in it already. */
  add(stream: T): void {
    if (stream.isReady) return
    const index = indexOf(stream)
    const list = this.#lists[index] as List<T>
    stream.isReady = true
    this.#occupied |= 1 << index
    if (stream.incremental) return list.append(stream)
    let { last } = list
    if (last === undefined || last.id < stream.id) return list.append(stream)
    for (let before = last.previous as T | undefined; before !== undefined && before.id > stream.id;) {
      last = before
      before = before.previous as T | undefined
    }
    list.insertBefore(stream, last)
  }

  remove(stream: T): void {
    if (!stream.isReady) return
    const index = indexOf(stream)
    const list = this.#lists[index] as List<T>
    stream.isReady = false
    list.remove(stream)
    if (list.length === 0) this.#occupied &= ~(1 << index)
  }

  /** A frame of `stream` was sent: if it shares, it is the others' turn. */
  rotate(stream: T): void {
    if (!stream.incremental || !stream.isReady || stream.next === undefined) return
    const list = this.#lists[indexOf(stream)] as List<T>
    list.remove(stream)
    list.append(stream)
  }
}

function indexOf(stream: Scheduled): number {
  return stream.urgency * 2 + (stream.incremental ? 1 : 0)
}
