import type { Instant } from '../http/index.ts'

/** Something that happens at a fixed instant of a world: an arrival, a step of a script. */
export class WorldEvent {
  readonly at: Instant
  /** Tells apart events of one instant: they happen in the order they were planned. */
  readonly order: number
  /** Undefined once it was cancelled. */
  run: (() => void) | undefined

  constructor(at: Instant, order: number, run: () => void) {
    this.at = at
    this.order = order
    this.run = run
  }

  /** Takes it out of the world's plans. */
  cancel(): void {
    this.run = undefined
  }
}

function isBefore(a: WorldEvent, b: WorldEvent): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** Planned events, first one first: a binary heap. */
export class EventQueue {
  readonly #heap: WorldEvent[] = []
  #order = 0

  add(at: Instant, run: () => void): WorldEvent {
    const event = new WorldEvent(at, this.#order++, run)
    const heap = this.#heap
    let i = heap.length
    heap.push(event)
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!isBefore(event, heap[parent] as WorldEvent)) break
      heap[i] = heap[parent] as WorldEvent
      i = parent
    }
    heap[i] = event
    return event
  }

  /** The instant of the first event; Infinity if there is none. */
  next(): Instant {
    while (this.#heap.length > 0 && (this.#heap[0] as WorldEvent).run === undefined) this.#removeFirst()
    return this.#heap.length === 0 ? Infinity : (this.#heap[0] as WorldEvent).at
  }

  /** Takes the first event out; call only when `next` is not Infinity. */
  shift(): WorldEvent {
    const first = this.#heap[0] as WorldEvent
    this.#removeFirst()
    return first
  }

  #removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop() as WorldEvent
    if (heap.length === 0) return
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as WorldEvent, heap[child] as WorldEvent)) child++
      if (!isBefore(heap[child] as WorldEvent, last)) break
      heap[i] = heap[child] as WorldEvent
      i = child
    }
    heap[i] = last
  }
}
