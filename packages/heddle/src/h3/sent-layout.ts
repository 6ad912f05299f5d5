/**
 * What was queued on a stream and has not left: frame headers and field blocks (overhead), and content, in turns.
 * QUIC counts octets of the stream; a sender is told octets of its content.
 */
export class SentLayout {
  /** Octets that have not left. */
  unsent: number
  /** Of these, those that exist only for this: what the sender gave away as it lay there is not among them. */
  pinned: number
  /** Something has left. */
  hasSent: boolean
  // The first pair, apart from the others: most messages have no more than that.
  #overhead: number
  #content: number
  /** Pairs behind it: overhead, content, … */
  #others: number[] | undefined
  #first: number
  /** Octets that were queued, ever. */
  #queued: number
  /** Where, among all octets, content lies that the sender gave away: start, limit, … */
  #owned: number[] | undefined

  constructor() {
    this.unsent = 0
    this.pinned = 0
    this.hasSent = false
    this.#overhead = 0
    this.#content = 0
    this.#others = undefined
    this.#first = 0
    this.#queued = 0
    this.#owned = undefined
  }

  addOverhead(byteCount: number): void {
    this.unsent += byteCount
    this.pinned += byteCount
    this.#queued += byteCount
    const others = this.#others
    if (others === undefined) {
      if (this.#content === 0) this.#overhead += byteCount
      else this.#others = [byteCount, 0]
    } else if (others[others.length - 1] === 0) others[others.length - 2] = (others[others.length - 2] as number) + byteCount
    else others.push(byteCount, 0)
  }

  /** `owned`: the sender gave it away, so that it is not held for this stream alone. */
  addContent(byteCount: number, owned: boolean): void {
    this.unsent += byteCount
    this.#queued += byteCount
    if (owned) (this.#owned ??= []).push(this.#queued - byteCount, this.#queued)
    else this.pinned += byteCount
    const others = this.#others
    if (others === undefined) this.#content += byteCount
    else others[others.length - 1] = (others[others.length - 1] as number) + byteCount
  }

  /** `byteCount` octets of the stream have left. Returns how many of them are content. */
  take(byteCount: number): number {
    let left = byteCount < this.unsent ? byteCount : this.unsent
    if (left > 0) this.hasSent = true
    this.pinned -= left - (this.#owned === undefined ? 0 : this.#takeOwned(this.#queued - this.unsent, left))
    this.unsent -= left
    let content = 0
    for (;;) {
      const overhead = left < this.#overhead ? left : this.#overhead
      this.#overhead -= overhead
      left -= overhead
      const taken = left < this.#content ? left : this.#content
      this.#content -= taken
      content += taken
      left -= taken
      if (this.#overhead > 0 || this.#content > 0 || !this.#shift()) return content
    }
  }

  /** How many of `byteCount` octets from `start` on the sender gave away; they leave. */
  #takeOwned(start: number, byteCount: number): number {
    const owned = this.#owned as number[]
    const limit = start + byteCount
    let count = 0
    let gone = 0
    while (gone < owned.length && (owned[gone] as number) < limit) {
      const end = owned[gone + 1] as number
      count += Math.min(end, limit) - Math.max(owned[gone] as number, start)
      if (end > limit) break
      gone += 2
    }
    if (gone === owned.length) this.#owned = undefined
    else if (gone > 0) owned.splice(0, gone)
    return count
  }

  /** The next pair becomes the first; false: there is none. */
  #shift(): boolean {
    const others = this.#others
    if (others === undefined) return false
    this.#overhead = others[this.#first] as number
    this.#content = others[this.#first + 1] as number
    this.#first += 2
    if (this.#first === others.length) {
      this.#others = undefined
      this.#first = 0
    } else if (this.#first >= 256) {
      others.splice(0, this.#first)
      this.#first = 0
    }
    return true
  }

  /** Nothing of it leaves any more. */
  clear(): void {
    this.unsent = 0
    this.pinned = 0
    this.#owned = undefined
    this.#overhead = 0
    this.#content = 0
    this.#others = undefined
    this.#first = 0
  }
}
