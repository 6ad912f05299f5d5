import { RangeSet } from '../bytes/index.ts'

/** Gaps of a stream: a peer that makes more of them is up to no good. */
export const mostGaps = 1_000

/** Octets of one piece of memory. */
const blockSize = 8_192

/**
 * Octets that came before their turn (RFC 9000 §2.2), copied to where they belong:
 *
 *      base         ┌ what came ┐         ┌ what came ┐
 *       │           │           │         │           │
 *     ──┴─────┬─────┴─────┬─────┴─────┬───┴───────┬───┴──
 *             │  block    │  block    │ (nothing) │  block
 *
 * Blocks come with the first octet that lies in them, so that what a stream pins is bounded by its
 * window, in however many pieces it is filled. Of what comes twice, the first is kept.
 */
export class Reassembly {
  /** All before this offset was handed on. */
  base: number
  /** What came, from `base` on. */
  readonly #ranges: RangeSet
  readonly #blocks: (Uint8Array | undefined)[]
  /** The octet at `offset` is in block `floor(offset / blockSize)`; this is the number of the first one here. */
  #firstBlock: number

  constructor() {
    this.base = 0
    this.#ranges = new RangeSet()
    this.#blocks = []
    this.#firstBlock = 0
  }

  /** Nothing waits. */
  get isEmpty(): boolean {
    return this.#ranges.isEmpty
  }

  /** Octets of memory that are pinned. */
  get pinned(): number {
    let count = 0
    for (const block of this.#blocks) if (block !== undefined) count++
    return count * blockSize
  }

  /** Keeps what of `buffer[start, limit)`, which begins at `offset`, is not there yet. False: there are too many gaps. */
  insert(offset: number, buffer: Uint8Array, start: number, limit: number): boolean {
    const ranges = this.#ranges
    const end = offset + limit - start
    const first = Math.max(offset, this.base)
    if (ranges.isEmpty) this.#firstBlock = Math.floor(this.base / blockSize)
    for (let from = ranges.firstMissing(first); from < end;) {
      const until = Math.min(end, ranges.firstPresent(from))
      this.#store(from, until, buffer, start + from - offset)
      from = ranges.firstMissing(until)
    }
    ranges.add(first, end)
    return ranges.count <= mostGaps
  }

  /** The octets that come next, as far as they lie together, valid until the next call; they count as handed on. */
  take(): Uint8Array | undefined {
    const { base } = this
    const ranges = this.#ranges
    if (ranges.isEmpty || ranges.start(0) > base) return undefined
    const number = Math.floor(base / blockSize)
    const block = this.#blocks[number - this.#firstBlock] as Uint8Array
    const limit = Math.min(ranges.limit(0), (number + 1) * blockSize)
    this.skipTo(limit)
    return block.subarray(base - number * blockSize, limit - number * blockSize)
  }

  /** All before `offset`, which is not before `base`, was handed on. */
  skipTo(offset: number): void {
    this.base = offset
    if (this.isEmpty) return
    this.#ranges.remove(0, offset)
    if (this.isEmpty) return this.clear()
    const over = Math.floor(offset / blockSize) - this.#firstBlock
    if (over === 0) return
    this.#blocks.splice(0, over)
    this.#firstBlock += over
  }

  /** Lets go of all that waits. */
  clear(): void {
    this.#ranges.clear()
    this.#blocks.length = 0
  }

  /** Copies the octets `[from, until)` of the stream from `buffer[at…]`. */
  #store(from: number, until: number, buffer: Uint8Array, at: number): void {
    const blocks = this.#blocks
    while (from < until) {
      const number = Math.floor(from / blockSize)
      const index = number - this.#firstBlock
      while (blocks.length <= index) blocks.push(undefined)
      const block = (blocks[index] ??= Buffer.allocUnsafeSlow(blockSize))
      const cut = Math.min(until, (number + 1) * blockSize)
      block.set(buffer.subarray(at, at + cut - from), from - number * blockSize)
      at += cut - from
      from = cut
    }
  }
}
