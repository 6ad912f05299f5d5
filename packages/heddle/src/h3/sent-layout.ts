/**
 * What was queued on a stream and has not left: frame headers and field blocks (overhead), and content, in turns.
 * QUIC counts octets of the stream; a sender is told octets of its content.
 */
export class SentLayout {
  /** Octets that have not left. */
  unsent: number
  /** Something has left. */
  hasSent: boolean
  // The first pair, apart from the others: most messages have no more than that.
  #overhead: number
  #content: number
  /** Pairs behind it: overhead, content, … */
  #others: number[] | undefined
  #first: number

  constructor() {
    this.unsent = 0
    this.hasSent = false
    this.#overhead = 0
    this.#content = 0
    this.#others = undefined
    this.#first = 0
  }

  addOverhead(byteCount: number): void {
    this.unsent += byteCount
    const others = this.#others
    if (others === undefined) {
      if (this.#content === 0) this.#overhead += byteCount
      else this.#others = [byteCount, 0]
    } else if (others[others.length - 1] === 0) others[others.length - 2] = (others[others.length - 2] as number) + byteCount
    else others.push(byteCount, 0)
  }

  addContent(byteCount: number): void {
    this.unsent += byteCount
    const others = this.#others
    if (others === undefined) this.#content += byteCount
    else others[others.length - 1] = (others[others.length - 1] as number) + byteCount
  }

  /** `byteCount` octets of the stream have left. Returns how many of them are content. */
  take(byteCount: number): number {
    let left = byteCount < this.unsent ? byteCount : this.unsent
    this.unsent -= left
    if (left > 0) this.hasSent = true
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
    this.#overhead = 0
    this.#content = 0
    this.#others = undefined
    this.#first = 0
  }
}
