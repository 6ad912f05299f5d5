import type { Stream } from './stream.ts'

const smallest = 16

/**
 * The open streams of a connection by number: a ring in which stream n stands at n / 2, so that a
 * lookup is an index and not a hash. A stream that outlives many others keeps its place; one that
 * finds its place taken goes to a map.
 */
export class StreamSet {
  size: number
  #ring: (Stream | undefined)[]
  #others: Map<number, Stream> | undefined

  constructor() {
    this.size = 0
    this.#ring = []
    this.#others = undefined
  }

  get(streamId: number): Stream | undefined {
    const ring = this.#ring
    if (ring.length === 0) return undefined
    const stream = ring[(streamId >>> 1) & (ring.length - 1)]
    if (stream !== undefined && stream.id === streamId) return stream
    return this.#others === undefined ? undefined : this.#others.get(streamId)
  }

  add(stream: Stream): void {
    if (++this.size * 2 > this.#ring.length) this.#resize(Math.max(smallest, this.#ring.length * 2))
    this.#place(stream)
  }

  /** False: it was not here. */
  delete(stream: Stream): boolean {
    const ring = this.#ring
    if (ring.length === 0) return false
    const slot = (stream.id >>> 1) & (ring.length - 1)
    if (ring[slot] === stream) ring[slot] = undefined
    else if (this.#others === undefined || !this.#others.delete(stream.id)) return false
    // After a burst the room it took is given back.
    if (--this.size === 0 && ring.length > smallest * 16) {
      this.#ring = []
      this.#others = undefined
    }
    return true
  }

  /** All of them as they are now: a copy, so that streams may go meanwhile. */
  all(): Stream[] {
    const all: Stream[] = []
    if (this.size === 0) return all
    for (const stream of this.#ring) if (stream !== undefined) all.push(stream)
    if (this.#others !== undefined) all.push(...this.#others.values())
    return all
  }

  #place(stream: Stream): void {
    const slot = (stream.id >>> 1) & (this.#ring.length - 1)
    if (this.#ring[slot] === undefined) this.#ring[slot] = stream
    else (this.#others ??= new Map()).set(stream.id, stream)
  }

  #resize(length: number): void {
    const all = this.all()
    this.#ring = Array.from({ length }, () => undefined)
    this.#others = undefined
    for (const stream of all) this.#place(stream)
  }
}
