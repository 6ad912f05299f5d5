import type { Fields } from '../http/index.ts'

/** Room for small pieces, which are packed behind each other. */
const packSize = 4_096

/** Content, and the end, that must not leave before the peer has said something (100-continue, a tunnel's answer). */
export class HeldContent {
  readonly chunks: Uint8Array[]
  /** The last of the chunks, if it is ours and has room behind what is in it. */
  #pack: Uint8Array | undefined
  #packed: number
  length: number
  end: boolean
  trailers: Fields | undefined

  constructor() {
    this.chunks = []
    this.#pack = undefined
    this.#packed = 0
    this.length = 0
    this.end = false
    this.trailers = undefined
  }

  /** `owned`: the bytes stay as they are until sent. */
  add(buffer: Uint8Array, start: number, limit: number, owned: boolean): void {
    if (limit === start) return
    const count = limit - start
    this.length += count
    if (count > packSize / 4) {
      this.#pack = undefined
      this.chunks.push(owned ? buffer : Uint8Array.prototype.slice.call(buffer, start, limit))
      return
    }
    let pack = this.#pack
    if (pack === undefined || pack.length - this.#packed < count) {
      pack = this.#pack = new Uint8Array(packSize)
      this.#packed = 0
      this.chunks.push(pack.subarray(0, 0))
    }
    pack.set(buffer.subarray(start, limit), this.#packed)
    this.#packed += count
    this.chunks[this.chunks.length - 1] = pack.subarray(0, this.#packed)
  }
}
