import { writeInteger } from '../fieldcode/index.ts'
import type { OutboxLike } from '../http/index.ts'

const none = new Uint8Array(0)

/** Takes the instructions of one stream, one by one. */
export interface InstructionHandler {
  /**
   * Reads and obeys the instruction that begins at `start`. Returns the position behind it; or, having
   * done nothing, a larger number than `limit`: the position up to which more octets are needed to get any
   * further; or -1 for a fault.
   */
  readInstruction(buffer: Uint8Array, start: number, limit: number): number
}

/**
 * Cuts a stream of instructions (RFC 9204 §4.2) into instructions. One that has not come as a whole is kept,
 * and looked at again only when what it waits for is there: octet by octet it costs no more than at once.
 */
export class InstructionStream {
  readonly #handler: InstructionHandler
  #kept: Uint8Array
  #length: number
  /** Octets of the kept instruction to wait for. */
  #needed: number

  constructor(handler: InstructionHandler) {
    this.#handler = handler
    this.#kept = none
    this.#length = 0
    this.#needed = 0
  }

  /** Octets kept in memory. */
  get pinned(): number {
    return this.#kept.length
  }

  /** Takes what came on the stream; false: the handler found a fault, and the stream is lost. */
  receive(buffer: Uint8Array, start: number, limit: number): boolean {
    const handler = this.#handler
    let at = start
    while (this.#length > 0) {
      at = this.#keep(buffer, at, limit)
      if (this.#length < this.#needed) return true
      const behind = handler.readInstruction(this.#kept, 0, this.#length)
      if (behind < 0) return false
      if (behind > this.#length) this.#needed = behind
      else this.#forget()
    }
    while (at < limit) {
      const behind = handler.readInstruction(buffer, at, limit)
      if (behind < 0) return false
      if (behind > limit) {
        this.#needed = behind - at
        this.#keep(buffer, at, limit)
        return true
      }
      at = behind
    }
    return true
  }

  /** Keeps what there is of what is needed; returns the position behind it. */
  #keep(buffer: Uint8Array, start: number, limit: number): number {
    const count = Math.min(limit - start, this.#needed - this.#length)
    const length = this.#length + count
    if (length > this.#kept.length) {
      // Doubled, not as large as announced: what is announced need not come.
      const grown = new Uint8Array(Math.max(length, 2 * this.#kept.length, 32))
      grown.set(this.#kept.subarray(0, this.#length))
      this.#kept = grown
    }
    for (let i = 0; i < count; i++) this.#kept[this.#length + i] = buffer[start + i] as number
    this.#length = length
    return start + count
  }

  #forget(): void {
    this.#length = 0
    if (this.#kept.length > 256) this.#kept = none
  }
}

/** Appends an instruction that is one integer; `first` holds the bits before it. */
export function writeInstruction(out: OutboxLike, value: number, prefixBits: number, first: number): void {
  out.reserve(11)
  out.length = writeInteger(value, prefixBits, first, out.buffer, out.length)
}
