import { List } from '../bytes/index.ts'
import type { Stream } from './stream.ts'

/**
 * Streams that have content and a window to send it into, in the order RFC 9218 §10 recommends: by
 * urgency; of one urgency first those that want to be served one by one, in the order of the requests,
 * then those that share, in turns.
 */
export class Schedule {
  length: number
  /** Two lists for each urgency: one by one, in turns. */
  readonly #lists: readonly List<Stream>[]
  /** Bit n: list n is not empty. */
  #occupied: number

  constructor() {
    this.length = 0
    this.#lists = Array.from({ length: 16 }, () => new List<Stream>())
    this.#occupied = 0
  }

  /** The stream to serve next. */
  get first(): Stream | undefined {
    const occupied = this.#occupied
    if (occupied === 0) return undefined
    return (this.#lists[31 - Math.clz32(occupied & -occupied)] as List<Stream>).first
  }

  add(stream: Stream): void {
    const index = indexOf(stream)
    const list = this.#lists[index] as List<Stream>
    stream.isReady = true
    this.length++
    this.#occupied |= 1 << index
    if (stream.incremental) return list.append(stream)
    let { last } = list
    if (last === undefined || last.id < stream.id) return list.append(stream)
    for (let before = last.previous as Stream | undefined; before !== undefined && before.id > stream.id;) {
      last = before
      before = before.previous as Stream | undefined
    }
    list.insertBefore(stream, last)
  }

  remove(stream: Stream): void {
    if (!stream.isReady) return
    const index = indexOf(stream)
    const list = this.#lists[index] as List<Stream>
    stream.isReady = false
    this.length--
    list.remove(stream)
    if (list.length === 0) this.#occupied &= ~(1 << index)
  }

  /** A frame of `stream` was sent: if it shares, it is the others' turn. */
  rotate(stream: Stream): void {
    if (!stream.incremental || stream.next === undefined) return
    const list = this.#lists[indexOf(stream)] as List<Stream>
    list.remove(stream)
    list.append(stream)
  }
}

function indexOf(stream: Stream): number {
  return stream.urgency * 2 + (stream.incremental ? 1 : 0)
}
